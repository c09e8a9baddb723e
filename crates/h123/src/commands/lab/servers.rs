//! Servers in the nodes of a lab used by hand.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use drive::{Adapter, Authority, RunningServer, StartSpec, Support};
use lab::Node;
use model::media::Media;
use model::tunable::NO_SETTINGS;
use model::{Outcome, Page, Pins, Variant};

use crate::commands::serve::{all_media, all_pages};
use crate::server_choice::V6_SUFFIX;

/// What the servers of a lab share.
pub(crate) struct ServerSetup {
    authority: Authority,
    /// The authority's certificate, for clients.
    pub(crate) authority_file: PathBuf,
    pages: Vec<Page>,
    media: Vec<Media>,
    content: PathBuf,
    folder: PathBuf,
    tool: PathBuf,
    pins: Pins,
    seed: u64,
}

impl ServerSetup {
    /// Writes pages and the authority's certificate into the lab's folder.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn new(folder: &Path, pins: &Pins, seed: u64) -> Result<ServerSetup> {
        let (authority, pages) = (Authority::new()?, all_pages());
        let content = folder.join("content");
        drive::write_content(&content, &pages)?;
        let authority_file = folder.join("ca.pem");
        fs::write(&authority_file, authority.pem())
            .with_context(|| format!("cannot write {}", authority_file.display()))?;
        Ok(ServerSetup {
            authority,
            authority_file,
            pages,
            media: all_media(),
            content,
            folder: folder.to_owned(),
            tool: std::env::current_exe().context("cannot find the path of this program")?,
            pins: pins.clone(),
            seed,
        })
    }

    /// Starts a server in a node with every variant that it supports here, and waits until it is ready.
    ///
    /// # Errors
    /// The program is missing, or it does not come up: the end of its log.
    pub(crate) fn start<'n>(&self, node: &'n Node, adapter: &Adapter) -> Result<RunningServer<'n>> {
        let found = adapter.probe(&self.tool)?;
        let variants: Vec<Variant> = Variant::ALL
            .into_iter()
            .filter(|variant| matches!(found.support(*variant), Support::Supported))
            .collect();
        let addresses = node.addresses();
        // This machine's /etc/hosts is unchanged and has no names of nodes.
        let name = if addresses.v4.is_loopback() { "localhost" } else { node.name() };
        let v6_name = format!("{name}{V6_SUFFIX}");
        let all: Vec<IpAddr> =
            [IpAddr::from(addresses.v4)].into_iter().chain(addresses.v6.map(IpAddr::from)).collect();
        let identity = self.authority.issue(&[name, &v6_name, "localhost"], &all)?;
        let spec = StartSpec {
            folder: &self.folder.join(node.name()),
            tool: &self.tool,
            variants: &variants,
            pins: &self.pins,
            set: &NO_SETTINGS,
            back: None,
            pages: &self.pages,
            media: &self.media,
            content: &self.content,
            identity: &identity,
            server_name: name,
            has_browsers: false,
            threads: 1,
            cpus: &[],
            seed: self.seed,
        };
        match adapter.start(node, &spec) {
            Ok(server) => Ok(server),
            Err(Outcome::Failed(failure)) => bail!("{}", failure.reason),
            Err(Outcome::Unsupported(reason)) => bail!("{reason}"),
            Err(Outcome::Ok) => bail!("the server did not start"),
        }
    }
}

/// The server's address for each variant, one line each.
pub(crate) fn addresses_of(server: &RunningServer<'_>) -> Vec<String> {
    Variant::ALL
        .into_iter()
        .filter_map(|variant| {
            let target = server.target(variant)?;
            Some(format!(
                "  {:<4} {}://{}/  ({})",
                variant.name(),
                variant.scheme(),
                target.authority,
                target.address
            ))
        })
        .collect()
}
