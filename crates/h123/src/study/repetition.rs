//! Whether another block of runs follows: the plan's rule, applied to the stored runs.

use analysis::RunSummary;
use analysis::repetition::progress;
use anyhow::Result;
use model::{Plan, PlannedRun, RunRecord};
use store::ResultFolder;

use crate::study::damages::Damages;
use crate::study::result::summarise_runs;

/// The stored runs of a study that adds runs until its rule is satisfied. Other studies keep none.
pub(crate) struct Repetition<'a> {
    plan: &'a Plan,
    runs: Vec<RunSummary>,
}

impl<'a> Repetition<'a> {
    /// Reads the runs that are stored already.
    ///
    /// # Errors
    /// The folder of samples cannot be listed. A run that cannot be read is measured again.
    pub(crate) fn of(plan: &'a Plan, folder: &ResultFolder) -> Result<Self> {
        let mut repetition = Repetition { plan, runs: Vec::new() };
        if plan.repetition.is_some() {
            // The caller reports damaged runs and measures them again.
            repetition.runs = summarise_runs(folder, plan, &mut Damages::default())?.0;
        }
        Ok(repetition)
    }

    /// Adds a run that was stored.
    pub(crate) fn add(&mut self, record: &RunRecord) {
        if self.plan.repetition.is_some() {
            self.runs.extend(RunSummary::all_of(self.plan, record));
        }
    }

    /// Whether the study needs no more runs, not even this one. A block that was begun is completed.
    pub(crate) fn is_enough_before(&self, planned: &PlannedRun) -> bool {
        planned.block >= self.plan.runs_per_cell
            && self.runs.iter().all(|run| run.block != planned.block)
            && progress(self.plan, &self.runs).is_some_and(|progress| progress.ended_by.is_some())
    }

    /// If this is the first run of an added block: the runs that the block adds, and their expected time.
    pub(crate) fn adds_before(&self, planned: &PlannedRun) -> Option<(usize, u64)> {
        let is_added = planned.block >= self.plan.runs_per_cell;
        let is_first = self.runs.iter().all(|run| run.block != planned.block);
        let expected_ns = self.plan.run_cells().map(|cell| self.plan.expected_run_ns(cell.cell)).sum();
        (is_added && is_first).then_some((self.plan.runs_per_block(), expected_ns))
    }
}
