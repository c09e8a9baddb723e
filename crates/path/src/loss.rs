//! Loss: independent, in bursts (Gilbert–Elliott), or of chosen packets.

use model::network;

use crate::stream::{Chance, Impairment, Seeds, Stream};

/// Decides which packets are lost, by their number from 1.
#[derive(Debug)]
pub(crate) struct Loss {
    stream: Stream,
    by_chance: ByChance,
    chosen: Vec<(u64, u64)>,
    /// The next range of chosen packets.
    next_chosen: usize,
}

#[derive(Debug)]
enum ByChance {
    Never,
    Independent(Chance),
    GilbertElliott(GilbertElliott),
}

/// Gilbert 1960 ("Capacity of a burst-noise channel") and Elliott 1963: a good and a bad state.
#[derive(Debug)]
struct GilbertElliott {
    is_bad: bool,
    to_bad: Chance,
    to_good: Chance,
    lost_in_bad: Chance,
    lost_in_good: Chance,
}

impl Loss {
    pub(crate) fn new(direction: &network::Direction, seeds: Seeds) -> Self {
        let mut loss = Loss {
            stream: seeds.stream(Impairment::Loss),
            by_chance: ByChance::Never,
            chosen: Vec::new(),
            next_chosen: 0,
        };
        loss.change(direction);
        loss
    }

    /// Applies another description from the next packet on.
    pub(crate) fn change(&mut self, direction: &network::Direction) {
        let was_bad = match &self.by_chance {
            ByChance::GilbertElliott(states) => Some(states.is_bad),
            ByChance::Never | ByChance::Independent(_) => None,
        };
        self.chosen.clone_from(&direction.lost_packets);
        self.next_chosen = 0;
        self.by_chance = match direction.loss {
            network::Loss::None => ByChance::Never,
            network::Loss::Independent { share } => ByChance::Independent(Chance::new(share)),
            network::Loss::GilbertElliott { p, r, h, k } => ByChance::GilbertElliott(GilbertElliott {
                // The first packet finds the states with their stationary probabilities.
                is_bad: was_bad.unwrap_or_else(|| Chance::new(p / (p + r)).hits(self.stream.number(0))),
                to_bad: Chance::new(p),
                to_good: Chance::new(r),
                lost_in_bad: Chance::new(1.0 - h),
                lost_in_good: Chance::new(1.0 - k),
            }),
        };
    }

    /// Decides one packet's fate; `number` counts packets from 1 and only grows.
    pub(crate) fn draw(&mut self, number: u64) -> bool {
        let stream = self.stream;
        let by_chance = match &mut self.by_chance {
            ByChance::Never => false,
            ByChance::Independent(chance) => chance.hits(stream.number(2 * number)),
            ByChance::GilbertElliott(states) => {
                // As in netem: the current state decides the packet's fate, then the state may change.
                let lost = if states.is_bad { states.lost_in_bad } else { states.lost_in_good };
                let is_lost = lost.hits(stream.number(2 * number));
                let changes = if states.is_bad { states.to_good } else { states.to_bad };
                states.is_bad ^= changes.hits(stream.number(2 * number + 1));
                is_lost
            }
        };
        self.is_chosen(number) || by_chance
    }

