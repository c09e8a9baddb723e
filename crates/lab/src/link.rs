//! The links between nodes: interfaces, addresses, neighbours, routes and bridges.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use model::pins::CongestionControl;
use model::topology::{self, Role, TopologyNode};

use crate::error::{LabError, Step};
use crate::netlink::{Mac, Netlink, Route, Veth};
use crate::settings::LinkSettings;
use crate::{offload, sysctl};

/// The bridge of a switch.
const BRIDGE: &str = "bridge";

/// How long to wait for a link.
const PATIENCE: Duration = Duration::from_secs(10);

/// A node's end of a link.
#[derive(Debug)]
pub(crate) struct LinkEnd {
    /// The node's name.
    pub(crate) node: String,
    /// The interface in the node.
    pub(crate) interface: String,
    /// Its Ethernet address.
    pub(crate) mac: Mac,
    /// The node's network namespace.
    pub(crate) network: OwnedFd,
}

/// Creates an emulator's interface to a node, from the emulator's thread; returns its index.
pub(crate) fn create(side: &str, end: &LinkEnd, mtu_bytes: u32) -> Result<u32, LabError> {
    let what = || format!("creating the link to the node `{}`", end.node);
    let mut netlink = Netlink::open().step(what)?;
    netlink
        .create_veth(&Veth {
            name: side,
            mac: None,
            peer_name: &end.interface,
            peer_mac: end.mac,
            peer_network: end.network.as_fd(),
            mtu_bytes,
        })
        .step(what)?;
    offload::switch_off(side).step(|| format!("switching off offloads towards `{}`", end.node))?;
    let index = interface_index(side).step(what)?;
    netlink.set_up(index).step(what)?;
    Ok(index)
}

/// Joins two nodes without an emulator, from the thread of the first.
pub(crate) fn create_wire(ends: &[LinkEnd; 2], mtu_bytes: u32) -> Result<(), LabError> {
    let [own, peer] = ends;
    let what = || format!("creating the wire from the node `{}` to `{}`", own.node, peer.node);
    let veth = Veth {
        name: &own.interface,
        mac: Some(own.mac),
        peer_name: &peer.interface,
        peer_mac: peer.mac,
        peer_network: peer.network.as_fd(),
        mtu_bytes,
    };
    Netlink::open().step(what)?.create_veth(&veth).step(what)
}

/// Brings a node's loopback up, from the node's thread.
pub(crate) fn configure_loopback() -> Result<(), LabError> {
    let what = || "bringing a node's loopback up".to_owned();
    let index = interface_index("lo").step(what)?;
    Netlink::open().step(what)?.set_up(index).step(what)
}

/// Configures a node's ends of its links, from the node's thread.
pub(crate) fn configure(node: &TopologyNode, settings: LinkSettings) -> Result<(), LabError> {
    let what = || format!("configuring the interfaces of the node `{}`", node.name);
    let mut netlink = Netlink::open().step(what)?;
    let bridge = match node.role {
        Role::Switch => Some(create_bridge(&mut netlink, settings.mtu_bytes).step(what)?),
        Role::Host | Role::Router => None,
    };
    let mut indices = Vec::new();
    for interface in &node.interfaces {
        offload::switch_off(&interface.name)
            .step(|| format!("switching off offloads of the node `{}`", node.name))?;
        let index = interface_index(&interface.name).step(what)?;
        indices.push(index);
        if let Some(bridge) = bridge {
            netlink.put_under(index, bridge).step(what)?;
        }
        netlink.set_up(index).step(what)?;
        let v4 = interface.v4.map(|(address, prefix)| (IpAddr::from(address), prefix));
        let v6 = interface.v6.map(|(address, prefix)| (IpAddr::from(address), prefix));
        for (address, prefix) in v4.into_iter().chain(v6).filter(|(address, _)| is_known(address)) {
            netlink.add_address(index, address, prefix).step(what)?;
        }
        let prefix = interface.v4.map_or(32, |(_, prefix)| prefix);
        for address in &interface.further {
            netlink.add_address(index, IpAddr::from(*address), prefix).step(what)?;
        }
        for mac in &interface.beyond {
            netlink.add_beyond(index, *mac).step(what)?;
        }
        for (address, mac) in interface.neighbours.iter().filter(|(address, _)| is_known(address)) {
            netlink.add_neighbour(index, *address, *mac).step(what)?;
        }
    }
    // Routes to attached subnets come first: the kernel accepts a router only on one of them.
    for route in node.routes.iter().filter(|route| is_known(&route.network)) {
        let index = indices.get(route.interface).copied().ok_or(io::ErrorKind::NotFound).step(what)?;
        set_route(&mut netlink, index, &node.name, route, settings)?;
    }
    Ok(())
}

