//! A replayed script was recorded over the version that replays it.

use super::{Check, Context, Finding, check};

pub(super) const CHECK: Check = Check {
    measures: "scripts whose header names a variant: the HTTP version over which the session was recorded",
    passes: "that of the cell",
    caveat: "another version",
    why: "A player or browser adapts to its connection: over another version it would have requested other \
          representations, at other times. The replay shows how this version serves the session of another.",
    remedy: "Record a session over each version, and give each its own: `script = { h1 = \"…\", h2 = \"…\" }`. The \
             sides then replay different scripts, which `workloads_match` states.",
    ..check("script_variant", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let group = &context.own.cell.group;
    let recorded = context.plan.workload_of(group).workload.script()?.recorded_over?;
    let is_same = recorded.http() == group.variant.http();
    let measured = format!("recorded over {recorded}, replayed over {}", group.variant);
    Some(Finding::pass_or_caveat(is_same, measured, "recorded over the version that replays it"))
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, passes, silent};
    use crate::summary::CheckOutcome;

    #[test]
    fn a_script_of_another_version_is_a_caveat() {
        let mut bench = Bench::script(&[Variant::H1s, Variant::H2c]);
        silent("script_variant", &bench);
        bench.recorded_over(Variant::H2);
        let summary = bench.summary();
        let found = |cell: usize| {
            let checks = &summary.cells[cell].validity;
            checks.iter().find(|check| check.check == "script_variant").unwrap().clone()
        };
        assert_eq!(found(0).result, CheckOutcome::Caveat);
        assert_eq!(found(0).measured, "recorded over h2, replayed over h1s");
        assert_eq!(found(1).result, CheckOutcome::Pass, "the same version without encryption");
        let mut same = Bench::script(&[Variant::H2]);
        same.recorded_over(Variant::H2);
        passes("script_variant", &same);
        silent("script_variant", &Bench::closed(&[Variant::H2]));
    }
}
