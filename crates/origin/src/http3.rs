//! HTTP/3 (RFC 9114), by h3 over quinn. `guard` checks what clients send before h3 reads it.

mod control;
mod fields;
mod guard;
mod own_stream;
mod request;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use bytes::Buf;
use h3::error::StreamError;
use h3::server::{RequestResolver, RequestStream};
use model::Variant;

use crate::access_log::Peer;
use crate::activity::Activity;
use crate::body::Chunk;
use crate::catalogue::{Ahead, Plan};
use crate::shared::{Link, Parts, Server, Slot};

/// The longest header list of a request, in bytes as RFC 9114, section 4.2.2, counts them.
const LONGEST_HEAD_BYTES: u64 = 1 << 16;
/// How long the last answers may take to reach a client that is closing.
const LINGER: Duration = Duration::from_secs(1);

type Connection = h3::server::Connection<guard::Connection, Chunk>;
type Resolver = RequestResolver<guard::Connection, Chunk>;
type Stream = RequestStream<guard::BidiStream, Chunk>;
/// Ready once the handshake is complete, or cannot become complete in time.
type Handshake = Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>;

/// Serves one connection until either side ends it; `handshake` is dropped once the handshake is complete.
pub(crate) async fn connection(incoming: quinn::Incoming, link: Link, handshake: Slot) -> anyhow::Result<()> {
    let config = &link.server.config;
    let (quic, completed) = accept(incoming, config.early_data, config.head_timeout).await?;
    let activity = Activity::new();
    let (transport, shared) = guard::Connection::new(&quic, &activity);
    // h3 waits until the client permits three streams.
    let mut builder = h3::server::builder();
    builder.send_grease(false).max_field_section_size(LONGEST_HEAD_BYTES);
    let connection: Connection = tokio::time::timeout(config.head_timeout, builder.build(transport))
        .await
        .context("the client did not permit the control stream in time")??;
    let completed = async move {
        completed.await?;
        drop(handshake);
        Ok(())
    };
    let client = Client { link: &link, quic, activity };
    let ended = client.serve(connection, completed).await;
    match shared.violation() {
        Some(violation) => bail!("{violation}"),
        None => ended,
    }
}

/// Accepts a connection: before the handshake is complete where the client may send early data, otherwise
/// after that.
async fn accept(
    incoming: quinn::Incoming,
    early_data: bool,
    limit: Duration,
) -> anyhow::Result<(quinn::Connection, Handshake)> {
    let failed = "the QUIC handshake failed";
    let late = "the QUIC handshake was not complete in time";
    let connecting = incoming.accept().context(failed)?;
    if !early_data {
        let quic = tokio::time::timeout(limit, connecting).await.context(late)?.context(failed)?;
        return Ok((quic, Box::pin(std::future::ready(Ok(())))));
    }
    match connecting.into_0rtt() {
        Ok((quic, accepted)) => {
            let completed =
                async move { tokio::time::timeout(limit, accepted).await.map(drop).context(late) };
            Ok((quic, Box::pin(completed)))
        }
        Err(_) => bail!("{failed}"),
    }
}

/// The client of one connection.
struct Client<'a> {
    link: &'a Link,
    quic: quinn::Connection,
    activity: Arc<Activity>,
}

