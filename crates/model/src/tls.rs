//! Options of TLS handshakes beyond the pins.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::named::unknown;
use crate::pins::{CipherSuite, KeyExchange, Pins, TlsVersion};

/// Options of TLS; without any, a client follows only its pins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TlsOptions {
    /// What is offered; exactly what is pinned where `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<TlsOffer>,
    /// What the client shows to a server that asks for a certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<ClientCertificate>,
    /// Safe requests leave as early data where a ticket allows it (RFC 8446, section 2.3).
    pub early_data: bool,
    /// The file that the secrets of TLS and QUIC are appended to, in the format of NSS (`SSLKEYLOGFILE`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_log: Option<String>,
}

/// What a client offers; the server chooses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsOffer {
    /// Versions; their order means nothing.
    pub versions: Vec<TlsVersion>,
    /// Cipher suites, the preferred one first.
    pub suites: Vec<OfferedSuite>,
    /// Key exchange groups, the preferred one first: the key share is for that one, and a server that wants
    /// another has to ask for it, which takes a round trip (RFC 8446, section 4.1.4).
    pub groups: Vec<KeyExchange>,
}

impl TlsOffer {
    /// Exactly what is pinned: one version, one suite, one group. In TLS 1.2 the certificate decides between
    /// the two suites with the pinned cipher and hash.
    pub fn pinned(pins: &Pins) -> TlsOffer {
        let suites = match pins.tls_version {
            TlsVersion::V13 => vec![pins.cipher_suite.into()],
            TlsVersion::V12 => OfferedSuite::of_tls12(pins.cipher_suite).to_vec(),
        };
        TlsOffer { versions: vec![pins.tls_version], suites, groups: vec![pins.key_exchange] }
    }

    /// Everything that this client supports; the pins' defaults come first.
    pub fn any() -> TlsOffer {
        TlsOffer {
            versions: vec![TlsVersion::V13, TlsVersion::V12],
            suites: OfferedSuite::ALL.to_vec(),
            groups: vec![KeyExchange::X25519, KeyExchange::Secp256r1, KeyExchange::Secp384r1],
        }
    }

    /// The part of it that belongs to these versions.
    #[must_use]
    pub fn only(mut self, versions: &[TlsVersion]) -> TlsOffer {
        self.versions.retain(|version| versions.contains(version));
        self.suites.retain(|suite| versions.contains(&suite.version()));
        self
    }
}

/// Declares [`OfferedSuite`]: the registered names, and OpenSSL's where it has another.
macro_rules! suites {
    ($($suite:ident $openssl:expr;)*) => {
        /// A cipher suite that can be offered (RFC 8446, appendix B.4; RFC 5289; RFC 7905).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[expect(non_camel_case_types, reason = "the registered names")]
        #[expect(missing_docs, reason = "the names are enough")]
        pub enum OfferedSuite { $($suite),* }

        impl OfferedSuite {
            /// Every suite: AES-128 first, as in the pins.
            pub const ALL: [OfferedSuite; [$(stringify!($suite)),*].len()] = [$(OfferedSuite::$suite),*];

            /// The registered name, and OpenSSL's name of a suite of TLS 1.2.
            pub const fn names(self) -> (&'static str, Option<&'static str>) {
                match self { $(OfferedSuite::$suite => (stringify!($suite), $openssl)),* }
            }
        }
    };
}

suites! {
    TLS_AES_128_GCM_SHA256 None;
    TLS_AES_256_GCM_SHA384 None;
    TLS_CHACHA20_POLY1305_SHA256 None;
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 Some("ECDHE-ECDSA-AES128-GCM-SHA256");
    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 Some("ECDHE-RSA-AES128-GCM-SHA256");
    TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 Some("ECDHE-ECDSA-AES256-GCM-SHA384");
    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 Some("ECDHE-RSA-AES256-GCM-SHA384");
    TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 Some("ECDHE-ECDSA-CHACHA20-POLY1305");
    TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 Some("ECDHE-RSA-CHACHA20-POLY1305");
}

