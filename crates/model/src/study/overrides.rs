//! Values from the command line that replace those of the study file.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{COMMAND_LINE, InputError, Place};

/// A value from the command line for one key of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The key with the tables that lead to it, such as `runs` or `matrix.server`.
    pub key: &'static str,
    /// The value.
    pub value: OverrideValue,
}

/// The value of an [`Override`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverrideValue {
    /// A string: a name, or a quantity with its unit.
    Text(String),
    /// A whole number.
    Number(u64),
    /// A list of strings in place of the file's.
    List(Vec<String>),
    /// Strings added to the file's list.
    Added(Vec<String>),
    /// The study has its full size: its table `[full]` replaces other keys.
    Full,
    /// Any value, as TOML.
    Toml(String),
}

impl Override {
    /// The value as a study file would contain it.
    pub(super) fn to_toml(&self) -> String {
        match &self.value {
            OverrideValue::Text(text) => toml::Value::from(text.as_str()).to_string(),
            OverrideValue::Number(number) => number.to_string(),
            OverrideValue::Full => true.to_string(),
            OverrideValue::Toml(text) => text.clone(),
            OverrideValue::List(texts) | OverrideValue::Added(texts) => {
                toml::Value::from(texts.clone()).to_string()
            }
        }
    }
}

/// Writes the overrides, whose values are also given as TOML, into a study's document. The reader then treats
/// them like values of the file; their place is the command line.
///
/// # Errors
/// A number that TOML cannot hold.
pub(super) fn write_into<'a>(
    document: &mut DeTable<'a>,
    overrides: &[Override],
    values: &'a [String],
) -> Result<(), InputError> {
    let of_keys = overrides.iter().zip(values).filter(|(given, _)| given.value != OverrideValue::Full);
    for (Override { key, value }, text) in of_keys {
        let new = DeValue::parse(text).map_err(|error| InputError {
            place: Place::command_line(),
            problem: format!("`{key}`: {}", error.message()),
        })?;
        let (table, key) = match key.split_once('.') {
            None => (&mut *document, *key),
            Some((table, key)) => match document.get_mut(table).map(Spanned::get_mut) {
                Some(DeValue::Table(table)) => (table, key),
                // The reader reports that the table is missing, or that it is none.
                _ => continue,
            },
        };
        let new = on_command_line(new.into_inner());
        match (value, table.get_mut(key).map(Spanned::get_mut), new.get_ref()) {
            (OverrideValue::Added(_), Some(DeValue::Array(old)), DeValue::Array(new)) => {
                new.iter().for_each(|item| old.push(item.clone()));
            }
            _ => drop(table.insert(Spanned::new(COMMAND_LINE, key.to_owned().into()), new)),
        }
    }
    Ok(())
}

/// The same value, and what is in a list or table, placed at the command line.
fn on_command_line(value: DeValue<'_>) -> Spanned<DeValue<'_>> {
    let value = match value {
        DeValue::Array(items) => {
            DeValue::Array(items.into_iter().map(|item| on_command_line(item.into_inner())).collect())
        }
        DeValue::Table(table) => {
            let mut placed = DeTable::new();
            for (key, value) in table {
                let key = Spanned::new(COMMAND_LINE, key.into_inner());
                placed.insert(key, on_command_line(value.into_inner()));
            }
            DeValue::Table(placed)
        }
        other => other,
    };
    Spanned::new(COMMAND_LINE, value)
}
