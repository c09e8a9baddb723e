//! `[access_log]` of a server's description: the log's file and the format of its lines.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use model::named::unknown;
use model::number::float;
use model::reader::{Key, Table};
use model::{InputError, keys, units};
use workload::formats::access_log::{LONGEST_LINE_BYTES, LineForm, Log, LogFormat, LogReader, TimeField};
use workload::formats::line_pattern::LinePattern;

use crate::description::plain_name;

/// How much of a log is read at most, in bytes.
const MOST_LOG_BYTES: u64 = 4 << 30;
const FORMATS: [&str; 2] = ["json", "pattern"];

pub(super) const KEYS: &[Key] = keys! {
    "file", "text", "required", r#""access.log""#, "Its name in the run's folder, without folders.";
    "format", "text", "none: the log is not read", r#""json""#, "The form of a line: `json` or `pattern`.";
    "pattern", "text", "required with `format = \"pattern\"`", r#""{id} {_} {status} {took}""#,
        "The line, with `{name}` for each field. `{_}` skips a field, and `{{` is a brace. Text must separate fields.";
    "request_id", "text", "required with `format`", r#""request.headers.X-Request-Id.0""#,
        "The field with the value of `x-request-id`. A JSON field is a path of keys with dots; a number is an index into a list, from 0.";
    "request_time", "table", "required with `format`",
        r#"{ field = "took", unit = "s", precision = "1ms", from = "first byte read", to = "last byte written" }"#,
        "The time that a request took; see below.";
    "time", "table", "none", r#"{ field = "ts", unit = "ms" }"#, "The line's timestamp since 1970; see below.";
    "status", "text", "none", r#""status""#, "The field with the status code.";
    "body_bytes", "text", "none", r#""body_bytes""#, "The field with the length of the response's body.";
    "remote_port", "text", "none", r#""remote_port""#,
        "The field with the client's port, which may follow an address and a colon. The times of packets require it.";
    "path", "text", "none", r#""path""#,
        "The field with the request's path, or with its request line. Condensed logs and `h123 record` require it.";
};
pub(super) const TIME_KEYS: &[Key] = keys! {
    "field", "text", "required", r#""took""#, "The field with the time.";
    "unit", "text", "required", r#""ms""#, "The unit of its number: `s`, `ms`, `us` or `ns`.";
};
pub(super) const REQUEST_TIME_KEYS: &[Key] = keys! {
    "precision", "duration", "required", r#""1ms""#, "The resolution of the server's clock for it; above 0.";
    "from", "text", "required", r#""first byte read""#, "The event at which the time begins.";
    "to", "text", "required", r#""last byte written""#, "The event at which it ends.";
};

/// A server's access log, as described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Its name in the run's folder.
    pub(crate) file: String,
    /// The format of its lines; `None` where the description lacks it.
    pub(crate) lines: Option<Lines>,
}

/// The format and meaning of a log's lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) format: LogFormat,
    /// The events between which a request's time is measured, for people.
    pub(crate) from: String,
    pub(crate) to: String,
}

/// The access log of a running or stopped server.
#[derive(Clone, Debug)]
pub struct AccessLogFile {
    /// The file.
    pub path: PathBuf,
    /// Its description.
    pub log: AccessLog,
}

