//! The receiving half of QPACK: field sections, and the instructions of the peer's encoder.

use super::QpackError;
use super::instruction::{DecoderInstruction, EncoderInstruction, Text};
use super::prefix::{self, Prefix};
use super::static_table::STATIC_TABLE;
use crate::dynamic_table::{DynamicTable, ENTRY_OVERHEAD_BYTES};
use crate::prefix_integer;

/// The Huffman code's longest symbol has 30 bits, so that a string takes less than four times its length.
const HUFFMAN_EXPANSION: u64 = 4;
/// The most output that waits for the peer's flow control.
const FEEDBACK_LIMIT_BYTES: usize = 64 * 1024;

/// Reads field sections and the instructions of the peer's encoder; keeps its memory from one to the
/// next.
#[derive(Debug)]
pub struct Decoder {
    /// The largest capacity that the peer may set, as announced.
    capacity_limit: usize,
    /// How many streams may wait, as announced.
    blocked_limit: usize,
    table: DynamicTable<()>,
    /// Insertions so far: the absolute index of the next entry.
    inserts: u64,
    /// Insertions that were acknowledged to the peer.
    acknowledged: u64,
    /// An incomplete instruction.
    partial: Vec<u8>,
    /// Streams that wait, and the insertions that they wait for.
    blocked: Vec<(u64, u64)>,
    feedback: Vec<u8>,
    name: Vec<u8>,
    value: Vec<u8>,
}

/// The result of reading a field section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// All of it; it needed this many insertions.
    Whole {
        /// The Required Insert Count.
        required_inserts: u64,
    },
    /// Nothing: it needs insertions that have not arrived. The stream counts as blocked.
    Blocked,
}

