//! The numbers of a load test: the tallies of all threads, merged.

use std::collections::BTreeMap;

use load::Report;
use model::assignment::{Assignment, ClientReport, Lag, Suspensions};
use model::number::float;
use model::sample::{FailureKind, Phase};
use model::schedule::{Arrivals, Schedule, Share};
use model::tally::{ConnectionTally, Counts, RequestSums, RequestTimes, Tally};
use model::units::counted;
use model::workload::Workload;
use model::{Histogram, HttpVersion};

use super::rows::WrittenRows;

/// URLs up to this number are shown apart, the rest together.
const MOST_URLS: usize = 64;
/// A thread that used its CPU for this share of the time was the bottleneck, or nearly.
const BUSY: f64 = 0.85;
/// A thread that waited for a core for this share of the time measured its own waiting.
const STARVED: f64 = 0.10;
/// Shares of less measured time than this mean nothing: setup costs more than the requests.
const LEAST_MEASURED_NS: u64 = 100_000_000;
/// Requests sent later than this (p99) missed their schedule.
const LATE_NS: u64 = 1_000_000;

/// The test that was asked for, for the summary's first lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setup {
    /// The URL, or the list's name.
    pub(crate) url: String,
    pub(crate) variant: String,
    /// A description of the load.
    pub(crate) load: String,
    pub(crate) is_open: bool,
    /// The length of an open loop's schedule without its warm-up, where it is known.
    pub(crate) schedule_ns: Option<u64>,
    /// How long every read waited for more bytes.
    pub(crate) coalesce_ns: u64,
    /// How long each DNS lookup took.
    pub(crate) dns_ns: Vec<u64>,
    /// The file with the secrets of TLS and QUIC.
    pub(crate) key_log: Option<String>,
    /// The folder with the events of QUIC connections.
    pub(crate) qlog: Option<String>,
    /// Whether connections had to migrate.
    pub(crate) migrates: bool,
    /// Whether sessions had to be resumed.
    pub(crate) resumes: bool,
    /// Whether requests had to be early data.
    pub(crate) early_data: bool,
}

impl Setup {
    /// The setup of the assignments of all threads.
    pub(crate) fn of(url: &str, assignments: &[Assignment], dns_ns: Vec<u64>) -> Self {
        let Some(first) = assignments.first() else { return Setup::default() };
        let connections = assignments.iter().map(connections_of).sum();
        let due = match &first.workload {
            Workload::Script(script) => {
                let is_each = first.clients.of > 1 || assignments.len() > 1 && script.share == Share::WHOLE;
                let each = if is_each { ", all of it on each connection" } else { "" };
                format!(": {}{each}", script.describe())
            }
            workload => {
                workload.schedule().map_or(String::new(), |schedule| format!(": {}", schedule.describe()))
            }
        };
        let load = format!("{}{due}", first.workload.kind().describe());
        let each = match (first.workload.streams().unwrap_or(1), first.target.variant.http()) {
            (..=1, _) => String::new(),
            (streams, HttpVersion::Http11) => format!(" × {streams} streams, of which HTTP/1.1 uses 1"),
            (streams, _) => format!(" × {streams} streams"),
        };
        let (connections, threads) =
            (counted(connections, "connection"), counted(assignments.len() as u64, "thread"));
        let protocols = &first.options.protocols;
        Setup {
            url: url.to_owned(),
            variant: first.target.variant.name().to_owned(),
            load: format!("{load} · {connections}{each} · {threads}"),
            is_open: first.workload.is_timed(),
            schedule_ns: schedule_ns(&first.workload),
            coalesce_ns: first.options.connections.coalesce_ns,
            dns_ns,
            key_log: protocols.tls.key_log.clone(),
            qlog: protocols.qlog.clone(),
            migrates: protocols.migration.is_some(),
            resumes: first.pins.resumption,
            early_data: protocols.tls.early_data,
        }
    }
}

/// The connections of all clients of an assignment.
pub(crate) fn connections_of(assignment: &Assignment) -> u64 {
    u64::from(assignment.workload.connections()) * u64::from(assignment.clients.count)
}

