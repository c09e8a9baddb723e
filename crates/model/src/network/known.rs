//! Reference measurements: what a direction must do to a stream of packets, in the long run and by how much
//! it may stray.

use super::{Direction, Loss};
use crate::number::float;

/// How many packets of a stream are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedLoss {
    /// On average.
    pub packets: f64,
    /// The standard deviation of that number.
    pub deviation: f64,
}

impl Loss {
    /// The variance of the number of lost packets among the first `packets` of a stream.
    ///
    /// Gilbert and Elliott's states are a two-state Markov chain, so the fates of packets that are `n` apart
    /// have the covariance c·λⁿ, where λ = 1 − p − r and c = π(good)·π(bad)·(k − h)² (Hasslinger and
    /// Hohlfeld, "The Gilbert-Elliott model for packet loss in real time services on the Internet", MMB
    /// 2008).
    fn variance(self, packets: f64) -> f64 {
        let share = self.mean_share();
        let independent = packets * share * (1.0 - share);
        let Loss::GilbertElliott { p, r, h, k } = self else { return independent };
        if p + r <= 0.0 {
            return independent;
        }
        let bad = p / (p + r);
        let covariance = bad * (1.0 - bad) * (k - h).powi(2);
        let lambda = 1.0 - p - r;
        // The sum of (packets − n)·λⁿ over n from 1 to packets − 1.
        let pairs = lambda * (packets * (1.0 - lambda) - (1.0 - lambda.powf(packets))) / (p + r).powi(2);
        (independent + 2.0 * covariance * pairs).max(0.0)
    }
}

impl Direction {
    /// What becomes of the first `packets` of a stream by this direction's loss alone, those chosen by number
    /// included.
    pub fn expected_loss(&self, packets: u64) -> ExpectedLoss {
        let chosen: u64 = self
            .lost_packets
            .iter()
            .map(|(first, last)| (packets.min(*last) + 1).saturating_sub(*first))
            .sum();
        let (by_chance, chosen) = (float(packets.saturating_sub(chosen)), float(chosen));
        ExpectedLoss {
            packets: chosen + by_chance * self.loss.mean_share(),
            deviation: self.loss.variance(by_chance).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(loss: Loss, packets: u64) -> ExpectedLoss {
        Direction { loss, ..Direction::default() }.expected_loss(packets)
    }

    #[test]
    fn nothing_is_lost_where_nothing_was_asked() {
        assert_eq!(expected(Loss::None, 1000), ExpectedLoss { packets: 0.0, deviation: 0.0 });
    }

    #[test]
    fn independent_loss_is_binomial() {
        let found = expected(Loss::Independent { share: 0.1 }, 400);
        assert!((found.packets - 40.0).abs() < 1e-9 && (found.deviation - 6.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn chosen_packets_are_lost_for_certain() {
        let lost_packets = vec![(3, 5), (9, 9), (11, 20)];
        let loss = Loss::Independent { share: 0.5 };
        let found = Direction { lost_packets, loss, ..Direction::default() }.expected_loss(10);
        assert!((found.packets - (4.0 + 3.0)).abs() < 1e-9, "{found:?}");
    }

    /// The variance counted from all 2ⁿ histories of a short stream, each with its probability.
    #[test]
    fn bursts_stray_as_far_as_all_histories_together() {
        const PACKETS: u32 = 6;
        let (p, r, h, k) = (0.1, 0.3, 0.25, 0.95);
        let bad = p / (p + r);
        let (mut mean, mut square, mut whole) = (0.0, 0.0, 0.0);
        for states in 0..1_u32 << PACKETS {
            let is_bad = |packet: u32| states >> packet & 1 == 1;
            let mut probability = if is_bad(0) { bad } else { 1.0 - bad };
            for packet in 1..PACKETS {
                probability *= match (is_bad(packet - 1), is_bad(packet)) {
                    (false, true) => p,
                    (false, false) => 1.0 - p,
                    (true, false) => r,
                    (true, true) => 1.0 - r,
                };
            }
            // Given the states, each packet is lost on its own: a sum of coins.
            let shares: Vec<f64> =
                (0..PACKETS).map(|packet| if is_bad(packet) { 1.0 - h } else { 1.0 - k }).collect();
            let given: f64 = shares.iter().sum();
            let spread: f64 = shares.iter().map(|share| share * (1.0 - share)).sum();
            whole += probability;
            mean += probability * given;
            square += probability * (spread + given * given);
        }
        assert!((whole - 1.0_f64).abs() < 1e-12);
        let found = expected(Loss::GilbertElliott { p, r, h, k }, u64::from(PACKETS));
        assert!((found.packets - mean).abs() < 1e-9, "{found:?}, {mean}");
        let variance: f64 = square - mean * mean;
        assert!((found.deviation - variance.sqrt()).abs() < 1e-9, "{found:?}, {variance}");
    }
}
