//! What a user can do about a failure.

use model::sample::FailureKind;

/// What to do about failures of this kind and with this reason, where there is something to do.
pub(crate) fn on(kind: FailureKind, reason: &str) -> Option<&'static str> {
    ADVICE.iter().find(|(of, part, _)| *of == kind && reason.contains(part)).map(|(.., advice)| *advice)
}

/// Kind, what the reason contains, and the advice; rustls' and the engines' own words, which a test pins.
const ADVICE: &[(FailureKind, &str, &str)] = &[
    (
        FailureKind::Tls,
        "UnknownIssuer",
        "name the authority that signed the certificate with --cacert FILE, or accept any certificate with -k",
    ),
    (
        FailureKind::Tls,
        "CaUsedAsEndEntity",
        "the certificate is its own authority: accept any certificate with -k, or give the server one that an \
         authority signed (--cacert FILE names it)",
    ),
    (
        FailureKind::Tls,
        "not valid for name",
        "use a host name that the certificate has, or name one with --sni, or accept any certificate with -k",
    ),
    (
        FailureKind::Tls,
        "expired",
        "give the server a certificate that is valid today, or accept any certificate with -k",
    ),
    (FailureKind::Tls, "InvalidContentType", "the server may speak no TLS at this port: use an http:// URL"),
    (FailureKind::WrongVersion, "HTTP/2", "use --variant h2c or h2"),
    (FailureKind::WrongVersion, "HTTP/1", "use --variant h1 or h1s"),
    (FailureKind::WrongVersion, "TLS", "use an https:// URL"),
    (
        FailureKind::Timeout,
        "QUIC handshake",
        "the server may not listen on UDP, or a firewall may stand between",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_issuers_have_a_remedy_and_what_cannot_be_helped_has_none() {
        let advice = on(FailureKind::Tls, "TLS: invalid peer certificate: UnknownIssuer").unwrap();
        assert!(advice.contains("--cacert") && advice.contains("-k"), "{advice}");
        assert_eq!(on(FailureKind::Reset, "TLS: invalid peer certificate: UnknownIssuer"), None);
        assert_eq!(on(FailureKind::Tls, "TLS: received fatal alert: HandshakeFailure"), None);
    }
}
