//! A client's description: `client.toml` as written, and resolved.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use model::error::Source;
use model::units::{NANOS_PER_MS, format_duration_ns};
use model::{HttpVersion, InputError, Variant};
use workload::formats::clients::Format;

use super::CLIENT_FILE;
use crate::description::{ConfigFile, Files};
use crate::program::{Asked, Wanted};
use crate::servers::probe::Support;
use crate::template::is_at_least;
use model::workload::{ClosedLoop, Workload};

/// A client that can be probed and run, as described by its folder.
#[derive(Clone, Debug)]
pub struct Client {
    /// The folder's name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What it speaks.
    pub variants: Vec<ClientVariant>,
    /// Where the program may be, and how it says its version.
    pub(crate) wanted: Wanted,
    /// What its output is read as.
    pub(crate) output: Format,
    /// The event at which its times begin, for people; `None` where it says no times.
    pub(crate) begins: Option<String>,
    pub(crate) can: Can,
    pub(crate) files: Vec<ConfigFile>,
    pub(crate) command: Vec<String>,
    /// The file that it writes, which is read together with its output.
    pub(crate) writes: Option<String>,
    /// The folder, for errors.
    pub(crate) folder: String,
}

/// A variant that a client may speak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientVariant {
    /// The variant.
    pub variant: Variant,
    /// What the version command must say for the variant to exist.
    pub requires: Option<String>,
    /// The first version that does it well.
    pub since: Option<String>,
    /// The words that ask for it.
    pub(crate) arguments: Vec<String>,
}

/// Which closed loops a client can do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Can {
    /// Connections at most; any number where `None`.
    pub(crate) connections: Option<u32>,
    /// Whether connections of HTTP/2 and HTTP/3 can have several requests in flight.
    pub(crate) streams: bool,
    /// It can end after a number of requests, at most so many.
    pub(crate) requests: Option<u64>,
    /// It counts the requests of each connection, and not of all.
    pub(crate) requests_of_each: bool,
    /// It can end after a time, a multiple of this.
    pub(crate) duration_ns: Option<u64>,
    /// Of a shorter time it makes nothing that could be believed.
    pub(crate) shortest_ns: u64,
    /// It can leave out a warm-up, a multiple of this.
    pub(crate) warmup_ns: Option<u64>,
}

/// A client as it is on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundClient {
    /// The program.
    pub program: PathBuf,
    /// The version that it says it is.
    pub version: String,
    /// Every variant of the description, and whether it exists here.
    pub variants: Vec<(Variant, Support)>,
    /// All that the version command said.
    pub(crate) build: String,
}

/// What was found, by the description and the tool; a program does not change while the tool runs.
static KNOWN: Mutex<BTreeMap<(String, PathBuf), FoundClient>> = Mutex::new(BTreeMap::new());

impl Client {
    /// Reads and resolves a client's folder.
    pub(crate) fn parse(name: &str, files: Files) -> Result<Client, InputError> {
        let file = format!("{}/{CLIENT_FILE}", files.folder);
        let text = files.texts.get(CLIENT_FILE).map_or("", String::as_str);
        let source = Source { file: &file, text };
        let written: written::Client = toml::from_str(text).map_err(|error| source.toml_error(&error))?;
        written.resolve(name, &files, source)
    }

