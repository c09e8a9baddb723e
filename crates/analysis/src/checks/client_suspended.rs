//! The client's loop did not stand still.
//!
//! A process that is stopped, or a machine that is, sends nothing and reads nothing. Its scheduler counts no
//! waiting time. Only the client's clock shows the gap: its loop acted later than it had to.

use model::number;

use super::{
    Check, CheckOutcome, Context, Finding, GroupFacts, RunSummary, Table, check, counted, percent, time,
};

pub(super) const CHECK: Check = Check {
    measures: "periods of 50 ms or more in which the client's loop stood still although it had to act; their \
               share of the client's time in the median run",
    passes: "none in any run",
    caveat: "up to 50 %",
    invalidates: "more",
    why: "Time in which the client stands still, stopped by a debugger, a hypervisor or memory pressure, counts as the \
          server's or the network's. Throughput is computed without it.",
    remedy: "Look for what stopped the client (suspended virtual machine, swapping, a stopped process), and measure \
             these runs again.",
    reads: &[Table::Clients],
    ..check("client_suspended", judge)
};

/// Beyond this share, the measurement is mostly standing still.
const INVALID_SHARE: f64 = 0.5;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let share = |facts: &GroupFacts| {
        (facts.busy_ns > 0).then(|| number::float(facts.suspended.total_ns) / number::float(facts.busy_ns))
    };
    let median = context.own.median(|run| run.groups.iter().filter_map(share).reduce(f64::max))?;
    let is_suspended = |run: &&RunSummary| run.groups.iter().any(|facts| facts.suspended.count > 0);
    let (runs, all) = (context.own.ok().filter(is_suspended).count(), context.own.ok().count());
    let longest_ns = context.own.facts().map(|(_, facts)| facts.suspended.max_ns).max().unwrap_or(0);
    let result = match (runs, median) {
        (0, _) => CheckOutcome::Pass,
        (_, median) if median <= INVALID_SHARE => CheckOutcome::Caveat,
        _ => CheckOutcome::Invalid,
    };
    let measured = match runs {
        0 => format!("in 0 of {}", counted(all as u64, "run")),
        _ => {
            let (all, longest) = (counted(all as u64, "run"), time(number::float(longest_ns)));
            format!("in {runs} of {all}, up to {longest}; {} of the median run", percent(median))
        }
    };
    let threshold = format!("in no run; invalid beyond {}", percent(INVALID_SHARE));
    Some(Finding { result, measured, threshold })
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes};

    fn suspended(runs: &[usize], ns: u64) -> Bench {
        let mut bench = Bench::closed(&[Variant::H2]);
        runs.iter().for_each(|run| bench.records[*run].clients[0].suspended.note(ns));
        bench
    }

    #[test]
    fn a_client_that_acts_in_time_passes() {
        passes("client_suspended", &suspended(&[0, 1, 2, 3, 4], 49_000_000));
    }

    #[test]
    fn a_suspended_client_is_a_caveat_and_its_throughput_leaves_the_gap_out() {
        let bench = suspended(&[3], 300_000_000);
        caveats(&bench, &["client_suspended"]);
        let rates = |bench: &Bench| bench.summary().cells[0].metrics["requests_per_second"].per_run.clone();
        let (with, without) = (rates(&bench), rates(&Bench::closed(&[Variant::H2])));
        assert!((with[2].value - without[2].value).abs() < 1e-9);
        let sample = |run: usize| bench.records[run].samples.iter();
        let first = sample(3).map(|sample| sample.intended_ns).min().unwrap();
        let last = sample(3).filter_map(|sample| sample.done_ns).max().unwrap();
        let expected = 50.0 / ((last - first - 300_000_000) as f64 / 1e9);
        assert!((with[3].value - expected).abs() < 1e-9, "{} and {expected}", with[3].value);
    }

    #[test]
    fn a_client_that_mostly_stands_still_is_invalid() {
        fails("client_suspended", &suspended(&[0, 1, 2], 6_000_000_000));
    }
}
