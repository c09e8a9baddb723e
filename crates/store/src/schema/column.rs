//! How columns are declared: the macros that [`super::tables`] consists of.

use super::{Column, Row, SetCell};
use crate::cell::{Cell, Value};

/// A list of columns: `name [field] "meaning";`, with a prefix for all names. A field is one of:
///
/// - `[sent_ns]`, `[lag.p50_ns]`: a field whose type is a [`Cell`].
/// - `[warmup? ended_ns]`: a field of an optional struct. The cells of an absent struct are null, false or
///   empty.
/// - `[sample.response_body_bytes if has_body_bytes]`: null where the flag is false.
/// - `[path; write only]`: a field that readers do not set.
/// - `[Text: get, set]`, `[Text or null: get, set]`: a value that two functions convert.
macro_rules! columns {
    ($prefix:literal $($name:ident [$($field:tt)+] $meaning:literal;)+) => {
        vec![$(column!(concat!($prefix, stringify!($name)), $meaning, $($field)+)),+]
    };
}
pub(super) use columns;

/// One column, as `columns!` describes it.
macro_rules! column {
    ($name:expr, $meaning:expr, $kind:ident: $get:expr, $set:expr) => {
        Column { name: $name, meaning: $meaning, kind: Kind::$kind, is_nullable: false, get: $get, set: Some($set) }
    };
    ($name:expr, $meaning:expr, $kind:ident or null: $get:expr, $set:expr) => {
        Column { is_nullable: true, ..column!($name, $meaning, $kind: $get, $set) }
    };
    ($name:expr, $meaning:expr, $($field:ident).+; write only) => {
        Column { set: None, ..column!($name, $meaning, $($field).+) }
    };
    ($name:expr, $meaning:expr, $($field:ident).+ if $flag:ident) => {
        Column {
            is_nullable: true,
            get: |row| if row.item.$flag { row.item.$($field).+.value() } else { Value::Null },
            set: Some(|row, value| {
                row.item.$flag = !matches!(value, Value::Null);
                if row.item.$flag {
                    row.item.$($field).+ = Cell::read(value)?;
                }
                Ok(())
            }),
            ..column!($name, $meaning, $($field).+)
        }
    };
    ($name:expr, $meaning:expr, $($part:ident).+ ? $($field:ident).+) => {
        $crate::schema::column::part_column(
            $name,
            $meaning,
            |row: &Row<Self>| row.item.$($part).+.as_ref().map(|part| &part.$($field).+),
            |row| $crate::schema::column::value_of(row.item.$($part).+.as_ref().map(|part| &part.$($field).+)),
            |row, value| {
                let part = &mut row.item.$($part).+;
                if part.is_some() || !value.is_absent() {
                    part.get_or_insert_default().$($field).+ = Cell::read(value)?;
                }
                Ok(())
            },
        )
    };
    ($name:expr, $meaning:expr, $($field:ident).+) => {
        $crate::schema::column::field_column(
            $name,
            $meaning,
            |row: &Row<Self>| &row.item.$($field).+,
            |row| row.item.$($field).+.value(),
            |row, value| {
                row.item.$($field).+ = Cell::read(value)?;
                Ok(())
            },
        )
    };
}
pub(super) use column;

/// The columns of several lists.
pub(super) fn join<T, const N: usize>(parts: [Vec<Column<T>>; N]) -> Vec<Column<T>> {
    parts.into_iter().flatten().collect()
}

/// A column that is a field of the row; `_field` only tells the field's type.
pub(super) fn field_column<T, C: Cell>(
    name: &'static str,
    meaning: &'static str,
    _field: fn(&Row<T>) -> &C,
    get: fn(&Row<T>) -> Value<'_>,
    set: SetCell<T>,
) -> Column<T> {
    Column { name, meaning, kind: C::KIND, is_nullable: C::IS_NULLABLE, get, set: Some(set) }
}

/// A column that is a field of an optional part of the row; `_field` only tells the field's type.
pub(super) fn part_column<T, C: Cell>(
    name: &'static str,
    meaning: &'static str,
    _field: fn(&Row<T>) -> Option<&C>,
    get: fn(&Row<T>) -> Value<'_>,
    set: SetCell<T>,
) -> Column<T> {
    let is_nullable = matches!(C::KIND.absent(), Value::Null);
    Column { name, meaning, kind: C::KIND, is_nullable, get, set: Some(set) }
}

/// The value of a cell of an optional part of the row.
pub(super) fn value_of<C: Cell>(cell: Option<&C>) -> Value<'_> {
    cell.map_or(C::KIND.absent(), C::value)
}
