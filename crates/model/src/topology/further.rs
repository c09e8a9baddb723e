//! A further node, a neighbour of its clients: a name server, or the server behind a proxy.

use std::net::IpAddr;
use std::ops::Range;

use super::resolve::add_interface;
use super::subnet::{self, Port};
use super::{Interface, Role, Route, Topology, TopologyLink, TopologyNode};
use crate::network::Network;

/// The last part of its addresses.
const HOST: u8 = 53;

impl Topology {
    /// Adds the host `name` with a link to each of these nodes, which need not reach each other; each link
    /// does what `network` describes. The nodes keep their own addresses and routes.
    ///
    /// # Errors
    /// There is a node of this name, a node is a switch, or no network of addresses is left.
    pub fn add_host(&mut self, name: &str, nodes: &[usize], network: Option<&Network>) -> Result<(), String> {
        if self.position(name).is_some() {
            return Err(format!(
                "the topology `{}` already has a node `{name}`; rename that node",
                self.name
            ));
        }
        let own = self.nodes.len();
        let mut subnets = 0..subnet::SUBNETS;
        self.nodes.push(TopologyNode {
            name: name.to_owned(),
            role: Role::Host,
            interfaces: Vec::new(),
            routes: Vec::new(),
        });
        for node in nodes {
            if self.nodes[*node].role == Role::Switch {
                let found = &self.nodes[*node].name;
                return Err(format!(
                    "the switch `{found}` cannot be the neighbour of `{name}`; choose a node with addresses"
                ));
            }
            let subnet = self
                .free_subnet(&mut subnets)
                .ok_or("no automatic subnet is left for a further host; remove links")?;
            let ends = [*node, own].map(|node| add_interface(self, node));
            for (end, host) in ends.iter().zip([1, HOST]) {
                let port = &mut self.nodes[end.0].interfaces[end.1];
                port.v4 = Some(subnet::automatic_v4(subnet, host));
                port.v6 = Some(subnet::automatic_v6(subnet, host));
            }
            self.introduce(ends[0], ends[1]);
            self.introduce(ends[1], ends[0]);
            self.links.push(TopologyLink {
                name: format!("{}-{name}", self.nodes[*node].name),
                ends,
                network: network.cloned(),
            });
        }
        Ok(())
    }

    /// Makes a port know the only other one of its subnet.
    fn introduce(&mut self, own: Port, other: Port) {
        let peer = &self.nodes[other.0].interfaces[other.1];
        let neighbours = peer.addresses().map(|(address, _)| (address, peer.mac)).collect();
        let node = &mut self.nodes[own.0];
        let port = &mut node.interfaces[own.1];
        port.neighbours = neighbours;
        for (source, prefix) in port.addresses() {
            let network = subnet::first_of(source, prefix);
            // A node's own subnets come before those behind routers.
            node.routes.insert(0, Route { network, prefix, via: None, interface: own.1, source });
        }
    }

    /// The first of these automatic networks that none of the topology's overlaps.
    fn free_subnet(&self, subnets: &mut Range<u16>) -> Option<u16> {
        let interfaces = self.nodes.iter().flat_map(|node| &node.interfaces);
        let used: Vec<(IpAddr, u8)> = interfaces.flat_map(Interface::addresses).collect();
        let is_free = |own: (IpAddr, u8)| !used.iter().any(|other| subnet::overlap(own, *other));
        subnets.find(|subnet| {
            [true, false].into_iter().all(|is_v4| is_free(subnet::automatic(is_v4, *subnet, HOST)))
        })
    }
}
