//! Checks of an assignment before anything is sent.

use anyhow::{Context, Result, bail};
use model::assignment::Assignment;

use crate::host::{Host, Logs, engine_options};
use crate::key_log::KeyLogFile;
use crate::qlog::QlogFolder;
use crate::transport::Socket;

/// Checks that `pem` has one or more certificates of authorities.
///
/// # Errors
/// It has none, or one cannot be read.
pub fn check_authority(pem: &str) -> Result<()> {
    Ok(engine::tls::check_authority(pem)?)
}

/// Checks that an assignment can begin: its settings of TLS and QUIC, its files and its addresses. Sends
/// nothing.
///
/// # Errors
/// The first fault.
pub fn check(assignment: &Assignment) -> Result<()> {
    let options = &assignment.options;
    if assignment.target.variant.is_encrypted() {
        let count = 1 + options.requests.further_targets.len();
        Host::all(assignment, count, &engine_options(assignment, Logs::default()))?;
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
                bail!("cannot migrate to {to}: it is not of the same family as {}", remote.ip());
            }
            Socket::connect(remote, true, &options.connections, &[to], 0)
                .with_context(|| format!("cannot migrate to {to}: it is not an address of this machine"))?;
        }
    }
    Ok(())
}
