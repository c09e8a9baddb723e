//! When the requests of an open loop are due, as written in an assignment.

use serde::{Deserialize, Serialize};

use crate::named;
use crate::number::{float, nearest};
use crate::units;

/// When requests are due: rates, one stage after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// The stages; the last may be without end.
    pub stages: Vec<Stage>,
    /// How requests are spread at a given rate.
    pub arrivals: Arrivals,
    /// Which part of the requests is this client's.
    #[serde(default, skip_serializing_if = "Share::is_whole")]
    pub share: Share,
}

/// A stretch of time with a rate that is constant or changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// The rate at its beginning.
    pub from: Rate,
    /// The rate at its end.
    pub to: Rate,
    /// How long it lasts; without end where `None`, and then `from` and `to` are equal.
    pub duration_ns: Option<u64>,
}

/// A rate in requests per 1000 seconds, so that slow rates are whole numbers too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(pub u64);

named! { "an arrival process";
    /// How requests are spread at a given rate.
    #[derive(Default)]
    pub enum Arrivals {
        /// At equal distances.
        #[default]
        Even = "even",
        /// As a Poisson process: independent, exponentially distributed distances.
        Poisson = "poisson",
    }
}

/// A client's part of a schedule that several clients share: every `of`-th request, beginning with number
/// `index`.
///
/// The clients' requests together are the schedule, whatever their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// This client's number.
    pub index: u32,
    /// How many clients there are; at least 1.
    pub of: u32,
}

impl Share {
    /// All of it.
    pub const WHOLE: Share = Share { index: 0, of: 1 };

    pub(crate) fn is_whole(&self) -> bool {
        *self == Share::WHOLE
    }
}

impl Default for Share {
    fn default() -> Self {
        Share::WHOLE
    }
}

impl Schedule {
    /// Its rate, where that is the same from beginning to end.
    pub fn constant_rate(&self) -> Option<Rate> {
        let first = self.stages.first()?.from;
        self.stages.iter().all(|stage| stage.from == first && stage.to == first).then_some(first)
    }

    /// How long it lasts, `requests` at most; `None` where it has no end.
    pub fn lasts_ns(&self, requests: Option<u64>) -> Option<u64> {
        let whole: Option<u64> =
            self.stages.iter().try_fold(0_u64, |sum, stage| Some(sum.saturating_add(stage.duration_ns?)));
        let slowest = self.stages.iter().flat_map(|stage| [stage.from, stage.to]).min();
        let by_number = requests.zip(slowest.filter(|rate| rate.0 > 0)).map(|(requests, rate)| {
            let ns = u128::from(requests) * 1_000_000_000_000 / u128::from(rate.0);
            u64::try_from(ns).unwrap_or(u64::MAX)
        });
        [whole, by_number].into_iter().flatten().min()
    }

    /// A description of the schedule.
    pub fn describe(&self) -> String {
        let stage = |stage: &Stage| match stage.from == stage.to {
            true => format!("{}", stage.from.per_second()),
            false => format!("{} to {}", stage.from.per_second(), stage.to.per_second()),
        };
        let spread = match self.arrivals {
            Arrivals::Even => "evenly spread",
            Arrivals::Poisson => "as a Poisson process",
        };
        let rates: Vec<String> = self.stages.iter().map(stage).collect();
        format!("{} requests/s {spread}", rates.join(", then "))
    }
}

impl Stage {
    /// Its rate after a time, at most its end.
    pub fn rate_at(&self, ns: u64) -> Rate {
        let Some(duration_ns) = self.duration_ns.filter(|duration_ns| *duration_ns > ns) else {
            return self.to;
        };
        let part = |change: u64, ns: u64| {
            u64::try_from(u128::from(change) * u128::from(ns) / u128::from(duration_ns)).unwrap_or(u64::MAX)
        };
        match self.to.0.checked_sub(self.from.0) {
            Some(rise) => Rate(self.from.0 + part(rise, ns)),
            None => Rate(self.from.0 - part(self.from.0 - self.to.0, ns)),
        }
    }
}

