//! Resolves a topology: looks up names, finds subnets and numbers them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::address_changes::AddressChangeError;
use super::subnet::{MOST_HOSTS, Port, Subnet, automatic, automatic_v4, automatic_v6, first_of, overlap};
use super::written::{Cross, End, Link, TopologyFile, second_node};
use super::{CrossTraffic, Interface, Role, Topology, TopologyLink, TopologyNode, routes};
use crate::error::{InputError, Place};
use crate::named::unknown;
use crate::network::Network;
use crate::reader::Placed;

/// A label of a host name (RFC 1123, section 2.1).
const LONGEST_NAME: usize = 63;

pub(super) fn resolve(
    name: &str,
    written: &TopologyFile,
    known_networks: &[String],
    network: &dyn Fn(&str) -> Result<Network, InputError>,
) -> Result<Topology, InputError> {
    let mut topology = Topology {
        name: name.to_owned(),
        title: written.title.clone(),
        nodes: Vec::new(),
        links: Vec::new(),
        client: 0,
        server: 0,
        cross: Vec::new(),
    };
    for node in &written.nodes {
        check_name(&node.name)?;
        if topology.position(&node.name.value).is_some() {
            return Err(second_node(&node.name));
        }
        topology.nodes.push(TopologyNode {
            name: node.name.value.clone(),
            role: node.role,
            interfaces: Vec::new(),
            routes: Vec::new(),
        });
    }
    for link in &written.links {
        add_link(&mut topology, link, known_networks, network)?;
    }
    for (index, node) in topology.nodes.iter().enumerate() {
        if node.interfaces.is_empty() {
            let problem = format!("the node `{}` has no link; add one", node.name);
            return Err(written.nodes[index].name.error(problem));
        }
    }
    let subnets = subnets(&topology, written);
    for (index, subnet) in (0..).zip(&subnets) {
        number(&mut topology, subnet, index)?;
    }
    check_distinct(&topology, &subnets)?;
    routes::join(&mut topology, &subnets);
    if let Err(AddressChangeError { link, problem }) = topology.address_changes() {
        let place =
            written.links[link].network.as_ref().map_or_else(Place::command_line, |name| name.place.clone());
        return Err(InputError { place, problem });
    }
    let hosts = || (0..topology.nodes.len()).filter(|node| topology.nodes[*node].role == Role::Host);
    topology.client =
        hosts().find(|node| topology.nodes[*node].name == "client").or(hosts().next()).unwrap_or(0);
    topology.server =
        hosts().find(|node| topology.nodes[*node].name == "server").or(hosts().next_back()).unwrap_or(0);
    for cross in &written.cross {
        let cross = resolve_cross(&topology, cross)?;
        topology.cross.push(cross);
    }
    Ok(topology)
}

pub(super) fn pair(network: &Network) -> Topology {
    let node = |name: &str| TopologyNode {
        name: name.to_owned(),
        role: Role::Host,
        interfaces: Vec::new(),
        routes: Vec::new(),
    };
    let mut topology = Topology {
        name: "pair".to_owned(),
        title: "A client and a server".to_owned(),
        nodes: vec![node("client"), node("server")],
        links: Vec::new(),
        client: 0,
        server: 1,
        cross: Vec::new(),
    };
    let ends = [0, 1].map(|node| add_interface(&mut topology, node));
    topology.links.push(TopologyLink {
        name: "client-server".to_owned(),
        ends,
        network: Some(network.clone()),
    });
    for (host, (node, interface)) in (1..).zip(ends) {
        let interface = &mut topology.nodes[node].interfaces[interface];
        interface.v4 = Some(automatic_v4(0, host));
        interface.v6 = Some(automatic_v6(0, host));
    }
    routes::join(&mut topology, &[Subnet { ports: ends.to_vec(), ends: Vec::new() }]);
    topology
}

fn resolve_cross(topology: &Topology, cross: &Cross) -> Result<CrossTraffic, InputError> {
    let node = |name: &Placed<String>| topology.host(&name.value).map_err(|problem| name.error(problem));
    let (from, to) = (node(&cross.from)?, node(&cross.to)?);
    if from == to {
        return Err(cross.to.error("`from` and `to` are the same node; write two nodes"));
    }
    if topology.route_between(from, to).is_none() {
        let problem = format!(
            "packets find no route from `{}` to `{}`; choose other nodes",
            cross.from.value, cross.to.value
        );
        return Err(cross.to.error(problem));
    }
    Ok(CrossTraffic { from, to, variant: cross.variant, flows: cross.flows })
}

