//! Results on disk: one folder per study. The rows of each run are on the disk as Parquet files before the
//! next run starts.
//!
//! ```
//! use model::RunRecord;
//! use store::ResultFolder;
//!
//! # fn main() -> anyhow::Result<()> {
//! # let place = tempfile::tempdir()?;
//! # let path = place.path().join("result");
//! let record = RunRecord { run: 0, took_ns: 5, ..RunRecord::default() };
//! let mut result = ResultFolder::create(&path, 1 << 20)?; // refused with less than 1 MiB free
//! result.append(&record)?;
//! result.compact()?;
//!
//! for stored in ResultFolder::open(&path)?.records()? {
//!     assert_eq!(stored?, record);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//! RESULT/
//!   plan.json environment.json summary.json report.html   each whole or absent
//!   samples/run-000017/TABLE.parquet                      while the study runs
//!   samples/TABLE.parquet                                 after `compact`
//!   figures/ tables/ logs/
//! ```
//!
//! The folder of a run appears by one rename, so a kill at any time leaves only whole runs. Readers accept
//! both places of the tables, also at once. [`tables`] describes each table and its columns.

mod cell;
pub mod environment;
mod files;
mod fold;
mod folder;
mod read;
mod recover;
mod requests_file;
mod schema;
mod table;
mod table_folder;
mod write;

pub use environment::Environment;
pub use files::{NotOfResult, check_files, write_whole};
pub use fold::{PartialFold, Samples};
pub use folder::{ResultFolder, read_json, read_plan};
pub use read::{Records, StoredRuns};
pub use requests_file::RequestsFile;
pub use schema::{ColumnInfo, SCHEMA_VERSION, TableInfo, tables};
pub use table::Damage;
pub use write::Compaction;
