//! The options of `h123 load`, by topic. Conflicts and requirements between options are declared here; `plan`
//! checks those that depend on values.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use model::schedule::{Rate, Stage};
use model::script::{Replay, Speed};
use model::units;
use model::workload::ThinkTime;

use crate::connect::places::PlaceArgs;

const MOST_CONNECTIONS: u32 = 60_000;
const MOST_STREAMS: u32 = 10_000;

/// How much load, how fast and for how long.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadOptions {
    /// Connections held open to each host
    ///
    /// Example: -c 100
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CONNECTIONS)))]
    pub(crate) connections: u32,
    /// Requests in flight on each connection (HTTP/1.1 has one)
    ///
    /// Example: -m 10
    #[arg(short = 'm', long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_STREAMS)))]
    pub(crate) streams: u32,
    /// Threads; each has its share of the connections
    ///
    /// Example: -t 2
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
    /// Stop after this many requests (excluding the warm-up)
    ///
    /// Example: -n 100000
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// Stop after this long, such as 10s (default: 10s if no other option ends the test)
    ///
    /// Example: -d 30s
    #[arg(short, long, value_parser = parse_some_time, conflicts_with_all = ["stages", "script"])]
    pub(crate) duration: Option<u64>,
    /// Exclude requests that end in this time; with --requests or a rate, those that begin in it
    ///
    /// Example: --warmup 5s
    #[arg(long, value_parser = units::parse_duration_ns, default_value = "0s", conflicts_with = "script")]
    pub(crate) warmup: u64,
    /// Open loop: requests per second, whether or not the server keeps up
    ///
    /// Example: --rate 2000
    #[arg(short, long, value_name = "PER_SECOND", groups = ["open_loop", "rates"])]
    pub(crate) rate: Option<Rate>,
    /// Open loop with steps and ramps: 10s@100 holds a rate, 10s@100-1000 changes it linearly
    ///
    /// Example: --stages 10s@100,20s@100-2000
    #[arg(long, value_name = "TIME@RATE,…", value_delimiter = ',', groups = ["open_loop", "rates"])]
    pub(crate) stages: Vec<Stage>,
    /// Open loop: requests form a Poisson process instead of being evenly spread
    ///
    /// Example: --rate 2000 --poisson
    #[arg(long, requires = "rates")]
    pub(crate) poisson: bool,
    /// Open loop: replay a timing script once, over all connections: one of `h123 record`, or lines of
    /// h2load, `<milliseconds>⇥<URL>`
    ///
    /// Example: --script requests.tsv
    #[arg(
        long,
        visible_alias = "timing-script-file",
        value_name = "FILE",
        group = "open_loop",
        conflicts_with = "urls"
    )]
    pub(crate) script: Option<PathBuf>,
    /// Each connection replays the whole script, as h2load's clients do
    ///
    /// Example: --script requests.tsv --script-each
    #[arg(long, requires = "script", conflicts_with = "requests")]
    pub(crate) script_each: bool,
    /// When requests of a script are due: at their recorded times, or after the responses that they waited
    /// for
    ///
    /// Example: --script session.jsonl --replay dependency
    #[arg(long, value_name = "MODE", requires = "script", default_value = "schedule", value_parser = str::parse::<Replay>)]
    pub(crate) replay: Replay,
    /// How many times faster than recorded a script is replayed
    ///
    /// Example: --script session.jsonl --speed 10
    #[arg(long, value_name = "TIMES", requires = "script", default_value = "1", value_parser = str::parse::<Speed>)]
    pub(crate) speed: Speed,
    /// Open loop: at most this many due requests wait for a connection; further ones count as never sent
    ///
    /// Example: --queue 1000
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) queue: u32,
    /// Closed loop: open the connections evenly over this period (an open loop ramps with --stages)
    ///
    /// Example: --ramp-up 10s
    #[arg(long, value_parser = units::parse_duration_ns, value_name = "TIME", conflicts_with = "open_loop")]
    pub(crate) ramp_up: Option<u64>,
    /// Closed loop: wait between a response and the next request: 1s, or a random time of 0s-2s
    ///
    /// Example: --think-time 0s-2s
    #[arg(long, visible_alias = "think", value_parser = str::parse::<ThinkTime>, value_name = "TIME", conflicts_with = "open_loop")]
    pub(crate) think_time: Option<ThinkTime>,
    /// Stop when more than this share of requests has failed (of at least 100)
    ///
    /// Example: --stop-at-failed 5%
    #[arg(long, value_parser = units::parse_share, value_name = "SHARE")]
    pub(crate) stop_at_failed: Option<f64>,
    /// Random seed
    ///
    /// Example: --seed 7
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write a row for every request to a new file while the test runs (Parquet, with the columns of a
    /// result's requests.parquet); the printed numbers stay the same
    ///
    /// Example: --samples rows.parquet
    #[arg(long, value_name = "none|FILE.parquet", value_parser = parse_rows, default_value = "none")]
    pub(crate) samples: RowsPath,
}

/// The requests.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Requests")]
pub(crate) struct RequestArgs {
    /// The method (default: GET, or POST with a body)
    ///
    /// Example: -X PUT
    #[arg(short = 'X', long)]
    pub(crate) method: Option<String>,
    /// Send this field with every request, such as "Range: bytes=0-99" (repeatable)
    ///
    /// Example: -H 'Range: bytes=0-99'
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// Send this body, or the content of @FILE (no content-type is added)
    ///
    /// Example: --data @file.bin
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) data: Option<String>,
    /// Take URLs from a file, in order: lines of `URL [METHOD [BODY]]` as in siege
    ///
    /// Example: --urls urls.txt
    #[arg(long, value_name = "FILE")]
    pub(crate) urls: Option<PathBuf>,
    /// Take the URLs of the file in random order
    ///
    /// Example: --urls urls.txt --random
    #[arg(long, requires = "urls")]
    pub(crate) random: bool,
}

