//! Requests and connections without rows, summed up by what they have in common. All of these
//! sums merge.
//!
//! Workers record every request here, so the functions for requests are inlined across crates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::sample::{ConnectionRow, EarlyData, FailureKind, HandshakeKind, Outcome, Phase, Sample};
use crate::variant::HttpVersion;

/// Different things are counted apart up to this number; further ones are counted with the last.
const MOST_APART: usize = 16;

/// What the requests of a tally have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TallyKey {
    /// Warm-up or measured.
    pub phase: Phase,
    /// Which URL; `None` where there are too many to count apart.
    pub url: Option<u32>,
    /// The status code.
    pub status: Option<u16>,
    /// The version of the response.
    pub version: Option<HttpVersion>,
    /// The kind of failure; `None` where the request succeeded.
    pub failure: Option<FailureKind>,
}

/// Requests with one key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// What they have in common.
    pub key: TallyKey,
    /// The first reason of failure.
    pub reason: Option<String>,
    /// Times from intended to done, in nanoseconds.
    pub latency: Histogram,
    /// Their number, period and bytes.
    pub sums: RequestSums,
}

/// Requests summed up: their number, their period and their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSums {
    /// How many.
    pub requests: u64,
    /// The earliest time for which one was intended.
    pub first_intended_ns: Option<u64>,
    /// The latest end of one.
    pub last_done_ns: Option<u64>,
    /// Request header bytes before compression.
    pub request_header_raw_bytes: u64,
    /// Request header bytes on the wire.
    pub request_header_wire_bytes: u64,
    /// Response header bytes before compression.
    pub response_header_raw_bytes: u64,
    /// Response header bytes on the wire.
    pub response_header_wire_bytes: u64,
    /// Request body bytes sent.
    pub request_body_bytes: u64,
    /// Response body bytes received.
    pub response_body_bytes: u64,
}

/// The parts of the times of measured successes, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestTimes {
    /// From sent to done.
    pub service: Histogram,
    /// From sent to the response's head.
    pub wait: Histogram,
    /// From the response's head to done.
    pub transfer: Histogram,
}

/// Connections without rows, summed up. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionTally {
    /// How many.
    pub connections: u64,
    /// Those that failed, by kind.
    pub failures: BTreeMap<FailureKind, FailedConnections>,
    /// Bytes handed to the transport.
    pub sent_bytes: u64,
    /// Bytes received from the transport.
    pub received_bytes: u64,
    /// From opened to connected: TCP alone.
    pub connect: Histogram,
    /// From connected (opened for QUIC) to ready, of handshakes from scratch.
    pub handshake: Histogram,
    /// The same of handshakes that resumed a session.
    pub resumed_handshake: Histogram,
    /// The same of handshakes whose early data the server accepted.
    pub early_handshake: Histogram,
    /// What handshakes agreed on.
    pub security: Counts<Security>,
    /// What protocols did beyond requests.
    pub protocols: ProtocolCounts,
    /// From opened to closed.
    pub lifetime: Histogram,
    /// Measured requests that ended on each.
    pub requests: Histogram,
    /// The mean latency of each one's measured successes.
    pub mean_latency: Histogram,
    /// Bytes received on each.
    pub received: Histogram,
}

/// What a handshake agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Security {
    /// TLS version as the library names it.
    pub tls_version: Option<String>,
    /// Cipher suite as registered.
    pub cipher_suite: Option<String>,
    /// Key exchange group as registered.
    pub key_exchange: Option<String>,
}

/// What protocols did beyond requests, on all connections of a tally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolCounts {
    /// Connections whose early data was accepted.
    pub early_accepted: u64,
    /// Connections whose early data was rejected.
    pub early_rejected: u64,
    /// Requests that left as early data.
    pub early_requests: u64,
    /// Pushed responses that arrived whole.
    pub pushed: u64,
    /// Pushed responses that did not.
    pub pushed_broken: u64,
    /// Body bytes of pushed responses.
    pub pushed_bytes: u64,
    /// Connections that migrated to a new local address.
    pub migrated: u64,
    /// Of these, those that received a packet of the server there.
    pub migrated_answered: u64,
}

/// Connections that failed with the same kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedConnections {
    /// How many.
    pub connections: u64,
    /// The first one's reason.
    pub first_reason: String,
}

/// Different things and how often each occurred, in the order of their first occurrence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts<T>(pub Vec<(T, u64)>);

