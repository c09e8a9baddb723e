//! The client had processor time to spare.

use model::units::NANOS_PER_MS;

use super::{Check, Context, Finding, percent};
use crate::number;
use crate::run::GroupFacts;

pub(super) const CHECK: Check = Check {
    name: "client_cpu",
    why: "A client without processor time to spare measures itself and not the server.",
    remedy: "Ask for less load, or give the client more threads or a machine of its own.",
    judge,
};

/// Beyond this share of a core queues grow within the client.
const CAVEAT_SHARE: f64 = 0.85;
/// Beyond this share the client does nothing but compute.
const INVALID_SHARE: f64 = 0.97;
/// Shorter work is a burst: a page load of a few milliseconds on a local network computes most of the time by its
/// nature, in any client, and offers no load that could be too high.
const LEAST_BUSY_NS: u64 = 100 * NANOS_PER_MS;

/// The client's CPU time over the time between its first request and its last response, as a share of one core, in
/// the median run; judged where that time is at least 100 ms.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let share = |facts: &GroupFacts| {
        (facts.busy_ns >= LEAST_BUSY_NS).then(|| number::float(facts.cpu_ns) / number::float(facts.busy_ns))
    };
    let worst_group = |run: &crate::run::RunSummary| run.groups.iter().filter_map(share).reduce(f64::max);
    let share = context.own.median(worst_group)?;
    let threshold = format!("{} of a core; invalid beyond {}", percent(CAVEAT_SHARE), percent(INVALID_SHARE));
    Some(Finding::graded(share, CAVEAT_SHARE, INVALID_SHARE, percent(share), threshold))
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
    fn time_to_spare_passes() {
        passes("client_cpu", &with_cpu(1_000_000_000, 500_000_000));
    }

    #[test]
    fn a_busy_client_is_a_caveat_then_invalid() {
        caveats(&with_cpu(1_000_000_000, 900_000_000), &["client_cpu"]);
        assert_eq!(fails("client_cpu", &with_cpu(1_000_000_000, 990_000_000)).measured, "99%");
    }

    #[test]
    fn a_burst_is_not_judged() {
        silent("client_cpu", &with_cpu(4_000_000, 4_000_000));
    }
}
