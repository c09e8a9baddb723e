//! What a client does: load a page, keep a closed or an open loop going, play a video, or replay a script.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::media::MediaLengths;
use crate::named;
use crate::origin_path::OriginPath;
use crate::page::{self, Page};
use crate::player::Player;
use crate::schedule::Schedule;
use crate::script::{ANY_STREAMS, Replay, Script};
use crate::units::{counted, format_ns};
use crate::url_pattern::Pattern;

pub use crate::loops::{ClosedLoop, LoopLoad, OpenLoop, ThinkTime};

/// What a client does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Workload {
    /// Load one page from cold, as a browser would.
    Page(Page),
    /// Closed loop: each stream of each connection sends its next request when its last one is answered.
    Closed(ClosedLoop),
    /// Open loop: requests are due at the times of a schedule, whether or not the server keeps up.
    Open(OpenLoop),
    /// Play a presentation, segment by segment, as an adaptive player does.
    Player(Player),
    /// Replay a timing script: a recorded session.
    Script(Script),
}

named! { "a kind of workload";
    /// The kinds of workload.
    pub enum WorkloadKind {
        /// Page loads.
        Page = "page",
        /// Closed loops.
        Closed = "closed",
        /// Open loops.
        Open = "open",
        /// Videos that are played.
        Player = "player",
        /// Timing scripts that are replayed.
        Script = "script",
    }
}

impl WorkloadKind {
    /// A noun for sentences, such as `closed loop`.
    pub const fn describe(self) -> &'static str {
        match self {
            WorkloadKind::Page => "page load",
            WorkloadKind::Closed => "closed loop",
            WorkloadKind::Open => "open loop",
            WorkloadKind::Player => "video",
            WorkloadKind::Script => "replay of a script",
        }
    }
}

impl Workload {
    /// Its kind.
    pub const fn kind(&self) -> WorkloadKind {
        match self {
            Workload::Page(_) => WorkloadKind::Page,
            Workload::Closed(_) => WorkloadKind::Closed,
            Workload::Open(_) => WorkloadKind::Open,
            Workload::Player(_) => WorkloadKind::Player,
            Workload::Script(_) => WorkloadKind::Script,
        }
    }

    /// The page that it loads.
    pub const fn page(&self) -> Option<&Page> {
        if let Workload::Page(page) = self { Some(page) } else { None }
    }

    /// The video that it plays, and the player.
    pub const fn player(&self) -> Option<&Player> {
        if let Workload::Player(player) = self { Some(player) } else { None }
    }

    /// The script that it replays.
    pub const fn script(&self) -> Option<&Script> {
        if let Workload::Script(script) = self { Some(script) } else { None }
    }

    /// What a closed or an open loop or a script requests over which connections.
    pub const fn as_loop(&self) -> Option<&LoopLoad> {
        match self {
            Workload::Closed(ClosedLoop { load, .. })
            | Workload::Open(OpenLoop { load, .. })
            | Workload::Script(Script { load, .. }) => Some(load),
            _ => None,
        }
    }

    /// The same, to change it.
    pub const fn as_loop_mut(&mut self) -> Option<&mut LoopLoad> {
        match self {
            Workload::Closed(ClosedLoop { load, .. })
            | Workload::Open(OpenLoop { load, .. })
            | Workload::Script(Script { load, .. }) => Some(load),
            _ => None,
        }
    }

    /// Whether requests are due at times, whether or not the server keeps up.
    pub const fn is_timed(&self) -> bool {
        matches!(self, Workload::Open(_) | Workload::Script(_))
    }

    /// When the requests of an open loop are due.
    pub const fn schedule(&self) -> Option<&Schedule> {
        if let Workload::Open(open) = self { Some(&open.schedule) } else { None }
    }

    /// The paths that it requests, each once.
    pub fn paths(&self) -> Vec<String> {
        match self {
            Workload::Page(page) => page.resources.iter().map(|resource| resource.path.clone()).collect(),
            Workload::Player(player) => {
                player.resources().into_iter().map(|resource| resource.path).collect()
            }
            Workload::Closed(ClosedLoop { load, .. })
            | Workload::Open(OpenLoop { load, .. })
            | Workload::Script(Script { load, .. }) => load.paths.clone(),
        }
    }

    /// How many connections to each host it holds open; 1 for workloads that do not set it.
    pub fn connections(&self) -> u32 {
        self.as_loop().map_or(1, |load| load.connections)
    }

    /// The most requests in flight on each connection; `None` where only the protocol limits them.
    pub fn streams(&self) -> Option<u32> {
        match self {
            Workload::Page(_) => None,
            // A player requests one segment of each track after the other.
            Workload::Player(player) => Some(player.requests_at_once()),
            _ => {
                Some(self.as_loop().map_or(1, |load| load.streams)).filter(|streams| *streams != ANY_STREAMS)
            }
        }
    }

    /// The measured requests after which it ends, where a number ends it.
    pub fn requests(&self) -> Option<u64> {
        self.as_loop().and_then(|load| load.requests)
    }

    /// The warm-up, in nanoseconds; 0 without one.
    pub fn warmup_ns(&self) -> u64 {
        self.as_loop().map_or(0, |load| load.warmup_ns)
    }

