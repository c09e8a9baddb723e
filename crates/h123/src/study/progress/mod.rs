//! The progress of a study on standard error: a live table of its cells on a terminal, plain lines in a pipe
//! and in CI.

mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use analysis::RunSummary;
use analysis::comparison::baseline_of;
use analysis::summary::{CellStatus, CellSummary};
use model::number::float;
use model::record::NetworkCalibration;
use model::sample::{Outcome, Phase};
use model::{Cell, Plan, RunRecord};

use crate::terminal::{self, note};
use table::{CellRow, Table};

pub(crate) use table::clock;

/// The shortest time between lines in a pipe.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// The time between redraws of the table: long, because it is drawn during measurements.
const TABLE_EVERY: Duration = Duration::from_secs(1);

/// The form of the progress display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Nowhere,
    Lines,
    Table,
}

impl Mode {
    fn of_this_process(quiet: bool) -> Mode {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        match () {
            () if quiet => Mode::Nowhere,
            () if stderr().is_terminal() && !is_set("CI") && !is_dumb => Mode::Table,
            () => Mode::Lines,
        }
    }
}

/// The progress display of a study.
pub(crate) struct Progress {
    mode: Mode,
    state: Arc<Mutex<State>>,
    /// All runs, for the validity of their cells.
    runs: BTreeMap<u32, Vec<RunSummary>>,
    last_line: Instant,
    /// The thread that draws the table, and the channel that stops it.
    drawing: Option<(Sender<()>, JoinHandle<()>)>,
}

/// The state of the study.
struct State {
    table: Table,
    total_expected_ns: u64,
    done_expected_ns: u64,
    began: Instant,
    /// When the current run began, and its expected time.
    running: Option<(Instant, u64)>,
}

impl Progress {
    /// The display of a study, some of whose runs are `stored` already.
    pub(crate) fn new(plan: &Plan, stored: &BTreeSet<u32>, quiet: bool) -> Self {
        let left = || plan.least_runs().iter().filter(|run| !stored.contains(&run.run));
        let expected_ns = left().map(|run| plan.expected_run_ns(run.cell)).sum();
        let now = Instant::now();
        let state = State {
            table: Table::of(plan, stored),
            total_expected_ns: expected_ns,
            done_expected_ns: 0,
            began: now,
            running: None,
        };
        let (mode, state) = (Mode::of_this_process(quiet), Arc::new(Mutex::new(state)));
        Progress { mode, state, runs: BTreeMap::new(), last_line: now, drawing: None }
    }

    /// Draws the table from now on, if there is one.
    pub(crate) fn show(&mut self) {
        let has_runs = locked(&self.state).total_expected_ns > 0;
        if self.mode == Mode::Table && has_runs {
            self.drawing = Some(draw_until_stopped(Arc::clone(&self.state)));
        }
    }

    /// Whether it is shown. Otherwise nothing is analysed for it.
    pub(crate) fn is_visible(&self) -> bool {
        self.mode != Mode::Nowhere
    }

    /// Adds the runs of an earlier process, so that the numbers of failed and invalid runs are those of all
    /// runs.
    pub(crate) fn restore(&mut self, plan: &Plan, runs: Vec<RunSummary>, networks: &[NetworkCalibration]) {
        let summary = analysis::analyse(plan, &runs, networks);
        let rows = &mut locked(&self.state).table.cells;
        for (row, cell) in rows.iter_mut().zip(&summary.cells) {
            row.invalid = invalid_runs(cell);
        }
        for run in runs {
            if let Some(row) = rows.get_mut(run.cell as usize) {
                count(row, &run.outcome);
            }
            self.runs.entry(run.cell).or_default().push(run);
        }
    }

    /// Adds a block of runs to the expected ones.
    pub(crate) fn expect(&mut self, plan: &Plan, runs: usize, expected_ns: u64) {
        let mut state = locked(&self.state);
        state.total_expected_ns = state.total_expected_ns.saturating_add(expected_ns);
        state.table.runs += runs;
        let each = runs / plan.runs_per_block().max(1);
        state.table.cells.iter_mut().for_each(|cell| cell.runs += each);
    }

