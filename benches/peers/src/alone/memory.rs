//! Memory of `h123 load`: of each open connection, and of few and many requests.

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, getrlimit};

use super::measurement::Measurement;
use super::run::{Session, command};
use crate::servers::Server;
use crate::works::{Work, find};

/// The works, and how many kilobytes a connection of each may hold.
const OPEN: [(&str, f64); 2] = [("h1-c10", 5.0), ("h1s", 25.0)];
/// Two numbers of connections: the difference of their peaks is the connections', without the program itself.
const FEW: u32 = 1_000;
const MANY: u32 = 15_000;
/// Both processes need files in addition to their connections.
const SPARE_FILES: u64 = 200;
/// An address has about 28 000 ports for one destination; a port is free again after a minute.
const SOURCES: &str = "127.0.0.2,127.0.0.3,127.0.0.4,127.0.0.5";
const OPEN_SECONDS: u64 = 8;

/// The peaks of memory of few and many requests may differ by this much, in megabytes.
const GROWTH_MB: f64 = 4.0;
const FEW_REQUESTS: u64 = 100_000;
const MANY_REQUESTS: u64 = 10_000_000;
const FULL_REQUESTS: u64 = 100_000_000;
/// No server is as slow as this.
const LEAST_PER_SECOND: u64 = 5_000;

pub(super) fn per_connection(session: &mut Session<'_>) -> Result<Vec<Measurement>> {
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    ensure!(
        most >= u64::from(MANY) + SPARE_FILES,
        "the limit of open files is {most}; raise it to {} (ulimit -Hn)",
        u64::from(MANY) + SPARE_FILES
    );
    OPEN.iter()
        .map(|(name, target)| {
            let work = find(name).context("a work that is not in the list")?;
            let mut peak = |connections| held(session, &Work { connections, ..*work });
            let (few, many) = (peak(FEW)?, peak(MANY)?);
            let each = (many - few) / f64::from(MANY - FEW) / 1e3;
            let details = format!(
                "peak {:.1} MB with {MANY} connections, {:.1} MB with {FEW}, each with a request in flight",
                many / 1e6,
                few / 1e6
            );
            let what = format!("{}: of an open connection", work.variant.name());
            Ok(Measurement::at_most(what, each, *target, "kB", details))
        })
        .collect()
}

/// The peak of memory with this many open connections, in bytes.
fn held(session: &mut Session<'_>, work: &Work) -> Result<f64> {
    let bench = session.bench;
    let server = Server::start(bench, work)?;
    let mut command = command(bench, &server, work);
    command.args(["-d", &format!("{OPEN_SECONDS}s"), "--ramp-up", "3s"]);
    command.args(["--source", SOURCES]);
    let what = format!("{} with {} connections", work.variant.name(), work.connections);
    let ran = session
        .run(&server, &format!("memory {what}"), &command, &[bench.client_cpu], OPEN_SECONDS)
        .with_context(|| what.clone())?;
    let opened = ran.number("/connections")?;
    ensure!(opened == f64::from(work.connections), "{what}: found {opened} opened");
    Ok(ran.exit.max_resident_bytes as f64)
}

pub(super) fn over_time(session: &mut Session<'_>) -> Result<Vec<Measurement>> {
    let Session { bench, full, .. } = *session;
    let work = find("h1-c10").context("a work that is not in the list")?;
    let server = Server::start(bench, work)?;
    let mut peak_mb = |requests: u64| -> Result<f64> {
        let mut command = command(bench, &server, work);
        command.args(["-n", &requests.to_string()]);
        let (what, seconds) = (format!("{requests} requests"), requests / LEAST_PER_SECOND);
        let ran = session
            .run(&server, &what, &command, &[bench.client_cpu], seconds)
            .with_context(|| what.clone())?;
        let completed = ran.number("/requests/completed")?;
        ensure!(completed == requests as f64, "{what}: found {completed} completed");
        Ok(ran.exit.max_resident_bytes as f64 / 1e6)
    };
    let many = if full { FULL_REQUESTS } else { MANY_REQUESTS };
    let (short, long) = (peak_mb(FEW_REQUESTS)?, peak_mb(many)?);
    let details = format!("peak {short:.1} MB with {FEW_REQUESTS} requests, {long:.1} MB with {many}");
    let what = "growth with requests".to_owned();
    Ok(vec![Measurement::at_most(what, long - short, GROWTH_MB, "MB", details)])
}
