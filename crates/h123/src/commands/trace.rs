//! `h123 trace`: one request per variant, with the time of each phase.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use comfy_table::CellAlignment;
use model::assignment::{ASSIGNMENT_VERSION, Assignment};
use model::options::{Options, ProtocolOptions};
use model::sample::{ConnectionRow, Outcome, Sample};
use model::units::{self, format_ns};
use model::workload::{ClosedLoop, LoopLoad, Workload};
use model::{Pins, Variant};
use serde::Serialize;
use serde_json::json;

use crate::connect::advice;
use crate::connect::target::{TrustOptions, Url, variant_for};
use crate::connect::tls_options::{TlsArgs, qlog_folder};
use crate::exit::{Exit, UsageError};
use crate::terminal::{self, print};

/// Send one request per variant over a new connection, and show the time of each phase
#[derive(Args, Debug)]
#[command(after_help = "Examples, with `h123 serve` running:
  h123 trace http://127.0.0.1:8080/ --variant h1 --json
  h123 trace https://127.0.0.1:8083/large/ --variant h2 --cacert h123-ca.pem
  h123 trace https://127.0.0.1:8081/ --variant h1s --tls 1.3 --groups x25519 -k")]
pub(crate) struct TraceArgs {
    /// The URL
    ///
    /// Example: https://www.example.test/
    url: String,
    /// Use only this variant (repeatable) [default: all variants of the URL's scheme]
    ///
    /// Example: --variant h2 --variant h3
    #[arg(long)]
    variant: Vec<Variant>,
    /// Stop waiting for a variant after this long
    ///
    /// Example: --timeout 2s
    #[arg(long, default_value = "10s", value_parser = units::parse_duration_ns)]
    timeout: u64,
    /// Print the result as JSON
    ///
    /// Example: --json
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trust: TrustOptions,
    #[command(flatten)]
    tls: TlsArgs,
}

/// Runs the command.
///
/// # Errors
/// Wrong usage; a name that does not resolve; a failure of the tool itself.
pub(crate) fn run(args: &TraceArgs, stop: &Arc<AtomicBool>) -> Result<Exit> {
    let url = Url::parse(&args.url)?;
    for variant in &args.variant {
        variant_for(&url, Some(*variant))?;
    }
    if args.timeout == 0 {
        return Err(UsageError("--timeout must be more than 0".into()).into());
    }
    let trust = args.trust.resolve()?;
    let variants = if args.variant.is_empty() { url.variants() } else { args.variant.clone() };
    let tls = args.tls.resolve(&variants, false)?;
    let (address, dns) = url.resolve()?;
    let mut traces = Vec::new();
    for variant in variants {
        let assignment = Assignment {
            options: Options {
                protocols: ProtocolOptions {
                    tls: tls.clone(),
                    qlog: qlog_folder(variant),
                    ..ProtocolOptions::default()
                },
                ..Options::default()
            },
            version: ASSIGNMENT_VERSION,
            group: 0,
            node: "local".to_owned(),
            clock: load::Clock::begin(),
            target: url.target(variant, address, trust.clone()),
            workload: Workload::Closed(ClosedLoop::new(
                LoopLoad { requests: Some(1), ..LoopLoad::new(&url.path) },
                None,
            )),
            pins: Pins::default(),
            seed: 0,
            clients: model::Clients::ONE,
            deadline_ns: args.timeout,
            ends_ns: None,
        };
        load::check(&assignment).map_err(|error| UsageError(format!("{error:#}")))?;
        let report = load::run(&assignment, stop)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(Exit::Interrupted);
        }
        traces.push(Trace::of(variant, dns, &report));
    }
    if args.json {
        let whole = json!({ "url": args.url, "address": address, "traces": traces });
        print(&serde_json::to_string_pretty(&whole)?)?;
    } else {
        print(&format!("{} ({address})\n{}", args.url, table(&traces)))?;
        for trace in &traces {
            if let Some(reason) = &trace.reason {
                print(&format!("{}: {reason}", trace.variant))?;
            }
        }
    }
    Ok(if traces.iter().any(|trace| trace.reason.is_none()) { Exit::Done } else { Exit::Invalid })
}

