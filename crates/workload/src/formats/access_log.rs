//! Access logs of servers: one request per line, as a JSON object or in the form of a [`LinePattern`].
//!
//! Of a study's logs only lines that name a request of h123 count (`GROUP-REQUEST`, see [`RequestName`]).
//! Servers round the times in their logs; the log's description states the precision.

use std::borrow::Cow;

use model::number;
use model::sample::RequestName;
use model::units::NANOS_PER_S;
use serde_json::Value;

use super::line_pattern::LinePattern;

/// Upper bound on a line, in bytes.
pub const LONGEST_LINE_BYTES: usize = 64 << 10;

/// The form of a log's lines and the meaning of their fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFormat {
    /// The form of a line.
    pub form: LineForm,
    /// The field with the request's name; `None` in logs of other clients.
    pub request_id: Option<String>,
    /// The field with the time that the request took.
    pub request_time: TimeField,
    /// The precision of that time, in nanoseconds.
    pub precision_ns: u64,
    /// The field with the line's time stamp, since 1970.
    pub time: Option<TimeField>,
    /// The field with the status code.
    pub status: Option<String>,
    /// The field with the length of the body that was sent.
    pub body_bytes: Option<String>,
    /// The field with the client's port, alone or after its address and a colon.
    pub remote_port: Option<String>,
    /// The field with the path of the request, or with its request line (RFC 9112, section 3).
    pub path: Option<String>,
}

/// The form of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineForm {
    /// A JSON object. A field is a path of keys, separated by dots; a number is an index into a list, from 0.
    Json,
    /// Text with fields.
    Pattern(LinePattern),
}

/// A field that is a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeField {
    /// Its name.
    pub field: String,
    /// The unit of its number.
    pub unit: TimeUnit,
}

model::named! { "a unit of time";
    /// The unit of a time in a log.
    pub enum TimeUnit {
        /// Seconds.
        Seconds = "s",
        /// Milliseconds.
        Milliseconds = "ms",
        /// Microseconds.
        Microseconds = "us",
        /// Nanoseconds.
        Nanoseconds = "ns",
    }
}

/// A line that names a request of h123.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Which request.
    pub name: RequestName,
    /// How long the request took.
    pub request_time_ns: u64,
    /// The line's time stamp, Unix time.
    pub logged_unix_ns: Option<u64>,
    /// The status code.
    pub status: Option<u16>,
    /// The length of the body that was sent.
    pub body_bytes: Option<u64>,
    /// The client's port.
    pub remote_port: Option<u16>,
}

/// The request of a line, whoever sent it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedRequest<'l> {
    /// How long it took.
    pub request_time_ns: u64,
    /// The value of the last digit of that time as it was written, in nanoseconds.
    pub unit_ns: u64,
    /// The line's time stamp, Unix time.
    pub logged_unix_ns: Option<u64>,
    /// The method, if the field with the path is a request line.
    pub method: Option<Cow<'l, str>>,
    /// The path with its query; `-` and empty ones are missing.
    pub path: Option<Cow<'l, str>>,
    /// The status code.
    pub status: Option<u16>,
    /// The length of the body that was sent.
    pub body_bytes: Option<u64>,
    /// The client: its port or its address, as the log has it.
    pub client: Option<Cow<'l, str>>,
}

/// A line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It does not have the form.
    #[error("`{found}` is not {expected}")]
    Form {
        /// The beginning of the line.
        found: String,
        /// The expected form.
        expected: &'static str,
    },
    /// A field is missing or has the wrong form.
    #[error("`{field}` is {found}, not {expected}")]
    Field {
        /// The field.
        field: String,
        /// Its value.
        found: String,
        /// The expected form.
        expected: &'static str,
    },
}

impl TimeUnit {
    const fn ns(self) -> u64 {
        match self {
            TimeUnit::Seconds => NANOS_PER_S,
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::Nanoseconds => 1,
        }
    }
}

