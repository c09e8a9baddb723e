//! A smooth random function of time whose value at every instant is standard normal.

use std::f64::consts::FRAC_PI_2;

use model::number::float;

use crate::stream::Stream;

/// `cos θ · z(k) + sin θ · z(k + 1)`, where `z` are independent normal numbers a period apart and θ goes from
/// 0 to a right angle between them. Since `cos² + sin² = 1` the value is exactly standard normal at *every*
/// instant, not only at the ends of periods; values two periods apart are independent. The slope is normal
/// too, with a standard deviation of π / 2 per period: unlike an Ornstein–Uhlenbeck process, which has no
/// slope, the wave can change a delay without reordering packets.
#[derive(Debug)]
pub(crate) struct Wave {
    stream: Stream,
    period_ns: u64,
    /// The period whose ends are cached.
    period: u64,
    ends: [f64; 2],
}

impl Wave {
    pub(crate) fn new(stream: Stream, period_ns: u64) -> Self {
        Wave { stream, period_ns: period_ns.max(1), period: 0, ends: [stream.normal(0), stream.normal(1)] }
    }

    pub(crate) fn at(&mut self, now_ns: u64) -> f64 {
        let period = now_ns / self.period_ns;
        if period != self.period {
            let first = if period == self.period + 1 { self.ends[1] } else { self.stream.normal(period) };
            self.ends = [first, self.stream.normal(period + 1)];
            self.period = period;
        }
        let share = float(now_ns % self.period_ns) / float(self.period_ns);
        let (sine, cosine) = (share * FRAC_PI_2).sin_cos();
        cosine * self.ends[0] + sine * self.ends[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{KS_999, kolmogorov_smirnov, standard_normal};
    use crate::stream::{Impairment, LinkDirection, Seeds};

    const PERIOD_NS: u64 = 1_000_000;

    fn wave(seed: u64) -> Wave {
        Wave::new(Seeds::run(seed, LinkDirection::Up).stream(Impairment::Jitter), PERIOD_NS)
    }

    #[test]
    fn every_instant_is_standard_normal() {
        for (eighth, seed) in (0..8).zip(10..) {
            let mut wave = wave(seed);
            // Two periods apart, so independent of each other.
            let values = (0..20_000).map(|k| wave.at(2 * k * PERIOD_NS + eighth * PERIOD_NS / 8)).collect();
            let distance = kolmogorov_smirnov(values, standard_normal);
            assert!(distance < KS_999, "at {eighth}/8 of a period, seed {seed}: {distance}");
        }
    }

    #[test]
    fn neighbours_are_correlated_and_distant_values_are_not() {
        const POINTS: u64 = 50_000;
        let mut wave = wave(3);
        let mut correlation = |lag_ns: u64| {
            let products = (0..POINTS).map(|k| {
                let at_ns = k * 777_777;
                wave.at(at_ns) * wave.at(at_ns + lag_ns)
            });
            products.sum::<f64>() / POINTS as f64
        };
        assert!(correlation(PERIOD_NS / 100) > 0.97);
        // Half a period on: half of the time in the same period, cos 45°; else sin θ · cos θ of the shared
        // end.
        assert!((0.3..0.9).contains(&correlation(PERIOD_NS / 2)));
        assert!(correlation(2 * PERIOD_NS).abs() < 0.02);
    }

    #[test]
    fn values_do_not_depend_on_earlier_calls() {
        let (mut sparse, mut dense) = (wave(1), wave(1));
        let asked: Vec<f64> = (0..100_000).map(|k| dense.at(k * 1000)).collect();
        for k in [0, 5, 5000, 5001, 99_999] {
            assert_eq!(sparse.at(k * 1000).to_bits(), asked[usize::try_from(k).unwrap()].to_bits());
        }
        assert_eq!(sparse.at(0).to_bits(), asked[0].to_bits(), "the value at an earlier time differs");
    }
}
