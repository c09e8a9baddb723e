//! Free ports for a server, and whether it answers on them.

use std::io;
use std::net::{IpAddr, TcpListener, UdpSocket};

use anyhow::{Context, Result};
use lab::Node;
use model::Variant;

use super::handshake::Endpoint;

/// A port for each variant: the wanted port where it is free, otherwise one that the system chooses.
///
/// On this machine's loopback the system always chooses, because other programs may bind ports at the same
/// time.
pub(crate) fn free_ports(
    node: &Node,
    address: IpAddr,
    wanted: &[(Variant, u16)],
) -> Result<Vec<(Variant, u16)>> {
    let choose = || {
        // All sockets stay bound until every port is chosen, so that no port is chosen twice.
        let mut bound = Vec::new();
        let mut ports = Vec::new();
        for (variant, port) in wanted {
            let wanted = if address.is_loopback() { 0 } else { *port };
            let socket = bind(*variant, address, wanted).or_else(|_| bind(*variant, address, 0))?;
            ports.push((*variant, socket.1));
            bound.push(socket);
        }
        Ok::<_, io::Error>(ports)
    };
    let ports = node.enter(choose)?;
    ports.with_context(|| format!("cannot find free ports on {address} in the node `{}`", node.name()))
}

/// The ports on which the server does not answer a handshake yet. The handshakes stay within the server's
/// node, so no emulated link counts them.
pub(crate) fn silent_ports(
    node: &Node,
    endpoint: &Endpoint,
    ports: &[(Variant, u16)],
) -> Result<Vec<(Variant, u16)>> {
    let is_silent = |(variant, port): &(Variant, u16)| !endpoint.answers(*variant, *port);
    Ok(node.enter(|| ports.iter().copied().filter(is_silent).collect())?)
}

/// Holds a port until it is dropped.
enum Bound {
    Tcp(#[expect(dead_code, reason = "held, never used")] TcpListener),
    Udp(#[expect(dead_code, reason = "held, never used")] UdpSocket),
}

fn bind(variant: Variant, address: IpAddr, port: u16) -> io::Result<(Bound, u16)> {
    if variant.is_quic() {
        let socket = UdpSocket::bind((address, port))?;
        let port = socket.local_addr()?.port();
        Ok((Bound::Udp(socket), port))
    } else {
        let socket = TcpListener::bind((address, port))?;
        let port = socket.local_addr()?.port();
        Ok((Bound::Tcp(socket), port))
    }
}
