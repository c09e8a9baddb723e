//! Comparisons of cells with the baseline, and their verdicts.
//!
//! **Pairs.** The runs of two cells are paired by block, because the runs of a block are close in time and
//! share the state of the machine. The value of a run is the study's statistic of its values, the median
//! unless the study names another. With dᵢ = ln(value of the cell's run / value of the baseline's run):
//!
//! - the *ratio* is the ratio of the statistics over all runs. Its interval is exp(mean d ± t s/√n),
//!   Student's t on the log ratios, widened to contain the point (Georges 2007, section 3.4; on ratios with
//!   intervals instead of bare tests: Kalibera and Jones 2013, section 7);
//! - the *difference* is the difference of the statistics. Its interval is Student's t on the paired
//!   differences;
//! - *p* comes from the sign permutation test if its smallest possible p can pass the correction (with 5
//!   pairs it cannot be less than 0.0625), and otherwise from the t statistic on d.
//!
//! If runs were added until the interval was narrow enough, errors are widened ([`statistics::widening`]) and
//! p comes from the t statistic, because signs do not account for the stopping rule.
//!
//! **Family.** The family is all planned comparisons of the primary metric, also those of invalid and failed
//! cells: otherwise a verdict would depend on whether a neighbour is invalid. An invalid comparison keeps its
//! p in the correction, and one without data has p = 1; neither is reported. Only what is unsupported or not
//! reported is not tested. Two hypotheses are tested for each: a difference exists, and no difference that
//! matters exists. The p-values of each hypothesis are corrected by Holm's method, so that the probability of
//! any false *better* or *worse* is at most 5 %, and so is that of any false *equivalent*. All other metrics
//! are exploratory: their intervals and verdicts are uncorrected, and they have no p.
//!
//! **Verdict**, the first that applies:
//!
//! 1. *invalid*: a cell is failed, unsupported or invalid, or fewer than two blocks have both cells;
//! 2. *equivalent*: the whole interval lies within 1/(1 + margin) … 1 + margin and, in the family, the
//!    corrected p of the two one-sided tests (TOST; Schuirmann 1987) is below 0.05. The range is symmetric,
//!    so that exchanging the cells does not change the verdict. It comes before *better* and *worse*: a
//!    difference that is shown to be too small to matter is reported as such, even if it is significant;
//! 3. *better* or *worse*: the interval excludes 1 and, in the family, the corrected p is below 0.05. The
//!    difference is then significant. The interval shows whether it also exceeds the margin;
//! 4. *no difference shown*.

use std::collections::BTreeMap;

use model::number;
use model::plan::{Cell, Level, Plan};

use crate::distribution::Distribution;
use crate::estimate::{Statistic, with_interval};
use crate::metrics::{self, Better, Metric};
use crate::run::RunSummary;
use crate::statistics::{self, CONFIDENCE, Mean, SIGNIFICANCE};
use crate::summary::{CellStatus, CellSummary, Comparison, Estimate, Verdict};

/// The probability of detecting a difference of [`Comparison::smallest_showable_ratio`].
pub const POWER: f64 = 0.8;
/// Why a comparison has no ratio.
pub(crate) const ZERO_VALUE: &str = "a value is 0, which has no ratio";

/// One cell with its successful runs.
#[derive(Clone, Copy)]
pub struct CellRuns<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Its values.
    pub summary: &'a CellSummary,
    /// Its runs that succeeded.
    pub runs: &'a [&'a RunSummary],
}

/// The cell with the baseline's level and otherwise equal levels; `None` for the baseline's own cells and for
/// client groups that only run beside others.
pub fn baseline_of<'a>(plan: &'a Plan, cell: &Cell) -> Option<&'a Cell> {
    let factor = plan.baseline.factor.as_str();
    if cell.level(factor)? == plan.baseline.value || cell.group.is_background {
        return None;
    }
    plan.cells.iter().find(|candidate| {
        !candidate.group.is_background
            && candidate.level(factor) == Some(plan.baseline.value.as_str())
            && candidate.levels.len() == cell.levels.len()
            && cell.levels.iter().all(|l| l.factor == factor || candidate.level(&l.factor) == Some(&l.value))
    })
}

