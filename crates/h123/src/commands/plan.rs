//! `h123 plan`: the matrix, the order and the expected time of a study.

use anyhow::Result;
use clap::Args;

use crate::exit::Exit;
use crate::study::overrides::StudyOverrides;
use crate::study::site::SiteArgs;
use crate::terminal::print;

/// Show what a study would do: the matrix, the order and the expected time. Runs nothing
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 plan quick
  h123 plan quick --server nginx --runs 10
  h123 plan my-study.toml --json")]
pub(crate) struct PlanArgs {
    /// A name from studies/, or the path of a .toml file
    ///
    /// Example: my-study.toml
    study: String,
    #[command(flatten)]
    overrides: StudyOverrides,
    /// Print the plan as JSON
    ///
    /// Example: --json | jq .cells
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command.
///
/// # Errors
/// The study does not exist or is invalid.
pub(crate) fn run(args: &PlanArgs) -> Result<Exit> {
    let plan = args.site.plan_of(&args.study, &args.overrides)?;
    if args.json {
        print(&serde_json::to_string_pretty(&plan)?)?;
    } else {
        print(model::plan_text::plan_text(&plan).trim_end())?;
    }
    Ok(Exit::Done)
}
