//! The sending half of QPACK: field sections, insertions, and the feedback of the peer's decoder.

use std::collections::VecDeque;

use super::QpackError;
use super::instruction::{DecoderInstruction, EncoderInstruction, write_shortest};
use super::prefix::{self, Prefix};
use super::static_table::STATIC_TABLE;
use crate::dynamic_table::{DynamicTable, ENTRY_OVERHEAD_BYTES, Hashes};
use crate::prefix_integer;

/// Begins a field section that refers to no dynamic table (RFC 9204, section 4.5.1).
pub fn encode_prefix(output: &mut Vec<u8>) {
    output.extend_from_slice(&[0, 0]);
}

/// Appends a field line in the shortest form that needs no dynamic table; `name` in lower case.
pub fn encode_field(name: &[u8], value: &[u8], output: &mut Vec<u8>) {
    match find_static(name, value) {
        Some((index, true)) => prefix_integer::encode(index, 6, 0b1100_0000, output),
        Some((index, false)) => {
            prefix_integer::encode(index, 4, 0b0101_0000, output);
            write_shortest(value, 7, 0, output);
        }
        None => {
            write_shortest(name, 3, 0b0010_0000, output);
            write_shortest(value, 7, 0, output);
        }
    }
}

fn find_static(name: &[u8], value: &[u8]) -> Option<(u64, bool)> {
    let exact = STATIC_TABLE.iter().position(|entry| *entry == (name, value));
    let named = || STATIC_TABLE.iter().position(|entry| entry.0 == name);
    exact.map(|index| (index as u64, true)).or_else(|| named().map(|index| (index as u64, false)))
}

/// Sections with references that wait for their acknowledgement at most; beyond, none refers to the table.
const OUTSTANDING_LIMIT: usize = 4096;
/// An integer of 62 bits takes no more bytes.
const INSTRUCTION_LIMIT_BYTES: usize = 11;

/// Writes field sections, and inserts entries into the peer's table.
///
/// An entry that has not been acknowledged may make the peer wait, so it is used only by as many streams as
/// `blocked_limit` allows; 0 means that a section never waits.
#[derive(Debug)]
pub struct Encoder {
    /// The largest capacity to use, even if the peer allows more.
    capacity_limit: usize,
    blocked_limit: usize,
    /// From the peer's SETTINGS; 0 before.
    max_entries: u64,
    table: DynamicTable<Hashes>,
    /// Insertions so far: the absolute index of the next entry.
    inserts: u64,
    /// Insertions that the peer is known to have.
    known_received: u64,
    /// Sections that refer to the table and have not been acknowledged, oldest first.
    outstanding: VecDeque<Outstanding>,
    generation: u64,
    instructions: Vec<u8>,
    partial: Vec<u8>,
    lines: Vec<u8>,
}

/// What a section refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct References {
    /// Its Required Insert Count.
    pub required_inserts: u64,
    /// The oldest entry that it refers to, by absolute index.
    pub oldest: u64,
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    stream: u64,
    references: References,
}

/// Whether a field enters the dynamic table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// Later requests will repeat it.
    Insert,
    /// It is not expected to come again.
    Without,
}

/// A section in the making.
struct Draft {
    base: u64,
    references: Option<References>,
    may_refer: bool,
    may_block: bool,
}

impl Draft {
    fn refer(&mut self, absolute: u64) {
        let references = self.references.get_or_insert(References { required_inserts: 0, oldest: absolute });
        references.required_inserts = references.required_inserts.max(absolute + 1);
        references.oldest = references.oldest.min(absolute);
    }
}

