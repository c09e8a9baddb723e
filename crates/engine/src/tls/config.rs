//! A client's TLS settings, from pins, offers and options.
//!
//! Groups: *ring* has X25519 and two NIST curves. The hybrid X25519MLKEM768 that browsers prefer needs
//! another provider (aws-lc), so it cannot be pinned here.

use std::sync::Arc;

use model::assignment::Trust;
use model::pins::{KeyExchange, Pins, TlsVersion};
use model::tls::{ClientCertificate, OfferedSuite, TlsOffer};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, WebPkiSupportedAlgorithms, ring};
use rustls::{
    ClientConfig, DigitallySignedStruct, InconsistentKeys, RootCertStore, SignatureScheme,
    SupportedCipherSuite,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use super::SessionStore;
use crate::options::{Options, SESSION_LIMIT};

/// Why a TLS configuration cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum TlsConfigError {
    /// The CA certificate cannot be read.
    #[error("cannot read the CA certificate ({0}); expected one or more PEM certificates")]
    Authority(String),
    /// No root certificate was given.
    #[error("the system has no root certificates; install ca-certificates or pass a CA certificate")]
    NoRoots,
    /// The client certificate cannot be read.
    #[error("cannot read the client certificate ({0}); expected one or more PEM certificates")]
    ClientCertificate(String),
    /// The client's private key cannot be read.
    #[error("cannot read the private key ({0}); expected one in PEM without a passphrase")]
    ClientKey(String),
    /// The client's certificate and key are not a pair.
    #[error("the client certificate and the private key are not a pair")]
    ClientPair,
    /// Early data without resumption or TLS 1.3.
    #[error("early data requires resumption and TLS 1.3: a ticket contains its key (RFC 8446, section 2.3)")]
    EarlyData,
    /// rustls refused the configuration.
    #[error("rustls rejects the pinned TLS settings: {0}")]
    Rustls(#[from] rustls::Error),
}

/// A client's TLS configuration: exactly the pinned version, cipher suite and group, and one protocol in
/// ALPN.
///
/// `roots` are trusted if `trust` is [`Trust::System`]; this crate opens no files, so the caller reads them.
///
/// # Errors
/// The CA certificate cannot be read, there are no roots, or rustls rejects the pins.
pub fn tls_config(
    pins: &Pins,
    alpn: &[u8],
    trust: &Trust,
    roots: &[CertificateDer<'static>],
) -> Result<ClientConfig, TlsConfigError> {
    let mut config = offered_config(&TlsOffer::pinned(pins), None, alpn, trust, roots)?;
    if pins.resumption {
        config.resumption = Resumption::store(Arc::new(SessionStore::new(SESSION_LIMIT)));
    }
    Ok(config)
}

/// A client's TLS configuration that offers more than one choice, without resumption.
///
/// # Errors
/// As [`tls_config`]; and a client certificate that cannot be used.
pub fn offered_config(
    offer: &TlsOffer,
    certificate: Option<&ClientCertificate>,
    alpn: &[u8],
    trust: &Trust,
    roots: &[CertificateDer<'static>],
) -> Result<ClientConfig, TlsConfigError> {
    let provider = Arc::new(CryptoProvider {
        cipher_suites: offer.suites.iter().map(|suite| cipher_suite(*suite)).collect(),
        kx_groups: offer.groups.iter().map(|group| key_exchange(*group)).collect(),
        ..ring::default_provider()
    });
    let version = |version: &TlsVersion| match version {
        TlsVersion::V12 => &rustls::version::TLS12,
        TlsVersion::V13 => &rustls::version::TLS13,
    };
    let versions: Vec<_> = offer.versions.iter().map(version).collect();
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&versions)?;
    let builder = match trust {
        Trust::Authority(pem) => builder.with_root_certificates(authority(pem)?),
        Trust::System => {
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(roots.iter().cloned());
            if store.is_empty() {
                return Err(TlsConfigError::NoRoots);
            }
            builder.with_root_certificates(store)
        }
        Trust::Anyone => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(TrustAnyone { algorithms }))
        }
    };
    let mut config = match certificate {
        None => builder.with_no_client_auth(),
        Some(certificate) => {
            let (chain, key) = client_certificate(certificate)?;
            builder.with_client_auth_cert(chain, key).map_err(|error| match error {
                rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsConfigError::ClientPair,
                rustls::Error::InvalidCertificate(_) => TlsConfigError::ClientCertificate(error.to_string()),
                other => TlsConfigError::ClientKey(other.to_string()),
            })?
        }
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// `config` with the options that concern TLS; connections made of it share one store of sessions.
///
/// # Errors
/// [`TlsConfigError::EarlyData`]: early data is requested, but the pins forbid it.
pub fn with_options(
    config: &ClientConfig,
    pins: &Pins,
    options: &Options,
) -> Result<ClientConfig, TlsConfigError> {
    if options.early_data && (!pins.resumption || pins.tls_version != TlsVersion::V13) {
        return Err(TlsConfigError::EarlyData);
    }
    let mut config = config.clone();
    config.enable_early_data = options.early_data;
    if pins.resumption {
        config.resumption = Resumption::store(Arc::new(SessionStore::new(options.session_limit)));
    }
    if let Some(key_log) = &options.key_log {
        config.key_log = Arc::clone(key_log);
    }
    Ok(config)
}

/// Whether an authority's certificates can be used.
///
/// # Errors
/// [`TlsConfigError::Authority`]: no certificate, or one that cannot be read.
pub fn check_authority(pem: &str) -> Result<(), TlsConfigError> {
    authority(pem).map(drop)
}

fn authority(pem: &str) -> Result<RootCertStore, TlsConfigError> {
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| TlsConfigError::Authority(error.to_string()))?;
        store.add(certificate).map_err(|error| TlsConfigError::Authority(error.to_string()))?;
    }
    if store.is_empty() {
        return Err(TlsConfigError::Authority("it contains no certificate".into()));
    }
    Ok(store)
}

