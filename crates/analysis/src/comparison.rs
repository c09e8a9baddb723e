//! Comparisons of cells with the baseline, and their verdicts.
//!
//! **Pairs.** The runs of two cells are paired by block, for a block's runs lie close in time and share the
//! machine's state. With dᵢ = ln(run's median of the cell / run's median of the baseline):
//!
//! - the *ratio* is the ratio of the medians over all runs; its interval is exp(mean d ± t s/√n), Student's t on the
//!   log ratios, widened to hold the point (Georges 2007, section 3.4; Kalibera and Jones 2013, section 7, for why a
//!   ratio with an interval and not a bare test);
//! - the *difference* is that of the medians; its interval is Student's t on the paired differences;
//! - *p* is that of the permutation test of signs where its smallest possible p can pass the correction (with 5
//!   pairs it cannot go below 0.0625), else of the t statistic on d.
//!
//! Where runs were added until the interval was narrow enough, errors are widened ([`statistics::widening`]) and p is
//! that of the t statistic, for signs know nothing of why a study ended.
//!
//! **Family.** The primary metric's comparisons of the study. Two claims are made about them, that there is a difference and
//! that there is none that matters; the p-values of each are corrected by Holm, so that the chance of any false *better* or
//! *worse* is at most 5 %, and that of any false *equivalent* too. All other metrics are exploratory: their intervals and
//! verdicts are uncorrected and they have no p.
//!
//! **Verdict**, the first that holds:
//!
//! 1. *invalid*: a cell is failed, unsupported or invalid, or fewer than two blocks have both;
//! 2. *equivalent*: the whole interval lies within 1/(1 + margin) … 1 + margin, and in the family the corrected p of the two
//!    one-sided tests (TOST; Schuirmann 1987) is below 0.05. Symmetric, so that exchanging the arms does not change it.
//!    It wins over *better* and *worse*: a difference that is certainly too small to matter is reported as such, however
//!    significant;
//! 3. *better* or *worse*: the interval excludes 1 and, in the family, the corrected p is below 0.05. This says
//!    that the difference is beyond chance; whether it is also beyond the margin, the interval tells;
//! 4. *no difference shown*.

use std::collections::BTreeMap;

use model::plan::{Cell, Level, Plan};

use crate::distribution::Distribution;
use crate::estimate::with_interval;
use crate::metrics::{Better, METRICS, Metric};
use crate::number;
use crate::run::RunSummary;
use crate::statistics::{self, CONFIDENCE, Mean, SIGNIFICANCE};
use crate::summary::{CellStatus, CellSummary, Comparison, Estimate, Verdict};

/// The chance with which a difference of [`Comparison::smallest_showable_ratio`] would have been found.
pub const POWER: f64 = 0.8;

/// One cell with its successful runs, as comparisons need it.
#[derive(Clone, Copy)]
pub struct Arm<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// What is known of it.
    pub summary: &'a CellSummary,
    /// Its runs that succeeded.
    pub runs: &'a [&'a RunSummary],
}

/// The cell that is alike in all levels but has the baseline's; `None` for the baseline's own cells.
pub fn baseline_of<'a>(plan: &'a Plan, cell: &Cell) -> Option<&'a Cell> {
    let factor = plan.baseline.factor.as_str();
    if cell.level(factor)? == plan.baseline.value {
        return None;
    }
    plan.cells.iter().find(|candidate| {
        candidate.level(factor) == Some(plan.baseline.value.as_str())
            && candidate.levels.len() == cell.levels.len()
            && cell.levels.iter().all(|l| l.factor == factor || candidate.level(&l.factor) == Some(&l.value))
    })
}

