//! The link loses as many packets as promised.

use super::{Check, Context, Finding, directions};
use crate::number::float;

pub(super) const CHECK: Check = Check {
    name: "network_loss",
    why: "Loss decides between one connection and six; on another loss than the network's the numbers belong to another network.",
    remedy: "Leave the machine to the study alone; if it comes again with another seed, report it as a fault of h123.",
    judge,
};

/// So many standard deviations are nothing strange: 1 in 16 000 of normal numbers strays farther.
const ALLOWED_DEVIATIONS: f64 = 4.0;
const CAVEATED_DEVIATIONS: f64 = 6.0;
/// Where no chance is involved, a share of the packets up to which the machine may be to blame.
const CAVEAT_SHARE: f64 = 0.001;

/// The direction whose number of lost packets is farthest from the expected one, in standard deviations.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let losses = directions(context.network?).map(|(way, stream)| {
        let loss = &stream.loss;
        let off = (float(loss.lost) - loss.expected).abs();
        (way, loss, off, off / loss.deviation.max(f64::MIN_POSITIVE))
    });
    let (way, loss, off, _) = losses.into_iter().max_by(|(.., one), (.., other)| one.total_cmp(other))?;
    let allowed = ALLOWED_DEVIATIONS * loss.deviation;
    let caveated = (CAVEATED_DEVIATIONS * loss.deviation).max(CAVEAT_SHARE * float(loss.sent));
    let measured = format!("{} of {} lost {way}", loss.lost, loss.sent);
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
