//! Nobody waited for a disk.

use super::{Check, Context, Finding, cores};

pub(super) const CHECK: Check = Check {
    name: "disk",
    why: "A library larger than memory is read from the disk, and then the disk is measured and not the version.",
    remedy: "Serve what fits into memory, warm it up (`warmup`), or ask that question on purpose.",
    judge,
};

/// Time in which cores had nothing to do but wait for a disk, in the median run, against the margin of interest.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let mut finding =
        cores::share(context, context.plan.margin_share, |cores| cores.iowait_ns, "waited for a disk")?;
    let faults: u64 = context.own.ok().filter_map(|run| run.monitor).map(|facts| facts.major_faults).sum();
    if faults > 0 {
        finding.measured = format!("{}; {faults} page faults that needed one", finding.measured);
    }
    Some(finding)
}

#[cfg(test)]
mod tests {
    use model::monitor::Quantity;
    use model::variant::Variant;

    use super::super::cores::bench::with_core;
    use crate::fixtures::{Bench, caveats, passes, silent};

    #[test]
    fn what_comes_from_memory_passes() {
        passes("disk", &with_core(Quantity::CpuIowait, 100));
        silent("disk", &Bench::closed(&[Variant::H1]));
    }

    #[test]
    fn waiting_for_a_disk_is_a_caveat() {
        caveats(&with_core(Quantity::CpuIowait, 1_000), &["disk"]);
    }
}
