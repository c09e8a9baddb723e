//! Requests without rows: their numbers summed up by what they have in common. Tallies of equal keys merge.

use serde::{Deserialize, Serialize};

use crate::sample::{FailureKind, Phase};
use crate::variant::HttpVersion;

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

/// So many requests with one key. Histograms are HDR histograms in their V2 form, in nanoseconds.
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
    pub latency: Vec<u8>,
    /// Service times: done − sent.
    pub service: Vec<u8>,
    /// Waiting times: first byte − sent.
    pub wait: Vec<u8>,
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
