//! `h123 load`: the generator on its own, or as the client of a cell (`--assignment -`).

use std::io::{stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::Args;
use model::assignment::{ASSIGNMENT_VERSION, Assignment, Workload};
use model::schedule::{Arrivals, Rate, Schedule, Share, Stage};
use model::{Pins, Variant, units};

use crate::exit::{Exit, UsageError};
use crate::load_summary::LoadSummary;
use crate::target::{TrustOptions, Url, variant_for};
use crate::terminal::print;

/// A load test that nobody ends, ends after this long.
const DEFAULT_DURATION_NS: u64 = 10 * units::NANOS_PER_S;
/// After the last request was begun, this long is waited for its answer.
const GRACE_NS: u64 = 30 * units::NANOS_PER_S;
const MOST_CONNECTIONS: u32 = 60_000;
/// At most so many due requests of each thread wait for a connection.
const QUEUE_LIMIT: u32 = 1_000_000;
const MOST_STREAMS: u32 = 10_000;

/// Load one URL, closed loop: each stream of each connection sends its next request when its last is answered
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 load http://127.0.0.1:8080/ -c 10 -d 5s
  h123 load https://127.0.0.1:8443/ --variant h2 -c 10 -m 10 -n 100000 -k
  h123 load https://127.0.0.1:8443/ --variant h3 -d 10s --cacert ca.pem --json")]
pub(crate) struct LoadArgs {
    /// The URL
    #[arg(required_unless_present = "assignment")]
    url: Option<String>,
    /// Connections held open
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CONNECTIONS)))]
    connections: u32,
    /// Requests in flight on each connection (HTTP/1.1 has one)
    #[arg(short = 'm', long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_STREAMS)))]
    streams: u32,
    /// Threads; connections are shared out among them
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,
    /// Stop after so many requests
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Stop after so long, such as 10s (default 10s where no number is given)
    #[arg(short, long, value_parser = units::parse_duration_ns)]
    duration: Option<u64>,
    /// Open loop: so many requests a second, whether or not the server keeps up
    #[arg(short, long, value_name = "PER_SECOND")]
    rate: Option<Rate>,
    /// Requests that begin in this time are not counted
    #[arg(long, value_parser = units::parse_duration_ns, default_value = "0s")]
    warmup: u64,
    /// h1, h1s, h2c, h2 or h3 (default: HTTP/1.1)
    #[arg(long)]
    variant: Option<Variant>,
    #[command(flatten)]
    trust: TrustOptions,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Read an assignment (JSON) from standard input and write framed rows: how the lab drives its clients
    #[arg(long, value_name = "-", hide = true, conflicts_with = "url")]
    assignment: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// Wrong usage; a name that does not resolve; a failure of the tool itself.
pub(crate) fn run(args: &LoadArgs, stop: &Arc<AtomicBool>) -> Result<Exit> {
    if args.assignment.is_some() {
        load::serve_assignment(stdin().lock(), stdout().lock(), stop)?;
        return Ok(Exit::Done);
    }
    let assignments = assignments(args)?;
    let reports = drive_threads(&assignments, stop)?;
    let summary = LoadSummary::of(&assignments[0], args.url.as_deref().unwrap_or_default(), &reports);
    if args.json {
        print(&serde_json::to_string_pretty(&summary.to_json())?)?;
    } else {
        print(&summary.to_text())?;
    }
    if stop.load(std::sync::atomic::Ordering::Relaxed) {
        return Ok(Exit::Interrupted);
    }
    Ok(if summary.failed > 0 { Exit::Invalid } else { Exit::Done })
}

/// One assignment per thread.
fn assignments(args: &LoadArgs) -> Result<Vec<Assignment>> {
    let url = Url::parse(args.url.as_deref().unwrap_or_default())?;
    let variant = variant_for(&url, args.variant)?;
    if args.threads > args.connections {
        let (threads, connections) = (args.threads, args.connections);
        return Err(UsageError(format!(
            "found {threads} threads for {connections} connections, expected at most one thread per connection"
        ))
        .into());
    }
    let trust = args.trust.resolve()?;
    let (address, _) = url.resolve()?;
    let duration_ns = args.duration.or(args.requests.is_none().then_some(DEFAULT_DURATION_NS));
    let clock = load::Clock::begin();
    let share = |total: u64, index: u32| {
        let threads = u64::from(args.threads);
        total / threads + u64::from(u64::from(index) < total % threads)
    };
    Ok((0..args.threads)
        .map(|index| Assignment {
            version: ASSIGNMENT_VERSION,
            #[expect(clippy::cast_possible_truncation, reason = "at most 256 threads")]
            group: index as u16,
            node: "local".to_owned(),
            clock: clock.clone(),
            target: url.target(variant, address, trust.clone()),
            #[expect(clippy::cast_possible_truncation, reason = "a share of a u32")]
            workload: workload(args, &url, index, share(u64::from(args.connections), index) as u32),
            options: model::options::Options::default(),
            pins: Pins::default(),
            seed: 0,
            deadline_ns: duration_ns
                .map_or(u64::MAX, |duration| duration.saturating_add(args.warmup).saturating_add(GRACE_NS)),
        })
        .collect())
}

fn drive_threads(assignments: &[Assignment], stop: &Arc<AtomicBool>) -> Result<Vec<load::Report>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            assignments.iter().map(|assignment| scope.spawn(|| load::run(assignment, stop))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow::anyhow!("a worker thread panicked"))?)
            .collect::<Result<Vec<_>>>()
    })
    .context("the load test could not run")
}

fn workload(args: &LoadArgs, url: &Url, index: u32, connections: u32) -> Workload {
    let paths = vec![url.path.clone()];
    let duration_ns = args.duration.or(args.requests.is_none().then_some(DEFAULT_DURATION_NS));
    let (streams, warmup_ns) = (args.streams, args.warmup);
    match args.rate {
        Some(rate) => Workload::Open {
            paths,
            schedule: Schedule::Rates {
                stages: vec![Stage { from: rate, to: rate, duration_ns }],
                arrivals: Arrivals::Even,
                share: Share { index, of: args.threads },
            },
            connections,
            streams,
            requests: args.requests,
            warmup_ns,
            queue_limit: QUEUE_LIMIT,
        },
        None => {
            let threads = u64::from(args.threads);
            let share = |total: u64| total / threads + u64::from(u64::from(index) < total % threads);
            Workload::Closed {
                paths,
                connections,
                streams,
                requests: args.requests.map(share),
                duration_ns,
                warmup_ns,
            }
        }
    }
}
