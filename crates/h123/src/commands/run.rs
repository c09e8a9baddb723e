//! `h123 run`: plan, run every cell, store, analyse, report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use drive::browsers::players;
use drive::{Adapter, Authority, ExternalClient, Servers};
use model::external::OWN_CLIENT;
use model::media::MediaSource;
use model::plan::ServerChain;
use model::player::PlayerLibrary;
use model::units::counted;
use model::{Cell, Plan};
use store::ResultFolder;

use crate::exit::{Exit, UsageError};
use crate::study::Study;
use crate::study::cores::Cores;
use crate::study::environment::{self, COMMAND_NOTE, Emulation, environment};
use crate::study::outside::Outside;
use crate::study::overrides::{self, StudyOverrides};
use crate::study::progress::{Progress, clock};
use crate::study::result::{finish, open, usage};
use crate::study::site::SiteArgs;
use crate::terminal::note;

/// Required free space for each run's rows and logs, generously.
const BYTES_PER_RUN: u64 = 1 << 20;

/// Run a study: every cell of its matrix over emulated networks, then the analysis and the report
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 run quick
  h123 run quick --server nginx --out results/nginx
  h123 run quick --runs 10 --network north-carolina
  h123 run quick --url https://www.example.test/ --network 4g
  h123 run --resume results/quick-20260101-120000
  h123 run --resume results/quick-20260101-120000 --runs 20

