//! The loop: pacer, workload, engine, transport and recorder are values in it.

mod ending;
mod migration;
mod opening;
mod pace;
mod reading;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use engine::Connection as _;
use model::Histogram;
use model::assignment::{Assignment, ClientReport, DnsLookup, Lag, Suspensions, WarmupCost};
use model::player::PlayerEvent;
use model::sample::{ConnectionRow, Failure, FailureKind, Sample};
use model::tally::{ConnectionRequests, ConnectionTally};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use workload::{Beginning, Connections, NeverSent, RequestSource, Seeds, SharedWorkload};

use crate::clock::Clock;
use crate::connection::Conn;
use crate::contents::{Contents, is_sampled};
use crate::dns_lookup;
use crate::host::{Host, Logs};
use crate::live::Live;
use crate::request::Requests;
use crate::rows::RowSender;
use crate::session::Session;
use crate::system::{self, Usage};
use crate::timers::Timers;
use crate::transport::READ_BYTES;
use crate::wait;
use migration::{Migrations, WATCH_KEY};

/// A worker looks at the stop flag at least this often; it may miss shorter suspensions.
const LONGEST_WAIT_NS: u64 = 25_000_000;
/// At most this many sockets are handled before the timers.
const EVENTS_PER_WAIT: usize = 256;

