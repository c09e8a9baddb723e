//! The closed loop: each stream of each connection sends its next request when its last one is answered.

use std::sync::Arc;

use model::options::Options;
use model::sample::Phase;
use model::shuffle::SplitMix64;
use model::workload::{ClosedLoop, LoopLoad, ThinkTime};

use crate::source::{Beginning, Connections, Due, RequestSource, Seeds, Stream};
use crate::urls::{UrlHosts, Urls};

/// What the clients of a closed loop share.
#[derive(Debug)]
pub struct ClosedPlan {
    closed: ClosedLoop,
    urls: Arc<UrlHosts>,
    ramp_up_ns: u64,
}

impl ClosedPlan {
    /// A closed loop with these options.
    pub(crate) fn new(closed: &ClosedLoop, options: &Options) -> Self {
        let urls = Arc::new(UrlHosts::new(closed.load.paths.len(), &options.requests));
        ClosedPlan { closed: closed.clone(), urls, ramp_up_ns: options.connections.ramp_up_ns }
    }

    /// When the loop ends by the clock, in a group that begins at `group_ns`.
    pub(crate) fn ends_ns(&self, group_ns: u64) -> Option<u64> {
        let warmup_ends_ns = group_ns.saturating_add(self.closed.load.warmup_ns);
        self.closed.duration_ns.map(|duration| warmup_ends_ns.saturating_add(duration))
    }
}

/// A closed loop over a list of paths.
#[derive(Clone, Debug)]
pub struct ClosedSource {
    plan: Arc<ClosedPlan>,
    urls: Urls,
    began_ns: u64,
    warmup_ends_ns: u64,
    ends_ns: Option<u64>,
    random: SplitMix64,
    /// Requests since the warm-up.
    begun: u64,
    in_flight: u64,
}

impl ClosedSource {
    /// One client's loop. Its connections ramp up from its own beginning.
    pub(crate) fn new(plan: Arc<ClosedPlan>, seeds: Seeds, beginning: Beginning) -> Self {
        ClosedSource {
            urls: Urls::new(Arc::clone(&plan.urls), seeds.of(Stream::Order)),
            began_ns: beginning.client_ns,
            warmup_ends_ns: beginning.group_ns.saturating_add(plan.closed.load.warmup_ns),
            ends_ns: plan.ends_ns(beginning.group_ns),
            random: SplitMix64::new(seeds.of(Stream::Thinking)),
            plan,
            begun: 0,
            in_flight: 0,
        }
    }

    fn load(&self) -> &LoopLoad {
        &self.plan.closed.load
    }

    fn is_over(&self, now: u64) -> bool {
        self.load().requests.is_some_and(|limit| self.begun >= limit)
            || self.ends_ns.is_some_and(|end| now >= end)
    }
}

impl RequestSource for ClosedSource {
    fn paths(&self) -> Vec<&str> {
        self.load().paths.iter().map(String::as_str).collect()
    }

    fn poll_request(&mut self, target: usize, now: u64) -> Option<Due> {
        if self.is_over(now) {
            return None;
        }
        let url = self.urls.next_of(target)?;
        self.begun += u64::from(now >= self.warmup_ends_ns);
        self.in_flight += 1;
        Some(Due { url, intended_ns: now })
    }

    fn handle_done(&mut self, _url: u32, _is_ok: bool, _now: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// A loop that time ends does not wait for responses; one that a number ends does.
    fn is_finished(&self, now: u64) -> bool {
        let timed_out = self.ends_ns.is_some_and(|end| now >= end);
        timed_out || (self.is_over(now) && self.in_flight == 0)
    }

    fn connections(&self, _limit: u32) -> Connections {
        let LoopLoad { connections, streams, .. } = *self.load();
        Connections { at_once: connections, limit: connections, streams }
    }

    fn targets(&self) -> usize {
        self.urls.targets()
    }

    fn has_queue(&self) -> bool {
        false
    }

    fn next_ns(&self) -> Option<u64> {
        self.ends_ns
    }

    fn left(&self) -> u64 {
        self.load().requests.map_or(u64::MAX, |limit| limit.saturating_sub(self.begun))
    }

    fn warmup_ends_ns(&self) -> u64 {
        self.warmup_ends_ns
    }

    /// Where time ends the loop, the end of a request decides. Its end cuts off the requests in flight, most
    /// of them long ones; if those that the warm-up's end meets in flight did not count either, throughput
    /// would lack the time of a request in each run, and request times the long ones. What ends within a
    /// period is a fair sample of both.
    fn phase_at_end(&self, begun: Phase, done_ns: u64) -> Phase {
        if self.ends_ns.is_some() && self.load().requests.is_none() { self.phase(done_ns) } else { begun }
    }

    fn think_ns(&mut self) -> u64 {
        let ThinkTime { least_ns, most_ns } = self.plan.closed.think;
        if most_ns == 0 {
            return 0;
        }
        least_ns + self.random.next_below((most_ns - least_ns.min(most_ns)).saturating_add(1))
    }

    /// Connections are opened at equal distances during the ramp-up.
    fn opened_by(&self, now: u64) -> (u32, Option<u64>) {
        if self.is_over(now) {
            return (0, None);
        }
        let all = self.load().connections;
        let (since_ns, ramp_ns) = (now.saturating_sub(self.began_ns), self.plan.ramp_up_ns);
        if since_ns >= ramp_ns {
            return (all, None);
        }
        let (connections, ramp_ns) = (u128::from(all), u128::from(ramp_ns));
        let opened = u128::from(since_ns) * connections / ramp_ns + 1;
        let next_ns = (opened * ramp_ns).div_ceil(connections.max(1));
        let next_ns = self.began_ns.saturating_add(u64::try_from(next_ns).unwrap_or(u64::MAX));
        let opened = u32::try_from(opened.min(connections)).unwrap_or(u32::MAX);
        (opened, (opened < all).then_some(next_ns))
    }
}

#[cfg(test)]
mod tests {
    use model::options::ConnectionOptions;

