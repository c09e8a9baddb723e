//! Results on disk: one folder per study, every run's rows as Parquet before the next run begins.
//!
//! ```text
//! RESULT/
//!   plan.json environment.json summary.json report.html      written whole or not at all
//!   samples/run-000017/{runs,requests,connections,clients,servers,server_requests,links,monitor}.parquet   while the study runs
//!   samples/{runs,requests,connections,clients,servers,server_requests,links,monitor}.parquet              after `compact`
//!   figures/ tables/ logs/
//! ```
//!
//! A run's folder appears by one rename, so a kill at any moment leaves only whole runs. Readers accept both forms,
//! and both at once. [`schema`] describes every column once, for the writer and the reader.

pub mod environment;
mod fold;
mod folder;
mod read;
mod requests_file;
pub mod schema;
mod table;
mod write;

pub use environment::Environment;
pub use fold::{Samples, WhatIsThere};
pub use folder::{ResultFolder, write_whole};
pub use read::{Damage, Records, StoredRuns};
pub use requests_file::RequestsFile;
pub use write::Compaction;
