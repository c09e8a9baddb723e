//! No single run determines a cell's value.
//!
//! Grubbs' test (F. Grubbs, *Sample criteria for testing outlying observations*, Annals of Mathematical
//! Statistics 21, 1950) on the logarithms, in the form of deleted residuals: a run against the mean and
//! standard deviation of all others.

use model::number;

use super::{Check, Context, Finding, check, percent};
use crate::statistics;

pub(super) const CHECK: Check = Check {
    measures: "with 5 or more runs: the run farthest from the others, by Grubbs' test on logarithms, and \
               its distance",
    passes: "p of 1 % or more, or within the margin",
    caveat: "less, and beyond the margin",
    why: "One run unlike all others widens the interval and moves the median: something unrelated disturbed \
          it.",
    remedy: "Look at that run's logs and monitor, and run the study again. Runs are never excluded as \
             outliers.",
    ..check("outlying_run", judge)
};

/// Fewer runs do not show what is usual.
const LEAST_RUNS: usize = 5;
/// The share of cells in which chance makes a run look like that.
const CHANCE: f64 = 0.01;

/// Replaces 0, which has no logarithm.
const LEAST_VALUE: f64 = 1e-9;

/// Judges the run that is farthest from the others.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let values: Vec<(u32, f64)> = context
        .own
        .ok()
        .filter_map(|run| {
            Some((run.run, run.compared(&context.plan.metric, context.plan)?.max(LEAST_VALUE).ln()))
        })
        .collect();
    if values.len() < LEAST_RUNS {
        return None;
    }
    let (run, p, ratio) = (0..values.len())
        .filter_map(|place| against_others(&values, place))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let is_far = (ratio.ln()).abs() > context.plan.margin_share.ln_1p();
    Some(Finding::pass_or_caveat(
        p >= CHANCE || !is_far,
        format!("run {run} at {} of the others ({})", percent(ratio), statistics::format_p(p)),
        format!("p at least {CHANCE}, or within the margin of {}", percent(context.plan.margin_share)),
    ))
}

/// The run's number, the probability that some run is that far from all others, and its ratio to them.
fn against_others(values: &[(u32, f64)], place: usize) -> Option<(u32, f64, f64)> {
    let others: Vec<f64> =
        values.iter().enumerate().filter(|(at, _)| *at != place).map(|(_, (_, value))| *value).collect();
    let count = number::count(others.len());
    let mean = others.iter().sum::<f64>() / count;
    let variance = others.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let (run, value) = values[place];
    let deviation = (variance * (1.0 + 1.0 / count)).sqrt();
    if deviation == 0.0 {
        let p = if value == mean { 1.0 } else { 0.0 };
        return Some((run, p, (value - mean).exp()));
    }
    let t = (value - mean).abs() / deviation;
    let p = 2.0 * statistics::student_tail(others.len() - 1, t) * number::count(values.len());
    Some((run, p.min(1.0), (value - mean).exp()))
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, passes};
    use crate::summary::CheckOutcome;

    #[test]
    fn similar_runs_pass() {
        passes("outlying_run", &Bench::page(&[Variant::H1s, Variant::H2]));
    }

    #[test]
    fn one_run_unlike_the_others_is_a_caveat() {
        let mut bench = Bench::page(&[Variant::H2]);
        for sample in &mut bench.records[3].samples {
            sample.done_ns = sample.done_ns.map(|ns| ns * 3);
            sample.first_byte_ns = sample.first_byte_ns.map(|ns| ns * 3);
        }
        let summary = bench.summary();
        let found = summary.cells[0].validity.iter().find(|check| check.check == "outlying_run").unwrap();
        assert_eq!(found.result, CheckOutcome::Caveat);
        assert!(found.measured.starts_with("run 3 at 30"), "{}", found.measured);
    }
}
