//! h123's timing scripts: JSON Lines, a header and then one request a line.
//!
//! ```text
//! {"h123_script":1,"title":"an hour of TV","origin":"https://tv.example","variant":"h2"}
//! {"at_ms":0,"url":"/a.mpd","status":200,"bytes":2310}
//! {"at_ms":41.5,"url":"/v/1.m4s","class":"video","after":[0],"gap_ms":12.25,"status":200,"bytes":3700000}
//! ```

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::{MOST_REQUESTS, ParsedScript, ScriptRequest, TimingScript, check_count, check_order, check_url};
use crate::formats::{LineError, nanoseconds, shown};
use crate::media::ByteRange;
use crate::named::Named;
use crate::options::ExpectedResponse;
use crate::request_fields::{check_method, parse_field};
use crate::variant::Variant;

/// The version of the format.
pub const VERSION: u32 = 1;
/// Upper bound on a line, in bytes.
pub const LONGEST_LINE_BYTES: usize = 64 << 10;
/// The most requests that one waits for, and the most fields of one.
const MOST_AFTER: usize = 1_000;
const MOST_FIELDS: usize = 100;
const NANOS_PER_MS: f64 = 1e6;
const EXPECTED_TIME: &str = "write milliseconds from 0 to 100 days";

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    h123_script: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    recorded: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
}

/// A request's line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    at_ms: f64,
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fields: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gap_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crc32: Option<String>,
}

/// What is wrong with a line, and the key at fault.
struct Fault {
    key: &'static str,
    problem: String,
}

/// Parses a script; skips empty lines.
///
/// # Errors
/// The first line that is not the header or a request, with its column.
pub fn parse(text: &str) -> Result<ParsedScript, LineError> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let Some((index, written)) = lines.next() else {
        return Err(LineError { line: 1, column: 1, problem: format!("the script is empty; {HEADER}") });
    };
    let header: Header = read_line(index, written, HEADER)?;
    let header = read_header(header).map_err(|fault| fault.at(index, written))?;
    let mut parsed = ParsedScript { script: header, lines: Vec::new() };
    for (index, written) in lines {
        let line: Line = read_line(index, written, REQUEST)?;
        let requests = &mut parsed.script.requests;
        let request = read_request(line, requests).map_err(|fault| fault.at(index, written))?;
        requests.push(request);
        parsed.lines.push(index + 1);
    }
    Ok(parsed)
}

const HEADER: &str = "begin with a line such as `{\"h123_script\":1}`";
const REQUEST: &str = "write a request such as `{\"at_ms\":12.5,\"url\":\"/a\"}`";

fn read_line<'l, T: Deserialize<'l>>(index: usize, written: &'l str, form: &str) -> Result<T, LineError> {
    let at = |column, problem| LineError { line: index + 1, column, problem };
    if written.len() > LONGEST_LINE_BYTES {
        return Err(at(1, format!("the line has more than {LONGEST_LINE_BYTES} bytes; {form}")));
    }
    serde_json::from_str(written).map_err(|error| {
        let reason = error.to_string();
        // serde_json counts its own lines; each of these texts is one.
        let reason = reason.split(" at line ").next().unwrap_or_default();
        at(error.column().max(1), format!("{}; {form}", shown(reason)))
    })
}

impl Fault {
    fn new(key: &'static str, problem: impl Into<String>) -> Fault {
        Fault { key, problem: problem.into() }
    }

    /// The fault at its key in a line.
    fn at(self, index: usize, written: &str) -> LineError {
        let place = written.find(&format!("\"{}\"", self.key)).unwrap_or(0);
        let column = written[..place].chars().count() + 1;
        LineError { line: index + 1, column, problem: format!("`{}`: {}", self.key, self.problem) }
    }
}

