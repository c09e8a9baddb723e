//! HTTP/2 (RFC 9113), by the `h2` crate itself.
//!
//! Bodies are given to `h2` without asking it for capacity first: it splits them as the peer's windows open, so that a
//! small window costs no wake-up of ours. What is queued stays bounded: a body in memory is shared, not copied, and of
//! any other at most [`MOST_QUEUED_BYTES`] wait.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::access_log::Entry;
use crate::answer::Answer;
use crate::body::{Chunk, Content, Queued};
use crate::catalogue::{Catalogue, Plan};
use crate::guard::Watch;
use crate::server::{Context as Server, Link};
use crate::timer;

/// The longest header list of a request, in bytes as RFC 9113, section 10.5.1, counts them.
const LONGEST_HEAD_BYTES: u32 = 1 << 16;
/// Of a body that is not in memory so much waits inside the connection at most, in bytes.
const MOST_QUEUED_BYTES: usize = 1 << 18;

/// Serves one connection until either side ends it.
pub(crate) async fn connection<S>(stream: S, link: Link, watch: Arc<Watch>) -> anyhow::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let handshake = h2::server::Builder::new()
        .initial_window_size(link.server.stream_window_bytes)
        .initial_connection_window_size(link.server.connection_window_bytes)
        .max_concurrent_streams(link.server.concurrent_streams)
        .max_header_list_size(LONGEST_HEAD_BYTES)
        .handshake::<_, Chunk>(stream);
    let mut connection = tokio::time::timeout(link.server.head_timeout, handshake)
        .await
        .context("the connection preface was not complete in time")??;
    // Requests overlap from here on: no byte read begins the one request whose head must be complete in time.
    watch.begin_request();
    let expired = watch.expired(link.server.head_timeout, link.server.idle_timeout);
    tokio::pin!(expired);
    let closing = link.closing();
    tokio::pin!(closing);
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
            Some(Ok((request, respond))) => handle(&link, request, respond, watch.last_read()),
            Some(Err(error)) => return Err(error.into()),
            None => return Ok(()),
        }
    }
}

/// One request and the way to answer it.
struct Exchange {
    server: Arc<Server>,
    respond: SendResponse<Chunk>,
    entry: Option<Entry>,
}

fn handle(link: &Link, request: Request<RecvStream>, respond: SendResponse<Chunk>, started: Instant) {
    link.server.count_request();
    let entry = link.server.log.as_ref().map(|log| Entry::new(log, started, link.peer(), &request));
    let exchange = Exchange { server: Arc::clone(&link.server), respond, entry };
    match link.server.catalogue.plan(&request) {
        Plan::Now(answer) => exchange.answer(answer),
        Plan::After(wait, answer) => {
            tokio::spawn(async move {
                timer::wait(wait).await;
                exchange.answer(answer);
            });
        }
        Plan::File(file) => {
            tokio::spawn(async move { exchange.answer(file.answer().await) });
        }
        Plan::Echo => {
            tokio::spawn(async move { exchange.answer(drain(request.into_body()).await) });
        }
    }
}

impl Exchange {
    fn answer(mut self, answer: Answer) {
        let (head, body_bytes, mut content) = answer.into_parts(&self.server.catalogue.date);
        let entry = self.entry.take().map(|mut entry| {
            entry.set_answer(head.status().as_u16(), body_bytes);
            Arc::new(entry)
        });
        let sent = self.respond.send_response(head, body_bytes == 0);
        let (Ok(mut stream), false) = (sent, body_bytes == 0) else {
            if let (Some(entry), true) = (&entry, body_bytes > 0) {
                entry.abandon();
            }
            return;
        };
        match content.take_whole() {
            // An error here means that the peer has reset the stream; dropping the chunk tells the log.
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
        tokio::time::timeout(server.idle_timeout, queued.room(MOST_QUEUED_BYTES)).await?;
        let data: Bytes = content.next().await?.context("the body ended early")?;
        left = left.saturating_sub(data.len() as u64);
        stream.send_data(Chunk::counted(data, entry.clone(), &queued), left == 0)?;
    }
    Ok(())
}

async fn drain(mut body: RecvStream) -> Answer {
    let mut bytes = 0;
    while let Some(data) = body.data().await {
        let Ok(data) = data else { return Answer::status(StatusCode::BAD_REQUEST) };
        bytes += data.len() as u64;
        // An error means that the stream is gone; the next read says so.
        let _ = body.flow_control().release_capacity(data.len());
    }
    Catalogue::echoed(bytes)
}
