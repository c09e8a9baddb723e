//! Distributions that merge: exact while they are small, in buckets when they are larger.

use model::Histogram;
use model::number;

/// Up to this number, values are kept exactly.
pub const EXACT_LIMIT: usize = 4096;

/// The values of one metric: exact up to [`EXACT_LIMIT`] values, otherwise in the buckets of an HDR histogram
/// (high dynamic range, G. Tene) of whole units, each kept to within 0.1 %.
///
/// Merging is commutative and associative: the result depends only on the values. Empty buckets take no
/// memory, so that thousands of runs fit into it. A histogram with all its buckets exists only while values
/// are added ([`DistributionBuilder`]).
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    values: Values,
}

#[derive(Clone, Debug, PartialEq)]
enum Values {
    /// In ascending order.
    Exact(Vec<f64>),
    /// Buckets in ascending order: the representative value and the number of values.
    Counted(Vec<(u64, u64)>),
}

impl Default for Distribution {
    fn default() -> Self {
        Distribution { values: Values::Exact(Vec::new()) }
    }
}

impl FromIterator<f64> for Distribution {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut builder = DistributionBuilder::default();
        values.into_iter().for_each(|value| builder.push(value));
        builder.finish()
    }
}

impl Distribution {
    /// All values of several distributions.
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Distribution>) -> Distribution {
        let mut builder = DistributionBuilder::default();
        parts.into_iter().for_each(|part| builder.add(part));
        builder.finish()
    }

    /// Adds all values of another distribution.
    pub fn merge(&mut self, other: &Distribution) {
        *self = Distribution::merged([&*self, other]);
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        match &self.values {
            Values::Exact(exact) => exact.len() as u64,
            Values::Counted(buckets) => buckets.iter().map(|(_, count)| count).sum(),
        }
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        match &self.values {
            Values::Exact(exact) => exact.is_empty(),
            Values::Counted(buckets) => buckets.is_empty(),
        }
    }

    /// The values in ascending order, each with its count. Exact values are not grouped.
    pub fn counted(&self) -> Vec<(f64, u64)> {
        match &self.values {
            Values::Exact(exact) => exact.iter().map(|value| (*value, 1)).collect(),
            Values::Counted(buckets) => {
                buckets.iter().map(|(value, count)| (number::float(*value), *count)).collect()
            }
        }
    }

    /// The arithmetic mean; `None` without values. Over buckets it is exact to within 0.05 %.
    pub fn mean(&self) -> Option<f64> {
        let count = number::float(self.count());
        let sum: f64 = match &self.values {
            Values::Exact(exact) => exact.iter().sum(),
            Values::Counted(buckets) => {
                buckets.iter().map(|(value, count)| number::float(*value) * number::float(*count)).sum()
            }
        };
        (count > 0.0).then(|| sum / count)
    }

    /// A quantile by definition 7 of Hyndman and Fan (1996), the default of R and NumPy: with the values x₁ ≤
    /// … ≤ xₙ and h = (n − 1) q + 1, linear interpolation between x⌊h⌋ and x⌊h⌋₊₁; `None` without values.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        match &self.values {
            Values::Exact(exact) => {
                let position = number::count(exact.len().checked_sub(1)?) * q.clamp(0.0, 1.0);
                let below = exact[number::index(position.floor())];
                let above = exact[number::index(position.ceil())];
                Some(between(below, above, position))
            }
            Values::Counted(_) => weighted_quantile(&self.counted(), q),
        }
    }

    /// The standard deviation of a sample (with n − 1); `None` with fewer than two values.
    pub fn sd(&self) -> Option<f64> {
        let (mean, count) = (self.mean()?, self.count());
        let squares: f64 =
            self.counted().iter().map(|(value, count)| (value - mean).powi(2) * number::float(*count)).sum();
        (count > 1).then(|| (squares / number::float(count - 1)).sqrt())
    }

    /// The share of values between two values, both included; 0 without values.
    pub fn share_within(&self, from: f64, to: f64) -> f64 {
        let inside = |(value, _): &&(f64, u64)| (from..=to).contains(value);
        let counted = self.counted();
        let within: u64 = counted.iter().filter(inside).map(|(_, count)| count).sum();
        number::float(within) / number::float(self.count()).max(1.0)
    }

    /// The median, in the metric's unit.
    pub fn median(&self) -> Option<f64> {
        self.quantile(0.5)
    }
}

/// Collects the values of a [`Distribution`].
#[derive(Clone, Debug, Default)]
pub struct DistributionBuilder {
    exact: Vec<f64>,
    histogram: Option<Histogram>,
}

impl DistributionBuilder {
    /// Adds a value. Values that are not finite are ignored.
    pub fn push(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        match &mut self.histogram {
            Some(histogram) => histogram.record(number::nearest(value)),
            None => {
                self.exact.push(value);
                if self.exact.len() > EXACT_LIMIT {
                    self.begin_counting();
                }
            }
        }
    }

    /// Adds a value that occurs several times. Values that are not finite are ignored.
    pub fn push_times(&mut self, value: f64, count: u64) {
        let exact = (self.exact.len() as u64).saturating_add(count);
        if self.histogram.is_none() && exact <= EXACT_LIMIT as u64 {
            (0..count).for_each(|_| self.push(value));
        } else if value.is_finite() {
            self.count(number::nearest(value), count);
        }
    }

