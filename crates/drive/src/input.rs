//! Files that people name. Reading has a bound, so that an endless or huge file is an error and not a full
//! memory or a hang. Pipes and process substitutions work like files.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use model::media::ByteRange;
use model::units::format_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

/// The longest text file: a list of URLs, a study, a trace, a certificate.
pub const TEXT_BYTES: u64 = 64 << 20;

const CHUNK_BYTES: usize = 64 << 10;

/// How long a pipe may be silent.
struct Waits {
    /// Until a process opens it for writing.
    writer: Duration,
    /// Until the next byte.
    byte: Duration,
}

const WAITS: Waits = Waits { writer: Duration::from_secs(3), byte: Duration::from_secs(60) };

/// Reads a text of at most [`TEXT_BYTES`].
///
/// # Errors
/// As [`read_bytes`]; or it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    read_bytes(path, TEXT_BYTES).and_then(text)
}

/// Reads a file of at most `most_bytes`.
///
/// # Errors
/// It is longer, cannot be read, is a folder, or is a pipe to which no process writes.
pub fn read_bytes(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    read_within(path, most_bytes, &WAITS)
}

/// Reads a range of at most `most_bytes` of a file, as far as the file reaches.
///
/// # Errors
/// The range is longer, or the file cannot be read or is no regular file.
pub fn read_range(path: &Path, range: ByteRange, most_bytes: u64) -> io::Result<Vec<u8>> {
    if range.length() > most_bytes {
        return Err(too_long(most_bytes));
    }
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    (&file).seek(SeekFrom::Start(range.first))?;
    file.take(range.length()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a regular file; a pipe or a device is an error, and opening it does not wait.
///
/// # Errors
/// As [`read_range`].
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    let not_text = |_| io::Error::new(ErrorKind::InvalidData, "it is not a text in UTF-8");
    String::from_utf8(bytes).map_err(not_text)
}

fn read_within(path: &Path, most_bytes: u64, waits: &Waits) -> io::Result<Vec<u8>> {
    // Opening a pipe would otherwise wait for a writer without a limit.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder; name a file"));
    }
    if metadata.is_file() && metadata.len() > most_bytes {
        return Err(too_long(most_bytes));
    }
    let mut has_had_writer = !metadata.file_type().is_fifo();
    let mut has_waited = false;
    let mut bytes = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk) {
            Ok(0) if has_had_writer => return Ok(bytes),
            Ok(0) if has_waited => {
                let words = format!("no process writes to this pipe (waited {})", shown(waits.writer));
                return Err(io::Error::new(ErrorKind::TimedOut, words));
            }
            // A writer that is silent does not end this wait, but lets the next read fail with `WouldBlock`.
            Ok(0) => {
                has_had_writer = wait(&file, Some(waits.writer))?;
                has_waited = true;
            }
            Ok(count) => {
                has_had_writer = true;
                bytes.extend_from_slice(chunk.get(..count).unwrap_or_default());
                if bytes.len() as u64 > most_bytes {
                    return Err(too_long(most_bytes));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                has_had_writer = true;
                // A person at a terminal has time.
                let limit = (!file.is_terminal()).then_some(waits.byte);
                if !wait(&file, limit)? {
                    let words = format!("it sent nothing for {}", shown(waits.byte));
                    return Err(io::Error::new(ErrorKind::TimedOut, words));
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until a read would not block; false after the limit.
fn wait(file: &File, limit: Option<Duration>) -> io::Result<bool> {
    let deadline = limit.map(|limit| Instant::now() + limit);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(file, PollFlags::IN)], left.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

fn shown(time: Duration) -> String {
    format_ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn too_long(most_bytes: u64) -> io::Error {
    let words = format!("it has more than {} MiB, the most that h123 reads of it", most_bytes >> 20);
    io::Error::new(ErrorKind::FileTooLarge, words)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use super::*;

    /// Long enough for a busy machine, and short enough for a test.
    const SHORT: Waits = Waits { writer: Duration::from_millis(50), byte: Duration::from_millis(50) };

    fn pipe(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    #[test]
    fn endless_and_huge_files_and_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let sparse = folder.path().join("sparse");
        File::create(&sparse).unwrap().set_len(10 << 30).unwrap();
        for path in [Path::new("/dev/zero"), &sparse] {
            let error = read_bytes(path, 2 << 20).unwrap_err();
            assert_eq!(error.to_string(), "it has more than 2 MiB, the most that h123 reads of it");
        }
        assert_eq!(read_text(folder.path()).unwrap_err().to_string(), "it is a folder; name a file");
        assert_eq!(read_text(&folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_file_has_at_most_its_bound_and_a_text_is_utf8() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, b"\xff234").unwrap();
        assert_eq!(read_bytes(&path, 4).unwrap(), b"\xff234");
        assert!(read_bytes(&path, 3).is_err());
        assert_eq!(read_text(&path).unwrap_err().to_string(), "it is not a text in UTF-8");
    }

    #[test]
    fn pipes_are_read_to_their_end_and_never_waited_for_without_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = pipe(folder.path());
        let error = read_within(&path, 10, &SHORT).unwrap_err().to_string();
        assert_eq!(error, "no process writes to this pipe (waited 50 ms)");
        // This process holds the pipe open and is silent.
        let mut writer = File::options().read(true).write(true).open(&path).unwrap();
        assert_eq!(read_within(&path, 10, &SHORT).unwrap_err().to_string(), "it sent nothing for 50 ms");
        writer.write_all(&[b'x'; 11]).unwrap();
        assert_eq!(read_within(&path, 10, &SHORT).unwrap_err().kind(), ErrorKind::FileTooLarge);
        drop(writer);
        let (shown, chunks) = (path.clone(), 100);
        let writing = std::thread::spawn(move || {
            let mut pipe = File::options().write(true).open(shown).unwrap();
            (0..chunks).for_each(|_| pipe.write_all(&[b'y'; 1000]).unwrap());
        });
        let read = read_bytes(&path, 1 << 20).unwrap();
        writing.join().unwrap();
        assert_eq!(read, vec![b'y'; 100_000]);
    }
}