/// Every comparison of the study: cell by cell, the primary metric first. `cells` are in the order of the
/// plan.
pub fn compare_all(plan: &Plan, cells: &[CellRuns<'_>]) -> Vec<Comparison> {
    let pairs: Vec<(CellRuns<'_>, CellRuns<'_>)> = cells
        .iter()
        .filter_map(|own| {
            let baseline = baseline_of(plan, own.cell)?;
            Some((*own, *cells.iter().find(|candidate| candidate.cell.cell == baseline.cell)?))
        })
        .collect();
    let is_member = |(own, baseline): &&(CellRuns<'_>, CellRuns<'_>)| {
        is_tested(&plan.metric, own.summary) && is_tested(&plan.metric, baseline.summary)
    };
    let family = pairs.iter().filter(is_member).count();
    let mut comparisons = Vec::new();
    let all = metrics::with_classes(&plan.classes);
    for pair in &pairs {
        let (own, baseline) = pair;
        let paired = PairedRuns::of(plan, &plan.metric, own, baseline);
        let p_different = |mean: Mean| paired.p_different(mean, family, plan);
        let because = obstacles(plan, &plan.metric, own, baseline);
        comparisons.push(paired.contrast.primary(
            because,
            (is_member(&pair), family),
            plan.margin_share,
            p_different,
        ));
        for (name, metric) in explored(&all, &plan.metric) {
            let contrast = PairedRuns::of(plan, name, own, baseline).contrast;
            let because = obstacles(plan, name, own, baseline);
            comparisons.extend(contrast.exploratory(because, metric, plan.margin_share));
        }
    }
    correct(&plan.metric, plan.margin_share, family, &mut comparisons);
    comparisons
}

/// The metrics besides the primary one that can be compared.
fn explored<'a>(
    all: &'a [(String, &'static Metric)],
    primary: &str,
) -> impl Iterator<Item = (&'a str, &'static Metric)> {
    all.iter()
        .filter(move |(name, metric)| name != primary && metric.better != Better::Neither)
        .map(|(name, metric)| (name.as_str(), *metric))
}

/// The p-values of the family's two hypotheses, after Holm's correction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdjustedP {
    /// There is a difference.
    pub different: f64,
    /// There is no difference that matters.
    pub equivalent: f64,
}

/// The verdict on an interval of ratios. `p` is `None` outside the family.
pub fn judge(ratio: &Estimate, better: Better, margin_share: f64, p: Option<AdjustedP>) -> Verdict {
    let (Some(low), Some(high)) = (ratio.low, ratio.high) else { return Verdict::NoDifferenceShown };
    let is_inside = low >= 1.0 / (1.0 + margin_share) && high <= 1.0 + margin_share;
    if is_inside && p.is_none_or(|p| p.equivalent < SIGNIFICANCE) {
        return Verdict::Equivalent;
    }
    let excludes_one = low > 1.0 || high < 1.0;
    let is_significant = excludes_one && p.is_none_or(|p| p.different < SIGNIFICANCE);
    match (is_significant, better) {
        (false, _) | (true, Better::Neither) => Verdict::NoDifferenceShown,
        (true, Better::Lower) if high < 1.0 => Verdict::Better,
        (true, Better::Higher) if low > 1.0 => Verdict::Better,
        (true, _) => Verdict::Worse,
    }
}

/// The ratio of a metric between two cells, with its interval over their common blocks.
pub(crate) fn ratio_of(
    plan: &Plan,
    metric: &str,
    own: &CellRuns<'_>,
    other: &CellRuns<'_>,
) -> Option<Estimate> {
    PairedRuns::of(plan, metric, own, other).contrast.ratio()
}

