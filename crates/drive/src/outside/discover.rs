//! Which variants a server offers: what it announces is tried once, with the client that measures.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use model::assignment::{ASSIGNMENT_VERSION, Assignment, Target, Trust};
use model::units::NANOS_PER_S;
use model::url::Url;
use model::workload::{ClosedLoop, LoopLoad, Workload};
use model::{Clients, Outcome, Pins, Variant};

use super::fetch::{FetchError, Fetched, Fetcher};
use crate::input::read_text;
use model::plan::RemoteTrust;

/// How long one question may take.
const LIMIT: Duration = Duration::from_secs(10);
/// How long a QUIC handshake may take that nobody announced.
const UNANNOUNCED_LIMIT_NS: u64 = 2 * NANOS_PER_S;
const DNS_LIMIT: Duration = Duration::from_secs(2);
/// The longest body that is read; only its head matters.
const MOST_BYTES: usize = 1 << 20;

/// What a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Where it is, on this machine's network.
    pub address: SocketAddr,
    /// Each variant of the URL's scheme: its endpoint, or why it is not offered.
    pub variants: Vec<(Variant, Result<SocketAddr, String>)>,
    /// The servers to trust.
    pub trust: Trust,
    /// The hash of the key that it has over TCP, as of [`crate::Authority::key_hash`].
    pub key_hash: Option<String>,
    /// What people should know.
    pub notes: Vec<String>,
}

impl Offer {
    /// The endpoint of a variant, or why it is not offered.
    ///
    /// # Errors
    /// The reason.
    pub fn endpoint(&self, variant: Variant) -> Result<SocketAddr, String> {
        let found = self.variants.iter().find(|(own, _)| *own == variant);
        found.map_or_else(
            || Err(format!("its URL has another scheme than {variant}")),
            |(_, found)| found.clone(),
        )
    }
}

/// Asks a server what it offers: one request for each of these variants, and one more.
///
/// # Errors
/// It does not resolve or answer, its certificate is not trusted, or it offers none of the variants.
pub fn discover(
    url: &Url,
    trust: &RemoteTrust,
    wanted: &[Variant],
    pins: &Pins,
    stop: &AtomicBool,
) -> Result<Offer, FetchError> {
    let in_words = |error: anyhow::Error| FetchError(format!("{error:#}"));
    let trust = resolve_trust(trust)?;
    let fetcher = Fetcher::new(&trust, LIMIT, MOST_BYTES).map_err(in_words)?;
    let mut notes = Vec::new();
    // A server without TCP may still offer HTTP/3, and one without HTTP/1.1 other variants; a wrong
    // certificate concerns all of them.
    let (address, first) = match fetcher.find(url) {
        Ok(address) => (address, fetcher.fetch(url, address)),
        Err(error) if wanted.contains(&Variant::H3) => (Fetcher::look_up(url)?[0], Err(error)),
        Err(error) => return Err(error),
    };
    let has_tcp = !matches!(&first, Err(error) if error.0.starts_with("connecting to "));
    let first = match first {
        Err(error) if error.0.contains("certificate") => return Err(error),
        first => first,
    };
    if let Ok(Fetched { status, location: Some(location), .. }) = &first {
        notes.push(format!("{url} answers with status {status} and leads to {location}"));
    }
    let mut variants = Vec::new();
    for variant in url.variants().into_iter().filter(|variant| wanted.contains(variant)) {
        let attempt = |address, limit_ns| attempt(url, variant, address, &trust, pins, limit_ns, stop);
        let limit_ns = u64::try_from(LIMIT.as_nanos()).unwrap_or(u64::MAX);
        let found = match variant {
            Variant::H3 => match announced(url, first.as_ref().ok(), &mut notes) {
                Some(port) => attempt(SocketAddr::new(address.ip(), port), limit_ns)
                    .map_err(|reason| format!("it announces HTTP/3 at port {port}, but {reason}")),
                None => attempt(SocketAddr::new(address.ip(), url.port), UNANNOUNCED_LIMIT_NS)
                    .map_err(|_| "it announces no HTTP/3, neither by Alt-Svc nor in DNS".to_owned()),
            },
            _ if has_tcp => attempt(address, limit_ns),
            _ => Err(first.as_ref().map_or_else(|error| error.0.clone(), |_| String::new())),
        };
        variants.push((variant, found));
    }
    if variants.iter().all(|(_, found)| found.is_err()) {
        let reasons = variants
            .iter()
            .filter_map(|(variant, found)| found.as_ref().err().map(|reason| format!("{variant}: {reason}")));
        let reasons: Vec<String> = match first {
            Err(error) => vec![error.0],
            Ok(_) => reasons.collect(),
        };
        return Err(FetchError(reasons.join("; ")));
    }
    let key_hash = first.ok().and_then(|first| first.key_hash);
    Ok(Offer { address, variants, trust, key_hash, notes })
}

