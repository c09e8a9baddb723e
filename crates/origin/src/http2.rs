//! HTTP/2 (RFC 9113), by the `h2` crate itself.
//!
//! Bodies are passed to `h2` without waiting for capacity: `h2` splits them as the peer's windows open, so a
//! small window costs no wake-up here. The queue stays bounded: a body in memory is shared, not copied, and
//! any other body queues at most [`MOST_QUEUED_BYTES`].

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::access_log::Entry;
use crate::activity::Activity;
use crate::answer::Answer;
use crate::body::{Chunk, Content, Queued};
use crate::catalogue::Plan;
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
    let handshake = h2::server::Builder::new()
        .initial_window_size(config.stream_window_bytes)
        .initial_connection_window_size(config.connection_window_bytes)
        .max_concurrent_streams(config.concurrent_streams)
        .max_header_list_size(LONGEST_HEAD_BYTES)
        .handshake::<_, Chunk>(stream);
    let mut connection = tokio::time::timeout(config.head_timeout, handshake)
        .await
        .context("the connection preface was not complete in time")??;
    // Requests overlap from here on, so the time limit of a head no longer applies.
    activity.begin_request();
    let mut expired = pin!(activity.expired(config.head_timeout, config.idle_timeout));
    let mut closing = pin!(link.closing());
    let mut is_closing = false;
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = connection.accept() => accepted,
            why = &mut expired => anyhow::bail!(why),
            () = &mut closing, if !is_closing => {
                is_closing = true;
                connection.graceful_shutdown();
                continue;
            }
        };
        match accepted {
            Some(Ok((request, respond))) => handle(&link, request, respond, activity.last_read()),
            Some(Err(error)) => return Err(error.into()),
            None => return Ok(()),
        }
    }
}

/// One request and the handle to answer it.
struct Exchange {
    server: Arc<Server>,
    respond: SendResponse<Chunk>,
    entry: Option<Entry>,
}

fn handle(link: &Link, request: Request<RecvStream>, respond: SendResponse<Chunk>, started: Instant) {
    let entry = link.server.begin_request(link.peer(), &request, started);
    let exchange = Exchange { server: Arc::clone(&link.server), respond, entry };
    match link.server.catalogue.plan(&request) {
        Plan::Now(answer) => exchange.answer(answer),
        later => {
            tokio::spawn(async move { exchange.answer(later.answer(drain(request.into_body())).await) });
        }
    }
}

impl Exchange {
    fn answer(mut self, answer: Answer) {
        let Parts { head, body_bytes, mut content, entry } = self.server.split(answer, self.entry.take());
        let sent = self.respond.send_response(head, body_bytes == 0);
        let (Ok(mut stream), false) = (sent, body_bytes == 0) else {
            if let (Some(entry), true) = (&entry, body_bytes > 0) {
                entry.abandon();
            }
            return;
        };
        match content.take_whole() {
            // An error means that the peer has reset the stream. Dropping the chunk writes the log row.
            Some(data) => drop(stream.send_data(Chunk::new(data, entry), true)),
            None => {
                tokio::spawn(async move {
                    if push(&self.server, &mut stream, content, body_bytes, entry).await.is_err() {
                        stream.send_reset(Reason::INTERNAL_ERROR);
                    }
                });
            }
        }
    }
}

async fn push(
    server: &Server,
    stream: &mut h2::SendStream<Chunk>,
    mut content: Content,
    mut left: u64,
    entry: Option<Arc<Entry>>,
) -> anyhow::Result<()> {
    let queued = Arc::new(Queued::default());
    while left > 0 {
        tokio::time::timeout(server.config.idle_timeout, queued.room(MOST_QUEUED_BYTES)).await?;
        let data: Bytes = content.next().await?.context("the body ended early")?;
        left = left.saturating_sub(data.len() as u64);
        stream.send_data(Chunk::counted(data, entry.clone(), &queued), left == 0)?;
    }
    Ok(())
}

/// Reads a body to its end; returns its length, `None` where it broke off.
async fn drain(mut body: RecvStream) -> Option<u64> {
    let mut bytes = 0;
    while let Some(data) = body.data().await {
        let length = data.ok()?.len();
        bytes += length as u64;
        // An error means that the stream is gone, which the next read reports.
        let _ = body.flow_control().release_capacity(length);
    }
    Some(bytes)
}
