//! Pages and videos as files, for servers that serve a folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use model::Page;

/// Writes every resource of the pages below `folder`, once per study, for servers that serve files.
///
/// # Errors
/// A path leaves the folder, or a file cannot be written.
pub fn write_content(folder: &Path, pages: &[Page]) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for page in pages {
        for (name, _, body) in workload::content::files(page) {
            if Path::new(&name).components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
                bail!(
                    "page `{}` contains the path `{name}`, which leaves the folder; use a relative path without `..`",
                    page.name
                );
            }
            let path = folder.join(&name);
            let context = || format!("cannot write {}", path.display());
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).with_context(context)?;
            }
            fs::write(&path, body).with_context(context)?;
        }
    }
    Ok(())
}

/// Writes the segments of videos below `folder`, by their paths and lengths, with the same bytes as the
/// built-in origin.
///
/// # Errors
/// A file cannot be written.
pub fn write_segments(folder: &Path, segments: &BTreeMap<String, u64>) -> Result<()> {
    for (path, bytes) in segments {
        let path = folder.join(path.trim_start_matches('/'));
        let context = || format!("cannot write {}", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(context)?;
        }
        let mut file = File::create(&path).with_context(context)?;
        for chunk in workload::content::pattern_body(*bytes, 0) {
            file.write_all(&chunk).with_context(context)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_files_of_their_length() {
        let folder = std::env::temp_dir().join(format!("h123-segments-{}", std::process::id()));
        let segments = BTreeMap::from([("/bytes/5".to_owned(), 5), ("/bytes/200000".to_owned(), 200_000)]);
        write_segments(&folder, &segments).unwrap();
        for (path, bytes) in &segments {
            assert_eq!(fs::metadata(folder.join(&path[1..])).unwrap().len(), *bytes);
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
