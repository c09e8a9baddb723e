//! The dynamic table of HPACK (RFC 7541, section 2.3.2) and QPACK (RFC 9204, section 3.2).
//!
//! One buffer holds names and values, so that each is one slice. New entries are appended. When the buffer
//! has twice the table's size, the evicted bytes at its front are dropped: on average each byte is moved at
//! most once, and the steady state allocates nothing.

use std::collections::VecDeque;

/// The overhead of each entry (RFC 7541, section 4.1).
pub const ENTRY_OVERHEAD_BYTES: usize = 32;

/// A table whose entries have a tag: what a decoder or an encoder knows about a field.
#[derive(Debug)]
pub struct DynamicTable<T> {
    /// Live bytes are those of `entries`.
    storage: Vec<u8>,
    /// The oldest first.
    entries: VecDeque<Entry<T>>,
    size: usize,
    capacity: usize,
}

#[derive(Debug)]
struct Entry<T> {
    offset: usize,
    name_length: usize,
    value_length: usize,
    tag: T,
}

impl<T> Entry<T> {
    fn size(&self) -> usize {
        self.name_length + self.value_length + ENTRY_OVERHEAD_BYTES
    }
}

impl<T: Copy> DynamicTable<T> {
    /// An empty table of at most `capacity` bytes, counted as in RFC 7541, section 4.1.
    pub fn new(capacity: usize) -> Self {
        DynamicTable { storage: Vec::new(), entries: VecDeque::new(), size: 0, capacity }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Its size in bytes, including 32 per entry.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The current maximum size.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The entry at `position`: 0 is the newest. Name, value, tag.
    #[inline]
    pub fn get(&self, position: usize) -> Option<(&[u8], &[u8], T)> {
        let index = self.entries.len().checked_sub(position + 1)?;
        let entry = self.entries.get(index)?;
        let (name, value) = self.storage[entry.offset..][..entry.name_length + entry.value_length]
            .split_at(entry.name_length);
        Some((name, value, entry.tag))
    }

    /// The tags, the newest first.
    pub fn tags(&self) -> impl Iterator<Item = T> {
        self.entries.iter().rev().map(|entry| entry.tag)
    }

    /// Sets the maximum size and evicts entries beyond it (RFC 7541, section 4.3).
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.evict(0);
        if capacity == 0 {
            self.storage = Vec::new();
        }
    }

    /// Inserts a field (RFC 7541, section 4.4); one larger than the table empties it.
    pub fn insert(&mut self, name: &[u8], value: &[u8], tag: T) {
        let entry = Entry { offset: 0, name_length: name.len(), value_length: value.len(), tag };
        if self.evict_for(&entry) {
            self.compact();
            let offset = self.storage.len();
            self.storage.extend_from_slice(name);
            self.storage.extend_from_slice(value);
            self.push(Entry { offset, ..entry });
        }
    }

    /// Inserts a field with the name of the entry at `position`, which the insertion may evict.
    pub fn insert_with_name_of(&mut self, position: usize, value: &[u8], tag: T) {
        let Some(source) =
            self.entries.len().checked_sub(position + 1).and_then(|index| self.entries.get(index))
        else {
            return;
        };
        let (from, name_length) = (source.offset, source.name_length);
        // The name is copied before an eviction or move.
        let offset = self.storage.len();
        self.storage.extend_from_within(from..from + name_length);
        self.storage.extend_from_slice(value);
        let entry = Entry { offset, name_length, value_length: value.len(), tag };
        if self.evict_for(&entry) {
            self.push(entry);
            self.compact();
        }
    }

    /// Evicts until `entry` fits; `false` if it is larger than the table, which is empty then.
    fn evict_for(&mut self, entry: &Entry<T>) -> bool {
        self.evict(entry.size());
        let fits = entry.size() <= self.capacity;
        if !fits {
            self.storage.clear();
        }
        fits
    }

    fn push(&mut self, entry: Entry<T>) {
        self.size += entry.size();
        self.entries.push_back(entry);
    }

    fn evict(&mut self, coming: usize) {
        while self.size + coming > self.capacity
            && let Some(oldest) = self.entries.pop_front()
        {
            self.size -= oldest.size();
        }
    }

