//! Both cells have the same pins.

use model::arm::ARM;

use super::{Check, Context, Finding, check};

pub(super) const CHECK: Check = Check {
    measures: "the cell's pins (congestion control, windows, TLS, …), compared with the baseline's, where a \
               study has pins for single servers",
    passes: "equal",
    caveat: "different",
    why: "A difference in congestion control, windows, TLS settings or the number of connections is part of \
          the comparison, whatever else is compared.",
    remedy: "Remove the `hold` of single servers, or give all servers the same, unless this is the question.",
    ..check("pins_match", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let baseline = context.baseline.as_ref()?;
    // `arms_match` judges arms, and a sweep of a pin is the question.
    let compared = context.plan.baseline.factor.as_str();
    if compared == ARM || compared.contains("hold.") {
        return None;
    }
    let (own, other) = (context.plan.pins_of(context.own.cell), context.plan.pins_of(baseline.cell));
    let differences = own.differences(other);
    let measured = match differences.is_empty() {
        true => "the same pins".to_owned(),
        false => format!("different: {}", differences.join(", ")),
    };
    Some(Finding::pass_or_caveat(differences.is_empty(), measured, "as in the baseline"))
}

#[cfg(test)]
mod tests {
    use model::Pins;
    use model::pins::CongestionControl;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    #[test]
    fn equal_pins_pass() {
        passes("pins_match", &Bench::page(&[Variant::H1s, Variant::H2]));
        silent("pins_match", &Bench::page(&[Variant::H1s]));
    }

    #[test]
    fn compared_pins_are_the_question() {
        let mut bench = Bench::page(&[Variant::H1s, Variant::H2]);
        bench.plan.cells[1].pins = Some(Pins { mtu_bytes: 1400, ..Pins::default() });
        for level in bench.plan.cells.iter_mut().flat_map(|cell| &mut cell.levels) {
            level.factor = "hold.mtu".to_owned();
        }
        bench.plan.baseline.factor = "hold.mtu".to_owned();
        silent("pins_match", &bench);
    }

    #[test]
    fn different_pins_are_a_caveat() {
        let mut bench = Bench::page(&[Variant::H1s, Variant::H2]);
        bench.plan.cells[1].pins = Some(Pins {
            congestion_control: CongestionControl::Reno,
            initial_window_packets: 32,
            ..Pins::default()
        });
        caveats(&bench, &["pins_match"]);
        let summary = bench.summary();
        let found = summary.cells[1].validity.iter().find(|check| check.check == "pins_match").unwrap();
        assert_eq!(found.measured, "different: congestion_control, initial_window");
    }
}
