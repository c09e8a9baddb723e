//! The name server: a host at a given distance from its clients.

use std::net::{IpAddr, Ipv4Addr};

use super::{Topology, TopologyNode};
use crate::network::{Direction, Network};
use crate::units;

/// The node of the name server.
pub const NAME_SERVER: &str = "names";
/// No resolver waits longer for an answer: two tries of 5 s each (resolv.conf(5)).
const FARTHEST_NS: u64 = 10_000_000_000;

/// Reads the round trip to a name server.
///
/// # Errors
/// It is not a duration, or resolvers give up before.
pub fn parse_name_server_rtt_ns(text: &str) -> Result<u64, String> {
    let rtt_ns = units::parse_duration_ns(text)?;
    if rtt_ns > FARTHEST_NS {
        return Err(format!("`{text}` is too long; write at most 10s, because resolvers give up then"));
    }
    Ok(rtt_ns)
}

impl Topology {
    /// Adds the name server with a link of the round trip `rtt_ns` to each of these nodes, its clients.
    /// `source` is the origin of the round trip.
    ///
    /// # Errors
    /// As [`Topology::add_host`].
    pub fn add_name_server(&mut self, rtt_ns: u64, nodes: &[usize], source: &str) -> Result<(), String> {
        let direction = |delay_ns| Direction { delay_ns, ..Direction::default() };
        let network = Network {
            name: "dns".to_owned(),
            title: "The route to the name server".to_owned(),
            source: source.to_owned(),
            up: direction(rtt_ns / 2),
            down: direction(rtt_ns - rtt_ns / 2),
            timeline: Vec::new(),
        };
        self.add_host(NAME_SERVER, nodes, (rtt_ns > 0).then_some(&network))
    }

    /// The name server.
    pub fn name_server(&self) -> Option<&TopologyNode> {
        self.nodes.iter().find(|node| node.name == NAME_SERVER)
    }

    /// The name server's address for a node; `None` if the node has no link to one.
    pub fn name_server_of(&self, node: &str) -> Option<Ipv4Addr> {
        let own = &self.nodes[self.position(node)?];
        let is_linked = |address: IpAddr| {
            own.interfaces.iter().flat_map(|port| &port.neighbours).any(|(known, _)| *known == address)
        };
        let mut addresses = self.name_server()?.interfaces.iter().filter_map(|port| Some(port.v4?.0));
        addresses.find(|address| is_linked((*address).into()))
    }
}
