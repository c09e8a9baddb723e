//! Conversions between the integers of records and the numbers of statistics.

/// An integer as a number; exact up to 2⁵³ (104 days in nanoseconds).
#[expect(clippy::cast_precision_loss, reason = "counts, bytes and nanoseconds below 2^53 are exact")]
pub(crate) fn float(value: u64) -> f64 {
    value as f64
}

/// A count as a number.
#[expect(clippy::cast_precision_loss, reason = "counts below 2^53 are exact")]
pub(crate) fn count(value: usize) -> f64 {
    value as f64
}

/// The nearest integer, from 0 to the largest.
#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, which is what is wanted")]
#[expect(clippy::cast_sign_loss, reason = "negative numbers saturate to 0, which is what is wanted")]
pub(crate) fn nearest(value: f64) -> u64 {
    value.round() as u64
}

/// The nearest index, from 0 to the largest.
#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, which is what is wanted")]
#[expect(clippy::cast_sign_loss, reason = "negative numbers saturate to 0, which is what is wanted")]
pub(crate) fn index(value: f64) -> usize {
    value.round() as usize
}

/// A count that is known to be small.
pub(crate) fn small(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Euclid's; that of 0 and a number is the number.
pub(crate) const fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}
