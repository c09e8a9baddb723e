//! The queue before the link.

use model::network::{self, Discipline, QueueLimit};

use crate::ledger::{Cause, Ledger};
use crate::packet::Packet;
use crate::stream::Seeds;

mod codel;
mod drop_tail;
mod fq_codel;

use codel::CodelQueue;
use drop_tail::DropTail;
use fq_codel::FqCodel;

/// A packet that waits for the link.
#[derive(Debug)]
pub(crate) struct Waiting<P> {
    /// When it entered the queue.
    pub(crate) arrival_ns: u64,
    /// Its number in this direction, from 1.
    pub(crate) number: u64,
    /// Its length on the wire.
    pub(crate) length_bytes: u64,
    /// Its random number for jitter.
    pub(crate) drawn: f64,
    /// Whether it was chosen to skip the delay.
    pub(crate) skips_delay: bool,
    /// The packet itself.
    pub(crate) packet: P,
}

/// The occupancy of the queue, including the packet in transmission.
#[derive(Debug)]
pub(crate) struct Room {
    limit: QueueLimit,
    packets: u64,
    bytes: u64,
}

impl Room {
    /// Whether another packet of this length is within the limit.
    const fn holds(&self, length_bytes: u64) -> bool {
        match self.limit {
            QueueLimit::Packets(packets) => self.packets < packets,
            QueueLimit::Bytes(bytes) => self.bytes.saturating_add(length_bytes) <= bytes,
        }
    }

    /// Whether the limit is exceeded.
    const fn is_over(&self) -> bool {
        match self.limit {
            QueueLimit::Packets(packets) => self.packets > packets,
            QueueLimit::Bytes(bytes) => self.bytes > bytes,
        }
    }

    const fn take(&mut self, length_bytes: u64) {
        self.packets += 1;
        self.bytes += length_bytes;
    }

    const fn give_back(&mut self, length_bytes: u64) {
        self.packets -= 1;
        self.bytes -= length_bytes;
    }
}

/// The waiting room of one direction.
#[derive(Debug)]
pub(crate) struct Queue<P> {
    room: Room,
    kind: Kind<P>,
}

#[derive(Debug)]
enum Kind<P> {
    DropTail(DropTail<P>),
    Codel(CodelQueue<P>),
    FqCodel(FqCodel<P>),
}

impl<P: Packet> Queue<P> {
    pub(crate) fn new(queue: &network::Queue, seeds: Seeds) -> Self {
        let kind = match queue.discipline {
            Discipline::DropTail => Kind::DropTail(DropTail::new()),
            Discipline::Codel(codel) => Kind::Codel(CodelQueue::new(codel)),
            Discipline::FqCodel { codel, flows, quantum_bytes } => {
                Kind::FqCodel(FqCodel::new(codel, flows, quantum_bytes, seeds))
            }
        };
        Queue { room: Room { limit: queue.limit, packets: 0, bytes: 0 }, kind }
    }

    /// From now on with another limit; what waits stays.
    pub(crate) const fn change_limit(&mut self, limit: QueueLimit) {
        self.room.limit = limit;
    }

    /// Takes the packet, and drops one where there is no room: the answer is false where it is this one.
    pub(crate) fn offer(&mut self, waiting: Waiting<P>, ledger: &mut Ledger<P>) -> bool {
        let Queue { room, kind } = self;
        if let Kind::FqCodel(fq) = kind {
            return fq.offer(waiting, room, ledger);
        }
        if !room.holds(waiting.length_bytes) {
            ledger.lose(waiting.arrival_ns, Cause::Queue, waiting.number, waiting.packet);
            return false;
        }
        room.take(waiting.length_bytes);
        match kind {
            Kind::DropTail(queue) => queue.push(waiting),
            Kind::Codel(queue) => queue.push(waiting),
            Kind::FqCodel(_) => {}
        }
        true
    }

    /// Hands over the packet whose transmission begins now; it takes room until [`Queue::depart`]. CoDel may
    /// find that none is left.
    pub(crate) fn take(&mut self, now_ns: u64, ledger: &mut Ledger<P>) -> Option<Waiting<P>> {
        match &mut self.kind {
            Kind::DropTail(queue) => queue.pop(),
            Kind::Codel(queue) => queue.take(now_ns, &mut self.room, ledger),
            Kind::FqCodel(queue) => queue.take(now_ns, &mut self.room, ledger),
        }
    }

    /// The packet in transmission, of this length, has departed.
    pub(crate) const fn depart(&mut self, length_bytes: u64) {
        self.room.give_back(length_bytes);
    }

    /// Packets that wait, without the one in transmission.
    pub(crate) fn len(&self) -> usize {
        match &self.kind {
            Kind::DropTail(queue) => queue.len(),
            Kind::Codel(queue) => queue.len(),
            Kind::FqCodel(queue) => queue.len(),
        }
    }
}
