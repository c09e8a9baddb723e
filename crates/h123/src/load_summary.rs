//! What a load test says at the end: for people and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write;

use load::Report;
use model::assignment::{Assignment, Lag};
use model::sample::{Outcome, Phase, Sample};
use model::tally::Tally;
use model::units::{format_bytes, format_duration_ns, three_digits};
use serde_json::{Value, json};

/// The quantiles that are printed, in per mille of a per cent where needed.
const QUANTILES: &[(&str, f64)] =
    &[("p50", 0.50), ("p75", 0.75), ("p90", 0.90), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

/// A load test's numbers. Warm-up is left out of all but the failures by kind.
#[derive(Clone, Debug)]
pub(crate) struct LoadSummary {
    url: String,
    variant: String,
    /// Requests that ended well.
    pub(crate) completed: u64,
    /// Requests that failed.
    pub(crate) failed: u64,
    failures: BTreeMap<&'static str, u64>,
    first_reason: Option<String>,
    statuses: BTreeMap<u16, u64>,
    versions: BTreeMap<&'static str, u64>,
    /// Latencies of successes from the intended time, sorted, each with how many had it.
    latency_ns: Vec<(u64, u64)>,
    /// sent − intended of an open loop: the worst of all threads.
    lag: Lag,
    never_sent: u64,
    stopped: Option<String>,
    duration_ns: u64,
    body_bytes: u64,
    received_bytes: u64,
    sent_bytes: u64,
    request_header_wire_bytes: u64,
    response_header_wire_bytes: u64,
    connections: u64,
    cpu_user_ns: u64,
    cpu_system_ns: u64,
    threads: u64,
}

impl LoadSummary {
    /// The summary of the reports of all threads.
    pub(crate) fn of(assignment: &Assignment, url: &str, reports: &[Report]) -> Self {
        let measured = || {
            reports.iter().flat_map(|report| &report.samples).filter(|sample| sample.phase == Phase::Measure)
        };
        let ok = || measured().filter(|sample| sample.outcome.is_ok());
        let mut latency_ns: Vec<(u64, u64)> =
            ok().filter_map(|sample| Some((sample.done_ns?.saturating_sub(sample.intended_ns), 1))).collect();
        let tallies = || {
            let all = reports.iter().flat_map(|report| &report.client.tallies);
            all.filter(|tally| tally.key.phase == Phase::Measure)
        };
        let tallied_ok = || tallies().filter(|tally| tally.key.failure.is_none());
        tallied_ok().for_each(|tally| latency_ns.extend(load::recorded(&tally.latency)));
        latency_ns.sort_unstable();
        let began = measured().map(|sample| sample.intended_ns);
        let began = began.chain(tallies().map(|tally| tally.first_intended_ns)).min().unwrap_or(0);
        let ended = reports.iter().map(|report| report.client.finished_ns).max().unwrap_or(began);
        let ok_sum = |row: fn(&Sample) -> u64, tally: fn(&Tally) -> u64| {
            ok().map(row).sum::<u64>() + tallied_ok().map(tally).sum::<u64>()
        };
        let further = || reports.iter().map(|report| report.client.further_connections);
        let clients = || reports.iter().map(|report| &report.client);
        let mut summary = LoadSummary {
            url: url.to_owned(),
            variant: assignment.target.variant.name().to_owned(),
            completed: latency_ns.iter().map(|(_, count)| count).sum(),
            failed: 0,
            failures: BTreeMap::new(),
            first_reason: None,
            statuses: BTreeMap::new(),
            versions: BTreeMap::new(),
            latency_ns,
            lag: clients().map(|client| client.lag).max_by_key(|lag| lag.p99_ns).unwrap_or_default(),
            never_sent: clients().map(|client| client.never_sent).sum(),
            stopped: clients().find_map(|client| client.stopped.clone()),
            duration_ns: ended.saturating_sub(began),
            body_bytes: ok_sum(|sample| sample.response_body_bytes, |tally| tally.response_body_bytes),
            received_bytes: connections(reports).map(|row| row.received_bytes).sum::<u64>()
                + further().map(|sums| sums.received_bytes).sum::<u64>(),
            sent_bytes: connections(reports).map(|row| row.sent_bytes).sum::<u64>()
                + further().map(|sums| sums.sent_bytes).sum::<u64>(),
            request_header_wire_bytes: ok_sum(
                |sample| u64::from(sample.request_header_wire_bytes),
                |tally| tally.request_header_wire_bytes,
            ),
            response_header_wire_bytes: ok_sum(
                |sample| u64::from(sample.response_header_wire_bytes),
                |tally| tally.response_header_wire_bytes,
            ),
            connections: connections(reports).count() as u64
                + further().map(|sums| sums.connections).sum::<u64>(),
            cpu_user_ns: reports.iter().map(|report| report.client.cpu_user_ns).sum(),
            cpu_system_ns: reports.iter().map(|report| report.client.cpu_system_ns).sum(),
            threads: reports.len() as u64,
        };
        measured().for_each(|sample| summary.count(sample));
        tallies().for_each(|tally| summary.add(tally));
        summary
    }

    /// What a reader has to know before believing the numbers.
    pub(crate) fn warnings(&self) -> Vec<String> {
        /// Later than this is a schedule that was not kept.
        const LATE_NS: u64 = 1_000_000;
        let mut warnings = Vec::new();
        if self.never_sent > 0 {
            warnings.push(format!(
                "the schedule was missed: {} requests were due and never sent, since no connection was free",
                self.never_sent
            ));
        }
        if self.lag.p99_ns > LATE_NS {
            let lag = |ns: u64| format_duration_ns(as_f64(ns));
            warnings.push(format!(
                "the schedule was missed: requests were sent later than intended by {} (p50), {} (p99), {} (max); \
                 latency counts from the intended time",
                lag(self.lag.p50_ns),
                lag(self.lag.p99_ns),
                lag(self.lag.max_ns)
            ));
        }
        if let Some(reason) = &self.stopped {
            warnings.push(format!("stopped early: {reason}"));
        }
        warnings
    }

    /// Whether the test is not what was asked for: it was stopped, or requests were never sent.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.stopped.is_some() || self.never_sent > 0
    }

    fn add(&mut self, tally: &Tally) {
        if let Some(status) = tally.key.status {
            *self.statuses.entry(status).or_default() += tally.requests;
        }
        if let Some(version) = tally.key.version {
            *self.versions.entry(version.name()).or_default() += tally.requests;
        }
        if let Some(kind) = tally.key.failure {
            self.failed += tally.requests;
            *self.failures.entry(kind.name()).or_default() += tally.requests;
            if let (None, Some(reason)) = (&self.first_reason, &tally.reason) {
                self.first_reason = Some(reason.clone());
            }
        }
    }

    fn count(&mut self, sample: &Sample) {
        if let Some(status) = sample.status {
            *self.statuses.entry(status).or_default() += 1;
        }
        if let Some(version) = sample.version {
            *self.versions.entry(version.name()).or_default() += 1;
        }
        if let Outcome::Failed(failure) = &sample.outcome {
            self.failed += 1;
            *self.failures.entry(failure.kind.name()).or_default() += 1;
            self.first_reason.get_or_insert_with(|| failure.reason.clone());
        }
    }

    /// The summary as JSON; durations in nanoseconds, sizes in bytes.
    pub(crate) fn to_json(&self) -> Value {
        let mut latency = serde_json::Map::new();
        for (name, share) in QUANTILES {
            latency.insert(name.replace('.', "_"), json!(self.quantile(*share)));
        }
        latency.insert("min".into(), json!(self.latency_ns.first().map(|(ns, _)| ns)));
        latency.insert("max".into(), json!(self.latency_ns.last().map(|(ns, _)| ns)));
        latency.insert("mean".into(), json!(self.mean_ns()));
        latency.insert("count".into(), json!(self.completed));
        json!({
            "url": self.url,
            "variant": self.variant,
            "versions": self.versions,
            "statuses": self.statuses,
            "duration_ns": self.duration_ns,
            "requests": {
                "completed": self.completed, "failed": self.failed, "failures": self.failures,
                "per_second": self.per_second(),
            },
            "latency_ns": latency,
            "schedule": {
                "sent_after_intended_ns": {
                    "p50": self.lag.p50_ns, "p99": self.lag.p99_ns, "max": self.lag.max_ns,
                },
                "never_sent": self.never_sent,
            },
            "stopped": self.stopped,
            "warnings": self.warnings(),
            "bytes": {
                "body": self.body_bytes, "sent": self.sent_bytes, "received": self.received_bytes,
                "request_header_wire": self.request_header_wire_bytes,
                "response_header_wire": self.response_header_wire_bytes,
            },
            "connections": self.connections,
            "cpu": {
                "user_ns": self.cpu_user_ns, "system_ns": self.cpu_system_ns, "share_of_threads": self.cpu_share(),
            },
        })
    }

    /// The summary for people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        let versions: Vec<String> =
            self.versions.iter().map(|(name, count)| format!("{count} in {name}")).collect();
        let answered = if versions.is_empty() { "no answer".to_owned() } else { versions.join(", ") };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} · {} · answered: {answered}", self.url, self.variant);
        let _ = writeln!(
            text,
            "  requests     {} completed, {} failed in {} · {} requests/s",
            self.completed,
            self.failed,
            format_duration_ns(as_f64(self.duration_ns)),
            three_digits(self.per_second())
        );
        if let Some(mean_ns) = self.mean_ns() {
            let quantiles: Vec<String> = QUANTILES
                .iter()
                .filter_map(|(name, share)| {
                    Some(format!("{name} {}", format_duration_ns(as_f64(self.quantile(*share)?))))
                })
                .collect();
            let _ = writeln!(
                text,
                "  latency      mean {} · {}",
                format_duration_ns(mean_ns),
                quantiles.join(" · ")
            );
        }
        let _ = writeln!(
            text,
            "  bytes        {} of bodies · {} sent, {} received on {} connections",
            format_bytes(as_f64(self.body_bytes)),
            format_bytes(as_f64(self.sent_bytes)),
            format_bytes(as_f64(self.received_bytes)),
            self.connections
        );
        if self.completed > 0 {
            let per = |total: u64| as_f64(total) / as_f64(self.completed);
            let _ = writeln!(
                text,
                "  headers      {} B sent, {} B received per request on the wire",
                three_digits(per(self.request_header_wire_bytes)),
                three_digits(per(self.response_header_wire_bytes))
            );
            let _ = writeln!(
                text,
                "  client CPU   {} user + {} system per request · {:.0} % of {} thread(s)",
                format_duration_ns(per(self.cpu_user_ns)),
                format_duration_ns(per(self.cpu_system_ns)),
                self.cpu_share() * 100.0,
                self.threads
            );
        }
        for (kind, count) in &self.failures {
            let _ = writeln!(text, "  failed       {count} × {kind}");
        }
        if let Some(reason) = &self.first_reason {
            let _ = writeln!(text, "  first reason {reason}");
        }
        text.trim_end().to_owned()
    }

    fn quantile(&self, share: f64) -> Option<u64> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank below the count")]
        let mut rank = ((as_f64(self.completed) * share).ceil() as u64).max(1);
        let at_rank = self.latency_ns.iter().find(|(_, count)| {
            let is_here = rank <= *count;
            rank -= (*count).min(rank);
            is_here
        });
        at_rank.map(|(ns, _)| *ns)
    }

    fn mean_ns(&self) -> Option<f64> {
        let sum: u64 = self.latency_ns.iter().map(|(ns, count)| ns.saturating_mul(*count)).sum();
        (!self.latency_ns.is_empty()).then(|| as_f64(sum) / as_f64(self.completed))
    }

    fn per_second(&self) -> f64 {
        if self.duration_ns == 0 { 0.0 } else { as_f64(self.completed) * 1e9 / as_f64(self.duration_ns) }
    }

    fn cpu_share(&self) -> f64 {
        let available = as_f64(self.duration_ns) * as_f64(self.threads);
        if available == 0.0 { 0.0 } else { as_f64(self.cpu_user_ns + self.cpu_system_ns) / available }
    }
}

fn connections(reports: &[Report]) -> impl Iterator<Item = &model::ConnectionRow> {
    reports.iter().flat_map(|report| &report.connections)
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn as_f64(value: u64) -> f64 {
    value as f64
}
