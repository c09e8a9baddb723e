//! Reads the kernel's files into one reused buffer.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::fs::{CWD, Mode, OFlags, openat};

/// Longer texts are cut off. The longest, `/proc/stat` of a machine with many cores and interrupts, begins
/// with the needed lines.
const BUFFER_BYTES: usize = 256 << 10;

/// The buffer.
#[derive(Debug)]
pub(super) struct Buffer(Vec<u8>);

impl Buffer {
    pub(super) fn new() -> Buffer {
        Buffer(vec![0; BUFFER_BYTES])
    }
}

/// The current text of an open file; `None` where its subject is gone.
pub(super) fn reread<'b>(file: &File, buffer: &'b mut Buffer) -> Option<&'b [u8]> {
    let mut length = 0;
    // A file of many records arrives in several pieces.
    while length < buffer.0.len() {
        match file.read_at(&mut buffer.0[length..], length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(_) => return None,
        }
    }
    Some(&buffer.0[..length])
}

/// The text of a file with one record, about a process or thread.
pub(super) fn read<'b>(path: &str, buffer: &'b mut Buffer) -> Option<&'b [u8]> {
    let file = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let length = rustix::io::read(&file, &mut buffer.0).ok()?;
    Some(&buffer.0[..length])
}