fn check_name(name: &Placed<String>) -> Result<(), InputError> {
    let text = &name.value;
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_label = text.chars().all(|c| is_letter(c) || c == '-')
        && text.starts_with(is_letter)
        && text.ends_with(is_letter)
        && text.len() <= LONGEST_NAME;
    // The host name of a node's IPv6 address has this suffix.
    if !is_label || text.ends_with("-v6") || text == "localhost" {
        return Err(name.error(format!(
            "`{text}` is not a node's name; write small letters, digits and hyphens, such as `client` (not `localhost`, \
             and without `-v6` at the end)"
        )));
    }
    Ok(())
}

fn add_link(
    topology: &mut Topology,
    link: &Link,
    known_networks: &[String],
    network: &dyn Fn(&str) -> Result<Network, InputError>,
) -> Result<(), InputError> {
    let nodes = link.ends.each_ref().map(|end| {
        topology.position(&end.value.node).ok_or_else(|| {
            let known: Vec<&str> = topology.nodes.iter().map(|node| node.name.as_str()).collect();
            end.error(unknown(&end.value.node, "a node", &known))
        })
    });
    let [first, second] = nodes;
    let nodes = [first?, second?];
    if nodes[0] == nodes[1] {
        return Err(link.ends[1].error("both ends are the same node; write two nodes"));
    }
    for (end, node) in link.ends.iter().zip(nodes) {
        if topology.nodes[node].role == Role::Switch && !end.value.addresses.is_empty() {
            return Err(end.error("a switch has no address; remove it"));
        }
    }
    let is_switch = |node: usize| topology.nodes[node].role == Role::Switch;
    if nodes.iter().all(|node| is_switch(*node)) && are_joined(topology, nodes) {
        return Err(link.ends[1].error(
            "this is a second route between two switches; remove one, because frames would circulate forever",
        ));
    }
    let network = match &link.network {
        None => None,
        Some(name) if known_networks.contains(&name.value) => Some(network(&name.value)?),
        Some(name) => return Err(name.error(unknown(&name.value, "a network", known_networks))),
    };
    let names = nodes.map(|node| topology.nodes[node].name.clone());
    let mut name = names.join("-");
    let same = topology.links.iter().filter(|other| other.ends.map(|end| end.0) == nodes).count();
    if same > 0 {
        name = format!("{name}-{}", same + 1);
    }
    let ends = nodes.map(|node| add_interface(topology, node));
    topology.links.push(TopologyLink { name, ends, network });
    Ok(())
}

/// Whether a path of switches connects two switches.
fn are_joined(topology: &Topology, switches: [usize; 2]) -> bool {
    let mut reached = BTreeSet::from([switches[0]]);
    loop {
        let ends = topology.links.iter().map(|link| link.ends.map(|end| end.0));
        let between = ends.filter(|ends| ends.iter().all(|node| topology.nodes[*node].role == Role::Switch));
        let further: Vec<usize> =
            between.filter(|ends| ends.iter().any(|node| reached.contains(node))).flatten().collect();
        let before = reached.len();
        reached.extend(further);
        if reached.len() == before {
            return reached.contains(&switches[1]);
        }
    }
}

pub(super) fn add_interface(topology: &mut Topology, node: usize) -> Port {
    let number: usize = topology.nodes.iter().map(|node| node.interfaces.len()).sum::<usize>() + 1;
    let [.., high, low] = number.to_be_bytes();
    let interfaces = &mut topology.nodes[node].interfaces;
    interfaces.push(Interface {
        name: format!("eth{}", interfaces.len()),
        mac: [2, 0, 0x12, 0x30, high, low],
        v4: None,
        v6: None,
        further: Vec::new(),
        neighbours: Vec::new(),
        beyond: Vec::new(),
    });
    (node, interfaces.len() - 1)
}

/// The subnets in the order of their first link.
fn subnets(topology: &Topology, written: &TopologyFile) -> Vec<Subnet> {
    let is_switch = |port: &Port| topology.nodes[port.0].role == Role::Switch;
    let mut of_link: Vec<Option<usize>> = vec![None; topology.links.len()];
    let mut subnets = Vec::new();
    for first in 0..topology.links.len() {
        if of_link[first].is_some() {
            continue;
        }
        let mut waiting = BTreeSet::from([first]);
        let mut switches = BTreeSet::new();
        while let Some(link) = waiting.pop_first() {
            of_link[link] = Some(subnets.len());
            switches
                .extend(topology.links[link].ends.iter().filter(|port| is_switch(port)).map(|port| port.0));
            let joined =
                |link: &usize| topology.links[*link].ends.iter().any(|port| switches.contains(&port.0));
            waiting.extend((0..of_link.len()).filter(|link| of_link[*link].is_none()).filter(joined));
        }
        let mut subnet = Subnet { ports: Vec::new(), ends: Vec::new() };
        for (link, written) in topology
            .links
            .iter()
            .zip(&written.links)
            .enumerate()
            .filter_map(|(index, link)| (of_link[index] == Some(subnets.len())).then_some(link))
        {
            for (port, end) in link.ends.iter().zip(&written.ends) {
                if !is_switch(port) {
                    subnet.ports.push(*port);
                    subnet.ends.push(end.clone());
                }
            }
        }
        subnets.push(subnet);
    }
    subnets
}

