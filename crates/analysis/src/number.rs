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

/// A probability as a reader reads it (APA 7, section 6.36, with two digits): `p = 0.032`, `p = 0.41`, `p < 0.001`, `p > 0.99`.
pub(crate) fn p_words(p: f64) -> String {
    format!("p {}", p_number(p, "= "))
}

/// The same without its letter: `0.032`, `< 0.001`; `equals` stands before what is not beyond an end.
pub(crate) fn p_number(p: f64, equals: &str) -> String {
    match p {
        p if p < 0.001 => "< 0.001".to_owned(),
        p if p < 0.00995 => format!("{equals}{p:.4}"),
        p if p < 0.0995 => format!("{equals}{p:.3}"),
        p if p <= 0.99 => format!("{equals}{p:.2}"),
        p if p.is_nan() => format!("{equals}{p}"),
        _ => "> 0.99".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_have_two_digits_and_no_row_of_zeros() {
        let words = [1.79e-6, 0.001, 0.001_23, 0.009_96, 0.0321, 0.0996, 0.412, 0.99, 1.0].map(p_words);
        let expected =
            ["< 0.001", "= 0.0010", "= 0.0012", "= 0.010", "= 0.032", "= 0.10", "= 0.41", "= 0.99", "> 0.99"];
        assert_eq!(words, expected.map(|number| format!("p {number}")));
        assert_eq!([1e-9, 0.2].map(|p| p_number(p, "")), ["< 0.001", "0.20"]);
    }
}
