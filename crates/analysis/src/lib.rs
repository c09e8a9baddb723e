//! The analysis of results: metrics, estimates, comparisons, checks and verdicts from the records of runs.
//!
//! ```
//! use analysis::summary::Comparison;
//! use analysis::{RunSummary, analyse};
//! use model::{Plan, RunRecord};
//!
//! /// The verdict of each comparison of a study.
//! fn verdicts(plan: &Plan, records: &[RunRecord]) -> Vec<String> {
//!     let of_run = |record| RunSummary::all_of(plan, record);
//!     let runs: Vec<RunSummary> = records.iter().flat_map(of_run).collect();
//!     let summary = analyse(plan, &runs, &[]);
//!     let verdict = |found: &Comparison| format!("{}: {:?}", found.level.value, found.verdict);
//!     summary.comparisons.iter().map(verdict).collect()
//! }
//!
//! let metric = analysis::metrics::find("page_load_time").unwrap();
//! assert_eq!((metric.title, metric.unit), ("Page load time", "ns"));
//! ```
//!
//! The crate is pure. [`RunSummary::all_of`] turns each [`model::RunRecord`] into distributions that merge
//! and the facts that checks need. [`analyse()`] turns the runs into the [`summary::Summary`]. A metric is
//! one entry of its subject's file in `metrics`, a check is one file and one entry of [`checks::CHECKS`].

pub mod across;
pub mod analyse;
pub mod checks;
mod claims;
mod classes;
mod clusters;
pub mod comparison;
pub mod condensed_log;
pub mod distribution;
pub mod estimate;
pub mod fold;
pub mod further;
pub mod metrics;
pub mod monitor;
pub mod pooled;
pub mod predict;
pub mod published;
pub mod repetition;
pub mod rows;
pub mod run;
mod server_time;
pub mod statistics;
pub mod summary;
pub mod table;
pub mod view;

pub use analyse::analyse;
pub use distribution::Distribution;
pub use fold::RunFold;
pub use metrics::METRICS;
pub use pooled::{Pooled, pooled};
pub use predict::predict_page_load_ns;
pub use run::RunSummary;
pub use summary::Summary;
pub use table::Table;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod ground_truth;
#[cfg(test)]
mod verdicts;
