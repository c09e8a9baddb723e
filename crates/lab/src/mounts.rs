//! Files that replace the machine's files in a node's mount namespace.

use std::fs::{self, File, Permissions};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

use crate::error::{LabError, Step};

/// The mount point of a temporary file system while the files are written; it exists on every Linux (FHS 3.0,
/// section 3.18).
const STAGE: &str = "/tmp";

/// A text that replaces a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFile {
    /// The replaced file; it must exist.
    pub path: PathBuf,
    /// The text that processes of the node read there.
    pub text: String,
}

/// A file that covers another one. It stays writable for this process.
#[derive(Debug)]
pub(crate) struct CoveredFile {
    file: File,
    text: String,
}

impl CoveredFile {
    /// Replaces the address at the beginning of every line, as in /etc/hosts.
    pub(crate) fn replace_address(&mut self, old: IpAddr, new: IpAddr) -> io::Result<()> {
        let (old, new) = (old.to_string(), new.to_string());
        let line = |line: &str| match line.split_once(' ') {
            Some((address, names)) if address == old => format!("{new} {names}\n"),
            _ => format!("{line}\n"),
        };
        let text: String = self.text.lines().map(line).collect();
        if text != self.text {
            self.file.write_all_at(text.as_bytes(), 0)?;
            self.file.set_len(text.len() as u64)?;
            self.text = text;
        }
        Ok(())
    }
}

/// Replaces files, from the node's thread. The replacements end with the node's mount namespace.
pub(crate) fn cover(files: &[OwnFile]) -> Result<Vec<CoveredFile>, LabError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", STAGE, "tmpfs", flags, c"size=1m,mode=0755")
        .step(|| format!("mounting a tmpfs at {STAGE} inside a node"))?;
    let covered: Result<Vec<CoveredFile>, LabError> = files
        .iter()
        .enumerate()
        .map(|(index, file)| {
            let what = || {
                let path = file.path.display();
                format!("mounting the node's file over {path} (create an empty file there if it is missing)")
            };
            let staged = Path::new(STAGE).join(index.to_string());
            fs::write(&staged, &file.text).step(what)?;
            // Servers that dropped their privileges read it too, independent of this process's umask.
            fs::set_permissions(&staged, Permissions::from_mode(0o644)).step(what)?;
            let open = File::options().write(true).open(&staged).step(what)?;
            mount_bind(&staged, &file.path).step(what)?;
            Ok(CoveredFile { file: open, text: file.text.clone() })
        })
        .collect();
    let cleared = unmount(STAGE, UnmountFlags::DETACH).step(|| format!("unmounting {STAGE} inside a node"));
    cleared.and(covered)
}
