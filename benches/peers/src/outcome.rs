//! The outcome of a benchmark: printed as a table for people or as JSON, and stored as JSON.

use std::fmt::{Display, Write};
use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use jiff::Timestamp;
use serde::Serialize;

use crate::machine;

/// What is measured, and where its numbers go.
#[derive(Args, Debug)]
pub(crate) struct Output {
    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,
    /// Where the JSON goes
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// The binary to measure (default: the one that was built together with this)
    #[arg(long, value_name = "FILE")]
    pub(crate) h123: Option<PathBuf>,
}

/// What a benchmark measured, and what it could not measure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome<T, F> {
    /// The version of the JSON.
    format: u32,
    /// When it began, UTC.
    began: Timestamp,
    cpu: String,
    kernel: String,
    #[serde(flatten)]
    pub(crate) measured: T,
    pub(crate) failures: Vec<F>,
    /// What the reader must know.
    pub(crate) notes: Vec<String>,
}

impl<T: Serialize, F: Serialize + Display> Outcome<T, F> {
    /// Nothing yet.
    pub(crate) fn new(format: u32, measured: T) -> Self {
        let (cpu, kernel) = machine::description();
        let (failures, notes) = (Vec::new(), Vec::new());
        Outcome { format, began: Timestamp::now(), cpu, kernel, measured, failures, notes }
    }

    /// The table, and below it failures and notes.
    pub(crate) fn text(&self, table: &str) -> String {
        let mut text = format!("{table}\n");
        for failure in &self.failures {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "not measured: {failure}");
        }
        self.notes.iter().for_each(|note| text.extend([note, "\n"]));
        text
    }

    /// Stores the JSON in a file named after the benchmark and its beginning, and prints the outcome. Returns
    /// whether all was measured.
    pub(crate) fn publish(&self, benchmark: &str, output: &Output, table: &str) -> Result<bool> {
        let json = serde_json::to_string_pretty(self)?;
        let folder = &output.out;
        let file = folder.join(format!("{benchmark}-{}.json", self.began.strftime("%Y%m%dT%H%M%SZ")));
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::write(&file, &json).with_context(|| format!("cannot write {}", file.display()))?;
        if output.json {
            println!("{json}");
        } else {
            print!("{}", self.text(table));
        }
        eprintln!("written: {}", file.display());
        Ok(self.failures.is_empty())
    }
}

/// A Markdown table; the columns `right` are aligned to the right.
pub(crate) fn table<const N: usize>(
    header: [&str; N],
    right: RangeInclusive<usize>,
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header).add_rows(rows);
    for index in right {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}
