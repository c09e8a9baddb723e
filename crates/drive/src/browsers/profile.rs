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
        let _ = fs::remove_dir_all(&self.0);
    }
}
