//! siege 4's `json_output`.
//!
//! Its times have steps of 10 ms. Most responses take less, so the times are not used. *Transactions* are
//! responses; *successful* ones have a status below 400; *failed* ones are requests without a response.

use model::number;
use model::sample::FailureKind;
use serde::Deserialize;

use super::{ClientOutput, OutputError, TIMES};

/// Below this duration, steps of 10 ms are more than 2 %.
const LEAST_ELAPSED_S: f64 = 0.5;
/// Below this size, steps of 0.01 MiB are more than 0.5 %.
const LEAST_MIB: f64 = 2.0;
const BYTES_PER_MIB: f64 = 1_048_576.0;
/// Far above any time and any amount of data.
const MOST: f64 = 1e12;

#[derive(Deserialize)]
struct Summary {
    transactions: u64,
    successful_transactions: u64,
    failed_transactions: u64,
    elapsed_time: f64,
    data_transferred: f64,
}

/// Parses the summary; siege may print notes before it.
///
/// # Errors
/// The summary or one of its numbers is missing or out of range.
pub fn parse(text: &str) -> Result<ClientOutput, OutputError> {
    let object = text.find('{').zip(text.rfind('}')).and_then(|(begin, end)| text.get(begin..=end));
    let object = object.ok_or_else(|| OutputError::wrong(text.trim(), "siege's summary as JSON"))?;
    let summary: Summary = serde_json::from_str(object)
        .map_err(|error| OutputError::json(object, "siege's summary as JSON", &error))?;
    let Summary { transactions, successful_transactions: ok, failed_transactions: failed, .. } = summary;
    let Some(bad) = transactions.checked_sub(ok) else {
        return Err(OutputError(format!("siege reports {ok} successful transactions of {transactions}")));
    };
    let in_bounds = |number: f64| (0.0..=MOST).contains(&number);
    if !in_bounds(summary.elapsed_time) || !in_bounds(summary.data_transferred) {
        return Err(OutputError::wrong(
            object,
            "a summary with a time and an amount of data from 0 to 10^12",
        ));
    }
    let failures = [(FailureKind::WrongStatus, bad), (FailureKind::Closed, failed)];
    let mut output = ClientOutput::totals(ok, &failures);
    output.lacks("times of responses in steps below 10 ms", TIMES);
    output.lacks("the HTTP version of responses", ["version"]);
    output.lacks("the statuses of responses, only how many were below 400", ["status"]);
    if summary.elapsed_time >= LEAST_ELAPSED_S {
        output.took_ns = Some(number::nearest(summary.elapsed_time * 1e9));
    } else {
        output.lacks("durations below half a second in steps below 10 ms", ["requests_per_second"]);
    }
    if summary.data_transferred >= LEAST_MIB {
        output.body_bytes = Some(number::nearest(summary.data_transferred * BYTES_PER_MIB));
    } else {
        output.lacks("how many body bytes it received, in steps below 0.01 MiB", ["workloads_match"]);
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("recorded/siege.txt");
    const ERRORS: &str = include_str!("recorded/siege-errors.txt");

    #[test]
    fn sums_are_read() {
        let output = parse(TEXT).unwrap();
        assert_eq!((output.ok, output.took_ns, output.failures.len()), (21_414, Some(1_250_000_000), 0));
        // 21 414 bodies of 1000 bytes, in steps of 0.01 MiB.
        assert!(output.body_bytes.is_some_and(|bytes| bytes.abs_diff(21_414_000) <= 5243), "{output:?}");
        assert!(
            output.times.is_empty()
                && output.not_reported.iter().any(|missing| missing.about == "service_time")
        );
    }

    #[test]
    fn failures_are_of_two_kinds() {
        let output = parse(ERRORS).unwrap();
        assert_eq!((output.ok, output.failures), (0, vec![(FailureKind::WrongStatus, 20)]));
        assert_eq!((output.took_ns, output.body_bytes), (None, None), "both are below siege's steps");
        let refused =
            ERRORS.replace("\"failed_transactions\":\t\t           0", "\"failed_transactions\": 4");
        assert_eq!(parse(&refused).unwrap().failures[1], (FailureKind::Closed, 4));
    }

    #[test]
    fn faults_say_what_was_expected() {
        for (text, expected) in [
            ("siege aborted due to excessive socket failure", "is not siege's summary as JSON"),
            ("{}", "missing field `transactions`"),
            (&TEXT.replace("1.25", "-1"), "is not a summary with a time and an amount"),
            (&TEXT.replacen("21414", "3", 1), "successful transactions of 3"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
