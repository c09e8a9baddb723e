//! The open loop: requests are due at the times of a schedule, whether or not the server keeps up.
//!
//! A request that finds no free connection waits in a queue and keeps its intended time, so that its latency holds
//! the waiting: coordinated omission cannot happen.

use std::collections::VecDeque;

use model::sample::Phase;

use crate::pacer::Pacer;
use crate::urls::Urls;
use crate::{Connections, Due};

/// After the schedule's end, requests that still wait are sent for so long, and answers are waited for: then the
/// former count as never sent, the latter as unfinished.
const DRAIN_NS: u64 = 1_000_000_000;
/// Room for waiting requests that is made at the start.
const QUEUE_ROOM: usize = 1024;
const CLIENT_QUEUE_ROOM: usize = 16;

/// An open loop.
#[derive(Clone, Debug)]
pub struct OpenLoop {
    paths: Vec<String>,
    urls: Urls,
    pacer: Pacer,
    began_ns: u64,
    warmup_ends_ns: u64,
    /// Due requests that wait, by host; where several clients replay a script, by client and host.
    queues: Vec<VecDeque<Due>>,
    waiting: usize,
    queue_limit: usize,
    connections: Connections,
    in_flight: u64,
    never_sent: u64,
    /// When the schedule ends, where time ends it.
    ends_ns: Option<u64>,
    cuts_answers: bool,
    stopped: bool,
}

/// What an open loop needs besides its pacer.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Now, in nanoseconds since the run's start: the schedule's beginning.
    pub now: u64,
    /// How long the warm-up lasts.
    pub warmup_ns: u64,
    /// How long warm-up and schedule last, where they have an end.
    pub lasts_ns: Option<u64>,
    /// Whether that end also cuts off what is in flight, after a short while.
    pub cuts_answers: bool,
    /// At most so many requests wait.
    pub queue_limit: usize,
    /// How connections are opened.
    pub connections: Connections,
    /// How many clients replay a script, each for itself.
    pub clients: u32,
}

impl OpenLoop {
    /// A loop over `paths` at the times of `pacer`.
    pub fn new(paths: Vec<String>, urls: Urls, pacer: Pacer, setup: &Setup) -> Self {
        let room = if setup.clients > 1 { CLIENT_QUEUE_ROOM } else { QUEUE_ROOM };
        let queues = (0..urls.targets() * setup.clients.max(1) as usize)
            .map(|_| VecDeque::with_capacity(room))
            .collect();
        OpenLoop {
            paths,
            urls,
            pacer,
            began_ns: setup.now,
            warmup_ends_ns: setup.now.saturating_add(setup.warmup_ns),
            queues,
            waiting: 0,
            queue_limit: setup.queue_limit,
            connections: setup.connections,
            in_flight: 0,
            never_sent: 0,
            ends_ns: setup.lasts_ns.map(|lasts| setup.now.saturating_add(lasts)),
            cuts_answers: setup.cuts_answers,
            stopped: false,
        }
    }

    pub(crate) fn paths(&self) -> Vec<&str> {
        self.paths.iter().map(String::as_str).collect()
    }

    /// Hosts; each client that replays a script for itself has its own.
    pub(crate) fn targets(&self) -> usize {
        self.queues.len()
    }

    /// Queues what is due by `now`; what the queue has no room for is counted.
    pub(crate) fn handle_time(&mut self, now: u64) {
        while let Some(planned) = self.pacer.next() {
            let intended_ns = self.began_ns.saturating_add(planned.at_ns);
            if intended_ns > now || self.stopped {
                break;
            }
            self.pacer.advance();
            let Some(url) = planned.url.or_else(|| self.urls.next_url()) else { break };
            let target = self.urls.target_of(url) + planned.client as usize * self.urls.targets();
            if self.waiting < self.queue_limit
                && let Some(queue) = self.queues.get_mut(target)
            {
                queue.push_back(Due { url, intended_ns });
                self.waiting += 1;
            } else {
                self.never_sent += 1;
            }
        }
        if self.waiting > 0 && self.drained_ns().is_some_and(|drained| now >= drained) {
            self.give_up();
        }
    }

    pub(crate) fn poll_request(&mut self, target: usize) -> Option<Due> {
        let due = self.queues.get_mut(target)?.pop_front()?;
        self.waiting -= 1;
        self.in_flight += 1;
        Some(due)
    }

    pub(crate) fn waiting(&self, target: usize) -> usize {
        self.queues.get(target).map_or(0, VecDeque::len)
    }

