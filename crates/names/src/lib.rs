//! The lab's name server: the names of all nodes, over UDP and TCP.
//!
//! It is authoritative for the root, so nodes have the same names everywhere, without a domain, and an
//! unknown name does not exist. A name has its addresses (A, AAAA), an address its name (PTR), and a name
//! with servers announces their versions of HTTP and their ports (HTTPS, RFC 9460). Clients that reach a node
//! at different addresses ask at different addresses of the server, and have different views.
//!
//! ```no_run
//! use names::{Config, Host, PORT, Service, View};
//!
//! let services = vec![Service { alpn: "h3".to_owned(), port: 443 }];
//! let host = Host { name: "server".to_owned(), addresses: vec!["10.0.0.2".parse()?], services };
//! let view = View { listen: vec![format!("10.0.0.1:{PORT}").parse()?], hosts: vec![host] };
//! let config = Config { ttl_s: 300, views: vec![view] };
//! names::serve(config, std::io::stdin(), || println!("ready"))?;
//! # Ok::<(), anyhow::Error>(())
//! ```

mod lookup;

use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use hickory_server::Server;
use hickory_server::net::runtime::TokioRuntimeProvider;
use hickory_server::proto::rr::rdata::svcb::{Alpn, IpHint, SvcParamKey, SvcParamValue};
use hickory_server::proto::rr::rdata::{A, AAAA, HTTPS, NS, PTR, SOA, SVCB};
use hickory_server::proto::rr::{LowerName, Name, RData, Record};
use hickory_server::store::in_memory::InMemoryZoneHandler;
use hickory_server::zone_handler::{AxfrPolicy, Catalog, ZoneType};
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, UdpSocket};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

pub use lookup::{https_services, system_resolver};

/// A TCP connection without queries for this long is closed.
const TCP_PATIENCE: Duration = Duration::from_secs(5);
/// How many answers may wait on a TCP connection.
const TCP_ANSWERS: usize = 32;
const SERIAL: u32 = 1;
/// The port of DNS (RFC 1035, section 4.2) and that of `https` (RFC 9110, section 4.2.2), which an HTTPS
/// record's owner leaves out (RFC 9460, section 9.1).
pub const PORT: u16 = 53;
const HTTPS_PORT: u16 = 443;

/// The server's configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How long clients may cache an answer, in seconds.
    pub ttl_s: u32,
    /// What it answers, and where.
    pub views: Vec<View>,
}

/// The answers to the clients that ask at the same addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// The addresses on which it listens, over UDP and TCP.
    pub listen: Vec<SocketAddr>,
    /// The known hosts.
    pub hosts: Vec<Host>,
}

/// A name and its records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// The name, without a final dot.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Its servers, the preferred one first. Each is announced for `https` at its port and at the default
    /// port.
    pub services: Vec<Service>,
}

/// A version of HTTP at a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its ALPN identifier (RFC 7301), such as `h3`.
    pub alpn: String,
    /// The UDP port for `h3`, otherwise the TCP port.
    pub port: u16,
}

type Zone = InMemoryZoneHandler<TokioRuntimeProvider>;

/// Serves until the process ends; `ready` is called when all sockets are bound. Each line of `changes` has an
/// old and a new address: hosts with the old one have the new one from then on.
///
/// # Errors
/// A name is invalid, an address cannot be bound, or a socket fails.
pub fn serve(config: Config, changes: impl Read + Send + 'static, ready: impl FnOnce()) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut zones, mut servers) = (Vec::new(), JoinSet::new());
        for view in &config.views {
            let zone = Arc::new(zone(view, config.ttl_s)?);
            let mut catalog = Catalog::new();
            catalog.upsert(LowerName::new(&Name::root()), vec![Arc::<Zone>::clone(&zone)]);
            zones.push(zone);
            let mut server = Server::new(catalog);
            for address in &view.listen {
                let what = || format!("cannot listen for DNS queries at {address}");
                server.register_socket(UdpSocket::bind(address).await.with_context(what)?);
                let listener = TcpListener::bind(address).await.with_context(what)?;
                server.register_listener(listener, TCP_PATIENCE, TCP_ANSWERS);
            }
            servers.spawn(async move { server.block_until_done().await });
        }
        let runtime = Handle::current();
        std::thread::spawn(move || {
            // A lab writes valid lines; after any other one the addresses stay.
            let _ = follow(config, BufReader::new(changes), &zones, &runtime);
        });
        ready();
        while let Some(ended) = servers.join_next().await {
            ended?.context("the name server failed")?;
        }
        Ok(())
    })
}

