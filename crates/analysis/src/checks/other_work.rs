//! No other programs worked on the machine.

use super::{Check, Context, Finding, Table, check, cores};

pub(super) const CHECK: Check = Check {
    measures: "the share of all cores' time in programs other than client, server and h123, in the median \
               run, minus one tick per core",
    passes: "5 %",
    caveat: "more",
    why: "Other programs take cores, caches and memory from the study at unpredictable times.",
    remedy: "Stop the other programs, or measure on a dedicated machine; `h123 doctor` shows its load.",
    reads: &[Table::Monitor],
    ..check("other_work", judge)
};

/// The kernel, its threads and an idle desktop take up to this share of all cores' time.
const ALLOWED_SHARE: f64 = 0.05;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let others = |cores: &crate::monitor::CoreFacts| cores.busy_ns.saturating_sub(cores.known_ns);
    cores::share(context, ALLOWED_SHARE, others, "went to other programs")
}

#[cfg(test)]
mod tests {
    use model::monitor::{Quantity, SubjectKind};
    use model::variant::Variant;

    use super::super::cores::bench::with_core;
    use crate::fixtures::{Bench, caveats, passes, silent};

    #[test]
    fn an_idle_machine_passes() {
        passes("other_work", &with_core(Quantity::CpuUser, 400));
        let server = with_core(Quantity::CpuUser, 5_000).with_reading(
            Some("server"),
            SubjectKind::Process,
            Quantity::CpuUser,
            4_900_000_000,
        );
        passes("other_work", &server);
        silent("other_work", &Bench::closed(&[Variant::H1]));
    }

    #[test]
    fn somebody_elses_work_is_a_caveat() {
        caveats(&with_core(Quantity::CpuUser, 1_000), &["other_work"]);
    }
}
