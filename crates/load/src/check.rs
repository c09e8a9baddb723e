//! What an assignment needs, looked at before anything is sent.

use anyhow::{Context, Result, bail};
use model::assignment::Assignment;

use crate::host::{Host, Logs};
use crate::key_log::KeyLogFile;
use crate::qlog::QlogFolder;
use crate::transport::Socket;

/// Whether a client could trust what `pem` has: one or more certificates of authorities.
///
/// # Errors
/// What was found and expected.
pub fn check_authority(pem: &str) -> Result<()> {
    Ok(engine::tls::check_authority(pem)?)
}

/// Whether an assignment could begin: refuses settings of TLS and QUIC that cannot be used, and files and addresses
/// that are not there. Sends nothing.
///
/// # Errors
/// The first fault, with what was found and expected.
pub fn check(assignment: &Assignment) -> Result<()> {
    let options = &assignment.options;
    if assignment.target.variant.is_encrypted() {
        Host::all(assignment, 1 + options.requests.further_targets.len(), Logs::default())?;
    }
    if let Some(path) = &options.protocols.tls.key_log {
        KeyLogFile::check(path)?;
    }
    if let Some(folder) = &options.protocols.qlog {
        QlogFolder::check(folder)?;
    }
    if let Some(to) = options.protocols.migration.and_then(|migration| migration.to) {
        let targets = std::iter::once(&assignment.target).chain(&options.requests.further_targets);
        for target in targets {
            let remote = target.address;
            if to.is_ipv4() != remote.is_ipv4() {
                bail!(
                    "found {to} to move to from a connection to {remote}, expected an address of the same family"
                );
            }
            Socket::connect(remote, true, &options.connections, &[to], 0)
                .with_context(|| format!("found {to} to move to, expected an address of this machine"))?;
        }
    }
    Ok(())
}
