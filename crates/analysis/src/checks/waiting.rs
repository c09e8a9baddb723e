//! How long a process may wait for a core: common to the checks of client and server.

use model::number;
use model::units::NANOS_PER_MS;

use super::Context;
use crate::run::{GroupFacts, RunSummary};

/// One time slice of the scheduler: a process may wait this long if server, emulator and client share two
/// cores.
const SLICE_NS: f64 = 3.0 * NANOS_PER_MS as f64;
/// A process that waits for a larger share of the time does not measure.
const SLICE_SHARE: f64 = 0.25;

/// The time that a client was busy; `None` if it was not.
fn busy_ns(facts: &GroupFacts) -> Option<f64> {
    (facts.busy_ns > 0).then(|| number::float(facts.busy_ns))
}

/// Below this duration, the CPU time of a process is mostly that of its start.
const LEAST_BUSY_NS: f64 = 100.0 * NANOS_PER_MS as f64;

/// The time that threads lost to other programs, of what they were runnable without a core.
///
/// Threads of one process on the same cores also wait for each other, which is the process's own work. All of
/// them together lost no more than the time of their cores that they did not use.
fn lost_ns(waited_ns: u64, cpu_ns: u64, busy_ns: f64, cores: usize) -> f64 {
    let unused_ns = (number::count(cores.max(1)) * busy_ns - number::float(cpu_ns)).max(0.0);
    let waited_ns = number::float(waited_ns);
    if busy_ns < LEAST_BUSY_NS { waited_ns } else { waited_ns.min(unused_ns) }
}

/// The share of its time that a client was runnable but had no core, because others had it.
pub(super) fn client_share(context: &Context<'_>, facts: &GroupFacts) -> Option<f64> {
    let busy_ns = busy_ns(facts)?;
    let cores = context.plan.cores.client.len();
    Some(lost_ns(facts.run_queue_ns, facts.cpu_ns, busy_ns, cores) / busy_ns)
}

/// The time that the servers were runnable but had no core, because others had it, as a share of the
/// client's.
pub(super) fn server_share(context: &Context<'_>, run: &RunSummary) -> Option<f64> {
    let longest_ns = run.groups.iter().filter_map(busy_ns).reduce(f64::max)?;
    let cores = context.plan.cores.server.len().max(1) + context.plan.cores.proxy.len();
    let lost_ns = lost_ns(run.server_run_queue_ns, run.server_cpu_ns.iter().sum(), longest_ns, cores);
    Some(lost_ns / shortest_ns(run)?)
}

/// The shortest time that a client of a run was busy.
fn shortest_ns(run: &RunSummary) -> Option<f64> {
    run.groups.iter().filter_map(busy_ns).reduce(f64::min)
}

/// The share of the clients' time that a process may wait: the margin of interest, or one time slice (at most
/// a quarter of the time) if that is more.
///
/// A time slice is allowed because a load of a few milliseconds on two cores cannot avoid it, and because it
/// affects all cells equally: the intervals contain what it adds in some runs.
pub(super) fn allowed_share(context: &Context<'_>) -> Option<f64> {
    let busy_ns = context.own.median(shortest_ns)?;
    Some(context.plan.margin_share.max((SLICE_NS / busy_ns).min(SLICE_SHARE)))
}
