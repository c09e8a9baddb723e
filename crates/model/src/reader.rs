//! Reads tables of TOML key by key, so that every fault has its place and is told in our own words.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{InputError, Place, Source};
use crate::nearest::unknown;
use crate::tunable::Setting;

/// A list has at most so many entries.
pub(crate) const MOST_ENTRIES: usize = 1000;

/// A value with the place where a person wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

impl<T> Placed<T> {
    pub(crate) fn error(&self, problem: impl Into<String>) -> InputError {
        InputError { place: self.place.clone(), problem: problem.into() }
    }

    /// The same place with what `change` makes of the value.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> Result<U, String>) -> Result<Placed<U>, InputError> {
        match change(self.value) {
            Ok(value) => Ok(Placed { value, place: self.place }),
            Err(problem) => Err(InputError { place: self.place, problem }),
        }
    }
}

/// What may be written in short or in full.
pub(crate) enum Form<'a> {
    Text(Placed<String>),
    Table(Table<'a>),
}

/// A table whose keys are all known.
pub(crate) struct Table<'a> {
    source: Source<'a>,
    /// As it stands in the file: `[matrix]`, or for the root what the file is, such as `the study`.
    title: String,
    place: Place,
    entries: &'a DeTable<'a>,
}

impl<'a> Table<'a> {
    /// The root of a file.
    pub(crate) fn root(
        source: Source<'a>,
        entries: &'a DeTable<'a>,
        title: &str,
        keys: &[&str],
    ) -> Result<Table<'a>, InputError> {
        let table = Table { source, title: title.into(), place: source.place(0), entries };
        table.with_keys(keys)
    }

    /// The same table, if it has no key but these.
    pub(crate) fn with_keys(self, keys: &[&str]) -> Result<Table<'a>, InputError> {
        for key in self.entries.keys() {
            if !keys.contains(&key.get_ref().as_ref()) {
                let problem = unknown(key.get_ref(), &format!("a key of {}", self.title), keys);
                return Err(self.source.error(key.span(), problem));
            }
        }
        Ok(self)
    }

    pub(crate) fn error(&self, problem: impl Into<String>) -> InputError {
        InputError { place: self.place.clone(), problem: problem.into() }
    }

    /// A value at the table's own place.
    pub(crate) fn here<T>(&self, value: T) -> Placed<T> {
        Placed { value, place: self.place.clone() }
    }

    /// Every key with its place, in the order of the file.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Placed<String>> + '_ {
        self.entries.keys().map(|key| self.placed(key.get_ref().to_string(), key.span().start))
    }

    /// The error of a key that is not there.
    pub(crate) fn missing(&self, key: &str, example: &str) -> InputError {
        self.error(format!("found no `{key}` in {}, expected one such as `{example}`", self.title))
    }

    pub(crate) fn string(&self, key: &str, example: &str) -> Result<Option<Placed<String>>, InputError> {
        self.get(key).map(|value| self.text(key, value, example)).transpose()
    }

    /// A string that is read further by `parse`: a quantity with its unit, or a name from a list.
    pub(crate) fn parsed<T>(
        &self,
        key: &str,
        example: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<Placed<T>>, InputError> {
        let Some(text) = self.string(key, example)? else { return Ok(None) };
        text.map(|text| parse(&text).map_err(|problem| format!("`{key}`: {problem}"))).map(Some)
    }

    pub(crate) fn integer(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<Placed<u64>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let expected = format!("expected a whole number from {} to {}", range.start(), range.end());
        let DeValue::Integer(digits) = value.get_ref() else {
            return Err(self.wrong_type(key, value, &expected));
        };
        match u64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) if range.contains(&number) => Ok(Some(self.placed(number, value.span().start))),
            _ => Err(self
                .source
                .error(value.span(), format!("`{key}`: found {}, {expected}", digits.as_str()))),
        }
    }

    /// A number with or without a fraction, and without a unit.
    pub(crate) fn number(&self, key: &str, example: &str) -> Result<Option<Placed<f64>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = match value.get_ref() {
            DeValue::Float(number) => number.as_str().replace('_', "").parse().ok(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', "").parse().ok(),
            _ => None,
        };
        let number = number.filter(|number: &f64| number.is_finite());
        let number = number.ok_or_else(|| {
            self.wrong_type(key, value, &format!("expected a number such as `{key} = {example}`"))
        })?;
        Ok(Some(self.placed(number, value.span().start)))
    }

    pub(crate) fn boolean(&self, key: &str) -> Result<Option<Placed<bool>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.get_ref() {
            DeValue::Boolean(truth) => Ok(Some(self.placed(*truth, value.span().start))),
            _ => Err(self.wrong_type(key, value, "expected `true` or `false`")),
        }
    }

    /// The value of a tunable: a flag, a whole number or a text.
    pub(crate) fn setting(&self, key: &str) -> Result<Placed<Setting>, InputError> {
        let value = self.get(key).ok_or_else(|| self.missing(key, &format!("{key} = 1")))?;
        let setting = match value.get_ref() {
            DeValue::Boolean(flag) => Some(Setting::Flag(*flag)),
            DeValue::String(text) => Some(Setting::Text(text.to_string())),
            DeValue::Integer(digits) => {
                u64::from_str_radix(digits.as_str(), digits.radix()).ok().map(Setting::Number)
            }
            _ => None,
        };
        let expected = "expected a flag, a whole number that is not negative, or a text";
        let setting = setting.ok_or_else(|| self.wrong_type(key, value, expected))?;
        Ok(self.placed(setting, value.span().start))
    }

    /// A list of strings; the list itself is placed at its bracket.
    pub(crate) fn strings(
        &self,
        key: &str,
        example: &str,
    ) -> Result<Option<Placed<Vec<Placed<String>>>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong_type(key, value, &format!("expected a list such as `{key} = {example}`")));
        };
        if items.len() > MOST_ENTRIES {
            let problem = format!("`{key}`: found {} entries, expected at most {MOST_ENTRIES}", items.len());
            return Err(self.source.error(value.span(), problem));
        }
        let texts: Result<Vec<_>, _> = items
            .iter()
            .map(|item| match item.get_ref() {
                DeValue::String(text) => Ok(self.placed(text.to_string(), item.span().start)),
                _ => {
                    Err(self.wrong_type(key, item, &format!("expected strings, such as `{key} = {example}`")))
                }
            })
            .collect();
        Ok(Some(self.placed(texts?, value.span().start)))
    }

    pub(crate) fn table(&self, key: &str) -> Result<Option<Table<'a>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let title = if self.title.starts_with("[[") {
            format!("`{key}` of {}", self.title)
        } else if self.title.starts_with('[') {
            self.title.replace(']', &format!(".{key}]"))
        } else {
            format!("[{key}]")
        };
        match value.get_ref() {
            DeValue::Table(entries) => {
                let place = self.source.place(value.span().start);
                Ok(Some(Table { source: self.source, title, place, entries }))
            }
            _ if title.starts_with('`') => {
                Err(self.wrong_type(key, value, "expected a table such as `{ … }`"))
            }
            _ => Err(self.wrong_type(key, value, &format!("expected a table `{title}`"))),
        }
    }

    /// A string in short, or a table in full.
    pub(crate) fn form(&self, key: &str, example: &str) -> Result<Option<Form<'a>>, InputError> {
        match self.get(key).map(Spanned::get_ref) {
            Some(DeValue::Table(_)) => Ok(self.table(key)?.map(Form::Table)),
            _ => Ok(self.string(key, example)?.map(Form::Text)),
        }
    }

    /// The tables `[[key]]`, in the order of the file.
    pub(crate) fn tables(&self, key: &str) -> Result<Vec<Table<'a>>, InputError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let expected = format!("expected tables `[[{key}]]`");
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong_type(key, value, &expected));
        };
        if items.len() > MOST_ENTRIES {
            let problem = format!("`{key}`: found {} entries, expected at most {MOST_ENTRIES}", items.len());
            return Err(self.source.error(value.span(), problem));
        }
        let table = |item: &'a Spanned<DeValue<'a>>| match item.get_ref() {
            DeValue::Table(entries) => {
                let place = self.source.place(item.span().start);
                Ok(Table { source: self.source, title: format!("[[{key}]]"), place, entries })
            }
            _ => Err(self.wrong_type(key, item, &expected)),
        };
        items.iter().map(table).collect()
    }

    fn text(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        example: &str,
    ) -> Result<Placed<String>, InputError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(self.placed(text.to_string(), value.span().start)),
            _ => Err(self.wrong_type(
                key,
                value,
                &format!("expected a string such as `{key} = \"{example}\"`"),
            )),
        }
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
        self.source.error(value.span(), format!("`{key}`: found {found}, {expected}"))
    }

    fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.entries.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    fn placed<T>(&self, value: T, offset: usize) -> Placed<T> {
        Placed { value, place: self.source.place(offset) }
    }
}
