//! `--log-format`: the form of the lines of an access log.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::Result;
use workload::formats::access_log::{LONGEST_LINE_BYTES, LineForm, LogFormat, TimeField, TimeUnit};
use workload::formats::line_pattern::LinePattern;

use crate::exit::UsageError;

/// The fields of patterns, for help and errors.
pub(crate) const FIELDS: &str =
    "{request} or {path}, {request_time_s} (or _ms, _us, _ns), {status}, {bytes}, {time} and {client}";

/// The field with the request's time in each unit.
const REQUEST_TIMES: [(&str, TimeUnit); 5] = [
    ("request_time_s", TimeUnit::Seconds),
    ("request_time_ms", TimeUnit::Milliseconds),
    ("request_time_us", TimeUnit::Microseconds),
    ("request_time_ns", TimeUnit::Nanoseconds),
    ("request_time", TimeUnit::Seconds),
];

/// The format of `--log-format`: a pattern of lines, or that of the logs of a server. Without the option,
/// that of the first server whose format the log's first line has.
///
/// # Errors
/// A [`UsageError`]: there is no such server, its format has no path, or a pattern lacks a field.
pub(crate) fn log_format(given: Option<&str>, log: &Path) -> Result<LogFormat> {
    match given {
        Some(pattern) if pattern.contains('{') => Ok(of_pattern(pattern)?),
        Some(server) => Ok(of_server(server)?),
        None => detect(log),
    }
}

fn of_pattern(text: &str) -> Result<LogFormat, UsageError> {
    let fault = |problem: String| UsageError(format!("--log-format: {problem}"));
    let pattern = LinePattern::parse(text).map_err(|error| fault(error.to_string()))?;
    let field = |name: &str| pattern.has(name).then(|| name.to_owned());
    let Some((took, unit)) = REQUEST_TIMES.into_iter().find(|(name, _)| pattern.has(name)) else {
        return Err(fault(format!(
            "the pattern has no field for the request's time; its fields are {FIELDS}"
        )));
    };
    let Some(path) = field("request").or_else(|| field("path")) else {
        return Err(fault(format!("the pattern has no field for the path; its fields are {FIELDS}")));
    };
    Ok(LogFormat {
        request_id: None,
        request_time: TimeField { field: took.to_owned(), unit },
        // What the lines show is measured.
        precision_ns: 1,
        time: field("time").map(|field| TimeField { field, unit: TimeUnit::Seconds }),
        status: field("status"),
        body_bytes: field("bytes"),
        remote_port: field("client"),
        path: Some(path),
        form: LineForm::Pattern(pattern),
    })
}

fn of_server(name: &str) -> Result<LogFormat, UsageError> {
    let adapter = drive::Servers::find(name).map_err(|error| UsageError(format!("--log-format: {error}")))?;
    let format = adapter.access_log.as_ref().and_then(|log| log.format());
    format.filter(|format| format.path.is_some()).cloned().ok_or_else(|| {
        UsageError(format!(
            "--log-format: servers/{name}/server.toml describes no log with a path; add `path` to its [access_log]"
        ))
    })
}

/// The format of the first server whose format the log's first line has.
fn detect(log: &Path) -> Result<LogFormat> {
    let mut line = Vec::new();
    let read = File::open(log)
        .and_then(|file| BufReader::new(file.take(LONGEST_LINE_BYTES as u64)).read_until(b'\n', &mut line));
    read.map_err(|error| UsageError(format!("cannot read {}: {error}", log.display())))?;
    let line = line.trim_ascii_end();
    let names = drive::Servers::names();
    let has_form = |format: &LogFormat| {
        let is_complete = |found: bool| found && format.path.is_some();
        format.read_any(line, |request| request.path.is_some()).is_ok_and(is_complete)
    };
    let found = names.iter().filter_map(|name| of_server(name).ok()).find(has_form);
    Ok(found.ok_or_else(|| {
        UsageError(format!(
            "the first line of {} has the format of no server ({}); describe it with --log-format, a pattern with \
             the fields {FIELDS}",
            log.display(),
            names.join(", ")
        ))
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_needs_a_time_and_a_path() {
        let format = of_pattern("{client} [{time}] \"{request}\" {status} {_} {request_time_us}us").unwrap();
        let line = b"10.0.0.1 [1000.5] \"GET /a HTTP/1.1\" 200 7 4900us";
        let read = format.read_any(line, |request| {
            (request.request_time_ns, request.path.map(|path| path.to_string()), request.logged_unix_ns)
        });
        assert_eq!(read, Ok((4_900_000, Some("/a".to_owned()), Some(1_000_500_000_000))));
        for (pattern, expected) in [
            (
                "{path} {status}",
                "--log-format: the pattern has no field for the request's time; its fields are",
            ),
            ("{request_time_ms} {status}", "--log-format: the pattern has no field for the path"),
            ("{path}{status}", "--log-format: there is no text between the fields"),
        ] {
            let error = of_pattern(pattern).unwrap_err().0;
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(of_server("nginx").is_ok());
        assert!(of_server("nginxx").unwrap_err().0.contains("nginxx"));
    }

    #[test]
    fn the_logs_of_servers_are_recognized() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("access.log");
        std::fs::write(
            &log,
            "{\"request_time_us\":4900,\"path\":\"/a\",\"status\":200,\"ended_unix_us\":5}\n",
        )
        .unwrap();
        assert_eq!(detect(&log).unwrap().request_time.unit, TimeUnit::Microseconds);
        std::fs::write(&log, "nonsense\n").unwrap();
        let error = detect(&log).unwrap_err().to_string();
        assert!(error.contains("has the format of no server") && error.contains("--log-format"), "{error}");
    }
}
