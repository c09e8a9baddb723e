//! Whole studies of page loads, through the same analysis as real ones.

use model::number;
use model::variant::Variant;

use super::worlds::Dice;
use crate::fixtures::{Bench, summary_of};
use crate::summary::{Summary, Verdict};
use crate::{RunSummary, analyse};

/// How runs of the same cell differ, each by about 3 %.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Noise {
    /// Normal on the logarithm.
    Normal,
    /// Occasionally slowed down: exponential.
    Slowed,
    /// Student's t with 3 degrees of freedom.
    Heavy,
    /// Two modes 6 % apart.
    Bimodal,
}

impl Noise {
    pub(crate) const ALL: [Noise; 4] = [Noise::Normal, Noise::Slowed, Noise::Heavy, Noise::Bimodal];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Noise::Normal => "normal",
            Noise::Slowed => "slowed at times",
            Noise::Heavy => "heavy tails",
            Noise::Bimodal => "two modes",
        }
    }

    /// On the logarithm.
    pub(super) fn draw(self, dice: &mut Dice) -> f64 {
        match self {
            Noise::Normal => 0.03 * dice.normal(),
            Noise::Slowed => 0.03 * dice.exponential(),
            Noise::Heavy => 0.03 / 3.0_f64.sqrt() * dice.heavy(),
            Noise::Bimodal => f64::from(u8::from(dice.uniform() < 0.5)) * 0.06 + 0.005 * dice.normal(),
        }
    }
}

/// Five cells under this margin of interest: a family of four comparisons.
pub(crate) fn five_cells(margin_share: f64) -> Bench {
    let mut bench = Bench::page(&Variant::ALL);
    bench.plan.margin_share = margin_share;
    bench
}

/// Blocks of runs of these cells, in which the last cell's loads take `factor` times as long as the others'.
/// Blocks differ by 2 %.
pub(crate) fn blocks(bench: &Bench, seed: u64, noise: Noise, factor: f64, blocks: u32) -> Vec<RunSummary> {
    let mut dice = Dice::new(seed);
    let mut template = summary_of(&bench.plan, &bench.records[0]);
    // With a margin of 0 any lateness invalidates; this study tests times only.
    template.links.clear();
    let cells = number::small(bench.plan.cells.len());
    let mut runs = Vec::new();
    for block in 0..blocks {
        let common = 0.02 * dice.normal();
        for cell in 0..cells {
            let mut summary = template.clone();
            (summary.run, summary.block, summary.cell) = (block * cells + cell, block, cell);
            let variant = bench.plan.cells[cell as usize].group.variant;
            summary.groups[0].versions = [(variant.http(), 3)].into();
            let scale = if cell == cells - 1 { factor } else { 1.0 };
            let value = 1e9 * scale * (common + noise.draw(&mut dice)).exp();
            summary.metrics = [("page_load_time".to_owned(), std::iter::once(value).collect())].into();
            runs.push(summary);
        }
    }
    runs
}

/// The analysis of this many blocks.
pub(crate) fn study(bench: &Bench, seed: u64, noise: Noise, factor: f64, runs: u32) -> Summary {
    analyse(&bench.plan, &blocks(bench, seed, noise, factor, runs), &bench.networks)
}

/// Whether any comparison of the family names a winner.
pub(crate) fn is_decided(summary: &Summary) -> bool {
    let family = || summary.comparisons.iter().filter(|comparison| comparison.primary);
    assert!(!family().any(|c| matches!(c.verdict, Verdict::Invalid { .. })), "{summary:#?}");
    family().any(|c| matches!(c.verdict, Verdict::Better | Verdict::Worse))
}
