//! `[access_log]` of a server's description: the log's file and the format of its lines.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use model::error::Source;
use model::number::float;
use model::{InputError, units};
use serde::Deserialize;
use toml::Spanned;
use workload::formats::access_log::{
    LONGEST_LINE_BYTES, LineForm, Log, LogFormat, LogReader, TimeField, TimeUnit,
};
use workload::formats::line_pattern::LinePattern;

use crate::description::plain_name;

/// How much of a log is read at most, in bytes.
const MOST_LOG_BYTES: u64 = 4 << 30;
const FORMATS: [&str; 2] = ["json", "pattern"];

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

/// `[access_log]` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenLog {
    file: Spanned<String>,
    format: Option<Spanned<String>>,
    pattern: Option<Spanned<String>>,
    request_id: Option<String>,
    request_time: Option<WrittenTime>,
    time: Option<WrittenStamp>,
    status: Option<String>,
    body_bytes: Option<String>,
    remote_port: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTime {
    field: String,
    unit: Spanned<String>,
    precision: Spanned<String>,
    from: String,
    to: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStamp {
    field: String,
    unit: Spanned<String>,
}

impl WrittenLog {
    pub(super) fn resolve(self, source: Source<'_>) -> Result<AccessLog, InputError> {
        plain_name(&self.file, source)?;
        let file = self.file.get_ref().clone();
        let Some(format) = &self.format else {
            let described = [self.request_id.is_some(), self.request_time.is_some(), self.pattern.is_some()];
            return if described.contains(&true) {
                let problem = "found no `format`, expected `format = \"json\"` or `format = \"pattern\"`";
                Err(source.error(self.file.span(), problem))
            } else {
                Ok(AccessLog { file, lines: None })
            };
        };
        let form = self.form(format, source)?;
        let place = format.span();
        let missing = |key: &str, example: &str| {
            let problem = format!("`format` requires `{key}`; add it, such as `{example}`");
            source.error(place.clone(), problem)
        };
        let request_id =
            self.request_id.ok_or_else(|| missing("request_id", "request_id = \"x_request_id\""))?;
        let example = "request_time = { field = \"took\", unit = \"s\", precision = \"1ms\", from = \"…\", to = \"…\" }";
        let time = self.request_time.ok_or_else(|| missing("request_time", example))?;
        let unit = |name: &Spanned<String>| {
            TimeUnit::parse(name.get_ref()).map_err(|problem| source.error(name.span(), problem))
        };
        let precision = &time.precision;
        let precision_ns = match units::parse_duration_ns(precision.get_ref()) {
            Ok(0) => {
                return Err(source
                    .error(precision.span(), "found 0, expected the resolution of the time, such as `1ms`"));
            }
            Ok(ns) => ns,
            Err(problem) => return Err(source.error(precision.span(), problem)),
        };
        let stamp = |stamp: WrittenStamp| Ok(TimeField { unit: unit(&stamp.unit)?, field: stamp.field });
        let format = LogFormat {
            form,
            request_id,
            request_time: TimeField { unit: unit(&time.unit)?, field: time.field },
            precision_ns,
            time: self.time.map(stamp).transpose()?,
            status: self.status,
            body_bytes: self.body_bytes,
            remote_port: self.remote_port,
        };
        if let (Some(field), Some(pattern)) = (format.missing_field(), &self.pattern) {
            let problem = format!("the pattern has no field `{{{field}}}`; add it");
            return Err(source.error(pattern.span(), problem));
        }
        Ok(AccessLog { file, lines: Some(Lines { format, from: time.from, to: time.to }) })
    }

    fn form(&self, format: &Spanned<String>, source: Source<'_>) -> Result<LineForm, InputError> {
        match (format.get_ref().as_str(), &self.pattern) {
            ("json", None) => Ok(LineForm::Json),
            ("pattern", Some(pattern)) => LinePattern::parse(pattern.get_ref())
                .map(LineForm::Pattern)
                .map_err(|error| source.error(pattern.span(), error.to_string())),
            ("pattern", None) => Err(source.error(
                format.span(),
                "`format = \"pattern\"` requires `pattern`, such as `pattern = \"{id} {status} {took}\"`",
            )),
            ("json", Some(pattern)) => {
                Err(source
                    .error(pattern.span(), "`format = \"json\"` excludes `pattern`; remove one of them"))
            }
            (other, _) => {
                let problem = format!("found `{other}`, expected one of {}", FORMATS.join(", "));
                Err(source.error(format.span(), problem))
            }
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

/// Passes every line to `show`, without its end and cut one byte after the longest allowed line.
fn each_line(path: &Path, mut show: impl FnMut(&[u8])) -> std::io::Result<()> {
    let mut file = BufReader::with_capacity(1 << 18, File::open(path)?.take(MOST_LOG_BYTES));
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
        let source = Source { file: "server.toml", text };
        let written: WrittenLog =
            toml::from_str(text).map_err(|error| source.toml_error(&error).to_string())?;
        written.resolve(source).map_err(|error| error.to_string())
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
            (
                "access.log",
                "../access.log",
                "server.toml:1:8: found `../access.log`, expected a file name without folders",
            ),
            ("\"pattern\"", "\"clf\"", "server.toml:2:10: found `clf`, expected one of json, pattern"),
            ("\"pattern\"", "\"json\"", "server.toml:3:11: `format = \"json\"` excludes `pattern`"),
            (
                "pattern = \"{id} {took} {status}\"\n",
                "",
                "server.toml:2:10: `format = \"pattern\"` requires `pattern`",
            ),
            (
                "format = \"pattern\"\n",
                "",
                "server.toml:1:8: found no `format`, expected `format = \"json\"`",
            ),
            ("{id} ", "{id}", "server.toml:3:11: there is no text between the fields `id` and `took`"),
            (
                "status = \"status\"",
                "status = \"code\"",
                "server.toml:3:11: the pattern has no field `{code}`",
            ),
            ("request_id = \"id\"\n", "", "server.toml:2:10: `format` requires `request_id`"),
            ("\"ms\"", "\"min\"", "server.toml:8:8: `min` is not a unit of time; write s, ms, us or ns"),
            ("\"1ms\"", "\"1\"", "server.toml:9:13: `1` is not a duration"),
            ("\"1ms\"", "\"0ms\"", "server.toml:9:13: found 0, expected the resolution of the time"),
            ("field = \"took\"\n", "", "missing field `field`"),
            ("file", "fiel", "unknown field `fiel`"),
        ] {
            assert!(GOOD.contains(found), "{found}");
            let error = parse(&GOOD.replacen(found, instead, 1)).unwrap_err();
            assert!(error.contains(expected), "{error} should say {expected}");
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
