//! What rows of requests say beside their times: which URLs never answered well, and how fine and how orderly the stamps are.

use std::collections::BTreeMap;

use model::sample::{FailureKind, Outcome, Sample};

use crate::number;

/// How often each URL was asked, and how often it answered well.
pub type Urls = BTreeMap<u32, Tries>;

/// What became of the requests of one URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tries {
    /// Requests.
    pub all: u64,
    /// Of these, those that succeeded.
    pub ok: u64,
    /// Of these, those that the server answered with another status than expected.
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

/// The stamps of the requests that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Requests whose response ended, or whose head came, before what has to come first.
    pub disordered: u64,
    /// The largest step of which every time from sent to done is a multiple; 0 where there is none to see.
    pub step_ns: u64,
    /// Times that are another than the one before: where there are none, the step is a time and not a step.
    pub changes: u64,
    /// Times of which the clock saw nothing.
    pub zeros: u64,
    /// All times.
    pub times: u64,
    /// The last.
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

    /// So many requests more that took so long. With clocks of one nanosecond the divisor is soon 1 and costs nothing from then
    /// on.
    pub(crate) fn see(&mut self, took_ns: u64, requests: u64) {
        self.times += requests;
        self.zeros += if took_ns == 0 { requests } else { 0 };
        let before = self.last_ns.replace(took_ns);
        self.changes += u64::from(before.is_some_and(|before| before != took_ns));
        if self.step_ns != 1 {
            self.step_ns = number::greatest_common_divisor(self.step_ns, took_ns);
        }
    }

    pub(crate) fn merge(&mut self, other: &Stamps) {
        self.disordered += other.disordered;
        self.times += other.times;
        self.zeros += other.zeros;
        self.changes += other.changes;
        self.step_ns = number::greatest_common_divisor(self.step_ns, other.step_ns);
    }
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
