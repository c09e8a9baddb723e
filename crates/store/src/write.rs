//! Writing a result: a run's folder appears whole by one rename; compaction can be interrupted anywhere.
//!
//! Compaction writes all tables to `.compact.tmp`, renames it to `.compact` (from here on it will be completed),
//! moves the files up, removes the runs' folders, and removes `.compact` last.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use model::assignment::ClientReport;
use model::player::PlayerEvent;
use model::record::{LinkReport, ServerReport, ServerRequest};
use model::{ConnectionRow, Reading, RunRecord};

use crate::ResultFolder;
use crate::folder::{sync_folder, write_whole};
use crate::read::{Damage, RunAt, TableFolder, file_name, run_folder, sources};
use crate::requests_file::Paths;
use crate::schema::{Counts, Of, RequestRow, Row, RunRow};
use crate::table::TableWriter;
use crate::table::checksum::{CHECKSUMS_FILE, Checksums, FileChecksums};

/// Where compacted tables grow.
const GROWING: &str = ".compact.tmp";
/// Compacted tables that are whole and wait to be moved up.
const GROWN: &str = ".compact";

/// What a compaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compaction {
    /// Runs in the compacted tables now.
    pub runs: u32,
    /// Runs that could not be read; their folders stay as they are.
    pub damaged: Vec<Damage>,
}

impl ResultFolder {
    /// Stores a run: when this returns, the disk has all of it.
    ///
    /// # Errors
    /// The run is stored already, another process writes here, a number does not fit, or the disk refuses.
    pub fn append(&mut self, record: &RunRecord) -> Result<()> {
        self.lock()?;
        let stored = match self.stored.take() {
            Some(stored) => stored,
            None => self.stored_runs()?.whole,
        };
        let stored = self.stored.insert(stored);
        if !stored.insert(record.run) {
            bail!("found run {} in {}, expected to store it once", record.run, self.path.display());
        }
        self.write_run(record).inspect_err(|_| {
            // Not stored after all: a later attempt may succeed.
            self.stored.as_mut().map(|stored| stored.remove(&record.run));
        })
    }

    /// Merges the folders of all runs into one file per table; safe against being killed at any moment.
    ///
    /// # Errors
    /// Another process writes here, the compacted tables of an earlier time are damaged, or the disk refuses.
    pub fn compact(&mut self) -> Result<Compaction> {
        self.lock()?;
        let samples = self.samples();
        let growing = samples.join(GROWING);
        if growing.exists() {
            remove_folder(&growing)?;
        }
        fs::create_dir(&growing).with_context(|| format!("cannot make {}", growing.display()))?;
        let mut tables = TableSet::new(&growing);
        let mut done = Compaction::default();
        for folder in sources(&samples)? {
            match merge(&folder, &mut tables, &mut done) {
                Ok(()) => {}
                Err(error) if folder != samples && error.is::<Damage>() => {
                    done.damaged.extend(error.downcast::<Damage>().ok());
                }
                Err(error) => return Err(error.context("nothing was compacted; all runs stay as they are")),
            }
        }
        tables.finish(true)?;
        let grown = samples.join(GROWN);
        fs::rename(&growing, &grown)
            .and_then(|()| sync_folder(&samples))
            .with_context(|| format!("cannot rename {}", growing.display()))?;
        complete(&samples)?;
        Ok(done)
    }

    fn write_run(&self, record: &RunRecord) -> Result<()> {
        let samples = self.samples();
        let name = run_folder(record.run);
        let (temporary, target) = (samples.join(format!(".{name}.tmp")), samples.join(&name));
        if temporary.exists() {
            remove_folder(&temporary)?;
        }
        fs::create_dir(&temporary).with_context(|| format!("cannot make {}", temporary.display()))?;
        let mut tables = TableSet::new(&temporary);
        tables.push_record(record)?;
        tables.finish(false)?;
        if target.exists() {
            set_aside(&target)?;
        }
        fs::rename(&temporary, &target)
            .and_then(|()| sync_folder(&samples))
            .with_context(|| format!("cannot make {}", target.display()))
    }
}

