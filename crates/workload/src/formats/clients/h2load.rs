//! h2load's text, and the rows of its `--log-file`.
//!
//! Source: h2load's manual. A row is `start µs since the epoch <tab> status <tab> µs until the end of the
//! response`; a failed stream has the status -1. Requests that never got a stream have no row; only the text
//! counts them. The *time for request* starts when the request's HEADERS are about to be written (HTTP/1.1:
//! its head).

use model::sample::FailureKind;
use model::variant::HttpVersion;

use super::{ClientOutput, OutputError, Row, after, status_failure, whole};

const NANOS_PER_US: u64 = 1000;
const ROW: &str = "of the form `<µs since the epoch><tab><status><tab><µs>`";

/// Parses the text and the rows.
///
/// # Errors
/// One of them is not h2load's, or they contradict each other.
pub fn parse(text: &str, log: &str, cut_off: u64) -> Result<ClientOutput, OutputError> {
    let counts = after(text, "requests:")?;
    let done = count(counts, "done")?;
    let version = version(text)?;
    let mut rows = rows(log, version)?;
    if rows.len() as u64 > done {
        return Err(OutputError(format!(
            "the file has {} rows, but the text reports only {done} requests as done",
            rows.len()
        )));
    }
    let broken = rows.iter().filter(|row| row.status.is_none()).count() as u64;
    let without = count(counts, "errored")?.saturating_sub(broken);
    let first_ns = rows.iter().map(|row| row.start_ns).min().unwrap_or(0);
    rows.iter_mut().for_each(|row| row.start_ns -= first_ns);
    rows.sort_by_key(|row| row.start_ns);
    let mut output = ClientOutput::totals(0, &[(FailureKind::Closed, without)]);
    (output.rows, output.version) = (rows, version);
    output.set_body_bytes(body_bytes(text)?, done, cut_off);
    if version.is_none() {
        output.lacks("the HTTP version: it made no connection", ["version"]);
    }
    Ok(output)
}

fn count(counts: &str, name: &str) -> Result<u64, OutputError> {
    let part = counts.split(',').find_map(|part| part.trim().strip_suffix(name)?.strip_suffix(' '));
    whole(part.ok_or_else(|| {
        OutputError::wrong(counts, format_args!("a list with a number of requests `{name}`"))
    })?)
}

/// The version on the first connection; `None` where none was made.
fn version(text: &str) -> Result<Option<HttpVersion>, OutputError> {
    const LABEL: &str = "Application protocol:";
    let Ok(protocol) = after(text, LABEL) else { return Ok(None) };
    match protocol {
        "http/1.1" => Ok(Some(HttpVersion::Http11)),
        "h2" | "h2c" => Ok(Some(HttpVersion::Http2)),
        "h3" => Ok(Some(HttpVersion::Http3)),
        other => Err(OutputError::wrong(other, "one of the application protocols http/1.1, h2, h2c and h3")),
    }
}

/// The exact number of `traffic: … 19.53KB (20000) data`.
fn body_bytes(text: &str) -> Result<u64, OutputError> {
    let traffic = after(text, "traffic:")?;
    let data = traffic.strip_suffix(" data").and_then(|rest| rest.strip_suffix(')')?.rsplit_once('('));
    let (_, bytes) =
        data.ok_or_else(|| OutputError::wrong(traffic, "a line that ends with `(BYTES) data`"))?;
    whole(bytes)
}

fn rows(log: &str, version: Option<HttpVersion>) -> Result<Vec<Row>, OutputError> {
    log.lines().filter(|line| !line.is_empty()).map(|line| row(line, version)).collect()
}

