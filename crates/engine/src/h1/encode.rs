//! Request heads: encoded once per template number, then copied.

use bytes::Bytes;

use crate::contract::{HeaderBytes, Request, VaryingField};

/// The limit of output per `poll_output`, in bytes.
const OUTPUT_BYTES: usize = 64 << 10;

/// The limits of cached templates, and of their total bytes.
const CACHED_TEMPLATES: usize = 4096;
const CACHED_BYTES: usize = 1 << 20;
const LINE_END: &str = "\r\n";

/// Encodes request heads and caches them by template.
#[derive(Debug, Default)]
pub struct Encoder {
    kept: Vec<Option<Kept>>,
    kept_bytes: usize,
}

#[derive(Debug)]
struct Kept {
    head: Box<[u8]>,
    size: HeaderBytes,
}

/// Pending output: heads, then at most one body, because one request is in flight at a time.
#[derive(Debug, Default)]
pub struct Pending {
    head: Vec<u8>,
    sent: usize,
    body: Bytes,
}

impl Encoder {
    /// Queues `request`; returns the size of its head.
    pub fn encode(&mut self, request: &Request, pending: &mut Pending) -> HeaderBytes {
        let size = self.encode_template(request, pending);
        match &request.varying {
            Some(field) => append_field(field, size, &mut pending.head),
            None => size,
        }
    }

    fn encode_template(&mut self, request: &Request, pending: &mut Pending) -> HeaderBytes {
        pending.begin();
        let slot = usize::try_from(request.template).unwrap_or(usize::MAX);
        if let Some(Some(kept)) = self.kept.get(slot) {
            pending.head.extend_from_slice(&kept.head);
            pending.body = request.body.clone();
            return kept.size;
        }
        let before = pending.head.len();
        let raw = write_head(request, &mut pending.head);
        pending.body = request.body.clone();
        let head = &pending.head[before..];
        let size = HeaderBytes { raw: saturate(raw), wire: saturate(head.len()) };
        if slot < CACHED_TEMPLATES && self.kept_bytes + head.len() <= CACHED_BYTES {
            if self.kept.len() <= slot {
                self.kept.resize_with(slot + 1, || None);
            }
            self.kept_bytes += head.len();
            self.kept[slot] = Some(Kept { head: head.into(), size });
        }
        size
    }
}

impl Pending {
    /// Moves unsent bytes of the last body before the next head (a response may arrive early).
    fn begin(&mut self) {
        if self.sent > 0 {
            self.head.drain(..self.sent);
            self.sent = 0;
        }
        self.head.extend_from_slice(&self.body);
        self.body = Bytes::new();
    }

    /// Appends pending output, at most about 64 kB; returns whether there was any.
    pub fn poll(&mut self, out: &mut Vec<u8>) -> bool {
        let head = &self.head[self.sent..];
        if head.is_empty() && self.body.is_empty() {
            return false;
        }
        let from_head = head.len().min(OUTPUT_BYTES);
        out.extend_from_slice(&head[..from_head]);
        self.sent += from_head;
        if self.sent == self.head.len() {
            self.head.clear();
            self.sent = 0;
        }
        let from_body = self.body.len().min(OUTPUT_BYTES - from_head);
        out.extend_from_slice(&self.body.split_to(from_body));
        true
    }

    /// Drops all output.
    pub fn drop_all(&mut self) {
        *self = Pending::default();
    }
}

/// Appends a field to the head at the end of `out`; returns the head's size with that field.
fn append_field(field: &VaryingField, size: HeaderBytes, out: &mut Vec<u8>) -> HeaderBytes {
    let before = out.len();
    out.truncate(before.saturating_sub(LINE_END.len()));
    for part in [field.name, ": ", &field.value, LINE_END, LINE_END] {
        out.extend_from_slice(part.as_bytes());
    }
    HeaderBytes {
        raw: size.raw.saturating_add(field.raw_bytes()),
        wire: size.wire.saturating_add(saturate(out.len() - before)),
    }
}

/// Encodes the head; returns its size before compression.
fn write_head(request: &Request, out: &mut Vec<u8>) -> usize {
    let mut raw = ":method".len() + request.method.len() + ":path".len() + request.path.len();
    for part in [request.method.as_str(), " ", &request.path, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    let mut field = |name: &str, value: &str| {
        for part in [name, ": ", value, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        raw += name.len() + value.len();
    };
    field("host", &request.authority);
    for (name, value) in &request.fields {
        field(name, value);
    }
    if announces_length(request) {
        field("content-length", &request.body.len().to_string());
    }
    out.extend_from_slice(LINE_END.as_bytes());
    raw
}

/// Whether `content-length` is sent: with a body, and with methods that expect one (RFC 9110, section 8.6).
pub(crate) fn announces_length(request: &Request) -> bool {
    !request.body.is_empty() || matches!(request.method.as_str(), "POST" | "PUT" | "PATCH")
}

fn saturate(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