/// The result of a worker.
#[derive(Clone, Debug)]
pub struct Report {
    /// One row for each request that ended, up to the assignment's limit of rows.
    pub samples: Vec<Sample>,
    /// One row for each connection, up to the same limit.
    pub connections: Vec<ConnectionRow>,
    /// The events of the player, where the workload plays a video.
    pub player: Vec<PlayerEvent>,
    /// The worker's costs and sums.
    pub client: ClientReport,
    /// How long it waited, doing nothing else, for the reader of its rows ([`Observers::rows`]).
    pub rows_waited_ns: u64,
}

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
    let mut worker = Worker::new(assignment)?;
    if let Some(rows) = &observers.rows {
        rows.begin(assignment.group, worker.requests.labels());
    }
    worker.session.live = observers.live;
    worker.session.rows = observers.rows;
    worker.usage_before = system::thread_usage();
    let started_ns = worker.clock.now_ns();
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
    requests: Requests,
    pub(crate) policy: Connections,
    /// A connection is closed after this many requests.
    requests_each: u64,
    pub(crate) epoll: OwnedFd,
    pub(crate) conns: Vec<Option<Conn>>,
    pub(crate) free: Vec<usize>,
    pub(crate) opened: u32,
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
    fn new(assignment: &'a Assignment) -> Result<Self> {
        let clock = Clock::new(&assignment.clock);
        let options = &assignment.options;
        let variant = assignment.target.variant;
        let limit =
            if variant.http() == model::HttpVersion::Http11 { assignment.pins.http1_connections } else { 1 };
        // Slow steps come before the workload's time begins.
        let seeds = Seeds::new(assignment.seed, assignment.group, 0);
        let shared = SharedWorkload::new(&assignment.workload, options, 1);
        let paths = shared.begin(seeds, Beginning::at(0));
        let requests = Requests::new(assignment, &paths.paths())?;
        let hosts = Host::all(assignment, paths.targets(), Logs::open(assignment, &clock)?)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("cannot create an epoll instance")?;
        let buffer = vec![0; READ_BYTES];
        let mut session =
            Session::new(paths, Contents::of(&assignment.workload), assignment.group, variant, options);
        wait::be_punctual();
        let begins_ns = clock.now_ns();
        session.work = shared.begin(seeds, Beginning::at(begins_ns));
        let migrations = Migrations::new(&options.protocols, variant, begins_ns, &epoll)?;
        let warmup_ends_ns = match assignment.workload.warmup_ns() {
            0 => u64::MAX,
            _ => session.work.warmup_ends_ns(),
        };
        Ok(Worker {
            assignment,
            clock,
            seed: seeds.own,
            hosts,
            requests,
            policy: session.work.connections(limit),
            requests_each: options.connections.requests_each.unwrap_or(u64::MAX),
            epoll,
            conns: Vec::new(),
            free: Vec::new(),
            opened: 0,
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
        loop {
            if now >= self.warmup_ends_ns {
                self.end_warmup(now);
            }
            if now >= self.assignment.deadline_ns {
                self.time_out(now);
                break;
            }
            let is_over = |session: &Session| session.work.is_finished(now) || session.stopped.is_some();
            if is_over(&self.session) || stop.load(Ordering::Relaxed) {
                break;
            }
            if now >= self.migrations.at_ns {
                self.migrate(now);
            }
            self.dispatch(now);
            if is_over(&self.session) {
                break;
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
        }
        self.finished_ns = self.clock.now_ns();
        self.unfinished = self.unfinished();
        self.never_sent = self.session.work.give_up();
        self.close_all();
        Ok(())
    }

    /// Gives waiting requests to connections that can take them, and opens the wanted connections.
    fn dispatch(&mut self, now: u64) {
        self.session.work.handle_time(now);
        let (at_once, _) = self.session.work.opened_by(now);
        let left = u32::try_from(self.session.work.left()).unwrap_or(u32::MAX);
        for host in 0..self.hosts.len() {
            self.hand_out(host);
            let waiting = u32::try_from(self.session.work.waiting(host)).unwrap_or(u32::MAX);
            let Host { open, connecting, .. } = self.hosts[host];
            // No connection is opened without a request left for it.
            let at_once = at_once.min((open - connecting).saturating_add(left));
            let wanted = at_once.max(open.saturating_add(waiting.saturating_sub(connecting)));
            let wanted = wanted.min(self.policy.limit);
            while now >= self.hosts[host].reopen_ns && self.hosts[host].open < wanted {
                if !self.open_connection(host) {
                    break;
                }
            }
            self.hosts[host].wants_more = self.hosts[host].open < wanted;
        }
    }

    /// Gives a host's waiting requests to its idle connections: the longest idle first, so that all are used
    /// equally; for a page the last used first, as browsers do.
    fn hand_out(&mut self, host: usize) {
        while self.session.work.waiting(host) > 0 {
            let idle = &mut self.hosts[host].idle;
            let next = if self.session.work.is_paced() { idle.pop_front() } else { idle.pop_back() };
            let Some(key) = next else { return };
            if let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut)
                && std::mem::take(&mut conn.is_listed)
            {
                let now = self.clock.now_ns();
                self.acts(now);
                self.serve(key, now);
            }
        }
    }

    /// Fills a connection with due requests and sends the bytes of its engine.
    pub(crate) fn serve(&mut self, key: usize, now: u64) {
        self.begin_thinking(key, now);
        let request_limit_ns = self.assignment.options.connections.request_timeout_ns;
        let free_ns = self.free_since(key, now);
        let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut) else { return };
        while conn.has_room(self.policy.streams, self.requests_each) {
            let Some(mut due) = self.session.work.poll_request(conn.host, now) else { break };
            // A closed loop with a connection for each request counts from opening it.
            if self.requests_each == 1 && !self.session.work.has_queue() {
                due.intended_ns = conn.row.opened_ns;
            }
            let opened = self.session.open(due, conn.row.connection, (free_ns, now));
            let Some(request) = self.requests.of(due.url, opened.number) else { break };
            conn.begun += 1;
            conn.checks_body = is_sampled(opened.number);
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
        for _ in 0..std::mem::take(&mut conn.ended) {
            let think_ns = self.session.work.think_ns();
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
        if self.session.work.has_queue()
            && !conn.is_listed
            && conn.has_room(self.policy.streams, self.requests_each)
        {
            conn.is_listed = true;
            self.hosts[conn.host].idle.push_back(key);
        }
        if conn.socket.is_udp() && conn.blocked != conn.watched_for_writing {
            let mut interest = epoll::EventFlags::IN;
            interest.set(epoll::EventFlags::OUT, conn.blocked);
            conn.watched_for_writing = conn.blocked;
            // Modifying a registered descriptor needs no resources, so it cannot fail.
            let _ = epoll::modify(&self.epoll, &conn.socket, epoll::EventData::new_u64(key as u64), interest);
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
        let (_, next_opening) = self.session.work.opened_by(now);
        let mut until = (now + LONGEST_WAIT_NS).min(self.assignment.deadline_ns).min(self.warmup_ends_ns);
        until = until.min(self.migrations.at_ns);
        for time in [self.timers.next(), self.session.work.next_ns(), next_opening].into_iter().flatten() {
            until = until.min(time);
        }
        for host in &self.hosts {
            if host.wants_more && host.reopen_ns > now {
                until = until.min(host.reopen_ns);
            }
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

    /// Notes the cost of the warm-up; measuring begins now.
    fn end_warmup(&mut self, now: u64) {
        self.warmup_ends_ns = u64::MAX;
        let usage = system::thread_usage().since(self.usage_before);
        let ConnectionTally { mut sent_bytes, mut received_bytes, .. } = *self.further_connections;
        for row in self.rows.iter().chain(self.conns.iter().flatten().map(|conn| &conn.row)) {
            sent_bytes += row.sent_bytes;
            received_bytes += row.received_bytes;
        }
        self.warmup = Some(WarmupCost {
            ended_ns: now,
            cpu_user_ns: usage.cpu_user_ns,
            cpu_system_ns: usage.cpu_system_ns,
            run_queue_ns: usage.run_queue_ns,
            suspended_ns: self.suspended.total_ns,
            sent_bytes,
            received_bytes,
        });
    }

    /// Keeps a connection's row, or adds it to the tally beyond the limit of rows.
    pub(crate) fn keep_row(&mut self, row: ConnectionRow, carried: ConnectionRequests) {
        if self.assignment.options.most_rows.is_some_and(|most| self.rows.len() as u64 >= most) {
            self.further_connections.record(row, carried);
        } else {
            self.rows.push(row);
        }
    }

    fn into_report(mut self, started_ns: u64, usage: Usage) -> Report {
        let mut connections = self.rows;
        connections.sort_by_key(|row| row.connection);
        let mut player = self.session.work.take_player_events();
        player.iter_mut().for_each(|event| event.group = self.assignment.group);
        let mut samples = self.session.samples;
        samples.sort_by_key(|sample| sample.request);
        let rows_waited_ns = self.session.rows.map_or(0, RowSender::finish);
        let (tallies, times) = self.session.tallies.finish();
        let lag = |lag: &Histogram| {
            let of = |share| lag.quantile(share).unwrap_or(0);
            Lag { p50_ns: of(0.5), p99_ns: of(0.99), max_ns: of(1.0) }
        };
        let client = ClientReport {
            group: self.assignment.group,
            contents: self.session.kinds.texts(),
            urls: self.requests.into_labels(),
            clients_begun: 1,
            clients_finished: u32::from(self.session.work.is_finished(self.finished_ns)),
            started_ns,
            finished_ns: self.finished_ns,
            cpu_user_ns: usage.cpu_user_ns,
            cpu_system_ns: usage.cpu_system_ns,
            run_queue_ns: usage.run_queue_ns,
            suspended: self.suspended,
            max_resident_bytes: system::max_resident_bytes(),
            dns_lookup: self.dns_lookup,
            lag: lag(&self.session.lag),
            own_lag: lag(&self.session.own_lag),
            never_sent: self.never_sent.all,
            never_sent_held: self.never_sent.held,
            unfinished: self.unfinished,
            stopped: self.session.stopped,
            tallies,
            times,
            further_connections: *self.further_connections,
            failed_migrations: self.migrations.failed,
            warmup: self.warmup,
            external: None,
        };
        Report { samples, connections, player, client, rows_waited_ns }
    }
}
