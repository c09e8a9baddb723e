//! The cell and its baseline did the same work.

use super::{Check, Context, Finding, Side};
use crate::number;
use crate::run::page_of;
use crate::summary::CheckOutcome;

pub(super) const CHECK: Check = Check {
    name: "arms_alike",
    why: "Where one arm requests or receives more than the other, the comparison is of the work and not of the version.",
    remedy: "Compare the URLs and lengths of both cells' samples; serve both from the same content.",
    judge,
};

/// Of a loop over paths of different lengths: where its end falls in the list changes the mean by less.
const LOOP_TOLERANCE_SHARE: f64 = 0.01;

/// A page: as many requests and as many body bytes in the median run as the baseline. A loop: as many body bytes
/// per request, within 1 %.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let ((own, bytes), (baseline, expected)) =
        (work(context, &context.own)?, work(context, context.baseline.as_ref()?)?);
    let is_alike = own == baseline
        || bytes
            .zip(expected)
            .is_some_and(|(bytes, expected)| (bytes - expected).abs() <= LOOP_TOLERANCE_SHARE * expected);
    let result = if is_alike { CheckOutcome::Pass } else { CheckOutcome::Invalid };
    Some(Finding { result, measured: own, threshold: format!("{baseline}, as the baseline") })
}

/// What the median run did, for people; and of loops, for comparing, the body bytes per request.
fn work(context: &Context<'_>, side: &Side<'_>) -> Option<(String, Option<f64>)> {
    let pages = side.cell.clients.iter().all(|group| page_of(context.plan, group).is_some());
    let sum = |run: &crate::run::RunSummary, field: fn(&crate::run::GroupFacts) -> u64| {
        number::float(run.groups.iter().map(field).sum())
    };
    let digits = model::units::three_digits;
    if pages {
        let requests = side.median(|run| Some(sum(run, |facts| facts.requests)))?;
        let bytes = side.median(|run| Some(sum(run, |facts| facts.body_bytes)))?;
        return Some((format!("{requests:.0} requests, {bytes:.0} body bytes"), None));
    }
    let bytes = side.median(|run| {
        let ok = sum(run, |facts| facts.requests_ok);
        (ok > 0.0).then(|| sum(run, |facts| facts.body_bytes) / ok)
    })?;
    Some((format!("{} body bytes per request", digits(bytes)), Some(bytes)))
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, fails, passes, silent};

    #[test]
    fn equal_work_passes() {
        passes("arms_alike", &Bench::page(&[Variant::H1s, Variant::H2]));
        passes("arms_alike", &Bench::closed(&[Variant::H1s, Variant::H2]));
        silent("arms_alike", &Bench::page(&[Variant::H1s]));
    }

    #[test]
    fn where_a_loop_ends_in_its_list_of_paths_does_not_matter() {
        let mut bench = Bench::closed(&[Variant::H1s, Variant::H2]);
        let first = |cell: u32| move |record: &&mut model::RunRecord| record.cell == cell;
        for record in bench.records.iter_mut().filter(first(1)) {
            // 129.28 in place of 128 bytes per request: 1 % more.
            record.samples[0].response_body_bytes = 128 + 63;
        }
        passes("arms_alike", &bench);
        for record in bench.records.iter_mut().filter(first(1)) {
            record.samples[1].response_body_bytes = 128 + 63;
        }
        fails("arms_alike", &bench);
    }

    #[test]
    fn empty_bodies_in_one_arm_condemn() {
        for mut bench in
            [Bench::page(&[Variant::H1s, Variant::H2]), Bench::closed(&[Variant::H1s, Variant::H2])]
        {
            for record in bench.records.iter_mut().filter(|record| record.cell == 1) {
                for sample in &mut record.samples {
                    sample.response_body_bytes = 0;
                    sample.expected_body_bytes = None;
                }
            }
            let found = fails("arms_alike", &bench);
            assert!(found.measured.contains("0 body bytes"), "{found:?}");
        }
    }
}
