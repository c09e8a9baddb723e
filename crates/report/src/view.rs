//! The summary as a reader sees it: contexts (what is alike) and within each one row per compared level.

use std::collections::BTreeMap;

use analysis::Pooled;
use analysis::metrics::{self, Better};
use analysis::summary::{CellStatus, CellSummary, Comparison, MetricSummary, Summary, Verdict};
use model::network;
use model::plan::{Cell, Level};
use model::{Plan, Workload};

use crate::Input;
use crate::palette::{self, Style};
use crate::playback::RunPlayback;
use crate::sweep::{self, Sweep};
use crate::text::{self, clean_line};
use crate::timeline::RunTimeline;
use crate::trace::RunTrace;

/// Everything that figures, tables and pages read.
pub(crate) struct View<'a> {
    pub(crate) input: &'a Input<'a>,
    pub(crate) series: Vec<Series>,
    pub(crate) contexts: Vec<Context<'a>>,
    /// By cell and metric.
    comparisons: BTreeMap<(u32, &'a str), &'a Comparison>,
    /// What the study sweeps.
    pub(crate) sweeps: Vec<Sweep>,
}

/// One level of the compared factor: `h1`, `h2`, …
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) style: Style,
    pub(crate) is_baseline: bool,
}

/// What the cells of one comparison have in common.
pub(crate) struct Context<'a> {
    /// Such as `north-carolina · large`: the factors that vary in this study.
    pub(crate) name: String,
    /// Such as `RTT 150 ms, 50 Mbit/s; 55 resources, 1.6 MB`.
    pub(crate) note: String,
    pub(crate) rows: Vec<Row<'a>>,
}

/// One cell within its context.
pub(crate) struct Row<'a> {
    /// Index into [`View::series`].
    pub(crate) series: usize,
    pub(crate) cell: &'a CellSummary,
    /// The primary metric's name.
    primary: &'a str,
    pub(crate) planned: Option<&'a Cell>,
    /// Against the baseline, by the primary metric.
    pub(crate) comparison: Option<&'a Comparison>,
    pub(crate) trace: Option<&'a RunTrace>,
    /// What the monitor saw of the same run.
    pub(crate) timeline: Option<&'a RunTimeline>,
    /// How the same run played a video.
    pub(crate) playback: Option<&'a RunPlayback>,
    /// The primary metric's values over all runs.
    pub(crate) pooled: Option<&'a Pooled>,
}

impl<'a> View<'a> {
    /// Sorts a summary into contexts, in the order of the plan.
    pub(crate) fn new(input: &'a Input<'a>) -> Self {
        let summary = input.summary;
        let factor = summary.baseline.factor.as_str();
        let mut series: Vec<Series> = Vec::new();
        let mut keys: Vec<Vec<&Level>> = Vec::new();
        let mut contexts: Vec<Context<'a>> = Vec::new();
        for cell in &summary.cells {
            let name =
                cell.levels.iter().find(|level| level.factor == factor).map_or("", |level| &level.value);
            let key: Vec<&Level> = cell.levels.iter().filter(|level| level.factor != factor).collect();
            let series_index = series.iter().position(|s| s.name == name).unwrap_or_else(|| {
                series.push(Series {
                    name: name.to_owned(),
                    style: palette::style_of(name, series.len()),
                    is_baseline: name == summary.baseline.value,
                });
                series.len() - 1
            });
            let planned = input.plan.cells.iter().find(|planned| planned.cell == cell.cell);
            let row = Row {
                series: series_index,
                cell,
                primary: &summary.metric,
                planned,
                comparison: summary.comparisons.iter().find(|c| c.primary && c.cell == cell.cell),
                trace: input.traces.iter().find(|trace| trace.cell == cell.cell),
                timeline: input.timelines.iter().find(|timeline| timeline.cell == cell.cell),
                playback: input.playbacks.iter().find(|playback| playback.cell == cell.cell),
                pooled: input.pooled.iter().find(|pooled| pooled.cell == cell.cell),
            };
            if let Some(index) = keys.iter().position(|known| *known == key) {
                contexts[index].rows.push(row);
            } else {
                let note = planned.map_or(String::new(), |planned| context_note(input.plan, planned));
                contexts.push(Context { name: String::new(), note, rows: vec![row] });
                keys.push(key);
            }
        }
        name_contexts(&mut contexts, &keys, &summary.study);
        let comparisons = summary.comparisons.iter().map(|c| ((c.cell, c.metric.as_str()), c)).collect();
        let mut view = View { input, series, contexts, comparisons, sweeps: Vec::new() };
        view.sweeps = sweep::sweeps(&view);
        view
    }

