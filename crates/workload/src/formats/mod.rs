//! Formats of files that other tools write: parsed from text, never read from disk here.

use model::number;

pub mod access_log;
pub mod clients;
pub mod line_pattern;
pub mod timing_script;
pub mod url_list;

/// The longest time that a client's output or a timing script may contain.
const LONGEST_NS: f64 = 8.64e15;
/// What a parser expects in place of a longer or a negative time.
const EXPECTED_TIME: &str = "a time from 0 to 100 days";

/// A number of units of `unit_ns` each, rounded to nanoseconds; `None` where it is not within
/// [`EXPECTED_TIME`].
fn nanoseconds(number: f64, unit_ns: f64) -> Option<u64> {
    let ns = number * unit_ns;
    (0.0..=LONGEST_NS).contains(&ns).then(|| number::nearest(ns))
}

/// Text for an error message: at most 100 characters, on one line.
pub(crate) fn shown(found: &str) -> String {
    const CHARACTERS: usize = 100;
    let mut characters = found.chars();
    let mut shown = String::new();
    for character in characters.by_ref().take(CHARACTERS) {
        match character {
            '\t' => shown.push('\t'),
            other if other.is_control() => shown.extend(other.escape_default()),
            other => shown.push(other),
        }
    }
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}
