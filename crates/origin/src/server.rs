//! The process: binds everything, runs until told to stop, drains, and tells what it did.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use model::{Shortfall, Variant};
use tokio::sync::{mpsc, watch};

use crate::Config;
use crate::access_log::{AccessLog, Peer};
use crate::catalogue::Catalogue;
use crate::listen::Listener;

/// Threads that may block on files.
const MOST_BLOCKING_THREADS: usize = 8;
/// Reasons of failed connections that are kept.
const MOST_FAILURES: usize = 8;
/// QUIC's own tasks send the last CONNECTION_CLOSE; waiting for their draining period would take three timeouts.
const QUIC_FAREWELL: Duration = Duration::from_millis(10);
/// How often [`flag`] looks.
const FLAG_EVERY: Duration = Duration::from_millis(20);

/// What an origin did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests answered or begun.
    pub requests: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Connections that ended with an error: a failed handshake, a reset, a timeout, a violation of the protocol.
    pub failed_connections: u64,
    /// Why the first few of them failed.
    pub failures: Vec<String>,
    /// Connections refused because too many were open.
    pub refused_connections: u64,
    /// Accepts that failed, such as for want of descriptors.
    pub failed_accepts: u64,
    /// Rows in the access log.
    pub logged: u64,
    /// Rows that the access log had no room for.
    pub dropped_from_log: u64,
}

/// What every connection shares.
pub(crate) struct Context {
    pub(crate) catalogue: Catalogue,
    pub(crate) log: Option<Arc<AccessLog>>,
    /// Whether HTTP/3 answers before the handshake is done.
    pub(crate) early_data: bool,
    pub(crate) head_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) stream_window_bytes: u32,
    pub(crate) connection_window_bytes: u32,
    pub(crate) concurrent_streams: u32,
    most_connections: usize,
    open_connections: AtomicUsize,
    requests: AtomicU64,
    connections: AtomicU64,
    failed_connections: AtomicU64,
    failures: Mutex<Vec<String>>,
    refused_connections: AtomicU64,
    failed_accepts: AtomicU64,
}

/// A listener's or connection's tie to the origin.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) server: Arc<Context>,
    pub(crate) variant: Variant,
    /// The client's port when it connected; 0 of a listener.
    peer_port: u16,
    closing: watch::Receiver<bool>,
    /// Held by everything that the origin waits for.
    _alive: mpsc::Sender<()>,
    _slot: Option<Arc<Slot>>,
}

