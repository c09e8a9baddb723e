//! Responses: the receiving side of a request stream (RFC 9114, sections 4.1 to 4.3).

use model::HttpVersion;

use super::error::{Code, Fault, Result, Violation};
use super::frame::{self, FrameReader, Piece};
use super::qpack::{Decoder, QpackError, Section};
use super::request::saturated;
use crate::contract::{Event, Head, HeaderBytes, RequestId, Sink};
use crate::field::{self, FieldSection};

/// Largest field section accepted, encoded and decoded; announced in SETTINGS. Chromium's value.
pub(super) const FIELD_SECTION_LIMIT_BYTES: usize = 256 * 1024;
/// The most 1xx responses before a final one.
const INFORMATIONAL_LIMIT: u32 = 32;
/// The longest section that is remembered.
const REMEMBERED_BYTES: usize = 1024;

/// A response that is being received.
#[derive(Debug, Default)]
pub(super) struct Response {
    frames: FrameReader,
    stage: Stage,
    /// An incomplete field section.
    section: Vec<u8>,
    /// Input after a section that waits for QPACK's dynamic table.
    held: Vec<u8>,
    is_blocked: bool,
    is_head: bool,
    /// 1xx responses so far.
    informational: u32,
    expected_bytes: Option<u64>,
    received_bytes: u64,
}

/// The stream and request of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseId {
    pub(super) stream: u64,
    pub(super) request: RequestId,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Before the final response's head.
    #[default]
    Head,
    /// Content, then optional trailers.
    Body,
    /// After the trailers: only unknown frames may follow.
    Trailers,
}

impl Response {
    /// Resets it for the next request, and keeps its memory.
    pub(super) fn reset(&mut self, is_head: bool) {
        self.section.clear();
        self.held.clear();
        let (section, held) = (std::mem::take(&mut self.section), std::mem::take(&mut self.held));
        *self = Response { section, held, is_head, ..Response::default() };
    }

    /// Whether a field section waits for QPACK's dynamic table: until [`Response::resume`] no input is
    /// accepted.
    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Takes input of the stream.
    pub(super) fn take(
        &mut self,
        at: ResponseId,
        mut input: &[u8],
        fields: &mut Fields,
        sink: &mut Sink<'_>,
    ) -> Result {
        while let Some(piece) = self.frames.next(&mut input) {
            if piece.begins {
                self.check_sequence(piece.kind)?;
            }
            match piece.kind {
                frame::DATA => self.take_data(at.request, &piece, sink)?,
                frame::HEADERS => self.take_headers(at, &piece, fields, sink)?,
                _ => {}
            }
            if self.is_blocked {
                self.held.extend_from_slice(input);
                break;
            }
        }
        Ok(())
    }

