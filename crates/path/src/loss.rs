//! Independent loss: each packet is lost with the same probability.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// 2^64: one more than the largest number that the generator gives.
const DRAWS: f64 = 18_446_744_073_709_551_616.0;

/// A seeded coin.
#[derive(Debug)]
pub(crate) struct Loss {
    /// A draw below this loses the packet; 2^64 loses every packet.
    threshold: u128,
    generator: Pcg64Mcg,
}

impl Loss {
    /// `share` is from 0 to 1; anything outside is taken as the nearer end.
    pub(crate) fn new(share: f64, seed: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "at most 2^64, which a u128 holds")]
        #[expect(clippy::cast_sign_loss, reason = "clamped to 0 or more")]
        let threshold = (share.clamp(0.0, 1.0) * DRAWS) as u128;
        Loss { threshold, generator: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// Decides one packet's fate. Every packet costs one draw, so that a change of the share does not shift the
    /// fates of later packets.
    pub(crate) fn draw(&mut self) -> bool {
        u128::from(self.generator.next_u64()) < self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 99.9 % quantile of chi-square with 1 degree of freedom.
    const CHI_SQUARE_1_999: f64 = 10.828;
    /// 99.9 % quantile of chi-square with 3 degrees of freedom.
    const CHI_SQUARE_3_999: f64 = 16.266;

    #[test]
    fn share_passes_chi_square() {
        const PACKETS: u32 = 100_000;
        for (share, seed) in [(0.001, 1), (0.01, 2), (0.03, 3), (0.5, 4), (0.97, 5)] {
            let mut loss = Loss::new(share, seed);
            let lost = (0..PACKETS).filter(|_| loss.draw()).count() as f64;
            let expected = f64::from(PACKETS) * share;
            let difference = (lost - expected).powi(2);
            let statistic = difference / expected + difference / (f64::from(PACKETS) - expected);
            assert!(
                statistic < CHI_SQUARE_1_999,
                "share {share}, seed {seed}: lost {lost}, chi-square {statistic}"
            );
        }
    }

    #[test]
    fn neighbours_are_independent() {
        const PAIRS: u32 = 50_000;
        const SHARE: f64 = 0.3;
        let mut loss = Loss::new(SHARE, 6);
        let mut counts = [0_u32; 4];
        for _ in 0..PAIRS {
            counts[usize::from(loss.draw()) * 2 + usize::from(loss.draw())] += 1;
        }
        let shares = [0.7 * 0.7, 0.7 * 0.3, 0.3 * 0.7, 0.3 * 0.3];
        let statistic: f64 = counts
            .iter()
            .zip(shares)
            .map(|(count, share)| {
                let expected = f64::from(PAIRS) * share;
                (f64::from(*count) - expected).powi(2) / expected
            })
            .sum();
        assert!(statistic < CHI_SQUARE_3_999, "{counts:?}: chi-square {statistic}");
    }

    #[test]
    fn ends_of_the_scale_are_exact() {
        let (mut never, mut always) = (Loss::new(0.0, 7), Loss::new(1.0, 7));
        assert!((0..100_000).all(|_| !never.draw()));
        assert!((0..100_000).all(|_| always.draw()));
    }
}
