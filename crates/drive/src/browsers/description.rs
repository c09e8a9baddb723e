//! A browser's description: `browser.toml` as written, and resolved.

use std::path::Path;

use anyhow::Result;
use model::options::{BrowserOptions, Options, Visit};
use model::page::Page;
use model::reader::{Key, Table, TableKeys};
use model::workload::Workload;
use model::{HttpVersion, InputError, Pins, Variant, keys};

use super::{BROWSER_FILE, players};
use crate::clients::description::ARGUMENTS;
use crate::description::{
    self, ConfigFile, FILE_KEYS, Files, VARIANT_KEYS, VERSION_KEYS, plain_name, read_variants,
};
use crate::privileges::Privileges;
use crate::program::{InstalledProgram, ProgramInfo, ProgramSpec, Support};
use crate::requirements::{MODULE_KEYS, Requirements};
use crate::template::read_templates;

const BROWSER_KEYS: &[Key] = keys! {
    "protocol", "text", "required", r#""devtools""#,
        "The protocol that drives it: `devtools` (Chromium) or `bidi` (Firefox).";
    "connections", "whole number", "`6`", "6",
        "How many connections it opens to one host over HTTP/1.1; a study's `http1_connections` must be the same.";
    "root_sandbox", "true or false", "`false`", "true", "Whether it has its sandbox also when root starts it.";
    "start", "table", "required", "", "How to start it; see below.";
};
const START_KEYS: &[Key] = keys! {
    "command", "list of texts", "required", r#"["{{program}}", "--headless=new", "{{arguments}}"]"#,
        "The command line; the variant's arguments replace the word `{{arguments}}`.";
    "files", "text", "the profile itself", r#""Default""#,
        "The folder of the profile that the `[[file]]`s are written into.";
};
const BROWSER_VARIANT_KEYS: &[Key] = keys! {
    "arguments", "list of texts", "none", r#"["--disable-quic"]"#, "The arguments that force the variant.";
};

/// Every table of a browser's description.
pub const KEYS: &[TableKeys] = &[
    TableKeys { table: "the browser", keys: description::KEYS },
    TableKeys { table: "the browser", keys: BROWSER_KEYS },
    TableKeys { table: "[version]", keys: VERSION_KEYS },
    TableKeys { table: "[start]", keys: START_KEYS },
    TableKeys { table: "[[file]]", keys: FILE_KEYS },
    TableKeys { table: "[[variant]]", keys: VARIANT_KEYS },
    TableKeys { table: "[[variant]]", keys: BROWSER_VARIANT_KEYS },
    TableKeys { table: "[variant.module]", keys: MODULE_KEYS },
];

model::named! { "a protocol that drives a browser";
    /// The protocol that drives a browser.
    pub enum Protocol {
        /// Chromium's DevTools protocol over its pipe.
        DevTools = "devtools",
        /// WebDriver BiDi over a WebSocket, with Firefox's access to its own window.
        BiDi = "bidi",
    }
}

/// A browser, as described by its folder.
#[derive(Clone, Debug)]
pub struct Browser {
    /// The folder's name.
    pub name: String,
    /// A one-line description.
    pub title: String,
    /// Its variants.
    pub variants: Vec<BrowserVariant>,
    /// The program and its version command.
    pub(crate) program: ProgramSpec,
    pub(crate) protocol: Protocol,
    /// Connections to one host over HTTP/1.1.
    pub(crate) connections: u32,
    /// Whether root has the sandbox, too.
    pub(crate) has_root_sandbox: bool,
    pub(crate) command: Vec<String>,
    pub(crate) files: Vec<ConfigFile>,
    /// The folder of the profile for the files.
    pub(crate) files_folder: Option<String>,
    /// The description's folder, for errors.
    pub(crate) folder: String,
}

/// A variant that a browser supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserVariant {
    /// The variant.
    pub variant: Variant,
    /// What an installation must have for it.
    pub requirements: Requirements,
    /// The arguments that force it.
    pub(crate) arguments: Vec<String>,
}

impl Browser {
    /// Reads and resolves a browser's folder.
    pub(crate) fn parse(name: &str, files: Files) -> Result<Browser, InputError> {
        files.read(BROWSER_FILE, "the browser", BROWSER_KEYS, |root| read(name, &files, root))
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
        let support = |entry: &BrowserVariant| found.support(&self.name, entry.variant, &entry.requirements);
        let variants: Vec<(Variant, Support)> = self.variants.iter().map(support).collect::<Result<_>>()?;
        let InstalledProgram { program, version, build, .. } = found;
        Ok(ProgramInfo { program, version, tls: None, variants, feed: None, build })
    }

