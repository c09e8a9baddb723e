//! Workloads: what clients do, as state machines without I/O.
//!
//! A workload decides *what* is requested and *when* it is due; it never sees a connection. The worker asks
//! [`Work::poll_request`] whenever a connection could take a request, and tells the workload what arrived.

mod abr;
pub mod closed;
pub mod content;
pub mod formats;
pub mod fuzz_targets;
pub mod open;
pub mod pacer;
pub mod page;
pub mod player;
pub mod urls;

use model::Workload;
use model::options::Options;
use model::player::PlayerEvent;
use model::sample::Phase;
use model::schedule::Schedule;
use model::shuffle::SplitMix64;

pub use closed::ClosedLoop;
pub use open::OpenLoop;
pub use pacer::Pacer;
pub use page::PageLoader;
pub use player::VideoPlayer;

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
    /// Open loop.
    Open(OpenLoop),
    /// A video, played.
    Player(VideoPlayer),
}

/// Streams of random numbers that are drawn from one seed and must not depend on each other.
const ORDER: u64 = 1;
const THINKING: u64 = 2;

/// What a client draws its random numbers from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// Of what all clients of one workload must draw alike: the arrivals that they deal out among them.
    pub shared: u64,
    /// Of all else.
    pub own: u64,
}

impl Seeds {
    /// The seeds of client group number `group` where `seed` is the run's.
    pub fn new(seed: u64, group: u16) -> Self {
        Seeds { shared: seed, own: SplitMix64::new(seed ^ (u64::from(group) << 48)).next_u64() }
    }
}

impl Work {
    /// The workload of an assignment, beginning at `now` (nanoseconds since the run's start).
    pub fn new(workload: &Workload, options: &Options, seeds: Seeds, now: u64) -> Self {
        let seed_of = |stream: u64| SplitMix64::new(seeds.own ^ stream.rotate_left(32)).next_u64();
        let urls_of = |paths: &[String]| urls::Urls::new(paths.len(), &options.requests, seed_of(ORDER));
        match workload {
            Workload::Page(page) => Work::Page(PageLoader::new(page.clone(), now)),
            Workload::Closed(model::workload::ClosedLoop { load, duration_ns }) => {
                let limits = closed::Limits {
                    requests: load.requests,
                    ends_ns: duration_ns
                        .map(|duration| now.saturating_add(load.warmup_ns).saturating_add(duration)),
                    warmup_ends_ns: now.saturating_add(load.warmup_ns),
                };
                let pauses = closed::Pauses {
                    think: options.think,
                    random: SplitMix64::new(seed_of(THINKING)),
                    began_ns: now,
                    ramp_up_ns: options.connections.ramp_up_ns,
                };
                let (paths, urls) = (load.paths.clone(), urls_of(&load.paths));
                Work::Closed(ClosedLoop::new(paths, urls, load.connections, load.streams, limits, pauses))
            }
            Workload::Open(model::workload::OpenLoop { load, schedule, queue_limit }) => {
                let random = SplitMix64::new(seeds.shared).next_u64();
                let pacer = Pacer::new(schedule, load.requests, load.warmup_ns, random);
                let clients = schedule.clients();
                // Clients that replay a script for themselves have a connection each.
                let connections = if clients > 1 { 1 } else { load.connections };
                let setup = open::Setup {
                    clients,
                    now,
                    warmup_ns: load.warmup_ns,
                    lasts_ns: schedule.lasts_ns(None).map(|lasts| lasts.saturating_add(load.warmup_ns)),
                    // A script has no time of its own to end at: its last answers are waited for.
                    cuts_answers: matches!(schedule, Schedule::Rates { .. }),
                    queue_limit: *queue_limit as usize,
                    connections: Connections {
                        // A connection that serves one request is part of that request: none is opened ahead.
                        at_once: if options.connections.requests_each == Some(1) { 0 } else { connections },
                        limit: connections,
                        streams: load.streams,
                    },
                };
                Work::Open(OpenLoop::new(load.paths.clone(), urls_of(&load.paths), pacer, &setup))
            }
            Workload::Player(player) => Work::Player(VideoPlayer::new(player.clone(), now)),
        }
    }

