//! The name server of a lab used by hand, in a separate node at the distance given by `--dns`.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::Result;
use drive::{Adapter, RunningServer};
use lab::{Lab, OwnFile, Process};
use model::topology::{Interface, NAME_SERVER, parse_name_server_rtt_ns};
use model::{Topology, Variant};
use names::{Host, PORT, Service, View};

use crate::exit::UsageError;
use crate::name_service;
use crate::server_choice::{ServerChoice, V6_SUFFIX};

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
    for (index, node) in lab.nodes().enumerate() {
        let found = name_service::files(topology, node.name());
        let table = || vec![OwnFile { path: "/etc/hosts".into(), text: table(topology, index) }];
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
    let has_ipv6 = lab.node(NAME_SERVER).is_some_and(|node| node.addresses().v6.is_some());
    let config = name_service::config(topology, views(topology, has_ipv6, servers, running));
    name_service::start(lab, &config, folder)
}

/// The /etc/hosts of a node: every node that it reaches, at an address that it reaches.
fn table(topology: &Topology, from: usize) -> String {
    let mut text = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n".to_owned();
    for (to, node) in topology.nodes.iter().enumerate() {
        if let Some(v4) = address_from(topology, from, to, true) {
            let _ = writeln!(text, "{v4} {}", node.name);
        }
        if let Some(v6) = address_from(topology, from, to, false) {
            let _ = writeln!(text, "{v6} {}{V6_SUFFIX}", node.name);
        }
    }
    text
}

/// The first address of a node, of a family, that packets from another node reach; a host between them
/// forwards nothing.
fn address_from(topology: &Topology, from: usize, to: usize, is_v4: bool) -> Option<IpAddr> {
    let addresses = topology.nodes[to].interfaces.iter().flat_map(Interface::addresses);
    let mut addresses = addresses.map(|(address, _)| address).filter(|address| address.is_ipv4() == is_v4);
    addresses.find(|address| is_reached(topology, from, *address))
}

/// Whether packets from a node reach an address: a node has routes to exactly the subnets that it reaches.
fn is_reached(topology: &Topology, from: usize, target: IpAddr) -> bool {
    topology.nodes[from].routes.iter().any(|route| is_in(target, route.network, route.prefix))
}

fn is_in(address: IpAddr, network: IpAddr, prefix: u8) -> bool {
    let differing = match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => (address.to_bits() ^ network.to_bits()).leading_zeros(),
        (IpAddr::V6(address), IpAddr::V6(network)) => (address.to_bits() ^ network.to_bits()).leading_zeros(),
        _ => return false,
    };
    differing >= u32::from(prefix)
}

/// The answers to the nodes that ask: each learns the addresses that it reaches. Nodes that learn the same
/// share a view.
fn views(
    topology: &Topology,
    has_ipv6: bool,
    servers: &[(ServerChoice, Adapter)],
    running: &[RunningServer<'_>],
) -> Vec<View> {
    let ports = topology.name_server().map_or(&[][..], |own| &own.interfaces);
    let mut views: Vec<View> = Vec::new();
    for (user, node) in topology.nodes.iter().enumerate() {
        let address = topology.name_server_of(&node.name);
        let Some(port) = ports.iter().find(|port| address.is_some() && port.v4.map(|v4| v4.0) == address)
        else {
            continue;
        };
        let addresses = port.addresses().map(|(address, _)| address);
        let listen = addresses.filter(|address| has_ipv6 || address.is_ipv4());
        let listen = listen.map(|address| SocketAddr::new(address, PORT));
        let hosts = hosts(topology, user, has_ipv6, servers, running);
        match views.iter_mut().find(|view| view.hosts == hosts) {
            Some(view) => view.listen.extend(listen),
            None => views.push(View { listen: listen.collect(), hosts }),
        }
    }
    views
}

/// The hosts that a node reaches.
fn hosts(
    topology: &Topology,
    user: usize,
    has_ipv6: bool,
    servers: &[(ServerChoice, Adapter)],
    running: &[RunningServer<'_>],
) -> Vec<Host> {
    let mut hosts = Vec::new();
    for (to, node) in topology.nodes.iter().enumerate() {
        let v4 = address_from(topology, user, to, true);
        let v6 = address_from(topology, user, to, false).filter(|_| has_ipv6);
        if v4.is_none() && v6.is_none() {
            continue;
        }
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

    /// A name must not lead to an address that nothing from the node reaches: connections would hang.
    #[test]
    fn names_are_those_of_reachable_addresses() {
        let topology = crate::library::topology_of("proxied").unwrap();
        let table = |node: &str| table(&topology, topology.position(node).unwrap());
        let has = |table: &str, name: &str| table.lines().any(|line| line.ends_with(&format!(" {name}")));
        let (client, proxy, server) = (table("client"), table("proxy"), table("server"));
        assert!(has(&client, "client") && has(&client, "proxy") && !has(&client, "server"), "{client}");
        assert!(has(&proxy, "client") && has(&proxy, "server") && has(&proxy, "server-v6"), "{proxy}");
        assert!(!has(&server, "client"), "{server}");
        // The proxy's address on the server's side.
        let second = topology.nodes[topology.position("proxy").unwrap()].interfaces[1].v4.unwrap().0;
        assert!(server.contains(&format!("{second} proxy\n")), "{server}");
        assert!(client.contains("10.123.0.2 proxy\n"), "{client}");
    }

    /// The same over DNS: the proxy has another address for the client than for the server.
    #[test]
    fn a_view_has_the_addresses_that_its_nodes_reach() {
        let mut topology = crate::library::topology_of("proxied").unwrap();
        add(Some(&mut topology), "1ms", &["client", "server"]).unwrap();
        let views = views(&topology, true, &[], &[]);
        let found = |view: usize, name: &str| {
            let host = views[view].hosts.iter().find(|host| host.name == name);
            host.map(|host| host.addresses[0].to_string())
        };
        assert_eq!(views.len(), 2, "{views:#?}");
        assert_eq!(found(0, "proxy").as_deref(), Some("10.123.0.2"));
        assert_eq!(found(1, "proxy").as_deref(), Some("10.123.1.1"));
        assert_eq!((found(0, "server"), found(1, "client")), (None, None), "the proxy forwards nothing");
        assert_eq!(views[0].listen[0].to_string(), "10.123.2.53:53");
        let mut pair = Topology::pair(&Network::default());
        add(Some(&mut pair), "1ms", &["client", "server"]).unwrap();
        let own = |view: &View| view.hosts.iter().find(|host| host.name == "client").unwrap().clone();
        let views = self::views(&pair, false, &[], &[]);
        assert!(
            views.iter().all(|view| own(view).addresses == [IpAddr::from([10, 123, 0, 1])]),
            "{views:#?}"
        );
    }

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
