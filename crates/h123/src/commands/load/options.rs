//! The options of `h123 load`, by what they are about. What they mean together is settled in `load_plan`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use model::options::Think;
use model::schedule::{Rate, Stage};
use model::units;

const MOST_CONNECTIONS: u32 = 60_000;
const MOST_STREAMS: u32 = 10_000;

/// How much, how fast and for how long.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadOptions {
    /// Connections held open to each host
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CONNECTIONS)))]
    pub(crate) connections: u32,
    /// Requests in flight on each connection (HTTP/1.1 has one)
    #[arg(short = 'm', long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_STREAMS)))]
    pub(crate) streams: u32,
    /// Threads; connections are shared out among them
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    /// Stop after so many requests, those of --warmup not counted
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// Stop after so long, such as 10s (default 10s where nothing else ends the test)
    #[arg(short, long, value_parser = parse_some_time)]
    pub(crate) duration: Option<u64>,
    /// Requests that begin in this time are not counted
    #[arg(long, value_parser = units::parse_duration_ns, default_value = "0s")]
    pub(crate) warmup: u64,
    /// Open loop: so many requests a second, whether or not the server keeps up
    #[arg(short, long, value_name = "PER_SECOND")]
    pub(crate) rate: Option<Rate>,
    /// Open loop in steps and ramps: 10s@100 holds a rate, 10s@100-1000 changes it linearly
    #[arg(long, value_name = "TIME@RATE,…", value_delimiter = ',')]
    pub(crate) stages: Vec<Stage>,
    /// Spread the requests of an open loop as a Poisson process instead of evenly
    #[arg(long)]
    pub(crate) poisson: bool,
    /// Open loop: replay a timing script of h2load once, over all connections: lines of `<milliseconds>⇥<URL>`
    #[arg(long, visible_alias = "timing-script-file", value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// With --script: each connection replays the whole script, as h2load's clients do, in place of all together
    #[arg(long)]
    pub(crate) script_each: bool,
    /// Open loop: so many due requests wait for a connection; further ones are counted as never sent
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    pub(crate) queue: u32,
    /// Closed loop: open the connections over so long, at equal distances
    #[arg(long, value_parser = units::parse_duration_ns, value_name = "TIME")]
    pub(crate) ramp_up: Option<u64>,
    /// Closed loop: wait between an answer and the next request: 1s, or from 0s-2s at random
    #[arg(long, value_parser = parse_think, value_name = "TIME")]
    pub(crate) think: Option<Think>,
    /// Stop when more than this share of requests has failed (of at least 100)
    #[arg(long, value_parser = units::parse_share, value_name = "SHARE")]
    pub(crate) stop_at_failed: Option<f64>,
    /// What all randomness is drawn from
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write a row for every request to a new file while the test runs (Parquet, the columns of a result's
    /// requests.parquet); the numbers are the same with and without
    #[arg(long, value_name = "none|FILE.parquet", value_parser = parse_rows, default_value = "none")]
    pub(crate) samples: Rows,
}

/// What is asked for.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Requests")]
pub(crate) struct RequestArgs {
    /// The method (default: GET, or POST with a body)
    #[arg(short = 'X', long)]
    pub(crate) method: Option<String>,
    /// Send this field with every request, such as "Range: bytes=0-99" (repeatable)
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// Send this body, or @FILE for a file's content (no content-type is added)
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) data: Option<String>,
    /// Take URLs from a file, in order: lines of `URL [METHOD [BODY]]` as siege reads them
    #[arg(long, value_name = "FILE")]
    pub(crate) urls: Option<PathBuf>,
    /// Take the URLs of the file at random
    #[arg(long)]
    pub(crate) random: bool,
}

