//! A mean over runs and requests describes the requests.

use model::number;
use model::statistic::Statistic;

use super::{Check, Context, Finding, check, percent_beside};
use crate::distribution::Distribution;
use crate::metrics;

pub(super) const CHECK: Check = Check {
    measures: "where the mean is the statistic of the verdicts and runs have several values: how far the mean of the runs' \
               means is from that of all values, and the mean of all values from their median",
    passes: "both within the margin",
    caveat: "one beyond it",
    why: "A mean of means weights a run with few requests like one with many. The mean of skewed times is decided by the \
          slowest of them, and no request takes that long.",
    remedy: "Compare medians (`statistic = \"median\"`, the default) or a percentile, and look at the distribution \
             (`figures = [\"cdf\"]`).",
    ..check("mean_of_means", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let plan = context.plan;
    if metrics::compared(&plan.metric, plan.statistic) != Statistic::Mean {
        return None;
    }
    let runs: Vec<&Distribution> = context
        .own
        .ok()
        .filter_map(|run| run.metrics.get(&plan.metric))
        .filter(|run| !run.is_empty())
        .collect();
    if runs.iter().all(|run| run.count() < 2) {
        return None;
    }
    let all = Distribution::merged(runs.iter().copied());
    let (mean, median) = (all.mean()?, all.median()?);
    let of_runs = runs.iter().filter_map(|run| run.mean()).sum::<f64>() / number::count(runs.len());
    let apart = |value: f64, from: f64| if from > 0.0 { (value / from - 1.0).abs() } else { 0.0 };
    let (weights, skew) = (apart(of_runs, mean), apart(mean, median));
    let margin = plan.margin_share;
    let share = |share| percent_beside(share, &[margin]);
    let side = if mean < median { "below" } else { "above" };
    let measured = format!(
        "the mean is {} {side} the median; the mean of the runs' means is {} from it",
        share(skew),
        share(weights)
    );
    let passes = weights <= margin && skew <= margin;
    Some(Finding::pass_or_caveat(passes, measured, format!("at most {} each", share(margin))))
}

#[cfg(test)]
mod tests {
    use model::sample::Sample;
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::{Bench, passes, silent};
    use crate::summary::{CheckOutcome, CheckResult};

    /// A loop about means, whose request `r` of a run takes this long.
    fn taking(time_ns: impl Fn(u32, u64) -> u64) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1]);
        bench.plan.statistic = Statistic::Mean;
        for record in &mut bench.records {
            for sample in &mut record.samples {
                let end_ns = Some(sample.intended_ns + time_ns(record.run, sample.request));
                *sample = Sample { first_byte_ns: end_ns, done_ns: end_ns, ..sample.clone() };
            }
        }
        bench
    }

    fn found(bench: &Bench) -> CheckResult {
        let summary = bench.summary();
        summary.cells[0].validity.iter().find(|check| check.check == "mean_of_means").unwrap().clone()
    }

    #[test]
    fn symmetric_times_pass_and_medians_are_not_judged() {
        passes("mean_of_means", &taking(|_, request| 10_000_000 + 10_000 * (request % 10)));
        silent("mean_of_means", &Bench::closed(&[Variant::H1]));
        // One value per run: there is no mean within runs.
        let mut page = Bench::page(&[Variant::H1]);
        page.plan.statistic = Statistic::Mean;
        silent("mean_of_means", &page);
    }

    #[test]
    fn a_few_slow_requests_decide_the_mean() {
        let slow = found(&taking(|_, request| if request % 10 == 0 { 200_000_000 } else { 10_000_000 }));
        assert_eq!(slow.result, CheckOutcome::Caveat);
        assert!(slow.measured.starts_with("the mean is 190% above the median"), "{slow:?}");
    }

    #[test]
    fn runs_with_few_requests_weigh_as_much_as_others() {
        let mut bench = taking(|run, request| if run == 4 { 20_000_000 } else { 10_000_000 + request });
        bench.records[4].samples.truncate(2);
        let uneven = found(&bench);
        assert_eq!(uneven.result, CheckOutcome::Caveat);
        assert!(
            uneven.measured.contains("means is 18.") || uneven.measured.contains("means is 19."),
            "{uneven:?}"
        );
    }
}