/// The ratio of a statistic of a metric between two cells, with its interval over their common blocks.
pub(crate) fn ratio_by(
    plan: &Plan,
    (metric, statistic): (&str, model::statistic::Statistic),
    own: &CellRuns<'_>,
    other: &CellRuns<'_>,
) -> Option<Estimate> {
    let statistic = Statistic::from(statistic);
    let pooled = |side: &CellRuns<'_>| {
        statistic.of(&Distribution::merged(side.runs.iter().filter_map(|run| run.metrics.get(metric))))
    };
    let (over, under) = pooled(own).zip(pooled(other)).filter(|(own, other)| *own > 0.0 && *other > 0.0)?;
    let (log_ratios, _) = paired_by(own.runs, other.runs, |run| statistic.of(run.metrics.get(metric)?));
    let widening = statistics::widening(log_ratios.len(), plan.repetition.is_some());
    let mean = statistics::mean(&log_ratios).map(|mean| mean.widened(widening));
    Some(with_interval(over / under, mean.map(|mean| mean.exponential_interval(CONFIDENCE))))
}

/// Whether the comparisons of a cell are members of the family: a fact of the plan and of what programs
/// support and report, not of the measurements.
pub(crate) fn is_tested(metric: &str, cell: &CellSummary) -> bool {
    metric_obstacles(metric).is_empty()
        && cell.status != CellStatus::Unsupported
        && !cell.not_reported.contains_key(metric)
}

/// Applies Holm's correction to the family: the comparisons of `metric` with p-values, and others without
/// data, which have p = 1. Sets the verdicts, except of invalid comparisons, which lose their p.
pub(crate) fn correct(metric: &str, margin_share: f64, family: usize, comparisons: &mut [Comparison]) {
    let better = crate::metrics::find(metric).map_or(Better::Neither, |metric| metric.better);
    let mut tested: Vec<&mut Comparison> = comparisons
        .iter_mut()
        .filter(|comparison| comparison.p_adjusted.is_some() && comparison.p_equivalent_adjusted.is_some())
        .collect();
    let raw = |p: fn(&Comparison) -> Option<f64>| {
        let mut all: Vec<f64> = tested.iter().filter_map(|comparison| p(comparison)).collect();
        all.resize(family.max(all.len()), 1.0);
        all
    };
    let different = statistics::holm(&raw(|comparison| comparison.p_adjusted));
    let equivalent = statistics::holm(&raw(|comparison| comparison.p_equivalent_adjusted));
    for (comparison, (p_different, p_equivalent)) in
        tested.iter_mut().zip(different.into_iter().zip(equivalent))
    {
        if matches!(comparison.verdict, Verdict::Invalid { .. }) {
            (comparison.p_adjusted, comparison.p_equivalent_adjusted) = (None, None);
            continue;
        }
        comparison.p_adjusted = Some(p_different);
        comparison.p_equivalent_adjusted = Some(p_equivalent);
        if let Some(ratio) = &comparison.ratio {
            let p = AdjustedP { different: p_different, equivalent: p_equivalent };
            comparison.verdict = judge(ratio, better, margin_share, Some(p));
        }
    }
}

/// Why nothing can be concluded from the comparison of two cells.
fn obstacles(plan: &Plan, metric: &str, own: &CellRuns<'_>, baseline: &CellRuns<'_>) -> Vec<String> {
    let mut because = metric_obstacles(metric);
    for side in [own, baseline] {
        let name = side.cell.level(&plan.baseline.factor).unwrap_or("the cell");
        because.extend(cell_obstacles(name, metric, side.summary));
    }
    because
}

/// Why a metric cannot be compared.
pub(crate) fn metric_obstacles(metric: &str) -> Vec<String> {
    match crate::metrics::find(metric) {
        None => vec![format!("`{metric}` is not a metric")],
        Some(known) if known.better == Better::Neither => {
            vec![format!("neither more nor less of `{metric}` is better")]
        }
        Some(_) => Vec::new(),
    }
}

/// Why nothing can be concluded from a cell's metric. `name` is the cell's name in the reasons.
pub(crate) fn cell_obstacles(name: &str, metric: &str, cell: &CellSummary) -> Vec<String> {
    let mut because: Vec<String> = cell.not_reported.get(metric).cloned().into_iter().collect();
    let reasons = match cell.status {
        CellStatus::Valid | CellStatus::Caveat => return because,
        CellStatus::Invalid => format!("invalid: {}", cell.invalidating()),
        CellStatus::NotMeasured => CellStatus::NotMeasured.name().to_owned(),
        CellStatus::Failed => format!("failed: {}", cell.reasons.join("; ")),
        CellStatus::Unsupported => format!("unsupported: {}", cell.reasons.join("; ")),
    };
    because.push(format!("{name} is {reasons}"));
    because
}

