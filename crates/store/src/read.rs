//! Reading a result: which runs are stored, and every run as it was.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use model::assignment::ClientReport;
use model::player::PlayerEvent;
use model::record::{LinkReport, ServerReport, ServerRequest};
use model::{ConnectionRow, Reading, RunRecord};

use crate::ResultFolder;
use crate::schema::{Counts, Of, RequestRow, Row, RunRow};
use crate::table::TableFile;
use crate::table::checksum::{CHECKSUMS_FILE, Checksums, FileChecksums};

/// A file of samples that cannot be believed; everything else stays readable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is damaged{}: {reason}", file.display(), of_run(*run))]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The run that is lost by it, where that is known.
    pub run: Option<u32>,
    /// What was found and what was expected.
    pub reason: String,
}

fn of_run(run: Option<u32>) -> String {
    run.map_or(String::new(), |run| format!(" (run {run})"))
}

/// Which runs are on the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredRuns {
    /// Numbers of the runs that are there: their files have whole footers and the expected numbers of rows.
    pub whole: BTreeSet<u32>,
    /// Files that are not as they should be; their runs are not in `whole`.
    pub damaged: Vec<Damage>,
}

impl ResultFolder {
    /// Which runs are stored. Looks at footers; [`ResultFolder::records`] verifies every byte.
    ///
    /// # Errors
    /// The folder of samples cannot be listed.
    pub fn stored_runs(&self) -> Result<StoredRuns> {
        let mut stored = StoredRuns::default();
        for folder in sources(&self.samples())? {
            match TableFolder::open(&folder) {
                Ok(mut tables) => {
                    while let Some(run) = tables.next_run() {
                        match tables.check_counts(&run) {
                            Ok(()) => drop(stored.whole.insert(run.row.run)),
                            Err(damage) => stored.damaged.push(damage),
                        }
                    }
                }
                Err(damage) => stored.damaged.push(damage),
            }
        }
        Ok(stored)
    }

    /// The tables whose bytes nothing vouches for, because no checksum of them is stored.
    ///
    /// # Errors
    /// The folder of samples cannot be listed.
    pub fn unverified(&self) -> Result<Vec<PathBuf>> {
        let mut unverified = Vec::new();
        for folder in sources(&self.samples())? {
            let checksums = read_checksums(&folder).unwrap_or_default();
            let alone = file_names()
                .into_iter()
                .filter(|name| !checksums.contains_key(name) && folder.join(name).exists());
            unverified.extend(alone.map(|name| folder.join(name)));
        }
        Ok(unverified)
    }

    /// Every stored run, one at a time; a run that cannot be read is an error, and the next one follows.
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
            if let Some(tables) = &mut self.current
                && let Some(run) = tables.next_run()
            {
                return Some(tables.record(run));
            }
            match TableFolder::open(&self.folders.pop_front()?) {
                Ok(tables) => self.current = Some(tables),
                Err(damage) => return Some(Err(damage)),
            }
        }
    }
}

