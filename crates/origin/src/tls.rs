//! TLS with exactly the pinned version, cipher suite and key exchange.
//!
//! rustls decides the record size: as large as the available data, at most 16 kB, never dynamic.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, ensure};
use model::Variant;
use model::pins::{CipherSuite, KeyExchange, Pins, TlsVersion};
use rustls::InconsistentKeys;
use rustls::ServerConfig;
use rustls::crypto::ring::{cipher_suite as suites, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, ServerSessionMemoryCache};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::Identity;

/// How many sessions can be resumed, where the plan allows it.
const MOST_SESSIONS: usize = 16_384;

/// The TLS settings of one variant.
pub(crate) fn server_config(
    variant: Variant,
    identity: &Identity,
    pins: &Pins,
) -> anyhow::Result<ServerConfig> {
    let key = PrivateKeyDer::from_pem_slice(&identity.key_pem)
        .context("cannot read the private key; expected PEM")?;
    let version = if variant.is_quic() { TlsVersion::V13 } else { pins.tls_version };
    let protocol = match version {
        TlsVersion::V12 => &rustls::version::TLS12,
        TlsVersion::V13 => &rustls::version::TLS13,
    };
    let provider = provider(pins, version);
    let certificates = Certificates::new(identity, key, &provider)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[protocol])
        .context("the pinned cipher suite does not fit the pinned TLS version")?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = variant.alpn().map(<[u8]>::to_vec).into_iter().collect();
    if pins.resumption {
        config.session_storage = ServerSessionMemoryCache::new(MOST_SESSIONS);
    } else {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// The certificates by the names that clients ask for. Browsers use one connection for all hosts that a
/// certificate names (RFC 9113, section 9.1.1), so each host has its own.
#[derive(Debug)]
struct Certificates {
    first: Arc<CertifiedKey>,
    hosts: HashMap<String, Arc<CertifiedKey>>,
}

impl Certificates {
    fn new(
        identity: &Identity,
        key: PrivateKeyDer<'static>,
        provider: &CryptoProvider,
    ) -> anyhow::Result<Certificates> {
        let key = provider.key_provider.load_private_key(key).context("cannot use the private key")?;
        let certified = |pem: &[u8]| {
            let chain = CertificateDer::pem_slice_iter(pem)
                .collect::<Result<Vec<_>, _>>()
                .context("cannot read the certificate; expected PEM")?;
            ensure!(!chain.is_empty(), "the PEM text contains no certificate; add at least one");
            let certified = CertifiedKey::new(chain, Arc::clone(&key));
            match certified.keys_match() {
                // Some keys cannot be compared.
                Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
                Err(error) => {
                    return Err(error).context("the private key does not match the certificate");
                }
            }
            Ok(Arc::new(certified))
        };
        let of_host = |(name, pem): &(String, Vec<u8>)| Ok((name.clone(), certified(pem)?));
        Ok(Certificates {
            first: certified(&identity.certificate_pem)?,
            hosts: identity.hosts.iter().map(of_host).collect::<anyhow::Result<_>>()?,
        })
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let host = hello.server_name().and_then(|name| self.hosts.get(name));
        Some(Arc::clone(host.unwrap_or(&self.first)))
    }
}

/// The TLS settings of `h3`, for quinn. Initial packets always use AES-128-GCM (RFC 9001, section 5.2).
pub(crate) fn quic_config(
    identity: &Identity,
    pins: &Pins,
    early_data: bool,
) -> anyhow::Result<quinn::crypto::rustls::QuicServerConfig> {
    let mut config = server_config(Variant::H3, identity, pins)?;
    if early_data {
        // QUIC's own flow control is the limit (RFC 9001, section 4.6.1).
        config.max_early_data_size = u32::MAX;
    }
    let initial = suites::TLS13_AES_128_GCM_SHA256
        .tls13()
        .and_then(rustls::Tls13CipherSuite::quic_suite)
        .ok_or_else(|| anyhow!("this build's AES-128-GCM cannot protect QUIC packets"))?;
    quinn::crypto::rustls::QuicServerConfig::with_initial(Arc::new(config), initial)
        .context("cannot use these TLS settings for QUIC")
}

fn provider(pins: &Pins, version: TlsVersion) -> CryptoProvider {
    let cipher_suites = match (version, pins.cipher_suite) {
        (TlsVersion::V13, CipherSuite::TLS_AES_128_GCM_SHA256) => vec![suites::TLS13_AES_128_GCM_SHA256],
        (TlsVersion::V13, CipherSuite::TLS_AES_256_GCM_SHA384) => vec![suites::TLS13_AES_256_GCM_SHA384],
        (TlsVersion::V13, CipherSuite::TLS_CHACHA20_POLY1305_SHA256) => {
            vec![suites::TLS13_CHACHA20_POLY1305_SHA256]
        }
        // A TLS 1.2 suite names the kind of key: the certificate decides between the two.
        (TlsVersion::V12, CipherSuite::TLS_AES_128_GCM_SHA256) => vec![
            suites::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            suites::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        ],
        (TlsVersion::V12, CipherSuite::TLS_AES_256_GCM_SHA384) => vec![
            suites::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            suites::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        ],
        (TlsVersion::V12, CipherSuite::TLS_CHACHA20_POLY1305_SHA256) => vec![
            suites::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            suites::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ],
    };
    let group: &'static dyn SupportedKxGroup = match pins.key_exchange {
        KeyExchange::X25519 => kx_group::X25519,
        KeyExchange::Secp256r1 => kx_group::SECP256R1,
        KeyExchange::Secp384r1 => kx_group::SECP384R1,
    };
    CryptoProvider { cipher_suites, kx_groups: vec![group], ..rustls::crypto::ring::default_provider() }
}
