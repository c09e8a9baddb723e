//! A result's folder: made once, locked while written, every file whole or absent.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock, statvfs};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::write::recover;

/// The folders of a result.
const SUBFOLDERS: &[&str] = &["samples", "figures", "tables", "logs"];
/// The file that a writer locks.
const LOCK_FILE: &str = ".lock";

/// The folder of one result.
#[derive(Debug)]
pub struct ResultFolder {
    pub(crate) path: PathBuf,
    /// Held from the first write on; the kernel gives it back when the process ends, however it ends.
    pub(crate) lock: Option<File>,
    /// Runs that are stored whole, once they have been counted.
    pub(crate) stored: Option<std::collections::BTreeSet<u32>>,
}

/// What a writer that was killed had started ends with it, but not in the same instant.
const DYING: Duration = Duration::from_secs(2);

fn lock_within(file: &File, limit: Duration) -> rustix::io::Result<()> {
    let deadline = Instant::now() + limit;
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            ended => return ended,
        }
    }
}

impl ResultFolder {
    /// Makes the folder, which must not exist, where at least `need_bytes` are free.
    ///
    /// # Errors
    /// The folder exists, the disk is too full, or it cannot be written; nothing is left behind.
    pub fn create(path: &Path, need_bytes: u64) -> Result<Self> {
        if path.symlink_metadata().is_ok() {
            let shown = path.display();
            bail!(
                "found {shown}, expected a name that does not exist yet: continue it with `--resume {shown}`, or \
                 choose another with `--out DIR`"
            );
        }
        let parent = parent_of(path);
        fs::create_dir_all(parent).with_context(|| format!("cannot make the folder {}", parent.display()))?;
        check_free_space(parent, need_bytes)?;
        fs::create_dir(path).with_context(|| format!("cannot make the folder {}", path.display()))?;
        let folder = ResultFolder { path: path.to_owned(), lock: None, stored: None };
        folder.furnish().inspect_err(|_| {
            // It was made just above and holds nothing of worth; the error that is returned matters more.
            let _ = fs::remove_dir_all(path);
        })?;
        Ok(folder)
    }

    /// Opens a folder that [`ResultFolder::create`] made, and completes a compaction that was interrupted.
    ///
    /// # Errors
    /// There is no such folder, or another process is compacting it.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.join("samples").is_dir() {
            bail!(
                "found no result in {}, expected a folder with `samples` that `h123 run` made",
                path.display()
            );
        }
        let mut folder = ResultFolder { path: path.to_owned(), lock: None, stored: None };
        if crate::write::is_interrupted(&folder.samples()) {
            folder.lock()?;
            folder.lock = None;
        }
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where logs belong.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Where rows belong.
    pub(crate) fn samples(&self) -> PathBuf {
        self.path.join("samples")
    }

    /// Bytes that are free on its disk for this user.
    ///
    /// # Errors
    /// The system does not say.
    pub fn free_bytes(&self) -> Result<u64> {
        free_bytes(&self.path)
    }

    /// Writes a value as JSON: the old file stays until the new one is whole on the disk.
    ///
    /// # Errors
    /// The value is not JSON, or the disk refuses.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let mut text =
            serde_json::to_vec_pretty(value).with_context(|| format!("cannot write {name} as JSON"))?;
        text.push(b'\n');
        self.write_file(name, &text)
    }

    /// Reads a value that [`ResultFolder::write_json`] wrote.
    ///
    /// # Errors
    /// The file is absent, or is not what is expected; with its path.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let path = self.path.join(name);
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text)
            .with_context(|| format!("{} is not what this h123 writes", path.display()))
    }

    /// Writes a file such as `report.html` or `figures/plt.svg`: whole or not at all. A folder for it is made where there is none.
    ///
    /// # Errors
    /// The name leaves the folder, or the disk refuses.
    pub fn write_file(&self, name: &str, content: &[u8]) -> Result<()> {
        let is_inside =
            Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if name.is_empty() || !is_inside {
            bail!("found the file name `{name}`, expected one inside the result's folder");
        }
        let path = self.path.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        write_whole(&path, content).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Makes this process the only writer until it ends, and cleans up after one that was killed. Writing locks by itself;
    /// call it before work whose result is to be written.
    ///
    /// # Errors
    /// Another process is writing to the folder, or the disk refuses.
    pub fn lock(&mut self) -> Result<()> {
        if self.lock.is_some() {
            return Ok(());
        }
        let path = self.path.join(LOCK_FILE);
        let file = File::options().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        match lock_within(&file, DYING) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => bail!(
                "another h123 is writing to {}: wait until it has ended, or end it",
                self.path.display()
            ),
            Err(error) => return Err(error).with_context(|| format!("cannot lock {}", path.display())),
        }
        recover(&self.samples())?;
        self.lock = Some(file);
        Ok(())
    }

    fn furnish(&self) -> Result<()> {
        for name in SUBFOLDERS {
            let path = self.path.join(name);
            fs::create_dir(&path).with_context(|| format!("cannot make the folder {}", path.display()))?;
        }
        let probe = self.path.join(".probe");
        write_whole(&probe, b"h123 can write here\n")
            .and_then(|()| fs::remove_file(&probe))
            .with_context(|| format!("cannot write in {}", self.path.display()))
    }
}

