//! One cell of a table, and the Rust types that a cell holds.

use std::sync::Arc;

use model::media::TrackKind;
use model::monitor::{Name, Quantity, SubjectKind};
use model::player::{PlayerEventKind, PlayerFault};
use model::record::TimeSource;
use model::sample::{Cause, EarlyData, FailureKind, Phase, ServerClose};
use model::{Backend, HttpVersion};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as NameError, StrDeserializer};

/// The value of one cell.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Null,
    /// Stored as a signed 64-bit integer, so that queries may subtract; larger numbers are refused.
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
    Text,
    Flag,
    Integers,
    Texts,
}

/// A type that one cell holds.
pub(crate) trait Cell: Sized {
    /// The type of its column.
    const KIND: Kind;
    /// Whether the cell may be null.
    const IS_NULLABLE: bool = false;

    /// The cell's value.
    fn value(&self) -> Value<'_>;

    /// The inverse of [`Cell::value`].
    ///
    /// # Errors
    /// The value has another type or is out of range.
    fn read(value: Value<'_>) -> Result<Self, String>;
}

impl Kind {
    /// The value that an absent part of a row has in a column of this type.
    pub(crate) const fn absent(self) -> Value<'static> {
        match self {
            Kind::Integer | Kind::Text => Value::Null,
            Kind::Flag => Value::Flag(false),
            Kind::Integers => Value::Integers(&[]),
            Kind::Texts => Value::Texts(&[]),
        }
    }
}

impl<'a> Value<'a> {
    /// Whether this is the value of an absent part of a row.
    pub(crate) const fn is_absent(self) -> bool {
        match self {
            Value::Null => true,
            Value::Integer(_) | Value::Text(_) => false,
            Value::Flag(flag) => !flag,
            Value::Integers(integers) => integers.is_empty(),
            Value::Texts(texts) => texts.is_empty(),
        }
    }

    /// The text.
    pub(crate) fn as_text(self) -> Result<&'a str, String> {
        match self {
            Value::Text(text) => Ok(text),
            other => Err(format!("{other:?} is not a text")),
        }
    }
}

impl<T: Cell> Cell for Option<T> {
    const KIND: Kind = T::KIND;
    const IS_NULLABLE: bool = true;

    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, T::value)
    }

    fn read(value: Value<'_>) -> Result<Self, String> {
        if matches!(value, Value::Null) { Ok(None) } else { T::read(value).map(Some) }
    }
}

/// Implements [`Cell`]: the type, its kind, the value of `self`, and the type from the content of such a
/// value.
macro_rules! cell {
    ($type:ty, $kind:ident, $expected:literal, |$this:ident| $value:expr, |$content:ident| $read:expr) => {
        impl Cell for $type {
            const KIND: Kind = Kind::$kind;

            fn value(&self) -> Value<'_> {
                let $this = self;
                Value::$kind($value)
            }

            fn read(value: Value<'_>) -> Result<Self, String> {
                match value {
                    Value::$kind($content) => $read,
                    other => Err(format!("{other:?} is not {}", $expected)),
                }
            }
        }
    };
}

/// Implements [`Cell`] for enums of the model by their names.
macro_rules! named_cells {
    ($($type:ty),+) => {
        $(cell!($type, Text, "a name", |this| this.name(), |name| named(name));)+
    };
}

cell!(u16, Integer, "an integer", |this| u64::from(*this), |integer| narrow(integer));
cell!(u32, Integer, "an integer", |this| u64::from(*this), |integer| narrow(integer));
cell!(u64, Integer, "an integer", |this| *this, |integer| Ok(integer));
cell!(bool, Flag, "`true` or `false`", |this| *this, |flag| Ok(flag));
cell!(String, Text, "a text", |this| this, |text| Ok(text.to_owned()));
cell!(Arc<str>, Text, "a text", |this| this, |text| Ok(text.into()));
cell!(Name, Text, "a text", |this| this, |text| Ok(text.into()));
cell!(Vec<u64>, Integers, "a list of integers", |this| this, |integers| Ok(integers.to_vec()));
cell!(Vec<String>, Texts, "a list of texts", |this| this, |texts| Ok(texts.to_vec()));
cell!(Quantity, Text, "a quantity", |this| this.name(), |name| {
    Quantity::of_name(name).ok_or_else(|| format!("`{name}` is not a quantity of the monitor"))
});
named_cells!(
    Backend,
    EarlyData,
    FailureKind,
    HttpVersion,
    Phase,
    Cause,
    PlayerEventKind,
    PlayerFault,
    ServerClose,
    SubjectKind,
    TimeSource,
    TrackKind
);

fn narrow<T: TryFrom<u64>>(integer: u64) -> Result<T, String> {
    T::try_from(integer).map_err(|_| format!("{integer} is too large"))
}

/// A value of one of the model's enums by its name in files.
fn named<'de, T: Deserialize<'de>>(name: &'de str) -> Result<T, String> {
    let names: StrDeserializer<'de, NameError> = name.into_deserializer();
    T::deserialize(names).map_err(|error| error.to_string())
}