impl LogFormat {
    /// The first of its fields that is not in its pattern.
    pub fn missing_field(&self) -> Option<&str> {
        let LineForm::Pattern(pattern) = &self.form else { return None };
        let texts = [&self.request_id, &self.status, &self.body_bytes, &self.remote_port, &self.path];
        let times = self.time.iter().map(|time| &time.field);
        let all = std::iter::once(&self.request_time.field).chain(texts.into_iter().flatten()).chain(times);
        all.map(String::as_str).find(|field| !pattern.has(field))
    }

    /// Parses a line without its line end; `None` where it names no request of h123.
    ///
    /// # Errors
    /// The line does not have the form, or names a request without its time.
    pub fn read(&self, line: &[u8]) -> Result<Option<LogLine>, LineError> {
        self.with_values(line, |value| {
            let id = self.request_id.as_deref().and_then(value);
            let Some(name) = id.and_then(|id| id.parse::<RequestName>().ok()) else { return Ok(None) };
            let request = self.request(value)?;
            Ok(Some(LogLine {
                name,
                request_time_ns: request.request_time_ns,
                logged_unix_ns: request.logged_unix_ns,
                status: request.status,
                body_bytes: request.body_bytes,
                remote_port: request.client.and_then(|text| port(&text)),
            }))
        })
    }

    /// Parses a line without its line end, whoever sent the request, and shows it.
    ///
    /// # Errors
    /// The line does not have the form, or lacks the request's time.
    pub fn read_any<T>(
        &self,
        line: &[u8],
        show: impl FnOnce(LoggedRequest<'_>) -> T,
    ) -> Result<T, LineError> {
        self.with_values(line, |value| self.request(value).map(show))
    }

    /// Calls `read` with the values of a line by their names.
    fn with_values<T>(
        &self,
        line: &[u8],
        read: impl FnOnce(Values<'_, '_>) -> Result<T, LineError>,
    ) -> Result<T, LineError> {
        let text = String::from_utf8_lossy(&line[..line.len().min(LONGEST_LINE_BYTES)]);
        let fault = |expected| LineError::Form { found: super::shown(&text), expected };
        if line.len() > LONGEST_LINE_BYTES {
            return Err(fault("a line of at most 64 KiB"));
        }
        match &self.form {
            LineForm::Json => {
                let object: Value = serde_json::from_str(&text).map_err(|_| fault("a JSON object"))?;
                if !object.is_object() {
                    return Err(fault("a JSON object"));
                }
                read(&|field| text_at(&object, field))
            }
            LineForm::Pattern(pattern) => {
                let found = pattern.fields(&text).ok_or_else(|| fault("a line that matches the pattern"))?;
                read(&|name| {
                    let field = found.iter().find(|(known, _)| *known == name);
                    field.map(|(_, value)| Cow::Borrowed(*value))
                })
            }
        }
    }

    fn request<'v>(&self, value: Values<'_, 'v>) -> Result<LoggedRequest<'v>, LineError> {
        let fault = |field: &str, expected| {
            let found =
                value(field).map_or("missing".to_owned(), |found| format!("`{}`", super::shown(&found)));
            LineError::Field { field: field.to_owned(), found, expected }
        };
        // Servers write a dash for a missing value.
        let present = |field: &str| value(field).filter(|text| !text.is_empty() && text != "-");
        let took = value(&self.request_time.field);
        let request_time_ns = took.as_ref().and_then(|text| nanoseconds(text, self.request_time.unit));
        let request_time_ns =
            request_time_ns.ok_or_else(|| fault(&self.request_time.field, "a time that is not negative"))?;
        let unit_ns = took.map_or(0, |text| resolution_ns(&text, self.request_time.unit));
        let stamp = |of: &TimeField| value(&of.field).and_then(|text| time_stamp(&text, of.unit));
        let integer = |field: &Option<String>| {
            let Some(field) = field else { return Ok(None) };
            let value = present(field).map(|text| text.parse().map_err(|_| fault(field, "a whole number")));
            value.transpose()
        };
        let status = integer(&self.status)?.map(u16::try_from).transpose();
        let status =
            status.map_err(|_| fault(self.status.as_deref().unwrap_or_default(), "a status code"))?;
        let (method, path) = match self.path.as_deref().and_then(present) {
            Some(target) => split_target(target),
            None => (None, None),
        };
        Ok(LoggedRequest {
            request_time_ns,
            unit_ns,
            logged_unix_ns: self.time.as_ref().and_then(stamp),
            method,
            path,
            status,
            body_bytes: integer(&self.body_bytes)?,
            client: self.remote_port.as_deref().and_then(present),
        })
    }
}

/// The values of a line by the names of their fields.
type Values<'r, 'v> = &'r dyn Fn(&str) -> Option<Cow<'v, str>>;

/// Method and path of a request line, or a path alone.
fn split_target(target: Cow<'_, str>) -> (Option<Cow<'_, str>>, Option<Cow<'_, str>>) {
    let Some((method, rest)) = target.split_once(' ') else { return (None, Some(target)) };
    let path = rest.split(' ').next().filter(|path| !path.is_empty());
    (Some(Cow::Owned(method.to_owned())), path.map(|path| Cow::Owned(path.to_owned())))
}

/// The value of the last written digit of a number of units, in nanoseconds; at least 1.
fn resolution_ns(text: &str, unit: TimeUnit) -> u64 {
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    (0..decimals).fold(unit.ns(), |ns, _| ns / 10).max(1)
}

/// A time stamp: a number of units since 1970, or a date as in ISO 8601 or in the Common Log Format.
fn time_stamp(text: &str, unit: TimeUnit) -> Option<u64> {
    if text.starts_with(|c: char| c.is_ascii_digit())
        && let Some(ns) = nanoseconds(text, unit)
    {
        return Some(ns);
    }
    let common = || jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).ok()?.to_timestamp().ok();
    let stamp = text.parse::<jiff::Timestamp>().ok().or_else(common)?;
    u64::try_from(stamp.as_nanosecond()).ok()
}