/// Sets a route with these TCP settings; it replaces a route to the same subnet.
fn set_route(
    netlink: &mut Netlink,
    index: u32,
    node: &str,
    route: &topology::Route,
    settings: LinkSettings,
) -> Result<(), LabError> {
    let congestion_control = settings.congestion_control.map(CongestionControl::name);
    let route = Route {
        index,
        network: route.network,
        prefix: route.prefix,
        via: route.via,
        source: route.source,
        congestion_control,
        initial_window_packets: settings.initial_window_packets,
    };
    netlink.set_route(&route).step(|| match congestion_control {
        None => format!("adding a route in the node `{node}`"),
        Some(name) => format!(
            "adding a route with the congestion control `{name}` in the node `{node}` (this kernel has loaded: {}; try \
             `modprobe tcp_{name}` as root)",
            sysctl::available_congestion_control()
        ),
    })
}

/// What is needed to change a host's address at one end of a link.
#[derive(Clone, Debug)]
pub(crate) struct AddressChanger {
    /// The host's name.
    pub(crate) node: String,
    /// Its interface.
    pub(crate) interface: String,
    /// Its routes over that interface.
    pub(crate) routes: Vec<topology::Route>,
    /// The TCP settings of those routes.
    pub(crate) settings: LinkSettings,
}

/// Changes one of a host's addresses, from a thread in its namespace: the host gets the new address and its
/// routes before it loses the old one. Addresses have prefix lengths.
pub(crate) fn change_address(
    changer: &AddressChanger,
    old: (IpAddr, u8),
    new: (IpAddr, u8),
) -> Result<(), LabError> {
    if !is_known(&new.0) {
        return Ok(());
    }
    let AddressChanger { node, interface, routes, settings } = changer;
    let what = || format!("changing the address of the node `{node}` from {} to {}", old.0, new.0);
    let index = interface_index(interface).step(what)?;
    let mut netlink = Netlink::open().step(what)?;
    netlink.add_address(index, new.0, new.1).step(what)?;
    for route in routes.iter().filter(|route| route.network.is_ipv4() == new.0.is_ipv4()) {
        let route = topology::Route { source: new.0, ..*route };
        set_route(&mut netlink, index, node, &route, *settings)?;
    }
    netlink.remove_address(index, old.0, old.1).step(what)
}

/// Waits until frames pass all interfaces of a node, from the node's thread. Both ends of every link must be
/// configured: the kernel takes some time to notify the upper layers and bridges of a carrier, and drops
/// frames until then.
pub(crate) fn wait_until_passing(node: &TopologyNode) -> Result<(), LabError> {
    let what = || format!("waiting for the links of the node `{}`", node.name);
    let indices = node.interfaces.iter().map(|interface| interface_index(&interface.name));
    let indices: Vec<u32> = indices.collect::<Result<_, _>>().step(what)?;
    await_passing(&indices).step(what)
}

/// Waits until frames pass these interfaces of the calling thread's network namespace.
pub(crate) fn await_passing(indices: &[u32]) -> io::Result<()> {
    let began = Instant::now();
    let mut netlink = Netlink::open()?;
    for index in indices {
        while !netlink.is_passing(*index)? {
            if began.elapsed() > PATIENCE {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

/// Whether this kernel supports the address's family.
fn is_known(address: &IpAddr) -> bool {
    address.is_ipv4() || sysctl::has_ipv6()
}

fn create_bridge(netlink: &mut Netlink, mtu_bytes: u32) -> io::Result<u32> {
    netlink.create_bridge(BRIDGE, mtu_bytes)?;
    let index = interface_index(BRIDGE)?;
    netlink.set_up(index)?;
    Ok(index)
}

/// The index of an interface of the calling thread's network namespace.
pub(crate) fn interface_index(name: &str) -> io::Result<u32> {
    use rustix::net::{AddressFamily, SocketType, netdevice, socket};
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok(netdevice::name_to_index(socket, name)?)
}
