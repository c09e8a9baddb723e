//! CLOCK_MONOTONIC in nanoseconds, and its distance to CLOCK_REALTIME, in which the kernel stamps frames.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Two readings of the monotonic clock this close together bracket a reading of the wall clock well enough.
const TIGHT_BRACKET_NS: u64 = 500;
/// A larger change of the offset is a step of the wall clock, not noise of the reading.
const STEP_NS: i64 = 20_000;

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

pub(crate) fn nanoseconds(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The offset between the two clocks. Both run at the same rate, so the offset changes only when the wall
/// clock is set.
#[derive(Debug)]
pub(crate) struct WallClock {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC.
    offset_ns: i64,
}

impl WallClock {
    pub(crate) fn new() -> Self {
        let mut best = reading();
        for _ in 0..32 {
            best = best.min(reading());
        }
        WallClock { offset_ns: best.1 }
    }

    /// Updates the offset where the wall clock was set.
    pub(crate) fn check(&mut self) {
        let (bracket_ns, offset_ns) = reading();
        if bracket_ns < TIGHT_BRACKET_NS && (offset_ns - self.offset_ns).abs() > STEP_NS {
            *self = WallClock::new();
        }
    }

    /// An instant of the monotonic clock as Unix time.
    pub(crate) const fn to_unix_ns(&self, monotonic_ns: u64) -> u64 {
        monotonic_ns.saturating_add_signed(self.offset_ns)
    }

    /// A stamp of CLOCK_REALTIME on the monotonic clock.
    pub(crate) const fn to_monotonic_ns(&self, seconds: u32, nanoseconds: u32) -> u64 {
        (seconds as u64 * 1_000_000_000 + nanoseconds as u64).saturating_add_signed(-self.offset_ns)
    }
}

/// A time span for a system call.
pub(crate) fn timespec(ns: u64) -> Timespec {
    let tv_sec = i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: (ns % 1_000_000_000).cast_signed() }
}

/// The width of a bracket and the offset read within it.
fn reading() -> (u64, i64) {
    let before_ns = monotonic_ns();
    let wall_ns = nanoseconds(clock_gettime(ClockId::Realtime));
    let after_ns = monotonic_ns();
    let bracket_ns = after_ns - before_ns;
    let middle_ns = before_ns + bracket_ns / 2;
    (bracket_ns, wall_ns.cast_signed() - middle_ns.cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_shifted_by_the_offset() {
        let clock = WallClock { offset_ns: 1_700_000_000_000_000_000 };
        assert_eq!(clock.to_monotonic_ns(1_700_000_005, 250), 5_000_000_250);
        assert_eq!(clock.to_unix_ns(5_000_000_250), 1_700_000_005_000_000_250);
        assert_eq!(clock.to_monotonic_ns(0, 0), 0, "a stamp from before the clock's start is its start");
        let behind = WallClock { offset_ns: -3 };
        assert_eq!(behind.to_monotonic_ns(0, 4), 7);
    }
}
