//! A client's description: `client.toml` as written, and resolved.

use std::path::Path;

use anyhow::Result;
use model::named::Named;
use model::number::float;
use model::options::{Options, Order};
use model::reader::{Key, Placed, Table, TableKeys};
use model::units::{NANOS_PER_MS, format_duration_ns};
use model::workload::{ClosedLoop, Workload};
use model::{HttpVersion, InputError, Variant, keys, units};
use workload::formats::clients::Format;

use super::CLIENT_FILE;
use super::paths::ListedPaths;
use crate::description::{
    self, ConfigFile, FILE_KEYS, Files, VARIANT_KEYS, VERSION_KEYS, plain_name, read_variants,
};
use crate::program::{InstalledProgram, ProgramInfo, ProgramSpec};
use crate::requirements::{MODULE_KEYS, Requirements};
use crate::template::read_templates;

/// The word of a command that the variant's arguments replace.
pub(crate) const ARGUMENTS: &str = "{{arguments}}";

const CLIENT_KEYS: &[Key] = keys! {
    "output", "text", "required", r#""h2load""#, "The format of its output: `h2load`, `wrk`, `curl`, `siege` or `ab`.";
    "begins", "text", "none: it reports no times", r#""the request is written""#,
        "The event at which its request times begin; compared by the check `events_match`.";
    "can", "table", "none", r#"{ requests = 100000 }"#, "The loads that it supports; see below.";
    "start", "table", "required", "", "How to start it; see below.";
};
const CAN_KEYS: &[Key] = keys! {
    "connections", "whole number", "any number", "1", "The largest number of connections, at least 1.";
    "streams", "boolean", "`false`", "true",
        "Whether an HTTP/2 or HTTP/3 connection can have several requests in flight.";
    "requests", "whole number", "not supported", "10000",
        "It can end after a number of requests; the largest number, 1 to 4 294 967 295.";
    "requests_of_each", "boolean", "`false`", "true", "Whether it counts requests per connection.";
    "orders", "list of texts", "one path only", r#"["in turn", "random"]"#,
        "The orders in which it can request several paths: `in turn`, `random`.";
    "duration", "duration", "not supported", r#""1s""#,
        "It can end after a time that is a multiple of this one; whole milliseconds.";
    "shortest", "duration", "none", r#""2s""#, "Shorter runs give no reliable results; whole milliseconds.";
    "warmup", "duration", "not supported", r#""1ms""#,
        "It can exclude a warm-up that is a multiple of this time; whole milliseconds.";
};
const START_KEYS: &[Key] = keys! {
    "command", "list of texts", "required", r#"["{{program}}", "{{arguments}}", "{{url}}"]"#,
        "The command line; the variant's arguments replace the word `{{arguments}}`.";
    "writes", "text", "none", r#""rows.tsv""#,
        "A file that it writes in addition to its output, without folders; `h2load` and `ab` require it.";
};
const CLIENT_VARIANT_KEYS: &[Key] = keys! {
    "arguments", "list of texts", "none", r#"["--h1"]"#, "The arguments that select the variant.";
};

/// Every table of a client's description.
pub const KEYS: &[TableKeys] = &[
    TableKeys { table: "the client", keys: description::KEYS },
    TableKeys { table: "the client", keys: CLIENT_KEYS },
    TableKeys { table: "[version]", keys: VERSION_KEYS },
    TableKeys { table: "[can]", keys: CAN_KEYS },
    TableKeys { table: "[start]", keys: START_KEYS },
    TableKeys { table: "[[file]]", keys: FILE_KEYS },
    TableKeys { table: "[[variant]]", keys: VARIANT_KEYS },
    TableKeys { table: "[[variant]]", keys: CLIENT_VARIANT_KEYS },
    TableKeys { table: "[variant.module]", keys: MODULE_KEYS },
];

