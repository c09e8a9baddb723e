//! The times of a cell have one peak, so that one number can represent them.
//!
//! Otsu's threshold (*IEEE Transactions on Systems, Man, and Cybernetics* 9, 1979) splits the logarithms into
//! two parts. Ashman's D (Ashman, Bird and Zepf, *The Astronomical Journal* 108, 1994) is the distance
//! between the parts relative to their widths. A normal distribution split in the middle has 2.6, a uniform
//! one 3.5.

use model::number;

use super::{Check, Context, Distribution, Finding, check, percent, time};

pub(super) const CHECK: Check = Check {
    measures: "Ashman's D of the best split of the logarithms into two parts: of metrics with one value per request \
               with 200 or more values, of other metrics, such as the page load time, with 10 or more runs",
    passes: "up to 5, or a part smaller than 5 %; over runs up to 5 + 50 / runs, a part smaller than 20 %, or peaks \
             within the margin",
    caveat: "more",
    why: "If times have two peaks, hardly any request or run takes the median time, or the median jumps from \
          one peak to the other.",
    remedy: "Find what separates them (two sizes, a cache, a stall) and measure each in its own workload, \
             or read quantiles.",
    ..check("two_peaks", judge)
};

/// Above this value of Ashman's D, the parts are separate peaks.
const APART: f64 = 5.0;
/// A smaller part is a tail.
const LEAST_SHARE: f64 = 0.05;
const LEAST_VALUES: u64 = 200;
/// Over runs there are few values, and the best split of a few values is apart by chance. A normal
/// distribution exceeds 5 + 50 / n in one cell of a thousand (10 to 100 runs, simulated), a uniform one in
/// one of a hundred.
const APART_TIMES_RUNS: f64 = 50.0;
const LEAST_SHARE_OF_RUNS: f64 = 0.2;
const LEAST_RUNS: u64 = 10;

/// The two parts into which the logarithms of times are split.
struct Parts {
    apart: f64,
    lower_share: f64,
    centres: [f64; 2],
}

/// Judged by the requests, or by the runs if the metric has one value per run.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let metric = crate::metrics::find(&context.plan.metric)?;
    let all = Distribution::merged(context.own.ok().filter_map(|run| run.metrics.get(&context.plan.metric)));
    let count = all.count();
    let (least, apart, least_share, noun) = match metric.values.is_per_request() {
        true => (LEAST_VALUES, APART, LEAST_SHARE, ""),
        false => {
            let apart = APART + APART_TIMES_RUNS / number::float(count.max(1));
            (LEAST_RUNS, apart, LEAST_SHARE_OF_RUNS, " of the runs")
        }
    };
    if count < least {
        return None;
    }
    let parts = part(&all.counted())?;
    let [low, high] = parts.centres;
    let share = parts.lower_share.min(1.0 - parts.lower_share);
    // Peaks within the margin do not matter to the study. Requests keep the older rule.
    let matters = metric.values.is_per_request() || high / low - 1.0 > context.plan.margin_share;
    let has_two = parts.apart > apart && share >= least_share && matters;
    let value = |value: f64| match metric.unit {
        "ns" => time(value),
        unit => format!("{} {unit}", model::units::three_digits(value)),
    };
    let measured = match has_two {
        true => format!(
            "{}{noun} near {}, {} near {}",
            percent(parts.lower_share),
            value(low),
            percent(1.0 - parts.lower_share),
            value(high)
        ),
        false => "one peak".to_owned(),
    };
    Some(Finding::pass_or_caveat(!has_two, measured, "one peak"))
}

