//! `h123 record`: a timing script of what was observed.

mod browser;

use std::fs::{self, File};
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::Args;
use drive::input::read_text;
use drive::read_lines;
use model::formats::timing_script::{ParsedScript, TimingScript, jsonl, tsv};
use model::units::{counted, format_ns};
use model::{Cell, Plan};
use workload::recording::{Choice, LogRecorder, Recording, SessionOf, Waits, record_har, record_samples};

use self::browser::BrowserOptions;
use super::class_option::{ClassOption, classes};
use super::log_format::log_format;
use crate::exit::{Exit, UsageError};
use crate::study::result::open;
use crate::terminal::{note, print};

/// Make a timing script of a HAR file, an access log, a client's session in a result, or a browser's session
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  h123 record evening.har -o replays/evening.jsonl
  h123 record results/video --cell h2 --class 'video=/bytes/*' -o session.jsonl
  h123 record access.log --log-format nginx --client 40001 > session.jsonl
  h123 record session.jsonl --tsv > session.tsv
  h123 record https://www.example.test/ --browser chromium --variant h2 -o page.jsonl

A script contains what was requested, when, and what each request waited for; docs/scripts.md describes it. \
Studies replay it with a workload of kind `script`, and `h123 load` with --script. Requests without \
a response or with bodies are left out, and those of a result that failed; a status such as 404 in a HAR file or an access \
log is what a replay expects. Of a HAR file's fields only accept, accept-encoding and accept-language are \
kept, because others may be secrets.")]
pub(crate) struct RecordArgs {
    /// A HAR file, an access log, a result folder, a timing script to convert, or with --browser a URL
    ///
    /// Example: evening.har
    source: PathBuf,
    /// Write to this new file instead of standard output
    ///
    /// Example: -o replays/evening.jsonl
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write h2load's format, which has times and URLs only
    ///
    /// Example: --tsv
    #[arg(long)]
    tsv: bool,
    /// The title of the script
    ///
    /// Example: --title 'an evening of TV'
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// What requests waited for: `cause` (what named them), `class` (the last response of their class),
    /// `any` (the last response), or `nothing`
    ///
    /// Example: --waits any
    #[arg(long, value_name = "RULE", value_parser = str::parse::<Waits>)]
    waits: Option<Waits>,
    /// A class of requests by their paths, where `*` stands for any characters; repeatable
    ///
    /// Example: --class 'video=*.m4s'
    #[arg(long = "class", value_name = "NAME=PATTERN", value_parser = str::parse::<ClassOption>)]
    classes: Vec<ClassOption>,
    /// Keep the requests to this origin (default: that of the first request)
    ///
    /// Example: --origin https://media.example.test
    #[arg(long, value_name = "ORIGIN")]
    origin: Option<String>,
    /// Also keep this field of the requests of a HAR file; repeatable
    ///
    /// Example: --field referer
    #[arg(long = "field", value_name = "NAME")]
    fields: Vec<String>,
    /// The cell of a result, by one or several of its levels
    ///
    /// Example: --cell h2,lan
    #[arg(long, value_name = "LEVEL,…", value_delimiter = ',')]
    cell: Vec<String>,
    /// The run of a result (default: the first of the cell that succeeded)
    ///
    /// Example: --run 3
    #[arg(long, value_name = "NUMBER")]
    run: Option<u32>,
    /// The client: its number in a result (default: 0), or its address or port in an access log (default:
    /// all)
    ///
    /// Example: --client 40001
    #[arg(long, value_name = "CLIENT")]
    client: Option<String>,
    /// The form of an access log's lines: the name of a server, or a pattern of fields; `h123 report --help`
    /// lists them
    ///
    /// Example: --log-format '{client} [{time}] "{request}" {status} {bytes} {request_time_s}'
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    #[command(flatten)]
    browser: BrowserOptions,
}

