//! The replay of a timing script: a client repeats a recorded session.
//!
//! By its schedule, every request is due at its recorded time after the client's beginning. By its
//! dependencies, a request that waited for others is due when their responses have ended, a gap later; slower
//! responses then delay what follows them, as they would have delayed the recorded client.
//!
//! A recording begins with its first request, which the recorded client sent over a connection that was
//! ready. The replay therefore begins when its connections are ready: as many as the recorded requests needed
//! at the same time.
//!
//! A request that finds no free connection waits in a queue and keeps its intended time, as in an open loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use model::options::Options;
use model::script::{Replay, Script, ScriptEntry};

use crate::source::{Beginning, Connections, Due, NeverSent, RequestSource};
use crate::urls::UrlHosts;

/// A client begins its session at the latest after this time: beyond it, the connection is what is measured.
const LATEST_BEGINNING_NS: u64 = 3_000_000_000;

/// A script that clients replay.
#[derive(Debug)]
pub struct ScriptPlan {
    script: Script,
    hosts: UrlHosts,
    /// The requests whose time is known from the beginning, in its order.
    timed: Vec<u32>,
    /// The requests that wait for each request; empty by the schedule.
    followers: Vec<Vec<u32>>,
    /// For how many others each request waits; empty by the schedule.
    awaited: Vec<u32>,
    /// The connections to each host that clients open before their session begins.
    at_once: u32,
}

impl ScriptPlan {
    /// A script with these options.
    pub(crate) fn new(script: &Script, options: &Options) -> Self {
        let count = script.entries.len();
        let waits = |entry: &ScriptEntry| script.replay == Replay::Dependency && !entry.after.is_empty();
        let share = script.share;
        let is_own = |place: u32| place % share.of.max(1) == share.index;
        let timed = (0_u32..).zip(&script.entries).filter(|(place, entry)| is_own(*place) && !waits(entry));
        let timed = timed.map(|(place, _)| place).collect();
        let (mut followers, mut awaited) = (Vec::new(), Vec::new());
        if script.entries.iter().any(waits) {
            followers.resize(count, Vec::new());
            awaited.resize(count, 0);
            for (place, entry) in (0_u32..).zip(&script.entries) {
                let mut after = entry.after.clone();
                after.sort_unstable();
                after.dedup();
                for other in after {
                    if let (Some(of_other), Some(own)) =
                        (followers.get_mut(other as usize), awaited.get_mut(place as usize))
                    {
                        of_other.push(place);
                        *own += 1;
                    }
                }
            }
        }
        let hosts = UrlHosts::new(script.load.paths.len(), &options.requests);
        // A connection that serves one request is part of that request, so none is opened ahead.
        let at_once = match options.connections.requests_each {
            Some(1) => 0,
            _ if script.sets_connections => script.load.connections,
            _ => overlap(script, &hosts),
        };
        ScriptPlan { hosts, script: script.clone(), timed, followers, awaited, at_once }
    }

    fn entry(&self, place: u32) -> Option<&ScriptEntry> {
        self.script.entries.get(place as usize)
    }
}

/// How many requests of a recorded session were in flight at the same time to each of its hosts, at least
/// one: a response has ended when what waited for it was sent, less the gap; of others, no end is known.
fn overlap(script: &Script, hosts: &UrlHosts) -> u32 {
    let mut ends: Vec<u64> = script.entries.iter().map(|_| u64::MAX).collect();
    for entry in &script.entries {
        let ended_ns = entry.at_ns.saturating_sub(entry.gap_ns);
        for other in &entry.after {
            if let Some(end) = ends.get_mut(*other as usize) {
                *end = (*end).min(ended_ns);
            }
        }
    }
    // The ends of requests in flight, by host, and the most of them.
    let mut in_flight = vec![(BinaryHeap::new(), 0); hosts.targets()];
    for (entry, end_ns) in script.entries.iter().zip(ends) {
        let Some((open, most)) = in_flight.get_mut(hosts.target_of(entry.url)) else { continue };
        while open.peek().is_some_and(|Reverse(end_ns)| *end_ns <= entry.at_ns) {
            open.pop();
        }
        if end_ns < u64::MAX {
            open.push(Reverse(end_ns));
            *most = (*most).max(open.len());
        }
    }
    let least = in_flight.iter().map(|(_, most)| *most).min().unwrap_or(0);
    u32::try_from(least).unwrap_or(u32::MAX).max(1)
}

