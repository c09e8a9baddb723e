//! The statistics of a metric that studies name: in claims, and for the verdicts.

use crate::named;

named! { "a statistic";
    /// A statistic of a metric.
    #[expect(missing_docs, reason = "the names are enough")]
    pub enum Statistic {
        Median = "median",
        Mean = "mean",
        Iqr = "iqr",
        P90 = "p90",
        P95 = "p95",
        P99 = "p99",
        P999 = "p999",
    }
}

impl Default for Statistic {
    /// The median.
    fn default() -> Statistic {
        Statistic::Median
    }
}

impl Statistic {
    /// The share of values below it, if it is a quantile above the median.
    pub const fn tail_quantile(self) -> Option<f64> {
        match self {
            Statistic::Median | Statistic::Mean | Statistic::Iqr => None,
            Statistic::P90 => Some(0.9),
            Statistic::P95 => Some(0.95),
            Statistic::P99 => Some(0.99),
            Statistic::P999 => Some(0.999),
        }
    }

    /// Whether it is the median, the statistic of verdicts unless a study names another.
    pub const fn is_median(&self) -> bool {
        matches!(self, Statistic::Median)
    }

    /// The fewest values of which one is expected to lie beyond the quantile: 100 for `p99`.
    pub const fn least_values(self) -> u64 {
        match self {
            Statistic::Median | Statistic::Mean | Statistic::Iqr => 1,
            Statistic::P90 => 10,
            Statistic::P95 => 20,
            Statistic::P99 => 100,
            Statistic::P999 => 1000,
        }
    }
}
