//! Rows and tallies become a summary, one after the other.

use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use load::Report;
use model::assignment::Lag;
use model::sample::{ConnectionRow, Outcome, Phase, Sample};
use model::tally::{Tally, TallyKey};

use super::summary::{Asked, Group, HeaderBytes, OwnCpu, PerConnection, Phases, Summary, as_f64};
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
    /// Requests, successes and the sum of their latencies, by connection.
    connections: HashMap<(u16, u32), (u64, u64, u64)>,
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
            body_bytes: 0,
            request_body_bytes: 0,
            sent_bytes: 0,
            received_bytes: 0,
            request_headers: HeaderBytes::default(),
            response_headers: HeaderBytes::default(),
            cpu: OwnCpu::default(),
        };
        let (known, connections) = (HashMap::new(), HashMap::new());
        Ok(Sums { is, empty, known, places: Vec::new(), first_intended_ns: u64::MAX, connections })
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

    pub(super) fn sample(&mut self, sample: &Sample) {
        self.is.cpu.requests += 1;
        if sample.phase != Phase::Measure {
            return;
        }
        let (failure, reason) = match &sample.outcome {
            Outcome::Ok | Outcome::Unsupported(_) => (None, None),
            Outcome::Failed(failure) => (Some(failure.kind), Some(failure.reason.as_str())),
        };
        let Sample { phase, status, version, intended_ns, .. } = *sample;
        let key = TallyKey { phase, url: Some(sample.url), status, version, failure };
        let latency_ns = sample.done_ns.unwrap_or(intended_ns).saturating_sub(intended_ns);
        let once = |ns: u64| std::iter::once((ns, 1));
        self.count(key, 1, reason, sample.response_body_bytes, once(latency_ns));
        self.first_intended_ns = self.first_intended_ns.min(intended_ns);
        if let Some(connection) = sample.connection {
            let sums = self.connections.entry((sample.group, connection)).or_default();
            sums.0 += 1;
            if failure.is_none() {
                sums.1 += 1;
                sums.2 = sums.2.saturating_add(latency_ns);
            }
        }
        if failure.is_some() {
            return;
        }
        let phases = &mut self.is.phases;
        if let (Some(sent_ns), Some(done_ns)) = (sample.sent_ns, sample.done_ns) {
            phases.service.record(done_ns.saturating_sub(sent_ns), 1);
            if let Some(first_ns) = sample.first_byte_ns {
                phases.wait.record(first_ns.saturating_sub(sent_ns), 1);
                phases.transfer.record(done_ns.saturating_sub(first_ns), 1);
            }
        }
        self.headers(
            (sample.request_header_raw_bytes.into(), sample.request_header_wire_bytes.into()),
            (sample.response_header_raw_bytes.into(), sample.response_header_wire_bytes.into()),
        );
        self.is.body_bytes += sample.response_body_bytes;
        self.is.request_body_bytes += sample.request_body_bytes;
    }

    pub(super) fn tally(&mut self, tally: &Tally) {
        self.is.cpu.requests += tally.requests;
        if tally.key.phase != Phase::Measure {
            return;
        }
        let latency = load::recorded(&tally.latency);
        let (bytes, reason) = (tally.response_body_bytes, tally.reason.as_deref());
        self.count(tally.key, tally.requests, reason, bytes, latency.into_iter());
        self.first_intended_ns = self.first_intended_ns.min(tally.first_intended_ns);
        if tally.key.failure.is_some() {
            return;
        }
        self.is.phases.service.record_all(load::recorded(&tally.service));
        self.is.phases.wait.record_all(load::recorded(&tally.wait));
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

    pub(super) fn connection(&mut self, row: &ConnectionRow) {
        let is = &mut self.is;
        is.connections += 1;
        if let Outcome::Failed(failure) = &row.outcome {
            is.failed_connections += 1;
            let known = is.connection_failures.entry(failure.kind);
            known.or_insert_with(|| (0, failure.reason.clone())).0 += 1;
        }
        is.sent_bytes += row.sent_bytes;
        is.received_bytes += row.received_bytes;
        is.per_connection.received_bytes.record(row.received_bytes, 1);
        if let Some(closed_ns) = row.closed_ns {
            is.per_connection.lifetime_ns.record(closed_ns.saturating_sub(row.opened_ns), 1);
        }
        if let Some(connected_ns) = row.connected_ns {
            is.phases.connect.record(connected_ns.saturating_sub(row.opened_ns), 1);
        }
        // QUIC has no connect of its own; cleartext has no handshake.
        let is_encrypted = row.tls_version.is_some() || row.connected_ns.is_none();
        if let Some(ready_ns) = row.ready_ns.filter(|_| is_encrypted) {
            let times = if row.resumed { &mut is.phases.resumed } else { &mut is.phases.handshake };
            times.record(ready_ns.saturating_sub(row.connected_ns.unwrap_or(row.opened_ns)), 1);
        }
    }

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
        let further = client.further_connections;
        is.connections += further.connections;
        is.failed_connections += further.failed;
        is.sent_bytes += further.sent_bytes;
        is.received_bytes += further.received_bytes;
        let lasted_ns = client.finished_ns.saturating_sub(client.started_ns);
        let share = |ns: u64| if lasted_ns == 0 { 0.0 } else { as_f64(ns) / as_f64(lasted_ns) };
        let cpu = &mut is.cpu;
        let own_ns = client.cpu_user_ns + client.cpu_system_ns;
        cpu.user_ns += client.cpu_user_ns;
        cpu.system_ns += client.cpu_system_ns;
        cpu.threads += 1;
        cpu.share += (share(own_ns) - cpu.share) / as_f64(cpu.threads);
        cpu.busiest_share = cpu.busiest_share.max(share(own_ns));
        cpu.waiting_share = cpu.waiting_share.max(share(client.run_queue_ns));
        cpu.max_resident_bytes = cpu.max_resident_bytes.max(client.max_resident_bytes);
    }

    pub(super) fn finish(self, reports: &[Report]) -> Summary {
        let mut is = self.is;
        let ended = reports.iter().map(|report| report.client.finished_ns).max().unwrap_or(0);
        is.duration_ns = ended.saturating_sub(self.first_intended_ns);
        // With some rows missing, what connections did is not known.
        let has_tallies = reports.iter().any(|report| !report.client.tallies.is_empty());
        if has_tallies {
            is.phases.transfer = self.empty;
        } else {
            for (requests, ok, sum_ns) in self.connections.into_values() {
                is.per_connection.requests.record(requests, 1);
                if let Some(mean_ns) = sum_ns.checked_div(ok) {
                    is.per_connection.mean_latency_ns.record(mean_ns, 1);
                }
            }
        }
        is
    }
}

impl Group {
    fn new(empty: &Times) -> Self {
        Group { requests: 0, failed: 0, body_bytes: 0, latency: empty.clone(), reason: None }
    }
}
