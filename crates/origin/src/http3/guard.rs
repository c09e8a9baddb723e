//! Checks what a client sends before h3 reads it.
//!
//! h3 0.0.8 buffers a frame of any announced length, ignores the QPACK streams, and accepts requests that RFC
//! 9114 calls malformed. This layer between quinn and h3 uses the engine's frame reader and QPACK decoder: h3
//! reads only complete field sections, DATA, and complete frames of the control stream.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use engine::h3::error::{Code, Fault, Violation};
use engine::h3::qpack::{Decoder, Encoder};
use engine::h3::stream_kind::StreamKind;
use h3::quic::{
    self, ConnectionErrorIncoming, RecvStream as _, SendStream as _, StreamErrorIncoming, StreamId, WriteBuf,
};

use super::control::Control;
use super::own_stream::{Opening, OwnStream, Stopped};
use super::request::Request;
use crate::activity::Activity;
use crate::body::Chunk;

/// A QUIC connection whose input is checked.
pub(super) struct Connection {
    quic: h3_quinn::Connection,
    shared: Arc<Shared>,
    /// Streams whose type is incomplete, and the QPACK streams.
    streams: Vec<(StreamKind, h3_quinn::RecvStream)>,
    opening: Option<Opening>,
    /// The origin's own streams, which the client must not stop.
    own: Vec<Stopped>,
    has_control: bool,
    decoder: Decoder,
    encoder: Encoder,
}

/// What the streams of a connection share.
pub(super) struct Shared {
    quic: quinn::Connection,
    violation: OnceLock<Violation>,
    activity: Arc<Activity>,
}

/// A request stream whose input is checked.
pub(super) struct BidiStream {
    stream: h3_quinn::BidiStream<Chunk>,
    request: Request,
    /// Checked input.
    ready: VecDeque<Bytes>,
    /// Whether h3-quinn waits for input; it cannot stop the stream meanwhile.
    is_reading: bool,
    shared: Arc<Shared>,
}

/// The client's control stream.
pub(super) struct ControlStream {
    stream: h3_quinn::RecvStream,
    control: Control,
    /// Checked input.
    ready: VecDeque<Bytes>,
    shared: Arc<Shared>,
}

impl Shared {
    /// Why the connection was closed, where the client violated the protocol.
    pub(super) fn violation(&self) -> Option<&Violation> {
        self.violation.get()
    }

    fn close(&self, violation: Violation) -> ConnectionErrorIncoming {
        let code = quinn::VarInt::from_u64(violation.code.0).unwrap_or(quinn::VarInt::MAX);
        self.quic.close(code, violation.reason.as_bytes());
        let error = Arc::new(violation.clone());
        // The first violation closed the connection.
        let _ = self.violation.set(violation);
        ConnectionErrorIncoming::Undefined(error)
    }
}

impl Connection {
    pub(super) fn new(quic: &quinn::Connection, activity: &Arc<Activity>) -> (Self, Arc<Shared>) {
        let shared = Arc::new(Shared {
            quic: quic.clone(),
            violation: OnceLock::new(),
            activity: Arc::clone(activity),
        });
        let connection = Connection {
            quic: h3_quinn::Connection::new(quic.clone()),
            shared: Arc::clone(&shared),
            streams: Vec::new(),
            opening: None,
            own: Vec::new(),
            has_control: false,
            decoder: Decoder::new(0, 0),
            encoder: Encoder::new(0, 0),
        };
        (connection, shared)
    }

    fn guard(&self, stream: h3_quinn::BidiStream<Chunk>) -> BidiStream {
        let shared = Arc::clone(&self.shared);
        BidiStream { stream, request: Request::default(), ready: VecDeque::new(), is_reading: false, shared }
    }

