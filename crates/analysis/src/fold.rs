//! One run folded into its summary, row by row: rows are seen once and not kept, so a run may have millions.

use std::collections::BTreeMap;

use model::assignment::ClientReport;
use model::external::ExternalReport;
use model::plan::{Cell, ClientGroup, Plan};
use model::record::RunRecord;
use model::sample::{ConnectionRow, FailureKind, Outcome, Phase, Sample};

use crate::distribution::{Distribution, Gathering};
use crate::metrics::{METRICS, Metric, Values};
use crate::monitor::MonitorFacts;
use crate::number;
use crate::rows::{Tries, Urls};
use crate::run::{GroupFacts, RunSummary, ShareOfRun, Third};
use crate::server_time::{ServerFold, ServerTimes};
use model::workload::{Workload, WorkloadKind};

/// IPv6 and TCP with time stamps.
const TCP_HEADER_BYTES: u32 = 40 + 32;

/// A study of hundreds of runs with millions of URLs would not fit into memory: more are counted and not told apart.
const MOST_URLS: usize = 20_000;

/// A run on its way into its summary.
pub struct RunFold<'a> {
    record: &'a RunRecord,
    cell: Option<&'a Cell>,
    at_server: ServerTimes<'a>,
    groups: Vec<GroupFold<'a>>,
}

/// What is summed up over the requests that count, of one or several client groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Requests.
    pub requests: u64,
    /// Of these, those that succeeded.
    pub requests_ok: u64,
    /// Of these, those whose end has a stamp.
    pub requests_succeeded: u64,
    /// The earliest time that one was intended for.
    pub first_intended_ns: Option<u64>,
    /// The latest end of one.
    pub last_done_ns: Option<u64>,
    /// The first request: of a page, its document.
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
    /// Response body bytes.
    pub response_body_bytes: u64,
}

/// The first request of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document {
    /// The request's number.
    pub request: u64,
    /// When its response's head was read; `None` where it did not end well.
    pub first_byte_ns: Option<u64>,
}

/// A run as metrics of whole runs see it.
pub struct View<'a> {
    /// What the run left behind; it holds no rows of requests.
    pub record: &'a RunRecord,
    /// Its cell; `None` where the plan does not have it.
    pub cell: Option<&'a Cell>,
    /// The rows of requests that count, summed up.
    pub totals: Totals,
    /// All rows of requests, those of the warm-up included.
    pub rows: u64,
    /// The client groups whose workload the metric is about.
    pub groups: Vec<u16>,
}

impl<'a> View<'a> {
    /// Connections of these groups.
    pub fn connections(&self) -> impl Iterator<Item = &'a ConnectionRow> + '_ {
        let record = self.record;
        record.connections.iter().filter(|connection| self.groups.contains(&connection.group))
    }

    /// These groups as they are planned.
    pub fn planned(&self) -> impl Iterator<Item = &'a ClientGroup> + '_ {
        let groups = self.cell.map_or(&[][..], |cell| &cell.clients);
        groups.iter().filter(|group| self.groups.contains(&group.group))
    }

    /// What the client processes of these groups said of themselves.
    pub fn clients(&self) -> impl Iterator<Item = &'a ClientReport> + '_ {
        let record = self.record;
        (0_u16..)
            .zip(&record.clients)
            .filter(|(group, _)| self.groups.contains(group))
            .map(|(_, client)| client)
    }

    /// What client processes of these groups said that are somebody else's programs.
    pub fn external(&self) -> impl Iterator<Item = &'a ExternalReport> + '_ {
        self.clients().filter_map(|client| client.external.as_deref())
    }
}

