//! The machine did not run out of CPU time during the study.

use model::number;

use super::{Check, Context, Finding, RunSummary, Table, check, percent, percent_beside};
use crate::distribution::Distribution;

pub(super) const CHECK: Check = Check {
    measures: "how much more of all cores' time the hypervisor took in the later half of the cell's runs than in the \
               earlier half (medians); 4 or more runs",
    passes: "margin",
    caveat: "more",
    why: "Burstable virtual machines may use whole cores until their CPU credits are spent, and a fraction of them from \
          then on. Runs before and after that moment were made on different machines.",
    remedy: "Measure on a machine with dedicated cores, or one whose CPU time is not limited.",
    reads: &[Table::Monitor],
    ..check("cpu_credits", judge)
};

/// Fewer runs have no halves.
const LEAST_RUNS: usize = 4;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let stolen = |run: &RunSummary| {
        let cores = run.monitor?.cores;
        (cores.all_ns > 0).then(|| number::float(cores.steal_ns) / number::float(cores.all_ns))
    };
    let mut shares: Vec<(u32, f64)> =
        context.own.ok().filter_map(|run| Some((run.run, stolen(run)?))).collect();
    if shares.len() < LEAST_RUNS {
        return None;
    }
    shares.sort_by_key(|(run, _)| *run);
    let (early, late) = shares.split_at(shares.len() / 2);
    let median =
        |half: &[(u32, f64)]| half.iter().map(|(_, share)| *share).collect::<Distribution>().median();
    let (early, late) = (median(early)?, median(late)?);
    let margin = context.plan.margin_share;
    let share = |share| percent_beside(share, &[margin]);
    let measured = format!(
        "{} of all cores' time stolen in the earlier half of the runs, {} in the later",
        share(early),
        share(late)
    );
    Some(Finding::pass_or_caveat(
        late - early <= margin,
        measured,
        format!("at most {} more", percent(margin)),
    ))
}

#[cfg(test)]
mod tests {
    use model::monitor::{Quantity, Reading, Subject, SubjectKind};
    use model::variant::Variant;

    use super::super::cores::bench::with_core;
    use crate::fixtures::{Bench, passes, silent};
    use crate::summary::CheckOutcome;

    /// A core that is idle for 9 s in each run, and stolen for these times.
    fn stolen(ms: [u64; 5]) -> Bench {
        let mut bench = with_core(Quantity::CpuUser, 0);
        for (record, ms) in bench.records.iter_mut().zip(ms) {
            let subject = Subject { node: None, kind: SubjectKind::Core, name: "core".into(), id: 0 };
            let at_ns = record.readings.len() as u64;
            record.readings.push(Reading {
                at_ns,
                subject,
                quantity: Quantity::CpuSteal,
                value: ms * 1_000_000,
            });
        }
        bench
    }

    fn outcome(bench: &Bench) -> CheckOutcome {
        let summary = bench.summary();
        summary.cells[0].validity.iter().find(|check| check.check == "cpu_credits").unwrap().result
    }

    #[test]
    fn a_constant_share_passes_and_few_runs_are_not_judged() {
        passes("cpu_credits", &stolen([0; 5]));
        passes("cpu_credits", &stolen([1000; 5]));
        silent("cpu_credits", &Bench::closed(&[Variant::H1]));
        let mut few = stolen([0, 0, 5000, 5000, 5000]);
        few.records.truncate(3);
        silent("cpu_credits", &few);
    }

    #[test]
    fn more_from_some_run_on_is_a_caveat() {
        assert_eq!(outcome(&stolen([0, 0, 3000, 3000, 3000])), CheckOutcome::Caveat);
        // The other way round, another machine ended.
        assert_eq!(outcome(&stolen([3000, 3000, 0, 0, 0])), CheckOutcome::Pass);
    }
}
