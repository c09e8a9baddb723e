//! The servers' own times of a run's requests: from the lines of their logs, joined with the clients' rows by
//! the request's name, or from the packets at a server's link if its log is coarse.

mod packets;

use std::collections::{BTreeMap, BTreeSet};

use drive::AccessLogFile;
use lab::{Lab, LabError, Observation};
use model::plan::Cell;
use model::record::{RunRecord, ServerRequest, TimeSource};
use model::sample::{RequestName, Sample};
use model::units::counted;
use model::{HttpVersion, Variant};
use workload::formats::access_log::{Log, LogLine};

use packets::{Exchange, RequestEnd, ServerTimes, server_times};

/// If a log rounds to more than this, the times come from packets where possible.
const COARSE_NS: u64 = 100_000;
/// The most lines that a server may log: for each request, and in addition.
const LINES_PER_REQUEST: usize = 2;
const FURTHER_LINES: usize = 1_000;

/// A server of the run whose own times are read.
#[derive(Debug)]
pub(crate) struct TimedServer {
    /// Its place in its chain: 0 is the front server.
    pub(crate) server: u16,
    /// Its place among the reports of the run's servers.
    pub(crate) report: usize,
    /// Its node.
    pub(crate) node: String,
    /// Its adapter's name.
    pub(crate) name: String,
    /// Its log, if it writes one.
    pub(crate) log: Option<AccessLogFile>,
    /// The ports that it listens on.
    pub(crate) ports: Vec<u16>,
    /// The variant of its requests; `None` where it is that of the cell's clients.
    pub(crate) variant: Option<Variant>,
}

impl TimedServer {
    /// Whether its log is so coarse that packets are needed.
    fn needs_packets(&self) -> bool {
        let precision_ns = self.log.as_ref().and_then(|file| file.log.precision_ns());
        precision_ns.is_some_and(|precision_ns| precision_ns > COARSE_NS)
    }
}

/// Begins to observe the packets of servers whose logs are coarse.
pub(crate) fn begin(lab: &Lab, servers: &[TimedServer]) {
    for server in servers.iter().filter(|server| server.needs_packets()) {
        // A link that cannot be observed leaves the log as the only source; the rows name their source.
        let _ = lab.begin_observing(&server.node, &server.ports);
    }
}

/// Returns the observed packets, once the clients are done.
///
/// # Errors
/// An emulator ended.
pub(crate) fn end(lab: &Lab, servers: &[TimedServer]) -> Result<Vec<Observation>, LabError> {
    if servers.iter().any(TimedServer::needs_packets) { lab.end_observing() } else { Ok(Vec::new()) }
}

/// Adds the logs of servers that have ended to the record, with the reason where a log is incomplete.
/// `run_start_ns` is the reading of the monotonic clock at which the clock of the clients' rows is 0.
pub(crate) fn collect(
    servers: &[TimedServer],
    seen: Vec<Observation>,
    warm_requests: usize,
    cells: &[Cell],
    run_start_ns: u64,
    record: &mut RunRecord,
) {
    let mut seen: BTreeMap<String, Observation> = seen.into_iter().fold(BTreeMap::new(), merge);
    for server in servers {
        let most_lines = (record.samples.len() + warm_requests) * LINES_PER_REQUEST + FURTHER_LINES;
        let read = server.log.as_ref().map_or(Ok(None), |file| file.read(most_lines));
        let fault = match read {
            Ok(Some(log)) => {
                let precision_ns = server.log.as_ref().and_then(|file| file.log.precision_ns()).unwrap_or(0);
                let mut rows: Vec<ServerRequest> =
                    log.lines.iter().map(|line| row(server.server, line, precision_ns)).collect();
                let mut missed = 0;
                if let Some(seen) = seen.remove(&server.node).filter(|_| server.needs_packets()) {
                    missed = seen.missed;
                    refine(&mut rows, seen, record, cells, server.variant, run_start_ns);
                }
                record.server_requests.append(&mut rows);
                fault_of(&server.name, &log, missed)
            }
            Ok(None) => Some(format!("servers/{}/server.toml does not describe its log", server.name)),
            Err(error) => Some(format!("{error:#}")),
        };
        if let Some(report) = record.servers.get_mut(server.report) {
            report.log_fault = report.log_fault.take().or(fault);
        }
    }
}

/// Joins the packets of one node, whatever the link.
fn merge(mut all: BTreeMap<String, Observation>, seen: Observation) -> BTreeMap<String, Observation> {
    match all.get_mut(&seen.node) {
        Some(of_node) => {
            of_node.segments.extend(seen.segments);
            of_node.missed += seen.missed;
            of_node.whole_until_ns = of_node.whole_until_ns.min(seen.whole_until_ns);
        }
        None => drop(all.insert(seen.node.clone(), seen)),
    }
    all
}

