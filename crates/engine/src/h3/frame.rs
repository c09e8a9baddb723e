//! Frames of HTTP/3 (RFC 9114, section 7) and the variable-length integers of QUIC (RFC 9000, section 16).

/// DATA.
pub const DATA: u64 = 0x00;
/// HEADERS.
pub const HEADERS: u64 = 0x01;
/// CANCEL_PUSH.
pub const CANCEL_PUSH: u64 = 0x03;
/// SETTINGS.
pub const SETTINGS: u64 = 0x04;
/// PUSH_PROMISE.
pub const PUSH_PROMISE: u64 = 0x05;
/// GOAWAY.
pub const GOAWAY: u64 = 0x07;
/// MAX_PUSH_ID.
pub const MAX_PUSH_ID: u64 = 0x0d;

/// Type and length, each of at most 8 bytes.
const HEADER_BYTES: usize = 16;

/// Whether a type is one of HTTP/2's that HTTP/3 forbids (RFC 9114, section 7.2.8).
pub const fn is_forbidden(kind: u64) -> bool {
    matches!(kind, 0x02 | 0x06 | 0x08 | 0x09)
}

/// Reads an integer at the front of `input`: its value and length in bytes; `None` if it is incomplete.
#[inline]
pub fn decode_integer(input: &[u8]) -> Option<(u64, usize)> {
    let first = *input.first()?;
    let bytes = 1_usize << (first >> 6);
    let rest = input.get(1..bytes)?;
    let value = rest.iter().fold(u64::from(first & 0x3f), |value, byte| (value << 8) | u64::from(*byte));
    Some((value, bytes))
}

/// Appends an integer in its shortest form; only the low 62 bits count.
pub fn encode_integer(value: u64, output: &mut Vec<u8>) {
    let value = value & (u64::MAX >> 2);
    let (bytes, mark) = match value {
        0..0x40 => (1, 0),
        0x40..0x4000 => (2, 0x40),
        0x4000..0x4000_0000 => (4, 0x80),
        _ => (8, 0xc0),
    };
    let start = output.len();
    output.extend_from_slice(&value.to_be_bytes()[8 - bytes..]);
    output[start] |= mark;
}

/// Appends a frame's type and length.
pub fn encode_header(kind: u64, payload_bytes: u64, output: &mut Vec<u8>) {
    encode_integer(kind, output);
    encode_integer(payload_bytes, output);
}

/// Length of a frame's type and length in their shortest form.
pub const fn header_bytes(kind: u64, payload_bytes: u64) -> u64 {
    integer_bytes(kind) + integer_bytes(payload_bytes)
}

const fn integer_bytes(value: u64) -> u64 {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// A piece of a frame; a frame without payload is one empty piece that begins and ends it.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece<'i> {
    /// The frame's type.
    pub kind: u64,
    /// Length of the frame's payload.
    pub payload_bytes: u64,
    /// This part of it.
    pub bytes: &'i [u8],
    /// Whether it is the first.
    pub begins: bool,
    /// Whether it is the last.
    pub ends: bool,
}

/// Cuts a stream into frames; keeps only a header that arrives in parts.
#[derive(Debug, Default)]
pub struct FrameReader {
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    current: Option<Current>,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    kind: u64,
    payload_bytes: u64,
    missing_bytes: u64,
}

impl FrameReader {
    /// The next piece at the front of `input`, which is advanced; `None` if a header is incomplete.
    #[inline]
    pub fn next<'i>(&mut self, input: &mut &'i [u8]) -> Option<Piece<'i>> {
        if let Some(current) = self.current {
            return if input.is_empty() { None } else { Some(self.piece(current, false, input)) };
        }
        let (kind, payload_bytes) = self.read_header(input)?;
        Some(self.piece(Current { kind, payload_bytes, missing_bytes: payload_bytes }, true, input))
    }

    /// Whether the stream may end here.
    pub fn is_between_frames(&self) -> bool {
        self.current.is_none() && self.header_bytes == 0
    }

    fn piece<'i>(&mut self, current: Current, begins: bool, input: &mut &'i [u8]) -> Piece<'i> {
        let there = usize::try_from(current.missing_bytes).map_or(input.len(), |n| n.min(input.len()));
        let (bytes, rest) = input.split_at(there);
        *input = rest;
        let missing_bytes = current.missing_bytes - there as u64;
        let ends = missing_bytes == 0;
        self.current = if ends { None } else { Some(Current { missing_bytes, ..current }) };
        Piece { kind: current.kind, payload_bytes: current.payload_bytes, bytes, begins, ends }
    }

    fn read_header(&mut self, input: &mut &[u8]) -> Option<(u64, u64)> {
        if self.header_bytes == 0
            && let Some((kind, payload_bytes, length)) = parse_header(input)
        {
            *input = &input[length..];
            return Some((kind, payload_bytes));
        }
        while let Some((byte, rest)) = input.split_first() {
            *input = rest;
            self.header[self.header_bytes] = *byte;
            self.header_bytes += 1;
            if let Some((kind, payload_bytes, _)) = parse_header(&self.header[..self.header_bytes]) {
                self.header_bytes = 0;
                return Some((kind, payload_bytes));
            }
        }
        None
    }
}

#[inline]
fn parse_header(input: &[u8]) -> Option<(u64, u64, usize)> {
    let (kind, kind_bytes) = decode_integer(input)?;
    let (payload_bytes, length_bytes) = decode_integer(&input[kind_bytes..])?;
    Some((kind, payload_bytes, kind_bytes + length_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_integers_of_rfc_9000_appendix_a_1() {
        let cases: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in cases {
            assert_eq!(decode_integer(bytes), Some((value, bytes.len())));
            assert_eq!(decode_integer(&bytes[..bytes.len() - 1]), None);
        }
    }

    proptest! {
        #[test]
        fn integers_survive(value in 0_u64..1 << 62) {
            let mut bytes = Vec::new();
            encode_integer(value, &mut bytes);
            prop_assert_eq!(decode_integer(&bytes), Some((value, bytes.len())));
            prop_assert_eq!(bytes.len() as u64, integer_bytes(value));
        }

        #[test]
        fn frames_are_the_same_however_they_are_cut(
            frames in prop::collection::vec((0_u64..70_000, prop::collection::vec(any::<u8>(), 0..100)), 1..8),
            cuts in prop::collection::vec(1_usize..40, 1..40),
        ) {
            let mut stream = Vec::new();
            for (kind, payload) in &frames {
                encode_header(*kind, payload.len() as u64, &mut stream);
                stream.extend_from_slice(payload);
            }
            let mut reader = FrameReader::default();
            let mut found: Vec<(u64, Vec<u8>)> = Vec::new();
            let (mut rest, mut cuts) = (&stream[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (mut part, after) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                rest = after;
                while let Some(piece) = reader.next(&mut part) {
                    if piece.begins {
                        found.push((piece.kind, Vec::new()));
                    }
                    let last = found.last_mut().unwrap();
                    last.1.extend_from_slice(piece.bytes);
                    prop_assert_eq!(piece.ends, last.1.len() as u64 == piece.payload_bytes);
                }
            }
            prop_assert!(reader.is_between_frames());
            prop_assert_eq!(found, frames);
        }
    }
}
