//! Factors and their levels: their names, and the levels that other parts of a study refer to.

use std::collections::BTreeSet;

use super::{Factor, Study};
use crate::error::InputError;
use crate::level::Level;
use crate::named::unknown;
use crate::reader::{Key, Placed, PlacedStrings};
use crate::{keys, named};

/// A level of a factor, in `baseline`, `[[published]]` and `[[claim]]`.
pub(super) const LEVEL_KEYS: &[Key] = keys! {
    "variant", "text", "none", r#""h1s""#, "A level of the factor.";
    "server", "text", "none", r#""nginx""#, "A level of the factor.";
    "network", "text", "none", r#""lan""#, "A level of the factor.";
    "workload", "text", "none", r#""front""#, "A level of the factor.";
    "client", "text", "none", r#""h123""#, "A level of the factor.";
    "backend", "text", "none", r#""user-space""#, "A level of the factor.";
    "group", "text", "none", r#""tokyo-h2""#, "A level of the factor.";
};

named! { "a factor";
    /// A factor of the matrix.
    pub enum FactorKind {
        /// The HTTP version and its transport.
        Variant = "variant",
        /// The server.
        Server = "server",
        /// The network.
        Network = "network",
        /// The workload.
        Workload = "workload",
        /// The client program; a factor only if the study names some.
        Client = "client",
        /// What emulates the network; a factor only if the study has several `backends`.
        Backend = "backend",
        /// The client group; a factor only if the study has `[[group]]`.
        Group = "group",
    }
}

/// The levels of a factor as written; none for a factor that the matrix does not have.
pub(super) fn levels_of(matrix: &[Factor], kind: FactorKind) -> &[Placed<String>] {
    let factor = matrix.iter().find(|factor| factor.kind == kind);
    factor.map_or(&[], |factor| factor.levels.value.as_slice())
}

/// A factor of the matrix by its name: one of [`FactorKind`], `arm`, or the path of a sweep.
#[derive(Clone, Debug)]
pub(super) struct DeclaredFactor {
    pub(super) name: String,
    pub(super) levels: PlacedStrings,
}

impl DeclaredFactor {
    /// Refuses a level that appears twice.
    pub(super) fn check(&self) -> Result<(), InputError> {
        let mut known = BTreeSet::new();
        match self.levels.value.iter().find(|level| !known.insert(level.value.as_str())) {
            None => Ok(()),
            Some(twice) => {
                Err(twice.error(format!("`{}`: `{}` appears twice; remove one", self.name, twice.value)))
            }
        }
    }
}

/// A level as the plan names it, and whether the matrix has it: the command line may leave it out.
pub(super) fn resolve_level(
    study: &Study,
    key: &str,
    factor: &Placed<String>,
    value: &Placed<String>,
) -> Result<(Level, bool), InputError> {
    find_level(&study.factors, key, factor, value)
}

/// As [`resolve_level`], with the factors of the matrix.
pub(super) fn find_level(
    factors: &[DeclaredFactor],
    key: &str,
    factor: &Placed<String>,
    value: &Placed<String>,
) -> Result<(Level, bool), InputError> {
    let Some(known) = factors.iter().find(|known| known.name == factor.value) else {
        let names: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
        let problem = unknown(&factor.value, "a factor of the matrix", &names);
        return Err(factor.error(format!("{key}{problem}")));
    };
    let names: Vec<&str> = known.levels.value.iter().map(|level| level.value.as_str()).collect();
    let is_run = names.contains(&value.value.as_str());
    if !is_run && !known.levels.place.is_command_line() {
        let noun = format!("a level of `{}` in the matrix", factor.value);
        return Err(value.error(format!("{key}{}", unknown(&value.value, &noun, &names))));
    }
    Ok((Level { factor: factor.value.clone(), value: value.value.clone() }, is_run))
}

/// Checks that a name is one of the known ones; `key` begins the error.
pub(super) fn check_name(
    found: &Placed<String>,
    key: &str,
    noun: &str,
    known: &[String],
) -> Result<(), InputError> {
    if known.contains(&found.value) {
        Ok(())
    } else {
        Err(found.error(format!("{key}{}", unknown(&found.value, noun, known))))
    }
}
