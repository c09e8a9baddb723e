//! The hypervisor gave no CPU time to other machines.

use super::{Check, Context, Finding, Table, check, cores};

pub(super) const CHECK: Check = Check {
    measures: "the share of all cores' time that the hypervisor gave to other machines, in the median run \
               and in each run, minus one tick per core",
    passes: "margin, in at least nine of ten runs",
    caveat: "more",
    why: "While a hypervisor runs other machines, this one stands still, and the time counts as the \
          server's or the network's.",
    remedy: "Measure on a dedicated machine, or when the host is otherwise idle.",
    reads: &[Table::Monitor],
    ..check("cpu_steal", judge)
};

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
