//! QUIC connections that move to a new local address in the middle of their work (RFC 9000, section 9).

use model::sample::Moved;
use model::tally::Unmoved;
use rustix::event::epoll;

use crate::transport::{Socket, failure_of};
use crate::worker::Worker;

/// So many reasons for not moving are told apart; further ones are counted with the last.
const MOST_REASONS: usize = 16;

impl Worker<'_> {
    /// Moves every QUIC connection to a socket of its own at the new address. The old sockets are closed, as when a
    /// phone leaves a network: what is on its way to them is lost, and QUIC has to find out.
    pub(crate) fn migrate(&mut self, now: u64) {
        self.migrate_at_ns = u64::MAX;
        if let Some(to) = self.assignment.options.protocols.migration.and_then(|migration| migration.to) {
            // Connections that are opened from now on begin there.
            self.sources = vec![to];
        }
        for key in 0..self.conns.len() {
            if self.conns[key].is_none() {
                continue;
            }
            match self.move_connection(key, now) {
                Ok(()) => self.serve(key, now),
                Err(reason) => self.stayed(reason),
            }
        }
    }

    fn stayed(&mut self, reason: String) {
        if let Some(known) = self.unmoved.iter_mut().find(|known| known.reason == reason) {
            known.connections += 1;
        } else if self.unmoved.len() < MOST_REASONS {
            self.unmoved.push(Unmoved { reason, connections: 1 });
        } else if let Some(last) = self.unmoved.last_mut() {
            last.connections += 1;
        }
    }

    /// Gives one connection a new socket.
    fn move_connection(&mut self, key: usize, now: u64) -> Result<(), String> {
        let Some(conn) = self.conns[key].as_mut() else { return Ok(()) };
        let remote = self.hosts[conn.host].target.address;
        if let [to] = self.sources[..]
            && to.is_ipv4() != remote.is_ipv4()
        {
            return Err(format!("{to} is of another family than the server's {}", remote.ip()));
        }
        let options = &self.assignment.options.connections;
        let socket = Socket::connect(remote, true, options, &self.sources, conn.row.connection)
            .map_err(|error| failure_of(&error, "binding a socket at the new address").reason)?;
        // A client stays where it is until its handshake is done (RFC 9000, section 9).
        if !conn.engine.local_address_changed(now) {
            return Err("its handshake was not done, or it was over already".to_owned());
        }
        epoll::add(&self.epoll, &socket, epoll::EventData::new_u64(key as u64), epoll::EventFlags::IN)
            .map_err(|error| failure_of(&error.into(), "watching the new socket").reason)?;
        conn.socket = socket;
        conn.blocked = false;
        conn.watched_for_writing = false;
        conn.row.moved = Some(Moved { at_ns: now, answered_ns: None });
        Ok(())
    }
}
