//! Sums in place of rows: what requests had in common is counted, their times go into histograms.

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use model::assignment::Lag;
use model::sample::{Outcome, Sample};
use model::tally::{Tally, TallyKey};

/// Three significant digits, as HDR histograms usually have.
const DIGITS: u8 = 3;
/// Longer times count as this long.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// So many keys are counted apart; requests with further keys are counted without their URL, and beyond twice as
/// many all together. Three histograms of 130 kB each bound what a key takes.
const MOST_KEYS: usize = 64;

/// A histogram of nanoseconds; recording into it allocates nothing.
#[derive(Clone)]
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

    fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.0, &mut bytes).context("writing a histogram")?;
        Ok(bytes)
    }
}

/// The tallies of one client.
pub(crate) struct Tallies {
    empty: Times,
    kept: Vec<Open>,
    /// Where the last request was counted: the next is mostly of the same kind.
    last: usize,
}

struct Open {
    sums: Tally,
    latency: Times,
    service: Times,
    wait: Times,
}

impl Tallies {
    pub(crate) fn new() -> Result<Self> {
        Ok(Tallies { empty: Times::new()?, kept: Vec::new(), last: 0 })
    }

    /// Counts one request that has ended.
    pub(crate) fn record(&mut self, sample: &Sample) {
        let (failure, reason) = match &sample.outcome {
            Outcome::Ok | Outcome::Unsupported(_) => (None, None),
            Outcome::Failed(failure) => (Some(failure.kind), Some(&failure.reason)),
        };
        let key = TallyKey {
            phase: sample.phase,
            url: Some(sample.url),
            status: sample.status,
            version: sample.version,
            failure,
        };
        self.last = self.place(key);
        let Some(tally) = self.kept.get_mut(self.last) else { return };
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
        if let Some(sent_ns) = sample.sent_ns {
            tally.service.record(done_ns.saturating_sub(sent_ns));
            if let Some(first_ns) = sample.first_byte_ns {
                tally.wait.record(first_ns.saturating_sub(sent_ns));
            }
        }
    }

    /// The place of a key, made where there is none yet.
    fn place(&mut self, key: TallyKey) -> usize {
        let is = |open: &Open, key| open.sums.key == key;
        if self.kept.get(self.last).is_some_and(|open| is(open, key)) {
            return self.last;
        }
        let shared = TallyKey { url: None, ..key };
        let known = |key| self.kept.iter().position(|open| is(open, key));
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
        let times = || self.empty.clone();
        self.kept.push(Open { sums: blank(key), latency: times(), service: times(), wait: times() });
        self.kept.len() - 1
    }

    pub(crate) fn finish(self) -> Result<Vec<Tally>> {
        let whole = |open: Open| {
            Ok(Tally {
                latency: open.latency.encode()?,
                service: open.service.encode()?,
                wait: open.wait.encode()?,
                ..open.sums
            })
        };
        self.kept.into_iter().map(whole).collect()
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
        service: Vec::new(),
        wait: Vec::new(),
        request_header_raw_bytes: 0,
        request_header_wire_bytes: 0,
        response_header_raw_bytes: 0,
        response_header_wire_bytes: 0,
        request_body_bytes: 0,
        response_body_bytes: 0,
    }
}
