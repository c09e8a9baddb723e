//! What the load does to processes, cores, sockets and interfaces: the quantities that the monitor reads, and
//! its rows.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::named;
use crate::units::NANOS_PER_S;

mod quantities;

pub use quantities::{Counter, Nature, Origin, QUANTITIES, Quantity, QuantityInfo};

/// One quantity of one subject at one time.
///
/// All readings of a round have the same stamp.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// When the round began, in nanoseconds of the run's clock.
    pub at_ns: u64,
    /// What it is about.
    pub subject: Subject,
    /// What was read.
    pub quantity: Quantity,
    /// The value, in the quantity's unit; a counter's since the run's begin.
    pub value: u64,
}

/// What a reading is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Subject {
    /// The node that it belongs to; `None` for the tool's own process and its threads, and for the whole
    /// machine.
    pub node: Option<Name>,
    /// What it is.
    pub kind: SubjectKind,
    /// Such as `nginx: worker process`, `emulator`, `eth0`.
    pub name: Name,
    /// The number of the process or thread as the tool's PID namespace counts, or of the core; 0 for all
    /// else.
    pub id: u64,
}

named! { "a kind of subject";
    /// The kinds of subject.
    #[derive(Default)]
    pub enum SubjectKind {
        /// A process.
        #[default]
        Process = "process",
        /// A thread of a process that has several.
        Thread = "thread",
        /// A core of the machine.
        Core = "core",
        /// The sockets of a network namespace.
        Sockets = "sockets",
        /// A network interface.
        Interface = "interface",
        /// The transport protocols of a network namespace.
        Protocols = "protocols",
    }
}

/// A name that many rows share.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name(text.into())
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        String::deserialize(deserializer).map(|text| Name(text.into()))
    }
}

/// How often the monitor reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorRate {
    /// Never.
    Off,
    /// Times per second, [`MonitorRate::HERTZ`]; and at the start and end of a run in any case.
    Hertz(u8),
}

impl MonitorRate {
    /// The rates that can be had.
    pub const HERTZ: std::ops::RangeInclusive<u8> = 1..=10;

    /// From one round to the next; `None` where there are none.
    pub const fn period_ns(self) -> Option<u64> {
        match self {
            MonitorRate::Hertz(hertz) if hertz > 0 => Some(NANOS_PER_S / hertz as u64),
            MonitorRate::Off | MonitorRate::Hertz(_) => None,
        }
    }
}

impl Default for MonitorRate {
    fn default() -> MonitorRate {
        MonitorRate::Hertz(2)
    }
}

impl fmt::Display for MonitorRate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MonitorRate::Off => formatter.write_str("off"),
            MonitorRate::Hertz(hertz) => write!(formatter, "{hertz}Hz"),
        }
    }
}

impl FromStr for MonitorRate {
    type Err = String;

    fn from_str(text: &str) -> Result<MonitorRate, String> {
        let trimmed = text.trim();
        if trimmed == "off" {
            return Ok(MonitorRate::Off);
        }
        let hertz = trimmed.strip_suffix("Hz").and_then(|number| number.trim().parse().ok());
        hertz.filter(|hertz| MonitorRate::HERTZ.contains(hertz)).map(MonitorRate::Hertz).ok_or_else(|| {
            format!("`{text}` is not a monitor rate; write a whole number from `1Hz` to `10Hz`, or `off`")
        })
    }
}

impl Serialize for MonitorRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MonitorRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MonitorRate, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_written_as_it_is_read() {
        for (text, rate) in
            [("off", MonitorRate::Off), ("2Hz", MonitorRate::default()), ("10Hz", MonitorRate::Hertz(10))]
        {
            assert_eq!(text.parse(), Ok(rate));
            assert_eq!(rate.to_string(), text);
            let json = serde_json::to_string(&rate).unwrap();
            assert_eq!(serde_json::from_str::<MonitorRate>(&json).unwrap(), rate);
        }
        assert_eq!(" 5 Hz ".parse(), Ok(MonitorRate::Hertz(5)));
        assert_eq!(MonitorRate::Hertz(10).period_ns(), Some(100_000_000));
        assert_eq!(MonitorRate::Off.period_ns(), None);
    }

    #[test]
    fn other_rates_are_refused() {
        for text in ["", "2", "0Hz", "11Hz", "0.5Hz", "-1Hz", "2 kHz", "300Hz", "on"] {
            let problem = text.parse::<MonitorRate>().unwrap_err();
            assert!(problem.starts_with(&format!("`{text}` is not a monitor rate; write")), "{problem}");
        }
    }
}
