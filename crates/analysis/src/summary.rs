//! What analysis says: the contents of `summary.json`. Every number carries its interval and its validity.

use std::collections::BTreeMap;

use model::plan::Level;
use model::record::NetworkCalibration;
use serde::{Deserialize, Serialize};

use crate::repetition::Standing;

/// The version of `summary.json`.
pub const SUMMARY_VERSION: u32 = 2;

/// The whole analysis of one result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SUMMARY_VERSION`].
    pub version: u32,
    /// The study's name.
    pub study: String,
    /// The question it asks.
    pub question: String,
    /// The primary metric.
    pub metric: String,
    /// What every comparison is against.
    pub baseline: Level,
    /// The margin of interest, a share.
    pub margin_share: f64,
    /// Runs planned; where a rule adds runs, those of the blocks that were begun, and at least the least.
    pub runs_planned: u32,
    /// Runs that are stored, whatever their outcome.
    pub runs_stored: u32,
    /// From when to when; `None` where no run is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// How far the study came, and why it ended, where a rule adds runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition: Option<Standing>,
    /// The reference measurements of the networks that were calibrated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<NetworkCalibration>,
    /// One entry per cell, in the order of the plan.
    pub cells: Vec<CellSummary>,
    /// What the data say of each claim of the study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimResult>,
    /// One entry per non-baseline cell and metric of the comparison family.
    pub comparisons: Vec<Comparison>,
}

/// When a study's runs were made, by the machine's calendar clock: for people, never computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// When the first run began, Unix time in nanoseconds.
    pub began_unix_ns: u64,
    /// When the last one ended.
    pub ended_unix_ns: u64,
}

/// One cell's numbers and the reasons to caveat them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSummary {
    /// The cell's number in the plan.
    pub cell: u32,
    /// Its place in the matrix.
    pub levels: Vec<Level>,
    /// Whether its numbers may be used.
    pub status: CellStatus,
    /// Runs that succeeded.
    pub runs_ok: u32,
    /// Runs that failed, with the distinct reasons.
    pub runs_failed: u32,
    /// Distinct reasons of failures, and of being unsupported.
    pub reasons: Vec<String>,
    /// By the metric's name.
    pub metrics: BTreeMap<String, MetricSummary>,
    /// Metrics that cannot be had from a client that is somebody else's program, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_reported: BTreeMap<String, String>,
    /// Every check's result.
    pub validity: Vec<CheckResult>,
}

/// Whether a cell's numbers may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellStatus {
    /// All checks passed.
    Valid,
    /// At least one check neither passed nor invalidated.
    Caveat,
    /// At least one check invalidated it.
    Invalid,
    /// No run succeeded.
    Failed,
    /// What was asked for does not exist here.
    Unsupported,
}

/// An estimate with its 95 % interval over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The point.
    pub value: f64,
    /// The interval's lower end; absent where the runs are too few.
    pub low: Option<f64>,
    /// The interval's upper end.
    pub high: Option<f64>,
}

/// One metric of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricSummary {
    /// `ns`, `B`, `1`, …
    pub unit: String,
    /// Arithmetic mean; of a share, all hits of all that could be.
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
    /// Values behind it, over all runs.
    pub samples: u64,
    /// Runs behind it.
    pub runs: u32,
    /// Each run's median, in the order of runs, for figures.
    pub per_run: Vec<RunValue>,
}

/// One run's value of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunValue {
    /// The run's number in the plan.
    pub run: u32,
    /// Its block.
    pub block: u32,
    /// The value (the run's median where it has many samples).
    pub value: f64,
}

/// A cell against the baseline's cell that is alike in all else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The metric.
    pub metric: String,
    /// Whether this is the study's primary metric; all else is exploratory.
    pub primary: bool,
    /// The level that is compared.
    pub level: Level,
    /// The levels that both have in common.
    pub context: Vec<Level>,
    /// The cell.
    pub cell: u32,
    /// The baseline's cell.
    pub baseline_cell: u32,
    /// Blocks that hold a run of both that succeeded.
    pub pairs: u32,
    /// Median of the cell / median of the baseline; absent where either has no number.
    pub ratio: Option<Estimate>,
    /// Median of the cell − median of the baseline, in the metric's unit.
    pub difference: Option<Estimate>,
    /// The p-value of there being no difference, after Holm's correction over the family; absent for exploratory metrics.
    pub p_adjusted: Option<f64>,
    /// The p-value of there being a difference beyond the margin, after Holm's correction over the family; absent for
    /// exploratory metrics.
    pub p_equivalent_adjusted: Option<f64>,
    /// The smallest ratio away from 1 that these runs could have shown.
    pub smallest_showable_ratio: Option<f64>,
    /// The answer.
    pub verdict: Verdict,
}

/// The answer of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// Better than the baseline by more than chance.
    Better,
    /// Worse than the baseline by more than chance.
    Worse,
    /// Certainly within the margin of interest.
    Equivalent,
    /// The data show no difference, and do not show that there is none.
    NoDifferenceShown,
    /// There is nothing to compare, or it may not be believed.
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
    /// What it found.
    pub result: CheckOutcome,
    /// The value measured, for people.
    pub measured: String,
    /// The threshold, for people.
    pub threshold: String,
    /// One sentence: why this matters.
    pub why: String,
    /// One sentence: what to do.
    pub remedy: String,
}

/// What the data say of a claim of the study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The claim, for people.
    pub says: String,
    /// Its kind, as studies name it.
    pub kind: String,
    /// Whether it holds.
    pub result: ClaimOutcome,
    /// What was measured, for people.
    pub measured: String,
    /// What would have to be, for people.
    pub expected: String,
    /// The cells that it is about.
    pub cells: Vec<u32>,
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimOutcome {
    /// The data bear it out.
    Holds,
    /// The data neither bear it out nor contradict it.
    NotShown,
    /// The data contradict it.
    Refuted,
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckOutcome {
    /// All is well.
    Pass,
    /// Not certain: shown, and no obstacle to a verdict.
    Caveat,
    /// The number may not be believed.
    Invalid,
}
