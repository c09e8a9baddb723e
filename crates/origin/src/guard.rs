//! What happens on a connection, seen from below TLS and HTTP: when a request began, and whether anything moves.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// No request has begun.
const NONE: u64 = 0;
/// A request is being served.
const SERVING: u64 = u64::MAX;

/// The times of one connection, in nanoseconds since it began.
pub(crate) struct Watch {
    began: Instant,
    /// When the first byte of the request being read arrived; `NONE`; or `SERVING`.
    first_read_ns: AtomicU64,
    last_read_ns: AtomicU64,
    /// How many reads and writes have moved something.
    moves: AtomicU64,
}

/// A TCP stream that keeps its watch.
pub(crate) struct Watched {
    stream: TcpStream,
    watch: Arc<Watch>,
}

impl Watch {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Watch {
            began: Instant::now(),
            first_read_ns: AtomicU64::new(NONE),
            last_read_ns: AtomicU64::new(NONE),
            moves: AtomicU64::new(0),
        })
    }

    /// A request is known completely; when its first byte arrived.
    pub(crate) fn begin_request(&self) -> Instant {
        match self.first_read_ns.swap(SERVING, Ordering::Relaxed) {
            // A pipelined request arrived together with the one before it.
            NONE | SERVING => self.last_read(),
            first => self.began + Duration::from_nanos(first),
        }
    }

    /// The next byte read belongs to another request.
    pub(crate) fn end_request(&self) {
        self.first_read_ns.store(NONE, Ordering::Relaxed);
    }

    /// When bytes arrived last.
    pub(crate) fn last_read(&self) -> Instant {
        self.began + Duration::from_nanos(self.last_read_ns.load(Ordering::Relaxed))
    }

    /// Returns, with the reason, when the connection should be closed: nothing has moved for `idle`, or the head of
    /// an HTTP/1.1 request has been coming for longer than `head`.
    pub(crate) async fn expired(&self, head: Duration, idle: Duration) -> &'static str {
        let tick = head.min(idle) / 4;
        let mut moves = self.moves.load(Ordering::Relaxed);
        let mut still = Duration::ZERO;
        loop {
            tokio::time::sleep(tick).await;
            let first = self.first_read_ns.load(Ordering::Relaxed);
            if first != NONE && first != SERVING && self.now_ns() - first.min(self.now_ns()) > nanos(head) {
                return "the head of a request was not complete in time";
            }
            let before = std::mem::replace(&mut moves, self.moves.load(Ordering::Relaxed));
            still = if moves == before { still + tick } else { Duration::ZERO };
            if still >= idle {
                return "nothing moved";
            }
        }
    }

    fn now_ns(&self) -> u64 {
        nanos(self.began.elapsed())
    }

    fn note_read(&self) {
        let now = self.now_ns().max(1);
        self.last_read_ns.store(now, Ordering::Relaxed);
        if self.first_read_ns.load(Ordering::Relaxed) == NONE {
            self.first_read_ns.store(now, Ordering::Relaxed);
        }
        self.note_move();
    }

    fn note_move(&self) {
        // One task drives the connection: no other writer can come between.
        self.moves.store(self.moves.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

impl Watched {
    pub(crate) fn new(stream: TcpStream, watch: Arc<Watch>) -> Self {
        Watched { stream, watch }
    }

    fn wrote(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(result, Poll::Ready(Ok(_))) {
            self.watch.note_move();
        }
        result
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.watch.note_read();
        }
        result
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wrote(result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wrote(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expired(watch: &Watch, head_ms: u64, idle_ms: u64) -> &'static str {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(watch.expired(Duration::from_millis(head_ms), Duration::from_millis(idle_ms)))
    }

    #[test]
    fn what_stands_still_expires() {
        assert_eq!(expired(&Watch::new(), 10_000, 20), "nothing moved");
    }

    #[test]
    fn a_head_that_never_ends_expires_but_not_a_request_being_served() {
        let watch = Watch::new();
        watch.note_read();
        assert!(expired(&watch, 8, 10_000).contains("head"));
        watch.begin_request();
        assert_eq!(expired(&watch, 8, 40), "nothing moved");
        watch.end_request();
        assert_eq!(expired(&watch, 8, 40), "nothing moved");
    }

    #[test]
    fn a_request_begins_with_its_first_byte() {
        let watch = Watch::new();
        watch.note_read();
        let first = watch.last_read();
        watch.note_read();
        assert_eq!(watch.begin_request(), first);
        watch.note_read();
        watch.end_request();
        assert_eq!(watch.begin_request(), watch.last_read());
    }
}
