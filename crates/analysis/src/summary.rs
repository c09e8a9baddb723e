//! The contents of `summary.json`. Every value has its interval and its validity.

use std::collections::BTreeMap;

use model::plan::Level;
use model::record::NetworkCalibration;
use model::statistic::Statistic;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;

/// The version of `summary.json`.
pub const SUMMARY_VERSION: u32 = 4;

/// The whole analysis of one result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Version of the format.
    pub version: u32,
    /// The study's name.
    pub study: String,
    /// Its question.
    pub question: String,
    /// The primary metric.
    pub metric: String,
    /// The statistic that verdicts are about: `median`, `mean`, `p90`, `p95`, `p99` or `p999`.
    pub statistic: Statistic,
    /// The level with which every other level is compared.
    pub baseline: Level,
    /// The margin of interest, a share.
    pub margin_share: f64,
    /// Runs planned; if a rule adds runs, those of all blocks that began, and at least the minimum.
    pub runs_planned: u32,
    /// Runs stored, with any outcome.
    pub runs_stored: u32,
    /// Start of the first run and end of the last one, Unix time; `None` if no run is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<RunPeriod>,
    /// The progress of a study to which a rule adds runs, and why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition: Option<RepetitionProgress>,
    /// The contents of `calibrations.json`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<NetworkCalibration>,
    /// One entry per cell, in the order of the plan.
    pub cells: Vec<CellSummary>,
    /// The result of each claim of the study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimResult>,
    /// The result of each published value, for each cell that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedResult>,
    /// For each cell except the baseline's: the primary metric first, then the exploratory ones.
    pub comparisons: Vec<Comparison>,
}

impl Summary {
    /// The statistic of a metric that comparisons are about.
    pub fn statistic_of(&self, metric: &str) -> Statistic {
        crate::metrics::compared(metric, self.statistic)
    }
}

/// When a study's runs were made, by the machine's calendar clock: for people only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPeriod {
    /// When the first run began, Unix time in nanoseconds.
    pub began_unix_ns: u64,
    /// When the last run ended.
    pub ended_unix_ns: u64,
}

/// The progress of a study that adds runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepetitionProgress {
    /// The required precision: half of an interval as a share of its value.
    pub precision_share: f64,
    /// Half of the widest interval as a share of its value; `None` if there is no interval yet.
    pub widest_share: Option<f64>,
    /// Complete blocks that are stored.
    pub blocks: u32,
    /// The time of all runs together.
    pub took_ns: u64,
    /// Why no more runs are added: `precision`, `budget`, `most_runs`, or `nothing_to_measure` (no compared
    /// cell has a value); `None` if the study was interrupted.
    pub ended_by: Option<Ending>,
}

/// Why no more runs are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// All answers have the required precision.
    Precision,
    /// Another block would exceed the budget.
    Budget,
    /// The maximum number of runs is reached.
    MostRuns,
    /// No compared cell has a value.
    NothingToMeasure,
}

/// One cell's values and the results of its checks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSummary {
    /// The cell's number in the plan.
    pub cell: u32,
    /// Its place in the matrix.
    pub levels: Vec<Level>,
    /// `valid`, `caveat`, `invalid`, `not measured` (no run is stored), `failed` (no run succeeded) or
    /// `unsupported`.
    pub status: CellStatus,
    /// Runs that succeeded.
    pub runs_ok: u32,
    /// Runs that failed.
    pub runs_failed: u32,
    /// The distinct reasons why runs failed or are unsupported.
    pub reasons: Vec<String>,
    /// Statistics of each metric, by its name.
    pub metrics: BTreeMap<String, MetricSummary>,
    /// Metrics that the cell's client [does not report](clients.md#what-each-tool-reports), with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_reported: BTreeMap<String, String>,
    /// Every check's result.
    pub validity: Vec<CheckResult>,
}

impl CellSummary {
    /// Whether the cell has runs that succeeded.
    pub fn has_values(&self) -> bool {
        !matches!(self.status, CellStatus::NotMeasured | CellStatus::Failed | CellStatus::Unsupported)
    }

