//! One connection: a socket, an engine and the row that they fill.

use engine::client::Client;
use engine::{Connection as _, Input, Transmit};
use model::sample::{ConnectionRow, Failure, Outcome};

use crate::session::{Effect, Session};
use crate::transport::{Received, Socket, failure_of};

/// One connection of a worker.
pub(crate) struct Conn {
    pub(crate) engine: Client,
    pub(crate) socket: Socket,
    pub(crate) row: ConnectionRow,
    pub(crate) in_flight: u32,
    /// Bytes that the engine gave and the kernel has not taken yet.
    out: Vec<u8>,
    taken: usize,
    transmit: Option<Transmit>,
    /// The kernel takes nothing now.
    pub(crate) blocked: bool,
    /// Whether epoll was asked to say when it takes something again (UDP only).
    pub(crate) watched_for_writing: bool,
    /// Whether the transport's connect is over.
    pub(crate) is_connected: bool,
    /// Whether the worker has seen it ready.
    pub(crate) was_ready: bool,
}

impl Conn {
    pub(crate) fn new(engine: Client, socket: Socket, group: u16, number: u32, now: u64) -> Self {
        let row = ConnectionRow {
            group,
            connection: number,
            opened_ns: now,
            connected_ns: None,
            ready_ns: None,
            closed_ns: None,
            alpn: None,
            tls_version: None,
            cipher_suite: None,
            key_exchange: None,
            resumed: false,
            sent_bytes: 0,
            received_bytes: 0,
            outcome: Outcome::Ok,
        };
        Conn {
            engine,
            socket,
            row,
            in_flight: 0,
            out: Vec::new(),
            taken: 0,
            transmit: None,
            blocked: false,
            watched_for_writing: false,
            is_connected: false,
            was_ready: false,
        }
    }

    /// The transport is there: the engine begins its handshakes.
    pub(crate) fn connected(&mut self, session: &mut Session, now: u64) {
        if !self.socket.is_udp() {
            self.row.connected_ns = Some(now);
        }
        let Conn { engine, row, in_flight, .. } = self;
        engine.handle_connected(now, &mut |event| apply(session, event, row, in_flight, now));
    }

    /// Hands one input to the engine.
    pub(crate) fn input(&mut self, session: &mut Session, input: Input<'_>, now: u64) {
        let Conn { engine, row, in_flight, .. } = self;
        engine.handle_input(now, input, &mut |event| apply(session, event, row, in_flight, now));
    }

    /// Reads once. Whether there may be more to read.
    pub(crate) fn read(&mut self, session: &mut Session, buffer: &mut [u8], now: impl Fn() -> u64) -> bool {
        match self.socket.receive(buffer) {
            Ok(Received::Stream(length)) => {
                self.row.received_bytes += length as u64;
                self.input(session, Input::Stream(&mut buffer[..length]), now());
                length == buffer.len()
            }
            Ok(Received::Datagrams { length, segment_bytes, ecn }) => {
                self.row.received_bytes += length as u64;
                let bytes = &mut buffer[..length];
                self.input(session, Input::Datagrams { bytes, segment_bytes, ecn }, now());
                true
            }
            Ok(Received::End) => {
                self.input(session, Input::End, now());
                false
            }
            Ok(Received::Nothing) => false,
            Err(error) => {
                self.broken(session, failure_of(&error, "reading"), now());
                false
            }
        }
    }

    /// The engine's timer is due, or nearly.
    pub(crate) fn timeout(&mut self, session: &mut Session, now: u64) {
        let Conn { engine, row, in_flight, .. } = self;
        engine.handle_timeout(now, &mut |event| apply(session, event, row, in_flight, now));
    }

    /// The transport failed.
    pub(crate) fn broken(&mut self, session: &mut Session, failure: Failure, now: u64) {
        self.input(session, Input::Broken(failure), now);
    }

    /// Sends what the engine has to say, until it is silent or the kernel takes no more.
    pub(crate) fn flush(&mut self, session: &mut Session, now: u64) {
        loop {
            if self.taken < self.out.len() {
                match self.send() {
                    Ok(true) => {}
                    Ok(false) => {
                        self.blocked = true;
                        return;
                    }
                    Err(error) => {
                        self.out.clear();
                        self.taken = 0;
                        self.broken(session, failure_of(&error, "sending"), now);
                        return;
                    }
                }
            }
            self.blocked = false;
            self.out.clear();
            self.taken = 0;
            self.transmit = self.engine.poll_transmit(now, &mut self.out);
            if self.transmit.is_none() {
                return;
            }
        }
    }

    /// Whether the kernel took all of `out`.
    fn send(&mut self) -> std::io::Result<bool> {
        let bytes = &self.out[self.taken..];
        match self.transmit {
            Some(Transmit::Datagrams { segment_bytes, ecn }) => {
                let length = bytes.len();
                if !self.socket.send_datagrams(bytes, segment_bytes, ecn)? {
                    return Ok(false);
                }
                self.taken += length;
                self.row.sent_bytes += length as u64;
            }
            Some(Transmit::Stream) | None => {
                let length = self.socket.send_stream(bytes)?;
                self.taken += length;
                self.row.sent_bytes += length as u64;
            }
        }
        Ok(self.taken == self.out.len())
    }
}

fn apply(
    session: &mut Session,
    event: engine::Event<'_>,
    row: &mut ConnectionRow,
    in_flight: &mut u32,
    now: u64,
) {
    if session.handle(event, row, now) == Effect::RequestEnded {
        *in_flight = in_flight.saturating_sub(1);
    }
}
