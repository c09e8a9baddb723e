//! What all connections of an origin share.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http::{Request, Response};
use model::Variant;
use tokio::sync::{mpsc, watch};

use crate::Config;
use crate::access_log::{AccessLog, Entry, Peer};
use crate::answer::Answer;
use crate::body::Content;
use crate::catalogue::Catalogue;

/// How many reasons of failed connections are kept.
const MOST_FAILURES: usize = 8;

/// What an origin did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServeReport {
    /// Requests answered or begun.
    pub requests: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Connections that ended with an error: a failed handshake, a reset, a timeout, a protocol error.
    pub failed_connections: u64,
    /// Why the first few of them failed.
    pub failures: Vec<String>,
    /// Faults of the content, each once, such as a broken index.
    pub content_faults: Vec<String>,
    /// Connections refused because too many were open.
    pub refused_connections: u64,
    /// QUIC clients that had to prove their address first because too many handshakes were incomplete.
    pub retried_connections: u64,
    /// Calls of accept(2) that failed, for example because no descriptor was free.
    pub failed_accepts: u64,
    /// Rows in the access log.
    pub logged: u64,
    /// Rows dropped because the access log's queue was full.
    pub dropped_from_log: u64,
}

/// The state that every connection shares.
pub(crate) struct Server {
    pub(crate) config: Config,
    pub(crate) catalogue: Catalogue,
    log: Option<Arc<AccessLog>>,
    counters: Counters,
    failures: Mutex<Vec<String>>,
}

#[derive(Default)]
struct Counters {
    requests: AtomicU64,
    connections: AtomicU64,
    failed_connections: AtomicU64,
    refused_connections: AtomicU64,
    retried_connections: AtomicU64,
    failed_accepts: AtomicU64,
}

/// An answer in the parts that a protocol sends.
pub(crate) struct Parts {
    pub(crate) head: Response<()>,
    pub(crate) body_bytes: u64,
    pub(crate) content: Content,
    pub(crate) entry: Option<Arc<Entry>>,
}

/// A listener's or a connection's handle to the origin.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) server: Arc<Server>,
    pub(crate) variant: Variant,
    /// The client's port when it connected; 0 for a listener.
    peer_port: u16,
    closing: watch::Receiver<bool>,
    /// Open connections of this listener.
    open: Slots,
    /// The origin waits until every clone of this sender is dropped.
    _alive: mpsc::Sender<()>,
    _slot: Option<Arc<Slot>>,
}

/// Counts what may exist at a time.
#[derive(Clone, Default)]
pub(crate) struct Slots(Arc<AtomicUsize>);

/// One of them.
pub(crate) struct Slot(Slots);

impl Slots {
    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes one, whether or not there is room.
    pub(crate) fn take(&self) -> Slot {
        self.0.fetch_add(1, Ordering::Relaxed);
        Slot(self.clone())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    pub(crate) fn new(config: Config, log: Option<Arc<AccessLog>>) -> anyhow::Result<Self> {
        let catalogue = Catalogue::new(&config)?;
        Ok(Server { config, catalogue, log, counters: Counters::default(), failures: Mutex::default() })
    }

    /// Counts a request and opens its row in the access log; its first byte was read at `started`.
    pub(crate) fn begin_request<B>(
        &self,
        peer: Peer,
        request: &Request<B>,
        started: Instant,
    ) -> Option<Entry> {
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        self.log.as_ref().map(|log| Entry::new(log, started, peer, request))
    }

    /// Splits an answer over a variant for sending and enters it in the access log.
    pub(crate) fn split(&self, variant: Variant, mut answer: Answer, entry: Option<Entry>) -> Parts {
        // Clients in cleartext cannot follow Alt-Svc.
        if let Some(port) = self.config.alternative_port.filter(|_| variant.is_encrypted()) {
            answer.announce_http3(port);
        }
        let (head, body_bytes, content) = answer.into_parts(&self.catalogue.date);
        let entry = entry.map(|mut entry| {
            entry.set_answer(head.status().as_u16(), body_bytes);
            Arc::new(entry)
        });
        Parts { head, body_bytes, content, entry }
    }

    pub(crate) fn count_accept_failure(&self) {
        self.counters.failed_accepts.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_retry(&self) {
        self.counters.retried_connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn report(&self) -> ServeReport {
        let counters = &self.counters;
        ServeReport {
            requests: counters.requests.load(Ordering::Relaxed),
            connections: counters.connections.load(Ordering::Relaxed),
            failed_connections: counters.failed_connections.load(Ordering::Relaxed),
            failures: self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            content_faults: self.catalogue.faults.all(),
            refused_connections: counters.refused_connections.load(Ordering::Relaxed),
            retried_connections: counters.retried_connections.load(Ordering::Relaxed),
            failed_accepts: counters.failed_accepts.load(Ordering::Relaxed),
            ..ServeReport::default()
        }
    }
}

impl Link {
    /// The handle of a listener.
    pub(crate) fn listener(
        server: &Arc<Server>,
        variant: Variant,
        closing: &watch::Receiver<bool>,
        alive: &mpsc::Sender<()>,
    ) -> Link {
        let (closing, alive) = (closing.clone(), alive.clone());
        let (server, open) = (Arc::clone(server), Slots::default());
        Link { server, variant, peer_port: 0, closing, open, _alive: alive, _slot: None }
    }

    /// The handle of a new connection from this port; `None` where too many are open.
    pub(crate) fn connect(&self, peer_port: u16) -> Option<Link> {
        let counters = &self.server.counters;
        // One task accepts the connections of a listener.
        if self.open.taken() >= self.server.config.most_connections {
            counters.refused_connections.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        counters.connections.fetch_add(1, Ordering::Relaxed);
        Some(Link { _slot: Some(Arc::new(self.open.take())), peer_port, ..self.clone() })
    }

    /// The client of this connection.
    pub(crate) fn peer(&self) -> Peer {
        Peer { variant: self.variant, port: self.peer_port }
    }

    /// Records how the connection ended.
    pub(crate) fn end(&self, ended: &anyhow::Result<()>) {
        if let Err(error) = ended {
            self.server.counters.failed_connections.fetch_add(1, Ordering::Relaxed);
            let mut failures = self.server.failures.lock().unwrap_or_else(PoisonError::into_inner);
            if failures.len() < MOST_FAILURES {
                failures.push(format!("{}: {error:#}", self.variant));
            }
        }
    }

    /// Ready when the origin closes.
    pub(crate) fn closing(&self) -> impl Future<Output = ()> + use<> {
        let mut closing = self.closing.clone();
        async move {
            // The sender lives as long as the origin. An error means that the origin is gone, which is
            // closing too.
            let _ = closing.wait_for(|closing| *closing).await;
        }
    }
}