    /// The checks that invalidated the cell, for people: `version (5 of 55 responses); …`.
    pub fn invalidating(&self) -> String {
        let invalid = self.validity.iter().filter(|check| check.result == CheckOutcome::Invalid);
        invalid.map(|check| format!("{} ({})", check.check, check.measured)).collect::<Vec<_>>().join("; ")
    }
}

model::named! { "a cell's status";
    /// Whether a cell's values may be used.
    pub enum CellStatus {
        /// All checks passed.
        Valid = "valid",
        /// At least one check is a caveat, and none invalidated it.
        Caveat = "caveat",
        /// At least one check invalidated it.
        Invalid = "invalid",
        /// No run of it is stored, because the study did not finish.
        NotMeasured = "not measured",
        /// No run succeeded.
        Failed = "failed",
        /// The server or client does not support what the cell needs.
        Unsupported = "unsupported",
    }
}

/// An estimate with its 95 % interval over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The point.
    pub value: f64,
    /// Lower end of the interval; `None` if there are too few runs.
    pub low: Option<f64>,
    /// The interval's upper end.
    pub high: Option<f64>,
}

/// How far values are spread, pooled over all runs of a cell. Pooled values describe; they have no interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The standard deviation (with n − 1); `None` of fewer than two values.
    pub sd: Option<f64>,
    /// The share of values within one standard deviation of the mean.
    pub within_sd_share: Option<f64>,
}

impl Spread {
    /// The spread of these values.
    pub fn of<'a>(distributions: impl IntoIterator<Item = &'a Distribution>) -> Spread {
        let all = Distribution::merged(distributions);
        let quantile = |q| all.quantile(q).unwrap_or_default();
        let sd = all.sd();
        let within = all.mean().zip(sd).map(|(mean, sd)| all.share_within(mean - sd, mean + sd));
        Spread { min: quantile(0.0), max: quantile(1.0), sd, within_sd_share: within }
    }
}

/// One metric of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricSummary {
    /// `ns`, `B`, `1`, …
    pub unit: String,
    /// Arithmetic mean; for a share, the share over all runs.
    pub mean: Estimate,
    /// Median.
    pub median: Estimate,
    /// Interquartile range.
    pub iqr: Estimate,
    /// 90th percentile.
    pub p90: Estimate,
    /// 95th percentile.
    pub p95: Estimate,
    /// 99th percentile.
    pub p99: Estimate,
    /// 99.9th percentile.
    pub p999: Estimate,
    /// How far the values of all runs are spread.
    #[serde(default)]
    pub spread: Spread,
    /// The number of values, over all runs.
    pub samples: u64,
    /// The number of runs with a value.
    pub runs: u32,
    /// The statistic that `per_run` has and that comparisons are about: the study's. Metrics with one value
    /// per run have no percentiles; theirs is the median.
    pub statistic: Statistic,
    /// The statistic of each run, in the order of the runs.
    pub per_run: Vec<RunValue>,
}

impl MetricSummary {
    /// The value that comparisons are about.
    pub const fn compared(&self) -> Estimate {
        self.estimate(self.statistic)
    }

    /// A statistic of it.
    pub const fn estimate(&self, statistic: Statistic) -> Estimate {
        match statistic {
            Statistic::Median => self.median,
            Statistic::Mean => self.mean,
            Statistic::Iqr => self.iqr,
            Statistic::P90 => self.p90,
            Statistic::P95 => self.p95,
            Statistic::P99 => self.p99,
            Statistic::P999 => self.p999,
        }
    }
}

/// One run's value of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunValue {
    /// The run's number in the plan.
    pub run: u32,
    /// Its block.
    pub block: u32,
    /// The value: the statistic of the run's values.
    pub value: f64,
}

