//! The datagrams of one client.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Instant;

use rustix::net::sockopt;

/// No datagram is longer.
pub(super) const MOST_BYTES: usize = 1 << 16;
/// Room for what a server sends at once; the kernel may grant less.
const BUFFER_BYTES: usize = 4 << 20;

/// A client's address, and the socket that stands for it outside.
#[derive(Debug)]
pub(super) struct Flow {
    client: SocketAddr,
    outside: UdpSocket,
    last_used: Instant,
}

impl Flow {
    pub(super) fn open(client: SocketAddr, to: SocketAddr) -> io::Result<Flow> {
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let outside = UdpSocket::bind(any)?;
        outside.connect(to)?;
        outside.set_nonblocking(true)?;
        enlarge_buffers(outside.as_fd());
        never_fragment(&outside, to)?;
        Ok(Flow { client, outside, last_used: Instant::now() })
    }

    pub(super) const fn client(&self) -> SocketAddr {
        self.client
    }

    pub(super) const fn last_used(&self) -> Instant {
        self.last_used
    }

    /// A datagram that does not fit, or for which the kernel has no room, is lost, as on any path.
    pub(super) fn forward_up(&mut self, datagram: &[u8]) {
        self.last_used = Instant::now();
        let _: Result<_, _> = self.outside.send(datagram);
    }

    /// Forwards what has come from outside. An error of the socket, such as a port that nobody has bound, is
    /// read and dropped: QUIC ignores it too (RFC 9000, section 14.2.1).
    pub(super) fn forward_down(&mut self, udp: &UdpSocket) {
        let mut datagram = [0; MOST_BYTES];
        self.last_used = Instant::now();
        loop {
            match self.outside.recv(&mut datagram) {
                Ok(length) => {
                    let _: Result<_, _> = udp.send_to(&datagram[..length], self.client);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Reading an error clears it.
                Err(_) => {}
            }
        }
    }
}

impl AsFd for Flow {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.outside.as_fd()
    }
}

/// A smaller grant is no error: what overflows is lost.
pub(super) fn enlarge_buffers(socket: BorrowedFd<'_>) {
    let _: Result<_, _> = sockopt::set_socket_recv_buffer_size(socket, BUFFER_BYTES);
    let _: Result<_, _> = sockopt::set_socket_send_buffer_size(socket, BUFFER_BYTES);
}

/// QUIC finds out which lengths pass (RFC 9000, section 14.3): a datagram that is too long for the path
/// outside must be lost and not be cut.
fn never_fragment(socket: &UdpSocket, to: SocketAddr) -> io::Result<()> {
    let (level, option, value) = match to {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE),
    };
    let length = libc::socklen_t::try_from(size_of_val(&value)).unwrap_or_default();
    // SAFETY: the value outlives the call, and its length is given.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
