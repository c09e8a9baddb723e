//! The instructions of the encoder stream and of the decoder stream (RFC 9204, sections 4.3 and 4.4).

use super::QpackError;
use crate::huffman;
use crate::prefix_integer::{self, PrefixIntegerError};

/// An instruction of an encoder about the dynamic table (RFC 9204, section 4.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncoderInstruction<'a> {
    /// Set Dynamic Table Capacity, in bytes.
    SetCapacity(u64),
    /// Insert with the name of an entry of the static table.
    InsertWithStaticName {
        /// The static index.
        index: u64,
        /// The value.
        value: Text<'a>,
    },
    /// Insert with the name of an entry of the dynamic table.
    InsertWithDynamicName {
        /// Relative to the newest entry.
        index: u64,
        /// The value.
        value: Text<'a>,
    },
    /// Insert with a literal name.
    InsertWithLiteralName {
        /// The name.
        name: Text<'a>,
        /// The value.
        value: Text<'a>,
    },
    /// Duplicate an entry, relative to the newest.
    Duplicate(u64),
}

/// An instruction of a decoder about sections and insertions (RFC 9204, section 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecoderInstruction {
    /// Section Acknowledgment: the stream.
    SectionAcknowledgment(u64),
    /// Stream Cancellation: the stream.
    StreamCancellation(u64),
    /// Insert Count Increment.
    InsertCountIncrement(u64),
}

/// A string in its encoded form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// Whether `bytes` are in the Huffman code.
    pub is_huffman: bool,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl<'a> Text<'a> {
    /// A string that is not Huffman-coded.
    pub const fn plain(bytes: &'a [u8]) -> Self {
        Text { is_huffman: false, bytes }
    }

    /// Its text: in place if it is plain, otherwise decoded into `memory`.
    #[inline]
    pub(super) fn decoded<'m>(&self, memory: &'m mut Vec<u8>) -> Result<&'m [u8], QpackError>
    where
        'a: 'm,
    {
        if !self.is_huffman {
            return Ok(self.bytes);
        }
        memory.clear();
        huffman::decode(self.bytes, memory)?;
        Ok(memory)
    }

    /// Reads a string whose Huffman bit is next to its length's prefix.
    #[inline]
    pub(super) fn read(input: &'a [u8], position: &mut usize, prefix_bits: u8) -> Result<Self, QpackError> {
        let mut behind = *position;
        let is_huffman = input.get(behind).is_some_and(|byte| byte & (1 << prefix_bits) != 0);
        let length = prefix_integer::decode(input, &mut behind, prefix_bits)?;
        let rest = &input[behind..];
        let bytes = usize::try_from(length).ok().and_then(|length| rest.get(..length));
        let bytes = bytes.ok_or(QpackError::ShortString { found: rest.len(), expected: length })?;
        *position = behind + bytes.len();
        Ok(Text { is_huffman, bytes })
    }

    /// Appends it unchanged; `flags` are the bits above the Huffman bit.
    pub(super) fn write(&self, prefix_bits: u8, flags: u8, output: &mut Vec<u8>) {
        let huffman_bit = u8::from(self.is_huffman) << prefix_bits;
        prefix_integer::encode(self.bytes.len() as u64, prefix_bits, flags | huffman_bit, output);
        output.extend_from_slice(self.bytes);
    }
}

/// Appends a string, Huffman-coded if that is shorter; the Huffman bit is next to the length's prefix.
pub(super) fn write_shortest(text: &[u8], prefix_bits: u8, flags: u8, output: &mut Vec<u8>) {
    let coded_bytes = huffman::encoded_len(text);
    if coded_bytes < text.len() {
        prefix_integer::encode(coded_bytes as u64, prefix_bits, flags | (1 << prefix_bits), output);
        huffman::encode(text, output);
    } else {
        Text::plain(text).write(prefix_bits, flags, output);
    }
}

