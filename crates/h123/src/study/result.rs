//! From stored runs to everything that a result shows: summary, report, figures, tables.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;

use analysis::further::further_runs_of_all;
use analysis::summary::{CellStatus, CellSummary};
use analysis::{RunFold, RunSummary, Summary};
use anyhow::{Context, Result};
use model::sample::{FailureKind, Outcome};
use model::units::format_expected;
use model::{Plan, RunRecord};
use report::{RunPlayback, RunTimeline, RunTrace, representative_run};
use store::ResultFolder;

use crate::exit::{Exit, UsageError};
use crate::study::damages::Damages;
use crate::study::environment::COMMAND_NOTE;
use crate::study::reference;
use crate::terminal::{self, note, print};

/// An analysed result.
pub(crate) struct AnalysedResult {
    summary: Summary,
    /// The tables for the terminal.
    terminal: String,
    /// The runs of each cell that would decide every open comparison, and their time.
    deciding: Option<(u32, u64)>,
}

impl AnalysedResult {
    /// Prints the tables and the path of the report, or the summary as JSON.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub(crate) fn print(&self, folder: &Path, as_json: bool) -> Result<()> {
        if as_json {
            return print(&serde_json::to_string_pretty(&self.summary)?);
        }
        let shown = folder.display();
        let more = self.deciding.map_or(String::new(), |(runs, expected_ns)| {
            let time = format_expected(expected_ns);
            format!("\nmore runs: h123 run --resume {shown} --runs {runs}   # about {time}, to decide the undecided comparisons")
        });
        let report = folder.join("report.html");
        print(&format!("{}\n{more}\nreport: {}", self.terminal.trim_end(), report.display()))
    }

    /// The status that reports whether a cell failed or is invalid.
    pub(crate) fn exit(&self) -> Exit {
        let is_bad =
            |status| matches!(status, CellStatus::NotMeasured | CellStatus::Failed | CellStatus::Invalid);
        if self.summary.cells.iter().any(|cell| is_bad(cell.status)) { Exit::Invalid } else { Exit::Done }
    }
}

/// Reads and analyses every stored run, and writes summary, report, figures and tables. Damaged files are
/// named on standard error and left out.
///
/// # Errors
/// The samples cannot be listed, or a file cannot be written.
pub(crate) fn finish(folder: &ResultFolder, plan: &Plan) -> Result<AnalysedResult> {
    let mut damaged = Damages::default();
    let (runs, figure_data) = summarise_runs(folder, plan, &mut damaged)?;
    let known = reference::stored(folder);
    let summary = analysis::analyse(plan, &runs, &known);
    let environment = environment(folder, &mut damaged);
    reference::fault(&known, plan, &runs).into_iter().for_each(|fault| damaged.note(fault));
    let damaged = damaged.lines(plan.runs.len());
    damaged.iter().for_each(|damage| note(false, &format!("damaged or missing: {damage}")));
    let RepresentativeRuns { traces, timelines, playbacks } = representative(figure_data, &summary);
    let pooled = analysis::pooled(&runs, &summary.metric);
    let command = environment["notes"][COMMAND_NOTE]
        .as_str()
        .map_or_else(|| format!("h123 run {}", plan.study), ToOwned::to_owned);
    let input = report::Input {
        plan,
        summary: &summary,
        environment: &environment,
        traces: &traces,
        timelines: &timelines,
        playbacks: &playbacks,
        pooled: &pooled,
        command: &command,
        damaged: &damaged,
        terminal: terminal::look(),
    };
    let report = report::render(&input).context("the report could not be rendered")?;
    folder.write_json("summary.json", &summary)?;
    folder.write_file("report.html", report.html.as_bytes())?;
    folder.write_file("report.md", report.markdown.as_bytes())?;
    for figure in &report.figures {
        folder.write_file(&format!("figures/{}.svg", figure.name), figure.svg.as_bytes())?;
        folder.write_file(&format!("figures/{}.csv", figure.name), figure.csv.as_bytes())?;
    }
    for table in &report.tables {
        for (ending, text) in [("csv", &table.csv), ("md", &table.markdown), ("json", &table.json)] {
            folder.write_file(&format!("tables/{}.{ending}", table.name), text.as_bytes())?;
        }
    }
    let is_whole = summary.runs_stored >= summary.runs_planned && plan.repetition.is_none();
    let further = further_runs_of_all(plan, &summary).filter(|_| is_whole);
    let deciding = further.map(|further| (plan.runs_per_cell + further.runs, further.expected_ns));
    Ok(AnalysedResult { summary, terminal: report.terminal, deciding })
}

/// Opens a result.
///
/// # Errors
/// A [`UsageError`] if the folder is not a result or has links. Another process is compacting it.
pub(crate) fn open(path: &Path) -> Result<ResultFolder> {
    ResultFolder::open(path).map_err(|error| match path.join("samples").is_dir() {
        true => usage(error),
        false => UsageError(format!("{error:#}")).into(),
    })
}

/// Refuses a result with links or special files.
///
/// # Errors
/// A [`UsageError`], or a folder cannot be listed.
pub(crate) fn check(path: &Path) -> Result<()> {
    store::check_files(path).map_err(usage)
}