fn client_certificate(
    certificate: &ClientCertificate,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsConfigError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.chain_pem.as_bytes()).collect();
    let chain = chain.map_err(|error| TlsConfigError::ClientCertificate(error.to_string()))?;
    if chain.is_empty() {
        return Err(TlsConfigError::ClientCertificate("it contains no certificate".into()));
    }
    let key = PrivateKeyDer::from_pem_slice(certificate.key_pem.as_bytes());
    Ok((chain, key.map_err(|error| TlsConfigError::ClientKey(error.to_string()))?))
}

fn cipher_suite(offered: OfferedSuite) -> SupportedCipherSuite {
    use ring::cipher_suite as suite;
    match offered {
        OfferedSuite::TLS_AES_128_GCM_SHA256 => suite::TLS13_AES_128_GCM_SHA256,
        OfferedSuite::TLS_AES_256_GCM_SHA384 => suite::TLS13_AES_256_GCM_SHA384,
        OfferedSuite::TLS_CHACHA20_POLY1305_SHA256 => suite::TLS13_CHACHA20_POLY1305_SHA256,
        OfferedSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => {
            suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
        }
        OfferedSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        OfferedSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => {
            suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
        }
        OfferedSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        OfferedSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => {
            suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
        }
        OfferedSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => {
            suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
        }
    }
}

fn key_exchange(offered: KeyExchange) -> &'static dyn SupportedKxGroup {
    match offered {
        KeyExchange::X25519 => ring::kx_group::X25519,
        KeyExchange::Secp256r1 => ring::kx_group::SECP256R1,
        KeyExchange::Secp384r1 => ring::kx_group::SECP384R1,
    }
}

/// Accepts every certificate, and still checks that the peer holds its key.
#[derive(Debug)]
struct TrustAnyone {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for TrustAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
