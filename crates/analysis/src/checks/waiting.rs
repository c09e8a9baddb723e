//! How long a process may wait for a CPU before it matters: shared by the checks of client and server.

use model::units::NANOS_PER_MS;

use super::Context;
use crate::number;
use crate::run::{GroupFacts, RunSummary};

/// One slice of the scheduler: so long a process may wait where server, emulator and client share two cores.
const SLICE_NS: f64 = 3.0 * NANOS_PER_MS as f64;
/// A process that waited for a quarter of the time does not measure, slice or not.
const SLICE_SHARE: f64 = 0.25;

/// The time in which a client was busy; `None` where it was not.
fn busy_ns(facts: &GroupFacts) -> Option<f64> {
    (facts.busy_ns > 0).then(|| number::float(facts.busy_ns))
}

/// The share of its time that a client was runnable without running.
pub(super) fn client_share(facts: &GroupFacts) -> Option<f64> {
    Some(number::float(facts.run_queue_ns) / busy_ns(facts)?)
}

/// The time in which the clients of a run were busy; that of the one that was so for the shortest time.
pub(super) fn shortest_ns(run: &RunSummary) -> Option<f64> {
    run.groups.iter().filter_map(busy_ns).reduce(f64::min)
}

/// The share of the clients' time that a process may wait: the margin of interest, or one slice of the scheduler (at
/// most a quarter of the time) where that is more.
///
/// A slice is allowed because a load of a few milliseconds cannot be had without it on two cores, and because it
/// meets all arms alike: what it adds in some runs stands in the intervals.
pub(super) fn allowed_share(context: &Context<'_>) -> Option<f64> {
    let busy_ns = context.own.median(shortest_ns)?;
    Some(context.plan.margin_share.max((SLICE_NS / busy_ns).min(SLICE_SHARE)))
}
