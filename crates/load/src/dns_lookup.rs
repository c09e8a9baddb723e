//! DNS lookup of the server's name by the system's resolver: the first phase of a load whose address is
//! unknown.

use std::net::{SocketAddr, ToSocketAddrs};

use model::assignment::{DnsLookup, Target};

use crate::clock::Clock;

/// The server's name could not be resolved to its address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("looking up `{name}`: {problem}")]
pub struct NameNotFound {
    /// The name.
    pub name: String,
    /// The resolver's error, or the addresses that it found.
    pub problem: String,
}

/// Asks the system's resolver for the target's name. It blocks until the resolver is done: no connection
/// could be opened meanwhile.
///
/// # Errors
/// The resolver does not find the target's address.
pub(crate) fn dns_lookup(target: &Target, clock: &Clock) -> Result<DnsLookup, NameNotFound> {
    let fault = |problem: String| NameNotFound { name: target.server_name.clone(), problem };
    let began_ns = clock.now_ns();
    let found = (target.server_name.as_str(), target.address.port()).to_socket_addrs();
    let ended_ns = clock.now_ns();
    let found: Vec<SocketAddr> = found.map_err(|error| fault(error.to_string()))?.collect();
    if found.contains(&target.address) {
        return Ok(DnsLookup { began_ns, ended_ns });
    }
    let found: Vec<String> = found.iter().map(|address| address.ip().to_string()).collect();
    Err(fault(format!("the resolver returned {}, not {}", found.join(", "), target.address.ip())))
}

#[cfg(test)]
mod tests {
    use model::Variant;
    use model::assignment::{ClockReference, Trust};

    use super::*;

    fn target(name: &str, address: &str) -> Target {
        Target {
            variant: Variant::H1,
            address: address.parse().unwrap(),
            authority: name.to_owned(),
            server_name: name.to_owned(),
            trust: Trust::System,
        }
    }

    #[test]
    fn an_address_is_only_its_own_name() {
        let clock = Clock::new(&ClockReference { id: "test".to_owned(), run_start_ns: 0 });
        let found = dns_lookup(&target("127.0.0.1", "127.0.0.1:80"), &clock).unwrap();
        assert!(found.began_ns > 0 && found.ended_ns >= found.began_ns, "{found:?}");
        let error = dns_lookup(&target("127.0.0.1", "127.0.0.2:80"), &clock).unwrap_err();
        assert_eq!(
            error.to_string(),
            "looking up `127.0.0.1`: the resolver returned 127.0.0.1, not 127.0.0.2"
        );
        // A label of 64 characters is invalid (RFC 1035, section 2.3.4): no server is asked.
        let error = dns_lookup(&target(&"a".repeat(64), "127.0.0.1:80"), &clock).unwrap_err();
        assert!(error.problem.starts_with("failed to lookup address information"), "{error}");
    }
}
