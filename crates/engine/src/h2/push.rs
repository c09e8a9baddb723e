//! Server push (RFC 9113, sections 6.6 and 8.4): promises are decoded, pushed responses are counted and
//! discarded.

use bytes::Bytes;

use super::Http2;
use super::error::{ConnectionError, Result, StreamError};
use super::flow::LARGEST_WINDOW;
use super::frame::{ErrorCode, Frame};
use super::hpack::Field;
use super::response::split_padded;
use super::stream::{Section, Stream};
use crate::contract::{Event, Pushed, Sink};
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
    /// Its `request` is the one whose response promised it.
    stream: Stream,
    status: Option<u16>,
    body_bytes: u64,
}

impl PushedStream {
    fn report(&self, is_whole: bool) -> Event<'static> {
        Event::Pushed(Pushed {
            request: self.stream.request,
            status: self.status,
            body_bytes: self.body_bytes,
            is_whole,
            is_refused: false,
        })
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

    /// Takes a piece of a body.
    pub(super) fn take_body(&mut self, id: u32, bytes: usize) {
        if let Some(pushed) = self.streams.iter_mut().find(|pushed| pushed.stream.id == id) {
            pushed.body_bytes += bytes as u64;
        }
    }

    /// A stream is over; what was received is reported.
    pub(super) fn finish(&mut self, id: u32, is_whole: bool, sink: &mut Sink<'_>) {
        if let Some(at) = self.streams.iter().position(|pushed| pushed.stream.id == id) {
            sink(self.streams.swap_remove(at).report(is_whole));
        }
    }

    /// The connection is over.
    pub(super) fn finish_all(&mut self, sink: &mut Sink<'_>) {
        self.streams.drain(..).for_each(|pushed| sink(pushed.report(false)));
    }
}

/// A promised request during decoding.
#[derive(Debug, Default)]
struct Promise {
    is_head: bool,
    is_safe: bool,
    has_authority: bool,
    is_malformed: bool,
    list_bytes: usize,
}

impl Promise {
    fn add(&mut self, field: &Field<'_>) {
        self.list_bytes += field.name.len() + field.value.len() + 32;
        match field.name {
            b":method" => {
                self.is_head = field.value == b"HEAD";
                self.is_safe = self.is_head || field.value == b"GET";
            }
            b":authority" => self.has_authority = !field.value.is_empty(),
            b":scheme" | b":path" => {}
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
        let mut promise = Promise::default();
        self.decoder
            .decode(block, |field| promise.add(&field))
            .map_err(|error| ConnectionError::new(ErrorCode::COMPRESSION_ERROR, error.to_string()))?;
        let request = self.streams.get_mut(parent).map(|stream| stream.request);
        if request.is_none() {
            self.check_forgotten(parent, "PUSH_PROMISE")?;
        }
        let is_malformed = promise.is_malformed || !promise.is_safe || !promise.has_authority;
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
        self.pushes.streams.push(PushedStream {
            stream: Stream::new(promised, request, promise.is_head, 0, Bytes::new()),
            status: None,
            body_bytes: 0,
        });
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
            Ok(Section::Head(head)) => pushed.status = Some(head.status),
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
            Some(Ok(())) => self.pushes.finish(id, true, sink),
            None => {}
        }
        Ok(())
    }

    /// Ends one pushed stream because of `error`.
    pub(super) fn fail_push(&mut self, id: u32, error: &StreamError, sink: &mut Sink<'_>) -> Result {
        self.pushes.finish(id, false, sink);
        self.refuse_push(id, error.code)
    }
}
