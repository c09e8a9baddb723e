//! Opening connections, making them ready and retiring them.

use engine::client::Client;
use model::Outcome;
use model::pins::Reconnect;
use model::sample::{ConnectionRow, Failure, FailureKind};
use rustix::event::epoll;

use super::Worker;
use crate::connection::Conn;
use crate::host::Host;
use crate::transport::{Socket, failure_of};

/// The wait after a connection that never became ready: a refusing server is not flooded with attempts.
const REOPEN_AFTER_NS: u64 = 50_000_000;

impl Worker<'_> {
    /// Begins to open a client's connection to a host; whether it succeeded.
    pub(crate) fn open_connection(&mut self, client: u32, host: usize) -> bool {
        let now = self.clock.now_ns();
        self.acts(now);
        let Host { target, ref config, .. } = self.hosts[host];
        let quic = target.variant.is_quic();
        let remote = target.address;
        let clients = self.assignment.clients;
        let number = self.next_connection;
        let options = &self.assignment.options.connections;
        let socket = match Socket::connect(remote, quic, options, &self.sources, number) {
            Ok(socket) => socket,
            Err(error) => {
                let failure = failure_of(&error, &format!("connecting to {remote}"));
                self.fail_attempt((client, host), failure, (now, now));
                return false;
            }
        };
        // Two processes with the same seed must not choose the same QUIC connection IDs for one server.
        let process = self.assignment.clock.run_start_ns.rotate_left(32);
        let seed = self.seed ^ process ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let own = self.session.client(client).and_then(|client| client.configs.get(host));
        let engine = match Client::new(own.unwrap_or(config), remote, self.clock.base(), seed) {
            Ok(engine) => engine,
            Err(failure) => {
                self.fail_attempt((client, host), failure, (now, now));
                return false;
            }
        };
        let key = self.free.pop().unwrap_or_else(|| {
            self.conns.push(None);
            self.conns.len() - 1
        });
        let flags = if quic {
            epoll::EventFlags::IN
        } else {
            epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET
        };
        if let Err(error) = epoll::add(&self.epoll, &socket, epoll::EventData::new_u64(key as u64), flags) {
            self.free.push(key);
            self.fail_attempt((client, host), failure_of(&error.into(), "watching a socket"), (now, now));
            return false;
        }
        let row = ConnectionRow {
            group: self.assignment.group,
            client: clients.number(client),
            connection: number,
            opened_ns: now,
            ..ConnectionRow::default()
        };
        let mut conn = Conn::new(engine, (socket, remote), (client, host), row);
        conn.silence_ns = match self.assignment.pins.reconnect {
            Reconnect::SilentNs(silence_ns) if !quic => Some(silence_ns),
            _ => None,
        };
        conn.use_deadline_ns = options.connect_timeout_ns.map(|limit| now.saturating_add(limit));
        self.timers.set(key, conn.deadline_ns());
        if let Some(client) = self.session.client(client) {
            client.hosts[host].open += 1;
            client.hosts[host].connecting += 1;
            conn.place = client.conns.len();
            client.conns.push(key);
        }
        self.conns[key] = Some(conn);
        self.next_connection = number.wrapping_add(clients.step);
        if quic {
            self.connected(key);
        }
        self.acts(self.clock.now_ns());
        true
    }

    /// A connection that could not be opened fails the next due request, as in a browser.
    fn fail_attempt(&mut self, of: (u32, usize), failure: Failure, (began_ns, now): (u64, u64)) {
        self.fail_due(of, &failure, began_ns, now);
        self.reopen_later(of, now);
    }

    /// Opens no connection of a client to a host for a while.
    fn reopen_later(&mut self, (client, host): (u32, usize), now: u64) {
        if let Some(host) = self.client_host(client, host) {
            host.reopen_ns = now + REOPEN_AFTER_NS;
        }
    }

    /// Handles an event of a connecting socket; whether the connection can be used.
    pub(crate) fn finish_connecting(&mut self, key: usize, flags: epoll::EventFlags) -> bool {
        let now = self.clock.now_ns();
        let Some(conn) = self.conns[key].as_mut() else { return false };
        match conn.socket.take_error() {
            Some(error) => {
                conn.is_connected = true;
                let doing = format!("connecting to {}", conn.remote);
                conn.broken(&mut self.session, failure_of(&error, &doing), now);
                self.settle(key, now);
                false
            }
            None if flags.contains(epoll::EventFlags::OUT) => {
                self.connected(key);
                self.conns[key].is_some()
            }
            None => false,
        }
    }

    fn connected(&mut self, key: usize) {
        let Some(conn) = self.conns[key].as_mut() else { return };
        conn.is_connected = true;
        let clock = self.clock;
        let now = conn.connected(&mut self.session, || clock.now_ns());
        self.note_ready(key);
        self.serve(key, now);
    }

    /// Removes a connection from those that are still connecting, once.
    pub(crate) fn note_ready(&mut self, key: usize) {
        if let Some(conn) = self.conns[key].as_mut()
            && !conn.was_ready
            && conn.row.ready_ns.is_some()
        {
            conn.was_ready = true;
            conn.use_deadline_ns = None;
            // The engine's share of the handshake (verifying, deriving keys) is part of it.
            conn.row.ready_ns = Some(self.clock.now_ns());
            let (client, host) = (conn.client, conn.host);
            if let Some(host) = self.client_host(client, host) {
                host.connecting -= 1;
            }
        }
    }

    /// Takes a connection from those of its client.
    pub(crate) fn detach(&mut self, key: usize) -> Option<Conn> {
        let conn = self.conns[key].take()?;
        self.free.push(key);
        if let Some(client) = self.session.client(conn.client) {
            let host = &mut client.hosts[conn.host];
            host.open -= 1;
            if !conn.was_ready {
                host.connecting -= 1;
            }
            if conn.is_listed {
                host.idle.retain(|listed| *listed != key);
            }
            client.conns.swap_remove(conn.place);
            let moved = client.conns.get(conn.place).copied();
            if let Some(moved) = moved.and_then(|key| self.conns[key].as_mut()) {
                moved.place = conn.place;
            }
        }
        self.mark(conn.client);
        Some(conn)
    }

    /// A connection is over.
    pub(crate) fn retire(&mut self, key: usize, now: u64) {
        let Some(mut conn) = self.detach(key) else { return };
        let of = (conn.client, conn.host);
        conn.row.closed_ns.get_or_insert(now);
        if conn.begun == 0 {
            let failure = match &conn.row.outcome {
                Outcome::Failed(failure) => failure.clone(),
                Outcome::Ok | Outcome::Unsupported(_) => Failure {
                    kind: FailureKind::Closed,
                    reason: format!("{} closed the connection before any request could be sent", conn.remote),
                },
            };
            self.fail_attempt(of, failure, (conn.row.opened_ns, now));
        } else if !conn.was_ready && !conn.row.outcome.is_ok() {
            // Requests that left as early data have failed with it.
            self.reopen_later(of, now);
        }
        self.keep_row(conn.row, conn.carried);
    }
}
