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

/// The most files that a process may open: the hard limit.
pub fn most_open_files() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

/// The limit of a new process that may open `wanted` files, as far as the hard limit allows; `None` where it
/// inherits this one's.
///
/// Without a number it has the limit with which this process started, because some programs are slow or fail
/// with a high one (select(2)).
pub(crate) fn of_child(wanted: Option<u64>) -> Option<Rlimit> {
    let original = ORIGINAL.get().cloned();
    let Some(wanted) = wanted else { return original };
    let started_with = original.unwrap_or_else(|| getrlimit(Resource::Nofile));
    Some(at_least(&started_with, wanted))
}

/// A limit whose soft part is at least `wanted`, as far as the hard part allows.
fn at_least(limit: &Rlimit, wanted: u64) -> Rlimit {
    let hard = limit.maximum.unwrap_or(u64::MAX);
    Rlimit { current: limit.current.map(|soft| soft.max(wanted.min(hard))), maximum: limit.maximum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_rises_up_to_the_hard_one() {
        let raised = |current, maximum| at_least(&Rlimit { current, maximum }, 20_000).current;
        assert_eq!(raised(Some(1_024), Some(524_288)), Some(20_000));
        assert_eq!(raised(Some(1_024), Some(4_096)), Some(4_096));
        assert_eq!(raised(Some(65_536), None), Some(65_536), "never lowered");
        assert_eq!(raised(None, None), None, "no limit remains none");
    }
}
