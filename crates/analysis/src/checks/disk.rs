//! The load did not wait for a disk.

use super::{Check, Context, Finding, Table, check, cores};

pub(super) const CHECK: Check = Check {
    measures: "the share of all cores' time spent idle while waiting for a disk, in the median run \
               and in each run, minus one tick per core",
    passes: "margin, in at least nine of ten runs",
    caveat: "more",
    why: "A library larger than memory is read from the disk; the disk is then measured and not the version.",
    remedy: "Serve content that fits into memory and warm it up (`warmup`), or make this the question.",
    reads: &[Table::Monitor],
    ..check("disk", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let mut finding =
        cores::share(context, context.plan.margin_share, |cores| cores.iowait_ns, "waited for a disk")?;
    let faults: u64 = context.own.ok().filter_map(|run| run.monitor).map(|facts| facts.major_faults).sum();
    if faults > 0 {
        finding.measured = format!("{}; {faults} major page faults", finding.measured);
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
