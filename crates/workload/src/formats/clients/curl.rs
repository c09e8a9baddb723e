//! curl's `--write-out '%{json}\n'`: one line for each transfer, one after the other.
//!
//! A request's time starts when curl is about to send it (`time_pretransfer`) and ends with `time_total`. Its
//! first byte is the first one of the response (`time_starttransfer`). curl does not report pauses between
//! transfers, so the stamps leave them out.

use model::sample::FailureKind;
use model::variant::HttpVersion;
use serde::Deserialize;

use super::{
    CUT_OFF, ClientOutput, EXPECTED_TIME, MissingValue, OutputError, Row, nanoseconds, shown, status_failure,
};

const NANOS_PER_S: f64 = 1e9;

#[derive(Deserialize)]
struct Transfer {
    exitcode: u32,
    errormsg: Option<String>,
    http_code: u16,
    http_version: String,
    num_connects: u64,
    size_download: u64,
    time_pretransfer: f64,
    time_starttransfer: f64,
    time_total: f64,
}

/// Parses the lines.
///
/// # Errors
/// The first line that is not a transfer.
pub fn parse(text: &str) -> Result<ClientOutput, OutputError> {
    let mut output = ClientOutput {
        body_bytes: Some(0),
        connections: Some(0),
        not_reported: vec![
            MissingValue { about: "requests_per_second", what: "how long all its transfers took together" },
            MissingValue { about: "goodput", what: "how long all its transfers took together" },
            CUT_OFF,
        ],
        ..ClientOutput::default()
    };
    let mut began_ns = 0_u64;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let transfer: Transfer = serde_json::from_str(line)
            .map_err(|error| OutputError::json(line, "curl's `%{json}`", &error))?;
        let [before_ns, first_ns, total_ns] =
            [transfer.time_pretransfer, transfer.time_starttransfer, transfer.time_total]
                .map(|seconds| nanoseconds(seconds, NANOS_PER_S));
        let times = (|| Some((before_ns?, first_ns?, total_ns?)))();
        let Some((before_ns, first_ns, total_ns)) = times else {
            return Err(OutputError::wrong(
                line,
                format_args!("a transfer with times in order: each is {EXPECTED_TIME}"),
            ));
        };
        let failure = failure(&transfer);
        output.rows.push(Row {
            start_ns: began_ns.saturating_add(before_ns),
            took_ns: total_ns.saturating_sub(before_ns),
            wait_ns: first_ns.checked_sub(before_ns).filter(|_| first_ns > 0),
            status: (transfer.http_code != 0).then_some(transfer.http_code),
            version: version(&transfer.http_version),
            body_bytes: Some(transfer.size_download),
            failure,
        });
        began_ns = began_ns.saturating_add(total_ns);
        let add = |sum: &mut Option<u64>, more: u64| *sum = sum.map(|sum| sum.saturating_add(more));
        add(&mut output.body_bytes, transfer.size_download);
        add(&mut output.connections, transfer.num_connects);
    }
    let first_ns = output.rows.first().map_or(0, |row| row.start_ns);
    output.rows.iter_mut().for_each(|row| row.start_ns = row.start_ns.saturating_sub(first_ns));
    if output.rows.is_empty() {
        return Err(OutputError::missing("line of JSON for a transfer"));
    }
    Ok(output)
}

fn version(text: &str) -> Option<HttpVersion> {
    Some(match text {
        "1.0" => HttpVersion::Http10,
        "1.1" => HttpVersion::Http11,
        "2" => HttpVersion::Http2,
        "3" => HttpVersion::Http3,
        _ => return None,
    })
}

/// By curl's exit code (curl(1), EXIT CODES), or by the status.
fn failure(transfer: &Transfer) -> Option<(FailureKind, String)> {
    let kind = match transfer.exitcode {
        0 => return status_failure(transfer.http_code),
        6 => FailureKind::Dns,
        7 => FailureKind::Refused,
        18 | 52 | 55 | 56 => FailureKind::Closed,
        28 => FailureKind::Timeout,
        35 | 51 | 58 | 59 | 60 | 77 | 83 => FailureKind::Tls,
        92 => FailureKind::Reset,
        27 => FailureKind::System,
        _ => FailureKind::Protocol,
    };
    let message = transfer.errormsg.as_deref().unwrap_or("no message");
    Some((kind, format!("curl error {}: {}", transfer.exitcode, shown(message))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("recorded/curl.txt");
    const ERRORS: &str = include_str!("recorded/curl-errors.txt");

    #[test]
    fn every_transfer_is_a_row() {
        let output = parse(TEXT).unwrap();
        let [first, second] = output.rows.as_slice() else { panic!("{output:?}") };
        assert_eq!((first.start_ns, first.took_ns, first.wait_ns), (0, 238_000, Some(180_000)));
        // The first took 448 µs in all, of which 210 went by before its request; the second waits for 61.
        assert_eq!(
            (second.start_ns, second.took_ns, second.wait_ns),
            (238_000 + 61_000, 5_054_000, Some(4_977_000))
        );
        assert!(
            output.rows.iter().all(|row| row.version == Some(HttpVersion::Http11) && row.status == Some(200))
        );
        assert_eq!((output.body_bytes, output.connections), (Some(2000), Some(1)));
    }

    #[test]
    fn failures_have_their_kind_and_words() {
        let output = parse(ERRORS).unwrap();
        let failures: Vec<_> = output.rows.iter().map(|row| row.failure.clone().unwrap()).collect();
        assert_eq!(failures[0].0, FailureKind::Tls);
        assert!(failures[0].1.starts_with("curl error 60: SSL: no alternative certificate"), "{failures:?}");
        assert_eq!(failures[1].0, FailureKind::Refused);
        assert_eq!(
            (output.rows[1].status, output.rows[1].version, output.rows[1].wait_ns),
            (None, None, None)
        );
    }

    #[test]
    fn faults_say_what_was_expected() {
        for (text, expected) in [
            ("", "the output has no line of JSON for a transfer"),
            ("curl: (7) no\n", "is not curl's `%{json}` (expected value"),
            (&TEXT.replacen("0.000448", "-1", 1), EXPECTED_TIME),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        // Found by guided search: the reason quoted the whole text.
        let long = parse(&format!("\"{}\"", "w".repeat(1_000))).unwrap_err().to_string();
        assert!(long.chars().count() < 300, "{long}");
    }
}
