//! The declarations of keys.

/// One key of a table: all that errors and the documentation have to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The name.
    pub name: &'static str,
    /// The type of its value, such as `share`.
    pub takes: &'static str,
    /// The value without the key: TOML, or `required`, or words.
    pub default: &'static str,
    /// A value in TOML.
    pub example: &'static str,
    /// What it sets, and the limits. Markdown; links start from `docs/`.
    pub meaning: &'static str,
}

/// The keys of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableKeys {
    /// The table, such as `[matrix]`.
    pub table: &'static str,
    /// Its keys, in the order of the documentation.
    pub keys: &'static [Key],
}

/// Declares a list of [`Key`]s: `"name", "takes", "default", "example", "meaning";` for each.
#[macro_export]
macro_rules! keys {
    ($($name:literal, $takes:literal, $default:expr, $example:literal, $meaning:literal;)*) => {
        &[$($crate::reader::Key {
            name: $name,
            takes: $takes,
            default: $default,
            example: $example,
            meaning: $meaning,
        }),*]
    };
}
