//! Interleaved pairs of short runs: ours and the peer's, in alternating order, on the same server.

use std::process::Command;
use std::time::{Duration, Instant};

use analysis::Distribution;
use anyhow::{Context, Result, ensure};
use lab::Exit;
use serde::Serialize;

use crate::child::Running;
use crate::machine::{self, Disturbance};
use crate::parse;
use crate::servers::{Bench, Server};
use crate::tools::Tool;
use crate::works::Work;

/// A generator may take this much longer than requested.
const GRACE: Duration = Duration::from_secs(10);

/// What a run cost, or the medians of one generator's runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Cost {
    /// CPU per request in user space, microseconds.
    pub(crate) user_us: f64,
    /// CPU per request in the kernel, microseconds.
    pub(crate) system_us: f64,
    /// CPU per request, both, microseconds.
    pub(crate) total_us: f64,
    /// The server's CPU per request meanwhile, microseconds.
    pub(crate) server_us: f64,
    pub(crate) requests_per_second: f64,
}

impl Cost {
    /// The medians of several runs' costs.
    pub(crate) fn medians(runs: impl Iterator<Item = Cost> + Clone) -> Option<Cost> {
        let median = |part: fn(Cost) -> f64| runs.clone().map(part).collect::<Distribution>().median();
        Some(Cost {
            user_us: median(|run| run.user_us)?,
            system_us: median(|run| run.system_us)?,
            total_us: median(|run| run.total_us)?,
            server_us: median(|run| run.server_us)?,
            requests_per_second: median(|run| run.requests_per_second)?,
        })
    }
}

/// One run of one generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) cost: Cost,
    pub(crate) disturbance: Disturbance,
}

/// One run of ours and its neighbour in time, one of the peer's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) ours: Reading,
    pub(crate) peer: Reading,
}

/// How often and how long.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Extent {
    pub(crate) pairs: u32,
    pub(crate) seconds: u32,
}

/// Measures one row.
///
/// # Errors
/// A generator fails, or its output cannot be read.
pub(crate) fn pairs(
    bench: &Bench,
    server: &Server,
    work: &Work,
    tools: (Tool, Tool),
    extent: Extent,
) -> Result<Vec<Pair>> {
    let run = |tool: Tool| {
        reading(bench, server, work, tool, extent.seconds)
            .with_context(|| format!("{} at {}", tool.name(), server.url))
    };
    let (ours, peer) = tools;
    let most = if let Tool::Peer(peer) = peer { peer.most_pairs() } else { u32::MAX };
    (0..extent.pairs.min(most))
        .map(|index| {
            if index % 2 == 0 {
                let ours = run(ours)?;
                Ok(Pair { ours, peer: run(peer)? })
            } else {
                let peer = run(peer)?;
                Ok(Pair { ours: run(ours)?, peer })
            }
        })
        .collect()
}

fn reading(bench: &Bench, server: &Server, work: &Work, tool: Tool, seconds: u32) -> Result<Reading> {
    let command = tool.command(bench, server, work, seconds)?;
    let started = Started::begin(bench, server, tool.name(), &command, &[bench.client_cpu])?;
    let limit = Duration::from_secs(u64::from(seconds)) + GRACE;
    let Ended { exit, output, server_ns, disturbance } = started.finish(bench, server, limit)?;
    let answer = tool.parse(&output, bench, work).with_context(|| format!("output: {}", shorten(&output)))?;
    let user_ns = exit.cpu_user_ns.saturating_sub(answer.report_cpu_ns);
    let us = |ns: u64| ns as f64 / 1e3 / answer.requests as f64;
    let cost = Cost {
        user_us: us(user_ns),
        system_us: us(exit.cpu_system_ns),
        total_us: us(user_ns + exit.cpu_system_ns),
        server_us: us(server_ns),
        requests_per_second: answer.per_second,
    };
    Ok(Reading { cost, disturbance })
}

/// A generator that was started, and what machine and server had cost before.
#[derive(Debug)]
pub(crate) struct Started {
    running: Running,
    machine: machine::Total,
    server_ns: u64,
    began: Instant,
}

/// A generator that succeeded, and what ran meanwhile.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    pub(crate) output: String,
    /// The server's CPU time meanwhile, user and system.
    server_ns: u64,
    pub(crate) disturbance: Disturbance,
}

impl Started {
    /// Starts a command on these CPUs; `name` is that of its files.
    pub(crate) fn begin(
        bench: &Bench,
        server: &Server,
        name: &str,
        command: &Command,
        cpus: &[usize],
    ) -> Result<Self> {
        let (machine, server_ns, began) = (machine::total()?, server.cpu_ns()?, Instant::now());
        Ok(Started { running: bench.start(name, command, cpus)?, machine, server_ns, began })
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// It takes longer than the limit, or fails.
    pub(crate) fn finish(self, bench: &Bench, server: &Server, limit: Duration) -> Result<Ended> {
        let exit = bench.wait(&self.running, limit)?;
        let (machine, server_ns, elapsed) = (machine::total()?, server.cpu_ns()?, self.began.elapsed());
        let output = self.running.stdout()?;
        ensure!(
            exit.status.success(),
            "it ended with {}: {}",
            exit.status,
            parse::h123_failure(&output)
                .or_else(|| Some(self.running.last_words()).filter(|words| words != "no message"))
                .unwrap_or_else(|| shorten(&output))
        );
        let server_ns = server_ns.saturating_sub(self.server_ns);
        let known_ns = server_ns + exit.cpu_user_ns + exit.cpu_system_ns;
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let disturbance = machine::disturbance(self.machine, machine, known_ns, elapsed_ns);
        Ok(Ended { exit, output, server_ns, disturbance })
    }
}

/// The beginning of an output, on one line.
fn shorten(text: &str) -> String {
    const MOST: usize = 300;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { "none".to_owned() } else { line.chars().take(MOST).collect() }
}
