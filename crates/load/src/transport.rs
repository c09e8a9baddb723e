//! Non-blocking TCP and UDP sockets, and the kinds of their failures.
//!
//! Streams use rustix's system calls: those of libc are cancellation points, which cost a few percent of a
//! small request in a process with several threads.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use model::Shortfall;
use model::buffers::{Buffer, UDP_BUFFER_BYTES};
use model::options::ConnectionOptions;
use model::sample::{Failure, FailureKind};
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSockRef, UdpSocketState};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use socket2::{Domain, Protocol, SockRef, Socket as RawSocket, Type};

use crate::system;

/// The size of a read: enough for a full GRO batch of datagrams (64 kB) and for large TCP reads.
pub(crate) const READ_BYTES: usize = 128 * 1024;
/// The most bytes that one call discards, so that it does not delay other connections for long.
pub(crate) const DISCARD_BYTES: u64 = 4 << 20;

/// The requested sizes of a socket's buffers, in bytes; `None` leaves the kernel's default.
fn buffers(quic: bool, options: &ConnectionOptions) -> [(Buffer, Option<u32>); 2] {
    let default = quic.then_some(UDP_BUFFER_BYTES);
    [
        (Buffer::Receive, options.receive_buffer_bytes.or(default)),
        (Buffer::Send, options.send_buffer_bytes.or(default)),
    ]
}

/// A smaller grant is not an error: overflow shows as loss, the run's UDP drops are counted, and
/// [`buffer_shortfalls`] reports it.
fn set_buffers(socket: &RawSocket, quic: bool, options: &ConnectionOptions) -> io::Result<()> {
    buffers(quic, options).into_iter().try_for_each(|(buffer, asked)| match (buffer, asked) {
        (Buffer::Receive, Some(bytes)) => socket.set_recv_buffer_size(bytes as usize),
        (Buffer::Send, Some(bytes)) => socket.set_send_buffer_size(bytes as usize),
        (_, None) => Ok(()),
    })
}

/// The buffers for which connections to `remote` get less than they request; opens one socket to read the
/// sizes.
///
/// # Errors
/// No socket can be opened, or it refuses the option.
pub fn buffer_shortfalls(
    remote: SocketAddr,
    quic: bool,
    options: &ConnectionOptions,
) -> io::Result<Vec<Shortfall>> {
    let kind = if quic { Type::DGRAM } else { Type::STREAM };
    let socket = RawSocket::new(Domain::for_address(remote), kind, None)?;
    set_buffers(&socket, quic, options)?;
    let mut found = Vec::new();
    for (buffer, asked) in buffers(quic, options) {
        let read = match buffer {
            Buffer::Receive => socket.recv_buffer_size()?,
            Buffer::Send => socket.send_buffer_size()?,
        };
        found.extend(asked.and_then(|asked| Shortfall::of(buffer, asked.into(), read as u64)));
    }
    Ok(found)
}

/// One connection's socket.
#[derive(Debug)]
pub(crate) enum Socket {
    /// A TCP stream.
    Tcp(RawSocket),
    /// A UDP socket connected to the server.
    Udp {
        /// The socket.
        socket: RawSocket,
        /// Its segmentation offload.
        state: UdpSocketState,
        /// The server.
        remote: SocketAddr,
    },
}

/// The result of a read.
#[derive(Debug)]
pub(crate) enum ReadResult {
    /// This many bytes of a stream.
    Stream(usize),
    /// This many discarded bytes of a stream.
    Discarded(usize),
    /// Datagrams: their total length, the length of each, ECN bits.
    Datagrams { length: usize, segment_bytes: usize, ecn: u8 },
    /// The end of the stream.
    End,
    /// Nothing now.
    Nothing,
}

impl Socket {
    /// Begins to connect connection `number` from one of these local addresses. A TCP socket becomes writable
    /// when it is connected.
    pub(crate) fn connect(
        remote: SocketAddr,
        quic: bool,
        options: &ConnectionOptions,
        sources: &[IpAddr],
        number: u32,
    ) -> io::Result<Socket> {
        let (kind, protocol) =
            if quic { (Type::DGRAM, Protocol::UDP) } else { (Type::STREAM, Protocol::TCP) };
        let socket = RawSocket::new(Domain::for_address(remote), kind.nonblocking(), Some(protocol))?;
        set_buffers(&socket, quic, options)?;
        if let Some(source) = source_of(remote, sources, number) {
            system::bind_without_port(&socket)?;
            socket.bind(&SocketAddr::new(source, 0).into())?;
        }
        if quic { Self::connect_udp(socket, remote) } else { Self::connect_tcp(socket, remote, options) }
    }

    fn connect_tcp(socket: RawSocket, remote: SocketAddr, options: &ConnectionOptions) -> io::Result<Socket> {
        socket.set_tcp_nodelay(!options.nagle)?;
        if let Some(name) = &options.tcp_congestion {
            socket.set_tcp_congestion(name.as_bytes())?;
        }
        match socket.connect(&remote.into()) {
            Ok(()) => Ok(Socket::Tcp(socket)),
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(Socket::Tcp(socket)),
            Err(error) => Err(error),
        }
    }

