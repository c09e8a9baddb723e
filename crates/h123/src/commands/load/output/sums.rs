//! Tallies become a summary, one after the other.

use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use load::Report;
use model::assignment::Lag;
use model::sample::Phase;
use model::tally::{Tally, TallyKey};

use super::protocols::Protocols;
use super::summary::{Asked, Group, HeaderBytes, OwnCpu, PerConnection, Phases, Summary, as_f64, is_late};
use super::times::Times;

/// So many URLs are shown apart; the rest is shown together.
const MOST_URLS: usize = 64;

/// A summary that grows.
pub(super) struct Sums {
    is: Summary,
    empty: Times,
    /// The place of each label among the URLs.
    known: HashMap<String, usize>,
    /// The place of each URL of the current report; `None` where it is not shown apart.
    places: Vec<Option<usize>>,
    first_intended_ns: u64,
}

impl Sums {
    pub(super) fn new(asked: Asked) -> Result<Self> {
        let empty = Times::new()?;
        let times = || empty.clone();
        let mut dns = times();
        dns.record_all(asked.dns_ns.iter().map(|ns| (*ns, 1)));
        let phases = Phases {
            latency: times(),
            service: times(),
            wait: times(),
            transfer: times(),
            dns,
            connect: times(),
            handshake: times(),
            resumed: times(),
            early: times(),
        };
        let per_connection = PerConnection {
            requests: times(),
            mean_latency_ns: times(),
            received_bytes: times(),
            lifetime_ns: times(),
        };
        let is = Summary {
            asked,
            completed: 0,
            failed: 0,
            unfinished: 0,
            never_sent: 0,
            lag: Lag::default(),
            stopped: None,
            duration_ns: 0,
            failures: BTreeMap::new(),
            statuses: BTreeMap::new(),
            versions: BTreeMap::new(),
            urls: Vec::new(),
            further_urls: None,
            phases,
            per_connection,
            connections: 0,
            failed_connections: 0,
            connection_failures: BTreeMap::new(),
            protocols: Protocols::default(),
            body_bytes: 0,
            request_body_bytes: 0,
            sent_bytes: 0,
            received_bytes: 0,
            request_headers: HeaderBytes::default(),
            response_headers: HeaderBytes::default(),
            cpu: OwnCpu::default(),
            rows: None,
        };
        Ok(Sums { is, empty, known: HashMap::new(), places: Vec::new(), first_intended_ns: u64::MAX })
    }

    /// From here on, URLs are counted by these labels.
    pub(super) fn labels(&mut self, labels: &[String]) {
        self.places = Vec::with_capacity(labels.len());
        for label in labels {
            let place = self.known.get(label).copied();
            let place = place.or_else(|| {
                let place = self.is.urls.len();
                (place < MOST_URLS).then(|| {
                    self.is.urls.push((label.clone(), Group::new(&self.empty)));
                    self.known.insert(label.clone(), place);
                    place
                })
            });
            self.places.push(place);
        }
    }

    pub(super) fn tally(&mut self, tally: &Tally) {
        if tally.key.phase != Phase::Measure {
            return;
        }
        self.is.cpu.requests += tally.requests;
        let latency = load::recorded(&tally.latency);
        let (bytes, reason) = (tally.response_body_bytes, tally.reason.as_deref());
        self.count(tally.key, tally.requests, reason, bytes, latency.into_iter());
        self.first_intended_ns = self.first_intended_ns.min(tally.first_intended_ns);
        if tally.key.failure.is_some() {
            return;
        }
        self.headers(
            (tally.request_header_raw_bytes, tally.request_header_wire_bytes),
            (tally.response_header_raw_bytes, tally.response_header_wire_bytes),
        );
        self.is.body_bytes += bytes;
        self.is.request_body_bytes += tally.request_body_bytes;
    }

    /// Counts measured requests with what they have in common.
    fn count(
        &mut self,
        key: TallyKey,
        requests: u64,
        reason: Option<&str>,
        body_bytes: u64,
        latency: impl Iterator<Item = (u64, u64)> + Clone,
    ) {
        let Sums { is, empty, places, .. } = self;
        let is_ok = key.failure.is_none();
        let add = |group: &mut Group, with_latency: bool| {
            group.requests += requests;
            group.failed += if is_ok { 0 } else { requests };
            group.body_bytes += body_bytes;
            if group.reason.is_none() {
                group.reason = reason.map(str::to_owned);
            }
            if with_latency {
                group.latency.record_all(latency.clone());
            }
        };
        if let Some(status) = key.status {
            add(is.statuses.entry(status).or_insert_with(|| Group::new(empty)), true);
        }
        if let Some(version) = key.version {
            *is.versions.entry(version.name()).or_default() += requests;
        }
        let place = key.url.and_then(|url| *places.get(usize::try_from(url).ok()?)?);
        match place {
            Some(place) => add(&mut is.urls[place].1, is_ok),
            None => add(is.further_urls.get_or_insert_with(|| Group::new(empty)), is_ok),
        }
        match key.failure {
            Some(kind) => {
                is.failed += requests;
                add(is.failures.entry(kind).or_insert_with(|| Group::new(empty)), true);
            }
            None => {
                is.completed += requests;
                is.phases.latency.record_all(latency);
            }
        }
    }

