//! `make bench-peers`: what a request costs `h123 load` in CPU time, beside wrk, h2load, siege, ab, oha and a plain
//! quinn + h3 client.
//!
//! One server on one CPU, the generators on another, short runs of ours and the peer's in turn. The figure is the
//! median of the pairwise ratios with its interval. See docs/benchmarks.md.

mod child;
mod machine;
mod measure;
mod parse;
mod row;
mod servers;
mod table;
mod tools;
mod works;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::measure::Extent;
use crate::row::Row;
use crate::servers::{Bench, Server};
use crate::table::{Failure, Outcome};
use crate::tools::Tool;
use crate::works::{Peer, WORKS, Work};

/// The tool failed, or a row could not be measured.
const FAILED: u8 = 1;
/// Wrong usage.
const USAGE: u8 = 2;
/// Ctrl-C.
const INTERRUPTED: u8 = 130;
/// `h123 load --help` answers within this.
const HELP_LIMIT: Duration = Duration::from_secs(10);

/// Client CPU per request of `h123 load` against its peers, in interleaved pairs of runs
#[derive(Parser, Debug)]
#[command(
    after_help = "Exit status: 0 all rows measured (targets may be missed), 1 a row could not be measured, \
2 wrong usage, 130 interrupted"
)]
struct Cli {
    /// Pairs of runs for each row; 6 are needed for an interval
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,
    /// Length of a run in whole seconds (wrk, siege and ab know no parts)
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// Measure this work only (may be given again; see --list)
    #[arg(long, value_name = "WORK", value_parser = parse_work)]
    only: Vec<&'static Work>,
    /// Measure against this peer only (may be given again)
    #[arg(long, value_name = "PEER", value_parser = parse_peer)]
    peer: Vec<Peer>,
    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,
    /// Show the works, their peers and targets, and measure nothing
    #[arg(long)]
    list: bool,
    /// Where the JSON goes
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// The binary to measure (default: the one that was built together with this)
    #[arg(long, value_name = "FILE")]
    h123: Option<PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if cli.list {
        print!("{}", list());
        return ExitCode::SUCCESS;
    }
    if let Err(error) = check(&cli) {
        eprintln!("bench-peers: {error}");
        return ExitCode::from(USAGE);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let result = watch_signals(&stop).and_then(|()| run(&cli, &stop));
    if stop.load(Ordering::Relaxed) {
        eprintln!("bench-peers: interrupted; all servers are stopped");
        return ExitCode::from(INTERRUPTED);
    }
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(error) => {
            eprintln!("bench-peers: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}

/// Measures, prints and stores; whether all that was asked could be measured.
fn run(cli: &Cli, stop: &AtomicBool) -> Result<bool> {
    let h123 = h123(cli)?;
    let bench = Bench::prepare(h123)?;
    let now = jiff::Timestamp::now();
    let mut outcome = Outcome::new(now.to_string(), machine::description(), cli.pairs, cli.seconds);
    let coalesce = knows_coalesce(&bench, stop)?;
    if !coalesce {
        outcome.notes.push("this h123 has no --coalesce: no rows for read-coalescing".to_owned());
    }
    let works: Vec<&Work> = WORKS
        .iter()
        .filter(|work| cli.only.is_empty() || cli.only.iter().any(|only| only.name == work.name))
        .collect();
    for work in works {
        measure_work(cli, &bench, work, coalesce, &mut outcome, stop);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    row::mark_best(&mut outcome.rows);
    outcome.note_disturbances();
    let json = serde_json::to_string_pretty(&outcome)?;
    let file = store(&cli.out, &now.strftime("%Y%m%dT%H%M%SZ").to_string(), &json)?;
    if cli.json {
        println!("{json}");
    } else {
        print!("{}", table::text(&outcome));
    }
    eprintln!("written: {}", file.display());
    Ok(outcome.failures.is_empty())
}

/// Starts the work's server and measures against every peer; what fails is kept with its reason.
fn measure_work(
    cli: &Cli,
    bench: &Bench,
    work: &'static Work,
    coalesce: bool,
    outcome: &mut Outcome,
    stop: &AtomicBool,
) {
    let peers = peers_of(cli, work, &mut outcome.failures);
    let server = match Server::start(bench, work, stop) {
        Ok(server) => server,
        Err(error) => {
            let failed =
                |peer: &Peer| Failure { work: work.name, peer: peer.name(), reason: format!("{error:#}") };
            outcome.failures.extend(peers.iter().map(failed));
            return;
        }
    };
    let extent = Extent { pairs: cli.pairs, seconds: cli.seconds };
    // Against a saturated server only, and against the peers that come near.
    let modes = |peer: Peer| {
        let near = !matches!(peer, Peer::Siege | Peer::Ab);
        [false, true]
            .into_iter()
            .filter(move |mode| !mode || (coalesce && near && work.body_bytes == works::SMALL_BYTES))
    };
    for (peer, mode) in peers.into_iter().flat_map(|peer| modes(peer).map(move |mode| (peer, mode))) {
        eprintln!("{} against {}{} …", work.name, peer.name(), if mode { ", coalescing" } else { "" });
        let tools = (Tool::Ours { coalesce: mode }, Tool::Peer(peer));
        match measure::pairs(bench, &server, work, tools, extent, stop) {
            Ok(pairs) => outcome.rows.extend(Row::of(work, peer.name(), mode, &pairs)),
            Err(error) => {
                let reason = format!("{error:#}");
                outcome.failures.push(Failure { work: work.name, peer: peer.name(), reason });
            }
        }
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// The peers that can do the work. One that is missing is a failure, but for oha, which is no Debian package.
fn peers_of(cli: &Cli, work: &'static Work, failures: &mut Vec<Failure>) -> Vec<Peer> {
    let asked = |peer: &Peer| cli.peer.is_empty() || cli.peer.contains(peer);
    let mut there = Vec::new();
    for peer in Peer::ALL.into_iter().filter(|peer| peer.can(work.variant)).filter(asked) {
        if tools::find_peer(peer).is_some() {
            there.push(peer);
        } else if peer != Peer::Oha || cli.peer.contains(&peer) {
            let reason = "it is not installed: scripts/install-bench-needs.sh".to_owned();
            failures.push(Failure { work: work.name, peer: peer.name(), reason });
        }
    }
    there
}

/// What the parser alone cannot see.
fn check(cli: &Cli) -> Result<(), String> {
    let all: Vec<&Work> = if cli.only.is_empty() { WORKS.iter().collect() } else { cli.only.clone() };
    for peer in &cli.peer {
        if !all.iter().any(|work| peer.can(work.variant)) {
            let names: Vec<&str> = all.iter().map(|work| work.name).collect();
            return Err(format!(
                "--peer {}: it can do none of {}; see --list",
                peer.name(),
                names.join(", ")
            ));
        }
    }
    if let Some(file) = cli.h123.as_ref().filter(|file| !file.is_file()) {
        return Err(format!("--h123 {}: found no such file, expected the binary to measure", file.display()));
    }
    Ok(())
}

fn h123(cli: &Cli) -> Result<PathBuf> {
    let file = match &cli.h123 {
        Some(file) => file.clone(),
        None => tools::sibling("h123")?,
    };
    fs::canonicalize(&file).with_context(|| {
        format!(
            "found no {}: build it first (cargo build --release -p h123), or say --h123 FILE",
            file.display()
        )
    })
}

fn knows_coalesce(bench: &Bench, stop: &AtomicBool) -> Result<bool> {
    let mut command = Command::new(&bench.h123);
    command.args(["load", "--help"]);
    let mut running = child::Running::start("help", command, bench.client_cpu, bench.folder.path())?;
    running.wait(HELP_LIMIT, stop)?;
    Ok(running.stdout()?.contains("--coalesce"))
}

fn store(folder: &Path, time: &str, json: &str) -> Result<PathBuf> {
    let file = folder.join(format!("bench-peers-{time}.json"));
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(&file, json).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

fn watch_signals(stop: &Arc<AtomicBool>) -> Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(stop)).context("cannot watch for signals")?;
    }
    Ok(())
}

fn list() -> String {
    let line = |work: &Work| {
        let peers: Vec<&str> =
            Peer::ALL.into_iter().filter(|peer| peer.can(work.variant)).map(Peer::name).collect();
        format!(
            "{:<12} {:<4} {:>7} B, {:>3} connections × {:>2}, {:<10} CPU ratio ≤ {:.2}, against {}\n",
            work.name,
            work.variant.name(),
            work.body_bytes,
            work.connections,
            work.streams,
            work.server.name(),
            work.cpu_ratio_target,
            peers.join(", ")
        )
    };
    WORKS.iter().map(line).collect()
}

fn parse_work(name: &str) -> Result<&'static Work, String> {
    works::find(name).ok_or_else(|| format!("found `{name}`, expected one of {}", works::names()))
}

fn parse_peer(name: &str) -> Result<Peer, String> {
    Peer::ALL
        .into_iter()
        .find(|peer| peer.name() == name)
        .ok_or_else(|| format!("found `{name}`, expected one of {}", Peer::ALL.map(Peer::name).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from([&["bench-peers"], words].concat())
    }

    #[test]
    fn wrong_input_is_refused_with_what_is_expected() {
        for (words, expected) in [
            (vec!["--only", "h4"], "expected one of h1-c10, h1-c100"),
            (vec!["--peer", "curl"], "expected one of wrk, h2load"),
            (vec!["--pairs", "0"], "1..=1000"),
            (vec!["--seconds", "1.5"], "invalid"),
        ] {
            let error = parse(&words).expect_err("wrong input");
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(error.exit_code(), i32::from(USAGE));
        }
        let mixed = parse(&["--only", "h3", "--peer", "wrk"]).unwrap();
        assert!(check(&mixed).unwrap_err().contains("none of h3"));
        let absent = parse(&["--h123", "/no/such/file"]).unwrap();
        assert!(check(&absent).unwrap_err().contains("/no/such/file"));
        assert!(check(&parse(&["--only", "h1s", "--peer", "wrk"]).unwrap()).is_ok());
    }

    #[test]
    fn every_work_is_listed() {
        assert_eq!(list().lines().count(), WORKS.len());
        assert!(list().contains("h2c-nghttpd"));
    }
}
