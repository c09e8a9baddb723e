//! Files with several names: hard links, or copies where the file system has none.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Links all files below a folder to the same paths below another, without the file `left_out` at the top.
///
/// # Errors
/// A file cannot be linked or copied.
pub(crate) fn link_folder(from: &Path, to: &Path, left_out: Option<&str>) -> Result<()> {
    for (file, _) in files(from)? {
        if left_out.is_none_or(|name| file != Path::new(name)) {
            link(&from.join(&file), &to.join(&file))?;
        }
    }
    Ok(())
}

/// Gives a file a second name; a copy where the file system has no such links.
pub(crate) fn link(from: &Path, to: &Path) -> Result<()> {
    let context = || format!("cannot write {}", to.display());
    create_parent(to)?;
    match fs::hard_link(from, to) {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::CrossesDevices
                    | ErrorKind::TooManyLinks
                    | ErrorKind::PermissionDenied
                    | ErrorKind::Unsupported
            ) =>
        {
            fs::copy(from, to).map(drop).with_context(context)
        }
        // A study that is continued writes its content again.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(to).and_then(|()| fs::hard_link(from, to)).with_context(context)
        }
        linked => linked.with_context(context),
    }
}

/// Creates the folder of a file.
pub(crate) fn create_parent(path: &Path) -> Result<()> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))
}

/// The files below a folder, relative to it, with their lengths.
///
/// # Errors
/// A folder cannot be read, or has too many files.
pub fn files(folder: &Path) -> Result<Vec<(PathBuf, u64)>> {
    const MOST_FILES: usize = 200_000;
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(inner) = open.pop() {
        let path = folder.join(&inner);
        let context = || format!("cannot read {}", path.display());
        for entry in fs::read_dir(&path).with_context(context)? {
            let entry = entry.with_context(context)?;
            let name = inner.join(entry.file_name());
            let facts = fs::metadata(entry.path()).with_context(context)?;
            match facts.is_dir() {
                true => open.push(name),
                false => found.push((name, facts.len())),
            }
            if found.len() + open.len() > MOST_FILES {
                bail!("{} has more than {MOST_FILES} files; name the folder of one media", folder.display());
            }
        }
    }
    found.sort();
    Ok(found)
}