fn read_header(header: Header) -> Result<TimingScript, Fault> {
    let Header { h123_script, title, origin, recorded, variant } = header;
    if h123_script != VERSION {
        let problem =
            format!("this h123 reads version {VERSION}, not {h123_script}; use the h123 that recorded it");
        return Err(Fault::new("h123_script", problem));
    }
    if let Some(origin) = &origin {
        check_url(origin).map_err(|problem| Fault::new("origin", problem))?;
    }
    let variant = variant.map(|name| Variant::from_name(&name)).transpose();
    let variant = variant.map_err(|problem| Fault::new("variant", problem))?;
    // Names reach terminals and reports on one line.
    let clean = |text: String| crate::clean::clean(&text).replace(['\n', '\t'], " ");
    Ok(TimingScript { title: clean(title), origin, recorded: clean(recorded), variant, requests: Vec::new() })
}

fn read_request(line: Line, before: &[ScriptRequest]) -> Result<ScriptRequest, Fault> {
    let at_ns = time_ns("at_ms", line.at_ms)?;
    check_order(before, at_ns).map_err(|problem| Fault::new("at_ms", problem))?;
    check_count(before.len()).map_err(|problem| Fault::new("at_ms", problem))?;
    check_url(&line.url).map_err(|problem| Fault::new("url", problem))?;
    if let Some(method) = &line.method {
        check_method(method).map_err(|problem| Fault::new("method", problem))?;
    }
    if line.gap_ms.is_some() && line.after.is_empty() {
        return Err(Fault::new("gap_ms", "requires `after`; add it, or remove `gap_ms`"));
    }
    let expects = ExpectedResponse {
        status: line.status.map(read_status).transpose()?,
        body_bytes: line.bytes,
        body_crc32: line.crc32.as_deref().map(read_crc32).transpose()?,
    };
    Ok(ScriptRequest {
        at_ns,
        url: line.url,
        method: line.method,
        range: line.range.as_deref().map(read_range).transpose()?,
        fields: read_fields(line.fields)?,
        class: line.class.map(read_class).transpose()?,
        after: read_after(line.after, before.len())?,
        gap_ns: line.gap_ms.map_or(Ok(0), |ms| time_ns("gap_ms", ms))?,
        expects,
    })
}

fn time_ns(key: &'static str, ms: f64) -> Result<u64, Fault> {
    nanoseconds(ms, NANOS_PER_MS)
        .ok_or_else(|| Fault::new(key, format!("{ms} is not a time; {EXPECTED_TIME}")))
}

fn read_status(status: u16) -> Result<u16, Fault> {
    if (200..600).contains(&status) {
        return Ok(status);
    }
    Err(Fault::new("status", format!("{status} is not a final status code; write 200 to 599")))
}

fn read_crc32(text: &str) -> Result<u32, Fault> {
    const DIGITS: usize = 8;
    let is_hex = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = if is_hex { u32::from_str_radix(text, 16).ok() } else { None };
    number.ok_or_else(|| {
        let problem =
            format!("`{}` is not a CRC-32; write 8 hexadecimal digits, such as `cbf43926`", shown(text));
        Fault::new("crc32", problem)
    })
}

fn read_range(text: &str) -> Result<ByteRange, Fault> {
    let ends = text.split_once('-').and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    match ends {
        Some((first, last)) if first <= last => Ok(ByteRange { first, last }),
        _ => {
            let problem = format!("`{}` is not a range; write `FIRST-LAST`, such as `0-499`", shown(text));
            Err(Fault::new("range", problem))
        }
    }
}

fn read_fields(written: Vec<(String, String)>) -> Result<Vec<(String, String)>, Fault> {
    if written.len() > MOST_FIELDS {
        return Err(Fault::new("fields", format!("there are more than {MOST_FIELDS} fields; remove some")));
    }
    let mut fields = Vec::with_capacity(written.len());
    for (name, value) in written {
        let field = parse_field(&name, &value)
            .map_err(|problem| Fault::new("fields", format!("`{}`: {problem}", shown(&name))))?;
        fields.extend(field);
    }
    Ok(fields)
}

