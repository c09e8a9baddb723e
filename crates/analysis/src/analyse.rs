//! The whole analysis: from the runs' summaries to the study's.

use std::collections::BTreeMap;

use model::external::split_not_reported;
use model::number;
use model::plan::{Cell, Plan};
use model::record::NetworkCalibration;
use model::sample::Outcome;

use crate::checks;
use crate::claims;
use crate::comparison::{self, CellRuns};
use crate::distribution::Distribution;
use crate::estimate::{self, Sampling, Statistic};
use crate::metrics::{self, Metric};
use crate::published;
use crate::repetition;
use crate::run::RunSummary;
use crate::summary::{
    CellStatus, CellSummary, CheckOutcome, Estimate, MetricSummary, RunPeriod, RunValue, SUMMARY_VERSION,
    Spread, Summary,
};

/// The statistics of [`MetricSummary`], in this order.
const STATISTICS: [Statistic; 7] = [
    Statistic::Mean,
    Statistic::MEDIAN,
    Statistic::Iqr,
    Statistic::Quantile(0.9),
    Statistic::Quantile(0.95),
    Statistic::Quantile(0.99),
    Statistic::Quantile(0.999),
];

/// Estimates, checks, comparisons and verdicts of a study, from the summaries of its runs in any order and
/// the reference measurements of its networks.
pub fn analyse(plan: &Plan, runs: &[RunSummary], networks: &[NetworkCalibration]) -> Summary {
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
    let claims = claims::test_all(plan, &sides_of(plan, &cells, &ok));
    for place in 0..cells.len() {
        if cells[place].has_values() {
            cells[place].validity = checks::judge_all(plan, networks, &claims, &cells, &stored, place);
        }
    }
    for cell in &mut cells {
        let worst = cell.validity.iter().map(|check| check.result).max();
        match worst {
            Some(CheckOutcome::Caveat) => cell.status = CellStatus::Caveat,
            Some(CheckOutcome::Invalid) => cell.status = CellStatus::Invalid,
            Some(CheckOutcome::Pass) | None => {}
        }
    }
    let sides = sides_of(plan, &cells, &ok);
    let comparisons = comparison::compare_all(plan, &sides);
    let published = published::compare_all(plan, &sides);
    Summary {
        version: SUMMARY_VERSION,
        study: plan.study.clone(),
        question: plan.question.clone(),
        metric: plan.metric.clone(),
        statistic: plan.statistic,
        baseline: plan.baseline.clone(),
        margin_share: plan.margin_share,
        runs_planned: number::small(planned(plan, runs)),
        runs_stored: number::small(runs.iter().filter(|run| run.is_first_of_run()).count()),
        measured: measured(runs),
        repetition: repetition::progress(plan, runs),
        networks: networks.to_vec(),
        cells,
        claims,
        published,
        comparisons,
    }
}

/// The cells with their runs that succeeded, in the order of the plan.
fn sides_of<'a>(
    plan: &'a Plan,
    cells: &'a [CellSummary],
    ok: &'a [Vec<&'a RunSummary>],
) -> Vec<CellRuns<'a>> {
    let both = plan.cells.iter().zip(cells).zip(ok);
    both.map(|((cell, summary), runs)| CellRuns { cell, summary, runs }).collect()
}

/// From the start of the first run to the end of the last one. Runs without a date are ignored.
fn measured(runs: &[RunSummary]) -> Option<RunPeriod> {
    let dated = || runs.iter().filter(|run| run.began_unix_ns > 0);
    Some(RunPeriod {
        began_unix_ns: dated().map(|run| run.began_unix_ns).min()?,
        ended_unix_ns: dated().map(|run| run.began_unix_ns.saturating_add(run.took_ns)).max()?,
    })
}

/// The planned number of runs. If runs are added: those of the minimum of blocks and of all that began.
fn planned(plan: &Plan, runs: &[RunSummary]) -> usize {
    if plan.repetition.is_none() {
        return plan.runs.len();
    }
    let begun = runs.iter().map(|run| run.block + 1).max().unwrap_or(0).max(plan.runs_per_cell);
    (begun as usize * plan.runs_per_block()).min(plan.runs.len())
}