    /// Adds all values of a distribution.
    pub fn add(&mut self, distribution: &Distribution) {
        match &distribution.values {
            Values::Exact(exact) => exact.iter().for_each(|value| self.push(*value)),
            Values::Counted(buckets) => buckets.iter().for_each(|(value, count)| self.count(*value, *count)),
        }
    }

    /// The distribution of the added values.
    pub fn finish(self) -> Distribution {
        let values = match self.histogram {
            None => {
                let mut exact = self.exact;
                exact.sort_unstable_by(f64::total_cmp);
                exact.shrink_to_fit();
                Values::Exact(exact)
            }
            Some(histogram) => Values::Counted(histogram.buckets()),
        };
        Distribution { values }
    }

    fn count(&mut self, value: u64, count: u64) {
        self.begin_counting();
        if let Some(histogram) = &mut self.histogram {
            histogram.record_n(value, count);
        }
    }

    fn begin_counting(&mut self) {
        let DistributionBuilder { exact, histogram } = self;
        let histogram = histogram.get_or_insert_default();
        exact.drain(..).for_each(|value| histogram.record(number::nearest(value)));
    }
}

/// The quantile (definition 7) of values in ascending order with their counts.
pub(crate) fn weighted_quantile(counted: &[(f64, u64)], q: f64) -> Option<f64> {
    let total: u64 = counted.iter().map(|(_, count)| count).sum();
    let position = number::float(total.checked_sub(1)?) * q.clamp(0.0, 1.0);
    let (low, high) = (number::nearest(position.floor()), number::nearest(position.ceil()));
    let mut seen = 0;
    let mut below = None;
    for (value, count) in counted {
        seen += count;
        if below.is_none() && seen > low {
            below = Some(*value);
        }
        if seen > high {
            return Some(between(below?, *value, position));
        }
    }
    None
}

fn between(below: f64, above: f64, position: f64) -> f64 {
    if above > below { below + (above - below) * position.fract() } else { below }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_value_with_a_count_equals_single_values() {
        for (count, times) in [(3, 3), (3000, 3000)] {
            let mut counted = DistributionBuilder::default();
            counted.push(1000.0);
            for (value, count) in [(2000.0, count), (f64::NAN, 5), (500.0, count)] {
                counted.push_times(value, count);
            }
            let single = std::iter::repeat_n(2000.0, times).chain(std::iter::repeat_n(500.0, times));
            let expected: Distribution = std::iter::once(1000.0).chain(single).collect();
            assert_eq!(counted.finish(), expected, "{times}");
        }
    }

    #[test]
    fn the_spread_is_that_of_r() {
        // R: sd(c(1, 2, 4, 8, 16)); the mean is 6.2.
        let distribution: Distribution = [16.0, 1.0, 8.0, 2.0, 4.0].into_iter().collect();
        assert!((distribution.sd().unwrap() - 6.099_180_272_790_763).abs() < 1e-12);
        assert_eq!(distribution.share_within(2.0, 8.0), 0.6);
        let one: Distribution = std::iter::once(3.0).collect();
        assert_eq!((one.sd(), one.share_within(0.0, 1.0)), (None, 0.0));
    }

    #[test]
    fn quantiles_are_those_of_r() {
        // R: quantile(c(1, 2, 4, 8, 16), c(0, 0.25, 0.5, 0.9, 0.95, 1), type = 7)
        let distribution: Distribution = [16.0, 1.0, 8.0, 2.0, 4.0].into_iter().collect();
        let quantiles = [0.0, 0.25, 0.5, 0.9, 0.95, 1.0].map(|q| distribution.quantile(q).unwrap());
        for (found, expected) in quantiles.iter().zip([1.0, 2.0, 4.0, 12.8, 14.4, 16.0]) {
            assert!((found - expected).abs() < 1e-12, "{found} != {expected}");
        }
        assert_eq!(Distribution::default().quantile(0.5), None);
    }

    #[test]
    fn many_values_are_kept_to_a_thousandth() {
        let distribution: Distribution = (1..=100_000).map(|n| f64::from(n) * 1000.0).collect();
        assert_eq!(distribution.count(), 100_000);
        for q in [0.01, 0.5, 0.99] {
            let expected = (99_999.0 * q + 1.0) * 1000.0;
            let found = distribution.quantile(q).unwrap();
            assert!((found / expected - 1.0).abs() < 0.001, "{q}: {found} != {expected}");
        }
    }

    #[test]
    fn values_that_are_not_finite_are_ignored() {
        let distribution: Distribution = [f64::NAN, 1.0, f64::INFINITY].into_iter().collect();
        assert_eq!(distribution.count(), 1);
    }

    fn merged(parts: &[&Distribution]) -> Distribution {
        let mut all = Distribution::default();
        parts.iter().for_each(|part| all.merge(part));
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn merging_is_associative_and_commutative(
            sizes in prop::array::uniform3(0_usize..3500), seed in 1_u32..1000
        ) {
            let part = |size: usize, salt: u32| -> Distribution {
                (0..number::small(size)).map(|n| f64::from((n * 7919 + salt * seed) % 1_000_003)).collect()
            };
            let [a, b, c] = [part(sizes[0], 1), part(sizes[1], 2), part(sizes[2], 3)];
            let left = merged(&[&merged(&[&a, &b]), &c]);
            let right = merged(&[&a, &merged(&[&b, &c])]);
            let backward = merged(&[&c, &b, &a]);
            prop_assert_eq!(&left, &right);
            prop_assert_eq!(&left, &backward);
            prop_assert_eq!(left.count(), (sizes[0] + sizes[1] + sizes[2]) as u64);
        }
    }
}