    /// Looks for the program and asks its version; asked once per process. `tool` is what `{{self}}` means.
    ///
    /// # Errors
    /// It is not installed, with what would install it, or it says no version.
    pub fn probe(&self, tool: &Path) -> Result<FoundClient> {
        let key = (self.folder.clone(), tool.to_owned());
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&key) {
            return Ok(found.clone());
        }
        let Asked { program, version, said, .. } = self.wanted.ask(&self.file(), tool)?;
        let support = |entry: &ClientVariant| match &entry.requires {
            _ if entry.since.as_ref().is_some_and(|since| !is_at_least(&version, since)) => {
                Support::Unsupported(format!(
                    "{} {version} at {} does not do {} well, expected {} or later",
                    self.name,
                    program.display(),
                    entry.variant,
                    entry.since.as_deref().unwrap_or_default()
                ))
            }
            Some(text) if !said.contains(text) => Support::Unsupported(format!(
                "{} {version} at {} was built without {} (what it says of itself has no `{text}`)",
                self.name,
                program.display(),
                entry.variant
            )),
            _ => Support::Supported,
        };
        let variants = self.variants.iter().map(|entry| (entry.variant, support(entry))).collect();
        let found = FoundClient { program, version, variants, build: said };
        known().insert(key, found.clone());
        Ok(found)
    }

    /// Why this client cannot do a workload over a variant, on whatever machine, if it cannot.
    pub fn refuses(&self, variant: Variant, workload: &Workload) -> Option<String> {
        let name = &self.name;
        if self.variant(variant).is_none() {
            return Some(format!("{name} speaks no {variant}"));
        }
        let Workload::Closed(ClosedLoop { load, duration_ns }) = workload else {
            return Some(format!(
                "{name} runs closed loops only, not a workload of kind `{}`",
                workload.kind().name()
            ));
        };
        let multiplexes = variant.http() != HttpVersion::Http11;
        let can = &self.can;
        let refused = (load.paths.len() > 1).then(|| "asks for one path alone".to_owned());
        let refused = refused.or_else(|| can.refuses_shape(load.connections, load.streams, multiplexes));
        let refused = refused.or_else(|| can.refuses_end(load.requests, *duration_ns, load.connections));
        let refused = refused.or_else(|| can.refuses_warmup(load.warmup_ns, *duration_ns));
        refused.map(|reason| format!("{name} {reason}"))
    }

    /// The description of a variant, where the client has it.
    pub(crate) fn variant(&self, variant: Variant) -> Option<&ClientVariant> {
        self.variants.iter().find(|entry| entry.variant == variant)
    }

    /// The description's file, for errors.
    pub(crate) fn file(&self) -> String {
        format!("{}/{CLIENT_FILE}", self.folder)
    }
}

impl Can {
    fn refuses_shape(&self, connections: u32, streams: u32, multiplexes: bool) -> Option<String> {
        match self.connections {
            Some(most) if connections > most => {
                let those =
                    if most == 1 { "one connection".to_owned() } else { format!("{most} connections") };
                Some(format!("has {those} at most, and the workload {connections}"))
            }
            _ if multiplexes && streams > 1 && !self.streams => {
                Some(format!("has one request in flight on a connection, and the workload {streams}"))
            }
            _ => None,
        }
    }

    fn refuses_end(
        &self,
        requests: Option<u64>,
        duration_ns: Option<u64>,
        connections: u32,
    ) -> Option<String> {
        match (requests, duration_ns) {
            (Some(_), Some(_)) => Some(
                "ends after a number of requests or after a time, and not after what comes first".to_owned(),
            ),
            (Some(requests), None) => match self.requests {
                None => {
                    Some("cannot end after a number of requests: give the workload a `duration`".to_owned())
                }
                Some(most) if requests > most => {
                    Some(format!("does {most} requests at most, and not {requests}"))
                }
                Some(_) if self.requests_of_each && requests % u64::from(connections.max(1)) != 0 => {
                    Some(format!(
                        "counts the requests of each connection, and {requests} are no multiple of {connections}"
                    ))
                }
                Some(_) => None,
            },
            (None, Some(duration_ns)) => match self.duration_ns {
                None => Some("cannot end after a time: give the workload a number of `requests`".to_owned()),
                Some(_) if duration_ns < self.shortest_ns => {
                    let (least, found) = (shown(self.shortest_ns), shown(duration_ns));
                    Some(format!("needs {least} at least, and not {found}"))
                }
                Some(step_ns) => not_a_multiple(duration_ns, step_ns),
            },
            (None, None) => Some("needs an end".to_owned()),
        }
    }

