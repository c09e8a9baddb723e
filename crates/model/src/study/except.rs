//! `except`: combinations of levels that the matrix leaves out.

use super::factors::{DeclaredFactor, find_level};
use crate::error::{InputError, Place};
use crate::reader::{StringEntry, Table};

/// The combinations as written.
#[derive(Debug, Default)]
pub(super) struct Exceptions {
    place: Option<Place>,
    entries: Vec<Vec<StringEntry>>,
}

/// A combination: factors and their levels, by their indices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exception(Vec<(usize, usize)>);

/// Reads the key of the study.
///
/// # Errors
/// It is no list of tables, or a table is empty or has a list or table as a level.
pub(super) fn read(root: &Table<'_>) -> Result<Exceptions, InputError> {
    let mut exceptions = Exceptions { place: root.place_of("except"), entries: Vec::new() };
    for table in root.tables("except")? {
        let levels = table.level_entries()?;
        if levels.is_empty() {
            return Err(table.error(
                "`except` has an empty combination; write its levels, such as `{ variant = \"h3\", server = \"apache\" }`",
            ));
        }
        exceptions.entries.push(levels);
    }
    Ok(exceptions)
}

impl Exceptions {
    /// Looks up the levels. A combination with a level that the command line left out is left out too.
    ///
    /// # Errors
    /// An unknown factor or level.
    pub(super) fn resolve(&self, factors: &[DeclaredFactor]) -> Result<Vec<Exception>, InputError> {
        let mut exceptions = Vec::new();
        for entry in &self.entries {
            let mut levels = Vec::new();
            for (factor, level) in entry {
                find_level(factors, "`except`: ", factor, level)?;
                let place = factors.iter().position(|known| known.name == factor.value);
                let level = place.and_then(|place| {
                    let known =
                        factors[place].levels.value.iter().position(|known| known.value == level.value)?;
                    Some((place, known))
                });
                levels.push(level);
            }
            if let Some(levels) = levels.into_iter().collect::<Option<Vec<_>>>() {
                exceptions.push(Exception(levels));
            }
        }
        Ok(exceptions)
    }

    /// An error at the key, or at `other` in a study without it.
    pub(super) fn error(&self, other: &Place, problem: String) -> InputError {
        InputError { place: self.place.clone().unwrap_or_else(|| other.clone()), problem }
    }
}

impl Exception {
    /// Whether it leaves out what has these levels, of which those that are not known yet are `None`.
    pub(super) fn matches(&self, level_of: impl Fn(usize) -> Option<usize>) -> bool {
        self.0.iter().all(|(factor, level)| level_of(*factor) == Some(*level))
    }
}
