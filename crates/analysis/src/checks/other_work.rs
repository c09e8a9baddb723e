//! Nobody else worked on the machine.

use super::{Check, Context, Finding, cores};

pub(super) const CHECK: Check = Check {
    name: "other_work",
    why: "Whatever else runs takes cores, caches and memory from the study, at times of its own.",
    remedy: "End the other programs, or measure on a machine of its own; `h123 doctor` shows its load.",
    judge,
};

/// Of all cores' time: what the kernel itself, its threads and a desktop at rest take.
const ALLOWED_SHARE: f64 = 0.05;

/// Time of all cores in programs that are neither client nor server nor the tool, in the median run.
fn judge(context: &Context<'_>) -> Option<Finding> {
    let others = |cores: &crate::monitor::CoreFacts| cores.busy_ns.saturating_sub(cores.known_ns);
    cores::share(context, ALLOWED_SHARE, others, "was other programs'")
}

#[cfg(test)]
mod tests {
    use model::monitor::{Quantity, SubjectKind};
    use model::variant::Variant;

    use super::super::cores::bench::with_core;
    use crate::fixtures::{Bench, caveats, passes, silent};

    #[test]
    fn a_machine_of_its_own_passes() {
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
