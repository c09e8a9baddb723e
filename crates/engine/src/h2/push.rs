//! Server push (RFC 9113, sections 6.6 and 8.4): the driver decides for each promise whether the response is
//! taken, discarded or refused.

use bytes::Bytes;
use model::Outcome;
use model::sample::{Failure, FailureKind};

use super::Http2;
use super::error::{ConnectionError, Result, StreamError};
use super::flow::LARGEST_WINDOW;
use super::frame::{ErrorCode, Frame};
use super::hpack::Field;
use super::response::split_padded;
use super::stream::{Section, Stream};
use crate::contract::{Event, Fate, Promise, Pushed, RequestId, Sink};
use crate::field::{FieldSection, Meaning};

/// The pushed streams.
#[derive(Debug, Default)]
pub(super) struct Pushes {
    /// Open pushed streams; at most `Limits::pushes`.
    streams: Vec<PushedStream>,
    highest_promised: u32,
    /// Up to this stream, the peer may send frames on pushed streams that we refused.
    highest_reset: u32,
}

#[derive(Debug)]
struct PushedStream {
    /// Its `request` is the one whose response promised it, or the driver's if it is taken.
    stream: Stream,
    /// Whether the driver has taken it ([`Fate::Take`]).
    is_taken: bool,
    status: Option<u16>,
    body_bytes: u64,
}

impl PushedStream {
    fn report(&self, failure: Option<Failure>) -> Event<'static> {
        let request = self.stream.request;
        match failure {
            None if self.is_taken => Event::End { request },
            Some(failure) if self.is_taken => Event::Failed { request, failure },
            failure => {
                let (status, body_bytes, is_whole) = (self.status, self.body_bytes, failure.is_none());
                Event::Pushed(Pushed { request, status, body_bytes, is_whole, is_refused: false })
            }
        }
    }
}

impl Pushes {
    /// Finds a stream.
    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        self.streams.iter_mut().map(|pushed| &mut pushed.stream).find(|stream| stream.id == id)
    }

    /// Whether the server may send frames of `id`.
    pub(super) fn was_promised(&self, id: u32) -> bool {
        id != 0 && id.is_multiple_of(2) && id <= self.highest_promised
    }

    /// Whether frames of a closed stream may still arrive.
    pub(super) fn may_linger(&self, id: u32) -> bool {
        id <= self.highest_reset
    }

    /// Whether the driver waits for a pushed response.
    pub(super) fn has_taken(&self) -> bool {
        self.streams.iter().any(|pushed| pushed.is_taken)
    }

    /// Takes a piece of a body.
    pub(super) fn take_body(&mut self, id: u32, bytes: &[u8], sink: &mut Sink<'_>) {
        let Some(pushed) = self.streams.iter_mut().find(|pushed| pushed.stream.id == id) else { return };
        pushed.body_bytes += bytes.len() as u64;
        if pushed.is_taken && !bytes.is_empty() {
            sink(Event::Data { request: pushed.stream.request, bytes });
        }
    }

    /// A stream is over, complete without a failure; what was received is reported.
    pub(super) fn finish(&mut self, id: u32, failure: Option<Failure>, sink: &mut Sink<'_>) {
        if let Some(at) = self.streams.iter().position(|pushed| pushed.stream.id == id) {
            sink(self.streams.swap_remove(at).report(failure));
        }
    }

    /// The connection is over.
    pub(super) fn finish_all(&mut self, outcome: &Outcome, sink: &mut Sink<'_>) {
        let closed = || Failure::new(FailureKind::Closed, "the connection was closed");
        for pushed in self.streams.drain(..) {
            sink(pushed.report(Some(outcome.failure().cloned().unwrap_or_else(closed))));
        }
    }

    /// Forgets the stream of a response that the driver has taken and no longer needs; returns its
    /// identifier.
    pub(super) fn cancel(&mut self, request: RequestId) -> Option<u32> {
        let is_it = |pushed: &PushedStream| pushed.is_taken && pushed.stream.request == request;
        let at = self.streams.iter().position(is_it)?;
        let id = self.streams.swap_remove(at).stream.id;
        self.highest_reset = self.highest_reset.max(id);
        Some(id)
    }
}

/// A promised request during decoding.
#[derive(Debug, Default)]
struct Decoding {
    is_head: bool,
    is_safe: bool,
    scheme: Vec<u8>,
    authority: Vec<u8>,
    path: Vec<u8>,
    is_malformed: bool,
    list_bytes: usize,
}

impl Decoding {
    fn add(&mut self, field: &Field<'_>) {
        self.list_bytes += field.name.len() + field.value.len() + 32;
        match field.name {
            b":method" => {
                self.is_head = field.value == b"HEAD";
                self.is_safe = self.is_head || field.value == b"GET";
            }
            b":authority" => self.authority = field.value.to_vec(),
            b":scheme" => self.scheme = field.value.to_vec(),
            b":path" => self.path = field.value.to_vec(),
            _ => {
                // A promised request has no content (RFC 9113, section 8.4).
                self.is_malformed |= matches!(
                    field.meaning,
                    Meaning::Malformed(_) | Meaning::Status(_) | Meaning::ContentLength(1..)
                );
            }
        }
    }
}

impl Http2 {
    /// Whether the server knows that push is disabled.
    fn push_is_forbidden(&self) -> bool {
        self.limits.pushes == 0 && self.settings_acknowledged
    }

