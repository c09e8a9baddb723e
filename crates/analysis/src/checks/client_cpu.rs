//! The client had CPU time to spare.

use model::number;
use model::units::NANOS_PER_MS;

use super::{Check, CheckOutcome, Context, Finding, GroupFacts, Table, check, percent};

pub(super) const CHECK: Check = Check {
    measures: "the client's CPU time as a share of one core in the median run and in each run, if it was busy for 100 ms or \
               more",
    passes: "85 % (in at least nine of ten runs)",
    caveat: "up to 97 %; more in a browser, whose computing is part of the page load",
    invalidates: "more",
    why: "A client without spare CPU time measures itself and not the server.",
    remedy: "Use less load, or a machine with faster cores.",
    reads: &[Table::Clients],
    ..check("client_cpu", judge)
};

/// Beyond this share of a core, queues grow in the client.
const CAVEAT_SHARE: f64 = 0.85;
/// Beyond this share, the client only computes.
const INVALID_SHARE: f64 = 0.97;
/// Shorter work is a burst: during a page load of a few milliseconds on a local network any client computes
/// most of the time, so the share does not show that the load is too high.
const LEAST_BUSY_NS: u64 = 100 * NANOS_PER_MS;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let share = |facts: &GroupFacts| {
        (facts.busy_ns >= LEAST_BUSY_NS).then(|| number::float(facts.cpu_ns) / number::float(facts.busy_ns))
    };
    let worst_group = |run: &crate::run::RunSummary| run.groups.iter().filter_map(share).reduce(f64::max);
    let shares = context.own.disturbance(worst_group)?;
    let threshold = format!("{} of a core; invalid beyond {}", percent(CAVEAT_SHARE), percent(INVALID_SHARE));
    let most = if context.is_in_browser() { CheckOutcome::Caveat } else { CheckOutcome::Invalid };
    let result = shares.grade(CAVEAT_SHARE, INVALID_SHARE).min(most);
    Some(Finding { result, measured: shares.describe(CAVEAT_SHARE, INVALID_SHARE, ""), threshold })
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes, silent};

    fn with_cpu(busy_ns: u64, cpu_ns: u64) -> Bench {
        let mut bench = Bench::page(&[Variant::H2]);
        for client in bench.records.iter_mut().flat_map(|record| &mut record.clients) {
            client.started_ns = 1_000;
            client.finished_ns = 1_000 + busy_ns;
            client.cpu_user_ns = cpu_ns;
            client.cpu_system_ns = 0;
        }
        bench
    }

    #[test]
    fn a_browser_computes_and_its_threads_wait_for_each_other() {
        let mut bench = Bench::browser(&[Variant::H2]);
        for client in bench.records.iter_mut().flat_map(|record| &mut record.clients) {
            (client.started_ns, client.finished_ns) = (1_000, 1_000_001_000);
            (client.cpu_user_ns, client.run_queue_ns) = (1_500_000_000, 2_000_000_000);
        }
        caveats(&bench, &["client_cpu"]);
        silent("client_waited", &bench);
    }

    #[test]
    fn time_to_spare_passes() {
        passes("client_cpu", &with_cpu(1_000_000_000, 500_000_000));
    }

    #[test]
    fn a_busy_client_is_a_caveat_then_invalid() {
        caveats(&with_cpu(1_000_000_000, 900_000_000), &["client_cpu"]);
        assert_eq!(fails("client_cpu", &with_cpu(1_000_000_000, 990_000_000)).measured, "99%");
    }

    #[test]
    fn a_busy_client_in_a_minority_of_runs_is_a_caveat() {
        let mut bench = with_cpu(1_000_000_000, 500_000_000);
        bench.records[4].clients[0].cpu_user_ns = 990_000_000;
        caveats(&bench, &["client_cpu"]);
    }

    #[test]
    fn a_share_hardly_beyond_the_threshold_is_not_printed_as_the_threshold() {
        let found = with_cpu(1_000_000_000, 970_400_000).summary();
        let found = found.cells[0].validity.iter().find(|check| check.check == "client_cpu").unwrap();
        assert_eq!(found.measured, "97.04%");
        assert_eq!(found.threshold, "85% of a core; invalid beyond 97%");
    }

    #[test]
    fn a_burst_is_not_judged() {
        silent("client_cpu", &with_cpu(4_000_000, 4_000_000));
    }
}
