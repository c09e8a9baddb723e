//! Closed and open loops: requests over paths, on connections that stay open.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::schedule::Schedule;
use crate::units::{counted, format_ns, parse_duration_ns};

/// What closed and open loops and scripts have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopLoad {
    /// Paths to request, in turn.
    pub paths: Vec<String>,
    /// Connections held open to each host. Where each connection serves one request, the most that are open.
    pub connections: u32,
    /// Requests in flight on each connection; HTTP/1.1 has one.
    pub streams: u32,
    /// Stop after this many requests, excluding the warm-up. Open loops count those of the whole schedule,
    /// also where clients share it.
    pub requests: Option<u64>,
    /// Requests intended before this time belong to the warm-up.
    pub warmup_ns: u64,
}

/// A closed loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedLoop {
    /// What it shares with open loops.
    #[serde(flatten)]
    pub load: LoopLoad,
    /// Stop after this long, excluding the warm-up.
    pub duration_ns: Option<u64>,
    /// How long a stream waits between an answer and its next request.
    #[serde(default)]
    pub think: ThinkTime,
}

/// A time between `least_ns` and `most_ns`, uniformly distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinkTime {
    /// The shortest.
    pub least_ns: u64,
    /// The longest.
    pub most_ns: u64,
}

impl FromStr for ThinkTime {
    type Err = String;

    /// Reads `1s`, or a range such as `0s-2s`.
    fn from_str(text: &str) -> Result<ThinkTime, String> {
        let (least, most) = text.split_once('-').unwrap_or((text, text));
        let (least_ns, most_ns) = (parse_duration_ns(least)?, parse_duration_ns(most)?);
        if least_ns > most_ns {
            return Err(format!("write the shorter time of `{text}` first"));
        }
        Ok(ThinkTime { least_ns, most_ns })
    }
}

impl ThinkTime {
    pub(crate) fn describe(self) -> String {
        match (self.least_ns, self.most_ns) {
            (_, 0) => String::new(),
            (least, most) if least == most => format!(", think time {}", format_ns(most)),
            (least, most) => format!(", think time {} to {}", format_ns(least), format_ns(most)),
        }
    }
}

impl ClosedLoop {
    /// A loop without think time.
    pub fn new(load: LoopLoad, duration_ns: Option<u64>) -> Self {
        ClosedLoop { load, duration_ns, think: ThinkTime::default() }
    }
}

/// An open loop. Its warm-up runs at the schedule's first rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// What it shares with closed loops.
    #[serde(flatten)]
    pub load: LoopLoad,
    /// When requests are due.
    pub schedule: Schedule,
    /// The most due requests that wait for a connection; further ones are counted as never sent.
    pub queue_limit: u32,
}

impl LoopLoad {
    /// A loop over one path, without an end: one connection with one request in flight, and no warm-up.
    pub fn new(path: impl Into<String>) -> Self {
        LoopLoad { paths: vec![path.into()], connections: 1, streams: 1, requests: None, warmup_ns: 0 }
    }

    pub(crate) fn describe_paths(&self) -> String {
        counted(self.paths.len() as u64, "path")
    }

    pub(crate) fn describe_connections(&self) -> String {
        let streams = counted(self.streams.into(), "stream");
        format!("{} × {streams}", counted(self.connections.into(), "connection"))
    }

    pub(crate) fn describe_end(&self, lasts_ns: Option<u64>) -> String {
        let end = match (self.requests, lasts_ns) {
            (Some(requests), None) => counted(requests, "request"),
            (Some(requests), Some(ns)) => format!("{} or {}", counted(requests, "request"), format_ns(ns)),
            (None, Some(ns)) => format!("for {}", format_ns(ns)),
            (None, None) => "without end".to_owned(),
        };
        match self.warmup_ns {
            0 => end,
            ns => format!("{end} after {} of warm-up", format_ns(ns)),
        }
    }
}
