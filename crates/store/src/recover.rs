//! What a killed process left behind is completed or removed, so that a compaction can be interrupted at any
//! time.
//!
//! A compaction writes all tables to `.compact.tmp` and renames it to `.compact`; from then on it will be
//! completed. It moves the files up, removes the folders of the runs, and removes `.compact` last.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::files::{remove_folder, sync_folder};
use crate::table_folder::{TableFolder, run_folder};

/// The folder of compacted tables that are not whole yet.
pub(crate) const UNFINISHED: &str = ".compact.tmp";
/// The folder of compacted tables that are whole and not yet moved up.
pub(crate) const FINISHED: &str = ".compact";

/// Whether a compaction was interrupted after its tables were whole.
pub(crate) fn is_interrupted(samples: &Path) -> bool {
    samples.join(FINISHED).exists()
}

/// Completes or removes what a killed process left behind.
pub(crate) fn recover(samples: &Path) -> Result<()> {
    if is_interrupted(samples) {
        complete(samples)?;
    }
    let context = || format!("cannot list {}", samples.display());
    for entry in fs::read_dir(samples).with_context(context)? {
        let entry = entry.with_context(context)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && name.ends_with(".tmp") {
            remove_folder(&entry.path())?;
        }
    }
    Ok(())
}

/// The last part of a compaction; it can be repeated after an interruption.
pub(crate) fn complete(samples: &Path) -> Result<()> {
    let finished = samples.join(FINISHED);
    let context = || format!("cannot complete the compaction in {}", finished.display());
    for entry in fs::read_dir(&finished).with_context(context)? {
        let entry = entry.with_context(context)?;
        fs::rename(entry.path(), samples.join(entry.file_name())).with_context(context)?;
    }
    sync_folder(samples).with_context(context)?;
    let mut tables = TableFolder::open(samples)?;
    while let Some(run) = tables.next_run() {
        let folder = samples.join(run_folder(run.run));
        if folder.exists() {
            remove_folder(&folder)?;
        }
    }
    remove_folder(&finished)?;
    sync_folder(samples).with_context(context)
}
