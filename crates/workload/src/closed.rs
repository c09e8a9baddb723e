//! The closed loop: each stream of each connection sends its next request when its last is answered.

use model::options::Think;
use model::sample::Phase;
use model::shuffle::SplitMix64;

use crate::Due;
use crate::urls::Urls;

/// When a closed loop ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// After so many requests, those of the warm-up not counted.
    pub requests: Option<u64>,
    /// At this time.
    pub ends_ns: Option<u64>,
    /// Requests intended before this time belong to the warm-up.
    pub warmup_ends_ns: u64,
}

/// A closed loop over a list of paths.
#[derive(Clone, Debug)]
pub struct ClosedLoop {
    paths: Vec<String>,
    urls: Urls,
    connections: u32,
    streams: u32,
    limits: Limits,
    pauses: Pauses,
    /// Requests since the warm-up.
    begun: u64,
    in_flight: u64,
}

/// The pauses of a closed loop.
#[derive(Clone, Debug)]
pub struct Pauses {
    /// Between an answer and the stream's next request.
    pub think: Think,
    /// What think times are drawn from.
    pub random: SplitMix64,
    /// When the first connection is opened.
    pub began_ns: u64,
    /// Over how long the connections are opened.
    pub ramp_up_ns: u64,
}

impl ClosedLoop {
    /// A loop over `paths`, in turn.
    pub fn new(
        paths: Vec<String>,
        urls: Urls,
        connections: u32,
        streams: u32,
        limits: Limits,
        pauses: Pauses,
    ) -> Self {
        ClosedLoop { paths, urls, connections, streams, limits, pauses, begun: 0, in_flight: 0 }
    }

    pub(crate) fn paths(&self) -> Vec<&str> {
        self.paths.iter().map(String::as_str).collect()
    }

    pub(crate) fn poll_request(&mut self, target: usize, now: u64) -> Option<Due> {
        if self.is_over(now) {
            return None;
        }
        let url = self.urls.next_of(target)?;
        self.begun += u64::from(self.phase(now) == Phase::Measure);
        self.in_flight += 1;
        Some(Due { url, intended_ns: now })
    }

    pub(crate) fn handle_done(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// A loop ended by time does not wait for what is still in flight; one ended by number does.
    pub(crate) fn is_finished(&self, now: u64) -> bool {
        let timed_out = self.limits.ends_ns.is_some_and(|end| now >= end);
        timed_out || (self.is_over(now) && self.in_flight == 0)
    }

    pub(crate) fn ends_ns(&self) -> Option<u64> {
        self.limits.ends_ns
    }

    pub(crate) fn phase(&self, intended_ns: u64) -> Phase {
        if intended_ns < self.limits.warmup_ends_ns { Phase::Warmup } else { Phase::Measure }
    }

    pub(crate) fn warmup_ends_ns(&self) -> u64 {
        self.limits.warmup_ends_ns
    }

    pub(crate) fn targets(&self) -> usize {
        self.urls.targets()
    }

    pub(crate) fn left(&self) -> u64 {
        self.limits.requests.map_or(u64::MAX, |limit| limit.saturating_sub(self.begun))
    }

    pub(crate) fn connections(&self) -> u32 {
        self.connections
    }

    /// How long a stream waits before its next request.
    pub(crate) fn think_ns(&mut self) -> u64 {
        let Think { least_ns, most_ns } = self.pauses.think;
        if most_ns == 0 {
            return 0;
        }
        least_ns + self.pauses.random.next_below((most_ns - least_ns.min(most_ns)).saturating_add(1))
    }

    /// How many connections to each host are open at `now`, and when the next one is opened.
    pub(crate) fn opened_by(&self, now: u64) -> (u32, Option<u64>) {
        if self.is_over(now) {
            return (0, None);
        }
        let (since_ns, ramp_ns) = (now.saturating_sub(self.pauses.began_ns), self.pauses.ramp_up_ns);
        if since_ns >= ramp_ns {
            return (self.connections, None);
        }
        let connections = u128::from(self.connections);
        let opened = u128::from(since_ns) * connections / u128::from(ramp_ns) + 1;
        let next_ns = (opened * u128::from(ramp_ns)).div_ceil(connections.max(1));
        let next_ns = self.pauses.began_ns.saturating_add(u64::try_from(next_ns).unwrap_or(u64::MAX));
        let opened = u32::try_from(opened.min(connections)).unwrap_or(u32::MAX);
        (opened, (opened < self.connections).then_some(next_ns))
    }

    pub(crate) fn streams(&self) -> u32 {
        self.streams
    }

    fn is_over(&self, now: u64) -> bool {
        self.limits.requests.is_some_and(|limit| self.begun >= limit)
            || self.limits.ends_ns.is_some_and(|end| now >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(requests: Option<u64>, ends_ns: Option<u64>) -> ClosedLoop {
        let paths = vec!["/a".to_owned(), "/b".to_owned()];
        let urls = Urls::new(2, &model::options::RequestOptions::default(), 0);
        let pauses = Pauses {
            think: Think { least_ns: 5, most_ns: 8 },
            random: SplitMix64::new(1),
            began_ns: 1000,
            ramp_up_ns: 100,
        };
        ClosedLoop::new(paths, urls, 4, 1, Limits { requests, ends_ns, warmup_ends_ns: 10 }, pauses)
    }

    #[test]
    fn paths_are_taken_in_turn_until_the_number_is_reached() {
        let mut closed = closed(Some(3), None);
        let urls: Vec<u32> = std::iter::from_fn(|| closed.poll_request(0, 10)).map(|due| due.url).collect();
        assert_eq!(urls, [0, 1, 0]);
        assert!(!closed.is_finished(0));
        for _ in 0..3 {
            closed.handle_done();
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
    fn warm_up_is_by_intention() {
        let closed = closed(None, None);
        assert_eq!(closed.phase(9), Phase::Warmup);
        assert_eq!(closed.phase(10), Phase::Measure);
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
    fn think_times_reach_all_of_their_range() {
        let mut closed = closed(None, None);
        let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| closed.think_ns()).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [5, 6, 7, 8]);
    }
}
