//! The tables of a result. Each column is described once, in [`tables`]: its name, its meaning and its field.
//! The type of the field gives the column's type; the end of the name gives its unit.

mod column;
mod conversions;
mod tables;

use std::sync::Arc;

use model::CachedContent;
use model::sample::{Outcome, Sample};

use crate::cell::{Cell, Kind, Value};
pub(crate) use tables::for_each_table;

/// The version of the tables, in each file's footer as `h123.schema_version`; a reader refuses all others.
pub const SCHEMA_VERSION: u32 = 10;

/// A description of a table, for documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// The table's name: its file is `NAME.parquet`.
    pub name: &'static str,
    /// What one row is.
    pub meaning: &'static str,
    /// Its columns, in the order of the file.
    pub columns: Vec<ColumnInfo>,
}

/// A description of a column, for documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    /// The column's name.
    pub name: &'static str,
    /// The type of its cells, such as `integer or null`.
    pub kind: &'static str,
    /// `ns`, `B`, `bit/s`, `1` for counts and numbers; empty for other types.
    pub unit: &'static str,
    /// What the column means.
    pub meaning: &'static str,
}

/// Every table of a result with its columns.
pub fn tables() -> Vec<TableInfo> {
    fn info<T: Table>() -> TableInfo {
        TableInfo {
            name: T::NAME,
            meaning: T::MEANING,
            columns: columns::<T>().iter().map(Column::info).collect(),
        }
    }
    macro_rules! infos {
        ($($name:ident: $item:ty = $field:ident,)+) => { vec![info::<RunSummary>(), $(info::<$item>()),+] };
    }
    for_each_table!(infos)
}

/// What a row of a table holds besides the numbers of its run and cell.
pub(crate) trait Table: Clone + Default {
    /// The table's name and the stem of its file.
    const NAME: &'static str;
    /// What one row is.
    const MEANING: &'static str;

    /// The client group that the row is about; 0 if it is about the whole run.
    fn group(&self) -> u16 {
        0
    }

    /// Every column but `run` and `cell`, in the order of the file.
    fn columns() -> Vec<Column<Self>>;
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row<T> {
    pub(crate) run: u32,
    /// The cell of the row's client group; the run's first one if the row is about the whole run.
    pub(crate) cell: u32,
    pub(crate) item: T,
}

/// A column of a table.
pub(crate) struct Column<T> {
    /// Its name; the unit is the last part of it.
    pub(crate) name: &'static str,
    /// One line for people.
    pub(crate) meaning: &'static str,
    pub(crate) kind: Kind,
    pub(crate) is_nullable: bool,
    pub(crate) get: fn(&Row<T>) -> Value<'_>,
    /// Sets the field in a default row; columns are set in the order of the table. `None`: the reader skips
    /// the column.
    pub(crate) set: Option<SetCell<T>>,
}

/// Sets a field of a row from its cell.
pub(crate) type SetCell<T> = fn(&mut Row<T>, Value<'_>) -> Result<(), String>;

/// Every column of a table, in the order of the file.
pub(crate) fn columns<T: Table>() -> Vec<Column<T>> {
    let number = |name, meaning, get, set| Column {
        name,
        meaning,
        kind: Kind::Integer,
        is_nullable: false,
        get,
        set: Some(set),
    };
    let run: SetCell<T> = |row, value| u32::read(value).map(|run| row.run = run);
    let cell: SetCell<T> = |row, value| u32::read(value).map(|cell| row.cell = cell);
    let mut columns = vec![
        number("run", "number of the run in the plan", |row: &Row<T>| row.run.value(), run),
        number("cell", "number of the run's cell in the plan", |row: &Row<T>| row.cell.value(), cell),
    ];
    columns.extend(T::columns());
    columns
}

impl<T> Column<T> {
    /// The unit, by the end of the name.
    pub(crate) fn unit(&self) -> &'static str {
        match self.name.rsplit('_').next() {
            _ if !matches!(self.kind, Kind::Integer | Kind::Integers) => "",
            Some("ns") => "ns",
            Some("bytes") => "B",
            _ if self.name.ends_with("_bits_per_s") => "bit/s",
            _ => "1",
        }
    }

    fn info(&self) -> ColumnInfo {
        let kind = match (self.kind, self.is_nullable) {
            (Kind::Integer, false) => "integer",
            (Kind::Integer, true) => "integer or null",
            (Kind::Text, false) => "text",
            (Kind::Text, true) => "text or null",
            (Kind::Flag, false) => "boolean",
            (Kind::Flag, true) => "boolean or null",
            (Kind::Integers, _) => "list of integers",
            (Kind::Texts, _) => "list of texts",
        };
        ColumnInfo { name: self.name, kind, unit: self.unit(), meaning: self.meaning }
    }
}

/// One value for each table except `runs`.
macro_rules! per_table {
    ($($name:ident: $item:ty = $field:ident,)+) => {
        /// One value for each table except `runs`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct PerTable<T> {
            $(pub(crate) $name: T,)+
        }

        impl PerTable<u64> {
            /// The number of rows that a run has in each table.
            pub(crate) fn of_record(record: &model::RunRecord) -> Self {
                PerTable { $($name: record.$field.len() as u64,)+ }
            }

            /// The rows of the next run, which has `counts` rows; `self` is the first row and moves on.
            pub(crate) fn advance(&mut self, counts: &Self) -> PerTable<std::ops::Range<u64>> {
                let first = *self;
                $(self.$name = first.$name.saturating_add(counts.$name);)+
                PerTable { $($name: first.$name..self.$name,)+ }
            }
        }
    };
}
for_each_table!(per_table);

/// What the table `runs` holds of a run; the counts are its numbers of rows in the other tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RunSummary {
    pub(crate) block: u32,
    pub(crate) began_unix_ns: u64,
    pub(crate) took_ns: u64,
    pub(crate) content: Option<CachedContent>,
    pub(crate) outcome: Outcome,
    pub(crate) counts: PerTable<u64>,
}

/// One request of a run. External clients may report no bytes; the cells are null then, not 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Request {
    pub(crate) path: Option<Arc<str>>,
    pub(crate) has_header_bytes: bool,
    pub(crate) has_body_bytes: bool,
    pub(crate) sample: Sample,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_one_name_and_a_meaning() {
        for table in tables() {
            assert!(!table.meaning.is_empty(), "{} has no meaning", table.name);
            let names: std::collections::BTreeSet<_> =
                table.columns.iter().map(|column| column.name).collect();
            assert_eq!(names.len(), table.columns.len(), "a name of {} is not unique", table.name);
            for column in &table.columns {
                assert!(!column.meaning.is_empty(), "{}.{} has no meaning", table.name, column.name);
            }
        }
    }
}
