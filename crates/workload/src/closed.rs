//! The closed loop: each stream of each connection sends its next request when its last is answered.

use model::sample::Phase;

use crate::Due;

/// When a closed loop ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// After so many requests.
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
    connections: u32,
    streams: u32,
    limits: Limits,
    begun: u64,
    in_flight: u64,
}

impl ClosedLoop {
    /// A loop over `paths`, in turn.
    pub fn new(paths: Vec<String>, connections: u32, streams: u32, limits: Limits) -> Self {
        ClosedLoop { paths, connections, streams, limits, begun: 0, in_flight: 0 }
    }

    pub(crate) fn paths(&self) -> Vec<&str> {
        self.paths.iter().map(String::as_str).collect()
    }

    pub(crate) fn poll_request(&mut self, now: u64) -> Option<Due> {
        if self.is_over(now) || self.paths.is_empty() {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "smaller than the number of paths")]
        let url = (self.begun % self.paths.len() as u64) as u32;
        self.begun += 1;
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

    pub(crate) fn connections(&self) -> u32 {
        self.connections
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
        ClosedLoop::new(paths, 1, 1, Limits { requests, ends_ns, warmup_ends_ns: 10 })
    }

    #[test]
    fn paths_are_taken_in_turn_until_the_number_is_reached() {
        let mut closed = closed(Some(3), None);
        let urls: Vec<u32> = std::iter::from_fn(|| closed.poll_request(0)).map(|due| due.url).collect();
        assert_eq!(urls, [0, 1, 0]);
        assert!(!closed.is_finished(0));
        for _ in 0..3 {
            closed.handle_done();
        }
        assert!(closed.is_finished(0));
    }

    #[test]
    fn time_ends_it_with_requests_in_flight() {
        let mut closed = closed(None, Some(100));
        assert_eq!(closed.poll_request(99), Some(Due { url: 0, intended_ns: 99 }));
        assert_eq!(closed.poll_request(100), None);
        assert!(closed.is_finished(100));
    }

    #[test]
    fn warm_up_is_by_intention() {
        let closed = closed(None, None);
        assert_eq!(closed.phase(9), Phase::Warmup);
        assert_eq!(closed.phase(10), Phase::Measure);
    }
}
