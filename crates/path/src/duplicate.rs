//! Duplication: some packets arrive twice, the copy directly after the original.

use crate::stream::{Chance, Impairment, Seeds, Stream};

#[derive(Debug)]
pub(crate) struct Duplicate {
    stream: Stream,
    chance: Chance,
}

impl Duplicate {
    pub(crate) fn new(share: f64, seeds: Seeds) -> Self {
        Duplicate { stream: seeds.stream(Impairment::Duplicate), chance: Chance::new(share) }
    }

    /// Whether the packet with this number is duplicated.
    pub(crate) const fn draw(&self, number: u64) -> bool {
        self.chance.hits(self.stream.number(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{CHI_SQUARE_999, chi_square};
    use crate::stream::LinkDirection;

    #[test]
    fn share_passes_chi_square() {
        for (share, seed) in [(0.01, 1), (0.3, 2)] {
            let duplicate = Duplicate::new(share, Seeds::run(seed, LinkDirection::Up));
            let twice = (1..=100_000).filter(|number| duplicate.draw(*number)).count() as f64;
            let expected = 100_000.0 * share;
            let statistic = chi_square(&[twice, 100_000.0 - twice], &[expected, 100_000.0 - expected]);
            assert!(statistic < CHI_SQUARE_999[0], "share {share}: {twice}, chi-square {statistic}");
        }
    }
}
