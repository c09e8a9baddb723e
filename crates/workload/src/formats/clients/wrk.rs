//! The text of wrk 4 with the script `clients/wrk/report.lua`, which adds wrk's exact numbers.
//!
//! The script prints these lines in addition to wrk's own:
//!
//! ```text
//! h123 sums DURATION_US REQUESTS BYTES CONNECT READ WRITE STATUS TIMEOUT
//! h123 report_cpu US
//! h123 latency US COUNT            one for each distinct time; none where they were too many
//! ```
//!
//! **wrk changes its histogram before it reports it.** Where a request took more than twice the average time,
//! wrk adds the requests that it would have sent meanwhile at that pace (`stats_correct`, after G. Tene's
//! correction of coordinated omission). A closed loop would not have sent them, so the percentiles that wrk
//! prints are not those of its requests. The additions depend only on longer times, so [`parse`] removes
//! them, from the longest time down. It accepts the result only if exactly wrk's number of requests is left.

use std::collections::BTreeMap;

use model::sample::FailureKind;

use super::{ClientOutput, OutputError, TIMES, whole};

const NANOS_PER_US: u64 = 1000;
const SUMS: &str = "h123 sums ";
/// wrk's histogram ends near its timeout, which is of this order.
const MOST_US: u64 = 1_000_000_000;

/// Parses the text of a run with this number of connections.
///
/// # Errors
/// The text is not wrk's, or the script did not run.
pub fn parse(text: &str, connections: u64) -> Result<ClientOutput, OutputError> {
    let sums = text.lines().find_map(|line| line.strip_prefix(SUMS));
    let sums =
        sums.ok_or_else(|| OutputError::missing(format_args!("line `{SUMS}…` of the script report.lua")))?;
    let numbers: Vec<u64> = sums.split_whitespace().map(whole).collect::<Result<_, _>>()?;
    let [duration_us, requests, _bytes, connect, read, write, status, timeout] = numbers[..] else {
        return Err(OutputError::wrong(sums, "eight numbers"));
    };
    if duration_us > MOST_US.saturating_mul(1000) {
        return Err(OutputError::wrong(sums, "a list that begins with a duration of at most ten days"));
    }
    let failures = [
        (FailureKind::WrongStatus, status),
        (FailureKind::Timeout, timeout),
        (FailureKind::Refused, connect),
        (FailureKind::Closed, read.saturating_add(write)),
    ];
    let mut output = ClientOutput::totals(requests.saturating_sub(status).saturating_sub(timeout), &failures);
    output.took_ns = Some(duration_us * NANOS_PER_US);
    output.report_cpu_ns = report_cpu_ns(text)?;
    output.lacks("the HTTP version of responses", ["version"]);
    output.lacks("the statuses of responses, only how many were above 399", ["status"]);
    output.lacks("how many body bytes it received", ["workloads_match"]);
    let expected = requests.saturating_sub(timeout);
    let interval_us = requests.checked_div(connections).and_then(|each| duration_us.checked_div(each));
    match (status, times(text)?) {
        (0, counts) if expected > 0 => match without_correction(counts, interval_us, expected) {
            Some(counts) => output.times = counts,
            None => output.lacks("the times of its requests without those that it adds itself", TIMES),
        },
        (0, _) => {}
        _ => output.lacks("the times of good responses apart from those of bad ones", TIMES),
    }
    Ok(output)
}

fn report_cpu_ns(text: &str) -> Result<u64, OutputError> {
    let spent = text.lines().find_map(|line| line.strip_prefix("h123 report_cpu "));
    spent.map_or(Ok(0), |spent| Ok(whole(spent)?.saturating_mul(NANOS_PER_US)))
}

/// The histogram as the script printed it: counts by µs.
fn times(text: &str) -> Result<BTreeMap<u64, u64>, OutputError> {
    let mut counts = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("h123 latency ")) {
        let fault = || OutputError::wrong(line, "of the form `<µs> <count>`");
        let (us, count) = line.split_once(' ').ok_or_else(fault)?;
        let (us, count) = (whole(us)?, whole(count)?);
        if us > MOST_US || counts.insert(us, count).is_some() {
            return Err(fault());
        }
    }
    Ok(counts)
}

