//! How many further runs would decide a comparison that shows no difference.
//!
//! The study could detect [`Comparison::smallest_showable_ratio`] with a probability of 80 %. The logarithm
//! of this ratio shrinks with Student's quantiles and the square root of the number of pairs. If the
//! measured ratio is the true one, the comparison is decided as soon as the study could detect the larger of
//! two distances: that from 1 (then it is *better* or *worse*), and that from the margin (then it is
//! *equivalent*).

use model::number::{count, float};
use model::plan::Plan;

use crate::comparison::POWER;
use crate::statistics::{SIGNIFICANCE, student_quantile};
use crate::summary::{Comparison, Summary, Verdict};

/// More runs than this are not a plan but a hint that the network or the machine is too noisy.
pub const MOST_FURTHER: u32 = 1_000;

/// Further runs of each cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FurtherRuns {
    /// How many, at most [`MOST_FURTHER`] + 1.
    pub runs: u32,
    /// Their time, at the pace of the stored runs or, without any, at the expected one.
    pub expected_ns: u64,
}

/// The further runs that would decide a comparison with a probability of 80 %; `None` if it has a verdict
/// or no interval.
pub fn further_runs(plan: &Plan, summary: &Summary, comparison: &Comparison) -> Option<FurtherRuns> {
    if comparison.verdict != Verdict::NoDifferenceShown || comparison.pairs < 2 {
        return None;
    }
    let showable = comparison.smallest_showable_ratio?.ln().abs();
    let measured = comparison.ratio?.value.ln().abs();
    let target = measured.max((summary.margin_share.ln_1p() - measured).abs());
    let family = summary.comparisons.iter().filter(|c| c.primary && c.p_adjusted.is_some()).count();
    let significance = if comparison.primary { SIGNIFICANCE / count(family.max(1)) } else { SIGNIFICANCE };
    let error = |pairs: u32| {
        let freedom = pairs as usize - 1;
        let steps = student_quantile(freedom, 1.0 - significance / 2.0) + student_quantile(freedom, POWER);
        steps / f64::from(pairs).sqrt()
    };
    let wanted_error = target * error(comparison.pairs) / showable;
    if !wanted_error.is_finite() {
        return None;
    }
    // The detectable difference falls with each pair, so half of the interval is ruled out at a time.
    let (mut least, mut most) = (1, MOST_FURTHER + 1);
    while least < most {
        let middle = u32::midpoint(least, most);
        if error(comparison.pairs + middle) <= wanted_error {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    let runs = least;
    Some(FurtherRuns { runs, expected_ns: block_ns(plan, summary).saturating_mul(u64::from(runs)) })
}

/// The runs that would decide every open comparison of the primary metric that can be decided.
pub fn further_runs_of_all(plan: &Plan, summary: &Summary) -> Option<FurtherRuns> {
    let primary = summary.comparisons.iter().filter(|comparison| comparison.primary);
    let wanted = primary.filter_map(|comparison| further_runs(plan, summary, comparison));
    wanted.filter(|further| further.runs <= MOST_FURTHER).max_by_key(|further| further.runs)
}

/// The time of one block.
fn block_ns(plan: &Plan, summary: &Summary) -> u64 {
    let expected_ns = plan.run_cells().map(|cell| plan.expected_run_ns(cell.cell)).sum();
    let (Some(measured), stored) = (summary.measured, u64::from(summary.runs_stored)) else {
        return expected_ns;
    };
    let took_ns = measured.ended_unix_ns.saturating_sub(measured.began_unix_ns);
    let runs = plan.runs_per_block() as u64;
    let paced_ns = took_ns.checked_div(stored).unwrap_or(0).saturating_mul(runs);
    // A study that was resumed on another day has no pace.
    let is_plausible = float(paced_ns) < 5.0 * float(expected_ns.max(1));
    if paced_ns > 0 && is_plausible { paced_ns } else { expected_ns }
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use super::*;
    use crate::fixtures::Bench;
    use crate::summary::Estimate;

    fn open(ratio: f64, showable: f64) -> (Plan, Summary) {
        let bench = Bench::page(&[Variant::H1s, Variant::H2]);
        let mut summary = bench.summary();
        summary.margin_share = 0.03;
        let comparison = &mut summary.comparisons[0];
        comparison.verdict = Verdict::NoDifferenceShown;
        comparison.ratio = Some(Estimate { value: ratio, low: None, high: None });
        comparison.smallest_showable_ratio = Some(showable);
        comparison.pairs = 5;
        (bench.plan, summary)
    }

    fn runs(ratio: f64, showable: f64) -> Option<u32> {
        let (plan, summary) = open(ratio, showable);
        further_runs(&plan, &summary, &summary.comparisons[0]).map(|further| further.runs)
    }

    #[test]
    fn more_pairs_detect_half_of_the_difference() {
        assert_eq!(
            runs(1.2_f64.sqrt(), 1.2),
            Some(9),
            "(2.160 + 0.870) / √14 is below (2.776 + 0.941) / √5 / 2"
        );
        assert_eq!(runs(1.0 / 1.2_f64.sqrt(), 1.2), Some(9), "a ratio below 1 is as far from it");
        // No difference: to show that it is within 3 %.
        assert_eq!(runs(1.0, 1.03_f64.powi(3)), Some(23), "28 pairs");
        assert_eq!(runs(1.5, 1.2), Some(1), "more than enough for it, but not decided");
        assert_eq!(runs(1.0, 50.0), Some(MOST_FURTHER + 1));
        assert_eq!(runs(1.0, f64::NAN), None);
    }

    #[test]
    fn only_open_comparisons_want_runs_and_the_largest_number_counts() {
        let (plan, mut summary) = open(1.2_f64.sqrt(), 1.2);
        let all = further_runs_of_all(&plan, &summary).unwrap();
        assert_eq!(all.runs, 9);
        assert_eq!(all.expected_ns % 9, 0);
        summary.comparisons[0].smallest_showable_ratio = Some(50.0);
        assert_eq!(further_runs_of_all(&plan, &summary), None, "no plan can decide it");
        summary.comparisons[0].verdict = Verdict::Better;
        assert_eq!(further_runs(&plan, &summary, &summary.comparisons[0]), None);
    }
}
