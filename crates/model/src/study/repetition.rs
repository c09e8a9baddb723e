//! The rule by which a study adds runs, as written and resolved.

use std::ops::RangeInclusive;

use crate::error::InputError;
use crate::plan::Repetition;
use crate::reader::{Placed, Table};
use crate::run_order::MOST_RUNS;
use crate::units;

/// Runs of each cell.
pub(super) const RUNS: RangeInclusive<u32> = 1..=MOST_RUNS;
/// Fewer runs do not show how much runs differ.
const LEAST_RUNS: u32 = 5;
/// The default of `most_runs`.
const DEFAULT_MOST_RUNS: u32 = 100;

/// `precision`, `budget` and `most_runs`.
#[derive(Clone, Debug)]
pub(super) struct RepetitionKeys {
    precision: Placed<f64>,
    budget_ns: Option<Placed<u64>>,
    most_runs: Option<Placed<u32>>,
}

/// The rule, where the study has one.
pub(super) fn read(root: &Table<'_>) -> Result<Option<RepetitionKeys>, InputError> {
    let precision = root.parsed("precision", units::parse_share)?;
    let budget_ns = root.parsed("budget", units::parse_duration_ns)?;
    let most_runs = root.integer("most_runs", RUNS)?;
    let Some(precision) = precision else {
        let problem =
            |key: &str| format!("`{key}` requires `precision`; add one, such as `precision = \"2%\"`");
        return match (budget_ns, most_runs) {
            (Some(budget), _) => Err(budget.error(problem("budget"))),
            (_, Some(most)) => Err(most.error(problem("most_runs"))),
            (None, None) => Ok(None),
        };
    };
    if precision.value <= 0.0 {
        let problem = "`precision`: 0% is too low; write more, because every interval has a width";
        return Err(precision.error(problem));
    }
    Ok(Some(RepetitionKeys { precision, budget_ns, most_runs }))
}

impl RepetitionKeys {
    /// Refuses what contradicts the least number of runs. The command line may ask for more runs than the
    /// file allows.
    pub(super) fn resolve(&self, runs: &Placed<u32>) -> Result<Repetition, InputError> {
        if runs.value < LEAST_RUNS {
            let problem = format!(
                "`runs` is {}, too few for `precision`; write at least {LEAST_RUNS}, because fewer do not show how much runs differ",
                runs.value
            );
            return Err(runs.error(problem));
        }
        if let Some(most) =
            self.most_runs.as_ref().filter(|most| most.value < runs.value && !runs.place.is_command_line())
        {
            let problem =
                format!("`most_runs` is {}, below `runs`; write at least {}", most.value, runs.value);
            return Err(most.error(problem));
        }
        let most_runs = self.most_runs.as_ref().map_or(DEFAULT_MOST_RUNS, |most| most.value);
        Ok(Repetition {
            precision_share: self.precision.value,
            budget_ns: self.budget_ns.as_ref().map(|budget| budget.value),
            most_runs: most_runs.max(runs.value),
        })
    }
}
