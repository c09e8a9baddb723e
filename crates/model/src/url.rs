//! Absolute http and https URLs.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::request_path::check_request_path;
use crate::variant::Variant;

/// The longest name of a host (RFC 1035, section 2.3.4).
const LONGEST_HOST_BYTES: usize = 253;

/// An absolute http or https URL, in parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Url {
    /// Whether the scheme is https.
    pub encrypted: bool,
    /// Host name or address, without brackets.
    pub host: String,
    /// Port; the scheme's default if the URL has none.
    pub port: u16,
    /// Host and port as written.
    pub authority: String,
    /// Path and query.
    pub path: String,
}

impl Url {
    /// Reads an absolute URL (RFC 9110, section 4.2). A missing scheme means `http`; a fragment is dropped,
    /// because requests have none.
    ///
    /// # Errors
    /// Why it is not an http or https URL, in one sentence.
    pub fn parse(text: &str) -> Result<Url, String> {
        let fault = |why: &str| {
            let shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
            format!("`{shown}` is not a URL such as `https://example.org/`: {why}")
        };
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let encrypted = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(fault("the scheme is neither http nor https")),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        check_request_path(&path).map_err(|problem| fault(&format!("the path {problem}")))?;
        if authority.contains('@') {
            return Err(fault("user names and passwords are not sent"));
        }
        let (host, port) = split_authority(authority).ok_or_else(|| fault("a bracket is missing"))?;
        if host.is_empty() {
            return Err(fault("there is no host"));
        }
        let is_of_host = |c: char| c.is_ascii_alphanumeric() || "-._:~%".contains(c);
        if host.len() > LONGEST_HOST_BYTES || !host.chars().all(is_of_host) {
            return Err(fault("the host is neither a name in ASCII nor an address"));
        }
        let port = match port {
            None => default_port(encrypted),
            Some(port) => port.parse().map_err(|_| fault("the port is not a number from 0 to 65535"))?,
        };
        Ok(Url { encrypted, host: host.to_owned(), port, authority: authority.to_owned(), path })
    }

    /// Resolves a reference in a document of this URL (RFC 3986, section 5.2); `None` where it does not lead
    /// to an http or https URL.
    pub fn join(&self, reference: &str) -> Option<Url> {
        let reference = reference.trim();
        let reference = reference.split('#').next().unwrap_or_default();
        let scheme = if self.encrypted { "https" } else { "http" };
        let before_path = reference.find(['/', '?']).unwrap_or(reference.len());
        if reference[..before_path].contains(':') {
            return reference.contains("://").then(|| Url::parse(reference).ok()).flatten();
        }
        if let Some(rest) = reference.strip_prefix("//") {
            return Url::parse(&format!("{scheme}://{rest}")).ok();
        }
        let own = self.path.split('?').next().unwrap_or_default();
        let path = match reference.chars().next() {
            None => self.path.clone(),
            Some('/') => reference.to_owned(),
            Some('?') => format!("{own}{reference}"),
            Some(_) => format!("{}{reference}", &own[..=own.rfind('/').unwrap_or(0)]),
        };
        let path = without_dots(&encoded(&path));
        check_request_path(&path).ok()?;
        Some(Url { path, ..self.clone() })
    }

    /// Scheme, host and port (RFC 6454), such as `https://example.org`.
    pub fn origin(&self) -> String {
        let scheme = if self.encrypted { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }

    /// Whether both have the same scheme, host and port.
    pub fn has_origin_of(&self, other: &Url) -> bool {
        self.encrypted == other.encrypted
            && self.port == other.port
            && self.host.eq_ignore_ascii_case(&other.host)
    }

    /// The variants that the scheme allows.
    pub fn variants(&self) -> Vec<Variant> {
        Variant::ALL.into_iter().filter(|variant| variant.is_encrypted() == self.encrypted).collect()
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

const fn default_port(encrypted: bool) -> u16 {
    if encrypted { 443 } else { 80 }
}

/// Host and port; the host of an address of IPv6 is in brackets.
fn split_authority(authority: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        return match after.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None => after.is_empty().then_some((host, None)),
        };
    }
    Some(match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    })
}

/// What browsers do with characters that a path may not contain.
fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for c in path.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')) {
        match c.is_ascii_graphic() {
            true => text.push(c),
            false => c.to_string().bytes().for_each(|byte| text.push_str(&format!("%{byte:02X}"))),
        }
    }
    text
}

/// Removes `.` and `..` (RFC 3986, section 5.2.4).
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut segments: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        match part {
            "." | ".." => {
                if part == ".." {
                    segments.pop();
                }
                if is_last {
                    segments.push("");
                }
            }
            part => segments.push(part),
        }
    }
    format!("/{}{query}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let url = Url::parse("https://[::1]:8443/a?b=c#d").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.path.as_str()), ("::1", 8443, "/a?b=c"));
        assert_eq!(url.to_string(), "https://[::1]:8443/a?b=c");
        assert_eq!(Url::parse("HTTPS://a.test").unwrap().port, 443);
        let url = Url::parse("localhost:8080?x").unwrap();
        assert_eq!((url.authority.as_str(), url.port, url.path.as_str()), ("localhost:8080", 8080, "/?x"));
        assert_eq!(url.variants(), [Variant::H1, Variant::H2c]);
    }

    #[test]
    fn what_is_no_url_is_refused() {
        for (text, why) in [
            ("", "there is no host"),
            ("ftp://a/", "neither http nor https"),
            ("http://u@a/", "user names"),
            ("http://a:x/", "the port"),
            ("http://a:99999/", "the port"),
            ("http://a b/", "neither a name in ASCII"),
            ("http://ä.test/", "neither a name in ASCII"),
            ("http://a/\r\nHost: b", "write `%0D`"),
            ("http://[::1/", "a bracket is missing"),
        ] {
            let problem = Url::parse(text).unwrap_err();
            assert!(problem.contains(why) && problem.contains("is not a URL such as"), "{text}: {problem}");
        }
    }

    /// The examples of RFC 3986, section 5.4, as far as they are http URLs.
    #[test]
    fn references_are_resolved_as_in_the_rfc() {
        let base = Url::parse("http://a/b/c/d;p?q").unwrap();
        for (reference, expected) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("https://b/c", "https://b/c"),
            (" a b.png ", "http://a/b/c/a%20b.png"),
            ("ä", "http://a/b/c/%C3%A4"),
        ] {
            assert_eq!(
                base.join(reference).map(|url| url.to_string()).as_deref(),
                Some(expected),
                "{reference}"
            );
        }
        for reference in ["data:image/png;base64,AA", "mailto:a@b", "javascript:void(0)", "blob:https://a/1"]
        {
            assert_eq!(base.join(reference), None, "{reference}");
        }
    }
}
