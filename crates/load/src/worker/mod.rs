//! The loop: clients with their workloads, engine, transport and recorder are values in it.

mod cancelling;
mod clients;
mod ending;
mod first_visit;
mod migration;
mod opening;
mod pace;
mod reading;
mod reconnecting;
mod report;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use engine::Connection as _;
use engine::client::ClientConfig;
use model::assignment::{Assignment, DnsLookup, Suspensions, WarmupCost};
use model::player::PlayerEvent;
use model::sample::{ConnectionRow, Failure, FailureKind};
use model::tally::ConnectionTally;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use workload::{Beginning, Connections, NeverSent, RequestSource, Seeds, SharedWorkload};

use crate::clock::Clock;
use crate::connection::Conn;
use crate::contents::is_sampled;
use crate::dns_lookup;
use crate::host::{Host, Logs, engine_options};
use crate::live::Live;
use crate::request::Requests;
use crate::rows::RowSender;
use crate::session::Session;
use crate::system::{self, Usage};
use crate::timers::Timers;
use crate::transport::READ_BYTES;
use crate::wait;
use clients::{ClientEnd, Roster};
use first_visit::Sessions;
use migration::{Migrations, WATCH_KEY};
pub use report::Report;

/// A worker looks at the stop flag at least this often; it may miss shorter suspensions.
const LONGEST_WAIT_NS: u64 = 25_000_000;
/// At most this many sockets are handled before the timers.
const EVENTS_PER_WAIT: usize = 256;

/// The observers of a worker while it runs.
#[derive(Debug, Default)]
pub struct Observers {
    /// Counters of its progress.
    pub live: Option<Arc<Live>>,
    /// Receives the rows beyond the assignment's limit; these requests are summed up as well.
    pub rows: Option<RowSender>,
}

/// Runs an assignment on this thread until it is done, its deadline passes or `stop` is set.
///
/// # Errors
/// The work cannot begin: settings of TLS cannot be used, there is no epoll instance, the file of a body
/// cannot be read, or a name does not resolve ([`NameNotFound`](crate::NameNotFound)). Later failures are
/// rows with their outcome.
pub fn run(assignment: &Assignment, stop: &AtomicBool) -> Result<Report> {
    run_observed(assignment, stop, Observers::default())
}

/// As [`run`], with observers.
///
/// # Errors
/// As [`run`].
pub fn run_observed(assignment: &Assignment, stop: &AtomicBool, observers: Observers) -> Result<Report> {
    let sessions = match assignment.options.connections.visit.is_first() {
        true => Sessions::default(),
        false => first_visit::make(assignment, stop)?,
    };
    let mut worker = Worker::new(assignment, sessions)?;
    if let Some(rows) = &observers.rows {
        rows.begin(assignment.group, worker.requests.labels());
    }
    worker.session.live = observers.live;
    worker.session.rows = observers.rows;
    worker.usage_before = system::thread_usage();
    let started_ns = worker.clock.now_ns().max(assignment.clients.begins_ns);
    worker.dns_lookup()?;
    worker.run(stop)?;
    let usage = system::thread_usage().since(worker.usage_before);
    Ok(worker.into_report(started_ns, usage))
}

