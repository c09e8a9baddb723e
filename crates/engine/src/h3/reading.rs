//! Input of a connection: responses, and the server's unidirectional streams.

use model::sample::{Failure, FailureKind};
use quinn_proto::{Dir, ReadError, Side, StreamId};

use super::error::{Code, Fault};
use super::peer_streams::Verdict;
use super::response::ResponseId;
use super::{Http3, State, failure_of};
use crate::contract::{Event, Sink};
use crate::quic;

impl Http3 {
    /// Reads a request stream.
    pub(super) fn read_response(&mut self, now: u64, id: StreamId, sink: &mut Sink<'_>) {
        let Http3 { quic: Some(quic), exchanges, fields, .. } = self else { return };
        let Some(exchange) = exchanges.get(id).filter(|exchange| !exchange.response.is_blocked()) else {
            return;
        };
        let at = ResponseId { stream: u64::from(id), request: exchange.request };
        let mut stream = quic.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let fault = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    if let Err(fault) = exchange.response.take(at, &chunk.bytes, fields, sink) {
                        break Some(fault);
                    }
                    if exchange.response.is_blocked() {
                        break None;
                    }
                }
                Ok(None) => match exchange.response.finish(exchange.request, sink) {
                    Ok(()) => {
                        drop(chunks);
                        if exchange.is_sending() {
                            // The response is complete, so the rest of the request's body is not needed. A
                            // closed stream needs no reset.
                            let code = quic::varint(Code::H3_NO_ERROR);
                            let _ = quic.connection.send_stream(id).reset(code);
                        }
                        exchanges.remove(id);
                        return;
                    }
                    Err(fault) => break Some(fault),
                },
                Err(ReadError::Blocked) => break None,
                Err(ReadError::Reset(code)) => {
                    drop(chunks);
                    return self.handle_reset(id, Code(code.into()), sink);
                }
            }
        };
        drop(chunks);
        if let Some(fault) = fault {
            self.handle_fault(now, id, fault, sink);
        }
    }

    fn handle_fault(&mut self, now: u64, id: StreamId, fault: Fault, sink: &mut Sink<'_>) {
        match fault {
            Fault::Connection(violation) => self.abort(now, &violation, sink),
            Fault::Stream(violation) => {
                self.give_up(id, violation.code);
                if let Some(request) = self.exchanges.remove(id) {
                    sink(Event::Failed { request, failure: failure_of(&violation) });
                }
            }
        }
    }

    /// Continues responses whose field sections waited for QPACK's dynamic table.
    fn resume_blocked(&mut self, now: u64, sink: &mut Sink<'_>) {
        while self.state != State::Over
            && let Some(stream) = self.fields.decoder().poll_unblocked()
        {
            let id = StreamId::new(Side::Client, Dir::Bi, stream >> 2);
            let Http3 { exchanges, fields, .. } = self;
            let Some(exchange) = exchanges.get(id) else { continue };
            let at = ResponseId { stream, request: exchange.request };
            match exchange.response.resume(at, fields, sink) {
                Ok(()) => self.read_response(now, id, sink),
                Err(fault) => self.handle_fault(now, id, fault, sink),
            }
        }
    }

    /// The server reset a response.
    fn handle_reset(&mut self, id: StreamId, code: Code, sink: &mut Sink<'_>) {
        self.give_up(id, Code::H3_REQUEST_CANCELLED);
        if let Some(request) = self.exchanges.remove(id) {
            let reason = format!("the server reset the stream with {code}");
            sink(Event::Failed { request, failure: Failure::new(FailureKind::Reset, reason) });
        }
    }

    /// Reads a unidirectional stream of the server.
    pub(super) fn read_peer_stream(&mut self, now: u64, id: StreamId, sink: &mut Sink<'_>) {
        let Http3 { quic: Some(quic), peer, fields, templates, .. } = self else { return };
        let number = u64::from(id);
        if !peer.contains(number) {
            return;
        }
        let mut stream = quic.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let result = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    match peer.take(number, &chunk.bytes, fields.decoder(), templates.encoder()) {
                        Ok(Verdict::Read) => {}
                        other => break other,
                    }
                }
                Ok(None) | Err(ReadError::Reset(_)) => break peer.ended(number).map(|()| Verdict::Read),
                Err(ReadError::Blocked) => break Ok(Verdict::Read),
            }
        };
        drop(chunks);
        match result {
            Ok(Verdict::Read) => {
                self.resume_blocked(now, sink);
                self.check_goaway(sink);
            }
            Ok(Verdict::Stop) => {
                // A stream that ended needs no STOP_SENDING.
                let _ = stream.stop(quic::varint(Code::H3_STREAM_CREATION_ERROR));
            }
            Err(violation) => self.abort(now, &violation, sink),
        }
    }

    /// Fails the requests that the server will not process (RFC 9114, section 5.2).
    fn check_goaway(&mut self, sink: &mut Sink<'_>) {
        let Some(first_refused) = self.peer.goaway() else { return };
        if self.state == State::Open {
            self.state = State::Draining;
            self.stock.clear();
        }
        while let Some((id, request)) = self.exchanges.last_from(first_refused) {
            self.give_up(id, Code::H3_REQUEST_CANCELLED);
            self.exchanges.remove(id);
            let reason = "the server sent GOAWAY before it accepted the request, which may be sent again";
            sink(Event::Failed { request, failure: Failure::new(FailureKind::Closed, reason) });
        }
    }
}
