//! The interval is narrow enough for the question.

use super::{Check, Context, Finding, check, percent};
use crate::metrics::Values;
use crate::summary::{CellSummary, Estimate};

pub(super) const CHECK: Check = Check {
    measures: "half the width of the interval of the primary metric's median (or of the study's `statistic`), \
               as a share of its value",
    passes: "up to the margin, or up to the difference from the baseline if that is larger",
    caveat: "more",
    why: "An interval wider than the margin of interest can hide a difference that matters, and cannot rule \
          one out.",
    remedy: "Give the study more runs, or a `precision` and a `budget`, so that runs are added until the \
             interval is narrow enough.",
    ..check("precision", judge)
};

fn judge(context: &Context<'_>) -> Option<Finding> {
    let metric = context.plan.metric.as_str();
    let own = compared_value(context.own.summary, metric)?;
    let (low, high) = (own.low?, own.high?);
    if own.value <= 0.0 {
        return None;
    }
    let half_share = (high - low) / 2.0 / own.value;
    let other = context.baseline.as_ref().and_then(|side| compared_value(side.summary, metric));
    let other = other.filter(|other| other.value > 0.0);
    let apart = other.map_or(0.0, |other| (own.value / other.value - 1.0).abs());
    let allowed = context.plan.margin_share.max(apart);
    let measured = match half_share {
        known if known < 1.0 => format!("known to \u{b1}{}", percent(known)),
        _ => "known to no better than \u{b1}100%".to_owned(),
    };
    let threshold = if apart > context.plan.margin_share {
        format!("{}, the difference from the baseline", percent(apart))
    } else {
        format!("{}, the margin of interest", percent(allowed))
    };
    Some(Finding::pass_or_caveat(half_share <= allowed, measured, threshold))
}

/// The value of a cell that verdicts are about: the study's statistic, or the share.
fn compared_value(cell: &CellSummary, metric: &str) -> Option<Estimate> {
    let is_share =
        crate::metrics::find(metric).is_some_and(|metric| matches!(metric.values, Values::Share(_)));
    cell.metrics.get(metric).map(|found| if is_share { found.mean } else { found.compared() })
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, passes, silent};
    use crate::summary::CheckOutcome;

    /// Runs whose times differ by this many percent from each other.
    fn scattered(variants: &[Variant], percent: u64) -> Bench {
        let mut bench = Bench::page(variants);
        for record in &mut bench.records {
            let percent = percent * u64::from(record.block % 3);
            for sample in &mut record.samples {
                sample.done_ns = sample.done_ns.map(|ns| ns + ns * percent / 100);
            }
        }
        bench
    }

    fn result(bench: &Bench, cell: usize) -> CheckOutcome {
        let summary = bench.summary();
        summary.cells[cell].validity.iter().find(|check| check.check == "precision").unwrap().result
    }

    #[test]
    fn a_narrow_interval_passes() {
        passes("precision", &Bench::page(&[Variant::H1s, Variant::H2]));
    }

    #[test]
    fn a_wide_one_is_caveated_unless_the_difference_is_larger() {
        assert_eq!(result(&scattered(&[Variant::H1s], 10), 0), CheckOutcome::Caveat);
        let both = scattered(&[Variant::H3, Variant::H1s], 4);
        assert_eq!(result(&both, 0), CheckOutcome::Caveat);
        assert_eq!(result(&both, 1), CheckOutcome::Pass, "HTTP/1.1 takes half as long again");
    }

    #[test]
    fn without_an_interval_there_is_nothing_to_judge() {
        let mut bench = Bench::page(&[Variant::H1s]);
        bench.records.truncate(1);
        silent("precision", &bench);
    }
}
