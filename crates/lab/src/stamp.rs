//! A UDP socket that receives datagrams with the kernel's time of arrival (SO_TIMESTAMPNS, socket(7)).

#![expect(clippy::cast_possible_truncation, reason = "sizes of structures and counts are far below 2^32")]

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::time::{ClockId, clock_gettime};

use crate::clock::nanoseconds;

/// Room for the one control message; an array of words has the alignment of `cmsghdr`.
const CONTROL_WORDS: usize = 16;

/// The wall clock of the kernel's stamps, in nanoseconds.
pub(crate) fn wall_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// A non-blocking UDP socket.
pub(crate) struct StampedSocket {
    socket: UdpSocket,
}

impl StampedSocket {
    /// Opens a socket of the calling thread's network namespace.
    pub(crate) fn bind(address: IpAddr) -> io::Result<StampedSocket> {
        let socket = UdpSocket::bind(SocketAddr::new(address, 0))?;
        socket.set_nonblocking(true)?;
        let on: libc::c_int = 1;
        let length = size_of_val(&on) as libc::socklen_t;
        // SAFETY: the value outlives the call and has the length given.
        let result = unsafe {
            let value = (&raw const on).cast();
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, value, length)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(StampedSocket { socket }) }
    }

    /// Sets the size of the receive buffer; where root rights are missing, up to the system's limit.
    pub(crate) fn make_room(&self, bytes: usize) {
        use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
        if set_socket_recv_buffer_size_force(&self.socket, bytes).is_err() {
            // Datagrams that do not fit are counted as lost.
            let _: Result<_, _> = set_socket_recv_buffer_size(&self.socket, bytes);
        }
    }

    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(crate) fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        self.socket.send_to(datagram, to).map(|_| ())
    }

    /// The next datagram's time of arrival and its sender (IPv4); `None` where there is none. Datagrams whose
    /// length differs from the buffer's are skipped.
    pub(crate) fn receive(&self, datagram: &mut [u8]) -> io::Result<Option<(u64, SocketAddr)>> {
        loop {
            let mut from = MaybeUninit::<libc::sockaddr_in>::zeroed();
            let mut control = [0_u64; CONTROL_WORDS];
            let mut vector = libc::iovec { iov_base: datagram.as_mut_ptr().cast(), iov_len: datagram.len() };
            // SAFETY: all zeros is a valid `msghdr`: integers and null pointers.
            let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
            header.msg_name = from.as_mut_ptr().cast();
            header.msg_namelen = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            header.msg_iov = &raw mut vector;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&control);
            // SAFETY: every buffer outlives the call and has the length that the header gives.
            let received =
                unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, libc::MSG_TRUNC) };
            let Ok(received) = usize::try_from(received) else {
                let error = io::Error::last_os_error();
                return match error.kind() {
                    io::ErrorKind::WouldBlock => Ok(None),
                    io::ErrorKind::Interrupted => continue,
                    _ => Err(error),
                };
            };
            if received != datagram.len() {
                continue;
            }
            // SAFETY: the kernel filled the header, the control buffer and the address.
            let (stamp_ns, from) = unsafe { (stamp_ns(&header), from.assume_init()) };
            let address = IpAddr::from(from.sin_addr.s_addr.to_ne_bytes());
            let from = SocketAddr::new(address, u16::from_be(from.sin_port));
            return Ok(Some((stamp_ns.unwrap_or_else(wall_ns), from)));
        }
    }
}

impl AsFd for StampedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// # Safety
/// The header must be as recvmsg(2) left it, its control buffer alive.
unsafe fn stamp_ns(header: &libc::msghdr) -> Option<u64> {
    // SAFETY: the macros walk the control buffer within the length that the kernel set; a message of this
    // type holds a `timespec`, which need not be aligned.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(found) = message.as_ref() {
            if found.cmsg_level == libc::SOL_SOCKET && found.cmsg_type == libc::SCM_TIMESTAMPNS {
                let time = libc::CMSG_DATA(message).cast::<libc::timespec>().read_unaligned();
                return Some(
                    u64::try_from(time.tv_sec).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?,
                );
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
        None
    }
}