/// How connections are opened and used.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ConnectionArgs {
    /// Close a connection after this many requests; 1 opens one for every request
    ///
    /// Example: --requests-per-connection 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests_per_connection: Option<u64>,
    /// Fail connections that are not ready after this long, including TLS or QUIC; none: only the system's
    /// limit
    ///
    /// Example: --connect-timeout 2s
    #[arg(long, value_name = "TIME|none", value_parser = parse_limit, default_value = "10s")]
    pub(crate) connect_timeout: Limit,
    /// Fail requests without a complete response this long after they were sent; none: wait until the test
    /// ends
    ///
    /// Example: --timeout 2s
    #[arg(long, value_name = "TIME|none", value_parser = parse_limit, default_value = "60s")]
    pub(crate) timeout: Limit,
    /// Connect from these local addresses in turn (one address has about 28 000 ports)
    ///
    /// Example: --source 127.0.0.2,127.0.0.3
    #[arg(long, value_name = "IP,…", value_delimiter = ',')]
    pub(crate) source: Vec<IpAddr>,
    #[command(flatten)]
    pub(crate) places: PlaceArgs,
    /// Congestion control of TCP and QUIC: cubic, reno or bbr (default: the system's for TCP, cubic for QUIC)
    ///
    /// Example: --congestion-control bbr
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion_control: Option<String>,
    /// Leave Nagle's algorithm on: TCP gathers small writes
    ///
    /// Example: --nagle
    #[arg(long)]
    pub(crate) nagle: bool,
    /// Request this send buffer for each socket, such as 256KiB
    ///
    /// Example: --send-buffer 256KiB
    #[arg(long, value_name = "SIZE", value_parser = parse_buffer)]
    pub(crate) send_buffer: Option<u32>,
    /// Request this receive buffer for each socket
    ///
    /// Example: --receive-buffer 256KiB
    #[arg(long, value_name = "SIZE", value_parser = parse_buffer)]
    pub(crate) receive_buffer: Option<u32>,
    /// Throughput mode: after waking, wait this long for more to read, such as 30us; delays every response
    ///
    /// Example: --coalesce 30us
    #[arg(
        long,
        value_name = "TIME",
        value_parser = units::parse_duration_ns,
        conflicts_with_all = ["open_loop", "hgrm"]
    )]
    pub(crate) coalesce: Option<u64>,
    /// Server name for TLS and its certificate, instead of the URL's host
    ///
    /// Example: --sni www.example.test
    #[arg(long, value_name = "NAME")]
    pub(crate) sni: Option<String>,
}

/// A time limit in nanoseconds; `None` for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<u64>);

/// The file for rows; `None` for no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowsPath(pub(crate) Option<PathBuf>);

fn parse_rows(text: &str) -> Result<RowsPath, String> {
    match text {
        "none" => Ok(RowsPath(None)),
        file if file.ends_with(".parquet") => Ok(RowsPath(Some(file.into()))),
        other => Err(format!("`{other}` has another form; write `none` or a new FILE.parquet")),
    }
}

fn parse_limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        _ => match units::parse_duration_ns(text)? {
            0 => Err("write a time above 0, or `none`".to_owned()),
            limit_ns => Ok(Limit(Some(limit_ns))),
        },
    }
}

/// A duration above 0.
fn parse_some_time(text: &str) -> Result<u64, String> {
    match units::parse_duration_ns(text)? {
        0 => Err("write a time above 0".to_owned()),
        ns => Ok(ns),
    }
}

fn parse_buffer(text: &str) -> Result<u32, String> {
    const MOST_BYTES: u32 = 1 << 30;
    let bytes = units::parse_size_bytes(text)?;
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| (1..=MOST_BYTES).contains(bytes))
        .ok_or_else(|| format!("`{text}` is out of range; write a size from 1B to 1GiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        assert_eq!(parse_rows("none"), Ok(RowsPath(None)));
        assert_eq!(parse_rows("a.parquet"), Ok(RowsPath(Some("a.parquet".into()))));
        assert_eq!("0s-2ms".parse(), Ok(ThinkTime { least_ns: 0, most_ns: 2_000_000 }));
        assert_eq!("1ms".parse(), Ok(ThinkTime { least_ns: 1_000_000, most_ns: 1_000_000 }));
        let stage: Stage = "10s@0-1000".parse().unwrap();
        assert_eq!(
            (stage.from, stage.to, stage.duration_ns),
            (Rate(0), Rate(1_000_000), Some(10_000_000_000))
        );
        assert_eq!(parse_buffer("256KiB"), Ok(262_144));
        assert!("2s-1s".parse::<ThinkTime>().is_err() && parse_buffer("9GB").is_err());
        assert!(parse_rows("some").is_err());
        assert_eq!(parse_limit("none"), Ok(Limit(None)));
        assert_eq!(parse_limit("2s"), Ok(Limit(Some(2_000_000_000))));
        assert_eq!(parse_limit("0s"), Err("write a time above 0, or `none`".into()));
        assert!(parse_some_time("0ms").is_err());
    }
}