impl Decoder {
    /// A decoder that announced a table of `capacity_limit` bytes, for which `blocked_limit` streams may
    /// wait.
    pub fn new(capacity_limit: usize, blocked_limit: usize) -> Self {
        Decoder {
            capacity_limit,
            blocked_limit,
            table: DynamicTable::new(0),
            inserts: 0,
            acknowledged: 0,
            partial: Vec::new(),
            blocked: Vec::new(),
            feedback: Vec::new(),
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Insertions so far.
    pub fn inserts(&self) -> u64 {
        self.inserts
    }

    /// The dynamic table's size in bytes.
    pub fn table_size(&self) -> usize {
        self.table.size()
    }

    /// Reads an encoded field section (RFC 9204, section 4.5) and shows its fields in order.
    ///
    /// # Errors
    /// [`QpackError`]: a connection error of type QPACK_DECOMPRESSION_FAILED.
    pub fn section(
        &mut self,
        stream: u64,
        section: &[u8],
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<Section, QpackError> {
        let mut position = 0;
        let prefix = Prefix::read(section, &mut position, self.max_entries(), self.inserts)?;
        let required_inserts = prefix.required_inserts;
        if required_inserts > self.inserts {
            return self.block(stream, required_inserts);
        }
        while let Some(&first) = section.get(position) {
            let (entry_bits, is_static, is_post_base) = match first {
                0x80.. => (6, first & 0x40 != 0, false),
                0x40..0x80 => (4, first & 0x10 != 0, false),
                0x20..0x40 => {
                    let name = Text::read(section, &mut position, 3)?;
                    let value = Text::read(section, &mut position, 7)?;
                    field(name.decoded(&mut self.name)?, value.decoded(&mut self.value)?);
                    continue;
                }
                0x10..0x20 => (4, false, true),
                0x00..0x10 => (3, false, true),
            };
            let index = prefix_integer::decode(section, &mut position, entry_bits)?;
            let (name, entry_value) = if is_static {
                static_entry(index)?
            } else {
                let absolute = prefix.absolute(index, is_post_base);
                dynamic_entry(&self.table, self.inserts, absolute, required_inserts)?
            };
            if first & 0x80 != 0 || first & 0xf0 == 0x10 {
                field(name, entry_value);
            } else {
                let value = Text::read(section, &mut position, 7)?;
                // The table and the memory for the value are different fields of `self`.
                field(name, value.decoded(&mut self.value)?);
            }
        }
        self.acknowledge(stream, required_inserts)?;
        Ok(Section::Whole { required_inserts })
    }

    /// Acknowledges a section that needed this many insertions; does nothing if it needed none.
    ///
    /// # Errors
    /// [`QpackError::Feedback`] if the peer's flow control blocks too many acknowledgements.
    #[inline]
    pub fn acknowledge(&mut self, stream: u64, required_inserts: u64) -> Result<(), QpackError> {
        if required_inserts == 0 {
            return Ok(());
        }
        DecoderInstruction::SectionAcknowledgment(stream).write(&mut self.feedback);
        self.acknowledged = self.acknowledged.max(required_inserts);
        self.check_feedback()
    }

    /// Tells the peer that a stream's sections will not be read (RFC 9204, section 2.2.2.2).
    pub fn cancel(&mut self, stream: u64) {
        self.blocked.retain(|(blocked, _)| *blocked != stream);
        if self.capacity_limit > 0 && self.feedback.len() < FEEDBACK_LIMIT_BYTES {
            DecoderInstruction::StreamCancellation(stream).write(&mut self.feedback);
        }
    }

    /// A stream that waits no longer, if any.
    pub fn poll_unblocked(&mut self) -> Option<u64> {
        let at = self.blocked.iter().position(|(_, required)| *required <= self.inserts)?;
        Some(self.blocked.swap_remove(at).0)
    }

    /// How many streams wait.
    pub fn blocked_streams(&self) -> usize {
        self.blocked.len()
    }

    /// Handles the instructions of the peer's encoder stream (RFC 9204, section 4.3).
    ///
    /// # Errors
    /// [`QpackError`]: a connection error of type QPACK_ENCODER_STREAM_ERROR.
    pub fn handle_instructions(&mut self, bytes: &[u8]) -> Result<(), QpackError> {
        let string_limit = self.capacity_limit as u64 * HUFFMAN_EXPANSION;
        if self.partial.is_empty() {
            let consumed = self.apply_all(bytes, string_limit)?;
            self.partial.extend_from_slice(&bytes[consumed..]);
        } else {
            let mut input = std::mem::take(&mut self.partial);
            input.extend_from_slice(bytes);
            let consumed = self.apply_all(&input, string_limit)?;
            input.drain(..consumed);
            self.partial = input;
        }
        Ok(())
    }

    /// Moves the instructions for the decoder stream to the end of `output`.
    pub fn poll_feedback(&mut self, output: &mut Vec<u8>) {
        if self.acknowledged < self.inserts {
            let increment = self.inserts - self.acknowledged;
            DecoderInstruction::InsertCountIncrement(increment).write(&mut self.feedback);
            self.acknowledged = self.inserts;
        }
        output.append(&mut self.feedback);
    }

    fn max_entries(&self) -> u64 {
        prefix::max_entries(self.capacity_limit as u64)
    }

    fn block(&mut self, stream: u64, required_inserts: u64) -> Result<Section, QpackError> {
        if self.blocked.len() >= self.blocked_limit {
            return Err(QpackError::TooManyBlocked { limit: self.blocked_limit });
        }
        self.blocked.push((stream, required_inserts));
        Ok(Section::Blocked)
    }

    fn check_feedback(&self) -> Result<(), QpackError> {
        if self.feedback.len() > FEEDBACK_LIMIT_BYTES {
            return Err(QpackError::Feedback { limit: FEEDBACK_LIMIT_BYTES });
        }
        Ok(())
    }

    fn apply_all(&mut self, bytes: &[u8], string_limit: u64) -> Result<usize, QpackError> {
        let mut consumed = 0;
        while consumed < bytes.len() {
            let Some((instruction, length)) = EncoderInstruction::parse(&bytes[consumed..], string_limit)?
            else {
                break;
            };
            self.apply(&instruction)?;
            consumed += length;
        }
        Ok(consumed)
    }

    fn apply(&mut self, instruction: &EncoderInstruction<'_>) -> Result<(), QpackError> {
        match instruction {
            EncoderInstruction::SetCapacity(capacity) => {
                let limit = self.capacity_limit;
                let allowed = usize::try_from(*capacity).ok().filter(|capacity| *capacity <= limit);
                let capacity = allowed.ok_or(QpackError::Capacity { found: *capacity, limit })?;
                self.table.set_capacity(capacity);
                return Ok(());
            }
            EncoderInstruction::InsertWithStaticName { index, value } => {
                let (name, _) = static_entry(*index)?;
                let value = value.decoded(&mut self.value)?;
                check_size(name.len(), value, self.table.capacity())?;
                self.table.insert(name, value, ());
            }
            EncoderInstruction::InsertWithDynamicName { index, value } => {
                let (position, name, _) = self.relative(*index)?;
                let name_bytes = name.len();
                let value = value.decoded(&mut self.value)?;
                check_size(name_bytes, value, self.table.capacity())?;
                self.table.insert_with_name_of(position, value, ());
            }
            EncoderInstruction::InsertWithLiteralName { name, value } => {
                let name = name.decoded(&mut self.name)?;
                let value = value.decoded(&mut self.value)?;
                check_size(name.len(), value, self.table.capacity())?;
                self.table.insert(name, value, ());
            }
            EncoderInstruction::Duplicate(index) => {
                let (position, _, value) = self.relative(*index)?;
                let value = value.to_vec();
                self.table.insert_with_name_of(position, &value, ());
            }
        }
        self.inserts += 1;
        Ok(())
    }

    /// The entry with an index relative to the newest: its place, name and value.
    fn relative(&self, index: u64) -> Result<(usize, &[u8], &[u8]), QpackError> {
        let position = usize::try_from(index).unwrap_or(usize::MAX);
        match self.table.get(position) {
            Some((name, value, ())) => Ok((position, name, value)),
            None => Err(QpackError::RelativeIndex { index, entries: self.table.len() }),
        }
    }
}

#[inline]
fn static_entry(index: u64) -> Result<(&'static [u8], &'static [u8]), QpackError> {
    let entry = usize::try_from(index).ok().and_then(|index| STATIC_TABLE.get(index));
    entry.copied().ok_or(QpackError::StaticIndex(index))
}

/// The entry with an absolute index, which a section may refer to where it is below what the section
/// requires.
#[inline]
fn dynamic_entry(
    table: &DynamicTable<()>,
    inserts: u64,
    absolute: Option<u64>,
    required: u64,
) -> Result<(&[u8], &[u8]), QpackError> {
    let entry = absolute.filter(|absolute| *absolute < required).and_then(|absolute| {
        let position = usize::try_from(inserts - 1 - absolute).ok()?;
        table.get(position)
    });
    let (name, value, ()) = entry.ok_or(QpackError::DynamicReference)?;
    Ok((name, value))
}

/// An entry larger than the table is an error (RFC 9204, section 3.2.2).
fn check_size(name_bytes: usize, value: &[u8], capacity: usize) -> Result<(), QpackError> {
    let found = name_bytes + value.len() + ENTRY_OVERHEAD_BYTES;
    if found > capacity { Err(QpackError::LargeEntry { found, capacity }) } else { Ok(()) }
}
