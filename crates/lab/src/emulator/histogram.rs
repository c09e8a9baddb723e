//! A log-linear histogram of fixed size: 32 steps per power of two, so within 3 % of every value.

const STEP_BITS: u32 = 5;
const STEPS: usize = 1 << STEP_BITS;
/// Values from here on, about 34 s, share the last bucket; the maximum is kept exactly.
const LARGEST: u64 = (1 << 35) - 1;
const BUCKETS: usize = (35 - STEP_BITS as usize + 1) * STEPS;

/// Counts of nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Box<[u32; BUCKETS]>,
    total: u64,
    max: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Histogram { counts: Box::new([0; BUCKETS]), total: 0, max: 0 }
    }

    pub(crate) fn record(&mut self, value: u64) {
        let count = &mut self.counts[bucket(value)];
        *count = count.saturating_add(1);
        self.total += 1;
        self.max = self.max.max(value);
    }

    pub(crate) const fn max(&self) -> u64 {
        self.max
    }

    /// The smallest bucket's upper end below which `permille` thousandths of the values lie; 0 without values.
    pub(crate) fn quantile(&self, permille: u64) -> u64 {
        let rank = (self.total * permille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return upper_end(index).min(self.max);
            }
        }
        self.max
    }
}

fn bucket(value: u64) -> usize {
    let value = value.min(LARGEST);
    let shift = (64 - value.leading_zeros()).saturating_sub(STEP_BITS + 1);
    // Below 64 the value is its own bucket; above, its highest six bits are.
    shift as usize * STEPS + usize::try_from(value >> shift).unwrap_or(0)
}

const fn upper_end(index: usize) -> u64 {
    let shift = (index / STEPS).saturating_sub(1);
    let head = index - shift * STEPS;
    ((head as u64 + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket() {
        for value in (0..5000).chain((13..35).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 12_345]))
        {
            let index = bucket(value);
            assert!(value <= upper_end(index), "{value} in bucket {index} up to {}", upper_end(index));
            assert!(index == 0 || value > upper_end(index - 1), "{value} in bucket {index}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_within_three_percent() {
        let mut histogram = Histogram::new();
        assert_eq!((histogram.quantile(500), histogram.max()), (0, 0));
        (1..=100_000).for_each(|value| histogram.record(value));
        for (permille, exact) in [(10, 1000.0), (500, 50_000.0), (990, 99_000.0), (1000, 100_000.0)] {
            let found = histogram.quantile(permille) as f64;
            assert!((found / exact - 1.0).abs() < 0.032, "{permille}: {found}, expected {exact}");
        }
        assert_eq!(histogram.max(), 100_000);
    }
}