    /// Shows that a run of a cell has begun.
    pub(crate) fn begin(&self, plan: &Plan, cell: u32) {
        let mut state = locked(&self.state);
        let first = cell as usize;
        state.table.running = first..first + plan.cells_of_run(cell).len();
        state.running = Some((Instant::now(), plan.expected_run_ns(cell)));
    }

    /// Shows that a run has ended and is stored.
    pub(crate) fn end(&mut self, plan: &Plan, record: &RunRecord, networks: &[NetworkCalibration]) {
        let expected_ns = plan.expected_run_ns(record.cell);
        // The analysis takes time, so it runs between runs and only for a visible display.
        let last_run = self.is_visible().then(|| LastRun::of(plan, record, &mut self.runs, networks));
        let mut state = locked(&self.state);
        state.done_expected_ns = state.done_expected_ns.saturating_add(expected_ns);
        (state.running, state.table.running) = (None, 0..0);
        state.table.done += 1;
        for cell in plan.cells_of_run(record.cell) {
            if let Some(row) = state.table.cells.get_mut(cell.cell as usize) {
                row.done += 1;
                count(row, &record.outcome);
            }
        }
        if let Some(last_run) = last_run {
            last_run.show(&mut state.table.cells);
            state.table.last = last_run.rate;
        }
        let line = state.line();
        drop(state);
        if self.mode == Mode::Lines && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            note(false, &line);
        }
    }

    /// Removes the table.
    pub(crate) fn finish(&mut self) {
        if let Some((stop, drawing)) = self.drawing.take() {
            drop(stop);
            // The study does not depend on the display, so a panic of its thread is ignored.
            let _ = drawing.join();
            terminal::block(&[]);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The state, which remains usable after a panic in another thread.
fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn draw_until_stopped(state: Arc<Mutex<State>>) -> (Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = channel::<()>();
    let drawing = std::thread::spawn(move || {
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        loop {
            let (width, height) = terminal::size_of_stderr();
            let lines = {
                let mut state = locked(&state);
                state.table.left = state.left();
                state.table.running_for = state.running.map_or(Duration::ZERO, |(began, _)| began.elapsed());
                state.table.lines(width, height, colour)
            };
            terminal::block(&lines);
            if stopped.recv_timeout(TABLE_EVERY) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    });
    (stop, drawing)
}

impl State {
    /// Time left: the plan's expectation, scaled by the time of the finished runs.
    fn left(&self) -> Duration {
        let running = self.running.map_or(0, |(began, expected_ns)| {
            u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX).min(expected_ns)
        });
        let left_ns = self.total_expected_ns.saturating_sub(self.done_expected_ns);
        let scale = if self.done_expected_ns == 0 {
            1.0
        } else {
            let since = self.running.map_or_else(|| self.began.elapsed(), |(began, _)| began - self.began);
            since.as_secs_f64() * 1e9 / float(self.done_expected_ns)
        };
        let left_s = (float(left_ns) * scale - float(running)).max(0.0) / 1e9;
        Duration::try_from_secs_f64(left_s).unwrap_or(Duration::MAX)
    }

    /// One line for pipes and logs.
    fn line(&self) -> String {
        let Table { done, runs, cells, last, .. } = &self.table;
        let troubles = table::troubles(cells.iter());
        let troubles = if troubles.is_empty() { troubles } else { format!(", {troubles}") };
        let last = last.as_ref().map_or(String::new(), |last| format!(", {last}"));
        format!("{done}/{runs} runs, {} left{last}{troubles}", table::clock(self.left()))
    }
}

/// The analysis after a run.
struct LastRun {
    /// The cells whose validity the run may change, and the number of their runs if they are invalid: as the
    /// final table judges them, by all their runs.
    invalid: Vec<(u32, usize)>,
    /// The primary metric's value, in each cell of the run.
    values: Vec<(u32, String)>,
    /// Such as `last run 12300 requests/s`.
    rate: Option<String>,
}

impl LastRun {
    fn of(
        plan: &Plan,
        record: &RunRecord,
        runs: &mut BTreeMap<u32, Vec<RunSummary>>,
        networks: &[NetworkCalibration],
    ) -> LastRun {
        let last = RunSummary::all_of(plan, record);
        let cells: Vec<u32> = last.iter().map(|run| run.cell).collect();
        let summary = analysis::analyse(plan, &last, networks);
        let value = |cell: &CellSummary| {
            let metric = cell.metrics.get(&plan.metric)?;
            Some((cell.cell, report::format_value(&metric.unit, metric.compared().value)))
        };
        let values =
            summary.cells.iter().filter(|cell| cells.contains(&cell.cell)).filter_map(value).collect();
        last.into_iter().for_each(|run| runs.entry(run.cell).or_default().push(run));
        LastRun { invalid: invalid_cells(plan, &cells, runs, networks), values, rate: rate(record) }
    }

    /// Shows the run's values, and which cells are invalid.
    fn show(&self, rows: &mut [CellRow]) {
        for (cell, runs) in &self.invalid {
            if let Some(row) = rows.get_mut(*cell as usize) {
                row.invalid = *runs;
            }
        }
        for (cell, value) in &self.values {
            if let Some(row) = rows.get_mut(*cell as usize) {
                row.last = Some(value.clone());
            }
        }
    }
}

/// The cells whose validity a run of the cells `last` may change: themselves, and those that are compared
/// with them. With the number of their runs if they are invalid, otherwise 0.
fn invalid_cells(
    plan: &Plan,
    last: &[u32],
    runs: &mut BTreeMap<u32, Vec<RunSummary>>,
    networks: &[NetworkCalibration],
) -> Vec<(u32, usize)> {
    let baseline = |cell: &Cell| baseline_of(plan, cell).map(|cell| cell.cell);
    let is_concerned = |cell: &&Cell| {
        last.contains(&cell.cell) || baseline(cell).is_some_and(|baseline| last.contains(&baseline))
    };
    let concerned: Vec<&Cell> = plan.cells.iter().filter(is_concerned).collect();
    let needed: BTreeSet<u32> =
        concerned.iter().flat_map(|cell| [Some(cell.cell), baseline(cell)]).flatten().collect();
    // Moved there and back: runs with many requests are large.
    let moved: Vec<RunSummary> = needed.iter().filter_map(|cell| runs.remove(cell)).flatten().collect();
    let summary = analysis::analyse(plan, &moved, networks);
    for run in moved {
        runs.entry(run.cell).or_default().push(run);
    }
    let count = |cell: &CellSummary| (cell.cell, invalid_runs(cell));
    let is_shown = |cell: &&CellSummary| concerned.iter().any(|shown| shown.cell == cell.cell);
    summary.cells.iter().filter(is_shown).map(count).collect()
}

/// The number of runs of an invalid cell; 0 of any other.
fn invalid_runs(cell: &CellSummary) -> usize {
    if cell.status == CellStatus::Invalid { cell.runs_ok as usize } else { 0 }
}

/// Successful requests per second while the run measured.
fn rate(record: &RunRecord) -> Option<String> {
    let measured = || {
        let is_answered = |s: &&model::Sample| s.phase == Phase::Measure && s.outcome.is_ok();
        record.samples.iter().filter(is_answered)
    };
    let begin = measured().map(|sample| sample.intended_ns).min()?;
    let end = measured().filter_map(|sample| sample.done_ns).max()?;
    let seconds = float(end.saturating_sub(begin)) / 1e9;
    let count = measured().count() as u64;
    (seconds > 0.0)
        .then(|| format!("last run {} requests/s", model::units::three_digits(float(count) / seconds)))
}

fn count(cell: &mut CellRow, outcome: &Outcome) {
    match outcome {
        Outcome::Unsupported(_) => cell.unsupported += 1,
        Outcome::Failed(_) => cell.failed += 1,
        Outcome::Ok => {}
    }
}
