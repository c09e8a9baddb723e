//! The open loop: requests are due at the times of a schedule, whether or not the server keeps up.
//!
//! A request that finds no free connection waits in a queue and keeps its intended time. Its latency includes
//! the wait, so coordinated omission cannot happen.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use model::options::Options;
use model::schedule::{Schedule, Stage};
use model::shuffle::SplitMix64;
use model::workload::{LoopLoad, OpenLoop};

use crate::pacer::Pacer;
use crate::source::{Beginning, Connections, Due, NeverSent, RequestSource, Seeds, Stream};
use crate::urls::{UrlHosts, Urls};

/// After the schedule's end, waiting requests are sent and responses awaited for this long. Then the former
/// count as never sent, the latter as unfinished.
const DRAIN_NS: u64 = 1_000_000_000;
/// Initial capacity of a queue.
const QUEUE_ROOM: usize = 1024;
const CLIENT_QUEUE_ROOM: usize = 16;

/// What the clients of an open loop share.
#[derive(Debug)]
pub struct OpenPlan {
    load: LoopLoad,
    schedule: Schedule,
    urls: Arc<UrlHosts>,
    queue_limit: usize,
    /// Initial capacity of each queue.
    room: usize,
    connections: Connections,
}

impl OpenPlan {
    /// An open loop of `clients` clients with these options.
    pub(crate) fn new(open: &OpenLoop, options: &Options, clients: u32) -> Self {
        let OpenLoop { load, schedule, queue_limit } = open;
        OpenPlan {
            load: load.clone(),
            schedule: schedule.clone(),
            urls: Arc::new(UrlHosts::new(load.paths.len(), &options.requests)),
            queue_limit: *queue_limit as usize,
            room: if clients > 1 { CLIENT_QUEUE_ROOM } else { QUEUE_ROOM },
            connections: Connections {
                // A connection that serves one request is part of that request, so none is opened ahead.
                at_once: if options.connections.requests_each == Some(1) { 0 } else { load.connections },
                limit: load.connections,
                streams: load.streams,
            },
        }
    }

    /// When the rates end, in a group that begins at `group_ns`.
    pub(crate) fn ends_ns(&self, group_ns: u64) -> Option<u64> {
        let lasts_ns = self.schedule.lasts_ns(None)?;
        Some(group_ns.saturating_add(self.load.warmup_ns).saturating_add(lasts_ns))
    }

    /// The schedule of a client that begins this late, and its part of the warm-up.
    ///
    /// It has the rates of its group at every time. Its requests are due from its own beginning on, so
    /// clients that begin one after the other do not send at the same times.
    fn schedule_from(&self, late_ns: u64) -> (Cow<'_, Schedule>, u64) {
        let warmup_ns = self.load.warmup_ns;
        let schedule = if late_ns > warmup_ns {
            let stages = rest(&self.schedule.stages, late_ns - warmup_ns);
            Cow::Owned(Schedule { stages, ..self.schedule.clone() })
        } else {
            Cow::Borrowed(&self.schedule)
        };
        (schedule, warmup_ns.saturating_sub(late_ns))
    }
}

/// The rest of the stages after a time.
fn rest(stages: &[Stage], mut passed_ns: u64) -> Vec<Stage> {
    let mut rest = Vec::with_capacity(stages.len());
    for stage in stages {
        match stage.duration_ns {
            Some(duration_ns) if duration_ns <= passed_ns => passed_ns -= duration_ns,
            Some(duration_ns) => {
                let from = stage.rate_at(passed_ns);
                rest.push(Stage { from, duration_ns: Some(duration_ns - passed_ns), ..*stage });
                passed_ns = 0;
            }
            None => rest.push(*stage),
        }
    }
    rest
}

/// An open loop: one client's schedule. Each client of a group has the whole rate.
#[derive(Clone, Debug)]
pub struct OpenSource {
    plan: Arc<OpenPlan>,
    urls: Urls,
    pacer: Pacer,
    began_ns: u64,
    warmup_ends_ns: u64,
    /// Due requests that wait, by host.
    queues: Vec<VecDeque<Due>>,
    waiting: usize,
    in_flight: u64,
    never_sent: NeverSent,
    /// When the schedule ends, if it does; what is in flight then is cut off after a short while.
    ends_ns: Option<u64>,
    stopped: bool,
}

