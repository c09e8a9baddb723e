//! Certificates for tests, made on the fly.

use std::sync::Arc;

use model::pins::TlsVersion;
use model::tls::TlsOffer;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::{CryptoProvider, ring};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// The name that every test server has.
pub(crate) const NAME: &str = "server.test";

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
