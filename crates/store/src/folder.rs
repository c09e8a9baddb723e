//! The folder of a result: it is created once and locked while a process writes to it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use model::Plan;
use rustix::fs::{FlockOperation, flock, statvfs};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files::{check_files, check_logs, parent_of, read_json_file, write_whole};
use crate::recover::{is_interrupted, recover};

/// The folders of a result.
const SUBFOLDERS: &[&str] = &["samples", "figures", "tables", "logs"];
/// The resolved study.
const PLAN_FILE: &str = "plan.json";
/// The file that a writer locks.
const LOCK_FILE: &str = ".lock";

/// The folder of one result.
#[derive(Debug)]
pub struct ResultFolder {
    path: PathBuf,
    /// Held from the first write on; the kernel releases it when the process ends.
    lock: Option<File>,
    /// The runs that are stored; `None` until they were counted.
    pub(crate) stored: Option<std::collections::BTreeSet<u32>>,
}

/// The children of a killed writer end with it, but slightly later. Until then the lock is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(2);

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
    /// Creates the folder, which must not exist, on a disk with at least `need_bytes` free.
    ///
    /// # Errors
    /// The folder exists, the disk has too little space, or the folder cannot be written; nothing is left
    /// behind.
    pub fn create(path: &Path, need_bytes: u64) -> Result<Self> {
        if path.symlink_metadata().is_ok() {
            let shown = path.display();
            bail!(
                "{shown} exists; continue it with `--resume {shown}`, or choose another name with `--out DIR`"
            );
        }
        let parent = parent_of(path);
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot create the folder {}", parent.display()))?;
        check_free_space(parent, need_bytes)?;
        fs::create_dir(path).with_context(|| format!("cannot create the folder {}", path.display()))?;
        let folder = ResultFolder { path: path.to_owned(), lock: None, stored: None };
        folder.create_subfolders().inspect_err(|_| {
            // The folder is new and holds nothing of value; the returned error matters more.
            let _ = fs::remove_dir_all(path);
        })?;
        Ok(folder)
    }

    /// Opens a folder that [`ResultFolder::create`] made, and completes a compaction that was interrupted.
    ///
    /// # Errors
    /// The folder is not a result, contains links or special files ([`crate::NotOfResult`]), or another
    /// process is compacting it.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.join("samples").is_dir() {
            bail!("{} is not a result; name a folder that `h123 run` created", path.display());
        }
        check_files(path)?;
        let mut folder = ResultFolder { path: path.to_owned(), lock: None, stored: None };
        if is_interrupted(&folder.samples()) {
            folder.lock()?;
            folder.lock = None;
        }
        Ok(folder)
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder for logs.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Refuses links in the logs that lead out of them; call this before further runs write there.
    ///
    /// # Errors
    /// [`crate::NotOfResult`], or a folder cannot be listed.
    pub fn check_logs(&self) -> Result<()> {
        check_logs(&self.logs())
    }

    /// The folder for tables.
    pub(crate) fn samples(&self) -> PathBuf {
        self.path.join("samples")
    }

    /// The bytes on the folder's disk that are free for this user.
    ///
    /// # Errors
    /// The system does not report them.
    pub fn free_bytes(&self) -> Result<u64> {
        free_bytes(&self.path)
    }

    /// Writes a value as JSON. The old file stays until the new one is on the disk.
    ///
    /// # Errors
    /// The value has no JSON form, or the file cannot be written.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let mut text =
            serde_json::to_vec_pretty(value).with_context(|| format!("cannot write {name} as JSON"))?;
        text.push(b'\n');
        self.write_file(name, &text)
    }

    /// Reads a value that [`ResultFolder::write_json`] wrote.
    ///
    /// # Errors
    /// The file is missing or has another form; the error names its path.
    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        read_json(&self.path, name)
    }

    /// Reads and checks the plan.
    ///
    /// # Errors
    /// As [`read_plan`].
    pub fn read_plan(&self) -> Result<Plan> {
        read_plan(&self.path)
    }

    /// Writes a file such as `report.html` or `figures/plt.svg`, whole or not at all, and creates its folder.
    ///
    /// # Errors
    /// The name is not inside the result's folder, or the file cannot be written.
    pub fn write_file(&self, name: &str, content: &[u8]) -> Result<()> {
        let is_inside =
            Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if name.is_empty() || !is_inside {
            bail!("the file name `{name}` is not inside the result's folder");
        }
        let path = self.path.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        write_whole(&path, content).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Makes this process the only writer until it ends, and completes or removes what a killed writer left.
    /// Methods that write lock the folder too; call this before expensive work.
    ///
    /// # Errors
    /// Another process writes to the folder, or the lock file cannot be opened.
    pub fn lock(&mut self) -> Result<()> {
        if self.lock.is_some() {
            return Ok(());
        }
        let path = self.path.join(LOCK_FILE);
        let file = File::options().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        match lock_within(&file, LOCK_WAIT) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => bail!(
                "another h123 is writing to {}; wait until it has ended, or stop it",
                self.path.display()
            ),
            Err(error) => return Err(error).with_context(|| format!("cannot lock {}", path.display())),
        }
        recover(&self.samples())?;
        self.lock = Some(file);
        Ok(())
    }

    fn create_subfolders(&self) -> Result<()> {
        for name in SUBFOLDERS {
            let path = self.path.join(name);
            fs::create_dir(&path).with_context(|| format!("cannot create the folder {}", path.display()))?;
        }
        let probe = self.path.join(".probe");
        write_whole(&probe, b"h123 can write here\n")
            .and_then(|()| fs::remove_file(&probe))
            .with_context(|| format!("cannot write in {}", self.path.display()))
    }
}

/// Reads a value that [`ResultFolder::write_json`] wrote.
///
/// # Errors
/// As [`ResultFolder::read_json`].
pub fn read_json<T: DeserializeOwned>(result: &Path, name: &str) -> Result<T> {
    let path = result.join(name);
    let text = read_json_file(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} does not have the form that this h123 writes", path.display()))
}

/// Reads and checks the plan in a result's folder.
///
/// # Errors
/// The file is missing, has another version or form, or contradicts itself; the error names its path.
pub fn read_plan(result: &Path) -> Result<Plan> {
    let path = result.join(PLAN_FILE);
    let json = read_json_file(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Plan::from_json(&json).map_err(|problem| anyhow!("{}: {problem}", path.display()))
}

fn check_free_space(path: &Path, need_bytes: u64) -> Result<()> {
    let free_bytes = free_bytes(path)?;
    if free_bytes < need_bytes {
        bail!(
            "the disk of {} has {free_bytes} bytes free, but the study needs {need_bytes}; free some space, or choose \
             another disk with `--out DIR`",
            path.display()
        );
    }
    Ok(())
}

fn free_bytes(path: &Path) -> Result<u64> {
    let disk = statvfs(path)
        .with_context(|| format!("cannot read the free space on the disk of {}", path.display()))?;
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
        assert!(error.contains("is not a result"), "{error}");
    }

    #[test]
    fn a_full_disk_is_refused_and_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("r");
        let error = ResultFolder::create(&path, u64::MAX).unwrap_err().to_string();
        assert!(error.contains("needs 18446744073709551615"), "{error}");
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
