//! The page cache of a study's files: h123 drops or reads its own files, and counts what is cached. The
//! machine's settings are never changed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result};
use model::page_cache::{CachedContent, PageCache};
use rustix::fs::{Advice, fadvise, fdatasync};

/// How much is mapped or read at once, in bytes; a multiple of every page size.
const STEP_BYTES: usize = 64 << 20;
const READ_BYTES: usize = 1 << 20;

/// Brings every file below a folder into this state, and returns how much is in the page cache afterwards.
/// Links to the same file count once. A folder that does not exist has no files.
///
/// # Errors
/// A file cannot be read, or written to its disk, which it must be before its pages can be dropped.
pub fn set_page_cache(folder: &Path, state: PageCache) -> Result<CachedContent> {
    let mut sum = CachedContent::default();
    each_file(folder, &mut BTreeSet::new(), &mut |file, bytes| {
        match state {
            PageCache::Cold => {
                fdatasync(file)?;
                // Without a length: to the end of the file.
                fadvise(file, 0, None::<NonZeroU64>, Advice::DontNeed)?;
            }
            PageCache::Warm => read_through(file)?,
        }
        sum.bytes += bytes;
        sum.cached_bytes += cached_bytes(file, bytes)?;
        Ok(())
    })?;
    Ok(sum)
}

/// Calls a function with every file that is not empty, and its length; once for all links to it.
fn each_file(
    folder: &Path,
    seen: &mut BTreeSet<(u64, u64)>,
    then: &mut impl FnMut(&File, u64) -> io::Result<()>,
) -> Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| format!("cannot list {}", folder.display()))?,
    };
    for entry in entries {
        let path = entry?.path();
        let context = || format!("cannot set the page cache of {}", path.display());
        // Symbolic links are not followed: their targets may be the user's files.
        let metadata = path.symlink_metadata().with_context(context)?;
        if metadata.is_dir() {
            each_file(&path, seen, then)?;
        } else if metadata.is_file() && metadata.len() > 0 && seen.insert((metadata.dev(), metadata.ino())) {
            let file = File::open(&path).with_context(context)?;
            then(&file, metadata.len()).with_context(context)?;
        }
    }
    Ok(())
}

fn read_through(mut file: &File) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

/// How many bytes of a file are in the page cache, by mincore(2). A user sees the pages of files that they
/// could write.
fn cached_bytes(file: &File, bytes: u64) -> io::Result<u64> {
    let page = page_bytes()?;
    let mut pages = vec![0_u8; STEP_BYTES.div_ceil(page)];
    let (mut offset, mut cached) = (0, 0);
    while offset < bytes {
        let length = usize::try_from(bytes - offset).unwrap_or(usize::MAX).min(STEP_BYTES);
        let mapping = Mapping::new(file, offset, length)?;
        let residency = &mut pages[..length.div_ceil(page)];
        mapping.residency(residency)?;
        for (index, state) in residency.iter().enumerate() {
            if state & 1 == 1 {
                cached += page.min(length - index * page) as u64;
            }
        }
        offset += length as u64;
    }
    Ok(cached)
}

fn page_bytes() -> io::Result<usize> {
    // SAFETY: the call has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| *bytes > 0).ok_or_else(io::Error::last_os_error)
}

/// A part of a file in the address space. Its memory is never accessed.
struct Mapping {
    start: *mut libc::c_void,
    length: usize,
}

impl Mapping {
    fn new(file: &File, offset: u64, length: usize) -> io::Result<Mapping> {
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: the kernel chooses an unused range of addresses, and nothing accesses the memory.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_NONE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset,
            )
        };
        match start {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            start => Ok(Mapping { start, length }),
        }
    }

    /// One byte per page, whose lowest bit says whether the page is in memory.
    fn residency(&self, pages: &mut [u8]) -> io::Result<()> {
        if pages.len() < self.length.div_ceil(page_bytes()?) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the range is mapped, and `pages` has one byte for each of its pages.
        match unsafe { libc::mincore(self.start, self.length, pages.as_mut_ptr()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new`, and no reference into it exists.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that this thread's reads fetched from a disk: `read_bytes` of proc_pid_io(5).
    fn disk_bytes() -> u64 {
        let text = fs::read_to_string("/proc/thread-self/io").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: ")).unwrap();
        line.trim().parse().unwrap()
    }

    /// A folder beside this program, because the system's temporary folder may be in memory.
    fn folder() -> tempfile::TempDir {
        tempfile::tempdir_in(std::env::current_exe().unwrap().parent().unwrap()).unwrap()
    }

    #[test]
    fn cold_files_are_read_from_the_disk_and_warm_ones_from_memory() {
        const BYTES: usize = 5_000_001;
        let folder = folder();
        let file = folder.path().join("a/b/file");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, vec![7; BYTES]).unwrap();
        fs::hard_link(&file, folder.path().join("link")).unwrap();
        fs::write(folder.path().join("empty"), "").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("elsewhere")).unwrap();
        let of = |cached_bytes| CachedContent { bytes: BYTES as u64, cached_bytes };

        assert_eq!(set_page_cache(folder.path(), PageCache::Cold).unwrap(), of(0));
        let before = disk_bytes();
        assert_eq!(fs::read(&file).unwrap().len(), BYTES);
        assert!(disk_bytes() - before >= BYTES as u64, "cold: every byte comes from the disk");

        assert_eq!(set_page_cache(folder.path(), PageCache::Cold).unwrap(), of(0));
        assert_eq!(set_page_cache(folder.path(), PageCache::Warm).unwrap(), of(BYTES as u64));
        let before = disk_bytes();
        assert_eq!(fs::read(&file).unwrap().len(), BYTES);
        assert_eq!(disk_bytes() - before, 0, "warm: no byte comes from the disk");
    }

    #[test]
    fn no_folder_has_no_files() {
        let missing = folder().path().join("missing");
        assert_eq!(set_page_cache(&missing, PageCache::Cold).unwrap(), CachedContent::default());
    }
}
