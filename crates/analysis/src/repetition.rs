//! Whether a study that adds runs block by block has enough runs.
//!
//! The rule is about the precision of the study's *answers*: the ratio of every comparison of the primary
//! metric or, without comparisons, the study's statistic of every cell. Half of each interval, as a share of
//! its value, must be within the study's precision. These are the intervals of the report, before they are
//! widened to contain the point. The rule does not wait for cells that failed or are unsupported. Only widths
//! decide, not whether there is a difference, and the widths include the cost of stopping on them
//! ([`crate::statistics::widening`]), so that intervals and p-values keep their nominal error.
//!
//! The decision depends only on stored runs: a study that is resumed, or repeated with the same runs, decides
//! the same.

use model::number;
use model::plan::{Plan, Repetition};

use crate::comparison::{baseline_of, paired};
use crate::distribution::Distribution;
use crate::estimate::{Sampling, estimates};
use crate::metrics;
use crate::run::RunSummary;
use crate::statistics::{self, CONFIDENCE};

pub use crate::summary::{Ending, RepetitionProgress};

/// The progress of a study after these runs; `None` if it does not add runs.
pub fn progress(plan: &Plan, runs: &[RunSummary]) -> Option<RepetitionProgress> {
    let rule = plan.repetition?;
    let mut in_blocks = vec![0_usize; rule.most_runs as usize];
    for run in runs {
        if let Some(count) = in_blocks.get_mut(run.block as usize) {
            *count += 1;
        }
    }
    let blocks = number::small(in_blocks.iter().filter(|count| **count >= plan.cells.len()).count());
    let whole = runs.iter().filter(|run| run.is_first_of_run());
    let took_ns = whole.fold(0_u64, |sum, run| sum.saturating_add(run.took_ns));
    let widths = widths(plan, runs);
    let widest = widths.iter().copied().map(|width| width.unwrap_or(f64::INFINITY)).max_by(f64::total_cmp);
    let ended_by = ending(plan, &rule, blocks, took_ns, widest);
    Some(RepetitionProgress {
        precision_share: rule.precision_share,
        widest_share: widest.filter(|width| width.is_finite()),
        blocks,
        took_ns,
        ended_by,
    })
}

fn ending(plan: &Plan, rule: &Repetition, blocks: u32, took_ns: u64, widest: Option<f64>) -> Option<Ending> {
    if blocks < plan.runs_per_cell {
        return None;
    }
    let next_ns = took_ns.saturating_add(took_ns / u64::from(blocks.max(1)));
    match widest {
        None => Some(Ending::NothingToMeasure),
        Some(widest) if widest <= rule.precision_share => Some(Ending::Precision),
        Some(_) if blocks >= rule.most_runs => Some(Ending::MostRuns),
        Some(_) if rule.budget_ns.is_some_and(|budget_ns| next_ns > budget_ns) => Some(Ending::Budget),
        Some(_) => None,
    }
}

/// Half of the interval of each of the study's answers, as a share of its value; `None` for an interval that
/// does not exist yet.
fn widths(plan: &Plan, runs: &[RunSummary]) -> Vec<Option<f64>> {
    let ok = |cell: u32| -> Vec<&RunSummary> {
        runs.iter().filter(|run| run.cell == cell && run.value(&plan.metric).is_some()).collect()
    };
    let compared: Vec<(u32, u32)> =
        plan.cells.iter().filter_map(|cell| Some((cell.cell, baseline_of(plan, cell)?.cell))).collect();
    if compared.is_empty() {
        let cells = plan.cells.iter().map(|cell| ok(cell.cell)).filter(|runs| !runs.is_empty());
        return cells.map(|runs| value_width(plan, &runs)).collect();
    }
    compared
        .into_iter()
        .map(|(cell, baseline)| (ok(cell), ok(baseline)))
        .filter(|(own, base)| !own.is_empty() && !base.is_empty())
        .map(|(own, base)| ratio_width(plan, &own, &base))
        .collect()
}

fn ratio_width(plan: &Plan, own: &[&RunSummary], base: &[&RunSummary]) -> Option<f64> {
    let (log_ratios, _) = paired(plan, &plan.metric, own, base);
    let mean = statistics::mean(&log_ratios)?.widened(statistics::widening(log_ratios.len(), true));
    Some(mean.half_width(CONFIDENCE).exp_m1())
}