    use super::*;

    /// Four connections from 1000 ns on, within 100 ns.
    fn closed(requests: Option<u64>, ends_ns: Option<u64>) -> ClosedSource {
        let paths = vec!["/a".to_owned(), "/b".to_owned()];
        let load = LoopLoad { paths, connections: 4, requests, ..LoopLoad::new("") };
        let options = Options {
            connections: ConnectionOptions { ramp_up_ns: 100, ..ConnectionOptions::default() },
            ..Options::default()
        };
        let closed =
            ClosedLoop { think: ThinkTime { least_ns: 5, most_ns: 8 }, ..ClosedLoop::new(load, None) };
        let plan = Arc::new(ClosedPlan::new(&closed, &options));
        let source = ClosedSource::new(plan, Seeds { shared: 0, own: 0 }, Beginning::at(1000));
        ClosedSource { ends_ns, warmup_ends_ns: 10, ..source }
    }

    #[test]
    fn paths_are_taken_in_turn_until_the_number_is_reached() {
        let mut closed = closed(Some(3), None);
        let urls: Vec<u32> = std::iter::from_fn(|| closed.poll_request(0, 10)).map(|due| due.url).collect();
        assert_eq!(urls, [0, 1, 0]);
        assert!(!closed.is_finished(0));
        for _ in 0..3 {
            closed.handle_done(0, true, 0);
        }
        assert!(closed.is_finished(0));
    }

    #[test]
    fn requests_of_the_warm_up_do_not_count_towards_the_number() {
        let mut closed = closed(Some(3), None);
        assert_eq!(std::iter::from_fn(|| closed.poll_request(0, 9)).take(100).count(), 100);
        assert!(!closed.is_finished(9));
        assert_eq!(std::iter::from_fn(|| closed.poll_request(0, 10)).take(100).count(), 3);
    }

    #[test]
    fn time_ends_it_with_requests_in_flight() {
        let mut closed = closed(None, Some(100));
        assert_eq!(closed.poll_request(0, 99), Some(Due { url: 0, intended_ns: 99 }));
        assert_eq!(closed.poll_request(0, 100), None);
        assert!(closed.is_finished(100));
    }

    #[test]
    fn the_phase_is_that_of_the_end_where_time_ends_the_loop() {
        let timed = closed(None, Some(100));
        assert_eq!(timed.phase(9), Phase::Warmup);
        assert_eq!(timed.phase_at_end(Phase::Warmup, 9), Phase::Warmup);
        assert_eq!(timed.phase_at_end(Phase::Warmup, 10), Phase::Measure);
    }

    #[test]
    fn the_phase_is_that_of_the_beginning_where_a_number_ends_the_loop() {
        let numbered = closed(Some(3), None);
        assert_eq!((numbered.phase(9), numbered.phase(10)), (Phase::Warmup, Phase::Measure));
        assert_eq!(numbered.phase_at_end(Phase::Warmup, 10), Phase::Warmup);
    }

    #[test]
    fn connections_are_opened_at_equal_distances() {
        let closed = closed(None, None);
        assert_eq!(closed.opened_by(1000), (1, Some(1025)));
        assert_eq!(closed.opened_by(1024), (1, Some(1025)));
        assert_eq!(closed.opened_by(1025), (2, Some(1050)));
        assert_eq!(closed.opened_by(1075), (4, None));
        assert_eq!(closed.opened_by(2000), (4, None));
    }

    #[test]
    fn a_late_client_has_the_rest_of_its_groups_time() {
        let load = LoopLoad { warmup_ns: 100, requests: Some(2), ..LoopLoad::new("/") };
        let plan = Arc::new(ClosedPlan::new(&ClosedLoop::new(load, Some(1000)), &Options::default()));
        let begin = |client_ns| {
            let beginning = Beginning { group_ns: 5, client_ns };
            ClosedSource::new(Arc::clone(&plan), Seeds { shared: 0, own: 0 }, beginning)
        };
        for client_ns in [5, 50, 700] {
            let client = begin(client_ns);
            assert_eq!((client.warmup_ends_ns(), client.next_ns()), (105, Some(1105)));
        }
        let mut late = begin(700);
        assert_eq!(std::iter::from_fn(|| late.poll_request(0, 700)).count(), 2, "each client has the number");
        assert_eq!(late.phase(700), Phase::Measure);
        assert!(begin(1200).is_finished(1200));
    }

    #[test]
    fn think_times_reach_all_of_their_range() {
        let mut closed = closed(None, None);
        let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| closed.think_ns()).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [5, 6, 7, 8]);
    }
}
