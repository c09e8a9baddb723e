//! The tables of one folder, read run by run. `samples/` has one such folder per run, and is one itself after
//! `compact`.

use std::collections::VecDeque;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use model::RunRecord;

use crate::files::read_json_file;
use crate::schema::{PerTable, Row, RunSummary, Table, for_each_table};
use crate::table::checksum::{CHECKSUMS_FILE, Checksums, FileChecksums};
use crate::table::{Damage, TableFile};

/// The folders that hold tables: the compacted one first, then one per run, by number.
pub(crate) fn sources(samples: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    if samples.join(file_name(RunSummary::NAME)).exists() {
        folders.push(samples.to_owned());
    }
    let context = || format!("cannot list {}", samples.display());
    let mut runs = Vec::new();
    for entry in fs::read_dir(samples).with_context(context)? {
        let entry = entry.with_context(context)?;
        let run = entry.file_name().to_str().and_then(|name| name.strip_prefix("run-")?.parse::<u32>().ok());
        runs.extend(run.map(|run| (run, entry.path())));
    }
    runs.sort();
    folders.extend(runs.into_iter().map(|(_, path)| path));
    Ok(folders)
}

/// The name of a run's folder.
pub(crate) fn run_folder(run: u32) -> String {
    format!("run-{run:06}")
}

/// The name of a table's file.
pub(crate) fn file_name(table: &str) -> String {
    format!("{table}.parquet")
}

/// The checksums of a folder's tables. Without the file none are compared.
pub(crate) fn read_checksums(folder: &Path) -> Result<Checksums, Damage> {
    let path = folder.join(CHECKSUMS_FILE);
    let damage = |reason: String| Damage { file: path.clone(), run: None, reason };
    match read_json_file(&path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| damage(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Checksums::new()),
        Err(error) => Err(damage(error.to_string())),
    }
}

/// The tables of one folder.
pub(crate) struct TableFolder {
    folder: PathBuf,
    runs: VecDeque<Row<RunSummary>>,
    /// The first row of the next run in each table.
    next: PerTable<u64>,
    pub(crate) tables: Tables,
}

impl std::fmt::Debug for TableFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableFolder").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// A run's row, and its rows in the other tables.
pub(crate) struct RunRows {
    pub(crate) run: u32,
    pub(crate) cell: u32,
    pub(crate) summary: RunSummary,
    pub(crate) rows: PerTable<Range<u64>>,
}

impl TableFolder {
    /// Opens the table of runs; the others are opened when they are needed.
    pub(crate) fn open(folder: &Path) -> Result<Self, Damage> {
        Self::with_checksums(folder, &read_checksums(folder)?)
    }

    /// The same, but without checksums where these are damaged ([`crate::ResultFolder::unverified`]). Only
    /// for reports: what is resumed or merged must be verified.
    pub(crate) fn open_unverified(folder: &Path) -> Result<Self, Damage> {
        Self::with_checksums(folder, &read_checksums(folder).unwrap_or_default())
    }

    fn with_checksums(folder: &Path, checksums: &Checksums) -> Result<Self, Damage> {
        let mut table = LazyTable::<RunSummary>::new(folder, checksums);
        let mut runs = VecDeque::new();
        let file = table.file()?;
        file.for_each(0..file.rows_total(), |row| {
            runs.push_back(row.clone());
            Ok::<(), Damage>(())
        })?;
        let tables = Tables::new(folder, checksums);
        Ok(TableFolder { folder: folder.to_owned(), runs, next: PerTable::default(), tables })
    }

    /// The next run, in the order of the file.
    pub(crate) fn next_run(&mut self) -> Option<RunRows> {
        let Row { run, cell, item: summary } = self.runs.pop_front()?;
        let rows = self.next.advance(&summary.counts);
        Some(RunRows { run, cell, summary, rows })
    }

    /// A whole run.
    pub(crate) fn record(&mut self, run: RunRows) -> Result<RunRecord, Damage> {
        let (rows, number) = (run.rows.requests.clone(), run.run);
        let mut record = self.record_without_requests(run)?;
        let requests = self.tables.requests.items(rows, number).map_err(|damage| damage.of_run(number))?;
        record.samples = requests.into_iter().map(|request| request.sample).collect();
        Ok(record)
    }

