//! Encoding header blocks (RFC 7541, sections 4.2 and 6).

use super::static_table;
use crate::dynamic_table::{DynamicTable, ENTRY_OVERHEAD_BYTES, Hashes};
use crate::huffman;
use crate::prefix_integer;

/// Whether a field enters the dynamic table (RFC 7541, section 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// Later requests repeat it.
    Incremental,
    /// Later requests probably do not repeat it.
    Without,
    /// Intermediaries must not index it either (RFC 7541, section 7.1.3).
    Never,
}

/// The encoder of one connection.
#[derive(Debug)]
pub struct Encoder {
    /// Each entry's tag is a hash of name and value, which makes a search cheap.
    table: DynamicTable<Hashes>,
    /// The smallest and the latest size that the peer set since the last block.
    pending_size: Option<(usize, usize)>,
    generation: u64,
    huffman: bool,
}

/// The largest table that the encoder uses.
pub const ENCODER_TABLE_LIMIT_BYTES: usize = 16_384;

impl Encoder {
    /// An encoder with a table of `capacity` bytes; the initial size is 4096, as in the RFC.
    pub fn new(capacity: usize) -> Self {
        Encoder { table: DynamicTable::new(capacity), pending_size: None, generation: 0, huffman: true }
    }

    /// The same without Huffman coding.
    pub fn without_huffman(capacity: usize) -> Self {
        Encoder { huffman: false, ..Encoder::new(capacity) }
    }

    /// A number that changes whenever earlier blocks cannot be sent again unchanged.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Takes the peer's SETTINGS_HEADER_TABLE_SIZE; the next block starts with an update (RFC 7541, section
    /// 4.2).
    pub fn set_peer_limit(&mut self, limit: usize) {
        let size = limit.min(ENCODER_TABLE_LIMIT_BYTES);
        let smallest = self.pending_size.map_or(size, |(smallest, _)| smallest.min(size));
        if self.pending_size.is_some() || size != self.table.capacity() {
            self.pending_size = Some((smallest, size));
            self.generation += 1;
        }
    }

    /// Starts a block: appends due size updates.
    pub fn begin(&mut self, output: &mut Vec<u8>) {
        let Some((smallest, last)) = self.pending_size.take() else { return };
        if smallest < last {
            prefix_integer::encode(smallest as u64, 5, 0x20, output);
            self.table.set_capacity(smallest);
        }
        prefix_integer::encode(last as u64, 5, 0x20, output);
        self.table.set_capacity(last);
        self.generation += 1;
    }

    /// Appends one field.
    pub fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing, output: &mut Vec<u8>) {
        let in_static = static_table::find(name, value);
        if let Some((index, true)) = in_static {
            return prefix_integer::encode(index as u64, 7, 0x80, output);
        }
        let hashes = Hashes::of(name, value);
        let behind_static =
            |(position, is_exact)| (position + 1 + static_table::STATIC_TABLE.len(), is_exact);
        let in_dynamic = self.table.find(name, value, hashes).map(behind_static);
        if let Some((index, true)) = in_dynamic
            && indexing != Indexing::Never
        {
            return prefix_integer::encode(index as u64, 7, 0x80, output);
        }
        let name_index = in_static.or(in_dynamic).map_or(0, |(index, _)| index as u64);
        // A field that would evict most of the table costs more than it saves.
        let size = name.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        let insert = indexing == Indexing::Incremental && size <= self.table.capacity() / 4 * 3;
        match indexing {
            Indexing::Incremental if insert => prefix_integer::encode(name_index, 6, 0x40, output),
            Indexing::Incremental | Indexing::Without => prefix_integer::encode(name_index, 4, 0, output),
            Indexing::Never => prefix_integer::encode(name_index, 4, 0x10, output),
        }
        if name_index == 0 {
            self.string(name, output);
        }
        self.string(value, output);
        if insert {
            self.table.insert(name, value, hashes);
            self.generation += 1;
        }
    }

    /// Appends a literal without search and insertion (RFC 7541, section 6.2.2).
    pub fn literal(&self, name: &[u8], value: &[u8], output: &mut Vec<u8>) {
        prefix_integer::encode(0, 4, 0, output);
        self.string(name, output);
        self.string(value, output);
    }

    fn string(&self, string: &[u8], output: &mut Vec<u8>) {
        let coded_length = huffman::encoded_len(string);
        if self.huffman && coded_length <= string.len() {
            prefix_integer::encode(coded_length as u64, 7, 0x80, output);
            huffman::encode(string, output);
        } else {
            prefix_integer::encode(string.len() as u64, 7, 0, output);
            output.extend_from_slice(string);
        }
    }
}
