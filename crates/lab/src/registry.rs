//! The registry of this user's labs, and the remains of killed ones.
//!
//! A lab for use by hand has a folder for certificates, keys and logs: `/run/h123/PID` of root, `h123/PID` in
//! `$XDG_RUNTIME_DIR` of other users, or a private folder below the one for temporary files. Containers often
//! share the latter, so its name may be another user's, and a folder of this PID may exist. Its process holds
//! a lock on a file in it. The kernel releases the lock when the process ends, so a folder without a lock
//! belongs to a killed lab, whose namespaces and processes have ended.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use crate::error::{LabError, Step};

/// The file whose lock shows that the lab runs; its text describes the lab.
const ABOUT: &str = "about";
/// The file whose lock serialises starting, cleaning and listing, because listing briefly takes a lab's lock.
const GATE: &str = "gate";

/// Replaces all folders that may hold labs.
const FOLDER_VARIABLE: &str = "H123_RUNTIME_DIR";
/// How many further names are tried.
const FURTHER_FOLDERS: u32 = 9;

/// The registration of a running lab; dropping this removes its folder.
#[derive(Debug)]
pub struct Registration {
    folder: PathBuf,
    _lock: File,
}

/// A running lab, or the remains of a killed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabEntry {
    /// The process that built it.
    pub pid: u32,
    /// Its description.
    pub what: String,
    /// Start time since 1970; zero where it is unknown.
    pub began: Duration,
    /// The folder of its files.
    pub folder: PathBuf,
    /// Whether its process runs.
    pub is_running: bool,
}

impl Registration {
    /// Registers a lab and removes the remains of killed labs. Call it before [`crate::enter`], which changes
    /// the apparent user.
    ///
    /// # Errors
    /// The folder cannot be created, or belongs to another user.
    pub fn new(what: &str) -> Result<Registration, LabError> {
        let (base, _gate) = make_first(bases())?;
        sweep(&base)?;
        let step = || format!("making a folder for the lab's files in {}", base.display());
        let folder = make_folder(&base, std::process::id()).step(step)?;
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).step(step)?;
        let about = folder.join(ABOUT);
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        fs::write(&about, format!("{began} {what}\n")).step(step)?;
        let lock = File::open(&about).step(step)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).step(step)?;
        Ok(Registration { folder, _lock: lock })
    }

    /// The folder for this lab's files; other users may enter it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // The next start removes what cannot be removed now.
        let _: Result<_, _> = fs::remove_dir_all(&self.folder);
    }
}

/// All labs of this user, by PID.
///
/// # Errors
/// Their folder cannot be read, or belongs to another user.
pub fn list() -> Result<Vec<LabEntry>, LabError> {
    in_bases(list_in)
}

/// Removes what killed labs left behind, and returns it.
///
/// # Errors
/// A folder cannot be removed, or the labs' folder belongs to another user.
pub fn clean() -> Result<Vec<LabEntry>, LabError> {
    in_bases(sweep)
}

fn in_bases(read: fn(&Path) -> Result<Vec<LabEntry>, LabError>) -> Result<Vec<LabEntry>, LabError> {
    let mut all = Vec::new();
    for base in bases().into_iter().filter(|base| is_own(base)) {
        let _gate = make_base(&base)?;
        all.extend(read(&base)?);
    }
    Ok(all)
}

/// The folders that may hold this user's labs, the preferred one first.
fn bases() -> Vec<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let private = |folder: PathBuf| folder.join(format!("h123-labs-{uid}"));
    let folder_of =
        |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(chosen) = folder_of(FOLDER_VARIABLE) {
        return vec![private(chosen)];
    }
    // Servers of root that drop their privileges can enter /run, but not root's XDG_RUNTIME_DIR.
    let runtime = if uid == 0 { Some(PathBuf::from("/run")) } else { folder_of("XDG_RUNTIME_DIR") };
    let further = (1..=FURTHER_FOLDERS).map(|number| {
        let name = format!("h123-labs-{uid}-{number}");
        std::env::temp_dir().join(name)
    });
    runtime
        .map(|folder| folder.join("h123"))
        .into_iter()
        .chain([private(std::env::temp_dir())])
        .chain(further)
        .collect()
}

fn is_own(base: &Path) -> bool {
    let own = rustix::process::getuid().as_raw();
    fs::symlink_metadata(base).is_ok_and(|found| found.is_dir() && found.uid() == own)
}