/// Changes the zones of the views as addresses change.
fn follow(mut config: Config, changes: impl BufRead, zones: &[Arc<Zone>], runtime: &Handle) -> Result<()> {
    for line in changes.lines() {
        let line = line?;
        let (old, new) = line.split_once(' ').context("a change is not `OLD NEW`")?;
        let (old, new): (IpAddr, IpAddr) = (old.parse()?, new.parse()?);
        for (view, known) in config.views.iter_mut().zip(zones) {
            let addresses = view.hosts.iter_mut().flat_map(|host| &mut host.addresses);
            addresses.filter(|address| **address == old).for_each(|address| *address = new);
            let mut changed = zone(view, config.ttl_s)?;
            *runtime.block_on(known.records_mut()) = std::mem::take(changed.records_get_mut());
        }
    }
    Ok(())
}

fn zone(view: &View, ttl_s: u32) -> Result<Zone> {
    let mut zone = Zone::empty(Name::root(), ZoneType::Primary, AxfrPolicy::Deny);
    for record in records(view, ttl_s)? {
        let shown = record.to_string();
        if !zone.upsert_mut(record, SERIAL) {
            return Err(anyhow!("the name server refuses the record {shown}"));
        }
    }
    Ok(zone)
}

/// Every record of the zone, the start of authority first.
fn records(view: &View, ttl_s: u32) -> Result<Vec<Record>> {
    let own = name("names")?;
    // The last value is the TTL of negative answers (RFC 2308, section 4): they are not cached.
    let authority = SOA::new(own.clone(), own.clone(), SERIAL, 3600, 600, 86_400, 0);
    let mut records = vec![
        Record::from_rdata(Name::root(), ttl_s, RData::SOA(authority)),
        Record::from_rdata(Name::root(), ttl_s, RData::NS(NS(own))),
    ];
    for host in &view.hosts {
        let owner = name(&host.name)?;
        for address in &host.addresses {
            let data = match *address {
                IpAddr::V4(v4) => RData::A(A(v4)),
                IpAddr::V6(v6) => RData::AAAA(AAAA(v6)),
            };
            records.push(Record::from_rdata(owner.clone(), ttl_s, data));
            let pointer = RData::PTR(PTR(owner.clone()));
            let reverse = Record::from_rdata(Name::from(*address), ttl_s, pointer);
            // The first name of an address is its PTR record.
            if records.iter().all(|known| known.name != reverse.name) {
                records.push(reverse);
            }
        }
        for data in announcements(host, &owner) {
            let ports = [HTTPS_PORT].into_iter().chain(host.services.iter().map(|service| service.port));
            let mut owners: Vec<Name> = Vec::new();
            for port in ports {
                let record_name = if port == HTTPS_PORT {
                    owner.clone()
                } else {
                    name(&format!("_{port}._https.{}", host.name))?
                };
                if !owners.contains(&record_name) {
                    owners.push(record_name);
                }
            }
            let all = owners.into_iter();
            records.extend(
                all.map(|record_name| Record::from_rdata(record_name, ttl_s, RData::HTTPS(data.clone()))),
            );
        }
    }
    Ok(records)
}