/// Whether a compaction was interrupted after its tables were whole.
pub(crate) fn is_interrupted(samples: &Path) -> bool {
    samples.join(GROWN).exists()
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

/// The last part of a compaction; may be begun again.
fn complete(samples: &Path) -> Result<()> {
    let grown = samples.join(GROWN);
    let context = || format!("cannot complete the compaction in {}", grown.display());
    for entry in fs::read_dir(&grown).with_context(context)? {
        let entry = entry.with_context(context)?;
        fs::rename(entry.path(), samples.join(entry.file_name())).with_context(context)?;
    }
    sync_folder(samples).with_context(context)?;
    let mut tables = TableFolder::open(samples)?;
    while let Some(run) = tables.next_run() {
        let folder = samples.join(run_folder(run.row.run));
        if folder.exists() {
            remove_folder(&folder)?;
        }
    }
    remove_folder(&grown)?;
    sync_folder(samples).with_context(context)
}

/// Adds every run of a folder to the tables; a run is read wholly before any of it is added.
fn merge(folder: &Path, tables: &mut TableSet, done: &mut Compaction) -> Result<()> {
    let mut source = TableFolder::open(folder)?;
    while let Some(run) = source.next_run() {
        source.verify(&run)?;
        tables.push_run(&mut source, run)?;
        done.runs += 1;
    }
    Ok(())
}

/// A damaged folder makes room for the run's repetition, but is kept.
fn set_aside(folder: &Path) -> Result<()> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let free =
        (1..).map(|number| folder.with_file_name(format!("damaged-{name}-{number}"))).find(|p| !p.exists());
    let target = free.unwrap_or_else(|| folder.with_file_name(format!("damaged-{name}")));
    fs::rename(folder, &target)
        .with_context(|| format!("cannot rename {} to {}", folder.display(), target.display()))
}

fn remove_folder(path: &Path) -> Result<()> {
    fs::remove_dir_all(path).with_context(|| format!("cannot remove {}", path.display()))
}

/// All tables of one folder, being written.
struct TableSet {
    folder: PathBuf,
    runs: NewTable<RunRow>,
    requests: NewTable<RequestRow>,
    connections: NewTable<Of<ConnectionRow>>,
    clients: NewTable<Of<ClientReport>>,
    servers: NewTable<Of<ServerReport>>,
    server_requests: NewTable<Of<ServerRequest>>,
    player: NewTable<Of<PlayerEvent>>,
    links: NewTable<Of<LinkReport>>,
    monitor: NewTable<Of<Reading>>,
}

impl TableSet {
    fn new(folder: &Path) -> Self {
        TableSet {
            folder: folder.to_owned(),
            runs: NewTable::new(folder),
            requests: NewTable::new(folder),
            connections: NewTable::new(folder),
            clients: NewTable::new(folder),
            servers: NewTable::new(folder),
            server_requests: NewTable::new(folder),
            player: NewTable::new(folder),
            links: NewTable::new(folder),
            monitor: NewTable::new(folder),
        }
    }

