//! Log files of processes and their last lines.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// How much of a log's end is read.
const TAIL_BYTES: u64 = 4096;
/// How much of a log's beginning is searched.
const BEGIN_BYTES: u64 = 16 << 20;
/// How many of its last lines are quoted.
const TAIL_LINES: usize = 8;

/// The longest file that a server may write. Further writes fail.
pub(crate) const LIMIT_BYTES: u64 = 1 << 30;

/// Which of the logs in a folder reached a limit, if any; each one gets a last line that says so.
pub(crate) fn end_full(folder: &Path, names: &[&str], limit_bytes: u64) -> Option<String> {
    let is_full = |name: &&&str| {
        fs::metadata(folder.join(name)).is_ok_and(|log| log.is_file() && log.len() >= limit_bytes)
    };
    let full: Vec<&str> = names.iter().filter(is_full).copied().collect();
    if full.is_empty() {
        return None;
    }
    let problem = format!("reached the limit of {} MiB; what followed is missing", limit_bytes >> 20);
    for name in &full {
        if let Ok(mut log) = open(&folder.join(name)) {
            // The result says it too.
            let _ = writeln!(log, "\nh123: this log {problem}");
        }
    }
    Some(format!("{} {problem}", full.join(" and ")))
}

/// Opens a log file for a process to append to.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    File::options().create(true).append(true).open(path)
}

/// The beginning of a log.
pub(crate) fn begin(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BEGIN_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_says_so() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), vec![b'x'; 4 << 20]).unwrap();
        fs::write(folder.path().join("b"), "x").unwrap();
        assert_eq!(end_full(folder.path(), &["b", "c"], 4 << 20), None);
        let full = end_full(folder.path(), &["a", "b", "c"], 4 << 20).unwrap();
        assert_eq!(full, "a reached the limit of 4 MiB; what followed is missing");
        assert!(
            tail(&folder.path().join("a"))
                .ends_with("h123: this log reached the limit of 4 MiB; what followed is missing")
        );
    }
}
