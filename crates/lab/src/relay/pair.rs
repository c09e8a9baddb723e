//! The two TCP connections of one client.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// Bytes that wait between the two connections, in each direction.
pub(super) const PIPE_BYTES: usize = 16 << 10;
/// A socket takes more bytes while fewer than this are not on their way (TCP_NOTSENT_LOWAT, tcp(7)): what
/// waits here cannot be overtaken by what the server sends next.
const UNSENT_BYTES: libc::c_int = 16 << 10;

/// A client's connection, the one outside, and what is on the way between them.
#[derive(Debug)]
pub(super) struct Pair {
    client: TcpStream,
    outside: TcpStream,
    is_connected: bool,
    up: Pipe,
    down: Pipe,
}

/// One direction.
#[derive(Debug)]
struct Pipe {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// Nothing more comes in.
    is_ended: bool,
    /// The end was passed on.
    is_closed: bool,
}

/// The pair cannot go on: both ends are reset.
struct Broken;

impl Pair {
    /// Begins to connect to `to`; `None` where that is impossible.
    pub(super) fn open(client: TcpStream, to: SocketAddr) -> Option<Pair> {
        let outside = begin_connecting(to).ok()?;
        client.set_nonblocking(true).ok()?;
        for stream in [&client, &outside] {
            stream.set_nodelay(true).ok()?;
            limit_unsent(stream).ok()?;
        }
        Some(Pair { client, outside, is_connected: false, up: Pipe::new(), down: Pipe::new() })
    }

    /// What to wait for at the client's end and outside.
    pub(super) fn watched(&self) -> [PollFd<'_>; 2] {
        if !self.is_connected {
            let client = PollFd::new(&self.client, PollFlags::empty());
            return [client, PollFd::new(&self.outside, PollFlags::OUT)];
        }
        let events = |from: &Pipe, to: &Pipe| {
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, from.wants_input());
            events.set(PollFlags::OUT, to.wants_output());
            events
        };
        [
            PollFd::new(&self.client, events(&self.up, &self.down)),
            PollFd::new(&self.outside, events(&self.down, &self.up)),
        ]
    }

    /// Handles events; false once the pair is over.
    pub(super) fn forward(&mut self, [client, outside]: [PollFlags; 2]) -> bool {
        if !self.is_connected {
            if outside.is_empty() {
                // The client gave up.
                return !client.intersects(PollFlags::ERR | PollFlags::HUP);
            }
            match sockopt::socket_error(&self.outside) {
                Ok(Ok(())) => self.is_connected = true,
                _ => return self.reset(),
            }
        }
        if (client | outside).contains(PollFlags::ERR) {
            return self.reset();
        }
        let up = self.up.pass(&mut self.client, &mut self.outside);
        let down = self.down.pass(&mut self.outside, &mut self.client);
        match (up, down) {
            (Ok(()), Ok(())) => !(self.up.is_closed && self.down.is_closed),
            _ => self.reset(),
        }
    }

    /// A closing socket that lingers for no time sends RST (socket(7)), as the other end did.
    fn reset(&self) -> bool {
        for stream in [&self.client, &self.outside] {
            let _: Result<_, _> = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
        false
    }
}

impl Pipe {
    fn new() -> Pipe {
        let bytes = vec![0; PIPE_BYTES].into_boxed_slice();
        Pipe { bytes, start: 0, end: 0, is_ended: false, is_closed: false }
    }

    const fn wants_input(&self) -> bool {
        self.start == self.end && !self.is_ended
    }

    const fn wants_output(&self) -> bool {
        self.start < self.end
    }

    /// Passes on as much as both ends allow.
    fn pass(&mut self, from: &mut TcpStream, to: &mut TcpStream) -> Result<(), Broken> {
        loop {
            if self.wants_output() {
                match to.write(&self.bytes[self.start..self.end]) {
                    Ok(length) => self.start += length,
                    Err(error) if is_temporary(&error) => return Ok(()),
                    Err(_) => return Err(Broken),
                }
                continue;
            }
            if self.is_ended {
                if !self.is_closed {
                    self.is_closed = true;
                    to.shutdown(Shutdown::Write).map_err(|_| Broken)?;
                }
                return Ok(());
            }
            match from.read(&mut self.bytes) {
                Ok(0) => self.is_ended = true,
                Ok(length) => (self.start, self.end) = (0, length),
                Err(error) if is_temporary(&error) => return Ok(()),
                Err(_) => return Err(Broken),
            }
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn begin_connecting(to: SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

fn limit_unsent(stream: &TcpStream) -> io::Result<()> {
    let (socket, value) = (stream.as_raw_fd(), UNSENT_BYTES);
    let length = libc::socklen_t::try_from(size_of_val(&value)).unwrap_or_default();
    let pointer = (&raw const value).cast();
    // SAFETY: the value outlives the call, and its length is given.
    let result =
        unsafe { libc::setsockopt(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, pointer, length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
