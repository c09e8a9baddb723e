//! The limits of this machine, checked before anything is sent: open files, local ports, addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use anyhow::{Context, Result};
use model::Shortfall;
use model::assignment::Assignment;

use super::output::connections_of;
use crate::exit::UsageError;

/// Open files besides connections: standard streams, an epoll instance for each thread, output files.
const OTHER_FILES: u64 = 64;
/// The first and last local port for outgoing connections (ip(7)).
const PORT_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Raises the soft limit of open files as needed, and refuses more connections than this machine can have.
///
/// # Errors
/// A [`UsageError`] with the limit and how to raise it.
pub(crate) fn prepare(assignments: &[Assignment]) -> Result<()> {
    let Some(first) = assignments.first() else { return Ok(()) };
    let remotes: Vec<SocketAddr> = std::iter::once(&first.target)
        .chain(&first.options.requests.further_targets)
        .map(|target| target.address)
        .collect();
    let connections: u64 = assignments.iter().map(connections_of).sum();
    check_sources(&first.options.connections.sources, &remotes)?;
    let ports = fs::read_to_string(PORT_RANGE).ok().and_then(|text| ports(&text));
    if let Some(ports) = ports {
        let sources = &first.options.connections.sources;
        check_ports(ports, connections, &remotes, sources, first.target.variant.is_quic())?;
    }
    let needed = connections * remotes.len() as u64 + OTHER_FILES;
    lab::raise_open_files(needed).map_err(|hard| {
        UsageError(format!(
            "the test needs {needed} open files, but the limit is {hard}; raise it (`ulimit -n {needed}` as root, \
             LimitNOFILE= of a systemd unit, /etc/security/limits.conf), or use fewer --connections"
        ))
        .into()
    })
}

/// The socket buffers for which the kernel grants less than a connection requests.
///
/// # Errors
/// No socket can be opened to read the sizes.
pub(crate) fn buffer_shortfalls(assignments: &[Assignment]) -> Result<Vec<Shortfall>> {
    let Some(first) = assignments.first() else { return Ok(Vec::new()) };
    let target = &first.target;
    load::buffer_shortfalls(target.address, target.variant.is_quic(), &first.options.connections)
        .context("cannot open a socket to read the size of its buffers")
}

/// Every source must be an address of this machine, and every server needs one of its family.
fn check_sources(sources: &[IpAddr], remotes: &[SocketAddr]) -> Result<()> {
    for source in sources {
        UdpSocket::bind((*source, 0)).map_err(|error| {
            UsageError(format!("--source {source} is not an address of this machine: {error}"))
        })?;
    }
    let lacks = |remote: &&SocketAddr| sources.iter().all(|source| source.is_ipv4() != remote.is_ipv4());
    match remotes.iter().find(lacks).filter(|_| !sources.is_empty()) {
        Some(remote) => {
            let family = if remote.is_ipv4() { "IPv4" } else { "IPv6" };
            Err(UsageError(format!("--source has no {family} address, which {remote} requires")).into())
        }
        None => Ok(()),
    }
}

/// The number of ports of a range.
fn ports(range: &str) -> Option<u64> {
    let (first, last) = range.trim().split_once(char::is_whitespace)?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.trim().parse().ok()?);
    Some((last + 1).saturating_sub(first)).filter(|ports| *ports > 0)
}

/// A local TCP port can have connections to several servers, a UDP port to one.
fn check_ports(
    ports: u64,
    connections: u64,
    remotes: &[SocketAddr],
    sources: &[IpAddr],
    is_quic: bool,
) -> Result<()> {
    let mut wanted: BTreeMap<(bool, Option<&SocketAddr>), u64> = BTreeMap::new();
    for remote in remotes {
        *wanted.entry((remote.is_ipv4(), Some(remote).filter(|_| !is_quic))).or_default() += connections;
    }
    for ((is_ipv4, remote), wanted) in wanted {
        let fitting: BTreeSet<_> = sources.iter().filter(|source| source.is_ipv4() == is_ipv4).collect();
        let addresses = fitting.len().max(1) as u64;
        let most = ports * addresses;
        if wanted > most {
            let to = remote.map_or(String::new(), |remote| format!(" to {remote}"));
            return Err(UsageError(format!(
                "{wanted} connections{to} exceed the {most} possible: a local address has {ports} ports \
                 ({PORT_RANGE}); use {} addresses, such as --source 127.0.0.2,127.0.0.3, or fewer --connections",
                wanted.div_ceil(ports)
            ))
            .into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remotes() -> Vec<SocketAddr> {
        ["127.0.0.1:80", "127.0.0.1:81", "127.0.0.1:80"].map(|text| text.parse().unwrap()).to_vec()
    }

    #[test]
    fn ports_are_counted() {
        assert_eq!(ports("32768\t60999\n"), Some(28_232));
        assert_eq!(ports("nonsense"), None);
        assert_eq!(ports("5 4"), None);
    }

    #[test]
    fn tcp_ports_serve_each_server_and_udp_ports_one() {
        let refused = |connections, sources: &[IpAddr], is_quic| {
            check_ports(100, connections, &remotes(), sources, is_quic).map_err(|error| error.to_string())
        };
        assert_eq!(refused(50, &[], false), Ok(()));
        let error = refused(51, &[], false).unwrap_err();
        assert!(error.starts_with("102 connections to 127.0.0.1:80 exceed the 100 possible"), "{error}");
        assert!(error.contains("use 2 addresses, such as --source"), "{error}");
        let two: [IpAddr; 3] = ["127.0.0.2", "127.0.0.3", "::1"].map(|text| text.parse().unwrap());
        assert_eq!(refused(100, &two, false), Ok(()));
        assert_eq!(refused(33, &[], true), Ok(()));
        assert!(refused(34, &[], true).unwrap_err().starts_with("102 connections exceed the 100 possible"));
    }

    #[test]
    fn sources_are_of_this_machine_and_of_the_servers_family() {
        let check =
            |text: &str| check_sources(&[text.parse().unwrap()], &remotes()).map_err(|e| e.to_string());
        assert_eq!(check("127.0.0.9"), Ok(()));
        assert!(check("192.0.2.77").unwrap_err().starts_with("--source 192.0.2.77 is not an address"));
        let error = check("::1").unwrap_err();
        assert!(
            error.contains("::1") || error == "--source has no IPv4 address, which 127.0.0.1:80 requires",
            "{error}"
        );
    }
}
