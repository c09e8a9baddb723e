//! Header compression of HTTP/2 (RFC 7541).
//!
//! The decoder returns each field as slices, of the block itself if it is not Huffman-coded, and with the
//! field's meaning to a client, which is computed once per table entry.

pub mod decoder;
pub mod encoder;
pub mod static_table;

#[cfg(test)]
mod vectors;

pub use decoder::{Decoder, Field};
pub use encoder::{Encoder, Indexing};

use crate::huffman::HuffmanError;
use crate::prefix_integer::PrefixIntegerError;

/// Why a header block cannot be decoded; each is a connection error COMPRESSION_ERROR (RFC 9113, section
/// 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// An integer is incomplete or too large.
    #[error(transparent)]
    Integer(#[from] PrefixIntegerError),
    /// A string is longer than the rest of the block.
    #[error("a string of {length} bytes, but {left} are left in the header block")]
    StringTooLong {
        /// The length in its prefix.
        length: u64,
        /// The rest of the block.
        left: usize,
    },
    /// A string is not valid Huffman code.
    #[error(transparent)]
    Huffman(#[from] HuffmanError),
    /// An index that no table has.
    #[error("index {index}, but the tables have {entries} entries")]
    Index {
        /// The index.
        index: u64,
        /// The entries of both tables.
        entries: usize,
    },
    /// A table size above what this side allowed (RFC 7541, section 6.3).
    #[error("a table size of {size} bytes, but SETTINGS_HEADER_TABLE_SIZE allows {limit}")]
    SizeTooLarge {
        /// The size.
        size: u64,
        /// The limit.
        limit: usize,
    },
    /// A table size update after a field (RFC 7541, section 4.2).
    #[error("a table size update after a header field")]
    SizeLate,
    /// No table size update although the limit was lowered below the table's size (RFC 7541, section 4.2).
    #[error("no table size update although SETTINGS_HEADER_TABLE_SIZE was lowered")]
    SizeMissing,
}