/// The length of a schedule of rates. A number of requests ends it at a known time only if they are evenly
/// spread at one rate. A script has the time of its last request, but no length.
fn schedule_ns(workload: &Workload) -> Option<u64> {
    let schedule = workload.schedule()?;
    let Schedule { stages, arrivals, .. } = schedule;
    let requests = workload.requests();
    let is_even = *arrivals == Arrivals::Even && stages.iter().all(|stage| stage.from == stage.to);
    let is_known = requests.is_none() || (is_even && stages.len() == 1);
    schedule.lasts_ns(requests).filter(|_| is_known)
}

/// Requests with one status, URL or kind of failure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) requests: u64,
    pub(crate) failed: u64,
    pub(crate) body_bytes: u64,
    /// By URL: of successes. By status and by failure: of all.
    pub(crate) latency: Histogram,
    /// The first reason of failure.
    pub(crate) reason: Option<String>,
}

impl Group {
    fn add(&mut self, tally: &Tally, with_latency: bool) {
        self.requests += tally.sums.requests;
        self.failed += tally.key.failure.map_or(0, |_| tally.sums.requests);
        self.body_bytes += tally.sums.response_body_bytes;
        if self.reason.is_none() {
            self.reason.clone_from(&tally.reason);
        }
        if with_latency {
            self.latency.merge(&tally.latency);
        }
    }
}

/// What the generator itself cost while it measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OwnCpu {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) threads: u64,
    /// The measured time of the thread that measured longest.
    pub(crate) measured_ns: u64,
    /// CPU time over measured time, mean of all threads.
    pub(crate) share: f64,
    /// The same of the busiest thread.
    pub(crate) busiest_share: f64,
    /// The largest share of a thread's time that it spent waiting for a core.
    pub(crate) waiting_share: f64,
    pub(crate) max_resident_bytes: u64,
}

impl OwnCpu {
    fn add(&mut self, client: &ClientReport) {
        let warmup = client.warmup.unwrap_or_default();
        let began_ns = client.warmup.map_or(client.started_ns, |warmup| warmup.ended_ns);
        let lasted_ns = client.finished_ns.saturating_sub(began_ns);
        // CPU time is read after connections are closed, but the end of the test before: a short test would
        // exceed 1.
        let share = |ns: u64| if lasted_ns == 0 { 0.0 } else { (float(ns) / float(lasted_ns)).min(1.0) };
        let user_ns = client.cpu_user_ns.saturating_sub(warmup.cpu_user_ns);
        let system_ns = client.cpu_system_ns.saturating_sub(warmup.cpu_system_ns);
        let waited_ns = client.run_queue_ns.saturating_sub(warmup.run_queue_ns);
        self.measured_ns = self.measured_ns.max(lasted_ns);
        self.user_ns += user_ns;
        self.system_ns += system_ns;
        self.threads += 1;
        self.share += (share(user_ns + system_ns) - self.share) / float(self.threads);
        self.busiest_share = self.busiest_share.max(share(user_ns + system_ns));
        self.waiting_share = self.waiting_share.max(share(waited_ns));
        self.max_resident_bytes = self.max_resident_bytes.max(client.max_resident_bytes);
    }

    /// Whether the generator was the bottleneck, or nearly.
    pub(crate) fn is_bottleneck(&self) -> bool {
        self.busiest_share >= BUSY && self.measured_ns >= LEAST_MEASURED_NS
    }

    /// Whether the generator measured its own waiting for a core.
    pub(crate) fn is_starved(&self) -> bool {
        self.waiting_share >= STARVED && self.measured_ns >= LEAST_MEASURED_NS
    }
}

