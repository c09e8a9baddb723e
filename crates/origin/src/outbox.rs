//! Joins writes that are ready together. HTTP/2 has a frame or two for each response, and each write of them
//! would be a TCP segment: twenty short responses would exceed an initial window of ten packets.

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many bytes wait for others at most.
const MOST_WAITING_BYTES: usize = 1 << 16;
/// How many bytes of memory an idle connection keeps for them.
const KEPT_BYTES: usize = 1 << 12;

/// A stream whose writes wait until its owner has nothing more to write; its clones are the same stream.
pub(crate) struct Outbox<S>(Arc<Mutex<State<S>>>);

struct State<S> {
    stream: S,
    waiting: Vec<u8>,
    /// How many bytes of `waiting` are sent.
    sent: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Outbox<S> {
    pub(crate) fn new(stream: S) -> Self {
        Outbox(Arc::new(Mutex::new(State { stream, waiting: Vec::new(), sent: 0 })))
    }

    /// Runs the work that writes to the stream. What it wrote is sent whenever it waits.
    pub(crate) async fn run<T>(&self, work: impl Future<Output = T>) -> io::Result<T> {
        let mut work = pin!(work);
        std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Ok(result)),
            Poll::Pending => match self.state().poll_send(cx) {
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) | Poll::Pending => Poll::Pending,
            },
        })
        .await
    }

    fn state(&self) -> MutexGuard<'_, State<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Clone for Outbox<S> {
    fn clone(&self) -> Self {
        Outbox(Arc::clone(&self.0))
    }
}

impl<S: AsyncWrite + Unpin> State<S> {
    /// Ready when nothing waits any more.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.waiting.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while self.sent < self.waiting.len() {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, &self.waiting[self.sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                length => self.sent += length,
            }
        }
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.sent = 0;
        self.waiting.clear();
        self.waiting.shrink_to(KEPT_BYTES);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Outbox<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.state().stream).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Outbox<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.state();
        let length = bufs.iter().map(|buf| buf.len()).sum::<usize>();
        if state.waiting.len() + length > MOST_WAITING_BYTES {
            ready!(state.poll_send(cx))?;
        }
        if length > MOST_WAITING_BYTES {
            return Pin::new(&mut state.stream).poll_write_vectored(cx, bufs);
        }
        for buf in bufs {
            state.waiting.extend_from_slice(buf);
        }
        Poll::Ready(Ok(length))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: [`Outbox::run`] sends.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state();
        ready!(state.poll_send(cx))?;
        Pin::new(&mut state.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A stream that counts writes.
    struct Counting(tokio::io::DuplexStream, Arc<Mutex<Vec<usize>>>);

    impl AsyncRead for Counting {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(cx, buf)
        }
    }

    impl AsyncWrite for Counting {
        fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            let written = Pin::new(&mut self.0).poll_write(cx, buf);
            if let Poll::Ready(Ok(length)) = &written {
                self.1.lock().unwrap().push(*length);
            }
            written
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(cx)
        }
    }

    /// The bytes that arrive and the lengths of the writes, where the other side takes `room` bytes at once.
    fn sent(writes: &[usize], room: usize) -> (Vec<u8>, Vec<usize>) {
        let (mut client, server) = tokio::io::duplex(room);
        let lengths = Arc::new(Mutex::new(Vec::new()));
        let outbox = Outbox::new(Counting(server, Arc::clone(&lengths)));
        let mut stream = outbox.clone();
        let work = async move {
            for (index, length) in writes.iter().enumerate() {
                stream.write_all(&vec![u8::try_from(index).unwrap(); *length]).await.unwrap();
                stream.flush().await.unwrap();
            }
            // It waits for the client, which gets everything meanwhile.
            assert_eq!(stream.read_u8().await.unwrap(), 7);
            stream.shutdown().await.unwrap();
        };
        let total = writes.iter().sum();
        let reading = async {
            let mut received = vec![0; total];
            client.read_exact(&mut received).await.unwrap();
            client.write_u8(7).await.unwrap();
            received
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (ran, received) = runtime.block_on(async { tokio::join!(outbox.run(work), reading) });
        ran.unwrap();
        let lengths = lengths.lock().unwrap().clone();
        (received, lengths)
    }

    #[test]
    fn writes_that_are_ready_together_leave_together() {
        let (received, lengths) = sent(&[1_000; 20], 1 << 20);
        assert_eq!(lengths, [20_000]);
        assert!(received.chunks(1_000).zip(0_u8..).all(|(piece, index)| piece == vec![index; 1_000]));
    }

    #[test]
    fn all_bytes_arrive_in_order_whatever_the_other_side_takes() {
        for room in [1, 999, 70_000] {
            let writes = [5, 70_000, 1, 40_000, 40_000, 65_536, 3];
            let (received, lengths) = sent(&writes, room);
            let expected: Vec<u8> =
                writes.iter().zip(0..).flat_map(|(length, byte)| vec![byte; *length]).collect();
            assert!(received == expected, "room {room}");
            assert_eq!(lengths.iter().sum::<usize>(), expected.len());
        }
    }
}