impl<'a> RunFold<'a> {
    /// Begins with what a run left behind beside its rows of requests.
    pub fn new(plan: &'a Plan, record: &'a RunRecord) -> RunFold<'a> {
        let cell = plan.cells.get(record.cell as usize);
        let groups = cell.map_or(&[][..], |cell| &cell.clients);
        let groups =
            groups.iter().enumerate().map(|(place, group)| GroupFold::new(plan, record, group, place));
        RunFold { record, cell, at_server: ServerTimes::of(record), groups: groups.collect() }
    }

    /// Adds a row.
    pub fn push(&mut self, sample: &Sample) {
        if let Some(group) = self.groups.iter_mut().find(|group| group.facts.group == sample.group) {
            group.push(sample, &self.at_server);
        }
    }

    /// The summary. Metrics come only from a run that succeeded, and only from rows past the warm-up.
    pub fn finish(mut self) -> RunSummary {
        let record = self.record;
        let (mut metrics, mut shares) = (BTreeMap::new(), BTreeMap::new());
        if record.outcome.is_ok() {
            for (place, metric) in METRICS.iter().enumerate() {
                let (values, share) = self.values_of(place, metric);
                if !values.is_empty() {
                    metrics.insert(metric.name, values);
                }
                shares.extend(share.map(|share| (metric.name, share)));
            }
        }
        RunSummary {
            run: record.run,
            cell: record.cell,
            block: record.block,
            began_unix_ns: record.began_unix_ns,
            took_ns: record.took_ns,
            outcome: record.outcome.clone(),
            metrics,
            shares,
            groups: self.groups.into_iter().map(GroupFold::finish).collect(),
            links: record.links.clone(),
            server_run_queue_ns: record.servers.iter().map(|server| server.run_queue_ns).sum(),
            server_cpu_ns: record
                .servers
                .iter()
                .map(|server| server.cpu_user_ns.saturating_add(server.cpu_system_ns))
                .collect(),
            server_was_killed: record.servers.iter().any(|server| server.was_killed),
            sends: record.servers.first().map(|server| server.sends.clone()).unwrap_or_default(),
            log_fault: record.servers.iter().find_map(|server| server.log_fault.clone()),
            monitor: MonitorFacts::of(record, self.cell),
            calibration: record.calibration.clone(),
            lost: Vec::new(),
        }
    }

    fn values_of(&mut self, place: usize, metric: &Metric) -> (Distribution, Option<ShareOfRun>) {
        let nothing = (Distribution::default(), None);
        let (record, cell) = (self.record, self.cell);
        let mut view = View { record, cell, totals: Totals::default(), rows: 0, groups: Vec::new() };
        for group in self.groups.iter().filter(|group| metric.is_about(group.workload)) {
            view.totals.merge(&group.totals);
            view.rows += group.facts.rows;
            view.groups.push(group.facts.group);
        }
        if view.groups.is_empty() || view.external().any(|report| report.silence(metric.name).is_some()) {
            return nothing;
        }
        match metric.from {
            Values::Request(_) | Values::AtServer(_) => {
                let mut values = Gathering::default();
                for group in &mut self.groups {
                    if let Some((_, own)) = group.requests.iter_mut().find(|(of, _)| *of == place) {
                        values.add(&std::mem::take(own).finish());
                    }
                }
                for (value, count) in metric.summed.iter().flat_map(|summed| view.external().flat_map(summed))
                {
                    values.push_times(value, count);
                }
                (values.finish(), None)
            }
            Values::Run(value) => (value(&view).into_iter().collect(), None),
            Values::Share(share) => {
                let (hits, all) = share(&view);
                let value = (all > 0).then(|| number::float(hits) / number::float(all));
                (value.into_iter().collect(), Some(ShareOfRun { hits, all }))
            }
        }
    }
}

/// One client group of a run.
struct GroupFold<'a> {
    facts: GroupFacts,
    workload: &'a Workload,
    totals: Totals,
    urls: Urls,
    /// By the place in [`METRICS`], those that each request has.
    requests: Vec<(usize, Gathering)>,
    /// What a server can send at once, where a connection carries one response at a time.
    window_bytes: Option<u64>,
    thirds: Option<Thirds>,
    server: ServerFold,
    external: Option<&'a ExternalReport>,
}

