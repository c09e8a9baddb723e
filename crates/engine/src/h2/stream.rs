//! Streams (RFC 9113, section 5.1) and the table that finds them.

use bytes::Bytes;
use model::HttpVersion;
use model::sample::FailureKind;

use super::error::StreamError;
use super::field::{Malformation, Meaning};
use super::flow::{ReceiveWindow, SendWindow};
use super::frame::ErrorCode;
use super::hpack::Field;
use crate::contract::{Head, HeaderBytes, RequestId};

/// One request and its response.
#[derive(Debug)]
pub struct Stream {
    /// The stream's identifier.
    pub id: u32,
    /// The driver's name for it.
    pub request: RequestId,
    /// Where the response is.
    pub phase: Phase,
    /// Whether the request was HEAD.
    pub is_head: bool,
    /// Informational responses so far.
    pub informational: u32,
    /// What is left of the announced body, where it was announced.
    pub body_left: Option<u64>,
    /// What the peer used of the window that we opened.
    pub received: ReceiveWindow,
    /// What the peer lets us send.
    pub send_window: SendWindow,
    /// What is left of the request's body.
    pub body: Bytes,
}

/// Where a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The final head has not come.
    Head,
    /// The final head has come.
    Body,
    /// The response is whole and the request's body is not yet sent.
    Answered,
}

/// What a field section of a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// A 1xx response.
    Informational(u16),
    /// The final head.
    Head(Head),
    /// Trailers.
    Trailers,
}

/// A field section as it is decoded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fields {
    status: Option<u16>,
    content_length: Option<u64>,
    raw: usize,
    count: usize,
    regular: bool,
    malformed: Option<&'static str>,
    malformation: Option<Malformation>,
}

impl Fields {
    /// Takes the next field.
    #[inline]
    pub fn add(&mut self, field: &Field<'_>) {
        self.raw += field.name.len() + field.value.len();
        self.count += 1;
        match field.meaning {
            Meaning::Ordinary => self.regular = true,
            Meaning::Status(status) => {
                if self.regular {
                    self.malformed = Some(":status stands behind a regular field");
                } else if self.status.replace(status).is_some() {
                    self.malformed = Some(":status stands twice");
                }
            }
            Meaning::ContentLength(length) => {
                self.regular = true;
                if self.content_length.replace(length).is_some_and(|other| other != length) {
                    self.malformed = Some("two different content-lengths");
                }
            }
            Meaning::Malformed(malformation) => self.malformation = Some(malformation),
        }
    }

    /// Names and values summed.
    pub fn raw_bytes(&self) -> usize {
        self.raw
    }

    /// The size that SETTINGS_MAX_HEADER_LIST_SIZE limits (RFC 9113, section 6.5.2).
    pub fn list_bytes(&self) -> usize {
        self.raw + 32 * self.count
    }
}

impl Stream {
    /// Takes a whole field section and says what it is.
    ///
    /// # Errors
    /// A stream error where the response is malformed (RFC 9113, section 8.1.1).
    pub fn take_fields(
        &mut self,
        fields: &Fields,
        end_stream: bool,
        wire: u32,
        limit: usize,
    ) -> Result<Section, StreamError> {
        if let Some(malformation) = fields.malformation {
            return Err(StreamError::malformed(format!("the response is malformed: {malformation}")));
        }
        if let Some(reason) = fields.malformed {
            return Err(StreamError::malformed(format!("the response is malformed: {reason}")));
        }
        if fields.list_bytes() > limit {
            return Err(StreamError {
                code: ErrorCode::CANCEL,
                kind: FailureKind::Limit,
                reason: format!("a field section of {} bytes, limit {limit}", fields.list_bytes()),
            });
        }
        if self.phase != Phase::Head {
            return match (fields.status, end_stream) {
                (None, true) => Ok(Section::Trailers),
                (None, false) => Err(malformed("trailers do not end the stream")),
                (Some(_), _) => Err(malformed(":status stands in trailers")),
            };
        }
        let status = fields.status.ok_or_else(|| malformed(":status is missing"))?;
        if status == 101 {
            return Err(malformed("status 101 does not exist in HTTP/2"));
        }
        if status < 200 {
            self.informational += 1;
            return if end_stream {
                Err(malformed("an informational response ends the stream"))
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
            bytes: HeaderBytes { raw: u32::try_from(fields.raw_bytes()).unwrap_or(u32::MAX), wire },
        }))
    }

    /// Takes a piece of the body, `length` bytes without padding.
    ///
    /// # Errors
    /// A stream error where DATA may not come or is more than announced.
    pub fn take_data(&mut self, length: u64) -> Result<(), StreamError> {
        if self.phase == Phase::Head {
            return Err(malformed("DATA stands before the response's HEADERS"));
        }
        if let Some(left) = &mut self.body_left {
            match left.checked_sub(length) {
                Some(less) => *left = less,
                None => {
                    let reason = "DATA is longer than the response's content-length or than none";
                    return Err(StreamError::wrong_length(reason.to_owned()));
                }
            }
        }
        Ok(())
    }

    /// Takes the end of the response.
    ///
    /// # Errors
    /// A stream error where it is not whole.
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
    StreamError::malformed(reason.to_owned())
}

/// The open streams: a table in which a stream's identifier is its place, so that finding one is one access.
///
/// Identifiers rise by 2, so neighbours have neighbouring places. Where the place of the next identifier is still
/// taken by a stream much older, that identifier is skipped, as RFC 9113, section 5.1.1 permits.
#[derive(Debug)]
pub struct Streams {
    slots: Vec<Option<Stream>>,
    open: usize,
    next_id: u32,
}

/// The last identifier that a client may use.
const LAST_ID: u32 = 0x7fff_ffff;

impl Streams {
    /// No stream yet.
    pub fn new() -> Self {
        Streams { slots: Vec::new(), open: 0, next_id: 1 }
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        self.open
    }

    /// How many identifiers are left.
    pub fn identifiers_left(&self) -> usize {
        ((LAST_ID + 2 - self.next_id) / 2) as usize
    }

    /// Whether the peer may speak of `id`: a client's stream that was begun.
    pub fn was_begun(&self, id: u32) -> bool {
        id % 2 == 1 && id < self.next_id
    }

    /// Pretends that all identifiers below `id`, which is odd, are used up; for tests of the end of a long life.
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

    /// Opens a stream with the next free identifier, which `make` is given; `None` where none is left.
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

    /// Takes a stream out.
    pub fn remove(&mut self, id: u32) -> Option<Stream> {
        let place = self.place(id);
        let slot = self.slots.get_mut(place)?;
        if slot.as_ref().is_some_and(|stream| stream.id == id) {
            self.open -= 1;
            return slot.take();
        }
        None
    }

    /// The open streams, in no order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.slots.iter_mut().filter_map(Option::as_mut)
    }

    /// Takes the streams out that `which` names, in the order of their identifiers.
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

    /// Twice as many places; streams that had different places keep different ones.
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

impl Default for Streams {
    fn default() -> Self {
        Streams::new()
    }
}
