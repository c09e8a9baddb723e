//! One run condensed: distributions that merge, and the facts that checks judge.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use model::assignment::{ClientReport, Workload};
use model::foreign::ForeignReport;
use model::plan::{Cell, ClientGroup, Plan};
use model::record::{Calibration, LinkReport, RunRecord};
use model::sample::{ConnectionRow, FailureKind, Outcome, Phase, Sample};
use model::variant::HttpVersion;

use crate::distribution::Distribution;
use crate::metrics::METRICS;
use crate::server_time::ServerFacts;

/// IPv6 and TCP with time stamps.
const TCP_HEADER_BYTES: u32 = 40 + 32;

/// What analysis keeps of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// The run's number in the plan.
    pub run: u32,
    /// The cell that it repeats.
    pub cell: u32,
    /// The block that it belongs to.
    pub block: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// By the metric's name; a metric that this run does not have is absent.
    pub metrics: BTreeMap<&'static str, Distribution>,
    /// One entry per client group of the cell.
    pub groups: Vec<GroupFacts>,
    /// What the emulator did; empty where there was none.
    pub links: Vec<LinkReport>,
    /// Time that the servers' threads were runnable but did not run.
    pub server_run_queue_ns: u64,
    /// Why a server's log tells less than it should, where one does.
    pub log_fault: Option<String>,
    /// The known-answer round trips; `None` where nothing was emulated.
    pub calibration: Option<Calibration>,
}

/// What checks need to know of one client group in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupFacts {
    /// The group's number within the cell.
    pub group: u16,
    /// Rows of requests, warm-up included.
    pub rows: u64,
    /// Rows of requests that count.
    pub requests: u64,
    /// Of these, those that ended well.
    pub requests_ok: u64,
    /// Responses by the version that they really used, warm-up included.
    pub versions: BTreeMap<HttpVersion, u64>,
    /// Responses by status code, of rows that count.
    pub statuses: BTreeMap<u16, u64>,
    /// Failures by kind, of rows that count.
    pub failures: BTreeMap<FailureKind, u64>,
    /// Whole responses whose body had another length than expected, of rows that count.
    pub wrong_lengths: u64,
    /// How long the responses took that fit into the server's first window, in loops of one stream over TCP.
    pub small: SmallResponses,
    /// Distinct URLs among the rows that count.
    pub distinct_urls: u64,
    /// Response body bytes received by requests that ended well; of a foreign client by all, 0 where it does not say.
    pub body_bytes: u64,
    /// Connections opened.
    pub connections: u64,
    /// First request intended until last response done.
    pub busy_ns: u64,
    /// CPU time of the client process, user and kernel.
    pub cpu_ns: u64,
    /// Time that the client process was runnable but did not run.
    pub run_queue_ns: u64,
    /// Whether its requests were due at the times of a schedule.
    pub is_open: bool,
    /// sent − intended of the requests that count, 99th percentile.
    pub lag_p99_ns: u64,
    /// Requests that were due and never sent.
    pub never_sent: u64,
    /// What the server says of these requests.
    pub server: ServerFacts,
    /// What its client does not say, where that is somebody else's program ([`ForeignReport::silences`]).
    pub silences: Vec<String>,
}

/// Responses that a server can send at once, by the time from their head to their end: nothing on the network makes them
/// wait between the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmallResponses {
    /// All of them.
    pub all: u64,
    /// Those that took what a delayed acknowledgement takes: from 38 to 52 ms.
    pub as_delayed_ack: u64,
    /// Those that took somewhat less or more: from 24 to 38 and from 52 to 66 ms.
    pub nearly: u64,
}

impl SmallResponses {
    /// TCP of Linux holds an acknowledgement back for 40 ms; timers and wake-ups add a few.
    const DELAYED_ACK_NS: Range<u64> = 38_000_000..52_000_000;
    const NEARLY_NS: Range<u64> = 24_000_000..66_000_000;