/// An external client, as described by its folder.
#[derive(Clone, Debug)]
pub struct Client {
    /// The folder's name.
    pub name: String,
    /// A one-line description.
    pub title: String,
    /// Its variants.
    pub variants: Vec<ClientVariant>,
    /// The program and its version command.
    pub(crate) program: ProgramSpec,
    /// The format of its output.
    pub(crate) output: Format,
    /// The event at which its times begin, for people; `None` where it reports no times.
    pub(crate) begins: Option<String>,
    pub(crate) capabilities: Capabilities,
    pub(crate) files: Vec<ConfigFile>,
    pub(crate) command: Vec<String>,
    /// The file that it writes in addition to its output.
    pub(crate) writes: Option<String>,
    /// The description's folder, for errors.
    pub(crate) folder: String,
}

/// A variant that a client can support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientVariant {
    /// The variant.
    pub variant: Variant,
    /// What an installation must have for it.
    pub requirements: Requirements,
    /// The arguments that select it.
    pub(crate) arguments: Vec<String>,
}

/// The closed loops that a client supports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// Connections at most; unlimited where `None`.
    pub(crate) connections: Option<u32>,
    /// Whether HTTP/2 and HTTP/3 connections can have several requests in flight.
    pub(crate) streams: bool,
    /// The most requests after which it can end; `None` where it cannot end after a number of requests.
    pub(crate) requests: Option<u64>,
    /// Whether it counts requests per connection.
    pub(crate) requests_of_each: bool,
    /// The orders in which it can request several paths.
    pub(crate) orders: Vec<Order>,
    /// It can end after a multiple of this time.
    pub(crate) duration_ns: Option<u64>,
    /// Shorter runs give no reliable results.
    pub(crate) shortest_ns: u64,
    /// It can leave out a warm-up of a multiple of this time.
    pub(crate) warmup_ns: Option<u64>,
}

impl Client {
    /// Reads and resolves a client's folder.
    pub(crate) fn parse(name: &str, files: Files) -> Result<Client, InputError> {
        files.read(CLIENT_FILE, "the client", CLIENT_KEYS, |root| read(name, &files, root))
    }

    /// Finds the program and its version, once per process. `tool` is `{{self}}` in templates.
    ///
    /// # Errors
    /// The program is not installed, with the command that installs it, or prints no version.
    pub fn probe(&self, tool: &Path) -> Result<ProgramInfo> {
        ProgramInfo::once(&self.folder, tool, || self.look(tool))
    }

    fn look(&self, tool: &Path) -> Result<ProgramInfo> {
        let found = self.program.find(&self.file(), tool)?;
        let variants = self.variants.iter();
        let variants = variants.map(|entry| found.support(&self.name, entry.variant, &entry.requirements));
        let variants = variants.collect::<Result<_>>()?;
        let InstalledProgram { program, version, build, .. } = found;
        Ok(ProgramInfo { program, version, tls: None, variants, feed: None, build })
    }

    /// Why this client cannot run a workload over a variant on any machine, if it cannot.
    pub fn refuses(&self, variant: Variant, workload: &Workload, options: &Options) -> Option<String> {
        let name = &self.name;
        if self.variant(variant).is_none() {
            return Some(format!("{name} does not support {variant}"));
        }
        let Workload::Closed(ClosedLoop { load, duration_ns, think }) = workload else {
            return Some(format!(
                "{name} supports closed loops only, not a workload of kind `{}`",
                workload.kind().name()
            ));
        };
        if !options.connections.visit.is_first() {
            return Some(format!("{name} makes first visits only; remove `visit` from the workload"));
        }
        if think.most_ns > 0 {
            return Some(format!("{name} supports no think time; remove `think_time` from the workload"));
        }
        let multiplexes = variant.http() != HttpVersion::Http11;
        let capabilities = &self.capabilities;
        let refused = match ListedPaths::of(&load.paths, &options.requests) {
            Ok(listed) => capabilities.refuses_paths(&listed),
            Err(reason) => Some(reason),
        };
        let refused =
            refused.or_else(|| capabilities.refuses_shape(load.connections, load.streams, multiplexes));
        let refused =
            refused.or_else(|| capabilities.refuses_end(load.requests, *duration_ns, load.connections));
        let refused = refused.or_else(|| capabilities.refuses_warmup(load.warmup_ns, *duration_ns));
        refused.map(|reason| format!("{name} {reason}"))
    }