/// A cell's values, before its checks.
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
        // A program that fails in the same way in every run logs other times, ports and process ids.
        let is_same = |known: &String| without_numbers(known) == without_numbers(&reason);
        if !reasons.iter().any(is_same) {
            reasons.push(reason);
        }
    }
    if stored.is_empty() {
        reasons.push("no run of this cell is stored".to_owned());
    }
    let status = match (ok.is_empty(), unsupported) {
        (false, _) => CellStatus::Valid,
        (true, true) => CellStatus::Unsupported,
        (true, false) if stored.is_empty() => CellStatus::NotMeasured,
        (true, false) => CellStatus::Failed,
    };
    let failed = stored.iter().filter(|run| matches!(run.outcome, Outcome::Failed(_))).count();
    let metrics: BTreeMap<String, MetricSummary> = metrics::with_classes(&plan.classes)
        .into_iter()
        .filter_map(|(name, metric)| {
            let summary = summarise_metric(plan, &name, metric, ok)?;
            Some((name, summary))
        })
        .collect();
    CellSummary {
        cell: cell.cell,
        levels: cell.levels.clone(),
        status,
        runs_ok: number::small(ok.len()),
        runs_failed: number::small(failed),
        reasons,
        metrics,
        not_reported: not_reported(plan, cell, ok),
        validity: Vec::new(),
    }
}

/// A text with `#` in place of each number.
fn without_numbers(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '0'..='9' if kept.ends_with('#') => {}
            '0'..='9' => kept.push('#'),
            c => kept.push(c),
        }
    }
    kept
}

/// The metrics of the cell's workloads that its clients do not report, with the reasons.
fn not_reported(plan: &Plan, cell: &Cell, ok: &[&RunSummary]) -> BTreeMap<String, String> {
    let not_reported = ok.iter().flat_map(|run| &run.groups).flat_map(|facts| &facts.not_reported);
    let is_asked = |about: &str| {
        let metric = crate::metrics::find(about);
        metric.is_some_and(|metric| metric.is_about(&plan.workload_of(&cell.group).workload))
    };
    let parts = not_reported.map(|entry| split_not_reported(entry));
    parts
        .filter(|(about, _)| is_asked(about))
        .map(|(about, why)| (about.to_owned(), why.to_owned()))
        .collect()
}

