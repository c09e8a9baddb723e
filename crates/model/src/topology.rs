//! Topologies: which nodes a lab has, and which links with which networks join them.
//!
//! The file (`topologies/NAME.toml`) is read in two stages: `written` knows its keys, `resolve` looks up what
//! they name, gives addresses, and computes neighbours and routes. This file has the resolved form, ready to
//! build.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::error::{InputError, Source};
use crate::named;
use crate::named::unknown;
use crate::network::Network;
use crate::units::NANOS_PER_S;
use crate::variant::Variant;

mod address_changes;
mod further;
mod names;
mod resolve;
mod route;
mod routes;
mod subnet;
#[cfg(test)]
mod tests;
mod words;
mod written;

pub use address_changes::{AddressChange, AddressChangeError};
pub use names::{NAME_SERVER, parse_name_server_rtt_ns};
pub use route::Hop;
pub use words::describe;
pub use written::KEYS;

/// Nodes and the links between them, resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// The name that people use.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// In the order of the file.
    pub nodes: Vec<TopologyNode>,
    /// In the order of the file.
    pub links: Vec<TopologyLink>,
    /// The index of the measured clients' node: `client`, or the first host, unless another is chosen.
    pub client: usize,
    /// The index of the server's node: `server`, or the last host, unless another is chosen.
    pub server: usize,
    /// The cross-traffic on the links.
    pub cross: Vec<CrossTraffic>,
}

/// Bulk flows that share links with the measured clients and are not measured themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossTraffic {
    /// The index of the node that asks and receives.
    pub from: usize,
    /// The index of the node that answers.
    pub to: usize,
    /// Its transport decides how it shares: TCP, or QUIC with `h3`.
    pub variant: Variant,
    /// Connections, each with one endless download.
    pub flows: u32,
}

/// A host, router or switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopologyNode {
    /// The name in the file and inside the lab.
    pub name: String,
    /// What it does with packets of others.
    pub role: Role,
    /// One for each of its links, in the order of the file.
    pub interfaces: Vec<Interface>,
    /// To every reachable subnet of the lab, over the fewest routers; its own subnets come first.
    pub routes: Vec<Route>,
}

named! { "a role";
    /// What a node does with packets that are not for itself.
    pub enum Role {
        /// Nothing.
        Host = "host",
        /// It forwards them between its subnets.
        Router = "router",
        /// It has no address and forwards frames between its links (a bridge).
        Switch = "switch",
    }
}

/// A node's end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// `eth0`, `eth1` and so on.
    pub name: String,
    /// Locally administered, unicast.
    pub mac: [u8; 6],
    /// Its address and the length of its network's prefix; `None` at a switch.
    pub v4: Option<(Ipv4Addr, u8)>,
    /// The same for IPv6.
    pub v6: Option<(Ipv6Addr, u8)>,
    /// Further IPv4 addresses of a host that opens many connections, in the same subnet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<Ipv4Addr>,
    /// All others of its subnet, so that no node needs ARP; empty at a switch.
    pub neighbours: Vec<(IpAddr, [u8; 6])>,
    /// At a switch: the addresses behind this port, so that no frame is flooded; empty elsewhere.
    pub beyond: Vec<[u8; 6]>,
}

/// How a node reaches a subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The network's first address.
    pub network: IpAddr,
    /// The length of its prefix.
    pub prefix: u8,
    /// The next router; `None` for the interface's own subnet.
    pub via: Option<IpAddr>,
    /// The index of the interface.
    pub interface: usize,
    /// The source address.
    pub source: IpAddr,
}

/// What joins two nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopologyLink {
    /// Such as `client-server`.
    pub name: String,
    /// Indices of node and interface: first the end that *up* leads from.
    pub ends: [(usize, usize); 2],
    /// What it does to packets; `None` for a wire.
    pub network: Option<Network>,
}

impl Topology {
    /// Reads and resolves a topology; `network` gives a network that it names.
    ///
    /// # Errors
    /// File, line and column of an unknown key or name, a bad address or a contradiction.
    pub fn parse(
        name: &str,
        source: Source<'_>,
        known_networks: &[String],
        network: &dyn Fn(&str) -> Result<Network, InputError>,
    ) -> Result<Topology, InputError> {
        resolve::resolve(name, &written::read(source)?, known_networks, network)
    }

    /// Two hosts, `client` and `server`, with a network between them.
    pub fn pair(network: &Network) -> Topology {
        resolve::pair(network)
    }

    /// Whether the seed decides anything on a link.
    pub fn depends_on_seed(&self) -> bool {
        self.links.iter().filter_map(|link| link.network.as_ref()).any(Network::depends_on_seed)
    }

    /// How long cross-traffic runs before the measured clients start: beyond slow start.
    pub const fn lead_ns(&self) -> u64 {
        if self.cross.is_empty() { 0 } else { NANOS_PER_S }
    }

    /// The index of the node of this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// Puts another network in the place of a link's.
    ///
    /// # Errors
    /// There is no link of this name, or several could be meant where none is named.
    pub fn replace_network(&mut self, link: Option<&str>, network: &Network) -> Result<(), String> {
        let emulated = || self.links.iter().filter(|link| link.network.is_some());
        let names: Vec<String> = match link {
            Some(_) => self.links.iter().map(|link| link.name.clone()).collect(),
            None => emulated().map(|link| link.name.clone()).collect(),
        };
        let wanted = match (link, names.as_slice()) {
            (Some(link), names) if names.iter().any(|name| name == link) => link.to_owned(),
            (Some(link), names) => return Err(unknown(link, "a link", names)),
            (None, [only]) => only.clone(),
            (None, names) => {
                return Err(format!(
                    "the link of `{}` is unclear; write LINK=NETWORK with one of the links {}",
                    network.name,
                    names.join(", ")
                ));
            }
        };
        for link in self.links.iter_mut().filter(|link| link.name == wanted) {
            link.network = Some(network.clone());
        }
        Ok(())
    }
}

impl Interface {
    /// Its addresses with the lengths of their prefixes, IPv4 first; none at a switch.
    pub fn addresses(&self) -> impl Iterator<Item = (IpAddr, u8)> + use<> {
        let v4 = self.v4.map(|(address, prefix)| (address.into(), prefix));
        v4.into_iter().chain(self.v6.map(|(address, prefix)| (address.into(), prefix)))
    }
}

impl TopologyNode {
    /// The address of its first interface; `None` for a switch.
    pub fn address_v4(&self) -> Option<Ipv4Addr> {
        self.interfaces.iter().find_map(|interface| Some(interface.v4?.0))
    }

    /// The same for IPv6.
    pub fn address_v6(&self) -> Option<Ipv6Addr> {
        self.interfaces.iter().find_map(|interface| Some(interface.v6?.0))
    }
}
