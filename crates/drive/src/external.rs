//! Programs in place of h123's own client: load generators and browsers.

use std::path::Path;

use anyhow::Result;
use lab::Node;
use model::assignment::Assignment;
use model::options::Options;
use model::workload::Workload;
use model::{Pins, Variant};

use crate::browsers::description::Browser;
use crate::browsers::{Browsers, players};
use crate::client::{ClientOutcome, Limits};
use crate::clients::Clients;
use crate::clients::description::Client;
use crate::clients::run::ExternalSpec;
use crate::description::DescriptionError;
use crate::privileges::Privileges;
use crate::program::{ProgramInfo, Support};

/// A level of the factor `client` other than h123's own.
#[derive(Clone, Debug)]
pub enum ExternalClient {
    /// A load generator, which runs closed loops.
    Tool(Box<Client>),
    /// A browser, which loads pages.
    Browser(Box<Browser>),
}

impl ExternalClient {
    /// The names of all described load generators and browsers, sorted.
    pub fn names() -> Vec<String> {
        let mut names = [Clients::names(), Browsers::names()].concat();
        names.sort();
        names.dedup();
        names
    }

    /// Reads one's description. A load generator takes precedence over a browser of the same name.
    ///
    /// # Errors
    /// There is none of that name, or it is invalid; with file, line and column.
    pub fn find(name: &str) -> Result<ExternalClient, DescriptionError> {
        if Browsers::names().iter().any(|known| known == name)
            && !Clients::names().iter().any(|known| known == name)
        {
            return Ok(ExternalClient::Browser(Box::new(Browsers::find(name)?)));
        }
        Ok(ExternalClient::Tool(Box::new(Clients::find(name)?)))
    }

    /// Finds the program and its version, once per process. `tool` is `{{self}}` in templates.
    ///
    /// # Errors
    /// The program is not installed, with the command that installs it, or prints no version.
    pub fn probe(&self, tool: &Path) -> Result<ProgramInfo> {
        match self {
            ExternalClient::Tool(client) => client.probe(tool),
            ExternalClient::Browser(browser) => browser.probe(tool),
        }
    }

    /// Why it cannot run a workload over a variant on any machine, if it cannot.
    pub fn refuses(&self, variant: Variant, workload: &Workload, options: &Options) -> Option<String> {
        match self {
            ExternalClient::Tool(client) => client.refuses(variant, workload, options),
            ExternalClient::Browser(browser) => browser.refuses(variant, workload, options),
        }
    }

    /// Why it cannot run a workload over a variant on this machine and under these pins, if so. A load
    /// generator that is not installed fails its runs; a browser or a player that is not installed is
    /// unsupported.
    pub fn unsupported(
        &self,
        variant: Variant,
        workload: &Workload,
        pins: &Pins,
        tool: &Path,
    ) -> Option<String> {
        if let ExternalClient::Browser(browser) = self {
            let play = workload.player().and_then(|player| player.browser.as_ref());
            let missing = || Some(format!("{:#}", players::find(play?.library).err()?));
            if let Some(reason) = browser.refuses_pins(variant, pins).or_else(missing) {
                return Some(reason);
            }
        }
        match (self.probe(tool), self) {
            (Ok(info), _) => match info.support(variant) {
                Support::Supported => None,
                Support::Unsupported(reason) => Some(reason),
            },
            (Err(error), ExternalClient::Browser(_)) => Some(format!("{error:#}")),
            (Err(_), ExternalClient::Tool(_)) => None,
        }
    }

    /// Whether it is a browser without its sandbox, because this process is root.
    pub fn lacks_sandbox(&self) -> bool {
        matches!(self, ExternalClient::Browser(browser) if !browser.has_sandbox(Privileges::of_this_process()))
    }

    /// Whether it is a browser.
    pub const fn is_browser(&self) -> bool {
        matches!(self, ExternalClient::Browser(_))
    }

    /// Runs it in a node to its end.
    ///
    /// # Errors
    /// Faults of the tool only: a file cannot be written. The program's failure is an outcome.
    pub fn run(
        &self,
        node: &Node,
        assignment: &Assignment,
        limits: &Limits,
        spec: &ExternalSpec<'_>,
    ) -> Result<ClientOutcome> {
        match self {
            ExternalClient::Tool(client) => client.run(node, assignment, limits, spec),
            ExternalClient::Browser(browser) => browser.run(node, assignment, limits, spec),
        }
    }
}
