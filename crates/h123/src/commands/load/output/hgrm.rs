//! The text form of HDR histograms (`--hgrm`), which HdrHistogram's plotter and other tools read.

use std::fmt::Write;

use model::Histogram;
use model::number::float;

/// Lines for each halving of the distance to 100 %.
const TICKS_PER_HALF: u32 = 5;
/// HDR histograms of two times 1024 steps have three significant digits.
const SUB_BUCKETS: u32 = 2048;

/// The distribution, values divided by `unit`: 1e6 for nanoseconds in milliseconds.
pub(crate) fn format(times: &Histogram, unit: f64) -> String {
    let mut text =
        format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    // Writing to a String cannot fail.
    for (value, quantile, total) in times.ticks(TICKS_PER_HALF) {
        let value = float(value) / unit;
        let _ = if quantile < 1.0 {
            writeln!(text, "{value:12.3} {quantile:2.12} {total:10} {:14.2}", 1.0 / (1.0 - quantile))
        } else {
            writeln!(text, "{value:12.3} {quantile:2.12} {total:10}")
        };
    }
    let (mean, sd) = (times.mean().unwrap_or(0.0) / unit, times.sd().unwrap_or(0.0) / unit);
    let max = float(times.max().unwrap_or(0)) / unit;
    let _ = writeln!(text, "#[Mean    = {mean:12.3}, StdDeviation   = {sd:12.3}]");
    let _ = writeln!(text, "#[Max     = {max:12.3}, Total count    = {:12}]", times.count());
    let _ = writeln!(text, "#[Buckets = {:12}, SubBuckets     = {SUB_BUCKETS:12}]", times.groups());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The three values that implementations of HdrHistogram show in their documentation; only the number of
    /// buckets depends on how far a histogram reaches.
    #[test]
    fn the_well_known_distribution_is_written_as_elsewhere() {
        let mut times = Histogram::default();
        [25, 50, 75].into_iter().for_each(|value| times.record(value));
        let text = format(&times, 1.0);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "       Value     Percentile TotalCount 1/(1-Percentile)");
        assert_eq!(lines[1], "");
        let rows = [
            ("25.000", "0.000000000000", 1, "1.00"),
            ("25.000", "0.100000000000", 1, "1.11"),
            ("25.000", "0.200000000000", 1, "1.25"),
            ("25.000", "0.300000000000", 1, "1.43"),
            ("50.000", "0.400000000000", 2, "1.67"),
            ("50.000", "0.500000000000", 2, "2.00"),
            ("50.000", "0.550000000000", 2, "2.22"),
            ("50.000", "0.600000000000", 2, "2.50"),
            ("50.000", "0.650000000000", 2, "2.86"),
            ("75.000", "0.700000000000", 3, "3.33"),
        ];
        for (line, (value, percentile, count, inverse)) in lines[2..12].iter().zip(rows) {
            assert_eq!(*line, format!("{value:>12} {percentile} {count:>10} {inverse:>14}"));
        }
        assert_eq!(lines[12], "      75.000 1.000000000000          3");
        assert_eq!(lines[13], "#[Mean    =       50.000, StdDeviation   =       20.412]");
        assert_eq!(lines[14], "#[Max     =       75.000, Total count    =            3]");
        assert!(
            lines[15].starts_with("#[Buckets = ") && lines[15].ends_with("SubBuckets     =         2048]")
        );
        assert_eq!(lines.len(), 16);
    }

    #[test]
    fn nothing_recorded_is_an_empty_distribution() {
        let text = format(&Histogram::default(), 1e6);
        assert!(text.contains("Total count    =            0"), "{text}");
    }
}
