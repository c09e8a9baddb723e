//! Socket buffers: what is asked of the kernel, and where it grants less.

use std::fmt;

use crate::number::float;
use crate::units;

/// Asked of the kernel for each buffer of a QUIC socket, bytes: one bandwidth-delay product of 200 Mbit/s ×
/// 150 ms.
pub const UDP_BUFFER_BYTES: u32 = 4 << 20;

/// One of a socket's two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// What arrived and is not read yet.
    Receive,
    /// What is not sent yet, or for TCP not acknowledged.
    Send,
}

impl Buffer {
    /// The kernel's setting that caps it.
    pub const fn setting(self) -> &'static str {
        match self {
            Buffer::Receive => "net.core.rmem_max",
            Buffer::Send => "net.core.wmem_max",
        }
    }
}

/// A socket buffer that is smaller than asked: what bursts beyond it is lost (UDP) or waits (TCP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// Which buffer.
    pub buffer: Buffer,
    /// What the kernel grants, bytes.
    pub granted_bytes: u64,
    /// What was asked of it, bytes.
    pub asked_bytes: u64,
}

impl Shortfall {
    /// Judges what SO_RCVBUF or SO_SNDBUF reads after `asked_bytes` were set. Linux reads twice what it
    /// grants: the other half is for its own bookkeeping (socket(7)).
    pub fn of(buffer: Buffer, asked_bytes: u64, read_bytes: u64) -> Option<Shortfall> {
        let granted_bytes = read_bytes / 2;
        (granted_bytes < asked_bytes).then_some(Shortfall { buffer, granted_bytes, asked_bytes })
    }

    /// How to get what was asked.
    pub fn remedy(&self) -> String {
        format!("`sysctl -w {}={}` as root", self.buffer.setting(), self.asked_bytes)
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.buffer {
            Buffer::Receive => "receive",
            Buffer::Send => "send",
        };
        let [granted, asked] = [self.granted_bytes, self.asked_bytes].map(|n| units::format_bytes(float(n)));
        write!(to, "the kernel grants a {name} buffer of {granted} instead of {asked}; run {}", self.remedy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_reads_twice_what_it_grants() {
        assert_eq!(Shortfall::of(Buffer::Receive, 4 << 20, 8 << 20), None);
        let short = Shortfall::of(Buffer::Send, 4 << 20, 2 * 212_992).unwrap();
        assert_eq!(short.granted_bytes, 212_992);
        assert_eq!(
            short.to_string(),
            "the kernel grants a send buffer of 213 kB instead of 4.19 MB; run `sysctl -w net.core.wmem_max=4194304` as root"
        );
    }
}
