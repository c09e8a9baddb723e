//! `make bench-peers`: what a request costs `h123 load` in CPU time, compared with wrk, h2load, siege, ab,
//! oha and a plain quinn + h3 client.
//!
//! One server on one CPU, the generators on another, short runs of ours and the peer's in turn. The result is
//! the median of the pairwise ratios with its interval. `make bench-load` is a mode of the same program: the
//! schedule, memory and threads of `h123 load` alone. See docs/benchmarks.md.

mod alone;
mod child;
mod machine;
mod measure;
mod outcome;
mod parse;
mod row;
mod servers;
mod table;
mod tools;
mod works;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::measure::Extent;
use crate::outcome::Output;
use crate::row::Row;
use crate::servers::{Bench, Server};
use crate::table::{Comparison, Failure};
use crate::tools::Tool;
use crate::works::{Goal, Peer, WORKS, Work};

/// The tool failed, or a row could not be measured.
const FAILED: u8 = 1;
/// Wrong usage.
const USAGE: u8 = 2;
/// Ctrl-C.
const INTERRUPTED: u8 = 130;
/// Client CPU per request of `h123 load` against its peers, in interleaved pairs of runs
#[derive(Parser, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Exit status: 0 all rows measured (targets may be missed), 1 a row could not be measured, \
2 wrong usage, 130 interrupted"
)]
struct Cli {
    #[command(subcommand)]
    mode: Option<Mode>,
    #[command(flatten)]
    compare: Compare,
}

#[derive(Subcommand, Debug)]
enum Mode {
    /// `h123 load` on its own: accuracy of the schedule, memory per connection and over time, two threads
    Alone(alone::Alone),
}

/// What is compared, and how often.
#[derive(Args, Debug)]
struct Compare {
    /// Pairs of runs for each row; 6 are needed for an interval
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,
    /// Length of a run in whole seconds (wrk, siege and ab support no fractions)
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// Measure this work only (may be given again; see --list)
    #[arg(long, value_name = "WORK", value_parser = parse_work)]
    only: Vec<&'static Work>,
    /// Measure against this peer only (may be given again)
    #[arg(long, value_name = "PEER", value_parser = parse_peer)]
    peer: Vec<Peer>,
    /// Show the works, their peers and targets, and measure nothing
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    output: Output,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if cli.mode.is_none() && cli.compare.list {
        print!("{}", list());
        return ExitCode::SUCCESS;
    }
    let checked = match &cli.mode {
        None => check(&cli.compare),
        Some(Mode::Alone(asked)) => check_h123(&asked.output),
    };
    if let Err(error) = checked {
        eprintln!("bench-peers: {error}");
        return ExitCode::from(USAGE);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let result = watch_signals(&stop).and_then(|()| match &cli.mode {
        None => run(&cli.compare, &stop),
        Some(Mode::Alone(asked)) => alone::run(asked, &stop),
    });
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

/// Measures, prints and stores; returns whether everything requested was measured.
fn run(cli: &Compare, stop: &Arc<AtomicBool>) -> Result<bool> {
    let bench = Bench::prepare(h123(cli.output.h123.as_deref())?, stop)?;
    let mut outcome = Comparison::begin(Extent { pairs: cli.pairs, seconds: cli.seconds });
    let is_asked = |work: &&Work| cli.only.is_empty() || cli.only.iter().any(|only| only.name == work.name);
    for work in WORKS.iter().filter(is_asked) {
        measure_work(cli, &bench, work, &mut outcome);
        if bench.is_interrupted() {
            break;
        }
    }
    row::mark_best(&mut outcome.measured.rows);
    outcome.note_disturbances();
    outcome.publish("bench-peers", &cli.output, &table::table(&outcome.measured))
}

/// Starts the work's server and measures against every peer; what fails is kept with its reason.
fn measure_work(cli: &Compare, bench: &Bench, work: &'static Work, outcome: &mut Comparison) {
    let peers = peers_of(cli, work, &mut outcome.failures);
    let failed = |peer: &Peer, error: &anyhow::Error| Failure {
        work: work.name,
        peer: peer.name(),
        reason: format!("{error:#}"),
    };
    let server = match Server::start(bench, work) {
        Ok(server) => server,
        Err(error) => return outcome.failures.extend(peers.iter().map(|peer| failed(peer, &error))),
    };
    for peer in peers {
        eprintln!("{} against {} …", work.name, peer.name());
        let tools = (Tool::Ours, Tool::Peer(peer));
        match measure::pairs(bench, &server, work, tools, outcome.measured.extent) {
            Ok(pairs) => outcome.measured.rows.extend(Row::of(work, peer.name(), &pairs)),
            Err(error) => outcome.failures.push(failed(&peer, &error)),
        }
        if bench.is_interrupted() {
            return;
        }
    }
}

/// The peers that can do the work. One that is missing is a failure, but for oha, which is no Debian package.
fn peers_of(cli: &Compare, work: &'static Work, failures: &mut Vec<Failure>) -> Vec<Peer> {
    let asked = |peer: &Peer| cli.peer.is_empty() || cli.peer.contains(peer);
    let mut there = Vec::new();
    for peer in work.peers().filter(asked) {
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
fn check(cli: &Compare) -> Result<(), String> {
    let all: Vec<&Work> = if cli.only.is_empty() { WORKS.iter().collect() } else { cli.only.clone() };
    for peer in &cli.peer {
        if !all.iter().any(|work| work.peers().any(|can| can == *peer)) {
            let names: Vec<&str> = all.iter().map(|work| work.name).collect();
            return Err(format!(
                "--peer {}: it can do none of {}; see --list",
                peer.name(),
                names.join(", ")
            ));
        }
    }
    check_h123(&cli.output)
}

fn check_h123(output: &Output) -> Result<(), String> {
    match output.h123.as_deref().filter(|file| !file.is_file()) {
        Some(file) => Err(format!("--h123 {} is not a file; name the binary to measure", file.display())),
        None => Ok(()),
    }
}

/// The binary to measure: the given one, or the one in the folder of this program.
fn h123(given: Option<&Path>) -> Result<PathBuf> {
    let file = given.map_or_else(|| tools::sibling("h123"), |file| Ok(file.to_owned()))?;
    fs::canonicalize(&file).with_context(|| {
        format!(
            "there is no {}; build it (cargo build --release -p h123) or name it with --h123 FILE",
            file.display()
        )
    })
}

fn watch_signals(stop: &Arc<AtomicBool>) -> Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(stop)).context("cannot watch for signals")?;
    }
    Ok(())
}

fn list() -> String {
    let line = |work: &Work| {
        let peers: Vec<&str> = work.peers().map(Peer::name).collect();
        let goal = match work.goal {
            Goal::Cpu { ratio, .. } => format!("CPU ≤ {ratio:.2}"),
            Goal::Throughput { ratio } => format!("req/s ≥ {ratio:.2}"),
        };
        format!(
            "{:<12} {:<4} {:>7} B, {:>3} connections × {:>2}, {:<10} {goal:<12} against {}\n",
            work.name,
            work.variant.name(),
            work.body_bytes,
            work.connections,
            work.streams,
            work.server.name(),
            peers.join(", ")
        )
    };
    WORKS.iter().map(line).collect()
}

fn parse_work(name: &str) -> Result<&'static Work, String> {
    works::find(name).ok_or_else(|| format!("`{name}` is not a work; the works are {}", works::names()))
}