/// The folders that hold tables: the compacted ones first, then one per run, by number.
pub(crate) fn sources(samples: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    if samples.join(file_name::<RunRow>()).exists() {
        folders.push(samples.to_owned());
    }
    let context = || format!("cannot list {}", samples.display());
    let mut runs = Vec::new();
    for entry in fs::read_dir(samples).with_context(context)? {
        let entry = entry.with_context(context)?;
        if let Some(run) = run_of(&entry.file_name().to_string_lossy()) {
            runs.push((run, entry.path()));
        }
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
pub(crate) fn file_name<R: Row>() -> String {
    format!("{}.parquet", R::TABLE)
}

/// The names of all tables' files.
fn file_names() -> [String; 9] {
    [
        file_name::<RunRow>(),
        file_name::<RequestRow>(),
        file_name::<Of<ConnectionRow>>(),
        file_name::<Of<ClientReport>>(),
        file_name::<Of<ServerReport>>(),
        file_name::<Of<ServerRequest>>(),
        file_name::<Of<PlayerEvent>>(),
        file_name::<Of<LinkReport>>(),
        file_name::<Of<Reading>>(),
    ]
}

fn run_of(name: &str) -> Option<u32> {
    name.strip_prefix("run-")?.parse().ok()
}

/// The tables of one folder, read run by run.
pub(crate) struct TableFolder {
    folder: PathBuf,
    runs: VecDeque<RunRow>,
    /// The first rows of the next run.
    next: Counts,
    pub(crate) requests: LazyTable<RequestRow>,
    pub(crate) connections: LazyTable<Of<ConnectionRow>>,
    pub(crate) clients: LazyTable<Of<ClientReport>>,
    pub(crate) servers: LazyTable<Of<ServerReport>>,
    pub(crate) server_requests: LazyTable<Of<ServerRequest>>,
    pub(crate) player: LazyTable<Of<PlayerEvent>>,
    pub(crate) links: LazyTable<Of<LinkReport>>,
    pub(crate) monitor: LazyTable<Of<Reading>>,
}

impl std::fmt::Debug for TableFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableFolder").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// A run's row, and where its rows of the other tables are.
pub(crate) struct RunAt {
    pub(crate) row: RunRow,
    pub(crate) requests: Range<u64>,
    pub(crate) connections: Range<u64>,
    pub(crate) clients: Range<u64>,
    pub(crate) servers: Range<u64>,
    pub(crate) server_requests: Range<u64>,
    pub(crate) player: Range<u64>,
    pub(crate) links: Range<u64>,
    pub(crate) monitor: Range<u64>,
}

impl TableFolder {
    /// Opens the table of runs; the others are opened when they are needed.
    pub(crate) fn open(folder: &Path) -> Result<Self, Damage> {
        Self::with_checksums(folder, &read_checksums(folder)?)
    }

    /// The same where the checksums are damaged: nothing vouches for the tables then ([`ResultFolder::unverified`]). To report
    /// alone: what is kept, or measured no more, has to be sure.
    pub(crate) fn open_unsure(folder: &Path) -> Result<Self, Damage> {
        Self::with_checksums(folder, &read_checksums(folder).unwrap_or_default())
    }

    fn with_checksums(folder: &Path, checksums: &Checksums) -> Result<Self, Damage> {
        let mut runs = LazyTable::<RunRow>::new(folder, checksums);
        let rows_total = runs.table()?.rows_total();
        Ok(TableFolder {
            folder: folder.to_owned(),
            runs: runs.table()?.rows(0..rows_total)?.into(),
            next: Counts::default(),
            requests: LazyTable::new(folder, checksums),
            connections: LazyTable::new(folder, checksums),
            clients: LazyTable::new(folder, checksums),
            servers: LazyTable::new(folder, checksums),
            server_requests: LazyTable::new(folder, checksums),
            player: LazyTable::new(folder, checksums),
            links: LazyTable::new(folder, checksums),
            monitor: LazyTable::new(folder, checksums),
        })
    }

    /// The next run's row, in the order of the file.
    pub(crate) fn next_run(&mut self) -> Option<RunAt> {
        fn take(next: &mut u64, count: u64) -> Range<u64> {
            let start = *next;
            *next = start.saturating_add(count);
            start..*next
        }
        let row = self.runs.pop_front()?;
        let counts = row.counts;
        Some(RunAt {
            row,
            requests: take(&mut self.next.requests, counts.requests),
            connections: take(&mut self.next.connections, counts.connections),
            clients: take(&mut self.next.clients, counts.clients),
            servers: take(&mut self.next.servers, counts.servers),
            server_requests: take(&mut self.next.server_requests, counts.server_requests),
            player: take(&mut self.next.player, counts.player),
            links: take(&mut self.next.links, counts.links),
            monitor: take(&mut self.next.monitor, counts.monitor),
        })
    }

    /// Whether every table has the rows that the run needs.
    fn check_counts(&mut self, run: &RunAt) -> Result<(), Damage> {
        self.requests
            .check(&run.requests)
            .and_then(|()| self.connections.check(&run.connections))
            .and_then(|()| self.clients.check(&run.clients))
            .and_then(|()| self.servers.check(&run.servers))
            .and_then(|()| self.server_requests.check(&run.server_requests))
            .and_then(|()| self.player.check(&run.player))
            .and_then(|()| self.links.check(&run.links))
            .and_then(|()| self.monitor.check(&run.monitor))
            .map_err(|damage| damage.of_run(run.row.run))
    }

    /// Reads every row of a run once, to be sure of it.
    pub(crate) fn verify(&mut self, run: &RunAt) -> Result<(), Damage> {
        self.requests
            .verify(run.requests.clone(), run.row.run)
            .and_then(|()| self.connections.verify(run.connections.clone(), run.row.run))
            .and_then(|()| self.clients.verify(run.clients.clone(), run.row.run))
            .and_then(|()| self.servers.verify(run.servers.clone(), run.row.run))
            .and_then(|()| self.server_requests.verify(run.server_requests.clone(), run.row.run))
            .and_then(|()| self.player.verify(run.player.clone(), run.row.run))
            .and_then(|()| self.links.verify(run.links.clone(), run.row.run))
            .and_then(|()| self.monitor.verify(run.monitor.clone(), run.row.run))
            .map_err(|damage| damage.of_run(run.row.run))
    }

    fn record(&mut self, run: RunAt) -> Result<RunRecord, Damage> {
        let (rows, number) = (run.requests.clone(), run.row.run);
        let mut record = self.record_without_requests(run)?;
        let samples = self.requests.rows(rows, number).map_err(|damage| damage.of_run(number))?;
        record.samples = samples.into_iter().map(|row| row.sample).collect();
        Ok(record)
    }

    /// A run as it was, but for its rows of requests.
    pub(crate) fn record_without_requests(&mut self, run: RunAt) -> Result<RunRecord, Damage> {
        let number = run.row.run;
        self.all_but_requests(run, None).map_err(|damage| damage.of_run(number))
    }

    /// The same without the tables that cannot be read, which are named.
    pub(crate) fn what_is_there(&mut self, run: RunAt) -> Result<(RunRecord, Vec<Damage>), Damage> {
        let mut lost = Vec::new();
        Ok((self.all_but_requests(run, Some(&mut lost))?, lost))
    }

    fn all_but_requests(
        &mut self,
        run: RunAt,
        mut lost: Option<&mut Vec<Damage>>,
    ) -> Result<RunRecord, Damage> {
        let row = run.row;
        Ok(RunRecord {
            run: row.run,
            cell: row.cell,
            block: row.block,
            began_unix_ns: row.began_unix_ns,
            took_ns: row.took_ns,
            outcome: row.outcome,
            samples: Vec::new(),
            connections: kept(self.connections.rows(run.connections, row.run), &mut lost)?,
            clients: kept(self.clients.rows(run.clients, row.run), &mut lost)?,
            servers: kept(self.servers.rows(run.servers, row.run), &mut lost)?,
            server_requests: kept(self.server_requests.rows(run.server_requests, row.run), &mut lost)?,
            player: kept(self.player.rows(run.player, row.run), &mut lost)?,
            links: kept(self.links.rows(run.links, row.run), &mut lost)?,
            readings: kept(self.monitor.rows(run.monitor, row.run), &mut lost)?,
            calibration: row.calibration,
        })
    }
}

/// The nouns of a table's rows; where it is damaged and `lost` takes note of that, none.
fn kept<T>(found: Result<Vec<Of<T>>, Damage>, lost: &mut Option<&mut Vec<Damage>>) -> Result<Vec<T>, Damage> {
    match (found, lost) {
        (Ok(rows), _) => Ok(rows.into_iter().map(|row| row.is).collect()),
        (Err(damage), Some(lost)) => {
            lost.push(damage);
            Ok(Vec::new())
        }
        (Err(damage), None) => Err(damage),
    }
}

/// A table that is opened when its first row is wanted; a table without rows may have no file.
pub(crate) struct LazyTable<R: Row> {
    path: PathBuf,
    checksums: Option<FileChecksums>,
    table: Option<TableFile<R>>,
}

impl<R: Row + Clone> LazyTable<R> {
    fn new(folder: &Path, checksums: &Checksums) -> Self {
        let name = file_name::<R>();
        LazyTable { path: folder.join(&name), checksums: checksums.get(&name).cloned(), table: None }
    }

    fn table(&mut self) -> Result<&mut TableFile<R>, Damage> {
        let table = match self.table.take() {
            Some(table) => table,
            None => TableFile::open(&self.path, self.checksums.clone())?,
        };
        Ok(self.table.insert(table))
    }

    fn check(&mut self, range: &Range<u64>) -> Result<(), Damage> {
        if range.is_empty() {
            return Ok(());
        }
        let found = self.table()?.rows_total();
        if found < range.end {
            let reason = format!("found {found} rows, expected at least {}", range.end);
            return Err(Damage { file: self.path.clone(), run: None, reason });
        }
        Ok(())
    }

    fn verify(&mut self, range: Range<u64>, run: u32) -> Result<(), Damage> {
        self.for_each(range, run, |_| Ok(()))
    }

    /// The rows of a run, copied.
    pub(crate) fn rows(&mut self, range: Range<u64>, run: u32) -> Result<Vec<R>, Damage> {
        let mut rows = Vec::new();
        self.for_each(range, run, |row| {
            rows.push(row.clone());
            Ok::<(), Damage>(())
        })?;
        Ok(rows)
    }

    /// Shows every row of a run in turn, and makes sure that it is the run's.
    pub(crate) fn for_each<E: From<Damage>>(
        &mut self,
        range: Range<u64>,
        run: u32,
        mut show: impl FnMut(&R) -> Result<(), E>,
    ) -> Result<(), E> {
        if range.is_empty() {
            return Ok(());
        }
        let file = self.path.clone();
        self.table()?.for_each(range, |row| {
            if row.run() != run {
                let reason = format!("found a row of run {}, expected run {run}", row.run());
                return Err(Damage { file: file.clone(), run: Some(run), reason }.into());
            }
            show(row)
        })
    }
}

impl Damage {
    pub(crate) fn of_run(self, run: u32) -> Self {
        Damage { run: Some(run), ..self }
    }
}

/// The checksums beside the tables; without the file nothing is compared.
fn read_checksums(folder: &Path) -> Result<Checksums, Damage> {
    let path = folder.join(CHECKSUMS_FILE);
    let damage = |reason: String| Damage { file: path.clone(), run: None, reason };
    match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| damage(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Checksums::new()),
        Err(error) => Err(damage(error.to_string())),
    }
}