    fn push_record(&mut self, record: &RunRecord) -> Result<()> {
        let (run, cell) = (record.run, record.cell);
        let paths = Paths::new(&record.clients);
        for sample in &record.samples {
            let (path, not_reported) = (paths.of(sample), paths.not_reported(sample));
            let row = RequestRow { run, cell, path, not_reported, sample: sample.clone() };
            self.requests.push(row)?;
        }
        let of = |is| Of { run, cell, is };
        record.connections.iter().cloned().try_for_each(|is| self.connections.push(of(is)))?;
        let of = |is| Of { run, cell, is };
        record.clients.iter().cloned().try_for_each(|is| self.clients.push(of(is)))?;
        let of = |is| Of { run, cell, is };
        record.servers.iter().cloned().try_for_each(|is| self.servers.push(of(is)))?;
        let of = |is| Of { run, cell, is };
        record.server_requests.iter().cloned().try_for_each(|is| self.server_requests.push(of(is)))?;
        let of = |is| Of { run, cell, is };
        record.player.iter().cloned().try_for_each(|is| self.player.push(of(is)))?;
        let of = |is| Of { run, cell, is };
        record.links.iter().cloned().try_for_each(|is| self.links.push(of(is)))?;
        let of = |is| Of { run, cell, is };
        record.readings.iter().cloned().try_for_each(|is| self.monitor.push(of(is)))?;
        self.runs.push(RunRow {
            run,
            cell,
            block: record.block,
            began_unix_ns: record.began_unix_ns,
            took_ns: record.took_ns,
            outcome: record.outcome.clone(),
            calibration: record.calibration.clone(),
            counts: Counts {
                requests: record.samples.len() as u64,
                connections: record.connections.len() as u64,
                clients: record.clients.len() as u64,
                servers: record.servers.len() as u64,
                server_requests: record.server_requests.len() as u64,
                player: record.player.len() as u64,
                links: record.links.len() as u64,
                monitor: record.readings.len() as u64,
            },
        })
    }

    fn push_run(&mut self, source: &mut TableFolder, run: RunAt) -> Result<()> {
        let number = run.row.run;
        let clients = source.clients.rows(run.clients, number)?;
        let reports: Vec<ClientReport> = clients.iter().map(|row| row.is.clone()).collect();
        let paths = Paths::new(&reports);
        source.requests.for_each(run.requests, number, |row| {
            self.requests.push(RequestRow { path: paths.of(&row.sample), ..row.clone() })
        })?;
        clients.into_iter().try_for_each(|row| self.clients.push(row))?;
        source.connections.for_each(run.connections, number, |row| self.connections.push(row.clone()))?;
        source.servers.for_each(run.servers, number, |row| self.servers.push(row.clone()))?;
        source
            .server_requests
            .for_each(run.server_requests, number, |row| self.server_requests.push(row.clone()))?;
        source.player.for_each(run.player, number, |row| self.player.push(row.clone()))?;
        source.links.for_each(run.links, number, |row| self.links.push(row.clone()))?;
        source.monitor.for_each(run.monitor, number, |row| self.monitor.push(row.clone()))?;
        self.runs.push(run.row)
    }

    /// Waits until the disk has every table, and writes their checksums.
    fn finish(self, empty_too: bool) -> Result<()> {
        let names = [
            self.runs.finish(empty_too)?,
            self.requests.finish(empty_too)?,
            self.connections.finish(empty_too)?,
            self.clients.finish(empty_too)?,
            self.servers.finish(empty_too)?,
            self.server_requests.finish(empty_too)?,
            self.player.finish(empty_too)?,
            self.links.finish(empty_too)?,
            self.monitor.finish(empty_too)?,
        ];
        let mut checksums = Checksums::new();
        for name in names.into_iter().flatten() {
            checksums.insert(name.clone(), FileChecksums::of(&self.folder.join(&name))?);
        }
        let text = serde_json::to_vec(&checksums).context("cannot write checksums as JSON")?;
        let path = self.folder.join(CHECKSUMS_FILE);
        write_whole(&path, &text).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// A table whose file begins with its first row.
struct NewTable<R: Row> {
    path: PathBuf,
    writer: Option<TableWriter<R>>,
}

impl<R: Row> NewTable<R> {
    fn new(folder: &Path) -> Self {
        NewTable { path: folder.join(file_name::<R>()), writer: None }
    }

    fn push(&mut self, row: R) -> Result<()> {
        self.writer()?.push(row)
    }

    /// Completes the file; its name, or `None` where there was no row and an empty table is not wanted.
    fn finish(mut self, empty_too: bool) -> Result<Option<String>> {
        if self.writer.is_none() && !empty_too {
            return Ok(None);
        }
        self.writer()?;
        self.writer.map(TableWriter::finish).transpose()?;
        Ok(Some(file_name::<R>()))
    }

    fn writer(&mut self) -> Result<&mut TableWriter<R>> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => TableWriter::create(&self.path)?,
        };
        Ok(self.writer.insert(writer))
    }
}