/// Every comparison of the study: cell by cell, the primary metric first. `arms` are in the order of the plan.
pub fn compare_all(plan: &Plan, arms: &[Arm<'_>]) -> Vec<Comparison> {
    let pairs: Vec<(Arm<'_>, Arm<'_>)> = arms
        .iter()
        .filter_map(|arm| {
            let baseline = baseline_of(plan, arm.cell)?;
            Some((*arm, *arms.iter().find(|candidate| candidate.cell.cell == baseline.cell)?))
        })
        .collect();
    let family = pairs
        .iter()
        .filter(|(arm, baseline)| {
            obstacles(plan, &plan.metric, arm, baseline).is_empty()
                && Pairs::of(plan, &plan.metric, arm, baseline).log_mean.is_some()
        })
        .count();
    let mut comparisons = Vec::new();
    for (arm, baseline) in &pairs {
        comparisons.push(primary(plan, arm, baseline, family));
        for metric in METRICS.iter().filter(|m| m.name != plan.metric && m.better != Better::Neither) {
            comparisons.extend(exploratory(plan, metric, arm, baseline));
        }
    }
    correct(&plan.metric, plan.margin_share, &mut comparisons);
    comparisons
}

/// The p-values of the family's two claims, after Holm's correction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claims {
    /// There is a difference.
    pub p_different: f64,
    /// There is none that matters.
    pub p_equivalent: f64,
}

/// The verdict on an interval of ratios; `claims` is `None` outside of the family.
pub fn judge(ratio: &Estimate, better: Better, margin_share: f64, claims: Option<Claims>) -> Verdict {
    let (Some(low), Some(high)) = (ratio.low, ratio.high) else { return Verdict::NoDifferenceShown };
    let is_inside = low >= 1.0 / (1.0 + margin_share) && high <= 1.0 + margin_share;
    if is_inside && claims.is_none_or(|claims| claims.p_equivalent < SIGNIFICANCE) {
        return Verdict::Equivalent;
    }
    let is_apart = low > 1.0 || high < 1.0;
    let beyond_chance = is_apart && claims.is_none_or(|claims| claims.p_different < SIGNIFICANCE);
    match (beyond_chance, better) {
        (false, _) | (true, Better::Neither) => Verdict::NoDifferenceShown,
        (true, Better::Lower) if high < 1.0 => Verdict::Better,
        (true, Better::Higher) if low > 1.0 => Verdict::Better,
        (true, _) => Verdict::Worse,
    }
}

/// The ratio of a metric between two cells, with its interval, by what their blocks have in common.
pub(crate) fn ratio_of(plan: &Plan, metric: &str, arm: &Arm<'_>, other: &Arm<'_>) -> Option<Estimate> {
    Pairs::of(plan, metric, arm, other).ratio()
}

/// The primary metric's comparison, its p-values not yet corrected.
fn primary(plan: &Plan, arm: &Arm<'_>, baseline: &Arm<'_>, family: usize) -> Comparison {
    let pairs = Pairs::of(plan, &plan.metric, arm, baseline);
    let because = obstacles(plan, &plan.metric, arm, baseline);
    let mut comparison = pairs.comparison(plan, arm, baseline, SIGNIFICANCE / number::count(family.max(1)));
    comparison.primary = true;
    if because.is_empty() {
        comparison.p_adjusted = pairs.p_different(family, plan.seed);
        comparison.p_equivalent_adjusted =
            pairs.log_mean.map(|mean| mean.p_within(plan.margin_share.ln_1p()));
    }
    comparison.verdict = pairs.verdict_or(because, || Verdict::NoDifferenceShown);
    comparison
}

fn exploratory(plan: &Plan, metric: &Metric, arm: &Arm<'_>, baseline: &Arm<'_>) -> Option<Comparison> {
    let pairs = Pairs::of(plan, metric.name, arm, baseline);
    let mut comparison = pairs.comparison(plan, arm, baseline, SIGNIFICANCE);
    let ratio = comparison.ratio?;
    let because = obstacles(plan, metric.name, arm, baseline);
    comparison.verdict = pairs.verdict_or(because, || judge(&ratio, metric.better, plan.margin_share, None));
    Some(comparison)
}

