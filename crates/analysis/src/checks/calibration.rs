//! The empty path has the promised round trip.

use model::number;
use model::record::Calibration;
use model::units::NANOS_PER_US;

use super::{Check, CheckOutcome, Context, Distribution, Finding, check, time};
use crate::table::Table;

pub(super) const CHECK: Check = Check {
    measures: "the median over runs of the median probe on the empty path, minus the network's configured \
               round trip",
    passes: "up to the margin × RTT, or 200 µs if that is more",
    caveat: "up to 3 times as much, or a lost probe",
    invalidates: "more; no probe answered; or less than 95 % of the RTT",
    why: "Round trips determine load times. With another round trip, the numbers describe another network.",
    remedy: "Let nothing else run on the machine, and give the emulator real-time priority (`h123 doctor`).",
    reads: &[Table::RoundTrips],
    ..check("calibration", judge)
};

/// The round trip of a probe on a path without delay: two crossings of the emulator and four wake-ups.
const FLOOR_NS: f64 = 200.0 * NANOS_PER_US as f64;
/// More than this many times the allowance invalidates.
const CAVEAT_FACTOR: f64 = 3.0;
/// A shorter share of the promised round trip cannot come from an emulated path.
const LEAST_SHARE: f64 = 0.95;

/// Calibration sees neither loss nor jitter, so no probe may be lost.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let calibrations: Vec<&Calibration> =
        context.own.ok().filter_map(|run| run.calibration.as_ref()).collect();
    let expected_ns = number::float(calibrations.first()?.expected_rtt_ns);
    let medians: Distribution = calibrations
        .iter()
        .filter_map(|calibration| {
            calibration.rtt_ns.iter().map(|ns| number::float(*ns)).collect::<Distribution>().median()
        })
        .collect();
    let allowed_ns = (context.plan.margin_share * expected_ns).max(FLOOR_NS);
    let threshold = format!("{} + {}", time(expected_ns), time(allowed_ns));
    let Some(rtt_ns) = medians.median() else {
        let measured = "no probe was answered".to_owned();
        return Some(Finding { result: CheckOutcome::Invalid, measured, threshold });
    };
    let lost: usize = calibrations
        .iter()
        .map(|calibration| (calibration.sent as usize).saturating_sub(calibration.rtt_ns.len()))
        .sum();
    let mut measured = time(rtt_ns);
    if lost > 0 {
        measured = format!("{measured}, {lost} probes lost");
    }
    let off_ns = if rtt_ns < LEAST_SHARE * expected_ns { f64::INFINITY } else { rtt_ns - expected_ns };
    let mut finding = Finding::graded(off_ns, allowed_ns, CAVEAT_FACTOR * allowed_ns, measured, threshold);
    if lost > 0 {
        finding.result = finding.result.max(CheckOutcome::Caveat);
    }
    Some(finding)
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, fails, passes};

    fn with_rtt(rtt_ns: u64) -> Bench {
        let mut bench = Bench::page(&[Variant::H1]);
        for calibration in bench.records.iter_mut().flat_map(|record| &mut record.round_trips) {
            calibration.rtt_ns = vec![rtt_ns; 5];
        }
        bench
    }

    #[test]
    fn the_promised_round_trip_passes() {
        passes("calibration", &with_rtt(150_900_000));
    }

    #[test]
    fn a_longer_round_trip_is_a_caveat_then_invalid() {
        caveats(&with_rtt(157_000_000), &["calibration"]);
        assert_eq!(fails("calibration", &with_rtt(170_000_000)).measured, "170 ms");
    }

    #[test]
    fn a_shorter_one_invalidates_for_nothing_was_emulated() {
        fails("calibration", &with_rtt(100_000));
    }

    #[test]
    fn a_local_network_has_room_for_what_probes_cost() {
        let mut bench = with_rtt(450_000);
        bench.on_lan();
        passes("calibration", &bench);
    }

    #[test]
    fn lost_probes_are_a_caveat_and_no_replies_invalidate() {
        let mut bench = with_rtt(150_000_000);
        if let Some(calibration) = bench.records[0].round_trips.first_mut() {
            calibration.sent = 6;
        }
        caveats(&bench, &["calibration"]);
        for calibration in bench.records.iter_mut().flat_map(|record| &mut record.round_trips) {
            calibration.rtt_ns.clear();
        }
        assert_eq!(fails("calibration", &bench).measured, "no probe was answered");
    }
}
