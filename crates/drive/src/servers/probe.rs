//! Whether a server is here, which version, and what it can do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};
use model::Variant;

use super::ADAPTER_FILE;
use super::adapter::{Adapter, AdapterVariant, Tls};
use crate::program::{Asked, two_words_after};
use crate::template::{Variables, fill, is_at_least};

/// A server as it is on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The program.
    pub program: PathBuf,
    /// The version that it says it is.
    pub version: String,
    /// Its TLS library; `None` where nothing tells it.
    pub tls: Option<String>,
    /// Every variant of the adapter, and whether it exists here.
    pub variants: Vec<(Variant, Support)>,
    /// All that the version command said.
    pub(crate) build: String,
}

/// Whether a variant exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It does.
    Supported,
    /// It does not, and why.
    Unsupported(String),
}

impl Found {
    /// Whether this server speaks a variant here.
    pub fn support(&self, variant: Variant) -> Support {
        let known = self.variants.iter().find(|(known, _)| *known == variant);
        known.map_or_else(
            || Support::Unsupported(format!("the server's description has no variant `{variant}`")),
            |(_, support)| support.clone(),
        )
    }
}

/// What was found, by the programs looked for and the tool; a server does not change while the tool runs.
static KNOWN: Mutex<BTreeMap<(String, PathBuf), Found>> = Mutex::new(BTreeMap::new());

impl Adapter {
    /// Looks for the server and asks its version; asked once per process. `tool` is what `{{self}}` means.
    ///
    /// # Errors
    /// It is not installed, with what would install it, or it says no version.
    pub fn probe(&self, tool: &Path) -> Result<Found> {
        let key = (format!("{}/{}", self.folder, self.name), tool.to_owned());
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&key) {
            return Ok(found.clone());
        }
        let found = self.look(tool)?;
        known().insert(key, found.clone());
        Ok(found)
    }

    fn look(&self, tool: &Path) -> Result<Found> {
        let Asked { program, command, version, said: build } = self.wanted.ask(&self.file(), tool)?;
        if let Some(oldest) = self.oldest_version.as_ref().filter(|oldest| !is_at_least(&version, oldest)) {
            let (name, program) = (&self.name, program.display());
            bail!("found {name} {version} at {program}, expected {oldest} or later");
        }
        let lacks = |entry: &AdapterVariant| {
            let since = entry.since.as_ref().filter(|since| !is_at_least(&version, since))?;
            let (name, program, variant) = (&self.name, program.display(), entry.variant);
            Some(format!("{name} {version} at {program} has no {variant}, which came with {since}"))
        };
        let support = |entry: &AdapterVariant| match &entry.requires {
            _ if lacks(entry).is_some() => Support::Unsupported(lacks(entry).unwrap_or_default()),
            Some(text) if !build.contains(text) => Support::Unsupported(format!(
                "{} {version} at {} was built without {} (`{}` does not say `{text}`)",
                self.name,
                program.display(),
                entry.variant,
                command
            )),
            _ => Support::Supported,
        };
        let variants = self.variants.iter().map(|entry| (entry.variant, support(entry))).collect();
        let tls = match &self.tls {
            Tls::Unknown => None,
            Tls::Named(name) => Some(name.clone()),
            Tls::After(text) => two_words_after(&build, text),
        };
        Ok(Found { program, version, tls, variants, build })
    }

    /// Fills in every word of a command.
    pub(crate) fn fill(
        &self,
        words: &[String],
        version: &str,
        build: &str,
        variables: &Variables,
    ) -> Result<Vec<String>> {
        fill(words, &self.file(), version, build, variables)
    }

    /// The description's file, for errors.
    fn file(&self) -> String {
        format!("{}/{ADAPTER_FILE}", self.folder)
    }
}
