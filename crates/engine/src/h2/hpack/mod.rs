//! Header compression of HTTP/2 (RFC 7541).
//!
//! The decoder hands each field out as slices, of the block itself where it stands there in plain, and with what the
//! field means to a client, which is worked out once per table entry and not once per use.

pub mod decoder;
pub mod encoder;
pub mod static_table;

#[cfg(test)]
mod vectors;

pub use decoder::{Decoder, Field};
pub use encoder::{Encoder, Indexing};

use crate::huffman::HuffmanError;
use crate::prefix_integer::PrefixIntegerError;

/// Why a header block cannot be decoded; each is a connection error COMPRESSION_ERROR (RFC 9113, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// An integer is cut short or too large.
    #[error(transparent)]
    Integer(#[from] PrefixIntegerError),
    /// A string is longer than the rest of the block.
    #[error("a string of {length} bytes where {left} are left in the header block")]
    StringTooLong {
        /// What its prefix says.
        length: u64,
        /// What the block still has.
        left: usize,
    },
    /// A string is not in the Huffman code.
    #[error(transparent)]
    Huffman(#[from] HuffmanError),
    /// An index that no table has.
    #[error("index {index} where the tables have {entries} entries")]
    Index {
        /// The index.
        index: u64,
        /// The entries of both tables.
        entries: usize,
    },
    /// A table size above what this side allowed (RFC 7541, section 6.3).
    #[error("a table size of {size} bytes where SETTINGS_HEADER_TABLE_SIZE allows {limit}")]
    SizeTooLarge {
        /// The size.
        size: u64,
        /// The limit.
        limit: usize,
    },
    /// A table size update behind a field (RFC 7541, section 4.2).
    #[error("a table size update stands behind a header field")]
    SizeLate,
    /// No table size update although the limit was lowered below the table's size (RFC 7541, section 4.2).
    #[error("no table size update although SETTINGS_HEADER_TABLE_SIZE was lowered")]
    SizeMissing,
}
