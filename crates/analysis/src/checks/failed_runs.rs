//! No runs failed.

use model::number;

use super::{Check, Context, Finding, check, percent};

pub(super) const CHECK: Check = Check {
    measures: "the share of stored runs that failed",
    passes: "0",
    caveat: "up to 50 %",
    invalidates: "more",
    why: "The runs that succeeded may be the lucky ones.",
    remedy: "Read the reasons listed with the cell and the logs of the failed runs, then run the study \
             again.",
    ..check("failed_runs", judge)
};

/// If more than half the runs failed, the others are an exception.
const CAVEAT_SHARE: f64 = 0.5;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let (ok, all) = (context.own.ok().count(), context.own.stored.len());
    let failed = all - ok;
    let share = number::count(failed) / number::count(all.max(1));
    let threshold = format!("0; invalid beyond {}", percent(CAVEAT_SHARE));
    Some(Finding::graded(share, 0.0, CAVEAT_SHARE, format!("{failed} of {all} runs"), threshold))
}

#[cfg(test)]
mod tests {
    use model::sample::{FailureKind, Outcome};
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes};

    #[test]
    fn no_failed_run_passes() {
        passes("failed_runs", &Bench::page(&[Variant::H1]));
    }

    #[test]
    fn a_failed_run_is_a_caveat_and_most_failed_invalidate() {
        let mut bench = Bench::page(&[Variant::H1]);
        bench.records[0].outcome = Outcome::failed(FailureKind::Server, "the server died");
        caveats(&bench, &["failed_runs", "runs"]);
        for record in &mut bench.records[1..3] {
            record.outcome = Outcome::failed(FailureKind::Server, "the server died");
        }
        assert_eq!(fails("failed_runs", &bench).measured, "3 of 5 runs");
    }
}
