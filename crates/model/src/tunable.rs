//! Tunables: the settings of servers that a study may change.

mod written;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::named::unknown;
use crate::units::{self, NANOS_PER_MS};
use crate::variant::Variant;

pub use written::KEYS;

/// A server's tunables that a study has set, by name.
pub type Settings = BTreeMap<String, Setting>;

/// The settings of a server without any.
pub static NO_SETTINGS: Settings = Settings::new();

/// The value of a tunable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// On or off.
    Flag(bool),
    /// A count; bytes where the tunable is a size, milliseconds where it is a duration.
    Number(u64),
    /// One of the tunable's choices; as written, a size or a duration with its unit.
    Text(String),
}

/// A setting of a server that a study may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// Such as `workers`.
    pub name: String,
    /// A description for people.
    pub meaning: String,
    /// What values it takes.
    pub kind: TunableKind,
    /// The value when a study sets none; `None` if the server or the template decides.
    pub default: Option<Setting>,
}

/// The values that a tunable takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunableKind {
    /// `true` or `false`.
    Flag,
    /// A whole number within these bounds.
    Count {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// A size with its unit, such as `"16KiB"`, within these bounds in bytes.
    Size {
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// A duration with its unit, such as `"75s"`, a multiple of this.
    Duration {
        /// In milliseconds.
        step_ms: u64,
    },
    /// One of these words.
    Choice(Vec<String>),
}

/// What a server has to serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contents {
    /// Its description does not say; or it is a proxy.
    #[default]
    Unknown,
    /// The files of the study.
    Files,
    /// What the built-in origin serves: the study's pages and its paths ([`crate::origin_path`]).
    Origin,
}

/// The facts about a server that a study is checked against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// The variants that it serves.
    pub variants: Vec<Variant>,
    /// The variants that it uses towards a server behind it; empty unless it is a proxy.
    pub back_variants: Vec<Variant>,
    /// Whether it requires a server behind it.
    pub needs_back: bool,
    /// What it has to serve.
    pub contents: Contents,
    /// Whether it takes live streams over RTMP.
    pub takes_feeds: bool,
    /// Its tunables.
    pub tunables: Vec<Tunable>,
}

impl Tunable {
    /// Checks a value from a study and converts it to the unit of templates.
    ///
    /// # Errors
    /// What is wrong, and what to write.
    pub fn setting(&self, written: &Setting) -> Result<Setting, String> {
        let name = &self.name;
        let wrong = || format!("`{name}` is {written}; write {}", self.kind);
        match (&self.kind, written) {
            (TunableKind::Flag, Setting::Flag(_)) => Ok(written.clone()),
            (TunableKind::Count { least, most }, Setting::Number(number)) => {
                (least..=most).contains(&number).then(|| written.clone()).ok_or_else(wrong)
            }
            (TunableKind::Size { least, most }, Setting::Text(text)) => {
                let bytes =
                    units::parse_size_bytes(text).map_err(|problem| format!("`{name}`: {problem}"))?;
                (least..=most).contains(&&bytes).then_some(Setting::Number(bytes)).ok_or_else(wrong)
            }
            (TunableKind::Duration { step_ms }, Setting::Text(text)) => {
                let ns = units::parse_duration_ns(text).map_err(|problem| format!("`{name}`: {problem}"))?;
                let is_whole = ns.checked_rem(step_ms * NANOS_PER_MS) == Some(0);
                is_whole.then_some(Setting::Number(ns / NANOS_PER_MS)).ok_or_else(wrong)
            }
            (TunableKind::Choice(choices), Setting::Text(text)) => match choices.contains(text) {
                true => Ok(written.clone()),
                false => Err(format!("`{name}`: {}", unknown(text, "a choice", choices))),
            },
            _ => Err(wrong()),
        }
    }
}

