//! The rule by which a study adds runs, as written and resolved.

use crate::error::InputError;
use crate::plan::Repetition;
use crate::reader::{Placed, Table};
use crate::study::written::{RUNS, to_u32};
use crate::units;

/// Fewer runs say too little of how much runs differ to stop on.
const LEAST_RUNS: u32 = 5;
/// Where the study does not say.
const DEFAULT_MOST_RUNS: u32 = 100;

/// `precision`, `budget` and `most_runs`.
#[derive(Clone, Debug)]
pub(super) struct Written {
    precision: Placed<f64>,
    budget_ns: Option<Placed<u64>>,
    most_runs: Option<Placed<u32>>,
}

/// The rule, where the study has one.
pub(super) fn read(root: &Table<'_>) -> Result<Option<Written>, InputError> {
    let precision = root.parsed("precision", "2%", units::parse_share)?;
    let budget_ns = root.parsed("budget", "30min", units::parse_duration_ns)?;
    let most_runs = root.integer("most_runs", RUNS)?;
    let Some(precision) = precision else {
        let problem = |key: &str| {
            format!(
                "`{key}`: found it without `precision`, expected `precision = \"2%\"`: until when are runs added?"
            )
        };
        return match (budget_ns, most_runs) {
            (Some(budget), _) => Err(budget.error(problem("budget"))),
            (_, Some(most)) => Err(most.error(problem("most_runs"))),
            (None, None) => Ok(None),
        };
    };
    if precision.value <= 0.0 {
        let problem =
            "`precision`: found 0%, expected more: no number of runs makes an interval without width";
        return Err(precision.error(problem));
    }
    let most_runs = most_runs.map(|most| Placed { value: to_u32(most.value), place: most.place });
    Ok(Some(Written { precision, budget_ns, most_runs }))
}

impl Written {
    /// Refuses what contradicts the least number of runs. The command line may ask for more runs than the file allows.
    pub(super) fn resolve(&self, runs: &Placed<u32>) -> Result<Repetition, InputError> {
        if runs.value < LEAST_RUNS {
            let problem = format!(
                "`runs`: found {} beside `precision`, expected at least {LEAST_RUNS}: fewer say too little of how much runs \
                 differ",
                runs.value
            );
            return Err(runs.error(problem));
        }
        if let Some(most) =
            self.most_runs.as_ref().filter(|most| most.value < runs.value && !runs.place.is_command_line())
        {
            let problem =
                format!("`most_runs`: found {}, expected at least the {} of `runs`", most.value, runs.value);
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
