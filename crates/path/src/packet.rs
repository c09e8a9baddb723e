//! What the path has to know of a packet.

use crate::ip;

/// Anything that can be on the way. The path copies it where it is to be duplicated.
pub trait Packet: Clone {
    /// A number that the packets of one flow share, for FQ-CoDel's queues; `salt` makes two runs' collisions differ.
    fn flow(&self, salt: u64) -> u64 {
        let _ = salt;
        0
    }

    /// Marks that it met congestion (CE), where it can carry that mark; says whether it now does.
    fn mark_congestion(&mut self) -> bool {
        false
    }
}

/// A datagram's payload: it has no header that a network could read.
impl Packet for Vec<u8> {}

/// A packet that is its number.
impl Packet for u64 {}

/// A packet of which nothing matters.
impl Packet for () {}

/// An Ethernet frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame(pub Vec<u8>);

impl Packet for Frame {
    fn flow(&self, salt: u64) -> u64 {
        ip::flow(&self.0, salt)
    }

    fn mark_congestion(&mut self) -> bool {
        ip::mark_congestion(&mut self.0)
    }
}