/// The measured requests that ended on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionRequests {
    /// How many.
    pub requests: u64,
    /// Of these, those that succeeded.
    pub completed: u64,
    /// The sum of the latencies of successes.
    pub latency_ns: u64,
}

impl TallyKey {
    /// The key of a request that has ended.
    #[inline]
    pub fn of(sample: &Sample) -> TallyKey {
        TallyKey {
            phase: sample.phase,
            url: Some(sample.url),
            status: sample.status,
            version: sample.version,
            failure: sample.outcome.failure().map(|failure| failure.kind),
        }
    }
}

impl Tally {
    /// No requests yet.
    pub fn new(key: TallyKey) -> Tally {
        Tally { key, reason: None, latency: Histogram::default(), sums: RequestSums::default() }
    }

    /// Counts a request that has ended.
    #[inline]
    pub fn record(&mut self, sample: &Sample) {
        if let (None, Some(failure)) = (&self.reason, sample.outcome.failure()) {
            self.reason = Some(failure.reason.clone());
        }
        self.latency.record(sample.request_time_ns().unwrap_or(0));
        self.sums.record(sample);
    }
}

impl RequestSums {
    /// Counts a request that has ended.
    #[inline]
    pub fn record(&mut self, sample: &Sample) {
        self.requests += 1;
        self.first_intended_ns = earliest(self.first_intended_ns, Some(sample.intended_ns));
        self.last_done_ns = self.last_done_ns.max(sample.done_ns);
        self.request_header_raw_bytes += u64::from(sample.request_header_raw_bytes);
        self.request_header_wire_bytes += u64::from(sample.request_header_wire_bytes);
        self.response_header_raw_bytes += u64::from(sample.response_header_raw_bytes);
        self.response_header_wire_bytes += u64::from(sample.response_header_wire_bytes);
        self.request_body_bytes += sample.request_body_bytes;
        self.response_body_bytes += sample.response_body_bytes;
    }

    /// Adds other requests.
    pub fn merge(&mut self, other: &RequestSums) {
        self.requests += other.requests;
        self.first_intended_ns = earliest(self.first_intended_ns, other.first_intended_ns);
        self.last_done_ns = self.last_done_ns.max(other.last_done_ns);
        self.request_header_raw_bytes += other.request_header_raw_bytes;
        self.request_header_wire_bytes += other.request_header_wire_bytes;
        self.response_header_raw_bytes += other.response_header_raw_bytes;
        self.response_header_wire_bytes += other.response_header_wire_bytes;
        self.request_body_bytes += other.request_body_bytes;
        self.response_body_bytes += other.response_body_bytes;
    }
}

