//! Both workloads have the same end.

use model::arm::ARM;

use super::{Check, Context, Finding, Side, check};

pub(super) const CHECK: Check = Check {
    measures: "where workloads or arms are compared: how each ends (after the last resource, a number of requests, \
               or a time)",
    passes: "equal",
    caveat: "different",
    why: "A load that ends with the document is faster than one that waits for everything. A load that ends \
          after a time and one that ends after a number count different requests.",
    remedy: "Give both workloads the same end: the same number of `requests`, or the same `duration`.",
    ..check("ends_match", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    if !["workload", ARM].contains(&context.plan.baseline.factor.as_str()) {
        return None;
    }
    let (own, other) = (end(context, &context.own), end(context, context.baseline.as_ref()?));
    Some(Finding::pass_or_caveat(own == other, own, format!("{other}, as in the baseline")))
}

fn end(context: &Context<'_>, side: &Side<'_>) -> String {
    context.plan.workload_of(&side.cell.group).workload.describe_end()
}

#[cfg(test)]
mod tests {
    use model::plan::{Level, NamedWorkload};
    use model::variant::Variant;
    use model::workload::{ClosedLoop, Workload};

    use crate::fixtures::{Bench, passes, silent};
    use crate::summary::CheckOutcome;

    /// Two cells whose workloads differ by this change.
    fn workloads(change: impl Fn(&mut Workload)) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1, Variant::H2c]);
        let mut other = bench.plan.workloads[0].workload.clone();
        change(&mut other);
        bench.plan.workloads.push(NamedWorkload {
            name: "other".into(),
            workload: other,
            options: model::options::Options::default(),
        });
        for (place, name) in [(0, "w"), (1, "other")] {
            bench.plan.cells[place].levels[0] = Level { factor: "workload".into(), value: name.into() };
            bench.plan.cells[place].group.workload = place;
        }
        bench.plan.baseline = bench.plan.cells[0].levels[0].clone();
        bench
    }

    #[test]
    fn the_same_end_passes_and_variants_are_not_judged() {
        passes(
            "ends_match",
            &workloads(|workload| {
                workload.as_loop_mut().unwrap().connections = 7;
            }),
        );
        silent("ends_match", &Bench::closed(&[Variant::H1, Variant::H2c]));
    }

    #[test]
    fn another_end_is_a_caveat() {
        let bench = workloads(|workload| {
            let Workload::Closed(ClosedLoop { load, duration_ns, .. }) = workload else { panic!() };
            (load.requests, *duration_ns) = (None, Some(1_000_000_000));
        });
        let summary = bench.summary();
        let found = summary.cells[1].validity.iter().find(|check| check.check == "ends_match").unwrap();
        assert_eq!(found.result, CheckOutcome::Caveat);
        assert_eq!(found.threshold, "ends after a number of requests, as in the baseline");
    }
}
