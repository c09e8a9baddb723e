//! A server's description: `server.toml` as written, and resolved.

use std::time::Duration;

use minijinja::value::Value;
use model::delivery::DeliveryMeans;
use model::named::unknown;
use model::pins::KeyExchange;
use model::reader::{Key, Table, TableKeys};
use model::record::Sending;
use model::tunable::{self, Contents};
use model::{InputError, Page, Pins, ServerFacts, Setting, Settings, Tunable, Variant, keys, units};
use rustix::process::Signal;

use super::ADAPTER_FILE;
use super::access_log::{self, AccessLog};
use super::feed::{self, FeedSpec};
use crate::description::{
    self, ConfigFile, FILE_KEYS, Files, VARIANT_KEYS, VERSION_KEYS, read_names, read_variants,
};
use crate::program::ProgramSpec;
use crate::requirements::{MODULE_KEYS, Requirements, version};
use crate::template::{Variables, read_template, read_templates, render};

/// The signals that end servers.
const SIGNALS: [(&str, Signal); 3] = [("TERM", Signal::TERM), ("QUIT", Signal::QUIT), ("INT", Signal::INT)];

const SERVER_KEYS: &[Key] = keys! {
    "drops_privileges", "boolean", "`false`", "true", "Whether it changes its user if it is started as root.";
    "refuses_root", "boolean", "`false`", "true",
        "Whether it refuses to run as root; h123 then starts it as `nobody` in a separate user namespace.";
    "files_only", "boolean", "`false`", "true",
        "Whether it serves files only; a study whose loops request other paths of it is refused.";
    "connections", "text", "`\"{{ descriptors }}\"`: one process holds all", r#""{{ 16384 * threads }}""#,
        "The most TCP connections that it holds at once, with the variables `set`, `threads` and `descriptors` (those that a process of this machine may have); a study with more is refused.";
    "start", "table", "required", "", "How to start and stop it; see below.";
    "access_log", "table", "none", r#"{ file = "access.log" }"#,
        "Its access log, for [server time](servers.md#server-time); see below.";
    "back", "table", "none: it is not a proxy", r#"{ variants = ["h1"] }"#,
        "How it connects to the server behind it, as a reverse proxy; see below.";
    "feed", "table", "none: it takes none", "",
        "How it takes live streams over RTMP; see below.";
    "tunable", "tables `[[tunable]]`", "none", "", "The settings that a study may change; see below.";
};
const SERVER_VERSION_KEYS: &[Key] = keys! {
    "at_least", "text", "none", r#""2.4.17""#, "The oldest supported version; runs with an older one fail.";
    "tls_after", "text", "none", r#""built with ""#,
        "The text before the TLS library's name and version in the command's output. Excludes `tls`.";
    "tls", "text", "none", r#""OpenSSL""#, "The TLS library's name, if the command does not print it.";
};
const START_KEYS: &[Key] = keys! {
    "command", "list of texts", "required", r#"["{{program}}", "-c", "{{folder}}/nginx.conf"]"#,
        "The command; the server must stay in the foreground.";
    "ready_within", "duration", "required", r#""10s""#, "The run fails if the server is not ready in this time.";
    "ready_says", "text", "none: it is ready when it listens", r#""Created worker thread #0""#,
        "Text that it prints on standard output or standard error when it is ready.";
    "stop_signal", "text", "required", r#""TERM""#, "The signal that stops it: `TERM`, `QUIT` or `INT`.";
    "stop_within", "duration", "required", r#""5s""#, "It is killed if it has not ended after this time.";
};
const SERVER_VARIANT_KEYS: &[Key] = keys! {
    "port", "whole number", "required", "8443",
        "Its port, 1 to 65 535, distinct within TCP and within QUIC. If the port is in use, h123 chooses another.";
    "key_exchange", "list of texts", "all", r#"["secp256r1"]"#,
        "The supported key exchanges: `x25519`, `secp256r1`, `secp384r1`. A study that pins another one finds the variant unsupported.";
    "delivers", "list of texts", "none", r#"["push", "early_hints"]"#,
        "How its template can deliver pages beyond answering requests: `push`, `early_hints`, `document_delay`, `waits`, `hosts`. A workload that uses another way finds the variant unsupported.";
    "concurrency", "text", "unknown or unlimited", r#""{{ 64 * (set.workers or threads) }}""#,
        "A template: the number of connections that its workers serve at the same time, for the check `server_limit`; further ones wait.";
    "sends", "table", "unknown", r#"{ pacing = "no" }"#,
        "How it sends, for the checks `transports_match` and `records_match`; see below.";
};
const SENDS_KEYS: &[Key] = keys! {
    "congestion_control", "text", "unknown", r#""cubic""#, "QUIC: `cubic`, `reno` or `bbr`.";
    "initial_window", "text", "unknown", r#""10""#, "QUIC: packets of the initial window.";
    "pacing", "text", "unknown", r#""no""#, "QUIC: `yes` or `no`.";
    "gso", "text", "unknown", r#""{{ 'yes' if set.quic_gso else 'no' }}""#,
        "QUIC: whether packets leave in batches (UDP segmentation offload): `yes` or `no`.";
    "tls_records", "text", "unknown", r#""16384""#, "TLS over TCP: bytes of the largest record, or `dynamic`.";
};
const BACK_KEYS: &[Key] = keys! {
    "variants", "list of texts", "required", r#"["h1", "h2c"]"#,
        "The variants that it uses for the server behind it: `h1`, `h1s`, `h2c`, `h2`, `h3`.";
    "needed", "boolean", "`false`", "true", "Whether it requires a server behind it.";
};

