//! Variants: an HTTP version together with its transport.

use crate::named;

named! { "a variant";
    /// An HTTP version and its transport.
    pub enum Variant {
        /// HTTP/1.1, cleartext (RFC 9112).
        H1 = "h1",
        /// HTTP/1.1 over TLS.
        H1s = "h1s",
        /// HTTP/2, cleartext with prior knowledge (RFC 9113, section 3.3).
        H2c = "h2c",
        /// HTTP/2 over TLS, negotiated by ALPN (RFC 9113, section 3.2).
        H2 = "h2",
        /// HTTP/3 over QUIC (RFC 9114).
        H3 = "h3",
    }
}

named! { "a version of HTTP";
    /// The version of HTTP of a response.
    pub enum HttpVersion {
        /// HTTP/1.0 (RFC 1945).
        Http10 = "HTTP/1.0",
        /// HTTP/1.1 (RFC 9112).
        Http11 = "HTTP/1.1",
        /// HTTP/2 (RFC 9113).
        Http2 = "HTTP/2",
        /// HTTP/3 (RFC 9114).
        Http3 = "HTTP/3",
    }
}

impl Variant {
    /// A description for people who do not know the name.
    pub const fn describe(self) -> &'static str {
        match self {
            Variant::H1 => "HTTP/1.1 without encryption",
            Variant::H1s => "HTTP/1.1 over TLS",
            Variant::H2c => "HTTP/2 without encryption",
            Variant::H2 => "HTTP/2 over TLS",
            Variant::H3 => "HTTP/3 over QUIC (always encrypted)",
        }
    }

    /// The version of HTTP.
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

    /// The protocol name for ALPN (RFC 7301); `None` without TLS.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for variant in Variant::ALL {
            assert_eq!(variant.name().parse::<Variant>(), Ok(variant));
        }
        assert_eq!(
            "h4".parse::<Variant>(),
            Err("`h4` is not a variant; the choices are h1, h1s, h2c, h2, h3".into())
        );
    }
}