impl Tunable {
    /// A value as a study would write it.
    pub fn describe(&self, setting: &Setting) -> String {
        let units: &[(u64, &str)] = match self.kind {
            TunableKind::Size { .. } => &[(1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")],
            TunableKind::Duration { .. } => &[(1000, "s"), (1, "ms")],
            TunableKind::Flag | TunableKind::Count { .. } | TunableKind::Choice(_) => &[],
        };
        let Setting::Number(number) = setting else { return setting.to_string() };
        let unit = units.iter().find(|(size, _)| *number > 0 && number % size == 0).or(units.last());
        unit.map_or_else(|| setting.to_string(), |(size, name)| format!("\"{}{name}\"", number / size))
    }
}

impl ServerFacts {
    /// The tunable of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn tunable(&self, name: &str, server: &str) -> Result<&Tunable, String> {
        self.tunables.iter().find(|tunable| tunable.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.tunables.iter().map(|tunable| tunable.name.as_str()).collect();
            match known.is_empty() {
                true => format!("`{name}` is not a tunable; the server `{server}` has none"),
                false => unknown(name, &format!("a tunable of the server `{server}`"), &known),
            }
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Flag(flag) => write!(f, "{flag}"),
            Setting::Number(number) => write!(f, "{number}"),
            Setting::Text(text) => write!(f, "\"{text}\""),
        }
    }
}

impl fmt::Display for TunableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TunableKind::Flag => write!(f, "`true` or `false`"),
            TunableKind::Count { least, most } if *most == written::MOST_COUNT => {
                write!(f, "a whole number from {least}")
            }
            TunableKind::Count { least, most } => write!(f, "a whole number from {least} to {most}"),
            TunableKind::Size { least, most } => {
                write!(f, "a size from {least} to {most} bytes, such as \"16KiB\"")
            }
            TunableKind::Duration { step_ms: 1 } => {
                write!(f, "a duration of whole milliseconds, such as \"75s\"")
            }
            TunableKind::Duration { step_ms: 1000 } => {
                write!(f, "a duration of whole seconds, such as \"75s\"")
            }
            TunableKind::Duration { step_ms } => {
                write!(f, "a duration in steps of {step_ms} ms, such as \"{}ms\"", 3 * step_ms)
            }
            TunableKind::Choice(choices) => write!(f, "one of {}", choices.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECONDS: TunableKind = TunableKind::Duration { step_ms: 1 };

    fn tunable(kind: TunableKind) -> Tunable {
        Tunable { name: "x".to_owned(), meaning: "x".to_owned(), kind, default: None }
    }

    #[test]
    fn values_are_read_in_the_unit_of_templates() {
        let text = |text: &str| Setting::Text(text.to_owned());
        let size = tunable(TunableKind::Size { least: 512, most: 16_384 });
        assert_eq!(size.setting(&text("4KiB")), Ok(Setting::Number(4096)));
        assert_eq!(size.describe(&Setting::Number(4096)), "\"4KiB\"");
        assert_eq!(size.describe(&Setting::Number(0)), "\"0B\"");
        assert_eq!(tunable(MILLISECONDS).setting(&text("1.5s")), Ok(Setting::Number(1500)));
        assert_eq!(tunable(MILLISECONDS).describe(&Setting::Number(1500)), "\"1500ms\"");
        assert_eq!(tunable(MILLISECONDS).describe(&Setting::Number(75_000)), "\"75s\"");
        let count = tunable(TunableKind::Count { least: 1, most: 8 });
        assert_eq!(count.setting(&Setting::Number(8)), Ok(Setting::Number(8)));
        assert_eq!(tunable(TunableKind::Flag).setting(&Setting::Flag(true)), Ok(Setting::Flag(true)));
        let choice = tunable(TunableKind::Choice(vec!["on".to_owned(), "off".to_owned()]));
        assert_eq!(choice.setting(&text("off")), Ok(text("off")));
    }

    #[test]
    fn wrong_values_are_refused() {
        let text = |text: &str| Setting::Text(text.to_owned());
        let choice = TunableKind::Choice(vec!["on".to_owned(), "off".to_owned()]);
        for (kind, found, expected) in [
            (TunableKind::Flag, Setting::Number(1), "is 1; write `true` or `false`"),
            (
                TunableKind::Count { least: 1, most: 8 },
                Setting::Number(9),
                "is 9; write a whole number from 1 to 8",
            ),
            (
                TunableKind::Size { least: 1, most: 8 },
                text("9B"),
                "is \"9B\"; write a size from 1 to 8 bytes",
            ),
            (TunableKind::Size { least: 1, most: 8 }, text("9"), "`9` is not a size"),
            (MILLISECONDS, text("1us"), "write a duration of whole milliseconds"),
            (
                TunableKind::Duration { step_ms: 1000 },
                text("1500ms"),
                "is \"1500ms\"; write a duration of whole seconds",
            ),
            (TunableKind::Duration { step_ms: 250 }, text("300ms"), "write a duration in steps of 250 ms"),
            (MILLISECONDS, Setting::Number(5), "is 5; write a duration"),
            (choice, text("onn"), "`onn` is not a choice; the choices are on, off"),
        ] {
            let problem = tunable(kind).setting(&found).unwrap_err();
            assert!(problem.starts_with("`x`") && problem.contains(expected), "{problem}");
        }
    }
}