impl<'a> GroupFold<'a> {
    fn new(plan: &'a Plan, record: &'a RunRecord, group: &ClientGroup, place: usize) -> GroupFold<'a> {
        let workload = &plan.workload_of(group).workload;
        let client = record.clients.get(place);
        let of_requests = |(_, metric): &(usize, &Metric)| {
            record.outcome.is_ok() && metric.is_about(workload) && metric.from.is_of_requests()
        };
        let pins = plan.cells.get(record.cell as usize).map_or(&plan.pins, |cell| plan.pins_of(cell));
        let segment_bytes = pins.mtu_bytes.saturating_sub(TCP_HEADER_BYTES);
        let window_bytes = u64::from(pins.initial_window_packets) * u64::from(segment_bytes);
        let waits_alone = !group.variant.is_quic() && workload.streams() == Some(1);
        let connections = record.connections.iter().filter(|connection| connection.group == group.group);
        let mut facts = GroupFacts {
            group: group.group,
            is_open: workload.kind() == WorkloadKind::Open,
            connections: connections.clone().count() as u64,
            ..GroupFacts::default()
        };
        for (connection, (kind, _)) in connections
            .filter(|row| row.tls_version.is_some())
            .filter_map(|row| Some((row, row.handshake()?)))
        {
            let words = [&connection.tls_version, &connection.cipher_suite, &connection.key_exchange];
            let words: Vec<&str> = words.into_iter().flatten().map(String::as_str).collect();
            *facts.tls.entry(words.join(", ")).or_default() += 1;
            *facts.handshakes.entry(kind).or_default() += 1;
        }
        if let Some(client) = client {
            facts.busy_ns = client.finished_ns.saturating_sub(client.started_ns);
            facts.cpu_ns = client.cpu_user_ns.saturating_add(client.cpu_system_ns);
            facts.run_queue_ns = client.run_queue_ns;
            facts.lag_p99_ns = client.lag.p99_ns;
            facts.never_sent = client.never_sent;
        }
        GroupFold {
            facts,
            workload,
            totals: Totals::default(),
            urls: Urls::new(),
            requests: METRICS
                .iter()
                .enumerate()
                .filter(of_requests)
                .map(|(place, _)| (place, Gathering::default()))
                .collect(),
            window_bytes: waits_alone.then_some(window_bytes),
            thirds: client.filter(|_| workload.is_steady()).map(Thirds::of),
            server: ServerFold::default(),
            external: client.and_then(|client| client.external.as_deref()),
        }
    }

    fn push(&mut self, sample: &Sample, at_server: &ServerTimes<'_>) {
        self.facts.rows += 1;
        if let Some(version) = sample.version {
            *self.facts.versions.entry(version).or_default() += 1;
        }
        if sample.phase != Phase::Measure {
            return;
        }
        self.urls.entry(sample.url).or_default().add(Tries::of(sample));
        self.facts.stamps.add(sample);
        self.count(sample);
        self.totals.add(sample);
        if let Some(window_bytes) = self.window_bytes.filter(|_| sample.outcome.is_ok()) {
            self.facts.small.count(sample, window_bytes);
        }
        let row = at_server.of_sample(sample).filter(|_| sample.outcome.is_ok());
        if sample.outcome.is_ok() {
            self.server.add(sample, row);
        }
        for (place, gathering) in &mut self.requests {
            let value = match METRICS[*place].from {
                Values::Request(value) => value(sample),
                Values::AtServer(value) => row.and_then(|row| value(sample, row)),
                Values::Run(_) | Values::Share(_) => None,
            };
            value.into_iter().for_each(|value| gathering.push(value));
        }
        if let Some(thirds) = &mut self.thirds {
            thirds.add(sample);
        }
    }

    fn count(&mut self, sample: &Sample) {
        let facts = &mut self.facts;
        if let Some(status) = sample.status {
            *facts.statuses.entry(status).or_default() += 1;
        }
        match &sample.outcome {
            Outcome::Ok => {
                facts.body_bytes += sample.response_body_bytes;
                let expected = sample.expected_body_bytes.unwrap_or(sample.response_body_bytes);
                facts.wrong_lengths += u64::from(expected != sample.response_body_bytes);
                let is_empty = sample.response_body_bytes == 0 && sample.expected_body_bytes != Some(0);
                facts.empty_bodies += u64::from(is_empty);
            }
            Outcome::Failed(failure) => {
                *facts.failures.entry(failure.kind).or_default() += 1;
                facts.wrong_lengths += u64::from(failure.kind == FailureKind::WrongLength);
            }
            Outcome::Unsupported(_) => {}
        }
    }

    fn finish(self) -> GroupFacts {
        let mut facts = GroupFacts {
            requests: self.totals.requests,
            requests_ok: self.totals.requests_ok,
            distinct_urls: self.urls.len() as u64,
            urls: if self.urls.len() <= MOST_URLS { self.urls } else { Urls::new() },
            thirds: self.thirds.map(Thirds::finish),
            server: self.server.finish(),
            ..self.facts
        };
        if let Some(external) = self.external {
            count_external(&mut facts, external);
        }
        facts
    }
}

