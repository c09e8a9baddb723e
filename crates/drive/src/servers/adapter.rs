//! A server's description: `server.toml` as written, and resolved.

use std::time::Duration;

use model::error::Source;
use model::pins::KeyExchange;
use model::{InputError, Pins, ServerFacts, Tunable, Variant};
use rustix::process::Signal;

use super::ADAPTER_FILE;
use super::access_log::AccessLog;
use crate::description::{ConfigFile, Files};
use crate::program::ProgramSpec;

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
    /// Older versions are not supported.
    pub(crate) oldest_version: Option<String>,
    /// The source of the TLS library's name and version.
    pub(crate) tls: Tls,
    pub(crate) files: Vec<ConfigFile>,
    /// The settings that a study may change.
    pub tunables: Vec<Tunable>,
    /// How it connects to a server behind it; `None` for a server that is no proxy.
    pub(crate) back: Option<Back>,
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
    /// Text in the version command's output that shows that the variant is supported.
    pub requires: Option<String>,
    /// The version that added the variant.
    pub since: Option<String>,
    /// The supported key exchanges; all where empty.
    pub key_exchanges: Vec<KeyExchange>,
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
        let file = format!("{}/{ADAPTER_FILE}", files.folder);
        let text = files.texts.get(ADAPTER_FILE).map_or("", String::as_str);
        let source = Source { file: &file, text };
        let written: written::Adapter = toml::from_str(text).map_err(|error| source.toml_error(&error))?;
        written.resolve(name, &files, source)
    }

    /// Why a variant does not support the pins, if it does not.
    pub fn refuses(&self, variant: Variant, pins: &Pins) -> Option<String> {
        let known = &self.variant(variant)?.key_exchanges;
        (!known.is_empty() && !known.contains(&pins.key_exchange)).then(|| {
            let known: Vec<&str> = known.iter().map(|exchange| exchange.name()).collect();
            let (asked, known) = (pins.key_exchange.name(), known.join(", "));
            format!(
                "{} supports {variant} only with the key exchange {known}; the study pins {asked}",
                self.name
            )
        })
    }

    /// The facts that a study needs.
    pub fn facts(&self) -> ServerFacts {
        ServerFacts {
            variants: self.variants.iter().map(|entry| entry.variant).collect(),
            back_variants: self.back.as_ref().map_or_else(Vec::new, |back| back.variants.clone()),
            needs_back: self.back.as_ref().is_some_and(|back| back.is_needed),
            tunables: self.tunables.clone(),
        }
    }

    /// The description of a variant, if any.
    pub fn variant(&self, variant: Variant) -> Option<&AdapterVariant> {
        self.variants.iter().find(|entry| entry.variant == variant)
    }
}

/// The file as written.
mod written {
    use std::time::Duration;

    use model::error::Source;
    use model::pins::KeyExchange;
    use model::tunable::TunableEntry;
    use model::{InputError, units};
    use rustix::process::Signal;
    use serde::Deserialize;
    use toml::Spanned;

    use super::AdapterVariant;
    use crate::description::{Files, WrittenFile, config_file, valid_template, variants, words};
    use crate::program::ProgramSpec;
    use crate::servers::access_log::WrittenLog;

