//! Every stored run, row by row and on several threads: rows of requests are shown and not kept.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use model::{RunRecord, Sample};

use crate::ResultFolder;
use crate::read::{Damage, LazyTable, RunAt, TableFolder, sources};
use crate::schema::RequestRow;
use crate::table::ROW_GROUP_ROWS;

/// The rows of requests of one stored run.
pub struct Samples<'a> {
    table: &'a mut LazyTable<RequestRow>,
    rows: std::ops::Range<u64>,
    run: u32,
}

impl Samples<'_> {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    /// Shows each in turn, in the order in which they were stored.
    ///
    /// # Errors
    /// A row that cannot be read.
    pub fn for_each(&mut self, mut show: impl FnMut(&Sample)) -> Result<(), Damage> {
        self.table.for_each(self.rows.clone(), self.run, |row| {
            show(&row.sample);
            Ok(())
        })
    }
}

/// What was made of a run, and the tables of it that are lost; or why nothing can be made of it.
pub type WhatIsThere<T> = Result<(T, Vec<Damage>), Damage>;

impl ResultFolder {
    /// Makes something of every stored run: `fold` gets what the run left behind beside its rows of requests, and these one
    /// after the other. `threads` of them work at once, each on a run of its own, and hold a row group each. The results
    /// come in the order of the runs in the files; a run that cannot be read is an error among them.
    ///
    /// # Errors
    /// The folder of samples cannot be listed.
    pub fn fold_runs<T: Send>(
        &self,
        threads: usize,
        fold: impl Fn(&RunRecord, &mut Samples<'_>) -> Result<T, Damage> + Sync,
    ) -> Result<Vec<Result<T, Damage>>> {
        self.fold_each(threads, TableFolder::open, |tables, run| {
            let (rows, number) = (run.requests.clone(), run.row.run);
            let record = tables.record_without_requests(run)?;
            let mut samples = Samples { table: &mut tables.requests, rows, run: number };
            fold(&record, &mut samples).map_err(|damage| damage.of_run(number))
        })
    }

    /// The same of a result that may be damaged: where a table other than those of runs and of requests cannot be read, a run
    /// is shown without its rows, and the table's damage with it.
    ///
    /// # Errors
    /// The folder of samples cannot be listed.
    pub fn fold_what_is_there<T: Send>(
        &self,
        threads: usize,
        fold: impl Fn(&RunRecord, &mut Samples<'_>) -> Result<T, Damage> + Sync,
    ) -> Result<Vec<WhatIsThere<T>>> {
        self.fold_each(threads, TableFolder::open_unsure, |tables, run| {
            let (rows, number) = (run.requests.clone(), run.row.run);
            let (record, lost) = tables.what_is_there(run)?;
            let mut samples = Samples { table: &mut tables.requests, rows, run: number };
            let folded = fold(&record, &mut samples).map_err(|damage| damage.of_run(number))?;
            Ok((folded, lost))
        })
    }

    fn fold_each<T: Send>(
        &self,
        threads: usize,
        opens: Opens,
        fold: impl Fn(&mut TableFolder, RunAt) -> Result<T, Damage> + Sync,
    ) -> Result<Vec<Result<T, Damage>>> {
        let tasks = tasks(sources(&self.samples())?, opens);
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, tasks.len().max(1)) {
                scope.spawn(|| {
                    let mut open = None;
                    while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let folded = task.fold(&mut open, opens, &fold);
                        done.lock().unwrap_or_else(PoisonError::into_inner).push((task.place, folded));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(place, _)| *place);
        Ok(done.into_iter().flat_map(|(_, folded)| folded).collect())
    }
}

/// Runs that follow each other in one folder, enough of them that a thread reads row groups of its own.
struct Task {
    place: usize,
    folder: PathBuf,
    /// The first and the last but one of the folder's runs, by their places in its table.
    runs: std::ops::Range<usize>,
    damage: Option<Damage>,
}

/// How a folder's tables are opened.
type Opens = fn(&Path) -> Result<TableFolder, Damage>;

fn tasks(folders: Vec<PathBuf>, opens: Opens) -> Vec<Task> {
    let mut tasks = Vec::new();
    for folder in folders {
        let mut tables = match opens(&folder) {
            Ok(tables) => tables,
            Err(damage) => {
                tasks.push(Task { place: tasks.len(), folder, runs: 0..0, damage: Some(damage) });
                continue;
            }
        };
        let (mut first, mut place, mut rows) = (0, 0, 0);
        while let Some(run) = tables.next_run() {
            place += 1;
            rows += run.requests.end - run.requests.start;
            if rows >= ROW_GROUP_ROWS as u64 {
                tasks.push(Task {
                    place: tasks.len(),
                    folder: folder.clone(),
                    runs: first..place,
                    damage: None,
                });
                (first, rows) = (place, 0);
            }
        }
        if first < place {
            tasks.push(Task { place: tasks.len(), folder, runs: first..place, damage: None });
        }
    }
    tasks
}

/// A folder's tables, and how many of its runs were passed.
type Open = Option<(PathBuf, TableFolder, usize)>;

impl Task {
    fn fold<T>(
        &self,
        open: &mut Open,
        opens: Opens,
        fold: &impl Fn(&mut TableFolder, RunAt) -> Result<T, Damage>,
    ) -> Vec<Result<T, Damage>> {
        if let Some(damage) = &self.damage {
            return vec![Err(damage.clone())];
        }
        let opened =
            open.take().filter(|(folder, _, passed)| *folder == self.folder && *passed <= self.runs.start);
        let (folder, mut tables, mut passed) = match opened {
            Some(opened) => opened,
            None => match opens(&self.folder) {
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
        *open = Some((folder, tables, passed));
        folded
    }
}
