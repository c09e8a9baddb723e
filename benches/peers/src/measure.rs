//! Interleaved pairs of short runs: ours and the peer's, in alternating order, on the same server.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::machine::{self, Disturbance};
use crate::parse;
use crate::servers::{Bench, Server};
use crate::tools::Tool;
use crate::works::Work;

/// A generator may take so much longer than asked.
const GRACE: Duration = Duration::from_secs(10);

/// One run of one generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    pub(crate) requests: u64,
    pub(crate) per_second: f64,
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    /// The server's CPU time meanwhile, user and system.
    pub(crate) server_ns: u64,
    pub(crate) disturbance: Disturbance,
}

impl Reading {
    /// CPU per request in microseconds, in user space.
    pub(crate) fn user_us(&self) -> f64 {
        self.per_request_us(self.user_ns)
    }

    /// CPU per request in microseconds, in the kernel.
    pub(crate) fn system_us(&self) -> f64 {
        self.per_request_us(self.system_ns)
    }

    /// CPU per request in microseconds, both.
    pub(crate) fn total_us(&self) -> f64 {
        self.per_request_us(self.user_ns + self.system_ns)
    }

    /// The server's CPU per request in microseconds.
    pub(crate) fn server_us(&self) -> f64 {
        self.per_request_us(self.server_ns)
    }

    fn per_request_us(&self, ns: u64) -> f64 {
        ns as f64 / 1e3 / self.requests as f64
    }
}

/// One run of ours and its neighbour in time, one of the peer's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) ours: Reading,
    pub(crate) peer: Reading,
}

/// How often and how long.
#[derive(Clone, Copy, Debug)]
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
    stop: &AtomicBool,
) -> Result<Vec<Pair>> {
    let run = |tool: Tool| {
        reading(bench, server, work, tool, extent.seconds, stop)
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

fn reading(
    bench: &Bench,
    server: &Server,
    work: &Work,
    tool: Tool,
    seconds: u32,
    stop: &AtomicBool,
) -> Result<Reading> {
    let command = tool.command(bench, server, work, seconds)?;
    let (machine_before, server_before, began) = (machine::total()?, server.cpu()?, Instant::now());
    let running = bench.start(tool.name(), &command, &[bench.client_cpu])?;
    let ended = running.wait(Duration::from_secs(u64::from(seconds)) + GRACE, stop)?;
    let (machine_after, server_after, elapsed) = (machine::total()?, server.cpu()?, began.elapsed());
    let output = running.stdout()?;
    ensure!(
        ended.status.success(),
        "it ended with {}: {}",
        ended.status,
        parse::h123_failure(&output)
            .or_else(|| Some(running.last_words()).filter(|words| words != "no message"))
            .unwrap_or_else(|| shorten(&output))
    );
    let answer = tool.parse(&output, bench, work).with_context(|| format!("output: {}", shorten(&output)))?;
    let server_ns = (server_after.user_ns + server_after.system_ns)
        .saturating_sub(server_before.user_ns + server_before.system_ns);
    let known_ns = server_ns + ended.cpu_user_ns + ended.cpu_system_ns;
    let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
    Ok(Reading {
        requests: answer.requests,
        per_second: answer.per_second,
        user_ns: ended.cpu_user_ns.saturating_sub(answer.report_cpu_ns),
        system_ns: ended.cpu_system_ns,
        server_ns,
        disturbance: machine::disturbance(machine_before, machine_after, known_ns, elapsed_ns),
    })
}

/// The beginning of an output, on one line.
fn shorten(text: &str) -> String {
    const MOST: usize = 300;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { "none".to_owned() } else { line.chars().take(MOST).collect() }
}