fn row(server: u16, line: &LogLine, precision_ns: u64) -> ServerRequest {
    ServerRequest {
        server,
        group: line.name.group,
        request: line.name.request,
        request_time_ns: line.request_time_ns,
        precision_ns,
        source: TimeSource::Log,
        logged_unix_ns: line.logged_unix_ns,
        status: line.status,
        body_bytes: line.body_bytes,
        remote_port: line.remote_port,
        ..ServerRequest::default()
    }
}

/// Why a log, or the packets in its place, are incomplete.
fn fault_of(name: &str, log: &Log, missed: u64) -> Option<String> {
    if let Some(first) = &log.first_fault {
        let lines = counted(log.unreadable, "line");
        return Some(format!("the log of {name} has {lines} that cannot be read; {first}"));
    }
    if log.beyond > 0 {
        return Some(format!("the log of {name} has {} too many", counted(log.beyond, "line")));
    }
    if missed > 0 {
        let packets = counted(missed, "packet");
        return Some(format!("{packets} of {name} exceeded the buffer; later requests have the log's time"));
    }
    let is_anonymous = log.lines.is_empty() && log.unrelated > 0;
    let lines = counted(log.unrelated, "line");
    is_anonymous.then(|| format!("the log of {name} has {lines} without a request's id, and no other"))
}

/// Replaces the log's times by those of the packets where packets show them.
fn refine(
    rows: &mut [ServerRequest],
    seen: Observation,
    record: &RunRecord,
    cells: &[Cell],
    variant: Option<Variant>,
    run_start_ns: u64,
) {
    let mut samples: Vec<&Sample> = record.samples.iter().collect();
    samples.sort_by_key(|sample| name_of(sample));
    let find =
        |name| samples.binary_search_by_key(&name, |sample| name_of(sample)).ok().map(|at| samples[at]);
    let mut ports = BTreeMap::new();
    let (mut exchanges, mut places) = (Vec::new(), Vec::new());
    for (place, row) in rows.iter().enumerate() {
        let name = RequestName { group: row.group, request: row.request };
        let Some((sample, port)) = find(name).zip(row.remote_port) else { continue };
        if row.server == 0 {
            ports.insert((sample.group, sample.connection), port);
        }
        if let Some(exchange) = exchange(sample, port, variant.or(variant_of(cells, sample)), run_start_ns) {
            exchanges.push(exchange);
            places.push((place, name));
        }
    }
    // Requests that the log does not name may have overlapped with those that it names.
    let named: BTreeSet<RequestName> = places.iter().map(|(_, name)| *name).collect();
    for sample in samples.iter().filter(|sample| !named.contains(&name_of(sample))) {
        let port = ports.get(&(sample.group, sample.connection));
        exchanges
            .extend(port.and_then(|port| exchange(sample, *port, variant_of(cells, sample), run_start_ns)));
    }
    for ((place, _), at) in places.into_iter().zip(server_times(seen, &exchanges)) {
        if let Some(at) = at {
            apply_times(&mut rows[place], at, run_start_ns);
        }
    }
}

fn name_of(sample: &Sample) -> RequestName {
    RequestName { group: sample.group, request: sample.request }
}

fn variant_of(cells: &[Cell], sample: &Sample) -> Option<Variant> {
    cells.get(usize::from(sample.group)).map(|cell| cell.group.variant)
}

/// The request as an exchange of packets; `None` where packets cannot show it.
fn exchange(sample: &Sample, port: u16, variant: Option<Variant>, run_start_ns: u64) -> Option<Exchange> {
    let variant = variant?;
    let end = match variant.http() {
        HttpVersion::Http11 => RequestEnd::LastArrival,
        HttpVersion::Http2 if sample.request_body_bytes == 0 => RequestEnd::BeforeResponse,
        _ => return None,
    };
    Some(Exchange {
        port,
        from_ns: run_start_ns.checked_add(sample.sent_ns?)?,
        until_ns: run_start_ns.checked_add(sample.done_ns?)?,
        end,
        is_tls: variant.is_encrypted(),
    })
}

/// Writes the times of packets into a row.
fn apply_times(row: &mut ServerRequest, at: ServerTimes, run_start_ns: u64) {
    let since_start = |at_ns: u64| at_ns.checked_sub(run_start_ns);
    row.log_time_ns = Some(row.request_time_ns);
    row.request_time_ns = at.sent_ns.saturating_sub(at.arrived_ns);
    row.precision_ns = at.uncertain_ns.into();
    row.source = TimeSource::Packets;
    row.arrived_ns = since_start(at.arrived_ns);
    row.first_sent_ns = at.first_sent_ns.and_then(since_start);
    row.sent_ns = since_start(at.sent_ns);
}
