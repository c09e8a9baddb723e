//! Lists of numbers, strings and tables.

use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::DeValue;

use super::{Form, MOST_ENTRIES, Placed, PlacedStrings, Table};
use crate::error::InputError;

impl<'a> Table<'a> {
    /// A list of whole numbers within bounds.
    ///
    /// # Errors
    /// The value is no list of such numbers.
    pub fn integers<T: TryFrom<u64> + PartialOrd + Display>(
        &self,
        key: &str,
        range: &RangeInclusive<T>,
    ) -> Result<Vec<Placed<T>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong_type(key, value, "a list"));
        };
        self.check_length(key, value, items.len())?;
        items.iter().map(|item| self.integer_of(key, item, range)).collect()
    }

    /// A list of strings; the list's place is its bracket.
    ///
    /// # Errors
    /// The value is no list, has more than [`MOST_ENTRIES`], or one that is no string.
    pub fn strings(&self, key: &str) -> Result<Option<PlacedStrings>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong_type(key, value, "a list"));
        };
        self.check_length(key, value, items.len())?;
        let texts: Result<Vec<_>, _> = items
            .iter()
            .map(|item| match item.get_ref() {
                DeValue::String(text) => Ok(self.placed(text.to_string(), item.span().start)),
                _ => Err(self.wrong_type(key, item, "strings only")),
            })
            .collect();
        Ok(Some(self.placed(texts?, value.span().start)))
    }

    /// A list of at least one string or table; the list's place is its bracket.
    ///
    /// # Errors
    /// The value is no list, is empty, has more than [`MOST_ENTRIES`], or one that is neither.
    pub(crate) fn forms(&self, key: &str) -> Result<Option<Placed<Vec<Form<'a>>>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong_type(key, value, "a list"));
        };
        self.check_length(key, value, items.len())?;
        if items.is_empty() {
            return Err(self.empty_list(key, value));
        }
        let forms: Result<Vec<_>, _> = items
            .iter()
            .map(|item| match item.get_ref() {
                DeValue::String(text) => Ok(Form::Text(self.placed(text.to_string(), item.span().start))),
                DeValue::Table(entries) => {
                    Ok(Form::Table(self.inner(format!("`{key}` of {}", self.title), item, entries)))
                }
                _ => Err(self.wrong_type(key, item, "strings and tables only")),
            })
            .collect();
        Ok(Some(self.placed(forms?, value.span().start)))
    }

    fn empty_list(&self, key: &str, value: &Spanned<DeValue<'_>>) -> InputError {
        let problem = format!("`{key}` is an empty list; write one such as `{}`", self.example(key));
        self.source.error(value.span(), problem)
    }

    /// A list of at least one string.
    ///
    /// # Errors
    /// As [`Table::strings`], or the list is empty.
    pub fn some_strings(&self, key: &str) -> Result<Option<PlacedStrings>, InputError> {
        match self.strings(key)? {
            Some(empty) if empty.value.is_empty() => {
                let problem = format!("`{key}` is an empty list; write one such as `{}`", self.example(key));
                Err(empty.error(problem))
            }
            strings => Ok(strings),
        }
    }

    /// The tables `[[key]]`, in the order of the file.
    ///
    /// # Errors
    /// The value is no list of tables, or has more than [`MOST_ENTRIES`].
    pub fn tables(&self, key: &str) -> Result<Vec<Table<'a>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let expected = format!("tables `[[{key}]]`");
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong_type(key, value, &expected));
        };
        self.check_length(key, value, items.len())?;
        let table = |item: &'a Spanned<DeValue<'a>>| match item.get_ref() {
            DeValue::Table(entries) => Ok(self.inner(format!("[[{key}]]"), item, entries)),
            _ => Err(self.wrong_type(key, item, &expected)),
        };
        items.iter().map(table).collect()
    }

    fn check_length(&self, key: &str, value: &Spanned<DeValue<'_>>, count: usize) -> Result<(), InputError> {
        if count <= MOST_ENTRIES {
            return Ok(());
        }
        let problem = format!("`{key}` has {count} entries; at most {MOST_ENTRIES} are allowed");
        Err(self.source.error(value.span(), problem))
    }
}