/// A cell compared with the baseline's cell with otherwise equal levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The metric.
    pub metric: String,
    /// Whether this is the study's primary metric. All other metrics are exploratory.
    pub primary: bool,
    /// The cell's level of the compared factor.
    pub level: Level,
    /// The levels that both have in common.
    pub context: Vec<Level>,
    /// The cell.
    pub cell: u32,
    /// The baseline's cell.
    pub baseline_cell: u32,
    /// Blocks with a successful run of both cells.
    pub pairs: u32,
    /// Statistic of the cell / statistic of the baseline, with its interval; `None` if either has no value.
    pub ratio: Option<Estimate>,
    /// Statistic of the cell − statistic of the baseline, in the metric's unit.
    pub difference: Option<Estimate>,
    /// The p-value of the null hypothesis "no difference", after Holm's correction; `None` for exploratory
    /// metrics and invalid comparisons.
    pub p_adjusted: Option<f64>,
    /// The p-value of the null hypothesis "a difference beyond the margin", after Holm's correction; `None`
    /// for exploratory metrics and invalid comparisons.
    pub p_equivalent_adjusted: Option<f64>,
    /// The smallest ratio above 1 that these runs would have detected with a probability of 80 %.
    pub smallest_showable_ratio: Option<f64>,
    /// The [verdict](#verdicts); if it is `invalid`, the field `because` has the reasons.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// The answer of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// Significantly better than the baseline.
    Better,
    /// Significantly worse than the baseline.
    Worse,
    /// Shown to be within the margin of interest.
    Equivalent,
    /// The data neither show a difference nor rule one out.
    NoDifferenceShown,
    /// There is nothing to compare, or a cell is not valid.
    Invalid {
        /// Why.
        because: Vec<String>,
    },
}

/// The result of one check on one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The check's name, as `--accept` takes it.
    pub check: String,
    /// `pass`, `caveat` or `invalid`.
    pub result: CheckOutcome,
    /// The value measured, for people.
    pub measured: String,
    /// The threshold, for people.
    pub threshold: String,
    /// Why this matters.
    pub why: String,
    /// What to do.
    pub remedy: String,
}

/// The result of one claim of the study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The claim, for people.
    pub text: String,
    /// Its kind, as studies name it.
    pub kind: String,
    /// `holds`, `not_shown` or `refuted`.
    pub result: ClaimOutcome,
    /// What was measured, for people.
    pub measured: String,
    /// What the claim expects, for people.
    pub expected: String,
    /// The cells that the claim is about.
    pub cells: Vec<u32>,
}

/// A published value and the measured one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedResult {
    /// Where it was published.
    pub source: String,
    /// The cell's levels.
    pub levels: Vec<Level>,
    /// The level that a ratio is to; `None` for other values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Level>,
    /// The metric.
    pub metric: String,
    /// The statistic of it.
    pub statistic: Statistic,
    /// The cell's number.
    pub cell: u32,
    /// `ratio`, `rtt` (round trips), or the metric's unit.
    pub unit: String,
    /// The published value.
    pub published: f64,
    /// The measured value, in the same unit; `None` without one.
    pub measured: Option<Estimate>,
    /// `agrees`, `disagrees` or `cannot be compared`.
    pub result: PublishedOutcome,
    /// Why, in a sentence.
    pub reason: String,
}

model::named! { "a comparison with a published value";
    /// Whether a published value agrees with the measured one.
    pub enum PublishedOutcome {
        /// It lies in the measured interval, widened by the margin of interest.
        Agrees = "agrees",
        /// It lies outside.
        Disagrees = "disagrees",
        /// There is no measured value, it is invalid, or the value does not carry over to other machines.
        NotComparable = "cannot be compared",
    }
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimOutcome {
    /// The data confirm it.
    Holds,
    /// The data neither confirm nor contradict it.
    NotShown,
    /// The data contradict it.
    Refuted,
}

model::named! { "a check's outcome";
    /// The outcome of a check.
    pub enum CheckOutcome {
        /// The check passed.
        Pass = "pass",
        /// The value needs care. A verdict is still given.
        Caveat = "caveat",
        /// The value is not valid.
        Invalid = "invalid",
    }
}