    /// Reads the unidirectional streams; ready with the control stream.
    fn poll_streams(&mut self, cx: &mut Context<'_>) -> Result<Poll<ControlStream>, ConnectionErrorIncoming> {
        let mut at = 0;
        while let Some((_, stream)) = self.streams.get_mut(at) {
            match stream.poll_data(cx) {
                Poll::Pending => at += 1,
                Poll::Ready(Ok(Some(chunk))) => {
                    let rest = self.take(at, chunk).map_err(|violation| self.shared.close(violation))?;
                    match self.streams[at].0 {
                        StreamKind::Control => return Ok(Poll::Ready(self.control_stream(at, &rest)?)),
                        StreamKind::Push | StreamKind::Unknown => {
                            let (_, mut stream) = self.streams.swap_remove(at);
                            stream.stop_sending(Code::H3_STREAM_CREATION_ERROR.0);
                        }
                        StreamKind::Incomplete { .. }
                        | StreamKind::QpackEncoder
                        | StreamKind::QpackDecoder => {}
                    }
                }
                Poll::Ready(Err(StreamErrorIncoming::ConnectionErrorIncoming { connection_error })) => {
                    return Err(connection_error);
                }
                Poll::Ready(Ok(None) | Err(_)) => {
                    let (kind, _) = self.streams.swap_remove(at);
                    if kind.is_critical() {
                        let reason = format!("the end of the {kind} stream");
                        return Err(self.close_critical(reason));
                    }
                }
            }
        }
        if self.own.iter_mut().any(|stream| stream.poll_stopped(cx)) {
            return Err(self.close_critical("STOP_SENDING for a control or QPACK stream".to_owned()));
        }
        Ok(Poll::Pending)
    }

    fn close_critical(&self, reason: String) -> ConnectionErrorIncoming {
        self.shared.close(Violation::new(Code::H3_CLOSED_CRITICAL_STREAM, reason))
    }

    /// Takes input of a unidirectional stream; returns what follows the type.
    fn take(&mut self, at: usize, chunk: Bytes) -> Result<Bytes, Violation> {
        let mut input = &chunk[..];
        if self.streams[at].0.read(&mut input) {
            self.check_new(self.streams[at].0)?;
        }
        let handled = match self.streams[at].0 {
            StreamKind::QpackEncoder => self
                .decoder
                .handle_instructions(input)
                .map_err(|error| Violation::new(Code::QPACK_ENCODER_STREAM_ERROR, error.to_string())),
            StreamKind::QpackDecoder => self
                .encoder
                .handle_feedback(input)
                .map_err(|error| Violation::new(Code::QPACK_DECODER_STREAM_ERROR, error.to_string())),
            StreamKind::Incomplete { .. } | StreamKind::Control | StreamKind::Push | StreamKind::Unknown => {
                Ok(())
            }
        };
        handled.map(|()| chunk.slice_ref(input))
    }

    /// Checks the type of a stream that has just become known.
    fn check_new(&mut self, kind: StreamKind) -> Result<(), Violation> {
        let is_second = match kind {
            // The control stream is not kept with the others.
            StreamKind::Control => std::mem::replace(&mut self.has_control, true),
            StreamKind::Push => {
                let reason = "a push stream, which only servers open";
                return Err(Violation::new(Code::H3_STREAM_CREATION_ERROR, reason));
            }
            _ if kind.is_critical() => self.streams.iter().filter(|(open, _)| *open == kind).count() > 1,
            _ => false,
        };
        if is_second {
            let reason = format!("a second {kind} stream");
            return Err(Violation::new(Code::H3_STREAM_CREATION_ERROR, reason));
        }
        Ok(())
    }

    fn control_stream(&mut self, at: usize, input: &[u8]) -> Result<ControlStream, ConnectionErrorIncoming> {
        let (_, stream) = self.streams.swap_remove(at);
        // h3 reads the type too.
        let ready = VecDeque::from([Bytes::from_static(&[0])]);
        let shared = Arc::clone(&self.shared);
        let mut control = ControlStream { stream, control: Control::default(), ready, shared };
        control.take(input)?;
        Ok(control)
    }
}

