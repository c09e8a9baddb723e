//! HTTP/1.1 (RFC 9112), by hyper.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use model::Variant;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::access_log::Entry;
use crate::activity::Activity;
use crate::body::{Chunk, Content};
use crate::shared::{Link, Parts, Server};

/// The longest head of a request, in bytes.
const LONGEST_HEAD_BYTES: usize = 1 << 16;

/// Serves one connection until either side ends it.
pub(crate) async fn connection<S>(stream: S, link: Link, activity: Arc<Activity>) -> anyhow::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let server = Arc::clone(&link.server);
    let serving = Arc::clone(&activity);
    let peer = link.peer();
    let service = service_fn(move |request: Request<Incoming>| {
        let server = Arc::clone(&server);
        let activity = Arc::clone(&serving);
        async move {
            let started = activity.begin_request();
            let entry = server.begin_request(peer, &request, started);
            let response = respond(&server, peer.variant, request, entry).await;
            activity.end_request();
            Ok::<_, Infallible>(response)
        }
    });
    // `Activity` times the heads. hyper's timer would cost an allocation per request.
    let connection = http1::Builder::new()
        .auto_date_header(false)
        .header_read_timeout(None)
        .max_header_size(LONGEST_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let mut expired =
        pin!(activity.expired(link.server.config.head_timeout, link.server.config.idle_timeout));
    let mut closing = pin!(link.closing());
    let mut is_closing = false;
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => return Ok(ended?),
            why = &mut expired => anyhow::bail!(why),
            () = &mut closing, if !is_closing => {
                is_closing = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

async fn respond(
    server: &Server,
    variant: Variant,
    request: Request<Incoming>,
    entry: Option<Entry>,
) -> Response<AnswerBody> {
    let answer = server.catalogue.plan(&request).answer(drain(request.into_body())).await;
    let Parts { head, body_bytes, content, entry } = server.split(variant, answer, entry);
    head.map(|()| AnswerBody { content, left: body_bytes, entry })
}

/// Reads a body to its end; returns its length, `None` where it broke off.
async fn drain(mut body: Incoming) -> Option<u64> {
    let mut bytes = 0;
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        bytes += frame.ok()?.data_ref().map_or(0, |data| data.remaining() as u64);
    }
    Some(bytes)
}

/// An answer's body for hyper.
struct AnswerBody {
    content: Content,
    left: u64,
    entry: Option<Arc<Entry>>,
}

impl Body for AnswerBody {
    type Data = Chunk;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, io::Error>>> {
        let this = &mut *self;
        if this.left == 0 {
            this.entry = None;
            return Poll::Ready(None);
        }
        let Some(data) = ready!(this.content.poll_next(cx))? else { return Poll::Ready(None) };
        this.left = this.left.saturating_sub(data.len() as u64);
        // The last chunk owns the entry, so the row is written when that chunk has been sent.
        let entry = if this.left == 0 { this.entry.take() } else { this.entry.clone() };
        Poll::Ready(Some(Ok(Frame::data(Chunk::new(data, entry)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
