//! `h123 report`: analysis and report again, from the stored samples.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use model::Plan;

use crate::commands::run::verdict;
use crate::exit::{Exit, UsageError};
use crate::study::result::{finish, open};
use crate::terminal::print;

/// Analyse a result again and write its report again, from the stored samples
#[derive(Args, Debug)]
#[command(after_help = "Example:
  h123 report results/quick-20260101-120000

Two things have to be there: the folder `samples`, and a plan.json that can be read. Without
them there is one line, status 2, and nothing is changed. What else is damaged or missing is named
in the report and on standard error, and the rest is reported: runs, tables of the samples,
environment.json, calibrations.json, checksums.json. Where a check could not be made without them,
its cell has a caveat and says so. summary.json, report.html, figures/ and tables/ are made again.

Exit status: 0 done, 1 the folder cannot be written or another h123 writes to it, 2 no result
there or none with a readable plan.json, 3 done but a cell failed or is invalid")]
pub(crate) struct ReportArgs {
    /// The result folder
    result: PathBuf,
    /// Print summary.json instead of tables
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// No result there, or one that cannot be read or written.
pub(crate) fn run(args: &ReportArgs) -> Result<Exit> {
    let folder = open(&args.result)?;
    let plan: Plan = folder.read_json("plan.json").map_err(|error| {
        UsageError(format!(
            "{error:#}; without the plan nobody knows what the samples are of. It does not change while a study runs: copy it \
             from where the result is still whole"
        ))
    })?;
    let finished = finish(&folder, &plan)?;
    if args.json {
        print(&serde_json::to_string_pretty(&finished.summary)?)?;
    } else {
        print(finished.terminal.trim_end())?;
        print(&format!("\nreport: {}", args.result.join("report.html").display()))?;
    }
    Ok(verdict(&finished))
}
