//! The access log: one JSON line per request, written by a separate thread so that no request waits for the
//! disk.
//!
//! The queue is bounded. Rows that find it full are dropped and counted.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use model::Variant;

/// How many rows wait for the writer at most.
const MOST_WAITING: usize = 1 << 17;
/// Length at which paths and request ids are cut in the log, in bytes.
const LONGEST_FIELD_BYTES: usize = 1_024;
const WRITE_EVERY: Duration = Duration::from_millis(50);
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// One line of the log.
struct Row {
    time_unix_ns: u64,
    variant: Variant,
    method: http::Method,
    path: String,
    status: u16,
    bytes: u64,
    complete: bool,
    request_us: u64,
    remote_port: u16,
    request_id: Option<String>,
}

/// The queue between the server's tasks and the writer.
pub(crate) struct AccessLog {
    began: Instant,
    began_unix: Duration,
    waiting: Mutex<Vec<Row>>,
    dropped: AtomicU64,
    written: AtomicU64,
    stopping: AtomicBool,
}

/// The thread that writes; [`Writer::finish`] writes the remaining rows.
pub(crate) struct Writer {
    log: Arc<AccessLog>,
    thread: JoinHandle<std::io::Result<()>>,
}

/// A request that becomes a row when the transport has the last part of its answer.
pub(crate) struct Entry {
    log: Arc<AccessLog>,
    started: Instant,
    peer: Peer,
    method: http::Method,
    path: String,
    request_id: Option<String>,
    status: u16,
    expected_bytes: u64,
    sent_bytes: AtomicU64,
    abandoned: AtomicBool,
}

/// The client of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) variant: Variant,
    /// The client's port when it connected.
    pub(crate) port: u16,
}

impl AccessLog {
    /// Creates the file and starts the writer.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Writer> {
        let file =
            File::create(path).with_context(|| format!("cannot create the access log {}", path.display()))?;
        let log = Arc::new(AccessLog {
            began: Instant::now(),
            began_unix: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            waiting: Mutex::new(Vec::new()),
            dropped: AtomicU64::new(0),
            written: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
        });
        let writing = Arc::clone(&log);
        let thread = std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || writing.write_all(BufWriter::with_capacity(1 << 18, file)))
            .context("cannot start the thread that writes the access log")?;
        Ok(Writer { log, thread })
    }

    fn push(&self, row: Row) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MOST_WAITING {
            waiting.push(row);
        } else {
            drop(waiting);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn write_all(&self, mut file: BufWriter<File>) -> std::io::Result<()> {
        let mut batch = Vec::new();
        let mut flushed = Instant::now();
        loop {
            let last = self.stopping.load(Ordering::Acquire);
            std::mem::swap(&mut batch, &mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            let rows = batch.len() as u64;
            for row in batch.drain(..) {
                row.write(&mut file)?;
            }
            self.written.fetch_add(rows, Ordering::Relaxed);
            if last {
                return file.flush();
            }
            if flushed.elapsed() >= FLUSH_EVERY {
                file.flush()?;
                flushed = Instant::now();
            }
            std::thread::park_timeout(WRITE_EVERY);
        }
    }
}

impl Writer {
    pub(crate) fn log(&self) -> Arc<AccessLog> {
        Arc::clone(&self.log)
    }

    /// Writes the waiting rows; returns how many rows were written and how many were dropped.
    pub(crate) fn finish(self) -> anyhow::Result<(u64, u64)> {
        self.log.stopping.store(true, Ordering::Release);
        self.thread.thread().unpark();
        match self.thread.join() {
            Ok(result) => result.context("cannot write the access log; free disk space and run again")?,
            Err(_) => anyhow::bail!("the access log's thread panicked; see its message above"),
        }
        Ok((self.log.written.load(Ordering::Relaxed), self.log.dropped.load(Ordering::Relaxed)))
    }
}

impl Row {
    fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        write!(
            out,
            "{{\"time_unix_ns\":{},\"variant\":\"{}\",\"method\":\"{}\",\"path\":",
            self.time_unix_ns, self.variant, self.method
        )?;
        serde_json::to_writer(&mut *out, &self.path)?;
        write!(
            out,
            ",\"status\":{},\"bytes\":{},\"complete\":{},\"request_us\":{},\"remote_port\":{}",
            self.status, self.bytes, self.complete, self.request_us, self.remote_port
        )?;
        if let Some(id) = &self.request_id {
            out.write_all(b",\"request_id\":")?;
            serde_json::to_writer(&mut *out, id)?;
        }
        out.write_all(b"}\n")
    }
}

impl Entry {
    /// A request whose first byte was read at `started`.
    pub(crate) fn new<B>(
        log: &Arc<AccessLog>,
        started: Instant,
        peer: Peer,
        request: &http::Request<B>,
    ) -> Self {
        let target =
            request.uri().path_and_query().map_or(request.uri().path(), http::uri::PathAndQuery::as_str);
        let id = request.headers().get("x-request-id");
        Entry {
            log: Arc::clone(log),
            started,
            peer,
            method: request.method().clone(),
            path: cut(target.as_bytes()),
            request_id: id.map(|value| cut(value.as_bytes())),
            status: 0,
            expected_bytes: 0,
            sent_bytes: AtomicU64::new(0),
            abandoned: AtomicBool::new(false),
        }
    }

    /// Sets the answer's status and length.
    pub(crate) fn set_answer(&mut self, status: u16, body_bytes: u64) {
        self.status = status;
        self.expected_bytes = body_bytes;
    }

    /// Adds bytes of the body that the transport has taken.
    pub(crate) fn add_sent(&self, bytes: u64) {
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Marks the request as incomplete: the answer's head could not be sent.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let bytes = self.sent_bytes.load(Ordering::Relaxed);
        let since_began = self.started.saturating_duration_since(self.log.began);
        let time = self.log.began_unix + since_began;
        self.log.push(Row {
            time_unix_ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
            variant: self.peer.variant,
            remote_port: self.peer.port,
            method: std::mem::take(&mut self.method),
            path: std::mem::take(&mut self.path),
            status: self.status,
            bytes,
            complete: self.status != 0
                && bytes == self.expected_bytes
                && !self.abandoned.load(Ordering::Relaxed),
            request_us: u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX),
            request_id: self.request_id.take(),
        });
    }
}

fn cut(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_FIELD_BYTES)]).into_owned()
}
