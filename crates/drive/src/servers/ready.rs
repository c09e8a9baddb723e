//! Free ports for a server, and whether it listens on them.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result};
use lab::Node;
use model::Variant;

/// Far longer than a connection within one host takes.
const CONNECT_LIMIT: Duration = Duration::from_millis(250);

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

/// The ports on which nothing listens yet.
pub(crate) fn silent_ports(
    node: &Node,
    address: IpAddr,
    ports: &[(Variant, u16)],
) -> Result<Vec<(Variant, u16)>> {
    let is_silent = |(variant, port): &(Variant, u16)| {
        if variant.is_quic() {
            !is_udp_bound(*port)
        } else {
            TcpStream::connect_timeout(&SocketAddr::new(address, *port), CONNECT_LIMIT).is_err()
        }
    };
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

/// Whether a UDP socket is bound to a port in the calling thread's network namespace. That suffices for QUIC:
/// a datagram to a bound socket waits for the server.
fn is_udp_bound(port: u16) -> bool {
    ["udp", "udp6"].iter().any(|table| {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        has_local_port(&text, port)
    })
}

/// The second field of each line is `ADDRESS:PORT` of the local end, in hexadecimal (proc_net_udp, proc(5)).
fn has_local_port(table: &str, port: u16) -> bool {
    table.lines().skip(1).any(|line| {
        let local = line.split_whitespace().nth(1).and_then(|local| local.rsplit_once(':'));
        local.is_some_and(|(_, found)| u16::from_str_radix(found, 16) == Ok(port))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_udp_are_read() {
        let table = "  sl  local_address rem_address   st\n 1: 0100007F:20FB 00000000:0000 07 0:0 0\n";
        assert!(has_local_port(table, 0x20FB));
        assert!(!has_local_port(table, 0));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(is_udp_bound(socket.local_addr().unwrap().port()));
    }
}
