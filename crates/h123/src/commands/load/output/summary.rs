//! What a load test came to: rows and tallies of all threads, summed up. Warm-up is left out unless a name says so.

use std::collections::BTreeMap;

use anyhow::Result;
use load::Report;
use model::HttpVersion;
use model::assignment::{Assignment, Lag};
use model::sample::FailureKind;
use model::schedule::{Arrivals, Schedule};
use model::units::format_duration_ns;
use model::workload::Workload;

use super::protocols::Protocols;
use super::rows::WrittenRows;
use super::sums::Sums;
use super::times::Times;

/// A thread that computed for this share of its time was the bottleneck, or nearly.
const BUSY: f64 = 0.85;
/// A thread that waited for a core for this share of its time measured its own waiting.
const STARVED: f64 = 0.10;
/// In less measured time than this, shares of it say nothing: setting up costs more than the requests.
const LEAST_MEASURED_NS: u64 = 100_000_000;
/// Requests sent later than this (p99) missed their schedule.
const LATE_NS: u64 = 1_000_000;

/// What was asked for, for the summary's first lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// The URL, or the list's name.
    pub(crate) url: String,
    pub(crate) variant: String,
    /// The load in words.
    pub(crate) load: String,
    pub(crate) is_open: bool,
    /// How long an open loop's schedule is without its warm-up, where that is known.
    pub(crate) schedule_ns: Option<u64>,
    /// How long every read waited for more, in nanoseconds.
    pub(crate) coalesce_ns: u64,
    /// How long each DNS lookup of a name took.
    pub(crate) dns_ns: Vec<u64>,
    /// The file that has the secrets of TLS and QUIC.
    pub(crate) key_log: Option<String>,
    /// The folder that says what QUIC connections did.
    pub(crate) qlog: Option<String>,
    /// Whether connections were to move.
    pub(crate) migrates: bool,
    /// Whether sessions were to be resumed.
    pub(crate) resumes: bool,
    /// Whether requests were to be early data.
    pub(crate) early_data: bool,
}

impl Asked {
    /// What the assignments of all threads say.
    pub(crate) fn of(url: &str, assignments: &[Assignment], dns_ns: Vec<u64>) -> Self {
        let Some(first) = assignments.first() else { return Asked::default() };
        let connections: u64 = assignments.iter().map(|one| u64::from(one.workload.connections())).sum();
        let schedule = first.workload.schedule().map(|schedule| format!(": {}", schedule.describe()));
        let load = format!("{}{}", first.workload.kind().describe(), schedule.unwrap_or_default());
        let each = match (first.workload.streams().unwrap_or(1), first.target.variant.http()) {
            (..=1, _) => String::new(),
            (streams, HttpVersion::Http11) => format!(" × {streams} streams, of which HTTP/1.1 uses 1"),
            (streams, _) => format!(" × {streams} streams"),
        };
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        Asked {
            url: url.to_owned(),
            variant: first.target.variant.name().to_owned(),
            load: format!(
                "{load} · {connections} connection{}{each} · {} thread{}",
                plural(usize::try_from(connections).unwrap_or(2)),
                assignments.len(),
                plural(assignments.len())
            ),
            is_open: first.workload.schedule().is_some(),
            schedule_ns: schedule_ns(&first.workload),
            coalesce_ns: first.options.connections.coalesce_ns,
            dns_ns,
            key_log: first.options.protocols.tls.key_log.clone(),
            qlog: first.options.protocols.qlog.clone(),
            migrates: first.options.protocols.migration.is_some(),
            resumes: first.pins.resumption,
            early_data: first.options.protocols.tls.early_data,
        }
    }
}

/// How long a schedule of rates is. A number ends it at a known time only where requests are evenly spread at one
/// rate; a script says when its last request is due, not how long it lasts.
fn schedule_ns(workload: &Workload) -> Option<u64> {
    let schedule = workload.schedule()?;
    let Schedule::Rates { stages, arrivals, .. } = schedule else { return None };
    let requests = workload.requests();
    let is_even = *arrivals == Arrivals::Even && stages.iter().all(|stage| stage.from == stage.to);
    let is_known = requests.is_none() || (is_even && stages.len() == 1);
    schedule.lasts_ns(requests).filter(|_| is_known)
}

