//! Responses: the receiving side of a request stream (RFC 9114, sections 4.1 to 4.3).

use model::HttpVersion;

use super::error::{Code, Fault, Violation};
use super::frame::{self, FrameReader, Piece};
use super::qpack::{Decoder, QpackError, Section};
use super::request::saturated;
use crate::contract::{Event, Head, HeaderBytes, RequestId, Sink};

/// Largest field section accepted, encoded and decoded; announced in SETTINGS. Chromium's value.
pub(super) const FIELD_SECTION_LIMIT_BYTES: usize = 256 * 1024;
/// The most 1xx responses before a final one.
const INFORMATIONAL_LIMIT: u32 = 32;
/// What each field counts beyond its name and value (RFC 9114, section 4.2.2).
const FIELD_OVERHEAD_BYTES: usize = 32;
/// Sections that are remembered are no longer than this.
const REMEMBERED_BYTES: usize = 1024;

/// A response on its way.
#[derive(Debug, Default)]
pub(super) struct Response {
    frames: FrameReader,
    stage: Stage,
    /// A field section that arrives in parts.
    section: Vec<u8>,
    /// What came behind a section that waits for QPACK's dynamic table.
    held: Vec<u8>,
    is_blocked: bool,
    is_head: bool,
    /// 1xx responses so far.
    informational: u32,
    expected_bytes: Option<u64>,
    received_bytes: u64,
}

/// Where a response belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) stream: u64,
    pub(super) request: RequestId,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Before the final response's head.
    #[default]
    Head,
    /// Content, then perhaps trailers.
    Body,
    /// Trailers came: nothing may follow but unknown frames.
    Trailers,
}

impl Response {
    /// Makes it ready for the next request, keeping its memory.
    pub(super) fn reset(&mut self, is_head: bool) {
        self.section.clear();
        self.held.clear();
        let (section, held) = (std::mem::take(&mut self.section), std::mem::take(&mut self.held));
        *self = Response { section, held, is_head, ..Response::default() };
    }

