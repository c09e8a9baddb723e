//! The link loses the promised number of packets.

use model::number::float;

use super::{Check, Context, Finding, Table, check, directions};

pub(super) const CHECK: Check = Check {
    measures: "lost packets of 10 000 or 1000, in the direction that is farthest from the expected number",
    passes: "within 4 standard deviations",
    caveat: "within 6, or up to 0.1 % of the packets",
    invalidates: "farther",
    why: "Loss determines whether one connection or six are faster. With another loss, the numbers describe \
          another network.",
    remedy: "Let nothing else run on the machine; if it happens again with another seed, report it as a bug \
             in h123.",
    reads: &[Table::Calibrations],
    ..check("network_loss", judge)
};

/// One in 16 000 normal values is farther from its mean than this many standard deviations.
const ALLOWED_DEVIATIONS: f64 = 4.0;
const CAVEATED_DEVIATIONS: f64 = 6.0;
/// A loss without randomness is a caveat up to this share of the packets.
const CAVEAT_SHARE: f64 = 0.001;

/// Judges the direction that is farthest from the expected number, in standard deviations.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let losses = directions(context.network?).map(|(direction, stream)| {
        let loss = &stream.loss;
        let off = (float(loss.lost) - loss.expected).abs();
        (direction, loss, off, off / loss.deviation.max(f64::MIN_POSITIVE))
    });
    let (direction, loss, off, _) =
        losses.into_iter().max_by(|(.., one), (.., other)| one.total_cmp(other))?;
    let allowed = ALLOWED_DEVIATIONS * loss.deviation;
    let caveated = (CAVEATED_DEVIATIONS * loss.deviation).max(CAVEAT_SHARE * float(loss.sent));
    let measured = format!("{} of {} lost {direction}", loss.lost, loss.sent);
    let threshold = format!("{:.0} ± {:.0}", loss.expected, allowed);
    Some(Finding::graded(off, allowed, caveated, measured, threshold))
}

#[cfg(test)]
mod tests {
    use model::record::LossCalibration;
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes, silent};

    fn lost(lost: u64, expected: f64, deviation: f64) -> Bench {
        let mut bench = Bench::page(&[Variant::H1]);
        bench.networks[0].up.loss = LossCalibration { sent: 10_000, lost, expected, deviation };
        bench
    }

    #[test]
    fn what_chance_explains_passes() {
        passes("network_loss", &lost(135, 100.0, 10.0));
        passes("network_loss", &lost(0, 0.0, 0.0));
    }

    #[test]
    fn what_chance_does_not_explain_is_a_caveat_then_invalid() {
        caveats(&lost(150, 100.0, 10.0), &["network_loss"]);
        assert_eq!(fails("network_loss", &lost(30, 100.0, 10.0)).measured, "30 of 10000 lost up");
        assert_eq!(fails("network_loss", &lost(30, 100.0, 10.0)).threshold, "100 ± 40");
    }

    #[test]
    fn packets_lost_for_no_reason_are_a_caveat_then_invalid() {
        caveats(&lost(1, 0.0, 0.0), &["network_loss"]);
        fails("network_loss", &lost(11, 0.0, 0.0));
    }

    #[test]
    fn a_network_that_was_not_calibrated_has_nothing_to_judge() {
        let mut bench = lost(0, 0.0, 0.0);
        bench.networks.clear();
        silent("network_loss", &bench);
    }
}
