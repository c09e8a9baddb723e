//! A run as the metrics of whole runs see it: what it left behind, and sums over its requests.

use model::assignment::{ClientReport, DnsLookup};
use model::external::ExternalReport;
use model::page_events::PageEvents;
use model::plan::{Cell, ClientGroup};
use model::player::PlayerEvent;
use model::record::{RunRecord, ServerReport};
use model::sample::{ConnectionRow, Sample};
use model::tally::RequestSums;
use model::workload::Workload;

/// Sums over the requests that count. Sums of two sets of requests merge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// All requests. Response body bytes include those of requests that failed.
    pub all: RequestSums,
    /// Requests that succeeded.
    pub requests_ok: u64,
    /// Response body bytes of requests that succeeded.
    pub ok_body_bytes: u64,
    /// Requests that succeeded and whose end has a timestamp.
    pub requests_succeeded: u64,
    /// The first request. In a page load it is the document.
    pub document: Option<Document>,
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
        self.all.record(sample);
        self.requests_ok += u64::from(is_ok);
        self.ok_body_bytes += if is_ok { sample.response_body_bytes } else { 0 };
        self.requests_succeeded += u64::from(is_ok && sample.done_ns.is_some());
        let first_byte_ns = sample.first_byte_ns.filter(|_| is_ok);
        self.add_document(Some(Document { request: sample.request, first_byte_ns }));
    }

    /// Adds the sums of other requests.
    pub fn merge(&mut self, other: &Totals) {
        self.all.merge(&other.all);
        self.requests_ok += other.requests_ok;
        self.ok_body_bytes += other.ok_body_bytes;
        self.requests_succeeded += other.requests_succeeded;
        self.add_document(other.document);
    }

    fn add_document(&mut self, other: Option<Document>) {
        self.document = self.document.into_iter().chain(other).min_by_key(|document| document.request);
    }
}

/// A run as the metrics of whole runs see it.
pub struct View<'a> {
    /// What the run left behind. It holds no rows of requests.
    pub record: &'a RunRecord,
    /// The run's cell; `None` if the plan does not have it.
    pub cell: Option<&'a Cell>,
    /// What the group does.
    pub workload: &'a Workload,
    /// Sums over the requests that count: of one client, for metrics of each client.
    pub totals: Totals,
    /// The same sums of each client, if the group has several.
    pub of_clients: Vec<&'a Totals>,
    /// The connections: of one client, for metrics of each client.
    pub connections: Vec<&'a ConnectionRow>,
    /// The events of players: of one client, for metrics of each client.
    pub player: Vec<&'a PlayerEvent>,
    /// The page loads of browsers: of one client, for metrics of each client.
    pub page_events: Vec<&'a PageEvents>,
    /// The servers that the group uses.
    pub servers: &'a [ServerReport],
    /// Rows of requests, including the warm-up.
    pub rows: u64,
    /// The client groups whose workload the metric applies to.
    pub groups: Vec<u16>,
}

impl<'a> View<'a> {
    /// The connections.
    pub fn connections(&self) -> impl Iterator<Item = &'a ConnectionRow> + '_ {
        self.connections.iter().copied()
    }

    /// These groups as planned.
    pub fn planned(&self) -> impl Iterator<Item = &'a ClientGroup> + '_ {
        self.cell.map(|cell| &cell.group).into_iter().filter(|group| self.groups.contains(&group.group))
    }

    /// The reports of these groups.
    pub fn clients(&self) -> impl Iterator<Item = &'a ClientReport> + '_ {
        self.record.clients.iter().filter(|client| self.groups.contains(&client.group))
    }

    /// The reports of these groups' external clients.
    pub fn external(&self) -> impl Iterator<Item = &'a ExternalReport> + '_ {
        self.clients().filter_map(|client| client.external.as_deref())
    }

    /// The requests that count, with and without rows.
    pub fn requests(&self) -> u64 {
        self.totals.all.requests + self.external().map(ExternalReport::requests).sum::<u64>()
    }

    /// When the time began in which these requests are counted: with the first one intended, but not in the
    /// warm-up, in which a closed loop's first ones may have begun.
    pub fn began_ns(&self, totals: &Totals) -> Option<u64> {
        let warmup_ended_ns =
            self.clients().filter_map(|client| client.warmup).map(|warmup| warmup.ended_ns).min();
        Some(totals.all.first_intended_ns?.max(warmup_ended_ns.unwrap_or(0)))
    }

    /// The connection that was opened first.
    pub fn first_connection(&self) -> Option<&'a ConnectionRow> {
        self.connections().min_by_key(|connection| connection.opened_ns)
    }

    /// The page load, where a browser made it.
    pub fn page_events(&self) -> Option<&'a PageEvents> {
        self.page_events.first().copied()
    }

    /// The DNS lookup that began first.
    pub fn dns_lookup(&self) -> Option<DnsLookup> {
        self.clients().filter_map(|client| client.dns_lookup).min_by_key(|dns_lookup| dns_lookup.began_ns)
    }
}
