//! The rule `throughput`: the harmonic mean of the last segments' throughput with a margin.

use model::number;
use model::units::NANOS_PER_S;

use super::highest;

/// The number of segments whose throughput counts: Yin et al., "A Control-Theoretic Approach for Dynamic
/// Adaptive Video Streaming over HTTP", SIGCOMM 2015, use the last five.
const REMEMBERED: usize = 5;
/// The share of the throughput that is used: Jiang, Sekar and Zhang, "Improving Fairness, Efficiency, and
/// Stability in HTTP-based Adaptive Video Streaming with FESTIVE", CoNEXT 2012.
const USED_SHARE: f64 = 0.85;

/// The throughput of the last few segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Throughput {
    /// In bit/s; a ring.
    bits_per_s: [f64; REMEMBERED],
    segments: usize,
}

impl Throughput {
    /// Adds a segment.
    pub(super) fn add(&mut self, bytes: u64, took_ns: u64) {
        let rate = number::float(bytes) * 8.0 * number::float(NANOS_PER_S) / number::float(took_ns.max(1));
        self.bits_per_s[self.segments % REMEMBERED] = rate;
        self.segments += 1;
    }

    /// The harmonic mean, in bit/s; a single fast segment hardly moves it.
    fn mean(&self) -> Option<f64> {
        let known = &self.bits_per_s[..self.segments.min(REMEMBERED)];
        (!known.is_empty())
            .then(|| number::count(known.len()) / known.iter().map(|rate| 1.0 / rate).sum::<f64>())
    }

    /// The highest representation that its share carries.
    pub(super) fn choose(&self, ladder: &[u64]) -> usize {
        self.mean().map_or(0, |mean| highest(ladder, |rate| number::float(rate) <= mean * USED_SHARE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = NANOS_PER_S;

    #[test]
    fn throughput_is_the_harmonic_mean_of_the_last_five_with_a_margin() {
        let ladder = [1_000_000, 2_500_000, 8_000_000];
        let choice = |throughput: &Throughput| throughput.choose(&ladder);
        let mut throughput = Throughput::default();
        assert_eq!(choice(&throughput), 0, "nothing is known");
        // 2.95 Mbit/s, of which 85 % are 2.51; then 2.9, of which they are 2.47.
        throughput.add(2_950_000 / 8, SECOND);
        assert_eq!(choice(&throughput), 1);
        throughput.add(2_850_000 / 8, SECOND);
        assert_eq!(choice(&throughput), 0);
        // One segment at 100 Mbit/s hardly moves it: 5 / (4 / 2.9 + 1 / 100) is 3.6.
        for rate in [2_900_000, 2_900_000, 2_900_000, 2_900_000, 100_000_000] {
            throughput.add(rate / 8, SECOND);
        }
        assert!((throughput.mean().unwrap() - 3_598_000.0).abs() < 1_000.0, "{:?}", throughput.mean());
        assert_eq!(choice(&throughput), 1);
        (0..5).for_each(|_| throughput.add(10_000_000 / 8, SECOND));
        assert_eq!(choice(&throughput), 2);
    }
}