impl OfferedSuite {
    /// The version of TLS that it belongs to.
    pub const fn version(self) -> TlsVersion {
        match self.names().1 {
            None => TlsVersion::V13,
            Some(_) => TlsVersion::V12,
        }
    }

    /// The suites of TLS 1.2 with the cipher and hash of one of TLS 1.3, for keys of either kind.
    pub const fn of_tls12(suite: CipherSuite) -> [OfferedSuite; 2] {
        match suite {
            CipherSuite::TLS_AES_128_GCM_SHA256 => [
                OfferedSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
                OfferedSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            ],
            CipherSuite::TLS_AES_256_GCM_SHA384 => [
                OfferedSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
                OfferedSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            ],
            CipherSuite::TLS_CHACHA20_POLY1305_SHA256 => [
                OfferedSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
                OfferedSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
            ],
        }
    }
}

impl From<CipherSuite> for OfferedSuite {
    fn from(suite: CipherSuite) -> Self {
        match suite {
            CipherSuite::TLS_AES_128_GCM_SHA256 => OfferedSuite::TLS_AES_128_GCM_SHA256,
            CipherSuite::TLS_AES_256_GCM_SHA384 => OfferedSuite::TLS_AES_256_GCM_SHA384,
            CipherSuite::TLS_CHACHA20_POLY1305_SHA256 => OfferedSuite::TLS_CHACHA20_POLY1305_SHA256,
        }
    }
}

impl FromStr for OfferedSuite {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is = |suite: &OfferedSuite| {
            let (registered, openssl) = suite.names();
            text.eq_ignore_ascii_case(registered)
                || openssl.is_some_and(|name| text.eq_ignore_ascii_case(name))
        };
        OfferedSuite::ALL.into_iter().find(is).ok_or_else(|| {
            let names = OfferedSuite::ALL.map(|suite| suite.names().0);
            unknown(text, "a cipher suite", &names)
        })
    }
}

/// A client's certificate and private key, both PEM.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCertificate {
    /// The certificate, and those that lead to its authority.
    pub chain_pem: String,
    /// Its private key.
    pub key_pem: String,
}

impl fmt::Debug for ClientCertificate {
    /// The key is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").field("chain_pem", &self.chain_pem).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_two_names() {
        for suite in OfferedSuite::ALL {
            let (registered, openssl) = suite.names();
            assert_eq!(registered, format!("{suite:?}"));
            assert_eq!(registered.parse(), Ok(suite));
            assert!(openssl.is_none_or(|name| name.parse() == Ok(suite)));
            assert_eq!(serde_json::to_string(&suite).unwrap(), format!("\"{registered}\""));
        }
        let error = "RC4-MD5".parse::<OfferedSuite>().unwrap_err();
        assert!(error.starts_with("`RC4-MD5` is not a cipher suite; the choices are TLS_AES_128"), "{error}");
    }

    #[test]
    fn a_pinned_offer_leaves_no_choice() {
        let mut pins = Pins::default();
        let offer = TlsOffer::pinned(&pins);
        assert_eq!((offer.versions.len(), offer.suites.len(), offer.groups.len()), (1, 1, 1));
        pins.tls_version = TlsVersion::V12;
        let offer = TlsOffer::pinned(&pins);
        assert_eq!(offer.versions, [TlsVersion::V12]);
        assert!(offer.suites.iter().all(|suite| suite.version() == TlsVersion::V12));
        assert_eq!(offer.suites.len(), 2, "one for each kind of key");
        let both = TlsOffer::any();
        assert_eq!(both.clone().only(&[TlsVersion::V13]).suites.len(), 3);
        assert_eq!(both.only(&[TlsVersion::V12]).suites.len(), 6);
    }

    #[test]
    fn a_private_key_is_not_shown() {
        let certificate = ClientCertificate { chain_pem: "chain".into(), key_pem: "secret".into() };
        let shown = format!("{certificate:?}");
        assert!(shown.contains("chain") && !shown.contains("secret"), "{shown}");
    }
}
