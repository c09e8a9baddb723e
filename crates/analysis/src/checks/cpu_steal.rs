//! The hypervisor left the cores to the study.

use super::{Check, Context, Finding, cores};

pub(super) const CHECK: Check = Check {
    name: "cpu_steal",
    why: "Time that a hypervisor gives to other machines stands still in this one, and counts as the server's or the network's.",
    remedy: "Measure on a machine of its own, or where nobody else is busy.",
    judge,
};

/// Steal time of all cores in the median run, against the margin of interest.
fn judge(context: &Context<'_>) -> Option<Finding> {
    cores::share(context, context.plan.margin_share, |cores| cores.steal_ns, "was stolen")
}

#[cfg(test)]
mod tests {
    use model::monitor::Quantity;
    use model::variant::Variant;

    use super::super::cores::bench::with_core;
    use crate::fixtures::{Bench, caveats, passes, silent};

    #[test]
    fn no_steal_and_a_tick_pass() {
        passes("cpu_steal", &with_core(Quantity::CpuSteal, 0));
        passes("cpu_steal", &with_core(Quantity::CpuSteal, 250));
        silent("cpu_steal", &Bench::closed(&[Variant::H1]));
    }

    #[test]
    fn steal_beyond_the_margin_is_a_caveat() {
        caveats(&with_core(Quantity::CpuSteal, 500), &["cpu_steal"]);
    }
}