fn summarise_metric(plan: &Plan, name: &str, metric: &Metric, ok: &[&RunSummary]) -> Option<MetricSummary> {
    let having: Vec<(&RunSummary, &Distribution)> =
        ok.iter().filter_map(|run| Some((*run, run.metrics.get(name)?))).collect();
    let distributions: Vec<&Distribution> = having.iter().map(|(_, distribution)| *distribution).collect();
    let sampling = Sampling { seed: plan.seed, is_until_precise: plan.repetition.is_some() };
    let estimates = estimate::estimates(&distributions, &STATISTICS, sampling);
    let shares: Vec<(u64, u64)> =
        ok.iter().filter_map(|run| run.shares.get(name)).map(|share| (share.hits, share.all)).collect();
    let below_ceiling = |estimate: &Estimate| {
        let high = estimate.high.map(|high| metric.ceiling.map_or(high, |ceiling| high.min(ceiling)));
        Estimate { high, ..*estimate }
    };
    let [mean, median, iqr, p90, p95, p99, p999] = estimates.as_slice() else { return None };
    let share = estimate::share(&shares, sampling);
    Some(MetricSummary {
        unit: metric.unit.to_owned(),
        mean: below_ceiling(&share.unwrap_or(*mean)),
        median: below_ceiling(median),
        iqr: below_ceiling(iqr),
        p90: below_ceiling(p90),
        p95: below_ceiling(p95),
        p99: below_ceiling(p99),
        p999: below_ceiling(p999),
        spread: Spread::of(distributions.iter().copied()),
        samples: distributions.iter().map(|distribution| distribution.count()).sum(),
        runs: number::small(having.len()),
        statistic: metric.compared(plan.statistic),
        per_run: having
            .iter()
            .filter_map(|(run, _)| {
                let value = run.compared(name, plan)?;
                Some(RunValue { run: run.run, block: run.block, value })
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use model::sample::FailureKind;
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::Bench;
    use crate::summary::Verdict;

    #[test]
    fn a_cell_without_its_baseline_has_values_but_no_comparison() {
        let mut bench = Bench::page(&[Variant::H1s, Variant::H2, Variant::H3]);
        for (cell, loss) in bench.plan.cells.iter_mut().zip(["0%", "0%", "1%"]) {
            cell.levels.push(model::plan::Level { factor: "network.loss".into(), value: loss.into() });
        }
        let summary = bench.summary();
        assert!(summary.cells[2].metrics.contains_key("page_load_time"));
        assert!(summary.comparisons.iter().any(|comparison| comparison.cell == 1 && comparison.primary));
        assert!(summary.comparisons.iter().all(|comparison| comparison.cell == 1));
    }

    #[test]
    fn every_cell_and_run_is_accounted_for() {
        let mut bench = Bench::page(&[Variant::H1s, Variant::H2, Variant::H3]);
        bench.records.retain(|record| record.cell != 2);
        bench.records[0].outcome = Outcome::failed(FailureKind::Server, "died");
        bench.records[2].outcome = Outcome::failed(FailureKind::Server, "died");
        let summary = bench.summary();
        assert_eq!((summary.runs_planned, summary.runs_stored), (15, 10));
        let [h1s, h2, h3] = summary.cells.as_slice() else { panic!("{summary:#?}") };
        assert_eq!((h1s.runs_ok, h1s.runs_failed, h1s.status), (3, 2, CellStatus::Caveat));
        assert_eq!(h1s.reasons, ["server: died"]);
        assert_eq!((h2.runs_ok, h2.status), (5, CellStatus::Valid));
        assert_eq!(
            (h3.status, h3.reasons.as_slice()),
            (CellStatus::NotMeasured, &["no run of this cell is stored".to_owned()][..])
        );
        assert!(h3.validity.is_empty() && h3.metrics.is_empty());
        let load = &h1s.metrics["page_load_time"];
        assert_eq!((load.runs, load.samples, load.per_run.len()), (3, 3, 3));
        // Three blocks hold both: that is enough for a comparison of h2.
        assert!(summary.comparisons[0].ratio.is_some_and(|ratio| ratio.low.is_some()));
    }

    #[test]
    fn reasons_that_differ_in_numbers_only_are_one() {
        let mut bench = Bench::page(&[Variant::H1s, Variant::H2]);
        for (index, record) in bench.records.iter_mut().enumerate() {
            let reason = format!(
                "nginx ended before it was ready: 12:00:{index:02} [emerg] {}#0: no TLS",
                4_000 + index
            );
            record.outcome = Outcome::failed(FailureKind::Server, &reason);
        }
        bench.records[2].outcome = Outcome::failed(FailureKind::Server, "its port is in use");
        let cells = bench.summary().cells;
        assert_eq!(cells[0].reasons.len() + cells[1].reasons.len(), 3, "{cells:#?}");
        assert!(cells[0].reasons[0].contains("[emerg]"));
    }

    #[test]
    fn one_block_alone_is_no_comparison() {
        let mut bench = Bench::page(&[Variant::H1s, Variant::H2]);
        bench.records.truncate(2);
        let summary = bench.summary();
        let comparison = &summary.comparisons[0];
        assert_eq!(comparison.ratio.and_then(|ratio| ratio.low), None);
        assert_eq!(comparison.smallest_showable_ratio, None);
        let because = vec!["fewer than two blocks have a successful run of both".to_owned()];
        assert_eq!(comparison.verdict, Verdict::Invalid { because });
    }

    #[test]
    fn a_metric_that_cannot_be_compared_is_named() {
        for (metric, reason) in [
            ("speed", "`speed` is not a metric"),
            ("connections", "neither more nor less of `connections` is better"),
        ] {
            let mut bench = Bench::page(&[Variant::H1s, Variant::H2]);
            bench.plan.metric = metric.to_owned();
            let summary = bench.summary();
            let primary: Vec<_> = summary.comparisons.iter().filter(|c| c.primary).collect();
            assert_eq!(primary.len(), 1);
            assert_eq!(primary[0].verdict, Verdict::Invalid { because: vec![reason.to_owned()] });
        }
    }

    #[test]
    fn everything_but_the_primary_metric_is_exploratory() {
        let summary = Bench::page(&[Variant::H1s, Variant::H2]).summary();
        let (primary, rest): (Vec<_>, Vec<_>) = summary.comparisons.iter().partition(|c| c.primary);
        assert_eq!(primary.len(), 1);
        assert!(primary[0].p_adjusted.is_some() && primary[0].metric == "page_load_time");
        assert!(rest.len() > 5 && rest.iter().all(|c| c.p_adjusted.is_none()));
        let bytes = rest.iter().find(|c| c.metric == "wire_bytes_down").unwrap();
        assert_eq!(bytes.verdict, Verdict::Equivalent, "equal constants: {bytes:?}");
    }

    #[test]
    fn a_share_ends_at_one() {
        let mut bench = Bench::closed(&[Variant::H1]);
        for sample in &mut bench.records[4].samples[..10] {
            sample.outcome = Outcome::failed(FailureKind::Reset, "reset");
        }
        let median = bench.summary().cells[0].metrics["availability"].median;
        assert_eq!((median.value, median.high), (1.0, Some(1.0)));
    }
}