    /// A cell against the baseline's, by a metric.
    pub(crate) fn comparison(&self, cell: u32, metric: &str) -> Option<&'a Comparison> {
        self.comparisons.get(&(cell, metric)).copied()
    }

    pub(crate) fn summary(&self) -> &'a Summary {
        self.input.summary
    }

    pub(crate) fn plan(&self) -> &'a Plan {
        self.input.plan
    }

    /// Runs of each cell: as many as planned, or as a rule added.
    pub(crate) fn runs_per_cell(&self) -> usize {
        let added = self.summary().repetition.map_or(0, |standing| standing.blocks);
        self.plan().runs_per_cell.max(added) as usize
    }

    pub(crate) fn series_of(&self, row: &Row<'_>) -> &Series {
        &self.series[row.series]
    }

    /// The primary metric's words, such as `page load time`.
    pub(crate) fn metric_title(&self) -> String {
        text::uncapital(&text::metric_title(&self.summary().metric))
    }

    /// The primary metric's unit, as far as any cell has it.
    pub(crate) fn metric_unit(&self) -> &'a str {
        let metric = &self.summary().metric;
        self.summary().cells.iter().find_map(|cell| cell.metrics.get(metric)).map_or("1", |m| m.unit.as_str())
    }

    /// The baseline's name.
    pub(crate) fn baseline(&self) -> String {
        clean_line(&self.summary().baseline.value)
    }

    /// A cell's name with only the levels that vary.
    pub(crate) fn cell_name(&self, number: u32) -> String {
        self.rows_with_context()
            .find(|(_, row)| row.cell.cell == number)
            .map_or_else(|| format!("cell {number}"), |(context, row)| self.row_name(context, row))
    }

    pub(crate) fn row_name(&self, context: &Context<'_>, row: &Row<'_>) -> String {
        format!("{} · {}", clean_line(&self.series_of(row).name), context.name)
    }

    /// Every cell with its context.
    pub(crate) fn rows_with_context(&self) -> impl Iterator<Item = (&Context<'a>, &Row<'a>)> {
        self.contexts.iter().flat_map(|context| context.rows.iter().map(move |row| (context, row)))
    }

    /// Whether more of the primary metric is better.
    pub(crate) fn more_is_better(&self) -> bool {
        metrics::find(&self.summary().metric).is_some_and(|metric| metric.better == Better::Higher)
    }
}

impl<'a> Row<'a> {
    /// A metric of this cell.
    pub(crate) fn metric(&self, name: &str) -> Option<&'a MetricSummary> {
        self.cell.metrics.get(name)
    }

    /// The primary metric's summary, of which [`Row::pooled`] has the values.
    pub(crate) fn values_metric(&self) -> Option<&'a MetricSummary> {
        self.cell.metrics.get(self.primary)
    }

    /// Whether its numbers may be shown without a mark.
    pub(crate) fn is_believable(&self) -> bool {
        matches!(self.cell.status, CellStatus::Valid | CellStatus::Caveat)
    }

    /// Whether its name is struck out: something was measured, or should have been, and may not be believed.
    pub(crate) fn is_struck(&self) -> bool {
        !self.is_believable() && self.cell.status != CellStatus::Unsupported
    }

    /// The verdict of a comparison of this cell, and its class. A cell that has no numbers says why instead.
    pub(crate) const fn verdict(&self, of: &Comparison) -> (&'static str, &'static str) {
        match self.cell.status {
            CellStatus::Unsupported => (status_name(self.cell.status), "open"),
            CellStatus::Failed => (status_name(self.cell.status), "invalid"),
            CellStatus::Valid | CellStatus::Caveat | CellStatus::Invalid => verdict_name(&of.verdict),
        }
    }

    /// Whether the plan has it load a page.
    pub(crate) fn page_bytes(&self, plan: &Plan) -> Option<u64> {
        let group = self.planned?.clients.first()?;
        plan.workloads.get(group.workload)?.workload.page().map(model::Page::total_bytes)
    }
}

/// The name of a status in tables.
pub(crate) const fn status_name(status: CellStatus) -> &'static str {
    match status {
        CellStatus::Valid => "valid",
        CellStatus::Caveat => "caveat",
        CellStatus::Invalid => "invalid",
        CellStatus::Failed => "failed",
        CellStatus::Unsupported => "unsupported",
    }
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

fn name_contexts(contexts: &mut [Context<'_>], keys: &[Vec<&Level>], study: &str) {
    let varies = |level: &Level| keys.iter().any(|key| key.iter().all(|other| *other != level));
    for (context, key) in contexts.iter_mut().zip(keys) {
        let varying: Vec<String> =
            key.iter().filter(|level| varies(level)).map(|level| clean_line(&level.value)).collect();
        let all: Vec<String> = key.iter().map(|level| clean_line(&level.value)).collect();
        let parts = if varying.is_empty() { all } else { varying };
        context.name = if parts.is_empty() { clean_line(study) } else { parts.join(" · ") };
    }
}

fn context_note(plan: &Plan, cell: &Cell) -> String {
    let mut parts: Vec<String> = plan.networks.get(cell.network).map(network::describe).into_iter().collect();
    let workload = cell.clients.first().and_then(|group| plan.workloads.get(group.workload));
    let describe = |workload: &Workload| match workload.page() {
        Some(page) => model::page::describe(page),
        None => workload.describe(),
    };
    parts.extend(workload.map(|named| describe(&named.workload)));
    parts.join("; ")
}
