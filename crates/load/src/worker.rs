//! The loop: pacer, workload, engine, transport and recorder are values in it, never copies of it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use engine::Connection as _;
use model::assignment::{Assignment, ClientReport, DnsLookup, WarmupCost};
use model::player::PlayerEvent;
use model::sample::{ConnectionRow, Failure, FailureKind, Sample};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use workload::{Connections, Seeds, Work};

use crate::clock::Clock;
use crate::connection::Conn;
use crate::contents::Contents;
use crate::dns_lookup;
use crate::host::{Host, Logs};
use crate::live::Live;
use crate::migration::{Migrations, WATCH_KEY};
use crate::request::Requests;
use crate::rows::RowSender;
use crate::session::Session;
use crate::system::{self, Usage};
use crate::tally::{Carried, ConnectionTallies};
use crate::timers::Timers;
use crate::transport::READ_BYTES;
use crate::wait;

/// A worker looks at the stop flag at least this often.
const LONGEST_WAIT_NS: u64 = 100_000_000;
/// At most so many sockets are looked at before timers are.
const EVENTS_PER_WAIT: usize = 256;

/// What a worker leaves behind.
#[derive(Clone, Debug)]
pub struct Report {
    /// One row per request that ended, up to the assignment's limit of rows.
    pub samples: Vec<Sample>,
    /// One row per connection, up to the same limit.
    pub connections: Vec<ConnectionRow>,
    /// What happened to the player, where the workload plays a video.
    pub player: Vec<PlayerEvent>,
    /// What it took.
    pub client: ClientReport,
    /// How long it waited for whoever reads its rows ([`Watched::rows`]): so long, it did nothing else.
    pub rows_waited_ns: u64,
}

/// Who watches a worker while it runs.
#[derive(Debug, Default)]
pub struct Watched {
    /// Where it shows how far the work is.
    pub live: Option<Arc<Live>>,
    /// Where rows beyond the assignment's limit go; these requests are summed up nonetheless.
    pub rows: Option<RowSender>,
}

/// Does what an assignment says, on this thread, until it is done, its deadline passes or `stop` is set.
///
/// # Errors
/// Only what keeps the work from beginning: a TLS configuration or an epoll instance that cannot be made, a body's
/// file that cannot be read, a name that is not found ([`NameNotFound`](crate::NameNotFound)). What fails later is a row with its outcome.
pub fn run(assignment: &Assignment, stop: &AtomicBool) -> Result<Report> {
    run_watched(assignment, stop, Watched::default())
}

/// As [`run`], and shows what it does while it does it.
///
/// # Errors
/// As [`run`].
pub fn run_watched(assignment: &Assignment, stop: &AtomicBool, watched: Watched) -> Result<Report> {
    let mut worker = Worker::new(assignment)?;
    if let Some(rows) = &watched.rows {
        rows.begin(assignment.group, worker.requests.labels());
    }
    worker.session.live = watched.live;
    worker.session.rows = watched.rows;
    worker.usage_before = system::thread_usage();
    let started_ns = worker.clock.now_ns();
    worker.dns_lookup()?;
    worker.run(stop)?;
    let usage = system::thread_usage().since(worker.usage_before);
    worker.into_report(started_ns, usage)
}

pub(crate) struct Worker<'a> {
    pub(crate) assignment: &'a Assignment,
    pub(crate) clock: Clock,
    /// What connections draw from.
    pub(crate) seed: u64,
    pub(crate) hosts: Vec<Host<'a>>,
    requests: Requests,
    pub(crate) policy: Connections,
    /// A connection is closed after so many requests.
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
    further_connections: Option<Box<ConnectionTallies>>,
    usage_before: Usage,
    /// When the warm-up ends; never, once it has.
    warmup_ends_ns: u64,
    warmup: Option<WarmupCost>,
    /// Local addresses of new connections, in turn.
    pub(crate) sources: Vec<IpAddr>,
    pub(crate) migrations: Migrations,
    pub(crate) buffer: Vec<u8>,
    /// Connections that were left while there was more to read; the kernel tells of new bytes only.
    pub(crate) unread: Vec<usize>,
    finished_ns: u64,
    never_sent: u64,
    unfinished: u64,
}

