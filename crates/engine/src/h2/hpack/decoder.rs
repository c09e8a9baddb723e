//! Decoding header blocks (RFC 7541, sections 3 and 6).

use super::HpackError;
use super::static_table::STATIC_TABLE;
use crate::dynamic_table::DynamicTable;
use crate::field::{Meaning, Name, classify_name, classify_value};
use crate::huffman;
use crate::prefix_integer;

/// A decoded field; the slices live until the next field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name as sent.
    pub name: &'a [u8],
    /// The value as sent.
    pub value: &'a [u8],
    /// The meaning in a response.
    pub meaning: Meaning,
}

/// The decoder of one connection.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable<Known>,
    /// The largest size that the peer may choose.
    limit: usize,
    /// The limit fell below the table's size: the next block must start with an update.
    update_due: bool,
    /// Changes with the table: equal blocks in the same generation have equal fields.
    generation: u64,
    last: LastBlock,
    name: Vec<u8>,
    value: Vec<u8>,
}

/// The changes of the table by the last block.
#[derive(Debug, Default)]
struct LastBlock {
    number: u64,
    /// The block does not refer to the dynamic table or change its size: its meaning and effect are
    /// independent of the table.
    is_repeatable: bool,
    /// The inserted entries: lengths of names and values, which are concatenated in `bytes`.
    inserted: Vec<(usize, usize, Known)>,
    bytes: Vec<u8>,
}

/// The limit of insertions in a repeatable block, in bytes.
const REPEATABLE_BYTES: usize = 2048;

impl LastBlock {
    fn begin(&mut self) {
        self.number += 1;
        self.is_repeatable = true;
        self.inserted.clear();
        self.bytes.clear();
    }

    fn insert(&mut self, name: &[u8], value: &[u8], known: Known) {
        self.is_repeatable &= self.bytes.len() + name.len() + value.len() <= REPEATABLE_BYTES;
        if self.is_repeatable {
            self.bytes.extend_from_slice(name);
            self.bytes.extend_from_slice(value);
            self.inserted.push((name.len(), value.len(), known));
        }
    }
}

/// The meaning of an entry, which is computed once.
#[derive(Clone, Copy, Debug)]
struct Known {
    name: Name,
    meaning: Meaning,
}

/// The origin of a literal's name.
enum NameSource {
    Static(usize),
    Dynamic(usize),
    /// In the decoder's `name`, or in the block.
    Literal(StringAt),
}

/// The position of a string.
enum StringAt {
    Block(usize, usize),
    Scratch,
}

/// The size of the dynamic table before any update (RFC 9113, section 6.5.2).
pub const DEFAULT_TABLE_BYTES: usize = 4096;

