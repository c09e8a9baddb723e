//! QUIC connections that migrate to a new local address in the middle of their work (RFC 9000, section 9),
//! and the watch that tells when a local address is gone.

use std::os::fd::OwnedFd;

use anyhow::{Context, Result};
use model::assignment::AddressChange;
use model::options::ProtocolOptions;
use model::pins::Reconnect;
use model::sample::MigrationTimes;
use model::tally::Counts;
use model::variant::Variant;
use rustix::event::epoll;

use super::Worker;
use crate::addresses::AddressWatch;
use crate::transport::{Socket, failure_of};

/// The watch's number among the sockets: no connection ever has it.
pub(crate) const WATCH_KEY: u64 = u64::MAX;

/// When QUIC connections migrate, and which of them could not.
pub(crate) struct Migrations {
    /// When they migrate by the clock; never is [`u64::MAX`].
    pub(crate) at_ns: u64,
    /// Reports local addresses that are gone.
    watch: Option<AddressWatch>,
    /// Why connections could not migrate.
    pub(crate) failed: Counts<String>,
}

impl Migrations {
    /// Those of a worker that begins now and waits for the sockets of `epoll`. Only QUIC can migrate by the
    /// clock.
    pub(crate) fn new(
        options: &ProtocolOptions,
        variant: Variant,
        begins_ns: u64,
        epoll: &OwnedFd,
    ) -> Result<Migrations> {
        let mut migrations = Migrations { at_ns: u64::MAX, watch: None, failed: Counts::default() };
        if let Some(migration) = options.migration.filter(|_| variant.is_quic()) {
            migrations.at_ns = begins_ns.saturating_add(migration.after_ns);
        }
        if options.follows_addresses {
            let what = "cannot watch local addresses";
            let watch = AddressWatch::open().context(what)?;
            let key = epoll::EventData::new_u64(WATCH_KEY);
            epoll::add(epoll, &watch, key, epoll::EventFlags::IN).context(what)?;
            migrations.watch = Some(watch);
        }
        Ok(migrations)
    }
}

impl Worker<'_> {
    /// Local addresses changed: if one of their family is gone, QUIC connections migrate, and TCP connections
    /// are replaced where the client reconnects at once. Others only note the change.
    pub(crate) fn follow(&mut self) {
        let Some(watch) = &self.migrations.watch else { return };
        let lost = watch.lost();
        if self.hosts.iter().any(|host| lost.has(host.target.address.ip())) {
            let now = self.clock.now_ns();
            self.session.address_change.get_or_insert(AddressChange { at_ns: now, received_ns: None });
            match self.assignment.target.variant.is_quic() {
                true => self.migrate_all(now),
                false if self.assignment.pins.reconnect == Reconnect::AtOnce => self.reconnect_all(now),
                false => {}
            }
        }
    }

    /// Migrates at the time that was asked for.
    pub(crate) fn migrate(&mut self, now: u64) {
        self.migrations.at_ns = u64::MAX;
        if let Some(to) = self.assignment.options.protocols.migration.and_then(|migration| migration.to) {
            // Connections that are opened from now on begin there.
            self.sources = vec![to];
        }
        self.migrate_all(now);
    }

    /// Gives every QUIC connection a socket at the new address. The old sockets are closed, as when a phone
    /// leaves a network: packets on their way to them are lost, and QUIC has to find out.
    fn migrate_all(&mut self, now: u64) {
        for key in 0..self.conns.len() {
            if self.conns[key].is_none() {
                continue;
            }
            match self.migrate_connection(key, now) {
                Ok(()) => self.serve(key, now),
                Err(reason) => self.migrations.failed.add(reason, 1),
            }
        }
    }

    /// Gives one connection a new socket.
    fn migrate_connection(&mut self, key: usize, now: u64) -> Result<(), String> {
        let Some(conn) = self.conns[key].as_mut() else { return Ok(()) };
        let remote = self.hosts[conn.host].target.address;
        if let [to] = self.sources[..]
            && to.is_ipv4() != remote.is_ipv4()
        {
            return Err(format!("{to} is not of the same family as the server's {}", remote.ip()));
        }
        let options = &self.assignment.options.connections;
        let socket = Socket::connect(remote, true, options, &self.sources, conn.row.connection)
            .map_err(|error| failure_of(&error, "binding a socket at the new address").reason)?;
        // A client does not migrate before its handshake is done (RFC 9000, section 9).
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