/// Holm's correction over the family, and the verdicts that follow from it: of comparisons of `metric` that have p-values.
pub(crate) fn correct(metric: &str, margin_share: f64, comparisons: &mut [Comparison]) {
    let better = crate::metrics::find(metric).map_or(Better::Neither, |metric| metric.better);
    let mut family: Vec<&mut Comparison> = comparisons
        .iter_mut()
        .filter(|comparison| comparison.p_adjusted.is_some() && comparison.p_equivalent_adjusted.is_some())
        .collect();
    let raw = |p: fn(&Comparison) -> Option<f64>| family.iter().filter_map(|c| p(c)).collect::<Vec<f64>>();
    let different = statistics::holm(&raw(|comparison| comparison.p_adjusted));
    let equivalent = statistics::holm(&raw(|comparison| comparison.p_equivalent_adjusted));
    for (comparison, (p_different, p_equivalent)) in
        family.iter_mut().zip(different.into_iter().zip(equivalent))
    {
        comparison.p_adjusted = Some(p_different);
        comparison.p_equivalent_adjusted = Some(p_equivalent);
        if let Some(ratio) = &comparison.ratio {
            let claims = Claims { p_different, p_equivalent };
            comparison.verdict = judge(ratio, better, margin_share, Some(claims));
        }
    }
}

/// Why nothing may be concluded, whatever the numbers.
fn obstacles(plan: &Plan, metric: &str, arm: &Arm<'_>, baseline: &Arm<'_>) -> Vec<String> {
    let mut because = Vec::new();
    match crate::metrics::find(metric) {
        None => because.push(format!("no metric is named `{metric}`")),
        Some(known) if known.better == Better::Neither => {
            because.push(format!("neither more nor less of `{metric}` is better"));
        }
        Some(_) => {}
    }
    let level = plan.baseline.factor.as_str();
    for side in [arm, baseline] {
        let name = side.cell.level(level).unwrap_or("the cell");
        because.extend(obstacles_of(name, metric, side.summary));
    }
    because
}

/// Why nothing may be concluded from a cell's metric, by the name that reasons give the cell.
pub(crate) fn obstacles_of(name: &str, metric: &str, cell: &CellSummary) -> Vec<String> {
    let mut because: Vec<String> = cell.not_reported.get(metric).cloned().into_iter().collect();
    let reasons = match cell.status {
        CellStatus::Valid | CellStatus::Caveat => return because,
        CellStatus::Invalid => format!("invalid: {}", crate::checks::invalidating(cell)),
        CellStatus::Failed => format!("failed: {}", cell.reasons.join("; ")),
        CellStatus::Unsupported => format!("unsupported: {}", cell.reasons.join("; ")),
    };
    because.push(format!("{name} is {reasons}"));
    because
}

/// The runs of two cells that share a block.
struct Pairs {
    metric: String,
    /// Medians over all runs.
    medians: Option<(f64, f64)>,
    differences: Vec<f64>,
    /// Empty where a value is not positive.
    log_ratios: Vec<f64>,
    /// Their mean, its error widened where runs were added until it was small.
    log_mean: Option<Mean>,
    widening: f64,
    is_until_precise: bool,
}

impl Pairs {
    fn of(plan: &Plan, metric: &str, arm: &Arm<'_>, baseline: &Arm<'_>) -> Pairs {
        let (log_ratios, differences) = paired(metric, arm.runs, baseline.runs);
        let is_until_precise = plan.repetition.is_some();
        let widening = statistics::widening(differences.len(), is_until_precise);
        Pairs {
            metric: metric.to_owned(),
            medians: pooled(metric, arm.runs).zip(pooled(metric, baseline.runs)),
            log_mean: statistics::mean(&log_ratios).map(|mean| mean.widened(widening)),
            differences,
            log_ratios,
            widening,
            is_until_precise,
        }
    }

    fn ratio(&self) -> Option<Estimate> {
        let (own, base) = self.medians.filter(|(own, base)| *own > 0.0 && *base > 0.0)?;
        Some(with_interval(own / base, self.log_mean.map(|mean| mean.exponential_interval(CONFIDENCE))))
    }

    fn difference(&self) -> Option<Estimate> {
        let (own, base) = self.medians?;
        let interval = statistics::mean(&self.differences).map(|mean| {
            let half = mean.widened(self.widening).half_width(CONFIDENCE);
            (mean.mean - half, mean.mean + half)
        });
        Some(with_interval(own - base, interval))
    }