/// One of the connections that may be open.
struct Slot(Arc<Context>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.open_connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves until `shutdown` is ready; `on_ready` learns the addresses when all of them listen, and where their sockets have
/// smaller buffers than they asked for.
///
/// Blocks the calling thread. Requests in flight get [`Config::grace`] to end; the access log is complete when this
/// returns.
///
/// # Errors
/// A setting that cannot work, an address that cannot be bound, an access log that cannot be written. What a client
/// does is never an error.
pub fn serve(
    config: Config,
    on_ready: impl FnOnce(&[(Variant, SocketAddr)], &[Shortfall]),
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<Served> {
    config.check()?;
    let mut builder = if config.threads == 1 {
        tokio::runtime::Builder::new_current_thread()
    } else {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(config.threads);
        builder
    };
    let runtime = builder
        .enable_all()
        .max_blocking_threads(MOST_BLOCKING_THREADS)
        .build()
        .context("cannot start the runtime of the origin")?;
    let catalogue = Catalogue::new(&config)?;
    let writer = config.access_log.as_deref().map(AccessLog::create).transpose()?;
    let log = writer.as_ref().map(crate::access_log::Writer::log);
    let server = Arc::new(Context::new(&config, catalogue, log));
    let ran = runtime.block_on(run(&config, &server, on_ready, shutdown));
    // Drops what the grace did not end, so that its rows reach the log.
    runtime.shutdown_timeout(Duration::from_millis(200));
    let (logged, dropped_from_log) = match writer {
        Some(writer) => writer.finish()?,
        None => (0, 0),
    };
    ran?;
    Ok(Served { logged, dropped_from_log, ..server.served() })
}

/// Ready when the flag is raised, for instance by a signal handler; looks every 20 ms.
pub async fn flag(raised: Arc<AtomicBool>) {
    while !raised.load(Ordering::Relaxed) {
        tokio::time::sleep(FLAG_EVERY).await;
    }
}

async fn run(
    config: &Config,
    server: &Arc<Context>,
    on_ready: impl FnOnce(&[(Variant, SocketAddr)], &[Shortfall]),
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let mut listeners = Vec::with_capacity(config.listen.len());
    for (variant, address) in &config.listen {
        listeners.push(Listener::bind(config, *variant, *address)?);
    }
    let addresses = listeners.iter().map(Listener::address).collect::<anyhow::Result<Vec<_>>>()?;
    let shortfalls: Vec<Shortfall> =
        listeners.iter().flat_map(|listener| listener.shortfalls().iter().copied()).collect();
    let (close, closing) = watch::channel(false);
    let (alive, mut ended) = mpsc::channel(1);
    for (listener, (variant, _)) in listeners.into_iter().zip(&addresses) {
        let link = Link {
            server: Arc::clone(server),
            variant: *variant,
            peer_port: 0,
            closing: closing.clone(),
            _alive: alive.clone(),
            _slot: None,
        };
        tokio::spawn(listener.accept(link));
    }
    drop(alive);
    on_ready(&addresses, &shortfalls);
    shutdown.await;
    close.send_replace(true);
    // Ready when the last connection and listener have let go; a grace that passes is no fault.
    let _ = tokio::time::timeout(config.grace, ended.recv()).await;
    if addresses.iter().any(|(variant, _)| variant.is_quic()) {
        tokio::time::sleep(QUIC_FAREWELL).await;
    }
    Ok(())
}

impl Context {
    fn new(config: &Config, catalogue: Catalogue, log: Option<Arc<AccessLog>>) -> Self {
        Context {
            catalogue,
            log,
            early_data: config.early_data,
            head_timeout: config.head_timeout,
            idle_timeout: config.idle_timeout,
            stream_window_bytes: config.stream_window_bytes,
            connection_window_bytes: config.connection_window_bytes,
            concurrent_streams: config.concurrent_streams,
            most_connections: config.most_connections,
            open_connections: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            failed_connections: AtomicU64::new(0),
            failures: Mutex::new(Vec::new()),
            refused_connections: AtomicU64::new(0),
            failed_accepts: AtomicU64::new(0),
        }
    }

    pub(crate) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_accept_failure(&self) {
        self.failed_accepts.fetch_add(1, Ordering::Relaxed);
    }

    fn served(&self) -> Served {
        Served {
            requests: self.requests.load(Ordering::Relaxed),
            connections: self.connections.load(Ordering::Relaxed),
            failed_connections: self.failed_connections.load(Ordering::Relaxed),
            failures: self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            refused_connections: self.refused_connections.load(Ordering::Relaxed),
            failed_accepts: self.failed_accepts.load(Ordering::Relaxed),
            ..Served::default()
        }
    }
}

impl Link {
    /// A tie for a new connection from this port; `None` when too many are open.
    pub(crate) fn connect(&self, peer_port: u16) -> Option<Link> {
        let open = self.server.open_connections.fetch_add(1, Ordering::Relaxed);
        let slot = Slot(Arc::clone(&self.server));
        if open >= self.server.most_connections {
            self.server.refused_connections.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.server.connections.fetch_add(1, Ordering::Relaxed);
        Some(Link { _slot: Some(Arc::new(slot)), peer_port, ..self.clone() })
    }

    /// Who asks over this connection.
    pub(crate) fn peer(&self) -> Peer {
        Peer { variant: self.variant, port: self.peer_port }
    }

    /// The connection has ended.
    pub(crate) fn end(&self, ended: &anyhow::Result<()>) {
        if let Err(error) = ended {
            self.server.failed_connections.fetch_add(1, Ordering::Relaxed);
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
            // The sender lives as long as the origin: an error means that it is gone, which is closing too.
            let _ = closing.wait_for(|closing| *closing).await;
        }
    }
}