/// A script as one client replays it.
#[derive(Clone, Debug)]
pub struct ScriptSource {
    plan: Arc<ScriptPlan>,
    /// When its session began; `None` while its connections are not ready.
    began_ns: Option<u64>,
    /// When its session begins at the latest.
    latest_ns: u64,
    /// The place of the next request among `timed`.
    next_timed: usize,
    /// Requests whose responses have arrived for which they waited: when they are due, and their places.
    ready: BinaryHeap<Reverse<(u64, u32)>>,
    /// For how many responses each request still waits.
    awaited: Vec<u32>,
    /// Due requests that wait for a connection, by host, with their places.
    queues: Vec<VecDeque<(u32, Due)>>,
    waiting: usize,
    /// The requests in flight in the order of sending: URL and place.
    in_flight: VecDeque<(u32, u32)>,
    never_sent: NeverSent,
    stopped: bool,
}

impl ScriptSource {
    /// One client's replay.
    pub(crate) fn new(plan: Arc<ScriptPlan>, beginning: Beginning) -> Self {
        ScriptSource {
            began_ns: (plan.at_once == 0).then_some(beginning.client_ns),
            latest_ns: beginning.client_ns.saturating_add(LATEST_BEGINNING_NS),
            next_timed: 0,
            ready: BinaryHeap::with_capacity(if plan.awaited.is_empty() {
                0
            } else {
                plan.script.entries.len()
            }),
            awaited: plan.awaited.clone(),
            queues: vec![VecDeque::new(); plan.hosts.targets()],
            waiting: 0,
            in_flight: VecDeque::new(),
            never_sent: NeverSent::default(),
            stopped: false,
            plan,
        }
    }

    /// The next request and when it is due.
    fn next(&self) -> Option<(u64, u32)> {
        let began_ns = self.began_ns.filter(|_| !self.stopped)?;
        let timed = self.plan.timed.get(self.next_timed);
        let timed =
            timed.and_then(|place| Some((began_ns.saturating_add(self.plan.entry(*place)?.at_ns), *place)));
        [timed, self.ready.peek().map(|Reverse(ready)| *ready)].into_iter().flatten().min()
    }

    /// Removes the next request from those that are to come.
    fn advance(&mut self, next: (u64, u32)) {
        if self.ready.peek() == Some(&Reverse(next)) {
            self.ready.pop();
        } else {
            self.next_timed += 1;
        }
    }

    /// Starts nothing more; what waits counts as never sent.
    fn stop(&mut self) {
        self.never_sent.all += self.waiting as u64;
        self.never_sent.held += self.waiting as u64;
        self.waiting = 0;
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.stopped = true;
    }

    /// The response to a request has ended, or will never begin: what waited for it alone becomes due.
    fn release(&mut self, place: u32, ended_ns: u64) {
        let plan = Arc::clone(&self.plan);
        for follower in plan.followers.get(place as usize).into_iter().flatten() {
            let Some(awaited) = self.awaited.get_mut(*follower as usize) else { continue };
            *awaited = awaited.saturating_sub(1);
            if let (0, Some(entry)) = (*awaited, plan.entry(*follower)) {
                self.ready.push(Reverse((ended_ns.saturating_add(entry.gap_ns), *follower)));
            }
        }
    }
}

impl RequestSource for ScriptSource {
    fn paths(&self) -> Vec<&str> {
        self.plan.script.load.paths.iter().map(String::as_str).collect()
    }

    fn poll_request(&mut self, target: usize, _now: u64) -> Option<Due> {
        let (place, due) = self.queues.get_mut(target)?.pop_front()?;
        self.waiting -= 1;
        self.in_flight.push_back((due.url, place));
        Some(due)
    }

    /// Of requests for the same URL, the one that was sent first is taken to end first.
    fn handle_done(&mut self, url: u32, _is_ok: bool, now: u64) {
        let sent = self.in_flight.iter().position(|(sent, _)| *sent == url);
        if let Some((_, place)) = sent.and_then(|sent| self.in_flight.remove(sent)) {
            self.release(place, now);
        }
    }

    fn is_finished(&self, _now: u64) -> bool {
        let has_begun = self.began_ns.is_some() || self.stopped;
        has_begun && self.waiting == 0 && self.in_flight.is_empty() && self.next().is_none()
    }

    /// As browsers do, unless the script's workload sets the connections.
    fn connections(&self, limit: u32) -> Connections {
        let Script { load, sets_connections, .. } = &self.plan.script;
        let limit = if *sets_connections { load.connections } else { limit };
        Connections { at_once: self.plan.at_once, limit, streams: load.streams }
    }

    fn targets(&self) -> usize {
        self.queues.len()
    }

    fn awaits_connections(&self) -> bool {
        self.began_ns.is_none() && !self.stopped
    }

    fn handle_connections(&mut self, now: u64) {
        self.began_ns.get_or_insert(now);
    }

