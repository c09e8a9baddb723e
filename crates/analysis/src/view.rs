//! A run as the metrics of whole runs see it: what it left behind, and sums over its requests.

use model::assignment::{ClientReport, DnsLookup};
use model::external::ExternalReport;
use model::plan::{Cell, ClientGroup};
use model::record::RunRecord;
use model::sample::{ConnectionRow, Sample};

/// Sums over requests. Sums of two sets of requests merge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Requests.
    pub requests: u64,
    /// Requests that succeeded.
    pub requests_ok: u64,
    /// Requests that succeeded and whose end has a timestamp.
    pub requests_succeeded: u64,
    /// The earliest intended time of a request.
    pub first_intended_ns: Option<u64>,
    /// The latest end of a request.
    pub last_done_ns: Option<u64>,
    /// The first request. In a page load it is the document.
    pub document: Option<Document>,
    /// Request header bytes before compression.
    pub request_header_raw_bytes: u64,
    /// Request header bytes on the wire.
    pub request_header_wire_bytes: u64,
    /// Response header bytes before compression.
    pub response_header_raw_bytes: u64,
    /// Response header bytes on the wire.
    pub response_header_wire_bytes: u64,
    /// Request body bytes.
    pub request_body_bytes: u64,
    /// Response body bytes, including those of requests that failed.
    pub response_body_bytes: u64,
}

/// The first request of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document {
    /// The request's number.
    pub request: u64,
    /// When the headers of its response were read; `None` if it failed.
    pub first_byte_ns: Option<u64>,
}

impl Totals {
    /// Adds one request.
    pub fn add(&mut self, sample: &Sample) {
        let is_ok = sample.outcome.is_ok();
        let first_byte_ns = sample.first_byte_ns.filter(|_| is_ok);
        self.merge(&Totals {
            requests: 1,
            requests_ok: u64::from(is_ok),
            requests_succeeded: u64::from(is_ok && sample.done_ns.is_some()),
            first_intended_ns: Some(sample.intended_ns),
            last_done_ns: sample.done_ns,
            document: Some(Document { request: sample.request, first_byte_ns }),
            request_header_raw_bytes: sample.request_header_raw_bytes.into(),
            request_header_wire_bytes: sample.request_header_wire_bytes.into(),
            response_header_raw_bytes: sample.response_header_raw_bytes.into(),
            response_header_wire_bytes: sample.response_header_wire_bytes.into(),
            request_body_bytes: sample.request_body_bytes,
            response_body_bytes: sample.response_body_bytes,
        });
    }

    /// Adds the sums of other requests.
    pub fn merge(&mut self, other: &Totals) {
        self.requests += other.requests;
        self.requests_ok += other.requests_ok;
        self.requests_succeeded += other.requests_succeeded;
        self.first_intended_ns = self.first_intended_ns.into_iter().chain(other.first_intended_ns).min();
        self.last_done_ns = self.last_done_ns.max(other.last_done_ns);
        self.document =
            self.document.into_iter().chain(other.document).min_by_key(|document| document.request);
        self.request_header_raw_bytes += other.request_header_raw_bytes;
        self.request_header_wire_bytes += other.request_header_wire_bytes;
        self.response_header_raw_bytes += other.response_header_raw_bytes;
        self.response_header_wire_bytes += other.response_header_wire_bytes;
        self.request_body_bytes += other.request_body_bytes;
        self.response_body_bytes += other.response_body_bytes;
    }
}

/// A run as the metrics of whole runs see it.
pub struct View<'a> {
    /// What the run left behind. It holds no rows of requests.
    pub record: &'a RunRecord,
    /// The run's cell; `None` if the plan does not have it.
    pub cell: Option<&'a Cell>,
    /// Sums over the requests that count.
    pub totals: Totals,
    /// Rows of requests, including the warm-up.
    pub rows: u64,
    /// The client groups whose workload the metric applies to.
    pub groups: Vec<u16>,
}

impl<'a> View<'a> {
    /// The connections of these groups.
    pub fn connections(&self) -> impl Iterator<Item = &'a ConnectionRow> + '_ {
        let record = self.record;
        record.connections.iter().filter(|connection| self.groups.contains(&connection.group))
    }

    /// These groups as planned.
    pub fn planned(&self) -> impl Iterator<Item = &'a ClientGroup> + '_ {
        let groups = self.cell.map_or(&[][..], |cell| &cell.clients);
        groups.iter().filter(|group| self.groups.contains(&group.group))
    }

    /// The reports of these groups' client processes.
    pub fn clients(&self) -> impl Iterator<Item = &'a ClientReport> + '_ {
        let record = self.record;
        (0_u16..)
            .zip(&record.clients)
            .filter(|(group, _)| self.groups.contains(group))
            .map(|(_, client)| client)
    }

    /// The reports of these groups' external clients.
    pub fn external(&self) -> impl Iterator<Item = &'a ExternalReport> + '_ {
        self.clients().filter_map(|client| client.external.as_deref())
    }

    /// The requests that count, with and without rows.
    pub fn requests(&self) -> u64 {
        self.totals.requests + self.external().map(ExternalReport::requests).sum::<u64>()
    }

    /// The connection that was opened first.
    pub fn first_connection(&self) -> Option<&'a ConnectionRow> {
        self.connections().min_by_key(|connection| connection.opened_ns)
    }

    /// The DNS lookup that began first.
    pub fn dns_lookup(&self) -> Option<DnsLookup> {
        self.clients().filter_map(|client| client.dns_lookup).min_by_key(|dns_lookup| dns_lookup.began_ns)
    }
}
