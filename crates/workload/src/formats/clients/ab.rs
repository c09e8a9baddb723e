//! ab's text, and the percentiles of its option `-e`.
//!
//! The rows of ab's other file (`-g`) are whole milliseconds; the percentiles have microseconds, so these are
//! read. Percentile *i* is the time of the request with the rank *i* % of all. It is counted once for each
//! request whose rank is nearest to it. A request's time starts when it is written to a kept connection; the
//! first one of each connection starts with the connect call.

use model::number;
use model::sample::FailureKind;

use super::{ClientOutput, OutputError, TIMES, after, time, whole};

const NANOS_PER_MS: f64 = 1e6;
const NANOS_PER_S: f64 = 1e9;
const PERCENTILES: usize = 101;
/// The least share of requests on kept connections, in percent, that makes a closed loop.
const KEPT_PERCENT: u64 = 99;

/// Parses the text and the percentiles.
///
/// # Errors
/// One of them is not ab's, or the server did not keep connections open.
pub fn parse(text: &str, percentiles: &str, cut_off: u64) -> Result<ClientOutput, OutputError> {
    let complete = whole(after(text, "Complete requests:")?)?;
    let failed = whole(after(text, "Failed requests:")?)?;
    let bad = after(text, "Non-2xx responses:").map_or(Ok(0), whole)?;
    let kept = whole(after(text, "Keep-Alive requests:")?)?;
    let (short, broken) = split(text, failed)?;
    if kept.saturating_mul(100) < complete.saturating_sub(broken).saturating_mul(KEPT_PERCENT) {
        return Err(OutputError(format!(
            "only {kept} of {complete} requests were on kept connections: the server closes those of HTTP/1.0"
        )));
    }
    let failures =
        [(FailureKind::WrongStatus, bad), (FailureKind::WrongLength, short), (FailureKind::Closed, broken)];
    let mut output = ClientOutput::totals(complete.saturating_sub(failed).saturating_sub(bad), &failures);
    output.took_ns = took_ns(text, complete)?;
    let bytes = whole(after(text, "HTML transferred:")?.trim_end_matches(" bytes"))?;
    output.set_body_bytes(bytes, complete, cut_off);
    output.lacks("the HTTP version of responses; it sends HTTP/1.0 requests", ["version"]);
    if output.failures.is_empty() {
        output.times = spread(&read_percentiles(percentiles, complete)?, complete);
    } else {
        output.lacks("the times of good responses apart from those of bad ones", TIMES);
    }
    Ok(output)
}

/// Failed requests: those whose body differs in length from the first one, and all others. From the line
/// `(Connect: 0, Receive: 0, Length: 3, Exceptions: 0)`, which ab prints if there are any.
fn split(text: &str, failed: u64) -> Result<(u64, u64), OutputError> {
    if failed == 0 {
        return Ok((0, 0));
    }
    let detail = after(text, "(Connect:")?;
    let short = detail.split(',').find_map(|part| part.trim().strip_prefix("Length:"));
    let short =
        whole(short.ok_or_else(|| OutputError::wrong(detail, "a list with a number after `Length:`"))?)?;
    Ok((short.min(failed), failed.saturating_sub(short)))
}

/// From the mean rate, which has more digits than the time that ab prints.
fn took_ns(text: &str, complete: u64) -> Result<Option<u64>, OutputError> {
    let line = after(text, "Requests per second:")?;
    let rate = line.split(" [").next().unwrap_or(line);
    let rate: f64 =
        rate.trim().parse().map_err(|_| OutputError::wrong(rate, "a number of requests per second"))?;
    if complete == 0 || rate.is_nan() || rate <= 0.0 {
        return Ok(None);
    }
    time(&(number::float(complete) / rate).to_string(), NANOS_PER_S).map(Some)
}

/// The lines `<percent>,<ms>` below the heading, 0 to 100.
///
/// With fewer than 50 requests, ab reads some of the last percentiles from beyond the end of its list. They
/// are replaced by the last request's time.
fn read_percentiles(text: &str, requests: u64) -> Result<Vec<u64>, OutputError> {
    let mut times = Vec::with_capacity(PERCENTILES);
    for line in text.lines().skip(1) {
        let (percent, ms) = line.split_once(',').unwrap_or((line, ""));
        if percent.parse() != Ok(times.len()) {
            return Err(OutputError::wrong(line, format_args!("of the form `{},<ms>`", times.len())));
        }
        times.push(time(ms, NANOS_PER_MS)?);
    }
    let Some(last) = times.last().copied().filter(|_| times.len() == PERCENTILES) else {
        return Err(OutputError(format!("the file has {} of {PERCENTILES} percentiles", times.len())));
    };
    for (percent, ns) in times.iter_mut().enumerate() {
        // ab rounds the place.
        let place = (u128::from(requests) * percent as u128 + 50) / 100;
        if place >= u128::from(requests) {
            *ns = last;
        }
    }
    match times.is_sorted() {
        true => Ok(times),
        false => Err(OutputError("the percentiles decrease".to_owned())),
    }
}