    /// Whether a field section waits for QPACK's dynamic table: nothing is taken until [`Response::resume`].
    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Takes what the stream brought.
    pub(super) fn take(
        &mut self,
        at: At,
        mut input: &[u8],
        fields: &mut Fields,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
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

    /// Goes on after the table has what the section needs.
    pub(super) fn resume(&mut self, at: At, fields: &mut Fields, sink: &mut Sink<'_>) -> Result<(), Fault> {
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
    pub(super) fn finish(&mut self, request: RequestId, sink: &mut Sink<'_>) -> Result<(), Fault> {
        if !self.frames.is_between_frames() {
            return Err(Fault::connection(Code::H3_FRAME_ERROR, "found a stream that ends within a frame"));
        }
        if self.stage == Stage::Head {
            let reason = "found the stream's end, expected the head of a final response";
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

    fn check_sequence(&self, kind: u64) -> Result<(), Fault> {
        let allowed = match kind {
            frame::DATA => self.stage == Stage::Body,
            frame::HEADERS => self.stage != Stage::Trailers,
            frame::PUSH_PROMISE => {
                let reason = "found PUSH_PROMISE, expected none: no push was allowed";
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
        let reason = format!("found a frame of type {kind:#x} {place} on a request stream");
        Err(Fault::connection(Code::H3_FRAME_UNEXPECTED, reason))
    }

    #[inline]
    fn take_data(&mut self, request: RequestId, piece: &Piece<'_>, sink: &mut Sink<'_>) -> Result<(), Fault> {
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
        Fault::Stream(Violation::wrong_length(format!("found {found} bytes of content, expected {expected}")))
    }

    fn take_headers(
        &mut self,
        at: At,
        piece: &Piece<'_>,
        fields: &mut Fields,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        if piece.payload_bytes > FIELD_SECTION_LIMIT_BYTES as u64 {
            let found = piece.payload_bytes;
            let reason = format!(
                "found an encoded field section of {found} bytes, expected at most {FIELD_SECTION_LIMIT_BYTES}"
            );
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
        at: At,
        section: &[u8],
        fields: &mut Fields,
        sink: &mut Sink<'_>,
    ) -> Result<(), Fault> {
        let At { stream, request } = at;
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
        if parsed.status == 101 {
            let reason = "found status 101, which HTTP/3 does not have (RFC 9114, section 4.5)";
            return Err(Fault::stream(Code::H3_MESSAGE_ERROR, reason));
        }
        if parsed.status < 200 {
            self.informational += 1;
            if self.informational > INFORMATIONAL_LIMIT {
                let reason = format!("found more than {INFORMATIONAL_LIMIT} informational (1xx) responses");
                return Err(Fault::Stream(Violation::limit(reason)));
            }
            sink(Event::Informational { request, status: parsed.status });
            return Ok(());
        }
        self.stage = Stage::Body;
        let without_content = self.is_head || matches!(parsed.status, 204 | 304);
        self.expected_bytes = if without_content { Some(0) } else { parsed.content_length };
        let payload_bytes = section.len() as u64;
        let wire = saturated(payload_bytes + frame::header_bytes(frame::HEADERS, payload_bytes));
        sink(Event::Head {
            request,
            head: Head {
                status: parsed.status,
                version: HttpVersion::Http3,
                content_length: parsed.content_length,
                bytes: HeaderBytes { raw: saturated(parsed.raw_bytes as u64), wire },
            },
        });
        Ok(())
    }
}

/// Reads field sections; remembers the last head, since a server under load says the same again and again.
#[derive(Debug)]
pub(super) struct Fields {
    decoder: Decoder,
    last_section: Vec<u8>,
    last_head: ParsedHead,
    /// What the last section needed of the dynamic table, and how many insertions the table had seen.
    last_required: u64,
    last_inserts: u64,
}

/// What a response's head says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ParsedHead {
    status: u16,
    content_length: Option<u64>,
    raw_bytes: usize,
}

impl Fields {
    /// A reader with this decoder.
    pub(super) fn new(decoder: Decoder) -> Self {
        Fields {
            decoder,
            last_section: Vec::new(),
            last_head: ParsedHead::default(),
            last_required: 0,
            last_inserts: 0,
        }
    }

    /// What the peer's encoder speaks to.
    pub(super) fn decoder(&mut self) -> &mut Decoder {
        &mut self.decoder
    }

    /// What a head says; `None` where it is blocked.
    fn head(&mut self, stream: u64, section: &[u8]) -> Result<Option<ParsedHead>, Fault> {
        // Equal bytes mean equal fields, as long as the dynamic table that they refer to is the same.
        let is_same_table = self.last_required == 0 || self.last_inserts == self.decoder.inserts();
        if !section.is_empty() && is_same_table && self.last_section == section {
            self.decoder.acknowledge(stream, self.last_required).map_err(decompression)?;
            return Ok(Some(self.last_head));
        }
        let mut reader = HeadReader::default();
        let read = self.decoder.section(stream, section, |name, value| reader.field(name, value));
        let Section::Whole { required_inserts } = read.map_err(decompression)? else { return Ok(None) };
        let head = reader.finish()?;
        if section.len() <= REMEMBERED_BYTES {
            self.last_section.clear();
            self.last_section.extend_from_slice(section);
            self.last_head = head;
            self.last_required = required_inserts;
            self.last_inserts = self.decoder.inserts();
        }
        Ok(Some(head))
    }

    fn trailers(&mut self, stream: u64, section: &[u8]) -> Result<Option<()>, Fault> {
        let mut reader = HeadReader { pseudo_fields_over: true, ..HeadReader::default() };
        let read = self.decoder.section(stream, section, |name, value| reader.field(name, value));
        match read.map_err(decompression)? {
            Section::Whole { .. } => reader.check().map(Some),
            Section::Blocked => Ok(None),
        }
    }
}

fn decompression(error: QpackError) -> Fault {
    Fault::connection(Code::QPACK_DECOMPRESSION_FAILED, error.to_string())
}

/// Looks at one field after the other; remembers the first thing that is wrong.
#[derive(Debug, Default)]
struct HeadReader {
    status: Option<u16>,
    content_length: Option<u64>,
    raw_bytes: usize,
    section_bytes: usize,
    pseudo_fields_over: bool,
    wrong: Option<String>,
}

impl HeadReader {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.raw_bytes += name.len() + value.len();
        self.section_bytes += name.len() + value.len() + FIELD_OVERHEAD_BYTES;
        if self.wrong.is_some() {
            return;
        }
        if name.first() == Some(&b':') {
            self.pseudo_field(name, value);
            return;
        }
        self.pseudo_fields_over = true;
        if !is_lower_case_token(name) {
            self.wrong = Some(format!("found field name {}, expected a token in lower case", shown(name)));
        } else if memchr::memchr3(0, b'\r', b'\n', value).is_some() {
            self.wrong = Some(format!("found a control character in the value of {}", shown(name)));
        } else if is_connection_specific(name) {
            self.wrong = Some(format!("found field {}, which HTTP/3 does not have", shown(name)));
        } else if name == b"content-length" {
            self.content_length(value);
        }
    }

    fn pseudo_field(&mut self, name: &[u8], value: &[u8]) {
        let status = match value {
            [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                Some(u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'))
            }
            _ => None,
        };
        self.wrong = if self.pseudo_fields_over {
            Some(format!("found {} behind other fields or in trailers", shown(name)))
        } else if name != b":status" {
            Some(format!("found {} in a response, expected :status", shown(name)))
        } else if self.status.is_some() {
            Some("found :status twice".into())
        } else if status.is_none() {
            Some(format!("found status {}, expected three digits", shown(value)))
        } else {
            None
        };
        self.status = status;
    }

    fn content_length(&mut self, value: &[u8]) {
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(value).ok().filter(|_| is_number).and_then(|text| text.parse().ok());
        if length.is_none() || self.content_length.is_some_and(|other| Some(other) != length) {
            self.wrong = Some(format!("found content-length {}, expected one number", shown(value)));
        }
        self.content_length = length;
    }

    fn check(&mut self) -> Result<(), Fault> {
        if self.section_bytes > FIELD_SECTION_LIMIT_BYTES {
            let found = self.section_bytes;
            let reason = format!(
                "found a field section of {found} bytes, expected at most {FIELD_SECTION_LIMIT_BYTES}"
            );
            return Err(Fault::Stream(Violation::limit(reason)));
        }
        self.wrong.take().map_or(Ok(()), |wrong| Err(Fault::stream(Code::H3_MESSAGE_ERROR, wrong)))
    }

    fn finish(mut self) -> Result<ParsedHead, Fault> {
        self.check()?;
        let status = self
            .status
            .ok_or_else(|| Fault::stream(Code::H3_MESSAGE_ERROR, "found a response without :status"))?;
        Ok(ParsedHead { status, content_length: self.content_length, raw_bytes: self.raw_bytes })
    }
}

/// RFC 9110, section 5.6.2, without upper case (RFC 9114, section 4.2).
fn is_lower_case_token(name: &[u8]) -> bool {
    const SPECIAL: &[u8] = b"!#$%&'*+-.^_`|~";
    !name.is_empty()
        && name.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-') || SPECIAL.contains(byte))
}

/// RFC 9114, section 4.2.
fn is_connection_specific(name: &[u8]) -> bool {
    matches!(name, b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade")
}

/// At most 40 bytes of what a peer sent, printable.
fn shown(bytes: &[u8]) -> String {
    format!("`{}`", bytes[..bytes.len().min(40)].escape_ascii())
}
