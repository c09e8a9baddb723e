//! Which labs of this user run, and what killed ones left behind.
//!
//! A lab that people use by hand has a folder, `h123-labs-UID/PID` below the folder for temporary files, for what has to
//! be a file: certificates, keys, logs. Its process holds a lock on a file in it. The kernel gives the lock up however
//! the process ends, so a folder without a lock is what a killed lab left; namespaces and processes have ended with it.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use crate::error::{LabError, Step};

/// The file whose lock says that the lab runs; its text says what the lab is.
const ABOUT: &str = "about";
/// The file whose lock keeps starting, cleaning and looking apart: whoever looks holds a lab's lock for a moment.
const GATE: &str = "gate";

/// A running lab's place among the others; dropping this removes its folder.
#[derive(Debug)]
pub struct Registration {
    folder: PathBuf,
    _lock: File,
}

/// A lab that runs, or what is left of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The process that built it.
    pub pid: u32,
    /// What it called itself.
    pub what: String,
    /// When it began, since 1970; zero where that was not written any more.
    pub began: Duration,
    /// Where its files are.
    pub folder: PathBuf,
    /// Whether its process lives.
    pub is_running: bool,
}

impl Registration {
    /// Enters a lab, and removes what killed labs left. Call it before [`crate::enter`], which changes who this user seems
    /// to be.
    ///
    /// # Errors
    /// The folder cannot be made, or belongs to somebody else.
    pub fn new(what: &str) -> Result<Registration, LabError> {
        let base = base();
        let _gate = make_base(&base)?;
        sweep(&base)?;
        let folder = base.join(std::process::id().to_string());
        let step = || format!("making {} for the lab's files", folder.display());
        fs::create_dir(&folder).step(step)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).step(step)?;
        let about = folder.join(ABOUT);
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        fs::write(&about, format!("{began} {what}\n")).step(step)?;
        let lock = File::open(&about).step(step)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).step(step)?;
        Ok(Registration { folder, _lock: lock })
    }

    /// A folder for files of this lab, which others may enter.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next start.
        let _: Result<_, _> = fs::remove_dir_all(&self.folder);
    }
}

/// All labs of this user, by process.
///
/// # Errors
/// Their folder cannot be read, or belongs to somebody else.
pub fn list() -> Result<Vec<Listed>, LabError> {
    let base = base();
    if !base.exists() {
        return Ok(Vec::new());
    }
    let _gate = make_base(&base)?;
    list_in(&base)
}

/// Removes what killed labs left behind, and says what that was.
///
/// # Errors
/// Something cannot be removed, or the labs' folder belongs to somebody else.
pub fn clean() -> Result<Vec<Listed>, LabError> {
    let base = base();
    if !base.exists() {
        return Ok(Vec::new());
    }
    let _gate = make_base(&base)?;
    sweep(&base)
}

fn base() -> PathBuf {
    std::env::temp_dir().join(format!("h123-labs-{}", rustix::process::getuid().as_raw()))
}

/// Makes sure that the folder is there and this user's own; returns the lock that keeps others out meanwhile.
fn make_base(base: &Path) -> Result<File, LabError> {
    let step = || {
        format!(
            "preparing {} for labs' files (expected a folder of this user's own, or none)",
            base.display()
        )
    };
    match DirBuilder::new().mode(0o755).create(base) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error).step(step),
        _ => {}
    }
    let found = fs::symlink_metadata(base).step(step)?;
    if !found.is_dir() || found.uid() != rustix::process::getuid().as_raw() {
        return Err(io::Error::from(ErrorKind::PermissionDenied)).step(step);
    }
    fs::set_permissions(base, Permissions::from_mode(0o755)).step(step)?;
    let gate = File::options().create(true).append(true).open(base.join(GATE)).step(step)?;
    flock(&gate, FlockOperation::LockExclusive).step(step)?;
    Ok(gate)
}

fn sweep(base: &Path) -> Result<Vec<Listed>, LabError> {
    let mut left = list_in(base)?;
    left.retain(|lab| !lab.is_running);
    for lab in &left {
        remove(&lab.folder).step(|| format!("removing {}, which a killed lab left", lab.folder.display()))?;
    }
    Ok(left)
}

/// Removes a folder that its own lab may be removing too: one that ends waits for no gate, and once the file of its lock is
/// gone it looks like a killed one.
fn remove(folder: &Path) -> io::Result<()> {
    loop {
        match fs::remove_dir_all(folder) {
            // What was found was gone when it was to be removed; each time there is less to find.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if !folder.try_exists()? {
                    return Ok(());
                }
            }
            removed => return removed,
        }
    }
}

fn list_in(base: &Path) -> Result<Vec<Listed>, LabError> {
    let entries = match fs::read_dir(base) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.step(|| format!("reading {}", base.display()))?,
    };
    let mut labs: Vec<Listed> = entries.flatten().filter_map(|entry| listed(&entry.path())).collect();
    labs.sort_by_key(|lab| lab.pid);
    Ok(labs)
}

/// The lab of a folder; `None` where the folder is no lab's.
fn listed(folder: &Path) -> Option<Listed> {
    let pid = folder.file_name()?.to_str()?.parse().ok()?;
    let about = folder.join(ABOUT);
    let text = fs::read_to_string(&about).unwrap_or_default();
    let (began, what) = text.trim().split_once(' ').unwrap_or(("0", "unknown"));
    let is_running = File::open(&about).is_ok_and(|file| {
        flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
    });
    Some(Listed {
        pid,
        what: what.to_owned(),
        began: Duration::from_secs(began.parse().unwrap_or(0)),
        folder: folder.to_owned(),
        is_running,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_lock_is_what_a_killed_lab_left() {
        let base = std::env::temp_dir().join(format!("h123-registry-test-{}", std::process::id()));
        let _gate = make_base(&base).unwrap();
        for (pid, text) in [("7", "1000 north-carolina\n"), ("8", "2000 campus\n"), ("9", "")] {
            fs::create_dir(base.join(pid)).unwrap();
            fs::write(base.join(pid).join(ABOUT), text).unwrap();
        }
        fs::create_dir(base.join("no-lab")).unwrap();
        let lock = File::open(base.join("8").join(ABOUT)).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        let found: Vec<_> = list_in(&base)
            .unwrap()
            .into_iter()
            .map(|lab| (lab.pid, lab.what, lab.began.as_secs(), lab.is_running))
            .collect();
        let expected =
            [(7, "north-carolina", 1000, false), (8, "campus", 2000, true), (9, "unknown", 0, false)];
        assert_eq!(found, expected.map(|(pid, what, began, runs)| (pid, what.to_owned(), began, runs)));
        let swept: Vec<u32> = sweep(&base).unwrap().iter().map(|lab| lab.pid).collect();
        assert_eq!(swept, [7, 9]);
        assert!(base.join("8").exists() && base.join("no-lab").exists() && !base.join("7").exists());
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn what_its_lab_removes_at_the_same_time_is_no_error() {
        let base = std::env::temp_dir().join(format!("h123-registry-race-{}", std::process::id()));
        let _gate = make_base(&base).unwrap();
        let folder = base.join("7");
        remove(&folder).unwrap();
        for _ in 0..100 {
            fs::create_dir(&folder).unwrap();
            for file in 0..20 {
                fs::write(folder.join(file.to_string()), "text").unwrap();
            }
            std::thread::scope(|scope| {
                scope.spawn(|| fs::remove_dir_all(&folder));
                sweep(&base).unwrap();
            });
            assert!(!folder.exists());
        }
        fs::remove_dir_all(&base).unwrap();
    }
}
