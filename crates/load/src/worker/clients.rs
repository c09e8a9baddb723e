//! The clients of a worker: when they begin, which of them have something to do, and when they are done.
//!
//! A client acts only if one of its connections had an event or its time has come: it is *marked* then.
//! Clients that have nothing to do cost nothing, however many there are.

use anyhow::{Result, bail};
use engine::Connection as _;
use model::Assignment;
use workload::{Beginning, NeverSent, RequestSource, Seeds};

use super::Worker;
use crate::client::{Client, ClientHost};
use crate::host::Host;
use crate::timers::Timers;

/// At most this many clients begin before sockets are handled: those that began wait for their handshakes.
const CLIENTS_PER_ROUND: usize = 64;

/// Why a client ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientEnd {
    /// Its workload is done.
    Done,
    /// The end of the run or of its group came first.
    CutOff,
    /// The time limit passed; its requests have failed.
    TimedOut,
}

/// The clients of a worker: which begin when, and which have something to do. Clients are known by their
/// places among those of the process.
pub(super) struct Roster {
    /// When the group begins.
    pub(super) begins_ns: u64,
    /// When each client begins; those that would begin after the end are left out.
    starts: Vec<u64>,
    /// Clients that have begun; of these, those that are over; of these, those whose workload was done.
    pub(super) begun: u32,
    ended: u32,
    pub(super) finished: u32,
    /// Clients that have something to do, each once.
    marked: Vec<u32>,
    /// Room for the next round's.
    spare_marked: Vec<u32>,
    /// When clients must act without an event.
    pub(super) timers: Timers,
    /// How often a client acted.
    dispatches: u64,
}

impl Roster {
    /// The clients of an assignment whose group begins at `begins_ns`; none begins at `last_ns` or later.
    ///
    /// # Errors
    /// The group does not have all of them.
    pub(super) fn new(assignment: &Assignment, begins_ns: u64, last_ns: u64) -> Result<Roster> {
        let clients = assignment.clients;
        let seeds = Seeds::new(assignment.seed, assignment.group, 0);
        let times_ns = clients.start.times_ns(clients.of, seeds.starts());
        let mut starts = Vec::with_capacity(clients.count as usize);
        for place in 0..clients.count {
            let Some(time_ns) = times_ns.get(clients.number(place) as usize) else {
                bail!("the assignment has clients beyond the {} of its group", clients.of);
            };
            let start_ns = begins_ns.saturating_add(*time_ns);
            if start_ns == begins_ns || start_ns < last_ns {
                starts.push(start_ns);
            }
        }
        Ok(Roster {
            begins_ns,
            starts,
            begun: 0,
            ended: 0,
            finished: 0,
            marked: Vec::new(),
            spare_marked: Vec::new(),
            timers: Timers::default(),
            dispatches: 0,
        })
    }

    /// When the next client begins.
    pub(super) fn next_beginning_ns(&self) -> Option<u64> {
        self.starts.get(self.begun as usize).copied()
    }

    /// Whether every client is done, and no further one begins.
    pub(super) fn are_done(&self) -> bool {
        self.ended == self.begun && self.next_beginning_ns().is_none()
    }
}

