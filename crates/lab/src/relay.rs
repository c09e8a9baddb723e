//! Relays: a port of a node that stands for an endpoint outside the lab.
//!
//! A node has no route out of the lab, and needs none: sockets keep the network namespace in which they were
//! opened. A relay listens with sockets of the node and forwards with sockets of the calling thread, which is
//! outside. That needs no rights on the machine's own network, no setting of it, and no other program, so it
//! is the same for root and for an ordinary user.
//!
//! Datagrams are forwarded one by one, so a QUIC connection is between the client and the server outside. A
//! TCP connection becomes two: the node's kernel answers the client, and another connection leads outside.
//! The relay holds at most [`pair::PIPE_BYTES`] between the two, and hands the node's kernel new bytes only
//! when nearly all earlier ones are on their way, so that a slow link slows the server down soon.

mod flow;
mod pair;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::time::Timespec;

use crate::error::{LabError, Step};
use crate::node::Node;
use crate::thread::Thread;
use flow::Flow;
use pair::Pair;

/// Connections that are open at the same time; further ones wait in the kernel's queue.
const MOST_PAIRS: usize = 512;
/// QUIC connections at the same time, by the client's address; the one that was silent longest makes room.
const MOST_FLOWS: usize = 512;
/// After an error of the listener, such as too many open files, it rests this long.
const REST: Duration = Duration::from_millis(100);

/// A port of a node that forwards to an endpoint outside, until it is dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    to: SocketAddr,
    /// Readable once the thread is to end.
    end: OwnedFd,
    /// Joined after `end` was signalled.
    thread: Option<Thread<()>>,
}

impl Relay {
    /// Opens a port of a node, over TCP and UDP, and forwards to `to` from the calling thread's network. The
    /// port is `port` at the first of the node's `addresses` where it is free, its own address if the list is
    /// empty; otherwise the system chooses one.
    ///
    /// # Errors
    /// No port is free, or a thread cannot be started.
    pub fn open(node: &Node, addresses: &[IpAddr], port: u16, to: SocketAddr) -> Result<Relay, LabError> {
        let own = [IpAddr::V4(node.addresses().v4)];
        let addresses = if addresses.is_empty() { &own } else { addresses };
        let what = || format!("opening a port of the node `{}` for {to}", node.name());
        let find =
            || addresses.iter().find_map(|ip| bind(*ip, port).ok()).map_or_else(|| bind(addresses[0], 0), Ok);
        let bound = node.enter(find)?;
        let (tcp, udp) = bound.step(what)?;
        let address = tcp.local_addr().step(what)?;
        let end = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let end = end.map_err(io::Error::from).step(what)?;
        let watched = end.try_clone().step(what)?;
        let mut state = Ports { tcp, udp, to, pairs: Vec::new(), flows: Vec::new(), rests_until: None };
        let thread = Thread::spawn("relay", move || state.run(watched.as_fd()))?;
        Ok(Relay { address, to, end, thread: Some(thread) })
    }

    /// Where clients of the node's networks reach it.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The endpoint outside.
    pub const fn to(&self) -> SocketAddr {
        self.to
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // The counter cannot overflow: this is its only use.
        let _: Result<_, _> = rustix::io::write(&self.end, &1_u64.to_ne_bytes());
        drop(self.thread.take());
    }
}

/// The same port over TCP and UDP.
fn bind(ip: IpAddr, port: u16) -> io::Result<(TcpListener, UdpSocket)> {
    let tcp = TcpListener::bind((ip, port))?;
    let udp = UdpSocket::bind((ip, tcp.local_addr()?.port()))?;
    tcp.set_nonblocking(true)?;
    udp.set_nonblocking(true)?;
    flow::enlarge_buffers(udp.as_fd());
    Ok((tcp, udp))
}

/// What the thread of a relay owns.
struct Ports {
    tcp: TcpListener,
    udp: UdpSocket,
    to: SocketAddr,
    pairs: Vec<Pair>,
    flows: Vec<Flow>,
    rests_until: Option<Instant>,
}

impl Ports {
    fn run(&mut self, end: BorrowedFd<'_>) {
        loop {
            let ready = match self.wait(end) {
                Ok(Some(ready)) => ready,
                // A failure of poll(2) would repeat.
                Ok(None) | Err(_) => return,
            };
            self.handle(&ready);
        }
    }

    /// Waits for events; `None` once the relay is to end. The events are those of the UDP port, the listener,
    /// the flows, and two for each pair.
    fn wait(&self, end: BorrowedFd<'_>) -> io::Result<Option<Vec<PollFlags>>> {
        let rest = self.rests_until.map(|until| until.saturating_duration_since(Instant::now()));
        let accepts = self.pairs.len() < MOST_PAIRS && rest.is_none_or(|rest| rest.is_zero());
        let listens = if accepts { PollFlags::IN } else { PollFlags::empty() };
        let mut watched = vec![
            PollFd::from_borrowed_fd(end, PollFlags::IN),
            PollFd::new(&self.udp, PollFlags::IN),
            PollFd::new(&self.tcp, listens),
        ];
        watched.extend(self.flows.iter().map(|flow| PollFd::new(flow, PollFlags::IN)));
        for pair in &self.pairs {
            watched.extend(pair.watched());
        }
        let timeout = rest.filter(|rest| !rest.is_zero()).and_then(|rest| Timespec::try_from(rest).ok());
        match rustix::event::poll(&mut watched, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = watched.iter().map(PollFd::revents);
        let ends = ready.next().is_some_and(|events| !events.is_empty());
        Ok((!ends).then(|| ready.collect()))
    }

    fn handle(&mut self, ready: &[PollFlags]) {
        let mut ready = ready.iter().copied();
        let mut next = || ready.next().unwrap_or_else(PollFlags::empty);
        let (from_clients, new_clients) = (next(), next());
        for flow in &mut self.flows {
            if !next().is_empty() {
                flow.forward_down(&self.udp);
            }
        }
        self.pairs.retain_mut(|pair| {
            let events = [next(), next()];
            events.iter().all(|events| events.is_empty()) || pair.forward(events)
        });
        if !from_clients.is_empty() {
            self.forward_up();
        }
        self.rests_until = self.rests_until.filter(|until| *until > Instant::now());
        if !new_clients.is_empty() {
            self.accept();
        }
    }

    fn accept(&mut self) {
        while self.pairs.len() < MOST_PAIRS {
            match self.tcp.accept() {
                // Where the connection outside cannot even begin, dropping the client's tells it.
                Ok((client, _)) => self.pairs.extend(Pair::open(client, self.to)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.rests_until = Some(Instant::now() + REST);
                    return;
                }
            }
        }
    }

    fn forward_up(&mut self) {
        let mut datagram = [0; flow::MOST_BYTES];
        while let Ok((length, from)) = self.udp.recv_from(&mut datagram) {
            let known = self.flows.iter().position(|flow| flow.client() == from);
            let place = known.or_else(|| {
                let flow = Flow::open(from, self.to).ok()?;
                if self.flows.len() >= MOST_FLOWS {
                    let oldest = self.flows.iter().enumerate().min_by_key(|(_, flow)| flow.last_used());
                    oldest.map(|(place, _)| place).map(|place| self.flows.swap_remove(place));
                }
                self.flows.push(flow);
                Some(self.flows.len() - 1)
            });
            if let Some(flow) = place.and_then(|place| self.flows.get_mut(place)) {
                flow.forward_up(&datagram[..length]);
            }
        }
    }
}