/// Requests that have something in common.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) requests: u64,
    pub(crate) failed: u64,
    pub(crate) body_bytes: u64,
    /// By URL: of successes. By status and by failure: of all that had it.
    pub(crate) latency: Times,
    /// The first reason of failure.
    pub(crate) reason: Option<String>,
}

/// Header bytes of successes in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeaderBytes {
    /// Names and values before compression.
    pub(crate) raw: u64,
    /// What was sent for them.
    pub(crate) wire: u64,
}

impl HeaderBytes {
    /// Bytes on the wire for each byte before compression.
    pub(crate) fn ratio(self) -> Option<f64> {
        (self.raw > 0).then(|| as_f64(self.wire) / as_f64(self.raw))
    }
}

/// The parts of a request's time, and of a connection's beginning.
#[derive(Clone, Debug)]
pub(crate) struct Phases {
    /// done − intended.
    pub(crate) latency: Times,
    /// done − sent.
    pub(crate) service: Times,
    /// first byte − sent.
    pub(crate) wait: Times,
    /// done − first byte.
    pub(crate) transfer: Times,
    pub(crate) dns: Times,
    pub(crate) connect: Times,
    /// TLS, or QUIC, from scratch.
    pub(crate) handshake: Times,
    /// TLS, or QUIC, with a session from before.
    pub(crate) resumed: Times,
    /// TLS, or QUIC, with a session from before whose early data was taken.
    pub(crate) early: Times,
}

impl Phases {
    /// Each with the name that it has in JSON and CSV.
    pub(crate) fn named(&self) -> [(&'static str, &Times); 9] {
        [
            ("latency", &self.latency),
            ("service", &self.service),
            ("wait", &self.wait),
            ("transfer", &self.transfer),
            ("dns", &self.dns),
            ("connect", &self.connect),
            ("handshake", &self.handshake),
            ("resumed_handshake", &self.resumed),
            ("early_handshake", &self.early),
        ]
    }
}

/// What connections had, each; of requests, those that are counted, and of the rest all since it was opened.
#[derive(Clone, Debug)]
pub(crate) struct PerConnection {
    /// Requests that ended on it.
    pub(crate) requests: Times,
    /// Mean latency of its successes.
    pub(crate) mean_latency_ns: Times,
    pub(crate) received_bytes: Times,
    /// From opening to closing.
    pub(crate) lifetime_ns: Times,
}

/// What the generator itself cost in the time of the requests that are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OwnCpu {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    /// The requests that it was spent on.
    pub(crate) requests: u64,
    pub(crate) threads: u64,
    /// How long the thread that measured longest did.
    pub(crate) measured_ns: u64,
    /// Of all threads together.
    pub(crate) share: f64,
    /// Of the busiest thread.
    pub(crate) busiest_share: f64,
    /// Time that the thread that waited most spent waiting for a core.
    pub(crate) waiting_share: f64,
    pub(crate) max_resident_bytes: u64,
}

impl OwnCpu {
    /// Whether the generator was the bottleneck, or nearly.
    pub(crate) fn is_bottleneck(&self) -> bool {
        self.busiest_share >= BUSY && self.measured_ns >= LEAST_MEASURED_NS
    }

    /// Whether the generator measured its own waiting for a core.
    pub(crate) fn is_starved(&self) -> bool {
        self.waiting_share >= STARVED && self.measured_ns >= LEAST_MEASURED_NS
    }
}

/// A load test's numbers.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) asked: Asked,
    /// Requests that succeeded.
    pub(crate) completed: u64,
    /// Requests that failed.
    pub(crate) failed: u64,
    /// Requests that were on their way when time was up: nobody knows how they would have ended.
    pub(crate) unfinished: u64,
    pub(crate) never_sent: u64,
    /// sent − intended of an open loop: of the thread with the highest p99.
    pub(crate) lag: Lag,
    pub(crate) stopped: Option<String>,
    /// Of an open loop that was kept to, the schedule's; else from the first intended time to the end.
    pub(crate) duration_ns: u64,
    pub(crate) failures: BTreeMap<FailureKind, Group>,
    pub(crate) statuses: BTreeMap<u16, Group>,
    pub(crate) versions: BTreeMap<&'static str, u64>,
    pub(crate) urls: Vec<(String, Group)>,
    /// Requests to URLs that are not shown apart.
    pub(crate) further_urls: Option<Group>,
    pub(crate) phases: Phases,
    pub(crate) per_connection: PerConnection,
    pub(crate) connections: u64,
    pub(crate) failed_connections: u64,
    /// How many of them failed in each way, with the first reason.
    pub(crate) connection_failures: BTreeMap<FailureKind, (u64, String)>,
    /// Of all connections, warm-up included.
    pub(crate) protocols: Protocols,
    pub(crate) body_bytes: u64,
    pub(crate) request_body_bytes: u64,
    /// On all connections, since the warm-up.
    pub(crate) sent_bytes: u64,
    /// On all connections, since the warm-up.
    pub(crate) received_bytes: u64,
    pub(crate) request_headers: HeaderBytes,
    pub(crate) response_headers: HeaderBytes,
    pub(crate) cpu: OwnCpu,
    pub(crate) rows: Option<WrittenRows>,
}

