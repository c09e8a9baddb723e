//! A connection's reads and writes, observed below TLS and HTTP: when a request began, and how long nothing
//! moved.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// No request has begun.
const NONE: u64 = 0;
/// A request is being served.
const SERVING: u64 = u64::MAX;

/// The times of one connection, in nanoseconds since it began.
pub(crate) struct Activity {
    began: Instant,
    /// When the first byte of the request being read arrived; `NONE`; or `SERVING`.
    first_read_ns: AtomicU64,
    last_read_ns: AtomicU64,
    /// How many reads and writes have transferred bytes.
    transfers: AtomicU64,
    /// How often a request began or content was transferred, where requests share the connection.
    messages: AtomicU64,
}

/// A stream that records its activity.
pub(crate) struct ActivityStream<S> {
    stream: S,
    activity: Arc<Activity>,
}

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Activity {
            began: Instant::now(),
            first_read_ns: AtomicU64::new(NONE),
            last_read_ns: AtomicU64::new(NONE),
            transfers: AtomicU64::new(0),
            messages: AtomicU64::new(0),
        })
    }

    /// The head of a request is complete; returns when its first byte arrived.
    pub(crate) fn begin_request(&self) -> Instant {
        match self.first_read_ns.swap(SERVING, Ordering::Relaxed) {
            // A pipelined request arrived together with its predecessor.
            NONE | SERVING => self.last_read(),
            first => self.began + Duration::from_nanos(first),
        }
    }

    /// The next byte read belongs to another request.
    pub(crate) fn end_request(&self) {
        self.first_read_ns.store(NONE, Ordering::Relaxed);
    }

    /// When the last bytes arrived.
    pub(crate) fn last_read(&self) -> Instant {
        self.began + Duration::from_nanos(self.last_read_ns.load(Ordering::Relaxed))
    }

    /// A request began, or content was transferred.
    pub(crate) fn note_message(&self) {
        self.messages.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the reason once the connection should be closed: for `idle` no request has begun and no
    /// content has been transferred. Other frames, such as PING, do not count: they keep no answer moving.
    pub(crate) async fn stalled(&self, idle: Duration) -> &'static str {
        let tick = idle / 4;
        let mut messages = self.messages.load(Ordering::Relaxed);
        let mut still = Duration::ZERO;
        while still < idle {
            tokio::time::sleep(tick).await;
            let before = std::mem::replace(&mut messages, self.messages.load(Ordering::Relaxed));
            still = if messages == before { still + tick } else { Duration::ZERO };
        }
        "no request began and no content was transferred for too long"
    }

    /// Returns the reason once the connection should be closed: nothing has moved for `idle`, or the head of
    /// an HTTP/1.1 request has been incomplete for longer than `head`.
    pub(crate) async fn expired(&self, head: Duration, idle: Duration) -> &'static str {
        let tick = head.min(idle) / 4;
        let mut transfers = self.transfers.load(Ordering::Relaxed);
        let mut still = Duration::ZERO;
        loop {
            tokio::time::sleep(tick).await;
            let first = self.first_read_ns.load(Ordering::Relaxed);
            if first != NONE && first != SERVING && self.now_ns() - first.min(self.now_ns()) > nanos(head) {
                return "the head of a request was not complete in time";
            }
            let before = std::mem::replace(&mut transfers, self.transfers.load(Ordering::Relaxed));
            still = if transfers == before { still + tick } else { Duration::ZERO };
            if still >= idle {
                return "the connection was idle for too long";
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
        self.note_transfer();
    }

    fn note_transfer(&self) {
        // One task drives the connection, so there is no other writer.
        self.transfers.store(self.transfers.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

impl<S> ActivityStream<S> {
    pub(crate) fn new(stream: S, activity: Arc<Activity>) -> Self {
        ActivityStream { stream, activity }
    }

    fn wrote(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(result, Poll::Ready(Ok(_))) {
            self.activity.note_transfer();
        }
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ActivityStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.activity.note_read();
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ActivityStream<S> {
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

    fn expired(activity: &Activity, head_ms: u64, idle_ms: u64) -> &'static str {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(activity.expired(Duration::from_millis(head_ms), Duration::from_millis(idle_ms)))
    }

    #[test]
    fn idle_connections_expire() {
        assert_eq!(expired(&Activity::new(), 10_000, 20), "the connection was idle for too long");
    }

    #[test]
    fn a_connection_without_messages_stalls_whatever_else_it_transfers() {
        let activity = Activity::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let stalled = activity.stalled(Duration::from_secs(120));
            let pings = async {
                for _ in 0..10 {
                    tokio::time::sleep(Duration::from_secs(20)).await;
                    activity.note_read();
                    if activity.transfers.load(Ordering::Relaxed) == 2 {
                        activity.note_message();
                    }
                }
                panic!("lives on");
            };
            let began = tokio::time::Instant::now();
            tokio::select! {
                why = stalled => assert!(why.contains("no content")),
                () = pings => {}
            }
            assert!(began.elapsed() >= Duration::from_secs(160), "{:?}", began.elapsed());
        });
    }

    #[test]
    fn a_head_that_never_ends_expires_but_not_a_request_being_served() {
        let activity = Activity::new();
        activity.note_read();
        assert!(expired(&activity, 8, 10_000).contains("head"));
        activity.begin_request();
        assert_eq!(expired(&activity, 8, 40), "the connection was idle for too long");
        activity.end_request();
        assert_eq!(expired(&activity, 8, 40), "the connection was idle for too long");
    }

    #[test]
    fn a_request_begins_with_its_first_byte() {
        let activity = Activity::new();
        activity.note_read();
        let first = activity.last_read();
        activity.note_read();
        assert_eq!(activity.begin_request(), first);
        activity.note_read();
        activity.end_request();
        assert_eq!(activity.begin_request(), activity.last_read());
    }
}
