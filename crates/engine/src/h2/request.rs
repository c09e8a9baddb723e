//! Header blocks of requests: encoded once per template and table state, then copied.

use super::frame::{FrameHeader, flag, kind};
use super::hpack::{Encoder, Indexing};
use crate::contract::Request;
use crate::h1::encode::announces_length;

/// The limits of cached templates, and of their total bytes.
const CACHED_TEMPLATES: usize = 4096;
const CACHED_BYTES: usize = 1 << 20;

/// Encodes requests and caches the blocks that can be sent again unchanged.
#[derive(Debug)]
pub struct RequestEncoder {
    hpack: Encoder,
    kept: Vec<Option<Kept>>,
    kept_bytes: usize,
    scratch: Vec<u8>,
    /// A block with a varying field at its end.
    varied: Vec<u8>,
}

#[derive(Debug)]
struct Kept {
    /// The encoder's generation in which the block is valid.
    generation: u64,
    block: Vec<u8>,
    raw: u32,
}

impl Default for RequestEncoder {
    /// An encoder with the default table.
    fn default() -> Self {
        RequestEncoder {
            hpack: Encoder::new(super::hpack::decoder::DEFAULT_TABLE_BYTES),
            kept: Vec::new(),
            kept_bytes: 0,
            scratch: Vec::new(),
            varied: Vec::new(),
        }
    }
}

impl RequestEncoder {
    /// Takes the peer's SETTINGS_HEADER_TABLE_SIZE.
    pub fn set_peer_limit(&mut self, bytes: u32) {
        self.hpack.set_peer_limit(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// The header block of `request`, and its size before compression.
    pub fn encode(&mut self, request: &Request) -> (&[u8], u32) {
        let Some(field) = &request.varying else { return self.encode_template(request) };
        let mut block = std::mem::take(&mut self.varied);
        block.clear();
        let (template, raw) = self.encode_template(request);
        block.extend_from_slice(template);
        self.hpack.literal(field.name.as_bytes(), field.value.as_bytes(), &mut block);
        self.varied = block;
        (&self.varied, raw.saturating_add(field.raw_bytes()))
    }

    fn encode_template(&mut self, request: &Request) -> (&[u8], u32) {
        let slot = usize::try_from(request.template).unwrap_or(usize::MAX);
        let generation = self.hpack.generation();
        let is_fresh = |kept: &Option<Kept>| kept.as_ref().is_some_and(|kept| kept.generation == generation);
        if !self.kept.get(slot).is_some_and(is_fresh) {
            self.scratch.clear();
            let raw = write_block(request, &mut self.hpack, &mut self.scratch);
            if self.hpack.generation() != generation {
                // The block inserted fields into the peer's table; sent again, it would insert them twice.
                return (&self.scratch, raw);
            }
            if !self.keep(slot, generation, raw) {
                return (&self.scratch, raw);
            }
        }
        match self.kept.get(slot) {
            Some(Some(kept)) => (&kept.block, kept.raw),
            _ => (&[], 0),
        }
    }

    /// Caches the block in `scratch`; `false` if that would exceed the limits.
    fn keep(&mut self, slot: usize, generation: u64, raw: u32) -> bool {
        let old = self.kept.get(slot).and_then(Option::as_ref).map_or(0, |kept| kept.block.len());
        let bytes = self.kept_bytes - old + self.scratch.len();
        if slot >= CACHED_TEMPLATES || bytes > CACHED_BYTES {
            return false;
        }
        self.kept_bytes = bytes;
        if self.kept.len() <= slot {
            self.kept.resize_with(slot + 1, || None);
        }
        let mut block = self.kept[slot].take().map_or_else(Vec::new, |kept| kept.block);
        block.clear();
        block.extend_from_slice(&self.scratch);
        self.kept[slot] = Some(Kept { generation, block, raw });
        true
    }
}

/// Encodes the block. As in browsers, all fields except the path and the body's length enter the table.
fn write_block(request: &Request, hpack: &mut Encoder, out: &mut Vec<u8>) -> u32 {
    hpack.begin(out);
    let mut raw = 0;
    let mut field = |name: &str, value: &str, indexing| {
        hpack.field(name.as_bytes(), value.as_bytes(), indexing, out);
        raw += name.len() + value.len();
    };
    field(":method", &request.method, Indexing::Incremental);
    field(":authority", &request.authority, Indexing::Incremental);
    field(":scheme", &request.scheme, Indexing::Incremental);
    field(":path", &request.path, Indexing::Without);
    for (name, value) in &request.fields {
        field(name, value, Indexing::Incremental);
    }
    if announces_length(request) {
        field("content-length", &request.body.len().to_string(), Indexing::Without);
    }
    u32::try_from(raw).unwrap_or(u32::MAX)
}

/// Appends a block as HEADERS and, if it exceeds a frame, CONTINUATION; returns the number of bytes.
pub fn write_headers(block: &[u8], stream: u32, end_stream: bool, max_frame: u32, out: &mut Vec<u8>) -> u32 {
    let before = out.len();
    let mut rest = block;
    let mut kind = kind::HEADERS;
    loop {
        let length = u32::try_from(rest.len()).unwrap_or(u32::MAX).min(max_frame);
        let (fragment, more) = rest.split_at(length as usize);
        let end_headers = if more.is_empty() { flag::END_HEADERS } else { 0 };
        let end_stream = if end_stream && kind == kind::HEADERS { flag::END_STREAM } else { 0 };
        FrameHeader { length, kind, flags: end_headers | end_stream, stream }.write(out);
        out.extend_from_slice(fragment);
        if more.is_empty() {
            return u32::try_from(out.len() - before).unwrap_or(u32::MAX);
        }
        rest = more;
        kind = kind::CONTINUATION;
    }
}