/// The servers to trust, with the authorities of a file.
///
/// # Errors
/// The file cannot be read, or has no authorities.
pub(crate) fn resolve_trust(trust: &RemoteTrust) -> Result<Trust, FetchError> {
    Ok(match trust {
        RemoteTrust::System => Trust::System,
        RemoteTrust::Anyone => Trust::Anyone,
        RemoteTrust::Authorities(file) => {
            let fault = |reason: &dyn std::fmt::Display| FetchError(format!("`cacert` {file}: {reason}"));
            let pem = read_text(file.as_ref()).map_err(|error| fault(&error))?;
            load::check_authority(&pem).map_err(|error| fault(&error))?;
            Trust::Authority(pem)
        }
    })
}

/// The port at which HTTP/3 is announced on the same host.
fn announced(url: &Url, first: Option<&Fetched>, notes: &mut Vec<String>) -> Option<u16> {
    let fields = first.into_iter().flat_map(|first| &first.alternatives);
    if let Some(port) = fields.filter_map(|value| alternative(value, &url.host)).next() {
        return Some(port);
    }
    if url.host.parse::<IpAddr>().is_ok() {
        return None;
    }
    let services = names::system_resolver()
        .and_then(|resolver| names::https_services(resolver, &url.host, url.port, DNS_LIMIT));
    match services {
        Ok(services) => services.iter().find(|service| service.alpn == "h3").map(|service| service.port),
        Err(error) => {
            notes.push(format!("the HTTPS record of `{}` is unknown: {error:#}", url.host));
            None
        }
    }
}

/// The port of `h3` in a value of Alt-Svc (RFC 7838, section 3), if it is on this host.
fn alternative(value: &str, own: &str) -> Option<u16> {
    value.split(',').find_map(|entry| {
        let (protocol, rest) = entry.trim().split_once('=')?;
        let authority = rest.trim_start_matches('"').split('"').next()?;
        let (host, port) = authority.rsplit_once(':')?;
        let is_here = host.is_empty() || host.eq_ignore_ascii_case(own);
        (protocol == "h3" && is_here).then(|| port.parse().ok())?
    })
}

/// One request by one variant; the endpoint, or why there was no answer.
fn attempt(
    url: &Url,
    variant: Variant,
    address: SocketAddr,
    trust: &Trust,
    pins: &Pins,
    limit_ns: u64,
    stop: &AtomicBool,
) -> Result<SocketAddr, String> {
    let assignment = Assignment {
        options: model::options::Options::default(),
        version: ASSIGNMENT_VERSION,
        group: 0,
        node: "outside".to_owned(),
        clock: load::Clock::begin(),
        target: target(url, variant, address, trust),
        workload: Workload::Closed(ClosedLoop::new(
            LoopLoad { requests: Some(1), ..LoopLoad::new(&url.path) },
            None,
        )),
        pins: pins.clone(),
        seed: 0,
        clients: Clients::ONE,
        deadline_ns: limit_ns,
        ends_ns: None,
    };
    let report = load::run(&assignment, stop).map_err(|error| format!("{error:#}"))?;
    let sample = report.samples.first();
    // A status that is no success is an answer in this variant too.
    if sample.is_some_and(|sample| sample.status.is_some() && sample.version == Some(variant.http())) {
        return Ok(address);
    }
    let outcomes = sample.map(|sample| &sample.outcome).into_iter();
    let mut outcomes = outcomes.chain(report.connections.iter().map(|row| &row.outcome));
    let failure = outcomes.find_map(Outcome::failure);
    Err(failure.map_or_else(|| "it did not answer".to_owned(), |failure| failure.reason.clone()))
}

/// What a client of a URL connects to.
pub fn target(url: &Url, variant: Variant, address: SocketAddr, trust: &Trust) -> Target {
    let (authority, server_name) = (url.authority.clone(), url.host.clone());
    Target { variant, address, authority, server_name, trust: trust.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_on_the_same_host_count() {
        for (value, port) in [
            ("h3=\":443\"; ma=86400", Some(443)),
            ("h2=\":8443\", h3=\":8444\"; ma=1; persist=1", Some(8444)),
            ("h3-29=\":443\", h3=\"WWW.example.test:4433\"", Some(4433)),
            ("h3=\"other.test:443\"", None),
            ("clear", None),
            ("h3=", None),
            ("h3=\":x\"", None),
            ("", None),
        ] {
            assert_eq!(alternative(value, "www.example.test"), port, "{value}");
        }
    }

    #[test]
    fn an_offer_names_the_reason() {
        let address: SocketAddr = ([127, 0, 0, 1], 1).into();
        let offer = Offer {
            address,
            variants: vec![(Variant::H2, Ok(address)), (Variant::H3, Err("why".to_owned()))],
            trust: Trust::System,
            key_hash: None,
            notes: Vec::new(),
        };
        assert_eq!(offer.endpoint(Variant::H2), Ok(address));
        assert_eq!(offer.endpoint(Variant::H3), Err("why".to_owned()));
        assert!(offer.endpoint(Variant::H1).unwrap_err().contains("another scheme"));
    }
}
