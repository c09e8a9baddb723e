//! What `h123 lab` refuses before anything is built.

use anyhow::Result;
use drive::Adapter;
use model::plan::DIRECT;
use model::topology::Role;
use model::{Backend, Pins, Topology};

use crate::commands::lab::servers::Wanted;
use crate::exit::UsageError;

/// Refuses two servers in one node, and one in a switch, which has no address.
///
/// # Errors
/// The option, what was found and what is expected.
pub(crate) fn places(topology: Option<&Topology>, servers: &[(Wanted, Adapter)]) -> Result<()> {
    for (place, (wanted, _)) in servers.iter().enumerate() {
        let node = &wanted.node;
        if servers[..place].iter().any(|(other, _)| other.node == *node) {
            let problem =
                format!("--serve: found two servers for the node `{node}`, expected one for each node");
            return Err(UsageError(problem).into());
        }
        let mut nodes = topology.into_iter().flat_map(|topology| &topology.nodes);
        if nodes.any(|other| other.name == *node && other.role == Role::Switch) {
            let problem = format!("--serve: found the switch `{node}`, expected a node with an address");
            return Err(UsageError(problem).into());
        }
    }
    Ok(())
}

/// Refuses what a backend cannot do, and networks and backends where nothing is emulated.
///
/// # Errors
/// The option, what was found and what is expected.
pub(crate) fn backend(
    backend: Backend,
    has_networks: bool,
    has_capture: bool,
    topology: Option<&Topology>,
) -> Result<()> {
    if topology.is_none() && (backend != Backend::default() || has_networks) {
        let option = if has_networks { "--network" } else { "--backend" };
        let problem = format!(
            "{option}: found it with `{DIRECT}`, where nothing is emulated, expected it with a network or a topology such as \
             `pair`"
        );
        return Err(UsageError(problem).into());
    }
    let mtu_bytes = Pins::default().mtu_bytes;
    let links = topology.into_iter().flat_map(|topology| &topology.links);
    for network in links.filter_map(|link| link.network.as_ref()) {
        let honoured = backend.check(network, mtu_bytes);
        honoured.map_err(|unhonoured| UsageError(format!("--backend: {unhonoured}")))?;
        if has_capture && backend == Backend::Netem {
            let problem = "--pcap: found it with the backend netem, whose packets h123 does not see, expected \
                           `--backend user-space`, or tcpdump in a node";
            return Err(UsageError(problem.to_owned()).into());
        }
    }
    Ok(())
}
