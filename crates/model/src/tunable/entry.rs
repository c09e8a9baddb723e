//! `[[tunable]]` of a server's description for serde, until descriptions are read by `model::reader`.

use serde::Deserialize;
use toml::Spanned;

use super::written::MOST_COUNT;
use super::{Setting, Tunable, TunableKind};
use crate::error::{InputError, Source};
use crate::named::unknown;
use crate::units::{self, NANOS_PER_MS};

const KINDS: &[&str] = &["flag", "count", "size", "duration", "choice"];

/// A tunable as a server's description writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunableEntry {
    name: Spanned<String>,
    meaning: String,
    kind: Spanned<String>,
    least: Option<Spanned<Setting>>,
    most: Option<Spanned<Setting>>,
    choices: Option<Spanned<Vec<String>>>,
    step: Option<Spanned<String>>,
    default: Option<Spanned<Setting>>,
}

impl TunableEntry {
    /// Every entry, each name once.
    ///
    /// # Errors
    /// The place of an unknown kind, of a bound or default that does not fit, or of a name that is there
    /// twice.
    pub fn resolve_all(entries: &[TunableEntry], source: Source<'_>) -> Result<Vec<Tunable>, InputError> {
        let mut tunables: Vec<Tunable> = Vec::new();
        for entry in entries {
            let tunable = entry.resolve(source)?;
            if tunables.iter().any(|known| known.name == tunable.name) {
                let problem = format!("found the tunable `{}` twice, expected it once", tunable.name);
                return Err(source.error(entry.name.span(), problem));
            }
            tunables.push(tunable);
        }
        Ok(tunables)
    }

    fn resolve(&self, source: Source<'_>) -> Result<Tunable, InputError> {
        let name = self.name.get_ref();
        let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || !name.chars().all(is_letter) {
            let problem = format!("found `{name}`, expected small letters, digits and `_`");
            return Err(source.error(self.name.span(), problem));
        }
        let mut tunable = Tunable {
            name: name.clone(),
            meaning: self.meaning.clone(),
            kind: self.kind(source)?,
            default: None,
        };
        if let Some(default) = &self.default {
            let setting = tunable.setting(default.get_ref());
            tunable.default = Some(setting.map_err(|problem| source.error(default.span(), problem))?);
        }
        Ok(tunable)
    }

    fn kind(&self, source: Source<'_>) -> Result<TunableKind, InputError> {
        let kind = self.kind.get_ref().as_str();
        let stray = |key: Option<std::ops::Range<usize>>, what: &str| match key {
            Some(span) => Err(source.error(span, format!("found {what} of a `{kind}`, expected none"))),
            None => Ok(()),
        };
        let bounded = matches!(kind, "count" | "size");
        if !bounded && KINDS.contains(&kind) {
            let bound = self.least.as_ref().or(self.most.as_ref());
            stray(bound.map(Spanned::span), "a bound")?;
        }
        if kind != "choice" && KINDS.contains(&kind) {
            stray(self.choices.as_ref().map(Spanned::span), "choices")?;
        }
        if kind != "duration" && KINDS.contains(&kind) {
            stray(self.step.as_ref().map(Spanned::span), "a step")?;
        }
        Ok(match kind {
            "flag" => TunableKind::Flag,
            "duration" => TunableKind::Duration { step_ms: self.step_ms(source)? },
            "count" => {
                let (least, most) = self.bounds(source, |setting| match setting {
                    Setting::Number(number) => Ok(*number),
                    other => Err(format!("found {other}, expected a whole number")),
                })?;
                TunableKind::Count { least, most }
            }
            "size" => {
                let (least, most) = self.bounds(source, |setting| match setting {
                    Setting::Text(text) => units::parse_size_bytes(text),
                    other => Err(format!("found {other}, expected a size such as \"16KiB\"")),
                })?;
                TunableKind::Size { least, most }
            }
            "choice" => match &self.choices {
                Some(choices) if !choices.get_ref().is_empty() => {
                    TunableKind::Choice(choices.get_ref().clone())
                }
                _ => {
                    let problem =
                        "found a `choice` without `choices`, expected such as `choices = [\"on\", \"off\"]`";
                    return Err(source.error(self.kind.span(), problem));
                }
            },
            other => {
                return Err(source.error(
                    self.kind.span(),
                    format!("`kind`: {}", unknown(other, "a kind of tunable", KINDS)),
                ));
            }
        })
    }

    /// The step of a duration, in milliseconds.
    fn step_ms(&self, source: Source<'_>) -> Result<u64, InputError> {
        let Some(step) = &self.step else { return Ok(1) };
        let ns =
            units::parse_duration_ns(step.get_ref()).map_err(|problem| source.error(step.span(), problem))?;
        if ns == 0 || ns % NANOS_PER_MS != 0 {
            let problem = format!("found `{}`, expected whole milliseconds such as `1s`", step.get_ref());
            return Err(source.error(step.span(), problem));
        }
        Ok(ns / NANOS_PER_MS)
    }

    fn bounds(
        &self,
        source: Source<'_>,
        read: impl Fn(&Setting) -> Result<u64, String>,
    ) -> Result<(u64, u64), InputError> {
        let bound = |written: &Option<Spanned<Setting>>, otherwise: u64| match written {
            Some(written) => read(written.get_ref()).map_err(|problem| source.error(written.span(), problem)),
            None => Ok(otherwise),
        };
        let (least, most) = (bound(&self.least, 0)?, bound(&self.most, MOST_COUNT)?);
        match (least <= most, &self.most) {
            (false, Some(written)) => {
                let problem = format!("found {most} as the most and {least} as the least, expected more");
                Err(source.error(written.span(), problem))
            }
            _ => Ok((least, most)),
        }
    }
}
