//! Dates and durations as manifests write them.

use jiff::Timestamp;
use model::number;
use model::units::NANOS_PER_S;

/// The longest duration: 100 years.
const LONGEST_S: f64 = 3.2e9;

/// A date and time (ISO 8601) as Unix time in nanoseconds; without an offset it is UTC. `None` before 1970.
pub(super) fn parse_date(text: &str) -> Option<u64> {
    let text = text.trim();
    let found = text.parse::<Timestamp>().or_else(|_| format!("{text}Z").parse::<Timestamp>());
    u64::try_from(found.ok()?.as_nanosecond()).ok()
}

/// A Unix time in ISO 8601, UTC, with milliseconds.
pub(super) fn format_date(unix_ns: u64) -> String {
    let whole_ms = i64::try_from(unix_ns / 1_000_000).unwrap_or(i64::MAX);
    let date = Timestamp::from_millisecond(whole_ms).unwrap_or(Timestamp::MAX);
    format!("{date:.3}")
}

/// A duration of XML Schema such as `PT1H2M3.5S`, in nanoseconds. A year counts as 365 days, a month as 30.
pub(super) fn parse_duration(text: &str) -> Option<u64> {
    let rest = text.trim().strip_prefix('P')?;
    let (days, times) = rest.split_once('T').unwrap_or((rest, ""));
    if days.is_empty() && times.is_empty() {
        return None;
    }
    const DAY_S: f64 = 86_400.0;
    let seconds = sum(days, &[('Y', 365.0 * DAY_S), ('M', 30.0 * DAY_S), ('W', 7.0 * DAY_S), ('D', DAY_S)])?
        + sum(times, &[('H', 3600.0), ('M', 60.0), ('S', 1.0)])?;
    seconds_to_ns(seconds)
}

/// Numbers with these units, in this order.
fn sum(mut text: &str, units: &[(char, f64)]) -> Option<f64> {
    let mut total = 0.0;
    for (unit, seconds) in units {
        if let Some((value, rest)) = text.split_once(*unit) {
            let is_number = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            total += is_number.then(|| value.parse::<f64>().ok())?? * seconds;
            text = rest;
        }
    }
    text.is_empty().then_some(total)
}

/// Decimal seconds in nanoseconds; `None` if negative or above 100 years.
pub(super) fn parse_seconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    seconds_to_ns(is_number.then(|| text.parse::<f64>().ok())??)
}

fn seconds_to_ns(seconds: f64) -> Option<u64> {
    (0.0..=LONGEST_S).contains(&seconds).then(|| number::nearest(seconds * number::float(NANOS_PER_S)))
}

/// Seconds with as many decimals as the nanoseconds need, such as `2` or `3.2`.
pub(super) fn format_seconds(ns: u64) -> String {
    let (whole, rest) = (ns / NANOS_PER_S, ns % NANOS_PER_S);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{}", format!("{rest:09}").trim_end_matches('0'))
}

/// A duration of XML Schema in seconds, such as `PT3.2S`.
pub(super) fn format_duration(ns: u64) -> String {
    format!("PT{}S", format_seconds(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_written() {
        let expected = Some(1_767_225_600_250_000_000);
        for text in ["2026-01-01T00:00:00.25Z", " 2026-01-01T01:00:00.250+01:00", "2026-01-01T00:00:00.250"] {
            assert_eq!(parse_date(text), expected, "{text}");
        }
        assert_eq!(format_date(1_767_225_600_250_000_000), "2026-01-01T00:00:00.250Z");
        for text in ["", "now", "1969-12-31T23:59:59Z", "2026-13-01T00:00:00Z"] {
            assert_eq!(parse_date(text), None, "{text}");
        }
        assert!(format_date(u64::MAX).starts_with("2554-"));
    }

    #[test]
    fn durations_are_read_and_written() {
        for (text, expected) in [
            ("PT3.2S", Some(3_200_000_000)),
            ("P1DT1H2M3S", Some(90_123 * NANOS_PER_S)),
            ("P0Y0M0DT0H10M0.000S", Some(600 * NANOS_PER_S)),
            ("P2W", Some(14 * 86_400 * NANOS_PER_S)),
            ("P", None),
            ("PT", None),
            ("PT5", None),
            ("PT5M1H", None),
            ("-PT5S", None),
            ("PT-5S", None),
            ("PT1e9S", None),
            ("P999Y", None),
            ("5", None),
        ] {
            assert_eq!(parse_duration(text), expected, "{text}");
        }
        assert_eq!(format_duration(3_200_000_000), "PT3.2S");
        assert_eq!(format_duration(60 * NANOS_PER_S), "PT60S");
        assert_eq!(parse_seconds("9.009"), Some(9_009_000_000));
        assert_eq!(["-1", "", "inf", "1e3", "."].map(parse_seconds), [None; 5]);
    }
}