/// What the runs of two cells show about a metric: within a study by pairs, between results by independent
/// groups.
pub(crate) struct Contrast {
    pub(crate) metric: String,
    pub(crate) level: Level,
    pub(crate) context: Vec<Level>,
    pub(crate) cell: u32,
    pub(crate) baseline_cell: u32,
    pub(crate) pairs: u32,
    /// The statistics over all runs, of the cell and of the baseline.
    pub(crate) values: Option<(f64, f64)>,
    /// The logarithm of the ratio.
    pub(crate) log_ratio: Option<Mean>,
    /// The difference.
    pub(crate) difference: Option<Mean>,
    /// Why there is no ratio, if there are values.
    pub(crate) no_ratio: &'static str,
}

impl Contrast {
    /// The comparison of the primary metric, with uncorrected p-values if it is a member of the family.
    pub(crate) fn primary(
        &self,
        because: Vec<String>,
        (is_tested, family): (bool, usize),
        margin_share: f64,
        p_different: impl Fn(Mean) -> f64,
    ) -> Comparison {
        let log_ratio = self.log_ratio.filter(|_| is_tested);
        Comparison {
            primary: true,
            p_adjusted: log_ratio.map(p_different),
            p_equivalent_adjusted: log_ratio.map(|mean| mean.p_within(margin_share.ln_1p())),
            verdict: self.verdict_or(because, Verdict::NoDifferenceShown),
            ..self.comparison(SIGNIFICANCE / number::count(family.max(1)))
        }
    }

    /// The comparison of another metric; `None` if it has no ratio.
    pub(crate) fn exploratory(
        &self,
        because: Vec<String>,
        metric: &Metric,
        margin_share: f64,
    ) -> Option<Comparison> {
        let verdict = judge(&self.ratio()?, metric.better, margin_share, None);
        Some(Comparison { verdict: self.verdict_or(because, verdict), ..self.comparison(SIGNIFICANCE) })
    }

    fn comparison(&self, significance: f64) -> Comparison {
        Comparison {
            metric: self.metric.clone(),
            primary: false,
            level: self.level.clone(),
            context: self.context.clone(),
            cell: self.cell,
            baseline_cell: self.baseline_cell,
            pairs: self.pairs,
            ratio: self.ratio(),
            difference: self.difference(),
            p_adjusted: None,
            p_equivalent_adjusted: None,
            smallest_showable_ratio: self.log_ratio.and_then(|mean| smallest_showable(&mean, significance)),
            verdict: Verdict::NoDifferenceShown,
        }
    }

    fn ratio(&self) -> Option<Estimate> {
        let (own, base) = self.values.filter(|(own, base)| *own > 0.0 && *base > 0.0)?;
        Some(with_interval(own / base, self.log_ratio.map(|mean| mean.exponential_interval(CONFIDENCE))))
    }

    fn difference(&self) -> Option<Estimate> {
        let (own, base) = self.values?;
        Some(with_interval(own - base, self.difference.map(|mean| mean.interval(CONFIDENCE))))
    }

    fn verdict_or(&self, mut because: Vec<String>, verdict: Verdict) -> Verdict {
        if because.is_empty() && self.values.is_none() {
            because.push(format!("one of the two has no run with `{}`", self.metric));
        } else if because.is_empty() && self.log_ratio.is_none() {
            because.push(self.no_ratio.to_owned());
        }
        if because.is_empty() { verdict } else { Verdict::Invalid { because } }
    }
}

/// The runs of two cells, paired by block.
struct PairedRuns {
    contrast: Contrast,
    /// Empty if a value is not positive.
    log_ratios: Vec<f64>,
}

