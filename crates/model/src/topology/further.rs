//! A further node, next to those who ask it: a name server, or the server behind a proxy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::resolve::{self, Port};
use super::{Role, Route, Topology, TopologyLink, TopologyNode};
use crate::network::Network;

/// The last part of its addresses.
const HOST: u8 = 53;

impl Topology {
    /// Adds the host `name` with a link to each of these nodes, which need not reach each other; each link does what
    /// `network` says. The nodes' own addresses and ways stay as they are.
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
            let segment =
                self.free_segment().ok_or("no automatic subnet is left for a further host; remove links")?;
            let ends = [*node, own].map(|node| resolve::add_interface(self, node));
            for (end, host) in ends.iter().zip([1, HOST]) {
                let port = &mut self.nodes[end.0].interfaces[end.1];
                port.v4 = Some(resolve::automatic_v4(segment, host));
                port.v6 = Some(resolve::automatic_v6(segment, host));
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

    /// Makes a port know the only other one of its network.
    fn introduce(&mut self, own: Port, other: Port) {
        let peer = &self.nodes[other.0].interfaces[other.1];
        let (mac, peers) = (peer.mac, [peer.v4.map(|v4| v4.0.into()), peer.v6.map(|v6| v6.0.into())]);
        let node = &mut self.nodes[own.0];
        let port = &mut node.interfaces[own.1];
        port.neighbours = peers.into_iter().flatten().map(|address: IpAddr| (address, mac)).collect();
        let addresses =
            [port.v4.map(|(a, prefix)| (a.into(), prefix)), port.v6.map(|(a, prefix)| (a.into(), prefix))];
        for (source, prefix) in addresses.into_iter().flatten() {
            let network = resolve::first_of(source, prefix);
            // Before those through routers, as everywhere.
            node.routes.insert(0, Route { network, prefix, via: None, interface: own.1, source });
        }
    }

    /// The first automatic network that none of the topology's overlaps.
    fn free_segment(&self) -> Option<u8> {
        let used: Vec<(IpAddr, u8)> = self
            .nodes
            .iter()
            .flat_map(|node| &node.interfaces)
            .flat_map(|port| {
                let v4 = port.v4.map(|(address, prefix): (Ipv4Addr, u8)| (IpAddr::from(address), prefix));
                let v6 = port.v6.map(|(address, prefix): (Ipv6Addr, u8)| (IpAddr::from(address), prefix));
                v4.into_iter().chain(v6)
            })
            .collect();
        let overlaps = |address: IpAddr, prefix: u8| {
            used.iter().any(|(other, length)| {
                let shorter = prefix.min(*length);
                address.is_ipv4() == other.is_ipv4()
                    && resolve::first_of(address, shorter) == resolve::first_of(*other, shorter)
            })
        };
        (0..=u8::MAX).find(|segment| {
            let ((v4, v4_prefix), (v6, v6_prefix)) =
                (resolve::automatic_v4(*segment, HOST), resolve::automatic_v6(*segment, HOST));
            !overlaps(v4.into(), v4_prefix) && !overlaps(v6.into(), v6_prefix)
        })
    }
}
