//! The clock runs forward, and its resolution is fine enough for what it measures.

use model::number;

use super::{Check, CheckOutcome, Context, Finding, check, percent, time};
use crate::rows::Stamps;

pub(super) const CHECK: Check = Check {
    measures: "requests whose timestamps run backward; if the metric is a time, also the clock's resolution \
               (the greatest common divisor of all times) as a share of the median, and times that are 0",
    passes: "none; up to 1 %; up to 1 %",
    caveat: "none; up to 10 %; up to half",
    invalidates: "1 or more; more; more",
    why: "Clock steps invalidate durations, and a coarse clock rounds them.",
    remedy: "Use a client with monotonic nanosecond timestamps, as `h123` has, and a clock source that the \
             kernel trusts.",
    ..check("clock", judge)
};

/// A resolution above this share of the median is a caveat.
const COARSE_SHARE: f64 = 0.01;
/// Above this share, the measurement is mostly the clock's ticks.
const INVALID_SHARE: f64 = 0.1;
/// The times must change this often before their common divisor is taken for the clock's resolution: the
/// chance that four times in nanoseconds have a common divisor of 1000 is one in a billion.
const LEAST_CHANGES: u64 = 3;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let mut stamps = Stamps::default();
    context.own.ok().flat_map(|run| &run.groups).for_each(|facts| stamps.merge(&facts.stamps));
    if stamps.times == 0 {
        return None;
    }
    let threshold = format!("no timestamp backward, resolution below {}", percent(COARSE_SHARE));
    if stamps.disordered > 0 {
        let measured =
            format!("timestamps of {} of {} requests run backward", stamps.disordered, stamps.times);
        return Some(Finding { result: CheckOutcome::Invalid, measured, threshold });
    }
    let is_time = |name: &str| crate::metrics::find(name).is_some_and(|metric| metric.unit == "ns");
    let metric = Some(context.plan.metric.as_str()).filter(|name| is_time(name));
    let median = metric.and_then(|name| context.own.median(|run| run.value(name)));
    let is_seen = stamps.changes >= LEAST_CHANGES || stamps.zeros == stamps.times;
    let Some(median) = median.filter(|_| is_seen) else {
        let measured = format!("no timestamp of {} requests runs backward", stamps.times);
        return Some(Finding { result: CheckOutcome::Pass, measured, threshold });
    };
    if number::float(stamps.zeros) > COARSE_SHARE * number::float(stamps.times) {
        let result =
            if stamps.zeros * 2 > stamps.times { CheckOutcome::Invalid } else { CheckOutcome::Caveat };
        let measured = format!("{} of {} times are 0", stamps.zeros, stamps.times);
        return Some(Finding { result, measured, threshold });
    }
    let step = number::float(stamps.step_ns);
    let measured = format!("resolution of {} for times of {}", time(step), time(median));
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
    fn fine_timestamps_in_order_pass() {
        passes("clock", &ticking(1));
        passes("clock", &ticking(1_000_000));
        passes("clock", &Bench::page(&[Variant::H1]));
    }

    #[test]
    fn coarse_ticks_are_a_caveat_then_invalid() {
        assert_eq!(result(&ticking(10_000_000)), CheckOutcome::Caveat);
        let found = fails("clock", &ticking(20_000_000));
        assert!(found.measured.starts_with("resolution of 20 ms for times of 1"), "{found:?}");
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
    fn times_of_external_clients_count_with_their_requests() {
        let mut bench = Bench::closed(&[Variant::H1]);
        for record in &mut bench.records {
            record.samples.clear();
            let mut report = model::external::ExternalReport { requests_ok: 40, ..Default::default() };
            report.set_times(&[(10_000_000, 20), (20_000_000, 10), (30_000_000, 5), (50_000_000, 5)]);
            record.clients[0].external = Some(Box::new(report));
        }
        assert_eq!(fails("clock", &bench).measured, "resolution of 10 ms for times of 15 ms");
    }

    #[test]
    fn timestamps_that_run_backward_invalidate() {
        let mut bench = Bench::closed(&[Variant::H1]);
        let sample = &mut bench.records[3].samples[7];
        sample.first_byte_ns = sample.done_ns.map(|done| done + 1);
        let found = fails("clock", &bench);
        assert_eq!(found.measured, "timestamps of 1 of 250 requests run backward");
    }

    #[test]
    fn without_stamps_there_is_nothing_to_judge() {
        let mut bench = Bench::closed(&[Variant::H1]);
        bench.records.iter_mut().for_each(|record| record.samples.clear());
        silent("clock", &bench);
    }
}
