//! `h123 run`: plan, run every cell, store, analyse, report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use analysis::summary::CellStatus;
use anyhow::{Context, Result};
use clap::Args;
use drive::{AccessLog, Adapter, Authority, Client, Clients, Servers};
use lab::{Access, MissingCapability};
use model::plan::DIRECT;
use model::{Backend, Plan};
use store::{Environment, ResultFolder};

use crate::exit::{Exit, UsageError};
use crate::library::plan_of;
use crate::study::cores::Cores;
use crate::study::overrides::{self, StudyOverrides};
use crate::study::progress::{Progress, describe};
use crate::study::result::{self, Finished, finish};
use crate::study::run::Study;
use crate::terminal::{note, print};

/// The note in `environment.json` that holds the command to measure all this again.
pub(crate) const COMMAND_NOTE: &str = "measure again with";
/// Free space asked for: each run's rows and logs, generously.
const BYTES_PER_RUN: u64 = 1 << 20;

/// Run a study: every cell of its matrix over emulated networks, then the analysis and the report
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 run quick
  h123 run quick --server nginx --out results/nginx
  h123 run quick --runs 10 --network north-carolina
  h123 run --resume results/quick-20260101-120000

Exit status: 0 done, 1 the tool failed, 2 wrong usage or a bad study, 3 done but a cell failed or is invalid,
130 interrupted (what was measured is stored)")]
pub(crate) struct RunArgs {
    /// A name from studies/, or the path of a .toml file
    #[arg(required_unless_present = "resume")]
    study: Option<String>,
    #[command(flatten)]
    overrides: StudyOverrides,
    /// Where the result goes; must not exist (default: results/STUDY-UTC-TIME)
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Continue an interrupted study: its result folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["study", overrides::GROUP])]
    resume: Option<PathBuf>,
    /// Keep what was on each run's link, as logs/run-N/links.pcapng, the keys that decrypt it, and qlog of the clients'
    /// QUIC connections
    #[arg(long)]
    pcap: bool,
    /// Say nothing but the result
    #[arg(long, short)]
    quiet: bool,
    /// Print summary.json instead of tables
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A bad study, a folder that exists, no disk space, or a fault of the tool. What fails within a run is stored.
pub(crate) fn run(args: &RunArgs, stop: &Arc<AtomicBool>) -> Result<Exit> {
    let plan = match (&args.study, &args.resume) {
        (Some(study), _) => plan_of(study, args.overrides.values())?,
        (None, Some(folder)) => stored_plan(folder)?,
        (None, None) => {
            return Err(UsageError("found neither a study nor --resume, expected one".into()).into());
        }
    };
    let servers = find_servers(&plan)?;
    let clients = find_clients(&plan)?;
    let mut folder = match (&args.resume, &args.out) {
        (Some(folder), _) => ResultFolder::open(folder)?,
        (None, Some(out)) => create(out, &plan)?,
        (None, None) => create(&default_out(&plan), &plan)?,
    };
    folder.lock()?;
    // From here on a user without privileges is root in a namespace of its own, where no other thread may exist yet.
    let (emulation, ordinary) = enter(&plan);
    announce(&plan, &folder, emulation.as_ref().err(), args);
    if let Some(missing) = &ordinary {
        note(args.quiet, &format!("the emulator runs without real-time priority: {missing}"));
    }
    let pages = plan.pages();
    let content = folder.logs().join("content");
    drive::write_content(&content, &pages)?;
    drive::write_segments(&content, &plan.segments())?;
    let study = Study {
        plan: &plan,
        pages,
        authority: Authority::new()?,
        emulated: emulation.is_ok(),
        cores: Cores::of_this_process(),
        program: std::env::current_exe().context("this program's own path is not known")?,
        content,
        servers,
        clients,
        pcap: args.pcap,
        stop,
    };
    if args.resume.is_none() {
        folder.write_json("plan.json", &plan)?;
        let mut environment = environment(&study, args);
        environment.notes.insert(
            "emulation".to_owned(),
            emulation_text(&plan, emulation.as_ref().err(), ordinary.as_ref()),
        );
        folder.write_json("environment.json", &environment)?;
    }
    let outcome = drive_runs(&study, &mut folder, args.quiet)?;
    let finished = finish(&folder, &plan)?;
    show(&finished, &folder, args)?;
    Ok(if outcome { verdict(&finished) } else { Exit::Interrupted })
}

/// Becomes what may build labs, and says what that lacks: everything, or the real-time priority of the lab's own emulator.
fn enter(plan: &Plan) -> (Result<Access, MissingCapability>, Option<MissingCapability>) {
    if plan.topology.name == DIRECT {
        return (Ok(Access::Direct), None);
    }
    let capability = lab::probe();
    let emulation = capability.emulation().and_then(|_| lab::enter());
    let has_emulator = plan.cells.iter().any(|cell| cell.backend == Backend::UserSpace);
    let ordinary = capability.realtime.err().filter(|_| has_emulator && emulation.is_ok());
    (emulation, ordinary)
}

fn drive_runs(study: &Study<'_>, folder: &mut ResultFolder, quiet: bool) -> Result<bool> {
    let stored = folder.stored_runs()?;
    for damage in &stored.damaged {
        note(false, &format!("damaged, measured again: {damage}"));
    }
    let mut progress = Progress::new(study.plan, &stored.whole, quiet);
    let all_done = study.run(folder, &mut progress);
    progress.finish();
    let all_done = all_done?;
    if all_done {
        folder.compact()?;
    } else {
        let shown = folder.path().display();
        note(
            false,
            &format!("interrupted; what was measured is stored. Continue with: h123 run --resume {shown}"),
        );
    }
    Ok(all_done)
}