/// Makes the first of these folders that this user can have.
fn make_first(bases: Vec<PathBuf>) -> Result<(PathBuf, File), LabError> {
    let mut first_error = None;
    for base in bases {
        match make_base(&base) {
            Ok(gate) => return Ok((base, gate)),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    match first_error {
        Some(error) => Err(error),
        None => {
            Err(io::Error::from(ErrorKind::NotFound)).step(|| "finding a folder for labs' files".to_owned())
        }
    }
}

/// A folder for the lab of this process. Another container's process of the same number may have one.
fn make_folder(base: &Path, pid: u32) -> io::Result<PathBuf> {
    let mut folder = base.join(pid.to_string());
    for number in 2..=FURTHER_FOLDERS {
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                folder = base.join(format!("{pid}-{number}"))
            }
            made => return made.map(|()| folder),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Ensures that the folder exists and belongs to this user; returns the lock that excludes other processes.
fn make_base(base: &Path) -> Result<File, LabError> {
    let step = || {
        format!(
            "preparing {} for labs' files (it must be a folder of this user, or not exist)",
            base.display()
        )
    };
    match DirBuilder::new().mode(0o755).create(base) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error).step(step),
        _ => {}
    }
    let found = fs::symlink_metadata(base).step(step)?;
    if !found.is_dir() || !is_own(base) {
        return Err(io::Error::from(ErrorKind::PermissionDenied)).step(step);
    }
    fs::set_permissions(base, Permissions::from_mode(0o755)).step(step)?;
    let gate = File::options().create(true).append(true).open(base.join(GATE)).step(step)?;
    flock(&gate, FlockOperation::LockExclusive).step(step)?;
    Ok(gate)
}

fn sweep(base: &Path) -> Result<Vec<LabEntry>, LabError> {
    let mut left = list_in(base)?;
    left.retain(|lab| !lab.is_running);
    for lab in &left {
        remove(&lab.folder).step(|| format!("removing {}, which a killed lab left", lab.folder.display()))?;
    }
    Ok(left)
}

/// Removes a folder that its lab may be removing too: an ending lab does not wait for the gate, and without
/// its lock file it looks like a killed lab.
fn remove(folder: &Path) -> io::Result<()> {
    loop {
        match fs::remove_dir_all(folder) {
            // An entry was removed by the other process. Each retry finds fewer entries.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if !folder.try_exists()? {
                    return Ok(());
                }
            }
            removed => return removed,
        }
    }
}

fn list_in(base: &Path) -> Result<Vec<LabEntry>, LabError> {
    let entries = match fs::read_dir(base) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.step(|| format!("reading {}", base.display()))?,
    };
    let mut labs: Vec<LabEntry> = entries.flatten().filter_map(|entry| read_entry(&entry.path())).collect();
    labs.sort_by_key(|lab| lab.pid);
    Ok(labs)
}

/// The lab of a folder; `None` where the folder belongs to no lab.
fn read_entry(folder: &Path) -> Option<LabEntry> {
    let name = folder.file_name()?.to_str()?;
    let pid = name.split_once('-').map_or(name, |(pid, _)| pid).parse().ok()?;
    let about = folder.join(ABOUT);
    let text = fs::read_to_string(&about).unwrap_or_default();
    let (began, what) = text.trim().split_once(' ').unwrap_or(("0", "unknown"));
    let is_running = File::open(&about).is_ok_and(|file| {
        flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
    });
    Some(LabEntry {
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
    fn a_folder_of_another_user_or_of_the_same_number_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("h123-registry-other-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        // Not a folder of this user: a link to one of another user.
        std::os::unix::fs::symlink("/proc/1", folder.join("taken")).unwrap();
        let (base, gate) = make_first(vec![folder.join("taken"), folder.join("free")]).unwrap();
        assert_eq!(base, folder.join("free"));
        drop(gate);
        assert!(make_first(vec![folder.join("taken")]).is_err());
        let names = (0..3).map(|_| make_folder(&base, 7).unwrap());
        let names: Vec<_> = names.map(|path| path.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["7", "7-2", "7-3"]);
        assert_eq!(list_in(&base).unwrap().iter().map(|lab| lab.pid).collect::<Vec<_>>(), [7, 7, 7]);
        fs::remove_dir_all(&folder).unwrap();
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