    /// The description of a variant, if any.
    pub(crate) fn variant(&self, variant: Variant) -> Option<&ClientVariant> {
        self.variants.iter().find(|entry| entry.variant == variant)
    }

    /// The description's file, for errors.
    pub(crate) fn file(&self) -> String {
        format!("{}/{CLIENT_FILE}", self.folder)
    }
}

impl Capabilities {
    fn refuses_paths(&self, listed: &ListedPaths<'_>) -> Option<String> {
        let order = listed.order;
        match self.orders.as_slice() {
            _ if listed.paths.len() <= 1 => None,
            [] => Some("requests one path only".to_owned()),
            orders if !orders.contains(&order) => {
                let known: Vec<&str> = orders.iter().map(|order| order.name()).collect();
                Some(format!("requests paths only in this order: {}, not {order}", known.join(", ")))
            }
            _ => None,
        }
    }

    fn refuses_shape(&self, connections: u32, streams: u32, multiplexes: bool) -> Option<String> {
        match self.connections {
            Some(most) if connections > most => {
                let those =
                    if most == 1 { "one connection".to_owned() } else { format!("{most} connections") };
                Some(format!("supports {those} at most; the workload has {connections}"))
            }
            _ if multiplexes && streams > 1 && !self.streams => {
                Some(format!("supports one request in flight per connection; the workload has {streams}"))
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
                "ends after a number of requests or after a time, not after whichever comes first".to_owned(),
            ),
            (Some(requests), None) => match self.requests {
                None => {
                    Some("cannot end after a number of requests; give the workload a `duration`".to_owned())
                }
                Some(most) if requests > most => {
                    Some(format!("supports at most {}, not {requests}", units::counted(most, "request")))
                }
                Some(_) if self.requests_of_each && requests % u64::from(connections.max(1)) != 0 => {
                    Some(format!(
                        "counts requests per connection, and {requests} is not a multiple of {connections}"
                    ))
                }
                Some(_) => None,
            },
            (None, Some(duration_ns)) => match self.duration_ns {
                None => Some("cannot end after a time; give the workload a number of `requests`".to_owned()),
                Some(_) if duration_ns < self.shortest_ns => {
                    let (least, found) = (shown(self.shortest_ns), shown(duration_ns));
                    Some(format!("needs at least {least}, not {found}"))
                }
                Some(step_ns) => not_a_multiple(duration_ns, step_ns),
            },
            (None, None) => Some("needs a number of requests or a duration".to_owned()),
        }
    }

    fn refuses_warmup(&self, warmup_ns: u64, duration_ns: Option<u64>) -> Option<String> {
        match self.warmup_ns {
            _ if warmup_ns == 0 => None,
            Some(step_ns) if duration_ns.is_some() => not_a_multiple(warmup_ns, step_ns),
            Some(_) => Some("supports a warm-up only with a `duration`".to_owned()),
            None => Some("supports no warm-up; remove `warmup` from the workload".to_owned()),
        }
    }
}

fn not_a_multiple(ns: u64, step_ns: u64) -> Option<String> {
    let is_multiple = ns.checked_rem(step_ns) == Some(0);
    (!is_multiple)
        .then(|| format!("measures time in steps of {}, and {} is not a multiple", shown(step_ns), shown(ns)))
}

fn shown(ns: u64) -> String {
    format_duration_ns(float(ns))
}

/// A time that is a multiple of a millisecond, in milliseconds.
pub(crate) const fn milliseconds(ns: u64) -> u64 {
    ns / NANOS_PER_MS
}

