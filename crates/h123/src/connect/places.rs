//! The address of a host: looked up, or given by `--connect-to` and `--resolve` in curl's forms.

use std::net::{IpAddr, SocketAddr};

use anyhow::Result;
use clap::Args;

use crate::connect::target::{Url, dns_lookup};
use crate::exit::UsageError;

/// Where hosts are.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlaceArgs {
    /// Connect to this host and port instead (repeatable), as in curl; an empty part means any, or unchanged
    ///
    /// Example: --connect-to www.example.test:443:127.0.0.1:8443
    #[arg(long, value_name = "HOST:PORT:TO_HOST:TO_PORT")]
    connect_to: Vec<String>,
    /// Use this address for a host (repeatable), as in curl
    ///
    /// Example: --resolve www.example.test:443:192.0.2.1
    #[arg(long, value_name = "HOST:PORT:IP")]
    resolve: Vec<String>,
    /// Connect by IPv4 only
    ///
    /// Example: -4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Connect by IPv6 only
    ///
    /// Example: -6
    #[arg(short = '6', long)]
    ipv6: bool,
}

/// The resolved options about the addresses of hosts.
pub(crate) struct Places {
    /// Host and port (`None` is any), and the host and port that replace them (`None` leaves them unchanged).
    redirected: Vec<[Option<String>; 4]>,
    known: Vec<(String, u16, IpAddr)>,
    /// IPv4 only, IPv6 only, or either.
    only_ipv4: Option<bool>,
}

impl Places {
    /// # Errors
    /// An option that does not have the form.
    pub(crate) fn of(args: &PlaceArgs) -> Result<Places> {
        let only_ipv4 = if args.ipv4 || args.ipv6 { Some(args.ipv4) } else { None };
        let redirected = args.connect_to.iter().map(|text| redirection(text)).collect::<Result<Vec<_>>>()?;
        let known = args.resolve.iter().map(|text| known_address(text)).collect::<Result<Vec<_>>>()?;
        Ok(Places { redirected, known, only_ipv4 })
    }

    /// The address to connect to for a URL.
    ///
    /// # Errors
    /// A name that does not resolve, or not to an address of the wanted family.
    pub(crate) fn address(&self, url: &Url) -> Result<SocketAddr> {
        let matching = self.redirected.iter().find(|[host, port, ..]| {
            host.as_deref().is_none_or(|host| host.eq_ignore_ascii_case(&url.host))
                && port.as_deref().is_none_or(|port| port == url.port.to_string())
        });
        let (mut host, mut port) = (url.host.clone(), url.port);
        if let Some([_, _, to_host, to_port]) = matching {
            host = to_host.clone().unwrap_or(host);
            port = to_port.as_ref().and_then(|port| port.parse().ok()).unwrap_or(port);
        }
        let known = self.known.iter().find(|(name, at, _)| name.eq_ignore_ascii_case(&host) && *at == port);
        if let Some((_, _, address)) = known {
            return Ok(SocketAddr::new(*address, port));
        }
        let found = dns_lookup(&host, port)?;
        let fits = |address: &SocketAddr| self.only_ipv4.is_none_or(|ipv4| address.is_ipv4() == ipv4);
        found.into_iter().find(fits).ok_or_else(|| {
            let family = if self.only_ipv4 == Some(true) { "IPv4" } else { "IPv6" };
            UsageError(format!("`{host}` has no {family} address")).into()
        })
    }
}

/// `HOST:PORT:TO_HOST:TO_PORT`, IPv6 addresses in brackets, parts possibly empty.
fn redirection(text: &str) -> Result<[Option<String>; 4]> {
    let fault = || {
        UsageError(format!(
            "--connect-to `{text}` is not a redirection; write `HOST:PORT:TO_HOST:TO_PORT`, as for curl"
        ))
    };
    let parts = split(text);
    let parts: [String; 4] = parts.try_into().map_err(|_| fault())?;
    for port in [&parts[1], &parts[3]] {
        if !port.is_empty() && port.parse::<u16>().is_err() {
            return Err(fault().into());
        }
    }
    Ok(parts.map(|part| (!part.is_empty()).then_some(part)))
}

/// `HOST:PORT:IP`.
fn known_address(text: &str) -> Result<(String, u16, IpAddr)> {
    let fault =
        || UsageError(format!("--resolve `{text}` is not an address; write `HOST:PORT:IP`, as for curl"));
    let (host, rest) = text.split_once(':').ok_or_else(fault)?;
    let (port, address) = rest.split_once(':').ok_or_else(fault)?;
    let address = address.trim_start_matches('[').trim_end_matches(']');
    Ok((host.to_owned(), port.parse().map_err(|_| fault())?, address.parse().map_err(|_| fault())?))
}

/// Splits at colons outside of brackets, and drops the brackets.
fn split(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut bracketed = false;
    for c in text.chars() {
        match c {
            '[' => bracketed = true,
            ']' => bracketed = false,
            ':' if !bracketed => parts.push(String::new()),
            c => {
                if let Some(part) = parts.last_mut() {
                    part.push(c);
                }
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(connect_to: &[&str], resolve: &[&str], only_ipv4: Option<bool>) -> Places {
        Places {
            redirected: connect_to.iter().map(|text| redirection(text).unwrap()).collect(),
            known: resolve.iter().map(|text| known_address(text).unwrap()).collect(),
            only_ipv4,
        }
    }

    fn address(places: &Places, url: &str) -> String {
        places.address(&Url::parse(url).unwrap()).unwrap().to_string()
    }

    #[test]
    fn hosts_are_where_the_options_say() {
        let both = places(&["a.test:80:b.test:8080", "::[::1]:"], &["b.test:8080:192.0.2.1"], None);
        assert_eq!(address(&both, "http://a.test/"), "192.0.2.1:8080");
        assert_eq!(address(&both, "http://A.test:81/"), "[::1]:81");
        let six = places(&[], &["c.test:443:[2001:db8::1]"], None);
        assert_eq!(address(&six, "https://c.test/"), "[2001:db8::1]:443");
        let four = places(&[], &[], Some(true));
        assert!(
            four.address(&Url::parse("http://[::1]/").unwrap()).unwrap_err().to_string().contains("no IPv4")
        );
    }

    #[test]
    fn other_forms_are_refused() {
        for text in ["", "a", "a:b:c:d", "a:1:b", "a:1:b:2:c"] {
            assert!(redirection(text).unwrap_err().to_string().starts_with("--connect-to `"), "{text}");
        }
        for text in ["", "a", "a:80", "a:x:127.0.0.1", "a:80:b"] {
            assert!(known_address(text).unwrap_err().to_string().starts_with("--resolve `"), "{text}");
        }
    }
}