    /// Continues when the table has the entries that the section needs.
    pub(super) fn resume(&mut self, at: ResponseId, fields: &mut Fields, sink: &mut Sink<'_>) -> Result {
        self.is_blocked = false;
        let section = std::mem::take(&mut self.section);
        self.take_section(at, &section, fields, sink)?;
        if self.is_blocked {
            self.section = section;
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        self.take(at, &held, fields, sink)
    }

    /// The stream ended.
    pub(super) fn finish(&mut self, request: RequestId, sink: &mut Sink<'_>) -> Result {
        if !self.frames.is_between_frames() {
            return Err(Fault::connection(Code::H3_FRAME_ERROR, "the stream ends within a frame"));
        }
        if self.stage == Stage::Head {
            let reason = "the stream ends before the head of a final response";
            return Err(Fault::stream(Code::H3_MESSAGE_ERROR, reason));
        }
        match self.expected_bytes {
            Some(expected) if expected != self.received_bytes => Err(self.wrong_length(expected)),
            _ => {
                sink(Event::End { request });
                Ok(())
            }
        }
    }

    fn check_sequence(&self, kind: u64) -> Result {
        let allowed = match kind {
            frame::DATA => self.stage == Stage::Body,
            frame::HEADERS => self.stage != Stage::Trailers,
            frame::PUSH_PROMISE => {
                let reason = "PUSH_PROMISE although push is disabled";
                return Err(Fault::connection(Code::H3_ID_ERROR, reason));
            }
            frame::CANCEL_PUSH | frame::SETTINGS | frame::GOAWAY | frame::MAX_PUSH_ID => false,
            other => !frame::is_forbidden(other),
        };
        if allowed {
            return Ok(());
        }
        let place = match self.stage {
            Stage::Head => "before the response's head",
            Stage::Body => "within the response",
            Stage::Trailers => "after the trailers",
        };
        let reason = format!("frame of type {kind:#x} {place} on a request stream");
        Err(Fault::connection(Code::H3_FRAME_UNEXPECTED, reason))
    }

    #[inline]
    fn take_data(&mut self, request: RequestId, piece: &Piece<'_>, sink: &mut Sink<'_>) -> Result {
        self.received_bytes += piece.bytes.len() as u64;
        if let Some(expected) = self.expected_bytes
            && self.received_bytes > expected
        {
            return Err(self.wrong_length(expected));
        }
        if !piece.bytes.is_empty() {
            sink(Event::Data { request, bytes: piece.bytes });
        }
        Ok(())
    }

    fn wrong_length(&self, expected: u64) -> Fault {
        let found = self.received_bytes;
        Fault::Stream(Violation::wrong_length(format!("{found} bytes of content, expected {expected}")))
    }

    fn take_headers(
        &mut self,
        at: ResponseId,
        piece: &Piece<'_>,
        fields: &mut Fields,
        sink: &mut Sink<'_>,
    ) -> Result {
        if piece.payload_bytes > FIELD_SECTION_LIMIT_BYTES as u64 {
            let found = piece.payload_bytes;
            let reason = format!("encoded field section of {found} bytes, limit {FIELD_SECTION_LIMIT_BYTES}");
            return Err(Fault::Stream(Violation::limit(reason)));
        }
        if piece.begins && piece.ends {
            self.take_section(at, piece.bytes, fields, sink)?;
            if self.is_blocked {
                self.section.extend_from_slice(piece.bytes);
            }
            return Ok(());
        }
        self.section.extend_from_slice(piece.bytes);
        if piece.ends {
            let section = std::mem::take(&mut self.section);
            let result = self.take_section(at, &section, fields, sink);
            self.section = section;
            if !self.is_blocked {
                self.section.clear();
            }
            result?;
        }
        Ok(())
    }

    fn take_section(
        &mut self,
        at: ResponseId,
        section: &[u8],
        fields: &mut Fields,
        sink: &mut Sink<'_>,
    ) -> Result {
        let ResponseId { stream, request } = at;
        if self.stage == Stage::Body {
            match fields.trailers(stream, section)? {
                Some(()) => self.stage = Stage::Trailers,
                None => self.is_blocked = true,
            }
            return Ok(());
        }
        let Some(parsed) = fields.head(stream, section)? else {
            self.is_blocked = true;
            return Ok(());
        };
        let status = parsed.status.unwrap_or_default();
        if status == 101 {
            let reason = "malformed response: status 101 does not exist in HTTP/3";
            return Err(Fault::stream(Code::H3_MESSAGE_ERROR, reason));
        }
        if status < 200 {
            self.informational += 1;
            if self.informational > INFORMATIONAL_LIMIT {
                let reason = format!("more than {INFORMATIONAL_LIMIT} informational (1xx) responses");
                return Err(Fault::Stream(Violation::limit(reason)));
            }
            sink(Event::Informational { request, status, links: &parsed.links });
            return Ok(());
        }
        self.stage = Stage::Body;
        let without_content = self.is_head || matches!(status, 204 | 304);
        self.expected_bytes = if without_content { Some(0) } else { parsed.content_length };
        let payload_bytes = section.len() as u64;
        let wire = saturated(payload_bytes + frame::header_bytes(frame::HEADERS, payload_bytes));
        sink(Event::Head {
            request,
            head: Head {
                status,
                version: HttpVersion::Http3,
                content_length: parsed.content_length,
                closes: None,
                content: parsed.content,
                bytes: HeaderBytes { raw: saturated(parsed.raw_bytes as u64), wire },
            },
        });
        Ok(())
    }
}

/// Decodes field sections. The last head is remembered, because a server under load repeats its field
/// sections.
#[derive(Debug)]
pub(super) struct Fields {
    decoder: Decoder,
    last_section: Vec<u8>,
    last_head: FieldSection,
    /// The insertions that the last section required, and those that the table had then.
    last_required: u64,
    last_inserts: u64,
}

impl Fields {
    /// A reader with this decoder.
    pub(super) fn new(decoder: Decoder) -> Self {
        Fields {
            decoder,
            last_section: Vec::new(),
            last_head: FieldSection::default(),
            last_required: 0,
            last_inserts: 0,
        }
    }

