//! The receiving half of QPACK: field sections, and the instructions of the peer's encoder.

use super::QpackError;
use super::static_table::STATIC_TABLE;
use crate::{huffman, prefix_integer};

/// Reads field sections, and what the peer's encoder says about its table; keeps its memory from one to the next.
#[derive(Debug, Default)]
pub struct Decoder {
    name: Vec<u8>,
    value: Vec<u8>,
}

/// A string that is there as it is, or was decoded into the decoder's memory.
enum Text<'s> {
    Plain(&'s [u8]),
    Decoded,
}

impl Decoder {
    /// Reads an encoded field section (RFC 9204, section 4.5) and shows its fields in order.
    ///
    /// # Errors
    /// [`QpackError`]: a connection error of type QPACK_DECOMPRESSION_FAILED.
    pub fn section(&mut self, section: &[u8], mut field: impl FnMut(&[u8], &[u8])) -> Result<(), QpackError> {
        let mut position = 0;
        let required_inserts = prefix_integer::decode(section, &mut position, 8)?;
        let base_is_lower = section.get(position).is_some_and(|byte| byte & 0x80 != 0);
        prefix_integer::decode(section, &mut position, 7)?;
        if required_inserts != 0 || base_is_lower {
            return Err(QpackError::DynamicReference);
        }
        while let Some(&first) = section.get(position) {
            if first & 0x80 != 0 {
                let (name, value) = static_entry(first & 0x40 != 0, section, &mut position, 6)?;
                field(name, value);
            } else if first & 0x40 != 0 {
                let (name, _) = static_entry(first & 0x10 != 0, section, &mut position, 4)?;
                let value = string(section, &mut position, 7, &mut self.value)?;
                field(name, chosen(&value, &self.value));
            } else if first & 0x20 != 0 {
                let name = string(section, &mut position, 3, &mut self.name)?;
                let value = string(section, &mut position, 7, &mut self.value)?;
                field(chosen(&name, &self.name), chosen(&value, &self.value));
            } else {
                return Err(QpackError::DynamicReference);
            }
        }
        Ok(())
    }

    /// Takes what the peer's encoder says on its stream (RFC 9204, section 4.3); `Set Dynamic Table Capacity` to 0 is
    /// the one instruction that a capacity of 0 allows.
    ///
    /// # Errors
    /// [`QpackError::Instruction`]: a connection error of type QPACK_ENCODER_STREAM_ERROR.
    pub fn handle_instructions(&mut self, bytes: &[u8]) -> Result<(), QpackError> {
        const SET_CAPACITY_0: u8 = 0x20;
        match bytes.iter().find(|byte| **byte != SET_CAPACITY_0) {
            Some(byte) => Err(QpackError::Instruction(*byte)),
            None => Ok(()),
        }
    }
}

#[inline]
fn static_entry(
    is_static: bool,
    section: &[u8],
    position: &mut usize,
    prefix_bits: u8,
) -> Result<(&'static [u8], &'static [u8]), QpackError> {
    if !is_static {
        return Err(QpackError::DynamicReference);
    }
    let index = prefix_integer::decode(section, position, prefix_bits)?;
    let entry = usize::try_from(index).ok().and_then(|index| STATIC_TABLE.get(index));
    entry.copied().ok_or(QpackError::StaticIndex(index))
}

/// A string whose Huffman bit stands right above its length's prefix.
#[inline]
fn string<'s>(
    section: &'s [u8],
    position: &mut usize,
    prefix_bits: u8,
    memory: &mut Vec<u8>,
) -> Result<Text<'s>, QpackError> {
    let is_huffman = section.get(*position).is_some_and(|byte| byte & (1 << prefix_bits) != 0);
    let length = prefix_integer::decode(section, position, prefix_bits)?;
    let rest = &section[*position..];
    let bytes = usize::try_from(length).ok().and_then(|length| rest.get(..length));
    let bytes = bytes.ok_or(QpackError::ShortString { found: rest.len(), expected: length })?;
    *position += bytes.len();
    if !is_huffman {
        return Ok(Text::Plain(bytes));
    }
    memory.clear();
    huffman::decode(bytes, memory)?;
    Ok(Text::Decoded)
}

fn chosen<'a>(text: &Text<'a>, memory: &'a [u8]) -> &'a [u8] {
    match text {
        Text::Plain(bytes) => bytes,
        Text::Decoded => memory,
    }
}