    fn connect_udp(socket: RawSocket, remote: SocketAddr) -> io::Result<Socket> {
        socket.connect(&remote.into())?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        Ok(Socket::Udp { socket, state, remote })
    }

    /// The error that ended a TCP connect, if any.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        let (Socket::Tcp(socket) | Socket::Udp { socket, .. }) = self;
        socket.take_error().unwrap_or_else(Some)
    }

    /// Reads once into `buffer`.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<ReadResult> {
        let result = match self {
            Socket::Tcp(socket) => match rustix::net::recv(socket, buffer, RecvFlags::empty()) {
                Ok((0, _)) => Ok(ReadResult::End),
                Ok((length, _)) => Ok(ReadResult::Stream(length)),
                Err(error) => Err(error.into()),
            },
            Socket::Udp { socket, state, .. } => {
                let mut meta = [RecvMeta::default()];
                state.recv(UdpSockRef::from(socket), &mut [IoSliceMut::new(buffer)], &mut meta).map(|_| {
                    let [RecvMeta { len, stride, ecn, .. }] = meta;
                    ReadResult::Datagrams {
                        length: len,
                        segment_bytes: stride,
                        ecn: ecn.map_or(0, |ecn| ecn as u8),
                    }
                })
            }
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(ReadResult::Nothing),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(ReadResult::Nothing),
            other => other,
        }
    }

    /// Discards at most `most` bytes of a stream: the kernel frees them without copying.
    pub(crate) fn discard(&self, most: u64) -> io::Result<ReadResult> {
        let (Socket::Tcp(socket) | Socket::Udp { socket, .. }) = self;
        match system::discard(socket, usize::try_from(most.min(DISCARD_BYTES)).unwrap_or(0)) {
            Ok(0) => Ok(ReadResult::End),
            Ok(length) => Ok(ReadResult::Discarded(length)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(ReadResult::Nothing)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes to a stream; the number of bytes that the kernel accepted.
    pub(crate) fn send_stream(&self, bytes: &[u8]) -> io::Result<usize> {
        let (Socket::Tcp(socket) | Socket::Udp { socket, .. }) = self;
        match rustix::net::send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(length) => Ok(length),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends datagrams; whether the kernel accepted them.
    pub(crate) fn send_datagrams(&self, bytes: &[u8], segment_bytes: usize, ecn: u8) -> io::Result<bool> {
        let Socket::Udp { socket, state, remote } = self else { return Ok(true) };
        // Without segmentation offload each datagram needs its own call.
        let piece = if state.max_gso_segments() > 1 { bytes.len().max(1) } else { segment_bytes.max(1) };
        for contents in bytes.chunks(piece) {
            let transmit = quinn_udp::Transmit {
                destination: *remote,
                ecn: EcnCodepoint::from_bits(ecn),
                contents,
                segment_size: (contents.len() > segment_bytes).then_some(segment_bytes),
                src_ip: None,
            };
            match state.try_send(UdpSockRef::from(socket), &transmit) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                // Lost like any other datagram, until the connection migrates or gives up.
                Err(error) if has_lost_its_network(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Whether this is a UDP socket.
    pub(crate) fn is_udp(&self) -> bool {
        matches!(self, Socket::Udp { .. })
    }

    /// Makes closing send RST instead of lingering in TIME_WAIT: for abandoned connections.
    pub(crate) fn abort_on_close(&self) {
        if let Socket::Tcp(socket) = self {
            let _ = SockRef::from(socket).set_linger(Some(std::time::Duration::ZERO));
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let (Socket::Tcp(socket) | Socket::Udp { socket, .. }) = self;
        socket.as_fd()
    }
}

/// Whether the local address or its route is gone, as during a handover; kernels use different errors.
/// Without any route to the server, `connect` fails before.
fn has_lost_its_network(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINVAL | libc::ENETUNREACH | libc::ENETDOWN | libc::EADDRNOTAVAIL)
    )
}

/// The local address of connection `number`: addresses of the server's family in turn.
fn source_of(remote: SocketAddr, sources: &[IpAddr], number: u32) -> Option<IpAddr> {
    let fits = |source: &&IpAddr| source.is_ipv4() == remote.is_ipv4();
    let count = sources.iter().filter(fits).count();
    sources.iter().filter(fits).nth((number as usize).checked_rem(count)?).copied()
}

/// The failure of a socket's error.
pub(crate) fn failure_of(error: &io::Error, doing: &str) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => FailureKind::Refused,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            FailureKind::Reset
        }
        io::ErrorKind::TimedOut => FailureKind::Timeout,
        _ => FailureKind::System,
    };
    let advice = match error.raw_os_error() {
        Some(libc::EADDRNOTAVAIL) => " (no local port is free; use several --source addresses)",
        Some(libc::EMFILE) => " (raise the limit of open files: ulimit -n)",
        _ => "",
    };
    Failure { kind, reason: format!("{doing}: {error}{advice}") }
}