fn value_width(plan: &Plan, runs: &[&RunSummary]) -> Option<f64> {
    let values: Vec<&Distribution> =
        runs.iter().filter_map(|run| run.metrics.get(plan.metric.as_str())).collect();
    let sampling = Sampling { seed: plan.seed, is_until_precise: true };
    let statistic = metrics::compared(&plan.metric, plan.statistic).into();
    let value = *estimates(&values, &[statistic], sampling).first()?;
    let half = (value.high? - value.low?) / 2.0;
    (value.value > 0.0).then(|| half / value.value)
}

#[cfg(test)]
mod tests {
    use model::sample::{FailureKind, Outcome};
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::Bench;
    use crate::ground_truth::study::{Noise, blocks};

    fn bench(variants: &[Variant], precision_share: f64, budget_ns: Option<u64>, most_runs: u32) -> Bench {
        let mut bench = Bench::page(variants);
        bench.plan.repetition = Some(Repetition { precision_share, budget_ns, most_runs });
        bench
    }

    fn ended(bench: &Bench, count: u32) -> Option<Ending> {
        progress(&bench.plan, &blocks(bench, 1, Noise::Normal, 1.0, count)).unwrap().ended_by
    }

    const TWO: [Variant; 2] = [Variant::H1s, Variant::H2];

    #[test]
    fn what_comes_first_ends_a_study() {
        assert_eq!(ended(&bench(&TWO, 0.5, None, 100), 4), None, "the least runs are made in any case");
        assert_eq!(ended(&bench(&TWO, 0.5, None, 100), 5), Some(Ending::Precision));
        assert_eq!(ended(&bench(&TWO, 0.001, None, 100), 5), None);
        assert_eq!(ended(&bench(&TWO, 0.001, None, 6), 6), Some(Ending::MostRuns));
        // Each run of the fixture takes a second, a block two.
        assert_eq!(ended(&bench(&TWO, 0.001, Some(12_000_000_000), 100), 5), None);
        assert_eq!(ended(&bench(&TWO, 0.001, Some(12_000_000_000), 100), 6), Some(Ending::Budget));
        assert_eq!(progress(&Bench::page(&TWO).plan, &[]), None, "a study without a rule");
    }

    #[test]
    fn an_incomplete_block_does_not_count() {
        let bench = bench(&TWO, 0.5, None, 100);
        let mut runs = blocks(&bench, 1, Noise::Normal, 1.0, 5);
        runs.pop();
        assert_eq!(progress(&bench.plan, &runs).map(|s| (s.blocks, s.ended_by)), Some((4, None)));
    }

    #[test]
    fn more_runs_make_it_precise() {
        let bench = bench(&TWO, 0.01, None, 400);
        let width = |count| {
            progress(&bench.plan, &blocks(&bench, 3, Noise::Normal, 1.0, count)).unwrap().widest_share
        };
        assert!(width(100).unwrap() < 0.5 * width(10).unwrap());
        assert!((5..400).any(|count| width(count).unwrap() <= 0.01));
    }

    #[test]
    fn cells_that_have_no_number_are_not_waited_for() {
        let three = bench(&[Variant::H1s, Variant::H2, Variant::H3], 0.5, None, 100);
        let mut runs = blocks(&three, 1, Noise::Normal, 1.0, 5);
        for run in runs.iter_mut().filter(|run| run.cell == 2) {
            run.outcome = Outcome::Unsupported("no HTTP/3 here".to_owned());
            run.metrics.clear();
        }
        assert_eq!(progress(&three.plan, &runs).unwrap().ended_by, Some(Ending::Precision));
        for run in &mut runs {
            run.outcome = Outcome::failed(FailureKind::Server, "died");
            run.metrics.clear();
        }
        let progress = progress(&three.plan, &runs).unwrap();
        assert_eq!((progress.ended_by, progress.widest_share), (Some(Ending::NothingToMeasure), None));
    }

    #[test]
    fn without_a_comparison_the_medians_have_to_be_precise() {
        assert_eq!(ended(&bench(&[Variant::H2], 0.5, None, 100), 5), Some(Ending::Precision));
        assert_eq!(ended(&bench(&[Variant::H2], 0.001, None, 100), 5), None);
    }
}