    pub(crate) fn handle_done(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Nothing more is begun; what waits counts as never sent.
    pub(crate) fn give_up(&mut self) {
        self.never_sent += self.waiting as u64;
        self.waiting = 0;
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.stopped = true;
    }

    pub(crate) fn is_finished(&self, now: u64) -> bool {
        let cut = self.cuts_answers && self.drained_ns().is_some_and(|drained| now >= drained);
        let done = self.waiting == 0 && self.in_flight == 0;
        cut || (done && (self.stopped || self.pacer.next().is_none()))
    }

    /// When nothing is waited for any longer.
    fn drained_ns(&self) -> Option<u64> {
        self.ends_ns.map(|end| end.saturating_add(DRAIN_NS))
    }

    /// When the next request is due, or when those that wait and those in flight are given up.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        if self.stopped {
            return None;
        }
        let pending = self.waiting > 0 || (self.cuts_answers && self.in_flight > 0);
        let due = self.pacer.next().map(|planned| self.began_ns.saturating_add(planned.at_ns));
        let drained = self.drained_ns().filter(|_| pending);
        [due, drained].into_iter().flatten().min()
    }

    pub(crate) fn never_sent(&self) -> u64 {
        self.never_sent
    }

    pub(crate) fn warmup_ends_ns(&self) -> u64 {
        self.warmup_ends_ns
    }

    pub(crate) fn phase(&self, intended_ns: u64) -> Phase {
        if intended_ns < self.warmup_ends_ns { Phase::Warmup } else { Phase::Measure }
    }

    pub(crate) fn connections(&self) -> Connections {
        self.connections
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::options::RequestOptions;
    use model::schedule::{Arrivals, Rate, Schedule, ScriptEntry, Share, Stage};

    const S: u64 = 1_000_000_000;

    /// 10 requests/s for 2 s, beginning at 5 s.
    fn open(queue_limit: usize) -> OpenLoop {
        let stage = Stage { from: Rate(10_000), to: Rate(10_000), duration_ns: Some(2 * S) };
        let schedule = Schedule::Rates { stages: vec![stage], arrivals: Arrivals::Even, share: Share::WHOLE };
        let paths = vec!["/a".to_owned(), "/b".to_owned()];
        let setup = Setup {
            now: 5 * S,
            warmup_ns: 0,
            lasts_ns: Some(2 * S),
            cuts_answers: false,
            queue_limit,
            connections: Connections { at_once: 0, limit: 1, streams: 1 },
            clients: 1,
        };
        let urls = Urls::new(2, &RequestOptions::default(), 0);
        OpenLoop::new(paths, urls, Pacer::new(&schedule, None, 0, 0), &setup)
    }

    #[test]
    fn requests_keep_their_intended_times_however_late_they_are_taken() {
        let mut open = open(100);
        open.handle_time(5 * S);
        assert_eq!(open.poll_request(0), Some(Due { url: 0, intended_ns: 5 * S }));
        assert_eq!(open.poll_request(0), None);
        assert_eq!(open.next_ns(), Some(5 * S + S / 10));
        // Nobody comes for half a second: five requests are due then, each with its own time.
        open.handle_time(5 * S + S / 2);
        assert_eq!(open.waiting(0), 5);
        let taken: Vec<Due> = std::iter::from_fn(|| open.poll_request(0)).collect();
        let times: Vec<u64> = taken.iter().map(|due| due.intended_ns).collect();
        assert_eq!(times, [1, 2, 3, 4, 5].map(|tenth| 5 * S + tenth * S / 10));
        assert_eq!(taken[0].url, 1);
    }

    #[test]
    fn clients_that_replay_a_script_have_a_queue_each() {
        let entries = vec![ScriptEntry { at_ns: 0, url: 1 }, ScriptEntry { at_ns: 0, url: 0 }];
        let schedule = Schedule::Script { entries, share: Share::WHOLE, clients: 3 };
        let setup = Setup {
            now: 0,
            warmup_ns: 0,
            lasts_ns: None,
            cuts_answers: false,
            queue_limit: 100,
            connections: Connections { at_once: 1, limit: 1, streams: 1 },
            clients: 3,
        };
        let paths = vec!["/a".to_owned(), "/b".to_owned()];
        let urls = Urls::new(2, &RequestOptions::default(), 0);
        let mut open = OpenLoop::new(paths, urls, Pacer::new(&schedule, None, 0, 0), &setup);
        open.handle_time(0);
        assert_eq!(open.targets(), 3);
        for client in 0..3 {
            let taken: Vec<u32> =
                std::iter::from_fn(|| open.poll_request(client)).map(|due| due.url).collect();
            assert_eq!(taken, [1, 0], "client {client}");
        }
    }

    #[test]
    fn a_full_queue_counts_what_it_turns_away() {
        let mut open = open(3);
        open.handle_time(6 * S);
        assert_eq!((open.waiting(0), open.never_sent()), (3, 8));
        assert_eq!(open.poll_request(0).unwrap().intended_ns, 5 * S, "the earliest is kept");
    }

    #[test]
    fn it_waits_for_answers_but_not_forever_for_a_connection() {
        let mut open = open(100);
        open.handle_time(7 * S);
        assert_eq!(open.waiting(0), 20);
        open.poll_request(0).unwrap();
        assert_eq!(open.next_ns(), Some(8 * S), "when those that wait are given up");
        open.handle_time(8 * S);
        assert_eq!((open.waiting(0), open.never_sent()), (0, 19));
        assert!(!open.is_finished(8 * S), "one is still to be answered");
        open.handle_done();
        assert!(open.is_finished(8 * S));
    }

    #[test]
    fn an_end_that_cuts_answers_waits_a_second_for_them() {
        let mut open = OpenLoop { cuts_answers: true, ..open(100) };
        open.handle_time(7 * S);
        while open.poll_request(0).is_some() {}
        assert_eq!(open.next_ns(), Some(8 * S), "nothing waits, and the loop still wakes");
        assert!(!open.is_finished(8 * S - 1));
        assert!(open.is_finished(8 * S));
        assert_eq!(open.never_sent(), 0, "what was sent is unfinished, not unsent");
    }
}
