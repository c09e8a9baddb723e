//! The indexes of archives: read from their files for every request, or kept after the first.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context, ensure};
use model::media::ByteRange;
use workload::formats::hds::bootstrap::Bootstrap;
use workload::formats::hds::f4f::{self, ArchiveIndex, ArchivedFragment};
use workload::formats::isobmff::{FragmentedMp4, Scan, TopBox};

/// A longer bootstrap or index is not read.
const MOST_INDEX_BYTES: u64 = 64 << 20;
/// The most entries of all indexes that are kept, about 64 MB.
const MOST_ENTRIES: usize = 2_000_000;
/// The most indexes that are kept.
const MOST_INDEXES: usize = 50_000;

/// What an index file says.
#[derive(Debug)]
pub(crate) enum Index {
    /// Number and segment of each fragment that exists, in the order of the numbers.
    Bootstrap(Vec<(u32, u32)>),
    /// The fragments of an archive.
    Archive(Vec<ArchivedFragment>),
    /// The segments of a fragmented MP4.
    Mp4(FragmentedMp4),
}

/// The indexes by the paths of their files.
pub(crate) struct Indexes(Option<RwLock<Kept>>);

#[derive(Default)]
struct Kept {
    indexes: HashMap<String, Arc<Index>>,
    entries: usize,
}

impl Indexes {
    /// Indexes that are kept, or read every time.
    pub(crate) fn new(keeps: bool) -> Self {
        Indexes(keeps.then(RwLock::default))
    }

    /// The index of a file: a kept one, or what `read` reads.
    pub(crate) fn get<E>(
        &self,
        path: &str,
        read: impl FnOnce() -> Result<Index, E>,
    ) -> Result<Arc<Index>, E> {
        let Some(kept) = &self.0 else { return read().map(Arc::new) };
        if let Some(index) = kept.read().unwrap_or_else(PoisonError::into_inner).indexes.get(path) {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(read()?);
        kept.write().unwrap_or_else(PoisonError::into_inner).keep(path, &index);
        Ok(index)
    }
}

impl Kept {
    /// Keeps an index. If there is no room, all others are forgotten and will be read again.
    fn keep(&mut self, path: &str, index: &Arc<Index>) {
        if self.entries.saturating_add(index.entries()) > MOST_ENTRIES || self.indexes.len() >= MOST_INDEXES {
            *self = Kept::default();
        }
        if index.entries() <= MOST_ENTRIES
            && self.indexes.insert(path.to_owned(), Arc::clone(index)).is_none()
        {
            self.entries += index.entries();
        }
    }
}

impl Index {
    /// Reads a bootstrap.
    pub(crate) fn read_bootstrap(file: &File, length: u64) -> anyhow::Result<Index> {
        let fragments = Bootstrap::parse(&read_whole(file, length)?)?.fragments()?;
        Ok(Index::Bootstrap(fragments.iter().map(|fragment| (fragment.number, fragment.segment)).collect()))
    }

    /// Reads the index of a segment's archive, which has `archive_bytes` bytes.
    pub(crate) fn read_archive_index(
        file: &File,
        length: u64,
        segment: u32,
        archive_bytes: u64,
    ) -> anyhow::Result<Index> {
        let index = ArchiveIndex::parse(&read_whole(file, length)?)?;
        let mut entries: Vec<_> = index.entries.iter().filter(|entry| entry.segment == segment).collect();
        entries.sort_by_key(|entry| entry.offset);
        // A fragment ends where the next one begins.
        let ends = entries.iter().skip(1).map(|next| next.offset).chain([archive_bytes]);
        let archived = entries.iter().zip(ends).map(|(entry, end)| {
            let length = end.checked_sub(entry.offset);
            let range = length.and_then(|length| ByteRange::of_length(entry.offset, length));
            let range = range.with_context(|| {
                format!(
                    "fragment {} begins at byte {}, after the end of its archive",
                    entry.fragment, entry.offset
                )
            })?;
            Ok(ArchivedFragment { number: entry.fragment, range })
        });
        Ok(Index::Archive(archived.collect::<anyhow::Result<_>>()?))
    }

    /// Reads the boxes of an archive without index.
    pub(crate) fn scan_archive(file: &File, length: u64) -> anyhow::Result<Index> {
        Ok(Index::Archive(f4f::fragments(&scan(file, length)?)?))
    }

    /// Reads the boxes of a fragmented MP4.
    pub(crate) fn scan_mp4(file: &File, length: u64) -> anyhow::Result<Index> {
        Ok(Index::Mp4(FragmentedMp4::of_boxes(&scan(file, length)?)?))
    }

    fn entries(&self) -> usize {
        match self {
            Index::Bootstrap(fragments) => fragments.len(),
            Index::Archive(fragments) => fragments.len(),
            Index::Mp4(file) => file.fragments.len(),
        }
    }
}

fn read_whole(file: &File, length: u64) -> anyhow::Result<Vec<u8>> {
    ensure!(length <= MOST_INDEX_BYTES, "it has {length} bytes; an index has at most {MOST_INDEX_BYTES}");
    let mut bytes = vec![0; usize::try_from(length)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

fn scan(file: &File, length: u64) -> anyhow::Result<Vec<TopBox>> {
    let mut scan = Scan::new(length);
    let mut buffer = Vec::new();
    while let Some(range) = scan.poll_read() {
        // The scan bounds the content that it asks for once it has the header.
        buffer.resize(usize::try_from(range.length())?, 0);
        file.read_exact_at(&mut buffer, range.first)?;
        scan.handle_bytes(&buffer)?;
    }
    Ok(scan.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(entries: u32) -> Index {
        Index::Bootstrap((0..entries).map(|number| (number, 1)).collect())
    }

    #[test]
    fn an_index_is_read_once_or_every_time() {
        for (keeps, expected) in [(true, 1), (false, 3)] {
            let indexes = Indexes::new(keeps);
            let mut reads = 0;
            for _ in 0..3 {
                let found = indexes.get("a", || {
                    reads += 1;
                    Ok::<_, ()>(index(5))
                });
                assert_eq!(found.unwrap().entries(), 5);
            }
            assert_eq!(reads, expected);
        }
    }

    #[test]
    fn a_fault_is_not_kept() {
        let indexes = Indexes::new(true);
        assert!(indexes.get("a", || Err("broken")).is_err());
        assert!(indexes.get("a", || Ok::<_, ()>(index(1))).is_ok());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut kept = Kept::default();
        for path in ["a", "b", "c"] {
            kept.keep(path, &Arc::new(index(900_000)));
            assert!(kept.entries <= MOST_ENTRIES, "{}", kept.entries);
        }
        assert_eq!(kept.indexes.len(), 1, "the third made room by forgetting the others");
        kept.keep("huge", &Arc::new(index(2_000_001)));
        assert_eq!((kept.indexes.len(), kept.entries), (0, 0));
    }
}