fn parse_peer(name: &str) -> Result<Peer, String> {
    Peer::ALL.into_iter().find(|peer| peer.name() == name).ok_or_else(|| {
        format!("`{name}` is not a peer; the peers are {}", Peer::ALL.map(Peer::name).join(", "))
    })
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
            (vec!["--only", "h4"], "the works are h1-c10, h1-c100"),
            (vec!["--peer", "curl"], "the peers are wrk, h2load"),
            (vec!["--pairs", "0"], "1..=1000"),
            (vec!["--seconds", "1.5"], "invalid"),
        ] {
            let error = parse(&words).expect_err("wrong input");
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(error.exit_code(), i32::from(USAGE));
        }
        let mixed = parse(&["--only", "h3", "--peer", "wrk"]).unwrap();
        assert!(check(&mixed.compare).unwrap_err().contains("none of h3"));
        let absent = parse(&["--h123", "/no/such/file"]).unwrap();
        assert!(check(&absent.compare).unwrap_err().contains("/no/such/file"));
        assert!(check(&parse(&["--only", "h1s", "--peer", "wrk"]).unwrap().compare).is_ok());
        // ab and siege are too far away for a comparison of requests/s.
        let far = parse(&["--only", "h1-coalesce", "--peer", "ab"]).unwrap();
        assert!(check(&far.compare).unwrap_err().contains("none of h1-coalesce"));
        assert!(parse(&["--pairs", "3", "alone"]).is_err());
        assert!(parse(&["alone", "--only", "speed"]).is_err());
        assert!(parse(&["alone", "--only", "memory", "--full"]).is_ok());
    }

    #[test]
    fn every_work_is_listed() {
        assert_eq!(list().lines().count(), WORKS.len());
        assert!(list().contains("h2c-nghttpd"));
    }
}
