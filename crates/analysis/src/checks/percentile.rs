//! The runs have enough values beyond the percentile that the verdicts are about.
//!
//! A percentile between the last few values of a run is decided by these values: with 100 values, p99 is the
//! largest but one. It is then biased towards the middle and differs much between runs.

use model::number;
use model::study::ValuesPerRun;

use super::{Check, CheckOutcome, Context, DISTURBED_SHARE, Finding, check, counted};

pub(super) const CHECK: Check = Check {
    measures: "with a `statistic` such as `p99`: the values beyond it (their number × 1 %) in the median run \
               and in each run",
    passes: "10 or more (in at most a tenth of the runs fewer)",
    caveat: "1 to 10, or fewer than 10 in more than a tenth of the runs",
    invalidates: "fewer than 1",
    why: "A percentile that a few values decide differs much between runs and is closer to the median than \
          the true one. A run with fewer values than lie beyond it does not have the percentile at all.",
    remedy: "Make more requests in each run (`requests` or `duration` of the workload), or choose a lower \
             percentile.",
    ..check("percentile", judge)
};

const ENOUGH_BEYOND: f64 = 10.0;
const LEAST_BEYOND: f64 = 1.0;
/// For products such as 100 × (1 − 0.99).
const ROUNDING: f64 = 1e-9;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let metric = crate::metrics::find(&context.plan.metric)?;
    let statistic = metric.compared(context.plan.statistic);
    let beyond_share = 1.0 - statistic.tail_quantile()?;
    let has_tail = match metric.values.per_run() {
        ValuesPerRun::Requests => true,
        ValuesPerRun::Clients => context.own.cell.group.clients > 1,
        ValuesPerRun::One | ValuesPerRun::Share => false,
    };
    if !has_tail {
        return None;
    }
    let mut counts: Vec<u64> =
        context.own.ok().filter_map(|run| Some(run.metrics.get(&context.plan.metric)?.count())).collect();
    counts.sort_unstable();
    let is_below = |count: u64, least: f64| number::float(count) * beyond_share < least - ROUNDING;
    let few = counts.iter().filter(|count| is_below(**count, ENOUGH_BEYOND)).count();
    let median = *counts.get(counts.len() / 2)?;
    let result = match () {
        () if is_below(median, LEAST_BEYOND) => CheckOutcome::Invalid,
        () if is_below(median, ENOUGH_BEYOND) => CheckOutcome::Caveat,
        () if number::count(few) > DISTURBED_SHARE * number::count(counts.len()) => CheckOutcome::Caveat,
        () => CheckOutcome::Pass,
    };
    let beyond = model::units::three_digits(number::float(median) * beyond_share);
    let mut measured =
        format!("{beyond} of {} beyond {statistic} in the median run", counted(median, "value"));
    if few > 0 && !is_below(median, ENOUGH_BEYOND) {
        measured = format!("{measured}, fewer than 10 in {few} of {}", counted(counts.len() as u64, "run"));
    }
    Some(Finding { result, measured, threshold: "10 values beyond it".to_owned() })
}

#[cfg(test)]
mod tests {
    use model::Statistic;
    use model::variant::Variant;

    use crate::fixtures::{Bench, fails, passes, silent};

    /// A loop whose runs have this many requests each.
    fn loops(requests: &[u64], statistic: Statistic) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1s]);
        bench.plan.statistic = statistic;
        for (record, requests) in bench.records.iter_mut().zip(requests) {
            let samples = record.samples.clone();
            let all = (0..*requests).zip(samples.iter().cycle());
            record.samples =
                all.map(|(request, sample)| model::Sample { request, ..sample.clone() }).collect();
        }
        bench
    }

    #[test]
    fn ten_values_beyond_are_enough() {
        passes("percentile", &loops(&[100; 5], Statistic::P90));
        passes("percentile", &loops(&[1000; 5], Statistic::P99));
        silent("percentile", &loops(&[2; 5], Statistic::Median));
        silent("percentile", &loops(&[2; 5], Statistic::Mean));
        let mut page = Bench::page(&[Variant::H2]);
        page.plan.statistic = Statistic::P99;
        silent("percentile", &page);
    }

    #[test]
    fn fewer_are_a_caveat_and_less_than_one_is_invalid() {
        let found = |bench: &Bench| {
            let summary = bench.summary();
            let found = summary.cells[0].validity.iter().find(|check| check.check == "percentile").unwrap();
            (found.result.name(), found.measured.clone())
        };
        let few = found(&loops(&[999; 5], Statistic::P99));
        assert_eq!(few, ("caveat", "9.99 of 999 values beyond p99 in the median run".to_owned()));
        assert_eq!(found(&loops(&[100; 5], Statistic::P99)).0, "caveat");
        let invalid = fails("percentile", &loops(&[99; 5], Statistic::P99));
        assert_eq!(invalid.measured, "0.99 of 99 values beyond p99 in the median run");
        let one = found(&loops(&[100, 100, 99, 100, 100], Statistic::P90));
        let expected = "10 of 100 values beyond p90 in the median run, fewer than 10 in 1 of 5 runs";
        assert_eq!(one, ("caveat", expected.to_owned()));
    }
}