    fn count(&mut self, sample: &Sample, window_bytes: u64) {
        let bytes = sample.response_body_bytes + u64::from(sample.response_header_wire_bytes);
        let (Some(first_byte_ns), Some(done_ns)) = (sample.first_byte_ns, sample.done_ns) else { return };
        if sample.response_body_bytes == 0 || bytes > window_bytes {
            return;
        }
        self.all += 1;
        let took_ns = done_ns.saturating_sub(first_byte_ns);
        if Self::DELAYED_ACK_NS.contains(&took_ns) {
            self.as_delayed_ack += 1;
        } else if Self::NEARLY_NS.contains(&took_ns) {
            self.nearly += 1;
        }
    }
}

/// The rows of a run that one metric is about.
pub struct View<'a> {
    /// The run.
    pub record: &'a RunRecord,
    /// The client groups whose workload the metric is about.
    pub groups: Vec<&'a ClientGroup>,
}

impl<'a> View<'a> {
    /// Rows of these groups that count.
    pub fn samples(&self) -> impl Iterator<Item = &'a Sample> + '_ {
        let record = self.record;
        record.samples.iter().filter(|sample| sample.phase == Phase::Measure && self.has(sample.group))
    }

    /// Connections of these groups.
    pub fn connections(&self) -> impl Iterator<Item = &'a ConnectionRow> + '_ {
        let record = self.record;
        record.connections.iter().filter(|connection| self.has(connection.group))
    }

    /// What the client processes of these groups said of themselves.
    pub fn clients(&self) -> impl Iterator<Item = &'a ClientReport> + '_ {
        let record = self.record;
        (0_u16..).zip(&record.clients).filter(|(group, _)| self.has(*group)).map(|(_, client)| client)
    }

    /// What client processes of these groups said that are somebody else's programs.
    pub fn foreign(&self) -> impl Iterator<Item = &'a ForeignReport> + '_ {
        self.clients().filter_map(|client| client.foreign.as_deref())
    }

    fn has(&self, group: u16) -> bool {
        self.groups.iter().any(|candidate| candidate.group == group)
    }
}

impl RunSummary {
    /// Condenses one run. Metrics come only from a run that ended well, and only from rows past the warm-up.
    pub fn of(plan: &Plan, record: &RunRecord) -> RunSummary {
        let cell = plan.cells.get(record.cell as usize);
        let mut metrics = BTreeMap::new();
        let mut groups = Vec::new();
        if let Some(cell) = cell {
            if record.outcome.is_ok() {
                metrics = extract_all(plan, cell, record);
            }
            groups = cell
                .clients
                .iter()
                .enumerate()
                .map(|(place, group)| facts(plan, record, group, place))
                .collect();
        }
        RunSummary {
            run: record.run,
            cell: record.cell,
            block: record.block,
            outcome: record.outcome.clone(),
            metrics,
            groups,
            links: record.links.clone(),
            server_run_queue_ns: record.servers.iter().map(|server| server.run_queue_ns).sum(),
            log_fault: record.servers.iter().find_map(|server| server.log_fault.clone()),
            calibration: record.calibration.clone(),
        }
    }

    /// The run's value of a metric: its median, where it has many samples.
    pub fn value(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric).and_then(Distribution::median)
    }
}

/// The page that a group loads, if it loads one.
pub(crate) fn page_of<'a>(plan: &'a Plan, group: &ClientGroup) -> Option<&'a model::Page> {
    match &plan.workload_of(group).workload {
        Workload::Page { page } => Some(page),
        Workload::Closed { .. } | Workload::Open { .. } => None,
    }
}

fn extract_all(plan: &Plan, cell: &Cell, record: &RunRecord) -> BTreeMap<&'static str, Distribution> {
    let mut metrics = BTreeMap::new();
    for metric in METRICS {
        let is_about = |group: &&ClientGroup| metric.is_about(&plan.workload_of(group).workload);
        let view = View { record, groups: cell.clients.iter().filter(is_about).collect() };
        if view.groups.is_empty() || view.foreign().any(|report| report.silence(metric.name).is_some()) {
            continue;
        }
        let mut values: Distribution = (metric.extract)(&view).into_iter().collect();
        if let Some(summed) = metric.summed {
            view.foreign().for_each(|report| values.add_counted(&summed(report)));
        }
        if !values.is_empty() {
            metrics.insert(metric.name, values);
        }
    }
    metrics
}