impl<'a> Worker<'a> {
    fn new(assignment: &'a Assignment) -> Result<Self> {
        let clock = Clock::new(&assignment.clock);
        let options = &assignment.options;
        let variant = assignment.target.variant;
        let limit =
            if variant.http() == model::HttpVersion::Http11 { assignment.pins.http1_connections } else { 1 };
        // All that takes time is done before the workload's time begins.
        let seeds = Seeds::new(assignment.seed, assignment.group);
        let paths = Work::new(&assignment.workload, options, seeds, 0);
        let requests = Requests::new(assignment, &paths.paths())?;
        let hosts = Host::all(assignment, paths.targets(), Logs::open(assignment, &clock)?)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("no epoll instance could be made")?;
        let buffer = vec![0; READ_BYTES];
        let mut session =
            Session::new(paths, Contents::of(&assignment.workload), assignment.group, variant, options)?;
        let further = options.most_rows.map(|_| ConnectionTallies::new().map(Box::new)).transpose()?;
        wait::be_punctual();
        let begins_ns = clock.now_ns();
        session.work = Work::new(&assignment.workload, options, seeds, begins_ns);
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
            further_connections: further,
            usage_before: Usage::default(),
            warmup_ends_ns,
            warmup: None,
            sources: options.connections.sources.clone(),
            migrations,
            buffer,
            unread: Vec::new(),
            finished_ns: 0,
            never_sent: 0,
            unfinished: 0,
        })
    }

    /// Looks the server's name up, where it is asked to: what is due meanwhile waits, as it would for a user.
    fn dns_lookup(&mut self) -> Result<()> {
        if self.assignment.options.connections.dns_lookup {
            self.dns_lookup = Some(dns_lookup::dns_lookup(&self.assignment.target, &self.clock)?);
        }
        Ok(())
    }

    fn run(&mut self, stop: &AtomicBool) -> Result<()> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        let mut now = self.clock.now_ns();
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
            self.fire_timers(now);
        }
        self.finished_ns = self.clock.now_ns();
        self.unfinished = self.unfinished();
        self.never_sent = self.session.work.give_up();
        self.close_all();
        Ok(())
    }

    /// Sends what has become due while sockets were looked at, so that no request waits for all of them.
    fn keep_pace(&mut self) {
        if let Work::Open(_) = self.session.work {
            let now = self.clock.now_ns();
            if self.session.work.next_ns().is_some_and(|due| due <= now) {
                self.session.work.handle_time(now);
                (0..self.hosts.len()).for_each(|host| self.hand_out(host));
            }
        }
    }

    /// Gives waiting requests to connections that can take them and opens the connections that are wanted.
    fn dispatch(&mut self, now: u64) {
        self.session.work.handle_time(now);
        let (at_once, _) = self.session.work.opened_by(now);
        let left = u32::try_from(self.session.work.left()).unwrap_or(u32::MAX);
        for host in 0..self.hosts.len() {
            self.hand_out(host);
            let waiting = u32::try_from(self.session.work.waiting(host)).unwrap_or(u32::MAX);
            let Host { open, connecting, .. } = self.hosts[host];
            // A connection that no request is left for is not opened.
            let at_once = at_once.min((open - connecting).saturating_add(left));
            let wanted = at_once.max(open.saturating_add(waiting.saturating_sub(connecting)));
            let wanted = wanted.min(self.policy.limit);
            while now >= self.hosts[host].reopen_ns && self.hosts[host].open < wanted {
                if !self.open_connection(host, now) {
                    break;
                }
            }
            self.hosts[host].wants_more = self.hosts[host].open < wanted;
        }
    }

    /// Gives a host's waiting requests to its idle connections: the longest idle first, so that all are used alike;
    /// for a page the last used first, as browsers do.
    fn hand_out(&mut self, host: usize) {
        while self.session.work.waiting(host) > 0 {
            let idle = &mut self.hosts[host].idle;
            let next = match self.session.work {
                Work::Page(_) | Work::Player(_) => idle.pop_back(),
                Work::Open(_) | Work::Closed(_) => idle.pop_front(),
            };
            let Some(key) = next else { return };
            if let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut)
                && std::mem::take(&mut conn.is_listed)
            {
                let now = self.clock.now_ns();
                self.serve(key, now);
            }
        }
    }

    /// Fills a connection with due requests and sends what its engine says.
    pub(crate) fn serve(&mut self, key: usize, now: u64) {
        self.begin_thinking(key, now);
        let request_limit_ns = self.assignment.options.connections.request_timeout_ns;
        let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut) else { return };
        while conn.has_room(self.policy.streams, self.requests_each) {
            let Some(mut due) = self.session.work.poll_request(conn.host, now) else { break };
            // A closed loop that opens a connection for each request wants its answer from then on.
            if self.requests_each == 1 && !self.session.work.has_queue() {
                due.intended_ns = conn.row.opened_ns;
            }
            let opened = self.session.open(due, conn.row.connection, now);
            let Some(request) = self.requests.of(due.url, opened.number) else { break };
            conn.begun += 1;
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
            conn.engine.close(now);
        }
        conn.flush(&mut self.session, now);
        self.settle(key, now);
    }

    /// Streams whose request has ended think before their next one, where the workload wants it.
    fn begin_thinking(&mut self, key: usize, now: u64) {
        let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut) else { return };
        for _ in 0..std::mem::take(&mut conn.ended) {
            let think_ns = self.session.work.think_ns();
            if think_ns > 0 {
                conn.thinking.push(now.saturating_add(think_ns));
            }
        }
    }

    /// After any change of a connection: its timer, its interest, its place among the idle, its end.
    pub(crate) fn settle(&mut self, key: usize, now: u64) {
        let Some(conn) = self.conns.get_mut(key).and_then(Option::as_mut) else { return };
        if conn.engine.is_closed() {
            self.retire(key, now);
            return;
        }
        let request_limit_ns = self.assignment.options.connections.request_timeout_ns;
        conn.note_refusal(self.requests_each, request_limit_ns, now);
        self.timers.set(key, conn.deadline_ns());
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
            // Modifying a registered descriptor cannot fail for lack of anything.
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
        for wish in [self.timers.next(), self.session.work.next_ns(), next_opening].into_iter().flatten() {
            until = until.min(wish);
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
        if coalesce_ns > 0 && !events.is_empty() {
            wait::sleep_ns(coalesce_ns);
        }
        Ok(())
    }

    /// Notes what the warm-up took: what is counted begins now.
    fn end_warmup(&mut self, now: u64) {
        self.warmup_ends_ns = u64::MAX;
        let usage = system::thread_usage().since(self.usage_before);
        let (mut sent_bytes, mut received_bytes) =
            self.further_connections.as_ref().map_or((0, 0), |further| further.bytes());
        for row in self.rows.iter().chain(self.conns.iter().flatten().map(|conn| &conn.row)) {
            sent_bytes += row.sent_bytes;
            received_bytes += row.received_bytes;
        }
        self.warmup = Some(WarmupCost {
            ended_ns: now,
            cpu_user_ns: usage.cpu_user_ns,
            cpu_system_ns: usage.cpu_system_ns,
            run_queue_ns: usage.run_queue_ns,
            sent_bytes,
            received_bytes,
        });
    }

    /// Keeps a connection's row, or adds it to the tally where there are rows enough.
    pub(crate) fn keep_row(&mut self, row: ConnectionRow, carried: Carried) {
        let most = self.assignment.options.most_rows;
        match &mut self.further_connections {
            Some(further) if most.is_some_and(|most| self.rows.len() as u64 >= most) => {
                further.record(&row, carried);
            }
            _ => self.rows.push(row),
        }
    }

    fn into_report(mut self, started_ns: u64, usage: Usage) -> Result<Report> {
        let mut connections = self.rows;
        connections.sort_by_key(|row| row.connection);
        let mut player = self.session.work.take_player_events();
        player.iter_mut().for_each(|event| event.group = self.assignment.group);
        let mut samples = self.session.samples;
        samples.sort_by_key(|sample| sample.request);
        let rows_waited_ns = self.session.rows.map_or(0, RowSender::finish);
        let (tallies, times) = self.session.tallies.finish()?;
        let further = self.further_connections.map(|further| further.finish()).transpose()?;
        let client = ClientReport {
            urls: self.requests.into_labels(),
            started_ns,
            finished_ns: self.finished_ns,
            cpu_user_ns: usage.cpu_user_ns,
            cpu_system_ns: usage.cpu_system_ns,
            run_queue_ns: usage.run_queue_ns,
            max_resident_bytes: system::max_resident_bytes(),
            dns_lookup: self.dns_lookup,
            lag: self.session.lag.lag(),
            never_sent: self.never_sent,
            unfinished: self.unfinished,
            stopped: self.session.stopped,
            tallies,
            times,
            further_connections: further.unwrap_or_default(),
            failed_migrations: self.migrations.failed_migrations,
            warmup: self.warmup,
            external: None,
        };
        Ok(Report { samples, connections, player, client, rows_waited_ns })
    }
}
