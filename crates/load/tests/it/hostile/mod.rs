//! Servers that lie, flood, stall and break off, on real sockets: each is a failure of a named kind, and no
//! more.
//!
//! Every case asserts that the worker ends unaided, that every request has exactly one outcome, its kind
//! and what its reason names, and that the worker never held more memory than its limits allow.

mod counting;
mod http1;
mod http2;
mod http3;
mod tls;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub(super) use http2::{frame, literal};
use load::{Clock, Report};
use model::assignment::{ASSIGNMENT_VERSION, Assignment, Target, Trust};
use model::options::{ConnectionOptions, Options};
use model::sample::{FailureKind, Outcome};
use model::workload::{ClosedLoop, LoopLoad, Workload};
use model::{Pins, Variant};

const MS: u64 = 1_000_000;
/// A test that is not over then has hung.
const DEADLINE_NS: u64 = 30_000 * MS;
/// What a worker with one connection may hold at its most: its buffers, histograms and the engine's limits.
const MOST_BYTES: usize = 12 << 20;

/// A TCP server that does the same to every connection; ends when dropped.
pub(super) struct Hostile {
    pub(super) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hostile {
    /// Hands every connection to `behave`, one after the other.
    pub(super) fn new(mut behave: impl FnMut(TcpStream) + Send + 'static) -> Hostile {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                let stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                behave(stream);
            }
        });
        Hostile { address, stop, thread: Some(thread) }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the listener; where it is gone, so is the thread.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// How a server ends after what it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// FIN, then it reads on.
    Close,
    /// RST.
    Reset,
    /// Nothing, until the client goes.
    Hold,
    /// The last piece again and again, until the client goes.
    Repeat,
}

/// Reads a little and throws it away; whether the peer is still there.
pub(super) fn take_something(stream: &mut TcpStream) -> bool {
    let mut buffer = [0; 65_536];
    match stream.read(&mut buffer) {
        Ok(length) => length > 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

/// Reads until the client is gone, or a while.
pub(super) fn outlast(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    while take_something(stream) {}
}

/// Says `pieces` and ends so.
pub(super) fn say(stream: &mut TcpStream, pieces: &[Vec<u8>], ending: Ending) {
    for piece in pieces {
        if stream.write_all(piece).is_err() {
            return;
        }
    }
    match ending {
        Ending::Close => {
            // A client that is gone already hears nothing.
            let _ = stream.shutdown(Shutdown::Write);
            outlast(stream);
        }
        Ending::Reset => {
            let socket = socket2::SockRef::from(&*stream);
            socket.set_linger(Some(Duration::ZERO)).unwrap();
        }
        Ending::Hold => outlast(stream),
        Ending::Repeat => {
            let flood = pieces.last().unwrap().repeat(1 + 60_000 / pieces.last().unwrap().len());
            // A second thread reads what the client answers, so that neither waits for the other.
            stream.set_nonblocking(true).unwrap();
            let mut rest = flood.as_slice();
            loop {
                match stream.write(rest) {
                    Ok(length) => rest = &rest[length..],
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        std::thread::sleep(Duration::from_micros(200));
                    }
                    Err(_) => return,
                }
                if rest.is_empty() {
                    rest = &flood;
                }
                if !take_something(stream) {
                    return;
                }
            }
        }
    }
}

/// The assignment of a client: this many requests, one after the other, within short time limits.
pub(super) fn assignment(variant: Variant, address: SocketAddr, requests: u64) -> Assignment {
    let connections = ConnectionOptions {
        connect_timeout_ns: Some(DEADLINE_NS / 2),
        request_timeout_ns: Some(400 * MS),
        ..ConnectionOptions::default()
    };
    Assignment {
        version: ASSIGNMENT_VERSION,
        group: 0,
        node: "test".to_owned(),
        clock: Clock::begin(),
        target: Target {
            variant,
            address,
            authority: format!("localhost:{}", address.port()),
            server_name: "localhost".to_owned(),
            trust: Trust::Anyone,
        },
        workload: Workload::Closed(ClosedLoop::new(
            LoopLoad { requests: Some(requests), ..LoopLoad::new("/") },
            None,
        )),
        pins: Pins::default(),
        seed: 1,
        clients: model::Clients::ONE,
        deadline_ns: DEADLINE_NS,
        ends_ns: None,
        options: Options { connections, ..Options::default() },
    }
}

/// The same for a failure of this kind: only where time is to pass does it pass soon, however busy the
/// machine is.
pub(super) fn expecting(kind: FailureKind, mut assignment: Assignment) -> Assignment {
    if kind != FailureKind::Timeout {
        assignment.options.connections.request_timeout_ns = Some(DEADLINE_NS / 2);
    }
    assignment
}

/// The same where it is connecting that takes too long.
pub(super) fn never_connecting(kind: FailureKind, mut assignment: Assignment) -> Assignment {
    if kind == FailureKind::Timeout {
        assignment.options.connections.connect_timeout_ns = Some(400 * MS);
    }
    expecting(kind, assignment)
}

/// Runs an assignment; the worker has ended unaided, used little memory, and every request has one outcome.
pub(super) fn run(name: &str, assignment: &Assignment) -> Report {
    let (report, most_bytes) = counting::peak(|| load::run(assignment, &AtomicBool::new(false)).unwrap());
    let requests = assignment.workload.requests().unwrap();
    let numbers: Vec<u64> = report.samples.iter().map(|sample| sample.request).collect();
    assert_eq!(numbers, (0..requests).collect::<Vec<_>>(), "{name}: one outcome for each request");
    assert!(report.client.finished_ns < DEADLINE_NS, "{name}: it ends unaided");
    assert!(report.samples.iter().all(|sample| sample.done_ns.is_some()), "{name}");
    assert!(most_bytes < MOST_BYTES, "{name}: the worker held {most_bytes} bytes");
    report
}

/// All requests failed with this kind, for a reason that contains this.
pub(super) fn assert_failed(name: &str, report: &Report, kind: FailureKind, part: &str) {
    for sample in &report.samples {
        match &sample.outcome {
            Outcome::Failed(failure) => {
                assert_eq!(failure.kind, kind, "{name}: {}", failure.reason);
                assert!(failure.reason.contains(part), "{name}: no {part:?} in {}", failure.reason);
            }
            other => panic!("{name}: {other:?}, expected {kind:?}: {part}"),
        }
    }
}

/// All requests succeeded.
pub(super) fn assert_ok(name: &str, report: &Report) {
    let failed: Vec<&Outcome> =
        report.samples.iter().map(|sample| &sample.outcome).filter(|outcome| !outcome.is_ok()).collect();
    assert!(failed.is_empty(), "{name}: {failed:?}");
}

/// Some connection failed with this kind, for a reason that contains this.
pub(super) fn assert_connection_failed(name: &str, report: &Report, kind: FailureKind, part: &str) {
    let found = report.connections.iter().any(|row| {
        matches!(&row.outcome, Outcome::Failed(failure) if failure.kind == kind && failure.reason.contains(part))
    });
    let outcomes: Vec<&Outcome> = report.connections.iter().map(|row| &row.outcome).collect();
    assert!(found, "{name}: no {kind:?} with {part:?} in {outcomes:?}");
}