impl<'a> EncoderInstruction<'a> {
    /// Reads the instruction at the front of `input`; its length in bytes. `None` if it is incomplete.
    /// `string_limit` is the longest string in bytes, so that waiting for a string ends.
    ///
    /// # Errors
    /// [`QpackError`]: a connection error of type QPACK_ENCODER_STREAM_ERROR.
    pub fn parse(input: &'a [u8], string_limit: u64) -> Result<Option<(Self, usize)>, QpackError> {
        match Self::parse_whole(input) {
            Ok(parsed) => Ok(Some(parsed)),
            Err(QpackError::ShortString { expected, .. }) if expected > string_limit => {
                Err(QpackError::LongString { found: expected, limit: string_limit })
            }
            Err(QpackError::ShortString { .. } | QpackError::Integer(PrefixIntegerError::Incomplete)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn parse_whole(input: &'a [u8]) -> Result<(Self, usize), QpackError> {
        let mut position = 0;
        let first = *input.first().ok_or(PrefixIntegerError::Incomplete)?;
        let instruction = if first & 0x80 != 0 {
            let index = prefix_integer::decode(input, &mut position, 6)?;
            let value = Text::read(input, &mut position, 7)?;
            if first & 0x40 != 0 {
                EncoderInstruction::InsertWithStaticName { index, value }
            } else {
                EncoderInstruction::InsertWithDynamicName { index, value }
            }
        } else if first & 0x40 != 0 {
            let name = Text::read(input, &mut position, 5)?;
            let value = Text::read(input, &mut position, 7)?;
            EncoderInstruction::InsertWithLiteralName { name, value }
        } else if first & 0x20 != 0 {
            EncoderInstruction::SetCapacity(prefix_integer::decode(input, &mut position, 5)?)
        } else {
            EncoderInstruction::Duplicate(prefix_integer::decode(input, &mut position, 5)?)
        };
        Ok((instruction, position))
    }

    /// Appends it.
    pub fn write(&self, output: &mut Vec<u8>) {
        match self {
            EncoderInstruction::SetCapacity(bytes) => prefix_integer::encode(*bytes, 5, 0x20, output),
            EncoderInstruction::InsertWithStaticName { index, value } => {
                prefix_integer::encode(*index, 6, 0xc0, output);
                value.write(7, 0, output);
            }
            EncoderInstruction::InsertWithDynamicName { index, value } => {
                prefix_integer::encode(*index, 6, 0x80, output);
                value.write(7, 0, output);
            }
            EncoderInstruction::InsertWithLiteralName { name, value } => {
                name.write(5, 0x40, output);
                value.write(7, 0, output);
            }
            EncoderInstruction::Duplicate(index) => prefix_integer::encode(*index, 5, 0, output),
        }
    }
}

impl DecoderInstruction {
    /// Reads the instruction at the front of `input`; its length in bytes. `None` if it is incomplete.
    ///
    /// # Errors
    /// [`QpackError`]: a connection error of type QPACK_DECODER_STREAM_ERROR.
    pub fn parse(input: &[u8]) -> Result<Option<(Self, usize)>, QpackError> {
        let Some(&first) = input.first() else { return Ok(None) };
        let prefix_bits = if first & 0x80 != 0 { 7 } else { 6 };
        let mut position = 0;
        let value = match prefix_integer::decode(input, &mut position, prefix_bits) {
            Ok(value) => value,
            Err(PrefixIntegerError::Incomplete) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let instruction = match first >> 6 {
            0 => DecoderInstruction::InsertCountIncrement(value),
            1 => DecoderInstruction::StreamCancellation(value),
            _ => DecoderInstruction::SectionAcknowledgment(value),
        };
        Ok(Some((instruction, position)))
    }

    /// Appends it.
    pub fn write(self, output: &mut Vec<u8>) {
        match self {
            DecoderInstruction::SectionAcknowledgment(stream) => {
                prefix_integer::encode(stream, 7, 0x80, output);
            }
            DecoderInstruction::StreamCancellation(stream) => {
                prefix_integer::encode(stream, 6, 0x40, output);
            }
            DecoderInstruction::InsertCountIncrement(count) => prefix_integer::encode(count, 6, 0, output),
        }
    }
}