/// Reads a log line by line, within limits.
#[derive(Debug)]
pub struct LogReader<'f> {
    format: &'f LogFormat,
    most_lines: usize,
    read: u64,
    log: Log,
}

/// A parsed log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The lines that name requests of h123, in the log's order.
    pub lines: Vec<LogLine>,
    /// Lines that name no such request.
    pub unrelated: u64,
    /// Lines that could not be read.
    pub unreadable: u64,
    /// The first of these, with its number and the reason.
    pub first_fault: Option<String>,
    /// Lines of requests beyond the limit.
    pub beyond: u64,
}

impl<'f> LogReader<'f> {
    /// A reader that keeps at most `most_lines` lines.
    pub fn new(format: &'f LogFormat, most_lines: usize) -> Self {
        LogReader { format, most_lines, read: 0, log: Log::default() }
    }

    /// Reads the next line, without its line end.
    pub fn handle_line(&mut self, line: &[u8]) {
        self.read += 1;
        match self.format.read(line) {
            Ok(Some(_)) if self.log.lines.len() >= self.most_lines => self.log.beyond += 1,
            Ok(Some(line)) => self.log.lines.push(line),
            Ok(None) => self.log.unrelated += 1,
            Err(error) => {
                self.log.unreadable += 1;
                let number = self.read;
                self.log.first_fault.get_or_insert_with(|| format!("line {number}: {error}"));
            }
        }
    }

    /// The log that was read.
    pub fn finish(self) -> Log {
        self.log
    }
}