    /// A run without its requests.
    pub(crate) fn record_without_requests(&mut self, run: RunRows) -> Result<RunRecord, Damage> {
        let number = run.run;
        self.tables.record(run, None).map_err(|damage| damage.of_run(number))
    }

    /// A run without its requests and without the tables that cannot be read; these are returned as damage.
    pub(crate) fn readable_record(&mut self, run: RunRows) -> Result<(RunRecord, Vec<Damage>), Damage> {
        let mut lost = Vec::new();
        Ok((self.tables.record(run, Some(&mut lost))?, lost))
    }
}

/// Every table except `runs`.
macro_rules! tables {
    ($($name:ident: $item:ty = $field:ident,)+) => {
        /// Every table of a folder except `runs`.
        pub(crate) struct Tables {
            $(pub(crate) $name: LazyTable<$item>,)+
        }

        impl Tables {
            fn new(folder: &Path, checksums: &Checksums) -> Self {
                Tables { $($name: LazyTable::new(folder, checksums),)+ }
            }

            /// Reads every row of a run to verify it.
            pub(crate) fn verify(&mut self, run: &RunRows) -> Result<(), Damage> {
                $(self.$name
                    .for_each(run.rows.$name.clone(), run.run, |_| Ok(()))
                    .map_err(|damage: Damage| damage.of_run(run.run))?;)+
                Ok(())
            }
        }

        record!($($name: $item = $field,)+);
    };
}

/// The record of a run, from every table except the first one, `requests`.
macro_rules! record {
    ($requests:ident: $request:ty = $samples:ident, $($name:ident: $item:ty = $field:ident,)+) => {
        impl Tables {
            /// A run without its requests. A damaged table is an error, or is empty and listed in `lost`.
            fn record(&mut self, run: RunRows, mut lost: Option<&mut Vec<Damage>>) -> Result<RunRecord, Damage> {
                Ok(RunRecord {
                    run: run.run,
                    cell: run.cell,
                    block: run.summary.block,
                    began_unix_ns: run.summary.began_unix_ns,
                    took_ns: run.summary.took_ns,
                    content: run.summary.content,
                    outcome: run.summary.outcome,
                    $samples: Vec::new(),
                    $($field: match (self.$name.items(run.rows.$name, run.run), &mut lost) {
                        (Err(damage), Some(lost)) => {
                            lost.push(damage);
                            Vec::new()
                        }
                        (items, _) => items?,
                    },)+
                })
            }
        }
    };
}
for_each_table!(tables);

/// A table that is opened when its first row is read; a table without rows may have no file.
pub(crate) struct LazyTable<T> {
    path: PathBuf,
    checksums: Option<FileChecksums>,
    file: Option<TableFile<T>>,
}

impl<T: Table> LazyTable<T> {
    fn new(folder: &Path, checksums: &Checksums) -> Self {
        let name = file_name(T::NAME);
        LazyTable { path: folder.join(&name), checksums: checksums.get(&name).cloned(), file: None }
    }

    fn file(&mut self) -> Result<&mut TableFile<T>, Damage> {
        let file = match self.file.take() {
            Some(file) => file,
            None => TableFile::open(&self.path, self.checksums.clone())?,
        };
        Ok(self.file.insert(file))
    }

    /// What the rows of a run hold.
    pub(crate) fn items(&mut self, rows: Range<u64>, run: u32) -> Result<Vec<T>, Damage> {
        let mut items = Vec::new();
        self.for_each(rows, run, |row| {
            items.push(row.item.clone());
            Ok::<(), Damage>(())
        })?;
        Ok(items)
    }

    /// Calls `show` with each row of a run, and checks that the row belongs to the run.
    pub(crate) fn for_each<E: From<Damage>>(
        &mut self,
        rows: Range<u64>,
        run: u32,
        mut show: impl FnMut(&Row<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        if rows.is_empty() {
            return Ok(());
        }
        let path = self.path.clone();
        self.file()?.for_each(rows, |row| {
            if row.run != run {
                let reason = format!("a row belongs to run {}, not to run {run}", row.run);
                return Err(Damage { file: path.clone(), run: Some(run), reason }.into());
            }
            show(row)
        })
    }
}
