//! The values of a cell over all its runs, for statistics of their distribution.
//!
//! Intervals and verdicts do not use these, because the requests of one run share its conditions.

use std::collections::BTreeSet;

use model::class::split_metric;
use model::number;

use crate::distribution::Distribution;
use crate::metrics;
use crate::run::RunSummary;

/// The values of one metric of one cell, over all runs that have it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pooled {
    /// The cell.
    pub cell: u32,
    /// Runs behind the values.
    pub runs: u32,
    /// The values in the metric's unit: of requests, or one per run.
    pub values: Distribution,
    /// The values of the metric's classes, by their names, if it has classes.
    pub classes: Vec<(String, Pooled)>,
}

/// Whether a metric has one value per request, not one per run.
pub fn is_of_requests(metric: &str) -> bool {
    metrics::find(metric).is_some_and(|metric| metric.values.is_per_request())
}

/// The values of a metric in every cell that has any, in the order of the cells.
pub fn pooled(runs: &[RunSummary], metric: &str) -> Vec<Pooled> {
    let mut all = of_metric(runs, metric);
    let is_class = |name: &&String| matches!(split_metric(name), (base, Some(_)) if base == metric);
    let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.metrics.keys()).filter(is_class).collect();
    for name in names {
        let (_, Some(class)) = split_metric(name) else { continue };
        for pooled in of_metric(runs, name) {
            if let Some(whole) = all.iter_mut().find(|whole| whole.cell == pooled.cell) {
                whole.classes.push((class.to_owned(), pooled));
            }
        }
    }
    all
}

fn of_metric(runs: &[RunSummary], metric: &str) -> Vec<Pooled> {
    let mut having: Vec<(u32, &Distribution)> =
        runs.iter().filter_map(|run| Some((run.cell, run.metrics.get(metric)?))).collect();
    having.sort_by_key(|(cell, _)| *cell);
    having
        .chunk_by(|(one, _), (other, _)| one == other)
        .filter_map(|of_cell| {
            let (cell, _) = of_cell.first()?;
            let values = Distribution::merged(of_cell.iter().map(|(_, values)| *values));
            Some(Pooled { cell: *cell, runs: number::small(of_cell.len()), values, classes: Vec::new() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::{Bench, summary_of};

    #[test]
    fn requests_are_pooled_over_runs_and_runs_have_one_value_each() {
        let bench = Bench::page(&[Variant::H1s, Variant::H2]);
        let runs: Vec<RunSummary> =
            bench.records.iter().rev().map(|record| summary_of(&bench.plan, record)).collect();
        for (metric, each) in [("page_load_time", 1), ("request_time", 3)] {
            assert_eq!(is_of_requests(metric), each > 1);
            let pooled = pooled(&runs, metric);
            let found: Vec<(u32, u32, u64)> =
                pooled.iter().map(|cell| (cell.cell, cell.runs, cell.values.count())).collect();
            assert_eq!(found, [(0, 5, 5 * each), (1, 5, 5 * each)], "{metric}");
        }
        assert!(pooled(&runs, "speed").is_empty());
    }
}
