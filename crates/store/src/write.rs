//! Writing a result: the folder of a run appears whole, by one rename; see `recover` for compaction.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, bail};
use model::RunRecord;

use crate::ResultFolder;
use crate::files::{remove_folder, sync_folder, write_whole};
use crate::recover::{FINISHED, UNFINISHED, complete};
use crate::requests_file::Urls;
use crate::schema::{PerTable, Row, RunSummary, Table, for_each_table};
use crate::table::checksum::{CHECKSUMS_FILE, Checksums, FileChecksums};
use crate::table::{Damage, TableWriter};
use crate::table_folder::{RunRows, TableFolder, file_name, run_folder, sources};

/// The result of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// The number of runs in the compacted tables.
    pub runs: u32,
    /// Runs that could not be read. Their folders are unchanged; damaged compacted tables are kept as
    /// `damaged-tables-1`.
    pub damaged: Vec<Damage>,
}

impl ResultFolder {
    /// Stores a run. When this returns, the run is on the disk.
    ///
    /// # Errors
    /// The run is already stored, another process writes to the folder, a number does not fit, or a file
    /// cannot be written.
    pub fn append(&mut self, record: &RunRecord) -> Result<()> {
        self.lock()?;
        let stored = match self.stored.take() {
            Some(stored) => stored,
            None => self.stored_runs()?.whole,
        };
        let stored = self.stored.insert(stored);
        if !stored.insert(record.run) {
            bail!("run {} is already stored in {}", record.run, self.path().display());
        }
        self.write_run(record).inspect_err(|_| {
            // The run is not stored: a later attempt may succeed.
            self.stored.as_mut().map(|stored| stored.remove(&record.run));
        })
    }

    /// Merges the folders of all runs into one file per table. A kill at any time loses nothing.
    ///
    /// # Errors
    /// Another process writes to the folder, tables of an earlier compaction have damaged runs that were not
    /// repeated, or a file cannot be written.
    pub fn compact(&mut self) -> Result<Compaction> {
        self.lock()?;
        let samples = self.samples();
        let unfinished = samples.join(UNFINISHED);
        create_empty(&unfinished)?;
        let mut tables = TableSet::new(&unfinished);
        let mut done = Compaction::default();
        let folders = sources(&samples)?;
        for folder in &folders {
            let damaged = done.damaged.len();
            merge(folder, &mut tables, &mut done)?;
            if *folder == samples && done.damaged.len() > damaged {
                // Damaged runs of compacted tables may only go once they were repeated.
                let is_repeated = |run| folders.contains(&samples.join(run_folder(run)));
                if let Some(lost) = done.damaged.iter().find(|damage| !damage.run.is_none_or(is_repeated)) {
                    return Err(
                        Error::new(lost.clone()).context("nothing was compacted; all runs are unchanged")
                    );
                }
                keep_damaged_tables(&samples)?;
            }
        }
        tables.finish(true)?;
        fs::rename(&unfinished, samples.join(FINISHED))
            .and_then(|()| sync_folder(&samples))
            .with_context(|| format!("cannot rename {}", unfinished.display()))?;
        complete(&samples)?;
        Ok(done)
    }

    fn write_run(&self, record: &RunRecord) -> Result<()> {
        let samples = self.samples();
        let name = run_folder(record.run);
        let (temporary, target) = (samples.join(format!(".{name}.tmp")), samples.join(&name));
        create_empty(&temporary)?;
        let mut tables = TableSet::new(&temporary);
        tables.push_record(record)?;
        tables.finish(false)?;
        if target.exists() {
            set_aside(&target)?;
        }
        fs::rename(&temporary, &target)
            .and_then(|()| sync_folder(&samples))
            .with_context(|| format!("cannot create {}", target.display()))
    }
}

/// Creates an empty folder in the place of one that a killed process left.
fn create_empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        remove_folder(folder)?;
    }
    fs::create_dir(folder).with_context(|| format!("cannot create {}", folder.display()))
}

/// Adds every undamaged run of a folder to the tables. A run is read completely before any of it is added.
fn merge(folder: &Path, tables: &mut TableSet, done: &mut Compaction) -> Result<()> {
    let mut source = match TableFolder::open(folder) {
        Ok(source) => source,
        Err(damage) => {
            done.damaged.push(damage);
            return Ok(());
        }
    };
    while let Some(run) = source.next_run() {
        match source.tables.verify(&run) {
            Ok(()) => {
                tables.push_run(&mut source, run)?;
                done.runs += 1;
            }
            Err(damage) => done.damaged.push(damage),
        }
    }
    Ok(())
}

/// Keeps damaged compacted tables in a folder, since the undamaged ones will replace them.
fn keep_damaged_tables(samples: &Path) -> Result<()> {
    let folder = free_name(samples, "damaged-tables");
    let context = || format!("cannot keep the damaged tables in {}", folder.display());
    fs::create_dir(&folder).with_context(context)?;
    for entry in fs::read_dir(samples).with_context(context)? {
        let entry = entry.with_context(context)?;
        if entry.file_type().with_context(context)?.is_file() {
            fs::hard_link(entry.path(), folder.join(entry.file_name())).with_context(context)?;
        }
    }
    sync_folder(&folder).with_context(context)
}

