//! `[[tunable]]` of a server's description, as written.

use serde::Deserialize;
use toml::Spanned;

use super::{Setting, Tunable, TunableKind};
use crate::error::{InputError, Source};
use crate::nearest::unknown;
use crate::units::{self, NANOS_PER_MS};

const KINDS: &[&str] = &["flag", "count", "size", "duration", "choice"];
/// The most of a count or a size where a description names none.
pub(super) const MOST_COUNT: u64 = u32::MAX as u64;

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
    /// The place of an unknown kind, of a bound or default that does not fit, or of a name that is there twice.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct File {
        tunable: Vec<TunableEntry>,
    }

    fn read(text: &str) -> Result<Vec<Tunable>, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let source = Source { file: "server.toml", text };
        TunableEntry::resolve_all(&file.tunable, source).map_err(|error| error.to_string())
    }

    const WORKERS: &str =
        "[[tunable]]\nname = \"workers\"\nmeaning = \"processes\"\nkind = \"count\"\nleast = 1\nmost = 8\n";

    #[test]
    fn kinds_bounds_and_defaults_are_read() {
        let record = "[[tunable]]\nname = \"tls_record\"\nmeaning = \"x\"\nkind = \"size\"\nmost = \"16KiB\"\ndefault = \"4KiB\"\n";
        let tunables = read(&format!("{WORKERS}{record}")).unwrap();
        assert_eq!(tunables[0].kind, TunableKind::Count { least: 1, most: 8 });
        assert_eq!(tunables[1].kind, TunableKind::Size { least: 0, most: 16_384 });
        assert_eq!(tunables[1].default, Some(Setting::Number(4096)));
    }

    #[test]
    fn a_duration_may_have_a_step() {
        let idle = "[[tunable]]\nname = \"idle\"\nmeaning = \"x\"\nkind = \"duration\"\nstep = \"1s\"\n";
        assert_eq!(read(idle).unwrap()[0].kind, TunableKind::Duration { step_ms: 1000 });
        for (found, instead, expected) in [
            ("\"1s\"", "\"0s\"", "server.toml:5:8: found `0s`, expected whole milliseconds"),
            ("\"1s\"", "\"1us\"", "server.toml:5:8: found `1us`"),
            ("\"duration\"", "\"flag\"", "server.toml:5:8: found a step of a `flag`, expected none"),
            ("step = \"1s\"", "step = \"1s\"\ndefault = \"1.5s\"", "expected a duration of whole seconds"),
        ] {
            let error = read(&idle.replacen(found, instead, 1)).unwrap_err();
            assert!(error.contains(expected), "{error} should say {expected}");
        }
    }

    #[test]
    fn faults_name_the_place() {
        for (found, instead, expected) in [
            (
                "\"count\"",
                "\"counts\"",
                "server.toml:4:8: `kind`: found `counts`, expected a kind of tunable",
            ),
            ("least = 1", "least = \"1kB\"", "server.toml:5:9: found \"1kB\", expected a whole number"),
            ("most = 8", "most = 0", "server.toml:6:8: found 0 as the most and 1 as the least"),
            (
                "most = 8",
                "default = 0",
                "server.toml:6:11: `workers`: found 0, expected a whole number from 1",
            ),
            ("\"count\"", "\"flag\"", "server.toml:5:9: found a bound of a `flag`"),
            (
                "\"count\"\nleast = 1\nmost = 8",
                "\"choice\"",
                "server.toml:4:8: found a `choice` without `choices`",
            ),
            ("\"workers\"", "\"work-ers\"", "server.toml:2:8: found `work-ers`"),
        ] {
            assert!(WORKERS.contains(found), "{found}");
            let error = read(&WORKERS.replacen(found, instead, 1)).unwrap_err();
            assert!(error.contains(expected), "{error} should say {expected}");
        }
        assert!(read(&WORKERS.repeat(2)).unwrap_err().contains("found the tunable `workers` twice"));
    }
}
