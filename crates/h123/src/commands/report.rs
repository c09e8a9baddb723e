//! `h123 report`: repeat analysis and report from the stored samples, or condense access logs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;

use super::access_log::{self, AccessLogArgs};
use crate::exit::{Exit, UsageError};
use crate::study::result::{finish, open};

/// Repeat the analysis and the report of a result from its stored samples, or condense access logs
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 report results/quick-20260101-120000
  h123 report results/quick-20260101-120000 --open
  h123 report --access-log h2=a.log h2=b.log h1s=c.log --class 'video=*/v/*' --log-format nginx

The result needs its folder `samples` and a readable plan.json; otherwise the command exits with \
status 2 and changes nothing. It reports all other data that is readable, and names what is damaged \
or missing in the report and on standard error: runs, tables of the samples, environment.json, \
calibrations.json, checksums.json. A check that needs missing data gives its cell a caveat.
The command rewrites summary.json, report.html, report.md, figures/ and tables/.

With --access-log it prints the request times of servers' logs, by class: of each log, and of all logs with the \
same NAME together (without names, of all). Only requests with status 200 have times; the others are the share of \
failures. Manifests and initialization segments are left out (--leave-out). The logs may have any length. \
--log-format is the name of a server, whose [access_log] describes the lines, or a pattern with the fields \
{request} or {path}, {request_time_s} (or _ms, _us, _ns), {status}, {bytes}, {time}, {client}, and {_} for others; \
without it, the first line shows the server.

Exit status: 0 done, 1 the folder is not writable or another h123 writes to it, 2 no result or no \
readable plan.json, 3 done but a cell failed, is invalid or is not measured")]
pub(crate) struct ReportArgs {
    /// The result folder
    ///
    /// Example: results/quick-20260101-120000
    #[arg(required_unless_present = "logs", conflicts_with = "logs")]
    result: Option<PathBuf>,
    /// Print JSON instead of tables: summary.json, or the condensed logs
    ///
    /// Example: --json
    #[arg(long)]
    json: bool,
    /// Open report.html in the browser: the one in $BROWSER, or that of `xdg-open`
    ///
    /// Example: --open
    #[arg(long, conflicts_with = "logs")]
    open: bool,
    #[command(flatten)]
    access_logs: AccessLogArgs,
}

/// Runs the command.
///
/// # Errors
/// There is no result, or it cannot be read or written.
pub(crate) fn run(args: &ReportArgs) -> Result<Exit> {
    let Some(path) = &args.result else { return access_log::run(&args.access_logs, args.json) };
    let folder = open(path)?;
    let plan = folder.read_plan().map_err(|error| {
        UsageError(format!(
            "{error:#}; without the plan the samples have no meaning. A plan does not change during a study: copy it from an \
             undamaged copy of the result"
        ))
    })?;
    let result = finish(&folder, &plan)?;
    result.print(path, args.json)?;
    if args.open {
        open_in_browser(&path.join("report.html"))?;
    }
    Ok(result.exit())
}

/// How long a browser is watched: openers that find none end at once.
const WATCHED: Duration = Duration::from_secs(1);

/// Starts the browser, without waiting for its end.
fn open_in_browser(page: &Path) -> Result<()> {
    let browser = std::env::var_os("BROWSER").filter(|name| !name.is_empty());
    let browser = browser.unwrap_or_else(|| "xdg-open".into());
    let shown = browser.display();
    let advice = || format!("set BROWSER to a browser, or open {}", page.display());
    let mut command = Command::new(&browser);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot start `{shown}`; {}", advice()))?;
    let began = Instant::now();
    while began.elapsed() < WATCHED {
        match child.try_wait().with_context(|| format!("cannot wait for `{shown}`"))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => bail!("`{shown}` failed ({status}); {}", advice()),
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    Ok(())
}
