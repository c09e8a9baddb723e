//! The clock is fine enough for what is measured with it, and runs forward.

use super::{Check, CheckOutcome, Context, Finding, percent, time};
use crate::number;
use crate::rows::Stamps;

pub(super) const CHECK: Check = Check {
    name: "clock",
    why: "A clock that steps backward makes times up, and one with coarse ticks rounds them to its own.",
    remedy: "Take a client that stamps with a monotonic clock in nanoseconds, as `h123` does, and a clock source that the kernel \
             trusts.",
    judge,
};

/// A step of this share of the median is a caveat.
const COARSE_SHARE: f64 = 0.01;
/// From here on the ticks are what was measured.
const INVALID_SHARE: f64 = 0.1;
/// So often a time has to change before a common divisor is taken for the clock's step: that four times in nanoseconds have
/// one of a thousand is a matter of one in a billion.
const LEAST_CHANGES: u64 = 3;

/// Requests whose stamps run backward, of which there may be none; and where the study's metric is a time, the largest step
/// of which all times from sent to done are multiples, against the metric's median.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let mut stamps = Stamps::default();
    context.own.ok().flat_map(|run| &run.groups).for_each(|facts| stamps.merge(&facts.stamps));
    if stamps.times == 0 {
        return None;
    }
    let threshold = format!("none backward, steps below {}", percent(COARSE_SHARE));
    if stamps.disordered > 0 {
        let measured =
            format!("{} of {} requests with stamps that run backward", stamps.disordered, stamps.times);
        return Some(Finding { result: CheckOutcome::Invalid, measured, threshold });
    }
    let is_time = |name: &str| crate::metrics::find(name).is_some_and(|metric| metric.unit == "ns");
    let metric = Some(context.plan.metric.as_str()).filter(|name| is_time(name));
    let median = metric.and_then(|name| context.own.median(|run| run.value(name)));
    let is_seen = stamps.changes >= LEAST_CHANGES || stamps.zeros == stamps.times;
    let Some(median) = median.filter(|_| is_seen) else {
        let measured = format!("no stamp of {} requests runs backward", stamps.times);
        return Some(Finding { result: CheckOutcome::Pass, measured, threshold });
    };
    if number::float(stamps.zeros) > COARSE_SHARE * number::float(stamps.times) {
        let result =
            if stamps.zeros * 2 > stamps.times { CheckOutcome::Invalid } else { CheckOutcome::Caveat };
        let measured = format!("{} of {} times are 0", stamps.zeros, stamps.times);
        return Some(Finding { result, measured, threshold });
    }
    let step = number::float(stamps.step_ns);
    let measured = format!("steps of {} in times of {}", time(step), time(median));
    let share = if median > 0.0 { step / median } else { f64::INFINITY };
    Some(Finding::graded(share, COARSE_SHARE, INVALID_SHARE, measured, threshold))
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, fails, passes, silent};
    use crate::summary::CheckOutcome;

    /// Requests of about 160 ms by a clock with such ticks.
    fn ticking(tick_ns: u64) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1]);
        for sample in bench.records.iter_mut().flat_map(|record| &mut record.samples) {
            let took_ns = 160_000_000 + sample.request * 1_234_567 % 40_000_000;
            sample.sent_ns = Some(0);
            sample.intended_ns = 0;
            sample.first_byte_ns = None;
            sample.done_ns = Some(took_ns / tick_ns * tick_ns);
        }
        bench
    }

    fn result(bench: &Bench) -> CheckOutcome {
        let summary = bench.summary();
        summary.cells[0].validity.iter().find(|check| check.check == "clock").unwrap().result
    }

    #[test]
    fn fine_stamps_in_order_pass() {
        passes("clock", &ticking(1));
        passes("clock", &ticking(1_000_000));
        passes("clock", &Bench::page(&[Variant::H1]));
    }

    #[test]
    fn coarse_ticks_are_a_caveat_then_invalid() {
        assert_eq!(result(&ticking(10_000_000)), CheckOutcome::Caveat);
        let found = fails("clock", &ticking(20_000_000));
        assert!(found.measured.starts_with("steps of 20 ms in times of 1"), "{found:?}");
    }

    #[test]
    fn a_clock_that_sees_nothing_invalidates() {
        let mut bench = Bench::closed(&[Variant::H1]);
        for sample in bench.records.iter_mut().flat_map(|record| &mut record.samples) {
            (sample.first_byte_ns, sample.done_ns) = (None, sample.sent_ns);
        }
        assert_eq!(fails("clock", &bench).measured, "250 of 250 times are 0");
    }

    #[test]
    fn the_sums_of_other_peoples_programs_count_as_often_as_they_say() {
        let mut bench = Bench::closed(&[Variant::H1]);
        for record in &mut bench.records {
            record.samples.clear();
            let mut report = model::external::ExternalReport { requests_ok: 40, ..Default::default() };
            report.set_times(&[(10_000_000, 20), (20_000_000, 10), (30_000_000, 5), (50_000_000, 5)]);
            record.clients[0].external = Some(Box::new(report));
        }
        assert_eq!(fails("clock", &bench).measured, "steps of 10 ms in times of 15 ms");
    }

    #[test]
    fn stamps_that_run_backward_invalidate() {
        let mut bench = Bench::closed(&[Variant::H1]);
        let sample = &mut bench.records[3].samples[7];
        sample.first_byte_ns = sample.done_ns.map(|done| done + 1);
        let found = fails("clock", &bench);
        assert_eq!(found.measured, "1 of 250 requests with stamps that run backward");
    }

    #[test]
    fn without_stamps_there_is_nothing_to_judge() {
        let mut bench = Bench::closed(&[Variant::H1]);
        bench.records.iter_mut().for_each(|record| record.samples.clear());
        silent("clock", &bench);
    }
}
