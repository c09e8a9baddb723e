//! The CPUs that a thread may run on.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Restricts the calling thread, and the children that it starts, to these CPUs; no restriction where the
/// list is empty.
///
/// # Errors
/// A CPU does not exist, or this process may not use it.
pub(crate) fn keep_to(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut wanted = CpuSet::new();
    for cpu in cpus {
        if *cpu >= CpuSet::MAX_CPU {
            let problem = format!("CPU {cpu} does not exist; use a number below {}", CpuSet::MAX_CPU);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        wanted.set(*cpu);
    }
    Ok(sched_setaffinity(None, &wanted)?)
}

/// Runs `job` with the calling thread, and the children that it starts, restricted to these CPUs.
///
/// # Errors
/// As [`keep_to`], and those of `job`.
pub(crate) fn with<T>(cpus: &[usize], job: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = sched_getaffinity(None)?;
    keep_to(cpus)?;
    let result = job();
    sched_setaffinity(None, &before)?;
    result
}