impl Summary {
    /// The summary of the reports of all threads, whose requests are all in tallies, and of the rows' file.
    ///
    /// # Errors
    /// A histogram that cannot be made.
    pub(crate) fn of(asked: Asked, reports: &[Report], rows: Option<WrittenRows>) -> Result<Self> {
        let mut sums = Sums::new(asked)?;
        for report in reports {
            sums.labels(&report.client.urls);
            report.client.tallies.iter().for_each(|tally| sums.tally(tally));
            sums.client(report);
        }
        Ok(Summary { rows, ..sums.finish(reports) })
    }

    /// Requests that succeeded per second.
    pub(crate) fn per_second(&self) -> f64 {
        if self.duration_ns == 0 { 0.0 } else { as_f64(self.completed) * 1e9 / as_f64(self.duration_ns) }
    }

    /// The share of ended requests that were answered well, as siege has it; `None` where none ended.
    pub(crate) fn availability(&self) -> Option<f64> {
        let ended = self.completed + self.failed;
        (ended > 0).then(|| as_f64(self.completed) / as_f64(ended))
    }

    /// Whether the test is not what was asked for: a request failed or was never sent, it was stopped, or nothing was
    /// answered. Requests that are in flight when a test's time is up belong to every such test.
    pub(crate) fn is_invalid(&self) -> bool {
        self.failed > 0 || self.stopped.is_some() || self.never_sent > 0 || self.completed == 0
    }

    /// What a reader has to know before believing the numbers.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let time = |ns: u64| format_duration_ns(as_f64(ns));
        if self.completed == 0 {
            warnings.push("nothing was measured: no request was answered well".to_owned());
        }
        if let (0, Some((kind, (_, reason)))) = (self.failed, self.connection_failures.first_key_value()) {
            warnings.push(format!(
                "{} connection{} failed although no request did: {}: {reason}",
                self.failed_connections,
                if self.failed_connections == 1 { "" } else { "s" },
                kind.name()
            ));
        }
        if self.never_sent > 0 {
            warnings.push(format!(
                "the schedule was missed: {} requests were due and never sent, since no connection was free",
                self.never_sent
            ));
        }
        if is_late(self.lag) {
            warnings.push(format!(
                "the schedule was missed: requests were sent later than intended by {} (p50), {} (p99), {} (max); \
                 latency counts from the intended time",
                time(self.lag.p50_ns),
                time(self.lag.p99_ns),
                time(self.lag.max_ns)
            ));
        }
        if self.asked.coalesce_ns > 0 {
            warnings.push(format!(
                "latencies are not the server's: every read waited {} for more (--coalesce), for throughput alone",
                time(self.asked.coalesce_ns)
            ));
        }
        if self.cpu.is_bottleneck() {
            warnings.push(format!(
                "the generator was the bottleneck: a thread computed for {:.0} % of its time; use more --threads, \
                 or a lower load",
                self.cpu.busiest_share * 100.0
            ));
        }
        if self.cpu.is_starved() {
            warnings.push(format!(
                "the generator waited for a core for {:.0} % of its time, which counts as the server's; give it a \
                 core of its own",
                self.cpu.waiting_share * 100.0
            ));
        }
        if let Some(rows) = &self.rows {
            warnings.extend(rows.warning());
        }
        warnings.extend(self.protocols.warnings(&self.asked, &self.phases));
        if let Some(reason) = &self.stopped {
            warnings.push(format!("stopped early: {reason}"));
        }
        warnings
    }
}

/// Whether requests were sent so late that the schedule was missed.
pub(super) fn is_late(lag: Lag) -> bool {
    lag.p99_ns > LATE_NS
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
pub(crate) fn as_f64(value: u64) -> f64 {
    value as f64
}
