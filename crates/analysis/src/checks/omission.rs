//! The percentiles of a closed loop show the time that stalls cost.
//!
//! While a server stalls, a closed loop sends nothing: one long time replaces all the requests that would
//! have been sent ("coordinated omission", G. Tene, *How not to measure latency*, 2013; open and closed
//! systems: Schroeder, Wierman and Harchol-Balter, NSDI 2006). HdrHistogram's correction adds them: for each
//! time longer than the expected interval, here the median, the times of the requests one interval later, two
//! intervals later, and so on.

use model::number;

use super::{Check, Context, Distribution, Finding, RunSummary, check, percent, time};

pub(super) const CHECK: Check = Check {
    measures: "closed loops whose metric is a response time, 1000 or more requests: how much the 99th \
               percentile rises if the requests that stalls suppressed are added",
    passes: "up to 10 %, or within the interval of the 99th percentile",
    caveat: "more",
    why: "While the server stalls, a closed loop sends nothing, so its percentiles omit all requests that \
          would have waited.",
    remedy: "Read the percentiles of an open loop (`kind = \"open\"`), whose requests are due whatever the \
             server does.",
    ..check("omission", judge)
};

/// The 99th percentile may rise by this share.
const ALLOWED_SHARE: f64 = 0.1;
/// Fewer requests have no meaningful 99th percentile.
const LEAST_REQUESTS: u64 = 1000;
/// Halvings of the range: to a millionth of the largest time.
const STEPS: u32 = 20;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let metric = context.plan.metric.as_str();
    if !context.is_response_time()
        || context.own.ok().flat_map(|run| &run.groups).any(|facts| facts.is_open)
        || !crate::run::is_loop(context.plan, &context.own.cell.group)
    {
        return None;
    }
    let raw = |run: &RunSummary| long_enough(run, metric)?.quantile(0.99);
    let whole = |run: &RunSummary| corrected(long_enough(run, metric)?);
    let (raw_ns, whole_ns) = (context.own.median(raw)?, context.own.median(whole)?);
    let rise = whole_ns / raw_ns - 1.0;
    // Noise of the percentile itself is no stall.
    let high_ns = context.own.summary.metrics.get(metric).and_then(|metric| metric.p99.high);
    let is_noise = high_ns.is_some_and(|high_ns| whole_ns <= high_ns);
    Some(Finding::pass_or_caveat(
        rise <= ALLOWED_SHARE || is_noise,
        format!("99th percentile {}, {} with omitted requests", time(raw_ns), time(whole_ns)),
        format!("at most {} more", percent(ALLOWED_SHARE)),
    ))
}

fn long_enough<'a>(run: &'a RunSummary, metric: &str) -> Option<&'a Distribution> {
    run.metrics.get(metric).filter(|times| times.count() >= LEAST_REQUESTS)
}

/// The 99th percentile with the omitted requests, by bisection, so that they are only counted.
fn corrected(times: &Distribution) -> Option<f64> {
    let interval_ns = times.median().filter(|median| *median > 0.0)?;
    let counted = times.counted();
    let missing = |value: f64| (value / interval_ns).floor().max(1.0) - 1.0;
    // The number of times above `limit`: each time itself, and the times that it delayed, one interval apart.
    let above = |limit: f64| -> f64 {
        let of = |(value, count): &(f64, u64)| match *value > limit {
            true => number::float(*count) * ((value - limit) / interval_ns).ceil().min(1.0 + missing(*value)),
            false => 0.0,
        };
        counted.iter().map(of).sum()
    };
    let all: f64 = counted.iter().map(|(value, count)| number::float(*count) * (1.0 + missing(*value))).sum();
    let (mut low, mut high) = (0.0, counted.last()?.0);
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if above(middle) > 0.01 * all { low = middle } else { high = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use model::sample::Sample;
    use model::variant::Variant;

    use crate::fixtures::{Bench, passes, silent};
    use crate::summary::CheckOutcome;

    /// 2000 requests of a millisecond, some of which stall.
    fn with_stalls(every: u64, stall_ms: u64) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1s]);
        for record in &mut bench.records {
            let like = record.samples[0].clone();
            let mut now_ns = 1_000_000;
            let rows = (0..2000).map(|request| {
                let took_ns = if request % every == 0 { stall_ms * 1_000_000 } else { 1_000_000 };
                let intended_ns = now_ns;
                now_ns += took_ns;
                let sent_ns = Some(intended_ns);
                let done_ns = Some(now_ns);
                Sample { request, intended_ns, sent_ns, first_byte_ns: done_ns, done_ns, ..like.clone() }
            });
            record.samples = rows.collect();
        }
        bench
    }

    fn result(bench: &Bench) -> CheckOutcome {
        let summary = bench.summary();
        summary.cells[0].validity.iter().find(|check| check.check == "omission").unwrap().result
    }

    #[test]
    fn steady_times_pass() {
        passes("omission", &with_stalls(1_000_000, 1));
        silent("omission", &Bench::open(&[Variant::H1s]));
        silent("omission", &Bench::closed(&[Variant::H1s])); // too few
    }

    #[test]
    fn a_rise_within_the_interval_of_the_percentile_passes() {
        // 25 of 2000 requests take 4 ms in three runs, 2 ms in the others: the percentile is as uncertain as
        // its rise.
        let mut bench = with_stalls(1_000_000, 1);
        for (number, record) in bench.records.iter_mut().enumerate() {
            let slow_ns = if number < 3 { 4_000_000 } else { 9_000_000 };
            for sample in record.samples.iter_mut().filter(|sample| sample.request % 95 == 0) {
                sample.done_ns = Some(sample.intended_ns + slow_ns);
                sample.first_byte_ns = sample.done_ns;
            }
        }
        let summary = bench.summary();
        let found = summary.cells[0].validity.iter().find(|check| check.check == "omission").unwrap();
        assert_eq!(found.result, CheckOutcome::Pass, "{}", found.measured);
    }

    #[test]
    fn stalls_that_the_percentile_hides_are_a_caveat() {
        // Four stalls of half a second in 2000 requests: half of all the time, and 0.2 % of the requests.
        assert_eq!(result(&with_stalls(500, 500)), CheckOutcome::Caveat);
    }
}
