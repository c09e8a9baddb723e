//! The loop: pacer, workload, engine, transport and recorder are values in it, never copies of it.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use engine::client::{Client, ClientConfig};
use engine::{Connection as _, Request};
use model::assignment::{Assignment, ClientReport};
use model::sample::{ConnectionRow, Failure, FailureKind, Sample};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::time::Timespec;
use workload::{Connections, Work};

use crate::clock::Clock;
use crate::connection::Conn;
use crate::session::Session;
use crate::system::{self, Usage};
use crate::timers::Timers;
use crate::transport::{READ_BYTES, Socket, failure_of};
use crate::{request, trust};

/// After a connection that never became ready, the next attempt waits so long: a refusing server is not stormed.
const REOPEN_AFTER_NS: u64 = 50_000_000;
/// A worker looks at the stop flag at least this often.
const LONGEST_WAIT_NS: u64 = 100_000_000;
/// At most so many requests are begun on one connection before others get their turn.
const EVENTS_PER_WAIT: usize = 256;

/// What a worker leaves behind.
#[derive(Clone, Debug)]
pub struct Report {
    /// One row per request that ended.
    pub samples: Vec<Sample>,
    /// One row per connection.
    pub connections: Vec<ConnectionRow>,
    /// What it took.
    pub client: ClientReport,
}

/// Does what an assignment says, on this thread, until it is done, its deadline passes or `stop` is set.
///
/// # Errors
/// Only what keeps the work from beginning: a TLS configuration or an epoll instance that cannot be made. What
/// fails later is a row with its outcome.
pub fn run(assignment: &Assignment, stop: &AtomicBool) -> Result<Report> {
    let mut worker = Worker::new(assignment)?;
    let before = system::thread_usage();
    let started_ns = worker.clock.now_ns();
    worker.run(stop)?;
    let usage = system::thread_usage().since(before);
    Ok(worker.into_report(started_ns, usage))
}

struct Worker<'a> {
    assignment: &'a Assignment,
    clock: Clock,
    config: ClientConfig,
    requests: Vec<Request>,
    policy: Connections,
    epoll: OwnedFd,
    conns: Vec<Option<Conn>>,
    free: Vec<usize>,
    open: u32,
    connecting: u32,
    opened: u32,
    timers: Timers,
    session: Session,
    rows: Vec<ConnectionRow>,
    /// No connection is opened before this time.
    reopen_ns: u64,
    buffer: Vec<u8>,
    finished_ns: u64,
}

impl<'a> Worker<'a> {
    fn new(assignment: &'a Assignment) -> Result<Self> {
        let clock = Clock::new(&assignment.clock);
        let work = Work::new(&assignment.workload, clock.now_ns());
        let requests = request::templates(assignment, &work.paths());
        let variant = assignment.target.variant;
        let limit =
            if variant.http() == model::HttpVersion::Http11 { assignment.pins.http1_connections } else { 1 };
        let target = &assignment.target;
        let roots = trust::roots(&target.trust);
        let config =
            ClientConfig::new(variant, &target.server_name, &assignment.pins, &target.trust, &roots)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("no epoll instance could be made")?;
        Ok(Worker {
            assignment,
            clock,
            config,
            requests,
            policy: work.connections(limit),
            epoll,
            conns: Vec::new(),
            free: Vec::new(),
            open: 0,
            connecting: 0,
            opened: 0,
            timers: Timers::default(),
            session: Session::new(work, assignment.group, variant),
            rows: Vec::new(),
            reopen_ns: 0,
            buffer: vec![0; READ_BYTES],
            finished_ns: 0,
        })
    }

