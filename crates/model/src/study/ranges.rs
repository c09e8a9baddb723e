//! Ranges of a sweep: `1..750 step 50`, `0%..5% in 6`, `1..1000 in 7 log`.

use crate::number::{float, nearest};
use crate::quantity::{MILLION, Quantity, QuantityKind};

/// The most levels of a sweep.
pub(super) const MOST_LEVELS: usize = 1000;
/// Values between the ends that are no round ones have this many digits.
const DIGITS: u32 = 4;

/// The spacing of a range's values.
#[derive(Clone, Copy)]
enum Spacing {
    Step(u64),
    Even(u64),
    Logarithmic(u64),
}

/// The values of a range, ascending and distinct. Both ends are among them, also where a step does not meet
/// the end.
///
/// # Errors
/// What is wrong with the range, and what to write.
pub(super) fn values(text: &str) -> Result<Vec<Quantity>, String> {
    let form = || {
        format!(
            "`{text}` is not a range; write one such as `1..750 step 50`, `0%..5% in 6` or `1..1000 in 7 log`"
        )
    };
    let (first, rest) = text.split_once("..").ok_or_else(form)?;
    let (last, spacing) = rest.trim().split_once(char::is_whitespace).ok_or_else(form)?;
    let number = |text: &str| {
        let found = Quantity::parse(text);
        found.ok_or_else(|| format!("`{}` is not a number or a quantity with its unit", text.trim()))
    };
    let (low, high) = (number(first)?, number(last)?);
    let kind = same_kind((first, low), (last, high))?;
    if high.steps <= low.steps {
        let (first, last) = (first.trim(), last.trim());
        return Err(format!(
            "the range ends at `{last}`, not above its start `{first}`; write the smaller first"
        ));
    }
    let is_whole = kind == QuantityKind::Number && [low, high].iter().all(|end| end.steps % MILLION == 0);
    let words: Vec<&str> = spacing.split_whitespace().collect();
    let spacing = match words.as_slice() {
        ["step", rest @ ..] if !rest.is_empty() => {
            let text = rest.join(" ");
            let step = number(&text)?;
            same_kind((first, low), (&text, step))?;
            if step.steps == 0 {
                return Err(format!("the step `{text}` is 0; write one above 0"));
            }
            Spacing::Step(step.steps)
        }
        ["in", count] => Spacing::Even(parse_count(count)?),
        ["in", count, "log"] if low.steps == 0 => {
            return Err(format!(
                "a logarithmic range cannot start at 0; write a start above 0, or leave out `log` after `in {count}`"
            ));
        }
        ["in", count, "log"] => Spacing::Logarithmic(parse_count(count)?),
        _ => return Err(form()),
    };
    // Whole numbers are computed as such, and stay whole.
    let grain = if is_whole && !matches!(spacing, Spacing::Step(_)) { MILLION } else { 1 };
    let steps = match spacing {
        Spacing::Step(step) => stepwise(low.steps, high.steps, step)?,
        Spacing::Even(count) => even(low.steps / grain, high.steps / grain, count, grain),
        Spacing::Logarithmic(count) => logarithmic(low.steps / grain, high.steps / grain, count, grain),
    };
    let steps = distinct(steps, grain).ok_or_else(|| {
        format!("there are too few values between `{}` and `{}`; write fewer", first.trim(), last.trim())
    })?;
    Ok(steps.into_iter().map(|steps| Quantity { kind, steps: steps * grain }).collect())
}

/// The kind of both; decimal and binary sizes are of one kind.
fn same_kind(
    (first, low): (&str, Quantity),
    (other, high): (&str, Quantity),
) -> Result<QuantityKind, String> {
    match (low.kind, high.kind) {
        (one, other) if one == other => Ok(one),
        // A start of `0B` may have either.
        (QuantityKind::Size, QuantityKind::BinarySize) | (QuantityKind::BinarySize, QuantityKind::Size) => {
            Ok(QuantityKind::BinarySize)
        }
        (one, found) => Err(format!(
            "`{}` is {} and `{}` {}; write all values of a range with units of one kind",
            first.trim(),
            one.describe(),
            other.trim(),
            found.describe()
        )),
    }
}

fn parse_count(text: &str) -> Result<u64, String> {
    let count = text.parse::<u64>().ok().filter(|count| (2..=MOST_LEVELS as u64).contains(count));
    count.ok_or_else(|| {
        format!("`in {text}` is not a number of values; write a whole number from 2 to {MOST_LEVELS}")
    })
}

fn stepwise(low: u64, high: u64, step: u64) -> Result<Vec<u64>, String> {
    let count = (high - low).div_ceil(step) + 1;
    if count > MOST_LEVELS as u64 {
        return Err(format!(
            "the range has {count} values; at most {MOST_LEVELS} are allowed, so write a larger step"
        ));
    }
    Ok((0..count).map(|place| low.saturating_add(place.saturating_mul(step)).min(high)).collect())
}

fn even(low: u64, high: u64, count: u64, grain: u64) -> Vec<u64> {
    let gaps = u128::from(count - 1);
    let value = |place: u64| {
        let product = u128::from(high - low) * u128::from(place);
        let rounded = low + u64::try_from((product + gaps / 2) / gaps).unwrap_or(u64::MAX);
        if grain > 1 || product % gaps == 0 { rounded } else { round(rounded) }
    };
    (0..count).map(value).collect()
}

