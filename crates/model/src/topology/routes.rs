//! Neighbours and routes, computed: every node knows the shortest route to every network, and everybody next to it.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use super::resolve::{Port, Segment, first_of};
use super::{Interface, Role, Route, Topology};

/// A node's first step towards a segment: its own port, and the router's port where there is one on the way.
type Step = (Port, Option<Port>);

/// Makes every interface know its neighbours, and every node its routes.
pub(super) fn join(topology: &mut Topology, segments: &[Segment]) {
    for segment in segments {
        for own in &segment.ports {
            let others = segment.ports.iter().filter(|other| *other != own);
            let neighbours = others.flat_map(|other| {
                let Interface { mac, v4, v6, .. } = topology.interface(*other);
                let addresses = v4.map(|(address, _)| address.into()).into_iter();
                let addresses = addresses.chain(v6.map(|(address, _)| address.into()));
                addresses.map(|address: IpAddr| (address, *mac)).collect::<Vec<_>>()
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
        (0..topology.nodes.len()).map(|node| routes_of(topology, segments, node)).collect();
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

fn routes_of(topology: &Topology, segments: &[Segment], node: usize) -> Vec<Route> {
    let mut routes = Vec::new();
    for (segment, (own, router)) in first_steps(topology, segments, node) {
        let Some(member) = segments[segment].ports.first() else { continue };
        let [member, source] = [*member, own].map(|port| topology.interface(port));
        let via = router.map(|port| topology.interface(port));
        if let (Some((network, prefix)), Some((source, _))) = (member.v4, source.v4) {
            let via = via.and_then(|via| Some(IpAddr::from(via.v4?.0)));
            let network = first_of(network.into(), prefix);
            routes.push(Route { network, prefix, via, interface: own.1, source: source.into() });
        }
        if let (Some((network, prefix)), Some((source, _))) = (member.v6, source.v6) {
            let via = via.and_then(|via| Some(IpAddr::from(via.v6?.0)));
            let network = first_of(network.into(), prefix);
            routes.push(Route { network, prefix, via, interface: own.1, source: source.into() });
        }
    }
    // A node's own networks first: the kernel accepts a router only where it knows the router's network.
    routes.sort_by_key(|route| route.via.is_some());
    routes
}

/// Breadth first from the node over its segments and, beyond them, those of routers.
fn first_steps(topology: &Topology, segments: &[Segment], node: usize) -> BTreeMap<usize, Step> {
    let mut steps: BTreeMap<usize, Step> = BTreeMap::new();
    let mut waiting = VecDeque::new();
    for (index, segment) in segments.iter().enumerate() {
        if let Some(own) = segment.ports.iter().find(|port| port.0 == node) {
            steps.insert(index, (*own, None));
            waiting.push_back(index);
        }
    }
    while let Some(index) = waiting.pop_front() {
        let Some((own, router)) = steps.get(&index).copied() else { continue };
        for port in &segments[index].ports {
            if port.0 == node || topology.nodes[port.0].role != Role::Router {
                continue;
            }
            for (beyond, segment) in segments.iter().enumerate() {
                if segment.ports.iter().any(|other| other.0 == port.0) && !steps.contains_key(&beyond) {
                    steps.insert(beyond, (own, router.or(Some(*port))));
                    waiting.push_back(beyond);
                }
            }
        }
    }
    steps
}
