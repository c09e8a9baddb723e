//! From stored records to everything that a result shows: summary, report, figures, tables.

use std::collections::BTreeMap;

use analysis::{RunSummary, Summary};
use anyhow::{Context, Result};
use model::{Plan, RunRecord};
use report::{RunTrace, representative_run};
use store::ResultFolder;

use crate::commands::run::COMMAND_NOTE;
use crate::known_answers;
use crate::terminal::{self, note};

/// What a result came to.
pub(crate) struct Finished {
    /// The analysis.
    pub(crate) summary: Summary,
    /// The tables for the terminal.
    pub(crate) terminal: String,
}

/// Reads every stored run, analyses, and writes summary, report, figures and tables.
///
/// # Errors
/// Rows that cannot be read at all, or a disk that refuses; damaged files are named on standard error and left out.
pub(crate) fn finish(folder: &ResultFolder, plan: &Plan) -> Result<Finished> {
    let mut runs = Vec::new();
    let mut rows = Condensed::default();
    for record in folder.records()? {
        match record {
            Ok(record) => {
                runs.push(RunSummary::of(plan, &record));
                rows.keep(&record);
            }
            Err(damage) => note(false, &format!("left out: {damage}")),
        }
    }
    let summary = analysis::analyse(plan, &runs, &known_answers::stored(folder));
    let environment: serde_json::Value = folder.read_json("environment.json").unwrap_or_default();
    let traces = rows.traces(&summary);
    let command = environment["notes"][COMMAND_NOTE]
        .as_str()
        .map_or_else(|| format!("h123 run {}", plan.study), ToOwned::to_owned);
    let input = report::Input {
        plan,
        summary: &summary,
        environment: &environment,
        traces: &traces,
        command: &command,
        terminal: terminal::look(),
    };
    let report = report::render(&input).context("the report could not be rendered")?;
    folder.write_json("summary.json", &summary)?;
    folder.write_file("report.html", report.html.as_bytes())?;
    for figure in &report.figures {
        folder.write_file(&format!("figures/{}.svg", figure.name), figure.svg.as_bytes())?;
        folder.write_file(&format!("figures/{}.csv", figure.name), figure.csv.as_bytes())?;
    }
    for table in &report.tables {
        folder.write_file(&format!("tables/{}.csv", table.name), table.csv.as_bytes())?;
    }
    Ok(Finished { summary, terminal: report.terminal })
}

/// The traces of all runs, small enough to keep until it is known which run represents its cell.
#[derive(Default)]
struct Condensed {
    traces: BTreeMap<u32, RunTrace>,
}

/// A trace with more requests than this is no waterfall that anybody reads.
const MOST_TRACED_REQUESTS: usize = 500;

impl Condensed {
    fn keep(&mut self, record: &RunRecord) {
        if record.samples.len() <= MOST_TRACED_REQUESTS {
            self.traces.insert(record.run, RunTrace::from_record(record));
        }
    }

    fn traces(&self, summary: &Summary) -> Vec<RunTrace> {
        let runs = summary.cells.iter().filter_map(|cell| representative_run(cell, &summary.metric));
        runs.filter_map(|run| self.traces.get(&run).cloned()).collect()
    }
}
