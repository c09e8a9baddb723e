//! What a path needs to know about a packet.

use crate::ip;

/// A packet. The path clones the packets that it duplicates.
pub trait Packet: Clone {
    /// A hash of the packet's flow, for FQ-CoDel's queues; `salt` makes collisions differ between runs.
    fn flow(&self, salt: u64) -> u64 {
        let _ = salt;
        0
    }

    /// Whether it is UDP, which a network may block or throttle.
    fn is_udp(&self) -> bool {
        false
    }

    /// Marks congestion (CE) if the packet can carry the mark; returns whether it is marked.
    fn mark_congestion(&mut self) -> bool {
        false
    }
}

/// A datagram's payload, without headers that a router could read.
impl Packet for Vec<u8> {}

/// A packet that consists of its number.
impl Packet for u64 {}

/// A packet without content.
impl Packet for () {}

/// An Ethernet frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame(pub Vec<u8>);

impl Packet for Frame {
    fn flow(&self, salt: u64) -> u64 {
        ip::flow(&self.0, salt)
    }

    fn is_udp(&self) -> bool {
        ip::protocol(&self.0) == Some(ip::UDP)
    }

    fn mark_congestion(&mut self) -> bool {
        ip::mark_congestion(&mut self.0)
    }
}
