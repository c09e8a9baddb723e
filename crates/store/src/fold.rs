//! Folds every stored run, on several threads. Requests are shown one by one and not kept.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use model::{RunRecord, Sample};

use crate::ResultFolder;
use crate::schema::Request;
use crate::table::{Damage, ROW_GROUP_ROWS};
use crate::table_folder::{LazyTable, RunRows, TableFolder, sources};

/// The requests of one stored run.
pub struct Samples<'a> {
    table: &'a mut LazyTable<Request>,
    rows: std::ops::Range<u64>,
    run: u32,
}

impl Samples<'_> {
    /// The number of requests.
    pub fn count(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    /// Calls `show` with each request, in the order in which they were stored.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn for_each(&mut self, mut show: impl FnMut(&Sample)) -> Result<(), Damage> {
        self.table.for_each(self.rows.clone(), self.run, |row| {
            show(&row.item.sample);
            Ok(())
        })
    }
}

/// What a run was folded to, with its damaged tables; or why the run cannot be read.
pub type PartialFold<T> = Result<(T, Vec<Damage>), Damage>;

impl ResultFolder {
    /// Folds every stored run: `fold` gets the run's record without requests, and the requests one after the
    /// other. Each of `threads` threads works on another run and holds one row group in memory. The results
    /// have the order of the runs in the files; a run that cannot be read is an error among them.
    ///
    /// # Errors
    /// The folder of samples cannot be listed.
    pub fn fold_runs<T: Send>(
        &self,
        threads: usize,
        fold: impl Fn(&RunRecord, &mut Samples<'_>) -> Result<T, Damage> + Sync,
    ) -> Result<Vec<Result<T, Damage>>> {
        self.fold_each(threads, TableFolder::open, |tables, run| {
            let (rows, number) = (run.rows.requests.clone(), run.run);
            let record = tables.record_without_requests(run)?;
            let mut samples = Samples { table: &mut tables.tables.requests, rows, run: number };
            fold(&record, &mut samples).map_err(|damage| damage.of_run(number))
        })
    }

    /// The same for a result that may be damaged: where a table other than `runs` and `requests` cannot be
    /// read, the record lacks its rows, and the damage is returned with the result.
    ///
    /// # Errors
    /// The folder of samples cannot be listed.
    pub fn fold_readable<T: Send>(
        &self,
        threads: usize,
        fold: impl Fn(&RunRecord, &mut Samples<'_>) -> Result<T, Damage> + Sync,
    ) -> Result<Vec<PartialFold<T>>> {
        self.fold_each(threads, TableFolder::open_unverified, |tables, run| {
            let (rows, number) = (run.rows.requests.clone(), run.run);
            let (record, lost) = tables.readable_record(run)?;
            let mut samples = Samples { table: &mut tables.tables.requests, rows, run: number };
            let folded = fold(&record, &mut samples).map_err(|damage| damage.of_run(number))?;
            Ok((folded, lost))
        })
    }

    fn fold_each<T: Send>(
        &self,
        threads: usize,
        open: OpenFolder,
        fold: impl Fn(&mut TableFolder, RunRows) -> Result<T, Damage> + Sync,
    ) -> Result<Vec<Result<T, Damage>>> {
        let tasks = tasks(sources(&self.samples())?, open);
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, tasks.len().max(1)) {
                scope.spawn(|| {
                    let mut current = None;
                    while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let folded = task.fold(&mut current, open, &fold);
                        done.lock().unwrap_or_else(PoisonError::into_inner).push((task.index, folded));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(index, _)| *index);
        Ok(done.into_iter().flat_map(|(_, folded)| folded).collect())
    }
}

/// Consecutive runs of one folder, enough of them that threads rarely read the same row group.
struct Task {
    index: usize,
    folder: PathBuf,
    /// The runs, by their indexes in the folder's table.
    runs: std::ops::Range<usize>,
    damage: Option<Damage>,
}

/// A function that opens the tables of a folder.
type OpenFolder = fn(&Path) -> Result<TableFolder, Damage>;

fn tasks(folders: Vec<PathBuf>, open: OpenFolder) -> Vec<Task> {
    let mut tasks = Vec::new();
    for folder in folders {
        let mut add = |runs, damage| {
            tasks.push(Task { index: tasks.len(), folder: folder.clone(), runs, damage });
        };
        let mut tables = match open(&folder) {
            Ok(tables) => tables,
            Err(damage) => {
                add(0..0, Some(damage));
                continue;
            }
        };
        let (mut first, mut next, mut rows) = (0, 0, 0);
        while let Some(run) = tables.next_run() {
            next += 1;
            rows += run.rows.requests.end - run.rows.requests.start;
            if rows >= ROW_GROUP_ROWS as u64 {
                add(first..next, None);
                (first, rows) = (next, 0);
            }
        }
        if first < next {
            add(first..next, None);
        }
    }
    tasks
}

/// The folder that a thread has open, and the number of its runs that the thread has passed.
type CurrentFolder = Option<(PathBuf, TableFolder, usize)>;

impl Task {
    fn fold<T>(
        &self,
        current: &mut CurrentFolder,
        open: OpenFolder,
        fold: &impl Fn(&mut TableFolder, RunRows) -> Result<T, Damage>,
    ) -> Vec<Result<T, Damage>> {
        if let Some(damage) = &self.damage {
            return vec![Err(damage.clone())];
        }
        let opened =
            current.take().filter(|(folder, _, passed)| *folder == self.folder && *passed <= self.runs.start);
        let (folder, mut tables, mut passed) = match opened {
            Some(opened) => opened,
            None => match open(&self.folder) {
                Ok(tables) => (self.folder.clone(), tables, 0),
                Err(damage) => return vec![Err(damage)],
            },
        };
        let mut folded = Vec::new();
        while passed < self.runs.end {
            let Some(run) = tables.next_run() else { break };
            passed += 1;
            if passed > self.runs.start {
                folded.push(fold(&mut tables, run));
            }
        }
        *current = Some((folder, tables, passed));
        folded
    }
}
