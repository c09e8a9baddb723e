//! Requests without rows: their numbers summed up by what they have in common. Tallies of equal keys merge.

use serde::{Deserialize, Serialize};

use crate::sample::{ConnectionRow, EarlyData, FailureKind, Phase};
use crate::variant::HttpVersion;

/// An HDR histogram in its V2 form: of nanoseconds, unless said otherwise. Empty where nothing was recorded.
pub type Histogram = Vec<u8>;

/// What the requests of a tally have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TallyKey {
    /// Warm-up or measured.
    pub phase: Phase,
    /// Which URL; `None` where there are too many to count apart.
    pub url: Option<u32>,
    /// The status code.
    pub status: Option<u16>,
    /// The version that the response really used.
    pub version: Option<HttpVersion>,
    /// The kind of failure; `None` where the outcome was well.
    pub failure: Option<FailureKind>,
}

/// So many requests with one key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// What they have in common.
    pub key: TallyKey,
    /// How many.
    pub requests: u64,
    /// The first reason of failure.
    pub reason: Option<String>,
    /// The earliest time that one was intended for.
    pub first_intended_ns: u64,
    /// The latest end of one.
    pub last_done_ns: u64,
    /// Latencies: done − intended.
    pub latency: Histogram,
    /// Sums of the rows' columns of the same names.
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

/// The parts of the times of measured successes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestTimes {
    /// Service times: done − sent.
    pub service: Histogram,
    /// Waiting times: first byte − sent.
    pub wait: Histogram,
    /// Transfer times: done − first byte.
    pub transfer: Histogram,
}

/// Connections without rows, summed up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionTally {
    /// How many.
    pub connections: u64,
    /// Of these, those that ended in failure.
    pub failed: u64,
    /// These by their kinds.
    pub failures: Vec<ConnectionFailures>,
    /// Bytes handed to the transport.
    pub sent_bytes: u64,
    /// Bytes received from the transport.
    pub received_bytes: u64,
    /// Connected − opened: TCP alone.
    pub connect: Histogram,
    /// Ready − connected, or − opened for QUIC, of handshakes from scratch.
    pub handshake: Histogram,
    /// The same of handshakes that resumed a session.
    pub resumed_handshake: Histogram,
    /// The same of those whose early data the server took.
    pub early_handshake: Histogram,
    /// What handshakes agreed on; only so many kinds are told apart.
    pub security: Vec<Security>,
    /// What protocols did beyond requests.
    pub protocols: ProtocolCounts,
    /// Closed − opened.
    pub lifetime: Histogram,
    /// Measured requests that ended on each, in numbers.
    pub requests: Histogram,
    /// The mean latency of each one's measured successes.
    pub mean_latency: Histogram,
    /// Bytes received on each, in bytes.
    pub received: Histogram,
}

/// What handshakes agreed on, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Security {
    /// TLS version as the library names it.
    pub tls_version: Option<String>,
    /// Cipher suite as registered.
    pub cipher_suite: Option<String>,
    /// Key exchange group as registered.
    pub key_exchange: Option<String>,
    /// Connections.
    pub connections: u64,
}

/// What protocols did beyond requests, on all connections of a tally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolCounts {
    /// Connections whose early data was taken.
    pub early_accepted: u64,
    /// Connections whose early data was refused.
    pub early_rejected: u64,
    /// Requests that left as early data.
    pub early_requests: u64,
    /// Pushed responses that came whole.
    pub pushed: u64,
    /// Pushed responses that did not.
    pub pushed_broken: u64,
    /// Body bytes of pushed responses.
    pub pushed_bytes: u64,
    /// Connections that moved to a new local address.
    pub migrated: u64,
    /// Of these, those that heard from the server there.
    pub moved_answered: u64,
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
            moved_answered: is(row.migrated.is_some_and(|moved| moved.answered_ns.is_some())),
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
        self.moved_answered += other.moved_answered;
    }
}

/// Connections that were to move and stayed, for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedMigration {
    /// Why.
    pub reason: String,
    /// How many.
    pub connections: u64,
}

/// Connections that failed in the same way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionFailures {
    /// The kind.
    pub kind: FailureKind,
    /// How many.
    pub connections: u64,
    /// The first one's reason.
    pub first_reason: String,
}