    fn headers(&mut self, request: (u64, u64), response: (u64, u64)) {
        let sums = [(&mut self.is.request_headers, request), (&mut self.is.response_headers, response)];
        for (sum, (raw, wire)) in sums {
            sum.raw += raw;
            sum.wire += wire;
        }
    }

    /// Adds what a client said of itself and of its connections.
    pub(super) fn client(&mut self, report: &Report) {
        let (is, client) = (&mut self.is, &report.client);
        is.unfinished += client.unfinished;
        is.never_sent += client.never_sent;
        if client.lag.p99_ns >= is.lag.p99_ns {
            is.lag = client.lag;
        }
        if is.stopped.is_none() {
            is.stopped.clone_from(&client.stopped);
        }
        let (times, phases) = (&client.times, &mut is.phases);
        let connections = &client.further_connections;
        let per = &mut is.per_connection;
        for (all, own) in [
            (&mut phases.service, &times.service),
            (&mut phases.wait, &times.wait),
            (&mut phases.transfer, &times.transfer),
            (&mut phases.connect, &connections.connect),
            (&mut phases.handshake, &connections.handshake),
            (&mut phases.resumed, &connections.resumed_handshake),
            (&mut phases.early, &connections.early_handshake),
            (&mut per.requests, &connections.requests),
            (&mut per.mean_latency_ns, &connections.mean_latency),
            (&mut per.received_bytes, &connections.received),
            (&mut per.lifetime_ns, &connections.lifetime),
        ] {
            all.record_all(load::recorded(own));
        }
        is.protocols.client(client);
        is.connections += connections.connections;
        is.failed_connections += connections.failed;
        for failures in &connections.failures {
            let known = is.connection_failures.entry(failures.kind);
            known.or_insert_with(|| (0, failures.first_reason.clone())).0 += failures.connections;
        }
        // What the warm-up took was not taken by what is counted.
        let warmup = client.warmup.unwrap_or_default();
        is.sent_bytes += connections.sent_bytes.saturating_sub(warmup.sent_bytes);
        is.received_bytes += connections.received_bytes.saturating_sub(warmup.received_bytes);
        let began_ns = client.warmup.map_or(client.started_ns, |warmup| warmup.ended_ns);
        let lasted_ns = client.finished_ns.saturating_sub(began_ns);
        // CPU is read when connections are closed, time before that, which shows where little was measured.
        let share = |ns: u64| if lasted_ns == 0 { 0.0 } else { (as_f64(ns) / as_f64(lasted_ns)).min(1.0) };
        let cpu = &mut is.cpu;
        cpu.measured_ns = cpu.measured_ns.max(lasted_ns);
        let user_ns = client.cpu_user_ns.saturating_sub(warmup.cpu_user_ns);
        let system_ns = client.cpu_system_ns.saturating_sub(warmup.cpu_system_ns);
        cpu.user_ns += user_ns;
        cpu.system_ns += system_ns;
        cpu.threads += 1;
        cpu.share += (share(user_ns + system_ns) - cpu.share) / as_f64(cpu.threads);
        cpu.busiest_share = cpu.busiest_share.max(share(user_ns + system_ns));
        let waited_ns = client.run_queue_ns.saturating_sub(warmup.run_queue_ns);
        cpu.waiting_share = cpu.waiting_share.max(share(waited_ns));
        cpu.max_resident_bytes = cpu.max_resident_bytes.max(client.max_resident_bytes);
    }

    pub(super) fn finish(self, reports: &[Report]) -> Summary {
        let mut is = self.is;
        let ended = reports.iter().map(|report| report.client.finished_ns).max().unwrap_or(0);
        let lasted_ns = ended.saturating_sub(self.first_intended_ns);
        is.duration_ns = match is.asked.schedule_ns {
            None => lasted_ns,
            Some(schedule_ns) if is.stopped.is_some() => lasted_ns.min(schedule_ns),
            // What a backlog was answered in after the schedule's end is time of the server's too.
            Some(schedule_ns) if is.never_sent > 0 || is_late(is.lag) => lasted_ns.max(schedule_ns),
            Some(schedule_ns) => schedule_ns,
        };
        is
    }
}

impl Group {
    fn new(empty: &Times) -> Self {
        Group { requests: 0, failed: 0, body_bytes: 0, latency: empty.clone(), reason: None }
    }
}