/// Every table of a server's description.
pub const KEYS: &[TableKeys] = &[
    TableKeys { table: "the server", keys: description::KEYS },
    TableKeys { table: "the server", keys: SERVER_KEYS },
    TableKeys { table: "[version]", keys: VERSION_KEYS },
    TableKeys { table: "[version]", keys: SERVER_VERSION_KEYS },
    TableKeys { table: "[start]", keys: START_KEYS },
    TableKeys { table: "[access_log]", keys: access_log::KEYS },
    TableKeys { table: "[access_log] request_time and time", keys: access_log::TIME_KEYS },
    TableKeys { table: "[access_log] request_time", keys: access_log::REQUEST_TIME_KEYS },
    TableKeys { table: "[[file]]", keys: FILE_KEYS },
    TableKeys { table: "[[variant]]", keys: VARIANT_KEYS },
    TableKeys { table: "[[variant]]", keys: SERVER_VARIANT_KEYS },
    TableKeys { table: "[variant.module]", keys: MODULE_KEYS },
    TableKeys { table: "[variant.sends]", keys: SENDS_KEYS },
    TableKeys { table: "[[tunable]]", keys: tunable::KEYS },
    TableKeys { table: "[back]", keys: BACK_KEYS },
    TableKeys { table: "[feed]", keys: feed::KEYS },
    TableKeys { table: "[feed.module]", keys: MODULE_KEYS },
];

/// A server, as described by its folder.
#[derive(Clone, Debug)]
pub struct Adapter {
    /// The folder's name.
    pub name: String,
    /// A one-line description.
    pub title: String,
    /// Its variants, each on a separate port.
    pub variants: Vec<AdapterVariant>,
    /// The program and its version command.
    pub(crate) program: ProgramSpec,
    /// Whether the program changes its user when started as root.
    pub(crate) drops_privileges: bool,
    /// Whether the program refuses to run as root.
    pub(crate) refuses_root: bool,
    /// Whether it serves files only.
    pub(crate) files_only: bool,
    /// A template of the most connections that it holds; `None`: those of one process.
    connections: Option<String>,
    /// Older versions are not supported.
    pub(crate) oldest_version: Option<String>,
    /// The source of the TLS library's name and version.
    pub(crate) tls: Tls,
    pub(crate) files: Vec<ConfigFile>,
    /// The settings that a study may change.
    pub tunables: Vec<Tunable>,
    /// How it connects to a server behind it; `None` for a server that is no proxy.
    pub(crate) back: Option<Back>,
    /// How it takes live streams; `None` if it takes none.
    pub(crate) feed: Option<FeedSpec>,
    pub(crate) start: Start,
    /// Its access log, where it writes one.
    pub access_log: Option<AccessLog>,
    /// The folder, for errors.
    pub(crate) folder: String,
}