/// How connections are opened and used.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ConnectionArgs {
    /// Close a connection after so many requests; 1 opens one for every request
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests_per_connection: Option<u64>,
    /// A connection that is not ready after so long, TLS or QUIC included, has failed; none: the system's limit alone
    #[arg(long, value_name = "TIME|none", value_parser = parse_limit, default_value = "10s")]
    pub(crate) connect_timeout: Limit,
    /// A request that is not answered whole so long after it was sent has failed; none: wait as long as the test lasts
    #[arg(long, value_name = "TIME|none", value_parser = parse_limit, default_value = "60s")]
    pub(crate) timeout: Limit,
    /// Connect from these local addresses in turn (28 000 connections to one port need a second)
    #[arg(long, value_name = "IP,…", value_delimiter = ',')]
    pub(crate) source: Vec<IpAddr>,
    /// Connect to this place instead (repeatable), as in curl; an empty part means any, or as before
    #[arg(long, value_name = "HOST:PORT:TO_HOST:TO_PORT")]
    pub(crate) connect_to: Vec<String>,
    /// Use this address for a host (repeatable), as in curl
    #[arg(long, value_name = "HOST:PORT:IP")]
    pub(crate) resolve: Vec<String>,
    /// Connect by IPv4 only
    #[arg(short = '4', long)]
    pub(crate) ipv4: bool,
    /// Connect by IPv6 only
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Congestion control: cubic, reno or bbr, for TCP and QUIC (default: the system's for TCP, cubic for QUIC)
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion_control: Option<String>,
    /// Leave Nagle's algorithm on: TCP gathers small writes
    #[arg(long)]
    pub(crate) nagle: bool,
    /// Ask for this send buffer of each socket, such as 256KiB
    #[arg(long, value_name = "SIZE", value_parser = parse_buffer)]
    pub(crate) send_buffer: Option<u32>,
    /// Ask for this receive buffer of each socket
    #[arg(long, value_name = "SIZE", value_parser = parse_buffer)]
    pub(crate) receive_buffer: Option<u32>,
    /// For throughput: after waking, let reads gather for so long, such as 30us; delays every answer
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration_ns)]
    pub(crate) coalesce: Option<u64>,
    /// Server name for TLS and its certificate, instead of the URL's host
    #[arg(long, value_name = "NAME")]
    pub(crate) sni: Option<String>,
}

/// A limit of time in nanoseconds; `None` where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<u64>);

/// The file that rows go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rows(pub(crate) Option<PathBuf>);

fn parse_rows(text: &str) -> Result<Rows, String> {
    match text {
        "none" => Ok(Rows(None)),
        file if file.ends_with(".parquet") => Ok(Rows(Some(file.into()))),
        other => Err(format!("found `{other}`, expected `none` or a new FILE.parquet")),
    }
}

fn parse_limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        _ => match units::parse_duration_ns(text)? {
            0 => Err(format!("found `{text}`, expected more than 0, or `none`")),
            limit_ns => Ok(Limit(Some(limit_ns))),
        },
    }
}

/// A duration that something can happen in.
fn parse_some_time(text: &str) -> Result<u64, String> {
    match units::parse_duration_ns(text)? {
        0 => Err(format!("found `{text}`, expected more than 0")),
        ns => Ok(ns),
    }
}

fn parse_think(text: &str) -> Result<Think, String> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let think =
        Think { least_ns: units::parse_duration_ns(least)?, most_ns: units::parse_duration_ns(most)? };
    if think.least_ns > think.most_ns {
        return Err(format!("found `{text}`, expected the shorter time first"));
    }
    Ok(think)
}

fn parse_buffer(text: &str) -> Result<u32, String> {
    const MOST_BYTES: u32 = 1 << 30;
    let bytes = units::parse_size_bytes(text)?;
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| (1..=MOST_BYTES).contains(bytes))
        .ok_or_else(|| format!("found `{text}`, expected a size from 1B to 1GiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        assert_eq!(parse_rows("none"), Ok(Rows(None)));
        assert_eq!(parse_rows("a.parquet"), Ok(Rows(Some("a.parquet".into()))));
        assert_eq!(parse_think("0s-2ms"), Ok(Think { least_ns: 0, most_ns: 2_000_000 }));
        assert_eq!(parse_think("1ms"), Ok(Think { least_ns: 1_000_000, most_ns: 1_000_000 }));
        let stage: Stage = "10s@0-1000".parse().unwrap();
        assert_eq!(
            (stage.from, stage.to, stage.duration_ns),
            (Rate(0), Rate(1_000_000), Some(10_000_000_000))
        );
        assert_eq!(parse_buffer("256KiB"), Ok(262_144));
        assert!(parse_think("2s-1s").is_err() && parse_buffer("9GB").is_err());
        assert!(parse_rows("some").is_err());
        assert_eq!(parse_limit("none"), Ok(Limit(None)));
        assert_eq!(parse_limit("2s"), Ok(Limit(Some(2_000_000_000))));
        assert_eq!(parse_limit("0s"), Err("found `0s`, expected more than 0, or `none`".into()));
        assert!(parse_some_time("0ms").is_err());
    }
}
