//! Sums in place of rows: what requests had in common is counted, their times go into histograms.

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use model::assignment::Lag;
use model::sample::{ConnectionRow, HandshakeKind, Outcome, Phase, Sample};
use model::tally::{
    ConnectionFailures, ConnectionTally, ProtocolCounts, RequestTimes, Security, Tally, TallyKey,
};

/// Three significant digits, as HDR histograms usually have.
const DIGITS: u8 = 3;
/// Longer times count as this long.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// So many URLs are counted apart, by their numbers.
const MOST_URLS: usize = 64;
/// So many keys are counted apart; requests with further keys are counted without their URL, and beyond twice as
/// many all together. A histogram of 130 kB bounds what a key takes.
const MOST_KEYS: usize = 128;

/// So many outcomes of handshakes are told apart; further ones are counted with the last.
const MOST_SECURITIES: usize = 16;

/// A histogram of nanoseconds; recording into it allocates nothing.
#[derive(Clone, Debug)]
pub(crate) struct Times(Histogram<u32>);

impl Times {
    /// # Errors
    /// Never with these bounds; they are checked nonetheless.
    pub(crate) fn new() -> Result<Self> {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        Ok(Times(histogram.context("making a histogram")?))
    }

    pub(crate) fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    /// Median, 99th percentile and maximum.
    pub(crate) fn lag(&self) -> Lag {
        if self.0.is_empty() {
            return Lag::default();
        }
        Lag {
            p50_ns: self.0.value_at_quantile(0.5),
            p99_ns: self.0.value_at_quantile(0.99),
            max_ns: self.0.max(),
        }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if self.0.is_empty() {
            return Ok(bytes);
        }
        V2Serializer::new().serialize(&self.0, &mut bytes).context("writing a histogram")?;
        Ok(bytes)
    }
}

/// The tallies of one client's requests.
#[derive(Debug)]
pub struct Tallies {
    empty: Times,
    kept: Vec<Open>,
    /// Where a request to each URL was last counted: the next is mostly of the same kind.
    last: [usize; MOST_URLS + 1],
    service: Times,
    wait: Times,
    transfer: Times,
}

#[derive(Debug)]
struct Open {
    sums: Tally,
    latency: Times,
}

impl Tallies {
    /// # Errors
    /// Histograms that cannot be made.
    pub fn new() -> Result<Self> {
        let empty = Times::new()?;
        let times = || empty.clone();
        let (service, wait, transfer) = (times(), times(), times());
        Ok(Tallies { empty, kept: Vec::new(), last: [0; MOST_URLS + 1], service, wait, transfer })
    }

    /// Counts one request that has ended.
    pub fn record(&mut self, sample: &Sample) {
        let (failure, reason) = match &sample.outcome {
            Outcome::Ok | Outcome::Unsupported(_) => (None, None),
            Outcome::Failed(failure) => (Some(failure.kind), Some(&failure.reason)),
        };
        let key = TallyKey {
            phase: sample.phase,
            url: Some(sample.url).filter(|url| (*url as usize) < MOST_URLS),
            status: sample.status,
            version: sample.version,
            failure,
        };
        let place = self.place(key);
        let Some(tally) = self.kept.get_mut(place) else { return };
        let sums = &mut tally.sums;
        if let (None, Some(reason)) = (&sums.reason, reason) {
            sums.reason = Some(reason.clone());
        }
        let done_ns = sample.done_ns.unwrap_or(sample.intended_ns);
        sums.requests += 1;
        sums.first_intended_ns = sums.first_intended_ns.min(sample.intended_ns);
        sums.last_done_ns = sums.last_done_ns.max(done_ns);
        sums.request_header_raw_bytes += u64::from(sample.request_header_raw_bytes);
        sums.request_header_wire_bytes += u64::from(sample.request_header_wire_bytes);
        sums.response_header_raw_bytes += u64::from(sample.response_header_raw_bytes);
        sums.response_header_wire_bytes += u64::from(sample.response_header_wire_bytes);
        sums.request_body_bytes += sample.request_body_bytes;
        sums.response_body_bytes += sample.response_body_bytes;
        tally.latency.record(done_ns.saturating_sub(sample.intended_ns));
        if let (None, Phase::Measure, Some(sent_ns)) = (failure, sample.phase, sample.sent_ns) {
            self.service.record(done_ns.saturating_sub(sent_ns));
            if let Some(first_ns) = sample.first_byte_ns {
                self.wait.record(first_ns.saturating_sub(sent_ns));
                self.transfer.record(done_ns.saturating_sub(first_ns));
            }
        }
    }

    /// The place of a key, made where there is none yet.
    fn place(&mut self, key: TallyKey) -> usize {
        let url = key.url.map_or(MOST_URLS, |url| url as usize);
        let last = self.last.get(url).copied().unwrap_or(0);
        if self.kept.get(last).is_some_and(|open| open.sums.key == key) {
            return last;
        }
        let place = self.find(key);
        if let Some(last) = self.last.get_mut(url) {
            *last = place;
        }
        place
    }

    fn find(&mut self, key: TallyKey) -> usize {
        let shared = TallyKey { url: None, ..key };
        let known = |key| self.kept.iter().position(|open| open.sums.key == key);
        if let Some(place) = known(key) {
            return place;
        }
        let key = if self.kept.len() < MOST_KEYS { key } else { shared };
        if let Some(place) = known(key) {
            return place;
        }
        if self.kept.len() >= 2 * MOST_KEYS {
            return self.kept.len() - 1;
        }
        self.kept.push(Open { sums: blank(key), latency: self.empty.clone() });
        self.kept.len() - 1
    }