/// A variant that a server can support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterVariant {
    /// The variant.
    pub variant: Variant,
    /// Its port, if that is free.
    pub port: u16,
    /// What an installation must have for it.
    pub requirements: Requirements,
    /// The supported key exchanges; all where empty.
    pub key_exchanges: Vec<KeyExchange>,
    /// How it can deliver pages beyond answering requests.
    pub(crate) delivers: Vec<DeliveryMeans>,
    /// How many connections its workers serve at the same time: a template.
    pub(crate) concurrency: Option<String>,
    /// How it sends: templates in the order of [`model::record::Sending::NAMES`].
    pub(crate) sends: [Option<String>; 5],
}

/// How a proxy connects to the server behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Back {
    /// The variants that it uses for that server.
    pub(crate) variants: Vec<Variant>,
    /// Whether it serves nothing without that server.
    pub(crate) is_needed: bool,
}

/// The source of a server's TLS library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tls {
    /// Unknown.
    #[default]
    Unknown,
    /// The description names it, because the version command does not print it.
    Named(String),
    /// The two words after this text in the version command's output, such as `OpenSSL 3.6.5`.
    After(String),
}

/// How the server is started and stopped.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) command: Vec<String>,
    pub(crate) ready_within: Duration,
    /// A template of the text that it logs when it is ready, where it listens earlier.
    pub(crate) ready_says: Option<String>,
    pub(crate) stop_signal: Signal,
    pub(crate) stop_within: Duration,
}

impl Adapter {
    /// Reads and resolves a server's folder.
    pub(crate) fn parse(name: &str, files: Files) -> Result<Adapter, InputError> {
        files.read(ADAPTER_FILE, "the server", SERVER_KEYS, |root| read(name, &files, root))
    }

    /// Why a variant does not support the pins or the delivery of a page, if it does not.
    pub fn refuses(&self, variant: Variant, pins: &Pins, pages: &[Page]) -> Option<String> {
        let entry = self.variant(variant)?;
        for means in pages.iter().flat_map(Page::means) {
            if let Some(reason) = means.refuses(variant) {
                return Some(reason);
            }
            if !entry.delivers.contains(&means) {
                return Some(format!("{} never {} over {variant}", self.name, means.describe()));
            }
        }
        let known = &entry.key_exchanges;
        (!known.is_empty() && !known.contains(&pins.key_exchange)).then(|| {
            let known: Vec<&str> = known.iter().map(|exchange| exchange.name()).collect();
            let (asked, known) = (pins.key_exchange.name(), known.join(", "));
            format!(
                "{} supports {variant} only with the key exchange {known}; the study pins {asked}",
                self.name
            )
        })
    }

    /// The most TCP connections that it holds at once with these settings, `threads` workers and this many
    /// descriptors a process.
    ///
    /// # Errors
    /// The template `connections` makes no number of them.
    pub fn most_connections(&self, set: &Settings, threads: usize, descriptors: u64) -> Result<u64, String> {
        let Some(template) = &self.connections else { return Ok(descriptors) };
        let variables = Variables::from([
            ("set", self.settings(set)),
            ("threads", Value::from(threads)),
            ("descriptors", Value::from(descriptors)),
        ]);
        let text = render(template, "", "", &variables).map_err(|problem| problem.problem)?;
        let place = format!("{}/{ADAPTER_FILE}: `connections`", self.folder);
        text.trim().parse().map_err(|_| format!("{place}: `{text}` is not a whole number; write one"))
    }

    /// The facts that a study needs.
    pub fn facts(&self) -> ServerFacts {
        ServerFacts {
            variants: self.variants.iter().map(|entry| entry.variant).collect(),
            back_variants: self.back.as_ref().map_or_else(Vec::new, |back| back.variants.clone()),
            needs_back: self.back.as_ref().is_some_and(|back| back.is_needed),
            contents: match self.program.is_self() {
                true => Contents::Origin,
                false if self.files_only => Contents::Files,
                false => Contents::Unknown,
            },
            takes_feeds: self.feed.is_some(),
            tunables: self.tunables.clone(),
        }
    }

    /// Whether it reads modelled media from files with these settings. The origin makes it in memory unless
    /// its tunable `media` says otherwise.
    pub fn reads_files(&self, set: &Settings) -> bool {
        let in_memory = Setting::Text("memory".to_owned());
        !self.program.is_self() || set.get("media").is_some_and(|from| *from != in_memory)
    }

