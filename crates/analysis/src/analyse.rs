//! The whole analysis: from the runs' summaries to the study's.

use std::collections::BTreeMap;

use model::plan::{Cell, Plan};
use model::sample::Outcome;

use crate::checks;
use crate::comparison::{self, Arm};
use crate::distribution::Distribution;
use crate::estimate::{self, Figure};
use crate::metrics::{METRICS, Metric};
use crate::number;
use crate::run::RunSummary;
use crate::summary::{
    CellStatus, CellSummary, CheckOutcome, Estimate, MetricSummary, RunValue, SUMMARY_VERSION, Summary,
};

/// The figures of [`MetricSummary`], in this order.
const FIGURES: [Figure; 4] = [Figure::MEDIAN, Figure::Iqr, Figure::Quantile(0.95), Figure::Quantile(0.99)];

/// Estimates, checks, comparisons and verdicts of a study from the summaries of its runs, in any order.
pub fn analyse(plan: &Plan, runs: &[RunSummary]) -> Summary {
    let mut ordered: Vec<&RunSummary> = runs.iter().collect();
    ordered.sort_by_key(|run| run.run);
    let of_cell = |cell: u32| ordered.iter().copied().filter(move |run| run.cell == cell);
    let stored: Vec<Vec<&RunSummary>> = plan.cells.iter().map(|cell| of_cell(cell.cell).collect()).collect();
    let ok: Vec<Vec<&RunSummary>> =
        stored.iter().map(|runs| runs.iter().copied().filter(|run| run.outcome.is_ok()).collect()).collect();
    let mut cells: Vec<CellSummary> = plan
        .cells
        .iter()
        .zip(&stored)
        .zip(&ok)
        .map(|((cell, all), ok)| summarise(plan, cell, all, ok))
        .collect();
    for place in 0..cells.len() {
        if !matches!(cells[place].status, CellStatus::Failed | CellStatus::Unsupported) {
            cells[place].validity = checks::judge_all(plan, &cells, &stored, place);
        }
    }
    for cell in &mut cells {
        let worst = cell.validity.iter().map(|check| check.result).max();
        match worst {
            Some(CheckOutcome::Doubt) => cell.status = CellStatus::Doubt,
            Some(CheckOutcome::Invalid) => cell.status = CellStatus::Invalid,
            Some(CheckOutcome::Pass) | None => {}
        }
    }
    let arms: Vec<Arm<'_>> = plan
        .cells
        .iter()
        .zip(&cells)
        .zip(&ok)
        .map(|((cell, summary), runs)| Arm { cell, summary, runs })
        .collect();
    let comparisons = comparison::compare_all(plan, &arms);
    Summary {
        version: SUMMARY_VERSION,
        study: plan.study.clone(),
        question: plan.question.clone(),
        metric: plan.metric.clone(),
        baseline: plan.baseline.clone(),
        margin_share: plan.margin_share,
        runs_planned: number::small(plan.runs.len()),
        runs_stored: number::small(runs.len()),
        cells,
        comparisons,
    }
}

/// A cell's numbers, not yet checked.
fn summarise(plan: &Plan, cell: &Cell, stored: &[&RunSummary], ok: &[&RunSummary]) -> CellSummary {
    let mut reasons: Vec<String> = Vec::new();
    let mut unsupported = false;
    for run in stored {
        let reason = match &run.outcome {
            Outcome::Ok => continue,
            Outcome::Failed(failure) => format!("{}: {}", failure.kind.name(), failure.reason),
            Outcome::Unsupported(reason) => {
                unsupported = true;
                reason.clone()
            }
        };
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    if stored.is_empty() {
        reasons.push("no run of this cell is stored".to_owned());
    }
    let status = match (ok.is_empty(), unsupported) {
        (false, _) => CellStatus::Valid,
        (true, true) => CellStatus::Unsupported,
        (true, false) => CellStatus::Failed,
    };
    let failed = stored.iter().filter(|run| matches!(run.outcome, Outcome::Failed(_))).count();
    let metrics: BTreeMap<String, MetricSummary> = METRICS
        .iter()
        .filter_map(|metric| Some((metric.name.to_owned(), summarise_metric(plan, metric, ok)?)))
        .collect();
    CellSummary {
        cell: cell.cell,
        levels: cell.levels.clone(),
        status,
        runs_ok: number::small(ok.len()),
        runs_failed: number::small(failed),
        reasons,
        metrics,
        validity: Vec::new(),
    }
}

fn summarise_metric(plan: &Plan, metric: &Metric, ok: &[&RunSummary]) -> Option<MetricSummary> {
    let having: Vec<(&RunSummary, &Distribution)> =
        ok.iter().filter_map(|run| Some((*run, run.metrics.get(metric.name)?))).collect();
    let distributions: Vec<&Distribution> = having.iter().map(|(_, distribution)| *distribution).collect();
    let estimates = estimate::estimates(&distributions, &FIGURES, plan.seed);
    let below_ceiling = |estimate: &Estimate| {
        let high = estimate.high.map(|high| metric.ceiling.map_or(high, |ceiling| high.min(ceiling)));
        Estimate { high, ..*estimate }
    };
    let [median, iqr, p95, p99] = estimates.as_slice() else { return None };
    Some(MetricSummary {
        unit: metric.unit.to_owned(),
        median: below_ceiling(median),
        iqr: below_ceiling(iqr),
        p95: below_ceiling(p95),
        p99: below_ceiling(p99),
        samples: distributions.iter().map(|distribution| distribution.count()).sum(),
        runs: number::small(having.len()),
        per_run: having
            .iter()
            .filter_map(|(run, values)| {
                Some(RunValue { run: run.run, block: run.block, value: values.median()? })
            })
            .collect(),
    })
}