    /// The decoder, for the peer's encoder stream.
    pub(super) fn decoder(&mut self) -> &mut Decoder {
        &mut self.decoder
    }

    /// Decodes a head; `None` if it is blocked.
    fn head(&mut self, stream: u64, section: &[u8]) -> Result<Option<FieldSection>> {
        // Equal bytes decode to equal fields while the dynamic table is unchanged.
        let is_same_table = self.last_required == 0 || self.last_inserts == self.decoder.inserts();
        if !section.is_empty() && is_same_table && self.last_section == section {
            self.decoder.acknowledge(stream, self.last_required).map_err(decompression)?;
            return Ok(Some(self.last_head.clone()));
        }
        let Some((head, required_inserts)) = self.decode(stream, section)? else { return Ok(None) };
        if head.status.is_none() {
            return Err(Fault::stream(Code::H3_MESSAGE_ERROR, "malformed response: no :status"));
        }
        if section.len() <= REMEMBERED_BYTES {
            self.last_section.clear();
            self.last_section.extend_from_slice(section);
            self.last_head.clone_from(&head);
            self.last_required = required_inserts;
            self.last_inserts = self.decoder.inserts();
        }
        Ok(Some(head))
    }

    /// Checks trailers; `None` if they are blocked.
    fn trailers(&mut self, stream: u64, section: &[u8]) -> Result<Option<()>> {
        let Some((trailers, _)) = self.decode(stream, section)? else { return Ok(None) };
        if trailers.status.is_some() {
            return Err(Fault::stream(Code::H3_MESSAGE_ERROR, "malformed response: :status in trailers"));
        }
        Ok(Some(()))
    }

    /// A field section and the insertions into the dynamic table that it requires; `None` if it is blocked.
    fn decode(&mut self, stream: u64, section: &[u8]) -> Result<Option<(FieldSection, u64)>> {
        let mut fields = FieldSection::default();
        let add = |name: &[u8], value: &[u8]| {
            fields.add(name, value, field::classify_value(field::classify_name(name), value));
        };
        match self.decoder.section(stream, section, add).map_err(decompression)? {
            Section::Whole { required_inserts } => Ok(Some((check(fields)?, required_inserts))),
            Section::Blocked => Ok(None),
        }
    }
}

fn decompression(error: QpackError) -> Fault {
    Fault::connection(Code::QPACK_DECOMPRESSION_FAILED, error.to_string())
}

/// Checks a field section.
fn check(fields: FieldSection) -> Result<FieldSection> {
    let found = fields.list_bytes();
    if found > FIELD_SECTION_LIMIT_BYTES {
        let reason = format!("field section of {found} bytes, limit {FIELD_SECTION_LIMIT_BYTES}");
        return Err(Fault::Stream(Violation::limit(reason)));
    }
    match &fields.malformed {
        Some(malformed) => {
            Err(Fault::stream(Code::H3_MESSAGE_ERROR, format!("malformed response: {malformed}")))
        }
        None => Ok(fields),
    }
}