impl Rate {
    /// Requests per second.
    pub fn per_second(self) -> f64 {
        float(self.0) / 1000.0
    }
}

impl std::str::FromStr for Rate {
    type Err = String;

    /// Reads requests per second, such as `1000`, `0.5` or `20k`.
    fn from_str(text: &str) -> Result<Rate, String> {
        let fault =
            || format!("`{text}` is not a rate; write requests per second, such as `1000`, `0.5` or `20k`");
        let (number, factor) = match text.strip_suffix(['k', 'K']) {
            Some(number) => (number, 1_000_000.0),
            None => (text.strip_suffix("/s").unwrap_or(text), 1000.0),
        };
        let value: f64 = number.trim().parse().map_err(|_| fault())?;
        let scaled = (value * factor).round();
        if !(1.0..=MOST_PER_1000_S).contains(&scaled) {
            return Err(format!("`{text}` is out of bounds; write 0.001 to 100000k requests per second"));
        }
        Ok(Rate(nearest(scaled)))
    }
}

impl std::str::FromStr for Stage {
    type Err = String;

    /// Reads a stage such as `10s@100`, which holds a rate, or `10s@100-1000`, which changes it.
    fn from_str(text: &str) -> Result<Stage, String> {
        let fault = || format!("`{text}` is not a stage; write one such as `10s@100` or `10s@100-1000`");
        let (time, rates) = text.split_once('@').ok_or_else(fault)?;
        let (from, to) = rates.split_once('-').unwrap_or((rates, rates));
        let rate = |text: &str| if text.trim() == "0" { Ok(Rate(0)) } else { text.trim().parse() };
        let duration_ns = units::parse_duration_ns(time)?;
        if duration_ns == 0 {
            return Err(format!("`{time}` is too short; write a duration above 0"));
        }
        Ok(Stage { from: rate(from)?, to: rate(to)?, duration_ns: Some(duration_ns) })
    }
}

/// 100 million requests per second: more than any machine sends.
const MOST_PER_1000_S: f64 = 1e11;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_read() {
        let stage =
            |from, to, s: u64| Stage { from: Rate(from), to: Rate(to), duration_ns: Some(s * 1_000_000_000) };
        assert_eq!("10s@0-1000".parse(), Ok(stage(0, 1_000_000, 10)));
        assert_eq!("1min@0.5".parse(), Ok(stage(500, 500, 60)));
        for text in ["10s", "@5", "0s@5", "10s@x", "10s@5-"] {
            let error = text.parse::<Stage>().unwrap_err();
            assert!(error.contains(" is ") && error.contains("; write "), "{error}");
        }
    }

    #[test]
    fn a_stage_has_its_rate_at_every_time() {
        let stage = |from, to, duration_ns| Stage { from: Rate(from), to: Rate(to), duration_ns };
        let at = |stage: Stage| [0, 25, 99, 100, 200].map(|ns| stage.rate_at(ns).0);
        assert_eq!(at(stage(100, 500, Some(100))), [100, 200, 496, 500, 500]);
        assert_eq!(at(stage(500, 100, Some(100))), [500, 400, 104, 100, 100]);
        assert_eq!(at(stage(7, 7, None)), [7; 5]);
    }

    #[test]
    fn rates_are_read() {
        assert_eq!("1000".parse(), Ok(Rate(1_000_000)));
        assert_eq!("0.5/s".parse(), Ok(Rate(500)));
        assert_eq!("20k".parse(), Ok(Rate(20_000_000)));
        for text in ["", "0", "-1", "x", "1e30", "nan", "k"] {
            let error = text.parse::<Rate>().unwrap_err();
            assert!(error.starts_with(&format!("`{text}` is ")) && error.contains("; write "), "{error}");
        }
    }
}
