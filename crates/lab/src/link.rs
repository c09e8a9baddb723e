//! The link between two nodes: interfaces, addresses, neighbours, routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::BorrowedFd;

use model::Pins;

use crate::error::{LabError, Step};
use crate::netlink::{Mac, Netlink, Route, Veth};
use crate::{offload, sysctl};

/// The node's end of the link.
pub(crate) const NODE_INTERFACE: &str = "eth0";

const PREFIX_V4: u8 = 24;
const PREFIX_V6: u8 = 64;
const NETWORK_V4: Ipv4Addr = Ipv4Addr::new(10, 123, 0, 0);
const NETWORK_V6: Ipv6Addr = Ipv6Addr::new(0xfd12, 0x3123, 0x123, 0, 0, 0, 0, 0);

/// The two ends of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

impl End {
    /// The node's name, and the name of the emulator's interface that leads to it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            End::Client => "client",
            End::Server => "server",
        }
    }

    const fn peer(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }

    const fn number(self) -> u8 {
        match self {
            End::Client => 1,
            End::Server => 2,
        }
    }

    /// Locally administered, unicast.
    const fn mac(self) -> Mac {
        [2, 0, 0, 0x12, 0x30, self.number()]
    }

    pub(crate) const fn address_v4(self) -> Ipv4Addr {
        let [a, b, c, _] = NETWORK_V4.octets();
        Ipv4Addr::new(a, b, c, self.number())
    }

    pub(crate) const fn address_v6(self) -> Ipv6Addr {
        Ipv6Addr::from_bits(NETWORK_V6.to_bits() | self.number() as u128)
    }
}

/// Creates the link to one node, from the emulator's thread; returns the index of the emulator's interface.
pub(crate) fn create(end: End, node: BorrowedFd<'_>, mtu_bytes: u32) -> Result<u32, LabError> {
    let what = || format!("creating the link to the node `{}`", end.name());
    let mut netlink = Netlink::open().step(what)?;
    netlink
        .create_veth(&Veth {
            name: end.name(),
            peer_name: NODE_INTERFACE,
            peer_mac: end.mac(),
            peer_network: node,
            mtu_bytes,
        })
        .step(what)?;
    offload::switch_off(end.name()).step(|| format!("switching off offloads towards `{}`", end.name()))?;
    let index = interface_index(end.name()).step(what)?;
    netlink.set_up(index).step(what)?;
    Ok(index)
}

/// Configures a node's own loopback, from the node's thread.
pub(crate) fn configure_loopback() -> Result<(), LabError> {
    let what = || "bringing a node's loopback up".to_owned();
    let index = interface_index("lo").step(what)?;
    Netlink::open().step(what)?.set_up(index).step(what)
}

/// Configures a node's end of its link, from the node's thread.
pub(crate) fn configure(end: End, pins: &Pins) -> Result<(), LabError> {
    let what = || format!("configuring {NODE_INTERFACE} of the node `{}`", end.name());
    offload::switch_off(NODE_INTERFACE)
        .step(|| format!("switching off offloads of the node `{}`", end.name()))?;
    let index = interface_index(NODE_INTERFACE).step(what)?;
    let mut netlink = Netlink::open().step(what)?;
    netlink.set_up(index).step(what)?;
    let peer = end.peer();
    let v4 = (
        IpAddr::from(end.address_v4()),
        IpAddr::from(peer.address_v4()),
        IpAddr::from(NETWORK_V4),
        PREFIX_V4,
    );
    let v6 = (
        IpAddr::from(end.address_v6()),
        IpAddr::from(peer.address_v6()),
        IpAddr::from(NETWORK_V6),
        PREFIX_V6,
    );
    for (own, other, network, prefix) in [v4, v6] {
        if own.is_ipv6() && !sysctl::has_ipv6() {
            continue;
        }
        netlink.add_address(index, own, prefix).step(what)?;
        netlink.add_neighbour(index, other, peer.mac()).step(what)?;
        let congestion_control = pins.congestion_control.name();
        let initial_window_packets = pins.initial_window_packets;
        let route = Route { index, network, prefix, source: own, congestion_control, initial_window_packets };
        netlink.add_route(&route).step(|| {
            format!(
                "adding a route with the congestion control `{congestion_control}` in the node `{}` (this kernel has \
                 loaded: {}; `modprobe tcp_{congestion_control}` as root may add it)",
                end.name(),
                sysctl::available_congestion_control()
            )
        })?;
    }
    Ok(())
}

fn interface_index(name: &str) -> std::io::Result<u32> {
    use rustix::net::{AddressFamily, SocketType, netdevice, socket};
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok(netdevice::name_to_index(socket, name)?)
}
