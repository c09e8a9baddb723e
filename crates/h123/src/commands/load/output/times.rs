//! Times of many requests as an HDR histogram: three significant digits, any number of them, and two add up to one.

use anyhow::{Context, Result};
use hdrhistogram::Histogram;

const DIGITS: u8 = 3;
/// Longer times count as this long.
const LONGEST_NS: u64 = 1 << 62;

/// The quantiles that are written out, by name.
pub(crate) const QUANTILES: &[(&str, f64)] = &[
    ("p50", 0.50),
    ("p75", 0.75),
    ("p90", 0.90),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99_9", 0.999),
    ("p99_99", 0.9999),
];

/// Nanoseconds, or other whole numbers, that were recorded.
#[derive(Clone, Debug)]
pub(crate) struct Times(Histogram<u64>);

impl Times {
    /// # Errors
    /// Never with this precision; it is checked nonetheless.
    pub(crate) fn new() -> Result<Self> {
        Ok(Times(Histogram::new(DIGITS).context("making a histogram")?))
    }

    pub(crate) fn record(&mut self, value: u64, count: u64) {
        // The histogram grows as far as the longest time; beyond the memory for that, nothing works.
        let _ = self.0.record_n(value.min(LONGEST_NS), count);
    }

    /// Adds what was recorded elsewhere, each value with its count.
    pub(crate) fn record_all(&mut self, values: impl IntoIterator<Item = (u64, u64)>) {
        values.into_iter().for_each(|(value, count)| self.record(value, count));
    }

    /// How many were recorded.
    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    pub(crate) fn min(&self) -> Option<u64> {
        self.any().then(|| self.0.min())
    }

    pub(crate) fn max(&self) -> Option<u64> {
        self.any().then(|| self.0.max())
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        self.any().then(|| self.0.mean())
    }

    /// Standard deviation.
    pub(crate) fn sd(&self) -> Option<f64> {
        self.any().then(|| self.0.stdev())
    }

    /// What this share of all did not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Option<u64> {
        self.any().then(|| self.0.value_at_quantile(share).min(self.0.max()))
    }

    /// How many lie beyond that: a quantile with none beyond it is the maximum by another name.
    pub(crate) fn beyond(&self, share: f64) -> u64 {
        #[expect(clippy::cast_precision_loss, reason = "a count of requests")]
        let beyond = self.count() as f64 * (1.0 - share);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the count")]
        // 10 000 × (1 − 0.9999) is a little less than 1 in binary.
        let whole = (beyond + 1e-6).floor() as u64;
        whole
    }

    /// For formats that iterate.
    pub(crate) fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }

    fn any(&self) -> bool {
        !self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_for_what_was_recorded() {
        let mut times = Times::new().unwrap();
        assert_eq!((times.count(), times.quantile(0.5), times.mean()), (0, None, None));
        times.record_all([(1000, 9_899), (2000, 100), (5_000_000, 1)]);
        assert_eq!(times.count(), 10_000);
        assert_eq!(times.quantile(0.5), Some(1000));
        assert_eq!(times.min(), Some(1000));
        let p999 = times.quantile(0.999).unwrap();
        assert!((1999..=2001).contains(&p999), "{p999}");
        let max = times.max().unwrap();
        assert!((5_000_000..5_005_000).contains(&max), "three digits: {max}");
        assert_eq!((times.beyond(0.99), times.beyond(0.9999), times.beyond(0.99999)), (100, 1, 0));
        times.record(u64::MAX, 1);
        assert!(times.max().unwrap() >= LONGEST_NS - LONGEST_NS / 1000);
    }
}
