//! One cell of a table, and the description of a column that both the writer and the reader follow.

use serde::Deserialize;

use crate::schema::named;

/// One cell of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Null,
    /// Stored as a signed 64-bit integer, so that differences may be negative; larger numbers are refused.
    Integer(u64),
    Text(&'a str),
    Flag(bool),
    Integers(&'a [u64]),
    Texts(&'a [String]),
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    MaybeInteger,
    Text,
    MaybeText,
    Flag,
    Integers,
    Texts,
}

type Get<R> = Box<dyn for<'a> Fn(&'a R) -> Value<'a> + Send + Sync>;
type Set<R> = Box<dyn Fn(&mut R, Value<'_>) -> Result<(), String> + Send + Sync>;

/// A column of a table whose rows are `R`.
pub(crate) struct Column<R> {
    /// Its name; the unit stands last in it.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// `ns`, `B`, `1` for counts and numbers, empty for texts.
    pub(crate) unit: &'static str,
    /// One line for people.
    pub(crate) meaning: &'static str,
    /// Takes the cell out of a row.
    pub(crate) get: Get<R>,
    /// Puts the cell into a row; columns are set in the order of the table.
    pub(crate) set: Set<R>,
}

/// A column of integers.
pub(crate) fn integer<R>(
    name: &str,
    unit: &'static str,
    meaning: &'static str,
    get: impl for<'a> Fn(&'a R) -> Value<'a> + Send + Sync + 'static,
    set: impl Fn(&mut R, Value<'_>) -> Result<(), String> + Send + Sync + 'static,
) -> Column<R> {
    Column {
        name: name.to_owned(),
        kind: Kind::Integer,
        unit,
        meaning,
        get: Box::new(get),
        set: Box::new(set),
    }
}

/// A column of integers that may be absent.
pub(crate) fn maybe_integer<R>(
    name: &str,
    unit: &'static str,
    meaning: &'static str,
    get: impl for<'a> Fn(&'a R) -> Value<'a> + Send + Sync + 'static,
    set: impl Fn(&mut R, Value<'_>) -> Result<(), String> + Send + Sync + 'static,
) -> Column<R> {
    Column {
        name: name.to_owned(),
        kind: Kind::MaybeInteger,
        unit,
        meaning,
        get: Box::new(get),
        set: Box::new(set),
    }
}

/// A column of lists of integers.
pub(crate) fn integers<R>(
    name: &str,
    unit: &'static str,
    meaning: &'static str,
    get: impl for<'a> Fn(&'a R) -> Value<'a> + Send + Sync + 'static,
    set: impl Fn(&mut R, Value<'_>) -> Result<(), String> + Send + Sync + 'static,
) -> Column<R> {
    Column {
        name: name.to_owned(),
        kind: Kind::Integers,
        unit,
        meaning,
        get: Box::new(get),
        set: Box::new(set),
    }
}

/// A column of texts.
pub(crate) fn text<R>(
    name: &str,
    meaning: &'static str,
    get: impl for<'a> Fn(&'a R) -> Value<'a> + Send + Sync + 'static,
    set: impl Fn(&mut R, Value<'_>) -> Result<(), String> + Send + Sync + 'static,
) -> Column<R> {
    Column {
        name: name.to_owned(),
        kind: Kind::Text,
        unit: "",
        meaning,
        get: Box::new(get),
        set: Box::new(set),
    }
}

/// A column of texts that may be absent.
pub(crate) fn maybe_text<R>(
    name: &str,
    meaning: &'static str,
    get: impl for<'a> Fn(&'a R) -> Value<'a> + Send + Sync + 'static,
    set: impl Fn(&mut R, Value<'_>) -> Result<(), String> + Send + Sync + 'static,
) -> Column<R> {
    Column {
        name: name.to_owned(),
        kind: Kind::MaybeText,
        unit: "",
        meaning,
        get: Box::new(get),
        set: Box::new(set),
    }
}

/// A column of lists of texts.
pub(crate) fn texts<R>(
    name: &str,
    meaning: &'static str,
    get: impl for<'a> Fn(&'a R) -> Value<'a> + Send + Sync + 'static,
    set: impl Fn(&mut R, Value<'_>) -> Result<(), String> + Send + Sync + 'static,
) -> Column<R> {
    Column {
        name: name.to_owned(),
        kind: Kind::Texts,
        unit: "",
        meaning,
        get: Box::new(get),
        set: Box::new(set),
    }
}

/// A column of true and false.
pub(crate) fn flag<R>(
    name: &str,
    meaning: &'static str,
    get: impl for<'a> Fn(&'a R) -> Value<'a> + Send + Sync + 'static,
    set: impl Fn(&mut R, Value<'_>) -> Result<(), String> + Send + Sync + 'static,
) -> Column<R> {
    Column {
        name: name.to_owned(),
        kind: Kind::Flag,
        unit: "",
        meaning,
        get: Box::new(get),
        set: Box::new(set),
    }
}

impl<'a> Value<'a> {
    /// Puts an integer where it belongs.
    pub(crate) fn to<T: TryFrom<u64>>(self, place: &mut T) -> Result<(), String> {
        *place = narrow(self.maybe_u64()?.ok_or("found null, expected an integer")?)?;
        Ok(())
    }

    /// Puts an integer that may be absent where it belongs.
    pub(crate) fn to_maybe<T: TryFrom<u64>>(self, place: &mut Option<T>) -> Result<(), String> {
        *place = self.maybe_u64()?.map(narrow).transpose()?;
        Ok(())
    }

    /// Puts a text where it belongs.
    pub(crate) fn to_text(self, place: &mut String) -> Result<(), String> {
        self.as_text()?.clone_into(place);
        Ok(())
    }

    /// Puts a text that may be absent where it belongs.
    pub(crate) fn to_maybe_text(self, place: &mut Option<String>) -> Result<(), String> {
        *place = self.maybe_text()?.map(str::to_owned);
        Ok(())
    }

    /// Puts a value of one of the model's enums where it belongs.
    pub(crate) fn to_named<T: Deserialize<'a>>(self, place: &mut T) -> Result<(), String> {
        *place = named(self.as_text()?)?;
        Ok(())
    }

    /// Puts true or false where it belongs.
    pub(crate) fn to_flag(self, place: &mut bool) -> Result<(), String> {
        match self {
            Value::Flag(flag) => *place = flag,
            other => return Err(format!("found {other:?}, expected true or false")),
        }
        Ok(())
    }

    /// Puts a list of texts where it belongs.
    pub(crate) fn to_texts(self, place: &mut Vec<String>) -> Result<(), String> {
        match self {
            Value::Texts(texts) => *place = texts.to_vec(),
            other => return Err(format!("found {other:?}, expected a list of texts")),
        }
        Ok(())
    }

    /// The integers of a list.
    pub(crate) fn into_integers(self) -> Result<Vec<u64>, String> {
        match self {
            Value::Integers(integers) => Ok(integers.to_vec()),
            other => Err(format!("found {other:?}, expected a list of integers")),
        }
    }

    /// The integer, or `None` for null.
    pub(crate) fn maybe_u64(self) -> Result<Option<u64>, String> {
        match self {
            Value::Null => Ok(None),
            Value::Integer(integer) => Ok(Some(integer)),
            other => Err(format!("found {other:?}, expected an integer")),
        }
    }

    /// The text, or `None` for null.
    pub(crate) fn maybe_text(self) -> Result<Option<&'a str>, String> {
        match self {
            Value::Null => Ok(None),
            Value::Text(text) => Ok(Some(text)),
            other => Err(format!("found {other:?}, expected a text")),
        }
    }

    /// The text.
    pub(crate) fn as_text(self) -> Result<&'a str, String> {
        self.maybe_text()?.ok_or_else(|| "found null, expected a text".to_owned())
    }
}

fn narrow<T: TryFrom<u64>>(integer: u64) -> Result<T, String> {
    T::try_from(integer).map_err(|_| format!("found {integer}, expected a smaller number"))
}

impl From<u64> for Value<'_> {
    fn from(integer: u64) -> Self {
        Value::Integer(integer)
    }
}

impl From<u32> for Value<'_> {
    fn from(integer: u32) -> Self {
        Value::Integer(integer.into())
    }
}

impl From<u16> for Value<'_> {
    fn from(integer: u16) -> Self {
        Value::Integer(integer.into())
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}