    /// How long it lasts in nanoseconds, warm-up included, where the clock or a schedule ends it.
    pub fn lasts_ns(&self) -> Option<u64> {
        let measured_ns = match self {
            Workload::Closed(closed) => closed.duration_ns,
            Workload::Open(open) => open.schedule.lasts_ns(open.load.requests),
            Workload::Script(script) if script.replay == Replay::Schedule => Some(script.lasts_ns()),
            _ => None,
        };
        measured_ns.map(|ns| ns.saturating_add(self.warmup_ns()))
    }

    /// Bytes of response bodies that one client receives at least; 0 where the workload does not say. Of
    /// paths, only those like `/bytes/1000` and those of media have a known length. A player that may choose
    /// is taken to choose the lowest representation.
    pub fn least_body_bytes(&self, media: &MediaLengths<'_>) -> u64 {
        let of_path = |path: &String| {
            let pattern = Pattern::parse(path).ok().flatten();
            let path = pattern.map_or(Cow::Borrowed(path.as_str()), |pattern| Cow::Owned(pattern.least()));
            bytes_of_path(&path).or_else(|| media.bytes_of(&path))
        };
        let of_loop = |load: &LoopLoad| {
            let sum: u64 = load.paths.iter().filter_map(of_path).sum();
            load.requests.unwrap_or(0).saturating_mul(sum) / load.paths.len().max(1) as u64
        };
        match self {
            Workload::Page(page) => page.resources.iter().map(|resource| resource.bytes).sum(),
            Workload::Player(player) => player.least_bytes(),
            Workload::Script(script) => script.body_bytes,
            Workload::Closed(ClosedLoop { load, .. }) | Workload::Open(OpenLoop { load, .. }) => {
                of_loop(load)
            }
        }
    }

    /// What one client does in place of this many clients that start together: a closed loop with the
    /// connections and the requests of all. `None` if no single client can do the same.
    pub fn merged(&self, clients: u32) -> Option<Workload> {
        let Workload::Closed(closed) = self else { return (clients == 1).then(|| self.clone()) };
        let mut closed = closed.clone();
        closed.load.connections = closed.load.connections.checked_mul(clients)?;
        closed.load.requests = closed.load.requests.map(|each| each.saturating_mul(clients.into()));
        Some(Workload::Closed(closed))
    }

    /// The visit before a repeat visit, from which a client has its TLS sessions: a page as a whole; of the
    /// others one request on each connection, because a ticket is used once (RFC 8446, appendix C.4).
    pub fn first_visit(&self) -> Workload {
        if let Workload::Page(_) = self {
            return self.clone();
        }
        let path = self.paths().into_iter().next().unwrap_or_else(|| "/".to_owned());
        let connections = self.connections();
        let load = LoopLoad { connections, requests: Some(connections.into()), ..LoopLoad::new(path) };
        Workload::Closed(ClosedLoop::new(load, None))
    }

    /// Whether it requests the same at the same rate from beginning to end, so that it can reach a steady
    /// state.
    pub fn is_steady(&self) -> bool {
        match self {
            Workload::Closed(_) => true,
            Workload::Open(open) => open.schedule.constant_rate().is_some(),
            Workload::Page(_) | Workload::Player(_) | Workload::Script(_) => false,
        }
    }

    /// One line, such as `closed loop over 1 path: 2 connections × 10 streams, for 5 s after 1 s of warm-up`.
    pub fn describe(&self) -> String {
        match self {
            Workload::Page(page) => format!("cold load of page {}: {}", page.name, page::describe(page)),
            Workload::Closed(ClosedLoop { load, duration_ns, think }) => format!(
                "closed loop over {}: {}{}, {}",
                load.describe_paths(),
                load.describe_connections(),
                think.describe(),
                load.describe_end(*duration_ns)
            ),
            Workload::Open(OpenLoop { load, schedule, .. }) => format!(
                "open loop over {}: {} on {}, {}",
                load.describe_paths(),
                schedule.describe(),
                load.describe_connections(),
                load.describe_end(schedule.lasts_ns(None))
            ),
            // With several tracks, the description names each.
            Workload::Player(player) if player.presentation.tracks.len() > 1 => player.describe(),
            Workload::Player(player) => format!("video: {}", player.describe()),
            Workload::Script(script) => {
                format!("replay of a script: {}{}", script.describe(), script.describe_connections())
            }
        }
    }

    /// What ends it, as the end of a sentence: `ends after a number of requests`.
    pub fn describe_end(&self) -> String {
        match self {
            Workload::Page(page) => {
                format!("ends with the last of {}", counted(page.resources.len() as u64, "resource"))
            }
            Workload::Closed(ClosedLoop {
                load: LoopLoad { requests: Some(_), .. },
                duration_ns: Some(_),
                ..
            }) => "ends after a number of requests or a time".to_owned(),
            Workload::Player(player) => {
                format!("ends with {} segments, {} of media", player.segments(), format_ns(player.media_ns()))
            }
            Workload::Script(_) => "ends with the last request of a script".to_owned(),
            _ if self.requests().is_some() => "ends after a number of requests".to_owned(),
            _ => "ends after a time".to_owned(),
        }
    }
}

/// The length of the body of a path such as `/bytes/1000`; `None` of any other.
pub(crate) fn bytes_of_path(path: &str) -> Option<u64> {
    match OriginPath::parse(path) {
        Ok(Some(OriginPath::Bytes(bytes))) => Some(bytes),
        _ => None,
    }
}
