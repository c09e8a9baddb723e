//! `[[tunable]]` of a server's description, as written.

use toml::de::DeValue;

use super::{Setting, Tunable, TunableKind};
use crate::error::InputError;
use crate::keys;
use crate::named::unknown;
use crate::reader::{Key, Placed, Table};
use crate::units::{self, NANOS_PER_MS};

/// The keys of `[[tunable]]`.
pub const KEYS: &[Key] = keys! {
    "name", "text", "required", r#""workers""#, "The name: small letters, digits and `_`, each name once.";
    "meaning", "text", "required", r#""worker processes""#, "A description for people.";
    "kind", "text", "required", r#""size""#,
        "`flag` (true or false), `count` (a whole number), `size` (`\"16KiB\"`), `duration` (`\"75s\"`) or `choice`.";
    "least", "whole number or size", "0", r#""512B""#, "The least value of a count or a size.";
    "most", "whole number or size", "4294967295", r#""16KiB""#, "The largest value of a count or a size.";
    "step", "duration", "`\"1ms\"`", r#""1s""#, "A duration is a multiple of it.";
    "choices", "list of texts", "required for a choice", r#"["on", "off"]"#, "The values of a choice.";
    "default", "as the kind", "the server decides", r#""16KiB""#, "The value when a study sets none.";
};
const KINDS: &[&str] = &["flag", "count", "size", "duration", "choice"];
/// The largest value of a count or a size that has no bound.
pub(super) const MOST_COUNT: u64 = u32::MAX as u64;

impl Setting {
    /// Reads a key: a flag, a whole number or a text.
    ///
    /// # Errors
    /// The value is of another type.
    pub fn read(table: &Table<'_>, key: &str) -> Result<Option<Placed<Setting>>, InputError> {
        table.value(key, "`true`, `false`, a whole number from 0, or a string", |value| match value {
            DeValue::Boolean(flag) => Some(Setting::Flag(*flag)),
            DeValue::String(text) => Some(Setting::Text(text.to_string())),
            DeValue::Integer(digits) => {
                u64::from_str_radix(digits.as_str(), digits.radix()).ok().map(Setting::Number)
            }
            _ => None,
        })
    }
}

impl Tunable {
    /// Reads every `[[tunable]]` of a server's description.
    ///
    /// # Errors
    /// The place of an unknown key or kind, of a wrong bound or default, or of a name that appears twice.
    pub fn read_all(root: &Table<'_>) -> Result<Vec<Tunable>, InputError> {
        let mut tunables: Vec<Tunable> = Vec::new();
        for table in root.tables("tunable")? {
            let table = table.with_keys(KEYS)?;
            let name = table.required("name", Table::string)?;
            let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            if name.value.is_empty() || !name.value.chars().all(is_letter) {
                let problem = format!("`{}` is not a name; write small letters, digits and `_`", name.value);
                return Err(name.error(problem));
            }
            if tunables.iter().any(|known| known.name == name.value) {
                return Err(name.error(format!("the tunable `{}` appears twice; remove one", name.value)));
            }
            let meaning = table.required("meaning", Table::string)?.value;
            let mut tunable = Tunable { name: name.value, meaning, kind: read_kind(&table)?, default: None };
            if let Some(default) = Setting::read(&table, "default")? {
                tunable.default = Some(default.map(|setting| tunable.setting(&setting))?.value);
            }
            tunables.push(tunable);
        }
        Ok(tunables)
    }
}

