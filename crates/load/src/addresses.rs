//! Notices of the kernel about removed local addresses (rtnetlink(7)), as when a phone leaves a network.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

/// The groups for changes of IPv4 and IPv6 addresses (linux/rtnetlink.h).
const GROUPS: u32 = 0x10 | 0x100;
const RTM_DELADDR: u16 = 21;
/// Length, type, flags, sequence number and port of a message.
const HEADER_BYTES: usize = 16;
/// More than any batch of notices; a notice has about a hundred bytes.
const BUFFER_BYTES: usize = 8192;

/// A socket that becomes readable when an address is added or removed.
#[derive(Debug)]
pub(crate) struct AddressWatch {
    socket: OwnedFd,
}

impl AddressWatch {
    /// Watches the addresses of the calling thread's network namespace, which needs no privileges.
    pub(crate) fn open() -> io::Result<AddressWatch> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Protocol 0 is NETLINK_ROUTE.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
        Ok(AddressWatch { socket })
    }

    /// The families that lost an address since the last call: both, if the kernel dropped notices.
    pub(crate) fn lost(&self) -> LostFamilies {
        let mut buffer = [0; BUFFER_BYTES];
        let mut lost = LostFamilies::default();
        loop {
            match recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
                Ok((length, _)) => lost.note(&buffer[..length]),
                Err(rustix::io::Errno::NOBUFS) => lost = LostFamilies { v4: true, v6: true },
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return lost,
            }
        }
    }
}

impl AsFd for AddressWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Families that lost an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LostFamilies {
    v4: bool,
    v6: bool,
}

impl LostFamilies {
    /// Whether this address's family did.
    pub(crate) const fn has(self, like: IpAddr) -> bool {
        match like {
            IpAddr::V4(_) => self.v4,
            IpAddr::V6(_) => self.v6,
        }
    }

    /// Reads messages of the kernel.
    fn note(&mut self, mut messages: &[u8]) {
        while let Some(&[a, b, c, d, low, high]) = messages.first_chunk() {
            let length = usize::try_from(u32::from_ne_bytes([a, b, c, d])).unwrap_or(usize::MAX);
            if u16::from_ne_bytes([low, high]) == RTM_DELADDR {
                let family = messages.get(HEADER_BYTES).copied().map(u16::from);
                self.v4 |= family == Some(AddressFamily::INET.as_raw());
                self.v6 |= family == Some(AddressFamily::INET6.as_raw());
            }
            // Messages begin at multiples of four bytes. A length below the header's would loop forever.
            messages = messages.get(length.max(HEADER_BYTES).next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, family: u8, length: u32) -> Vec<u8> {
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend([family, 24, 0, 0, 1, 0, 0, 0]);
        bytes
    }

    #[test]
    fn only_a_loss_of_the_family_counts() {
        let lost = |messages: &[u8]| {
            let mut lost = LostFamilies::default();
            lost.note(messages);
            (lost.has([127, 0, 0, 1].into()), lost.has([0_u16; 8].into()))
        };
        assert_eq!(lost(&message(RTM_DELADDR, 2, 24)), (true, false));
        assert_eq!(lost(&message(RTM_DELADDR, 10, 24)), (false, true), "an IPv6 address");
        assert_eq!(lost(&message(20, 2, 24)), (false, false), "a new address");
        let both = [message(20, 2, 24), message(RTM_DELADDR, 2, 24), message(RTM_DELADDR, 10, 24)].concat();
        assert_eq!(lost(&both), (true, true));
    }

    #[test]
    fn reading_ends_for_any_bytes() {
        for length in [0, 1, 15, 17, 1000, u32::MAX - 2] {
            let bytes = [message(20, 2, length), vec![0xff; 40]].concat();
            for end in 0..bytes.len() {
                LostFamilies::default().note(&bytes[..end]);
            }
        }
    }

    #[test]
    fn a_watch_is_silent_at_first() {
        assert_eq!(AddressWatch::open().unwrap().lost(), LostFamilies::default());
    }
}