/// Renames a damaged folder to keep it, so that the run can be repeated.
fn set_aside(folder: &Path) -> Result<()> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let target = free_name(folder.parent().unwrap_or(folder), &format!("damaged-{name}"));
    fs::rename(folder, &target)
        .with_context(|| format!("cannot rename {} to {}", folder.display(), target.display()))
}

/// The first of `NAME-1`, `NAME-2` … that does not exist in a folder.
fn free_name(folder: &Path, name: &str) -> PathBuf {
    let free = (1..).map(|number| folder.join(format!("{name}-{number}"))).find(|path| !path.exists());
    free.unwrap_or_else(|| folder.join(name))
}

/// The tables of a folder that is being written.
macro_rules! table_set {
    ($requests:ident: $request:ty = $samples:ident, $($name:ident: $item:ty = $field:ident,)+) => {
        /// The tables of a folder that is being written.
        struct TableSet {
            folder: PathBuf,
            runs: NewTable<RunSummary>,
            $requests: NewTable<$request>,
            $($name: NewTable<$item>,)+
        }

        impl TableSet {
            fn new(folder: &Path) -> Self {
                TableSet {
                    folder: folder.to_owned(),
                    runs: NewTable::new(folder),
                    $requests: NewTable::new(folder),
                    $($name: NewTable::new(folder),)+
                }
            }

            /// Adds the rows of a run.
            fn push_record(&mut self, record: &RunRecord) -> Result<()> {
                let (run, first) = (record.run, record.cell);
                let urls = Urls::new(&record.clients);
                for sample in &record.$samples {
                    let cell = first + u32::from(sample.group);
                    self.$requests.push(Row { run, cell, item: urls.request(sample.clone()) })?;
                }
                $(for item in &record.$field {
                    let cell = first + u32::from(Table::group(item));
                    self.$name.push(Row { run, cell, item: item.clone() })?;
                })+
                let summary = RunSummary {
                    block: record.block,
                    began_unix_ns: record.began_unix_ns,
                    took_ns: record.took_ns,
                    content: record.content,
                    outcome: record.outcome.clone(),
                    counts: PerTable::of_record(record),
                };
                self.runs.push(Row { run, cell: first, item: summary })
            }

            /// Adds the rows of a run that is read from another folder.
            fn push_run(&mut self, source: &mut TableFolder, run: RunRows) -> Result<()> {
                let RunRows { run, cell, summary, rows } = run;
                let urls = Urls::new(&source.tables.clients.items(rows.clients.clone(), run)?);
                source.tables.$requests.for_each(rows.$requests, run, |row| {
                    let (cell, item) = (row.cell, urls.request(row.item.sample.clone()));
                    self.$requests.push(Row { run, cell, item })
                })?;
                $(source.tables.$name.for_each(rows.$name, run, |row| self.$name.push(row.clone()))?;)+
                self.runs.push(Row { run, cell, item: summary })
            }

            /// Syncs every table to the disk, and writes their checksums.
            fn finish(self, with_empty: bool) -> Result<()> {
                let names = [
                    self.runs.finish(with_empty)?,
                    self.$requests.finish(with_empty)?,
                    $(self.$name.finish(with_empty)?,)+
                ];
                write_checksums(&self.folder, names.into_iter().flatten())
            }
        }
    };
}
for_each_table!(table_set);

fn write_checksums(folder: &Path, names: impl Iterator<Item = String>) -> Result<()> {
    let mut checksums = Checksums::new();
    for name in names {
        let sums = FileChecksums::of(&folder.join(&name))?;
        checksums.insert(name, sums);
    }
    let text = serde_json::to_vec(&checksums).context("cannot write checksums as JSON")?;
    let path = folder.join(CHECKSUMS_FILE);
    write_whole(&path, &text).with_context(|| format!("cannot write {}", path.display()))
}

/// A table whose file is created with its first row.
struct NewTable<T> {
    path: PathBuf,
    writer: Option<TableWriter<T>>,
}

impl<T: Table> NewTable<T> {
    fn new(folder: &Path) -> Self {
        NewTable { path: folder.join(file_name(T::NAME)), writer: None }
    }

    fn push(&mut self, row: Row<T>) -> Result<()> {
        self.writer()?.push(row)
    }

    /// Completes the file and returns its name; `None` for a table without rows, unless `with_empty`.
    fn finish(mut self, with_empty: bool) -> Result<Option<String>> {
        if with_empty {
            self.writer()?;
        }
        let Some(writer) = self.writer else { return Ok(None) };
        writer.finish()?;
        Ok(Some(file_name(T::NAME)))
    }

    fn writer(&mut self) -> Result<&mut TableWriter<T>> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => TableWriter::create(&self.path)?,
        };
        Ok(self.writer.insert(writer))
    }
}
