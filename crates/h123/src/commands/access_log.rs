//! `h123 report --access-log`: servers' logs condensed into the times of their requests.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::str::FromStr;

use analysis::condensed_log::{ClassTimes, CondensedLog, LogClasses, LogRow};
use anyhow::{Context, Result};
use clap::Args;
use comfy_table::CellAlignment;
use drive::read_lines;
use model::number::float;
use model::units::{counted, format_duration_ns, three_digits};
use report::TableText;
use serde_json::{Value, json};
use workload::formats::access_log::LogFormat;

use super::class_option::{ClassOption, classes};
use super::log_format::log_format;
use crate::exit::{Exit, UsageError};
use crate::terminal::{self, note, print};

/// Paths that are left out unless --leave-out names others: manifests and initialization segments.
const LEFT_OUT: [&str; 8] =
    ["*.mpd", "*.mpd?*", "*.m3u8", "*.m3u8?*", "*.f4m", "*.bootstrap", "*init*.m4s", "*init*.mp4"];
/// Times that are coarser than this share of a median distort it.
const COARSE_SHARE: f64 = 0.1;
const NANOS_PER_MS: f64 = 1e6;
const BUFFER_BYTES: usize = 1 << 18;

/// The options of access logs.
#[derive(Args, Debug)]
pub(crate) struct AccessLogArgs {
    /// Condense servers' access logs of any length; logs with the same NAME also together
    ///
    /// Example: --access-log h2=run1.log h2=run2.log
    #[arg(long = "access-log", id = "logs", value_name = "[NAME=]FILE", num_args = 1.., value_parser = str::parse::<NamedLog>)]
    logs: Vec<NamedLog>,
    /// The form of the lines: the name of a server, or a pattern of fields
    ///
    /// Example: --log-format nghttpx
    #[arg(long, value_name = "FORMAT", requires = "logs")]
    log_format: Option<String>,
    /// A class of requests by their paths, where `*` stands for any characters; repeatable
    ///
    /// Example: --class 'video=*.m4s'
    #[arg(long = "class", value_name = "NAME=PATTERN", requires = "logs", value_parser = str::parse::<ClassOption>)]
    classes: Vec<ClassOption>,
    /// Leave out paths like this in place of manifests and initialization segments; repeatable, and `none`
    /// leaves out nothing
    ///
    /// Example: --leave-out '*.mpd' --leave-out '*/init.mp4'
    #[arg(long, value_name = "PATTERN", requires = "logs")]
    leave_out: Vec<String>,
    /// Print comma-separated values
    ///
    /// Example: --csv
    #[arg(long, requires = "logs", conflicts_with_all = ["json", "markdown"])]
    csv: bool,
    /// Print a table of Markdown
    ///
    /// Example: --markdown
    #[arg(long, requires = "logs", conflicts_with = "json")]
    markdown: bool,
}

/// A log and the name of what it is of, such as a variant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedLog {
    name: Option<String>,
    path: PathBuf,
}

impl FromStr for NamedLog {
    type Err = String;

    /// A name contains no slash, so that paths may contain `=`.
    fn from_str(text: &str) -> Result<NamedLog, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !name.contains('/') && !path.is_empty() => {
                Ok(NamedLog { name: Some(name.to_owned()), path: path.into() })
            }
            _ if text.is_empty() => Err("name a file".to_owned()),
            _ => Ok(NamedLog { name: None, path: text.into() }),
        }
    }
}

/// A row of the tables: a log, or several together.
struct Row {
    name: String,
    is_pooled: bool,
    log: CondensedLog,
}

/// Condenses the logs and prints their tables.
///
/// # Errors
/// A log cannot be read, or none of its lines.
pub(crate) fn run(args: &AccessLogArgs, as_json: bool) -> Result<Exit> {
    let rules = LogClasses { classes: classes(&args.classes), left_out: left_out(&args.leave_out) };
    let mut logs = Vec::with_capacity(args.logs.len());
    for named in &args.logs {
        let format = log_format(args.log_format.as_deref(), &named.path)?;
        let log = condense(named, &format, &rules)?;
        if log.lines == log.unreadable {
            let reason = log.first_fault.as_deref().unwrap_or("the file is empty");
            return Err(UsageError(format!("{} has no request; {reason}", named.path.display())).into());
        }
        logs.push((named, log));
    }
    let rows = rows(logs);
    let table = || TableText::new(&COLUMNS, &table_rows(&rows, &rules));
    if as_json {
        print(&serde_json::to_string_pretty(&json_of(&rows, &rules))?)?;
    } else if args.csv {
        print(table().csv.trim_end())?;
    } else if args.markdown {
        print(table().markdown.trim_end())?;
    } else {
        print(&text(&rows, &rules))?;
    }
    notes(&rows, &rules).iter().for_each(|text| note(false, text));
    Ok(Exit::Done)
}

