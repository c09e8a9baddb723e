//! A rate that varies: log-normal about its mean, in steps (satellite handovers), with a drift (a radio
//! link), or both.

use model::network::Variation;
use model::number::float;

use crate::stream::{Impairment, Seeds, Stream};
use crate::wave::Wave;

/// A drift is sampled 50 times per period, and at most once per millisecond.
const STRETCHES: u64 = 50;
const SHORTEST_NS: u64 = 1_000_000;
/// The rate is clamped to this many standard deviations: 1 in 16 000 values at each end.
const FURTHEST: f64 = 4.0;

/// A period with a constant rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// `None` is unlimited.
    pub(crate) bits_per_s: Option<u64>,
    pub(crate) until_ns: u64,
}

#[derive(Debug)]
pub(crate) struct Varying {
    mean_bits_per_s: f64,
    steps: Option<Steps>,
    drift: Option<Drift>,
}

#[derive(Debug)]
struct Steps {
    stream: Stream,
    log_deviation: f64,
    every_ns: u64,
    phase_ns: u64,
}

#[derive(Debug)]
struct Drift {
    wave: Wave,
    log_deviation: f64,
    stretch_ns: u64,
}

impl Varying {
    pub(crate) fn new(
        mean_bits_per_s: u64,
        steps: Option<Variation>,
        drift: Option<Variation>,
        seeds: Seeds,
    ) -> Self {
        Varying {
            mean_bits_per_s: float(mean_bits_per_s),
            steps: steps.map(|steps| Steps {
                stream: seeds.stream(Impairment::RateSteps),
                log_deviation: log_deviation(steps.spread_share),
                every_ns: steps.every_ns.max(1),
                phase_ns: seeds.phase_ns(steps.every_ns),
            }),
            drift: drift.map(|drift| Drift {
                // The wave's values are independent after two periods.
                wave: Wave::new(seeds.stream(Impairment::RateDrift), drift.every_ns / 2),
                log_deviation: log_deviation(drift.spread_share),
                stretch_ns: (drift.every_ns / STRETCHES).max(SHORTEST_NS),
            }),
        }
    }

    pub(crate) fn stretch(&mut self, now_ns: u64) -> Stretch {
        let mut stretch = Stretch { bits_per_s: None, until_ns: u64::MAX };
        let mut bits_per_s = self.mean_bits_per_s;
        if let Some(Steps { stream, log_deviation, every_ns, phase_ns }) = &self.steps {
            let step = now_ns.saturating_add(*phase_ns) / every_ns;
            bits_per_s *= factor(stream.normal(step), *log_deviation);
            stretch.until_ns = (step + 1).saturating_mul(*every_ns).saturating_sub(*phase_ns);
        }
        if let Some(Drift { wave, log_deviation, stretch_ns }) = &mut self.drift {
            let begun_ns = now_ns - now_ns % *stretch_ns;
            bits_per_s *= factor(wave.at(begun_ns), *log_deviation);
            stretch.until_ns = stretch.until_ns.min(begun_ns.saturating_add(*stretch_ns));
        }
        #[expect(clippy::cast_possible_truncation, reason = "a rate beyond 2^64 saturates")]
        #[expect(clippy::cast_sign_loss, reason = "a product of positive numbers")]
        let bits_per_s = bits_per_s.max(1.0) as u64;
        Stretch { bits_per_s: Some(bits_per_s), ..stretch }
    }
}

/// The standard deviation of the logarithm of a log-normal number with this coefficient of variation.
fn log_deviation(spread_share: f64) -> f64 {
    (spread_share * spread_share).ln_1p().sqrt()
}

/// A log-normal number of mean 1.
fn factor(normal: f64, log_deviation: f64) -> f64 {
    (normal.clamp(-FURTHEST, FURTHEST) * log_deviation - log_deviation * log_deviation / 2.0).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::LinkDirection;

    const S: u64 = 1_000_000_000;
    const MEAN: u64 = 20_000_000;

    /// Mean and coefficient of variation of the rate over time.
    fn moments(varying: &mut Varying, until_ns: u64) -> (f64, f64) {
        let (mut now_ns, mut sum, mut squares) = (0, 0.0, 0.0);
        while now_ns < until_ns {
            let stretch = varying.stretch(now_ns);
            let (rate, lasts_ns) = (stretch.bits_per_s.unwrap() as f64, (stretch.until_ns - now_ns) as f64);
            sum += rate * lasts_ns;
            squares += rate * rate * lasts_ns;
            now_ns = stretch.until_ns;
        }
        let mean = sum / now_ns as f64;
        (mean, (squares / now_ns as f64 - mean * mean).sqrt() / mean)
    }

    #[test]
    fn mean_and_spread_are_as_configured() {
        let variation = |spread_share, every_ns| Some(Variation { spread_share, every_ns });
        for (steps, drift, expected) in [
            (variation(0.3, 15 * S), None, 0.3),
            (None, variation(0.5, S), 0.5),
            // Independent factors: (1 + a²)(1 + b²) - 1.
            (variation(0.3, 15 * S), variation(0.4, S), (1.09_f64 * 1.16 - 1.0).sqrt()),
        ] {
            let mut varying = Varying::new(MEAN, steps, drift, Seeds::run(2, LinkDirection::Down));
            let (mean, spread) = moments(&mut varying, 300_000 * S);
            assert!((mean / MEAN as f64 - 1.0).abs() < 0.01, "mean {mean}");
            assert!((spread / expected - 1.0).abs() < 0.03, "spread {spread}, expected {expected}");
        }
    }

    #[test]
    fn steps_are_constant_and_simultaneous_in_both_directions() {
        let steps = Some(Variation { spread_share: 0.3, every_ns: 15 * S });
        let mut directions = [LinkDirection::Up, LinkDirection::Down]
            .map(|direction| Varying::new(MEAN, steps, None, Seeds::run(2, direction)));
        let [up, down] = directions.each_mut().map(|varying| varying.stretch(0));
        assert_eq!(up.until_ns, down.until_ns);
        assert_ne!(up.bits_per_s, down.bits_per_s);
        let next = directions[0].stretch(up.until_ns);
        assert_eq!(next.until_ns, up.until_ns + 15 * S);
        assert_eq!(directions[0].stretch(next.until_ns - 1).bits_per_s, next.bits_per_s);
    }

    #[test]
    fn a_drift_is_continuous() {
        let drift = Some(Variation { spread_share: 0.5, every_ns: S });
        let mut varying = Varying::new(MEAN, None, drift, Seeds::run(3, LinkDirection::Down));
        let (mut now_ns, mut last) = (0, None);
        while now_ns < 100 * S {
            let stretch = varying.stretch(now_ns);
            let rate = stretch.bits_per_s.unwrap() as f64;
            if let Some(last) = last.replace(rate) {
                assert!(
                    (rate / last - 1.0_f64).abs() < 0.25,
                    "{last} → {rate} within {} ms",
                    S / STRETCHES / 1_000_000
                );
            }
            now_ns = stretch.until_ns;
        }
    }
}
