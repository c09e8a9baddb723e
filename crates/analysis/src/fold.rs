//! The summary of a run, row by row. Rows are not kept, so a run may have millions.

mod phases;

use std::collections::BTreeMap;
use std::ops::Range;

use model::external::{ExternalReport, URLS};
use model::number;
use model::page_events::PageEvents;
use model::plan::{Cell, Plan};
use model::player::{PlayerEvent, PlayerEventKind};
use model::record::RunRecord;
use model::sample::{ConnectionRow, FailureKind, Outcome, Phase, Sample};
use model::workload::Workload;

use crate::classes::ClassFolds;
use crate::distribution::{Distribution, DistributionBuilder};
use crate::metrics::{self, METRICS, Metric, Values};
use crate::monitor::MonitorFacts;
use crate::rows::{Tries, Urls};
use crate::run::{GroupFacts, RunSummary, ShareOfRun};
use crate::server_time::{ServerFold, ServerTimes};
use crate::view::{Totals, View};
use phases::{Thirds, Waits};

/// IPv6 and TCP headers with timestamps.
const TCP_HEADER_BYTES: u32 = 40 + 32;

/// Hundreds of runs with millions of URLs would not fit into memory: of more URLs only the number is kept.
const MOST_URLS: usize = 20_000;

/// A run whose rows are being added, for each cell that it measures.
pub struct RunFold<'a> {
    at_server: ServerTimes<'a>,
    /// In the order of the client groups.
    cells: Vec<CellFold<'a>>,
}

impl RunSummary {
    /// The summaries of one run, whose record holds all its rows: one for each cell that it measures.
    pub fn all_of(plan: &Plan, record: &RunRecord) -> Vec<RunSummary> {
        let mut fold = RunFold::new(plan, record);
        record.samples.iter().for_each(|sample| fold.push(sample));
        fold.finish()
    }
}

impl<'a> RunFold<'a> {
    /// Starts with everything of a run except its rows of requests.
    pub fn new(plan: &'a Plan, record: &'a RunRecord) -> RunFold<'a> {
        let cells = plan.cells_of_run(record.cell).iter().map(|cell| CellFold::new(plan, record, cell));
        RunFold { at_server: ServerTimes::of(record), cells: cells.collect() }
    }

    /// Adds a row.
    pub fn push(&mut self, sample: &Sample) {
        if let Some(cell) = self.cells.get_mut(usize::from(sample.group)) {
            cell.group.push(sample, &self.at_server);
        }
    }

    /// The summaries, one for each cell. Only successful runs have metrics, and warm-up rows do not count.
    pub fn finish(self) -> Vec<RunSummary> {
        self.cells.into_iter().map(CellFold::finish).collect()
    }
}

/// A run as one of its cells sees it.
struct CellFold<'a> {
    record: &'a RunRecord,
    cell: &'a Cell,
    group: GroupFold<'a>,
    /// The places of its servers among those of the run.
    servers: Range<usize>,
}

