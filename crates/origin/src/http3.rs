//! HTTP/3 (RFC 9114), by h3 over quinn.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::Buf;
use h3::server::{RequestResolver, RequestStream};

use crate::access_log::Peer;
use crate::body::Chunk;
use crate::shared::{Link, Parts, Server};

/// The longest header list of a request, in bytes as RFC 9114, section 4.2.2, counts them.
const LONGEST_HEAD_BYTES: u64 = 1 << 16;
/// How long the last answers may take to reach a client that is closing.
const LINGER: Duration = Duration::from_secs(1);

type Connection = h3::server::Connection<h3_quinn::Connection, Chunk>;
type Resolver = RequestResolver<h3_quinn::Connection, Chunk>;
type Stream = RequestStream<h3_quinn::BidiStream<Chunk>, Chunk>;

/// Serves one connection until either side ends it.
pub(crate) async fn connection(incoming: quinn::Incoming, link: Link) -> anyhow::Result<()> {
    let failed = "the QUIC handshake failed";
    let quic = if link.server.config.early_data {
        // A server can always answer before the handshake is done.
        match incoming.accept().context(failed)?.into_0rtt() {
            Ok((quic, _)) => quic,
            Err(connecting) => connecting.await.context(failed)?,
        }
    } else {
        incoming.await.context(failed)?
    };
    let mut connection: Connection = h3::server::builder()
        .send_grease(false)
        .max_field_section_size(LONGEST_HEAD_BYTES)
        .build(h3_quinn::Connection::new(quic.clone()))
        .await?;
    let mut closing = pin!(link.closing());
    let mut is_closing = false;
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = connection.accept() => accepted,
            () = &mut closing, if !is_closing => {
                is_closing = true;
                connection.shutdown(0).await?;
                continue;
            }
        };
        match accepted {
            Ok(Some(resolver)) => {
                start(exchange(Arc::clone(&link.server), link.peer(), resolver, Instant::now())).await
            }
            Ok(None) => {
                // QUIC still holds the answers. Closing now would discard what is not acknowledged.
                let _ = tokio::time::timeout(LINGER, quic.closed()).await;
                return Ok(());
            }
            Err(error) if error.is_h3_no_error() => return Ok(()),
            Err(error) => return Err(error.into()),
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

async fn exchange(server: Arc<Server>, peer: Peer, resolver: Resolver, started: Instant) {
    // An error of one request ends that request only: h3 has reset its stream or closed the connection.
    let resolved = tokio::time::timeout(server.config.head_timeout, resolver.resolve_request()).await;
    let Ok(Ok((request, mut stream))) = resolved else { return };
    let entry = server.begin_request(peer, &request, started);
    let answer = server.catalogue.plan(&request).answer(drain(&mut stream)).await;
    let parts = server.split(answer, entry);
    if send(&server, &mut stream, parts).await.is_err() {
        stream.stop_stream(h3::error::Code::H3_INTERNAL_ERROR);
    }
}

async fn send(server: &Server, stream: &mut Stream, parts: Parts) -> anyhow::Result<()> {
    let Parts { head, body_bytes, mut content, entry } = parts;
    let limit = server.config.idle_timeout;
    let sent = tokio::time::timeout(limit, stream.send_response(head)).await;
    if !matches!(sent, Ok(Ok(()))) {
        if let Some(entry) = &entry {
            entry.abandon();
        }
        anyhow::bail!("the head of the answer could not be sent");
    }
    let mut left = body_bytes;
    while left > 0 {
        let data = content.next().await?.context("the body ended early")?;
        left = left.saturating_sub(data.len() as u64);
        let chunk = Chunk::new(data, entry.clone());
        tokio::time::timeout(limit, stream.send_data(chunk)).await??;
    }
    // Reading the end of the request, if it has arrived, spares the client a STOP_SENDING. (Otherwise
    // dropping the stream sends one; `stop_sending` itself must not be called while a read is pending.)
    std::future::poll_fn(|cx| Poll::Ready(stream.poll_recv_data(cx).is_ready())).await;
    stream.finish().await?;
    Ok(())
}

/// Reads a body to its end; returns its length, `None` where it broke off.
async fn drain(stream: &mut Stream) -> Option<u64> {
    let mut bytes = 0;
    while let Some(data) = stream.recv_data().await.ok()? {
        bytes += data.remaining() as u64;
    }
    Some(bytes)
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
