//! Streams (RFC 9113, section 5.1) and their table.

use bytes::Bytes;
use model::HttpVersion;
use model::sample::FailureKind;

use super::error::StreamError;

use super::flow::{ReceiveWindow, SendWindow};
use super::frame::ErrorCode;
use crate::contract::{Head, HeaderBytes, RequestId};
use crate::field::FieldSection;

/// One request and its response.
#[derive(Debug)]
pub struct Stream {
    /// The stream's identifier.
    pub id: u32,
    /// The driver's number of the request.
    pub request: RequestId,
    /// The phase of the response.
    pub phase: Phase,
    /// Whether the request was HEAD.
    pub is_head: bool,
    /// Informational responses so far.
    pub informational: u32,
    /// The rest of the body, if its length is known.
    pub body_left: Option<u64>,
    /// Our receive window.
    pub received: ReceiveWindow,
    /// The peer's window.
    pub send_window: SendWindow,
    /// The unsent rest of the request's body.
    pub body: Bytes,
}

/// The phase of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before the final head.
    Head,
    /// After the final head.
    Body,
    /// The response is complete, but the request's body is not.
    Answered,
}

/// A field section of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// A 1xx response.
    Informational(u16),
    /// The final head.
    Head(Head),
    /// Trailers.
    Trailers,
}

impl Stream {
    /// A stream whose response is expected.
    pub fn new(id: u32, request: RequestId, is_head: bool, send_window: u32, body: Bytes) -> Stream {
        Stream {
            id,
            request,
            phase: Phase::Head,
            is_head,
            informational: 0,
            body_left: None,
            received: ReceiveWindow::default(),
            send_window: SendWindow::new(send_window),
            body,
        }
    }

    /// Takes a complete field section.
    ///
    /// # Errors
    /// The response is malformed (RFC 9113, section 8.1.1).
    pub fn take_fields(
        &mut self,
        fields: &FieldSection,
        end_stream: bool,
        wire: u32,
        limit: usize,
    ) -> Result<Section, StreamError> {
        if let Some(malformed) = &fields.malformed {
            return Err(StreamError::malformed(format!("malformed response: {malformed}")));
        }
        if fields.list_bytes() > limit {
            return Err(StreamError {
                code: ErrorCode::CANCEL,
                kind: FailureKind::Limit,
                reason: format!("field section of {} bytes, limit {limit}", fields.list_bytes()),
            });
        }
        if self.phase != Phase::Head {
            return match (fields.status, end_stream) {
                (None, true) => Ok(Section::Trailers),
                (None, false) => Err(malformed("trailers without END_STREAM")),
                (Some(_), _) => Err(malformed(":status in trailers")),
            };
        }
        let status = fields.status.ok_or_else(|| malformed("no :status"))?;
        if status == 101 {
            return Err(malformed("status 101 does not exist in HTTP/2"));
        }
        if status < 200 {
            self.informational += 1;
            return if end_stream {
                Err(malformed("informational response with END_STREAM"))
            } else {
                Ok(Section::Informational(status))
            };
        }
        self.phase = Phase::Body;
        let has_body = !self.is_head && status != 204 && status != 304;
        self.body_left = if has_body { fields.content_length } else { Some(0) };
        Ok(Section::Head(Head {
            status,
            version: HttpVersion::Http2,
            content_length: fields.content_length,
            closes: None,
            content: fields.content,
            bytes: HeaderBytes { raw: u32::try_from(fields.raw_bytes).unwrap_or(u32::MAX), wire },
        }))
    }

    /// Takes a piece of the body, `length` bytes without padding.
    ///
    /// # Errors
    /// DATA is not allowed here, or exceeds the announced length.
    pub fn take_data(&mut self, length: u64) -> Result<(), StreamError> {
        if self.phase == Phase::Head {
            return Err(malformed("DATA before the response's HEADERS"));
        }
        if let Some(left) = &mut self.body_left {
            match left.checked_sub(length) {
                Some(less) => *left = less,
                None => {
                    let reason = "DATA exceeds content-length, or a response that has no content";
                    return Err(StreamError::wrong_length(reason));
                }
            }
        }
        Ok(())
    }