fn facts(plan: &Plan, record: &RunRecord, group: &ClientGroup, place: usize) -> GroupFacts {
    let is_open = matches!(plan.workload_of(group).workload, Workload::Open { .. });
    let mut facts = GroupFacts { group: group.group, is_open, ..GroupFacts::default() };
    let waits_alone = !group.variant.is_quic() && has_one_stream(&plan.workload_of(group).workload);
    let mut urls = BTreeSet::new();
    let pins = plan.cells.get(record.cell as usize).map_or(&plan.pins, |cell| plan.pins_of(cell));
    let segment_bytes = pins.mtu_bytes.saturating_sub(TCP_HEADER_BYTES);
    let window_bytes = u64::from(pins.initial_window_packets) * u64::from(segment_bytes);
    for sample in record.samples.iter().filter(|sample| sample.group == group.group) {
        facts.rows += 1;
        if let Some(version) = sample.version {
            *facts.versions.entry(version).or_default() += 1;
        }
        if sample.phase == Phase::Measure {
            urls.insert(sample.url);
            count(&mut facts, sample);
            if waits_alone && sample.outcome.is_ok() {
                facts.small.count(sample, window_bytes);
            }
        }
    }
    facts.server = ServerFacts::of(record, group.group);
    facts.distinct_urls = urls.len() as u64;
    facts.connections =
        record.connections.iter().filter(|connection| connection.group == group.group).count() as u64;
    if let Some(client) = record.clients.get(place) {
        facts.busy_ns = client.finished_ns.saturating_sub(client.started_ns);
        facts.cpu_ns = client.cpu_user_ns.saturating_add(client.cpu_system_ns);
        facts.run_queue_ns = client.run_queue_ns;
        facts.lag_p99_ns = client.lag.p99_ns;
        facts.never_sent = client.never_sent;
        if let Some(foreign) = &client.foreign {
            count_foreign(&mut facts, foreign);
        }
    }
    facts
}

/// Adds what somebody else's program says of requests that have no row, and takes its word for what its rows lack.
fn count_foreign(facts: &mut GroupFacts, foreign: &ForeignReport) {
    facts.rows += foreign.requests();
    facts.requests += foreign.requests();
    facts.requests_ok += foreign.requests_ok;
    for failure in &foreign.failures {
        *facts.failures.entry(failure.kind).or_default() += failure.requests;
        if failure.kind == FailureKind::WrongLength {
            facts.wrong_lengths += failure.requests;
        }
    }
    if let (Some(version), true) = (foreign.http, foreign.requests_ok > 0) {
        *facts.versions.entry(version).or_default() += foreign.requests_ok;
    }
    facts.body_bytes = foreign.body_bytes.unwrap_or(0);
    facts.connections = foreign.connections.unwrap_or(0);
    facts.silences.clone_from(&foreign.silences);
}

/// Whether each connection carries one response at a time, so that none waits for another's bytes.
fn has_one_stream(workload: &Workload) -> bool {
    match workload {
        Workload::Page { .. } => false,
        Workload::Closed { streams, .. } | Workload::Open { streams, .. } => *streams == 1,
    }
}

fn count(facts: &mut GroupFacts, sample: &Sample) {
    facts.requests += 1;
    if let Some(status) = sample.status {
        *facts.statuses.entry(status).or_default() += 1;
    }
    match &sample.outcome {
        Outcome::Ok => {
            facts.requests_ok += 1;
            facts.body_bytes += sample.response_body_bytes;
            let expected = sample.expected_body_bytes.unwrap_or(sample.response_body_bytes);
            facts.wrong_lengths += u64::from(expected != sample.response_body_bytes);
        }
        Outcome::Failed(failure) => {
            *facts.failures.entry(failure.kind).or_default() += 1;
            facts.wrong_lengths += u64::from(failure.kind == FailureKind::WrongLength);
        }
        Outcome::Unsupported(_) => {}
    }
}
