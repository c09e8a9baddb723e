//! A loop's requests take the same time at the end of the measuring phase as at its beginning.
//!
//! The measuring phase of each run is divided into thirds. The ratio of the last third's median request time
//! to the first third's has an interval over runs by Student's t on logarithms (Georges 2007, section 3:
//! steady state has to be shown). If it shows a change beyond the margin, the warm-up was too short, or the
//! load is not steady: a queue grows, a cache fills, a server slows down. If the change is more than a half,
//! the value depends mostly on the run's duration.

use super::{Check, CheckOutcome, Context, Finding, GroupFacts, Table, check, percent};
use crate::statistics::{self, CONFIDENCE};

pub(super) const CHECK: Check = Check {
    measures: "loops with a constant rate, unless the metric is `batch_time`: the median request time of the measuring phase's last third, \
               compared with its first third, over 3 or more runs with 10 requests in each",
    passes: "within the margin, or not significant",
    caveat: "up to 50 %",
    invalidates: "more",
    why: "Times that still change during the measurement depend on how long it lasted.",
    remedy: "Give the workload a longer warm-up; if times only rise, use a lower rate.",
    reads: &[Table::Clients],
    ..check("steady_state", judge)
};

/// Fewer requests have no meaningful median.
const LEAST_REQUESTS: u64 = 10;
/// Fewer runs have no meaningful interval.
const LEAST_RUNS: usize = 3;
/// A larger change invalidates.
const INVALID_CHANGE: f64 = 0.5;

/// Judged if a client group's workload has a constant rate. The time of a whole batch is no steady state: it
/// includes the beginning, and the end in which fewer clients are left.
fn judge(context: &Context<'_>) -> Option<Finding> {
    if context.plan.metric == "batch_time" {
        return None;
    }
    let changes: Vec<f64> = context
        .own
        .ok()
        .filter_map(|run| {
            // The run is the unit of replication: its groups are one observation.
            let groups: Vec<f64> = run.groups.iter().filter_map(change).collect();
            Some(statistics::mean(&groups).map_or(*groups.first()?, |mean| mean.mean))
        })
        .collect();
    if changes.len() < LEAST_RUNS {
        return None;
    }
    let change = statistics::mean(&changes)?;
    let (low, high) = change.exponential_interval(CONFIDENCE);
    let (ratio, margin) = (change.mean.exp(), context.plan.margin_share);
    let is_shown = low > 1.0 || high < 1.0;
    let size = ratio.max(1.0 / ratio) - 1.0;
    let result = match size {
        _ if !is_shown || size <= margin => CheckOutcome::Pass,
        size if size <= INVALID_CHANGE => CheckOutcome::Caveat,
        _ => CheckOutcome::Invalid,
    };
    let ([ratio, low, high], runs) = ([ratio, low, high].map(model::units::three_digits), changes.len());
    let measured = format!("last third {ratio}× the first ({low}–{high}, {runs} runs)");
    let threshold = format!("{}; invalid beyond {}", percent(margin), percent(INVALID_CHANGE));
    Some(Finding { result, measured, threshold })
}

/// The logarithm of the ratio of the last third's request times to the first third's.
fn change(facts: &GroupFacts) -> Option<f64> {
    let [first, _, last] = facts.thirds?;
    let is_enough = first.requests.min(last.requests) >= LEAST_REQUESTS;
    (is_enough && first.median_ns > 0.0 && last.median_ns > 0.0)
        .then(|| (last.median_ns / first.median_ns).ln())
}

#[cfg(test)]
mod tests {
    use model::Workload;
    use model::schedule::{Rate, Schedule, Stage};
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes, silent};

    /// Each request takes this many percent longer than the one before, plus the noise of its run.
    fn slowing(bench: Bench, percent: u64) -> Bench {
        let mut bench = bench;
        for record in &mut bench.records {
            for (number, sample) in (0..).zip(&mut record.samples) {
                let longer = |ns: u64| {
                    let took_ns = ns - sample.intended_ns;
                    sample.intended_ns
                        + took_ns
                        + took_ns * number * percent / 100
                        + u64::from(record.run) * 1000
                };
                sample.done_ns = sample.done_ns.map(longer);
                sample.first_byte_ns = sample.first_byte_ns.map(longer);
            }
        }
        bench
    }

    #[test]
    fn a_batch_has_no_steady_state() {
        let mut bench = slowing(Bench::closed(&[Variant::H1]), 20);
        bench.plan.metric = "batch_time".to_owned();
        silent("steady_state", &bench);
    }

    #[test]
    fn constant_values_pass() {
        passes("steady_state", &slowing(Bench::closed(&[Variant::H1]), 0));
        passes("steady_state", &slowing(Bench::open(&[Variant::H1]), 0));
    }

    #[test]
    fn times_that_rise_are_a_caveat_then_invalid() {
        let mut bench = slowing(Bench::closed(&[Variant::H1]), 1);
        caveats(&bench, &["precision", "steady_state"]);
        bench.plan.margin_share = 0.5;
        passes("steady_state", &bench);
        let found = fails("steady_state", &slowing(Bench::closed(&[Variant::H1]), 10));
        assert!(found.measured.starts_with("last third 3×"), "{}", found.measured);
    }

    #[test]
    fn a_warm_up_is_left_out() {
        let mut bench = slowing(Bench::closed(&[Variant::H1]), 0);
        for record in &mut bench.records {
            for sample in &mut record.samples[..10] {
                sample.phase = model::sample::Phase::Warmup;
                sample.done_ns = sample.done_ns.map(|ns| ns + 1_000_000_000);
            }
            let ended_ns = record.samples[10].intended_ns;
            let warmup = model::assignment::WarmupCost { ended_ns, ..Default::default() };
            record.clients[0].warmup = Some(warmup);
        }
        passes("steady_state", &bench);
    }

    #[test]
    fn pages_and_changing_rates_have_no_steady_state() {
        silent("steady_state", &Bench::page(&[Variant::H1]));
        let mut bench = Bench::open(&[Variant::H1]);
        if let Workload::Open(open) = &mut bench.plan.workloads[0].workload
            && let Schedule { stages, .. } = &mut open.schedule
        {
            *stages = vec![Stage { from: Rate(1000), to: Rate(2000), duration_ns: Some(1_000_000_000) }];
        }
        silent("steady_state", &bench);
    }
}