fn read(name: &str, files: &Files, root: &Table<'_>) -> Result<Client, InputError> {
    let versions = root.required("version", Table::table)?.with_keys(VERSION_KEYS)?;
    let start = root.required("start", Table::table)?.with_keys(START_KEYS)?;
    let variants = read_variants(root, CLIENT_VARIANT_KEYS, |table, variant, requirements| {
        Ok(ClientVariant {
            variant,
            requirements,
            arguments: read_templates(table, "arguments")?.map_or_else(Vec::new, |list| list.value),
        })
    })?;
    let command = start.required("command", read_templates)?;
    let has_arguments = variants.iter().any(|variant| !variant.arguments.is_empty());
    if has_arguments && !command.value.iter().any(|word| word == ARGUMENTS) {
        let problem =
            format!("`command` has no word `{ARGUMENTS}`; add it where the variants' `arguments` belong");
        return Err(command.error(problem));
    }
    let output = root.required("output", Table::named::<Format>)?.value;
    let writes = start.parsed("writes", plain_name)?.map(|name| name.value);
    if output.needs_file() && writes.is_none() {
        return Err(start.missing("writes"));
    }
    Ok(Client {
        name: name.to_owned(),
        title: root.required("title", Table::text)?.value,
        variants,
        program: ProgramSpec::read(root, &versions)?,
        output,
        begins: root.text("begins")?.map(|event| event.value),
        capabilities: match root.table("can")? {
            Some(table) => read_capabilities(&table.with_keys(CAN_KEYS)?)?,
            None => Capabilities::default(),
        },
        files: files.configs(root)?,
        command: command.value,
        writes,
        folder: files.folder.clone(),
    })
}

