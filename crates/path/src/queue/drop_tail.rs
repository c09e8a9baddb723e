//! Drop-tail: a packet that finds no room is dropped; the packet in transmission takes room until it has departed.

use std::collections::VecDeque;

use model::network::Queue;

use super::Waiting;

/// A bounded first-in, first-out waiting room.
#[derive(Debug)]
pub(crate) struct DropTail<P> {
    limit: Queue,
    waiting: VecDeque<Waiting<P>>,
    /// Packets and bytes that take room, the one in transmission included.
    held_packets: u64,
    held_bytes: u64,
}

impl<P> DropTail<P> {
    pub(crate) fn new(limit: Queue) -> Self {
        DropTail { limit, waiting: VecDeque::new(), held_packets: 0, held_bytes: 0 }
    }

    /// Takes the packet, or drops it where there is no room: then the answer is false.
    pub(crate) fn offer(&mut self, waiting: Waiting<P>) -> bool {
        let has_room = match self.limit {
            Queue::Packets(packets) => self.held_packets < packets,
            Queue::Bytes(bytes) => self.held_bytes.saturating_add(waiting.length_bytes) <= bytes,
        };
        if has_room {
            self.held_packets += 1;
            self.held_bytes += waiting.length_bytes;
            self.waiting.push_back(waiting);
        }
        has_room
    }

    /// Hands over the packet whose transmission begins; it takes room until [`DropTail::depart`].
    pub(crate) fn take(&mut self) -> Option<Waiting<P>> {
        self.waiting.pop_front()
    }

    /// The packet in transmission, of this length, has departed.
    pub(crate) const fn depart(&mut self, length_bytes: u64) {
        self.held_packets -= 1;
        self.held_bytes -= length_bytes;
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