/// Gives every interface of a subnet its addresses: those of the file, or automatic ones where it names none.
fn number(topology: &mut Topology, subnet: &Subnet, index: u16) -> Result<(), InputError> {
    for is_v4 in [true, false] {
        let of_family = |end: &Placed<End>| -> Vec<(IpAddr, u8)> {
            end.value.addresses.iter().copied().filter(|(address, _)| address.is_ipv4() == is_v4).collect()
        };
        let model = subnet.ends.iter().flat_map(&of_family).next();
        let mut taken: Vec<IpAddr> = Vec::new();
        for (host, (port, end)) in (1_usize..).zip(subnet.ports.iter().zip(&subnet.ends)) {
            let (address, prefix) = match (model, of_family(end).as_slice()) {
                (None, _) => match u8::try_from(host).ok().filter(|host| *host <= MOST_HOSTS) {
                    Some(host) => automatic(is_v4, index, host),
                    None => return Err(end.error(too_many_hosts(subnet.ports.len()))),
                },
                (Some(model), [own]) => check_address(end, *own, model)?,
                (Some((model, prefix)), []) => {
                    return Err(end.error(format!(
                        "this end has no address in the subnet of {model}/{prefix}; write the addresses of all ends of a \
                         subnet, or of none"
                    )));
                }
                (Some(_), _) => {
                    return Err(end
                        .error("this end has several addresses of a family; write at most one IPv4 and one IPv6 address"));
                }
            };
            if taken.contains(&address) {
                return Err(end.error(format!("the address {address} appears twice; change one")));
            }
            taken.push(address);
            let interface = &mut topology.nodes[port.0].interfaces[port.1];
            match address {
                IpAddr::V4(address) => interface.v4 = Some((address, prefix)),
                IpAddr::V6(address) => interface.v6 = Some((address, prefix)),
            }
        }
    }
    Ok(())
}

fn too_many_hosts(count: usize) -> String {
    format!(
        "the subnet of this link has {count} nodes, and automatic addresses suffice for {MOST_HOSTS}; join them with \
         several switches and a router between these, or with a router instead of the switch"
    )
}

fn check_address(
    end: &Placed<End>,
    (address, prefix): (IpAddr, u8),
    model: (IpAddr, u8),
) -> Result<(IpAddr, u8), InputError> {
    if prefix != model.1 || first_of(address, prefix) != first_of(model.0, model.1) {
        return Err(end.error(format!(
            "{address}/{prefix} is not in the subnet of this link; write an address of {}/{}",
            model.0, model.1
        )));
    }
    let is_last = match address {
        IpAddr::V4(v4) => v4.to_bits() | (u32::MAX << (32 - u32::from(prefix))) == u32::MAX,
        IpAddr::V6(_) => false,
    };
    if address == first_of(address, prefix) || is_last || address.is_loopback() || address.is_multicast() {
        return Err(end.error(format!("{address}/{prefix} is not a host's address; write another one")));
    }
    Ok((address, prefix))
}

/// Networks of different subnets must not overlap: routes would be ambiguous.
fn check_distinct(topology: &Topology, subnets: &[Subnet]) -> Result<(), InputError> {
    let networks = |port: &Port| topology.nodes[port.0].interfaces[port.1].addresses().collect::<Vec<_>>();
    let mut before: Vec<(IpAddr, u8)> = Vec::new();
    for subnet in subnets {
        let own = subnet.ports.first().map(networks).unwrap_or_default();
        for (address, prefix) in &own {
            if let Some((other, length)) = before.iter().find(|other| overlap((*address, *prefix), **other)) {
                let place = subnet.ends.first().map_or_else(Place::command_line, |end| end.place.clone());
                let problem = format!(
                    "the subnet of {address}/{prefix} overlaps that of {other}/{length}; write different subnets on both \
                     sides of a router"
                );
                return Err(InputError { place, problem });
            }
        }
        before.extend(own);
    }
    Ok(())
}