impl Decoder {
    /// A decoder whose peer may use a table of up to `limit` bytes; the initial size is at most 4096.
    pub fn new(limit: usize) -> Self {
        Decoder {
            table: DynamicTable::new(DEFAULT_TABLE_BYTES.min(limit)),
            limit,
            update_due: false,
            generation: 0,
            last: LastBlock::default(),
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Sets the largest size that the peer may choose; call it after the peer's acknowledgement.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.update_due = limit < self.table.capacity();
        self.generation += 1;
    }

    /// A number that changes whenever an earlier block could decode to other fields.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The number of the last block, if [`Decoder::repeat`] can replace the decoding of an equal next block.
    #[inline]
    pub fn repeatable(&self) -> Option<u64> {
        self.last.is_repeatable.then_some(self.last.number)
    }

    /// Repeats the table changes of block `number`; `false`, without a change, if these are not known any
    /// more.
    ///
    /// Servers that do not search the table (nginx) send the same literals, to be inserted, with each
    /// response.
    pub fn repeat(&mut self, number: u64) -> bool {
        if self.repeatable() != Some(number) || self.update_due {
            return false;
        }
        let mut bytes = self.last.bytes.as_slice();
        for (name_length, value_length, known) in &self.last.inserted {
            let (name, rest) = bytes.split_at(*name_length);
            let (value, rest) = rest.split_at(*value_length);
            self.table.insert(name, value, *known);
            self.generation += 1;
            bytes = rest;
        }
        true
    }

    /// The dynamic table's size in bytes.
    pub fn table_size(&self) -> usize {
        self.table.size()
    }

    /// Decodes a complete block and passes each field on, in order.
    ///
    /// # Errors
    /// [`HpackError`]; the connection is unusable then, because the tables of both sides differ.
    pub fn decode(&mut self, block: &[u8], mut each: impl FnMut(Field<'_>)) -> Result<(), HpackError> {
        let mut position = 0;
        self.last.begin();
        while let Some(&byte) = block.get(position)
            && byte & 0xe0 == 0x20
        {
            self.last.is_repeatable = false;
            self.update_size(block, &mut position)?;
        }
        if self.update_due {
            return Err(HpackError::SizeMissing);
        }
        while let Some(&byte) = block.get(position) {
            if byte & 0x80 != 0 {
                let index = prefix_integer::decode(block, &mut position, 7)?;
                self.last.is_repeatable &= index <= STATIC_TABLE.len() as u64;
                each(self.indexed(index)?);
            } else if byte & 0x40 != 0 {
                each(self.literal(block, &mut position, 6, true)?);
            } else if byte & 0x20 == 0 {
                each(self.literal(block, &mut position, 4, false)?);
            } else {
                return Err(HpackError::SizeLate);
            }
        }
        Ok(())
    }

    fn update_size(&mut self, block: &[u8], position: &mut usize) -> Result<(), HpackError> {
        let size = prefix_integer::decode(block, position, 5)?;
        match usize::try_from(size) {
            Ok(capacity) if capacity <= self.limit => {
                self.table.set_capacity(capacity);
                self.generation += 1;
                self.update_due = false;
                Ok(())
            }
            _ => Err(HpackError::SizeTooLarge { size, limit: self.limit }),
        }
    }

    #[inline]
    fn indexed(&self, index: u64) -> Result<Field<'_>, HpackError> {
        match self.locate(index)? {
            NameSource::Static(position) => {
                let entry = &STATIC_TABLE[position];
                Ok(Field {
                    name: entry.name.as_bytes(),
                    value: entry.value.as_bytes(),
                    meaning: entry.meaning,
                })
            }
            NameSource::Dynamic(position) => match self.table.get(position) {
                Some((name, value, known)) => Ok(Field { name, value, meaning: known.meaning }),
                None => Err(self.no_such(index)),
            },
            NameSource::Literal(_) => Err(self.no_such(index)),
        }
    }

    /// The entry with an index (RFC 7541, section 2.3.3).
    #[inline]
    fn locate(&self, index: u64) -> Result<NameSource, HpackError> {
        let position = usize::try_from(index).ok().and_then(|index| index.checked_sub(1));
        match position {
            Some(position) if position < STATIC_TABLE.len() => Ok(NameSource::Static(position)),
            Some(position) if position - STATIC_TABLE.len() < self.table.len() => {
                Ok(NameSource::Dynamic(position - STATIC_TABLE.len()))
            }
            _ => Err(self.no_such(index)),
        }
    }

    #[cold]
    fn no_such(&self, index: u64) -> HpackError {
        HpackError::Index { index, entries: STATIC_TABLE.len() + self.table.len() }
    }

    /// A literal field with a prefix of `prefix_bits` for its name's index (RFC 7541, section 6.2).
    fn literal<'a>(
        &'a mut self,
        block: &'a [u8],
        position: &mut usize,
        prefix_bits: u8,
        insert: bool,
    ) -> Result<Field<'a>, HpackError> {
        let index = prefix_integer::decode(block, position, prefix_bits)?;
        self.last.is_repeatable &= index <= STATIC_TABLE.len() as u64;
        let source = if index == 0 {
            NameSource::Literal(read_string(block, position, &mut self.name)?)
        } else {
            self.locate(index)?
        };
        let value = read_string(block, position, &mut self.value)?;
        if insert { self.inserted(block, &source, &value) } else { self.passing(block, &source, &value) }
    }

    /// A literal without insertion.
    fn passing<'a>(
        &'a self,
        block: &'a [u8],
        source: &NameSource,
        value: &StringAt,
    ) -> Result<Field<'a>, HpackError> {
        let value = value.bytes(block, &self.value);
        let (name, kind) = match source {
            NameSource::Static(position) => {
                let entry = &STATIC_TABLE[*position];
                (entry.name.as_bytes(), entry.kind)
            }
            NameSource::Dynamic(position) => match self.table.get(*position) {
                Some((name, _, known)) => (name, known.name),
                None => return Err(self.no_such(*position as u64)),
            },
            NameSource::Literal(at) => {
                let name = at.bytes(block, &self.name);
                (name, classify_name(name))
            }
        };
        Ok(Field { name, value, meaning: classify_value(kind, value) })
    }

    /// A literal with insertion.
    fn inserted<'a>(
        &'a mut self,
        block: &'a [u8],
        source: &NameSource,
        value: &StringAt,
    ) -> Result<Field<'a>, HpackError> {
        self.generation += 1;
        let value = value.bytes(block, &self.value);
        let (name, kind) = match source {
            NameSource::Static(position) => {
                let entry = &STATIC_TABLE[*position];
                (entry.name.as_bytes(), entry.kind)
            }
            NameSource::Dynamic(position) => {
                let Some((name, _, known)) = self.table.get(*position) else {
                    return Err(self.no_such(*position as u64));
                };
                // The insertion may evict the entry whose name is used.
                self.name.clear();
                self.name.extend_from_slice(name);
                let meaning = classify_value(known.name, value);
                self.table.insert_with_name_of(*position, value, Known { name: known.name, meaning });
                return Ok(Field { name: &self.name, value, meaning });
            }
            NameSource::Literal(at) => {
                let name = at.bytes(block, &self.name);
                (name, classify_name(name))
            }
        };
        let meaning = classify_value(kind, value);
        let known = Known { name: kind, meaning };
        self.last.insert(name, value, known);
        self.table.insert(name, value, known);
        Ok(Field { name, value, meaning })
    }
}