    /// The description of a variant, if any.
    pub fn variant(&self, variant: Variant) -> Option<&AdapterVariant> {
        self.variants.iter().find(|entry| entry.variant == variant)
    }
}

fn read(name: &str, files: &Files, root: &Table<'_>) -> Result<Adapter, InputError> {
    let versions = root.required("version", Table::table)?;
    let versions = versions.with_keys(VERSION_KEYS.iter().chain(SERVER_VERSION_KEYS))?;
    let log = root.table("access_log")?;
    Ok(Adapter {
        name: name.to_owned(),
        title: root.required("title", Table::text)?.value,
        variants: read_server_variants(root)?,
        program: ProgramSpec::read(root, &versions)?,
        drops_privileges: root.flag("drops_privileges")?,
        refuses_root: root.flag("refuses_root")?,
        files_only: root.flag("files_only")?,
        connections: read_template(root, "connections")?.map(|text| text.value),
        oldest_version: versions.parsed("at_least", version)?.map(|oldest| oldest.value),
        tls: read_tls(&versions)?,
        files: files.configs(root)?,
        tunables: Tunable::read_all(root)?,
        back: root.table("back")?.map(|back| read_back(&back.with_keys(BACK_KEYS)?)).transpose()?,
        feed: root.table("feed")?.map(|feed| FeedSpec::read(&feed.with_keys(feed::KEYS)?)).transpose()?,
        start: read_start(&root.required("start", Table::table)?.with_keys(START_KEYS)?)?,
        access_log: log.map(|log| access_log::read(&log.with_keys(access_log::KEYS)?)).transpose()?,
        folder: files.folder.clone(),
    })
}

fn read_tls(table: &Table<'_>) -> Result<Tls, InputError> {
    match (table.text("tls")?, table.text("tls_after")?) {
        (Some(name), None) => Ok(Tls::Named(name.value)),
        // Spaces around the text matter.
        (None, Some(after)) => Ok(Tls::After(after.value)),
        (None, None) => Ok(Tls::Unknown),
        (Some(_), Some(after)) => Err(after.error("`tls_after` excludes `tls`; remove one of them")),
    }
}

fn read_back(table: &Table<'_>) -> Result<Back, InputError> {
    Ok(Back { variants: table.required("variants", read_names)?, is_needed: table.flag("needed")? })
}

fn read_start(table: &Table<'_>) -> Result<Start, InputError> {
    let duration = |key| {
        let ns = table.required(key, |table, key| table.parsed(key, units::parse_duration_ns))?;
        Ok::<_, InputError>(Duration::from_nanos(ns.value))
    };
    Ok(Start {
        command: table.required("command", read_templates)?.value,
        ready_within: duration("ready_within")?,
        ready_says: read_template(table, "ready_says")?.map(|text| text.value),
        stop_signal: table.required("stop_signal", |table, key| table.parsed(key, signal))?.value,
        stop_within: duration("stop_within")?,
    })
}

fn signal(name: &str) -> Result<Signal, String> {
    let found = SIGNALS.iter().find(|(known, _)| *known == name);
    let problem = || unknown(name, "a signal that stops servers", &SIGNALS.map(|(name, _)| name));
    found.map(|(_, signal)| *signal).ok_or_else(problem)
}

fn read_server_variants(root: &Table<'_>) -> Result<Vec<AdapterVariant>, InputError> {
    let mut taken: Vec<(u16, bool)> = Vec::new();
    read_variants(root, SERVER_VARIANT_KEYS, |table, variant, requirements| {
        let port = table.required("port", |table, key| table.integer(key, 1..=u16::MAX))?;
        if taken.contains(&(port.value, variant.is_quic())) {
            let problem = format!("`port` is {}, like that of another variant; write another", port.value);
            return Err(port.error(problem));
        }
        taken.push((port.value, variant.is_quic()));
        Ok(AdapterVariant {
            variant,
            port: port.value,
            requirements,
            key_exchanges: read_names(table, "key_exchange")?.unwrap_or_default(),
            delivers: read_names(table, "delivers")?.unwrap_or_default(),
            concurrency: read_template(table, "concurrency")?.map(|text| text.value),
            sends: read_sends(table)?,
        })
    })
}