fn read_capabilities(table: &Table<'_>) -> Result<Capabilities, InputError> {
    let most = |key| Ok::<_, InputError>(table.integer(key, 1..=u32::MAX)?.map(|most| most.value));
    let time = |key| Ok::<_, InputError>(table.parsed(key, units::parse_whole_ms)?.map(|ns| ns.value));
    let orders = table.some_strings("orders")?.map_or_else(Vec::new, |orders| orders.value);
    let order = |name: Placed<String>| {
        name.map(|name| Order::from_name(&name).map_err(|problem| format!("`orders`: {problem}")))
    };
    Ok(Capabilities {
        orders: orders.into_iter().map(|name| Ok(order(name)?.value)).collect::<Result<_, InputError>>()?,
        connections: most("connections")?,
        streams: table.flag("streams")?,
        requests: most("requests")?.map(u64::from),
        requests_of_each: table.flag("requests_of_each")?,
        duration_ns: time("duration")?,
        shortest_ns: time("shortest")?.unwrap_or(0),
        warmup_ns: time("warmup")?,
    })
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
        assert_eq!(parse(GOOD).unwrap().capabilities.duration_ns, Some(1_000_000_000));
        for (found, instead, expected) in [
            (
                "\"wrk\"",
                "\"wkr\"",
                "clients/x/client.toml:3:10: `output`: `wkr` is not an output format; did",
            ),
            (
                "\"wrk\"",
                "\"ab\"",
                "client.toml:7:1: [start] has no `writes`; add one, such as `writes = \"rows",
            ),
            (", \"{{arguments}}\"", "", "client.toml:8:11: `command` has no word `{{arguments}}`; add it"),
            ("\"h1\"", "\"h9\"", "client.toml:6:21: `name`: `h9` is not a variant"),
            (
                "[{ name = \"h1\", arguments = [\"--one\"] }]",
                "[]",
                "client.toml:1:1: the client has no `[[variant]]`; add",
            ),
            ("\"1s\"", "\"1\"", "client.toml:5:53: `duration`: `1` is not a duration"),
            ("\"1s\"", "\"1500us\"", "`1500us` is not a step; write whole milliseconds, at least 1ms"),
            (
                "connections = 8",
                "connections = 0",
                "client.toml:5:23: `connections` is 0; write a whole number from 1",
            ),
            ("\"--one\"", "\"{{one\"", "client.toml:6:40: `arguments`: "),
            ("title", "titel", "client.toml:1:1: `titel` is not a key of the client; did you mean `title`?"),
            ("x.lua", "../x", "client.toml:10:8: `name`: `../x` is not a plain file name; write one without"),
        ] {
            assert!(GOOD.contains(found), "{found}");
            let error = parse(&GOOD.replacen(found, instead, 1)).unwrap_err();
            assert!(error.contains(expected), "{error} should contain {expected}");
        }
    }

    const S: u64 = 1_000_000_000;

    fn closed(connections: u32, streams: u32, requests: Option<u64>, duration_ns: Option<u64>) -> Workload {
        let load = LoopLoad { connections, streams, requests, ..LoopLoad::new("/") };
        Workload::Closed(ClosedLoop::new(load, duration_ns))
    }

    /// No reason where `expected` is empty.
    fn refuses(client: &str, variant: Variant, workload: &Workload, expected: &str) {
        let found = Clients::find(client)
            .unwrap()
            .refuses(variant, workload, &Options::default())
            .unwrap_or_default();
        assert!(found.starts_with(expected) && found.is_empty() == expected.is_empty(), "{client}: {found}");
    }

    #[test]
    fn a_shape_that_a_tool_does_not_have_is_refused_in_its_name() {
        let timed = |connections, streams| closed(connections, streams, None, Some(S));
        refuses("wrk", Variant::H2, &timed(2, 1), "wrk does not support h2");
        refuses("wrk", Variant::H1, &timed(2, 10), "");
        refuses("h2load", Variant::H3, &closed(9, 10, Some(7), None), "");
        let counted = |connections, streams| closed(connections, streams, Some(9), None);
        refuses(
            "curl",
            Variant::H2,
            &counted(2, 1),
            "curl supports one connection at most; the workload has 2",
        );
        refuses("curl", Variant::H2, &counted(1, 5), "curl supports one request in flight per connection");
        refuses("curl", Variant::H2, &counted(1, 1), "");
        let mut thinking = counted(1, 1);
        if let Workload::Closed(closed) = &mut thinking {
            closed.think.most_ns = 1;
        }
        refuses("curl", Variant::H2, &thinking, "curl supports no think time; remove `think_time`");
        let mut two_paths = counted(1, 1);
        two_paths.as_loop_mut().unwrap().paths.push("/b".to_owned());
        refuses("curl", Variant::H3, &two_paths, "curl requests one path only");
        let mut two_paths = timed(2, 1);
        two_paths.as_loop_mut().unwrap().paths.push("/b".to_owned());
        refuses("h2load", Variant::H3, &two_paths, "");
        refuses("ab", Variant::H1, &two_paths, "ab requests one path only");
        let mut options = Options::default();
        options.requests.random_order = true;
        let refuses = |client: &str| {
            Clients::find(client).unwrap().refuses(Variant::H1, &two_paths, &options).unwrap_or_default()
        };
        assert_eq!(refuses("h2load"), "h2load requests paths only in this order: in turn, not random");
        assert_eq!(refuses("wrk"), "");
    }

    #[test]
    fn an_end_that_a_tool_does_not_have_is_refused_in_its_name() {
        let ends = |requests, duration_ns| closed(4, 1, requests, duration_ns);
        refuses("wrk", Variant::H1, &ends(Some(8), None), "wrk cannot end after a number of requests");
        refuses(
            "wrk",
            Variant::H1,
            &ends(None, Some(S / 2)),
            "wrk measures time in steps of 1 s, and 500 ms is not",
        );
        refuses("h2load", Variant::H1, &ends(Some(8), Some(S)), "h2load ends after a number of requests or");
        refuses("h2load", Variant::H1, &ends(None, Some(S / 2)), "");
        refuses("curl", Variant::H2, &closed(1, 1, None, Some(S)), "curl cannot end after a time");
        refuses("siege", Variant::H1, &ends(Some(10), None), "siege counts requests per connection, and 10");
        refuses("siege", Variant::H1, &ends(Some(12), None), "");
        refuses("siege", Variant::H1, &ends(None, Some(S)), "siege needs at least 2 s, not 1 s");
        refuses("ab", Variant::H1s, &ends(Some(12), None), "");
        let mut warm = ends(None, Some(S));
        warm.as_loop_mut().unwrap().warmup_ns = S / 2;
        refuses("wrk", Variant::H1s, &warm, "wrk supports no warm-up; remove `warmup` from the workload");
        refuses("h2load", Variant::H1s, &warm, "");
    }
}