impl StringAt {
    #[inline]
    fn bytes<'a>(&self, block: &'a [u8], scratch: &'a [u8]) -> &'a [u8] {
        match self {
            StringAt::Block(start, end) => &block[*start..*end],
            StringAt::Scratch => scratch,
        }
    }
}

/// Reads a string literal (RFC 7541, section 5.2): in place, or decoded into `scratch` if it is
/// Huffman-coded.
#[inline]
fn read_string(block: &[u8], position: &mut usize, scratch: &mut Vec<u8>) -> Result<StringAt, HpackError> {
    let is_huffman = block.get(*position).is_some_and(|byte| byte & 0x80 != 0);
    let length = prefix_integer::decode(block, position, 7)?;
    let left = block.len() - *position;
    let start = *position;
    let end = match usize::try_from(length) {
        Ok(length) if length <= left => start + length,
        _ => return Err(HpackError::StringTooLong { length, left }),
    };
    *position = end;
    if !is_huffman {
        return Ok(StringAt::Block(start, end));
    }
    scratch.clear();
    huffman::decode(&block[start..end], scratch)?;
    Ok(StringAt::Scratch)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A response as nginx encodes it: every field is a literal with insertion and a name of the static
    /// table.
    const LITERALS: &[u8] = b"\x88\x76\x05nginx\x61\x03Mon\x5c\x03128\x40\x03x-a\x01b";

    fn decoded(decoder: &mut Decoder, block: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut fields = Vec::new();
        decoder.decode(block, |field| fields.push((field.name.to_vec(), field.value.to_vec()))).unwrap();
        fields
    }

    /// The whole dynamic table, read through indices.
    fn table(decoder: &mut Decoder) -> Vec<(Vec<u8>, Vec<u8>)> {
        let entries = decoder.table.len();
        (0..entries)
            .flat_map(|entry| decoded(decoder, &[0x80 | (62 + u8::try_from(entry).unwrap())]))
            .collect()
    }

    #[test]
    fn a_repeated_block_leaves_the_table_that_decoding_it_again_leaves() {
        // Space for seven entries of about 42 bytes, so that repetitions evict.
        let (mut plain, mut repeating) = (Decoder::new(300), Decoder::new(300));
        decoded(&mut plain, LITERALS);
        decoded(&mut repeating, LITERALS);
        let number = repeating.repeatable().expect("the block has only literals");
        for _ in 0..5 {
            let before = repeating.generation();
            decoded(&mut plain, LITERALS);
            assert!(repeating.repeat(number));
            assert_ne!(
                repeating.generation(),
                before,
                "blocks that refer to the table must be decoded again"
            );
            assert_eq!(plain.table_size(), repeating.table_size());
        }
        assert_eq!(table(&mut plain), table(&mut repeating));
        assert_eq!(plain.table.len(), 7);
    }

    #[test]
    fn blocks_that_depend_on_the_table_are_not_repeatable() {
        let mut decoder = Decoder::new(300);
        decoded(&mut decoder, LITERALS);
        let first = decoder.repeatable().unwrap();
        for block in [b"\xbe".as_slice(), b"\x7e\x01c", b"\x0f\x2f\x01c", b"\x3f\x09\x88"] {
            decoded(&mut decoder, block);
            assert_eq!(decoder.repeatable(), None, "{block:x?}");
        }
        assert!(!decoder.repeat(first), "another block was decoded in between");
        decoded(&mut decoder, LITERALS);
        assert!(decoder.repeatable().is_some_and(|number| number != first));
        decoder.set_limit(39);
        assert!(!decoder.repeat(decoder.repeatable().unwrap()), "a size update is due");
    }
}
