//! The cells of a summary, grouped by context: cells of one context differ only in the compared factor.

use analysis::Pooled;
use analysis::summary::{CellStatus, CellSummary, Comparison, MetricSummary, Verdict};
use model::plan::{Cell, Level, Plan};
use model::player::Player;
use model::workload::Workload;
use model::{Page, network};

use crate::Input;
use crate::palette::{self, Style};
use crate::playback::RunPlayback;
use crate::text::{self, clean_line};
use crate::timeline::RunTimeline;
use crate::trace::RunTrace;

/// One level of the compared factor: `h1`, `h2`, …
#[derive(Clone)]
pub(crate) struct Series {
    /// Index into [`crate::view::View::series`].
    pub(crate) index: usize,
    pub(crate) name: String,
    pub(crate) style: Style,
    pub(crate) is_baseline: bool,
}

/// Cells that are compared with each other.
#[derive(Clone)]
pub(crate) struct Context<'a> {
    /// Such as `north-carolina · large`: the levels that vary in this study.
    pub(crate) name: String,
    /// Such as `RTT 150 ms, 50 Mbit/s; 55 resources, 1.6 MB`.
    pub(crate) note: String,
    pub(crate) rows: Vec<Row<'a>>,
}

/// One cell within its context.
#[derive(Clone)]
pub(crate) struct Row<'a> {
    pub(crate) series: Series,
    pub(crate) cell: &'a CellSummary,
    primary: &'a str,
    pub(crate) planned: Option<&'a Cell>,
    /// Against the baseline, by the primary metric.
    pub(crate) comparison: Option<&'a Comparison>,
    pub(crate) trace: Option<&'a RunTrace>,
    /// What the monitor recorded during the same run.
    pub(crate) timeline: Option<&'a RunTimeline>,
    /// How the same run played a video.
    pub(crate) playback: Option<&'a RunPlayback>,
    /// The primary metric's values over all runs.
    pub(crate) pooled: Option<&'a Pooled>,
}

impl<'a> Context<'a> {
    /// The same cells by each class of the primary metric's requests, with its name.
    pub(crate) fn by_class(&self) -> Vec<(&'a str, Context<'a>)> {
        let pooled = self.rows.iter().filter_map(|row| row.pooled);
        let names = text::distinct(pooled.flat_map(|pooled| &pooled.classes).map(|(name, _)| name.as_str()));
        let of_class = |name: &'a str| {
            let mut context = self.clone();
            context.name = format!("{} · {}", self.name, clean_line(name));
            for row in &mut context.rows {
                let classes = row.pooled.map_or(&[][..], |pooled| &pooled.classes);
                row.pooled = classes.iter().find(|(class, _)| class == name).map(|(_, pooled)| pooled);
            }
            (name, context)
        };
        names.into_iter().map(of_class).collect()
    }
}

impl<'a> Row<'a> {
    fn new(input: &'a Input<'a>, cell: &'a CellSummary, series: Series) -> Row<'a> {
        let number = cell.cell;
        Row {
            series,
            cell,
            primary: &input.summary.metric,
            planned: input.plan.cells.iter().find(|planned| planned.cell == number),
            comparison: input.summary.comparisons.iter().find(|c| c.primary && c.cell == number),
            trace: input.traces.iter().find(|trace| trace.cell == number),
            timeline: input.timelines.iter().find(|timeline| timeline.cell == number),
            playback: input.playbacks.iter().find(|playback| playback.cell == number),
            pooled: input.pooled.iter().find(|pooled| pooled.cell == number),
        }
    }

    /// A metric of this cell.
    pub(crate) fn metric(&self, name: &str) -> Option<&'a MetricSummary> {
        self.cell.metrics.get(name)
    }