    fn is_chosen(&mut self, number: u64) -> bool {
        while let Some((first, last)) = self.chosen.get(self.next_chosen) {
            if number <= *last {
                return number >= *first;
            }
            self.next_chosen += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use model::network::Direction;

    use super::*;
    use crate::statistics::{CHI_SQUARE_999, chi_square};
    use crate::stream::LinkDirection;

    fn loss(loss: network::Loss, seed: u64) -> Loss {
        Loss::new(&Direction { loss, ..Direction::default() }, Seeds::run(seed, LinkDirection::Down))
    }

    #[test]
    fn share_passes_chi_square() {
        const PACKETS: u64 = 100_000;
        for (share, seed) in [(0.001, 1), (0.01, 2), (0.03, 3), (0.5, 4), (0.97, 5)] {
            let mut loss = loss(network::Loss::Independent { share }, seed);
            let lost = (1..=PACKETS).filter(|number| loss.draw(*number)).count() as f64;
            let all = PACKETS as f64;
            let statistic = chi_square(&[lost, all - lost], &[all * share, all * (1.0 - share)]);
            assert!(
                statistic < CHI_SQUARE_999[0],
                "share {share}, seed {seed}: {lost}, chi-square {statistic}"
            );
        }
    }

    #[test]
    fn neighbours_are_independent() {
        const PAIRS: u64 = 50_000;
        let mut loss = loss(network::Loss::Independent { share: 0.3 }, 6);
        let mut counts = [0.0; 4];
        for pair in 0..PAIRS {
            counts[usize::from(loss.draw(2 * pair + 1)) * 2 + usize::from(loss.draw(2 * pair + 2))] += 1.0;
        }
        let shares = [0.7 * 0.7, 0.7 * 0.3, 0.3 * 0.7, 0.3 * 0.3].map(|share| share * PAIRS as f64);
        let statistic = chi_square(&counts, &shares);
        assert!(statistic < CHI_SQUARE_999[2], "{counts:?}: chi-square {statistic}");
    }

    #[test]
    fn ends_of_the_scale_are_exact() {
        let (mut never, mut always) = (
            loss(network::Loss::Independent { share: 0.0 }, 7),
            loss(network::Loss::Independent { share: 1.0 }, 7),
        );
        assert!((1..100_000).all(|number| !never.draw(number)));
        assert!((1..100_000).all(|number| always.draw(number)));
    }

    /// Lengths of the runs of lost packets, and how many packets were lost.
    fn bursts(loss: &mut Loss, packets: u64) -> (Vec<u64>, u64) {
        let (mut lengths, mut length, mut lost) = (Vec::new(), 0, 0);
        for number in 1..=packets {
            if loss.draw(number) {
                length += 1;
                lost += 1;
            } else if length > 0 {
                lengths.push(std::mem::take(&mut length));
            }
        }
        (lengths, lost)
    }

    #[test]
    fn bursts_have_the_lengths_of_gilberts_model() {
        const PACKETS: u64 = 1_000_000;
        for (share, burst, seed) in [(0.01, 4.0, 1), (0.05, 2.0, 2), (0.2, 10.0, 3)] {
            let r = 1.0 / burst;
            let p = r * share / (1.0 - share);
            let mut loss = loss(network::Loss::GilbertElliott { p, r, h: 0.0, k: 1.0 }, seed);
            let (lengths, lost) = bursts(&mut loss, PACKETS);
            // Lengths are geometric: P(n) = r (1 - r)^(n - 1). Four cells: 1, 2, 3, more.
            let mut counts = [0.0; 4];
            for length in &lengths {
                counts[usize::try_from(*length).unwrap().min(4) - 1] += 1.0;
            }
            let q = 1.0 - r;
            let expected = [r, r * q, r * q * q, q * q * q].map(|share| share * lengths.len() as f64);
            let statistic = chi_square(&counts, &expected);
            assert!(
                statistic < CHI_SQUARE_999[2],
                "burst {burst}: {counts:?} against {expected:?}: {statistic}"
            );
            // The share's variance is that of independent loss times (1 + c) / (1 - c) with the correlation c
            // = 1 - p - r.
            let c = 1.0 - p - r;
            let deviation = (share * (1.0 - share) * (1.0 + c) / (1.0 - c) / PACKETS as f64).sqrt();
            let found = lost as f64 / PACKETS as f64;
            assert!(
                (found - share).abs() < 3.29 * deviation,
                "share {found}, expected {share} ± {deviation}"
            );
        }
    }

    #[test]
    fn both_states_lose_their_configured_share() {
        const PACKETS: u64 = 1_000_000;
        let model = network::Loss::GilbertElliott { p: 0.1, r: 0.3, h: 0.4, k: 0.95 };
        let (_, lost) = bursts(&mut loss(model, 4), PACKETS);
        let found = lost as f64 / PACKETS as f64;
        // A quarter of the time bad: 0.25 · 0.6 + 0.75 · 0.05.
        assert!((model.mean_share() - 0.1875).abs() < 1e-12);
        assert!((found - 0.1875).abs() < 0.0025, "{found}");
    }

    #[test]
    fn the_first_packet_meets_the_bad_state_as_often_as_any() {
        let model = network::Loss::GilbertElliott { p: 0.1, r: 0.3, h: 0.0, k: 1.0 };
        let lost = (0..10_000).filter(|seed| loss(model, *seed).draw(1)).count() as f64;
        let statistic = chi_square(&[lost, 10_000.0 - lost], &[2500.0, 7500.0]);
        assert!(statistic < CHI_SQUARE_999[0], "{lost} of 10000");
    }

    #[test]
    fn chosen_packets_are_lost_and_no_others() {
        let chosen = vec![(3, 3), (10, 12)];
        let direction = Direction { lost_packets: chosen, ..Direction::default() };
        let mut loss = Loss::new(&direction, Seeds::run(1, LinkDirection::Up));
        let lost: Vec<u64> = (1..100).filter(|number| loss.draw(*number)).collect();
        assert_eq!(lost, [3, 10, 11, 12]);
    }

    #[test]
    fn a_change_of_the_share_keeps_later_fates() {
        let fates = |changes: bool| -> Vec<bool> {
            let mut loss = loss(network::Loss::Independent { share: 0.2 }, 9);
            let first: Vec<bool> = (1..=100).map(|number| loss.draw(number)).collect();
            if changes {
                loss.change(&Direction::default());
            }
            (101..=200).for_each(|number| {
                loss.draw(number);
            });
            loss.change(&Direction {
                loss: network::Loss::Independent { share: 0.2 },
                ..Direction::default()
            });
            first.into_iter().chain((201..=300).map(|number| loss.draw(number))).collect()
        };
        assert_eq!(fates(true), fates(false));
    }
}
