//! Values with their places in a file.

use super::Table;
use crate::error::{InputError, Place};

/// A value with its place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub place: Place,
}

/// A list of strings; its place is the bracket.
pub type PlacedStrings = Placed<Vec<Placed<String>>>;

/// A key and its string.
pub type StringEntry = (Placed<String>, Placed<String>);

impl<T> Placed<T> {
    /// An error at this place.
    pub fn error(&self, problem: impl Into<String>) -> InputError {
        InputError { place: self.place.clone(), problem: problem.into() }
    }

    /// The same place with another value.
    ///
    /// # Errors
    /// What `change` refuses, at this place.
    pub fn map<U>(self, change: impl FnOnce(T) -> Result<U, String>) -> Result<Placed<U>, InputError> {
        match change(self.value) {
            Ok(value) => Ok(Placed { value, place: self.place }),
            Err(problem) => Err(InputError { place: self.place, problem }),
        }
    }
}

/// A value that has a short form and a full one.
pub enum Form<'a> {
    /// The short form.
    Text(Placed<String>),
    /// The full form.
    Table(Table<'a>),
}
