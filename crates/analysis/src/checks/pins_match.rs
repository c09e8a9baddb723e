//! What is held is held alike in both arms.

use super::{Check, CheckOutcome, Context, Finding};

pub(super) const CHECK: Check = Check {
    name: "pins_match",
    why: "An arm with another congestion control, window, TLS setting or number of connections differs in that too, whatever \
          else is compared.",
    remedy: "Leave out the `hold` of single servers, or give all the same, unless it is the question.",
    judge,
};

/// The pins of the cell against its baseline's, where a study holds some servers otherwise than others.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let baseline = context.baseline.as_ref()?;
    let (own, other) = (context.plan.pins_of(context.own.cell), context.plan.pins_of(baseline.cell));
    let differences = own.differences(other);
    let (result, measured) = match differences.is_empty() {
        true => (CheckOutcome::Pass, "held alike".to_owned()),
        false => (CheckOutcome::Caveat, format!("held otherwise: {}", differences.join(", "))),
    };
    Some(Finding { result, measured, threshold: "as the baseline".to_owned() })
}

#[cfg(test)]
mod tests {
    use model::Pins;
    use model::pins::CongestionControl;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    #[test]
    fn what_is_held_alike_passes() {
        passes("pins_match", &Bench::page(&[Variant::H1s, Variant::H2]));
        silent("pins_match", &Bench::page(&[Variant::H1s]));
    }

    #[test]
    fn what_is_held_otherwise_in_one_arm_is_a_caveat() {
        let mut bench = Bench::page(&[Variant::H1s, Variant::H2]);
        bench.plan.cells[1].pins = Some(Pins {
            congestion_control: CongestionControl::Reno,
            initial_window_packets: 32,
            ..Pins::default()
        });
        caveats(&bench, &["pins_match"]);
        let summary = bench.summary();
        let found = summary.cells[1].validity.iter().find(|check| check.check == "pins_match").unwrap();
        assert_eq!(found.measured, "held otherwise: congestion_control, initial_window");
    }
}
