//! Requests: encoded once for each template number, then copied by reference.

use bytes::{Bytes, BytesMut};

use super::frame;
use super::qpack::{Encoder, Indexing, References, encode_field};
use crate::contract::{HeaderBytes, Request, VaryingField};

/// Templates above this number are encoded every time.
const TEMPLATE_LIMIT: usize = 1 << 16;
/// Heads with a field that varies are cut from a piece of memory of this size, so that few of them allocate.
const ARENA_BYTES: usize = 16 << 10;
/// Two integers of QUIC (RFC 9000, section 16).
const LONGEST_FRAME_HEADER_BYTES: usize = 16;

/// An encoded request.
#[derive(Clone, Debug)]
pub(super) struct Encoded {
    /// HEADERS and, where there is a body, the header of the DATA frame.
    pub(super) head: Bytes,
    /// The body.
    pub(super) body: Bytes,
    /// Size of the field section.
    pub(super) header_bytes: HeaderBytes,
    /// Where the field section is in `head`: its first byte, and its length.
    section: (usize, usize),
    /// Whether the response has no body, regardless of its fields (RFC 9110, section 9.3.2).
    pub(super) is_head: bool,
    /// Its references to the dynamic table, and the encoder's generation in which they are valid.
    references: Option<References>,
    generation: u64,
}

/// Encoded requests by template number.
#[derive(Debug)]
pub(super) struct Templates {
    encoder: Encoder,
    encoded: Vec<Option<Encoded>>,
    /// Buffers for a field that varies and for a frame's header; the memory from which heads with such a
    /// field are cut.
    line: Vec<u8>,
    frame: Vec<u8>,
    arena: BytesMut,
}

impl Templates {
    /// Nothing encoded yet; `encoder` is the connection's.
    pub(super) fn new(encoder: Encoder) -> Self {
        let (line, frame) = (Vec::new(), Vec::new());
        Templates { encoder, encoded: Vec::new(), line, frame, arena: BytesMut::new() }
    }

    /// The encoder, for the peer's decoder stream.
    pub(super) fn encoder(&mut self) -> &mut Encoder {
        &mut self.encoder
    }

    /// The encoding of `request` for a stream, remembered.
    #[inline]
    pub(super) fn encoded(&mut self, stream: u64, request: &Request) -> Encoded {
        let encoded = self.encoded_template(stream, request);
        match &request.varying {
            Some(field) => self.with_field(encoded, field),
            None => encoded,
        }
    }

    /// The same with an additional last field; it is not remembered.
    fn with_field(&mut self, mut encoded: Encoded, field: &VaryingField) -> Encoded {
        self.line.clear();
        encode_field(field.name.as_bytes(), field.value.as_bytes(), &mut self.line);
        let (begins, length) = encoded.section;
        let section_bytes = length + self.line.len();
        self.frame.clear();
        frame::encode_header(frame::HEADERS, section_bytes as u64, &mut self.frame);
        let wire = self.frame.len() + section_bytes;
        if self.arena.capacity() < wire + LONGEST_FRAME_HEADER_BYTES {
            self.arena.reserve(ARENA_BYTES.max(wire + LONGEST_FRAME_HEADER_BYTES));
        }
        for part in [&self.frame, &encoded.head[begins..begins + length], &self.line] {
            self.arena.extend_from_slice(part);
        }
        encoded.header_bytes = HeaderBytes {
            raw: encoded.header_bytes.raw.saturating_add(field.raw_bytes()),
            wire: saturated(wire as u64),
        };
        if !encoded.body.is_empty() {
            self.frame.clear();
            frame::encode_header(frame::DATA, encoded.body.len() as u64, &mut self.frame);
            self.arena.extend_from_slice(&self.frame);
        }
        encoded.head = self.arena.split().freeze();
        encoded
    }

    #[inline]
    fn encoded_template(&mut self, stream: u64, request: &Request) -> Encoded {
        let template = usize::try_from(request.template).unwrap_or(usize::MAX);
        if let Some(Some(known)) = self.encoded.get(template)
            && known.generation == self.encoder.generation()
        {
            match known.references {
                None => return known.clone(),
                Some(references) if self.encoder.may_refer() => {
                    self.encoder.track(stream, references);
                    return known.clone();
                }
                Some(_) => {}
            }
        }
        self.encode_again(template, stream, request)
    }

    fn encode_again(&mut self, template: usize, stream: u64, request: &Request) -> Encoded {
        let encoded = encode(request, stream, &mut self.encoder);
        if let Some(references) = encoded.references {
            self.encoder.track(stream, references);
        }
        if template < TEMPLATE_LIMIT {
            if self.encoded.len() <= template {
                self.encoded.resize(template + 1, None);
            }
            self.encoded[template] = Some(encoded.clone());
        }
        encoded
    }
}

fn encode(request: &Request, stream: u64, encoder: &mut Encoder) -> Encoded {
    let length = request.body.len().to_string();
    let announced =
        (!request.body.is_empty()).then_some(("content-length", length.as_str(), Indexing::Without));
    let fields = [
        (":method", request.method.as_str(), Indexing::Insert),
        (":scheme", &request.scheme, Indexing::Insert),
        (":authority", &request.authority, Indexing::Insert),
        (":path", &request.path, Indexing::Without),
    ];
    let further =
        request.fields.iter().map(|(name, value)| (name.as_str(), value.as_str(), Indexing::Insert));
    let fields = fields.into_iter().chain(announced).chain(further);
    let raw: usize = fields.clone().map(|(name, value, _)| name.len() + value.len()).sum();
    let mut section = Vec::with_capacity(256);
    let lines = fields.map(|(name, value, indexing)| (name.as_bytes(), value.as_bytes(), indexing));
    let references = encoder.encode(stream, lines, &mut section);
    let mut head = Vec::with_capacity(section.len() + 24);
    frame::encode_header(frame::HEADERS, section.len() as u64, &mut head);
    let section_at = (head.len(), section.len());
    head.extend_from_slice(&section);
    let header_bytes = HeaderBytes { raw: saturated(raw as u64), wire: saturated(head.len() as u64) };
    if !request.body.is_empty() {
        frame::encode_header(frame::DATA, request.body.len() as u64, &mut head);
    }
    let is_head = request.method == "HEAD";
    let generation = encoder.generation();
    let body = request.body.clone();
    Encoded { head: head.into(), section: section_at, body, header_bytes, is_head, references, generation }
}

/// As a `u32`; sizes beyond 4 GB do not pass the limits anyway.
pub(super) fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
