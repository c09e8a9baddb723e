//! The state of the kernel's page cache before a run: whether servers find their files in memory.

use serde::{Deserialize, Serialize};

use crate::named;

named! { "a state of the page cache";
    /// Whether the files of a study are in the page cache when a run begins.
    pub enum PageCache {
        /// None of their bytes: the first request of each file waits for the disk.
        Cold = "cold",
        /// All of their bytes, as far as memory suffices.
        Warm = "warm",
    }
}

impl PageCache {
    /// What is done before every run, for people.
    pub const fn describe(self) -> &'static str {
        match self {
            PageCache::Cold => {
                "cold: before every run, the study's files are dropped from the page cache (posix_fadvise)"
            }
            PageCache::Warm => "warm: before every run, the study's files are read once",
        }
    }
}

/// How much of a study's files is in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedContent {
    /// The length of all files, in bytes; links to the same file count once.
    pub bytes: u64,
    /// The bytes of them in the page cache.
    pub cached_bytes: u64,
}

impl CachedContent {
    /// The share in the page cache; 0 without files.
    pub fn share(self) -> f64 {
        crate::number::float(self.cached_bytes) / crate::number::float(self.bytes.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_no_files_is_zero() {
        assert!(CachedContent::default().share().abs() < f64::EPSILON);
        assert!((CachedContent { bytes: 8, cached_bytes: 2 }.share() - 0.25).abs() < f64::EPSILON);
    }
}
