//! The share of CPU time that the study did not get: common to the checks of steal, other work and the disk.

use model::number;

use super::{Context, Finding, percent};
use crate::monitor::CoreFacts;

/// The kernel counts CPU time in ticks of this length, so each core may be off by one.
const TICK_NS: u64 = 10_000_000;

/// The share of all cores' time that `of` took in the median run and in each run, minus one tick per core,
/// against `allowed`.
/// It never invalidates, because other checks judge how long client and server waited for a core. `None` if
/// the monitor read no core.
pub(super) fn share(
    context: &Context<'_>,
    allowed: f64,
    of: fn(&CoreFacts) -> u64,
    things: &str,
) -> Option<Finding> {
    let certain = |cores: CoreFacts| {
        let ns = of(&cores).saturating_sub(TICK_NS * cores.count);
        (cores.all_ns > 0).then(|| number::float(ns) / number::float(cores.all_ns))
    };
    let shares = context.own.disturbance(|run| certain(run.monitor?.cores))?;
    Some(Finding {
        result: shares.grade(allowed, f64::INFINITY),
        measured: shares.describe(allowed, allowed, &format!("of all cores' time {things}")),
        threshold: format!("at most {}", percent(allowed)),
    })
}

/// Cores for tests of these checks.
#[cfg(test)]
pub(super) mod bench {
    use model::monitor::{Quantity, SubjectKind};
    use model::variant::Variant;

    use crate::fixtures::Bench;

    /// One core that was idle for 9 s and did this for this many milliseconds.
    pub(in crate::checks) fn with_core(quantity: Quantity, ms: u64) -> Bench {
        Bench::closed(&[Variant::H1])
            .with_reading(None, SubjectKind::Core, Quantity::CpuIdle, 9_000_000_000)
            .with_reading(None, SubjectKind::Core, quantity, ms * 1_000_000)
    }
}
