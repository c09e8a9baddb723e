//! A topology's cross-traffic in a lab used by hand: the flows of studies, as servers and shell commands.

use anyhow::Result;
use drive::{Adapter, RunningServer};
use model::Topology;
use model::topology::CrossTraffic;

use crate::exit::UsageError;
use crate::server_choice::ServerChoice;
use crate::study::cross::{ENDLESS, ORIGIN};

/// The flows of a topology.
///
/// # Errors
/// It has none.
pub(crate) fn flows<'t>(name: &str, topology: Option<&'t Topology>) -> Result<&'t [CrossTraffic]> {
    let flows = topology.map_or(&[][..], |topology| &topology.cross);
    if flows.is_empty() {
        return Err(UsageError(format!(
            "--cross: `{name}` has no cross-traffic; choose a topology with `[[cross]]` such as `shared`"
        ))
        .into());
    }
    Ok(flows)
}

/// Adds an origin in every node that serves a flow and has no server yet.
///
/// # Errors
/// The origin's description is wrong.
pub(crate) fn add_servers(
    topology: &Topology,
    flows: &[CrossTraffic],
    servers: &mut Vec<(ServerChoice, Adapter)>,
) -> Result<()> {
    for flow in flows {
        let node = &topology.nodes[flow.to].name;
        if servers.iter().all(|(choice, _)| choice.node != *node) {
            servers.push(ServerChoice::read(&format!("{node}={ORIGIN}"))?);
        }
    }
    Ok(())
}

/// The nodes and shell commands of the flows; `running` are the servers of `servers`, in the same order.
///
/// # Errors
/// The server of `--serve` in the node is not the origin, or lacks the flow's variant.
pub(crate) fn commands(
    topology: &Topology,
    flows: &[CrossTraffic],
    servers: &[(ServerChoice, Adapter)],
    running: &[RunningServer<'_>],
) -> Result<Vec<(String, String)>> {
    let command = |flow: &CrossTraffic| {
        let node = &topology.nodes[flow.to].name;
        let is_there = |((choice, _), _): &(&(ServerChoice, Adapter), &RunningServer<'_>)| {
            choice.node == *node && choice.server == ORIGIN
        };
        let server = servers.iter().zip(running).find(is_there);
        let target = server.and_then(|(_, server)| server.target(flow.variant)).ok_or_else(|| {
            UsageError(format!(
                "--cross needs the server {ORIGIN} with {} in the node `{node}`; choose another node for --serve",
                flow.variant
            ))
        })?;
        let (variant, flows) = (flow.variant, flow.flows);
        let (scheme, authority) = (variant.scheme(), target.authority);
        let trust = if variant.is_encrypted() { " --cacert \"$H123_CA\"" } else { "" };
        let text = format!(
            "exec \"$H123\" load --variant {variant} -c {flows} -d 24h --timeout none{trust} \
             {scheme}://{authority}{ENDLESS}"
        );
        Ok((topology.nodes[flow.from].name.clone(), text))
    };
    flows.iter().map(command).collect()
}
