//! Conversions between integers and floating-point numbers, the only ones in the workspace.

/// An integer as a float; exact up to 2⁵³ (104 days in nanoseconds).
#[expect(clippy::cast_precision_loss, reason = "counts, bytes and nanoseconds below 2^53 are exact")]
pub const fn float(value: u64) -> f64 {
    value as f64
}

/// A signed integer as a float; exact up to ±2⁵³.
#[expect(clippy::cast_precision_loss, reason = "differences below 2^53 are exact")]
pub const fn signed(value: i64) -> f64 {
    value as f64
}

/// A count as a float.
#[expect(clippy::cast_precision_loss, reason = "counts below 2^53 are exact")]
pub const fn count(value: usize) -> f64 {
    value as f64
}

/// The nearest integer, from 0 to [`u64::MAX`].
#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, as intended")]
#[expect(clippy::cast_sign_loss, reason = "negative numbers saturate to 0, as intended")]
pub const fn nearest(value: f64) -> u64 {
    value.round() as u64
}

/// The nearest index, from 0 to [`usize::MAX`].
#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, as intended")]
#[expect(clippy::cast_sign_loss, reason = "negative numbers saturate to 0, as intended")]
pub const fn index(value: f64) -> usize {
    value.round() as usize
}

/// A count that limits keep below [`u32::MAX`].
pub fn small(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
