//! HTTP/1.1 (RFC 9112), by hyper.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http::header::HOST;
use http::{Request, Response, StatusCode, Version};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::access_log::Entry;
use crate::answer::Answer;
use crate::body::{Chunk, Content};
use crate::catalogue::{Catalogue, Plan};
use crate::guard::Watch;
use crate::server::{Context as Server, Link};
use crate::timer;

/// The longest head of a request, in bytes.
const LONGEST_HEAD_BYTES: usize = 1 << 16;

/// Serves one connection until either side ends it.
pub(crate) async fn connection<S>(stream: S, link: Link, watch: Arc<Watch>) -> anyhow::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let server = Arc::clone(&link.server);
    let serving = Arc::clone(&watch);
    let peer = link.peer();
    let service = service_fn(move |request: Request<Incoming>| {
        let server = Arc::clone(&server);
        let watch = Arc::clone(&serving);
        async move {
            let started = watch.begin_request();
            let entry = server.log.as_ref().map(|log| Entry::new(log, started, peer, &request));
            let response = respond(&server, request, entry).await;
            watch.end_request();
            Ok::<_, Infallible>(response)
        }
    });
    // The watch times heads: hyper's own timer would cost an allocation per request.
    let connection = http1::Builder::new()
        .auto_date_header(false)
        .header_read_timeout(None)
        .max_header_size(LONGEST_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let expired = watch.expired(link.server.head_timeout, link.server.idle_timeout);
    tokio::pin!(expired);
    let closing = link.closing();
    tokio::pin!(closing);
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

async fn respond(server: &Server, request: Request<Incoming>, entry: Option<Entry>) -> Response<AnswerBody> {
    server.count_request();
    let answer = if request.version() == Version::HTTP_11 && !request.headers().contains_key(HOST) {
        // RFC 9112, section 3.2
        Answer::status(StatusCode::BAD_REQUEST)
    } else {
        match server.catalogue.plan(&request) {
            Plan::Now(answer) => answer,
            Plan::After(wait, answer) => {
                timer::wait(wait).await;
                answer
            }
            Plan::File(file) => file.answer().await,
            Plan::Echo => drain(request.into_body()).await,
        }
    };
    let (head, body_bytes, content) = answer.into_parts(&server.catalogue.date);
    let entry = entry.map(|mut entry| {
        entry.set_answer(head.status().as_u16(), body_bytes);
        Arc::new(entry)
    });
    head.map(|()| AnswerBody { content, left: body_bytes, entry })
}

async fn drain(mut body: Incoming) -> Answer {
    let mut bytes = 0;
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        match frame {
            Ok(frame) => bytes += frame.data_ref().map_or(0, |data| data.remaining() as u64),
            Err(_) => return Answer::status(StatusCode::BAD_REQUEST),
        }
    }
    Catalogue::echoed(bytes)
}

/// A body as hyper asks for it.
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
        // The last chunk takes the entry with it: the row is written when that chunk has left.
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