    /// Takes the end of the response.
    ///
    /// # Errors
    /// The response is incomplete.
    pub fn take_end(&self) -> Result<(), StreamError> {
        match (self.phase, self.body_left) {
            (Phase::Head, _) => Err(malformed("the stream ends before the response's HEADERS")),
            (_, Some(left)) if left > 0 => Err(StreamError::wrong_length(format!(
                "the body ends {left} bytes short of its content-length"
            ))),
            _ => Ok(()),
        }
    }
}

fn malformed(reason: &str) -> StreamError {
    StreamError::malformed(reason)
}

/// The open streams: a table that is indexed by the stream's identifier.
///
/// Identifiers increase by 2, so consecutive streams have consecutive slots. If a much older stream still
/// uses the slot of the next identifier, that identifier is skipped, as RFC 9113, section 5.1.1 permits.
#[derive(Debug)]
pub struct Streams {
    slots: Vec<Option<Stream>>,
    open: usize,
    next_id: u32,
}

/// The last identifier that a client may use.
const LAST_ID: u32 = 0x7fff_ffff;

impl Default for Streams {
    /// An empty table.
    fn default() -> Self {
        Streams { slots: Vec::new(), open: 0, next_id: 1 }
    }
}

impl Streams {
    /// The number of open streams.
    pub fn open(&self) -> usize {
        self.open
    }

    /// The number of unused identifiers.
    pub fn identifiers_left(&self) -> usize {
        ((LAST_ID + 2 - self.next_id) / 2) as usize
    }

    /// Whether `id` is a stream that the client opened.
    pub fn was_begun(&self, id: u32) -> bool {
        id % 2 == 1 && id < self.next_id
    }

    /// Marks all identifiers below `id`, which is odd, as used; for tests of identifier exhaustion.
    pub fn skip_to(&mut self, id: u32) {
        self.next_id = self.next_id.max(id | 1);
    }

    fn place(&self, id: u32) -> usize {
        (id >> 1) as usize & self.slots.len().wrapping_sub(1)
    }

    /// Finds a stream.
    #[inline]
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        let place = self.place(id);
        self.slots.get_mut(place)?.as_mut().filter(|stream| stream.id == id)
    }

    /// Opens a stream that `make` creates with the next free identifier; `None` if none is left.
    pub fn open_next(&mut self, make: impl FnOnce(u32) -> Stream) -> Option<u32> {
        if self.open * 2 >= self.slots.len() {
            self.grow();
        }
        while self.next_id <= LAST_ID {
            let id = self.next_id;
            self.next_id += 2;
            let place = self.place(id);
            if self.slots[place].is_none() {
                self.slots[place] = Some(make(id));
                self.open += 1;
                return Some(id);
            }
        }
        None
    }

    /// Removes a stream.
    pub fn remove(&mut self, id: u32) -> Option<Stream> {
        let place = self.place(id);
        let slot = self.slots.get_mut(place)?;
        if slot.as_ref().is_some_and(|stream| stream.id == id) {
            self.open -= 1;
            return slot.take();
        }
        None
    }

    /// The open streams, in any order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.slots.iter_mut().filter_map(Option::as_mut)
    }

    /// Removes the streams that `which` selects, in the order of their identifiers.
    pub fn take_where(&mut self, which: impl Fn(&Stream) -> bool) -> Vec<Stream> {
        let mut taken: Vec<Stream> = Vec::new();
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(&which) {
                taken.extend(slot.take());
            }
        }
        self.open -= taken.len();
        taken.sort_unstable_by_key(|stream| stream.id);
        taken
    }

    /// Doubles the number of slots.
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(16);
        let mut larger = Vec::new();
        larger.resize_with(size, || None);
        for stream in std::mem::replace(&mut self.slots, larger).into_iter().flatten() {
            let place = self.place(stream.id);
            self.slots[place] = Some(stream);
        }
    }
}