/// Newer versions may add columns.
fn row(line: &str, version: Option<HttpVersion>) -> Result<Row, OutputError> {
    let fault = || OutputError::wrong(line, ROW);
    let mut fields = line.split('\t');
    let mut number = || fields.next()?.parse::<i64>().ok();
    let (Some(start_us), Some(status), Some(took_us)) = (number(), number(), number()) else {
        return Err(fault());
    };
    let ns = |us: i64| u64::try_from(us).ok()?.checked_mul(NANOS_PER_US);
    let (start_ns, took_ns) = ns(start_us).zip(ns(took_us)).ok_or_else(fault)?;
    if start_ns.checked_add(took_ns).is_none() {
        return Err(fault());
    }
    let row = Row { start_ns, took_ns, version, ..Row::default() };
    if status == -1 {
        let failure = (FailureKind::Reset, "h2load reports a failed stream".to_owned());
        return Ok(Row { failure: Some(failure), version: None, ..row });
    }
    let status = u16::try_from(status).map_err(|_| fault())?;
    Ok(Row { status: Some(status), failure: status_failure(status), ..row })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("recorded/h2load-h2.txt");
    const LOG: &str = include_str!("recorded/h2load-h2.tsv");
    const ERRORS: &str = include_str!("recorded/h2load-h1s-errors.txt");
    const REFUSED: &str = include_str!("recorded/h2load-refused.txt");

    #[test]
    fn every_request_has_its_row() {
        let output = parse(TEXT, LOG, 0).unwrap();
        assert_eq!(
            (output.rows.len(), output.body_bytes, output.version),
            (20, Some(20_000), Some(HttpVersion::Http2))
        );
        assert!(output.rows.is_sorted_by_key(|row| row.start_ns) && output.rows[0].start_ns == 0);
        assert!(output.rows.iter().all(|row| row.status == Some(200) && row.failure.is_none()));
        // The text's own minimum and maximum.
        let times = || output.rows.iter().map(|row| row.took_ns);
        assert_eq!((times().min(), times().max()), (Some(50_000), Some(352_000)));
        assert!(output.failures.is_empty() && output.ok == 0);
        let output = parse(TEXT, LOG, 4).unwrap();
        assert_eq!(output.body_bytes, None, "4 of 24 may have come in part");
        assert!(output.not_reported.iter().any(|missing| missing.about == "workloads_match"));
    }

    #[test]
    fn errors_of_the_server_are_failures() {
        let log = "1795327823229104\t404\t133\n1795327823229109\t-1\t189\n";
        let text = ERRORS.replace("27860 done", "2 done").replace("0 errored", "4 errored");
        let output = parse(&text, log, 0).unwrap();
        assert_eq!(output.rows[0].failure.as_ref().unwrap().0, FailureKind::WrongStatus);
        assert_eq!(
            (output.rows[1].failure.as_ref().unwrap().0, output.rows[1].status),
            (FailureKind::Reset, None)
        );
        assert_eq!(output.failures, [(FailureKind::Closed, 3)]);
    }

    #[test]
    fn refused_connections_are_failures() {
        let output = parse(REFUSED, "", 0).unwrap();
        assert_eq!((output.rows.len(), output.failures.as_slice()), (0, &[(FailureKind::Closed, 20)][..]));
        assert!(output.not_reported.iter().any(|missing| missing.about == "version"));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let more = format!("{LOG}1795327823229104\t200\t133\n");
        let error = parse(TEXT, &more, 0).unwrap_err().to_string();
        assert_eq!(error, "the file has 21 rows, but the text reports only 20 requests as done");
        for (text, log, expected) in [
            ("", "", "the output has no line `requests: …`"),
            (TEXT, "1\t2\n", "`<µs since the epoch>"),
            (TEXT, "1\t99999\t3\n", "`<µs since the epoch>"),
            (TEXT, "9223372036854775807\t200\t3\n", "`<µs since the epoch>"),
            (&TEXT.replace("(20000) data", "data"), LOG, "a line that ends with `(BYTES) data`"),
            (
                &TEXT.replace("protocol: h2", "protocol: spdy"),
                LOG,
                "`spdy` is not one of the application protocols",
            ),
        ] {
            let error = parse(text, log, 0).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
