//! A URL from the command line, resolved into a client's target.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use drive::input::read_text;
use model::Variant;
use model::assignment::{Target, Trust};

use crate::exit::UsageError;

/// Trust options that several commands share.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TrustOptions {
    /// Accept any certificate
    ///
    /// Example: -k
    #[arg(short = 'k', long, conflicts_with = "cacert")]
    pub(crate) insecure: bool,
    /// Trust this certificate authority (PEM) instead of the system's
    ///
    /// Example: --cacert ca.pem
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
}

impl TrustOptions {
    /// # Errors
    /// A file cannot be read or has no certificates.
    pub(crate) fn resolve(&self) -> Result<Trust> {
        match (&self.cacert, self.insecure) {
            (_, true) => Ok(Trust::Anyone),
            (Some(path), _) => {
                let pem = read_option("--cacert", path)?;
                load::check_authority(&pem)
                    .map_err(|error| UsageError(format!("--cacert {}: {error}", path.display())))?;
                Ok(Trust::Authority(pem))
            }
            (None, false) => Ok(Trust::System),
        }
    }
}

/// The text of the file that an option names.
///
/// # Errors
/// It cannot be read or is too long.
pub(crate) fn read_option(option: &str, path: &Path) -> Result<String, UsageError> {
    read_text(path).map_err(|error| UsageError(format!("{option} {}: {error}", path.display())))
}

/// An absolute http or https URL, in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    /// Whether the scheme is https.
    pub(crate) encrypted: bool,
    /// Host name or address, without brackets.
    pub(crate) host: String,
    /// Port; the scheme's default if the URL has none.
    pub(crate) port: u16,
    /// Host and port as written.
    pub(crate) authority: String,
    /// Path and query.
    pub(crate) path: String,
}

impl Url {
    /// Reads an absolute URL (RFC 9110, section 4.2). A missing scheme means `http`.
    ///
    /// # Errors
    /// A [`UsageError`]: it is not an http or https URL.
    pub(crate) fn parse(text: &str) -> Result<Url> {
        let fault = |why: &str| {
            let shown = text.escape_debug();
            UsageError(format!("`{shown}` is not a URL such as `https://example.org/`: {why}"))
        };
        let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: http::Uri = whole.parse().map_err(|error| fault(&format!("{error}")))?;
        let encrypted = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(fault("the scheme is neither http nor https").into()),
        };
        let authority = uri.authority().ok_or_else(|| fault("there is no host"))?;
        if authority.as_str().contains('@') {
            return Err(fault("user names and passwords are not sent").into());
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(fault("there is no host").into());
        }
        if authority.as_str().len() > authority.host().len() && authority.port_u16().is_none() {
            return Err(fault("the port is not a number from 0 to 65535").into());
        }
        let port = authority.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned();
        Ok(Url { encrypted, host, port, authority: authority.to_string(), path })
    }

    /// The variants that the scheme allows.
    pub(crate) fn variants(&self) -> Vec<Variant> {
        Variant::ALL.into_iter().filter(|variant| variant.is_encrypted() == self.encrypted).collect()
    }

    /// The address of the host, and how long the DNS lookup took.
    ///
    /// # Errors
    /// The name does not resolve.
    pub(crate) fn resolve(&self) -> Result<(SocketAddr, Duration)> {
        let start = Instant::now();
        let addresses = dns_lookup(&self.host, self.port)?;
        Ok((addresses[0], start.elapsed()))
    }

    /// The target of a client that uses `variant` with the host at `address`.
    pub(crate) fn target(&self, variant: Variant, address: SocketAddr, trust: Trust) -> Target {
        Target { variant, address, authority: self.authority.clone(), server_name: self.host.clone(), trust }
    }
}

/// The addresses of a host, at least one.
///
/// # Errors
/// A [`UsageError`] where the name does not resolve.
pub(crate) fn dns_lookup(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    let found = (host, port).to_socket_addrs().map(Vec::from_iter);
    match found {
        Ok(addresses) if !addresses.is_empty() => Ok(addresses),
        Ok(_) => Err(UsageError(format!("`{host}` has no address")).into()),
        Err(error) => Err(UsageError(format!("looking up `{host}`: {error}")).into()),
    }
}

/// The variant for a URL: the given one, or HTTP/1.1.
///
/// # Errors
/// A [`UsageError`]: the variant does not fit the scheme.
pub(crate) fn variant_for(url: &Url, asked: Option<Variant>) -> Result<Variant> {
    let variant = asked.unwrap_or(if url.encrypted { Variant::H1s } else { Variant::H1 });
    if variant.is_encrypted() == url.encrypted {
        return Ok(variant);
    }
    let names: Vec<&str> = url.variants().into_iter().map(Variant::name).collect();
    let scheme = if url.encrypted { "https" } else { "http" };
    Err(UsageError(format!(
        "variant `{variant}` does not fit an {scheme} URL; use one of {}",
        names.join(", ")
    ))
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let url = Url::parse("https://[::1]:8443/a?b=c").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.path.as_str()), ("::1", 8443, "/a?b=c"));
        assert!(url.encrypted);
        let url = Url::parse("localhost:8080").unwrap();
        assert_eq!((url.authority.as_str(), url.port, url.path.as_str()), ("localhost:8080", 8080, "/"));
        assert_eq!(url.variants(), [Variant::H1, Variant::H2c]);
    }

    #[test]
    fn faults_say_what_is_expected() {
        for text in
            ["", "ftp://a/", "http://", "http://a:x/", "http://u@a/", "http://a b/", "http://a:99999/"]
        {
            let error = Url::parse(text).unwrap_err();
            assert!(error.is::<UsageError>(), "{text}");
            assert!(error.to_string().contains("is not a URL such as"), "{error}");
        }
        let error = variant_for(&Url::parse("http://a/").unwrap(), Some(Variant::H3)).unwrap_err();
        assert_eq!(error.to_string(), "variant `h3` does not fit an http URL; use one of h1, h2c");
    }
}