impl<'a> CellFold<'a> {
    fn new(plan: &'a Plan, record: &'a RunRecord, cell: &'a Cell) -> CellFold<'a> {
        CellFold { record, cell, group: GroupFold::new(plan, record, cell), servers: plan.servers_of(cell) }
    }

    fn finish(mut self) -> RunSummary {
        let record = self.record;
        let number = self.cell.group.group;
        let servers = record.servers.get(self.servers.clone()).unwrap_or_default();
        let (mut metrics, mut shares) = (BTreeMap::new(), BTreeMap::new());
        if record.outcome.is_ok() {
            let totals = std::mem::take(&mut self.group.clients);
            let clients = ClientRows::of(record, number, &totals);
            for metric in METRICS.iter() {
                let (values, share) = self.values_of(metric, &clients);
                if !values.is_empty() {
                    metrics.insert(metric.name.to_owned(), values);
                }
                shares.extend(share.map(|share| (metric.name.to_owned(), share)));
            }
            self.group.classes.finish(&mut metrics, &mut shares);
        }
        RunSummary {
            run: record.run,
            cell: self.cell.cell,
            block: record.block,
            began_unix_ns: record.began_unix_ns,
            took_ns: record.took_ns,
            content: record.content,
            outcome: record.outcome.clone(),
            metrics,
            shares,
            groups: vec![self.group.finish()],
            links: record.links.clone(),
            server_run_queue_ns: servers.iter().map(|server| server.run_queue_ns).sum(),
            server_cpu_ns: servers
                .iter()
                .map(|server| server.cpu_user_ns.saturating_add(server.cpu_system_ns))
                .collect(),
            server_was_killed: servers.iter().any(|server| server.was_killed),
            sends: servers.first().map(|server| server.sends.clone()).unwrap_or_default(),
            server_concurrency: servers.iter().map(|server| server.concurrency).collect(),
            log_fault: servers.iter().find_map(|server| server.log_fault.clone()),
            monitor: MonitorFacts::of(record, Some(self.cell)),
            calibration: record.round_trips.iter().find(|of| of.group == number).cloned(),
            lost: Vec::new(),
        }
    }

    fn values_of<'c>(
        &mut self,
        metric: &Metric,
        clients: &BTreeMap<u32, ClientRows<'c>>,
    ) -> (Distribution, Option<ShareOfRun>)
    where
        'a: 'c,
    {
        let nothing = (Distribution::default(), None);
        let counts_too_much = self.group.has_first_visit && metric.counts_first_visits();
        if !metric.is_about(self.group.workload) || counts_too_much {
            return nothing;
        }
        let group = &mut self.group;
        let number = group.facts.group;
        let view = View {
            record: self.record,
            cell: Some(self.cell),
            workload: group.workload,
            totals: group.totals.clone(),
            of_clients: clients.values().filter_map(|client| client.totals).collect(),
            connections: self.record.connections.iter().filter(|row| row.group == number).collect(),
            player: self.record.player.iter().filter(|event| event.group == number).collect(),
            page_events: self.record.page_events.iter().filter(|events| events.group == number).collect(),
            servers: self.record.servers.get(self.servers.clone()).unwrap_or_default(),
            rows: group.facts.rows,
            groups: vec![number],
        };
        if view.external().any(|report| report.reason_not_reported(metric.name).is_some()) {
            return nothing;
        }
        match metric.values {
            Values::Request(_) | Values::AtServer(_) => {
                let mut values = DistributionBuilder::default();
                for (_, own) in group.requests.iter_mut().filter(|(known, _)| known.name == metric.name) {
                    values.add(&std::mem::take(own).finish());
                }
                for (ns, count) in metric.external.iter().flat_map(|times| view.external().flat_map(times)) {
                    values.push_times(number::float(ns), count);
                }
                (values.finish(), None)
            }
            Values::Client(value) if clients.len() > 1 => {
                let of_client = |client: &ClientRows<'c>| {
                    value(&View {
                        totals: client.totals.cloned().unwrap_or_default(),
                        of_clients: Vec::new(),
                        connections: client.connections.clone(),
                        player: client.player.clone(),
                        page_events: client.page_events.clone(),
                        groups: view.groups.clone(),
                        ..view
                    })
                };
                (clients.values().filter_map(of_client).collect(), None)
            }
            Values::Client(value) | Values::Run(value) => (value(&view).into_iter().collect(), None),
            Values::Share(share) => {
                let (hits, all) = share(&view);
                let value = metrics::availability(hits, all);
                (value.into_iter().collect(), Some(ShareOfRun { hits, all }))
            }
        }
    }
}

/// What one client of a group left behind.
#[derive(Default)]
struct ClientRows<'a> {
    /// Sums over its requests that count; `None` if there are none.
    totals: Option<&'a Totals>,
    connections: Vec<&'a ConnectionRow>,
    player: Vec<&'a PlayerEvent>,
    page_events: Vec<&'a PageEvents>,
}

impl<'a> ClientRows<'a> {
    /// The clients of a group by their numbers; none if the group has one client only.
    fn of(record: &'a RunRecord, group: u16, totals: &'a BTreeMap<u32, Totals>) -> BTreeMap<u32, Self> {
        let mut clients: BTreeMap<u32, Self> = BTreeMap::new();
        if totals.len() < 2 {
            return clients;
        }
        for (client, totals) in totals {
            clients.entry(*client).or_default().totals = Some(totals);
        }
        for row in record.connections.iter().filter(|row| row.group == group) {
            clients.entry(row.client).or_default().connections.push(row);
        }
        for event in record.player.iter().filter(|event| event.group == group) {
            clients.entry(event.client).or_default().player.push(event);
        }
        for events in record.page_events.iter().filter(|events| events.group == group) {
            clients.entry(events.client).or_default().page_events.push(events);
        }
        clients
    }
}