/// Runs the command.
///
/// # Errors
/// The source has no session, or the file exists already.
pub(crate) fn run(
    args: &RecordArgs,
    watch_signals: impl FnOnce() -> Result<Arc<AtomicBool>>,
) -> Result<Exit> {
    if let Some(output) = args.output.as_deref().filter(|output| output.symlink_metadata().is_ok()) {
        return Err(UsageError(format!("{} exists; choose another name", output.display())).into());
    }
    let mut recording = record(args, watch_signals)?;
    if let Some(title) = &args.title {
        recording.script.title.clone_from(title);
    }
    let script = &recording.script;
    let text = if args.tsv { tsv::write(script) } else { jsonl::write(script) };
    // What was written can be read: the limits of scripts hold.
    ParsedScript::parse(&text)
        .map_err(|error| UsageError(format!("the script cannot be read again: {error}")))?;
    match &args.output {
        Some(output) => {
            fs::write(output, &text).with_context(|| format!("cannot write {}", output.display()))?;
        }
        None => print(text.trim_end())?,
    }
    note(false, &describe(&recording, args.tsv));
    Ok(Exit::Done)
}

fn record(args: &RecordArgs, watch_signals: impl FnOnce() -> Result<Arc<AtomicBool>>) -> Result<Recording> {
    let fault = |reason: &dyn std::fmt::Display| UsageError(format!("{}: {reason}", args.source.display()));
    let choice = Choice {
        origin: args.origin.as_ref().map(|origin| origin.trim_end_matches('/').to_owned()),
        waits: args.waits,
        classes: classes(&args.classes),
        fields: args.fields.iter().map(|name| name.to_ascii_lowercase()).collect(),
    };
    let text = args.source.to_str().unwrap_or_default();
    match (["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)), &args.browser.browser) {
        (true, Some(name)) => return args.browser.record(text, name, choice, watch_signals),
        (true, None) => {
            return Err(UsageError("a URL requires --browser, such as `--browser chromium`".into()).into());
        }
        (false, Some(_)) => {
            let problem = "--browser requires a URL; a browser's session in a result is recorded without it";
            return Err(UsageError(problem.into()).into());
        }
        (false, None) => {}
    }
    if args.source.is_dir() {
        return record_result(args, &choice);
    }
    if let Some(option) = [("--cell", !args.cell.is_empty()), ("--run", args.run.is_some())]
        .into_iter()
        .find_map(|(option, is_given)| is_given.then_some(option))
    {
        return Err(UsageError(format!(
            "{option} requires a result folder; {} is a file",
            args.source.display()
        ))
        .into());
    }
    if args.log_format.is_none() && args.client.is_none() {
        let name_one = "name a HAR file, an access log, a result folder or a timing script";
        // A log may be larger than the longest text.
        if let Ok(text) = read_text(&args.source) {
            match ParsedScript::parse(&text) {
                Ok(ParsedScript { script, .. }) => {
                    return Ok(Recording { script, ..Recording::default() });
                }
                Err(error) if text.lines().next().is_some_and(|first| first.contains("\"h123_script\"")) => {
                    return Err(fault(&error).into());
                }
                Err(_) => {}
            }
            if is_har(&text) {
                return Ok(record_har(&text, &choice).map_err(|error| fault(&error))?);
            }
        }
        return record_log(args, choice).map_err(|error| match error.downcast_ref::<UsageError>() {
            Some(usage) => UsageError(format!("{}; {name_one}", usage.0)).into(),
            None => error,
        });
    }
    record_log(args, choice)
}

/// Whether a text is meant to be HAR: an object with entries, with a log, or over several lines. Access logs
/// in JSON have an object in each line.
fn is_har(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim();
    let has_log = |first: &str| {
        let object = serde_json::from_str::<serde_json::Value>(first);
        object.map_or(true, |object| object.get("log").is_some_and(serde_json::Value::is_object))
    };
    text.starts_with('{')
        && (text.contains("\"entries\"") || has_log(text.lines().next().unwrap_or_default()))
}

fn record_log(args: &RecordArgs, choice: Choice) -> Result<Recording> {
    let fault = |reason: &dyn std::fmt::Display| UsageError(format!("{}: {reason}", args.source.display()));
    let format = log_format(args.log_format.as_deref(), &args.source)?;
    let mut recorder =
        LogRecorder::new(&format, args.client.clone(), choice).map_err(|error| fault(&error))?;
    let file = File::open(&args.source).map_err(|error| fault(&error))?;
    read_lines(BufReader::with_capacity(1 << 18, file), |line| recorder.handle_line(line))
        .with_context(|| format!("cannot read {}", args.source.display()))?;
    let name = args.source.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    Ok(recorder.finish(&name).map_err(|error| fault(&error))?)
}

fn record_result(args: &RecordArgs, choice: &Choice) -> Result<Recording> {
    let folder = open(&args.source)?;
    let plan = folder.read_plan().map_err(|error| UsageError(format!("{error:#}")))?;
    let cell = find_cell(&plan, &args.cell)?;
    let client = args.client.as_deref().map(|client| {
        client.parse().map_err(|_| UsageError(format!("--client {client} is not the number of a client")))
    });
    let client = client.transpose()?.unwrap_or(0);
    let result = args.source.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let session = SessionOf { plan: &plan, cell, client, result: &result };
    let first = cell.cell - u32::from(cell.group.group);
    let is_wanted = |run: u32, of_cell: u32, is_ok: bool| {
        of_cell == first && args.run.map_or(is_ok, |wanted| wanted == run)
    };
    for record in folder.records()? {
        let record = record.map_err(|damage| UsageError(format!("{}: {damage}", args.source.display())))?;
        if is_wanted(record.run, record.cell, record.outcome.is_ok()) {
            let recorded = record_samples(&record, session, choice);
            return Ok(recorded
                .map_err(|error| UsageError(format!("run {}, client {client}: {error}", record.run)))?);
        }
    }
    let wanted = args.run.map_or("no run that succeeded".to_owned(), |run| format!("no run {run}"));
    Err(UsageError(format!("{} has {wanted} of the cell {}", args.source.display(), cell.label())).into())
}

/// The only cell with all of these levels.
fn find_cell<'p>(plan: &'p Plan, wanted: &[String]) -> Result<&'p Cell, UsageError> {
    let has = |cell: &Cell| wanted.iter().all(|name| cell.levels.iter().any(|level| level.value == *name));
    let found: Vec<&Cell> = plan.cells.iter().filter(|cell| has(cell)).collect();
    let labels =
        |cells: &mut dyn Iterator<Item = &Cell>| cells.map(Cell::label).collect::<Vec<_>>().join("; ");
    match found.as_slice() {
        [only] => Ok(only),
        [] => Err(UsageError(format!(
            "--cell {} is no cell of the result; its cells are {}",
            wanted.join(","),
            labels(&mut plan.cells.iter())
        ))),
        several => Err(UsageError(format!(
            "the result has {}; choose one with --cell and its levels: {}",
            counted(several.len() as u64, "such cell"),
            labels(&mut several.iter().copied())
        ))),
    }
}