    pub(super) fn handle_push_promise(&mut self, frame: Frame<'_>, sink: &mut Sink<'_>) -> Result {
        let Frame { header, payload } = frame;
        if self.push_is_forbidden() {
            return Err(ConnectionError::protocol("PUSH_PROMISE although SETTINGS_ENABLE_PUSH is 0"));
        }
        if !self.streams.was_begun(header.stream) {
            let reason = format!("PUSH_PROMISE on idle stream {}", header.stream);
            return Err(ConnectionError::protocol(reason));
        }
        let (promised, fragment) = split_padded("PUSH_PROMISE", header, payload, 4)?;
        let promised = promised.iter().fold(0, |id, byte| id << 8 | u32::from(*byte)) & LARGEST_WINDOW;
        if !promised.is_multiple_of(2) || promised <= self.pushes.highest_promised {
            return Err(ConnectionError::protocol(format!(
                "PUSH_PROMISE of stream {promised}, expected an even one above {}",
                self.pushes.highest_promised
            )));
        }
        self.pushes.highest_promised = promised;
        self.count_idle()?;
        let wire = header.wire_bytes();
        self.begin_block(header, Some(promised), fragment, wire, sink)
    }

    /// Handles the complete header block of a promise. It is always decoded, because it may change the
    /// dynamic table.
    pub(super) fn handle_promise(
        &mut self,
        parent: u32,
        promised: u32,
        block: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result {
        let mut promise = Decoding::default();
        self.decoder
            .decode(block, |field| promise.add(&field))
            .map_err(|error| ConnectionError::new(ErrorCode::COMPRESSION_ERROR, error.to_string()))?;
        let request = self.streams.get_mut(parent).map(|stream| stream.request);
        if request.is_none() {
            self.check_forgotten(parent, "PUSH_PROMISE")?;
        }
        let is_malformed = promise.is_malformed || !promise.is_safe || promise.authority.is_empty();
        let is_full = self.pushes.streams.len() >= self.limits.pushes as usize
            || promise.list_bytes > self.limits.header_list_bytes as usize;
        let Some(request) = request.filter(|_| !is_malformed && !is_full) else {
            let code = match (is_malformed, request) {
                (true, _) => ErrorCode::PROTOCOL_ERROR,
                (false, None) => ErrorCode::CANCEL,
                (false, Some(_)) => ErrorCode::REFUSED_STREAM,
            };
            if let Some(request) = request {
                let refused =
                    Pushed { request, status: None, body_bytes: 0, is_whole: false, is_refused: true };
                sink(Event::Pushed(refused));
            }
            return self.refuse_push(promised, code);
        };
        let Decoding { ref scheme, ref authority, ref path, is_head, .. } = promise;
        let mut fate = Fate::default();
        // Nobody needs the head alone.
        if !is_head {
            sink(Event::Promised { promise: Promise { request, scheme, authority, path }, fate: &mut fate });
        }
        let (request, is_taken) = match fate {
            Fate::Discard => (request, false),
            Fate::Take(own) => (own, true),
            Fate::Cancel => return self.refuse_push(promised, ErrorCode::CANCEL),
            Fate::Refuse => return self.refuse_push(promised, ErrorCode::PROTOCOL_ERROR),
        };
        let stream = Stream::new(promised, request, is_head, 0, Bytes::new());
        self.pushes.streams.push(PushedStream { stream, is_taken, status: None, body_bytes: 0 });
        Ok(())
    }

    fn refuse_push(&mut self, id: u32, code: ErrorCode) -> Result {
        super::frame::write_reset(id, code, self.output.frames());
        self.pushes.highest_reset = self.pushes.highest_reset.max(id);
        self.count_reply(13)
    }

    /// Acts on a header block of a pushed response, which has been decoded.
    pub(super) fn handle_pushed_fields(
        &mut self,
        id: u32,
        end_stream: bool,
        fields: &FieldSection,
        wire: u32,
        sink: &mut Sink<'_>,
    ) -> Result {
        self.count_idle()?;
        let limit = self.limits.header_list_bytes as usize;
        let Some(pushed) = self.pushes.streams.iter_mut().find(|pushed| pushed.stream.id == id) else {
            return self.check_forgotten(id, "HEADERS");
        };
        match pushed.stream.take_fields(fields, end_stream, wire, limit) {
            Err(error) => return self.fail_push(id, &error, sink),
            Ok(Section::Head(head)) => {
                pushed.status = Some(head.status);
                if pushed.is_taken {
                    sink(Event::Head { request: pushed.stream.request, head });
                }
            }
            Ok(Section::Informational(_)) if pushed.stream.informational > self.limits.informational => {
                let error = StreamError::informational(self.limits.informational, "informational responses");
                return self.fail_push(id, &error, sink);
            }
            Ok(Section::Informational(_) | Section::Trailers) => {}
        }
        if end_stream { self.finish_push(id, sink) } else { Ok(()) }
    }

    /// A pushed response is complete or has failed.
    pub(super) fn finish_push(&mut self, id: u32, sink: &mut Sink<'_>) -> Result {
        match self.pushes.get_mut(id).map(|stream| stream.take_end()) {
            Some(Err(error)) => return self.fail_push(id, &error, sink),
            Some(Ok(())) => self.pushes.finish(id, None, sink),
            None => {}
        }
        Ok(())
    }

    /// Ends one pushed stream because of `error`.
    pub(super) fn fail_push(&mut self, id: u32, error: &StreamError, sink: &mut Sink<'_>) -> Result {
        self.pushes.finish(id, Some(error.failure()), sink);
        self.refuse_push(id, error.code)
    }
}
