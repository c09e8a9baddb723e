//! Files of a result: whole or absent, inside the result, and with a bound.

use std::fs::{self, File, FileType};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::OFlags;

/// The longest JSON file of a result: the plan of a million runs is shorter.
const JSON_BYTES: u64 = 512 << 20;

/// Something in a result that is not the result's.
#[derive(Debug, thiserror::Error)]
#[error("{} {problem}; a result contains only regular files and folders", path.display())]
pub struct NotOfResult {
    path: PathBuf,
    problem: &'static str,
}

/// Refuses symbolic links and special files in a result, except in its logs, which servers wrote: a result
/// from elsewhere must not make h123 read or write outside of it.
///
/// # Errors
/// [`NotOfResult`], or a folder cannot be listed.
pub fn check_files(result: &Path) -> Result<()> {
    check_below(result, &|path, kind| {
        if kind.is_symlink() {
            return Err(not_of_result(path, "is a symbolic link"));
        }
        if !kind.is_file() && !kind.is_dir() {
            return Err(not_of_result(path, "is neither a file nor a folder"));
        }
        Ok(!path.ends_with("logs"))
    })
}

/// Refuses symbolic links that lead out of a folder of logs. Further runs write into it.
///
/// # Errors
/// As [`check_files`].
pub(crate) fn check_logs(logs: &Path) -> Result<()> {
    let root = logs.canonicalize().with_context(|| format!("cannot read {}", logs.display()))?;
    check_below(logs, &|path, kind| {
        let is_inside = || path.canonicalize().is_ok_and(|target| target.starts_with(&root));
        if kind.is_symlink() && !is_inside() {
            return Err(not_of_result(path, "is a symbolic link that leads out of the logs"));
        }
        Ok(true)
    })
}

fn not_of_result(path: &Path, problem: &'static str) -> NotOfResult {
    NotOfResult { path: path.to_owned(), problem }
}

/// Shows each entry to `check`, which decides whether those below a folder follow.
fn check_below(folder: &Path, check: &impl Fn(&Path, FileType) -> Result<bool, NotOfResult>) -> Result<()> {
    let context = || format!("cannot list {}", folder.display());
    for entry in fs::read_dir(folder).with_context(context)? {
        let entry = entry.with_context(context)?;
        let (path, kind) = (entry.path(), entry.file_type().with_context(context)?);
        if check(&path, kind)? && kind.is_dir() {
            check_below(&path, check)?;
        }
    }
    Ok(())
}

/// Reads a JSON file of a result.
///
/// # Errors
/// It is a symbolic link, not a regular file or too long, or cannot be read.
pub(crate) fn read_json_file(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe would otherwise wait for a writer.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    // A file that grows is cut here, and is then no JSON.
    if metadata.len() <= JSON_BYTES {
        file.take(JSON_BYTES).read_to_end(&mut bytes)?;
    } else {
        let words = format!("it has more than {} MiB", JSON_BYTES >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, words));
    }
    Ok(bytes)
}

/// Writes a file under a temporary name, syncs it to the disk, and renames it: the file is whole or absent.
///
/// # Errors
/// The file cannot be written.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is reported; a half-written file must not stay.
        let _ = fs::remove_file(&temporary);
    }
    written.and_then(|()| sync_folder(parent_of(path)))
}

/// The folder that a path is in, which for a bare name is the current one.
pub(crate) fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs the names in a folder to the disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Removes a folder with its content.
pub(crate) fn remove_folder(path: &Path) -> Result<()> {
    fs::remove_dir_all(path).with_context(|| format!("cannot remove {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn refused(result: &Path) -> String {
        let error = check_files(result).unwrap_err();
        assert!(error.is::<NotOfResult>(), "{error:#}");
        error.to_string().replace(&format!("{}/", result.display()), "")
    }

    #[test]
    fn links_and_special_files_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let result = place.path().join("r");
        fs::create_dir_all(result.join("samples/run-000001")).unwrap();
        fs::create_dir(result.join("logs")).unwrap();
        fs::write(result.join("plan.json"), "{}").unwrap();
        check_files(&result).unwrap();
        let only = "a result contains only regular files and folders";
        for name in ["figures", "plan.json.old", "samples/run-000001/requests.parquet"] {
            symlink(place.path(), result.join(name)).unwrap();
            assert_eq!(refused(&result), format!("{name} is a symbolic link; {only}"));
            fs::remove_file(result.join(name)).unwrap();
        }
        let pipe = result.join("samples/runs.parquet");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(refused(&result), format!("samples/runs.parquet is neither a file nor a folder; {only}"));
        fs::remove_file(pipe).unwrap();
        // Servers may link within their logs.
        symlink("a.log", result.join("logs/b.log")).unwrap();
        check_files(&result).unwrap();
        assert!(check_logs(&result.join("logs")).is_err(), "a link to nothing could be written through");
        fs::write(result.join("logs/a.log"), "").unwrap();
        check_logs(&result.join("logs")).unwrap();
        symlink("../plan.json", result.join("logs/c.log")).unwrap();
        assert!(check_logs(&result.join("logs")).unwrap_err().is::<NotOfResult>());
        fs::remove_dir_all(result.join("logs")).unwrap();
        symlink(place.path(), result.join("logs")).unwrap();
        assert_eq!(refused(&result), format!("logs is a symbolic link; {only}"));
    }

    #[test]
    fn a_json_file_is_regular_and_bounded() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.json");
        File::create(&path).unwrap().set_len(10 << 30).unwrap();
        assert_eq!(read_json_file(&path).unwrap_err().to_string(), "it has more than 512 MiB");
        let link = place.path().join("b.json");
        symlink(&path, &link).unwrap();
        assert!(read_json_file(&link).is_err() && read_json_file(place.path()).is_err());
        fs::write(&path, "[1]").unwrap();
        assert_eq!(read_json_file(&path).unwrap(), b"[1]");
    }
}