impl OpenSource {
    /// One client's loop.
    pub(crate) fn new(plan: Arc<OpenPlan>, seeds: Seeds, beginning: Beginning) -> Self {
        let arrivals = SplitMix64::new(seeds.shared).next_u64();
        let (schedule, warmup_ns) = plan.schedule_from(beginning.late_ns());
        let warmup_ends_ns = beginning.group_ns.saturating_add(plan.load.warmup_ns);
        let pacer = Pacer::new(&schedule, plan.load.requests, warmup_ns, arrivals);
        let urls = Urls::new(Arc::clone(&plan.urls), seeds.of(Stream::Order));
        let queues = urls.targets();
        OpenSource {
            urls,
            pacer,
            began_ns: beginning.client_ns,
            warmup_ends_ns,
            queues: (0..queues).map(|_| VecDeque::with_capacity(plan.room)).collect(),
            waiting: 0,
            in_flight: 0,
            never_sent: NeverSent::default(),
            ends_ns: plan.ends_ns(beginning.group_ns),
            stopped: false,
            plan,
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

    /// When waiting ends.
    fn drained_ns(&self) -> Option<u64> {
        self.ends_ns.map(|end| end.saturating_add(DRAIN_NS))
    }
}

impl RequestSource for OpenSource {
    fn paths(&self) -> Vec<&str> {
        self.plan.load.paths.iter().map(String::as_str).collect()
    }

    fn poll_request(&mut self, target: usize, _now: u64) -> Option<Due> {
        let due = self.queues.get_mut(target)?.pop_front()?;
        self.waiting -= 1;
        self.in_flight += 1;
        Some(due)
    }

    fn handle_done(&mut self, _url: u32, _is_ok: bool, _now: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn is_finished(&self, now: u64) -> bool {
        let cut = self.drained_ns().is_some_and(|drained| now >= drained);
        let done = self.waiting == 0 && self.in_flight == 0;
        cut || (done && (self.stopped || self.pacer.next().is_none()))
    }

    fn connections(&self, _limit: u32) -> Connections {
        self.plan.connections
    }

    fn targets(&self) -> usize {
        self.queues.len()
    }

    /// Queues what is due by `now`; requests beyond the queue's limit are counted as never sent.
    ///
    /// The caller gives waiting requests to all connections that can take them. What waited before this call
    /// therefore waits for connections that are all in use.
    fn handle_time(&mut self, now: u64) {
        let are_held = self.waiting > 0;
        while let Some(planned) = self.pacer.next() {
            let intended_ns = self.began_ns.saturating_add(planned.at_ns);
            if intended_ns > now || self.stopped {
                break;
            }
            self.pacer.advance();
            let Some(url) = self.urls.next_url() else { break };
            let target = self.urls.target_of(url);
            if self.waiting < self.plan.queue_limit
                && let Some(queue) = self.queues.get_mut(target)
            {
                queue.push_back(Due { url, intended_ns });
                self.waiting += 1;
            } else {
                self.never_sent.all += 1;
                self.never_sent.held += u64::from(are_held);
            }
        }
        if self.waiting > 0 && self.drained_ns().is_some_and(|drained| now >= drained) {
            self.stop();
        }
    }

    fn waiting(&self, target: usize) -> usize {
        self.queues.get(target).map_or(0, VecDeque::len)
    }

    fn is_paced(&self) -> bool {
        true
    }

    /// When the next request is due, or when those that wait and those in flight are given up.
    fn next_ns(&self) -> Option<u64> {
        if self.stopped {
            return None;
        }
        let pending = self.waiting > 0 || self.in_flight > 0;
        let due = self.pacer.next().map(|planned| self.began_ns.saturating_add(planned.at_ns));
        let drained = self.drained_ns().filter(|_| pending);
        [due, drained].into_iter().flatten().min()
    }

    fn give_up(&mut self) -> NeverSent {
        self.stop();
        self.never_sent
    }

    fn warmup_ends_ns(&self) -> u64 {
        self.warmup_ends_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::sample::Phase;
    use model::schedule::{Arrivals, Rate, Share};

    const S: u64 = 1_000_000_000;

    fn source(paths: &[&str], schedule: Schedule, queue_limit: u32) -> OpenSource {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        let open = OpenLoop { load: LoopLoad { paths, ..LoopLoad::new("") }, schedule, queue_limit };
        begin(&open, 0, Beginning::at(5 * S))
    }

    fn begin(open: &OpenLoop, seed: u64, beginning: Beginning) -> OpenSource {
        let plan = OpenPlan::new(open, &Options::default(), 1);
        OpenSource::new(Arc::new(plan), Seeds { shared: seed, own: seed }, beginning)
    }

    /// When a client's requests are due and how many belong to the warm-up; its group begins at 5 s.
    fn due(open: &OpenLoop, late_ns: u64) -> (Vec<u64>, usize) {
        let mut source = begin(open, 0, Beginning { group_ns: 5 * S, client_ns: 5 * S + late_ns });
        source.handle_time(source.drained_ns().unwrap() - 1);
        let taken: Vec<u64> =
            std::iter::from_fn(|| source.poll_request(0, 0)).map(|due| due.intended_ns - 5 * S).collect();
        let warmup = taken.iter().filter(|at| source.phase(**at + 5 * S) == Phase::Warmup).count();
        (taken, warmup)
    }

    /// 10 requests/s for 2 s, beginning at 5 s.
    fn open(queue_limit: u32) -> OpenSource {
        let stage = Stage { from: Rate(10_000), to: Rate(10_000), duration_ns: Some(2 * S) };
        let schedule = Schedule { stages: vec![stage], arrivals: Arrivals::Even, share: Share::WHOLE };
        source(&["/a", "/b"], schedule, queue_limit)
    }

    #[test]
    fn requests_keep_their_intended_times_however_late_they_are_taken() {
        let mut open = open(100);
        open.handle_time(5 * S);
        assert_eq!(open.poll_request(0, 0), Some(Due { url: 0, intended_ns: 5 * S }));
        assert_eq!(open.poll_request(0, 0), None);
        assert_eq!(open.next_ns(), Some(5 * S + S / 10));
        // Nobody comes for half a second: five requests are due then, each with its own time.
        open.handle_time(5 * S + S / 2);
        assert_eq!(open.waiting(0), 5);
        let taken: Vec<Due> = std::iter::from_fn(|| open.poll_request(0, 0)).collect();
        let times: Vec<u64> = taken.iter().map(|due| due.intended_ns).collect();
        assert_eq!(times, [1, 2, 3, 4, 5].map(|tenth| 5 * S + tenth * S / 10));
        assert_eq!(taken[0].url, 1);
    }

    #[test]
    fn late_clients_have_the_rates_of_their_group_until_its_end() {
        let stage = |from, to, s: u64| Stage { from: Rate(from), to: Rate(to), duration_ns: Some(s * S) };
        let stages = vec![stage(1000, 1000, 2), stage(1000, 3000, 4)];
        let schedule = Schedule { stages, arrivals: Arrivals::Even, share: Share::WHOLE };
        let load = LoopLoad { warmup_ns: 2 * S, ..LoopLoad::new("/") };
        let open = OpenLoop { load, schedule, queue_limit: 100 };
        // One request per second for two seconds of warm-up and two more, then eight in a ramp.
        let (whole, warmup) = due(&open, 0);
        assert_eq!((whole.len(), warmup), (12, 2));
        let (late, warmup) = due(&open, S / 2);
        assert_eq!((&late[..4], warmup), (&[S / 2, S / 2 * 3, S / 2 * 5, S / 2 * 7][..], 2));
        assert!(*late.last().unwrap() < 8 * S);
        // In the middle of the ramp the rate is 2 per second, and 5 requests are left.
        let (later, warmup) = due(&open, 6 * S);
        assert_eq!((later.len(), warmup, later[0]), (5, 0, 6 * S));
        assert!((S / 100 * 45..S / 2).contains(&(later[1] - later[0])), "{later:?}");
        assert!(due(&open, 8 * S).0.is_empty());
    }

    #[test]
    fn clients_with_their_own_seeds_have_their_own_arrivals() {
        let stage = Stage { from: Rate(10_000), to: Rate(10_000), duration_ns: Some(2 * S) };
        let schedule = Schedule { stages: vec![stage], arrivals: Arrivals::Poisson, share: Share::WHOLE };
        let open = OpenLoop { load: LoopLoad::new("/"), schedule, queue_limit: 100 };
        let first = |client| {
            let shared = Seeds::new(7, 1, client).shared;
            begin(&open, shared, Beginning::at(0)).next_ns()
        };
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    #[test]
    fn a_full_queue_counts_what_it_turns_away() {
        let mut open = open(3);
        open.handle_time(6 * S);
        assert_eq!((open.waiting(0), open.never_sent), (3, NeverSent { all: 8, held: 0 }));
        assert_eq!(open.poll_request(0, 0).unwrap().intended_ns, 5 * S, "the earliest is kept");
    }

    #[test]
    fn what_a_full_queue_turns_away_is_held_only_if_requests_waited_before() {
        let mut open = open(3);
        open.handle_time(5 * S + S / 2);
        let (waiting, at_once) = (open.waiting(0), open.never_sent);
        assert_eq!((waiting, at_once), (3, NeverSent { all: 3, held: 0 }), "the client was late");
        open.handle_time(6 * S);
        let later = open.never_sent;
        assert_eq!(later, NeverSent { all: 8, held: 5 }, "connections were held");
        assert_eq!(open.give_up(), NeverSent { all: 11, held: 8 });
    }

    #[test]
    fn it_does_not_wait_forever_for_a_connection() {
        let mut open = open(100);
        open.handle_time(7 * S);
        assert_eq!(open.waiting(0), 20);
        open.poll_request(0, 0).unwrap();
        assert_eq!(open.next_ns(), Some(8 * S), "when those that wait are given up");
        open.handle_time(8 * S);
        assert_eq!((open.waiting(0), open.never_sent), (0, NeverSent { all: 19, held: 19 }));
        assert!(open.is_finished(8 * S), "and what is in flight is cut off");
    }

    #[test]
    fn an_end_that_cuts_answers_waits_a_second_for_them() {
        let mut open = open(100);
        open.handle_time(7 * S);
        while open.poll_request(0, 0).is_some() {}
        assert_eq!(open.next_ns(), Some(8 * S), "nothing waits, and the loop still wakes");
        assert!(!open.is_finished(8 * S - 1));
        assert!(open.is_finished(8 * S));
        assert_eq!(open.never_sent.all, 0, "what was sent is unfinished, not unsent");
    }
}