    fn run(&mut self, stop: &AtomicBool) -> Result<()> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        loop {
            let now = self.clock.now_ns();
            if now >= self.assignment.deadline_ns {
                let reason = "the time limit passed".to_owned();
                self.session.fail_open(&Failure { kind: FailureKind::Timeout, reason }, now);
                break;
            }
            if self.session.work.is_finished(now) || stop.load(Ordering::Relaxed) {
                break;
            }
            self.dispatch(now);
            if self.session.work.is_finished(now) {
                break;
            }
            self.wait(&mut events)?;
            for event in events.drain(..) {
                self.ready(event);
            }
            self.fire_timers();
        }
        self.finished_ns = self.clock.now_ns();
        self.close_all();
        Ok(())
    }

    /// Opens the connections that are wanted and gives waiting requests to connections that can take them.
    fn dispatch(&mut self, now: u64) {
        if self.session.work.waiting() > 0 {
            for key in 0..self.conns.len() {
                self.serve(key, now);
            }
        }
        let waiting = u32::try_from(self.session.work.waiting()).unwrap_or(u32::MAX);
        let wanted =
            self.policy.at_once.max(self.open.saturating_add(waiting.saturating_sub(self.connecting)));
        while now >= self.reopen_ns && self.open < wanted.min(self.policy.limit) {
            if !self.open_connection(now) {
                break;
            }
        }
    }

    /// Fills a connection with due requests and sends what its engine says.
    fn serve(&mut self, key: usize, now: u64) {
        let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut) else { return };
        while conn.in_flight < self.policy.streams && conn.engine.available_requests() > 0 {
            let Some(due) = self.session.work.poll_request(now) else { break };
            let id = self.session.open(due, conn.row.connection, now);
            match conn.engine.send_request(now, id, &self.requests[due.url as usize]) {
                Ok(bytes) => {
                    self.session.sent(id, bytes);
                    conn.in_flight += 1;
                }
                Err(error) => {
                    let failure = Failure { kind: FailureKind::Client, reason: error.to_string() };
                    self.session.handle(engine::Event::Failed { request: id, failure }, &mut conn.row, now);
                    break;
                }
            }
        }
        conn.flush(&mut self.session, now);
        self.settle(key, now);
    }

    /// After any change of a connection: its timer, its interest, its end.
    fn settle(&mut self, key: usize, now: u64) {
        let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut) else { return };
        if conn.engine.is_closed() {
            self.retire(key, now);
            return;
        }
        self.timers.set(key, conn.engine.poll_timeout());
        if conn.socket.is_udp() {
            let mut interest = epoll::EventFlags::IN;
            interest.set(epoll::EventFlags::OUT, conn.blocked);
            let data = epoll::EventData::new_u64(key as u64);
            if conn.blocked != conn.watched_for_writing {
                conn.watched_for_writing = conn.blocked;
                // Modifying a registered descriptor cannot fail for lack of anything.
                let _ = epoll::modify(&self.epoll, &conn.socket, data, interest);
            }
        }
    }

    fn open_connection(&mut self, now: u64) -> bool {
        let quic = self.config.variant().is_quic();
        let remote = self.assignment.target.address;
        let number = self.opened;
        let socket = match Socket::connect(remote, quic) {
            Ok(socket) => socket,
            Err(error) => {
                self.fail_attempt(failure_of(&error, &format!("connecting to {remote}")), now);
                return false;
            }
        };
        let seed = self.assignment.seed ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let engine = match Client::new(&self.config, remote, self.clock.base(), seed) {
            Ok(engine) => engine,
            Err(failure) => {
                self.fail_attempt(failure, now);
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
            self.fail_attempt(failure_of(&error.into(), "watching a socket"), now);
            return false;
        }
        self.conns[key] = Some(Conn::new(engine, socket, self.assignment.group, number, now));
        self.open += 1;
        self.connecting += 1;
        self.opened += 1;
        if quic {
            self.connected(key, now);
        }
        true
    }

    /// A connection that never came to be costs the next due request, as it would a browser.
    fn fail_attempt(&mut self, failure: Failure, now: u64) {
        if let Some(due) = self.session.work.poll_request(now) {
            self.session.fail_unsent(due, failure, now);
        }
        self.reopen_ns = now + REOPEN_AFTER_NS;
    }

    fn connected(&mut self, key: usize, now: u64) {
        let Some(conn) = self.conns[key].as_mut() else { return };
        conn.is_connected = true;
        conn.connected(&mut self.session, now);
        self.note_ready(key);
        self.serve(key, now);
    }

    /// Counts a connection out of those that are still connecting, once.
    fn note_ready(&mut self, key: usize) {
        if let Some(conn) = self.conns[key].as_mut()
            && !conn.was_ready
            && conn.row.ready_ns.is_some()
        {
            conn.was_ready = true;
            self.connecting -= 1;
        }
    }

    fn retire(&mut self, key: usize, now: u64) {
        let Some(mut conn) = self.conns[key].take() else { return };
        self.free.push(key);
        self.open -= 1;
        if !conn.was_ready {
            self.connecting -= 1;
        }
        conn.row.closed_ns.get_or_insert(now);
        if let (false, model::Outcome::Failed(failure)) = (conn.was_ready, &conn.row.outcome) {
            self.fail_attempt(failure.clone(), now);
        }
        self.rows.push(conn.row);
    }

    fn ready(&mut self, event: epoll::Event) {
        let Ok(key) = usize::try_from(event.data.u64()) else { return };
        let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut) else { return };
        let flags = event.flags;
        if !conn.is_connected {
            let now = self.clock.now_ns();
            match conn.socket.take_error() {
                Some(error) => {
                    conn.is_connected = true;
                    conn.broken(&mut self.session, failure_of(&error, "connecting"), now);
                    self.settle(key, now);
                    return;
                }
                None if flags.contains(epoll::EventFlags::OUT) => self.connected(key, now),
                None => return,
            }
        }
        if flags.intersects(
            epoll::EventFlags::IN
                | epoll::EventFlags::RDHUP
                | epoll::EventFlags::HUP
                | epoll::EventFlags::ERR,
        ) {
            self.read(key, flags);
        }
        self.note_ready(key);
        let now = self.clock.now_ns();
        self.serve(key, now);
    }

    /// Reads until a read falls short; with RDHUP, until the end.
    fn read(&mut self, key: usize, flags: epoll::EventFlags) {
        let ending =
            flags.intersects(epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR);
        let clock = self.clock;
        loop {
            let Some(conn) = self.conns[key].as_mut() else { return };
            let before = conn.row.received_bytes;
            let more = conn.read(&mut self.session, &mut self.buffer, || clock.now_ns());
            let progressed = conn.row.received_bytes > before;
            if conn.engine.is_closed() || !(more || (ending && progressed)) {
                return;
            }
            // What arrived may name the next request: it leaves before the next read.
            if conn.socket.is_udp() {
                conn.flush(&mut self.session, clock.now_ns());
            }
        }
    }

    fn fire_timers(&mut self) {
        let now = self.clock.now_ns();
        while let Some(key) = self.timers.pop(now) {
            let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut) else { continue };
            if conn.engine.poll_timeout().is_some_and(|deadline| deadline <= now) {
                conn.timeout(&mut self.session, now);
                self.note_ready(key);
                self.serve(key, now);
            } else {
                self.timers.set(key, conn.engine.poll_timeout());
            }
        }
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> Result<()> {
        let now = self.clock.now_ns();
        let mut until = now + LONGEST_WAIT_NS;
        until = until.min(self.assignment.deadline_ns);
        if let Some(timer) = self.timers.next() {
            until = until.min(timer);
        }
        if let Some(end) = self.session.work.ends_ns() {
            until = until.min(end);
        }
        if self.open == 0 {
            until = until.min(self.reopen_ns.max(now));
        }
        let wait_ns = until.saturating_sub(now);
        #[expect(clippy::cast_possible_wrap, reason = "at most LONGEST_WAIT_NS")]
        let timeout =
            Timespec { tv_sec: (wait_ns / 1_000_000_000) as i64, tv_nsec: (wait_ns % 1_000_000_000) as i64 };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("waiting for sockets"),
        }
    }

    /// Ends every connection in good order; what the kernel does not take at once is not waited for.
    fn close_all(&mut self) {
        let now = self.clock.now_ns();
        for key in 0..self.conns.len() {
            let Some(mut conn) = self.conns[key].take() else { continue };
            if conn.in_flight > 0 {
                conn.socket.abort_on_close();
            }
            conn.engine.close(now);
            conn.flush(&mut self.session, now);
            conn.row.closed_ns.get_or_insert(now);
            self.rows.push(conn.row);
        }
    }

    fn into_report(self, started_ns: u64, usage: Usage) -> Report {
        let mut connections = self.rows;
        connections.sort_by_key(|row| row.connection);
        let mut samples = self.session.samples;
        samples.sort_by_key(|sample| sample.request);
        let client = ClientReport {
            urls: self.requests.iter().map(|request| request.path.clone()).collect(),
            started_ns,
            finished_ns: self.finished_ns,
            cpu_user_ns: usage.cpu_user_ns,
            cpu_system_ns: usage.cpu_system_ns,
            run_queue_ns: usage.run_queue_ns,
            max_resident_bytes: system::max_resident_bytes(),
        };
        Report { samples, connections, client }
    }
}
