//! Waiting rooms before the link.

pub(crate) mod drop_tail;

/// A packet that waits for the link.
#[derive(Debug)]
pub(crate) struct Waiting<P> {
    /// When it entered the waiting room.
    pub(crate) arrival_ns: u64,
    /// Its length on the wire.
    pub(crate) length_bytes: u64,
    /// The packet itself.
    pub(crate) packet: P,
}