/// The patterns that are left out.
fn left_out(given: &[String]) -> Vec<String> {
    match given {
        [] => LEFT_OUT.map(str::to_owned).into(),
        [only] if only == "none" => Vec::new(),
        given => given.to_vec(),
    }
}

fn condense(named: &NamedLog, format: &LogFormat, rules: &LogClasses) -> Result<CondensedLog> {
    let shown = named.path.display();
    let file =
        File::open(&named.path).map_err(|error| UsageError(format!("cannot read {shown}: {error}")))?;
    let mut log = CondensedLog::new(rules);
    read_lines(BufReader::with_capacity(BUFFER_BYTES, file), |line| {
        let read = format.read_any(line, |request| {
            let path = request.path.as_deref().unwrap_or_default();
            let (status, request_time_ns, unit_ns) =
                (request.status, request.request_time_ns, request.unit_ns);
            log.add(rules, LogRow { path, status, request_time_ns, unit_ns });
        });
        if let Err(error) = read {
            log.add_unreadable(|| error.to_string());
        }
    })
    .with_context(|| format!("cannot read {shown}"))?;
    Ok(log)
}

/// Each log, and those with the same name together; without names, all together.
fn rows(logs: Vec<(&NamedLog, CondensedLog)>) -> Vec<Row> {
    let mut names: Vec<Option<&str>> = Vec::new();
    for (named, _) in &logs {
        if !names.contains(&named.name.as_deref()) {
            names.push(named.name.as_deref());
        }
    }
    let mut rows = Vec::new();
    for name in names {
        let of_name: Vec<&(&NamedLog, CondensedLog)> =
            logs.iter().filter(|(named, _)| named.name.as_deref() == name).collect();
        let is_alone = of_name.len() == 1;
        for (named, log) in &of_name {
            let file = named.path.display();
            let name = match name {
                Some(name) if is_alone => name.to_owned(),
                Some(name) => format!("{name}: {file}"),
                None => file.to_string(),
            };
            rows.push(Row { name, is_pooled: false, log: log.clone() });
        }
        if let ([(_, first), rest @ ..], false) = (of_name.as_slice(), is_alone) {
            let mut all = first.clone();
            rest.iter().for_each(|(_, other)| all.merge(other));
            let name = name.map_or_else(|| "all logs".to_owned(), |name| format!("{name}: all logs"));
            rows.push(Row { name, is_pooled: true, log: all });
        }
    }
    rows
}

const COLUMNS: [&str; 11] = [
    "log",
    "class",
    "requests",
    "failed",
    "failed_share",
    "median_ms",
    "iqr_ms",
    "q1_ms",
    "q3_ms",
    "p99_ms",
    "max_ms",
];

/// The times of a class in milliseconds: median, IQR, quartiles, 99th percentile, maximum.
fn times_ms(of: &ClassTimes) -> [Option<f64>; 6] {
    let at = |q: f64| of.times.quantile_ns(q).map(|ns| ns / NANOS_PER_MS);
    let (q1, q3) = (at(0.25), at(0.75));
    [at(0.5), q1.zip(q3).map(|(q1, q3)| q3 - q1), q1, q3, at(0.99), at(1.0)]
}

fn failed_share(of: &ClassTimes) -> Option<f64> {
    (of.requests > 0).then(|| float(of.failed) / float(of.requests))
}

/// The classes that a row has, with their names.
fn classes_of<'r>(row: &'r Row, rules: &'r LogClasses) -> impl Iterator<Item = (&'r str, &'r ClassTimes)> {
    rules.names().into_iter().zip(&row.log.classes).filter(|(_, of)| of.requests > 0)
}

fn table_rows(rows: &[Row], rules: &LogClasses) -> Vec<Vec<Value>> {
    // To the nanosecond: interpolated quantiles have no more.
    let number =
        |ms: Option<f64>| ms.map_or(Value::Null, |ms| json!((ms * NANOS_PER_MS).round() / NANOS_PER_MS));
    let of_row = |row: &Row| {
        let of_class = |(name, of): (&str, &ClassTimes)| {
            let head =
                [json!(row.name), json!(name), json!(of.requests), json!(of.failed), json!(failed_share(of))];
            head.into_iter().chain(times_ms(of).map(number)).collect()
        };
        classes_of(row, rules).map(of_class).collect::<Vec<Vec<Value>>>()
    };
    rows.iter().flat_map(of_row).collect()
}