fn read_class(name: String) -> Result<String, Fault> {
    if crate::class::is_name(&name) {
        return Ok(name);
    }
    let problem =
        format!("`{}` is not the name of a class; use letters, digits, `-`, `_` and `.`", shown(&name));
    Err(Fault::new("class", problem))
}

fn read_after(after: Vec<u32>, number: usize) -> Result<Vec<u32>, Fault> {
    if after.len() > MOST_AFTER {
        return Err(Fault::new(
            "after",
            format!("there are more than {MOST_AFTER} requests; keep the last ones"),
        ));
    }
    match after.iter().find(|other| **other as usize >= number) {
        Some(other) => {
            let problem = format!("request {other} does not precede request {number}; requests count from 0");
            Err(Fault::new("after", problem))
        }
        None => Ok(after),
    }
}

/// Writes a script.
pub fn write(script: &TimingScript) -> String {
    let header = Header {
        h123_script: VERSION,
        title: script.title.clone(),
        origin: script.origin.clone(),
        recorded: script.recorded.clone(),
        variant: script.variant.map(|variant| variant.name().to_owned()),
    };
    let mut text = String::new();
    push_line(&mut text, &header);
    for request in script.requests.iter().take(MOST_REQUESTS) {
        push_line(&mut text, &line_of(request));
    }
    text
}

fn line_of(request: &ScriptRequest) -> Line {
    let ms = |ns: u64| crate::number::float(ns) / NANOS_PER_MS;
    Line {
        at_ms: ms(request.at_ns),
        url: request.url.clone(),
        method: request.method.clone(),
        range: request.range.map(|range| format!("{}-{}", range.first, range.last)),
        fields: request.fields.clone(),
        class: request.class.clone(),
        after: request.after.clone(),
        gap_ms: (!request.after.is_empty()).then(|| ms(request.gap_ns)),
        status: request.expects.status,
        bytes: request.expects.body_bytes,
        crc32: request.expects.body_crc32.map(|crc32| format!("{crc32:08x}")),
    }
}

