//! Probes an installed server: its version and its variants.

use std::path::Path;

use anyhow::{Result, bail};
use model::Variant;

use super::ADAPTER_FILE;
use super::adapter::{Adapter, Tls};
use crate::program::{InstalledProgram, ProgramInfo, Support, two_words_after};
use crate::template::{Variables, fill, is_at_least};

impl Adapter {
    /// Finds the server and its version, once per process. `tool` is `{{self}}` in templates.
    ///
    /// # Errors
    /// The server is not installed, with the command that installs it, or prints no version.
    pub fn probe(&self, tool: &Path) -> Result<ProgramInfo> {
        ProgramInfo::once(&self.folder, tool, || self.look(tool))
    }

    fn look(&self, tool: &Path) -> Result<ProgramInfo> {
        let found = self.program.find(&self.file(), tool)?;
        let (name, version) = (&self.name, &found.version);
        if let Some(oldest) = self.oldest_version.as_ref().filter(|oldest| !is_at_least(version, oldest)) {
            let program = found.program.display();
            bail!("{name} {version} at {program} is too old; install {oldest} or newer");
        }
        let variants = self.variants.iter();
        let variants = variants.map(|entry| found.support(name, entry.variant, &entry.requirements));
        let variants = variants.collect::<Result<Vec<_>>>()?;
        let feed = match self.feed.as_ref().map(|feed| &feed.module) {
            None => None,
            Some(None) => Some(Ok(String::new())),
            Some(Some(module)) => Some(found.find_module(name, module, "a feed")?),
        };
        let InstalledProgram { program, version, build, .. } = found;
        let is_supported = |(variant, support): &(Variant, Support)| {
            variant.is_encrypted() && *support == Support::Supported
        };
        let tls = match &self.tls {
            _ if !variants.iter().any(is_supported) => None,
            Tls::Unknown => None,
            Tls::Named(name) => Some(name.clone()),
            Tls::After(text) => two_words_after(&build, text),
        };
        Ok(ProgramInfo { program, version, tls, variants, feed, build })
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
