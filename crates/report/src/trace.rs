//! One run of a cell, request by request: the data of the figures `waterfall` and `phases`.

use analysis::summary::CellSummary;
use model::RunRecord;
use model::sample::{Cause, Outcome};

/// A run with more requests than this is not traced, because a figure could not show them.
pub const MOST_TRACED_REQUESTS: u64 = 500;

/// The requests and connections of one run, in nanoseconds since the page was requested.
#[derive(Clone, Debug, PartialEq)]
pub struct RunTrace {
    /// Its cell.
    pub cell: u32,
    /// Its number in the plan.
    pub run: u32,
    /// How many clients began; the trace is that of the first.
    pub clients: u32,
    /// In the order in which they were wanted.
    pub requests: Vec<RequestTrace>,
    /// In the order in which they were opened.
    pub connections: Vec<ConnectionTrace>,
    /// Begin and end of the DNS lookup; `None` if there was none.
    pub dns_lookup_ns: Option<(u64, u64)>,
}

/// One request; timestamps in nanoseconds since the trace began.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestTrace {
    /// The requested URL.
    pub url: String,
    /// The connection that carried it.
    pub connection: Option<u32>,
    /// Why it began.
    pub cause: Cause,
    /// When the workload wanted it, or the server promised it.
    pub intended_ns: u64,
    /// When its first byte was sent.
    pub sent_ns: Option<u64>,
    /// When the first byte of the response arrived.
    pub first_byte_ns: Option<u64>,
    /// When its last byte arrived, or when it failed.
    pub done_ns: Option<u64>,
    /// Body bytes received.
    pub body_bytes: u64,
    /// Why it failed; `None` if it did not.
    pub failure: Option<String>,
}

/// One connection; timestamps in nanoseconds since the trace began.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionTrace {
    /// Its number.
    pub connection: u32,
    /// When the client began to open it.
    pub opened_ns: u64,
    /// When TCP was established; `None` for QUIC.
    pub connected_ns: Option<u64>,
    /// When requests could first be sent.
    pub ready_ns: Option<u64>,
    /// Whether it had a TLS or QUIC handshake.
    pub is_encrypted: bool,
}

/// A run by its number, and its first client if there were several: `run 3, client 0 of 20`.
pub(crate) fn of_client(run: u32, clients: u32) -> String {
    if clients > 1 { format!("run {run}, client 0 of {clients}") } else { format!("run {run}") }
}

impl RunTrace {
    /// The trace of the first client of a client group of a stored run.
    pub fn from_record(record: &RunRecord, group: u16) -> Self {
        let samples = || record.samples.iter().filter(move |row| row.group == group && row.client == 0);
        let connections =
            || record.connections.iter().filter(move |row| row.group == group && row.client == 0);
        let client = record.clients.iter().find(|client| client.group == group);
        let dns_lookup = client.and_then(|client| client.dns_lookup);
        let begin = samples()
            .map(|sample| sample.intended_ns)
            .chain(connections().map(|row| row.opened_ns))
            .chain(dns_lookup.map(|dns_lookup| dns_lookup.began_ns))
            .min()
            .unwrap_or(0);
        let since = |stamp: Option<u64>| stamp.map(|stamp| stamp.saturating_sub(begin));
        let urls = client.map_or(&[][..], |client| &client.urls);
        let request = |sample: &model::Sample| RequestTrace {
            url: urls
                .get(sample.url as usize)
                .cloned()
                .unwrap_or_else(|| format!("request {}", sample.request)),
            connection: sample.connection,
            cause: sample.cause,
            intended_ns: sample.intended_ns.saturating_sub(begin),
            sent_ns: since(sample.sent_ns),
            first_byte_ns: since(sample.first_byte_ns),
            done_ns: since(sample.done_ns),
            body_bytes: sample.response_body_bytes,
            failure: match &sample.outcome {
                Outcome::Ok => None,
                Outcome::Failed(failure) => Some(failure.reason.clone()),
                Outcome::Unsupported(reason) => Some(reason.clone()),
            },
        };
        let connection = |row: &model::ConnectionRow| ConnectionTrace {
            connection: row.connection,
            opened_ns: row.opened_ns.saturating_sub(begin),
            connected_ns: since(row.connected_ns),
            ready_ns: since(row.ready_ns),
            is_encrypted: row.tls_version.is_some() || row.connected_ns.is_none(),
        };
        RunTrace {
            cell: record.cell + u32::from(group),
            run: record.run,
            clients: client.map_or(1, |client| client.clients_begun),
            requests: samples().map(request).collect(),
            connections: connections().map(connection).collect(),
            dns_lookup_ns: dns_lookup.map(|dns_lookup| {
                (dns_lookup.began_ns.saturating_sub(begin), dns_lookup.ended_ns.saturating_sub(begin))
            }),
        }
    }

    /// The run, and the client of several.
    pub(crate) fn name(&self) -> String {
        of_client(self.run, self.clients)
    }

    /// When the last response was complete.
    pub(crate) fn end_ns(&self) -> u64 {
        self.requests.iter().filter_map(|request| request.done_ns).max().unwrap_or(0)
    }

    /// Whether the server's name was looked up.
    pub(crate) fn has_dns_lookup(&self) -> bool {
        self.dns_lookup_ns.is_some()
    }

    pub(crate) fn connection(&self, number: u32) -> Option<&ConnectionTrace> {
        self.connections.iter().find(|connection| connection.connection == number)
    }
}

/// The run whose value is nearest to the cell's median (or the study's statistic); the earliest of several.
pub fn representative_run(cell: &CellSummary, metric: &str) -> Option<u32> {
    let metric = cell.metrics.get(metric)?;
    let distance = |value: f64| (value - metric.compared().value).abs();
    metric.per_run.iter().min_by(|a, b| distance(a.value).total_cmp(&distance(b.value))).map(|run| run.run)
}
