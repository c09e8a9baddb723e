//! The certificate authorities that an assignment trusts.

use model::assignment::Trust;
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

fn mozilla_roots() -> Vec<CertificateDer<'static>> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS.to_vec()
}
