//! Quantities whose kind their text tells, such as the levels of a swept factor: `10`, `1%`, `20ms`, `4KiB`.

use crate::number::{float, nearest};
use crate::units;

/// What a quantity measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityKind {
    /// A number without a unit.
    Number,
    /// Events per second.
    PerSecond,
    /// A share of a whole.
    Share,
    /// A duration.
    Duration,
    /// A size in bytes, with decimal units.
    Size,
    /// A size in bytes, with binary units.
    BinarySize,
    /// Bits per second.
    Rate,
}

/// A value of 0 or more with its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// What it measures.
    pub kind: QuantityKind,
    /// The value in the smallest steps of its kind: nanoseconds, bytes, bit/s, or millionths of a number or
    /// of a percent.
    pub steps: u64,
}

/// Steps of a number, of a rate per second and of a percent.
pub(crate) const MILLION: u64 = 1_000_000;

impl QuantityKind {
    /// With its article, for errors.
    pub(crate) const fn describe(self) -> &'static str {
        match self {
            QuantityKind::Number => "a number",
            QuantityKind::PerSecond => "a rate per second",
            QuantityKind::Share => "a share",
            QuantityKind::Duration => "a duration",
            QuantityKind::Size | QuantityKind::BinarySize => "a size",
            QuantityKind::Rate => "a rate",
        }
    }

    /// The units in which a value is written, the largest first, and their steps.
    const fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            QuantityKind::Number => &[("", MILLION)],
            QuantityKind::PerSecond => &[("/s", MILLION)],
            QuantityKind::Share => &[("%", MILLION)],
            QuantityKind::Duration => &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)],
            QuantityKind::Size => &[("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)],
            QuantityKind::BinarySize => &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)],
            QuantityKind::Rate => {
                &[("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)]
            }
        }
    }
}

impl Quantity {
    /// Reads a quantity; `None` for any other text.
    pub fn parse(text: &str) -> Option<Quantity> {
        let text = text.trim();
        let of = |kind, steps| Some(Quantity { kind, steps });
        let millionths = |number: &str| -> Option<u64> {
            let is_plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
            let steps = number.parse::<f64>().ok().filter(|_| is_plain)? * float(MILLION);
            (steps < 9e18).then(|| nearest(steps))
        };
        if let Some(percent) = text.strip_suffix('%') {
            return of(QuantityKind::Share, millionths(percent.trim())?);
        }
        if let Ok(ns) = units::parse_duration_ns(text) {
            return of(QuantityKind::Duration, ns);
        }
        if let Ok(bytes) = units::parse_size_bytes(text) {
            let kind = if text.ends_with("iB") { QuantityKind::BinarySize } else { QuantityKind::Size };
            return of(kind, bytes);
        }
        if let Ok(bits_per_s) = units::parse_rate_bits_per_s(text) {
            return of(QuantityKind::Rate, bits_per_s);
        }
        match text.strip_suffix("/s") {
            Some(number) => of(QuantityKind::PerSecond, millionths(number.trim())?),
            None => of(QuantityKind::Number, millionths(text)?),
        }
    }

    /// The value in nanoseconds, bytes, bit/s, percent, or as a number.
    pub fn value(self) -> f64 {
        match self.kind {
            QuantityKind::Number | QuantityKind::PerSecond | QuantityKind::Share => {
                float(self.steps) / float(MILLION)
            }
            _ => float(self.steps),
        }
    }

    /// The value in the largest unit that needs at most three decimals; it reads as the same value.
    pub fn to_text(self) -> String {
        let units = self.kind.units();
        let fits = |(_, steps): &&(&str, u64)| {
            self.steps >= *steps && (u128::from(self.steps) * 1000).is_multiple_of(u128::from(*steps))
        };
        // 0 has the unit without a prefix.
        let is_zero_in_first = self.steps == 0 && self.kind == QuantityKind::Duration;
        let smallest = if is_zero_in_first { units.first() } else { units.last() };
        let (unit, steps) = units.iter().find(fits).or(smallest).copied().unwrap_or(("", 1));
        let whole = self.steps / steps;
        // At most six decimals are left, because the steps of a unit are a million or need three.
        let millionths = u128::from(self.steps % steps) * u128::from(MILLION) / u128::from(steps);
        let decimals = format!("{millionths:06}");
        match decimals.trim_end_matches('0') {
            "" => format!("{whole}{unit}"),
            decimals => format!("{whole}.{decimals}{unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quantities_of_their_kind() {
        for (text, kind, steps, value) in [
            ("10", QuantityKind::Number, 10_000_000, 10.0),
            ("0.25", QuantityKind::Number, 250_000, 0.25),
            ("1.5%", QuantityKind::Share, 1_500_000, 1.5),
            ("400/s", QuantityKind::PerSecond, 400_000_000, 400.0),
            ("20ms", QuantityKind::Duration, 20_000_000, 20e6),
            ("3 kB", QuantityKind::Size, 3_000, 3e3),
            ("4KiB", QuantityKind::BinarySize, 4096, 4096.0),
            ("50Mbit/s", QuantityKind::Rate, 50_000_000, 50e6),
        ] {
            let found = Quantity::parse(text);
            assert_eq!(found, Some(Quantity { kind, steps }), "{text}");
            assert!((found.unwrap().value() - value).abs() < 1e-9, "{text}");
        }
        for text in
            ["", "h2", "-1", "1e3", "nan", "inf", "20 apples", "%", "one connection", "99999999999999"]
        {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
    }

    #[test]
    fn texts_are_short_and_read_as_the_same_value() {
        for (text, written) in [
            ("0%", "0%"),
            ("0ms", "0s"),
            ("0kB", "0B"),
            ("0.833%", "0.833%"),
            ("0.000001", "0.000001"),
            ("1500ms", "1.5s"),
            ("1234567ns", "1234.567us"),
            ("13.57ms", "13.57ms"),
            ("500us", "500us"),
            ("2h", "7200s"),
            ("1ns", "1ns"),
            ("1536B", "1.536kB"),
            ("1.5KiB", "1.5KiB"),
            ("1537KiB", "1537KiB"),
            ("2500kbit/s", "2.5Mbit/s"),
            ("0.5/s", "0.5/s"),
        ] {
            let quantity = Quantity::parse(text).unwrap();
            assert_eq!(quantity.to_text(), written);
            assert_eq!(Quantity::parse(written).unwrap(), quantity, "{text}");
        }
    }
}
