//! Variants: an HTTP version together with its transport.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An HTTP version and its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// HTTP/1.1, cleartext (RFC 9112).
    H1,
    /// HTTP/1.1 over TLS.
    H1s,
    /// HTTP/2, cleartext with prior knowledge (RFC 9113, section 3.3).
    H2c,
    /// HTTP/2 over TLS, negotiated by ALPN (RFC 9113, section 3.2).
    H2,
    /// HTTP/3 over QUIC (RFC 9114).
    H3,
}

/// The version of HTTP that a response really used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.0 (RFC 1945).
    #[serde(rename = "HTTP/1.0")]
    Http10,
    /// HTTP/1.1 (RFC 9112).
    #[serde(rename = "HTTP/1.1")]
    Http11,
    /// HTTP/2 (RFC 9113).
    #[serde(rename = "HTTP/2")]
    Http2,
    /// HTTP/3 (RFC 9114).
    #[serde(rename = "HTTP/3")]
    Http3,
}

impl Variant {
    /// Every variant, in the order in which tables show them.
    pub const ALL: [Variant; 5] = [Variant::H1, Variant::H1s, Variant::H2c, Variant::H2, Variant::H3];

    /// The name that studies, options and tables use.
    pub const fn name(self) -> &'static str {
        match self {
            Variant::H1 => "h1",
            Variant::H1s => "h1s",
            Variant::H2c => "h2c",
            Variant::H2 => "h2",
            Variant::H3 => "h3",
        }
    }

    /// What it is, for those who do not know the name.
    pub const fn describe(self) -> &'static str {
        match self {
            Variant::H1 => "HTTP/1.1 without encryption",
            Variant::H1s => "HTTP/1.1 over TLS",
            Variant::H2c => "HTTP/2 without encryption",
            Variant::H2 => "HTTP/2 over TLS",
            Variant::H3 => "HTTP/3 over QUIC, encrypted as always",
        }
    }

    /// The version of HTTP that this variant asks for.
    pub const fn http(self) -> HttpVersion {
        match self {
            Variant::H1 | Variant::H1s => HttpVersion::Http11,
            Variant::H2c | Variant::H2 => HttpVersion::Http2,
            Variant::H3 => HttpVersion::Http3,
        }
    }

    /// Whether the bytes on the wire are encrypted.
    pub const fn is_encrypted(self) -> bool {
        !matches!(self, Variant::H1 | Variant::H2c)
    }

    /// Whether the transport is QUIC; otherwise it is TCP.
    pub const fn is_quic(self) -> bool {
        matches!(self, Variant::H3)
    }

    /// The protocol name offered by ALPN (RFC 7301), where there is a TLS handshake.
    pub const fn alpn(self) -> Option<&'static [u8]> {
        match self {
            Variant::H1 | Variant::H2c => None,
            Variant::H1s => Some(b"http/1.1"),
            Variant::H2 => Some(b"h2"),
            Variant::H3 => Some(b"h3"),
        }
    }

    /// The scheme of a URL for this variant.
    pub const fn scheme(self) -> &'static str {
        if self.is_encrypted() { "https" } else { "http" }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Variant::ALL
            .into_iter()
            .find(|variant| variant.name() == text)
            .ok_or_else(|| format!("found `{text}`, expected one of h1, h1s, h2c, h2, h3"))
    }
}

impl HttpVersion {
    /// The name as the RFCs write it.
    pub const fn name(self) -> &'static str {
        match self {
            HttpVersion::Http10 => "HTTP/1.0",
            HttpVersion::Http11 => "HTTP/1.1",
            HttpVersion::Http2 => "HTTP/2",
            HttpVersion::Http3 => "HTTP/3",
        }
    }
}

impl fmt::Display for HttpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for variant in Variant::ALL {
            assert_eq!(variant.name().parse::<Variant>(), Ok(variant));
        }
        assert_eq!("h4".parse::<Variant>(), Err("found `h4`, expected one of h1, h1s, h2c, h2, h3".into()));
    }
}
