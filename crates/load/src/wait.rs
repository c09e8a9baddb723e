//! Punctual waiting for sockets until a time.

use std::num::NonZeroU64;

use anyhow::{Context, Result};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::thread::{NanosleepRelativeResult, nanosleep, set_current_timer_slack};
use rustix::time::Timespec;

use crate::clock::Clock;

const NANOS_PER_S: u64 = 1_000_000_000;

/// Asks the kernel not to coalesce this thread's timers: by default they may fire 50 µs late (prctl(2),
/// PR_SET_TIMERSLACK).
pub(crate) fn be_punctual() {
    // If it fails, waits end a little later; the lag of an open loop shows it.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// The clock is read again before a wait shorter than this.
const SOON_NS: u64 = 1_000_000;

/// Waits for sockets, at most until a time; `now` is the caller's last reading of the clock.
///
/// # Errors
/// The kernel cannot wait at all.
pub(crate) fn for_events(
    epoll: &OwnedFd,
    clock: &Clock,
    (now, until_ns): (u64, u64),
    events: &mut Vec<epoll::Event>,
) -> Result<()> {
    let is_soon = until_ns.saturating_sub(now) < SOON_NS;
    let timeout = timespec(until_ns.saturating_sub(if is_soon { clock.now_ns() } else { now }));
    match epoll::wait(epoll, rustix::buffer::spare_capacity(events), Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error).context("waiting for sockets"),
    }
}

/// Sleeps for a time, also a very short one.
pub(crate) fn sleep_ns(ns: u64) {
    let mut rest = timespec(ns);
    while let NanosleepRelativeResult::Interrupted(left) = nanosleep(&rest) {
        rest = left;
    }
}

fn timespec(ns: u64) -> Timespec {
    #[expect(clippy::cast_possible_wrap, reason = "seconds of a u64 of nanoseconds are far below 2^63")]
    let (tv_sec, tv_nsec) = ((ns / NANOS_PER_S) as i64, (ns % NANOS_PER_S) as i64);
    Timespec { tv_sec, tv_nsec }
}