/// Adds what somebody else's program says of requests that have no row, and takes its word for what its rows lack.
fn count_external(facts: &mut GroupFacts, external: &ExternalReport) {
    facts.rows += external.requests();
    facts.requests += external.requests();
    facts.requests_ok += external.requests_ok;
    for failure in &external.failures {
        *facts.failures.entry(failure.kind).or_default() += failure.requests;
        if failure.kind == FailureKind::WrongLength {
            facts.wrong_lengths += failure.requests;
        }
    }
    if let (Some(version), true) = (external.http, external.requests_ok > 0) {
        *facts.versions.entry(version).or_default() += external.requests_ok;
    }
    facts.body_bytes = external.body_bytes.unwrap_or(0);
    facts.connections = external.connections.unwrap_or(0);
    external.times().for_each(|(took_ns, requests)| facts.stamps.see(took_ns, requests));
    facts.begins.clone_from(&external.begins);
    facts.not_reported.clone_from(&external.not_reported);
}

impl Totals {
    fn add(&mut self, sample: &Sample) {
        let is_ok = sample.outcome.is_ok();
        self.requests += 1;
        self.requests_ok += u64::from(is_ok);
        self.requests_succeeded += u64::from(is_ok && sample.done_ns.is_some());
        self.first_intended_ns = earliest(self.first_intended_ns, Some(sample.intended_ns));
        self.last_done_ns = self.last_done_ns.max(sample.done_ns);
        if self.document.is_none_or(|document| sample.request < document.request) {
            let first_byte_ns = sample.first_byte_ns.filter(|_| is_ok);
            self.document = Some(Document { request: sample.request, first_byte_ns });
        }
        self.request_header_raw_bytes += u64::from(sample.request_header_raw_bytes);
        self.request_header_wire_bytes += u64::from(sample.request_header_wire_bytes);
        self.response_header_raw_bytes += u64::from(sample.response_header_raw_bytes);
        self.response_header_wire_bytes += u64::from(sample.response_header_wire_bytes);
        self.request_body_bytes += sample.request_body_bytes;
        self.response_body_bytes += sample.response_body_bytes;
    }

    fn merge(&mut self, other: &Totals) {
        self.requests += other.requests;
        self.requests_ok += other.requests_ok;
        self.requests_succeeded += other.requests_succeeded;
        self.first_intended_ns = earliest(self.first_intended_ns, other.first_intended_ns);
        self.last_done_ns = self.last_done_ns.max(other.last_done_ns);
        let is_earlier = |document: &Document| self.document.is_none_or(|own| document.request < own.request);
        self.document = other.document.filter(is_earlier).or(self.document);
        self.request_header_raw_bytes += other.request_header_raw_bytes;
        self.request_header_wire_bytes += other.request_header_wire_bytes;
        self.response_header_raw_bytes += other.response_header_raw_bytes;
        self.response_header_wire_bytes += other.response_header_wire_bytes;
        self.request_body_bytes += other.request_body_bytes;
        self.response_body_bytes += other.response_body_bytes;
    }
}

fn earliest(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// Request times by the third of the measuring phase in which they were intended.
struct Thirds {
    begin_ns: u64,
    end_ns: u64,
    times: [Gathering; 3],
}

impl Thirds {
    fn of(client: &ClientReport) -> Thirds {
        Thirds {
            begin_ns: client.warmup.map_or(client.started_ns, |warmup| warmup.ended_ns),
            end_ns: client.finished_ns,
            times: Default::default(),
        }
    }

    fn add(&mut self, sample: &Sample) {
        let (Outcome::Ok, Some(done_ns)) = (&sample.outcome, sample.done_ns) else { return };
        let whole_ns = self.end_ns.saturating_sub(self.begin_ns).max(1);
        let since_ns = sample.intended_ns.saturating_sub(self.begin_ns).min(whole_ns - 1);
        let third = u128::from(since_ns) * 3 / u128::from(whole_ns);
        if let Some(times) = usize::try_from(third).ok().and_then(|third| self.times.get_mut(third)) {
            times.push(number::float(done_ns.saturating_sub(sample.intended_ns)));
        }
    }

    fn finish(self) -> [Third; 3] {
        self.times.map(|times| {
            let times = times.finish();
            Third { requests: times.count(), median_ns: times.median().unwrap_or(0.0) }
        })
    }
}
