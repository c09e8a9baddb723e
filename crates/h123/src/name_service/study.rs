//! The name server of a study's run.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::{Context, Result};
use lab::{Lab, Process};
use model::plan::ServerChain;
use model::sample::{FailureKind, Outcome};
use model::{Cell, Topology};
use names::{Config, Host, PORT, View};

use crate::name_service::{self, files, start};
use crate::study::{SERVER_NAME, Study, failed};

impl Study<'_> {
    /// Starts the study's name server, which knows the address of the run's server, and makes the clients use
    /// it; `None` where clients know the address.
    ///
    /// # Errors
    /// The run's outcome: it did not come up.
    pub(crate) fn start_name_server(
        &self,
        lab: &Lab,
        cells: &[Cell],
        logs: &Path,
    ) -> Result<Option<Process>, Outcome> {
        let Some(cell) = cells.first().filter(|_| self.has_dns()) else { return Ok(None) };
        let Some(topology) = self.plan.topology_of(cell) else { return Ok(None) };
        let start = || {
            let nodes: BTreeSet<&str> = cells.iter().map(|cell| cell.group.node.as_str()).collect();
            for node in nodes.into_iter().filter_map(|name| lab.node(name)) {
                let files = files(&topology, node.name()).context("a client has no link to it")?;
                node.cover_files(files)?;
            }
            fs::create_dir_all(logs).with_context(|| format!("cannot create {}", logs.display()))?;
            start(lab, &config(lab, &topology, &cell.chain, self.hosts_of(cells))?, logs)
        };
        start().map(Some).map_err(|error| failed(FailureKind::Lab)(error.context("the name server")))
    }

    /// The further names of the server: the hosts of the cells' pages.
    fn hosts_of<'a>(&'a self, cells: &'a [Cell]) -> impl Iterator<Item = &'a String> {
        let pages = cells.iter().filter_map(|cell| self.plan.workload_of(&cell.group).workload.page());
        pages.flat_map(|page| &page.hosts)
    }

    /// Whether clients look up the server's name over DNS. On the loopback only this machine's resolver could
    /// answer.
    pub(crate) fn has_dns(&self) -> bool {
        self.emulated && self.plan.dns_rtt_ns.is_some()
    }
}

/// The configuration: where to listen, and the server's name and address.
fn config<'a>(
    lab: &Lab,
    topology: &Topology,
    chain: &ServerChain,
    hosts: impl Iterator<Item = &'a String>,
) -> Result<Config> {
    let own = topology.name_server().context("the topology was made without it")?;
    let listen = own.interfaces.iter().filter_map(|port| Some(IpAddr::from(port.v4?.0)));
    let server = lab.node(&chain.node).context("there is no node for the server")?;
    let address = server.addresses().v4;
    let names: BTreeSet<String> = hosts.cloned().chain([SERVER_NAME.to_owned()]).collect();
    let host = |name| Host { name, addresses: vec![address.into()], services: Vec::new() };
    let hosts = names.into_iter().map(host).collect();
    let listen = listen.map(|ip| SocketAddr::new(ip, PORT)).collect();
    Ok(name_service::config(topology, vec![View { listen, hosts }]))
}