impl quic::Connection<Chunk> for Connection {
    type RecvStream = ControlStream;
    // h3 opens requests with it, which a server never does.
    type OpenStreams = Connection;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ControlStream, ConnectionErrorIncoming>> {
        while let Poll::Ready(stream) = quic::Connection::<Chunk>::poll_accept_recv(&mut self.quic, cx)? {
            self.streams.push((StreamKind::NEW, stream));
        }
        self.poll_streams(cx)?.map(Ok)
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream, ConnectionErrorIncoming>> {
        let stream = ready!(quic::Connection::<Chunk>::poll_accept_bidi(&mut self.quic, cx))?;
        Poll::Ready(Ok(self.guard(stream)))
    }

    fn opener(&self) -> Connection {
        Connection::new(&self.shared.quic, &self.shared.activity).0
    }
}

impl quic::OpenStreams<Chunk> for Connection {
    type BidiStream = BidiStream;
    type SendStream = OwnStream;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<BidiStream, StreamErrorIncoming>> {
        let stream = ready!(self.quic.poll_open_bidi(cx))?;
        Poll::Ready(Ok(self.guard(stream)))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<OwnStream, StreamErrorIncoming>> {
        let opening = self.opening.get_or_insert_with(|| Opening::new(&self.shared.quic));
        let opened = ready!(opening.poll(cx));
        self.opening = None;
        let (stream, stopped) = opened?;
        self.own.push(stopped);
        Poll::Ready(Ok(stream))
    }

    fn close(&mut self, code: h3::error::Code, reason: &[u8]) {
        quic::OpenStreams::<Chunk>::close(&mut self.quic, code, reason);
    }
}

impl BidiStream {
    /// Ends the stream or the connection.
    fn fail(&mut self, fault: Fault) -> StreamErrorIncoming {
        match fault {
            Fault::Connection(violation) => StreamErrorIncoming::ConnectionErrorIncoming {
                connection_error: self.shared.close(violation),
            },
            Fault::Stream(violation) => {
                let error_code = violation.code.0;
                self.stream.reset(error_code);
                self.stream.stop_sending(error_code);
                StreamErrorIncoming::StreamTerminated { error_code }
            }
        }
    }
}

impl quic::RecvStream for BidiStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Poll::Ready(Ok(Some(bytes)));
            }
            let read = self.stream.poll_data(cx);
            self.is_reading = read.is_pending();
            let checked = match ready!(read)? {
                Some(chunk) => {
                    self.shared.activity.note_message();
                    self.request.take(&chunk, &mut self.ready)
                }
                None => match self.request.finish() {
                    Ok(()) => return Poll::Ready(Ok(None)),
                    Err(fault) => Err(fault),
                },
            };
            if let Err(fault) = checked {
                return Poll::Ready(Err(self.fail(fault)));
            }
        }
    }

    fn stop_sending(&mut self, error_code: u64) {
        // Dropping the stream stops it in any case.
        if !self.is_reading {
            self.stream.stop_sending(error_code);
        }
    }

    fn recv_id(&self) -> StreamId {
        // Both directions have one id. h3-quinn cannot name the receiving one while it waits for input.
        self.stream.send_id()
    }
}

impl quic::SendStream<Chunk> for BidiStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.stream.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Chunk>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.stream.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.stream.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.stream.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.stream.send_id()
    }
}

impl ControlStream {
    fn take(&mut self, input: &[u8]) -> Result<(), ConnectionErrorIncoming> {
        self.control.take(input, &mut self.ready).map_err(|violation| self.shared.close(violation))
    }
}

impl quic::RecvStream for ControlStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Poll::Ready(Ok(Some(bytes)));
            }
            // h3 closes the connection where the stream ends or is reset.
            let Some(chunk) = ready!(self.stream.poll_data(cx))? else { return Poll::Ready(Ok(None)) };
            if let Err(connection_error) = self.take(&chunk) {
                return Poll::Ready(Err(StreamErrorIncoming::ConnectionErrorIncoming { connection_error }));
            }
        }
    }

    fn stop_sending(&mut self, _: u64) {
        // A control stream must not be stopped (RFC 9114, section 6.2.1).
    }

    fn recv_id(&self) -> StreamId {
        self.stream.recv_id()
    }
}
