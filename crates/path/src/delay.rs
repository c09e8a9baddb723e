//! Propagation delay: a line that packets leave in the order in which they entered.

use std::collections::VecDeque;

/// Packets in flight, each with the time at which it is due.
#[derive(Debug)]
pub(crate) struct DelayLine<P> {
    delay_ns: u64,
    in_flight: VecDeque<(u64, P)>,
}

impl<P> DelayLine<P> {
    pub(crate) fn new(delay_ns: u64) -> Self {
        DelayLine { delay_ns, in_flight: VecDeque::new() }
    }

    /// Takes a packet that left the link at `departure_ns`.
    pub(crate) fn push(&mut self, departure_ns: u64, packet: P) {
        self.in_flight.push_back((self.due_ns(departure_ns), packet));
    }

    /// When a packet that leaves the link at `departure_ns` is due.
    pub(crate) const fn due_ns(&self, departure_ns: u64) -> u64 {
        departure_ns.saturating_add(self.delay_ns)
    }

    /// The latest departure whose packet may be due by `now_ns`, if any.
    pub(crate) const fn latest_departure_ns(&self, now_ns: u64) -> Option<u64> {
        now_ns.checked_sub(self.delay_ns)
    }

    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.in_flight.front().map(|(due_ns, _)| *due_ns)
    }

    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<(u64, P)> {
        if self.next_due_ns()? <= now_ns { self.in_flight.pop_front() } else { None }
    }

    pub(crate) fn len(&self) -> usize {
        self.in_flight.len()
    }
}
