//! Whether another block of runs is made: what the plan's rule says of the runs that are stored.

use analysis::RunSummary;
use analysis::repetition::standing;
use anyhow::Result;
use model::{Plan, PlannedRun, RunRecord};
use store::ResultFolder;

use crate::study::damages::Damages;
use crate::study::result::condensed;

/// The runs so far of a study that adds runs; of any other study nothing is kept.
pub(crate) struct Repeating<'a> {
    plan: &'a Plan,
    runs: Vec<RunSummary>,
}

impl<'a> Repeating<'a> {
    /// With the runs that are stored already.
    ///
    /// # Errors
    /// The folder of samples cannot be listed. A run that cannot be read is measured again.
    pub(crate) fn of(plan: &'a Plan, folder: &ResultFolder) -> Result<Self> {
        let mut repeating = Repeating { plan, runs: Vec::new() };
        if plan.repetition.is_some() {
            // What is damaged is named, and measured again, by whoever asked for the runs that are stored.
            repeating.runs = condensed(folder, plan, &mut Damages::default())?.0;
        }
        Ok(repeating)
    }

    /// Takes note of a run that was stored.
    pub(crate) fn add(&mut self, record: &RunRecord) {
        if self.plan.repetition.is_some() {
            self.runs.push(RunSummary::of(self.plan, record));
        }
    }

    /// Whether no more runs are needed, so that this one is not made. A block that was begun is made whole.
    pub(crate) fn is_enough_before(&self, planned: &PlannedRun) -> bool {
        planned.block >= self.plan.runs_per_cell
            && self.runs.iter().all(|run| run.block != planned.block)
            && standing(self.plan, &self.runs).is_some_and(|standing| standing.ended_by.is_some())
    }

    /// How many runs a block beyond the least adds to those that were expected, and how long they take: at its first run.
    pub(crate) fn adds_before(&self, planned: &PlannedRun) -> Option<(usize, u64)> {
        let is_added = planned.block >= self.plan.runs_per_cell;
        let is_first = self.runs.iter().all(|run| run.block != planned.block);
        let expected_ns = self.plan.cells.iter().map(|cell| cell.expected_run_ns).sum();
        (is_added && is_first).then_some((self.plan.cells.len(), expected_ns))
    }
}
