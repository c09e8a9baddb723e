//! Everything that figures, tables and pages read.

use std::collections::BTreeMap;

use analysis::metrics::{self, Better};
use analysis::summary::{Comparison, Summary};
use model::{Plan, Statistic};

use crate::Input;
use crate::context::{self, Context, Row, Series};
use crate::sweep::{self, Grid, Sweep};
use crate::text::{self, clean_line};

/// The input of a report, sorted for its readers.
pub(crate) struct View<'a> {
    pub(crate) input: &'a Input<'a>,
    pub(crate) series: Vec<Series>,
    pub(crate) contexts: Vec<Context<'a>>,
    /// By cell and metric.
    comparisons: BTreeMap<(u32, &'a str), &'a Comparison>,
    /// The parameters that the study sweeps.
    pub(crate) sweeps: Vec<Sweep>,
}

impl<'a> View<'a> {
    /// Sorts a summary into contexts, in the order of the plan.
    pub(crate) fn new(input: &'a Input<'a>) -> Self {
        let summary = input.summary;
        let (series, contexts) = context::of_input(input);
        let comparisons = summary.comparisons.iter().map(|c| ((c.cell, c.metric.as_str()), c)).collect();
        let sweeps = sweep::sweeps(input.plan, &summary.baseline.factor, &contexts);
        View { input, series, contexts, comparisons, sweeps }
    }

    /// Every pair of swept parameters.
    pub(crate) fn grids(&self) -> Vec<Grid> {
        sweep::grids(self.plan(), &self.summary().baseline.factor, &self.contexts, &self.sweeps)
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

    /// The number of runs of each cell: as planned, or more where a repetition rule added some.
    pub(crate) fn runs_per_cell(&self) -> usize {
        let added = self.summary().repetition.map_or(0, |repetition| repetition.blocks);
        self.plan().runs_per_cell.max(added) as usize
    }

    /// The primary metric within a sentence, such as `page load time`.
    pub(crate) fn metric_title(&self) -> String {
        text::uncapital(&text::metric_title(&self.summary().metric))
    }

    /// The statistic of the primary metric that verdicts are about.
    pub(crate) fn statistic(&self) -> Statistic {
        self.summary().statistic_of(&self.summary().metric)
    }

    /// The statistic within a sentence, such as `median` or `99th percentile`.
    pub(crate) fn statistic_noun(&self) -> &'static str {
        text::statistic_noun(self.statistic())
    }

    /// What verdicts are about within a sentence, such as `page load time` or `99th percentile of request
    /// time`.
    pub(crate) fn compared_title(&self) -> String {
        text::uncapital(&text::statistic_title(&self.summary().metric, self.statistic()))
    }

    /// The primary metric's unit in the first cell that has it.
    pub(crate) fn metric_unit(&self) -> &'a str {
        let metric = &self.summary().metric;
        self.summary().cells.iter().find_map(|cell| cell.metrics.get(metric)).map_or("1", |m| m.unit.as_str())
    }

    /// The compared factor, such as `variant`.
    pub(crate) fn factor(&self) -> String {
        clean_line(&self.summary().baseline.factor)
    }

    /// The baseline's name.
    pub(crate) fn baseline(&self) -> String {
        clean_line(&self.summary().baseline.value)
    }

    /// A cell's name with only the levels that vary.
    pub(crate) fn cell_name(&self, number: u32) -> String {
        let found = self.rows_with_context().find(|(_, row)| row.cell.cell == number);
        found.map_or_else(
            || format!("cell {number}"),
            |(context, row)| format!("{} · {}", row.series.name, context.name),
        )
    }

    /// Every cell with its context.
    pub(crate) fn rows_with_context(&self) -> impl Iterator<Item = (&Context<'a>, &Row<'a>)> {
        self.contexts.iter().flat_map(|context| context.rows.iter().map(move |row| (context, row)))
    }

    /// Every cell.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row<'a>> {
        self.contexts.iter().flat_map(|context| &context.rows)
    }

    /// Whether more of the primary metric is better.
    pub(crate) fn more_is_better(&self) -> bool {
        more_is_better(&self.summary().metric)
    }
}

/// Whether more of a metric is better.
pub(crate) fn more_is_better(metric: &str) -> bool {
    metrics::find(metric).is_some_and(|metric| metric.better == Better::Higher)
}
