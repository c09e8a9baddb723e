//! The limit of open files (RLIMIT_NOFILE, getrlimit(2)).

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::MissingCapability;

/// The limit with which this process started, if it was raised.
static ORIGINAL: OnceLock<Rlimit> = OnceLock::new();

/// Namespaces and the process 1 of a node, and what is open while it is built.
const FILES_OF_A_NODE: usize = 8;
/// Sockets and an emulator's bell, and what is open while the link is built.
const FILES_OF_A_LINK: usize = 8;
/// Everything else in this process.
const OTHER_FILES: usize = 256;

/// Raises the soft limit of open files of this process to at least `needed`.
///
/// # Errors
/// The hard limit, which is lower.
pub fn raise_open_files(needed: u64) -> Result<(), u64> {
    let limit = getrlimit(Resource::Nofile);
    // `None` is no limit.
    let (Some(soft), hard) = (limit.current, limit.maximum.unwrap_or(u64::MAX)) else { return Ok(()) };
    if soft >= needed {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
    if needed > hard || setrlimit(Resource::Nofile, raised).is_err() {
        return Err(hard);
    }
    ORIGINAL.get_or_init(|| limit);
    Ok(())
}

/// Raises the limit for a lab of this size.
pub(crate) fn prepare(nodes: usize, links: usize) -> Result<(), MissingCapability> {
    let needed = (nodes * FILES_OF_A_NODE + links * FILES_OF_A_LINK + OTHER_FILES) as u64;
    raise_open_files(needed).map_err(|hard| {
        let why = format!("a lab of {nodes} nodes and {links} links needs {needed}, but the limit is {hard}");
        let remedy = format!(
            "raise it (`ulimit -n {needed}` as root, LimitNOFILE= of a systemd unit, /etc/security/limits.conf)"
        );
        MissingCapability::new("open files", why, remedy)
    })
}

/// The limit that a new process gets, where this process has raised its own: some programs are slow or fail
/// with a high one (select(2)).
pub(crate) fn original() -> Option<Rlimit> {
    ORIGINAL.get().cloned()
}
