//! `h123 report`: repeat analysis and report from the stored samples.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::Args;

use crate::exit::{Exit, UsageError};
use crate::study::result::{finish, open};

/// Repeat the analysis and the report of a result from its stored samples
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 report results/quick-20260101-120000
  h123 report results/quick-20260101-120000 --open

The result needs its folder `samples` and a readable plan.json; otherwise the command exits with \
status 2 and changes nothing. It reports all other data that is readable, and names what is damaged \
or missing in the report and on standard error: runs, tables of the samples, environment.json, \
calibrations.json, checksums.json. A check that needs missing data gives its cell a caveat.
The command rewrites summary.json, report.html, figures/ and tables/.

Exit status: 0 done, 1 the folder is not writable or another h123 writes to it, 2 no result or no \
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
    /// Open report.html in the browser: the one in $BROWSER, or that of `xdg-open`
    ///
    /// Example: --open
    #[arg(long)]
    open: bool,
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
    if args.open {
        open_in_browser(&args.result.join("report.html"))?;
    }
    Ok(result.exit())
}

/// Starts the browser without waiting for it.
fn open_in_browser(page: &Path) -> Result<()> {
    let browser = std::env::var_os("BROWSER").filter(|name| !name.is_empty());
    let browser = browser.unwrap_or_else(|| "xdg-open".into());
    let mut command = Command::new(&browser);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = command.spawn().with_context(|| {
        let browser = browser.display();
        format!("cannot start `{browser}`; set BROWSER to a browser, or open {}", page.display())
    });
    started.map(drop)
}
