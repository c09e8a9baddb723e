//! From stored records to everything that a result shows: summary, report, figures, tables.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;

use analysis::{RunFold, RunSummary, Summary};
use anyhow::{Context, Result};
use model::sample::{FailureKind, Outcome};
use model::{Plan, RunRecord};
use report::{RunPlayback, RunTimeline, RunTrace, representative_run};
use store::ResultFolder;

use crate::commands::run::COMMAND_NOTE;
use crate::exit::UsageError;
use crate::study::damages::Damages;
use crate::study::reference;
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
    let mut damaged = Damages::default();
    let (runs, seen) = condensed(folder, plan, &mut damaged)?;
    let known = reference::stored(folder);
    let summary = analysis::analyse(plan, &runs, &known);
    let environment = environment(folder, &mut damaged);
    reference::fault(&known, plan, &runs).into_iter().for_each(|fault| damaged.note(fault));
    let damaged = damaged.lines(plan.runs.len());
    damaged.iter().for_each(|damage| note(false, &format!("damaged or missing: {damage}")));
    let Shown { traces, timelines, playbacks } = representative(seen, &summary);
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
    for figure in &report.figures {
        folder.write_file(&format!("figures/{}.svg", figure.name), figure.svg.as_bytes())?;
        folder.write_file(&format!("figures/{}.csv", figure.name), figure.csv.as_bytes())?;
    }
    for table in &report.tables {
        for (ending, text) in [("csv", &table.csv), ("md", &table.markdown), ("json", &table.json)] {
            folder.write_file(&format!("tables/{}.{ending}", table.name), text.as_bytes())?;
        }
    }
    Ok(Finished { summary, terminal: report.terminal })
}

/// Opens a result; a folder that is none is wrong usage.
///
/// # Errors
/// There is no result, or another process is compacting it.
pub(crate) fn open(path: &Path) -> Result<ResultFolder> {
    ResultFolder::open(path).map_err(|error| match path.join("samples").is_dir() {
        true => error,
        false => UsageError(format!("{error:#}")).into(),
    })
}

/// What is known of the machine; nothing where that was lost.
fn environment(folder: &ResultFolder, damaged: &mut Damages) -> serde_json::Value {
    const FILE: &str = "environment.json";
    let is_there = folder.path().join(FILE).exists();
    folder.read_json(FILE).unwrap_or_else(|_| {
        let what = if is_there { "it is no JSON" } else { "it is missing" };
        damaged.note(format!("{FILE} is damaged: {what}, so nobody knows on what machine this was measured"));
        serde_json::Value::Null
    })
}

/// What figures show of a run: its trace, where it is small enough, what the monitor saw, and how it played a video.
type Seen = BTreeMap<u32, (Option<RunTrace>, Option<RunTimeline>, Option<RunPlayback>)>;

/// The same of those runs that represent their cells.
#[derive(Default)]
struct Shown {
    traces: Vec<RunTrace>,
    timelines: Vec<RunTimeline>,
    playbacks: Vec<RunPlayback>,
}

/// The summary of every stored run, on all cores, and what figures show of each, kept until it is known which run
/// represents its cell. Of each run's rows no more than a row group is in memory. What is damaged is left out, and named in
/// `damaged`, inside the result's folder.
///
/// # Errors
/// The samples cannot be listed.
pub(crate) fn condensed(
    folder: &ResultFolder,
    plan: &Plan,
    damaged: &mut Damages,
) -> Result<(Vec<RunSummary>, Seen)> {
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
        let whole = || RunRecord { samples: kept, ..record.clone() };
        let timeline = RunTimeline::from_record(plan, record);
        let trace = is_traced.then(|| RunTrace::from_record(&whole()));
        Ok((fold.finish(), (trace, timeline, RunPlayback::from_record(record))))
    })?;
    damaged.look_for_runs(folder.path());
    damaged.look_for_checksums(folder)?;
    let (mut runs, mut seen, mut unread) = (Vec::new(), Seen::new(), Vec::new());
    for run in condensed {
        match run {
            Ok(((summary, shown), lost)) => {
                lost.iter().for_each(|damage| damaged.add(folder, damage));
                let tables = lost.iter().filter_map(|damage| damage.file.file_stem()?.to_str());
                let tables = tables.filter_map(analysis::tables::find);
                let summary = tables.fold(summary, |summary, table| summary.without(plan, table));
                seen.insert(summary.run, shown);
                runs.push(summary);
            }
            Err(damage) => {
                unread.extend(damage.run.map(|run| (run, damage.reason.clone())));
                damaged.add(folder, &damage);
            }
        }
    }
    runs.extend(lost_cells(plan, &runs, &unread));
    Ok((runs, seen))
}

/// Of cells of which no run can be read, the runs that are there and cannot: as failed, with the reason, so that nobody takes them
/// for runs that were never made.
fn lost_cells(plan: &Plan, read: &[RunSummary], unread: &[(u32, String)]) -> Vec<RunSummary> {
    let planned = unread.iter().filter_map(|(run, reason)| Some((plan.runs.get(*run as usize)?, reason)));
    let lost = planned.filter(|(planned, _)| read.iter().all(|run| run.cell != planned.cell));
    lost.map(|(planned, reason)| {
        let words = format!("its rows of requests are stored and cannot be read: {reason}");
        let outcome = Outcome::failed(FailureKind::System, words);
        RunSummary::of(plan, &RunRecord { outcome, ..RunRecord::empty(planned) })
    })
    .collect()
}

/// A value in a list of differences: not longer than a line.
pub(crate) fn shown(value: &str) -> String {
    const MOST: usize = 80;
    if value.chars().count() <= MOST {
        return value.to_owned();
    }
    value.chars().take(MOST).chain(['…']).collect()
}

fn representative(mut seen: Seen, summary: &Summary) -> Shown {
    let mut shown = Shown::default();
    let runs = summary.cells.iter().filter_map(|cell| representative_run(cell, &summary.metric));
    for (trace, timeline, playback) in runs.filter_map(|run| seen.remove(&run)) {
        shown.traces.extend(trace);
        shown.timelines.extend(timeline);
        shown.playbacks.extend(playback);
    }
    shown
}
