//! The sessions that the connections of one client group share, up to a limit.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

/// The limit of servers whose TLS 1.2 session and group are remembered; a client group has one or a few.
const SERVER_LIMIT: usize = 64;

/// Tickets and sessions by server name.
///
/// A TLS 1.3 ticket is used once (RFC 8446, appendix C.4), so a generator with many connections needs as many
/// tickets; rustls' own store keeps 8 per server. The store is locked only while a connection is created.
#[derive(Debug)]
pub struct SessionStore {
    ticket_limit: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first.
    tickets: VecDeque<(ServerName<'static>, Tls13ClientSessionValue)>,
    servers: VecDeque<Server>,
    /// The number of tickets that newer ones replaced.
    dropped: u64,
}

#[derive(Debug)]
struct Server {
    name: ServerName<'static>,
    group: Option<NamedGroup>,
    session: Option<Tls12ClientSessionValue>,
}

impl SessionStore {
    /// An empty store that keeps at most `ticket_limit` TLS 1.3 tickets, the newest.
    pub fn new(ticket_limit: usize) -> Self {
        SessionStore { ticket_limit, kept: Mutex::new(Kept::default()) }
    }

    /// The number of TLS 1.3 tickets.
    pub fn tickets(&self) -> usize {
        self.kept().tickets.len()
    }

    /// The number of tickets that were dropped at the limit.
    pub fn dropped_tickets(&self) -> u64 {
        self.kept().dropped
    }

    /// The store remains usable after a panic in another thread.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn find(&mut self, name: &ServerName<'_>) -> Option<&mut Server> {
        self.servers.iter_mut().find(|server| server.name == *name)
    }

    fn change(&mut self, name: ServerName<'static>, change: impl FnOnce(&mut Server)) {
        if let Some(server) = self.find(&name) {
            return change(server);
        }
        if self.servers.len() == SERVER_LIMIT {
            self.servers.pop_front();
        }
        let mut server = Server { name, group: None, session: None };
        change(&mut server);
        self.servers.push_back(server);
    }
}

impl ClientSessionStore for SessionStore {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        self.kept().change(server_name, |server| server.group = Some(group));
    }

    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.kept().find(server_name)?.group
    }

    fn set_tls12_session(&self, server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.kept().change(server_name, |server| server.session = Some(value));
    }

    fn tls12_session(&self, server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.kept().find(server_name)?.session.clone()
    }

    fn remove_tls12_session(&self, server_name: &ServerName<'static>) {
        if let Some(server) = self.kept().find(server_name) {
            server.session = None;
        }
    }

    fn insert_tls13_ticket(&self, server_name: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        kept.tickets.push_back((server_name, value));
        if kept.tickets.len() > self.ticket_limit {
            kept.tickets.pop_front();
            kept.dropped += 1;
        }
    }

    fn take_tls13_ticket(&self, server_name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut kept = self.kept();
        let at = kept.tickets.iter().rposition(|(name, _)| name == server_name)?;
        kept.tickets.remove(at).map(|(_, ticket)| ticket)
    }
}