    /// The tallies, and the parts of the times of measured successes.
    ///
    /// # Errors
    /// Histograms that cannot be written.
    pub fn finish(self) -> Result<(Vec<Tally>, RequestTimes)> {
        let whole = |open: Open| Ok(Tally { latency: open.latency.encode()?, ..open.sums });
        let times = RequestTimes {
            service: self.service.encode()?,
            wait: self.wait.encode()?,
            transfer: self.transfer.encode()?,
        };
        Ok((self.kept.into_iter().map(whole).collect::<Result<_>>()?, times))
    }
}

/// What a connection's measured requests came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Requests that ended on it.
    pub requests: u64,
    /// Of these, those that succeeded.
    pub completed: u64,
    /// The sum of their latencies.
    pub latency_ns: u64,
}

/// The tally of one client's connections.
#[derive(Debug)]
pub struct ConnectionTallies {
    sums: ConnectionTally,
    connect: Times,
    handshake: Times,
    resumed_handshake: Times,
    early_handshake: Times,
    lifetime: Times,
    requests: Times,
    mean_latency: Times,
    received: Times,
}

impl ConnectionTallies {
    /// # Errors
    /// Histograms that cannot be made.
    pub fn new() -> Result<Self> {
        let empty = Times::new()?;
        let times = || empty.clone();
        Ok(ConnectionTallies {
            sums: ConnectionTally::default(),
            connect: times(),
            handshake: times(),
            resumed_handshake: times(),
            early_handshake: times(),
            lifetime: times(),
            requests: times(),
            mean_latency: times(),
            received: times(),
        })
    }

    /// Counts a connection that is over.
    pub fn record(&mut self, row: &ConnectionRow, carried: Carried) {
        let sums = &mut self.sums;
        sums.connections += 1;
        if let Outcome::Failed(failure) = &row.outcome {
            sums.failed += 1;
            match sums.failures.iter_mut().find(|known| known.kind == failure.kind) {
                Some(known) => known.connections += 1,
                None => sums.failures.push(ConnectionFailures {
                    kind: failure.kind,
                    connections: 1,
                    first_reason: failure.reason.clone(),
                }),
            }
        }
        sums.sent_bytes += row.sent_bytes;
        sums.received_bytes += row.received_bytes;
        self.received.record(row.received_bytes);
        if let Some(closed_ns) = row.closed_ns {
            self.lifetime.record(closed_ns.saturating_sub(row.opened_ns));
        }
        if let Some(connected_ns) = row.connected_ns {
            self.connect.record(connected_ns.saturating_sub(row.opened_ns));
        }
        if let Some((kind, ns)) = row.handshake() {
            let times = match kind {
                HandshakeKind::Cold => &mut self.handshake,
                HandshakeKind::Resumed => &mut self.resumed_handshake,
                HandshakeKind::Early => &mut self.early_handshake,
            };
            times.record(ns);
        }
        sums.protocols.add(ProtocolCounts::of(row));
        if row.tls_version.is_some() {
            secured(&mut sums.security, row);
        }
        if carried.requests > 0 {
            self.requests.record(carried.requests);
        }
        if let Some(mean_ns) = carried.latency_ns.checked_div(carried.completed) {
            self.mean_latency.record(mean_ns);
        }
    }

    /// Bytes sent and received so far.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.sums.sent_bytes, self.sums.received_bytes)
    }

    /// The tally.
    ///
    /// # Errors
    /// Histograms that cannot be written.
    pub fn finish(self) -> Result<ConnectionTally> {
        Ok(ConnectionTally {
            connect: self.connect.encode()?,
            handshake: self.handshake.encode()?,
            resumed_handshake: self.resumed_handshake.encode()?,
            early_handshake: self.early_handshake.encode()?,
            lifetime: self.lifetime.encode()?,
            requests: self.requests.encode()?,
            mean_latency: self.mean_latency.encode()?,
            received: self.received.encode()?,
            ..self.sums
        })
    }
}

/// Counts what a handshake agreed on.
fn secured(known: &mut Vec<Security>, row: &ConnectionRow) {
    let is = |known: &&mut Security| {
        known.cipher_suite == row.cipher_suite
            && known.key_exchange == row.key_exchange
            && known.tls_version == row.tls_version
    };
    if let Some(known) = known.iter_mut().find(is) {
        known.connections += 1;
    } else if known.len() < MOST_SECURITIES {
        known.push(Security {
            tls_version: row.tls_version.clone(),
            cipher_suite: row.cipher_suite.clone(),
            key_exchange: row.key_exchange.clone(),
            connections: 1,
        });
    } else if let Some(last) = known.last_mut() {
        last.connections += 1;
    }
}

/// The values of a tally's histogram, each with how many times it was recorded; none of bytes that are no histogram.
pub fn recorded(histogram: &[u8]) -> Vec<(u64, u64)> {
    let mut bytes = histogram;
    let Ok(histogram) = Deserializer::new().deserialize::<u32, _>(&mut bytes) else { return Vec::new() };
    let values = histogram.iter_recorded();
    values.map(|value| (value.value_iterated_to(), u64::from(value.count_at_value()))).collect()
}

fn blank(key: TallyKey) -> Tally {
    Tally {
        key,
        requests: 0,
        reason: None,
        first_intended_ns: u64::MAX,
        last_done_ns: 0,
        latency: Vec::new(),
        request_header_raw_bytes: 0,
        request_header_wire_bytes: 0,
        response_header_raw_bytes: 0,
        response_header_wire_bytes: 0,
        request_body_bytes: 0,
        response_body_bytes: 0,
    }
}