/// The script in one line, and what was left out of it. h2load's format does not have what requests waited
/// for.
fn describe(recording: &Recording, is_tsv: bool) -> String {
    let Recording { script, left_out } = recording;
    let TimingScript { requests, .. } = script;
    let waiting = requests.iter().filter(|request| !request.after.is_empty()).count();
    let kept = match (is_tsv, waiting) {
        (true, _) => "times and URLs only".to_owned(),
        (false, 1) => "1 waits for others".to_owned(),
        (false, _) => format!("{waiting} wait for others"),
    };
    let count = counted(requests.len() as u64, "request");
    let mut text = format!("{count} in {}; {kept}", format_ns(script.lasts_ns()));
    let left_out: Vec<String> = left_out.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    if !left_out.is_empty() {
        text = format!("{text}; left out: {}", left_out.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_described() {
        let request = |after: &[u32]| model::formats::timing_script::ScriptRequest {
            at_ns: 1_500_000_000 * after.len() as u64,
            after: after.to_vec(),
            ..Default::default()
        };
        let script = TimingScript { requests: vec![request(&[]), request(&[0])], ..TimingScript::default() };
        let left_out = [("that failed", 2), ("of other origins", 1)].into();
        let recording = Recording { script, left_out };
        assert_eq!(
            describe(&recording, false),
            "2 requests in 1.5 s; 1 waits for others; left out: 1 of other origins, 2 that failed"
        );
        let of_tsv = describe(&recording, true);
        assert!(of_tsv.starts_with("2 requests in 1.5 s; times and URLs only; left out: "), "{of_tsv}");
    }

    #[test]
    fn broken_har_is_told_from_access_logs() {
        for text in ["{", "{\"log\":{}}", "{\n \"log\": {\n", "\u{feff} {\"log\":{\"entries\":[}}", "{}x"] {
            assert!(is_har(text), "{text}");
        }
        for text in ["", "{\"path\":\"/\"}\n{\"path\":\"/\"}\n", "GET / 200", "{\"log\":\"access\"}\n"] {
            assert!(!is_har(text), "{text}");
        }
    }
}
