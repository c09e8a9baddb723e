//! What the user can do about a failure.

use model::sample::FailureKind;

/// How the options that advice names are written.
struct Options<'o> {
    /// That names an authority to trust.
    cacert: &'o str,
    /// That accepts any certificate.
    insecure: &'o str,
    /// What else chooses the name that the certificate must have.
    name: &'o str,
}

const OF_LOAD: Options<'static> =
    Options { cacert: "--cacert FILE", insecure: "-k", name: ", or name one with --sni" };

impl Options<'_> {
    fn fill(&self, advice: &str) -> String {
        let Options { cacert, insecure, name } = self;
        advice.replace("{cacert}", cacert).replace("{insecure}", insecure).replace("{name}", name)
    }
}

/// What to do about failures of this kind and with this reason, if anything.
pub(crate) fn on(kind: FailureKind, reason: &str) -> Option<String> {
    let found = ADVICE.iter().find(|(of, part, _)| *of == kind && reason.contains(part));
    found.map(|(.., advice)| OF_LOAD.fill(advice))
}

/// What to do about the TLS of a site, if anything, with the options that trust an authority and accept any
/// certificate.
pub(crate) fn on_site(reason: &str, cacert: &str, insecure: &str) -> Option<String> {
    let options = Options { cacert, insecure, name: "" };
    let is_about = |part: &str| reason.contains("TLS: ") && reason.contains(part);
    let found = ADVICE.iter().find(|(of, part, _)| *of == FailureKind::Tls && is_about(part));
    found.map(|(.., advice)| options.fill(advice))
}

/// Kind, a part of the reason in the words of rustls and the engines, which a test pins, and the advice, with
/// [`Options`] in braces.
const ADVICE: &[(FailureKind, &str, &str)] = &[
    (
        FailureKind::Tls,
        "UnknownIssuer",
        "trust the CA that signed the certificate with {cacert}, or accept any certificate with {insecure}",
    ),
    (
        FailureKind::Tls,
        "CaUsedAsEndEntity",
        "the certificate is self-signed: accept any certificate with {insecure}, or give the server one that a CA signed \
         (name the CA with {cacert})",
    ),
    (
        FailureKind::Tls,
        "not valid for name",
        "use a host name of the certificate{name}, or accept any certificate with {insecure}",
    ),
    (
        FailureKind::Tls,
        "expired",
        "give the server a certificate that is valid today, or accept any certificate with {insecure}",
    ),
    (
        FailureKind::Tls,
        "InvalidContentType",
        "the server may not support TLS on this port: use an http:// URL",
    ),
    (
        FailureKind::WrongVersion,
        "the server answers in HTTP/2 where",
        "use --variant h2c (http://) or h2 (https://)",
    ),
    (
        FailureKind::WrongVersion,
        "the server answers in HTTP/1 where",
        "use --variant h1 (http://) or h1s (https://)",
    ),
    (FailureKind::WrongVersion, "the server answers in TLS where", "use an https:// URL"),
    (FailureKind::WrongVersion, "expected h3", NO_HTTP3),
    (FailureKind::WrongVersion, "alert 120", NO_HTTP3),
    (FailureKind::WrongVersion, "QUIC version 1", NO_HTTP3),
    (FailureKind::WrongVersion, "ALPN chose", OTHER_VERSION),
    (FailureKind::WrongVersion, "NoApplicationProtocol", OTHER_VERSION),
    (FailureKind::Timeout, "QUIC handshake", "the server may not listen on UDP, or a firewall blocks it"),
];

const NO_HTTP3: &str = "the server does not support HTTP/3 (RFC 9114) on this port: use --variant h1s or h2";
const OTHER_VERSION: &str =
    "the server supports another HTTP version on this port: use another --variant (h1s or h2)";

#[cfg(test)]
mod tests {
    use super::*;
    use FailureKind::{Protocol, Reset, Timeout, Tls, WrongVersion};