    /// Drops the evicted bytes at the front when they reach the table's maximum size.
    fn compact(&mut self) {
        let dead = self.entries.front().map_or(self.storage.len(), |oldest| oldest.offset);
        if dead > self.capacity.max(256) || (dead > 0 && dead == self.storage.len()) {
            self.storage.drain(..dead);
            for entry in &mut self.entries {
                entry.offset -= dead;
            }
        }
    }
}

/// An encoder's tag: hashes of the name and of the field, which make a search cheap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashes {
    name: u64,
    field: u64,
}

impl Hashes {
    /// The hashes of a field.
    pub fn of(name: &[u8], value: &[u8]) -> Self {
        let name = hash(HASH_SEED, name);
        Hashes { name, field: hash(name, value) }
    }
}

impl DynamicTable<Hashes> {
    /// The newest entry with this name and value, or else the newest with this name; whether the value is the
    /// same.
    pub fn find(&self, name: &[u8], value: &[u8], hashes: Hashes) -> Option<(usize, bool)> {
        let mut by_name = None;
        for (position, tag) in self.tags().enumerate() {
            if tag.name != hashes.name {
                continue;
            }
            let Some((entry_name, entry_value, _)) = self.get(position) else { continue };
            if entry_name != name {
                continue;
            }
            if tag.field == hashes.field && entry_value == value {
                return Some((position, true));
            }
            by_name = by_name.or(Some((position, false)));
        }
        by_name
    }
}

const HASH_SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, 64 bits: good enough to skip entries that differ; equality is always checked.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_entry_larger_than_the_table_empties_it() {
        let mut table = DynamicTable::new(80);
        table.insert(b"name", b"value", 1);
        assert_eq!((table.len(), table.size()), (1, 41));
        table.insert(b"name", &[b'x'; 50], 2);
        assert_eq!((table.len(), table.size()), (0, 0));
        table.insert(b"n", b"v", 3);
        table.insert_with_name_of(0, &[b'y'; 60], 4);
        assert!(table.is_empty());
        table.insert(b"n", b"v", 5);
        assert_eq!(table.get(0), Some((&b"n"[..], &b"v"[..], 5)));
    }

    #[test]
    fn the_name_of_an_entry_that_is_evicted_is_kept() {
        let mut table = DynamicTable::new(50);
        table.insert(b"long-name", b"12", 1);
        table.insert_with_name_of(0, b"345", 2);
        assert_eq!(table.len(), 1);
        assert_eq!(table.get(0), Some((&b"long-name"[..], &b"345"[..], 2)));
    }

    proptest! {
        /// The table behaves like a list of pairs.
        #[test]
        fn behaves_like_a_list(
            capacity in 0usize..600,
            steps in proptest::collection::vec((any::<Option<u8>>(), 0usize..60, 0usize..90, 0usize..40), 0..120),
        ) {
            let mut table = DynamicTable::new(capacity);
            let mut list: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            let mut capacity = capacity;
            for (number, (reuse, name, value, resize)) in steps.into_iter().enumerate() {
                if resize == 0 {
                    capacity = value * 7;
                    table.set_capacity(capacity);
                } else {
                    let value = vec![u8::try_from(number & 0xff).unwrap(); value];
                    match reuse {
                        Some(index) if !list.is_empty() => {
                            let position = usize::from(index) % list.len();
                            let name = list[position].0.clone();
                            table.insert_with_name_of(position, &value, number);
                            list.insert(0, (name, value));
                        }
                        _ => {
                            let name = vec![b'a' + u8::try_from(number % 26).unwrap(); name];
                            table.insert(&name, &value, number);
                            list.insert(0, (name, value));
                        }
                    }
                }
                let size = |list: &[(Vec<u8>, Vec<u8>)]| list.iter().map(|(n, v)| n.len() + v.len() + 32).sum::<usize>();
                while size(&list) > capacity {
                    list.pop();
                }
                prop_assert_eq!(table.size(), size(&list));
                prop_assert_eq!(table.len(), list.len());
                for (position, (name, value)) in list.iter().enumerate() {
                    let (got_name, got_value, _) = table.get(position).unwrap();
                    prop_assert_eq!((got_name, got_value), (&name[..], &value[..]));
                }
                prop_assert!(table.storage.len() <= 3 * 600 + 400);
            }
        }
    }
}
