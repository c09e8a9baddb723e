//! Formats of request files that other tools share with h123: parsed from text, never read from disk here.

use std::fmt;

use crate::number;

pub mod timing_script;
pub mod url_list;

/// A line does not have the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct LineError {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// What is wrong and what to write instead.
    pub problem: String,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LineError { line, column, problem } = self;
        match column {
            1 => write!(f, "line {line}: {problem}"),
            column => write!(f, "line {line}, column {column}: {problem}"),
        }
    }
}

/// The longest time that a client's output or a timing script may contain.
const LONGEST_NS: f64 = 8.64e15;
/// What a parser expects in place of a longer or a negative time.
pub const EXPECTED_TIME: &str = "a time from 0 to 100 days";

/// A number of units of `unit_ns` each, rounded to nanoseconds; `None` where it is not within
/// [`EXPECTED_TIME`].
pub fn nanoseconds(number: f64, unit_ns: f64) -> Option<u64> {
    let ns = number * unit_ns;
    (0.0..=LONGEST_NS).contains(&ns).then(|| number::nearest(ns))
}

/// Text for an error message: at most 100 characters and `…`, on one line. An escape counts with its length.
pub fn shown(found: &str) -> String {
    const CHARACTERS: usize = 100;
    let mut shown = String::new();
    let mut length = 0;
    for character in found.chars() {
        let is_escaped = character.is_control() && character != '\t';
        length += if is_escaped { character.escape_default().len() } else { 1 };
        if length > CHARACTERS {
            shown.push('…');
            break;
        }
        if is_escaped {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_text_is_short_also_if_it_is_escaped() {
        assert_eq!(shown("a\tü\u{c}"), "a\tü\\u{c}");
        assert_eq!(shown(&"ü".repeat(100)), "ü".repeat(100));
        assert_eq!(shown(&"ü".repeat(101)), format!("{}…", "ü".repeat(100)));
        // Found by guided search: 100 control characters became 500 characters.
        assert_eq!(shown(&"\u{12}".repeat(100)), format!("{}…", "\\u{12}".repeat(16)));
    }
}
