//! The origin's own unidirectional streams: control and QPACK. h3-quinn does not tell when a client stops
//! one, so these are quinn's.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};

use crate::body::Chunk;

type Pending<T> = Pin<Box<dyn Future<Output = T> + Send + Sync>>;

/// A stream that waits for the client's permission.
pub(super) struct Opening(Pending<Result<quinn::SendStream, quinn::ConnectionError>>);

/// An open stream.
pub(super) struct OwnStream {
    stream: quinn::SendStream,
    id: StreamId,
    unsent: Option<WriteBuf<Chunk>>,
}

/// Ready once the client has stopped the stream; `None` afterwards.
pub(super) struct Stopped(Option<Pending<bool>>);

impl Opening {
    pub(super) fn new(quic: &quinn::Connection) -> Opening {
        let quic = quic.clone();
        Opening(Box::pin(async move { quic.open_uni().await }))
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(OwnStream, Stopped), StreamErrorIncoming>> {
        let stream = ready!(self.0.as_mut().poll(cx)).map_err(connection_lost)?;
        let id = u64::from(stream.id()).try_into();
        let id = id.map_err(|_| StreamErrorIncoming::Unknown("the stream's ID is invalid".into()))?;
        let stopped = stream.stopped();
        // Without a code, the stream or the connection has ended.
        let stopped = Box::pin(async move { matches!(stopped.await, Ok(Some(_))) });
        Poll::Ready(Ok((OwnStream { stream, id, unsent: None }, Stopped(Some(stopped)))))
    }
}

impl Stopped {
    /// Whether the client stopped the stream.
    pub(super) fn poll_stopped(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(Poll::Ready(is_stopped)) = self.0.as_mut().map(|stopped| stopped.as_mut().poll(cx)) else {
            return false;
        };
        self.0 = None;
        is_stopped
    }
}

impl quic::SendStream<Chunk> for OwnStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(data) = self.unsent.as_mut().filter(|data| data.has_remaining()) {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, data.chunk()));
            data.advance(written.map_err(lost)?);
        }
        self.unsent = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Chunk>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.unsent = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Poll::Ready(self.stream.finish().map_err(|error| StreamErrorIncoming::Unknown(Box::new(error))))
    }

    fn reset(&mut self, code: u64) {
        // A stream that has ended needs no reset.
        let _ = self.stream.reset(quinn::VarInt::from_u64(code).unwrap_or(quinn::VarInt::MAX));
    }

    fn send_id(&self) -> StreamId {
        self.id
    }
}

fn lost(error: quinn::WriteError) -> StreamErrorIncoming {
    match error {
        quinn::WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated { error_code: code.into() },
        quinn::WriteError::ConnectionLost(error) => connection_lost(error),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

fn connection_lost(error: quinn::ConnectionError) -> StreamErrorIncoming {
    let connection_error = match error {
        quinn::ConnectionError::ApplicationClosed(close) => {
            ConnectionErrorIncoming::ApplicationClose { error_code: close.error_code.into() }
        }
        quinn::ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    };
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error }
}
