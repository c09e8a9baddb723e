//! Responses that should have content have content.

use model::external::OWN_CLIENT;
use model::number;

use super::{Check, CheckOutcome, Context, Finding, Side, check, percent};

pub(super) const CHECK: Check = Check {
    measures: "responses that succeeded with an empty body, unless an empty body was expected",
    passes: "0",
    caveat: "any, and as many in the baseline",
    invalidates: "any, and more or fewer in the baseline",
    why: "A server that does not find its content may still answer 200, and an empty response is the \
          fastest of all.",
    remedy: "Request one of these URLs with `h123 trace` and look at the response; correct the paths or the \
             server's folder.",
    ..check("empty_bodies", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let (empty, all) = empties(&context.own)?;
    let share = number::float(empty) / number::float(all);
    let other = context.baseline.as_ref().and_then(empties);
    let other_share = other.map(|(empty, all)| number::float(empty) / number::float(all));
    let result = match (empty, other_share) {
        (0, _) => CheckOutcome::Pass,
        (_, Some(other)) if (share - other).abs() > TOLERANCE_SHARE => CheckOutcome::Invalid,
        _ => CheckOutcome::Caveat,
    };
    let threshold = match other_share {
        Some(other) if other > 0.0 => format!("0; {} in the baseline", percent(other)),
        _ => "0".to_owned(),
    };
    let measured = format!("{empty} of {all} responses without a body");
    Some(Finding { result, measured, threshold })
}

/// The position in its list of paths at which a loop ends changes the share by less.
const TOLERANCE_SHARE: f64 = 0.01;

/// Empty responses and all that succeeded; `None` without responses, or if a client does not report lengths.
fn empties(side: &Side<'_>) -> Option<(u64, u64)> {
    let is_own = side.cell.group.client == OWN_CLIENT;
    let facts = || side.ok().flat_map(|run| &run.groups);
    let all: u64 = facts().map(|facts| facts.requests_ok).sum();
    let empty: u64 = facts().map(|facts| facts.empty_bodies).sum();
    (is_own && all > 0).then_some((empty, all))
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, fails, passes, silent};
    use crate::summary::CheckOutcome;

    /// Every so manieth response of these cells is empty.
    fn with_empty(cells: &[u32], every: u64, expected: Option<u64>) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1, Variant::H2c]);
        for record in bench.records.iter_mut().filter(|record| cells.contains(&record.cell)) {
            for sample in record.samples.iter_mut().filter(|sample| sample.request % every == 0) {
                sample.response_body_bytes = 0;
                sample.expected_body_bytes = expected;
            }
        }
        bench
    }

    #[test]
    fn content_passes_and_so_do_bodies_that_are_to_be_empty() {
        passes("empty_bodies", &Bench::page(&[Variant::H1, Variant::H2]));
        passes("empty_bodies", &with_empty(&[0, 1], 1, Some(0)));
    }

    #[test]
    fn empty_bodies_of_one_arm_invalidate_and_of_both_are_a_caveat() {
        let found = fails("empty_bodies", &with_empty(&[1], 2, None));
        assert_eq!(
            (found.measured.as_str(), found.threshold.as_str()),
            ("125 of 250 responses without a body", "0")
        );
        let both = with_empty(&[0, 1], 2, None).summary();
        let of = |cell: usize| both.cells[cell].validity.iter().find(|check| check.check == "empty_bodies");
        assert!((0..2).all(|cell| of(cell).unwrap().result == CheckOutcome::Caveat));
    }

    #[test]
    fn what_a_client_does_not_say_is_not_judged() {
        let mut bench = with_empty(&[0], 1, None);
        bench.plan.cells.iter_mut().for_each(|cell| cell.group.client = "wrk".to_owned());
        silent("empty_bodies", &bench);
    }
}
