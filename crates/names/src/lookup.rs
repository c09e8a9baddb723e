//! The client's side: what a host announces for `https` (RFC 9460).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hickory_server::proto::op::{Message, Query};
use hickory_server::proto::rr::rdata::svcb::SvcParamValue;
use hickory_server::proto::rr::{Name, RData, RecordType};

use crate::{HTTPS_PORT, PORT, Service};

/// The longest answer over UDP that is read.
const MOST_BYTES: usize = 4096;

/// The name server of this machine: the first of /etc/resolv.conf.
///
/// # Errors
/// The file cannot be read, or names none.
pub fn system_resolver() -> Result<SocketAddr> {
    const FILE: &str = "/etc/resolv.conf";
    let text = std::fs::read_to_string(FILE).with_context(|| format!("cannot read {FILE}"))?;
    let server = text.lines().find_map(|line| line.strip_prefix("nameserver")?.trim().parse::<IpAddr>().ok());
    Ok(SocketAddr::new(server.with_context(|| format!("{FILE} names no server"))?, PORT))
}

/// The versions of HTTP that the HTTPS records of a host announce, with their ports; empty without a record.
///
/// # Errors
/// The name is invalid, or no valid answer comes in time.
pub fn https_services(resolver: SocketAddr, host: &str, port: u16, limit: Duration) -> Result<Vec<Service>> {
    // The owner's name has the port, unless it is the default one (RFC 9460, section 9.1).
    let owner = if port == HTTPS_PORT { host.to_owned() } else { format!("_{port}._https.{host}") };
    let name = Name::from_str(&format!("{}.", owner.trim_end_matches('.')))?;
    let mut query = Message::query();
    query.metadata.recursion_desired = true;
    query.add_query(Query::query(name, RecordType::HTTPS));
    let answer = ask(resolver, &query, limit)?;
    let mut records: Vec<_> = answer
        .answers
        .iter()
        .filter_map(|record| match &record.data {
            RData::HTTPS(https) if https.0.svc_priority > 0 => Some(&https.0),
            _ => None,
        })
        .collect();
    records.sort_by_key(|record| record.svc_priority);
    let mut services = Vec::new();
    for record in records {
        let own_port = record.svc_params.iter().find_map(|(_, value)| match value {
            SvcParamValue::Port(port) => Some(*port),
            _ => None,
        });
        for (_, value) in &record.svc_params {
            if let SvcParamValue::Alpn(alpn) = value {
                let service = |alpn: &String| Service { alpn: alpn.clone(), port: own_port.unwrap_or(port) };
                services.extend(alpn.0.iter().map(service));
            }
        }
    }
    Ok(services)
}

fn ask(resolver: SocketAddr, query: &Message, limit: Duration) -> Result<Message> {
    let any = if resolver.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(resolver)?;
    socket.send(&query.to_vec()?)?;
    let began = Instant::now();
    let mut bytes = [0; MOST_BYTES];
    loop {
        let left = limit.saturating_sub(began.elapsed());
        if left.is_zero() {
            bail!("the name server {resolver} did not answer");
        }
        socket.set_read_timeout(Some(left))?;
        let length = socket.recv(&mut bytes).with_context(|| format!("the name server {resolver}"))?;
        // Another answer may be late, or forged.
        match Message::from_vec(&bytes[..length]) {
            Ok(answer) if answer.metadata.id == query.metadata.id => return Ok(answer),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::thread;

    use super::*;
    use crate::{Config, Host, View, serve};

    const LIMIT: Duration = Duration::from_secs(10);

    /// Asks the lab's own name server, which has HTTPS records.
    #[test]
    fn the_announced_versions_are_found() {
        let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let service = |alpn: &str| Service { alpn: alpn.to_owned(), port: 8443 };
        let host = Host {
            name: "www".to_owned(),
            addresses: vec![Ipv4Addr::LOCALHOST.into()],
            services: vec![service("h3"), service("h2")],
        };
        let view = View { listen: vec![free], hosts: vec![host] };
        let (ready, is_ready) = std::sync::mpsc::channel();
        thread::spawn(move || {
            serve(Config { ttl_s: 1, views: vec![view] }, std::io::empty(), || ready.send(()).unwrap())
        });
        is_ready.recv().unwrap();
        let found = https_services(free, "www", 8443, LIMIT).unwrap();
        assert_eq!(found, [service("h3"), service("h2")]);
        assert_eq!(https_services(free, "www", 443, LIMIT).unwrap(), found);
        assert_eq!(https_services(free, "other", 443, LIMIT).unwrap(), []);
    }

    #[test]
    fn noise_is_no_answer() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = server.local_addr().unwrap();
        let noise = thread::spawn(move || {
            let (length, from) = server.recv_from(&mut [0; 512]).unwrap();
            server.send_to(&vec![0xff; length], from).unwrap();
            server.send_to(&[], from).unwrap();
        });
        assert!(https_services(address, "www", 443, Duration::from_millis(200)).is_err());
        noise.join().unwrap();
        assert!(https_services(address, "a..b", 443, LIMIT).is_err());
    }
}
