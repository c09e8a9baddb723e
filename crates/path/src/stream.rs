//! Randomness: one stream per impairment and direction, so that no impairment changes another's numbers.
//!
//! A number depends only on its index (SplitMix64 of Steele, Lea and Flood, OOPSLA 2014, whose state is a
//! counter): the fate of packet 1000 does not depend on the draws for packet 999, nor the jitter at second 10
//! on the packets at second 9.

use model::number::float;

/// 2^64: one more than the largest number of a stream.
const NUMBERS: f64 = 18_446_744_073_709_551_616.0;
/// 2^53: the steps of a uniform number.
const STEPS: f64 = 9_007_199_254_740_992.0;
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkDirection {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// The seeds of one direction's impairments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    link: u64,
    direction: u64,
}

/// An impairment with its own stream; a seed's meaning includes these numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Impairment {
    Loss = 1,
    Duplicate = 2,
    Reorder = 3,
    Jitter = 4,
    DelaySteps = 5,
    RateSteps = 6,
    RateDrift = 7,
    Outages = 8,
    /// The phase of periodic events, common to both directions.
    Phase = 9,
    /// The salt of FQ-CoDel's hash function.
    Flows = 10,
}

impl Seeds {
    /// The seeds for the traffic of a run with this seed.
    pub const fn run(seed: u64, direction: LinkDirection) -> Seeds {
        Seeds::new(seed, 1, direction)
    }

    /// The seeds for calibration, which does not affect the run's random numbers.
    pub const fn calibration(seed: u64, direction: LinkDirection) -> Seeds {
        Seeds::new(seed, 2, direction)
    }

    const fn new(seed: u64, purpose: u64, direction: LinkDirection) -> Seeds {
        let link = derive(seed, purpose);
        Seeds { link, direction: derive(link, direction as u64) }
    }

    /// One seed for the direction, for an emulator that has its own random generator.
    pub const fn whole(self) -> u64 {
        self.direction
    }

    /// The stream of an impairment in this direction.
    pub(crate) const fn stream(self, impairment: Impairment) -> Stream {
        Stream { seed: derive(self.direction, impairment as u64) }
    }

    /// The phase at time 0 of events with this period. It is common to both directions and all impairments,
    /// so that one satellite handover changes all of them at the same time.
    pub(crate) fn phase_ns(self, every_ns: u64) -> u64 {
        derive(self.link, Impairment::Phase as u64).checked_rem(every_ns).unwrap_or(0)
    }
}

/// Random numbers by index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    seed: u64,
}

impl Stream {
    /// A number, uniform over all 64 bits.
    pub(crate) const fn number(self, index: u64) -> u64 {
        derive(self.seed, index)
    }

    /// A number above 0 and below 1.
    pub(crate) fn uniform(self, index: u64) -> f64 {
        // 53 bits are left.
        (float(self.number(index) >> 11) + 0.5) / STEPS
    }

    /// A number of the standard normal distribution.
    pub(crate) fn normal(self, index: u64) -> f64 {
        -std::f64::consts::SQRT_2 * statrs::function::erf::erfc_inv(2.0 * self.uniform(index))
    }
}

/// SplitMix64's number at `index`, from a seed.
const fn derive(seed: u64, index: u64) -> u64 {
    let mut mixed = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN_GAMMA));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A biased coin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance {
    /// A number below this hits; 2^64 always does.
    threshold: u128,
}

impl Chance {
    /// `share` is clamped to 0 to 1.
    pub(crate) fn new(share: f64) -> Chance {
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^64, which a u128 holds")]
        #[expect(clippy::cast_sign_loss, reason = "clamped to 0 or more")]
        let threshold = (share.clamp(0.0, 1.0) * NUMBERS) as u128;
        Chance { threshold }
    }

    pub(crate) const fn hits(self, number: u64) -> bool {
        (number as u128) < self.threshold
    }
}

#[cfg(test)]
mod tests {
    use model::shuffle::SplitMix64;

    use super::*;
    use crate::statistics::{KS_999, chi_square_uniform, kolmogorov_smirnov, standard_normal};

    #[test]
    fn numbers_are_those_of_splitmix() {
        let mut splitmix = SplitMix64::new(12_345);
        let stream = Stream { seed: 12_345 };
        assert!((0..1000).all(|index| stream.number(index) == splitmix.next_u64()));
    }

    #[test]
    fn streams_differ() {
        let mut first: Vec<u64> = Vec::new();
        for seed in 0..20 {
            for direction in [LinkDirection::Up, LinkDirection::Down] {
                for seeds in [Seeds::run(seed, direction), Seeds::calibration(seed, direction)] {
                    first.extend([Impairment::Loss, Impairment::Jitter].map(|of| seeds.stream(of).number(0)));
                }
            }
        }
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 20 * 2 * 2 * 2);
        assert_eq!(
            Seeds::run(1, LinkDirection::Up).phase_ns(1000),
            Seeds::run(1, LinkDirection::Down).phase_ns(1000)
        );
    }

    #[test]
    fn uniform_and_normal_pass_kolmogorov_smirnov() {
        const DRAWS: u64 = 100_000;
        let stream = Seeds::run(1, LinkDirection::Up).stream(Impairment::Loss);
        let uniform = (0..DRAWS).map(|index| stream.uniform(index)).collect();
        let distance = kolmogorov_smirnov(uniform, |x| x);
        assert!(distance < KS_999, "{distance}");
        let normal = (0..DRAWS).map(|index| stream.normal(index)).collect();
        let distance = kolmogorov_smirnov(normal, standard_normal);
        assert!(distance < KS_999, "{distance}");
    }

    #[test]
    fn neighbours_are_independent() {
        let stream = Seeds::run(3, LinkDirection::Down).stream(Impairment::Jitter);
        let mut counts = [0_u32; 256];
        for pair in 0..100_000 {
            let cell = (stream.number(2 * pair) >> 60) * 16 + (stream.number(2 * pair + 1) >> 60);
            counts[usize::try_from(cell).unwrap()] += 1;
        }
        let statistic = chi_square_uniform(&counts);
        // 255 degrees of freedom: 99.9 % quantile 330.5.
        assert!(statistic < 330.5, "chi-square {statistic}");
    }

    #[test]
    fn ends_of_the_scale_are_exact() {
        for number in [0, 1, u64::MAX - 1, u64::MAX] {
            assert!(!Chance::new(0.0).hits(number) && Chance::new(1.0).hits(number));
        }
    }
}
