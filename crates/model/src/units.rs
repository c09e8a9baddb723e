//! Quantities as people write them (`150ms`, `50Mbit/s`, `20kB`, `3%`) and as the program reads them.
//!
//! Resolved values are plain integers whose unit is the last part of the field's name; these functions are
//! the only place that parses or prints a unit.

use std::ops::RangeInclusive;

use crate::number::{float, index, nearest};

/// Nanoseconds in a second.
pub const NANOS_PER_S: u64 = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub const NANOS_PER_MS: u64 = 1_000_000;
/// Nanoseconds in a microsecond.
pub const NANOS_PER_US: u64 = 1_000;

const DURATIONS: &[(&str, f64)] =
    &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];
const RATES: &[(&str, f64)] = &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];
const SIZES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// Reads a duration such as `150ms` or `0.3 ms`; nanoseconds.
///
/// # Errors
/// What is wrong, and the units that exist.
pub fn parse_duration_ns(text: &str) -> Result<u64, String> {
    parse(text, DURATIONS, "a duration", "150ms")
}

/// Reads a step of time, a duration of whole milliseconds above 0; nanoseconds.
///
/// # Errors
/// What is wrong, and the expected form.
pub fn parse_whole_ms(text: &str) -> Result<u64, String> {
    let ns = parse_duration_ns(text)?;
    let is_step = ns > 0 && ns % NANOS_PER_MS == 0;
    is_step.then_some(ns).ok_or_else(|| {
        format!("`{text}` is not a step; write whole milliseconds, at least 1ms, such as `1s`")
    })
}

/// Reads a rate such as `50Mbit/s`; bits per second.
///
/// # Errors
/// What is wrong, and the units that exist.
pub fn parse_rate_bits_per_s(text: &str) -> Result<u64, String> {
    parse(text, RATES, "a rate", "50Mbit/s")
}

/// Reads a size such as `20kB` (1000 bytes) or `6MiB` (1 048 576 bytes); bytes.
///
/// # Errors
/// What is wrong, and the units that exist.
pub fn parse_size_bytes(text: &str) -> Result<u64, String> {
    parse(text, SIZES, "a size", "20kB")
}

/// Reads a size within bounds; bytes.
///
/// # Errors
/// What is wrong, and the bounds.
pub fn parse_size_within(text: &str, range: &RangeInclusive<u32>) -> Result<u32, String> {
    let bytes = u32::try_from(parse_size_bytes(text)?).ok().filter(|bytes| range.contains(bytes));
    let (least, most) = (range.start(), range.end());
    bytes.ok_or_else(|| format!("`{text}` is out of bounds; write a size from {least}B to {most}B"))
}

/// Reads a share such as `3%`; a fraction from 0 to 1.
///
/// # Errors
/// What is wrong, and the expected form.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let fault = || format!("`{text}` is not a share; write one from 0% to 100%, such as `3%`");
    let number = text.trim().strip_suffix('%').ok_or_else(fault)?;
    let percent: f64 = number.trim().parse().map_err(|_| fault())?;
    if (0.0..=100.0).contains(&percent) { Ok(percent / 100.0) } else { Err(fault()) }
}

/// Prints nanoseconds with three significant digits and a fitting unit: `1.23 ms`.
pub fn format_duration_ns(ns: f64) -> String {
    scaled(ns, ["ns", "µs", "ms", "s"])
}

/// Prints a whole number of nanoseconds as [`format_duration_ns`] does.
pub fn format_ns(ns: u64) -> String {
    format_duration_ns(float(ns))
}

/// A whole number of seconds, or minutes, or hours, such as `1 min 33 s`.
pub fn format_expected(ns: u64) -> String {
    let seconds = ns.div_ceil(NANOS_PER_S);
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// Prints bytes with three significant digits and a fitting unit: `1.6 MB`.
pub fn format_bytes(bytes: f64) -> String {
    scaled(bytes, ["B", "kB", "MB", "GB"])
}

/// Prints bits per second with a fitting unit: `50 Mbit/s`.
pub fn format_rate(bits_per_s: f64) -> String {
    scaled(bits_per_s, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"])
}

/// A value in the largest of these units, each a thousand of the one before, in which it is at least 1.
fn scaled(value: f64, [one, thousand, million, billion]: [&str; 4]) -> String {
    let (value, unit) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, billion),
        size if size >= 1e6 => (value / 1e6, million),
        size if size >= 1e3 => (value / 1e3, thousand),
        _ => (value, one),
    };
    format!("{} {unit}", three_digits(value))
}

/// A count with its noun: `1 connection`, `2 connections`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Prints a number with three significant digits and no trailing zeros after the point.
pub fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let before_point = value.abs().log10().floor() + 1.0;
    let decimals = (3.0 - before_point).clamp(0.0, 9.0);
    let text = format!("{value:.*}", index(decimals));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn parse(text: &str, units: &[(&str, f64)], noun: &str, example: &str) -> Result<u64, String> {
    let fault = || {
        let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        let units = names.join(", ");
        format!("`{text}` is not {noun}; write a number and a unit ({units}), such as `{example}`")
    };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(fault)?;
    let number: f64 = trimmed[..split].parse().map_err(|_| fault())?;
    let unit = trimmed[split..].trim();
    let factor = units.iter().find(|(name, _)| *name == unit).ok_or_else(fault)?.1;
    let value = (number * factor).round();
    if value.is_finite() && value < 9e18 { Ok(nearest(value)) } else { Err(fault()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_time_is_rounded_up() {
        assert_eq!(format_expected(1), "1 s");
        assert_eq!(format_expected(93 * NANOS_PER_S), "1 min 33 s");
        assert_eq!(format_expected(3661 * NANOS_PER_S), "1 h 1 min");
    }

    #[test]
    fn reads_quantities() {
        assert_eq!(parse_duration_ns("150ms"), Ok(150_000_000));
        assert_eq!(parse_duration_ns("0.3 ms"), Ok(300_000));
        assert_eq!(parse_rate_bits_per_s("50Mbit/s"), Ok(50_000_000));
        assert_eq!(parse_size_bytes("6MiB"), Ok(6_291_456));
        assert_eq!(parse_share("3%"), Ok(0.03));
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        for text in ["", "150", "ms", "-1ms", "1 lightyear", "99999999999999h", "1.2.3ms"] {
            let error = parse_duration_ns(text).unwrap_err();
            assert!(error.starts_with(&format!("`{text}` is not a duration; write")), "{error}");
        }
        assert!(parse_share("101%").is_err());
        assert!(parse_share("3").is_err());
    }

    #[test]
    fn prints_three_digits() {
        assert_eq!(format_duration_ns(1_234_567.0), "1.23 ms");
        assert_eq!(format_duration_ns(150_000_000.0), "150 ms");
        assert_eq!(format_bytes(1_600_000.0), "1.6 MB");
        assert_eq!(three_digits(0.0123), "0.0123");
        assert_eq!(three_digits(1234.0), "1234");
    }
}