pub(crate) struct Worker<'a> {
    pub(crate) assignment: &'a Assignment,
    pub(crate) clock: Clock,
    /// Seed of the connections' randomness.
    pub(crate) seed: u64,
    pub(crate) hosts: Vec<Host<'a>>,
    /// The options of clients that must not share sessions of TLS.
    separate: Option<engine::Options>,
    /// The settings of clients with the sessions of their first visit, by their places.
    sessions: Vec<Vec<ClientConfig>>,
    /// Whether clients leave their sessions there when they are done.
    keeps_sessions: bool,
    requests: Requests,
    shared: SharedWorkload,
    roster: Roster,
    /// When the group ends although its work is not done; [`u64::MAX`] without such an end.
    ends_ns: u64,
    player: Vec<PlayerEvent>,
    pub(crate) policy: Connections,
    /// A connection is closed after this many requests.
    requests_each: u64,
    pub(crate) epoll: OwnedFd,
    pub(crate) conns: Vec<Option<Conn>>,
    pub(crate) free: Vec<usize>,
    /// The number of the next connection.
    next_connection: u32,
    pub(crate) timers: Timers,
    pub(crate) session: Session,
    rows: Vec<ConnectionRow>,
    dns_lookup: Option<DnsLookup>,
    /// Connections beyond the limit of rows.
    further_connections: Box<ConnectionTally>,
    usage_before: Usage,
    /// When the warm-up ends; [`u64::MAX`] once it has ended, or without one.
    warmup_ends_ns: u64,
    warmup: Option<WarmupCost>,
    /// Local addresses for new connections, used in turn.
    pub(crate) sources: Vec<IpAddr>,
    pub(crate) migrations: Migrations,
    pub(crate) buffer: Vec<u8>,
    /// Connections that still have bytes to read: edge-triggered epoll reports only new bytes.
    pub(crate) unread: Vec<usize>,
    finished_ns: u64,
    never_sent: NeverSent,
    unfinished: u64,
    /// When the loop has to act again at the latest.
    acts_by_ns: u64,
    suspended: Suspensions,
}

impl<'a> Worker<'a> {
    fn new(assignment: &'a Assignment, sessions: Sessions) -> Result<Self> {
        let clock = Clock::new(&assignment.clock);
        let options = &assignment.options;
        let variant = assignment.target.variant;
        let limit =
            if variant.http() == model::HttpVersion::Http11 { assignment.pins.http1_connections } else { 1 };
        // Slow steps come before the workload's time begins.
        let seeds = Seeds::new(assignment.seed, assignment.group, 0);
        let shared = SharedWorkload::new(&assignment.workload, options, assignment.clients.count);
        // Every client's workload has the same paths, hosts and connections.
        let work = shared.begin(seeds, Beginning::at(0));
        let requests = Requests::new(assignment, &work)?;
        let engine_options = engine_options(assignment, Logs::open(assignment, &clock)?);
        let mut hosts = Host::all(assignment, work.targets(), &engine_options)?;
        for (host, known) in hosts.iter_mut().zip(&sessions.hosts) {
            host.config.clone_from(known);
        }
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot create an epoll instance")?;
        let buffer = vec![0; READ_BYTES];
        let session = Session::new(assignment, &work);
        wait::be_punctual();
        let begins_ns = clock.now_ns().max(assignment.clients.begins_ns);
        let ends_ns = assignment.ends_ns.filter(|ends_ns| *ends_ns <= assignment.deadline_ns);
        let ends_ns = ends_ns.unwrap_or(u64::MAX);
        let last_ns = shared.ends_ns(begins_ns).unwrap_or(u64::MAX).min(ends_ns);
        let roster = Roster::new(assignment, begins_ns, last_ns)?;
        let migrations = Migrations::new(&options.protocols, variant, begins_ns, &epoll)?;
        let warmup_ends_ns = match assignment.workload.warmup_ns() {
            0 => u64::MAX,
            warmup_ns => begins_ns.saturating_add(warmup_ns),
        };
        Ok(Worker {
            assignment,
            clock,
            seed: seeds.own,
            hosts,
            separate: (assignment.pins.resumption && assignment.clients.of > 1).then_some(engine_options),
            sessions: sessions.clients,
            keeps_sessions: false,
            requests,
            shared,
            roster,
            ends_ns,
            player: Vec::new(),
            policy: work.connections(limit),
            requests_each: options.connections.requests_each.unwrap_or(u64::MAX),
            epoll,
            conns: Vec::new(),
            free: Vec::new(),
            next_connection: assignment.clients.first_row(),
            timers: Timers::default(),
            session,
            rows: Vec::new(),
            dns_lookup: None,
            further_connections: Box::default(),
            usage_before: Usage::default(),
            warmup_ends_ns,
            warmup: None,
            sources: options.connections.sources.clone(),
            migrations,
            buffer,
            unread: Vec::new(),
            finished_ns: 0,
            never_sent: NeverSent::default(),
            unfinished: 0,
            acts_by_ns: u64::MAX,
            suspended: Suspensions::default(),
        })
    }