fn json_of(rows: &[Row], rules: &LogClasses) -> Value {
    let of_row = |row: &Row| {
        let values: Vec<Value> = table_rows(std::slice::from_ref(row), rules)
            .into_iter()
            .map(|values| {
                COLUMNS.iter().zip(values).skip(1).map(|(name, value)| ((*name).to_owned(), value)).collect()
            })
            .collect();
        let log = &row.log;
        json!({
            "log": row.name,
            "pooled": row.is_pooled,
            "lines": log.lines,
            "unreadable_lines": log.unreadable,
            "left_out": log.left_out,
            "requests": log.requests(),
            "failed": log.failed(),
            "precision_ns": log.precision_ns(),
            "classes": values,
        })
    };
    json!({ "version": 1, "left_out": rules.left_out, "logs": rows.iter().map(of_row).collect::<Vec<_>>() })
}

fn text(rows: &[Row], rules: &LogClasses) -> String {
    let headings = ["log", "class", "requests", "failed", "median", "IQR", "25 %", "75 %", "99 %", "max"];
    let mut table = terminal::table(&headings);
    for row in rows {
        for (place, (name, of)) in classes_of(row, rules).enumerate() {
            let failed = match failed_share(of) {
                Some(share) if of.failed > 0 => format!("{} %", three_digits(share * 100.0)),
                _ => "0".to_owned(),
            };
            let times = times_ms(of).map(|ms| ms.map_or("–".to_owned(), |ms| format!("{ms:.3}")));
            let log = if place == 0 { row.name.clone() } else { String::new() };
            let head = [log, name.to_owned(), of.requests.to_string(), failed];
            table.add_row(head.into_iter().chain(times));
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("request time in ms, of requests with status 200\n{table}")
}

/// What readers of the tables have to know: what was left out, and the precision of the times.
fn notes(rows: &[Row], rules: &LogClasses) -> Vec<String> {
    let mut notes = Vec::new();
    for row in rows.iter().filter(|row| !row.is_pooled) {
        let log = &row.log;
        let mut parts =
            vec![format!("{} of {}", counted(log.requests(), "request"), counted(log.lines, "line"))];
        if log.left_out > 0 {
            parts.push(format!("{} left out ({})", log.left_out, rules.left_out.join(", ")));
        }
        if log.unreadable > 0 {
            let first = log.first_fault.as_deref().unwrap_or_default();
            parts.push(format!("{} unreadable; {first}", log.unreadable));
        }
        if let Some(precision_ns) = log.precision_ns() {
            parts.push(format!("times to {}", format_duration_ns(float(precision_ns))));
        }
        notes.push(format!("{}: {}", row.name, parts.join(", ")));
        notes.extend(classes_of(row, rules).filter_map(|(name, of)| coarse(row, name, of)));
    }
    notes
}

/// A warning if the log's precision is a large part of a median.
fn coarse(row: &Row, class: &str, of: &ClassTimes) -> Option<String> {
    let (precision_ns, median_ns) = (float(row.log.precision_ns()?), of.times.quantile_ns(0.5)?);
    (precision_ns > COARSE_SHARE * median_ns).then(|| {
        format!(
            "warning: {}: the times are coarse: multiples of {}, and the median of {class} is {}",
            row.name,
            format_duration_ns(precision_ns),
            format_duration_ns(median_ns)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(times_us: &[u64]) -> CondensedLog {
        let rules = LogClasses::default();
        let mut log = CondensedLog::new(&rules);
        for us in times_us {
            let row = LogRow { path: "/", status: Some(200), request_time_ns: us * 1000, unit_ns: 1000 };
            log.add(&rules, row);
        }
        log
    }

    #[test]
    fn logs_with_the_same_name_are_also_shown_together() {
        let named: Vec<NamedLog> =
            ["h2=a.log", "h2=b.log", "h1=c.log", "./x=y.log"].map(|text| text.parse().unwrap()).into();
        assert_eq!(named[3], NamedLog { name: None, path: "./x=y.log".into() });
        let logs =
            named.iter().zip([1_000, 3_000, 7_000, 9_000]).map(|(named, us)| (named, log(&[us]))).collect();
        let rows = rows(logs);
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["h2: a.log", "h2: b.log", "h2: all logs", "h1", "./x=y.log"]);
        assert_eq!(times_ms(&rows[2].log.classes[0])[0], Some(2.0));
    }

    #[test]
    fn coarse_times_are_a_warning() {
        let fine: Vec<u64> = (1..100).map(|number| 5_000 + number * 13).collect();
        let coarse: Vec<u64> = (1..100).map(|number| 1_000 * (number % 7 + 1)).collect();
        let notes_of = |times: &[u64]| {
            notes(&[Row { name: "a".into(), is_pooled: false, log: log(times) }], &LogClasses::default())
        };
        assert_eq!(notes_of(&fine), ["a: 99 requests of 99 lines, times to 1 µs"]);
        let found = notes_of(&coarse);
        assert!(
            found[1].starts_with("warning: a: the times are coarse: multiples of 1 ms, and the median"),
            "{found:?}"
        );
    }
}
