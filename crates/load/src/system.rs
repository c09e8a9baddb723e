//! The kernel's counters of this process (CPU time, waiting time, memory), and system calls that libraries do
//! not offer. This file has the `unsafe` for `getrusage`, `setsockopt` and `recv` without a buffer.

use std::os::fd::{AsRawFd, RawFd};
use std::{fs, io};

/// CPU time, and time spent waiting for a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_user_ns: u64,
    pub(crate) cpu_system_ns: u64,
    pub(crate) run_queue_ns: u64,
}

/// Usage of the calling thread.
pub(crate) fn thread_usage() -> Usage {
    let usage = rusage(libc::RUSAGE_THREAD);
    Usage {
        cpu_user_ns: timeval_ns(usage.ru_utime),
        cpu_system_ns: timeval_ns(usage.ru_stime),
        run_queue_ns: run_queue_ns().unwrap_or(0),
    }
}

/// Peak resident memory of this process, in bytes.
pub(crate) fn max_resident_bytes() -> u64 {
    const KIB: u64 = 1024;
    u64::try_from(rusage(libc::RUSAGE_SELF).ru_maxrss).unwrap_or(0) * KIB
}

impl Usage {
    /// The usage since `earlier`.
    pub(crate) fn since(self, earlier: Usage) -> Usage {
        Usage {
            cpu_user_ns: self.cpu_user_ns.saturating_sub(earlier.cpu_user_ns),
            cpu_system_ns: self.cpu_system_ns.saturating_sub(earlier.cpu_system_ns),
            run_queue_ns: self.run_queue_ns.saturating_sub(earlier.run_queue_ns),
        }
    }
}

/// Binds a socket to an address without a port; `connect` chooses the port, which can then serve several
/// destinations (ip(7), IP_BIND_ADDRESS_NO_PORT).
pub(crate) fn bind_without_port(socket: &impl AsRawFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    let fd: RawFd = socket.as_raw_fd();
    #[expect(clippy::cast_possible_truncation, reason = "four bytes")]
    let length = size_of_val(&on) as libc::socklen_t;
    // SAFETY: `on` is a valid int of the given length for the duration of the call; `fd` is open.
    let result = unsafe {
        libc::setsockopt(fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, (&raw const on).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Discards at most `most` received bytes of a TCP socket; their number (tcp(7), MSG_TRUNC).
pub(crate) fn discard(socket: &impl AsRawFd, most: usize) -> io::Result<usize> {
    let fd: RawFd = socket.as_raw_fd();
    // SAFETY: with MSG_TRUNC a TCP socket writes nothing to the buffer, which may be null; `fd` is open.
    let result = unsafe { libc::recv(fd, std::ptr::null_mut(), most, libc::MSG_TRUNC) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn rusage(who: libc::c_int) -> libc::rusage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a valid, writable rusage; zeroed is a valid value of it should the call fail.
    unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    }
}

#[expect(clippy::cast_sign_loss, reason = "CPU time is never negative")]
fn timeval_ns(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

/// The second field of schedstat: nanoseconds spent runnable without running (proc(5)).
fn run_queue_ns() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_grows() {
        let before = thread_usage();
        let mut sum = 0u64;
        while thread_usage().since(before).cpu_user_ns + thread_usage().since(before).cpu_system_ns == 0 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(max_resident_bytes() > 100_000);
    }
}