    /// Looks up the server's name, if the assignment asks for it. Requests that become due meanwhile wait, as
    /// for a user.
    fn dns_lookup(&mut self) -> Result<()> {
        if self.assignment.options.connections.dns_lookup {
            self.dns_lookup = Some(dns_lookup::dns_lookup(&self.assignment.target, &self.clock)?);
        }
        Ok(())
    }

    fn run(&mut self, stop: &AtomicBool) -> Result<()> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        let mut now = self.clock.now_ns();
        self.acts_by_ns = now;
        let end = loop {
            if now >= self.warmup_ends_ns {
                self.end_warmup(now);
            }
            if now >= self.ends_ns || stop.load(Ordering::Relaxed) {
                break ClientEnd::CutOff;
            }
            if now >= self.assignment.deadline_ns {
                self.time_out(now);
                break ClientEnd::TimedOut;
            }
            if now >= self.migrations.at_ns {
                self.migrate(now);
            }
            self.begin_clients(now)?;
            self.dispatch(now);
            if self.roster.are_done() || self.session.stopped.is_some() {
                break ClientEnd::CutOff;
            }
            if let Some(live) = &self.session.live {
                live.holds(self.conns.len() - self.free.len(), self.session.open_requests());
            }
            self.wait(&mut events, now)?;
            let unread = self.unread.len();
            for event in events.drain(..) {
                self.ready(event);
                self.keep_pace();
            }
            self.read_on(unread);
            now = self.clock.now_ns();
            self.acts(now);
            self.fire_timers(now);
            if self.session.stopped.is_some() {
                break ClientEnd::CutOff;
            }
        };
        self.finished_ns = self.finished_ns.max(self.roster.begins_ns);
        self.end_all(end);
        Ok(())
    }

    /// Fills a connection with due requests and sends the bytes of its engine.
    pub(crate) fn serve(&mut self, key: usize, now: u64) {
        self.begin_thinking(key, now);
        let request_limit_ns = self.assignment.options.connections.request_timeout_ns;
        let free_ns = self.free_since(key, now);
        let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut) else { return };
        while conn.has_room(self.policy.streams, self.requests_each) {
            let of = (conn.client, conn.host);
            // A closed loop with a connection for each request counts from opening it.
            let is_sole = self.requests_each == 1 && !self.session.has_queue;
            let intended_ns = is_sole.then_some(conn.row.opened_ns);
            let next = self.session.next_request(of, conn.row.connection, intended_ns, (free_ns, now));
            let Some((opened, url)) = next else { break };
            let cmcd = self.session.client(of.0).and_then(|client| client.work.cmcd(url));
            let Some(request) = self.requests.of((url, opened.number), cmcd, &self.session.urls) else {
                break;
            };
            conn.heard_ns = conn.heard_ns.max(if conn.in_flight == 0 { now } else { 0 });
            conn.begun += 1;
            conn.checks_body = is_sampled(opened.number) || self.session.keeps_body(opened.id);
            match conn.engine.send_request(now, opened.id, request) {
                Ok(bytes) => {
                    self.session.sent(opened.id, bytes, request.body.len() as u64);
                    conn.in_flight += 1;
                    if conn.row.ready_ns.is_none() {
                        conn.row.early_requests += u32::from(engine::contract::is_safe(request));
                    }
                    if let Some(limit_ns) = request_limit_ns {
                        conn.watch(opened, now.saturating_add(limit_ns), &self.session);
                    }
                }
                Err(error) => {
                    let failure = Failure { kind: FailureKind::Client, reason: error.to_string() };
                    let failed = engine::Event::Failed { request: opened.id, failure };
                    self.session.handle(failed, &mut conn.row, now);
                    break;
                }
            }
        }
        if conn.is_spent(self.requests_each) {
            conn.row.closed_ns.get_or_insert(now);
            conn.engine.close(now);
        }
        conn.flush(&mut self.session, now);
        self.settle(key, now);
    }

    /// Streams whose request has ended think before the next one, if the workload has a think time.
    fn begin_thinking(&mut self, key: usize, now: u64) {
        let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut) else { return };
        let Some(client) = self.session.client(conn.client) else { return };
        for _ in 0..std::mem::take(&mut conn.ended) {
            let think_ns = client.work.think_ns();
            if think_ns > 0 {
                conn.thinking.push(now.saturating_add(think_ns));
            }
        }
    }

    /// After any change of a connection: updates its timer, its epoll interest and its place among the idle,
    /// or retires it.
    pub(crate) fn settle(&mut self, key: usize, now: u64) {
        let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut) else { return };
        if conn.engine.is_closed() {
            self.retire(key, now);
            return;
        }
        let request_limit_ns = self.assignment.options.connections.request_timeout_ns;
        conn.note_refusal(self.requests_each, request_limit_ns, now);
        self.timers.set(key, conn.deadline_ns());
        if conn.has_room(self.policy.streams, self.requests_each) {
            conn.free_ns.get_or_insert(now);
        } else {
            conn.free_ns = None;
        }
        // A loop's connection with requests in flight waits for nothing else.
        let may_act = self.session.has_queue || conn.in_flight == 0;
        if self.session.has_queue
            && !conn.is_listed
            && conn.has_room(self.policy.streams, self.requests_each)
            && let Some(client) = self.session.client(conn.client)
        {
            conn.is_listed = true;
            client.hosts[conn.host].idle.push_back(key);
        }
        if conn.socket.is_udp() && conn.blocked != conn.watched_for_writing {
            let mut interest = epoll::EventFlags::IN;
            interest.set(epoll::EventFlags::OUT, conn.blocked);
            conn.watched_for_writing = conn.blocked;
            // Modifying a registered descriptor needs no resources, so it cannot fail.
            let _ = epoll::modify(&self.epoll, &conn.socket, epoll::EventData::new_u64(key as u64), interest);
        }
        if may_act {
            let place = conn.client;
            self.mark(place);
        }
    }

    fn ready(&mut self, event: epoll::Event) {
        if event.data.u64() == WATCH_KEY {
            return self.follow();
        }
        let Ok(key) = usize::try_from(event.data.u64()) else { return };
        let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut) else { return };
        let flags = event.flags;
        if !conn.is_connected && !self.finish_connecting(key, flags) {
            return;
        }
        let mut read_ns = None;
        if flags.intersects(
            epoll::EventFlags::IN
                | epoll::EventFlags::RDHUP
                | epoll::EventFlags::HUP
                | epoll::EventFlags::ERR,
        ) {
            read_ns = self.read(key, flags);
        }
        self.note_ready(key);
        let now = read_ns.unwrap_or_else(|| self.clock.now_ns());
        self.acts(now);
        self.serve(key, now);
    }

    fn fire_timers(&mut self, now: u64) {
        let limit_ns = self.assignment.options.connections.request_timeout_ns.unwrap_or(u64::MAX);
        while let Some(key) = self.timers.pop(now) {
            if self.reconnect_if_silent(key, now) {
                continue;
            }
            let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut) else { continue };
            if conn.deadline_ns().is_some_and(|deadline| deadline <= now) {
                conn.handle_time(&mut self.session, limit_ns, now);
                self.note_ready(key);
                self.serve(key, now);
            } else {
                self.timers.set(key, conn.deadline_ns());
            }
        }
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>, now: u64) -> Result<()> {
        let mut until = (now + LONGEST_WAIT_NS).min(self.assignment.deadline_ns).min(self.warmup_ends_ns);
        until = until.min(self.migrations.at_ns).min(self.ends_ns);
        let times = [self.timers.next(), self.roster.timers.next(), self.roster.next_beginning_ns()];
        for time in times.into_iter().flatten() {
            until = until.min(time);
        }
        if !self.unread.is_empty() {
            until = now;
        }
        wait::for_events(&self.epoll, &self.clock, (now, until), events)?;
        let coalesce_ns = self.assignment.options.connections.coalesce_ns;
        self.acts_by_ns = self.acts_by_ns.max(until).saturating_add(coalesce_ns);
        if coalesce_ns > 0 && !events.is_empty() {
            wait::sleep_ns(coalesce_ns);
        }
        Ok(())
    }
}
