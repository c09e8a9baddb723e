//! Requests: encoded once for each template number, then copied by reference.

use bytes::Bytes;

use super::{frame, qpack};
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
}

/// What was encoded, by template number.
#[derive(Debug, Default)]
pub(super) struct Templates {
    encoded: Vec<Option<Encoded>>,
}

impl Templates {
    /// The encoding of `request`, remembered.
    #[inline]
    pub(super) fn encoded(&mut self, request: &Request) -> Encoded {
        let template = usize::try_from(request.template).unwrap_or(usize::MAX);
        if let Some(Some(known)) = self.encoded.get(template) {
            return known.clone();
        }
        let encoded = encode(request);
        if template < TEMPLATE_LIMIT {
            if self.encoded.len() <= template {
                self.encoded.resize(template + 1, None);
            }
            self.encoded[template] = Some(encoded.clone());
        }
        encoded
    }
}

fn encode(request: &Request) -> Encoded {
    let mut section = Vec::with_capacity(256);
    let mut raw = 0;
    qpack::encode_prefix(&mut section);
    let mut field = |name: &str, value: &str| {
        raw += name.len() + value.len();
        qpack::encode_field(name.as_bytes(), value.as_bytes(), &mut section);
    };
    field(":method", &request.method);
    field(":scheme", &request.scheme);
    field(":authority", &request.authority);
    field(":path", &request.path);
    if !request.body.is_empty() {
        field("content-length", &request.body.len().to_string());
    }
    for (name, value) in &request.fields {
        field(name, value);
    }
    let mut head = Vec::with_capacity(section.len() + 24);
    frame::encode_header(frame::HEADERS, section.len() as u64, &mut head);
    head.extend_from_slice(&section);
    let header_bytes = HeaderBytes { raw: saturated(raw as u64), wire: saturated(head.len() as u64) };
    if !request.body.is_empty() {
        frame::encode_header(frame::DATA, request.body.len() as u64, &mut head);
    }
    let is_head = request.method == "HEAD";
    Encoded { head: head.into(), body: request.body.clone(), header_bytes, is_head }
}

/// As a `u32`; sizes beyond 4 GB do not pass the limits anyway.
pub(super) fn saturated(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
