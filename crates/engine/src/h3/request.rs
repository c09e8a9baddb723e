//! Requests: encoded once for each template number, then copied by reference.

use bytes::Bytes;

use super::frame;
use super::qpack::{Encoder, Indexing, References};
use crate::contract::{HeaderBytes, Request};

/// Templates above this number are encoded anew each time.
const TEMPLATE_LIMIT: usize = 1 << 16;

/// A request as it goes on the wire.
#[derive(Clone, Debug)]
pub(super) struct Encoded {
    /// HEADERS and, where there is a body, the header of the DATA frame.
    pub(super) head: Bytes,
    /// The body.
    pub(super) body: Bytes,
    /// Size of the field section.
    pub(super) header_bytes: HeaderBytes,
    /// Whether the response has no body whatever its fields say (RFC 9110, section 9.3.2).
    pub(super) is_head: bool,
    /// What of the dynamic table it refers to, and the encoder's generation in which it is right.
    references: Option<References>,
    generation: u64,
}

/// What was encoded, by template number.
#[derive(Debug)]
pub(super) struct Templates {
    encoder: Encoder,
    encoded: Vec<Option<Encoded>>,
}

impl Templates {
    /// Nothing encoded yet; `encoder` is the connection's.
    pub(super) fn new(encoder: Encoder) -> Self {
        Templates { encoder, encoded: Vec::new() }
    }

    /// What the peer's decoder speaks to.
    pub(super) fn encoder(&mut self) -> &mut Encoder {
        &mut self.encoder
    }

    /// The encoding of `request` for a stream, remembered.
    #[inline]
    pub(super) fn encoded(&mut self, stream: u64, request: &Request) -> Encoded {
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
        self.encode_anew(template, stream, request)
    }

    fn encode_anew(&mut self, template: usize, stream: u64, request: &Request) -> Encoded {
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
    head.extend_from_slice(&section);
    let header_bytes = HeaderBytes { raw: saturated(raw as u64), wire: saturated(head.len() as u64) };
    if !request.body.is_empty() {
        frame::encode_header(frame::DATA, request.body.len() as u64, &mut head);
    }
    let is_head = request.method == "HEAD";
    let generation = encoder.generation();
    let body = request.body.clone();
    Encoded { head: head.into(), body, header_bytes, is_head, references, generation }
}

/// As a `u32`; sizes beyond 4 GB do not pass the limits anyway.
pub(super) fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