    fn refuses_warmup(&self, warmup_ns: u64, duration_ns: Option<u64>) -> Option<String> {
        match self.warmup_ns {
            _ if warmup_ns == 0 => None,
            Some(step_ns) if duration_ns.is_some() => not_a_multiple(warmup_ns, step_ns),
            Some(_) => Some("has a warm-up only where a time ends the workload".to_owned()),
            None => Some("has no warm-up: leave `warmup` out of the workload".to_owned()),
        }
    }
}

fn not_a_multiple(ns: u64, step_ns: u64) -> Option<String> {
    let is_multiple = ns.checked_rem(step_ns) == Some(0);
    (!is_multiple).then(|| format!("counts time in steps of {}, and not {}", shown(step_ns), shown(ns)))
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn shown(ns: u64) -> String {
    format_duration_ns(ns as f64)
}

/// Milliseconds, of a time that is a multiple of them.
pub(crate) const fn milliseconds(ns: u64) -> u64 {
    ns / NANOS_PER_MS
}

/// The file as written.
mod written {
    use model::error::Source;
    use model::units::NANOS_PER_MS;
    use model::{InputError, Variant, units};
    use serde::Deserialize;
    use toml::Spanned;
    use workload::formats::clients::Format;

    use super::{Can, ClientVariant};
    use crate::clients::command::ARGUMENTS;
    use crate::description::{Files, WrittenFile, config_file, plain_name, words};
    use crate::program::Wanted;
    use crate::template;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Client {
        title: String,
        program: Spanned<Vec<Spanned<String>>>,
        install: Option<String>,
        output: Spanned<String>,
        begins: Option<String>,
        version: Version,
        #[serde(default)]
        can: WrittenCan,
        start: Start,
        #[serde(default)]
        file: Vec<WrittenFile>,
        variant: Spanned<Vec<VariantEntry>>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Version {
        command: Spanned<Vec<Spanned<String>>>,
        after: Spanned<String>,
    }

    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct WrittenCan {
        connections: Option<Spanned<u32>>,
        #[serde(default)]
        streams: bool,
        requests: Option<Spanned<u64>>,
        #[serde(default)]
        requests_of_each: bool,
        duration: Option<Spanned<String>>,
        shortest: Option<Spanned<String>>,
        warmup: Option<Spanned<String>>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Start {
        command: Spanned<Vec<Spanned<String>>>,
        writes: Option<Spanned<String>>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct VariantEntry {
        name: Spanned<String>,
        requires: Option<String>,
        since: Option<String>,
        #[serde(default)]
        arguments: Vec<Spanned<String>>,
    }

    impl Client {
        pub(super) fn resolve(
            self,
            name: &str,
            files: &Files,
            source: Source<'_>,
        ) -> Result<super::Client, InputError> {
            let Version { command, after, .. } = &self.version;
            let wanted = Wanted::read(&self.program, self.install, command, after.clone(), source)?;
            let output = format(&self.output, source)?;
            let command = words(&self.start.command, source, "a command")?;
            let variants = variants(&self.variant, source)?;
            let has_arguments = variants.iter().any(|variant| !variant.arguments.is_empty());
            if has_arguments && !command.iter().any(|word| word == ARGUMENTS) {
                let problem =
                    format!("found no word `{ARGUMENTS}`, expected the place of the variants' `arguments`");
                return Err(source.error(self.start.command.span(), problem));
            }
            let writes = self.start.writes.as_ref();
            writes.map_or(Ok(()), |name| plain_name(name, source))?;
            if output.needs_file() && writes.is_none() {
                let problem = format!(
                    "found no `writes`, expected the file that goes with `output = \"{}\"`",
                    output.name()
                );
                return Err(source.error(self.start.command.span(), problem));
            }
            let files_written = self.file.iter().map(|file| config_file(file, files, source));
            Ok(super::Client {
                name: name.to_owned(),
                title: self.title,
                variants,
                wanted,
                output,
                begins: self.begins,
                can: can(&self.can, source)?,
                files: files_written.collect::<Result<_, _>>()?,
                command,
                writes: writes.map(|name| name.get_ref().clone()),
                folder: files.folder.clone(),
            })
        }
    }

    fn format(name: &Spanned<String>, source: Source<'_>) -> Result<Format, InputError> {
        let found = Format::ALL.into_iter().find(|format| format.name() == name.get_ref());
        found.ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            source.error(name.span(), format!("found `{}`, expected one of {names}", name.get_ref()))
        })
    }

    fn can(written: &WrittenCan, source: Source<'_>) -> Result<Can, InputError> {
        let time = |text: &Option<Spanned<String>>| {
            let Some(text) = text else { return Ok(None) };
            let ns = units::parse_duration_ns(text.get_ref())
                .map_err(|problem| source.error(text.span(), problem))?;
            if ns == 0 || ns % NANOS_PER_MS != 0 {
                let problem = format!("found `{}`, expected a whole number of milliseconds", text.get_ref());
                return Err(source.error(text.span(), problem));
            }
            Ok(Some(ns))
        };
        let can = Can {
            connections: written.connections.as_ref().map(|most| *most.get_ref()),
            streams: written.streams,
            requests: written.requests.as_ref().map(|most| *most.get_ref()),
            requests_of_each: written.requests_of_each,
            duration_ns: time(&written.duration)?,
            shortest_ns: time(&written.shortest)?.unwrap_or(0),
            warmup_ns: time(&written.warmup)?,
        };
        for (most, span) in [
            (can.connections.map(u64::from), written.connections.as_ref().map(Spanned::span)),
            (can.requests, written.requests.as_ref().map(Spanned::span)),
        ] {
            if let (Some(0), Some(span)) = (most, span) {
                return Err(source.error(span, "found 0, expected at least 1, or no such key"));
            }
        }
        Ok(can)
    }

    fn variants(
        list: &Spanned<Vec<VariantEntry>>,
        source: Source<'_>,
    ) -> Result<Vec<ClientVariant>, InputError> {
        let mut variants: Vec<ClientVariant> = Vec::new();
        for entry in list.get_ref() {
            let fault = |problem: String| source.error(entry.name.span(), problem);
            let variant: Variant = entry.name.get_ref().parse().map_err(fault)?;
            if variants.iter().any(|known| known.variant == variant) {
                return Err(fault(format!("found `{variant}` twice, expected it once")));
            }
            for word in &entry.arguments {
                template::check(word.get_ref())
                    .map_err(|problem| source.error(word.span(), problem.problem))?;
            }
            let arguments = entry.arguments.iter().map(|word| word.get_ref().clone()).collect();
            let (requires, since) = (entry.requires.clone(), entry.since.clone());
            variants.push(ClientVariant { variant, requires, since, arguments });
        }
        if variants.is_empty() {
            return Err(source.error(list.span(), "found no `[[variant]]`, expected at least one"));
        }
        Ok(variants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clients;
    use model::workload::LoopLoad;

    const GOOD: &str = r#"title = "x"
program = ["x"]
output = "wrk"
version = { command = ["{{program}}", "-V"], after = "x/" }
can = { connections = 8, requests = 100, duration = "1s" }
variant = [{ name = "h1", arguments = ["--one"] }]
[start]
command = ["{{program}}", "{{arguments}}", "{{url}}"]
[[file]]
name = "x.lua"
template = "x.jinja"
"#;

    fn parse(text: &str) -> Result<Client, String> {
        let texts = [(CLIENT_FILE, text), ("x.jinja", "a")];
        let texts = texts.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        Client::parse("x", Files { folder: "clients/x".into(), texts }).map_err(|error| error.to_string())
    }

    #[test]
    fn faults_name_the_place() {
        assert_eq!(parse(GOOD).unwrap().can.duration_ns, Some(1_000_000_000));
        for (found, instead, expected) in [
            (
                "\"wrk\"",
                "\"wkr\"",
                "clients/x/client.toml:3:10: found `wkr`, expected one of h2load, wrk, curl",
            ),
            (
                "\"wrk\"",
                "\"ab\"",
                "client.toml:8:11: found no `writes`, expected the file that goes with `output = \"ab\"`",
            ),
            (", \"{{arguments}}\"", "", "client.toml:8:11: found no word `{{arguments}}`"),
            ("\"h1\"", "\"h9\"", "client.toml:6:21: `h9` is not a variant"),
            ("[{ name = \"h1\", arguments = [\"--one\"] }]", "[]", "found no `[[variant]]`"),
            ("\"1s\"", "\"1\"", "client.toml:5:53: `1` is not a duration"),
            ("\"1s\"", "\"1500us\"", "found `1500us`, expected a whole number of milliseconds"),
            ("connections = 8", "connections = 0", "client.toml:5:23: found 0, expected at least 1"),
            ("\"--one\"", "\"{{one\"", "client.toml:6:40: "),
            ("title", "titel", "client.toml:1:1: unknown field `titel`"),
            ("x.lua", "../x", "found `../x`, expected a plain file name"),
        ] {
            assert!(GOOD.contains(found), "{found}");
            let error = parse(&GOOD.replacen(found, instead, 1)).unwrap_err();
            assert!(error.contains(expected), "{error} should say {expected}");
        }
    }

    const S: u64 = 1_000_000_000;

    fn closed(connections: u32, streams: u32, requests: Option<u64>, duration_ns: Option<u64>) -> Workload {
        let load = LoopLoad { connections, streams, requests, ..LoopLoad::new("/") };
        Workload::Closed(ClosedLoop { load, duration_ns })
    }

    /// No reason where `expected` is empty.
    fn refuses(client: &str, variant: Variant, workload: &Workload, expected: &str) {
        let found = Clients::find(client).unwrap().refuses(variant, workload).unwrap_or_default();
        assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{client}: {found}");
    }

    #[test]
    fn a_shape_that_a_tool_does_not_have_is_refused_in_its_name() {
        let timed = |connections, streams| closed(connections, streams, None, Some(S));
        refuses("wrk", Variant::H2, &timed(2, 1), "wrk speaks no h2");
        refuses("wrk", Variant::H1, &timed(2, 10), "");
        refuses("h2load", Variant::H3, &closed(9, 10, Some(7), None), "");
        let counted = |connections, streams| closed(connections, streams, Some(9), None);
        refuses("curl", Variant::H2, &counted(2, 1), "curl has one connection at most, and the workload 2");
        refuses("curl", Variant::H2, &counted(1, 5), "curl has one request in flight on a connection");
        refuses("curl", Variant::H2, &counted(1, 1), "");
        let mut two_paths = counted(1, 1);
        two_paths.as_loop_mut().unwrap().paths.push("/b".to_owned());
        refuses("h2load", Variant::H3, &two_paths, "h2load asks for one path alone");
    }

    #[test]
    fn an_end_that_a_tool_does_not_have_is_refused_in_its_name() {
        let ends = |requests, duration_ns| closed(4, 1, requests, duration_ns);
        refuses("wrk", Variant::H1, &ends(Some(8), None), "wrk cannot end after a number of requests");
        refuses(
            "wrk",
            Variant::H1,
            &ends(None, Some(S / 2)),
            "wrk counts time in steps of 1 s, and not 500 ms",
        );
        refuses("h2load", Variant::H1, &ends(Some(8), Some(S)), "h2load ends after a number of requests or");
        refuses("h2load", Variant::H1, &ends(None, Some(S / 2)), "");
        refuses("curl", Variant::H2, &closed(1, 1, None, Some(S)), "curl cannot end after a time");
        refuses(
            "siege",
            Variant::H1,
            &ends(Some(10), None),
            "siege counts the requests of each connection, and 10",
        );
        refuses("siege", Variant::H1, &ends(Some(12), None), "");
        refuses("siege", Variant::H1, &ends(None, Some(S)), "siege needs 2 s at least, and not 1 s");
        refuses("ab", Variant::H1s, &ends(Some(12), None), "");
        let mut warm = ends(None, Some(S));
        warm.as_loop_mut().unwrap().warmup_ns = S / 2;
        refuses("wrk", Variant::H1s, &warm, "wrk has no warm-up: leave `warmup` out of the workload");
        refuses("h2load", Variant::H1s, &warm, "");
    }
}