Exit status: 0 done, 1 h123 failed, 2 wrong usage or an invalid study, 3 done but a cell failed, is invalid \
or is not measured, 130 interrupted (finished runs are stored)")]
pub(crate) struct RunArgs {
    /// A name from studies/, or the path of a .toml file
    ///
    /// Example: quick
    #[arg(required_unless_present = "resume")]
    study: Option<String>,
    #[command(flatten)]
    overrides: StudyOverrides,
    /// Write the result to this new folder [default: results/STUDY-UTC-TIME]
    ///
    /// Example: --out results/nginx
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Continue the interrupted study in this result folder; with --runs, add runs until each cell has this
    /// many
    ///
    /// Example: --resume results/quick-20260101-120000 --runs 20
    #[arg(long, value_name = "DIR", conflicts_with_all = ["study", "url", overrides::GROUP])]
    resume: Option<PathBuf>,
    /// With --resume: continue although another version of h123 or another machine made the first runs
    ///
    /// Example: --resume results/quick-20260101-120000 --mixed
    #[arg(long, requires = "resume")]
    mixed: bool,
    /// Capture each run's packets as logs/run-N/links.pcapng, with the keys that decrypt them and qlog of the
    /// clients' QUIC connections
    ///
    /// Example: --pcap
    #[arg(long)]
    pcap: bool,
    /// Print only the result
    ///
    /// Example: -q
    #[arg(long, short)]
    quiet: bool,
    /// Print summary.json instead of tables
    ///
    /// Example: --json --quiet
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command: from the study to the plan, from the plan to stored runs, from the runs to the report.
///
/// # Errors
/// An invalid study, a folder that exists, a full disk, or a fault of the tool. A failure within a run is
/// stored.
pub(crate) fn run(args: &RunArgs, stop: &Arc<AtomicBool>) -> Result<Exit> {
    drive::browsers::clean();
    let plan = plan(args)?;
    let cores = Cores::of_this_process(&plan.cores)?;
    // A program that is not installed is the outcome of its runs, not an error here.
    let find_server = |name: &str| Ok((name.to_owned(), Servers::find(name)?));
    let find_client = |name: &str| Ok((name.to_owned(), ExternalClient::find(name)?));
    let servers: BTreeMap<_, _> = plan.adapters().into_iter().map(find_server).collect::<Result<_>>()?;
    check_connections(&plan, &servers, &cores)?;
    let clients = plan.external_clients().into_iter().map(find_client).collect::<Result<_>>()?;
    let outside = Outside::discover(&plan, stop)?;
    let mut folder = result_folder(args, &plan)?;
    folder.lock()?;
    if args.resume.is_some() && args.overrides.runs().is_some() {
        record_more_runs(&folder, &plan)?;
    }
    let emulation = Emulation::enter(&plan);
    announce(&plan, &folder, &emulation, args);
    let content = write_content(&plan, &servers, &folder)?;
    let study = Study {
        plan: &plan,
        servers,
        outside,
        clients,
        authority: Authority::new()?,
        emulated: emulation.missing.is_none(),
        cores,
        program: std::env::current_exe().context("cannot find the path of this program")?,
        pages: plan.pages(),
        content,
        pcap: args.pcap,
        stop,
    };
    for (name, _) in study.clients.iter().filter(|(_, client)| client.lacks_sandbox()) {
        note(args.quiet, &format!("{name} runs without its sandbox, because h123 runs as root"));
    }
    let now = environment(&study, &emulation, command(args, &plan));
    if args.resume.is_none() {
        folder.write_json("plan.json", &plan)?;
        folder.write_json(environment::FILE, &now)?;
    } else {
        environment::continue_with(&folder, &now, args.mixed)?;
    }
    let is_complete = measure(&study, &mut folder, args.quiet)?;
    let result = finish(&folder, &plan)?;
    result.print(folder.path(), args.json)?;
    if is_complete {
        return Ok(result.exit());
    }
    let shown = folder.path().display();
    note(false, &format!("interrupted; finished runs are stored. Continue with: h123 run --resume {shown}"));
    Ok(Exit::Interrupted)
}

/// # Errors
/// A [`UsageError`]: a client or a server would have more connections than it can hold.
fn check_connections(plan: &Plan, servers: &BTreeMap<String, Adapter>, cores: &Cores) -> Result<()> {
    let holds = |chain: &ServerChain, descriptors: u64| match servers.get(&chain.server) {
        Some(server) => {
            server.most_connections(&chain.set, cores.of_server(0, chain).len().max(1), descriptors)
        }
        None => Ok(descriptors),
    };
    plan.check_connections(lab::most_open_files(), holds).map_err(|problem| UsageError(problem).into())
}

/// Writes the plan with added runs, and the command that repeats the measurement with them.
fn record_more_runs(folder: &ResultFolder, plan: &Plan) -> Result<()> {
    // The plan comes last: a plan with fewer runs than the command is still the plan of what is stored.
    if let Ok(mut environment) = folder.read_json::<serde_json::Value>("environment.json")
        && let Some(command) = environment["notes"][COMMAND_NOTE].as_str()
    {
        environment["notes"][COMMAND_NOTE] = with_runs(command, plan.runs_per_cell).into();
        folder.write_json("environment.json", &environment)?;
    }
    folder.write_json("plan.json", plan)
}

/// A command of `h123 run` with another number of runs.
fn with_runs(command: &str, runs: u32) -> String {
    let mut words: Vec<&str> = command.split(' ').collect();
    if let Some(place) = words.iter().position(|word| *word == "--runs") {
        words.drain(place..(place + 2).min(words.len()));
    }
    format!("{} --runs {runs}", words.join(" "))
}

/// The plan of the study, or that of the result to continue.
fn plan(args: &RunArgs) -> Result<Plan> {
    let folder = match (&args.study, &args.resume) {
        (Some(study), _) => return args.site.plan_of(study, &args.overrides),
        (None, Some(folder)) => folder,
        (None, None) => {
            return Err(UsageError("name a study, or continue one with --resume DIR".into()).into());
        }
    };
    let plan = open(folder)?.read_plan()?;
    match args.overrides.runs() {
        Some(runs) => plan.with_runs(runs).map_err(|problem| UsageError(problem).into()),
        None => Ok(plan),
    }
}

/// The folder to continue, or a new one.
fn result_folder(args: &RunArgs, plan: &Plan) -> Result<ResultFolder> {
    if let Some(folder) = &args.resume {
        let folder = open(folder)?;
        folder.check_logs().map_err(usage)?;
        return Ok(folder);
    }
    let folder = args.out.clone().unwrap_or_else(|| {
        let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
        Path::new("results").join(format!("{}-{now}", plan.study))
    });
    if folder.symlink_metadata().is_ok() {
        let shown = folder.display();
        let problem = format!(
            "{shown} exists; continue it with `--resume {shown}`, or choose another name with `--out DIR`"
        );
        return Err(UsageError(problem).into());
    }
    ResultFolder::create(&folder, BYTES_PER_RUN * plan.least_runs().len() as u64)
}

/// Writes pages and media as files for servers that serve a folder; modelled media, which may have gigabytes,
/// only if there is one.
fn write_content(plan: &Plan, servers: &BTreeMap<String, Adapter>, folder: &ResultFolder) -> Result<PathBuf> {
    let content = folder.logs().join("content");
    drive::write_content(&content, &plan.pages())?;
    let mut contents = plan.cells.iter().map(|cell| cell.chain.content_server());
    let is_read = contents.any(|(name, set)| servers.get(name).is_some_and(|server| server.reads_files(set)));
    if is_read {
        drive::write_segments(&content, &plan.segments())?;
    }
    let mut written =
        plan.media.iter().filter(|media| is_read || !matches!(media.source, MediaSource::Modelled(_)));
    written.try_for_each(|media| drive::write_media(&content, media))?;
    write_players(plan, &content)?;
    Ok(content)
}

/// Writes the pages of the players in browsers. Cells whose player is not installed are unsupported.
fn write_players(plan: &Plan, content: &Path) -> Result<()> {
    let in_browser = |cell: &Cell| {
        let player = plan.workload_of(&cell.group).workload.player()?;
        let is_run = cell.group.client != OWN_CLIENT && cell.unsupported.is_none();
        player.browser.as_ref().filter(|_| is_run).map(|play| play.library)
    };
    let libraries: BTreeSet<PlayerLibrary> = plan.cells.iter().filter_map(in_browser).collect();
    let mut installed = libraries.into_iter().filter(|library| players::find(*library).is_ok());
    installed.try_for_each(|library| players::write_page(content, library))
}

/// The command that repeats the measurement.
fn command(args: &RunArgs, plan: &Plan) -> String {
    let study = args.study.as_ref().unwrap_or(&plan.study);
    format!("h123 run {study}{}{}", args.site.text(), args.overrides.text())
}

/// Does every run that is not stored. Returns whether it finished; otherwise the user interrupted it.
fn measure(study: &Study<'_>, folder: &mut ResultFolder, quiet: bool) -> Result<bool> {
    let stored = folder.stored_runs()?;
    for damage in &stored.damaged {
        note(false, &format!("damaged, measured again: {damage}"));
    }
    let mut progress = Progress::new(study.plan, &stored.whole, quiet);
    let is_complete = study.run(folder, &mut progress);
    progress.finish();
    if is_complete? {
        folder.compact()?;
        return Ok(true);
    }
    Ok(false)
}

fn announce(plan: &Plan, folder: &ResultFolder, emulation: &Emulation, args: &RunArgs) {
    let rule = plan.repetition.map_or(String::new(), |rule| format!(", {}", rule.describe()));
    note(
        args.quiet,
        &format!(
            "{}: {} × {} each = {}{rule}, about {} → {}",
            plan.study,
            counted(plan.cells.len() as u64, "cell"),
            counted(plan.runs_per_cell.into(), "run"),
            counted(plan.least_runs().len() as u64, "run"),
            clock(Duration::from_nanos(plan.expected_ns())),
            folder.path().display()
        ),
    );
    if let Some(missing) = &emulation.missing {
        note(
            false,
            &format!("this machine cannot emulate networks, so every cell will be invalid: {missing}"),
        );
        if args.pcap {
            note(false, "--pcap keeps only the secrets: there is no emulated link to capture");
        }
    }
    if let Some(missing) = &emulation.no_realtime {
        note(args.quiet, &format!("the emulator runs without real-time priority: {missing}"));
    }
}

#[cfg(test)]
mod tests {
    use super::with_runs;

    #[test]
    fn the_command_that_repeats_a_result_has_its_runs() {
        assert_eq!(with_runs("h123 run quick", 9), "h123 run quick --runs 9");
        assert_eq!(
            with_runs("h123 run quick --runs 5 --network lan", 9),
            "h123 run quick --network lan --runs 9"
        );
    }
}
