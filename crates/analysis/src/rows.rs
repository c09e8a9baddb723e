//! What rows of requests show besides times: which URLs never succeeded, and the resolution and order of
//! timestamps.

use std::collections::{BTreeMap, BTreeSet};

use model::sample::{FailureKind, Outcome, Sample};

/// The results of the requests of each URL.
pub type Urls = BTreeMap<u32, Tries>;

/// The results of the requests of one URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tries {
    /// Requests.
    pub all: u64,
    /// Requests that succeeded.
    pub ok: u64,
    /// Requests with an unexpected status.
    pub refused: u64,
}

impl Tries {
    /// One request.
    pub(crate) fn of(sample: &Sample) -> Tries {
        let refused =
            matches!(&sample.outcome, Outcome::Failed(failure) if failure.kind == FailureKind::WrongStatus);
        Tries { all: 1, ok: u64::from(sample.outcome.is_ok()), refused: u64::from(refused) }
    }

    pub(crate) fn add(&mut self, other: Tries) {
        self.all += other.all;
        self.ok += other.ok;
        self.refused += other.refused;
    }
}

/// The bodies of the successful responses to one URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bodies {
    /// Responses.
    pub all: u64,
    /// Of these, responses whose body has a checksum.
    pub checked: u64,
    /// Responses by their body's checksum, up to [`Bodies::MOST_APART`].
    pub checksums: BTreeMap<u32, u64>,
    /// Media types and content codings: numbers of the client's list.
    pub kinds: BTreeSet<u16>,
}

impl Bodies {
    /// A URL with more different bodies changes with each response: its content cannot be compared.
    pub const MOST_APART: usize = 8;

    pub(crate) fn add(&mut self, sample: &Sample) {
        self.all += 1;
        self.kinds.extend(sample.content);
        if let Some(crc32) = sample.response_body_crc32 {
            self.checked += 1;
            self.count(crc32, 1);
        }
    }

    pub(crate) fn merge(&mut self, other: &Bodies) {
        self.all += other.all;
        self.checked += other.checked;
        other.checksums.iter().for_each(|(crc32, responses)| self.count(*crc32, *responses));
    }

    fn count(&mut self, crc32: u32, responses: u64) {
        if self.checksums.len() <= Self::MOST_APART || self.checksums.contains_key(&crc32) {
            *self.checksums.entry(crc32).or_default() += responses;
        }
    }

    /// Whether the content changes with each response.
    pub fn vary(&self) -> bool {
        self.checksums.len() > Self::MOST_APART
    }

    /// Responses whose body none of the others has.
    pub fn unlike(&self, others: &Bodies) -> u64 {
        let unlike = self.checksums.iter().filter(|(crc32, _)| !others.checksums.contains_key(crc32));
        unlike.map(|(_, responses)| responses).sum()
    }
}

/// The timestamps of the requests that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Requests whose timestamps run backward.
    pub disordered: u64,
    /// The greatest common divisor of all service times; 0 without times.
    pub step_ns: u64,
    /// Times that differ from the previous one. Without any, the divisor does not show the clock's
    /// resolution.
    pub changes: u64,
    /// Times that are 0.
    pub zeros: u64,
    /// All times.
    pub times: u64,
    /// The previous time.
    last_ns: Option<u64>,
}

impl Stamps {
    pub(crate) fn add(&mut self, sample: &Sample) {
        let order = [sample.sent_ns, sample.first_byte_ns, sample.done_ns];
        let mut stamps = order.into_iter().flatten();
        if let Some(mut before) = stamps.next() {
            let is_disordered = stamps.any(|stamp| std::mem::replace(&mut before, stamp) > stamp);
            self.disordered += u64::from(is_disordered);
        }
        if let (Some(sent_ns), Some(done_ns)) = (sample.sent_ns, sample.done_ns) {
            self.see(done_ns.saturating_sub(sent_ns), 1);
        }
    }

    /// Adds requests that took this time. With a resolution of one nanosecond the divisor is soon 1, which
    /// then costs nothing.
    pub(crate) fn see(&mut self, took_ns: u64, requests: u64) {
        self.times += requests;
        self.zeros += if took_ns == 0 { requests } else { 0 };
        let before = self.last_ns.replace(took_ns);
        self.changes += u64::from(before.is_some_and(|before| before != took_ns));
        if self.step_ns != 1 {
            self.step_ns = greatest_common_divisor(self.step_ns, took_ns);
        }
    }

    pub(crate) fn merge(&mut self, other: &Stamps) {
        self.disordered += other.disordered;
        self.times += other.times;
        self.zeros += other.zeros;
        self.changes += other.changes;
        self.step_ns = greatest_common_divisor(self.step_ns, other.step_ns);
    }
}

/// By Euclid's algorithm; of 0 and a number it is the number.
const fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_of_times_is_their_common_divisor() {
        let mut stamps = Stamps::default();
        for took_ns in [30_000_000, 0, 50_000_000, 50_000_000, 20_000_000] {
            stamps.see(took_ns, 1);
        }
        assert_eq!((stamps.step_ns, stamps.times, stamps.changes, stamps.zeros), (10_000_000, 5, 3, 1));
        stamps.see(7, 1);
        assert_eq!(stamps.step_ns, 1);
        let mut finer = Stamps { step_ns: 6, ..Stamps::default() };
        finer.merge(&Stamps { step_ns: 4, times: 2, disordered: 1, ..Stamps::default() });
        assert_eq!((finer.step_ns, finer.times, finer.disordered), (2, 2, 1));
    }
}
