//! The folder that a browser keeps its state in, new for each run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The profile's folder in the browser's folder; it is removed after the run.
const PROFILE: &str = "profile";

/// A new profile; dropping it removes it.
pub(super) struct Profile(pub(super) PathBuf);

impl Profile {
    pub(super) fn create(folder: &Path) -> Result<Profile> {
        let path = folder.join(PROFILE);
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Profile(path))
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // If this fails, the result is only larger than necessary.
        self.remove_socket();
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Profile {
    /// Removes the folder of Chromium's socket. It is in the folder for temporary files, because the path of
    /// a socket must be short; a browser that was killed leaves it there.
    fn remove_socket(&self) {
        let Ok(socket) = fs::read_link(self.0.join("SingletonSocket")) else { return };
        let Some(folder) = socket.parent() else { return };
        if folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("org.chromium.Chromium."))
        {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_folder_of_the_socket_goes_with_the_profile() {
        let place = tempfile::tempdir().unwrap();
        for (name, goes) in [("org.chromium.Chromium.0TWSZU", true), ("other", false)] {
            let temporary = place.path().join(name);
            fs::create_dir(&temporary).unwrap();
            let profile = Profile::create(place.path()).unwrap();
            symlink(temporary.join("SingletonSocket"), profile.0.join("SingletonSocket")).unwrap();
            drop(profile);
            assert_eq!(!temporary.exists(), goes, "{name}");
            assert!(!place.path().join(PROFILE).exists());
        }
    }
}