/// Reads `[access_log]`, whose table has [`KEYS`].
///
/// # Errors
/// The place of a wrong or missing key.
pub(super) fn read(table: &Table<'_>) -> Result<AccessLog, InputError> {
    let file = table.required("file", |table, key| table.parsed(key, plain_name))?.value;
    let Some(form) = read_form(table)? else {
        return match table.keys().find(|key| key.value != "file") {
            None => Ok(AccessLog { file, lines: None }),
            Some(key) => Err(key.error(format!(
                "`{}` requires `format`; add `format = \"json\"` or `format = \"pattern\"`",
                key.value
            ))),
        };
    };
    let text = |key| Ok::<_, InputError>(table.text(key)?.map(|text| text.value));
    let time = table.required("request_time", Table::table)?;
    let time = time.with_keys(TIME_KEYS.iter().chain(REQUEST_TIME_KEYS))?;
    let stamp = table.table("time")?.map(|stamp| read_time(&stamp.with_keys(TIME_KEYS)?)).transpose()?;
    let format = LogFormat {
        form,
        request_id: Some(table.required("request_id", Table::text)?.value),
        request_time: read_time(&time)?,
        precision_ns: time.required("precision", Table::duration_above_zero)?.value,
        time: stamp,
        status: text("status")?,
        body_bytes: text("body_bytes")?,
        remote_port: text("remote_port")?,
        path: text("path")?,
    };
    if let (Some(field), Some(pattern)) = (format.missing_field(), table.string("pattern")?) {
        return Err(pattern.error(format!("`pattern` has no field `{{{field}}}`; add it")));
    }
    let event = |key| Ok::<_, InputError>(time.required(key, Table::text)?.value);
    Ok(AccessLog { file, lines: Some(Lines { format, from: event("from")?, to: event("to")? }) })
}

fn read_time(table: &Table<'_>) -> Result<TimeField, InputError> {
    let field = table.required("field", Table::text)?.value;
    Ok(TimeField { field, unit: table.required("unit", Table::named)?.value })
}

fn read_form(table: &Table<'_>) -> Result<Option<LineForm>, InputError> {
    let parse = |text: &str| LinePattern::parse(text).map_err(|error| error.to_string());
    let pattern = table.parsed("pattern", parse)?;
    let Some(format) = table.string("format")? else { return Ok(None) };
    match (format.value.as_str(), pattern) {
        ("json", None) => Ok(Some(LineForm::Json)),
        ("pattern", Some(pattern)) => Ok(Some(LineForm::Pattern(pattern.value))),
        ("pattern", None) => Err(table.missing("pattern")),
        ("json", Some(pattern)) => {
            Err(pattern.error("`pattern` excludes `format = \"json\"`; remove one of them"))
        }
        (other, _) => {
            Err(format.error(format!("`format`: {}", unknown(other, "a format of access logs", &FORMATS))))
        }
    }
}

impl AccessLog {
    /// The meaning of a request's time in this log, for people; `None` where the description lacks it.
    pub fn describe(&self) -> Option<String> {
        let Lines { format, from, to } = self.lines.as_ref()?;
        let precision = units::format_duration_ns(float(format.precision_ns));
        Some(format!("to {precision}, from: {from}; to: {to}"))
    }

    /// The format of its lines; `None` where the description lacks it.
    pub fn format(&self) -> Option<&LogFormat> {
        self.lines.as_ref().map(|lines| &lines.format)
    }

    /// The resolution of a request's time in this log, in nanoseconds; `None` where the description lacks it.
    pub fn precision_ns(&self) -> Option<u64> {
        self.lines.as_ref().map(|lines| lines.format.precision_ns)
    }
}

impl AccessLogFile {
    /// Reads the whole log and keeps at most `most_lines` lines with request ids. `None` where the
    /// description lacks the format.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, most_lines: usize) -> Result<Option<Log>> {
        let Some(Lines { format, .. }) = &self.log.lines else { return Ok(None) };
        let mut reader = LogReader::new(format, most_lines);
        each_line(&self.path, |line| reader.handle_line(line))
            .with_context(|| format!("cannot read {}", self.path.display()))?;
        Ok(Some(reader.finish()))
    }
}

fn each_line(path: &Path, show: impl FnMut(&[u8])) -> std::io::Result<()> {
    read_lines(BufReader::with_capacity(1 << 18, File::open(path)?.take(MOST_LOG_BYTES)), show)
}