/// The numbers of a load test. Without the warm-up, unless stated otherwise.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) setup: Setup,
    /// Requests that succeeded.
    pub(crate) completed: RequestSums,
    /// Their latencies.
    pub(crate) latency: Histogram,
    /// The parts of their latencies.
    pub(crate) times: RequestTimes,
    /// Requests that failed.
    pub(crate) failed: u64,
    /// Requests in flight when time was up: how they would have ended is unknown.
    pub(crate) unfinished: u64,
    pub(crate) never_sent: u64,
    /// From intended to sent in an open loop, of the thread with the highest p99.
    pub(crate) lag: Lag,
    /// The client's part of it, of the thread with the highest p99.
    pub(crate) own_lag: Lag,
    /// Times in which threads stood still.
    pub(crate) suspended: Suspensions,
    pub(crate) stopped: Option<String>,
    /// The schedule's, for an open loop that kept its schedule; else from the first intended time to the end.
    pub(crate) duration_ns: u64,
    pub(crate) failures: BTreeMap<FailureKind, Group>,
    pub(crate) statuses: BTreeMap<u16, Group>,
    pub(crate) versions: BTreeMap<&'static str, u64>,
    pub(crate) urls: Vec<(String, Group)>,
    /// Requests to URLs that are not shown apart.
    pub(crate) further_urls: Option<Group>,
    /// DNS lookups.
    pub(crate) dns: Histogram,
    /// All connections, those of the warm-up included; their bytes without the warm-up's.
    pub(crate) connections: ConnectionTally,
    /// Why connections could not migrate.
    pub(crate) failed_migrations: Counts<String>,
    pub(crate) cpu: OwnCpu,
    pub(crate) rows: Option<WrittenRows>,
}

impl Summary {
    /// The summary of the reports of all threads, whose requests are all in tallies, and of the file with the
    /// rows.
    pub(crate) fn of(setup: Setup, reports: &[Report], rows: Option<WrittenRows>) -> Self {
        let mut summary = Summary { setup, rows, ..Summary::default() };
        summary.setup.dns_ns.iter().for_each(|ns| summary.dns.record(*ns));
        let mut began_ns = u64::MAX;
        for report in reports {
            let places = summary.places(&report.client.urls);
            for tally in report.client.tallies.iter().filter(|tally| tally.key.phase == Phase::Measure) {
                let first_ns = tally.sums.first_intended_ns.unwrap_or(u64::MAX);
                began_ns =
                    began_ns.min(first_ns.max(report.client.warmup.map_or(0, |warmup| warmup.ended_ns)));
                summary.add_tally(tally, &places);
            }
            summary.add_client(&report.client);
        }
        let ended_ns = reports.iter().map(|report| report.client.finished_ns).max().unwrap_or(0);
        // Throughput leaves out the time in which all threads stood still.
        let gap_ns = reports.iter().map(|report| report.client.stood_still_ns()).min().unwrap_or(0);
        let lasted_ns = ended_ns.saturating_sub(began_ns).saturating_sub(gap_ns);
        summary.duration_ns = match summary.setup.schedule_ns {
            None => lasted_ns,
            Some(schedule_ns) if summary.stopped.is_some() => lasted_ns.min(schedule_ns),
            // The server needed this time too: it answered a backlog after the schedule's end.
            Some(schedule_ns) if summary.never_sent > 0 || is_late(summary.lag) => lasted_ns.max(schedule_ns),
            Some(schedule_ns) => schedule_ns,
        };
        summary
    }

    /// The place of each of a report's URLs among all; `None` where it is not shown apart.
    fn places(&mut self, urls: &[String]) -> Vec<Option<usize>> {
        let place = |url: &String| {
            let known = self.urls.iter().position(|(known, _)| known == url);
            if known.is_none() && self.urls.len() < MOST_URLS {
                self.urls.push((url.clone(), Group::default()));
                return Some(self.urls.len() - 1);
            }
            known
        };
        urls.iter().map(place).collect()
    }

