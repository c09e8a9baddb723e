//! Waiting for sockets until a time, and being punctual about it.

use std::num::NonZeroU64;

use anyhow::{Context, Result};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::thread::{NanosleepRelativeResult, nanosleep, set_current_timer_slack};
use rustix::time::Timespec;

use crate::clock::Clock;

const NANOS_PER_S: u64 = 1_000_000_000;

/// Asks the kernel not to gather this thread's timers: by default they may fire 50 µs late (prctl(2),
/// PR_SET_TIMERSLACK).
pub(crate) fn be_punctual() {
    // Without it waits end a little later, which the lag of an open loop shows.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// A wait that ends within this time is measured from a fresh look at the clock.
const SOON_NS: u64 = 1_000_000;

/// Waits for sockets until a time at most; `now` is when the caller last looked at the clock.
///
/// # Errors
/// The kernel's, where it cannot wait at all.
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

/// Sleeps for a time, however short.
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
