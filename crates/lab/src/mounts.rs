//! Files of a node's own in the place of the machine's, in the node's mount namespace.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

use crate::error::{LabError, Step};

/// Where a file system in memory stands while the files are written; every Linux has this folder (FHS 3.0, section 3.18).
const STAGE: &str = "/tmp";

/// A text that stands in the place of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFile {
    /// The file that is covered; it must exist.
    pub path: PathBuf,
    /// What processes of the node read there.
    pub text: String,
}

/// Covers files, from the node's thread. Nothing of it has a name outside the node's mount namespace, with which it
/// vanishes.
pub(crate) fn cover(files: &[OwnFile]) -> Result<(), LabError> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", STAGE, "tmpfs", flags, c"size=1m,mode=0755")
        .step(|| format!("mounting a file system in memory at {STAGE} inside a node"))?;
    let covered = files.iter().enumerate().try_for_each(|(index, file)| {
        let what = || {
            let path = file.path.display();
            format!("putting the node's own file over {path} (an empty file there is enough)")
        };
        let staged = Path::new(STAGE).join(index.to_string());
        fs::write(&staged, &file.text).step(what)?;
        // Servers that gave up their privileges read it too, whatever this process's umask is.
        fs::set_permissions(&staged, Permissions::from_mode(0o644)).step(what)?;
        mount_bind(&staged, &file.path).step(what)
    });
    let cleared = unmount(STAGE, UnmountFlags::DETACH).step(|| format!("taking {STAGE} back inside a node"));
    covered.and(cleared)
}
