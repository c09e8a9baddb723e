//! The output side of `h123 load`: the display while it runs, and its numbers in every form.

mod csv;
mod hgrm;
mod json;
mod live;
mod protocols;
mod rows;
mod summary;
#[cfg(test)]
mod tests;
mod text;
mod thresholds;
mod warnings;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};

use anyhow::{Context, Result};
use clap::Args;
use load::{Live, Observers, Report, RowSender};
use model::assignment::Assignment;

pub(crate) use rows::{RowFile, WrittenRows};
pub(crate) use summary::{Setup, Summary, connections_of};

use self::text::Style;
use self::thresholds::{Threshold, ThresholdResult};
use crate::exit::{Exit, UsageError};
use crate::terminal::{colours, note, print};

/// Nanoseconds in the unit of `.hgrm` files.
const HGRM_UNIT_NS: f64 = 1e6;
/// Tables fit terminals of these widths.
const WIDTHS: std::ops::RangeInclusive<u16> = 80..=120;
const WIDTH_IN_A_PIPE: u16 = 100;

/// Where the numbers go.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print the result as JSON (docs/load.md has the keys)
    ///
    /// Example: --json | jq .latency_ns.p99
    #[arg(long)]
    json: bool,
    /// Print only the result
    ///
    /// Example: -q
    #[arg(short, long)]
    quiet: bool,
    /// Write the numbers as CSV
    ///
    /// Example: --csv load.csv
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the latency distribution in HdrHistogram's text form, in milliseconds
    ///
    /// Example: --hgrm load.hgrm
    #[arg(long, value_name = "FILE")]
    hgrm: Option<PathBuf>,
    /// Exit with status 4 if this holds, such as 'p99>50ms' or 'availability<99.9%' (repeatable)
    ///
    /// Example: --fail-if 'p99>50ms'
    #[arg(long, value_name = "EXPRESSION")]
    fail_if: Vec<Threshold>,
}

impl OutputArgs {
    /// Checks before the test that files can be written after it.
    ///
    /// # Errors
    /// A folder does not exist, or a file cannot be written.
    pub(crate) fn check(&self) -> Result<()> {
        for (option, path) in [("--csv", &self.csv), ("--hgrm", &self.hgrm)] {
            if let Some(path) = path {
                writable(path)
                    .map_err(|error| UsageError(format!("{option} {}: {error}", path.display())))?;
            }
        }
        Ok(())
    }

    /// The first threshold of a latency.
    pub(crate) fn latency_threshold(&self) -> Option<&str> {
        self.fail_if.iter().find_map(Threshold::about_latency)
    }

    /// Runs the assignments, one thread each, shows their progress, and writes their rows to the file.
    ///
    /// # Errors
    /// A worker cannot begin.
    pub(crate) fn drive(
        &self,
        assignments: &[Assignment],
        stop: &Arc<AtomicBool>,
        file: Option<RowFile>,
    ) -> Result<(Vec<Report>, Option<WrittenRows>)> {
        let lives: Vec<Arc<Live>> = assignments.iter().map(|_| Arc::default()).collect();
        std::thread::scope(|scope| {
            let (running, done) = mpsc::channel();
            if !self.quiet {
                let (lives, goal) = (&lives, live::Goal::of(assignments));
                scope.spawn(move || live::show(lives, goal, &done));
            }
            let (mut senders, writer) = match file {
                None => (Vec::new(), None),
                Some(file) => {
                    let (senders, receiver) = load::row_queue(assignments.len());
                    let senders: Vec<Option<RowSender>> = senders.into_iter().map(Some).collect();
                    (senders, Some(scope.spawn(move || file.write(receiver))))
                }
            };
            let threads: Vec<_> = assignments
                .iter()
                .enumerate()
                .map(|(index, assignment)| {
                    let rows = senders.get_mut(index).and_then(Option::take);
                    let observers = Observers { live: (!self.quiet).then(|| lives[index].clone()), rows };
                    scope.spawn(move || load::run_observed(assignment, stop, observers))
                })
                .collect();
            let reports = threads
                .into_iter()
                .map(|thread| thread.join().map_err(|_| anyhow::anyhow!("a worker thread panicked"))?)
                .collect::<Result<Vec<_>>>();
            drop(running);
            let written = writer.map(|writer| {
                writer.join().map_err(|_| anyhow::anyhow!("the thread that writes rows panicked"))
            });
            let (reports, written) = (reports?, written.transpose()?);
            let written = written.map(|written| written.with_waits(&reports));
            anyhow::Ok((reports, written))
        })
        .context("the load test could not run")
    }

    /// Writes the numbers to the terminal and to files; how the test ended.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(&self, summary: &Summary) -> Result<Exit> {
        let results: Vec<ThresholdResult> =
            self.fail_if.iter().map(|threshold| threshold.judge(summary)).collect();
        if let Some(path) = &self.csv {
            write(path, &csv::format(summary))?;
        }
        if let Some(path) = &self.hgrm {
            write(path, &hgrm::format(&summary.latency, HGRM_UNIT_NS))?;
        }
        if self.json {
            print(&serde_json::to_string_pretty(&json::format(summary, &results))?)?;
            for warning in warnings::warnings(summary) {
                note(false, &format!("warning: {warning}"));
            }
        } else {
            print(&text::format(summary, &results, style()))?;
        }
        if summary.is_invalid() {
            return Ok(Exit::Invalid);
        }
        Ok(if results.iter().any(|result| result.is_failed) { Exit::Threshold } else { Exit::Done })
    }
}

fn writable(path: &Path) -> std::io::Result<()> {
    if path.exists() {
        return fs::OpenOptions::new().append(true).open(path).map(drop);
    }
    fs::File::create_new(path).and_then(|_| fs::remove_file(path))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn style() -> Style {
    let width = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(WIDTH_IN_A_PIPE, |size| size.ws_col);
    Style { width: width.clamp(*WIDTHS.start(), *WIDTHS.end()), colour: colours() }
}