    /// The primary metric; [`Row::pooled`] has its values.
    pub(crate) fn primary(&self) -> Option<&'a MetricSummary> {
        self.metric(self.primary)
    }

    /// Whether its numbers may be shown without a mark.
    pub(crate) fn is_believable(&self) -> bool {
        matches!(self.cell.status, CellStatus::Valid | CellStatus::Caveat)
    }

    /// Whether its name is struck out: it was measured, but its numbers are invalid or missing.
    pub(crate) fn is_struck(&self) -> bool {
        let is_empty = matches!(self.cell.status, CellStatus::Unsupported | CellStatus::NotMeasured);
        !self.is_believable() && !is_empty
    }

    /// The name of its status.
    pub(crate) const fn status(&self) -> &'static str {
        self.cell.status.name()
    }

    /// Follows a description of its numbers; empty where they are believable.
    pub(crate) fn mark(&self) -> &'static str {
        if self.is_believable() { "" } else { ", invalid" }
    }

    /// Why a figure of single runs shows nothing of it.
    pub(crate) fn describe_missing_run(&self) -> String {
        let reason = if self.is_believable() { "no run to show" } else { self.status() };
        format!("{}: {reason}", self.series.name)
    }

    /// The class of its group in a drawing.
    pub(crate) fn class(&self) -> String {
        self.series.style.row_class(self.is_believable())
    }

    /// The verdict of a comparison of this cell, and its class; the status instead where the cell has no
    /// numbers.
    pub(crate) const fn verdict(&self, of: &Comparison) -> (&'static str, &'static str) {
        match self.cell.status {
            CellStatus::Unsupported | CellStatus::NotMeasured => (self.status(), "open"),
            CellStatus::Failed => (self.status(), "invalid"),
            CellStatus::Valid | CellStatus::Caveat | CellStatus::Invalid => verdict_name(&of.verdict),
        }
    }

    /// The page that its plan loads.
    pub(crate) fn page<'p>(&self, plan: &'p Plan) -> Option<&'p Page> {
        workload(plan, self.planned?)?.page()
    }

    /// The player of its plan.
    pub(crate) fn player<'p>(&self, plan: &'p Plan) -> Option<&'p Player> {
        workload(plan, self.planned?)?.player()
    }
}

/// The series and contexts of a summary, in the order of the plan.
pub(crate) fn of_input<'a>(input: &'a Input<'a>) -> (Vec<Series>, Vec<Context<'a>>) {
    let baseline = &input.summary.baseline;
    let mut series: Vec<Series> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    let mut keys: Vec<Vec<&Level>> = Vec::new();
    let mut contexts: Vec<Context<'a>> = Vec::new();
    for cell in &input.summary.cells {
        let (own, key): (Vec<&Level>, Vec<&Level>) =
            cell.levels.iter().partition(|level| level.factor == baseline.factor);
        let name = own.first().map_or("", |level| level.value.as_str());
        let index = names.iter().position(|known| *known == name).unwrap_or(names.len());
        if index == names.len() {
            names.push(name);
            let style = palette::style_of(name, index);
            let is_baseline = name == baseline.value;
            series.push(Series { index, name: clean_line(name), style, is_baseline });
        }
        let row = Row::new(input, cell, series[index].clone());
        if let Some(place) = keys.iter().position(|known| *known == key) {
            contexts[place].rows.push(row);
        } else {
            contexts.push(Context { name: String::new(), note: String::new(), rows: vec![row] });
            keys.push(key);
        }
    }
    for context in &mut contexts {
        context.note = note(input.plan, &context.rows);
    }
    name_contexts(&mut contexts, &keys, &input.summary.study);
    (series, contexts)
}

fn name_contexts(contexts: &mut [Context<'_>], keys: &[Vec<&Level>], study: &str) {
    let varies = |level: &Level| keys.iter().any(|key| key.iter().all(|other| *other != level));
    for (context, key) in contexts.iter_mut().zip(keys) {
        let varying: Vec<String> =
            key.iter().filter(|level| varies(level)).map(|level| clean_line(&level.label())).collect();
        let all: Vec<String> = key.iter().map(|level| clean_line(&level.label())).collect();
        let parts = if varying.is_empty() { all } else { varying };
        context.name = if parts.is_empty() { clean_line(study) } else { parts.join(" · ") };
    }
}

/// The workload of a cell.
fn workload<'p>(plan: &'p Plan, cell: &Cell) -> Option<&'p Workload> {
    Some(&plan.workloads.get(cell.group.workload)?.workload)
}

/// The network and the workload, as far as all rows have the same.
fn note(plan: &Plan, rows: &[Row<'_>]) -> String {
    let network = |cell: &Cell| plan.networks.get(cell.network).map(network::describe);
    let workload = |cell: &Cell| {
        let workload = workload(plan, cell)?;
        Some(workload.page().map_or_else(|| workload.describe(), model::page::describe))
    };
    let parts = [shared(rows, network), shared(rows, workload)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// What all planned cells of the rows have in common, if it is the same.
fn shared(rows: &[Row<'_>], describe: impl Fn(&Cell) -> Option<String>) -> Option<String> {
    let mut all = rows.iter().filter_map(|row| row.planned).map(describe);
    let first = all.next()??;
    all.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

/// The name of a verdict in sentences, and of its CSS class.
pub(crate) const fn verdict_name(verdict: &Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Better => ("better", "better"),
        Verdict::Worse => ("worse", "worse"),
        Verdict::Equivalent => ("equivalent", "equivalent"),
        Verdict::NoDifferenceShown => ("no difference shown", "open"),
        Verdict::Invalid { .. } => ("invalid", "invalid"),
    }
}
