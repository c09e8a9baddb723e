//! `ladder`: the bit rates of representations, as players and media write them.

use crate::error::InputError;
use crate::reader::{Placed, Table};
use crate::units;

const MOST_REPRESENTATIONS: usize = 16;

/// The bit rates of `ladder`, ascending, with the texts that they were written as.
///
/// # Errors
/// The key is missing, a rate is invalid, or the rates do not ascend.
pub(super) fn read_ladder(table: &Table<'_>) -> Result<(Vec<u64>, Vec<Placed<String>>), InputError> {
    let ladder = table.required("ladder", Table::strings)?;
    let count = ladder.value.len();
    if !(1..=MOST_REPRESENTATIONS).contains(&count) {
        let problem = format!("`ladder` has {count} representations; write 1 to {MOST_REPRESENTATIONS}");
        return Err(ladder.error(problem));
    }
    let mut rates: Vec<u64> = Vec::with_capacity(count);
    for text in &ladder.value {
        let rate = units::parse_rate_bits_per_s(&text.value);
        let rate = rate.map_err(|problem| text.error(format!("`ladder`: {problem}")))?;
        if rates.last().is_some_and(|lower| *lower >= rate) {
            let problem = format!("`ladder`: `{}` is not above the rate before it; sort them", text.value);
            return Err(text.error(problem));
        }
        rates.push(rate);
    }
    Ok((rates, ladder.value))
}
