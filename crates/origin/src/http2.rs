//! HTTP/2 (RFC 9113), by the `h2` crate itself.
//!
//! Bodies are passed to `h2` without waiting for capacity: `h2` splits them as the peer's windows open, so a
//! small window costs no wake-up here. The queue stays bounded: a body in memory is shared, not copied, and
//! any other body queues at most [`MOST_QUEUED_BYTES`].

use std::pin::pin;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use h2::server::{SendPushedResponse, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response};
use model::Variant;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::access_log::Entry;
use crate::activity::Activity;
use crate::answer::Answer;
use crate::body::{Chunk, Content, Queued};
use crate::catalogue::{Ahead, Plan};
use crate::outbox::Outbox;
use crate::shared::{Link, Parts, Server};

/// The longest header list of a request, in bytes as RFC 9113, section 10.5.1, counts them.
const LONGEST_HEAD_BYTES: u32 = 1 << 16;
/// How much of a body that is not in memory waits inside the connection at most, in bytes.
const MOST_QUEUED_BYTES: usize = 1 << 18;

/// Serves one connection until either side ends it.
pub(crate) async fn connection<S>(stream: S, link: Link, activity: Arc<Activity>) -> anyhow::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = &link.server.config;
    let outbox = Outbox::new(stream);
    let handshake = h2::server::Builder::new()
        .initial_window_size(config.stream_window_bytes)
        .initial_connection_window_size(config.connection_window_bytes)
        .max_concurrent_streams(config.concurrent_streams)
        .max_header_list_size(LONGEST_HEAD_BYTES)
        .handshake::<_, Chunk>(outbox.clone());
    let mut connection = tokio::time::timeout(config.head_timeout, outbox.run(handshake))
        .await
        .context("the connection preface was not complete in time")???;
    let mut stalled = pin!(activity.stalled(config.idle_timeout));
    let mut closing = pin!(link.closing());
    let mut is_closing = false;
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = outbox.run(connection.accept()) => accepted?,
            why = &mut stalled => anyhow::bail!(why),
            () = &mut closing, if !is_closing => {
                is_closing = true;
                connection.graceful_shutdown();
                continue;
            }
        };
        match accepted {
            Some(Ok((request, respond))) => handle(&link, request, respond, &activity),
            Some(Err(error)) => return Err(error.into()),
            None => return Ok(()),
        }
    }
}

/// One request and the handle to answer it.
struct Exchange<R> {
    server: Arc<Server>,
    variant: Variant,
    respond: R,
    entry: Option<Entry>,
    activity: Arc<Activity>,
}

/// A stream that an answer can be sent on.
trait Respond: Send + Sync + 'static {
    fn send_head(&mut self, head: Response<()>, is_all: bool) -> Result<SendStream<Chunk>, h2::Error>;
}

impl Respond for SendResponse<Chunk> {
    fn send_head(&mut self, head: Response<()>, is_all: bool) -> Result<SendStream<Chunk>, h2::Error> {
        self.send_response(head, is_all)
    }
}

impl Respond for SendPushedResponse<Chunk> {
    fn send_head(&mut self, head: Response<()>, is_all: bool) -> Result<SendStream<Chunk>, h2::Error> {
        self.send_response(head, is_all)
    }
}

fn handle(
    link: &Link,
    request: Request<RecvStream>,
    mut respond: SendResponse<Chunk>,
    activity: &Arc<Activity>,
) {
    activity.note_message();
    let server = &link.server;
    // Promises precede the answer: the client must not request what they promise (RFC 9113, section 8.4.1).
    let ahead = server.catalogue.ahead(&request);
    let promised = ahead.map_or_else(Vec::new, |ahead| send_ahead(ahead, &request, &mut respond));
    let plan = server.catalogue.plan(&request);
    let exchange = Exchange::new(link, &request, respond, activity);
    match plan {
        Plan::Now(answer) => exchange.answer(answer),
        later => {
            tokio::spawn(async move {
                let body = drain(request.into_body(), Arc::clone(&exchange.activity));
                exchange.answer(later.answer(body).await);
            });
        }
    }
    for (request, respond) in promised {
        if let Plan::Now(answer) = server.catalogue.plan(&request) {
            Exchange::new(link, &request, respond, activity).answer(answer);
        }
    }
}

/// Sends hints and promises; returns the promised requests that are to be answered.
fn send_ahead<B>(
    ahead: &Ahead,
    request: &Request<B>,
    respond: &mut SendResponse<Chunk>,
) -> Vec<(Request<()>, SendPushedResponse<Chunk>)> {
    if let Some(hints) = ahead.hints() {
        // An error means that the peer has reset the stream, which the answer reports.
        let _ = respond.send_informational(hints);
    }
    let promise = |path: &String| {
        let mut parts = request.uri().clone().into_parts();
        parts.path_and_query = Some(path.parse().ok()?);
        let mut promised = Request::new(());
        *promised.version_mut() = http::Version::HTTP_2;
        *promised.uri_mut() = http::Uri::from_parts(parts).ok()?;
        // The client may have disabled push.
        let respond = respond.push_request(promised.clone()).ok()?;
        Some((promised, respond))
    };
    ahead.push.iter().filter_map(promise).collect()
}

