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

/// The share of its time that a client was runnable but had no core.
pub(super) fn client_share(facts: &GroupFacts) -> Option<f64> {
    Some(number::float(facts.run_queue_ns) / busy_ns(facts)?)
}

/// The shortest time that a client of a run was busy.
pub(super) fn shortest_ns(run: &RunSummary) -> Option<f64> {
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