    fn p_different(&self, family: usize, seed: u64) -> Option<f64> {
        let mean = self.log_mean?;
        let smallest = statistics::smallest_sign_flip_p(self.log_ratios.len());
        let can_pass = smallest * number::count(family) < SIGNIFICANCE;
        if mean.error > 0.0 && can_pass && !self.is_until_precise {
            return Some(statistics::sign_flip(&self.log_ratios, seed));
        }
        Some(mean.p_value())
    }

    fn verdict_or(&self, mut because: Vec<String>, verdict: impl Fn() -> Verdict) -> Verdict {
        if because.is_empty() && self.medians.is_none() {
            because.push(format!("no run of one of the two has `{}`", self.metric));
        } else if because.is_empty() && self.log_mean.is_none() {
            because.push(match self.differences.len() {
                0 | 1 => "fewer than two blocks hold a run of both that succeeded".to_owned(),
                _ => "a value is 0, which has no ratio".to_owned(),
            });
        }
        if because.is_empty() { verdict() } else { Verdict::Invalid { because } }
    }

    fn comparison(&self, plan: &Plan, arm: &Arm<'_>, baseline: &Arm<'_>, significance: f64) -> Comparison {
        let is_factor = |level: &&Level| level.factor == plan.baseline.factor;
        Comparison {
            metric: self.metric.clone(),
            primary: false,
            level: arm.cell.levels.iter().find(is_factor).unwrap_or(&plan.baseline).clone(),
            context: arm.cell.levels.iter().filter(|level| !is_factor(level)).cloned().collect(),
            cell: arm.cell.cell,
            baseline_cell: baseline.cell.cell,
            pairs: number::small(self.differences.len()),
            ratio: self.ratio(),
            difference: self.difference(),
            p_adjusted: None,
            p_equivalent_adjusted: None,
            smallest_showable_ratio: self.log_mean.and_then(|mean| smallest_showable(&mean, significance)),
            verdict: Verdict::NoDifferenceShown,
        }
    }
}

/// The logarithms of the ratios, and the differences, of a metric's values in runs of the same block; no logarithms where a
/// value is not positive.
pub(crate) fn paired(metric: &str, own: &[&RunSummary], base: &[&RunSummary]) -> (Vec<f64>, Vec<f64>) {
    let base: BTreeMap<u32, f64> =
        base.iter().filter_map(|run| Some((run.block, run.value(metric)?))).collect();
    let pairs: Vec<(f64, f64)> =
        own.iter().filter_map(|run| Some((run.value(metric)?, *base.get(&run.block)?))).collect();
    let positive = pairs.iter().all(|(a, b)| *a > 0.0 && *b > 0.0);
    let log_ratios = if positive { pairs.iter().map(|(a, b)| (a / b).ln()).collect() } else { Vec::new() };
    (log_ratios, pairs.iter().map(|(a, b)| a - b).collect())
}

/// The smallest ratio above 1 that a two-sided test at `significance` would have shown with a power of 80 %:
/// exp((t(1 − significance/2) + t(0.8)) s/√n), the usual approximation to the non-central t. In the family the
/// significance is that of Holm's strictest step.
pub(crate) fn smallest_showable(log_mean: &Mean, significance: f64) -> Option<f64> {
    let steps = log_mean.quantile(1.0 - significance / 2.0) + log_mean.quantile(POWER);
    let ratio = if log_mean.error == 0.0 { 1.0 } else { (steps * log_mean.error).exp() };
    ratio.is_finite().then_some(ratio)
}

/// The median of all values; of a share, all hits of all that could be.
fn pooled(metric: &str, runs: &[&RunSummary]) -> Option<f64> {
    let shares = || runs.iter().filter_map(|run| run.shares.get(metric));
    let (hits, all) = shares().fold((0, 0), |sum, share| (sum.0 + share.hits, sum.1 + share.all));
    if all > 0 {
        return Some(number::float(hits) / number::float(all));
    }
    Distribution::merged(runs.iter().filter_map(|run| run.metrics.get(metric))).median()
}
