//! Values from the command line that replace those of the study file.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{COMMAND_LINE, InputError, Place};

/// A value from the command line for one key of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The key with the tables that lead to it, such as `runs` or `matrix.server`; `*` is every table there,
    /// as in `workload.*.filmstrip`.
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

/// The table of the pins.
const HOLD: &str = "hold";

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
        let new = on_command_line(new.into_inner());
        let (path, key) = key.rsplit_once('.').unwrap_or(("", key));
        // A study without pins holds the defaults.
        if path == HOLD && !document.contains_key(HOLD) {
            let empty = on_command_line(DeValue::Table(DeTable::new()));
            document.insert(Spanned::new(COMMAND_LINE, HOLD.into()), empty);
        }
        for table in tables_at(document, path) {
            match (value, table.get_mut(key).map(Spanned::get_mut), new.get_ref()) {
                (OverrideValue::Added(_), Some(DeValue::Array(old)), DeValue::Array(new)) => {
                    new.iter().for_each(|item| old.push(item.clone()));
                }
                _ => drop(table.insert(Spanned::new(COMMAND_LINE, key.to_owned().into()), new.clone())),
            }
        }
    }
    Ok(())
}

/// The tables at a path. The reader reports that a table is missing, or that it is none.
fn tables_at<'t, 'a>(table: &'t mut DeTable<'a>, path: &str) -> Vec<&'t mut DeTable<'a>> {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    if name.is_empty() {
        return vec![table];
    }
    let named = table.iter_mut().filter(|(key, _)| name == "*" || key.get_ref() == name);
    let tables = named.filter_map(|(_, value)| match value.get_mut() {
        DeValue::Table(table) => Some(table),
        _ => None,
    });
    tables.flat_map(|table| tables_at(table, rest)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::tests::{SHORT, parse_with};

    #[test]
    fn a_star_is_every_table() {
        let two = SHORT.replace("workload = [\"small\"]", "workload = [\"small\", \"again\"]");
        let text = format!("{two}\n[workload.again]\nkind = \"page\"\npage = \"small\"\n");
        let filmstrip =
            Override { key: "workload.*.filmstrip", value: OverrideValue::Toml(true.to_string()) };
        let plan = parse_with(&text, &[filmstrip]).unwrap();
        assert_eq!(plan.workloads.len(), 2);
        assert!(plan.workloads.iter().all(|named| named.options.browser.filmstrip));
    }
}
