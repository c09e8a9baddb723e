//! Whole numbers as floats: a report shows fewer digits than a float holds.

/// A value of a report.
#[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than a float holds")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

/// A number of things in a report.
#[expect(clippy::cast_precision_loss, reason = "a report holds far fewer than 2^53 things")]
pub(crate) fn count(number: usize) -> f64 {
    number as f64
}

/// A value that may be negative, such as a time before the client started.
#[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits than a float holds")]
pub(crate) fn signed_float(number: i64) -> f64 {
    number as f64
}
