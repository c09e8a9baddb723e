//! Reading the kernel's files into one buffer that is used again and again.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::fs::{CWD, Mode, OFlags, openat};

/// Longer texts are cut off; the longest that is read, `/proc/stat` of a machine with many cores and interrupts, begins with
/// what is wanted.
const BUFFER_BYTES: usize = 256 << 10;

/// Where texts are read into.
#[derive(Debug)]
pub(super) struct Buffer(Vec<u8>);

impl Buffer {
    pub(super) fn new() -> Buffer {
        Buffer(vec![0; BUFFER_BYTES])
    }
}

/// The text of a file that is kept open, as it is now; `None` where what it is about is gone.
pub(super) fn reread<'b>(file: &File, buffer: &'b mut Buffer) -> Option<&'b [u8]> {
    let mut length = 0;
    // Most come in one piece; a file of many records comes in several.
    while length < buffer.0.len() {
        match file.read_at(&mut buffer.0[length..], length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(_) => return None,
        }
    }
    Some(&buffer.0[..length])
}

/// The text of a file of one record, of a process or thread.
pub(super) fn read<'b>(path: &str, buffer: &'b mut Buffer) -> Option<&'b [u8]> {
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let length = rustix::io::read(&file, &mut buffer.0).ok()?;
    Some(&buffer.0[..length])
}
