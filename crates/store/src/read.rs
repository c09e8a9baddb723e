//! Reading a result: which runs are stored, and each run's record.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;

use anyhow::Result;
use model::RunRecord;

use crate::ResultFolder;
use crate::table::Damage;
use crate::table_folder::{TableFolder, file_name, read_checksums, sources};

/// The runs on the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredRuns {
    /// Numbers of the complete runs: every row of theirs can be read, and every checksum is right.
    pub whole: BTreeSet<u32>,
    /// Damaged files; their runs are not in `whole`.
    pub damaged: Vec<Damage>,
}

impl ResultFolder {
    /// The stored runs, after every byte was verified.
    ///
    /// # Errors
    /// The folder of samples cannot be listed.
    pub fn stored_runs(&self) -> Result<StoredRuns> {
        let mut stored = StoredRuns::default();
        for folder in sources(&self.samples())? {
            match TableFolder::open(&folder) {
                Ok(mut folder) => {
                    while let Some(run) = folder.next_run() {
                        match folder.tables.verify(&run) {
                            Ok(()) => drop(stored.whole.insert(run.run)),
                            Err(damage) => stored.damaged.push(damage),
                        }
                    }
                }
                Err(damage) => stored.damaged.push(damage),
            }
        }
        Ok(stored)
    }

    /// The tables without a stored checksum: damage to them cannot be detected.
    ///
    /// # Errors
    /// The folder of samples cannot be listed.
    pub fn unverified(&self) -> Result<Vec<PathBuf>> {
        let mut unverified = Vec::new();
        for folder in sources(&self.samples())? {
            let checksums = read_checksums(&folder).unwrap_or_default();
            let names = crate::tables().into_iter().map(|table| file_name(table.name));
            let unknown = names.filter(|name| !checksums.contains_key(name)).map(|name| folder.join(name));
            unverified.extend(unknown.filter(|path| path.exists()));
        }
        Ok(unverified)
    }

    /// Every stored run, one at a time; a run that cannot be read is an error, and the next run follows.
    ///
    /// # Errors
    /// The folder of samples cannot be listed.
    pub fn records(&self) -> Result<Records> {
        Ok(Records { folders: sources(&self.samples())?.into(), current: None })
    }
}

/// Reads stored runs one at a time.
#[derive(Debug)]
pub struct Records {
    folders: VecDeque<PathBuf>,
    current: Option<TableFolder>,
}

impl Iterator for Records {
    type Item = Result<RunRecord, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(folder) = &mut self.current
                && let Some(run) = folder.next_run()
            {
                return Some(folder.record(run));
            }
            match TableFolder::open(&self.folders.pop_front()?) {
                Ok(folder) => self.current = Some(folder),
                Err(damage) => return Some(Err(damage)),
            }
        }
    }
}