    /// The signals that end servers.
    const SIGNALS: &[(&str, Signal)] =
        &[("TERM", Signal::TERM), ("QUIT", Signal::QUIT), ("INT", Signal::INT)];

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Adapter {
        title: String,
        program: Spanned<Vec<Spanned<String>>>,
        install: Option<String>,
        #[serde(default)]
        drops_privileges: bool,
        #[serde(default)]
        refuses_root: bool,
        version: Version,
        start: Start,
        access_log: Option<WrittenLog>,
        #[serde(default)]
        file: Vec<WrittenFile>,
        variant: Spanned<Vec<VariantEntry>>,
        #[serde(default)]
        tunable: Vec<TunableEntry>,
        back: Option<Back>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Back {
        variants: Spanned<Vec<Spanned<String>>>,
        #[serde(default)]
        needed: bool,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Version {
        command: Spanned<Vec<Spanned<String>>>,
        after: Spanned<String>,
        at_least: Option<Spanned<String>>,
        tls: Option<String>,
        tls_after: Option<Spanned<String>>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Start {
        command: Spanned<Vec<Spanned<String>>>,
        ready_within: Spanned<String>,
        ready_says: Option<Spanned<String>>,
        stop_signal: Spanned<String>,
        stop_within: Spanned<String>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct VariantEntry {
        name: Spanned<String>,
        port: Spanned<u16>,
        requires: Option<String>,
        since: Option<Spanned<String>>,
        #[serde(default)]
        key_exchange: Vec<KeyExchange>,
        #[serde(default)]
        sends: Sends,
    }

    /// How a variant sends, as templates.
    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sends {
        congestion_control: Option<Spanned<String>>,
        initial_window: Option<Spanned<String>>,
        pacing: Option<Spanned<String>>,
        gso: Option<Spanned<String>>,
        tls_records: Option<Spanned<String>>,
    }

    impl Adapter {
        pub(super) fn resolve(
            self,
            name: &str,
            files: &Files,
            source: Source<'_>,
        ) -> Result<super::Adapter, InputError> {
            let Version { command, after, .. } = &self.version;
            let program = ProgramSpec::read(&self.program, self.install, command, after.clone(), source)?;
            let oldest = self.version.at_least.as_ref();
            let oldest_version = oldest.map(|oldest| plain_version(oldest, source)).transpose()?;
            let configs = self.file.iter().map(|file| config_file(file, files, source));
            let tls = match (self.version.tls, self.version.tls_after) {
                (Some(name), None) => super::Tls::Named(name),
                (None, Some(after)) => super::Tls::After(after.into_inner()),
                (None, None) => super::Tls::Unknown,
                (Some(_), Some(after)) => {
                    let problem = "found `tls` and `tls_after`, expected one of them";
                    return Err(source.error(after.span(), problem));
                }
            };
            Ok(super::Adapter {
                name: name.to_owned(),
                title: self.title,
                variants: read_variants(&self.variant, source)?,
                tunables: TunableEntry::resolve_all(&self.tunable, source)?,
                back: self.back.as_ref().map(|written| back(written, source)).transpose()?,
                program,
                drops_privileges: self.drops_privileges,
                refuses_root: self.refuses_root,
                oldest_version,
                tls,
                files: configs.collect::<Result<_, _>>()?,
                start: start(&self.start, source)?,
                access_log: self.access_log.map(|log| log.resolve(source)).transpose()?,
                folder: files.folder.clone(),
            })
        }
    }

    fn back(written: &Back, source: Source<'_>) -> Result<super::Back, InputError> {
        let list = &written.variants;
        if list.get_ref().is_empty() {
            let problem = "found an empty list, expected the variants for the server behind the proxy";
            return Err(source.error(list.span(), problem));
        }
        let read = |name: &Spanned<String>| {
            name.get_ref().parse().map_err(|problem: String| source.error(name.span(), problem))
        };
        let variants = list.get_ref().iter().map(read).collect::<Result<_, _>>()?;
        Ok(super::Back { variants, is_needed: written.needed })
    }

    fn start(written: &Start, source: Source<'_>) -> Result<super::Start, InputError> {
        let duration = |text: &Spanned<String>| {
            let nanoseconds = units::parse_duration_ns(text.get_ref());
            nanoseconds.map(Duration::from_nanos).map_err(|problem| source.error(text.span(), problem))
        };
        let signal = &written.stop_signal;
        let stop_signal = SIGNALS.iter().find(|(name, _)| name == signal.get_ref());
        let (_, stop_signal) = stop_signal.ok_or_else(|| {
            let found = signal.get_ref();
            source.error(signal.span(), format!("found `{found}`, expected one of TERM, QUIT, INT"))
        })?;
        let ready_says = written.ready_says.as_ref().map(|text| valid_template(text, source)).transpose()?;
        Ok(super::Start {
            command: words(&written.command, source, "a command")?,
            ready_within: duration(&written.ready_within)?,
            ready_says,
            stop_signal: *stop_signal,
            stop_within: duration(&written.stop_within)?,
        })
    }

    fn plain_version(written: &Spanned<String>, source: Source<'_>) -> Result<String, InputError> {
        let text = written.get_ref();
        if text.split('.').all(|part| part.parse::<u32>().is_ok()) {
            return Ok(text.clone());
        }
        Err(source.error(written.span(), format!("found `{text}`, expected a version such as `1.25.0`")))
    }

    /// The templates, in the order of [`model::record::Sending::NAMES`].
    fn sends(written: &Sends, source: Source<'_>) -> Result<[Option<String>; 5], InputError> {
        let Sends { congestion_control, initial_window, pacing, gso, tls_records } = written;
        let texts = [congestion_control, initial_window, pacing, gso, tls_records];
        let mut templates = [const { None }; 5];
        for (template, text) in templates.iter_mut().zip(texts) {
            *template = text.as_ref().map(|text| valid_template(text, source)).transpose()?;
        }
        Ok(templates)
    }

    fn read_variants(
        list: &Spanned<Vec<VariantEntry>>,
        source: Source<'_>,
    ) -> Result<Vec<AdapterVariant>, InputError> {
        let mut taken: Vec<(u16, bool)> = Vec::new();
        variants(
            list,
            source,
            |entry| &entry.name,
            |entry, variant| {
                let port = *entry.port.get_ref();
                if port == 0 || taken.contains(&(port, variant.is_quic())) {
                    let problem = format!(
                        "port {port} is not available; choose one that is not 0 and not another variant's"
                    );
                    return Err(source.error(entry.port.span(), problem));
                }
                taken.push((port, variant.is_quic()));
                Ok(AdapterVariant {
                    variant,
                    port,
                    requires: entry.requires.clone(),
                    since: entry.since.as_ref().map(|since| plain_version(since, source)).transpose()?,
                    key_exchanges: entry.key_exchange.clone(),
                    sends: sends(&entry.sends, source)?,
                })
            },
        )
    }
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
        let reason = adapter.refuses(Variant::H1, &Pins::default()).unwrap();
        assert_eq!(reason, "x supports h1 only with the key exchange secp256r1; the study pins x25519");
        let pins = Pins { key_exchange: KeyExchange::Secp256r1, ..Pins::default() };
        assert_eq!(adapter.refuses(Variant::H1, &pins), None);
    }

    #[test]
    fn faults_name_the_place() {
        assert_eq!(parse(GOOD, "").unwrap().variants[0].port, 8080);
        for (found, instead, expected) in [
            ("port = 8080", "port = 0", "servers/x/server.toml:4:34: port 0 is not available"),
            ("\"h1\"", "\"h9\"", "servers/x/server.toml:4:21: `h9` is not a variant"),
            ("\"TERM\"", "\"KILL\"", "server.toml:8:15: found `KILL`, expected one of TERM"),
            ("\"1s\"\nstop_signal", "\"1\"\nstop_signal", "server.toml:7:16: `1` is not a duration"),
            ("x.jinja", "y.jinja", "server.toml:12:12: found `y.jinja`, expected the name of a file"),
            (
                "x.conf",
                "../x.conf",
                "server.toml:11:8: found `../x.conf`, expected a file name without folders",
            ),
            ("[\"x\"]", "[]", "server.toml:2:11: found an empty list, expected a program"),
            (
                "port = 8080",
                "port = 8080, since = \"v1\"",
                "server.toml:4:48: found `v1`, expected a version such as",
            ),
            ("title", "titel", "server.toml:1:1: unknown field `titel`"),
            (
                "[[file]]",
                "[back]\nvariants = []\n[[file]]",
                "server.toml:11:12: found an empty list, expected the variants for the server",
            ),
            ("[[file]]", "[back]\nvariants = [\"h9\"]\n[[file]]", "server.toml:11:13: `h9` is not a variant"),
            (
                "[[file]]",
                "[[tunable]]\nname = \"x\"\nmeaning = \"x\"\nkind = \"y\"\n[[file]]",
                "server.toml:13:8: `kind`: `y` is not a kind",
            ),
            ("[\"{{program}}\"]", "[\"{{program\"]", "server.toml:6:12: "),
            ("[{ name = \"h1\", port = 8080 }]", "[]", "found no `[[variant]]`"),
        ] {
            assert!(GOOD.contains(found), "{found}");
            let error = parse(&GOOD.replacen(found, instead, 1), "").unwrap_err();
            assert!(error.contains(expected), "{error} should say {expected}");
        }
        let error = parse(GOOD, "a\nb {% if %}\n").unwrap_err();
        assert!(error.starts_with("servers/x/x.jinja:2:"), "{error}");
    }
}