    /// Queues what is due by `now`; requests beyond the queue's limit are counted as never sent.
    fn handle_time(&mut self, now: u64) {
        if now >= self.latest_ns {
            self.began_ns.get_or_insert(self.latest_ns);
        }
        let are_held = self.waiting > 0;
        while let Some(next) = self.next().filter(|(intended_ns, _)| *intended_ns <= now) {
            self.advance(next);
            let (intended_ns, place) = next;
            let Some(url) = self.plan.entry(place).map(|entry| entry.url) else { continue };
            let target = self.plan.hosts.target_of(url);
            let is_full = self.waiting >= self.plan.script.queue_limit as usize;
            match self.queues.get_mut(target).filter(|_| !is_full) {
                Some(queue) => {
                    queue.push_back((place, Due { url, intended_ns }));
                    self.waiting += 1;
                }
                None => {
                    self.never_sent.all += 1;
                    self.never_sent.held += u64::from(are_held);
                    self.release(place, now);
                }
            }
        }
    }

    fn waiting(&self, target: usize) -> usize {
        self.queues.get(target).map_or(0, VecDeque::len)
    }

    fn is_paced(&self) -> bool {
        true
    }

    fn next_ns(&self) -> Option<u64> {
        if self.awaits_connections() {
            return Some(self.latest_ns);
        }
        self.next().map(|(intended_ns, _)| intended_ns)
    }

    fn give_up(&mut self) -> NeverSent {
        self.stop();
        self.never_sent
    }
}

#[cfg(test)]
mod tests {
    use model::schedule::Share;
    use model::script::{ANY_STREAMS, Speed};
    use model::workload::LoopLoad;

    use super::*;

    const S: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    fn entry(at_ms: u64, url: u32, after: &[u32], gap_ms: u64) -> ScriptEntry {
        ScriptEntry { at_ns: at_ms * MS, url, after: after.to_vec(), gap_ns: gap_ms * MS }
    }

    fn script(replay: Replay, entries: &[ScriptEntry]) -> Script {
        let paths = (0..4).map(|path| format!("/{path}")).collect();
        Script {
            load: LoopLoad { paths, streams: ANY_STREAMS, ..LoopLoad::new("") },
            sets_connections: false,
            title: String::new(),
            recorded_over: None,
            replay,
            speed: Speed::ONE,
            entries: entries.to_vec(),
            body_bytes: 0,
            share: Share::WHOLE,
            queue_limit: 100,
        }
    }

    /// A client that begins at 5 s, in a group that began at 2 s.
    fn begin(script: &Script) -> ScriptSource {
        let mut source = open(script);
        source.handle_connections(5 * S);
        source
    }

    /// The same client, whose connections are not ready.
    fn open(script: &Script) -> ScriptSource {
        let plan = ScriptPlan::new(script, &Options::default());
        ScriptSource::new(Arc::new(plan), Beginning { group_ns: 2 * S, client_ns: 5 * S })
    }

    /// Replays a script whose responses take `took_ms` each; URL and intended time after the beginning, in
    /// ms.
    fn replay(script: &Script, took_ms: impl Fn(u32) -> u64) -> Vec<(u32, u64)> {
        let mut source = begin(script);
        let (mut now, mut sent) = (5 * S, Vec::new());
        let mut ends: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
        while !source.is_finished(now) {
            while let Some(Reverse((_, url))) = ends.peek().copied().filter(|Reverse((end, _))| *end <= now) {
                ends.pop();
                source.handle_done(url, true, now);
            }
            source.handle_time(now);
            while let Some(due) = source.poll_request(0, now) {
                sent.push((due.url, (due.intended_ns - 5 * S) / MS));
                ends.push(Reverse((now + took_ms(due.url) * MS, due.url)));
            }
            let end = ends.peek().map(|Reverse((end, _))| *end);
            let Some(next) = end.into_iter().chain(source.next_ns()).min() else { break };
            now = next;
        }
        sent
    }

    #[test]
    fn a_schedule_follows_its_client_and_no_response() {
        let entries =
            [entry(0, 0, &[], 0), entry(100, 1, &[0], 40), entry(100, 0, &[], 0), entry(900, 2, &[1, 2], 0)];
        let script = script(Replay::Schedule, &entries);
        for took_ms in [1, 5000] {
            assert_eq!(replay(&script, |_| took_ms), [(0, 0), (1, 100), (0, 100), (2, 900)]);
        }
    }

    #[test]
    fn dependencies_follow_the_last_response() {
        let entries = [
            entry(0, 0, &[], 0),
            entry(10, 1, &[], 0),
            entry(100, 2, &[0, 1, 1], 40),
            entry(120, 3, &[2], 5),
            entry(130, 3, &[0], 1),
        ];
        let script = script(Replay::Dependency, &entries);
        let took = |url: u32| [30, 70, 200, 9][url as usize];
        // The first two end after 30 and 80 ms, the third after 320 ms.
        assert_eq!(replay(&script, took), [(0, 0), (1, 10), (3, 31), (2, 120), (3, 325)]);
        let slower = |url: u32| took(url) * 10;
        assert_eq!(replay(&script, slower), [(0, 0), (1, 10), (3, 301), (2, 750), (3, 2755)]);
    }

