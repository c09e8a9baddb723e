//! ab's text, and the percentiles of its option `-e`.
//!
//! The rows of ab's other file (`-g`) are whole milliseconds; the percentiles have microseconds, so these are what is read.
//! Percentile *i* is the time of the request with the rank *i* % of all; here it stands for the requests that are nearest to it
//! by rank. A request's time begins when it is written on a kept connection; the first one of each connection counts from the
//! connect call.

use model::sample::FailureKind;

use super::{Said, Unreadable, after, nanoseconds, not_reported, of_the_head, whole, without_cut_off};

const NANOS_PER_MS: f64 = 1e6;
const NANOS_PER_S: f64 = 1e9;
const PERCENTILES: usize = 101;
/// Of a closed loop on held connections, so many requests of a hundred went over one that was kept.
const KEPT_OF_HUNDRED: u64 = 99;

/// Reads the text and the percentiles.
///
/// # Errors
/// One of them is not ab's, or the server did not keep connections.
pub fn parse(text: &str, percentiles: &str, cut_off: u64) -> Result<Said, Unreadable> {
    let complete = whole(after(text, "Complete requests:")?)?;
    let failed = whole(after(text, "Failed requests:")?)?;
    let bad = after(text, "Non-2xx responses:").map_or(Ok(0), whole)?;
    let kept = whole(after(text, "Keep-Alive requests:")?)?;
    let (short, broken) = split(text, failed)?;
    if kept.saturating_mul(100) < complete.saturating_sub(broken).saturating_mul(KEPT_OF_HUNDRED) {
        let expected = format!("nearly all {complete}: the server closes the connections of HTTP/1.0");
        return Err(Unreadable::new(&format!("{kept} requests on kept connections"), expected));
    }
    let failures =
        [(FailureKind::WrongStatus, bad), (FailureKind::WrongLength, short), (FailureKind::Closed, broken)];
    let bytes = whole(after(text, "HTML transferred:")?.trim_end_matches(" bytes"))?;
    let bytes = without_cut_off(bytes, complete, cut_off);
    let mut said = Said {
        ok: complete.saturating_sub(failed).saturating_sub(bad),
        failures: failures.into_iter().filter(|(_, count)| *count > 0).collect(),
        took_ns: took_ns(text, complete)?,
        body_bytes: bytes.clone().ok(),
        ..Said::default()
    };
    said.not_reported.extend(of_the_head().into_iter().chain(bytes.err()));
    said.not_reported.extend([
        not_reported("version", "which version of HTTP responses used; it asks in HTTP/1.0"),
        not_reported("connections", "how many connections it opened"),
        not_reported("unfinished", "how many requests the end cut off"),
    ]);
    if said.failures.is_empty() {
        said.times = spread(&read_percentiles(percentiles, complete)?, complete);
    } else {
        const WHAT: &str = "the times of good responses apart from those of bad ones";
        said.not_reported.extend([not_reported("request_time", WHAT), not_reported("service_time", WHAT)]);
    }
    Ok(said)
}

/// The failed requests with a body of another length than the first, and all others, from the line
/// `(Connect: 0, Receive: 0, Length: 3, Exceptions: 0)` that follows where there are any.
fn split(text: &str, failed: u64) -> Result<(u64, u64), Unreadable> {
    if failed == 0 {
        return Ok((0, 0));
    }
    let detail = after(text, "(Connect:")?;
    let short = detail.split(',').find_map(|part| part.trim().strip_prefix("Length:"));
    let short = whole(short.ok_or_else(|| Unreadable::new(detail, "a number behind `Length:`"))?)?;
    Ok((short.min(failed), failed.saturating_sub(short)))
}

/// From the mean rate, which has more digits than the time that ab prints.
fn took_ns(text: &str, complete: u64) -> Result<Option<u64>, Unreadable> {
    let line = after(text, "Requests per second:")?;
    let rate = line.split(" [").next().unwrap_or(line);
    let rate: f64 =
        rate.trim().parse().map_err(|_| Unreadable::new(rate, "a number of requests a second"))?;
    if complete == 0 || rate.is_nan() || rate <= 0.0 {
        return Ok(None);
    }
    #[expect(clippy::cast_precision_loss, reason = "far less than 2^53 requests")]
    let seconds = complete as f64 / rate;
    nanoseconds(&seconds.to_string(), NANOS_PER_S).map(Some)
}

