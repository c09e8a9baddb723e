//! The lines of the live table: a bar, the most important cells if there is no room for all, and a count of
//! the others.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use model::Plan;

use crate::terminal;

const BAR: usize = 24;
/// Lines that are not cells: bar, heading, count of the others, and a free line for what follows.
const OTHER_LINES: usize = 4;
/// Terminals narrower than this show no values.
const NARROW: usize = 64;
const RUNS_COLUMN: usize = 8;
const VALUE_COLUMN: usize = 14;
const STATE_COLUMN: usize = 26;

/// What the table shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) study: String,
    pub(super) metric: String,
    pub(super) cells: Vec<CellRow>,
    pub(super) runs: usize,
    pub(super) done: usize,
    /// The cell that is measured now.
    pub(super) running: Range<usize>,
    pub(super) running_for: Duration,
    pub(super) left: Duration,
    /// Such as the rate of the last run. The current run has no rate until it ends: its client reports
    /// nothing before, and the monitor counts packets, not requests.
    pub(super) last: Option<String>,
}

/// A cell's line.
#[derive(Clone, Debug, Default)]
pub(super) struct CellRow {
    /// The levels that vary.
    pub(super) label: String,
    pub(super) runs: usize,
    pub(super) done: usize,
    pub(super) failed: usize,
    pub(super) unsupported: usize,
    /// Runs that succeeded, if their cell is invalid.
    pub(super) invalid: usize,
    /// The primary metric in the last run.
    pub(super) last: Option<String>,
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Plain,
    Running,
    Bad,
    Done,
}

impl Table {
    /// A plan's cells with the `stored` runs.
    pub(super) fn of(plan: &Plan, stored: &BTreeSet<u32>) -> Table {
        let varies = |factor: &str| {
            let first = plan.cells.first().and_then(|cell| cell.level(factor));
            plan.cells.iter().any(|cell| cell.level(factor) != first)
        };
        let runs_of = |cell: &model::Cell| {
            let first = cell.cell - u32::from(cell.group.group);
            plan.least_runs().iter().filter(move |run| run.cell == first)
        };
        let row = |cell: &model::Cell| {
            let levels = cell.levels.iter().filter(|level| varies(&level.factor));
            let label = levels.map(|level| level.value.as_str()).collect::<Vec<_>>().join(" · ");
            CellRow {
                label: if label.is_empty() { cell.label() } else { label },
                runs: runs_of(cell).count(),
                done: runs_of(cell).filter(|run| stored.contains(&run.run)).count(),
                ..CellRow::default()
            }
        };
        let cells: Vec<CellRow> = plan.cells.iter().map(row).collect();
        let metric = plan.metric.replace('_', " ");
        let runs = plan.least_runs().len();
        let done = plan.least_runs().iter().filter(|run| stored.contains(&run.run)).count();
        Table { study: plan.study.clone(), metric, cells, runs, done, ..Table::default() }
    }

    /// The lines for a terminal with these columns and rows; they always fit.
    pub(super) fn lines(&self, width: usize, height: usize, colour: bool) -> Vec<String> {
        let mut lines = vec![(self.head(), Look::Plain)];
        let room = height.saturating_sub(OTHER_LINES);
        if room > 0 && width >= 30 {
            let shown = self.chosen(room);
            let columns = self.columns(width);
            lines.push((columns.line("cell", "runs", &self.value_heading(), "state"), Look::Done));
            for index in &shown {
                let (state, look) = self.state(*index);
                let cell = &self.cells[*index];
                let runs = format!("{}/{}", cell.done, cell.runs);
                let value = cell.last.as_deref().unwrap_or("–");
                lines.push((columns.line(&cell.label, &runs, value, &state), look));
            }
            lines.extend(self.folded(&shown).map(|words| (words, Look::Done)));
        }
        lines.into_iter().map(|(line, look)| painted(&line, width, look, colour)).collect()
    }

    fn head(&self) -> String {
        let full = (BAR * self.done.min(self.runs)).checked_div(self.runs).unwrap_or(BAR);
        let bar = "█".repeat(full) + &"░".repeat(BAR - full);
        let troubles = troubles(self.cells.iter());
        let parts = [
            Some(format!("{}/{} runs", self.done, self.runs)),
            Some(format!("{} left", clock(self.left))),
            self.last.clone(),
            (!troubles.is_empty()).then_some(troubles),
        ];
        format!("{} {bar} {}", self.study, parts.into_iter().flatten().collect::<Vec<_>>().join(" · "))
    }

    /// The state of a cell.
    fn state(&self, index: usize) -> (String, Look) {
        let cell = &self.cells[index];
        let troubles = troubles(std::iter::once(cell));
        if self.running.contains(&index) {
            let troubles = if troubles.is_empty() { troubles } else { format!(", {troubles}") };
            return (format!("▶ running {}{troubles}", clock(self.running_for)), Look::Running);
        }
        match (troubles.is_empty(), cell.is_done()) {
            (false, true) => (format!("✕ {troubles}"), Look::Bad),
            (false, false) => (format!("waiting, {troubles}"), Look::Bad),
            (true, true) => ("✓ done".to_owned(), Look::Done),
            (true, false) => ("waiting".to_owned(), Look::Plain),
        }
    }

