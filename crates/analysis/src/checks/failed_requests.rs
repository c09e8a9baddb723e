//! No requests failed in runs that succeeded.

use model::number;
use model::sample::FailureKind;

use std::collections::BTreeMap;

use super::{Check, Context, Finding, check, percent};

pub(super) const CHECK: Check = Check {
    measures: "counted requests that failed, in runs that succeeded",
    passes: "0",
    caveat: "up to 1 %",
    invalidates: "more",
    why: "A failed request has no time, so the times of the others make the result look better than it was.",
    remedy: "Find the cause of the kinds listed here: in the server's log, or in the limits of server and \
             client.",
    ..check("failed_requests", judge)
};

/// A larger share of failures invalidates.
const CAVEAT_SHARE: f64 = 0.01;

fn judge(context: &Context<'_>) -> Option<Finding> {
    // What a player abandons has not failed.
    let is_failure = |kind: &FailureKind| *kind != FailureKind::Cancelled;
    let (mut failed, mut all) = (0, 0);
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for facts in context.own.ok().flat_map(|run| &run.groups) {
        all += facts.requests;
        let cancelled = facts.failures.get(&FailureKind::Cancelled).copied().unwrap_or(0);
        failed += (facts.requests - facts.requests_ok).saturating_sub(cancelled);
        for (kind, count) in facts.failures.iter().filter(|(kind, _)| is_failure(kind)) {
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
        bench.records[1].samples[1].outcome = Outcome::failed(FailureKind::Cancelled, "abandoned");
        passes("failed_requests", &bench);
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
