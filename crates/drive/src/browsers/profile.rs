//! The folder that a browser keeps its state in, new for each run.
//!
//! It is in the folder for temporary files and is the browser's own such folder, too, so everything that a
//! browser writes is in it. Its owner holds a lock on it, which the kernel releases when the process ends: a
//! folder without a lock is what a killed process left, and the next browser removes it.

use std::env::temp_dir;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

/// How the names of the folders begin.
const PREFIX: &str = "h123-browser-";
/// The profile's folder in it.
const PROFILE: &str = "profile";
/// How often making a folder is tried. Another process that cleans up may remove it until it has its lock.
const TRIES: usize = 10;

/// A new profile; dropping it removes it.
pub(super) struct Profile {
    /// The folder of the profile.
    pub(super) path: PathBuf,
    folder: TempDir,
    _lock: File,
}

impl Profile {
    /// Makes a profile, and removes those that killed processes left.
    pub(super) fn create() -> Result<Profile> {
        Profile::create_in(&temp_dir())
    }

    fn create_in(place: &Path) -> Result<Profile> {
        sweep(place);
        for _ in 0..TRIES {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place);
            let folder =
                folder.with_context(|| format!("cannot create a browser's folder in {}", place.display()))?;
            let locked = || -> io::Result<File> {
                let lock = File::open(folder.path())?;
                flock(&lock, FlockOperation::LockExclusive)?;
                fs::create_dir(folder.path().join(PROFILE))?;
                Ok(lock)
            };
            match locked() {
                Ok(lock) => return Ok(Profile { path: folder.path().join(PROFILE), folder, _lock: lock }),
                // It was removed in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot use {}", folder.path().display()));
                }
            }
        }
        bail!("another process removes the folders of browsers in {}", place.display());
    }

    /// What a browser's environment has in addition, so that it writes nowhere else.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![("TMPDIR".into(), self.folder.path().into())]
    }

    /// The folder that has the profile, for further files that nobody keeps.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the profiles that killed processes of this user left.
pub fn clean() {
    sweep(&temp_dir());
}

fn sweep(place: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_profile = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir() && found.uid() == own);
        if !is_profile {
            continue;
        }
        let Ok(lock) = File::open(&path) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // What cannot be removed now is removed another time.
            let _: io::Result<()> = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_of_killed_processes_are_removed_and_others_stay() {
        let place = tempfile::tempdir().unwrap();
        let left = place.path().join(format!("{PREFIX}left"));
        fs::create_dir_all(left.join("profile/Default")).unwrap();
        let other = place.path().join("other");
        fs::create_dir(&other).unwrap();
        let target = place.path().join("target");
        fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, place.path().join(format!("{PREFIX}link"))).unwrap();
        let running = Profile::create_in(place.path()).unwrap();
        assert!(!left.exists() && other.exists() && target.exists() && running.path.is_dir());
        let second = Profile::create_in(place.path()).unwrap();
        assert!(running.path.is_dir(), "its process has the lock");
        assert_eq!(second.environment()[0].1, second.folder().as_os_str());
        let folders = [running.folder().to_owned(), second.folder().to_owned()];
        drop((running, second));
        assert!(folders.iter().all(|folder| !folder.exists()));
    }
}
