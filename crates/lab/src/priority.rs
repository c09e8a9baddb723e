//! Scheduling priorities of the lab's threads.

#![expect(clippy::cast_possible_truncation, reason = "sizes of structures and counts are far below 2^32")]

use std::num::NonZeroU64;

/// Low among the real-time priorities: above every ordinary thread, below the kernel's own.
const REALTIME_PRIORITY: libc::c_int = 10;
/// The slice that a thread requests without real-time priority: EEVDF runs threads with a short slice sooner
/// (Linux 6.12).
const SLICE_NS: u64 = 100_000;

/// `struct sched_attr` (sched_setattr(2)).
#[repr(C)]
#[derive(Default)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Gives the calling thread real-time priority or, where the kernel refuses that, a short slice. Returns
/// whether the thread is real-time.
pub(crate) fn raise() -> bool {
    // Without this the kernel may wake a thread 50 µs late to save a timer.
    let _: Result<_, _> = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let is_realtime = set_realtime(REALTIME_PRIORITY);
    if !is_realtime {
        let size = size_of::<SchedulingAttributes>() as u32;
        let attributes = SchedulingAttributes { size, runtime_ns: SLICE_NS, ..Default::default() };
        // SAFETY: the attributes outlive the call and carry their size; a refusal changes nothing.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    }
    is_realtime
}

/// Whether a thread of this process can have real-time priority; the calling thread has it briefly.
pub(crate) fn may_be_realtime() -> bool {
    let may = set_realtime(REALTIME_PRIORITY);
    if may {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: as in `set_realtime`.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters) };
    }
    may
}

/// Keeps the calling thread from preempting others when it wakes up; its share of the CPU time stays the same
/// (SCHED_BATCH, sched(7)).
pub(crate) fn lower() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: as in `set_realtime`; a refusal changes nothing.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) };
}

fn set_realtime(priority: libc::c_int) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameters outlive the call; 0 names the calling thread only.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}