/// Writes a file under another name, waits for the disk, and renames it: whole or not at all.
///
/// # Errors
/// The disk refuses.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // What failed is reported; a half-written file must not stay.
        let _ = fs::remove_file(&temporary);
    }
    written.and_then(|()| sync_folder(parent_of(path)))
}

/// The folder that a path is in, which for a bare name is the current one.
fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Waits until a folder's names are on the disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn check_free_space(path: &Path, need_bytes: u64) -> Result<()> {
    let free_bytes = free_bytes(path)?;
    if free_bytes < need_bytes {
        bail!(
            "found {free_bytes} free bytes on the disk of {}, expected at least {need_bytes}: make room, or choose \
             another disk with `--out DIR`",
            path.display()
        );
    }
    Ok(())
}

fn free_bytes(path: &Path) -> Result<u64> {
    let disk =
        statvfs(path).with_context(|| format!("cannot ask how full the disk of {} is", path.display()))?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_exists_is_refused_with_advice() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b");
        ResultFolder::create(&path, 0).unwrap();
        let error = ResultFolder::create(&path, 0).unwrap_err().to_string();
        assert!(error.contains("--resume") && error.contains("--out"), "{error}");
        ResultFolder::open(&path).unwrap();
        let error = ResultFolder::open(place.path()).unwrap_err().to_string();
        assert!(error.contains("found no result in"), "{error}");
    }

    #[test]
    fn a_full_disk_is_refused_and_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("r");
        let error = ResultFolder::create(&path, u64::MAX).unwrap_err().to_string();
        assert!(error.contains("expected at least 18446744073709551615"), "{error}");
        assert!(!path.exists());
    }

    #[test]
    fn files_are_whole_and_stay_inside() {
        let place = tempfile::tempdir().unwrap();
        let folder = ResultFolder::create(&place.path().join("r"), 0).unwrap();
        folder.write_json("summary.json", &vec![1, 2]).unwrap();
        folder.write_json("summary.json", &vec![3]).unwrap();
        assert_eq!(folder.read_json::<Vec<u8>>("summary.json").unwrap(), [3]);
        assert!(!folder.path().join("summary.json.tmp").exists());
        for name in ["../x", "/tmp/x", ""] {
            assert!(folder.write_file(name, b"").is_err(), "{name}");
        }
        folder.write_file("figures/a.svg", b"<svg/>").unwrap();
    }

    #[test]
    fn one_writer_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("r");
        let mut first = ResultFolder::create(&path, 0).unwrap();
        first.lock().unwrap();
        let mut second = ResultFolder::open(&path).unwrap();
        assert!(second.lock().unwrap_err().to_string().contains("another h123"));
        drop(first);
        second.lock().unwrap();
    }
}
