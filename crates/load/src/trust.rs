//! The certificate authorities that an assignment trusts.

use anyhow::Result;
use model::assignment::Trust;
use model::tls::TlsOffer;
use rustls_pki_types::CertificateDer;

/// The certificates that a client needs besides the assignment's own: the system's roots, or Mozilla's if the
/// system has none.
pub(crate) fn roots(trust: &Trust) -> Vec<CertificateDer<'static>> {
    if *trust != Trust::System {
        return Vec::new();
    }
    let system = rustls_native_certs::load_native_certs().certs;
    if system.is_empty() { mozilla_roots() } else { system }
}

/// A TLS configuration that trusts what an assignment with this trust does, and offers this protocol.
///
/// # Errors
/// A certificate cannot be read, or the system has none.
pub fn tls_config(trust: &Trust, alpn: &[u8]) -> Result<rustls::ClientConfig> {
    Ok(engine::tls::offered_config(&TlsOffer::any(), None, alpn, trust, &roots(trust))?)
}

fn mozilla_roots() -> Vec<CertificateDer<'static>> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.to_vec()
}