impl Client<'_> {
    async fn serve(
        &self,
        mut connection: Connection,
        handshake: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let Client { link, activity, .. } = self;
        let mut stalled = pin!(activity.stalled(link.server.config.idle_timeout));
        let mut closing = pin!(link.closing());
        let mut handshake = pin!(handshake);
        let (mut is_closing, mut is_complete) = (false, false);
        loop {
            let accepted = tokio::select! {
                biased;
                accepted = connection.accept() => accepted,
                completed = &mut handshake, if !is_complete => {
                    completed?;
                    is_complete = true;
                    continue;
                }
                why = &mut stalled => bail!(why),
                () = &mut closing, if !is_closing => {
                    is_closing = true;
                    connection.shutdown(0).await?;
                    continue;
                }
            };
            match accepted {
                Ok(Some(resolver)) => {
                    activity.note_message();
                    let server = Arc::clone(&link.server);
                    start(exchange(server, link.peer(), resolver, Arc::clone(activity), Instant::now()))
                        .await;
                }
                Ok(None) => {
                    // QUIC still holds the answers. Closing now would discard what is not acknowledged.
                    let _ = tokio::time::timeout(LINGER, self.quic.closed()).await;
                    return Ok(());
                }
                Err(error) if error.is_h3_no_error() => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Polls a task once in place and spawns it where it is not ready.
async fn start(task: impl Future<Output = ()> + Send + 'static) {
    let mut task = Box::pin(task);
    let first = std::future::poll_fn(|cx| Poll::Ready(task.as_mut().poll(cx))).await;
    if first.is_pending() {
        tokio::spawn(task);
    }
}

async fn exchange(
    server: Arc<Server>,
    peer: Peer,
    resolver: Resolver,
    activity: Arc<Activity>,
    started: Instant,
) {
    // An error of one request ends that request only: the guard or h3 has reset its stream or closed the
    // connection.
    let resolved = tokio::time::timeout(server.config.head_timeout, resolver.resolve_request()).await;
    let Ok(Ok((request, mut stream))) = resolved else { return };
    if let Some(hints) = server.catalogue.ahead(&request).and_then(Ahead::hints) {
        // An error means that the stream or the connection is gone, which the answer reports.
        let _ = tokio::time::timeout(server.config.idle_timeout, stream.send_response(hints)).await;
    }
    let plan = server.catalogue.plan(&request);
    // What has arrived of the request can be malformed. The body of a request to /echo is read to its end.
    if !matches!(plan, Plan::Echo) && drain_arrived(&mut stream).await.is_err() {
        return;
    }
    let entry = server.begin_request(peer, &request, started);
    let answer = plan.answer(async { drain(&mut stream).await.ok() }).await;
    let parts = server.split(Variant::H3, answer, entry);
    if send(&server, &mut stream, parts, &activity).await.is_err() {
        stream.stop_stream(h3::error::Code::H3_INTERNAL_ERROR);
    }
}

async fn send(
    server: &Server,
    stream: &mut Stream,
    parts: Parts,
    activity: &Arc<Activity>,
) -> anyhow::Result<()> {
    let Parts { head, body_bytes, mut content, entry } = parts;
    let limit = server.config.idle_timeout;
    let sent = tokio::time::timeout(limit, stream.send_response(head)).await;
    if !matches!(sent, Ok(Ok(()))) {
        if let Some(entry) = &entry {
            entry.abandon();
        }
        bail!("the head of the answer could not be sent");
    }
    let mut left = body_bytes;
    while left > 0 {
        let data = content.next().await?.context("the body ended early")?;
        left = left.saturating_sub(data.len() as u64);
        let chunk = Chunk::new(data, entry.clone()).watched(activity);
        tokio::time::timeout(limit, stream.send_data(chunk)).await??;
    }
    // Reading the end of the request, if it has arrived, spares the client a STOP_SENDING. (Otherwise
    // dropping the stream sends one.)
    drain_arrived(stream).await?;
    stream.finish().await?;
    Ok(())
}

/// Reads the rest of a request; returns the length of its body.
async fn drain(stream: &mut Stream) -> Result<u64, StreamError> {
    let mut bytes = 0;
    while let Some(data) = stream.recv_data().await? {
        bytes += data.remaining() as u64;
    }
    // The origin ignores trailers, but the client must not send content after them.
    stream.recv_trailers().await?;
    Ok(bytes)
}

/// Reads what has arrived of a request.
async fn drain_arrived(stream: &mut Stream) -> Result<(), StreamError> {
    let mut drained = pin!(drain(stream));
    match std::future::poll_fn(|cx| Poll::Ready(drained.as_mut().poll(cx))).await {
        Poll::Ready(Err(error)) => Err(error),
        Poll::Ready(Ok(_)) | Poll::Pending => Ok(()),
    }
}

/// The pinned transport parameters.
pub(crate) fn transport(config: &crate::Config) -> anyhow::Result<quinn::TransportConfig> {
    use model::pins::CongestionControl;
    use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
    let pins = &config.pins;
    let window = u64::from(pins.initial_window_packets) * u64::from(pins.quic_datagram_bytes);
    let mut transport = quinn::TransportConfig::default();
    macro_rules! with_window {
        ($controller:ty) => {{
            let mut controller = <$controller>::default();
            controller.initial_window(window);
            Arc::new(controller)
        }};
    }
    let factory: Arc<dyn quinn::congestion::ControllerFactory + Send + Sync> = match pins.congestion_control {
        CongestionControl::Cubic => with_window!(CubicConfig),
        CongestionControl::Reno => with_window!(NewRenoConfig),
        CongestionControl::Bbr => with_window!(BbrConfig),
    };
    transport
        .congestion_controller_factory(factory)
        .initial_mtu(pins.quic_datagram_bytes)
        .min_mtu(pins.quic_datagram_bytes)
        .mtu_discovery_config(None)
        .max_concurrent_bidi_streams(config.concurrent_streams.into())
        .max_concurrent_uni_streams(16_u32.into())
        .stream_receive_window(config.stream_window_bytes.into())
        .receive_window(config.connection_window_bytes.into())
        .send_window(config.quic_send_window_bytes)
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(Some(
            config.idle_timeout.try_into().context("the idle timeout is too long for QUIC")?,
        ));
    Ok(transport)
}