/// Wrong usage, if the user has to correct the result.
pub(crate) fn usage(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<store::NotOfResult>() {
        Ok(error) => UsageError(error.to_string()).into(),
        Err(error) => error,
    }
}

/// Facts about the machine; null if the file is lost.
fn environment(folder: &ResultFolder, damaged: &mut Damages) -> serde_json::Value {
    const FILE: &str = "environment.json";
    let is_there = folder.path().join(FILE).exists();
    // Any JSON is shown, whatever version wrote it, but not a single value.
    folder.read_json(FILE).ok().filter(serde_json::Value::is_object).unwrap_or_else(|| {
        let what = if is_there { "is not a JSON object" } else { "is missing" };
        damaged.note(format!("{FILE} {what}, so the machine of the measurement is unknown"));
        serde_json::Value::Null
    })
}

/// What figures show of each run and cell: its trace if that is small enough, the monitor's readings, and the
/// playback of a video.
type FigureData = BTreeMap<(u32, u32), (Option<RunTrace>, Option<RunTimeline>, Option<RunPlayback>)>;

/// The same of the runs that represent their cells.
#[derive(Default)]
struct RepresentativeRuns {
    traces: Vec<RunTrace>,
    timelines: Vec<RunTimeline>,
    playbacks: Vec<RunPlayback>,
}

/// Summarises every stored run, on all cores, and keeps what figures show of each until the analysis has
/// chosen the run that represents its cell. Of each run's rows only one row group is in memory. Damaged files
/// are left out and added to `damaged`.
///
/// # Errors
/// The samples cannot be listed.
pub(crate) fn summarise_runs(
    folder: &ResultFolder,
    plan: &Plan,
    damaged: &mut Damages,
) -> Result<(Vec<RunSummary>, FigureData)> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let condensed = folder.fold_readable(threads, |record, samples| {
        let is_traced = samples.count() <= report::MOST_TRACED_REQUESTS;
        let (mut fold, mut kept) = (RunFold::new(plan, record), Vec::new());
        samples.for_each(|sample| {
            fold.push(sample);
            if is_traced {
                kept.push(sample.clone());
            }
        })?;
        let summaries = fold.finish();
        let whole = is_traced.then(|| RunRecord { samples: kept, ..record.clone() });
        let shown = |group: u16| {
            let trace = whole.as_ref().map(|whole| RunTrace::from_record(whole, group));
            (trace, RunTimeline::from_record(plan, record, group), RunPlayback::from_record(record, group))
        };
        let groups = plan.cells_of_run(record.cell).iter().map(|cell| cell.group.group);
        Ok(summaries.into_iter().zip(groups.map(shown)).collect::<Vec<_>>())
    })?;
    damaged.check_runs(folder.path());
    damaged.check_checksums(folder)?;
    let (mut runs, mut figure_data, mut unread) = (Vec::new(), FigureData::new(), Vec::new());
    for run in condensed {
        match run {
            Ok((cells, lost)) => {
                lost.iter().for_each(|damage| damaged.add(folder, damage));
                let tables =
                    || lost.iter().filter_map(|damage| damage.file.file_stem()?.to_str()?.parse().ok());
                for (summary, shown) in cells {
                    let summary = tables().fold(summary, |summary, table| summary.without(plan, table));
                    figure_data.insert((summary.run, summary.cell), shown);
                    runs.push(summary);
                }
            }
            Err(damage) => {
                unread.extend(damage.run.map(|run| (run, damage.reason.clone())));
                damaged.add(folder, &damage);
            }
        }
    }
    runs.extend(lost_cells(plan, &runs, &unread));
    Ok((runs, figure_data))
}

/// The unreadable runs of cells without any readable run, as failed with the reason. Otherwise they would
/// look like runs that were never made.
fn lost_cells(plan: &Plan, read: &[RunSummary], unread: &[(u32, String)]) -> Vec<RunSummary> {
    let planned = unread.iter().filter_map(|(run, reason)| Some((plan.runs.get(*run as usize)?, reason)));
    let lost = planned.filter(|(planned, _)| read.iter().all(|run| run.cell != planned.cell));
    lost.flat_map(|(planned, reason)| {
        let words = format!("its rows of requests are stored but cannot be read: {reason}");
        let outcome = Outcome::failed(FailureKind::System, words);
        RunSummary::all_of(plan, &RunRecord { outcome, ..RunRecord::empty(planned) })
    })
    .collect()
}

/// Shortens a value in a list of differences to one line.
pub(crate) fn shown(value: &str) -> String {
    const MOST: usize = 80;
    if value.chars().count() <= MOST {
        return value.to_owned();
    }
    value.chars().take(MOST).chain(['…']).collect()
}

fn representative(mut figure_data: FigureData, summary: &Summary) -> RepresentativeRuns {
    let mut shown = RepresentativeRuns::default();
    let run = |cell: &CellSummary| Some((representative_run(cell, &summary.metric)?, cell.cell));
    let runs = summary.cells.iter().filter_map(run);
    for (trace, timeline, playback) in runs.filter_map(|run| figure_data.remove(&run)) {
        shown.traces.extend(trace);
        shown.timelines.extend(timeline);
        shown.playbacks.extend(playback);
    }
    shown
}