impl<R: Respond> Exchange<R> {
    fn new<B>(link: &Link, request: &Request<B>, respond: R, activity: &Arc<Activity>) -> Self {
        let (server, variant) = (Arc::clone(&link.server), link.variant);
        let entry = server.begin_request(link.peer(), request, activity.last_read());
        Exchange { server, variant, respond, entry, activity: Arc::clone(activity) }
    }

    fn answer(mut self, answer: Answer) {
        let Parts { head, body_bytes, mut content, entry } =
            self.server.split(self.variant, answer, self.entry.take());
        let sent = self.respond.send_head(head, body_bytes == 0);
        let (Ok(mut stream), false) = (sent, body_bytes == 0) else {
            if let (Some(entry), true) = (&entry, body_bytes > 0) {
                entry.abandon();
            }
            return;
        };
        match content.take_whole() {
            // An error means that the peer has reset the stream. Dropping the chunk writes the log row.
            Some(data) => drop(stream.send_data(Chunk::new(data, entry).watched(&self.activity), true)),
            None => {
                tokio::spawn(async move {
                    if self.stream(&mut stream, content, body_bytes, entry).await.is_err() {
                        stream.send_reset(Reason::INTERNAL_ERROR);
                    }
                });
            }
        }
    }

    async fn stream(
        &self,
        stream: &mut SendStream<Chunk>,
        mut content: Content,
        mut left: u64,
        entry: Option<Arc<Entry>>,
    ) -> anyhow::Result<()> {
        let queued = Arc::new(Queued::default());
        while left > 0 {
            tokio::time::timeout(self.server.config.idle_timeout, queued.room(MOST_QUEUED_BYTES)).await?;
            let data: Bytes = content.next().await?.context("the body ended early")?;
            left = left.saturating_sub(data.len() as u64);
            let chunk = Chunk::new(data, entry.clone()).counted(&queued).watched(&self.activity);
            stream.send_data(chunk, left == 0)?;
        }
        Ok(())
    }
}

/// Reads a body to its end; returns its length, `None` where it broke off.
async fn drain(mut body: RecvStream, activity: Arc<Activity>) -> Option<u64> {
    let mut bytes = 0;
    while let Some(data) = body.data().await {
        activity.note_message();
        let length = data.ok()?.len();
        bytes += length as u64;
        // An error means that the stream is gone, which the next read reports.
        let _ = body.flow_control().release_capacity(length);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::Variant;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::{mpsc, watch};

    use super::*;
    use crate::Config;
    use crate::activity::ActivityStream;

    /// The preface, SETTINGS with a stream window of this many bytes, and GET http://a/bytes/100000.
    fn request(window: u32) -> Vec<u8> {
        let mut bytes =
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04".to_vec();
        bytes.extend(window.to_be_bytes());
        bytes.extend(b"\x00\x00\x14\x01\x05\x00\x00\x00\x01\x82\x86\x41\x01a\x04\x0d/bytes/100000");
        bytes
    }

    /// Sends a PING every 10 s until the origin ends the connection; `credit` opens the window each time.
    async fn lifetime(window: u32, credit: u32) -> (Duration, String) {
        let server = Arc::new(Server::new(Config::loopback(&[Variant::H2c]), None).unwrap());
        let (_close, closing) = watch::channel(false);
        let (alive, _ended) = mpsc::channel(1);
        let link = Link::listener(&server, Variant::H2c, &closing, &alive);
        let (mut client, origin) = tokio::io::duplex(1 << 20);
        let activity = Activity::new();
        let stream = ActivityStream::new(origin, Arc::clone(&activity));
        let began = tokio::time::Instant::now();
        let serving = tokio::spawn(async move { connection(stream, link, activity).await });
        client.write_all(&request(window)).await.unwrap();
        let mut buffer = vec![0; 1 << 16];
        for _ in 0..60 {
            tokio::time::sleep(Duration::from_secs(10)).await;
            let mut frames = b"\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678".to_vec();
            if credit > 0 {
                frames.extend(b"\x00\x00\x04\x08\x00\x00\x00\x00\x01");
                frames.extend(credit.to_be_bytes());
            }
            if client.write_all(&frames).await.is_err() || serving.is_finished() {
                break;
            }
            let read = tokio::time::timeout(Duration::from_millis(1), client.read(&mut buffer)).await;
            assert!(read.is_ok(), "the PING has an answer");
        }
        serving.abort();
        let ended = serving.await.map_or_else(|_| "lives on".to_owned(), |ended| format!("{ended:?}"));
        (began.elapsed(), ended)
    }

    #[test]
    fn pings_do_not_keep_a_connection_without_a_window() {
        let builder =
            || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let (lived, why) = builder().unwrap().block_on(lifetime(0, 0));
        assert!(lived <= Duration::from_secs(160) && why.contains("no content"), "{lived:?}: {why}");
        let (lived, why) = builder().unwrap().block_on(lifetime(0, 100));
        assert!(lived >= Duration::from_secs(600) && why == "lives on", "a slow reader: {lived:?}: {why}");
    }
}