#[inline]
fn earliest(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

impl RequestTimes {
    /// Counts a request, if it succeeded and is measured.
    #[inline]
    pub fn record(&mut self, sample: &Sample) {
        if sample.phase == Phase::Measure && sample.outcome.is_ok() {
            let Some((sent_ns, done_ns)) = sample.sent_ns.zip(sample.done_ns) else { return };
            self.service.record(done_ns.saturating_sub(sent_ns));
            if let Some(first_ns) = sample.first_byte_ns {
                self.wait.record(first_ns.saturating_sub(sent_ns));
                self.transfer.record(done_ns.saturating_sub(first_ns));
            }
        }
    }

    /// Adds the times of other requests.
    pub fn merge(&mut self, other: &RequestTimes) {
        let others = [&other.service, &other.wait, &other.transfer];
        self.all_mut().into_iter().zip(others).for_each(|(own, other)| own.merge(other));
    }

    fn all_mut(&mut self) -> [&mut Histogram; 3] {
        [&mut self.service, &mut self.wait, &mut self.transfer]
    }
}

impl ConnectionRequests {
    /// What a request that has ended adds.
    pub fn of(sample: &Sample) -> ConnectionRequests {
        if sample.phase != Phase::Measure {
            return ConnectionRequests::default();
        }
        let latency_ns = sample.request_time_ns().filter(|_| sample.outcome.is_ok());
        ConnectionRequests {
            requests: 1,
            completed: latency_ns.is_some().into(),
            latency_ns: latency_ns.unwrap_or(0),
        }
    }

    /// Adds other requests.
    pub fn add(&mut self, other: ConnectionRequests) {
        self.requests += other.requests;
        self.completed += other.completed;
        self.latency_ns = self.latency_ns.saturating_add(other.latency_ns);
    }
}

impl ConnectionTally {
    /// Counts a connection that is over.
    pub fn record(&mut self, row: ConnectionRow, carried: ConnectionRequests) {
        self.connections += 1;
        self.sent_bytes += row.sent_bytes;
        self.received_bytes += row.received_bytes;
        self.received.record(row.received_bytes);
        if let Some(closed_ns) = row.closed_ns {
            self.lifetime.record(closed_ns.saturating_sub(row.opened_ns));
        }
        if let Some(connected_ns) = row.connected_ns {
            self.connect.record(connected_ns.saturating_sub(row.opened_ns));
        }
        if let Some((kind, ns)) = row.handshake() {
            let histogram = match kind {
                HandshakeKind::Cold => &mut self.handshake,
                HandshakeKind::Resumed => &mut self.resumed_handshake,
                HandshakeKind::Early => &mut self.early_handshake,
            };
            histogram.record(ns);
        }
        if carried.requests > 0 {
            self.requests.record(carried.requests);
        }
        if let Some(mean_ns) = carried.latency_ns.checked_div(carried.completed) {
            self.mean_latency.record(mean_ns);
        }
        self.protocols.add(ProtocolCounts::of(&row));
        let ConnectionRow { tls_version, cipher_suite, key_exchange, outcome, .. } = row;
        if tls_version.is_some() {
            self.security.add(Security { tls_version, cipher_suite, key_exchange }, 1);
        }
        if let Outcome::Failed(failure) = outcome {
            self.add_failures(
                failure.kind,
                FailedConnections { connections: 1, first_reason: failure.reason },
            );
        }
    }

    /// Adds other connections.
    pub fn merge(&mut self, other: &ConnectionTally) {
        self.connections += other.connections;
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        for (own, other) in [
            (&mut self.connect, &other.connect),
            (&mut self.handshake, &other.handshake),
            (&mut self.resumed_handshake, &other.resumed_handshake),
            (&mut self.early_handshake, &other.early_handshake),
            (&mut self.lifetime, &other.lifetime),
            (&mut self.requests, &other.requests),
            (&mut self.mean_latency, &other.mean_latency),
            (&mut self.received, &other.received),
        ] {
            own.merge(other);
        }
        self.protocols.add(other.protocols);
        self.security.merge(&other.security);
        other.failures.iter().for_each(|(kind, failed)| self.add_failures(*kind, failed.clone()));
    }

    /// How many failed.
    pub fn failed(&self) -> u64 {
        self.failures.values().map(|failed| failed.connections).sum()
    }

    fn add_failures(&mut self, kind: FailureKind, failed: FailedConnections) {
        self.failures
            .entry(kind)
            .and_modify(|known| known.connections += failed.connections)
            .or_insert(failed);
    }
}

impl ProtocolCounts {
    /// What one connection did.
    pub fn of(row: &ConnectionRow) -> Self {
        let is = u64::from;
        ProtocolCounts {
            early_accepted: is(row.early_data == EarlyData::Accepted),
            early_rejected: is(row.early_data == EarlyData::Rejected),
            early_requests: row.early_requests.into(),
            pushed: row.pushed.whole.into(),
            pushed_broken: row.pushed.broken.into(),
            pushed_bytes: row.pushed.body_bytes,
            migrated: is(row.migrated.is_some()),
            migrated_answered: is(row.migrated.is_some_and(|migration| migration.answered_ns.is_some())),
        }
    }

    /// Adds what other connections did.
    pub fn add(&mut self, other: ProtocolCounts) {
        self.early_accepted += other.early_accepted;
        self.early_rejected += other.early_rejected;
        self.early_requests += other.early_requests;
        self.pushed += other.pushed;
        self.pushed_broken += other.pushed_broken;
        self.pushed_bytes += other.pushed_bytes;
        self.migrated += other.migrated;
        self.migrated_answered += other.migrated_answered;
    }
}

impl<T> Default for Counts<T> {
    fn default() -> Self {
        Counts(Vec::new())
    }
}

impl<T: PartialEq + Clone> Counts<T> {
    /// Counts a thing.
    pub fn add(&mut self, thing: T, count: u64) {
        if let Some((_, known)) = self.0.iter_mut().find(|(known, _)| *known == thing) {
            *known += count;
        } else if self.0.len() < MOST_APART {
            self.0.push((thing, count));
        } else if let Some((_, last)) = self.0.last_mut() {
            *last += count;
        }
    }

    /// Adds what others counted.
    pub fn merge(&mut self, other: &Counts<T>) {
        other.0.iter().for_each(|(thing, count)| self.add(thing.clone(), *count));
    }

    /// How often all of them occurred.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }
}
