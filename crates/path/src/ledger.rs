//! Counts of packets, and the lost packets.

use std::collections::VecDeque;

/// The limit of lost packets that wait for `poll_lost`; further ones are only counted.
const MOST_KEPT: usize = 1024;

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The network is configured to lose a share of packets, or this packet.
    Configured,
    /// It arrived during an outage.
    Outage,
    /// The queue was full.
    Queue,
    /// CoDel dropped it from a standing queue.
    Codel,
    /// A middlebox refused it: UDP that the network blocks or throttles.
    Middlebox,
    /// The direction already held [`crate::path::CAPACITY_PACKETS`]: a limit of this program, not of the
    /// network.
    Capacity,
}

/// A packet that was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost<P> {
    /// When.
    pub at_ns: u64,
    /// Why.
    pub cause: Cause,
    /// Its number in this direction, from 1.
    pub number: u64,
    /// The packet.
    pub packet: P,
}

/// Counters of one direction. Every packet that entered, and every copy, is released, lost or still in the
/// path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that entered.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Packets released, copies included.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Packets lost because the network is configured to lose them.
    pub lost_configured: u64,
    /// Packets lost in an outage.
    pub lost_outage: u64,
    /// Packets lost because the queue was full.
    pub lost_queue: u64,
    /// Packets lost to CoDel.
    pub lost_codel: u64,
    /// Packets that a middlebox refused.
    pub lost_middlebox: u64,
    /// Packets lost because of [`crate::path::CAPACITY_PACKETS`].
    pub lost_capacity: u64,
    /// Packets that CoDel marked instead of dropping them.
    pub marked: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets released after a packet that left the link later (RFC 4737, section 3.3).
    pub reordered: u64,
    /// Packets that waited for the previous packet because the delay fell faster than time passed: at a step
    /// or change of the delay, and almost never because of jitter, whose distribution would then be wrong.
    pub held_back: u64,
}

impl Counters {
    /// Packets lost, whatever the cause.
    pub const fn lost(&self) -> u64 {
        self.lost_configured
            + self.lost_outage
            + self.lost_queue
            + self.lost_codel
            + self.lost_middlebox
            + self.lost_capacity
    }
}

/// The counters, and the lost packets until they are polled.
#[derive(Debug)]
pub(crate) struct Ledger<P> {
    pub(crate) counters: Counters,
    lost: VecDeque<Lost<P>>,
}

impl<P> Ledger<P> {
    pub(crate) fn new() -> Self {
        Ledger { counters: Counters::default(), lost: VecDeque::new() }
    }

    pub(crate) fn lose(&mut self, at_ns: u64, cause: Cause, number: u64, packet: P) {
        let counters = &mut self.counters;
        *match cause {
            Cause::Configured => &mut counters.lost_configured,
            Cause::Outage => &mut counters.lost_outage,
            Cause::Queue => &mut counters.lost_queue,
            Cause::Codel => &mut counters.lost_codel,
            Cause::Middlebox => &mut counters.lost_middlebox,
            Cause::Capacity => &mut counters.lost_capacity,
        } += 1;
        if self.lost.len() < MOST_KEPT {
            self.lost.push_back(Lost { at_ns, cause, number, packet });
        }
    }

    pub(crate) fn poll_lost(&mut self) -> Option<Lost<P>> {
        self.lost.pop_front()
    }
}