/// Removes wrk's correction; `None` where the number of requests that are left is not `expected`.
///
/// wrk starts at twice the interval and goes up. It adds each entry's count at every whole interval below the
/// entry that is above one interval. Going down, each entry is free of additions when it is reached.
fn without_correction(
    mut counts: BTreeMap<u64, u64>,
    interval_us: Option<u64>,
    expected: u64,
) -> Option<Vec<(u64, u64)>> {
    let nearest = interval_us.filter(|interval| *interval > 0).unwrap_or(u64::MAX);
    let mut next = counts.last_key_value().map(|(us, _)| *us);
    while let Some(us) = next.filter(|us| *us >= nearest.saturating_mul(2)) {
        let added = counts.get(&us).copied().unwrap_or(0);
        let mut below = us - nearest;
        while added > 0 && below > nearest {
            let count = counts.get_mut(&below)?;
            *count = count.checked_sub(added)?;
            below -= nearest;
        }
        next = counts.range(..us).next_back().map(|(us, _)| *us);
    }
    let left = counts.values().try_fold(0_u64, |sum, count| sum.checked_add(*count))?;
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    (left == expected).then(|| counts.map(|(us, count)| (us * NANOS_PER_US, count)).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = include_str!("recorded/wrk.txt");
    const ERRORS: &str = include_str!("recorded/wrk-errors.txt");
    const REFUSED: &str = include_str!("recorded/wrk-refused.txt");

    #[test]
    fn the_correction_of_wrk_is_removed() {
        let output = parse(TEXT, 4).unwrap();
        let requests = requests_in(TEXT);
        assert_eq!(output.ok, requests);
        assert_eq!(output.times.iter().map(|(_, count)| count).sum::<u64>(), requests);
        let shown: u64 = times(TEXT).unwrap().values().sum();
        assert!(shown > requests, "the recorded run had something to take back: {shown} of {requests}");
        assert!(output.report_cpu_ns > 0 && output.failures.is_empty());
        // With another number of connections nothing fits, and there are no times rather than wrong ones.
        let output = parse(TEXT, 3).unwrap();
        assert!(
            output.times.is_empty()
                && output.not_reported.iter().any(|missing| missing.about == "service_time")
        );
    }

    /// From wrk's own line.
    fn requests_in(text: &str) -> u64 {
        let line = text.lines().find_map(|line| line.trim().split_once(" requests in ")).unwrap();
        line.0.parse().unwrap()
    }

    #[test]
    fn times_of_bad_responses_are_not_those_of_good_ones() {
        let output = parse(ERRORS, 4).unwrap();
        assert_eq!(
            (output.ok, output.failures.as_slice()),
            (0, &[(FailureKind::WrongStatus, requests_in(ERRORS))][..])
        );
        assert!(
            output.times.is_empty()
                && output.not_reported.iter().any(|missing| missing.about == "request_time")
        );
    }

    #[test]
    fn refused_connections_are_failures() {
        let output = parse(REFUSED, 4).unwrap();
        assert!(output.ok == 0 && output.failures[0].0 == FailureKind::Refused, "{output:?}");
    }

    #[test]
    fn faults_say_what_was_expected() {
        for (text, expected) in [
            (
                "  19791 requests in 1.01s, 22.08MB read\n",
                "the output has no line `h123 sums …` of the script report.lua",
            ),
            ("h123 sums 1 2 3\n", "`1 2 3` is not eight numbers"),
            ("h123 sums 1 2 3 4 5 6 7 x\n", "`x` is not a whole number"),
            ("h123 sums 1 1 1 0 0 0 0 0\nh123 latency 5\n", "`5` is not of the form `<µs> <count>`"),
        ] {
            let error = parse(text, 1).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    /// wrk's `stats_correct`, from its source (stats.c), on a map.
    fn corrected(counts: &BTreeMap<u64, u64>, interval: u64) -> BTreeMap<u64, u64> {
        let mut all = counts.clone();
        let longest = counts.last_key_value().map_or(0, |(us, _)| *us);
        for us in interval * 2..=longest {
            let count = all.get(&us).copied().unwrap_or(0);
            let mut below = us - interval;
            while count > 0 && below > interval {
                *all.entry(below).or_default() += count;
                below -= interval;
            }
        }
        all
    }

    proptest! {
        #[test]
        fn every_correction_can_be_taken_back(
            counts in proptest::collection::btree_map(1_u64..3000, 1_u64..50, 1..60),
            interval in 1_u64..500,
        ) {
            let requests = counts.values().sum();
            let found = without_correction(corrected(&counts, interval), Some(interval), requests);
            let expected: Vec<(u64, u64)> = counts.iter().map(|(us, count)| (us * 1000, *count)).collect();
            prop_assert_eq!(found, Some(expected));
        }
    }
}
