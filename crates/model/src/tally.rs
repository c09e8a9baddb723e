//! Requests without rows: their numbers summed up by what they have in common. Tallies of equal keys merge.

use serde::{Deserialize, Serialize};

use crate::sample::{FailureKind, Phase};
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
    /// Closed − opened.
    pub lifetime: Histogram,
    /// Measured requests that ended on each, in numbers.
    pub requests: Histogram,
    /// The mean latency of each one's measured successes.
    pub mean_latency: Histogram,
    /// Bytes received on each, in bytes.
    pub received: Histogram,
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
