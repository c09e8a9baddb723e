//! Reordering as in netem: a chosen packet skips the delay and overtakes earlier packets.

use model::network;

use crate::stream::{Chance, Impairment, Seeds, Stream};

#[derive(Debug)]
pub(crate) struct Reorder {
    stream: Stream,
    chance: Chance,
    gap: u64,
    /// Packets since the last chosen one.
    passed: u64,
}

impl Reorder {
    pub(crate) fn new(reorder: Option<network::Reorder>, seeds: Seeds) -> Self {
        let mut new = Reorder {
            stream: seeds.stream(Impairment::Reorder),
            chance: Chance::new(0.0),
            gap: 1,
            passed: 0,
        };
        new.change(reorder);
        new
    }

    pub(crate) fn change(&mut self, reorder: Option<network::Reorder>) {
        self.chance = Chance::new(reorder.map_or(0.0, |reorder| reorder.share));
        self.gap = reorder.map_or(1, |reorder| reorder.gap);
    }

    /// Whether the packet with this number is chosen.
    pub(crate) const fn draw(&mut self, number: u64) -> bool {
        let is_chosen = self.passed + 1 >= self.gap && self.chance.hits(self.stream.number(number));
        self.passed = if is_chosen { 0 } else { self.passed + 1 };
        is_chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{CHI_SQUARE_999, chi_square};
    use crate::stream::LinkDirection;

    fn reorder(share: f64, gap: u64) -> Reorder {
        Reorder::new(Some(network::Reorder { share, gap }), Seeds::run(4, LinkDirection::Up))
    }

    #[test]
    fn every_fifth_at_a_gap_of_five() {
        let mut reorder = reorder(1.0, 5);
        let chosen: Vec<u64> = (1..=20).filter(|number| reorder.draw(*number)).collect();
        assert_eq!(chosen, [5, 10, 15, 20]);
    }

    #[test]
    fn the_share_counts_candidates() {
        let mut plain = reorder(0.25, 1);
        let chosen = (1..=100_000).filter(|number| plain.draw(*number)).count() as f64;
        let statistic = chi_square(&[chosen, 100_000.0 - chosen], &[25_000.0, 75_000.0]);
        assert!(statistic < CHI_SQUARE_999[0], "{chosen}: chi-square {statistic}");
        // With a gap of 5 a cycle is 4 packets and then on average 4 candidates: one in eight.
        let mut gap = reorder(0.25, 5);
        let chosen: Vec<u64> = (1..=100_000).filter(|number| gap.draw(*number)).collect();
        assert!(chosen.windows(2).all(|pair| pair[1] - pair[0] >= 5));
        assert!((chosen.len() as f64 / 12_500.0 - 1.0).abs() < 0.02, "{}", chosen.len());
    }
}