    /// The cells that fit, in the plan's order. The running cell comes first, then those with problems, those
    /// that wait and those that are done.
    fn chosen(&self, room: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.cells.len()).collect();
        if order.len() > room {
            order.sort_by_key(|index| {
                let cell = &self.cells[*index];
                (!self.running.contains(index), !cell.is_in_trouble(), cell.is_done(), *index)
            });
            order.truncate(room);
            order.sort_unstable();
        }
        order
    }

    /// A line that counts the hidden cells.
    fn folded(&self, shown: &[usize]) -> Option<String> {
        let hidden = || (0..self.cells.len()).filter(|index| !shown.contains(index));
        let all = hidden().count();
        let done = hidden().filter(|index| self.cells[*index].is_done()).count();
        let parts = [(done, "done"), (all - done, "waiting")];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        (all > 0).then(|| format!("… {all} more: {}", parts.join(", ")))
    }

    /// The heading of the values, which are those of each cell's last run.
    fn value_heading(&self) -> String {
        format!("last {}", self.metric)
    }

    fn columns(&self, width: usize) -> Columns {
        let value =
            if width < NARROW { 0 } else { VALUE_COLUMN.max(self.value_heading().chars().count() + 2) };
        let longest = self.cells.iter().map(|cell| cell.label.chars().count()).max().unwrap_or(0).max(4);
        let room = width.saturating_sub(RUNS_COLUMN + value + STATE_COLUMN + 1).max(8);
        Columns { label: longest.min(room), value }
    }
}

impl CellRow {
    fn is_done(&self) -> bool {
        self.done >= self.runs
    }

    fn is_in_trouble(&self) -> bool {
        self.failed + self.unsupported + self.invalid > 0
    }
}

/// Widths of the columns that depend on the terminal.
struct Columns {
    label: usize,
    value: usize,
}

impl Columns {
    fn line(&self, label: &str, runs: &str, value: &str, state: &str) -> String {
        let label = shortened(label, self.label);
        let value =
            if self.value == 0 { String::new() } else { format!("{value:>width$}", width = self.value) };
        format!("{label:<width$}{runs:>RUNS_COLUMN$}{value}  {state}", width = self.label)
    }
}

/// The numbers of failed, unsupported and invalid runs; empty if there are none.
pub(super) fn troubles<'a>(cells: impl Iterator<Item = &'a CellRow>) -> String {
    let sums = cells.fold([0; 3], |[failed, unsupported, invalid], cell| {
        [failed + cell.failed, unsupported + cell.unsupported, invalid + cell.invalid]
    });
    let words = sums.iter().zip(["failed", "unsupported", "invalid"]).filter(|(count, _)| **count > 0);
    words.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// A duration, rounded up to whole seconds, such as `3 min 05 s`.
pub(crate) fn clock(time: Duration) -> String {
    terminal::clock(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

/// A text of at most `most` characters, cut visibly.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A line that does not wrap, coloured if `colour` is set.
fn painted(line: &str, width: usize, look: Look, colour: bool) -> String {
    let line = shortened(line.trim_end(), width.saturating_sub(1));
    let code = match look {
        _ if !colour => return line,
        Look::Plain => return line,
        Look::Running => "1",
        Look::Bad => "31",
        Look::Done => "2",
    };
    format!("\x1b[{code}m{line}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(label: &str, done: usize) -> CellRow {
        CellRow { label: label.to_owned(), runs: 5, done, ..CellRow::default() }
    }

    fn table() -> Table {
        let mut cells =
            vec![cell("h1 · lan · small", 5), cell("h3 · lan · small", 2), cell("h2 · lan · small", 3)];
        cells[0].last = Some("1.36 ms".to_owned());
        (cells[2].failed, cells[2].invalid) = (1, 2);
        Table {
            study: "quick".to_owned(),
            metric: "page load time".to_owned(),
            cells,
            runs: 15,
            done: 10,
            running: 1..2,
            running_for: Duration::from_secs(3),
            left: Duration::from_secs(75),
            last: Some("last run 42 requests/s".to_owned()),
        }
    }

    #[test]
    fn the_table_shows_finished_running_and_failed_cells() {
        let expected = [
            "quick ████████████████░░░░░░░░ 10/15 runs · 1 min 15 s left · last run 42 requests/s · 1 failed, 2 invalid",
            "cell                runs  last page load time  state",
            "h1 · lan · small     5/5              1.36 ms  ✓ done",
            "h3 · lan · small     2/5                    –  ▶ running 3 s",
            "h2 · lan · small     3/5                    –  waiting, 1 failed, 2 invalid",
        ];
        assert_eq!(table().lines(120, 24, false), expected);
        let coloured = table().lines(120, 24, true);
        assert!(
            coloured[3].starts_with("\x1b[1mh3") && coloured[4].starts_with("\x1b[31mh2"),
            "{coloured:?}"
        );
    }

    #[test]
    fn a_small_terminal_shows_the_most_important_cells() {
        let mut table = table();
        table.cells.extend(
            (0..40).map(|number| cell(&format!("cell {number}"), if number % 2 == 0 { 5 } else { 0 })),
        );
        for (width, height) in [(120, 24), (80, 10), (50, 8), (30, 5), (20, 3), (10, 1)] {
            let lines = table.lines(width, height, false);
            assert!(lines.len() < height.max(2), "{height}: {lines:#?}");
            assert!(lines.iter().all(|line| line.chars().count() < width), "{width}: {lines:#?}");
        }
        let lines = table.lines(80, 8, false);
        assert!(
            lines[2].starts_with("h3") && lines[3].starts_with("h2"),
            "what runs, what is in trouble: {lines:#?}"
        );
        assert!(lines[4].starts_with("cell 1 "), "then what waits: {lines:#?}");
        assert_eq!(lines[6], "… 39 more: 21 done, 18 waiting");
        assert!(!table.lines(50, 8, false)[1].contains("page load"), "a narrow one shows no values");
    }

    #[test]
    fn durations_are_rounded_for_people() {
        let of = |seconds| clock(Duration::from_secs(seconds));
        assert_eq!([of(0), of(9), of(185), of(7400)], ["0 s", "9 s", "3 min 05 s", "2 h 03 min"]);
    }
}