/// The templates, in the order of [`Sending::NAMES`].
fn read_sends(variant: &Table<'_>) -> Result<[Option<String>; 5], InputError> {
    let mut templates = [const { None }; 5];
    let Some(table) = variant.table("sends")? else { return Ok(templates) };
    let table = table.with_keys(SENDS_KEYS)?;
    for (template, name) in templates.iter_mut().zip(Sending::NAMES) {
        *template = read_template(&table, name)?.map(|text| text.value);
    }
    Ok(templates)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"title = "x"
program = ["x"]
version = { command = ["{{program}}", "-V"], after = "x/" }
variant = [{ name = "h1", port = 8080 }]
[start]
command = ["{{program}}"]
ready_within = "1s"
stop_signal = "TERM"
stop_within = "1s"
[[file]]
name = "x.conf"
template = "x.jinja"
"#;

    fn parse(text: &str, template: &str) -> Result<Adapter, String> {
        let texts = [(ADAPTER_FILE, text), ("x.jinja", template)];
        let texts = texts.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        Adapter::parse("x", Files { folder: "servers/x".into(), texts }).map_err(|error| error.to_string())
    }

    #[test]
    fn a_key_exchange_that_the_server_lacks_is_named() {
        let only = "port = 8080, key_exchange = [\"secp256r1\"]";
        let adapter = parse(&GOOD.replace("port = 8080", only), "").unwrap();
        let reason = adapter.refuses(Variant::H1, &Pins::default(), &[]).unwrap();
        assert_eq!(reason, "x supports h1 only with the key exchange secp256r1; the study pins x25519");
        let pins = Pins { key_exchange: KeyExchange::Secp256r1, ..Pins::default() };
        assert_eq!(adapter.refuses(Variant::H1, &pins, &[]), None);
    }

    #[test]
    fn faults_name_the_place() {
        assert_eq!(parse(GOOD, "").unwrap().variants[0].port, 8080);
        for (found, instead, expected) in [
            (
                "port = 8080",
                "port = 0",
                "servers/x/server.toml:4:34: `port` is 0; write a whole number from 1 to",
            ),
            ("\"h1\"", "\"h9\"", "servers/x/server.toml:4:21: `name`: `h9` is not a variant"),
            (
                "\"TERM\"",
                "\"KILL\"",
                "server.toml:8:15: `stop_signal`: `KILL` is not a signal that stops servers; the",
            ),
            (
                "\"1s\"\nstop_signal",
                "\"1\"\nstop_signal",
                "server.toml:7:16: `ready_within`: `1` is not a duration",
            ),
            (
                "x.jinja",
                "y.jinja",
                "server.toml:12:12: `template`: `y.jinja` is not a file in servers/x; did you",
            ),
            ("x.conf", "../x", "server.toml:11:8: `name`: `../x` is not a plain file name; write one"),
            ("[\"x\"]", "[]", "server.toml:2:11: `program` is an empty list; write one such as `[\"nginx"),
            (
                "port = 8080",
                "port = 8080, since = \"v1\"",
                "server.toml:4:48: `since`: `v1` is not a version; write numbers and dots",
            ),
            ("title", "titel", "server.toml:1:1: `titel` is not a key of the server; did you mean `title`?"),
            (
                "[[file]]",
                "[back]\nvariants = []\n[[file]]",
                "server.toml:11:12: `variants` is an empty list; write one such as `[\"h1\", \"h2c\"]`",
            ),
            (
                "[[file]]",
                "[back]\nvariants = [\"h9\"]\n[[file]]",
                "server.toml:11:13: `variants`: `h9` is not a variant",
            ),
            (
                "[[file]]",
                "[[tunable]]\nname = \"x\"\nmeaning = \"x\"\nkind = \"y\"\n[[file]]",
                "server.toml:13:8: `kind`: `y` is not a kind",
            ),
            ("[\"{{program}}\"]", "[\"{{program\"]", "server.toml:6:12: `command`: "),
            (
                "[{ name = \"h1\", port = 8080 }]",
                "[]",
                "server.toml:1:1: the server has no `[[variant]]`; add at least one",
            ),
        ] {
            assert!(GOOD.contains(found), "{found}");
            let error = parse(&GOOD.replacen(found, instead, 1), "").unwrap_err();
            assert!(error.contains(expected), "{error} should contain {expected}");
        }
        let error = parse(GOOD, "a\nb {% if %}\n").unwrap_err();
        assert!(error.starts_with("servers/x/x.jinja:2:"), "{error}");
    }
}