    fn add_tally(&mut self, tally: &Tally, places: &[Option<usize>]) {
        let (key, requests) = (tally.key, tally.sums.requests);
        let is_ok = key.failure.is_none();
        if let Some(status) = key.status {
            self.statuses.entry(status).or_default().add(tally, true);
        }
        if let Some(version) = key.version {
            *self.versions.entry(version.name()).or_default() += requests;
        }
        match key.url.and_then(|url| *places.get(usize::try_from(url).ok()?)?) {
            Some(place) => self.urls[place].1.add(tally, is_ok),
            None => self.further_urls.get_or_insert_default().add(tally, is_ok),
        }
        match key.failure {
            Some(kind) => {
                self.failed += requests;
                self.failures.entry(kind).or_default().add(tally, true);
            }
            None => {
                self.completed.merge(&tally.sums);
                self.latency.merge(&tally.latency);
            }
        }
    }

    fn add_client(&mut self, client: &ClientReport) {
        self.unfinished += client.unfinished;
        self.never_sent += client.never_sent;
        if client.lag.p99_ns >= self.lag.p99_ns {
            self.lag = client.lag;
        }
        if client.own_lag.p99_ns >= self.own_lag.p99_ns {
            self.own_lag = client.own_lag;
        }
        self.suspended.count += client.suspended.count;
        self.suspended.total_ns = self.suspended.total_ns.max(client.suspended.total_ns);
        self.suspended.max_ns = self.suspended.max_ns.max(client.suspended.max_ns);
        if self.stopped.is_none() {
            self.stopped.clone_from(&client.stopped);
        }
        self.times.merge(&client.times);
        self.failed_migrations.merge(&client.failed_migrations);
        let (all, own) = (&mut self.connections, &client.further_connections);
        let warmup = client.warmup.unwrap_or_default();
        all.merge(own);
        all.sent_bytes -= own.sent_bytes.min(warmup.sent_bytes);
        all.received_bytes -= own.received_bytes.min(warmup.received_bytes);
        self.cpu.add(client);
    }

    /// The parts of a request's time and of a connection's beginning, each with its name in JSON and CSV.
    pub(crate) fn phases(&self) -> [(&'static str, &Histogram); 9] {
        [
            ("latency", &self.latency),
            ("service", &self.times.service),
            ("wait", &self.times.wait),
            ("transfer", &self.times.transfer),
            ("dns", &self.dns),
            ("connect", &self.connections.connect),
            ("handshake", &self.connections.handshake),
            ("resumed_handshake", &self.connections.resumed_handshake),
            ("early_handshake", &self.connections.early_handshake),
        ]
    }

    /// What each connection had, with its name in JSON and CSV. Requests are without the warm-up's.
    pub(crate) fn per_connection(&self) -> [(&'static str, &Histogram); 4] {
        [
            ("requests", &self.connections.requests),
            ("mean_latency_ns", &self.connections.mean_latency),
            ("received_bytes", &self.connections.received),
            ("lifetime_ns", &self.connections.lifetime),
        ]
    }

    /// Header bytes of successes before compression and on the wire: of requests, then of responses.
    pub(crate) fn headers(&self) -> [(u64, u64); 2] {
        let sums = &self.completed;
        [
            (sums.request_header_raw_bytes, sums.request_header_wire_bytes),
            (sums.response_header_raw_bytes, sums.response_header_wire_bytes),
        ]
    }

    /// Requests that ended.
    pub(crate) fn ended(&self) -> u64 {
        self.completed.requests + self.failed
    }

    /// Requests that succeeded per second.
    pub(crate) fn per_second(&self) -> f64 {
        analysis::metrics::requests_per_second(self.completed.requests, self.duration_ns).unwrap_or(0.0)
    }

    /// The share of ended requests that succeeded; `None` where none ended.
    pub(crate) fn availability(&self) -> Option<f64> {
        analysis::metrics::availability(self.completed.requests, self.ended())
    }

    /// Whether a request failed or was never sent, the test was stopped, or no request succeeded. Requests in
    /// flight when a test's time is up are normal.
    pub(crate) fn is_invalid(&self) -> bool {
        self.failed > 0 || self.stopped.is_some() || self.never_sent > 0 || self.completed.requests == 0
    }
}

/// Whether requests were sent so late that the schedule was missed.
pub(super) fn is_late(lag: Lag) -> bool {
    lag.p99_ns > LATE_NS
}