    /// The paths that [`Due::url`] counts.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Work::Page(page) => page.paths(),
            Work::Closed(closed) => closed.paths(),
            Work::Open(open) => open.paths(),
            Work::Player(player) => player.paths(),
        }
    }

    /// The body length that is right for a URL, where the workload knows it.
    pub fn expected_body_bytes(&self, url: u32) -> Option<u64> {
        match self {
            Work::Page(page) => page.expected_body_bytes(url),
            Work::Player(player) => player.expected_body_bytes(url),
            Work::Closed(_) | Work::Open(_) => None,
        }
    }

    /// How many hosts it has requests for; clients that replay a script for themselves count each of them again, in
    /// the same order.
    pub fn targets(&self) -> usize {
        match self {
            Work::Page(_) | Work::Player(_) => 1,
            Work::Closed(closed) => closed.targets(),
            Work::Open(open) => open.targets(),
        }
    }

    /// It is `now`: what has become due waits from now on.
    pub fn handle_time(&mut self, now: u64) {
        match self {
            Work::Open(open) => open.handle_time(now),
            Work::Player(player) => player.handle_time(now),
            Work::Page(_) | Work::Closed(_) => {}
        }
    }

    /// The next request to a host, if one is due at `now`; the caller sends it at once.
    pub fn poll_request(&mut self, target: usize, now: u64) -> Option<Due> {
        match self {
            Work::Page(page) => page.poll_request(),
            Work::Closed(closed) => closed.poll_request(target, now),
            Work::Open(open) => open.poll_request(target),
            Work::Player(player) => player.poll_request(now),
        }
    }

    /// How many requests to a host are due and wait for *any* connection; a closed loop's wait for their own.
    pub fn waiting(&self, target: usize) -> usize {
        match self {
            Work::Page(page) => page.waiting(),
            Work::Closed(_) => 0,
            Work::Open(open) => open.waiting(target),
            Work::Player(player) => player.waiting(),
        }
    }

    /// Whether requests can wait for any connection at all.
    pub fn has_queue(&self) -> bool {
        !matches!(self, Work::Closed(_))
    }

    /// `received_bytes` of the body of `url` have arrived in all.
    pub fn handle_body(&mut self, url: u32, received_bytes: u64, now: u64) {
        if let Work::Page(page) = self {
            page.handle_body(url, received_bytes, now);
        }
    }

    /// A request that `poll_request` gave has ended at `now`, well or not.
    pub fn handle_done(&mut self, is_ok: bool, now: u64) {
        match self {
            Work::Page(page) => page.handle_done(),
            Work::Closed(closed) => closed.handle_done(),
            Work::Open(open) => open.handle_done(),
            Work::Player(player) => player.handle_done(is_ok, now),
        }
    }

    /// Whether nothing is left to do.
    pub fn is_finished(&self, now: u64) -> bool {
        match self {
            Work::Page(page) => page.is_finished(),
            Work::Closed(closed) => closed.is_finished(now),
            Work::Open(open) => open.is_finished(now),
            Work::Player(player) => player.is_finished(),
        }
    }

    /// When the workload wants to be asked again by itself: a request becomes due, or time ends it.
    pub fn next_ns(&self) -> Option<u64> {
        match self {
            Work::Page(_) => None,
            Work::Closed(closed) => closed.ends_ns(),
            Work::Open(open) => open.next_ns(),
            Work::Player(player) => player.next_ns(),
        }
    }

    /// What happened to a player so far, in the order of time; nothing for other workloads.
    pub fn take_player_events(&mut self) -> Vec<PlayerEvent> {
        match self {
            Work::Player(player) => player.take_events(),
            Work::Page(_) | Work::Closed(_) | Work::Open(_) => Vec::new(),
        }
    }

    /// The end has come from outside: how many requests were due and never sent.
    pub fn give_up(&mut self) -> u64 {
        match self {
            Work::Page(_) | Work::Closed(_) | Work::Player(_) => 0,
            Work::Open(open) => {
                open.give_up();
                open.never_sent()
            }
        }
    }

    /// How many requests are still to be begun at most.
    pub fn left(&self) -> u64 {
        match self {
            Work::Page(_) | Work::Open(_) | Work::Player(_) => u64::MAX,
            Work::Closed(closed) => closed.left(),
        }
    }

    /// The phase of a request intended at this time.
    pub fn phase(&self, intended_ns: u64) -> Phase {
        match self {
            Work::Page(_) | Work::Player(_) => Phase::Measure,
            Work::Closed(closed) => closed.phase(intended_ns),
            Work::Open(open) => open.phase(intended_ns),
        }
    }

    /// When the warm-up ends; the beginning where there is none.
    pub fn warmup_ends_ns(&self) -> u64 {
        match self {
            Work::Page(_) | Work::Player(_) => 0,
            Work::Closed(closed) => closed.warmup_ends_ns(),
            Work::Open(open) => open.warmup_ends_ns(),
        }
    }

    /// How long a stream waits between an answer and its next request.
    pub fn think_ns(&mut self) -> u64 {
        match self {
            Work::Closed(closed) => closed.think_ns(),
            Work::Page(_) | Work::Open(_) | Work::Player(_) => 0,
        }
    }

    /// How connections are opened, where the assignment allows `limit` connections to one host.
    pub fn connections(&self, limit: u32) -> Connections {
        match self {
            Work::Page(_) => Connections { at_once: 0, limit, streams: u32::MAX },
            Work::Closed(closed) => Connections {
                at_once: closed.connections(),
                limit: closed.connections(),
                streams: closed.streams(),
            },
            Work::Open(open) => open.connections(),
            // One segment is asked for at a time.
            Work::Player(_) => Connections { at_once: 0, limit: 1, streams: 1 },
        }
    }

    /// Of the connections that are opened at once: how many are by `now`, and when there will be more.
    pub fn opened_by(&self, now: u64) -> (u32, Option<u64>) {
        match self {
            Work::Page(_) | Work::Player(_) => (0, None),
            Work::Closed(closed) => closed.opened_by(now),
            Work::Open(open) => (open.connections().at_once, None),
        }
    }
}

/// How a workload wants its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// So many to each host are opened at the start and kept open; further ones when requests wait.
    pub at_once: u32,
    /// At most so many to each host are open.
    pub limit: u32,
    /// At most so many requests are in flight on each.
    pub streams: u32,
}
