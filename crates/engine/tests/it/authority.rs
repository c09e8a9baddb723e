//! Certificates for tests, made on the fly, and TLS settings to negotiate.

use std::sync::Arc;

use model::Pins;
use model::pins::{CipherSuite, KeyExchange, TlsVersion};
use model::tls::TlsOffer;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::{CryptoProvider, ring};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// The name that every test server has.
pub(crate) const NAME: &str = "server.test";

/// Pins of every cipher suite and key exchange, with the names of what has to be negotiated.
pub(crate) fn pinned_tls() -> impl Iterator<Item = (Pins, &'static str, &'static str)> {
    let suites = [
        (CipherSuite::TLS_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256"),
        (CipherSuite::TLS_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384"),
        (CipherSuite::TLS_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256"),
    ];
    let groups = [
        (KeyExchange::X25519, "x25519"),
        (KeyExchange::Secp256r1, "secp256r1"),
        (KeyExchange::Secp384r1, "secp384r1"),
    ];
    suites.into_iter().zip(groups).map(|((cipher_suite, suite), (key_exchange, group))| {
        (Pins { cipher_suite, key_exchange, ..Pins::default() }, suite, group)
    })
}

pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A server configuration with a certificate for [`NAME`].
    pub(crate) fn server_config(&self, alpn: &[&[u8]]) -> rustls::ServerConfig {
        self.server_config_named(alpn, vec![NAME.to_owned()])
    }

    /// The same with a certificate for `names`: many of them make it large.
    pub(crate) fn server_config_named(&self, alpn: &[&[u8]], names: Vec<String>) -> rustls::ServerConfig {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        config
    }

    /// A configuration for [`NAME`] and `h2` with the suites and groups of `provider` and the versions of
    /// `offer`.
    pub(crate) fn server_config_with(
        &self,
        provider: Arc<CryptoProvider>,
        offer: &TlsOffer,
    ) -> rustls::ServerConfig {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec![NAME.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let versions: Vec<_> = rustls::ALL_VERSIONS
            .iter()
            .copied()
            .filter(|version| {
                let is_old = version.version == rustls::ProtocolVersion::TLSv1_2;
                offer.versions.contains(if is_old { &TlsVersion::V12 } else { &TlsVersion::V13 })
            })
            .collect();
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        config
    }
}