    /// Reasons of rustls and the engines, and a part of the advice.
    const REASONS: &[(FailureKind, &str, &str)] = &[
        (
            Tls,
            "TLS: invalid peer certificate: UnknownIssuer",
            "--cacert FILE, or accept any certificate with -k",
        ),
        (Tls, "TLS: invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))", "self-signed"),
        (
            Tls,
            "TLS: invalid peer certificate: certificate not valid for name \"a.test\"; certificate is only valid for \
             DnsName(\"localhost\")",
            "--sni",
        ),
        (
            Tls,
            "TLS: invalid peer certificate: certificate expired: verification time 1792540800 (UNIX), but certificate is \
             not valid after 1700000000 (92540800 seconds ago)",
            "valid today",
        ),
        (Tls, "TLS: received corrupt message of type InvalidContentType", "use an http:// URL"),
        (
            WrongVersion,
            "the server answers in HTTP/2 where HTTP/1.1 in cleartext was asked for",
            "use --variant h2c (http://) or h2 (https://)",
        ),
        (
            WrongVersion,
            "the server answers in HTTP/1 where HTTP/2 was asked for",
            "use --variant h1 (http://) or h1s (https://)",
        ),
        (
            WrongVersion,
            "the server answers in TLS where HTTP/1.1 in cleartext was asked for",
            "use an https:// URL",
        ),
        (WrongVersion, "ALPN chose no protocol, expected h3", "not support HTTP/3"),
        (
            WrongVersion,
            "TLS: the server sent alert 120: the cryptographic handshake failed: error 120: peer doesn't support any \
             known protocol",
            "not support HTTP/3",
        ),
        (WrongVersion, "the server does not speak QUIC version 1", "not support HTTP/3"),
        (WrongVersion, "ALPN chose no protocol, expected h2", "another --variant (h1s or h2)"),
        (WrongVersion, "TLS: received fatal alert: NoApplicationProtocol", "another --variant (h1s or h2)"),
        (Timeout, "400 ms passed in the QUIC handshake", "may not listen on UDP"),
    ];

    #[test]
    fn every_reason_has_its_own_advice_and_every_advice_a_reason() {
        for (kind, reason, part) in REASONS {
            let advice = on(*kind, reason).unwrap_or_default();
            assert!(advice.contains(part) && !advice.contains('{'), "{reason}: {advice}");
        }
        let taken = |entry: &(FailureKind, &str, &str)| {
            let first =
                |reason: &str| ADVICE.iter().find(|(of, part, _)| *of == entry.0 && reason.contains(part));
            REASONS.iter().any(|(kind, reason, _)| {
                *kind == entry.0 && first(reason).is_some_and(|found| found.1 == entry.1)
            })
        };
        for entry in ADVICE {
            assert!(taken(entry), "no reason takes {entry:?}");
        }
    }

    #[test]
    fn advice_about_a_site_names_its_options() {
        let advice = |reason: &str| on_site(reason, "`cacert`", "`insecure`");
        for (reason, parts) in [
            ("h2: TLS: invalid peer certificate: UnknownIssuer", &["with `cacert`", "with `insecure`"][..]),
            ("TLS: invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))", &["self-signed"]),
            (
                "TLS: invalid peer certificate: certificate not valid for name \"a.test\"",
                &["certificate, or"],
            ),
            ("TLS: received corrupt message of type InvalidContentType", &["use an http:// URL"]),
        ] {
            let advice = advice(reason).unwrap();
            assert!(parts.iter().all(|part| advice.contains(part)) && !advice.contains('{'), "{advice}");
        }
        for reason in ["the time limit expired", "TLS: received fatal alert: HandshakeFailure"] {
            assert_eq!(advice(reason), None, "{reason}");
        }
    }

    #[test]
    fn other_failures_have_no_advice() {
        for (kind, reason) in [
            (Reset, "TLS: invalid peer certificate: UnknownIssuer"),
            (Tls, "TLS: received fatal alert: HandshakeFailure"),
            (WrongVersion, "the response came in HTTP/1.0, expected HTTP/1.1"),
            (Protocol, "the server's first frame has type 72 and is not its SETTINGS"),
        ] {
            assert_eq!(on(kind, reason), None, "{reason}");
        }
    }
}