/// One client group of a run.
struct GroupFold<'a> {
    facts: GroupFacts,
    workload: &'a Workload,
    totals: Totals,
    /// The same of each client, if the group has several.
    clients: BTreeMap<u32, Totals>,
    has_clients: bool,
    /// Whether each client made a visit before the measured one.
    has_first_visit: bool,
    urls: Urls,
    /// Whether rows name their URLs.
    has_urls: bool,
    /// The metrics that have one value for each request.
    requests: Vec<(&'static Metric, DistributionBuilder)>,
    /// The same of each class.
    classes: ClassFolds,
    /// The server's initial window, if a connection carries one response at a time.
    window_bytes: Option<u64>,
    thirds: Option<Thirds>,
    waits: Waits,
    server: ServerFold,
    external: Option<&'a ExternalReport>,
}

impl<'a> GroupFold<'a> {
    fn new(plan: &'a Plan, record: &'a RunRecord, cell: &Cell) -> GroupFold<'a> {
        let group = &cell.group;
        let workload = &plan.workload_of(group).workload;
        let client = record.clients.iter().find(|client| client.group == group.group);
        let is_per_request = |metric: &&Metric| {
            record.outcome.is_ok() && metric.is_about(workload) && metric.values.is_per_request()
        };
        let pins = plan.pins_of(cell);
        let segment_bytes = pins.mtu_bytes.saturating_sub(TCP_HEADER_BYTES);
        let window_bytes = u64::from(pins.initial_window_packets) * u64::from(segment_bytes);
        let waits_alone = !group.variant.is_quic() && workload.streams() == Some(1);
        let connections = record.connections.iter().filter(|connection| connection.group == group.group);
        let mut facts = GroupFacts {
            group: group.group,
            is_open: workload.is_timed(),
            connections: connections.clone().count() as u64,
            videos_ended: record
                .player
                .iter()
                .filter(|event| event.group == group.group && event.what == PlayerEventKind::Ended)
                .count() as u64,
            ..GroupFacts::default()
        };
        for event in record.player.iter().filter(|event| event.group == group.group) {
            if let Some(fault) = event.fault {
                *facts.given_up.entry(fault).or_default() += 1;
            }
        }
        count_page_loads(&mut facts, record.page_events.iter().filter(|events| events.group == group.group));
        count_connections(&mut facts, connections);
        let external = client.and_then(|client| client.external.as_deref());
        if let Some(client) = client {
            facts.busy_ns = client.finished_ns.saturating_sub(client.started_ns);
            facts.contents.clone_from(&client.contents);
            facts.cpu_ns = client.cpu_user_ns.saturating_add(client.cpu_system_ns);
            facts.run_queue_ns = client.run_queue_ns;
            facts.lag_p99_ns = client.lag.p99_ns;
            facts.own_lag_p99_ns = client.own_lag.p99_ns;
            facts.never_sent = client.never_sent;
            facts.never_sent_held = client.never_sent_held;
            facts.suspended = client.suspended;
        }
        let has_urls = external.is_none_or(|external| external.reason_not_reported(URLS).is_none());
        let per_request = || METRICS.iter().filter(is_per_request);
        GroupFold {
            facts,
            workload,
            totals: Totals::default(),
            clients: BTreeMap::new(),
            has_clients: group.clients > 1,
            has_first_visit: !plan.workload_of(group).options.connections.visit.is_first(),
            urls: Urls::new(),
            has_urls,
            classes: match has_urls {
                true => {
                    ClassFolds::new(&plan.classes, client.map_or(&[], |client| &client.urls), per_request())
                }
                false => ClassFolds::default(),
            },
            requests: per_request().map(|metric| (metric, DistributionBuilder::default())).collect(),
            window_bytes: waits_alone.then_some(window_bytes),
            thirds: client
                .filter(|_| workload.is_steady())
                .map(|client| Thirds::of(client, !workload.is_timed())),
            waits: Waits::default(),
            server: ServerFold::default(),
            external,
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
        if self.has_urls {
            self.urls.entry(sample.url).or_default().add(Tries::of(sample));
        }
        self.facts.stamps.add(sample);
        self.count(sample);
        self.totals.add(sample);
        if self.has_clients {
            self.clients.entry(sample.client).or_default().add(sample);
        }
        if let Some(window_bytes) = self.window_bytes.filter(|_| sample.outcome.is_ok()) {
            self.facts.small.count(sample, window_bytes);
        }
        let row = at_server.of_sample(sample).filter(|_| sample.outcome.is_ok());
        if sample.outcome.is_ok() {
            self.server.add(sample, row);
        }
        self.classes.count(sample);
        for (place, (metric, builder)) in self.requests.iter_mut().enumerate() {
            let value = match metric.values {
                Values::Request(value) => value(sample),
                Values::AtServer(value) => row.and_then(|row| value(sample, row)),
                Values::Client(_) | Values::Run(_) | Values::Share(_) => None,
            };
            if let Some(value) = value.map(number::float) {
                builder.push(value);
                self.classes.push(sample.url, place, value);
            }
        }
        if let Some(thirds) = &mut self.thirds {
            thirds.add(sample);
        }
        // Loops request their paths in turn; the other paths may take the server longer.
        if self.workload.as_loop().is_none() || sample.url == 0 {
            self.waits.add(sample);
        }
    }

