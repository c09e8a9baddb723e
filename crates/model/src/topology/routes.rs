//! Neighbours and routes, computed: every node knows the shortest route to every subnet, and its neighbours.

use std::collections::VecDeque;

use super::subnet::{Port, Subnet, first_of};
use super::{Interface, Role, Route, Topology};

/// A node's first step towards a subnet: its own port, and the port of the next router, if there is one.
type Step = (Port, Option<Port>);
/// A node's subnets and its ports there.
type Attached = Vec<(usize, Port)>;

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
    let attached = attached(topology, subnets);
    let routes: Vec<Vec<Route>> =
        (0..topology.nodes.len()).map(|node| routes_of(topology, subnets, &attached, node)).collect();
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

/// The subnets of each node, in their order, with its first port there.
fn attached(topology: &Topology, subnets: &[Subnet]) -> Vec<Attached> {
    let mut attached: Vec<Attached> = vec![Vec::new(); topology.nodes.len()];
    for (index, subnet) in subnets.iter().enumerate() {
        for port in &subnet.ports {
            let own = &mut attached[port.0];
            if own.last().is_none_or(|(last, _)| *last != index) {
                own.push((index, *port));
            }
        }
    }
    attached
}

/// Every reachable subnet has a route; those over the same router are merged where one prefix covers exactly
/// two of them, so that a host of a large topology has few.
fn routes_of(topology: &Topology, subnets: &[Subnet], attached: &[Attached], node: usize) -> Vec<Route> {
    let mut routes = Vec::new();
    for (subnet, step) in first_steps(topology, subnets, attached, node).into_iter().enumerate() {
        let Some((own, router)) = step else { continue };
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
    let (mut routes, beyond): (Vec<Route>, Vec<Route>) =
        routes.into_iter().partition(|route| route.via.is_none());
    routes.extend(merged(beyond));
    routes
}

/// The same routes, as few as possible.
fn merged(mut routes: Vec<Route>) -> Vec<Route> {
    routes.sort_by_key(|route| (route.via, route.interface, route.network));
    let mut merged: Vec<Route> = Vec::new();
    for route in routes {
        merged.push(route);
        while let [.., first, second] = merged.as_mut_slice()
            && are_halves(first, second)
        {
            first.prefix -= 1;
            merged.pop();
        }
    }
    merged
}

/// Whether two routes to the same router are the halves of a larger one; the first has the lower addresses.
fn are_halves(first: &Route, second: &Route) -> bool {
    let next = |route: &Route| (route.via, route.interface, route.source, route.prefix);
    let whole = |route: &Route| first_of(route.network, first.prefix - 1);
    next(first) == next(second) && whole(first) == first.network && whole(second) == first.network
}

/// Breadth first from the node over its subnets and, beyond them, those of routers; for each subnet the first
/// step towards it.
fn first_steps(
    topology: &Topology,
    subnets: &[Subnet],
    attached: &[Attached],
    node: usize,
) -> Vec<Option<Step>> {
    let mut steps: Vec<Option<Step>> = vec![None; subnets.len()];
    let mut is_passed = vec![false; topology.nodes.len()];
    is_passed[node] = true;
    let mut waiting = VecDeque::new();
    for (index, own) in &attached[node] {
        steps[*index] = Some((*own, None));
        waiting.push_back(*index);
    }
    while let Some(index) = waiting.pop_front() {
        let Some((own, router)) = steps[index] else { continue };
        for port in &subnets[index].ports {
            let is_router = topology.nodes[port.0].role == Role::Router;
            if !is_router || std::mem::replace(&mut is_passed[port.0], true) {
                continue;
            }
            for (beyond, _) in &attached[port.0] {
                if steps[*beyond].is_none() {
                    steps[*beyond] = Some((own, router.or(Some(*port))));
                    waiting.push_back(*beyond);
                }
            }
        }
    }
    steps
}