/// A host's HTTPS records, one for each service. Each service has a separate port, so each record contains
/// `no-default-alpn`.
fn announcements(host: &Host, owner: &Name) -> Vec<HTTPS> {
    let v4: Vec<A> = host.addresses.iter().filter_map(|address| v4_of(*address)).map(A).collect();
    let v6: Vec<AAAA> = host.addresses.iter().filter_map(|address| v6_of(*address)).map(AAAA).collect();
    let announcement = |(priority, service): (u16, &Service)| {
        // Sorted by the keys' numbers (RFC 9460, section 2.2).
        let mut parameters = vec![
            (SvcParamKey::Alpn, SvcParamValue::Alpn(Alpn(vec![service.alpn.clone()]))),
            (SvcParamKey::NoDefaultAlpn, SvcParamValue::NoDefaultAlpn),
            (SvcParamKey::Port, SvcParamValue::Port(service.port)),
        ];
        if !v4.is_empty() {
            parameters.push((SvcParamKey::Ipv4Hint, SvcParamValue::Ipv4Hint(IpHint(v4.clone()))));
        }
        if !v6.is_empty() {
            parameters.push((SvcParamKey::Ipv6Hint, SvcParamValue::Ipv6Hint(IpHint(v6.clone()))));
        }
        HTTPS(SVCB::new(priority, owner.clone(), parameters))
    };
    (1..).zip(&host.services).map(announcement).collect()
}

const fn v4_of(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(v4) => Some(v4),
        IpAddr::V6(_) => None,
    }
}

const fn v6_of(address: IpAddr) -> Option<Ipv6Addr> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(v6) => Some(v6),
    }
}

fn name(text: &str) -> Result<Name> {
    Name::from_str(&format!("{text}.")).map_err(|error| anyhow!("`{text}` is not a DNS name: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        let service = |alpn: &str, port| Service { alpn: alpn.to_owned(), port };
        Host {
            name: "server".to_owned(),
            addresses: vec!["10.123.0.2".parse().unwrap(), "fd12::2".parse().unwrap()],
            services: vec![service("h3", 8443), service("h2", 8442)],
        }
    }

    #[test]
    fn a_host_has_addresses_pointers_and_announcements() {
        let alias = Host { name: "server-v6".to_owned(), services: Vec::new(), ..host() };
        let found = records(&View { listen: Vec::new(), hosts: vec![host(), alias] }, 300).unwrap();
        let shown: Vec<String> =
            found.iter().map(|record| format!("{} {}", record.name, record.data)).collect();
        for expected in [
            "server. 10.123.0.2",
            "server. fd12::2",
            "2.0.123.10.in-addr.arpa. server.",
            "server-v6. 10.123.0.2",
        ] {
            assert!(shown.iter().any(|record| record == expected), "{expected} in {shown:#?}");
        }
        let pointers = shown.iter().filter(|record| record.contains("arpa")).count();
        assert_eq!(pointers, 2, "one name for each address: {shown:#?}");
        let owners = ["server. ", "_8443._https.server. ", "_8442._https.server. "];
        for owner in owners {
            let https: Vec<&String> =
                shown.iter().filter(|record| record.starts_with(owner) && record.contains("alpn")).collect();
            assert_eq!(https.len(), 2, "{owner}: {shown:#?}");
            assert!(https[0].contains("1 server. alpn=h3") && https[0].contains("port=8443"), "{https:?}");
            assert!(
                https[1].contains("2 server. alpn=h2") && https[1].contains("no-default-alpn"),
                "{https:?}"
            );
        }
        assert!(zone(&View { listen: Vec::new(), hosts: vec![host()] }, 300).is_ok());
    }

    #[test]
    fn an_invalid_name_is_an_error() {
        let host = Host { name: "a".repeat(64), ..host() };
        let error = records(&View { listen: Vec::new(), hosts: vec![host] }, 300).unwrap_err();
        assert!(error.to_string().contains("` is not a DNS name"), "{error}");
    }
}
