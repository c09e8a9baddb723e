//! Packets in flight, each with its due time.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// A packet in flight.
#[derive(Debug)]
pub(crate) struct InFlight<P> {
    pub(crate) due_ns: u64,
    /// The number of packets that left the link before it.
    pub(crate) departure: u64,
    pub(crate) length_bytes: u64,
    pub(crate) packet: P,
}

/// The packets in flight, in the order of their due times.
#[derive(Debug)]
pub(crate) enum Line<P> {
    /// Packets do not overtake: the order is that of departure.
    Ordered(VecDeque<InFlight<P>>),
    /// Packets overtake.
    Free(BinaryHeap<Reverse<ByDue<P>>>),
}

/// Ordered by due time, then by departure.
#[derive(Debug)]
pub(crate) struct ByDue<P>(InFlight<P>);

impl<P> Line<P> {
    pub(crate) const fn ordered() -> Self {
        Line::Ordered(VecDeque::new())
    }

    pub(crate) const fn free() -> Self {
        Line::Free(BinaryHeap::new())
    }

    pub(crate) const fn is_ordered(&self) -> bool {
        matches!(self, Line::Ordered(_))
    }

    /// From now on packets may overtake; those in flight keep their due times.
    pub(crate) fn allow_overtaking(&mut self) {
        if let Line::Ordered(queue) = self {
            let packets = std::mem::take(queue).into_iter().map(|packet| Reverse(ByDue(packet)));
            *self = Line::Free(packets.collect());
        }
    }

    pub(crate) fn push(&mut self, packet: InFlight<P>) {
        match self {
            Line::Ordered(queue) => queue.push_back(packet),
            Line::Free(heap) => heap.push(Reverse(ByDue(packet))),
        }
    }

    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        match self {
            Line::Ordered(queue) => queue.front().map(|packet| packet.due_ns),
            Line::Free(heap) => heap.peek().map(|Reverse(ByDue(packet))| packet.due_ns),
        }
    }

    pub(crate) fn pop_due(&mut self, now_ns: u64) -> Option<InFlight<P>> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        match self {
            Line::Ordered(queue) => queue.pop_front(),
            Line::Free(heap) => heap.pop().map(|Reverse(ByDue(packet))| packet),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Line::Ordered(queue) => queue.len(),
            Line::Free(heap) => heap.len(),
        }
    }
}

impl<P> ByDue<P> {
    const fn key(&self) -> (u64, u64) {
        (self.0.due_ns, self.0.departure)
    }
}

impl<P> PartialEq for ByDue<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for ByDue<P> {}

impl<P> PartialOrd for ByDue<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for ByDue<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
