//! QUIC connections that move to a new local address in the middle of their work (RFC 9000, section 9).

use std::os::fd::OwnedFd;

use anyhow::{Context, Result};
use model::options::ProtocolOptions;
use model::sample::MigrationTimes;
use model::tally::FailedMigration;
use model::variant::Variant;
use rustix::event::epoll;

use crate::addresses::AddressWatch;
use crate::transport::{Socket, failure_of};
use crate::worker::Worker;

/// The watch's number among the sockets: no connection ever has it.
pub(crate) const WATCH_KEY: u64 = u64::MAX;
/// So many reasons for not moving are told apart; further ones are counted with the last.
const MOST_REASONS: usize = 16;

/// When QUIC connections move, and what came of it.
pub(crate) struct Migrations {
    /// When they are to move by the clock; never is [`u64::MAX`].
    pub(crate) at_ns: u64,
    /// Tells of local addresses that are gone.
    watch: Option<AddressWatch>,
    /// Connections that were to move and stayed.
    pub(crate) failed_migrations: Vec<FailedMigration>,
}

impl Migrations {
    /// Those of a worker that begins now and waits for the sockets of `epoll`; only QUIC can move.
    pub(crate) fn new(
        options: &ProtocolOptions,
        variant: Variant,
        begins_ns: u64,
        epoll: &OwnedFd,
    ) -> Result<Migrations> {
        let mut migrations = Migrations { at_ns: u64::MAX, watch: None, failed_migrations: Vec::new() };
        if !variant.is_quic() {
            return Ok(migrations);
        }
        if let Some(migration) = options.migration {
            migrations.at_ns = begins_ns.saturating_add(migration.after_ns);
        }
        if options.follows_addresses {
            let what = "local addresses could not be watched";
            let watch = AddressWatch::open().context(what)?;
            let key = epoll::EventData::new_u64(WATCH_KEY);
            epoll::add(epoll, &watch, key, epoll::EventFlags::IN).context(what)?;
            migrations.watch = Some(watch);
        }
        Ok(migrations)
    }
}

impl Worker<'_> {
    /// Local addresses changed: where one that connections may use has gone, they move.
    pub(crate) fn follow(&mut self) {
        let Some(watch) = &self.migrations.watch else { return };
        let lost = watch.lost();
        if self.hosts.iter().any(|host| lost.has(host.target.address.ip())) {
            self.move_all(self.clock.now_ns());
        }
    }

    /// The move that was asked for by time.
    pub(crate) fn migrate(&mut self, now: u64) {
        self.migrations.at_ns = u64::MAX;
        if let Some(to) = self.assignment.options.protocols.migration.and_then(|migration| migration.to) {
            // Connections that are opened from now on begin there.
            self.sources = vec![to];
        }
        self.move_all(now);
    }

    /// Migrations every QUIC connection to a socket of its own at the new address. The old sockets are closed, as when a
    /// phone leaves a network: what is on its way to them is lost, and QUIC has to find out.
    fn move_all(&mut self, now: u64) {
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
        if let Some(known) = self.migrations.failed_migrations.iter_mut().find(|known| known.reason == reason)
        {
            known.connections += 1;
        } else if self.migrations.failed_migrations.len() < MOST_REASONS {
            self.migrations.failed_migrations.push(FailedMigration { reason, connections: 1 });
        } else if let Some(last) = self.migrations.failed_migrations.last_mut() {
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
        conn.row.migrated = Some(MigrationTimes { at_ns: now, answered_ns: None });
        Ok(())
    }
}
