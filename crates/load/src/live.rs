//! Counters of a worker's progress while it runs.
//!
//! Only the worker's thread writes them: no lock, no read-modify-write, no cache line shared between workers.
//! A reader may see counters of slightly different moments, which is good enough for a display and nothing
//! else.

use std::sync::atomic::{AtomicU64, Ordering};

use model::number;
use model::sample::{FailureKind, Outcome, Phase, Sample};

/// Linear steps in each power of two: a quantile is at most 1/32 too high.
const STEPS: usize = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Buckets for all of a `u64`.
const BUCKETS: usize = (64 - STEP_BITS as usize + 1) * STEPS;

/// All kinds of failure, at the index of their discriminant.
const KINDS: [FailureKind; FailureKind::ALL.len()] = FailureKind::ALL;

/// One worker's counters, on their own cache lines.
#[derive(Debug)]
#[repr(align(128))]
pub struct Live {
    completed: AtomicU64,
    measured: AtomicU64,
    body_bytes: AtomicU64,
    connections: AtomicU64,
    in_flight: AtomicU64,
    failed: [AtomicU64; KINDS.len()],
    /// Latencies of measured successes.
    latency: [AtomicU64; BUCKETS],
}

/// The counters of one or more workers at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Requests that succeeded, warm-up included.
    pub completed: u64,
    /// Requests that ended, without the warm-up.
    pub measured: u64,
    /// Body bytes of those that succeeded.
    pub body_bytes: u64,
    /// Open connections.
    pub connections: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Failures by kind, warm-up included; only kinds that occurred.
    pub failed: Vec<(FailureKind, u64)>,
    latency: Vec<u64>,
}

impl Default for Live {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Live {
            completed: zero(),
            measured: zero(),
            body_bytes: zero(),
            connections: zero(),
            in_flight: zero(),
            failed: std::array::from_fn(|_| zero()),
            latency: std::array::from_fn(|_| zero()),
        }
    }
}

impl Live {
    /// Counts a request that has ended.
    pub(crate) fn ended(&self, sample: &Sample) {
        let is_measured = sample.phase == Phase::Measure;
        if is_measured {
            add(&self.measured, 1);
        }
        match &sample.outcome {
            Outcome::Failed(failure) => add(&self.failed[failure.kind as usize], 1),
            Outcome::Ok | Outcome::Unsupported(_) => {
                add(&self.completed, 1);
                add(&self.body_bytes, sample.response_body_bytes);
                if let Some(latency_ns) = sample.request_time_ns().filter(|_| is_measured) {
                    add(&self.latency[bucket(latency_ns)], 1);
                }
            }
        }
    }

    /// Sets the numbers of open connections and requests in flight.
    pub(crate) fn holds(&self, connections: usize, in_flight: usize) {
        self.connections.store(connections as u64, Ordering::Relaxed);
        self.in_flight.store(in_flight as u64, Ordering::Relaxed);
    }

    /// The counters now.
    pub fn snapshot(&self) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let failed = KINDS.into_iter().zip(self.failed.iter().map(read));
        Snapshot {
            completed: read(&self.completed),
            measured: read(&self.measured),
            body_bytes: read(&self.body_bytes),
            connections: read(&self.connections),
            in_flight: read(&self.in_flight),
            failed: failed.filter(|(_, count)| *count > 0).collect(),
            latency: self.latency.iter().map(read).collect(),
        }
    }
}

/// Adds to a counter that no other thread writes.
fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
}

impl Snapshot {
    /// The sum of these counters and others.
    #[must_use]
    pub fn and(mut self, other: &Snapshot) -> Snapshot {
        self.completed += other.completed;
        self.measured += other.measured;
        self.body_bytes += other.body_bytes;
        self.connections += other.connections;
        self.in_flight += other.in_flight;
        for (kind, count) in &other.failed {
            match self.failed.iter_mut().find(|(known, _)| known == kind) {
                Some((_, sum)) => *sum += count,
                None => self.failed.push((*kind, *count)),
            }
        }
        if self.latency.is_empty() {
            self.latency.clone_from(&other.latency);
        } else {
            self.latency.iter_mut().zip(&other.latency).for_each(|(sum, count)| *sum += count);
        }
        self
    }

    /// The latency that this share of the measured successes did not exceed, in nanoseconds, at most 1/32 too
    /// high; `None` without any.
    pub fn latency_ns(&self, share: f64) -> Option<u64> {
        let count: u64 = self.latency.iter().sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank below the count")]
        let rank = ((number::float(count) * share).ceil() as u64).max(1);
        let mut below = 0;
        let index = self.latency.iter().position(|bucket| {
            below += bucket;
            below >= rank
        });
        index.map(highest)
    }
}

/// The index of a value's bucket.
fn bucket(value: u64) -> usize {
    let shift = (64 - STEP_BITS).saturating_sub(value.leading_zeros() + 1);
    // Below two times the steps, `shift` is 0 and the value is its own place.
    let step = value >> shift;
    #[expect(clippy::cast_possible_truncation, reason = "below two times the steps")]
    let place = shift as usize * STEPS + step as usize;
    place
}

/// The highest value of a bucket.
fn highest(index: usize) -> u64 {
    let shift = (index / STEPS).saturating_sub(1);
    let step = (index - shift * STEPS) as u64;
    ((step + 1) << shift).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bucket_whose_bound_is_near() {
        for value in
            (0..64).chain((6..64).flat_map(|e| [(1 << e) - 1, 1 << e, 3 << (e - 1)])).chain([u64::MAX])
        {
            let index = bucket(value);
            assert!(index < BUCKETS, "{value}");
            let bound = highest(index);
            assert!(bound >= value && bound - value <= value / 32, "{value} is counted up to {bound}");
        }
    }

    #[test]
    fn kinds_are_at_their_discriminants() {
        for (place, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }

    #[test]
    fn snapshots_add_up() {
        let (one, other) = (Live::default(), Live::default());
        let mut sample = sample(1_000_000);
        (0..99).for_each(|_| one.ended(&sample));
        sample.done_ns = Some(50_000_000);
        other.ended(&sample);
        sample.phase = Phase::Warmup;
        other.ended(&sample);
        sample.outcome = Outcome::failed(FailureKind::Timeout, "slow");
        other.ended(&sample);
        other.holds(3, 2);
        let both = Snapshot::default().and(&one.snapshot()).and(&other.snapshot());
        assert_eq!((both.completed, both.measured, both.connections, both.in_flight), (101, 100, 3, 2));
        assert_eq!(both.failed, [(FailureKind::Timeout, 1)]);
        let (p99, max) = (both.latency_ns(0.99).unwrap(), both.latency_ns(1.0).unwrap());
        assert!((1_000_000..1_040_000).contains(&p99), "{p99}");
        assert!((50_000_000..52_000_000).contains(&max), "{max}");
        assert_eq!(Snapshot::default().latency_ns(0.5), None);
    }

    fn sample(done_ns: u64) -> Sample {
        Sample { done_ns: Some(done_ns), response_body_bytes: 1, ..Sample::default() }
    }
}