/// Requests by time: each has the time of the percentile that is nearest by rank.
fn spread(percentiles: &[u64], requests: u64) -> Vec<(u64, u64)> {
    let up_to = |place: usize| {
        let rank = (u128::from(requests) * (2 * place as u128 + 1) + 100) / 200;
        u64::try_from(rank).unwrap_or(u64::MAX).min(requests)
    };
    let mut below = 0;
    let mut times = Vec::new();
    for (place, ns) in percentiles.iter().enumerate() {
        let end = up_to(place);
        if end > below {
            times.push((*ns, end - below));
        }
        below = end;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("recorded/ab.txt");
    const PERCENTILES: &str = include_str!("recorded/ab.csv");
    const ERRORS: &str = include_str!("recorded/ab-errors.txt");

    #[test]
    fn sums_and_percentiles_are_read() {
        let output = parse(TEXT, PERCENTILES, 0).unwrap();
        assert_eq!((output.ok, output.body_bytes), (5000, Some(5_000_000)));
        assert_eq!(output.times.iter().map(|(_, count)| count).sum::<u64>(), 5000);
        let line = PERCENTILES.lines().find_map(|line| line.strip_prefix("50,")).unwrap();
        let median = time(line, NANOS_PER_MS).unwrap();
        let mut below = 0;
        let found = output.times.iter().find(|(_, count)| {
            below += count;
            below >= 2500
        });
        assert_eq!(found.map(|(ns, _)| *ns), Some(median));
        // `Time taken for tests` has milliseconds.
        let taken = after(TEXT, "Time taken for tests:").unwrap().trim_end_matches(" seconds");
        let taken = time(taken, 1e9).unwrap();
        assert!(output.took_ns.unwrap().abs_diff(taken) <= 1_000_000, "{output:?}");
    }

    #[test]
    fn bad_responses_remove_the_times() {
        let output = parse(ERRORS, PERCENTILES, 0).unwrap();
        assert_eq!((output.ok, output.failures.as_slice()), (0, &[(FailureKind::WrongStatus, 20)][..]));
        assert!(
            output.times.is_empty()
                && output.not_reported.iter().any(|missing| missing.about == "service_time")
        );
        let text = TEXT.replace(
            "Failed requests:        0",
            "Failed requests:        7\n   (Connect: 0, Receive: 1, Length: 5, Exceptions: 1)",
        );
        let failures = parse(&text, PERCENTILES, 0).unwrap().failures;
        assert_eq!(failures, [(FailureKind::WrongLength, 5), (FailureKind::Closed, 2)]);
    }

    #[test]
    fn percentiles_beyond_the_end_of_few_requests_are_replaced() {
        let mut percentiles: Vec<String> =
            (0..=100).map(|percent| format!("{percent},{percent}.5")).collect();
        percentiles[98] = "98,0.257".to_owned();
        percentiles[99] = "99,0".to_owned();
        let text = format!("Percentage served,Time in ms\n{}\n", percentiles.join("\n"));
        let found = read_percentiles(&text, 24).unwrap();
        assert_eq!(found[97..], [97_500_000, 100_500_000, 100_500_000, 100_500_000]);
        assert!(read_percentiles(&text, 50).is_err(), "50 requests have all percentiles");
    }

    #[test]
    fn few_requests_keep_their_number() {
        let percentiles: Vec<u64> = (0..101).collect();
        for requests in [0, 1, 2, 3, 7, 100, 101, 12_345] {
            let times = spread(&percentiles, requests);
            assert_eq!(times.iter().map(|(_, count)| count).sum::<u64>(), requests, "{times:?}");
        }
        assert_eq!(spread(&percentiles, 1), [(50, 1)]);
    }

    #[test]
    fn faults_say_what_was_expected() {
        let closing = TEXT.replace("Keep-Alive requests:    5000", "Keep-Alive requests:    12");
        for (text, percentiles, expected) in [
            ("", PERCENTILES, "the output has no line `Complete requests: …`"),
            (&closing, PERCENTILES, "only 12 of 5000 requests were on kept connections"),
            (TEXT, "Percentage served,Time in ms\n0,0.1\n", "the file has 1 of 101 percentiles"),
            (TEXT, "Percentage served,Time in ms\n0,0.2\n2,0.1\n", "`2,0.1` is not of the form `1,<ms>`"),
            (TEXT, &PERCENTILES.replace("\n50,", "\n50,9"), "the percentiles decrease"),
            (TEXT, "Percentage served,Time in ms\n0,-1\n", "a time from 0"),
        ] {
            let error = parse(text, percentiles, 0).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