impl Worker<'_> {
    /// Begins the clients whose time has come; if they are many, the rest of them in the next round.
    ///
    /// # Errors
    /// Settings of TLS cannot be used.
    pub(super) fn begin_clients(&mut self, now: u64) -> Result<()> {
        for _ in 0..CLIENTS_PER_ROUND {
            let client_ns = self.roster.next_beginning_ns().filter(|client_ns| *client_ns <= now);
            let Some(client_ns) = client_ns else { break };
            let place = self.roster.begun;
            self.roster.begun += 1;
            let number = self.assignment.clients.number(place);
            let seeds = Seeds::new(self.assignment.seed, self.assignment.group, number);
            let work = self.shared.begin(seeds, Beginning { group_ns: self.roster.begins_ns, client_ns });
            let known = self.sessions.get_mut(place as usize).map(std::mem::take).unwrap_or_default();
            let configs = match &self.separate {
                Some(options) if known.is_empty() => Host::separate(&self.hosts, options)?,
                _ => known,
            };
            if let Some(client) = self.session.clients.get_mut(place as usize) {
                *client = Some(Box::new(Client::new(work, self.hosts.len(), configs)));
            }
            self.mark(place);
        }
        Ok(())
    }

    /// A client has something to do.
    #[inline]
    pub(super) fn mark(&mut self, place: u32) {
        if let Some(client) = self.session.client(place)
            && !std::mem::replace(&mut client.is_marked, true)
        {
            self.roster.marked.push(place);
        }
    }

    /// Lets every client act that is marked or whose time has come. What they cause meanwhile is for the next
    /// round.
    pub(super) fn dispatch(&mut self, now: u64) {
        while let Some(place) = self.roster.timers.pop(now) {
            self.mark(u32::try_from(place).unwrap_or(u32::MAX));
        }
        let mut acting = std::mem::take(&mut self.roster.marked);
        std::mem::swap(&mut self.roster.marked, &mut self.roster.spare_marked);
        for place in acting.drain(..) {
            self.dispatch_client(place, now);
        }
        self.roster.spare_marked = acting;
    }

    /// Gives a client's waiting requests to connections that can take them, and opens the wanted connections.
    fn dispatch_client(&mut self, place: u32, now: u64) {
        self.roster.dispatches += 1;
        let Some(client) = self.session.client(place) else { return };
        client.is_marked = false;
        if client.work.is_finished(now) {
            return self.end_client(place, ClientEnd::Done);
        }
        client.work.handle_time(now);
        self.cancel_requests(place, now);
        let Some(client) = self.session.client(place) else { return };
        let (at_once, next_opening) = client.work.opened_by(now);
        let left = u32::try_from(client.work.left()).unwrap_or(u32::MAX);
        for host in 0..self.hosts.len() {
            self.hand_out(place, host);
            self.open_connections(place, host, (at_once, left), now);
        }
        let limit = self.policy.limit;
        let Some(client) = self.session.client(place) else { return };
        if client.work.awaits_connections() && client.can_begin(at_once.min(limit), now) {
            client.work.handle_connections(now);
        }
        if client.work.is_finished(now) {
            return self.end_client(place, ClientEnd::Done);
        }
        let next_ns = client.next_ns(next_opening, now);
        self.roster.timers.set(place as usize, next_ns);
    }

    /// Opens the connections that a client wants to a host: `at_once`, and further ones for what waits.
    fn open_connections(&mut self, place: u32, host: usize, (at_once, left): (u32, u32), now: u64) {
        let waiting = u32::try_from(self.session.waiting(place, host)).unwrap_or(u32::MAX);
        let Some(&ClientHost { open, connecting, .. }) = self.client_host(place, host).as_deref() else {
            return;
        };
        // No connection is opened without a request left for it.
        let at_once = at_once.min((open - connecting).saturating_add(left));
        let wanted = at_once.max(open.saturating_add(waiting.saturating_sub(connecting)));
        let wanted = wanted.min(self.policy.limit);
        while let Some(of) = self.client_host(place, host)
            && now >= of.reopen_ns
            && of.open < wanted
        {
            if !self.open_connection(place, host) {
                break;
            }
        }
        if let Some(of) = self.client_host(place, host) {
            of.wants_more = of.open < wanted;
        }
    }

    /// Gives the requests of a client that wait for a host to its idle connections: the longest idle first,
    /// so that all are used equally; for a page the last used first, as browsers do.
    pub(super) fn hand_out(&mut self, place: u32, host: usize) {
        while self.session.waiting(place, host) > 0 {
            let is_paced = self.session.is_paced;
            let Some(ClientHost { idle, .. }) = self.client_host(place, host) else { return };
            let next = if is_paced { idle.pop_front() } else { idle.pop_back() };
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

    /// A client's connections to a host.
    #[inline]
    pub(super) fn client_host(&mut self, place: u32, host: usize) -> Option<&mut ClientHost> {
        self.session.client(place)?.hosts.get_mut(host)
    }

    /// Ends all clients.
    pub(super) fn end_all(&mut self, end: ClientEnd) {
        for place in 0..self.roster.begun {
            self.end_client(place, end);
        }
    }

    /// A client is over: counts what it did not finish and closes its connections.
    fn end_client(&mut self, place: u32, end: ClientEnd) {
        let Some(mut client) = self.session.clients.get_mut(place as usize).and_then(Option::take) else {
            return;
        };
        self.finished_ns = self.clock.now_ns();
        self.roster.ended += 1;
        self.roster.finished += u32::from(end == ClientEnd::Done);
        if end != ClientEnd::TimedOut {
            self.count_unfinished(&client);
        }
        let NeverSent { all, held } = client.work.give_up();
        self.never_sent.all += all;
        self.never_sent.held += held;
        for mut event in client.work.take_player_events() {
            event.group = self.assignment.group;
            event.client = self.assignment.clients.number(place);
            self.player.push(event);
        }
        for key in std::mem::take(&mut client.conns) {
            self.close(key);
        }
        if self.keeps_sessions {
            self.sessions.resize_with(self.sessions.len().max(place as usize + 1), Vec::new);
            self.sessions[place as usize] = client.configs;
        }
    }

    /// Counts requests in flight, and those that wait for a connection.
    fn count_unfinished(&mut self, client: &Client) {
        let conns = || client.conns.iter().filter_map(|key| self.conns.get(*key)?.as_ref());
        let in_flight: u64 = conns().map(|conn| u64::from(conn.in_flight)).sum();
        let waiting = if self.session.has_queue && !self.session.is_paced {
            client.waiting()
        } else {
            conns().filter(|conn| !conn.was_ready && conn.begun == 0).count()
        };
        self.unfinished += in_flight + waiting as u64;
    }

    /// Closes a connection cleanly, without waiting for bytes that the kernel does not accept at once.
    fn close(&mut self, key: usize) {
        let Some(mut conn) = self.conns.get_mut(key).and_then(Option::take) else { return };
        let now = self.finished_ns;
        if conn.in_flight > 0 {
            conn.socket.abort_on_close();
        }
        conn.row.closed_ns.get_or_insert(now);
        conn.engine.close(now);
        conn.flush(&mut self.session, now);
        self.free.push(key);
        self.keep_row(conn.row, conn.carried);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};
    use std::sync::atomic::AtomicBool;

    use model::options::Options;
    use model::schedule::Share;
    use model::script::{Replay, Script, ScriptEntry, Speed};
    use model::workload::{ClosedLoop, LoopLoad};
    use model::{Assignment, Clients, Start, Variant, Workload};

    use super::super::first_visit::Sessions;
    use super::Worker;
    use crate::fixtures;

    const S: u64 = 1_000_000_000;

    /// Clients of a server that accepts connections and is silent; their group ends after 200 ms.
    fn assignment(address: SocketAddr, workload: Workload, clients: Clients) -> Assignment {
        Assignment { clients, ends_ns: Some(S / 5), ..fixtures::assignment(address, Variant::H1, workload) }
    }

    /// How often clients acted, and how many began.
    fn dispatches(workload: Workload, options: Options, clients: Clients) -> (u64, u32) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut assignment = assignment(server.local_addr().unwrap(), workload, clients);
        assignment.options = options;
        let mut worker = Worker::new(&assignment, Sessions::default()).unwrap();
        worker.run(&AtomicBool::new(false)).unwrap();
        (worker.roster.dispatches, worker.roster.begun)
    }

    #[test]
    fn clients_that_begin_late_cost_nothing() {
        let clients = Clients::all(10_000, Start::Evenly { over_ns: 10_000 * S });
        let workload = Workload::Closed(ClosedLoop::new(LoopLoad::new("/"), None));
        let (dispatches, begun) = dispatches(workload, Options::default(), clients);
        assert_eq!(begun, 1);
        // It began, its socket became writable, and its request was sent.
        assert!((1..=3).contains(&dispatches), "{dispatches}");
    }

    #[test]
    fn clients_that_wait_cost_nothing() {
        let script = Script {
            load: LoopLoad::new("/"),
            sets_connections: false,
            title: String::new(),
            recorded_over: None,
            replay: Replay::Schedule,
            speed: Speed::ONE,
            entries: vec![ScriptEntry { at_ns: 1000 * S, ..ScriptEntry::default() }],
            body_bytes: 0,
            share: Share::WHOLE,
            queue_limit: 10,
        };
        // As many as the server's kernel accepts by itself.
        let clients = Clients::all(100, Start::Evenly { over_ns: S / 20 });
        let (dispatches, begun) = dispatches(Workload::Script(script), Options::default(), clients);
        assert_eq!(begun, 100);
        // Each began, its connection was ready, and its session began.
        assert!(dispatches <= 3 * 100, "{dispatches}");
    }

    #[test]
    fn clients_beyond_their_group_are_refused() {
        let clients = Clients { first: 1, ..Clients::ONE };
        let workload = Workload::Closed(ClosedLoop::new(LoopLoad::new("/"), None));
        let assignment = assignment(([127, 0, 0, 1], 1).into(), workload, clients);
        let error = Worker::new(&assignment, Sessions::default()).err().unwrap();
        assert_eq!(error.to_string(), "the assignment has clients beyond the 1 of its group");
    }
}