fn stored_plan(folder: &Path) -> Result<Plan> {
    let plan: Plan = result::open(folder)?.read_json("plan.json")?;
    anyhow::ensure!(
        plan.version == model::plan::PLAN_VERSION,
        "{} holds a plan of version {}, expected {}: continue it with the h123 that began it",
        folder.display(),
        plan.version,
        model::plan::PLAN_VERSION
    );
    Ok(plan)
}

/// The descriptions of the plan's servers. One that is not installed is the outcome of its runs, not an error here.
fn find_servers(plan: &Plan) -> Result<BTreeMap<String, Adapter>> {
    plan.adapters().into_iter().map(|name| Ok((name.to_owned(), Servers::find(name)?))).collect()
}

/// The descriptions of the plan's external clients.
fn find_clients(plan: &Plan) -> Result<BTreeMap<String, Client>> {
    plan.external_clients().into_iter().map(|name| Ok((name.to_owned(), Clients::find(name)?))).collect()
}

fn create(path: &Path, plan: &Plan) -> Result<ResultFolder> {
    if path.symlink_metadata().is_ok() {
        let shown = path.display();
        return Err(UsageError(format!(
            "{shown} exists; continue it with `--resume {shown}`, or choose another name with `--out DIR`"
        ))
        .into());
    }
    ResultFolder::create(path, BYTES_PER_RUN * plan.least_runs().len() as u64)
}

fn default_out(plan: &Plan) -> PathBuf {
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    PathBuf::from("results").join(format!("{}-{now}", plan.study))
}

fn announce(plan: &Plan, folder: &ResultFolder, missing: Option<&MissingCapability>, args: &RunArgs) {
    let RunArgs { quiet, pcap, .. } = *args;
    note(
        quiet,
        &format!(
            "{}: {} cells × {} runs = {} runs{}, about {} → {}",
            plan.study,
            plan.cells.len(),
            plan.runs_per_cell,
            plan.least_runs().len(),
            plan.repetition.map_or(String::new(), |rule| format!(", {}", rule.describe())),
            describe(plan.expected_ns()),
            folder.path().display()
        ),
    );
    if let Some(missing) = missing {
        note(false, &format!("no network is emulated here, every cell will be invalid: {missing}"));
        if pcap {
            note(false, "--pcap keeps the secrets only: there is no emulated link to capture");
        }
    }
}

/// Facts about this machine, and the command that measures the same again.
fn environment(study: &Study<'_>, args: &RunArgs) -> Environment {
    let mut environment = Environment::collect(env!("CARGO_PKG_VERSION"), std::env::args().collect());
    let study_name = args.study.as_deref().unwrap_or(&study.plan.study);
    environment
        .notes
        .insert(COMMAND_NOTE.to_owned(), format!("h123 run {study_name}{}", args.overrides.text()));
    for (name, adapter) in &study.servers {
        let version = adapter
            .probe(&study.program)
            .map_or_else(|error| format!("not found: {error:#}"), |found| found.version);
        environment.notes.insert(format!("server {name}"), version);
        if let Some(words) = adapter.access_log.as_ref().and_then(AccessLog::describe)
            && study.plan.server_time
        {
            environment.notes.insert(format!("time in the log of {name}"), words);
        }
    }
    for (name, client) in &study.clients {
        let version = client
            .probe(&study.program)
            .map_or_else(|error| format!("not found: {error:#}"), |found| found.version);
        environment.notes.insert(format!("client {name}"), version);
    }
    environment.notes.insert("CPUs".to_owned(), study.cores.describe());
    environment
}

/// How the networks are emulated, and what that lacks.
fn emulation_text(
    plan: &Plan,
    missing: Option<&MissingCapability>,
    ordinary: Option<&MissingCapability>,
) -> String {
    let mut ways: Vec<&str> = plan.cells.iter().map(|cell| means(cell.backend)).collect();
    ways.sort_unstable();
    ways.dedup();
    let lacks = ordinary.map(|missing| format!("without real-time priority: {}", missing.why));
    match missing {
        Some(missing) => missing.to_string(),
        None if plan.topology.name == DIRECT => "none: this machine's loopback".to_owned(),
        None => ways.into_iter().map(str::to_owned).chain(lacks).collect::<Vec<_>>().join("; "),
    }
}

/// What a backend does it with.
const fn means(backend: Backend) -> &'static str {
    match backend {
        Backend::UserSpace => "packets over veth, AF_PACKET, user space",
        Backend::Netem => "the kernel's queueing disciplines, netem",
    }
}

fn show(finished: &Finished, folder: &ResultFolder, args: &RunArgs) -> Result<()> {
    if args.json {
        return print(&serde_json::to_string_pretty(&finished.summary)?);
    }
    print(finished.terminal.trim_end())?;
    print(&format!("\nreport: {}", folder.path().join("report.html").display()))
}

/// Done, or done with a cell that failed or may not be believed.
pub(crate) fn verdict(finished: &Finished) -> Exit {
    let is_bad = |status| matches!(status, CellStatus::Failed | CellStatus::Invalid);
    if finished.summary.cells.iter().any(|cell| is_bad(cell.status)) { Exit::Invalid } else { Exit::Done }
}
