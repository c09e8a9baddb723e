//! The types of unidirectional streams (RFC 9114, section 6.2; RFC 9204, section 4.2).

use std::fmt;

use super::frame::decode_integer;

/// The types as they begin a stream; each is a variable-length integer of one byte.
pub const CONTROL: u8 = 0x00;
/// A stream of a server push.
pub const PUSH: u8 = 0x01;
/// The instructions of a QPACK encoder.
pub const QPACK_ENCODER: u8 = 0x02;
/// The feedback of a QPACK decoder.
pub const QPACK_DECODER: u8 = 0x03;

/// The type of a peer's unidirectional stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// The type is not complete yet.
    Incomplete {
        /// What arrived of it.
        bytes: [u8; 8],
        /// How much arrived of it.
        length: usize,
    },
    /// The control stream.
    Control,
    /// A server push.
    Push,
    /// The QPACK encoder's stream.
    QpackEncoder,
    /// The QPACK decoder's stream.
    QpackDecoder,
    /// A type without a meaning.
    Unknown,
}

impl StreamKind {
    /// The kind of a stream that begins.
    pub const NEW: StreamKind = StreamKind::Incomplete { bytes: [0; 8], length: 0 };

    /// Consumes the missing bytes of the stream's type and leaves what follows. Returns whether this
    /// completed the type.
    pub fn read(&mut self, input: &mut &[u8]) -> bool {
        while let (StreamKind::Incomplete { mut bytes, mut length }, Some((byte, rest))) =
            (*self, input.split_first())
        {
            *input = rest;
            bytes[length] = *byte;
            length += 1;
            let Some((kind, _)) = decode_integer(&bytes[..length]) else {
                *self = StreamKind::Incomplete { bytes, length };
                continue;
            };
            *self = match u8::try_from(kind) {
                Ok(CONTROL) => StreamKind::Control,
                Ok(PUSH) => StreamKind::Push,
                Ok(QPACK_ENCODER) => StreamKind::QpackEncoder,
                Ok(QPACK_DECODER) => StreamKind::QpackDecoder,
                _ => StreamKind::Unknown,
            };
            return true;
        }
        false
    }

    /// Whether there is one stream of this kind, which must stay open.
    pub const fn is_critical(self) -> bool {
        matches!(self, StreamKind::Control | StreamKind::QpackEncoder | StreamKind::QpackDecoder)
    }
}

impl fmt::Display for StreamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StreamKind::Incomplete { .. } => "incomplete",
            StreamKind::Control => "control",
            StreamKind::Push => "push",
            StreamKind::QpackEncoder => "QPACK encoder",
            StreamKind::QpackDecoder => "QPACK decoder",
            StreamKind::Unknown => "unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_may_arrive_in_pieces() {
        // 0x21 in the longest form of an integer (RFC 9000, section 16), then the stream's content.
        let bytes = [0xc0, 0, 0, 0, 0, 0, 0, 0x21, 7];
        for cut in 0..=7 {
            let mut kind = StreamKind::NEW;
            let mut input = &bytes[..cut];
            assert!(!kind.read(&mut input) && input.is_empty(), "{cut}");
            let mut input = &bytes[cut..];
            assert!(kind.read(&mut input), "{cut}");
            assert_eq!((kind, input), (StreamKind::Unknown, &[7][..]));
            assert!(!kind.read(&mut input), "a complete type takes nothing");
            assert_eq!(input, [7]);
        }
        for (byte, expected) in [
            (CONTROL, StreamKind::Control),
            (PUSH, StreamKind::Push),
            (QPACK_ENCODER, StreamKind::QpackEncoder),
            (QPACK_DECODER, StreamKind::QpackDecoder),
        ] {
            let mut kind = StreamKind::NEW;
            assert!(kind.read(&mut &[byte][..]));
            assert_eq!((kind, kind.is_critical()), (expected, byte != PUSH));
        }
    }
}