fn logarithmic(low: u64, high: u64, count: u64, grain: u64) -> Vec<u64> {
    let ratio = float(high) / float(low);
    let value = |place: u64| match place {
        0 => low,
        place if place == count - 1 => high,
        place => {
            let value = nearest(float(low) * ratio.powf(float(place) / float(count - 1)));
            if grain > 1 { value } else { round(value) }
        }
    };
    (0..count).map(value).collect()
}

/// To [`DIGITS`] significant digits.
fn round(value: u64) -> u64 {
    let digits = value.checked_ilog10().unwrap_or(0) + 1;
    let unit = 10_u64.pow(digits.saturating_sub(DIGITS));
    (value + unit / 2) / unit * unit
}

/// The same values, moved apart as little as needed; `None` if there is no room between the ends.
fn distinct(mut values: Vec<u64>, grain: u64) -> Option<Vec<u64>> {
    let (low, high) = (*values.first()?, *values.last()?);
    if high - low < values.len() as u64 - 1 {
        return None;
    }
    let is_ascending = values.windows(2).all(|pair| pair[0] < pair[1]);
    if is_ascending {
        return Some(values);
    }
    if grain == 1 {
        // Rounding was too coarse for values this close.
        let count = values.len() as u64;
        let gaps = u128::from(count - 1);
        let value = |place: u64| u64::try_from(u128::from(high - low) * u128::from(place) / gaps).ok();
        return (0..count).map(|place| value(place).map(|offset| low + offset)).collect();
    }
    let mut least = low;
    for value in &mut values {
        *value = (*value).max(least);
        least = *value + 1;
    }
    let mut most = high;
    for value in values.iter_mut().rev() {
        *value = (*value).min(most);
        most = value.saturating_sub(1);
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(range: &str) -> Vec<String> {
        let found = values(range).unwrap_or_else(|problem| panic!("{range}: {problem}"));
        assert!(found.windows(2).all(|pair| pair[0].steps < pair[1].steps), "{range}: {found:?}");
        found.into_iter().map(Quantity::to_text).collect()
    }

    #[test]
    fn ranges_have_these_values() {
        for (range, expected) in [
            ("1..5 step 1", "1 2 3 4 5"),
            ("1..750 step 150", "1 151 301 451 601 750"),
            ("0..1 step 0.25", "0 0.25 0.5 0.75 1"),
            ("0%..5% in 6", "0% 1% 2% 3% 4% 5%"),
            ("0%..1% in 4", "0% 0.3333% 0.6667% 1%"),
            ("1..750 in 5", "1 188 376 563 750"),
            ("1..1000 in 7 log", "1 3 10 32 100 316 1000"),
            ("1..10 in 8 log", "1 2 3 4 5 6 7 10"),
            ("1..4 in 4 log", "1 2 3 4"),
            ("0.5..2 in 3 log", "0.5 1 2"),
            ("10ms..100ms step 40ms", "10ms 50ms 90ms 100ms"),
            ("1ms..1s in 4 log", "1ms 10ms 100ms 1s"),
            ("1ms .. 10ms  in 4 log", "1ms 2.154ms 4.642ms 10ms"),
            ("0s..1s in 9", "0s 125ms 250ms 375ms 500ms 625ms 750ms 875ms 1s"),
            ("0B..4KiB in 3", "0B 2KiB 4KiB"),
            ("1Mbit/s..100Mbit/s in 3 log", "1Mbit/s 10Mbit/s 100Mbit/s"),
            ("100/s..400/s in 3", "100/s 250/s 400/s"),
            ("1000000001ns..1000000005ns in 4", "1000000.001us 1000000.002us 1000000.003us 1000000.005us"),
        ] {
            assert_eq!(texts(range).join(" "), expected, "{range}");
        }
        let steps = texts("1..750 step 50");
        assert_eq!((steps.len(), steps[1].as_str(), steps[14].as_str()), (16, "51", "701"));
        assert_eq!(steps.last().unwrap(), "750", "the end is a value, although no step meets it");
        assert_eq!(texts("1..1000 step 1").len(), MOST_LEVELS);
        assert_eq!(texts("1..1000000 in 1000 log").len(), MOST_LEVELS);
    }

    #[test]
    fn faults_say_what_to_write() {
        for (range, expected) in [
            ("1..10", "`1..10` is not a range; write one such as `1..750 step 50`"),
            ("1..10 by 2", "is not a range"),
            ("1..10 step", "is not a range"),
            ("a..10 step 2", "`a` is not a number or a quantity"),
            ("10..1 step 2", "the range ends at `1`, not above its start `10`; write the smaller first"),
            ("5..5 in 2", "the range ends at `5`, not above its start `5`"),
            ("1..10 in 1", "`in 1` is not a number of values; write a whole number from 2 to 1000"),
            ("1..10 in 1001", "`in 1001` is not a number of values"),
            ("1..10 step 0", "the step `0` is 0; write one above 0"),
            ("1..1001 step 1", "the range has 1001 values; at most 1000 are allowed"),
            ("0..5% in 6", "`0` is a number and `5%` a share; write all values of a range with units"),
            ("1ms..5kB in 3", "`1ms` is a duration and `5kB` a size"),
            ("1ms..5ms step 1", "`1ms` is a duration and `1` a number"),
            ("0..10 in 3 log", "a logarithmic range cannot start at 0"),
            ("1..4 in 5", "there are too few values between `1` and `4`; write fewer"),
            ("1ns..3ns in 9 log", "there are too few values between"),
        ] {
            let problem = values(range).unwrap_err();
            assert!(problem.contains(expected), "{range}: {problem}");
        }
    }
}
