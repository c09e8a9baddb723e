//! Requests that failed within runs that succeeded.

use std::collections::BTreeMap;

use super::{Check, Context, Finding, percent};
use crate::number;

pub(super) const CHECK: Check = Check {
    name: "failed_requests",
    why: "A request that failed has no time, so the times of the others describe a kinder world than the client met.",
    remedy: "Find the cause by the kinds named here: in the server's log, or in the limits of server and client.",
    judge,
};

/// Of a thousand requests, one failure is a caveat; more than one in a hundred invalidates.
const CAVEAT_SHARE: f64 = 0.01;

/// Counted requests that failed, in runs that succeeded; failed runs are the business of another check.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let (mut failed, mut all) = (0, 0);
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for facts in context.own.ok().flat_map(|run| &run.groups) {
        all += facts.requests;
        failed += facts.requests - facts.requests_ok;
        for (kind, count) in &facts.failures {
            *kinds.entry(kind.name()).or_default() += count;
        }
    }
    if all == 0 {
        return None;
    }
    let share = number::float(failed) / number::float(all);
    let names: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let detail = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    let measured = format!("{failed} of {all} requests{detail}");
    let threshold = format!("0; invalid beyond {}", percent(CAVEAT_SHARE));
    Some(Finding::graded(share, 0.0, CAVEAT_SHARE, measured, threshold))
}

#[cfg(test)]
mod tests {
    use model::sample::{FailureKind, Outcome};
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes};

    #[test]
    fn no_failure_passes() {
        passes("failed_requests", &Bench::page(&[Variant::H2c]));
    }

    #[test]
    fn failures_are_counted_by_kind() {
        let mut bench = Bench::page(&[Variant::H2c]);
        bench.records[1].samples[2].outcome = Outcome::failed(FailureKind::Reset, "stream 5 was reset");
        assert_eq!(fails("failed_requests", &bench).measured, "1 of 15 requests: 1 reset");
    }

    #[test]
    fn a_few_in_a_thousand_are_a_caveat() {
        let mut bench = Bench::closed(&[Variant::H2c]);
        bench.records[0].samples[7].outcome = Outcome::failed(FailureKind::Reset, "stream 5 was reset");
        caveats(&bench, &["failed_requests"]);
    }
}
