//! `h123 report`: repeat analysis and report from the stored samples.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use model::Plan;

use crate::exit::{Exit, UsageError};
use crate::study::result::{finish, open};

/// Repeat the analysis and the report of a result from its stored samples
#[derive(Args, Debug)]
#[command(after_help = "Example:
  h123 report results/quick-20260101-120000

The result needs its folder `samples` and a readable plan.json; otherwise the command exits with
status 2 and changes nothing. It reports all other data that is readable, and names what is damaged
or missing in the report and on standard error: runs, tables of the samples, environment.json,
calibrations.json, checksums.json. A check that needs missing data gives its cell a caveat.
The command rewrites summary.json, report.html, figures/ and tables/.

Exit status: 0 done, 1 the folder is not writable or another h123 writes to it, 2 no result or no
readable plan.json, 3 done but a cell failed or is invalid")]
pub(crate) struct ReportArgs {
    /// The result folder
    ///
    /// Example: results/quick-20260101-120000
    result: PathBuf,
    /// Print summary.json instead of tables
    ///
    /// Example: --json
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// There is no result, or it cannot be read or written.
pub(crate) fn run(args: &ReportArgs) -> Result<Exit> {
    let folder = open(&args.result)?;
    let plan = folder.read_plan().map_err(|error| {
        UsageError(format!(
            "{error:#}; without the plan the samples have no meaning. A plan does not change during a study: copy it from an \
             undamaged copy of the result"
        ))
    })?;
    let result = finish(&folder, &plan)?;
    result.print(&args.result, args.json)?;
    Ok(result.exit())
}