impl PairedRuns {
    fn of(plan: &Plan, metric: &str, own: &CellRuns<'_>, baseline: &CellRuns<'_>) -> PairedRuns {
        let (log_ratios, differences) = paired(plan, metric, own.runs, baseline.runs);
        let widening = statistics::widening(differences.len(), plan.repetition.is_some());
        let mean = |values: &[f64]| statistics::mean(values).map(|mean| mean.widened(widening));
        let is_factor = |level: &&Level| level.factor == plan.baseline.factor;
        let contrast = Contrast {
            metric: metric.to_owned(),
            level: own.cell.levels.iter().find(is_factor).unwrap_or(&plan.baseline).clone(),
            context: own.cell.levels.iter().filter(|level| !is_factor(level)).cloned().collect(),
            cell: own.cell.cell,
            baseline_cell: baseline.cell.cell,
            pairs: number::small(differences.len()),
            values: pooled(plan, metric, own.runs).zip(pooled(plan, metric, baseline.runs)),
            log_ratio: mean(&log_ratios),
            difference: mean(&differences),
            no_ratio: match differences.len() {
                0 | 1 => "fewer than two blocks have a successful run of both",
                _ => ZERO_VALUE,
            },
        };
        PairedRuns { contrast, log_ratios }
    }

    /// The p-value of a difference: by permutation of signs if that can be significant in the family,
    /// otherwise by Student's t.
    fn p_different(&self, mean: Mean, family: usize, plan: &Plan) -> f64 {
        let smallest = statistics::smallest_sign_flip_p(self.log_ratios.len());
        let can_pass = smallest * number::count(family) < SIGNIFICANCE;
        if mean.error > 0.0 && can_pass && plan.repetition.is_none() {
            return statistics::sign_flip(&self.log_ratios, plan.seed);
        }
        mean.p_value()
    }
}

/// The logarithms of the ratios, and the differences, of a metric's values in runs of the same block. There
/// are no logarithms if a value is not positive.
pub(crate) fn paired(
    plan: &Plan,
    metric: &str,
    own: &[&RunSummary],
    base: &[&RunSummary],
) -> (Vec<f64>, Vec<f64>) {
    paired_by(own, base, |run| run.compared(metric, plan))
}

fn paired_by(
    own: &[&RunSummary],
    base: &[&RunSummary],
    value: impl Fn(&RunSummary) -> Option<f64>,
) -> (Vec<f64>, Vec<f64>) {
    let base: BTreeMap<u32, f64> = base.iter().filter_map(|run| Some((run.block, value(run)?))).collect();
    let pairs: Vec<(f64, f64)> =
        own.iter().filter_map(|run| Some((value(run)?, *base.get(&run.block)?))).collect();
    let positive = pairs.iter().all(|(a, b)| *a > 0.0 && *b > 0.0);
    let log_ratios = if positive { pairs.iter().map(|(a, b)| (a / b).ln()).collect() } else { Vec::new() };
    (log_ratios, pairs.iter().map(|(a, b)| a - b).collect())
}

/// The smallest ratio above 1 that a two-sided test at `significance` would have detected with a power of
/// 80 %: exp((t(1 − significance/2) + t(0.8)) s/√n), the usual approximation to the non-central t. In the
/// family, `significance` is that of Holm's strictest step.
fn smallest_showable(log_mean: &Mean, significance: f64) -> Option<f64> {
    let steps = log_mean.quantile(1.0 - significance / 2.0) + log_mean.quantile(POWER);
    let ratio = if log_mean.error == 0.0 { 1.0 } else { (steps * log_mean.error).exp() };
    ratio.is_finite().then_some(ratio)
}

/// The study's statistic of all values; for a share, the share over all runs.
fn pooled(plan: &Plan, metric: &str, runs: &[&RunSummary]) -> Option<f64> {
    let shares = || runs.iter().filter_map(|run| run.shares.get(metric));
    let (hits, all) = shares().fold((0, 0), |sum, share| (sum.0 + share.hits, sum.1 + share.all));
    if all > 0 {
        return Some(number::float(hits) / number::float(all));
    }
    let statistic = Statistic::from(metrics::compared(metric, plan.statistic));
    statistic.of(&Distribution::merged(runs.iter().filter_map(|run| run.metrics.get(metric))))
}