/// The phases of one request; `None` for a phase that did not happen.
#[derive(Serialize)]
struct Trace {
    variant: Variant,
    dns_ns: u64,
    connect_ns: Option<u64>,
    handshake_ns: Option<u64>,
    wait_ns: Option<u64>,
    transfer_ns: Option<u64>,
    total_ns: Option<u64>,
    negotiated: String,
    security: String,
    status: Option<u16>,
    body_bytes: u64,
    #[serde(rename = "failure")]
    reason: Option<String>,
}

impl Trace {
    fn of(variant: Variant, dns: Duration, report: &load::Report) -> Self {
        let dns_ns = u64::try_from(dns.as_nanos()).unwrap_or(u64::MAX);
        let sample = report.samples.first();
        let row = report.connections.last();
        let minus = |later: Option<u64>, earlier: Option<u64>| Some(later?.saturating_sub(earlier?));
        let opened = row.map(|row| row.opened_ns);
        let connected = row.and_then(|row| row.connected_ns);
        let ready = row.and_then(|row| row.ready_ns);
        let first = sample.and_then(|sample| sample.first_byte_ns);
        let done = sample.and_then(|sample| sample.done_ns);
        let handshake = if variant.is_quic() { minus(ready, opened) } else { minus(ready, connected) };
        Trace {
            variant,
            dns_ns,
            connect_ns: minus(connected, opened),
            handshake_ns: handshake.filter(|_| variant.is_encrypted()),
            // From the end of the phase before it, so that the phases add up to the total.
            wait_ns: minus(first, ready),
            transfer_ns: minus(done, first),
            total_ns: minus(done, opened).filter(|_| first.is_some()).map(|total| total + dns_ns),
            negotiated: sample
                .and_then(|sample| sample.version)
                .map_or("–".to_owned(), |version| version.to_string()),
            security: row.map(security).unwrap_or_default(),
            status: sample.and_then(|sample| sample.status),
            body_bytes: sample.map_or(0, |sample| sample.response_body_bytes),
            reason: reason(sample, row),
        }
    }
}

/// Why there is no response, or why it is wrong.
fn reason(sample: Option<&Sample>, row: Option<&ConnectionRow>) -> Option<String> {
    let of = |outcome: &Outcome| match outcome {
        Outcome::Ok => None,
        Outcome::Failed(failure) => {
            let advice = advice::on(failure.kind, &failure.reason).map(|advice| format!("; {advice}"));
            Some(failure.reason.clone() + advice.as_deref().unwrap_or(""))
        }
        Outcome::Unsupported(reason) => Some(reason.clone()),
    };
    match sample {
        Some(sample) => of(&sample.outcome),
        None => row.and_then(|row| of(&row.outcome)).or(Some("no response".to_owned())),
    }
}

fn security(row: &ConnectionRow) -> String {
    let parts = [&row.tls_version, &row.cipher_suite, &row.key_exchange];
    parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(" ")
}

fn table(traces: &[Trace]) -> String {
    let phases = ["DNS", "connect", "TLS or QUIC", "wait", "transfer", "total"];
    let mut table = terminal::table(&[&["variant"], &phases[..], &["negotiated", "status"]].concat());
    let time = |ns: Option<u64>| ns.map_or("–".to_owned(), format_ns);
    for trace in traces {
        table.add_row([
            trace.variant.to_string(),
            time(Some(trace.dns_ns)),
            time(trace.connect_ns),
            time(trace.handshake_ns),
            time(trace.wait_ns),
            time(trace.transfer_ns),
            time(trace.total_ns),
            trace.negotiated.clone(),
            trace.status.map_or("–".to_owned(), |status| status.to_string()),
        ]);
    }
    for column in 1..=6 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}