impl Encoder {
    /// An encoder that uses at most `capacity_limit` bytes of table and lets `blocked_limit` streams wait.
    pub fn new(capacity_limit: usize, blocked_limit: usize) -> Self {
        Encoder {
            capacity_limit,
            blocked_limit,
            max_entries: 0,
            table: DynamicTable::new(0),
            inserts: 0,
            known_received: 0,
            outstanding: VecDeque::new(),
            generation: 0,
            instructions: Vec::new(),
            partial: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Applies the peer's SETTINGS, once: the largest table, in bytes, and how many streams may wait.
    pub fn set_peer_limits(&mut self, capacity: u64, blocked_streams: u64) {
        let used = usize::try_from(capacity).unwrap_or(usize::MAX).min(self.capacity_limit);
        self.blocked_limit = self.blocked_limit.min(usize::try_from(blocked_streams).unwrap_or(usize::MAX));
        if used >= ENTRY_OVERHEAD_BYTES && self.max_entries == 0 {
            self.max_entries = prefix::max_entries(capacity);
            self.table.set_capacity(used);
            EncoderInstruction::SetCapacity(used as u64).write(&mut self.instructions);
            self.generation += 1;
        }
    }

    /// A number that changes whenever a section could be shorter or must be encoded again.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Insertions so far, and those that the peer is known to have.
    pub fn inserts(&self) -> (u64, u64) {
        (self.inserts, self.known_received)
    }

    /// Appends a field section; names in lower case. If it refers to the table, call [`Encoder::track`] for
    /// every stream that it is sent on.
    pub fn encode<'f>(
        &mut self,
        stream: u64,
        fields: impl IntoIterator<Item = (&'f [u8], &'f [u8], Indexing)>,
        output: &mut Vec<u8>,
    ) -> Option<References> {
        let mut draft = Draft {
            base: self.inserts,
            references: None,
            may_refer: self.max_entries > 0 && self.outstanding.len() < OUTSTANDING_LIMIT,
            may_block: self.may_block(stream),
        };
        self.lines.clear();
        for (name, value, indexing) in fields {
            self.field(name, value, indexing, &mut draft);
        }
        let required_inserts = draft.references.map_or(0, |references| references.required_inserts);
        // Without a reference the base has no meaning, and 0 is shortest.
        let base = if required_inserts == 0 { 0 } else { draft.base };
        Prefix { required_inserts, base }.write(self.max_entries, output);
        output.extend_from_slice(&self.lines);
        draft.references
    }

    /// Notes that a section with these references was sent on a stream.
    #[inline]
    pub fn track(&mut self, stream: u64, references: References) {
        self.outstanding.push_back(Outstanding { stream, references });
    }

    /// Whether another section that refers to the table may be sent now.
    #[inline]
    pub fn may_refer(&self) -> bool {
        self.outstanding.len() < OUTSTANDING_LIMIT
    }

    /// Moves the instructions for the encoder stream to the end of `output`.
    pub fn poll_instructions(&mut self, output: &mut Vec<u8>) {
        output.append(&mut self.instructions);
    }

    /// Handles the instructions of the peer's decoder stream (RFC 9204, section 4.4).
    ///
    /// # Errors
    /// [`QpackError`]: a connection error of type QPACK_DECODER_STREAM_ERROR.
    pub fn handle_feedback(&mut self, bytes: &[u8]) -> Result<(), QpackError> {
        let mut input = std::mem::take(&mut self.partial);
        let bytes = if input.is_empty() {
            bytes
        } else {
            input.extend_from_slice(bytes);
            &input
        };
        let mut position = 0;
        while let Some((instruction, length)) = DecoderInstruction::parse(&bytes[position..])? {
            position += length;
            self.apply(instruction)?;
        }
        debug_assert!(bytes.len() - position < INSTRUCTION_LIMIT_BYTES);
        self.partial = bytes[position..].to_vec();
        Ok(())
    }

    fn apply(&mut self, instruction: DecoderInstruction) -> Result<(), QpackError> {
        match instruction {
            DecoderInstruction::SectionAcknowledgment(stream) => {
                let at = self.outstanding.iter().position(|section| section.stream == stream);
                let section = at.and_then(|at| self.outstanding.remove(at));
                let section = section.ok_or(QpackError::Acknowledgment(stream))?;
                self.receive(section.references.required_inserts);
            }
            DecoderInstruction::StreamCancellation(stream) => {
                self.outstanding.retain(|section| section.stream != stream);
            }
            DecoderInstruction::InsertCountIncrement(increment) => {
                let unknown = self.inserts - self.known_received;
                if increment == 0 || increment > unknown {
                    return Err(QpackError::Increment { found: increment, limit: unknown });
                }
                self.receive(self.known_received + increment);
            }
        }
        Ok(())
    }

    fn receive(&mut self, inserts: u64) {
        if inserts > self.known_received {
            self.known_received = inserts;
            self.generation += 1;
        }
    }

    /// Whether a section on `stream` may refer to entries that the peer may not have yet.
    fn may_block(&self, stream: u64) -> bool {
        if self.blocked_limit == 0 {
            return false;
        }
        let waits = |section: &&Outstanding| section.references.required_inserts > self.known_received;
        let mut streams: Vec<u64> = self.outstanding.iter().filter(waits).map(|it| it.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        streams.len() < self.blocked_limit || streams.binary_search(&stream).is_ok()
    }

    fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing, draft: &mut Draft) {
        let in_static = find_static(name, value);
        if !draft.may_refer || matches!(in_static, Some((_, true))) {
            return encode_field(name, value, &mut self.lines);
        }
        let hashes = Hashes::of(name, value);
        let found = self.table.find(name, value, hashes);
        let absolute = |position: usize| self.inserts - 1 - position as u64;
        let is_usable = |absolute: &u64| draft.may_block || *absolute < self.known_received;
        if let Some((position, true)) = found {
            return match Some(absolute(position)).filter(is_usable) {
                Some(absolute) => self.write_indexed(absolute, draft),
                None => encode_field(name, value, &mut self.lines),
            };
        }
        let dynamic_name = found.map(|(position, _)| absolute(position)).filter(is_usable);
        if indexing == Indexing::Insert && self.has_room_for(name.len() + value.len(), draft) {
            let absolute = self.insert(name, value, hashes, in_static.map(|(index, _)| index));
            if draft.may_block {
                return self.write_indexed(absolute, draft);
            }
            // The insertion may have evicted the entry that has the name.
            return encode_field(name, value, &mut self.lines);
        }
        match (in_static, dynamic_name) {
            (None, Some(absolute)) => {
                draft.refer(absolute);
                match draft.base.checked_sub(absolute + 1) {
                    Some(relative) => prefix_integer::encode(relative, 4, 0b0100_0000, &mut self.lines),
                    None => prefix_integer::encode(absolute - draft.base, 3, 0, &mut self.lines),
                }
                write_shortest(value, 7, 0, &mut self.lines);
            }
            _ => encode_field(name, value, &mut self.lines),
        }
    }

    fn write_indexed(&mut self, absolute: u64, draft: &mut Draft) {
        draft.refer(absolute);
        match draft.base.checked_sub(absolute + 1) {
            Some(relative) => prefix_integer::encode(relative, 6, 0b1000_0000, &mut self.lines),
            None => prefix_integer::encode(absolute - draft.base, 4, 0b0001_0000, &mut self.lines),
        }
    }

    /// Whether an entry can be inserted: what it evicts must be acknowledged and referred to by no section on
    /// its way (RFC 9204, section 2.1.1). One that would push out most of the table costs more than it saves.
    fn has_room_for(&self, field_bytes: usize, draft: &Draft) -> bool {
        let (size, capacity) = (field_bytes + ENTRY_OVERHEAD_BYTES, self.table.capacity());
        if size > capacity / 2 {
            return false;
        }
        let oldest_used = self.outstanding.iter().map(|section| section.references.oldest).min();
        let oldest_here = draft.references.map(|references| references.oldest);
        let kept_from = [oldest_used, oldest_here, Some(self.known_received)].into_iter().flatten().min();
        let mut excess = (self.table.size() + size).saturating_sub(capacity);
        for position in (0..self.table.len()).rev() {
            if excess == 0 {
                return true;
            }
            let Some((name, value, _)) = self.table.get(position) else { return false };
            if Some(self.inserts - 1 - position as u64) >= kept_from {
                return false;
            }
            excess = excess.saturating_sub(name.len() + value.len() + ENTRY_OVERHEAD_BYTES);
        }
        excess == 0
    }

    /// Inserts a field and writes the instruction; returns its absolute index.
    fn insert(&mut self, name: &[u8], value: &[u8], hashes: Hashes, static_name: Option<u64>) -> u64 {
        let output = &mut self.instructions;
        match static_name {
            Some(index) => prefix_integer::encode(index, 6, 0b1100_0000, output),
            None => write_shortest(name, 5, 0b0100_0000, output),
        }
        write_shortest(value, 7, 0, output);
        self.table.insert(name, value, hashes);
        self.inserts += 1;
        self.generation += 1;
        self.inserts - 1
    }
}
