//! Analysis: metrics, estimates, comparisons, checks and verdicts from the records of runs.

pub mod summary;
