//! The error of every reader of media manifests and boxes.

use std::fmt;

use super::shown;

/// A manifest or a box cannot be read: where, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{problem}")]
pub struct FormatError {
    /// Where.
    pub place: Place,
    /// What is wrong and what to do, in one sentence.
    pub problem: String,
}

/// A place in a manifest; displayed with a colon and a space after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// The whole of it.
    #[default]
    Whole,
    /// A line, from 1.
    Line(u32),
    /// A line and a column in characters, from 1.
    Column(u32, u32),
    /// A byte, from 0.
    Byte(u64),
}

impl FormatError {
    /// A fault of the whole.
    pub fn new(problem: impl Into<String>) -> FormatError {
        FormatError { place: Place::Whole, problem: problem.into() }
    }

    /// A fault at a place.
    pub fn at(place: Place, problem: impl Into<String>) -> FormatError {
        FormatError { place, problem: problem.into() }
    }

    /// `name` has a value that is not what is expected, at a place.
    pub fn value(place: Place, name: &str, found: &str, expected: &str) -> FormatError {
        FormatError::at(place, format!("`{name}` is `{}`, not {expected}", shown(found)))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Whole => Ok(()),
            Place::Line(line) => write!(f, "line {line}: "),
            Place::Column(line, column) => write!(f, "line {line}, column {column}: "),
            Place::Byte(byte) => write!(f, "byte {byte}: "),
        }
    }
}