    #[test]
    fn a_failed_request_releases_what_waited_for_it() {
        let entries = [entry(0, 0, &[], 0), entry(10, 1, &[0], 5)];
        let mut source = begin(&script(Replay::Dependency, &entries));
        source.handle_time(5 * S);
        source.poll_request(0, 5 * S).unwrap();
        assert_eq!(source.next_ns(), None, "nothing is due before the response");
        source.handle_done(0, false, 6 * S);
        assert_eq!(source.next_ns(), Some(6 * S + 5 * MS));
        assert!(!source.is_finished(6 * S));
    }

    #[test]
    fn clients_that_share_a_script_have_every_nth_request() {
        let entries = [0, 1, 2, 3].map(|url| entry(10 * u64::from(url), url, &[], 0));
        let mut shared = script(Replay::Schedule, &entries);
        shared.share = Share { index: 1, of: 2 };
        assert_eq!(replay(&shared, |_| 1), [(1, 10), (3, 30)]);
    }

    #[test]
    fn a_full_queue_counts_what_it_turns_away() {
        let entries = [0, 1, 2, 3].map(|url| entry(0, url, &[], 0));
        let mut limited = script(Replay::Schedule, &entries);
        limited.queue_limit = 3;
        let mut source = begin(&limited);
        source.handle_time(5 * S);
        assert_eq!((source.waiting(0), source.never_sent), (3, NeverSent { all: 1, held: 0 }));
        source.poll_request(0, 5 * S).unwrap();
        assert_eq!(source.give_up(), NeverSent { all: 3, held: 2 });
        assert!(!source.is_finished(5 * S), "one is still to be answered");
        source.handle_done(0, true, 6 * S);
        assert!(source.is_finished(6 * S));
    }

    #[test]
    fn a_session_begins_when_its_connections_are_ready() {
        let script = script(Replay::Schedule, &[entry(0, 0, &[], 0), entry(20, 1, &[], 0)]);
        let mut source = open(&script);
        source.handle_time(5 * S + 900 * MS);
        assert_eq!((source.waiting(0), source.next_ns()), (0, Some(8 * S)), "none is due before");
        assert!(source.awaits_connections() && !source.is_finished(5 * S));
        source.handle_connections(6 * S);
        source.handle_connections(7 * S);
        assert!(!source.awaits_connections());
        source.handle_time(6 * S);
        assert_eq!(source.poll_request(0, 6 * S), Some(Due { url: 0, intended_ns: 6 * S }));
        assert_eq!(source.next_ns(), Some(6 * S + 20 * MS));
    }

    #[test]
    fn a_session_begins_without_connections_at_last() {
        let mut source = open(&script(Replay::Schedule, &[entry(0, 0, &[], 0)]));
        source.handle_time(9 * S);
        assert_eq!(source.poll_request(0, 9 * S), Some(Due { url: 0, intended_ns: 8 * S }));
        let mut stopped = open(&script(Replay::Schedule, &[entry(0, 0, &[], 0)]));
        stopped.give_up();
        assert!(stopped.is_finished(5 * S) && !stopped.awaits_connections());
    }

    #[test]
    fn as_many_connections_as_the_recorded_requests_needed() {
        let at_once =
            |entries: &[ScriptEntry]| open(&script(Replay::Schedule, entries)).connections(6).at_once;
        let player = |second: &[u32]| {
            [entry(0, 0, &[], 0), entry(5, 1, &[], 0), entry(30, 2, &[0], 10), entry(50, 3, second, 0)]
        };
        // The first ends after 20 ms and the second after 50 ms; of the others, no end is known.
        assert_eq!(at_once(&player(&[1])), 2);
        assert_eq!(at_once(&player(&[])), 1);
        assert_eq!(at_once(&[entry(0, 0, &[], 0), entry(20, 1, &[0], 0), entry(30, 2, &[1], 0)]), 1);
        assert_eq!(at_once(&[]), 1);
    }

    #[test]
    fn connections_are_as_the_workload_says_or_as_in_browsers() {
        let mut own = script(Replay::Schedule, &[entry(0, 0, &[], 0)]);
        let policy = |script: &Script| begin(script).connections(6);
        assert_eq!(policy(&own), Connections { at_once: 1, limit: 6, streams: u32::MAX });
        own.sets_connections = true;
        (own.load.connections, own.load.streams) = (2, 10);
        assert_eq!(policy(&own), Connections { at_once: 2, limit: 2, streams: 10 });
    }
}