fn push_line(text: &mut String, line: &impl Serialize) {
    // Texts and finite numbers always have a form in JSON, and writing to a String cannot fail.
    if let Ok(line) = serde_json::to_string(line) {
        let _ = writeln!(text, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: &str =
        "{\"h123_script\":1,\"title\":\"T\",\"origin\":\"https://a.test\",\"variant\":\"h2\"}\n";

    #[test]
    fn every_part_of_a_request_is_read_and_written() {
        let text = format!(
            "{HEAD}{}\n{}\n",
            r#"{"at_ms":0.0,"url":"/a?b","status":200,"bytes":10,"crc32":"cbf43926"}"#,
            r#"{"at_ms":12.5,"url":"/v.mp4","method":"GET","range":"0-499","fields":[["accept","*/*"]],"class":"video","after":[0],"gap_ms":2.25,"status":206}"#
        );
        let parsed = parse(&text).unwrap();
        assert_eq!(parsed.lines, [2, 3]);
        let script = parsed.script;
        assert_eq!((script.title.as_str(), script.variant), ("T", Some(Variant::H2)));
        assert_eq!(script.origin.as_deref(), Some("https://a.test"));
        let expects =
            ExpectedResponse { status: Some(200), body_bytes: Some(10), body_crc32: Some(0xcbf4_3926) };
        let first = ScriptRequest { url: "/a?b".into(), expects, ..ScriptRequest::default() };
        let second = ScriptRequest {
            at_ns: 12_500_000,
            url: "/v.mp4".into(),
            method: Some("GET".into()),
            range: ByteRange::of_length(0, 500),
            fields: vec![("accept".into(), "*/*".into())],
            class: Some("video".into()),
            after: vec![0],
            gap_ns: 2_250_000,
            expects: ExpectedResponse { status: Some(206), ..ExpectedResponse::default() },
        };
        assert_eq!(script.requests, [first, second]);
        assert_eq!(write(&script), text);
    }

    #[test]
    fn faults_name_line_and_column() {
        let line = |line: &str| format!("{HEAD}\n{{\"at_ms\":5,\"url\":\"/\"}}\n{line}");
        for (text, expected) in [
            (String::new(), "line 1: the script is empty; begin with a line such as"),
            ("{}".to_owned(), "line 1, column 2: missing field `h123_script`; begin with a line"),
            (
                "{\"h123_script\":2}".to_owned(),
                "line 1, column 2: `h123_script`: this h123 reads version 1, not 2",
            ),
            (HEAD.replace("h2\"", "h9\""), "line 1, column 56: `variant`: `h9` is not a variant"),
            (HEAD.replace("title", "titel"), "line 1, column 24: unknown field `titel`"),
            (line("nonsense"), "line 4, column 2: expected ident; write a request such as"),
            (line("{\"at_ms\":6}"), "line 4, column 11: missing field `url`; write a request"),
            (line("{\"at_ms\":4,\"url\":\"/\"}"), "line 4, column 2: `at_ms`: not in order of time; sort"),
            (line("{\"at_ms\":-1,\"url\":\"/\"}"), "line 4, column 2: `at_ms`: -1 is not a time; write"),
            (line("{\"at_ms\":6,\"url\":\"/a b\"}"), "line 4, column 12: `url`: `/a b` is not a URL; write"),
            (
                line("{\"at_ms\":6,\"url\":\"/\",\"after\":[1]}"),
                "line 4, column 22: `after`: request 1 does not precede",
            ),
            (
                line("{\"at_ms\":6,\"url\":\"/\",\"gap_ms\":1}"),
                "line 4, column 22: `gap_ms`: requires `after`; add",
            ),
            (
                line("{\"at_ms\":6,\"url\":\"/\",\"range\":\"5-4\"}"),
                "line 4, column 22: `range`: `5-4` is not a range",
            ),
            (
                line("{\"at_ms\":6,\"url\":\"/\",\"crc32\":\"+bf43926\"}"),
                "line 4, column 22: `crc32`: `+bf43926` is not",
            ),
            (
                line("{\"at_ms\":6,\"url\":\"/\",\"status\":103}"),
                "line 4, column 22: `status`: 103 is not a final",
            ),
            (
                line("{\"at_ms\":6,\"url\":\"/\",\"class\":\"a@b\"}"),
                "line 4, column 22: `class`: `a@b` is not the",
            ),
            (
                line("{\"at_ms\":6,\"url\":\"/\",\"fields\":[[\"te\",\"x\"]]}"),
                "line 4, column 22: `fields`: `te`: h123 sets",
            ),
            (
                line(&format!("{{\"at_ms\":6,\"url\":\"{}\"}}", "a".repeat(70_000))),
                "line 4: the line has more than",
            ),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}\n{expected}");
            assert!(error.len() < 300, "{error}");
        }
    }

    proptest! {
        #[test]
        fn every_time_comes_back(mut times in proptest::collection::vec(0u64..10 * 86_400_000_000_000, 1..20), gap_ns in 0u64..1 << 40) {
            times.sort_unstable();
            let request = |(number, at_ns): (usize, &u64)| ScriptRequest {
                at_ns: *at_ns,
                url: format!("/{number}"),
                after: if number > 0 { vec![crate::number::small(number - 1)] } else { Vec::new() },
                gap_ns: if number > 0 { gap_ns } else { 0 },
                ..ScriptRequest::default()
            };
            let requests = times.iter().enumerate().map(request).collect();
            let script = TimingScript { requests, ..TimingScript::default() };
            prop_assert_eq!(parse(&write(&script)).unwrap().script, script);
        }
    }
}