/// The lines `<percent>,<ms>` below the heading, 0 to 100.
///
/// Of fewer than 50 requests ab reads some of the last percentiles behind the end of its list, whatever stands there; the
/// last request's time is taken in their place.
fn read_percentiles(text: &str, requests: u64) -> Result<Vec<u64>, Unreadable> {
    let mut times = Vec::with_capacity(PERCENTILES);
    for line in text.lines().skip(1) {
        let (percent, ms) = line.split_once(',').unwrap_or((line, ""));
        if percent.parse() != Ok(times.len()) {
            return Err(Unreadable::new(line, format!("`{},<ms>`", times.len())));
        }
        times.push(nanoseconds(ms, NANOS_PER_MS)?);
    }
    let Some(last) = times.last().copied().filter(|_| times.len() == PERCENTILES) else {
        return Err(Unreadable::new(&format!("{} percentiles", times.len()), "all from 0 to 100"));
    };
    for (percent, ns) in times.iter_mut().enumerate() {
        // As ab computes the place, rounded.
        let place = (u128::from(requests) * percent as u128 + 50) / 100;
        if place >= u128::from(requests) {
            *ns = last;
        }
    }
    match times.is_sorted() {
        true => Ok(times),
        false => Err(Unreadable::new("percentiles", "each no less than the one before")),
    }
}

/// So many requests, each with the time of the percentile that is nearest by rank.
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
        let said = parse(TEXT, PERCENTILES, 0).unwrap();
        assert_eq!((said.ok, said.body_bytes), (5000, Some(5_000_000)));
        assert_eq!(said.times.iter().map(|(_, count)| count).sum::<u64>(), 5000);
        let line = PERCENTILES.lines().find_map(|line| line.strip_prefix("50,")).unwrap();
        let median = nanoseconds(line, NANOS_PER_MS).unwrap();
        let mut below = 0;
        let found = said.times.iter().find(|(_, count)| {
            below += count;
            below >= 2500
        });
        assert_eq!(found.map(|(ns, _)| *ns), Some(median));
        // `Time taken for tests` has milliseconds.
        let taken = after(TEXT, "Time taken for tests:").unwrap().trim_end_matches(" seconds");
        let taken = nanoseconds(taken, 1e9).unwrap();
        assert!(said.took_ns.unwrap().abs_diff(taken) <= 1_000_000, "{said:?}");
    }

    #[test]
    fn bad_responses_take_the_times_away() {
        let said = parse(ERRORS, PERCENTILES, 0).unwrap();
        assert_eq!((said.ok, said.failures.as_slice()), (0, &[(FailureKind::WrongStatus, 20)][..]));
        assert!(
            said.times.is_empty()
                && said.not_reported.iter().any(|not_reported| not_reported.about == "service_time")
        );
        let text = TEXT.replace(
            "Failed requests:        0",
            "Failed requests:        7\n   (Connect: 0, Receive: 1, Length: 5, Exceptions: 1)",
        );
        let failures = parse(&text, PERCENTILES, 0).unwrap().failures;
        assert_eq!(failures, [(FailureKind::WrongLength, 5), (FailureKind::Closed, 2)]);
    }

    #[test]
    fn what_ab_reads_behind_the_end_of_few_requests_is_not_believed() {
        let mut percentiles: Vec<String> =
            (0..=100).map(|percent| format!("{percent},{percent}.5")).collect();
        percentiles[98] = "98,0.257".to_owned();
        percentiles[99] = "99,0".to_owned();
        let text = format!("Percentage served,Time in ms\n{}\n", percentiles.join("\n"));
        let found = read_percentiles(&text, 24).unwrap();
        assert_eq!(found[97..], [97_500_000, 100_500_000, 100_500_000, 100_500_000]);
        assert!(read_percentiles(&text, 50).is_err(), "of 50 all are there");
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
            ("", PERCENTILES, "a line `Complete requests: …`"),
            (&closing, PERCENTILES, "found `12 requests on kept connections`, expected nearly all 5000"),
            (TEXT, "Percentage served,Time in ms\n0,0.1\n", "found `1 percentiles`"),
            (TEXT, "Percentage served,Time in ms\n0,0.2\n2,0.1\n", "found `2,0.1`, expected `1,<ms>`"),
            (TEXT, &PERCENTILES.replace("\n50,", "\n50,9"), "each no less than the one before"),
            (TEXT, "Percentage served,Time in ms\n0,-1\n", "a time from 0"),
        ] {
            let error = parse(text, percentiles, 0).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
