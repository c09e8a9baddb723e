//! The cell's values do not drift while the study runs.
//!
//! A straight line is fitted to the logarithms of the runs' values over the blocks, by least squares. A
//! machine that warms up or fills a disk tilts it. Every block holds every cell, so a drift affects both
//! sides of a comparison and preserves its ratio. But the cell's own median then depends on how long the
//! study took, and the drift may differ between cells. (On the effects of order and environment: Mytkowicz,
//! Diwan, Hauswirth and Sweeney, *Producing wrong data without doing anything obviously wrong!*, ASPLOS
//! 2009.)

use model::number;

use super::{Check, Context, Finding, check, percent};
use crate::statistics;

pub(super) const CHECK: Check = Check {
    measures: "the change of the primary metric from the first block to the last, by linear regression on \
               the logarithms of 5 or more runs",
    passes: "within the margin, or p of 0.01 or more",
    caveat: "more",
    why: "If values drift while the study runs, its numbers depend on how long it took, and on whatever \
          drifted.",
    remedy: "Look at the runs in their order (figure `runs`), find what changed on the machine, and run the \
             study again.",
    ..check("drift", judge)
};

/// Fewer runs lie on a straight line too often by chance.
const LEAST_RUNS: usize = 5;
/// The share of cells in which chance produces a slope that steep.
const CHANCE: f64 = 0.01;

fn judge(context: &Context<'_>) -> Option<Finding> {
    let values: Vec<(f64, f64)> = context
        .own
        .ok()
        .filter_map(|run| Some((f64::from(run.block), run.compared(&context.plan.metric, context.plan)?)))
        .collect();
    if values.len() < LEAST_RUNS || values.iter().any(|(_, value)| *value <= 0.0) {
        return None;
    }
    let (first, last) =
        values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(first, last), (block, _)| {
            (first.min(*block), last.max(*block))
        });
    let points: Vec<(f64, f64)> = values.iter().map(|(block, value)| (*block, value.ln())).collect();
    let slope = statistics::slope(&points)?;
    let change = (slope.mean * (last - first)).exp_m1();
    let p = slope.p_value();
    let allowed = context.plan.margin_share;
    let is_beyond = change.abs().max((1.0 / (1.0 + change) - 1.0).abs()) > allowed;
    let is_shown = p < CHANCE && is_beyond;
    let sign = if change < 0.0 { "−" } else { "+" };
    let (size, blocks) = (percent(change.abs()), number::nearest(last - first) + 1);
    let measured = format!("{sign}{size} over {blocks} blocks ({})", statistics::format_p(p));
    let threshold = format!("{} where p is below {CHANCE}", percent(allowed));
    Some(Finding::pass_or_caveat(!is_shown, measured, threshold))
}

#[cfg(test)]
mod tests {
    use model::variant::Variant;

    use crate::fixtures::{Bench, caveats, passes, silent};

    /// Loads that take this many percent longer with each block.
    fn drifting(percent_per_block: u64) -> Bench {
        let mut bench = Bench::page(&[Variant::H2]);
        for record in &mut bench.records {
            for sample in &mut record.samples {
                let longer = |ns: u64| ns + ns / 100 * percent_per_block * u64::from(record.block);
                sample.done_ns = sample.done_ns.map(longer);
            }
        }
        bench
    }

    #[test]
    fn loads_that_take_longer_and_longer_are_a_caveat() {
        caveats(&drifting(3), &["drift", "precision"]);
    }

    #[test]
    fn noise_and_a_drift_within_the_margin_pass() {
        passes("drift", &drifting(0));
        let mut slight = drifting(1);
        slight.plan.margin_share = 0.1;
        passes("drift", &slight);
    }

    #[test]
    fn four_runs_show_no_drift() {
        let mut bench = drifting(3);
        bench.records.pop();
        silent("drift", &bench);
    }
}