    fn count(&mut self, sample: &Sample) {
        let facts = &mut self.facts;
        // A script may expect a status such as 404.
        let is_script = self.workload.script().is_some() && sample.outcome.is_ok();
        let is_expected = is_script && sample.status.is_some_and(|status| status >= 300);
        if let Some(status) = sample.status.filter(|_| !is_expected) {
            *facts.statuses.entry(status).or_default() += 1;
        }
        match &sample.outcome {
            Outcome::Ok => {
                if self.has_urls && facts.bodies.len() <= MOST_URLS {
                    facts.bodies.entry(sample.url).or_default().add(sample);
                }
                facts.body_bytes += sample.response_body_bytes;
                facts.body_bytes_squared += number::float(sample.response_body_bytes).powi(2);
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
            requests: self.totals.all.requests,
            requests_ok: self.totals.requests_ok,
            distinct_urls: self.urls.len() as u64,
            urls: if self.urls.len() <= MOST_URLS { self.urls } else { Urls::new() },
            bodies: if self.facts.bodies.len() <= MOST_URLS { self.facts.bodies } else { BTreeMap::new() },
            thirds: self.thirds.map(Thirds::finish),
            first_wait: self.waits.finish(),
            server: self.server.finish(),
            ..self.facts
        };
        if let Some(external) = self.external {
            count_external(&mut facts, external);
        }
        facts
    }
}

/// Counts a browser's page loads and keeps the first message of its console.
fn count_page_loads<'r>(facts: &mut GroupFacts, loads: impl Iterator<Item = &'r PageEvents>) {
    for events in loads {
        facts.browser_loads += 1;
        let no_message = || (events.console_errors > 0).then(|| "an error without a message".to_owned());
        let message = || events.console.first().cloned().or_else(no_message);
        facts.console_error = facts.console_error.take().or_else(message);
    }
}

/// Counts what the connections of a group show: replacements, pushes and what TLS negotiated.
fn count_connections<'r>(
    facts: &mut GroupFacts,
    connections: impl Iterator<Item = &'r ConnectionRow> + Clone,
) {
    let last_opened_ns = connections.clone().map(|row| row.opened_ns).max();
    let was_replaced = |row: &&ConnectionRow| row.closed_ns.is_some() && row.closed_ns <= last_opened_ns;
    for cause in connections.clone().filter(was_replaced).filter_map(|row| row.server_close) {
        *facts.replaced.entry(cause).or_default() += 1;
    }
    for pushed in connections.clone().map(|row| row.pushed) {
        facts.pushed += pushed;
    }
    for (connection, (kind, _)) in
        connections.filter(|row| row.tls_version.is_some()).filter_map(|row| Some((row, row.handshake()?)))
    {
        let words = [&connection.tls_version, &connection.cipher_suite, &connection.key_exchange];
        let words: Vec<&str> = words.into_iter().flatten().map(String::as_str).collect();
        *facts.tls.entry(words.join(", ")).or_default() += 1;
        *facts.handshakes.entry(kind).or_default() += 1;
    }
}

/// Adds what an external client reports about requests without rows, and about values that its rows lack.
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
    // Rows may have these already.
    facts.body_bytes = external.body_bytes.unwrap_or(facts.body_bytes);
    facts.connections = external.connections.unwrap_or(facts.connections);
    external.times().for_each(|(took_ns, requests)| facts.stamps.see(took_ns, requests));
    facts.begins.clone_from(&external.begins);
    facts.not_reported.clone_from(&external.not_reported);
}