fn read_kind(table: &Table<'_>) -> Result<TunableKind, InputError> {
    let kind = table.required("kind", Table::string)?;
    let own: &[&str] = match kind.value.as_str() {
        "count" | "size" => &["least", "most"],
        "choice" => &["choices"],
        "duration" => &["step"],
        "flag" => &[],
        other => return Err(kind.error(format!("`kind`: {}", unknown(other, "a kind of tunable", KINDS)))),
    };
    let of_kinds = |key: &str| ["least", "most", "choices", "step"].contains(&key) && !own.contains(&key);
    if let Some(stray) = table.keys().find(|key| of_kinds(&key.value)) {
        return Err(stray.error(format!("a {} has no `{}`; remove it", kind.value, stray.value)));
    }
    Ok(match kind.value.as_str() {
        "flag" => TunableKind::Flag,
        "duration" => {
            let step = table.parsed("step", units::parse_whole_ms)?;
            TunableKind::Duration { step_ms: step.map_or(1, |step| step.value / NANOS_PER_MS) }
        }
        "count" => {
            let (least, most) = read_bounds(table, |setting| match setting {
                Setting::Number(number) => Ok(number),
                other => Err(format!("{other} is not a count; write a whole number")),
            })?;
            TunableKind::Count { least, most }
        }
        "size" => {
            let (least, most) = read_bounds(table, |setting| match setting {
                Setting::Text(text) => units::parse_size_bytes(&text),
                other => Err(format!("{other} is not a size; write one such as \"16KiB\"")),
            })?;
            TunableKind::Size { least, most }
        }
        _ => {
            let choices = table.required("choices", Table::some_strings)?.value;
            TunableKind::Choice(choices.into_iter().map(|choice| choice.value).collect())
        }
    })
}

fn read_bounds(
    table: &Table<'_>,
    read: impl Fn(Setting) -> Result<u64, String>,
) -> Result<(u64, u64), InputError> {
    let bound = |key| Setting::read(table, key)?.map(|setting| setting.map(&read)).transpose();
    let least = bound("least")?.map_or(0, |least| least.value);
    match bound("most")? {
        Some(most) if most.value < least => {
            Err(most.error(format!("`most` is {}, below `least`, which is {least}; write more", most.value)))
        }
        most => Ok((least, most.map_or(MOST_COUNT, |most| most.value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Tunable>, String> {
        const ROOT: &[Key] = keys! { "tunable", "tables", "none", "", "x"; };
        let source = crate::error::Source { file: "server.toml", text };
        let tunables = crate::reader::read_file(source, "the server", ROOT, Tunable::read_all);
        tunables.map_err(|error| error.to_string())
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
            (
                "\"1s\"",
                "\"0s\"",
                "server.toml:5:8: `step`: `0s` is not a step; write whole milliseconds, at least 1ms",
            ),
            ("\"1s\"", "\"1us\"", "server.toml:5:8: `step`: `1us` is not a step"),
            ("\"duration\"", "\"flag\"", "server.toml:5:1: a flag has no `step`"),
            ("step = \"1s\"", "step = \"1s\"\ndefault = \"1.5s\"", "write a duration of whole seconds"),
        ] {
            let error = read(&idle.replacen(found, instead, 1)).unwrap_err();
            assert!(error.contains(expected), "{error} should contain {expected}");
        }
    }

    #[test]
    fn faults_name_the_place() {
        for (found, instead, expected) in [
            ("\"count\"", "\"counts\"", "server.toml:4:8: `kind`: `counts` is not a kind of tunable"),
            ("least = 1", "least = \"1kB\"", "server.toml:5:9: \"1kB\" is not a count; write a whole number"),
            ("most = 8", "most = 0", "server.toml:6:8: `most` is 0, below `least`, which is 1"),
            ("most = 8", "default = 0", "server.toml:6:11: `workers` is 0; write a whole number from 1"),
            ("\"count\"", "\"flag\"", "server.toml:5:1: a flag has no `least`"),
            ("\"count\"\nleast = 1\nmost = 8", "\"choice\"", "server.toml:1:1: [[tunable]] has no `choices`"),
            ("\"workers\"", "\"work-ers\"", "server.toml:2:8: `work-ers` is not a name"),
        ] {
            assert!(WORKERS.contains(found), "{found}");
            let error = read(&WORKERS.replacen(found, instead, 1)).unwrap_err();
            assert!(error.contains(expected), "{error} should contain {expected}");
        }
        assert!(read(&WORKERS.repeat(2)).unwrap_err().contains("the tunable `workers` appears twice"));
    }
}
