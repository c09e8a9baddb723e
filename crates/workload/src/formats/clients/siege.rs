//! siege 4's `json_output`.
//!
//! Its times have steps of 10 ms, which is more than most responses take: they are not used. *Transactions* are responses,
//! *successful* ones those with a status below 400, and *failed* ones are requests without a response.

use model::sample::FailureKind;
use serde::Deserialize;

use super::{Said, Unreadable, not_reported, of_the_head};

/// Below this, steps of 10 ms are more than 2 % of the whole.
const LEAST_ELAPSED_S: f64 = 0.5;
/// Steps of 0.01 MiB are more than 0.5 % of less.
const LEAST_MIB: f64 = 2.0;
const BYTES_PER_MIB: f64 = 1_048_576.0;
/// Nothing that siege can be asked for goes beyond: a year, an exabyte.
const MOST: f64 = 1e12;

#[derive(Deserialize)]
struct Summary {
    transactions: u64,
    successful_transactions: u64,
    failed_transactions: u64,
    elapsed_time: f64,
    data_transferred: f64,
}

/// Reads the summary, which notes of siege's own may precede.
///
/// # Errors
/// There is none, or a number is missing.
pub fn parse(text: &str) -> Result<Said, Unreadable> {
    let object = text.find('{').zip(text.rfind('}')).and_then(|(begin, end)| text.get(begin..=end));
    let object = object.ok_or_else(|| Unreadable::new(text.trim(), "siege's summary as JSON"))?;
    let summary: Summary = serde_json::from_str(object)
        .map_err(|error| Unreadable::new(object, format!("siege's summary as JSON ({error})")))?;
    let Summary { transactions, successful_transactions: ok, failed_transactions: failed, .. } = summary;
    let Some(bad) = transactions.checked_sub(ok) else {
        return Err(Unreadable::new(object, "no more successful transactions than transactions"));
    };
    let in_bounds = |number: f64| (0.0..=MOST).contains(&number);
    if !in_bounds(summary.elapsed_time) || !in_bounds(summary.data_transferred) {
        return Err(Unreadable::new(object, "a time and an amount of data from 0 to a million millions"));
    }
    let failures = [(FailureKind::WrongStatus, bad), (FailureKind::Closed, failed)];
    let mut said = Said {
        ok,
        failures: failures.into_iter().filter(|(_, count)| *count > 0).collect(),
        ..Said::default()
    };
    const TIMES: &str = "times of responses in steps finer than 10 ms";
    said.not_reported.extend(of_the_head());
    said.not_reported.extend([
        not_reported("request_time", TIMES),
        not_reported("service_time", TIMES),
        not_reported("version", "which version of HTTP responses used"),
        not_reported("status", "the statuses of responses, only how many were below 400"),
        not_reported("connections", "how many connections it opened"),
        not_reported("unfinished", "how many requests the end cut off"),
    ]);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "inside the bounds above")]
    let rounded = |number: f64| number.round() as u64;
    if summary.elapsed_time >= LEAST_ELAPSED_S {
        said.took_ns = Some(rounded(summary.elapsed_time * 1e9));
    } else {
        const WHAT: &str = "in steps finer than 10 ms how long less than half a second took";
        said.not_reported.push(not_reported("requests_per_second", WHAT));
    }
    if summary.data_transferred >= LEAST_MIB {
        said.body_bytes = Some(rounded(summary.data_transferred * BYTES_PER_MIB));
    } else {
        said.not_reported.push(not_reported(
            "workloads_match",
            "in steps finer than 0.01 MiB how many body bytes it received",
        ));
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("recorded/siege.txt");
    const ERRORS: &str = include_str!("recorded/siege-errors.txt");

    #[test]
    fn sums_are_read() {
        let said = parse(TEXT).unwrap();
        assert_eq!((said.ok, said.took_ns, said.failures.len()), (21_414, Some(1_250_000_000), 0));
        // 21 414 bodies of 1000 bytes, in steps of 0.01 MiB.
        assert!(said.body_bytes.is_some_and(|bytes| bytes.abs_diff(21_414_000) <= 5243), "{said:?}");
        assert!(
            said.times.is_empty()
                && said.not_reported.iter().any(|not_reported| not_reported.about == "service_time")
        );
    }

    #[test]
    fn failures_are_of_two_kinds() {
        let said = parse(ERRORS).unwrap();
        assert_eq!((said.ok, said.failures), (0, vec![(FailureKind::WrongStatus, 20)]));
        assert_eq!((said.took_ns, said.body_bytes), (None, None), "both are below siege's steps");
        let refused =
            ERRORS.replace("\"failed_transactions\":\t\t           0", "\"failed_transactions\": 4");
        assert_eq!(parse(&refused).unwrap().failures[1], (FailureKind::Closed, 4));
    }

    #[test]
    fn faults_say_what_was_expected() {
        for (text, expected) in [
            ("siege aborted due to excessive socket failure", "expected siege's summary as JSON"),
            ("{}", "missing field `transactions`"),
            (&TEXT.replace("1.25", "-1"), "expected a time and an amount"),
            (&TEXT.replacen("21414", "3", 1), "no more successful transactions"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
