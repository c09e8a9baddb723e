//! Pages as files, for servers that serve a folder.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use model::Page;

/// Writes every resource of the pages below `folder`, once per study; servers read them from there.
///
/// # Errors
/// A path that leaves the folder, or a disk that refuses.
pub fn write_content(folder: &Path, pages: &[Page]) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for page in pages {
        for (name, _, body) in workload::content::files(page) {
            if Path::new(&name).components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
                bail!("found the path `{name}` in the page `{}`, expected one inside a folder", page.name);
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
