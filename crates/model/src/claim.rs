//! Claims: the assumptions of a study or of a publication, written down so that the data can contradict them.

use serde::{Deserialize, Serialize};

use crate::level::Level;
use crate::statistic::Statistic;

/// A sentence, and the test of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The sentence, for people.
    pub text: String,
    /// What has to hold for it to be true.
    pub holds_if: ClaimTest,
}

/// What has to hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ClaimTest {
    /// The requests of all runs may be pooled.
    Pooled,
    /// Of several levels of its factor, this one is the best by each of these statistics of the study's
    /// metric.
    Best {
        /// The one that was chosen.
        level: Level,
        /// The others; all levels of the factor if there are none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        among: Vec<Level>,
        /// The statistics that it was chosen by.
        by: Vec<Statistic>,
    },
    /// A timing script or list that was recorded with one level is fit for the others: a recording with them
    /// would have waited as long for each response.
    Script {
        /// The level that it was recorded with.
        trained_on: Level,
    },
    /// One size represents another: the study's metric is the same at all these levels, within the margin of
    /// interest.
    Scale {
        /// The levels, of one factor; the first represents the others.
        levels: Vec<Level>,
    },
    /// Every network of the study limits or loses packets. One that only delays them does not impair
    /// anything.
    Impaired,
    /// A statistic of a metric, or its ratio to that of another level, lies within bounds.
    Value {
        /// The metric.
        metric: String,
        /// The statistic of it.
        statistic: Statistic,
        /// The cells that it is about: those that have all these levels.
        levels: Vec<Level>,
        /// The level whose value divides theirs, with otherwise equal levels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        against: Option<Level>,
        /// At least this.
        least: Option<Bound>,
        /// At most this.
        most: Option<Bound>,
    },
}

/// A bound of a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// In the metric's unit; times in nanoseconds.
    Plain(f64),
    /// Round trips of the cell's network.
    RoundTrips(f64),
}

impl ClaimTest {
    /// The kinds, as studies name them.
    pub const KINDS: [&str; 6] = ["pooled", "best", "script", "scale", "impaired", "value"];

    /// The kind of this one.
    pub const fn kind(&self) -> &'static str {
        match self {
            ClaimTest::Pooled => "pooled",
            ClaimTest::Best { .. } => "best",
            ClaimTest::Script { .. } => "script",
            ClaimTest::Scale { .. } => "scale",
            ClaimTest::Impaired => "impaired",
            ClaimTest::Value { .. } => "value",
        }
    }
}
