//! Waits for a new browser to become idle. It computes for seconds after its first tab is open; on few cores
//! that would be part of the load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lab::CpuUsage;

/// A browser is idle if it used less than a tenth of a core for this long.
const STEP_NS: u64 = 200_000_000;
const IDLE_SHARE: u64 = 10;
/// It has this long to become idle.
const LIMIT: Duration = Duration::from_secs(10);

/// Returns when the browser is idle, after ten seconds, or when `stop` is set.
pub(super) fn settle(usage: impl Fn() -> CpuUsage, stop: &AtomicBool) {
    let used_ns = || {
        let usage = usage();
        usage.user_ns + usage.system_ns
    };
    let until = Instant::now() + LIMIT;
    let mut before_ns = used_ns();
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_nanos(STEP_NS));
        let now_ns = used_ns();
        if now_ns.saturating_sub(before_ns) * IDLE_SHARE < STEP_NS {
            return;
        }
        before_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn it_waits_while_the_browser_works() {
        let asked = Cell::new(0);
        let usage = || {
            asked.set(asked.get() + 1);
            CpuUsage { user_ns: STEP_NS * asked.get().min(3), system_ns: 0 }
        };
        settle(usage, &AtomicBool::new(false));
        // Busy until the third answer; the fourth shows that nothing was used since.
        assert_eq!(asked.get(), 4);
        asked.set(0);
        settle(usage, &AtomicBool::new(true));
        assert_eq!(asked.get(), 1);
    }
}