fn part(counted: &[(f64, u64)]) -> Option<Parts> {
    let logs: Vec<(f64, f64)> = counted
        .iter()
        .filter(|(value, _)| *value > 0.0)
        .map(|(value, count)| (value.ln(), number::float(*count)))
        .collect();
    let moments = |sums: (f64, f64, f64)| {
        let (count, sum, squares) = sums;
        let mean = sum / count;
        (mean, (squares / count - mean * mean).max(0.0))
    };
    let add = |sums: (f64, f64, f64), (log, count): &(f64, f64)| {
        (sums.0 + count, sums.1 + count * log, sums.2 + count * log * log)
    };
    let all = logs.iter().fold((0.0, 0.0, 0.0), add);
    let mut lower = (0.0, 0.0, 0.0);
    let mut best: Option<(f64, Parts)> = None;
    for pair in logs.windows(2) {
        lower = add(lower, &pair[0]);
        let upper = (all.0 - lower.0, all.1 - lower.1, all.2 - lower.2);
        let ((low, low_variance), (high, high_variance)) = (moments(lower), moments(upper));
        let between = lower.0 * upper.0 * (high - low).powi(2);
        if best.as_ref().is_none_or(|(most, _)| between > *most) {
            let width = f64::midpoint(low_variance, high_variance).sqrt();
            let apart = (high - low) / width.max(1e-9);
            let parts = Parts { apart, lower_share: lower.0 / all.0, centres: [low.exp(), high.exp()] };
            best = Some((between, parts));
        }
    }
    best.map(|(_, parts)| parts)
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use super::part;
    use crate::fixtures::{Bench, silent};
    use crate::summary::CheckOutcome;

    /// 50 requests in each of five runs; every third or so takes `far_ns`.
    fn with(near_ns: u64, far_ns: u64) -> Bench {
        let mut bench = Bench::closed(&[Variant::H1s]);
        for sample in bench.records.iter_mut().flat_map(|record| &mut record.samples) {
            let took_ns =
                if sample.request % 3 == 0 { far_ns } else { near_ns } + sample.request * 37 % 1000 * 1000;
            sample.done_ns = Some(sample.intended_ns + took_ns);
        }
        bench
    }

    fn found(bench: &Bench) -> String {
        let summary = bench.summary();
        let check = summary.cells[0].validity.iter().find(|check| check.check == "two_peaks").unwrap();
        check.measured.clone()
    }

    #[test]
    fn one_peak_passes_and_few_pages_are_not_judged() {
        assert_eq!(found(&with(150_000_000, 150_000_000)), "one peak");
        silent("two_peaks", &Bench::page(&[Variant::H2]));
    }

    #[test]
    fn two_peaks_are_a_caveat() {
        let bench = with(150_000_000, 450_000_000);
        assert_eq!(found(&bench), "66% near 150 ms, 34% near 450 ms");
        let summary = bench.summary();
        let check = summary.cells[0].validity.iter().find(|check| check.check == "two_peaks").unwrap();
        assert_eq!(check.result, CheckOutcome::Caveat);
    }

    /// A page in this many runs, of which every third takes `far_ns` more.
    fn pages(runs: usize, far_ns: u64) -> Bench {
        let mut bench = Bench::page(&[Variant::H2]);
        let like = (bench.records[0].clone(), bench.plan.runs[0].clone());
        bench.records = (0..runs)
            .map(|run| {
                let number = model::number::small(run);
                let mut record = model::RunRecord { run: number, block: number, ..like.0.clone() };
                let longer_ns = (run as u64 * 37 % 10) * 1_000_000 + if run % 3 == 0 { far_ns } else { 0 };
                for sample in &mut record.samples {
                    sample.done_ns = sample.done_ns.map(|ns| ns + longer_ns);
                }
                record
            })
            .collect();
        bench.plan.runs = (0..runs)
            .map(|run| model::plan::PlannedRun {
                run: model::number::small(run),
                block: model::number::small(run),
                ..like.1.clone()
            })
            .collect();
        bench
    }

    #[test]
    fn page_loads_with_two_peaks_are_a_caveat() {
        assert_eq!(found(&pages(10, 0)), "one peak");
        assert_eq!(found(&pages(12, 300_000_000)), "66.7% of the runs near 646 ms, 33.3% near 941 ms");
        silent("two_peaks", &pages(9, 300_000_000));
    }

    #[test]
    fn broad_shapes_of_one_peak_are_not_parted() {
        let uniform: Vec<(f64, u64)> = (0..1000).map(|i| ((f64::from(i) / 500.0).exp(), 1)).collect();
        assert!(part(&uniform).unwrap().apart < 4.0);
        // A log-normal, by its density.
        let density = |x: f64| model::number::nearest(1e6 * (-x * x / 2.0).exp());
        let normal: Vec<(f64, u64)> =
            (-400..400).map(|i| f64::from(i) / 100.0).map(|x| (x.exp(), density(x))).collect();
        assert!((part(&normal).unwrap().apart - 2.65).abs() < 0.1);
    }
}
