//! Waiting with the precision of the kernel's timers. The runtime's own timer counts whole milliseconds.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Waits at least this long. A timer descriptor is precise to about 50 µs; without one the precision is 1 ms.
pub(crate) async fn wait(time: Duration) {
    if time.is_zero() {
        return;
    }
    if let Ok(timer) = timer(time)
        && timer.readable().await.is_ok()
    {
        return;
    }
    tokio::time::sleep(time).await;
}

fn timer(time: Duration) -> io::Result<AsyncFd<OwnedFd>> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    let value = Timespec::try_from(time).map_err(io::Error::other)?;
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once)?;
    // SAFETY: an `OwnedFd` always holds the same open descriptor, and the `AsyncFd` owns it until it is
    // dropped.
    Ok(unsafe { AsyncFd::register_with_interest(timer, Interest::READABLE) }?)
}
