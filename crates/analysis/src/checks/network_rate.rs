//! The link has the promised rate.

use model::number::float;
use model::units::format_rate;

use super::{Check, Context, Finding, Table, check, directions, percent};

pub(super) const CHECK: Check = Check {
    measures: "the rate of full frames, in the direction that is farthest from the network's rate \
               (`calibrations.json`)",
    passes: "within 1 %",
    caveat: "within 5 %",
    invalidates: "farther",
    why: "The rate determines the time of large transfers. At another rate, the numbers describe another \
          network.",
    remedy: "Let nothing else run on the machine, or lower the network's rate to one that this machine can \
             emulate.",
    reads: &[Table::Calibrations],
    ..check("network_rate", judge)
};

/// The measured rate may deviate from the promise by this share.
const ALLOWED_SHARE: f64 = 0.01;
const CAVEAT_SHARE: f64 = 0.05;

/// Judges the direction that is farthest from the promise. A sender slower than the promise shows only its
/// own rate.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let rates = directions(context.network?).into_iter().filter_map(|(direction, stream)| {
        let rate = stream.rate.as_ref()?;
        let promised = float(rate.expected_bits_per_s);
        Some((direction, rate, (float(rate.measured_bits_per_s) - promised).abs() / promised))
    });
    let (direction, rate, off) = rates.max_by(|(.., one), (.., other)| one.total_cmp(other))?;
    let mut measured = format!("{} {direction}", format_rate(float(rate.measured_bits_per_s)));
    if rate.offered_bits_per_s < rate.expected_bits_per_s {
        measured = format!("{measured}, of {} sent", format_rate(float(rate.offered_bits_per_s)));
    }
    let threshold = format!("{} ± {}", format_rate(float(rate.expected_bits_per_s)), percent(ALLOWED_SHARE));
    Some(Finding::graded(off, ALLOWED_SHARE, CAVEAT_SHARE, measured, threshold))
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes, silent};

    fn at(measured_bits_per_s: u64) -> Bench {
        let mut bench = Bench::page(&[Variant::H1]);
        bench.networks[0].down.rate.as_mut().unwrap().measured_bits_per_s = measured_bits_per_s;
        bench
    }

    #[test]
    fn the_promised_rate_passes() {
        passes("network_rate", &at(49_600_000));
    }

    #[test]
    fn another_rate_is_a_caveat_then_invalid() {
        caveats(&at(51_000_000), &["network_rate"]);
        assert_eq!(fails("network_rate", &at(40_000_000)).measured, "40 Mbit/s down");
    }

    #[test]
    fn a_sender_too_slow_is_named() {
        let mut bench = at(30_000_000);
        bench.networks[0].down.rate.as_mut().unwrap().offered_bits_per_s = 30_100_000;
        assert_eq!(fails("network_rate", &bench).measured, "30 Mbit/s down, of 30.1 Mbit/s sent");
    }

    #[test]
    fn a_network_without_a_rate_has_nothing_to_judge() {
        let mut bench = at(0);
        (bench.networks[0].up.rate, bench.networks[0].down.rate) = (None, None);
        silent("network_rate", &bench);
    }
}