/// Passes every line to `show`, without its end and cut one byte after the longest allowed line.
///
/// # Errors
/// Reading fails.
pub fn read_lines(mut file: impl BufRead, mut show: impl FnMut(&[u8])) -> std::io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let most = LONGEST_LINE_BYTES as u64 + 1;
        if file.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > LONGEST_LINE_BYTES {
            file.skip_until(b'\n')?;
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        show(&line);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const GOOD: &str = r#"file = "access.log"
format = "pattern"
pattern = "{id} {took} {status}"
request_id = "id"
status = "status"
[request_time]
field = "took"
unit = "ms"
precision = "1ms"
from = "first byte read"
to = "last byte written"
"#;

    fn parse(text: &str) -> Result<AccessLog, String> {
        let source = model::error::Source { file: "server.toml", text };
        model::reader::read_file(source, "[access_log]", KEYS, read).map_err(|error| error.to_string())
    }

    #[test]
    fn a_log_is_described() {
        let log = parse(GOOD).unwrap();
        assert_eq!(log.describe().unwrap(), "to 1 ms, from: first byte read; to: last byte written");
        assert_eq!(log.precision_ns(), Some(1_000_000));
        let bare = parse("file = \"access.log\"").unwrap();
        assert_eq!((bare.describe(), bare.lines), (None, None));
    }

    #[test]
    fn faults_name_the_place() {
        for (found, instead, expected) in [
            ("access.log", "../a", "server.toml:1:8: `file`: `../a` is not a plain file name; write one"),
            (
                "\"pattern\"",
                "\"clf\"",
                "server.toml:2:10: `format`: `clf` is not a format of access logs; the",
            ),
            ("\"pattern\"", "\"json\"", "server.toml:3:11: `pattern` excludes `format = \"json\"`"),
            (
                "pattern = \"{id} {took} {status}\"\n",
                "",
                "server.toml:1:1: [access_log] has no `pattern`; add one, such as `pattern = \"{id} {_}",
            ),
            ("format = \"pattern\"\n", "", "server.toml:2:1: `pattern` requires `format`; add"),
            (
                "{id} ",
                "{id}",
                "server.toml:3:11: `pattern`: there is no text between the fields `id` and `took`",
            ),
            (
                "status = \"status\"",
                "status = \"code\"",
                "server.toml:3:11: `pattern` has no field `{code}`; add it",
            ),
            ("request_id = \"id\"\n", "", "server.toml:1:1: [access_log] has no `request_id`; add one"),
            (
                "\"ms\"",
                "\"min\"",
                "server.toml:8:8: `unit`: `min` is not a unit of time; the choices are s, ms, us, ns",
            ),
            ("\"1ms\"", "\"1\"", "server.toml:9:13: `precision`: `1` is not a duration"),
            ("\"1ms\"", "\"0ms\"", "server.toml:9:13: `precision`: 0 is too short; write a duration above 0"),
            (
                "field = \"took\"\n",
                "",
                "server.toml:6:1: [access_log.request_time] has no `field`; add one, such",
            ),
            ("file", "fiel", "server.toml:1:1: `fiel` is not a key of [access_log]; did you mean `file`?"),
        ] {
            assert!(GOOD.contains(found), "{found}");
            let error = parse(&GOOD.replacen(found, instead, 1)).unwrap_err();
            assert!(error.contains(expected), "{error} should contain {expected}");
        }
    }

    #[test]
    fn a_log_is_read_line_by_line_within_limits() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let long = "x".repeat(3 * LONGEST_LINE_BYTES);
        let exact = "y".repeat(LONGEST_LINE_BYTES);
        write!(file, "0-1 12 200\r\n{long}\n{exact}\n\n7f 1 200\n0-2 13 404\n0-3 14 200\n0-4 1").unwrap();
        let log = AccessLogFile { path: file.path().to_owned(), log: parse(GOOD).unwrap() };
        let read = log.read(2).unwrap().unwrap();
        let found: Vec<_> = read.lines.iter().map(|line| (line.name.request, line.status)).collect();
        assert_eq!(found, [(1, Some(200)), (2, Some(404))]);
        assert_eq!((read.unreadable, read.unrelated, read.beyond), (4, 1, 1));
        assert!(read.first_fault.unwrap().starts_with("line 2: `xxx"));
        let gone = AccessLogFile { path: "/nonexistent/access.log".into(), log: log.log };
        assert!(
            format!("{:#}", gone.read(2).unwrap_err()).starts_with("cannot read /nonexistent/access.log")
        );
    }
}
