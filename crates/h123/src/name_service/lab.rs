//! The name server of a lab used by hand, in a separate node at the distance given by `--dns`.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::{Context, Result};
use drive::{Adapter, RunningServer};
use lab::{Lab, OwnFile, Process};
use model::topology::{NAME_SERVER, Role, TopologyNode, parse_name_server_rtt_ns};
use model::{Topology, Variant};
use names::{Config, Host, PORT, Service};

use crate::commands::lab::servers::{ServerChoice, V6_SUFFIX};
use crate::exit::UsageError;
use crate::name_service;

/// The variants that service records announce, the preferred one first, with their ALPN names.
const ANNOUNCED: [(Variant, &str); 3] =
    [(Variant::H3, "h3"), (Variant::H2, "h2"), (Variant::H1s, "http/1.1")];

/// Adds the name server to the topology, with links to the nodes that use it.
///
/// # Errors
/// Nothing is emulated, the round trip is not a duration, or the topology has no room for it.
pub(crate) fn add(topology: Option<&mut Topology>, rtt: &str, nodes: &[&str]) -> Result<()> {
    let usage = |problem: String| UsageError(format!("--dns: {problem}"));
    let Some(topology) = topology else {
        return Err(usage("`direct` has no nodes; choose a network or another topology".to_owned()).into());
    };
    let rtt_ns = parse_name_server_rtt_ns(rtt).map_err(usage)?;
    let mut linked: Vec<usize> = Vec::new();
    for node in nodes.iter().filter_map(|node| topology.position(node)) {
        if !linked.contains(&node) {
            linked.push(node);
        }
    }
    topology.add_name_server(rtt_ns, &linked, "--dns").map_err(usage)?;
    Ok(())
}

/// Gives every node its names: in a file, or from the name server if it has a link to one.
///
/// # Errors
/// A file to cover is missing, or the kernel refuses.
pub(crate) fn cover_files(lab: &Lab, topology: &Topology) -> Result<()> {
    let table = table(topology);
    for node in lab.nodes() {
        let found = name_service::files(topology, node.name());
        let table = || vec![OwnFile { path: "/etc/hosts".into(), text: table.clone() }];
        node.cover_files(found.unwrap_or_else(table))?;
    }
    Ok(())
}

/// Starts the name server, which knows every node and every running server, and waits until it listens.
///
/// # Errors
/// A file cannot be written, or it does not come up: the end of its log.
pub(crate) fn start(
    lab: &Lab,
    topology: &Topology,
    folder: &Path,
    servers: &[(ServerChoice, Adapter)],
    running: &[RunningServer<'_>],
) -> Result<Process> {
    let node = lab.node(NAME_SERVER).context("the lab was built without its name server")?;
    let own = topology.name_server().context("no name server was added")?;
    let has_ipv6 = node.addresses().v6.is_some();
    let config = Config { listen: listen(own, has_ipv6), hosts: hosts(topology, has_ipv6, servers, running) };
    name_service::start(node, &config, folder)
}

fn listen(own: &TopologyNode, has_ipv6: bool) -> Vec<SocketAddr> {
    let v4 = own.interfaces.iter().filter_map(|port| Some(IpAddr::from(port.v4?.0)));
    let v6 = own.interfaces.iter().filter_map(|port| Some(IpAddr::from(port.v6?.0)));
    v4.chain(v6.filter(|_| has_ipv6)).map(|address| SocketAddr::new(address, PORT)).collect()
}

/// The lab's /etc/hosts.
fn table(topology: &Topology) -> String {
    let mut text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n".to_owned();
    for node in topology.nodes.iter().filter(|node| node.role != Role::Switch) {
        if let Some(v4) = node.address_v4() {
            let _ = writeln!(text, "{v4} {}", node.name);
        }
        if let Some(v6) = node.address_v6() {
            let _ = writeln!(text, "{v6} {}{V6_SUFFIX}", node.name);
        }
    }
    text
}

fn hosts(
    topology: &Topology,
    has_ipv6: bool,
    servers: &[(ServerChoice, Adapter)],
    running: &[RunningServer<'_>],
) -> Vec<Host> {
    let mut hosts = Vec::new();
    for node in topology.nodes.iter().filter(|node| node.role != Role::Switch) {
        let v4 = node.address_v4().map(IpAddr::from);
        let v6 = node.address_v6().map(IpAddr::from).filter(|_| has_ipv6);
        // Servers listen on the IPv4 address only; clients would try IPv6 first and be refused.
        let has_server = servers.iter().any(|(choice, _)| choice.node == node.name);
        let here = servers.iter().zip(running).filter(|((choice, _), _)| choice.node == node.name);
        let services = here.flat_map(|(_, server)| {
            ANNOUNCED.iter().filter_map(|(variant, alpn)| {
                let port = server.target(*variant)?.address.port();
                Some(Service { alpn: (*alpn).to_owned(), port })
            })
        });
        hosts.push(Host {
            name: node.name.clone(),
            addresses: v4.into_iter().chain(v6.filter(|_| !has_server)).collect(),
            services: services.collect(),
        });
        if let Some(v6) = v6 {
            let name = format!("{}{V6_SUFFIX}", node.name);
            hosts.push(Host { name, addresses: vec![v6], services: Vec::new() });
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use model::Network;

    use super::*;

    #[test]
    fn nodes_that_use_it_are_linked_and_others_are_not() {
        let mut pair = Topology::pair(&Network::default());
        add(Some(&mut pair), "20ms", &["client", "client"]).unwrap();
        assert_eq!(pair.links.len(), 2);
        assert_eq!(pair.links[1].name, "client-names");
        assert_eq!(pair.links[1].network.as_ref().unwrap().rtt_ns(), 20_000_000);
        let files = name_service::files(&pair, "client").unwrap();
        assert!(files[1].text.starts_with("nameserver 10.123.1.53\n"), "{files:?}");
        assert!(name_service::files(&pair, "server").is_none());
        let error = add(Some(&mut pair), "20ms", &["client"]).unwrap_err();
        assert!(
            error.to_string().contains("--dns: the topology `pair` already has a node `names`"),
            "{error}"
        );
        let error = add(Some(&mut Topology::pair(&Network::default())), "20", &["client"]).unwrap_err();
        assert!(error.to_string().starts_with("--dns: `20` is not a duration"), "{error}");
        assert!(add(None, "20ms", &["client"]).unwrap_err().to_string().contains("`direct`"));
    }
}
