//! The replay of a timing script: a recorded session that clients repeat.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::loops::LoopLoad;
use crate::named;
use crate::number::{float, nearest};
use crate::schedule::Share;
use crate::units::{counted, format_ns};
use crate::variant::Variant;

/// A script that every client replays once, from its own beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// The different requests, and the connections. It ends with its last request.
    #[serde(flatten)]
    pub load: LoopLoad,
    /// Whether `load` sets the connections. Otherwise a client opens them when requests wait, as browsers do:
    /// one, over HTTP/1.1 as many as the pin `http1_connections`.
    #[serde(default)]
    pub sets_connections: bool,
    /// What it is a recording of; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The variant over which it was recorded; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_over: Option<Variant>,
    /// What decides when a request is due.
    pub replay: Replay,
    /// How much faster than recorded; it has been applied to the times of `entries`.
    #[serde(default, skip_serializing_if = "Speed::is_one")]
    pub speed: Speed,
    /// All requests, in the order of their times.
    pub entries: Vec<ScriptEntry>,
    /// The bytes of all response bodies, as far as they are known.
    #[serde(default)]
    pub body_bytes: u64,
    /// Which part of the requests is this client's.
    #[serde(default, skip_serializing_if = "Share::is_whole")]
    pub share: Share,
    /// The most due requests that wait for a connection; further ones are counted as never sent.
    pub queue_limit: u32,
}

/// One request of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptEntry {
    /// When it was sent, in nanoseconds since the beginning.
    pub at_ns: u64,
    /// Which path.
    pub url: u32,
    /// The requests for whose responses it waited, by their places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u32>,
    /// From the end of the last of these responses to its sending, in nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gap_ns: u64,
}

named! { "a mode of replay";
    /// What decides when a request of a script is due.
    #[derive(Default)]
    pub enum Replay {
        /// Its recorded time.
        #[default]
        Schedule = "schedule",
        /// The end of the responses for which it waited, and the recorded gap after them.
        Dependency = "dependency",
    }
}

/// How many times faster than recorded a script is replayed, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Speed(pub u32);

/// A connection takes any number of requests at the same time, as far as the protocol allows.
pub const ANY_STREAMS: u32 = u32::MAX;

impl Speed {
    /// As recorded.
    pub const ONE: Speed = Speed(1000);

    /// The speed of a number, from 0.001 to 1000.
    ///
    /// # Errors
    /// It is not within these bounds.
    pub fn new(times: f64) -> Result<Speed, String> {
        const MOST: f64 = 1000.0;
        let thousandths = nearest(times * 1000.0);
        match u32::try_from(thousandths) {
            Ok(number) if number > 0 && times <= MOST => Ok(Speed(number)),
            _ => Err(format!("{times} is not a speed; write a number from 0.001 to 1000, such as 10")),
        }
    }

    /// How long a recorded time takes at this speed.
    pub fn of_ns(self, ns: u64) -> u64 {
        let scaled = u128::from(ns) * 1000 / u128::from(self.0.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// How many times faster than recorded.
    pub fn times(self) -> f64 {
        float(self.0.into()) / 1000.0
    }

    fn is_one(&self) -> bool {
        *self == Speed::ONE
    }
}

impl Default for Speed {
    fn default() -> Self {
        Speed::ONE
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.times().fmt(f)
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Speed, String> {
        let times: f64 =
            text.parse().map_err(|_| format!("`{text}` is not a number; write one such as 10"))?;
        Speed::new(times)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde wants it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Script {
    /// From the beginning to the time of the last request, at its speed, in nanoseconds.
    pub fn lasts_ns(&self) -> u64 {
        self.entries.last().map_or(0, |last| last.at_ns)
    }

    /// The most requests within a second of the schedule.
    pub(crate) fn busiest_second(&self) -> u64 {
        let mut first = 0;
        let within = |(place, entry): (usize, &ScriptEntry)| {
            while self.entries[first].at_ns.saturating_add(crate::units::NANOS_PER_S) <= entry.at_ns {
                first += 1;
            }
            (place + 1 - first) as u64
        };
        self.entries.iter().enumerate().map(within).max().unwrap_or(0)
    }

    /// The script and how it is replayed, such as `3 requests in 2 s by their schedule, 10 times faster`.
    pub fn describe(&self) -> String {
        let requests = counted(self.entries.len() as u64, "request");
        let how = match self.replay {
            Replay::Schedule => "at their recorded times",
            Replay::Dependency => "each after the responses that it waited for",
        };
        let speed = match self.speed {
            Speed::ONE => String::new(),
            speed if speed > Speed::ONE => format!(", {speed} times faster than recorded"),
            speed => format!(", at {speed} of the recorded speed"),
        };
        let title = if self.title.is_empty() { String::new() } else { format!(" of {}", self.title) };
        let over = self.recorded_over.map_or(String::new(), |variant| format!(", recorded over {variant}"));
        format!("{requests}{title} in {}, {how}{speed}{over}", format_ns(self.lasts_ns()))
    }

    /// The connections, such as `2 connections`; empty if the protocol sets them.
    pub(crate) fn describe_connections(&self) -> String {
        let streams = match self.load.streams {
            ANY_STREAMS => String::new(),
            streams => format!(" × {}", counted(streams.into(), "stream")),
        };
        match (self.sets_connections, streams) {
            (false, streams) if streams.is_empty() => String::new(),
            (false, streams) => format!(", connections as needed{streams}"),
            (true, streams) => {
                format!(", on {}{streams}", counted(self.load.connections.into(), "connection"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_second_of_a_script_counts() {
        let entry = |ms: u64| ScriptEntry { at_ns: ms * 1_000_000, ..ScriptEntry::default() };
        let script = |entries| Script {
            load: LoopLoad::new("/"),
            sets_connections: false,
            title: String::new(),
            recorded_over: None,
            replay: Replay::Schedule,
            speed: Speed::ONE,
            entries,
            body_bytes: 0,
            share: Share::WHOLE,
            queue_limit: 1,
        };
        let all = script([0, 500, 999, 1000, 1400, 5000].map(entry).into());
        assert_eq!((all.busiest_second(), script(Vec::new()).busiest_second()), (4, 0));
    }

    #[test]
    fn speeds_divide_times() {
        assert_eq!("10".parse::<Speed>().unwrap().of_ns(34_000), 3400);
        assert_eq!("0.5".parse::<Speed>().unwrap().of_ns(7), 14);
        assert_eq!(Speed::ONE.of_ns(u64::MAX), u64::MAX);
        assert_eq!(Speed(1).of_ns(u64::MAX), u64::MAX);
        assert_eq!(Speed(2500).to_string(), "2.5");
        for text in ["0", "-1", "1001", "nan", "inf", "0.0001", "x"] {
            let error = text.parse::<Speed>().unwrap_err();
            assert!(error.contains("is not a") && error.contains("; write "), "{error}");
        }
    }
}
