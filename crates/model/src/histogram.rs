//! Histograms of whole numbers that merge without loss: one definition for load tests, studies and reports.

use hdrhistogram::Histogram as Buckets;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};
use serde::{Deserialize, Deserializer as Input, Serialize, Serializer as Output, de, ser};

use crate::number::float;

/// Values are kept to within 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;
/// Room for values up to here (an hour in nanoseconds) is made at the first value; recording them allocates
/// nothing.
const ROOM: u64 = 3_600_000_000_000;
/// Larger values count as this one.
const LARGEST: u64 = 1 << 62;

/// Counts of whole numbers, such as nanoseconds, in the buckets of an HDR histogram (high dynamic range, G.
/// Tene), each kept to within 0.1 %.
///
/// Merging is commutative and associative. Serialized as the bytes of HdrHistogram's V2 form, or none where
/// it is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram(Option<Buckets<u64>>);

impl Histogram {
    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts a value that occurs several times.
    #[inline]
    pub fn record_n(&mut self, value: u64, count: u64) {
        if self.0.is_none() && count > 0 {
            self.0 = Buckets::new_with_bounds(1, ROOM, SIGNIFICANT_DIGITS).ok().map(growing);
        }
        if let Some(buckets) = &mut self.0 {
            // It grows as far as needed; only memory could end it.
            let _ = buckets.record_n(value.min(LARGEST), count);
        }
    }

    /// Adds all values of another.
    pub fn merge(&mut self, other: &Histogram) {
        match (&mut self.0, &other.0) {
            (_, None) => {}
            // As above: it grows as far as needed.
            (Some(buckets), Some(others)) => drop(buckets.add(others)),
            (none, Some(others)) => *none = Some(others.clone()),
        }
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, Buckets::len)
    }

    /// The smallest value; `None` where it is empty, as for all that follow.
    pub fn min(&self) -> Option<u64> {
        self.0.as_ref().map(Buckets::min)
    }

    /// The largest value.
    pub fn max(&self) -> Option<u64> {
        self.0.as_ref().map(Buckets::max)
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> Option<f64> {
        self.0.as_ref().map(Buckets::mean)
    }

    /// The standard deviation.
    pub fn sd(&self) -> Option<f64> {
        self.0.as_ref().map(Buckets::stdev)
    }

    /// The smallest value that at least this share of all values does not exceed.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        self.0.as_ref().map(|buckets| buckets.value_at_quantile(share).min(buckets.max()))
    }

    /// How many values lie beyond a quantile; where none does, the quantile is the maximum by another name.
    pub fn beyond(&self, share: f64) -> u64 {
        let beyond = float(self.count()) * (1.0 - share);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the count")]
        // 10 000 × (1 − 0.9999) is a little less than 1 in binary.
        let whole = (beyond + 1e-6).floor() as u64;
        whole
    }

    /// The buckets that hold values, in ascending order: the middle of each, and its count.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let Some(buckets) = &self.0 else { return Vec::new() };
        let middle = |value| buckets.median_equivalent(value);
        let steps = buckets.iter_recorded();
        steps.map(|step| (middle(step.value_iterated_to()), step.count_since_last_iteration())).collect()
    }

    /// Values and their shares towards 100 %, for the text form of HDR histograms: this many for each halving
    /// of the distance. The value, the share of values up to it, and their number.
    pub fn ticks(&self, per_half: u32) -> Vec<(u64, f64, u64)> {
        let Some(buckets) = &self.0 else { return Vec::new() };
        let mut total = 0;
        let tick = |step: hdrhistogram::iterators::IterationValue<u64>| {
            total += step.count_since_last_iteration();
            (step.value_iterated_to(), step.quantile_iterated_to(), total)
        };
        buckets.iter_quantiles(per_half).map(tick).collect()
    }

    /// How many groups of buckets it has, each for values up to twice those of the one before.
    pub fn groups(&self) -> u8 {
        self.0.as_ref().map_or(0, Buckets::buckets)
    }
}

impl Serialize for Histogram {
    fn serialize<S: Output>(&self, output: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        if let Some(buckets) = &self.0 {
            V2Serializer::new().serialize(buckets, &mut bytes).map_err(ser::Error::custom)?;
        }
        output.serialize_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Input<'de>>(input: D) -> Result<Self, D::Error> {
        let bytes = Vec::<u8>::deserialize(input)?;
        if bytes.is_empty() {
            return Ok(Histogram::default());
        }
        let buckets = Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(de::Error::custom)?;
        Ok(Histogram(Some(growing(buckets))))
    }
}

fn growing(mut buckets: Buckets<u64>) -> Buckets<u64> {
    buckets.auto(true);
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(u64, u64)]) -> Histogram {
        let mut histogram = Histogram::default();
        values.iter().for_each(|(value, count)| histogram.record_n(*value, *count));
        histogram
    }

    #[test]
    fn statistics_are_those_of_the_recorded_values() {
        let mut times = Histogram::default();
        assert_eq!((times.count(), times.quantile(0.5), times.mean()), (0, None, None));
        times.merge(&of(&[(1000, 9_899), (2000, 100), (5_000_000, 1)]));
        assert_eq!(times.count(), 10_000);
        assert_eq!(times.quantile(0.5), Some(1000));
        assert_eq!(times.min(), Some(1000));
        let p999 = times.quantile(0.999).unwrap();
        assert!((1999..=2001).contains(&p999), "{p999}");
        let max = times.max().unwrap();
        assert!((5_000_000..5_005_000).contains(&max), "three digits: {max}");
        assert_eq!((times.beyond(0.99), times.beyond(0.9999), times.beyond(0.99999)), (100, 1, 0));
        times.record(u64::MAX);
        assert!(times.max().unwrap() >= LARGEST - LARGEST / 1000);
        assert_eq!(of(&[(7, 0)]), Histogram::default());
    }

    #[test]
    fn histograms_merge_and_survive_encoding() {
        let all = of(&[(7, 1), (1_000_000, 5), (1 << 50, 2)]);
        let mut parts = of(&[(1 << 50, 2), (7, 1)]);
        parts.merge(&of(&[(1_000_000, 5)]));
        parts.merge(&Histogram::default());
        assert_eq!(parts.buckets(), all.buckets());
        for histogram in [all, Histogram::default()] {
            let bytes = postcard::to_allocvec(&histogram).unwrap();
            let mut read: Histogram = postcard::from_bytes(&bytes).unwrap();
            assert_eq!(read.buckets(), histogram.buckets());
            read.record(1 << 60);
            assert_eq!(read.count(), histogram.count() + 1, "it still grows");
            let json = serde_json::to_string(&histogram).unwrap();
            let read: Histogram = serde_json::from_str(&json).unwrap();
            assert_eq!(read.buckets(), histogram.buckets());
        }
        assert!(serde_json::from_str::<Histogram>("[1,2,3]").is_err());
    }
}
