//! The one file that reads a clock.

use std::time::{Duration, Instant};

use model::assignment::ClockReference;
use rustix::time::{ClockId, Timespec, clock_gettime};

const NANOS_PER_S: u64 = 1_000_000_000;

/// Nanoseconds since a run's start on this node's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    run_start_ns: u64,
    base: Instant,
}

impl Clock {
    /// The clock of a run that began at `reference`.
    pub fn new(reference: &ClockReference) -> Self {
        let since_start = Duration::from_nanos(monotonic_ns().saturating_sub(reference.run_start_ns));
        let now = Instant::now();
        Clock { run_start_ns: reference.run_start_ns, base: now.checked_sub(since_start).unwrap_or(now) }
    }

    /// A reference to this moment: the start of a run.
    pub fn begin() -> ClockReference {
        ClockReference { id: "monotonic".to_owned(), run_start_ns: monotonic_ns() }
    }

    /// Nanoseconds since the run's start.
    pub fn now_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.run_start_ns)
    }

    /// The instant at which this clock reads 0, for libraries that use instants.
    pub(crate) fn base(&self) -> Instant {
        self.base
    }

    /// The Unix time at which this clock reads 0, in nanoseconds: for files that are compared with others.
    pub(crate) fn zero_unix_ns(&self) -> u64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).saturating_sub(self.now_ns())
    }
}

fn monotonic_ns() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    #[expect(clippy::cast_sign_loss, reason = "the monotonic clock is never negative")]
    let ns = tv_sec as u64 * NANOS_PER_S + tv_nsec as u64;
    ns
}