/// The value at a path of keys, as text.
fn text_at<'v>(object: &'v Value, field: &str) -> Option<Cow<'v, str>> {
    let mut value = object;
    for key in field.split('.') {
        value = match value {
            Value::Object(object) => object.get(key)?,
            Value::Array(list) => list.get(key.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        _ => None,
    }
}

/// A decimal number of units, in nanoseconds.
fn nanoseconds(text: &str, unit: TimeUnit) -> Option<u64> {
    // Unix times fit until the year 2255.
    const MOST_NS: f64 = 9.0e18;
    if let Ok(whole) = text.parse::<u64>() {
        return whole.checked_mul(unit.ns());
    }
    let ns = text.parse::<f64>().ok()? * number::float(unit.ns());
    (0.0..MOST_NS).contains(&ns).then(|| number::nearest(ns))
}

fn port(text: &str) -> Option<u16> {
    text.rsplit(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json() -> LogFormat {
        LogFormat {
            form: LineForm::Json,
            request_id: Some("request.headers.X-Request-Id.0".to_owned()),
            request_time: TimeField { field: "took".to_owned(), unit: TimeUnit::Seconds },
            precision_ns: 1_000_000,
            time: Some(TimeField { field: "ts".to_owned(), unit: TimeUnit::Milliseconds }),
            status: Some("status".to_owned()),
            body_bytes: Some("size".to_owned()),
            remote_port: Some("request.remote".to_owned()),
            path: None,
        }
    }

    const LINE: &str = r#"{"request":{"remote":"10.0.0.1:40001","headers":{"X-Request-Id":["2-17","x"]}},"ts":1700000000123,
        "took":0.0125,"status":206,"size":"1000"}"#;

    fn line() -> LogLine {
        LogLine {
            name: RequestName { group: 2, request: 17 },
            request_time_ns: 12_500_000,
            logged_unix_ns: Some(1_700_000_000_123_000_000),
            status: Some(206),
            body_bytes: Some(1_000),
            remote_port: Some(40_001),
        }
    }

    #[test]
    fn a_json_line_is_read() {
        assert_eq!(json().read(LINE.as_bytes()), Ok(Some(line())));
        assert_eq!(json().read(LINE.replace("0.0125", "12.5e-3").as_bytes()), Ok(Some(line())));
    }

    #[test]
    fn lines_of_other_requests_are_not_faults() {
        for id in ["", "-", "7f3a", "1-", "0-1-2"] {
            assert_eq!(json().read(LINE.replace("2-17", id).as_bytes()), Ok(None), "{id}");
        }
        assert_eq!(json().read(b"{}"), Ok(None));
        assert_eq!(json().read(br#"{"request":{"headers":[]}}"#), Ok(None));
    }

    #[test]
    fn missing_values_are_none() {
        let less =
            LINE.replace("\"1000\"", "\"-\"").replace("\"10.0.0.1:40001\"", "null").replace("206", "\"\"");
        let expected = LogLine { status: None, body_bytes: None, remote_port: None, ..line() };
        assert_eq!(json().read(less.as_bytes()), Ok(Some(expected)));
    }

    #[test]
    fn a_line_in_a_pattern_is_read() {
        let pattern = LinePattern::parse("{port} [{at}] {id} {status} {us}us").unwrap();
        let mut format = LogFormat {
            form: LineForm::Pattern(pattern),
            request_id: Some("id".to_owned()),
            request_time: TimeField { field: "us".to_owned(), unit: TimeUnit::Microseconds },
            precision_ns: 1_000,
            time: Some(TimeField { field: "at".to_owned(), unit: TimeUnit::Nanoseconds }),
            status: Some("status".to_owned()),
            body_bytes: None,
            remote_port: Some("port".to_owned()),
            path: None,
        };
        assert_eq!(format.missing_field(), None);
        let found = format.read(b"40001 [1700000000123000000] 2-17 206 12500us").unwrap().unwrap();
        assert_eq!(found, LogLine { body_bytes: None, ..line() });
        format.body_bytes = Some("bytes".to_owned());
        assert_eq!(format.missing_field(), Some("bytes"));
    }

    #[test]
    fn any_request_is_read_whoever_sent_it() {
        let pattern = "{client} - - [{time}] \"{request}\" {status} {bytes} {took}";
        let format = LogFormat {
            form: LineForm::Pattern(LinePattern::parse(pattern).unwrap()),
            request_id: None,
            request_time: TimeField { field: "took".to_owned(), unit: TimeUnit::Seconds },
            precision_ns: 1_000,
            time: Some(TimeField { field: "time".to_owned(), unit: TimeUnit::Seconds }),
            status: Some("status".to_owned()),
            body_bytes: Some("bytes".to_owned()),
            remote_port: Some("client".to_owned()),
            path: Some("request".to_owned()),
        };
        let line = "10.0.0.7 - - [10/Oct/2000:13:55:36 -0700] \"GET /a?b HTTP/2.0\" 206 60000 0.004900";
        let expected = LoggedRequest {
            request_time_ns: 4_900_000,
            unit_ns: 1_000,
            logged_unix_ns: Some(971_211_336_000_000_000),
            method: Some("GET".into()),
            path: Some("/a?b".into()),
            status: Some(206),
            body_bytes: Some(60_000),
            client: Some("10.0.0.7".into()),
        };
        let read = |line: &str| format.read_any(line.as_bytes(), |found| assert_eq!(found, expected));
        assert_eq!(read(line), Ok(()));
        assert_eq!(read(&line.replace("10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36Z")), Ok(()));
        assert_eq!(read(&line.replace("10/Oct/2000:13:55:36 -0700", "971211336")), Ok(()));
        assert!(format.read_any(b"nonsense", |_| ()).is_err());
        assert_eq!(format.read(line.as_bytes()), Ok(None), "it names no request of h123");
    }

    #[test]
    fn faults_say_what_was_found() {
        for (text, expected) in [
            ("nonsense".to_owned(), "`nonsense` is not a JSON object"),
            ("[1]".to_owned(), "`[1]` is not a JSON object"),
            (LINE.replace("0.0125", "\"-\""), "`took` is `-`, not a time"),
            (LINE.replace("0.0125", "-1"), "`took` is `-1`, not a time"),
            (LINE.replace("0.0125", "1e300"), "`took` is `1e+300`, not a time"),
            (LINE.replace("0.0125", "\"NaN\""), "`took` is `NaN`, not a time"),
            (LINE.replace("\"took\"", "\"tok\""), "`took` is missing, not a time"),
            (LINE.replace("206", "99999"), "`status` is `99999`, not a status code"),
            (LINE.replace("1000", "many"), "`size` is `many`, not a whole number"),
            ("x".repeat(LONGEST_LINE_BYTES + 1), "`xxx"),
        ] {
            let error = json().read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected) && error.len() < 300, "{error}");
        }
    }

    #[test]
    fn a_reader_counts_what_it_does_not_keep() {
        let format = json();
        let mut reader = LogReader::new(&format, 2);
        for text in [LINE, "{}", "\u{7}", "oops", LINE, LINE] {
            reader.handle_line(text.as_bytes());
        }
        let log = reader.finish();
        assert_eq!((log.lines.len(), log.unrelated, log.unreadable, log.beyond), (2, 1, 2, 1));
        assert_eq!(log.first_fault.unwrap(), "line 3: `\\u{7}` is not a JSON object");
    }

    proptest! {
        #[test]
        fn every_time_comes_back(ns in 0u64..1 << 50, group: u16, request: u64) {
            for (unit, text) in [
                (TimeUnit::Nanoseconds, ns.to_string()),
                (TimeUnit::Seconds, format!("{}.{:09}", ns / NANOS_PER_S, ns % NANOS_PER_S)),
            ] {
                let mut format = json();
                format.request_time.unit = unit;
                let text = LINE.replace("0.0125", &text).replace("2-17", &format!("{group}-{request}"));
                let found = format.read(text.as_bytes()).unwrap().unwrap();
                prop_assert_eq!(found.name, RequestName { group, request });
                // As far as a number of 53 bits holds them.
                prop_assert!(found.request_time_ns.abs_diff(ns) <= ns >> 50);
            }
        }

        #[test]
        fn no_line_is_too_strange(line in prop::collection::vec(any::<u8>(), 0..200), cut in 0..LINE.len()) {
            let _ = json().read(&line);
            let mut mixed = LINE.as_bytes().to_vec();
            mixed.splice(cut..cut, line);
            if let Err(error) = json().read(&mixed) {
                prop_assert!(!error.to_string().contains('\n'));
            }
        }
    }
}
