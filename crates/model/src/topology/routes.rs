//! Neighbours and routes, computed: every node knows the shortest route to every subnet, and its neighbours.

use std::collections::{BTreeMap, VecDeque};

use super::subnet::{Port, Subnet, first_of};
use super::{Interface, Role, Route, Topology};

/// A node's first step towards a subnet: its own port, and the port of the next router, if there is one.
type Step = (Port, Option<Port>);

/// Makes every interface know its neighbours, and every node its routes.
pub(super) fn join(topology: &mut Topology, subnets: &[Subnet]) {
    for subnet in subnets {
        for own in &subnet.ports {
            let others = subnet.ports.iter().filter(|other| *other != own);
            let neighbours = others.flat_map(|other| {
                let other = topology.interface(*other);
                other.addresses().map(|(address, _)| (address, other.mac))
            });
            let neighbours = neighbours.collect();
            topology.nodes[own.0].interfaces[own.1].neighbours = neighbours;
        }
    }
    for node in 0..topology.nodes.len() {
        if topology.nodes[node].role == Role::Switch {
            for port in 0..topology.nodes[node].interfaces.len() {
                let beyond = beyond(topology, (node, port));
                topology.nodes[node].interfaces[port].beyond = beyond;
            }
        }
    }
    let routes: Vec<Vec<Route>> =
        (0..topology.nodes.len()).map(|node| routes_of(topology, subnets, node)).collect();
    for (node, routes) in topology.nodes.iter_mut().zip(routes) {
        node.routes = routes;
    }
}

impl Topology {
    fn interface(&self, port: Port) -> &Interface {
        &self.nodes[port.0].interfaces[port.1]
    }
}

/// The Ethernet addresses that are reached through a switch's port: switches make no loops.
fn beyond(topology: &Topology, port: Port) -> Vec<[u8; 6]> {
    let mut found = Vec::new();
    let mut waiting = vec![port];
    while let Some(port) = waiting.pop() {
        let link = topology.links.iter().find(|link| link.ends.contains(&port));
        let Some(other) = link.and_then(|link| link.ends.into_iter().find(|end| *end != port)) else {
            continue;
        };
        let (node, entered) = other;
        if topology.nodes[node].role == Role::Switch {
            let ports = 0..topology.nodes[node].interfaces.len();
            waiting.extend(ports.filter(|port| *port != entered).map(|port| (node, port)));
        } else {
            found.push(topology.interface(other).mac);
        }
    }
    found.sort_unstable();
    found
}

fn routes_of(topology: &Topology, subnets: &[Subnet], node: usize) -> Vec<Route> {
    let mut routes = Vec::new();
    for (subnet, (own, router)) in first_steps(topology, subnets, node) {
        let Some(member) = subnets[subnet].ports.first() else { continue };
        let [member, source] = [*member, own].map(|port| topology.interface(port));
        let via = router.map(|port| topology.interface(port));
        for (address, prefix) in member.addresses() {
            let of_family = |port: &Interface| {
                port.addresses().map(|(other, _)| other).find(|other| other.is_ipv4() == address.is_ipv4())
            };
            if let Some(source) = of_family(source) {
                let (network, via) = (first_of(address, prefix), via.and_then(of_family));
                routes.push(Route { network, prefix, via, interface: own.1, source });
            }
        }
    }
    // A node's own networks first: the kernel accepts a router only where it knows the router's network.
    routes.sort_by_key(|route| route.via.is_some());
    routes
}

/// Breadth first from the node over its subnets and, beyond them, those of routers.
fn first_steps(topology: &Topology, subnets: &[Subnet], node: usize) -> BTreeMap<usize, Step> {
    let mut steps: BTreeMap<usize, Step> = BTreeMap::new();
    let mut waiting = VecDeque::new();
    for (index, subnet) in subnets.iter().enumerate() {
        if let Some(own) = subnet.ports.iter().find(|port| port.0 == node) {
            steps.insert(index, (*own, None));
            waiting.push_back(index);
        }
    }
    while let Some(index) = waiting.pop_front() {
        let Some((own, router)) = steps.get(&index).copied() else { continue };
        for port in &subnets[index].ports {
            if port.0 == node || topology.nodes[port.0].role != Role::Router {
                continue;
            }
            for (beyond, subnet) in subnets.iter().enumerate() {
                if subnet.ports.iter().any(|other| other.0 == port.0) && !steps.contains_key(&beyond) {
                    steps.insert(beyond, (own, router.or(Some(*port))));
                    waiting.push_back(beyond);
                }
            }
        }
    }
    steps
}
