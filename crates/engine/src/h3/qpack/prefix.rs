//! The prefix of a field section, before its lines (RFC 9204, section 4.5.1).

use super::QpackError;
use crate::prefix_integer;

/// Required Insert Count and Base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// How many insertions the section needs.
    pub required_inserts: u64,
    /// What its indices are relative to.
    pub base: u64,
}

/// The most entries that a table of `capacity` bytes can have.
pub(super) const fn max_entries(capacity: u64) -> u64 {
    capacity / 32
}

impl Prefix {
    /// Reads it; `inserts` is the reader's number of insertions.
    ///
    /// # Errors
    /// [`QpackError`]: a connection error of type QPACK_DECOMPRESSION_FAILED.
    #[inline]
    pub fn read(
        section: &[u8],
        position: &mut usize,
        max_entries: u64,
        inserts: u64,
    ) -> Result<Prefix, QpackError> {
        let encoded = prefix_integer::decode(section, position, 8)?;
        let base_is_lower = section.get(*position).is_some_and(|byte| byte & 0x80 != 0);
        let delta = prefix_integer::decode(section, position, 7)?;
        let required_inserts = if encoded == 0 { 0 } else { full_count(encoded, max_entries, inserts)? };
        let base = if base_is_lower {
            (required_inserts.checked_sub(delta)).and_then(|base| base.checked_sub(1))
        } else {
            required_inserts.checked_add(delta)
        };
        Ok(Prefix { required_inserts, base: base.ok_or(QpackError::Base)? })
    }

    /// Appends it.
    pub fn write(self, max_entries: u64, output: &mut Vec<u8>) {
        let encoded = match self.required_inserts {
            0 => 0,
            required => required % (2 * max_entries).max(1) + 1,
        };
        prefix_integer::encode(encoded, 8, 0, output);
        match self.base.checked_sub(self.required_inserts) {
            Some(delta) => prefix_integer::encode(delta, 7, 0, output),
            None => prefix_integer::encode(self.required_inserts - self.base - 1, 7, 0x80, output),
        }
    }

    /// The absolute index that an index of a field line means.
    #[inline]
    pub(super) fn absolute(self, index: u64, is_post_base: bool) -> Option<u64> {
        if is_post_base { self.base.checked_add(index) } else { self.base.checked_sub(index)?.checked_sub(1) }
    }
}

/// The count whose remainder was sent (RFC 9204, section 4.5.1.1).
fn full_count(encoded: u64, max_entries: u64, inserts: u64) -> Result<u64, QpackError> {
    let full_range = 2 * max_entries;
    if encoded > full_range {
        return Err(QpackError::RequiredInserts(encoded));
    }
    let largest = inserts + max_entries;
    let required = largest / full_range * full_range + encoded - 1;
    let required = match required > largest {
        false => Some(required),
        true => required.checked_sub(full_range),
    };
    required.filter(|required| *required > 0).ok_or(QpackError::RequiredInserts(encoded))
}
