//! `h123 load`: the load generator alone, or as the client of a cell (`--assignment -`).

mod limits;
pub(crate) mod options;
mod output;
mod plan;
pub(crate) mod protocol_options;

use std::io::{stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use clap::Args;
use model::Variant;

use self::options::{ConnectionArgs, LoadOptions, RequestArgs};
use self::output::{OutputArgs, RowFile, Setup, Summary};
use self::protocol_options::ProtocolArgs;
use crate::connect::target::TrustOptions;
use crate::connect::tls_options::TlsArgs;
use crate::exit::Exit;
use crate::terminal::note;

/// Load-test a server in a closed loop (each stream sends its next request after the last response) or in an
/// open loop (--rate, --stages, --script: requests have times at which they are due, and latency counts from
/// then)
#[derive(Args, Debug)]
#[command(after_help = "Examples, with `h123 serve` running:
  h123 load http://127.0.0.1:8080/ -c 10 -d 5s
  h123 load https://127.0.0.1:8083/ --variant h2 -c 10 -m 10 -n 100000 -k
  h123 load https://127.0.0.1:8084/ --variant h3 -d 10s --cacert h123-ca.pem --json
  h123 load http://127.0.0.1:8080/ -c 50 --rate 2000 --poisson -d 30s --warmup 5s
  h123 load http://127.0.0.1:8080/ -c 50 --stages 10s@100,20s@100-2000,10s@2000
  h123 load http://127.0.0.1:8080/ -c 100 --think-time 0s-2s --ramp-up 10s --stop-at-failed 5%
  printf '/small/\\n/large/\\n' > paths.txt
  h123 load http://127.0.0.1:8080 --urls paths.txt --random -c 20 -d 1min
  h123 load 'http://127.0.0.1:8080/bytes/{random:1-7000}' -c 20 -n 10000 --seed 7
  head -c 100000 /dev/urandom > file.bin
  h123 load http://127.0.0.1:8080/echo --data @file.bin -H 'Content-Type: video/mp4' -n 100
  printf '0.0\\t/small/\\n0.5\\t/large/\\n' > requests.tsv
  h123 load https://127.0.0.1:8081 --script requests.tsv -c 10 -k
  h123 load https://127.0.0.1:8081 --script requests.tsv --script-each -c 10 -k
  h123 load http://127.0.0.1:8080/ -n 10000 --samples rows.parquet
  h123 load http://127.0.0.1:8080/ -c 10 -d 5s --coalesce 30us
  h123 load https://localhost:8081/ --resolve localhost:8081:127.0.0.1 --cacert h123-ca.pem -n 100
  h123 load https://localhost/ --connect-to localhost:443:127.0.0.1:8081 -k -n 100
  h123 load https://127.0.0.1:8081/ --sni localhost --cacert h123-ca.pem -n 100
  h123 load http://127.0.0.1:8080/ -n 10000 --fail-if 'p99>50ms' --csv a.csv --hgrm a.hgrm --quiet
  h123 load http://127.0.0.1:8080/ -n 1000 --requests-per-connection 1 --source 127.0.0.2
  h123 load https://127.0.0.1:8081/ --tls 1.3 --groups x25519 -n 100 -k
  h123 load https://127.0.0.1:8084/ --variant h3 --requests-per-connection 10 --resume -n 100 -k
  h123 load https://127.0.0.1:8083/ --variant h2 --push --stream-window 64KiB -n 100 -k
  h123 load https://127.0.0.1:8084/ --variant h3 -d 10s --migrate-at 5s --migrate-to 127.0.0.2 -k
  SSLKEYLOGFILE=keys.txt h123 load https://127.0.0.1:8081/ -n 100 -k

h123 reads at most 64 MiB of each text file (--urls, --script, --cacert, --cert, --key) and 256 MiB of all bodies. \
A pipe must have a writer within 3 s and send something every 60 s.
{random:1-7000} in a URL becomes a random number in every request.
The environment variable SSLKEYLOGFILE names a file to which TLS and QUIC secrets are appended. QLOGDIR names a folder for qlog \
of the first 256 QUIC connections of each thread.
Exit status: 0 all requests succeeded, 2 wrong usage, 3 a request failed or none succeeded, 4 a --fail-if condition \
holds, 130 interrupted.")]
pub(crate) struct LoadArgs {
    /// The URL; with --urls or --script, the host for lines that have only a path
    ///
    /// Example: https://www.example.test/
    #[arg(required_unless_present_any = ["assignment", "urls", "script"])]
    pub(crate) url: Option<String>,
    /// h1, h1s, h2c, h2 or h3 (default: HTTP/1.1)
    ///
    /// Example: --variant h3
    #[arg(long)]
    pub(crate) variant: Option<Variant>,
    #[command(flatten)]
    pub(crate) load: LoadOptions,
    #[command(flatten)]
    pub(crate) requesting: RequestArgs,
    #[command(flatten)]
    pub(crate) connecting: ConnectionArgs,
    #[command(flatten)]
    pub(crate) trust: TrustOptions,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) protocols: ProtocolArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Read an assignment (JSON) from standard input and write framed messages: how the lab drives its
    /// clients
    #[arg(long, value_name = "-", hide = true, conflicts_with = "url")]
    assignment: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, a name that does not resolve, or a failure of the tool itself.
pub(crate) fn run(args: &LoadArgs, stop: &Arc<AtomicBool>) -> Result<Exit> {
    if args.assignment.is_some() {
        load::serve_assignment(stdin().lock(), stdout().lock(), stop)?;
        return Ok(Exit::Done);
    }
    let (assignments, dns_ns) = plan::assignments(args)?;
    limits::prepare(&assignments)?;
    args.output.check()?;
    let file = args.load.samples.0.as_deref().map(RowFile::create).transpose()?;
    let (reports, rows) = args.output.drive(&assignments, stop, file)?;
    for shortfall in limits::buffer_shortfalls(&assignments)? {
        note(false, &format!("warning: {shortfall}"));
    }
    let mut setup = Setup::of(&name(args), &assignments, dns_ns);
    if stop.load(Ordering::Relaxed) {
        // The schedule was cut short, so only the elapsed time counts.
        setup.schedule_ns = None;
    }
    let summary = Summary::of(setup, &reports, rows);
    let exit = args.output.write(&summary)?;
    if let Some(rows) = &summary.rows {
        rows.check()?;
    }
    Ok(if stop.load(Ordering::Relaxed) { Exit::Interrupted } else { exit })
}

/// The test's name: its URL, or the file with the URLs.
fn name(args: &LoadArgs) -> String {
    let file = args.load.script.as_ref().or(args.requesting.urls.as_ref());
    file.map_or_else(|| args.url.clone().unwrap_or_default(), |file| file.display().to_string())
}
