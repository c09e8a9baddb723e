//! The generators' command lines.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use model::Variant;
use workload::formats::clients::Format;

use crate::parse::{self, Answer};
use crate::servers::{Bench, Server};
use crate::works::{Peer, Work};

/// ApacheBench stores 32 bytes per possible request: more than any server answers, and still small.
const AB_REQUESTS_PER_SECOND: u32 = 500_000;

/// The file with ab's percentiles.
const AB_PERCENTILES: &str = "percentiles.csv";

/// siege's clock ticks in whole seconds from an unknown beginning: with one second it may send nothing.
const SIEGE_LEAST_SECONDS: u32 = 2;

/// Read-coalescing, as a column of the table.
pub(crate) const COALESCE: &str = "30us";

/// A generator: ours or a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// `h123 load` as a user runs it: everything recorded, certificates verified.
    Ours,
    Peer(Peer),
}

impl Tool {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Tool::Ours => "h123",
            Tool::Peer(peer) => peer.name(),
        }
    }

    /// The command for a work of this many seconds.
    pub(crate) fn command(
        self,
        bench: &Bench,
        server: &Server,
        work: &Work,
        seconds: u32,
    ) -> Result<Command> {
        match self {
            Tool::Ours => Ok(ours(bench, server, work, seconds)),
            Tool::Peer(Peer::Wrk) => wrk(bench, server, work, seconds),
            Tool::Peer(Peer::H2load) => Ok(h2load(server, work, seconds)),
            Tool::Peer(Peer::Siege) => siege(bench, server, work, seconds),
            Tool::Peer(Peer::Ab) => Ok(ab(bench, server, work, seconds)),
            Tool::Peer(Peer::Quinn) => h3_peer(server, work, seconds),
            Tool::Peer(Peer::Oha) => Ok(oha(server, work, seconds)),
        }
    }

    /// Parses its output.
    pub(crate) fn parse(self, text: &str, bench: &Bench, work: &Work) -> Result<Answer> {
        let client = |format, file: &str| parse::client(format, text, file, work.connections);
        match self {
            Tool::Ours | Tool::Peer(Peer::Quinn) => parse::h123(text),
            Tool::Peer(Peer::Wrk) => client(Format::Wrk, ""),
            Tool::Peer(Peer::H2load) => parse::h2load(text),
            Tool::Peer(Peer::Siege) => client(Format::Siege, ""),
            Tool::Peer(Peer::Ab) => {
                let file =
                    fs::read_to_string(bench.path(AB_PERCENTILES)).context("cannot read ab's percentiles")?;
                client(Format::Ab, &file)
            }
            Tool::Peer(Peer::Oha) => parse::oha(text),
        }
        .with_context(|| format!("cannot read the output of {}", self.name()))
    }
}

/// Where a peer's program is; absent where it is not installed.
pub(crate) fn find_peer(peer: Peer) -> Option<PathBuf> {
    if peer == Peer::Quinn {
        return sibling("h3-peer").ok().filter(|path| path.exists());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(peer.name())).find(|path| path.is_file())
}

/// A program that was built together with this one.
pub(crate) fn sibling(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own path")?;
    Ok(own.parent().unwrap_or(Path::new(".")).join(name))
}

fn ours(bench: &Bench, server: &Server, work: &Work, seconds: u32) -> Command {
    let mut command = load(bench, server, work);
    command.args(["-t", "1", "-d", &format!("{seconds}s")]);
    if work.coalesces() {
        command.args(["--coalesce", COALESCE]);
    }
    command
}

/// `h123 load` for a work, without its extent.
pub(crate) fn load(bench: &Bench, server: &Server, work: &Work) -> Command {
    let mut command = Command::new(&bench.h123);
    command.arg("load").arg(&server.url).args(["--variant", work.variant.name(), "--json"]);
    command.args(["-c", &work.connections.to_string(), "-m", &work.streams.to_string()]);
    if work.variant.is_encrypted() {
        command.arg("--cacert").arg(&server.authority);
    }
    command
}

/// The script prints wrk's sums once, after the test, and the CPU time that this takes.
fn wrk(bench: &Bench, server: &Server, work: &Work, seconds: u32) -> Result<Command> {
    bench.write("report.lua", include_bytes!("../../../clients/wrk/report.lua"))?;
    let mut command = Command::new("wrk");
    command.args(["-t1", &format!("-c{}", work.connections), &format!("-d{seconds}s")]);
    command.arg("-s").arg(bench.path("report.lua")).arg(&server.url);
    Ok(command)
}

fn h2load(server: &Server, work: &Work, seconds: u32) -> Command {
    let mut command = Command::new("h2load");
    if matches!(work.variant, Variant::H1 | Variant::H1s) {
        command.arg("--h1");
    }
    command.args(["-t1", "-c", &work.connections.to_string(), "-m", &work.streams.to_string()]);
    command.args(["-D", &seconds.to_string()]).arg(&server.url);
    command
}

/// siege reads its settings from a file, which it would otherwise write into the user's home.
fn siege(bench: &Bench, server: &Server, work: &Work, seconds: u32) -> Result<Command> {
    let file = "verbose = false\ncolor = off\nquiet = true\nlogging = false\nprotocol = HTTP/1.1\n\
                connection = keep-alive\nlimit = 1000\nbenchmark = true\nparser = false\njson_output = true\n";
    bench.write("siegerc", file.as_bytes())?;
    let mut command = Command::new("siege");
    command.env("HOME", bench.folder.path()).arg("-R").arg(bench.path("siegerc"));
    let time = format!("{}S", seconds.max(SIEGE_LEAST_SECONDS));
    command.args(["-b", "-c", &work.connections.to_string(), "-t", &time]).arg(&server.url);
    Ok(command)
}

fn ab(bench: &Bench, server: &Server, work: &Work, seconds: u32) -> Command {
    let mut command = Command::new("ab");
    let most = AB_REQUESTS_PER_SECOND.saturating_mul(seconds);
    command.args(["-q", "-k", "-c", &work.connections.to_string()]);
    // The order matters: a time sets the number to 50 000.
    command.args(["-t", &seconds.to_string(), "-n", &most.to_string()]);
    command.arg("-e").arg(bench.path(AB_PERCENTILES)).arg(&server.url);
    command
}

fn h3_peer(server: &Server, work: &Work, seconds: u32) -> Result<Command> {
    let mut command = Command::new(sibling("h3-peer")?);
    command.arg(&server.url).args(["-c", &work.connections.to_string(), "-m", &work.streams.to_string()]);
    command.args(["-d", &seconds.to_string()]).arg("--cacert").arg(&server.authority);
    Ok(command)
}

fn oha(server: &Server, work: &Work, seconds: u32) -> Command {
    let mut command = Command::new("oha");
    command.args(["--no-tui", "--output-format", "json", "--insecure", "-z", &format!("{seconds}s")]);
    command.args(["-c", &work.connections.to_string()]);
    match work.variant {
        Variant::H1 | Variant::H1s => {}
        Variant::H2c | Variant::H2 => {
            command.args(["--http-version", "2", "-p", &work.streams.to_string()]);
        }
        Variant::H3 => {
            command.args(["--http-version", "3", "-p", &work.streams.to_string()]);
        }
    }
    command.arg(&server.url);
    command
}
