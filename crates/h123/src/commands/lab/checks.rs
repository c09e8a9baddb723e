//! Options of `h123 lab` that contradict each other or the topology, refused before the lab is built.

use anyhow::Result;
use drive::Adapter;
use model::plan::DIRECT;
use model::topology::Role;
use model::{Backend, Topology};

use crate::exit::UsageError;
use crate::server_choice::ServerChoice;

/// Refuses two servers in one node, and a server in a switch, which has no address.
///
/// # Errors
/// A [`UsageError`] that names the option.
pub(crate) fn places(topology: Option<&Topology>, servers: &[(ServerChoice, Adapter)]) -> Result<()> {
    for (place, (choice, _)) in servers.iter().enumerate() {
        let node = &choice.node;
        if servers[..place].iter().any(|(other, _)| other.node == *node) {
            let problem = format!("--serve: the node `{node}` has two servers; choose one for each node");
            return Err(UsageError(problem).into());
        }
        let mut nodes = topology.into_iter().flat_map(|topology| &topology.nodes);
        if nodes.any(|other| other.name == *node && other.role == Role::Switch) {
            let problem = format!("--serve: `{node}` is a switch and has no address; choose another node");
            return Err(UsageError(problem).into());
        }
    }
    Ok(())
}

/// What the command line asks of the links.
pub(crate) struct LinkOptions {
    pub(crate) backend: Backend,
    pub(crate) mtu_bytes: u32,
    /// An option that has no meaning without an emulated link.
    pub(crate) needs_links: Option<String>,
    pub(crate) has_capture: bool,
}

/// Refuses what a backend cannot do, and networks and backends where nothing is emulated.
///
/// # Errors
/// A [`UsageError`] that names the option.
pub(crate) fn backend(options: &LinkOptions, topology: Option<&Topology>) -> Result<()> {
    let LinkOptions { backend, mtu_bytes, needs_links, has_capture } = options;
    if let (None, Some(option)) = (topology, needs_links) {
        let problem = format!(
            "{option} requires an emulated network, and `{DIRECT}` emulates none; choose a network or a topology such as `pair`"
        );
        return Err(UsageError(problem).into());
    }
    let links = topology.into_iter().flat_map(|topology| &topology.links);
    for network in links.filter_map(|link| link.network.as_ref()) {
        let honoured = backend.check(network, *mtu_bytes);
        honoured.map_err(|problem| UsageError(format!("--backend: {problem}")))?;
        if *has_capture && *backend == Backend::Netem {
            let problem = "--pcap does not work with the backend netem, whose packets h123 does not see; use `--backend \
                           user-space`, or tcpdump in a node";
            return Err(UsageError(problem.to_owned()).into());
        }
    }
    Ok(())
}
