//! Log files of processes and their last lines.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// How much of a log's end is read.
const TAIL_BYTES: u64 = 4096;
/// How many of its last lines are quoted.
const TAIL_LINES: usize = 8;

/// Opens a log file for a process to append to.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    File::options().create(true).append(true).open(path)
}

/// The last lines of a log, joined by ` / `; empty for an empty log.
pub(crate) fn tail(path: &Path) -> String {
    let text = read_end(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join(" / ")
}

/// `; its last lines: …`, or that the log is empty and where it is.
pub(crate) fn last_lines(paths: &[&Path]) -> String {
    let tails: Vec<String> = paths.iter().map(|path| tail(path)).filter(|tail| !tail.is_empty()).collect();
    match (tails.is_empty(), paths.first()) {
        (false, _) => format!("; its last lines: {}", tails.join(" / ")),
        (true, Some(path)) => format!("; it wrote nothing to {}", path.display()),
        (true, None) => String::new(),
    }
}

fn read_end(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
