//! Checksums of a folder's tables, which detect flipped bits.
//!
//! `checksums.json`, next to the tables, holds one CRC-32 (IEEE 802.3) per block of 1 MiB of every file:
//! damage costs only the row groups that it touches.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The name of the file with the checksums.
pub(crate) const CHECKSUMS_FILE: &str = "checksums.json";
/// Bytes that one checksum covers.
const BLOCK_BYTES: u64 = 1 << 20;

/// Every table's checksums, by file name.
pub(crate) type Checksums = BTreeMap<String, FileChecksums>;

/// One file's length and checksums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileChecksums {
    /// The length of the file.
    bytes: u64,
    /// One CRC-32 per MiB.
    crc32: Vec<u32>,
}

impl FileChecksums {
    /// The checksums of a file.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let context = || format!("cannot read {} to compute its checksums", path.display());
        let mut file = File::open(path).with_context(context)?;
        let mut sums = FileChecksums { bytes: 0, crc32: Vec::new() };
        let mut block = Vec::new();
        loop {
            block.clear();
            let read = file.by_ref().take(BLOCK_BYTES).read_to_end(&mut block).with_context(context)?;
            if read == 0 {
                return Ok(sums);
            }
            sums.bytes += read as u64;
            sums.crc32.push(crc32(&block));
        }
    }

    /// Verifies the blocks that `range` touches.
    ///
    /// # Errors
    /// The length or a checksum is wrong, or the file cannot be read.
    pub(crate) fn verify(&self, file: &File, range: Range<u64>) -> Result<(), String> {
        let found = file.metadata().map_err(|error| error.to_string())?.len();
        if found != self.bytes {
            return Err(format!("it has {found} bytes instead of {}", self.bytes));
        }
        let mut block = Vec::new();
        for index in range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES) {
            let start = index * BLOCK_BYTES;
            let length = BLOCK_BYTES.min(self.bytes.saturating_sub(start));
            block.resize(usize::try_from(length).map_err(|error| error.to_string())?, 0);
            file.read_exact_at(&mut block, start).map_err(|error| error.to_string())?;
            let expected = usize::try_from(index).ok().and_then(|index| self.crc32.get(index));
            if expected != Some(&crc32(&block)) {
                return Err(format!("the checksum of bytes {start} to {} is wrong", start + length));
            }
        }
        Ok(())
    }
}

/// CRC-32 as in IEEE 802.3 (reflected polynomial 0xEDB88320).
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, &byte: &u8| TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)] ^ (crc >> 8);
    !bytes.iter().fold(!0, step)
}

static TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    let mut byte = 0_u32;
    while index < table.len() {
        let mut crc = byte;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { 0xEDB8_8320 ^ (crc >> 1) } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32_knows_the_check_value() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
