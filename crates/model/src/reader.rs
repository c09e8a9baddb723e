//! Reads TOML files table by table, so that every error names its place and the expected form.
//!
//! A table's keys are declared once, as a list of [`Key`]s. Errors take the known names and the example from
//! there, and so does the documentation.

pub(crate) mod document;
mod key;
mod lists;
mod placed;

use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{InputError, Place, Source};
use crate::named::{Named, unknown};
use crate::units;

use document::scalar;

pub use key::{Key, TableKeys};
pub use placed::{Form, Placed, PlacedStrings, StringEntry};

/// The most entries of a list.
pub const MOST_ENTRIES: usize = 1000;
/// The largest file.
const MOST_TEXT_BYTES: usize = 256 << 10;

/// A table of a TOML file.
pub struct Table<'a> {
    source: Source<'a>,
    /// Its name in errors: `[matrix]`, or for the root `the study`.
    title: String,
    place: Place,
    entries: &'a DeTable<'a>,
    keys: Vec<&'static Key>,
}

/// Parses a file of at most 256 KiB.
///
/// # Errors
/// The place of faulty TOML, or the file is too large.
pub fn parse(source: Source<'_>) -> Result<DeTable<'_>, InputError> {
    if source.text.len() > MOST_TEXT_BYTES {
        let count = source.text.len();
        let problem = format!("the file has {count} bytes; at most {MOST_TEXT_BYTES} are allowed");
        return Err(source.error(0..0, problem));
    }
    Ok(DeTable::parse(source.text).map_err(|error| source.toml_error(&error))?.into_inner())
}

/// Reads a file whose root table has these keys; `title` is the file's name in errors, such as `the study`.
///
/// # Errors
/// As [`parse`], the place of an unknown key, or what `read` refuses.
pub fn read_file<T>(
    source: Source<'_>,
    title: &str,
    keys: impl IntoIterator<Item = &'static Key>,
    read: impl FnOnce(&Table<'_>) -> Result<T, InputError>,
) -> Result<T, InputError> {
    read(&Table::root(source, &parse(source)?, title, keys)?)
}

impl<'a> Table<'a> {
    /// The root table of a file.
    ///
    /// # Errors
    /// The place of an unknown key, and the nearest known name.
    pub fn root(
        source: Source<'a>,
        entries: &'a DeTable<'a>,
        title: &str,
        keys: impl IntoIterator<Item = &'static Key>,
    ) -> Result<Table<'a>, InputError> {
        Table::whole(source, entries, title).with_keys(keys)
    }

    /// The root table of a file, of which only some keys are read.
    pub(crate) fn whole(source: Source<'a>, entries: &'a DeTable<'a>, title: &str) -> Table<'a> {
        let place = source.place(0);
        Table { source, title: title.to_owned(), place, entries, keys: Vec::new() }
    }

    /// The place of a key.
    pub(crate) fn place_of(&self, key: &str) -> Option<Place> {
        self.keys().find(|known| known.value == key).map(|known| known.place)
    }

    /// The same table with these keys and no others.
    ///
    /// # Errors
    /// The place of another key, and the nearest known name.
    pub fn with_keys(self, keys: impl IntoIterator<Item = &'static Key>) -> Result<Table<'a>, InputError> {
        self.knowing(keys).refuse_unknown_keys()
    }

    /// The same table, whose errors take examples from these keys; it may have others.
    #[must_use]
    pub fn knowing(mut self, keys: impl IntoIterator<Item = &'static Key>) -> Table<'a> {
        self.keys = keys.into_iter().collect();
        self
    }

    fn refuse_unknown_keys(self) -> Result<Table<'a>, InputError> {
        let names: Vec<&str> = self.keys.iter().map(|key| key.name).collect();
        match self.entries.keys().find(|key| !names.contains(&key.get_ref().as_ref())) {
            None => Ok(self),
            Some(key) => {
                let problem = unknown(key.get_ref(), &format!("a key of {}", self.title), &names);
                Err(self.source.error(key.span(), problem))
            }
        }
    }

    /// An error at the table's own place.
    pub fn error(&self, problem: impl Into<String>) -> InputError {
        InputError { place: self.place.clone(), problem: problem.into() }
    }

    /// A value at the table's own place.
    pub fn here<T>(&self, value: T) -> Placed<T> {
        Placed { value, place: self.place.clone() }
    }

    /// The name of the table in errors, such as `[matrix]`.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Every key with its place, in the order of the file.
    pub fn keys(&self) -> impl Iterator<Item = Placed<String>> + '_ {
        self.entries.keys().map(|key| self.placed(key.get_ref().to_string(), key.span().start))
    }

    /// Reads a key that the table must have.
    ///
    /// # Errors
    /// The key is missing, or what `read` refuses.
    pub fn required<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Table<'a>, &str) -> Result<Option<T>, InputError>,
    ) -> Result<T, InputError> {
        read(self, key)?.ok_or_else(|| self.missing(key))
    }

    /// The error of a missing key.
    pub fn missing(&self, key: &str) -> InputError {
        match self.example(key) {
            "" => self.error(format!("{} has no `{key}`; add one", self.title)),
            example => {
                self.error(format!("{} has no `{key}`; add one, such as `{key} = {example}`", self.title))
            }
        }
    }

    /// A string.
    ///
    /// # Errors
    /// The value is no string.
    pub fn string(&self, key: &str) -> Result<Option<Placed<String>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::String(text) => Ok(Some(self.placed(text.to_string(), value.span().start))),
            _ => Err(self.wrong_type(key, value, "a string")),
        }
    }

    /// A string with at least one visible character.
    ///
    /// # Errors
    /// The value is no string, or an empty one.
    pub fn text(&self, key: &str) -> Result<Option<Placed<String>>, InputError> {
        let text = self.string(key)?;
        match text {
            Some(empty) if empty.value.trim().is_empty() => {
                Err(empty
                    .error(format!("`{key}` is empty; write one such as `{key} = {}`", self.example(key))))
            }
            text => Ok(text),
        }
    }

    /// A string that `parse` reads: a quantity with its unit, or a name.
    ///
    /// # Errors
    /// The value is no string, or what `parse` refuses.
    pub fn parsed<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<Placed<T>>, InputError> {
        let Some(text) = self.string(key)? else { return Ok(None) };
        text.map(|text| parse(&text).map_err(|problem| format!("`{key}`: {problem}"))).map(Some)
    }

    /// A name of a [`Named`] type.
    ///
    /// # Errors
    /// The value is no string, or not one of the names.
    pub fn named<T: Named>(&self, key: &str) -> Result<Option<Placed<T>>, InputError> {
        self.parsed(key, T::from_name)
    }

    /// A duration above 0, in nanoseconds.
    ///
    /// # Errors
    /// The value is no duration, or 0.
    pub fn duration_above_zero(&self, key: &str) -> Result<Option<Placed<u64>>, InputError> {
        self.parsed(key, |text| match units::parse_duration_ns(text)? {
            0 => Err("0 is too short; write a duration above 0".to_owned()),
            ns => Ok(ns),
        })
    }

    /// A size within bounds, in bytes.
    ///
    /// # Errors
    /// The value is no size, or out of bounds.
    pub fn size(&self, key: &str, range: RangeInclusive<u32>) -> Result<Option<Placed<u32>>, InputError> {
        self.parsed(key, |text| units::parse_size_within(text, &range))
    }

    /// A whole number within bounds.
    ///
    /// # Errors
    /// The value is no whole number, or out of bounds.
    pub fn integer<T: TryFrom<u64> + PartialOrd + Display>(
        &self,
        key: &str,
        range: RangeInclusive<T>,
    ) -> Result<Option<Placed<T>>, InputError> {
        self.get(key).map(|value| self.integer_of(key, value, &range)).transpose()
    }

    fn integer_of<T: TryFrom<u64> + PartialOrd + Display>(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        range: &RangeInclusive<T>,
    ) -> Result<Placed<T>, InputError> {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let DeValue::Integer(digits) = value.get_ref() else {
            return Err(self.wrong_type(key, value, &expected));
        };
        let number = u64::from_str_radix(digits.as_str(), digits.radix()).ok();
        match number.and_then(|number| T::try_from(number).ok()).filter(|number| range.contains(number)) {
            Some(number) => Ok(self.placed(number, value.span().start)),
            None => Err(self
                .source
                .error(value.span(), format!("`{key}` is {}; write {expected}", digits.as_str()))),
        }
    }

    /// A finite number without a unit, whole or with a fraction.
    ///
    /// # Errors
    /// The value is no such number.
    pub fn number(&self, key: &str) -> Result<Option<Placed<f64>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = match value.get_ref() {
            DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', "").parse().ok(),
            _ => None,
        };
        let number = number.filter(|number: &f64| number.is_finite());
        let number = number.ok_or_else(|| self.wrong_type(key, value, "a number"))?;
        Ok(Some(self.placed(number, value.span().start)))
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// The value is neither.
    pub fn boolean(&self, key: &str) -> Result<Option<Placed<bool>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Boolean(truth) => Ok(Some(self.placed(*truth, value.span().start))),
            _ => Err(self.wrong_type(key, value, "`true` or `false`")),
        }
    }

    /// Whether a key is `true`; `false` without it.
    ///
    /// # Errors
    /// The value is neither `true` nor `false`.
    pub fn flag(&self, key: &str) -> Result<bool, InputError> {
        Ok(self.boolean(key)?.is_some_and(|truth| truth.value))
    }

    /// A value of several possible types; `read` returns `None` for a wrong one, and `expected` names the
    /// right ones.
    ///
    /// # Errors
    /// `read` returns `None`.
    pub(crate) fn value<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&DeValue<'_>) -> Option<T>,
    ) -> Result<Option<Placed<T>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let read = read(value.get_ref()).ok_or_else(|| self.wrong_type(key, value, expected))?;
        Ok(Some(self.placed(read, value.span().start)))
    }

    /// Every key of the table with its value, in the order of the file; numbers and booleans as text.
    ///
    /// # Errors
    /// A value is a date, a list or a table.
    pub(crate) fn level_entries(&self) -> Result<Vec<StringEntry>, InputError> {
        let entry = |key: Placed<String>| {
            let value = self.value(&key.value, "a string", |value| Some(scalar(value)?.0))?;
            Ok(value.map(|value| (key, value)))
        };
        self.keys().filter_map(|key| entry(key).transpose()).collect()
    }

    /// A table below a key.
    ///
    /// # Errors
    /// The value is no table.
    pub fn table(&self, key: &str) -> Result<Option<Table<'a>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let title = if self.title.starts_with("[[") {
            format!("`{key}` of {}", self.title)
        } else if self.title.starts_with('[') {
            self.title.replace(']', &format!(".{key}]"))
        } else {
            format!("[{key}]")
        };
        match value.get_ref() {
            DeValue::Table(entries) => Ok(Some(self.inner(title, value, entries))),
            _ => Err(self.wrong_type(key, value, "a table")),
        }
    }

    /// The tables `[NAME]` below this one, with their names, in the order of the file.
    ///
    /// # Errors
    /// A value is no table, or there are more than [`MOST_ENTRIES`].
    pub fn named_tables(&self) -> Result<Vec<(Placed<String>, Table<'a>)>, InputError> {
        if self.entries.len() > MOST_ENTRIES {
            let problem = format!(
                "{} has {} tables; at most {MOST_ENTRIES} are allowed",
                self.title,
                self.entries.len()
            );
            return Err(self.error(problem));
        }
        let table = |name: Placed<String>| Ok(self.table(&name.value)?.map(|table| (name, table)));
        self.keys().filter_map(|name| table(name).transpose()).collect()
    }

    /// A string as the short form, or a table as the full one.
    ///
    /// # Errors
    /// The value is neither.
    pub fn form(&self, key: &str) -> Result<Option<Form<'a>>, InputError> {
        match self.get(key).map(Spanned::get_ref) {
            Some(DeValue::Table(_)) => Ok(self.table(key)?.map(Form::Table)),
            _ => Ok(self.string(key)?.map(Form::Text)),
        }
    }

    fn inner(&self, title: String, value: &Spanned<DeValue<'_>>, entries: &'a DeTable<'a>) -> Table<'a> {
        let place = self.source.place(value.span().start);
        Table { source: self.source, title, place, entries, keys: Vec::new() }
    }

    fn wrong_type(&self, key: &str, value: &Spanned<DeValue<'_>>, expected: &str) -> InputError {
        let found = match value.get_ref() {
            DeValue::String(text) => format!("the string \"{text}\""),
            DeValue::Integer(number) => format!("the number {}", number.as_str()),
            DeValue::Float(number) => format!("the number {}", number.as_str()),
            DeValue::Boolean(truth) => format!("`{truth}`"),
            DeValue::Datetime(_) => "a date".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        };
        let such_as = match self.example(key) {
            "" => String::new(),
            example => format!(", such as `{key} = {example}`"),
        };
        self.source.error(value.span(), format!("`{key}` is {found}; write {expected}{such_as}"))
    }

    fn example(&self, key: &str) -> &'static str {
        self.keys.iter().find(|known| known.name == key).map_or("", |known| known.example)
    }

    fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.entries.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    fn placed<T>(&self, value: T, offset: usize) -> Placed<T> {
        Placed { value, place: self.source.place(offset) }
    }
}
