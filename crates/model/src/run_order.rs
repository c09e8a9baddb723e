//! The order of a plan's runs, and plans with more runs.

use crate::number;
use crate::plan::{Cell, Plan, PlannedRun};
use crate::shuffle::SplitMix64;

/// The most runs of a cell.
pub const MOST_RUNS: u32 = 10_000;

impl Plan {
    /// The same plan with more runs of each cell. Blocks are drawn in order, so the runs of the plan stay
    /// the same.
    ///
    /// # Errors
    /// The plan has as many runs, a rule adds runs, or the number is too large.
    pub fn with_runs(&self, runs_per_cell: u64) -> Result<Plan, String> {
        let planned = self.runs_per_cell;
        let wanted = u32::try_from(runs_per_cell).ok().filter(|wanted| *wanted <= MOST_RUNS);
        let wanted = wanted.ok_or_else(|| format!("--runs {runs_per_cell} is above {MOST_RUNS}"))?;
        if let Some(rule) = &self.repetition {
            return Err(format!(
                "this study adds runs by a rule ({}); --runs cannot add others. Begin a study without `precision`",
                rule.describe()
            ));
        }
        if wanted < planned {
            return Err(format!(
                "each cell of this result has {planned} runs; write --runs {} or more",
                planned + 1
            ));
        }
        let runs = order(&self.cells, wanted, self.seed);
        if !runs.starts_with(&self.runs) {
            return Err(
                "the runs of this plan were drawn in another way; another version of h123 made it".to_owned()
            );
        }
        let plan = Plan { runs_per_cell: wanted, runs, ..self.clone() };
        plan.check_outside()?;
        Ok(plan)
    }
}

/// Blocks that each hold one run of every cell (of all groups together) in random order, so that drift of the
/// machine during the study affects all cells equally.
///
/// For each block in turn: first its order is drawn, then the seed that its runs share (common random
/// numbers: Law, Simulation Modeling and Analysis, chapter 11). All cells of a block then meet the same
/// losses and the same capacity of a mobile network, so that these cancel in a comparison within the block.
/// Blocks are independent.
pub(crate) fn order(cells: &[Cell], runs_per_cell: u32, seed: u64) -> Vec<PlannedRun> {
    let mut numbers = SplitMix64::new(seed);
    let firsts: Vec<u32> = cells.iter().filter(|cell| cell.group.group == 0).map(|cell| cell.cell).collect();
    let mut runs = Vec::with_capacity(firsts.len() * runs_per_cell as usize);
    for block in 0..runs_per_cell {
        let mut shuffled = firsts.clone();
        numbers.shuffle(&mut shuffled);
        let seed = numbers.next_u64();
        runs.extend(shuffled.into_iter().zip(runs.len()..).map(|(cell, run)| PlannedRun {
            run: number::small(run),
            block,
            cell,
            seed,
        }));
    }
    runs
}
