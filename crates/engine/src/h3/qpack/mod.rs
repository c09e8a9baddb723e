//! QPACK (RFC 9204): field sections to bytes and back, with the dynamic tables of both directions.
//!
//! A table of capacity 0, as the SETTINGS may say, is the plain case: every section refers to the static
//! table alone, none can block, and the instruction streams carry next to nothing.

mod decoder;
mod encoder;
mod instruction;
mod prefix;
mod static_table;
#[cfg(test)]
mod tests;

pub use decoder::{Decoder, Section};
pub use encoder::{Encoder, Indexing, References, encode_field, encode_prefix};
pub use instruction::{DecoderInstruction, EncoderInstruction, Text};
pub use prefix::Prefix;

use crate::huffman::HuffmanError;
use crate::prefix_integer::PrefixIntegerError;

/// Why a field section or an instruction cannot be read (RFC 9204, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QpackError {
    /// An integer.
    #[error("{0}")]
    Integer(#[from] PrefixIntegerError),
    /// A Huffman-coded string.
    #[error("{0}")]
    Huffman(#[from] HuffmanError),
    /// It ends within a string.
    #[error("a string has {found} of its {expected} bytes")]
    ShortString {
        /// The bytes that arrived.
        found: usize,
        /// Bytes announced.
        expected: u64,
    },
    /// A string that fits no entry.
    #[error("an inserted string has {found} bytes; the limit is {limit}")]
    LongString {
        /// Bytes announced.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// An index beyond the static table.
    #[error("static index {0} exceeds 98")]
    StaticIndex(u64),
    /// A reference to an entry that is not in the dynamic table, or that exceeds the section's Required
    /// Insert Count.
    #[error("a reference to an entry that is not in the dynamic table or that the section does not require")]
    DynamicReference,
    /// A Required Insert Count that no table of this capacity can have.
    #[error("the encoded Required Insert Count {0} exceeds what the dynamic table's capacity allows")]
    RequiredInserts(u64),
    /// A Base below 0.
    #[error("a section's Base is below 0")]
    Base,
    /// An instruction that refers to an entry that is not there.
    #[error("an instruction refers to entry {index}; the dynamic table has {entries}")]
    RelativeIndex {
        /// Relative to the newest.
        index: u64,
        /// The number of entries.
        entries: usize,
    },
    /// An entry larger than the table.
    #[error("an entry of {found} bytes exceeds the dynamic table's capacity of {capacity}")]
    LargeEntry {
        /// Its size.
        found: usize,
        /// The capacity.
        capacity: usize,
    },
    /// A capacity above what the SETTINGS allow.
    #[error("a dynamic table capacity of {found} bytes exceeds the {limit} of the SETTINGS")]
    Capacity {
        /// The capacity.
        found: u64,
        /// The limit.
        limit: usize,
    },
    /// More streams wait than the SETTINGS allow.
    #[error("more streams wait for the dynamic table than the {limit} that the SETTINGS allow")]
    TooManyBlocked {
        /// The limit.
        limit: usize,
    },
    /// An acknowledgement of nothing.
    #[error("an acknowledgement of stream {0}, which has no section that refers to the dynamic table")]
    Acknowledgment(u64),
    /// An increment beyond what was inserted, or of nothing.
    #[error("an Insert Count Increment of {found} is not from 1 to {limit}")]
    Increment {
        /// The increment.
        found: u64,
        /// What is unacknowledged.
        limit: u64,
    },
    /// The peer's flow control blocks more acknowledgements than the limit.
    #[error("more than {limit} bytes of acknowledgements wait for the peer's flow control")]
    Feedback {
        /// The limit.
        limit: usize,
    },
}