    /// Why this browser cannot run a workload over a variant on any machine, if it cannot.
    pub fn refuses(&self, variant: Variant, workload: &Workload, options: &Options) -> Option<String> {
        let name = &self.name;
        if self.variant(variant).is_none() {
            return Some(format!("{name} does not support {variant}"));
        }
        let refused = match workload {
            Workload::Page(page) if !page.delivery.push.is_empty() => {
                Some(format!("{name} does not support server push"))
            }
            Workload::Page(page) => {
                let is_upgrade = options.connections.visit == Visit::Upgrade && !page.hosts.is_empty();
                is_upgrade.then(|| {
                    "the visit `upgrade` needs a page under the server's own name; remove `host` from the page"
                        .to_owned()
                })
            }
            Workload::Player(_) if self.protocol == Protocol::BiDi => {
                Some(format!("{name} plays no videos; use chromium"))
            }
            Workload::Player(player) => players::refuses(name, player),
            _ => {
                let kind = workload.kind().name();
                Some(format!("{name} supports page loads and videos only, not a workload of kind `{kind}`"))
            }
        };
        if refused.is_some() {
            return refused;
        }
        let visit = options.connections.visit;
        if visit == Visit::Upgrade && variant != Variant::H3 {
            return Some(format!("{name} follows Alt-Svc to h3 alone, not to {variant}"));
        }
        let is_special = !visit.is_first() || options.browser != BrowserOptions::default();
        if is_special && (self.protocol == Protocol::BiDi || workload.player().is_some()) {
            return Some(format!("{name} has no commands for this workload with {}", options.describe()));
        }
        let mut others = options.clone();
        others.connections.visit = Visit::First;
        others.browser = BrowserOptions::default();
        (!others.is_default()).then(|| format!("{name} cannot make requests with {}", others.describe()))
    }

    /// Why this browser cannot be compared under these pins, if so.
    pub fn refuses_pins(&self, variant: Variant, pins: &Pins) -> Option<String> {
        let is_http1 = variant.http() == HttpVersion::Http11;
        (is_http1 && pins.http1_connections != self.connections).then(|| {
            format!(
                "{} opens {} connections to a host, not {}; change `http1_connections`",
                self.name, self.connections, pins.http1_connections
            )
        })
    }

    /// Whether it can have its sandbox.
    pub(crate) fn has_sandbox(&self, privileges: Privileges) -> bool {
        self.has_root_sandbox || privileges != Privileges::Root
    }

    /// The description of a variant, if any.
    pub(crate) fn variant(&self, variant: Variant) -> Option<&BrowserVariant> {
        self.variants.iter().find(|entry| entry.variant == variant)
    }

    /// The page of a workload that this browser supports.
    pub(crate) fn page(workload: &Workload) -> Result<&Page> {
        workload
            .page()
            .ok_or_else(|| anyhow::anyhow!("browsers support page loads only; change the workload"))
    }

    /// The description's file, for errors.
    pub(crate) fn file(&self) -> String {
        format!("{}/{BROWSER_FILE}", self.folder)
    }
}

fn read(name: &str, files: &Files, root: &Table<'_>) -> Result<Browser, InputError> {
    let versions = root.required("version", Table::table)?.with_keys(VERSION_KEYS)?;
    let start = root.required("start", Table::table)?.with_keys(START_KEYS)?;
    let variants = read_variants(root, BROWSER_VARIANT_KEYS, |table, variant, requirements| {
        Ok(BrowserVariant {
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
    Ok(Browser {
        name: name.to_owned(),
        title: root.required("title", Table::text)?.value,
        variants,
        program: ProgramSpec::read(root, &versions)?,
        protocol: root.required("protocol", Table::named)?.value,
        connections: root.integer("connections", 1..=u32::MAX)?.map_or(6, |most| most.value),
        has_root_sandbox: root.flag("root_sandbox")?,
        command: command.value,
        files: files.configs(root)?,
        files_folder: start.parsed("files", plain_name)?.map(|name| name.value),
        folder: files.folder.clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const TEXT: &str = "title = \"mine\"\nprogram = [\"mine\"]\nprotocol = \"devtools\"\n\
        version = { command = [\"{{program}}\"], after = \"v\" }\nvariant = [{ name = \"h3\", arguments = [\"--h3\"] }]\n\
        [start]\ncommand = [\"{{program}}\", \"{{arguments}}\"]\n";

    fn parse(text: &str) -> Result<Browser, String> {
        let texts = BTreeMap::from([(BROWSER_FILE.to_owned(), text.to_owned())]);
        Browser::parse("mine", Files { folder: "browsers/mine".to_owned(), texts })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn descriptions_name_their_faults() {
        assert_eq!(parse(TEXT).unwrap().connections, 6);
        for (wrong, right, expected) in [
            ("devtools", "cdp", "browser.toml:3:12: `protocol`: `cdp` is not a protocol"),
            (", \"{{arguments}}\"", "", "`command` has no word `{{arguments}}`"),
            ("h3", "h9", "`h9` is not a variant"),
            ("[start]", "[start]\nfiles = \"../up\"", "is not a plain file name"),
        ] {
            let error = parse(&TEXT.replacen(wrong, right, 1)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
