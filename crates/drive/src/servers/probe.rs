//! Probes an installed server: its version and its variants.

use std::path::Path;

use anyhow::{Result, bail};

use super::ADAPTER_FILE;
use super::adapter::{Adapter, AdapterVariant, Tls};
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
        let InstalledProgram { program, command, version, build } = self.program.find(&self.file(), tool)?;
        if let Some(oldest) = self.oldest_version.as_ref().filter(|oldest| !is_at_least(&version, oldest)) {
            let (name, program) = (&self.name, program.display());
            bail!("{name} {version} at {program} is too old; install {oldest} or newer");
        }
        let lacks = |entry: &AdapterVariant| {
            let since = entry.since.as_ref().filter(|since| !is_at_least(&version, since))?;
            let (name, program, variant) = (&self.name, program.display(), entry.variant);
            Some(format!("{name} {version} at {program} has no {variant}; version {since} added it"))
        };
        let support = |entry: &AdapterVariant| match &entry.requires {
            _ if lacks(entry).is_some() => Support::Unsupported(lacks(entry).unwrap_or_default()),
            Some(text) if !build.contains(text) => Support::Unsupported(format!(
                "{} {version} at {} was built without {} (the output of `{}` does not contain `{text}`)",
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
        Ok(ProgramInfo { program, version, tls, variants, build })
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
