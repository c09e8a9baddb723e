//! The sending half of QPACK: field sections, and the feedback of the peer's decoder.

use super::QpackError;
use super::static_table::STATIC_TABLE;
use crate::{huffman, prefix_integer};

/// Begins a field section that refers to no dynamic table (RFC 9204, section 4.5.1).
pub fn encode_prefix(output: &mut Vec<u8>) {
    output.extend_from_slice(&[0, 0]);
}

/// Appends a field line in its shortest form; `name` in lower case.
pub fn encode_field(name: &[u8], value: &[u8], output: &mut Vec<u8>) {
    let exact = STATIC_TABLE.iter().position(|entry| *entry == (name, value));
    let named = || STATIC_TABLE.iter().position(|entry| entry.0 == name);
    if let Some(index) = exact {
        prefix_integer::encode(index as u64, 6, 0b1100_0000, output);
    } else if let Some(index) = named() {
        prefix_integer::encode(index as u64, 4, 0b0101_0000, output);
        encode_string(value, 7, 0, output);
    } else {
        encode_string(name, 3, 0b0010_0000, output);
        encode_string(value, 7, 0, output);
    }
}

/// A string, Huffman-coded where that is shorter; the Huffman bit stands right above the length's prefix.
fn encode_string(text: &[u8], prefix_bits: u8, flags: u8, output: &mut Vec<u8>) {
    let coded_bytes = huffman::encoded_len(text);
    if coded_bytes < text.len() {
        prefix_integer::encode(coded_bytes as u64, prefix_bits, flags | (1 << prefix_bits), output);
        huffman::encode(text, output);
    } else {
        prefix_integer::encode(text.len() as u64, prefix_bits, flags, output);
        output.extend_from_slice(text);
    }
}

/// What the peer's decoder says on its stream (RFC 9204, section 4.4).
#[derive(Debug, Default)]
pub struct DecoderFeedback {
    /// Bytes so far of an integer that goes on; 0 between instructions.
    continued_bytes: u8,
}

impl DecoderFeedback {
    /// Takes instructions; `Stream Cancellation` is the one that an encoder without dynamic references may get.
    ///
    /// # Errors
    /// [`QpackError::Instruction`]: a connection error of type QPACK_DECODER_STREAM_ERROR.
    pub fn handle_instructions(&mut self, bytes: &[u8]) -> Result<(), QpackError> {
        /// A 62-bit integer takes no more bytes.
        const INTEGER_BYTES: u8 = 11;
        for &byte in bytes {
            self.continued_bytes = match (self.continued_bytes, byte) {
                (0, 0b0111_1111) => 1,
                (0, 0b0100_0000..0b0111_1111) => 0,
                (1..INTEGER_BYTES, 0b1000_0000..) => self.continued_bytes + 1,
                (1..INTEGER_BYTES, _) => 0,
                _ => return Err(QpackError::Instruction(byte)),
            };
        }
        Ok(())
    }
}
