//! Tables that a study describes: one row per cell, with the columns and the units that its readers expect.

use serde::{Deserialize, Serialize};

use crate::named;

/// A table of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsvTable {
    /// Its name, and that of its files.
    pub name: String,
    /// Its columns.
    pub columns: Vec<CsvColumn>,
}

/// A column of a [`CsvTable`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsvColumn {
    /// Its name in the first line.
    pub name: String,
    /// What it holds.
    pub value: CsvValue,
}

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CsvValue {
    /// The cell's level of a factor.
    Level(String),
    /// A statistic of a metric, over the values of all runs of the cell.
    Metric {
        /// The metric.
        metric: String,
        /// The statistic.
        statistic: CellStatistic,
        /// The metric's value is divided by this.
        divisor: u64,
    },
}

named! { "a statistic of a cell";
    /// What describes the values of a metric in all runs of a cell.
    pub enum CellStatistic {
        /// The arithmetic mean.
        Mean = "mean",
        /// The median.
        Median = "median",
        /// The smallest value.
        Min = "min",
        /// The largest value.
        Max = "max",
        /// The standard deviation (of a sample, with n − 1).
        Sd = "sd",
        /// The share of values within one standard deviation of the mean.
        WithinSd = "within_sd",
        /// The interquartile range.
        Iqr = "iqr",
        /// The 90th percentile.
        P90 = "p90",
        /// The 95th percentile.
        P95 = "p95",
        /// The 99th percentile.
        P99 = "p99",
        /// The 99.9th percentile.
        P999 = "p999",
    }
}

/// The units that a column may have in place of the metric's, and by what values are divided.
const UNITS: &[(&str, &[(&str, u64)])] = &[
    ("ns", &[("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)]),
    ("B", &[("kB", 1_000), ("MB", 1_000_000), ("KiB", 1 << 10), ("MiB", 1 << 20)]),
    ("bit/s", &[("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("MB/s", 8_000_000)]),
];

/// By what values of a metric's unit are divided to have another one.
///
/// # Errors
/// There is no such unit; the problem names those that there are.
pub fn divisor(metric_unit: &str, unit: &str) -> Result<u64, String> {
    let others = UNITS.iter().find(|(known, _)| *known == metric_unit).map_or(&[][..], |(_, others)| others);
    if unit == metric_unit {
        return Ok(1);
    }
    let found = others.iter().find(|(known, _)| *known == unit).map(|(_, divisor)| *divisor);
    found.ok_or_else(|| {
        let names: Vec<&str> =
            [metric_unit].into_iter().chain(others.iter().map(|(name, _)| *name)).collect();
        format!("`{unit}` is not a unit of it; choose one of {}", names.join(", "))
    })
}
