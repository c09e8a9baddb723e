//! Workloads: what clients do, as state machines without I/O.
//!
//! A workload decides *what* is requested and *when* it is due; it never sees a connection. The worker asks
//! [`Work::poll_request`] whenever a connection could take a request, and tells the workload what arrived.

pub mod closed;
pub mod content;
pub mod page;

use model::assignment;
use model::sample::Phase;

pub use closed::ClosedLoop;
pub use page::PageLoader;

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Which URL: an index into [`Work::paths`].
    pub url: u32,
    /// When the workload wanted it sent, in nanoseconds since the run's start.
    pub intended_ns: u64,
}

/// Any workload, dispatched statically.
#[derive(Clone, Debug)]
pub enum Work {
    /// One page from cold.
    Page(PageLoader),
    /// Closed loop.
    Closed(ClosedLoop),
}

impl Work {
    /// The workload of an assignment, beginning at `now` (nanoseconds since the run's start).
    pub fn new(workload: &assignment::Workload, now: u64) -> Self {
        match workload {
            assignment::Workload::Page { page } => Work::Page(PageLoader::new(page.clone(), now)),
            assignment::Workload::Closed {
                paths,
                connections,
                streams,
                requests,
                duration_ns,
                warmup_ns,
            } => {
                let limits = closed::Limits {
                    requests: *requests,
                    ends_ns: duration_ns
                        .map(|duration| now.saturating_add(*warmup_ns).saturating_add(duration)),
                    warmup_ends_ns: now.saturating_add(*warmup_ns),
                };
                Work::Closed(ClosedLoop::new(paths.clone(), *connections, *streams, limits))
            }
        }
    }

    /// The paths that [`Due::url`] counts.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Work::Page(page) => page.paths(),
            Work::Closed(closed) => closed.paths(),
        }
    }

    /// The body length that is right for a URL, where the workload knows it.
    pub fn expected_body_bytes(&self, url: u32) -> Option<u64> {
        match self {
            Work::Page(page) => page.expected_body_bytes(url),
            Work::Closed(_) => None,
        }
    }

    /// The next request, if one is due at `now`; the caller sends it at once.
    pub fn poll_request(&mut self, now: u64) -> Option<Due> {
        match self {
            Work::Page(page) => page.poll_request(),
            Work::Closed(closed) => closed.poll_request(now),
        }
    }

    /// How many requests are due and wait for *any* connection; a closed loop's wait for their own.
    pub fn waiting(&self) -> usize {
        match self {
            Work::Page(page) => page.waiting(),
            Work::Closed(_) => 0,
        }
    }

    /// `received_bytes` of the body of `url` have arrived in all.
    pub fn handle_body(&mut self, url: u32, received_bytes: u64, now: u64) {
        if let Work::Page(page) = self {
            page.handle_body(url, received_bytes, now);
        }
    }

    /// A request that `poll_request` gave has ended, well or not.
    pub fn handle_done(&mut self, _url: u32) {
        match self {
            Work::Page(page) => page.handle_done(),
            Work::Closed(closed) => closed.handle_done(),
        }
    }

    /// Whether nothing is left to do.
    pub fn is_finished(&self, now: u64) -> bool {
        match self {
            Work::Page(page) => page.is_finished(),
            Work::Closed(closed) => closed.is_finished(now),
        }
    }

    /// When the workload ends by itself, if time ends it.
    pub fn ends_ns(&self) -> Option<u64> {
        match self {
            Work::Page(_) => None,
            Work::Closed(closed) => closed.ends_ns(),
        }
    }

    /// The phase of a request intended at this time.
    pub fn phase(&self, intended_ns: u64) -> Phase {
        match self {
            Work::Page(_) => Phase::Measure,
            Work::Closed(closed) => closed.phase(intended_ns),
        }
    }

    /// How connections are opened, where one connection takes `per_connection` requests at a time and the
    /// assignment allows `limit` connections to one host.
    pub fn connections(&self, limit: u32) -> Connections {
        match self {
            Work::Page(_) => Connections { at_once: 0, limit, streams: u32::MAX },
            Work::Closed(closed) => Connections {
                at_once: closed.connections(),
                limit: closed.connections(),
                streams: closed.streams(),
            },
        }
    }
}

/// How a workload wants its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// So many are opened at the start and kept open; further ones when requests wait.
    pub at_once: u32,
    /// At most so many are open.
    pub limit: u32,
    /// At most so many requests are in flight on each.
    pub streams: u32,
}
