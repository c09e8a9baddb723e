//! No other programs worked on the machine.

use super::{Check, Context, Finding, Table, check, cores};

pub(super) const CHECK: Check = Check {
    measures: "the share of all cores' time in programs other than client, server and h123, in the median \
               run and in each run, minus one tick per core",
    passes: "5 %, in at least nine of ten runs",
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

    #[test]
    fn work_in_a_minority_of_runs_is_a_caveat_wherever_they_are() {
        for disturbed in 0..5 {
            let mut bench = with_core(Quantity::CpuUser, 400);
            for reading in &mut bench.records[disturbed].readings {
                if reading.quantity == Quantity::CpuUser {
                    reading.value = 3_000_000_000;
                }
            }
            caveats(&bench, &["other_work"]);
            let summary = bench.summary();
            let found = summary.cells[0].validity.iter().find(|check| check.check == "other_work").unwrap();
            let expected = "4.15% of all cores' time went to other programs in the median run, beyond 5% in 1 of 5 runs (up to 24.9%)";
            assert_eq!(found.measured, expected);
        }
    }
}
