//! Descriptions of topologies.

use std::fmt::Write;

use super::{Interface, Role, Topology};
use crate::network;

/// The nodes with their addresses and the links with their networks, one line each.
pub fn describe(topology: &Topology) -> String {
    let mut text = format!("{}: {}\n", topology.name, topology.title);
    for node in &topology.nodes {
        let role = match node.role {
            Role::Host => "",
            Role::Router => " (router)",
            Role::Switch => " (switch)",
        };
        let addresses = node.interfaces.iter().flat_map(Interface::addresses);
        let addresses: Vec<String> =
            addresses.map(|(address, prefix)| format!("{address}/{prefix}")).collect();
        let separator = if addresses.is_empty() { "" } else { ": " };
        let _ = writeln!(text, "node {}{role}{separator}{}", node.name, addresses.join(", "));
    }
    for link in &topology.links {
        let [from, to] = link.ends.map(|(node, _)| topology.nodes[node].name.as_str());
        let Some(found) = &link.network else {
            let _ = writeln!(text, "link {}: a wire", link.name);
            continue;
        };
        let _ = writeln!(text, "link {}: {}, {}", link.name, found.name, network::describe(found));
        for (from, to, direction) in [(from, to, &found.up), (to, from, &found.down)] {
            let (first, rest) = network::describe_direction(direction);
            let _ = writeln!(text, "  {from} → {to}: {first}; {rest}");
        }
        let _ = writeln!(text, "  source: {}", found.source);
    }
    for cross in &topology.cross {
        let [from, to] = [cross.from, cross.to].map(|node| topology.nodes[node].name.as_str());
        let _ = writeln!(text, "cross-traffic: {} × {} from {to} to {from}", cross.flows, cross.variant);
    }
    text.truncate(text.trim_end().len());
    text
}
