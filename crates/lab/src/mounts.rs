//! Files that replace the machine's files in a node's mount namespace.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
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

/// Replaces files, from the node's thread. The replacements end with the node's mount namespace.
pub(crate) fn cover(files: &[OwnFile]) -> Result<(), LabError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", STAGE, "tmpfs", flags, c"size=1m,mode=0755")
        .step(|| format!("mounting a tmpfs at {STAGE} inside a node"))?;
    let covered = files.iter().enumerate().try_for_each(|(index, file)| {
        let what = || {
            let path = file.path.display();
            format!("mounting the node's file over {path} (create an empty file there if it is missing)")
        };
        let staged = Path::new(STAGE).join(index.to_string());
        fs::write(&staged, &file.text).step(what)?;
        // Servers that dropped their privileges read it too, independent of this process's umask.
        fs::set_permissions(&staged, Permissions::from_mode(0o644)).step(what)?;
        mount_bind(&staged, &file.path).step(what)
    });
    let cleared = unmount(STAGE, UnmountFlags::DETACH).step(|| format!("unmounting {STAGE} inside a node"));
    covered.and(cleared)
}
