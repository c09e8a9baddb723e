//! Tables as Parquet files. They are written and read one row group at a time, which bounds memory.

pub(crate) mod checksum;
mod decode;
mod encode;

use std::path::PathBuf;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

pub(crate) use decode::TableFile;
pub(crate) use encode::TableWriter;

use crate::cell::Kind;
use crate::schema::{Column, Table};

/// The number of rows of a row group; as many are held in memory.
pub(crate) const ROW_GROUP_ROWS: usize = 65_536;

/// The footer's key for the schema's version.
const VERSION_KEY: &str = "h123.schema_version";
/// The footer's key for the table's name.
const TABLE_KEY: &str = "h123.table";
/// The footer's key for the meaning of a row.
const MEANING_KEY: &str = "h123.rows";
/// The footer's key for a column's meaning and unit; the column's name follows.
const COLUMN_KEY: &str = "h123.column.";

/// A damaged or missing file of a result's samples. All other files stay readable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is damaged{}: {reason}", file.display(), run.map_or(String::new(), |run| format!(" (run {run})")))]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The run that is lost with it, where that is known.
    pub run: Option<u32>,
    /// What is wrong.
    pub reason: String,
}

impl Damage {
    pub(crate) fn of_run(self, run: u32) -> Self {
        Damage { run: Some(run), ..self }
    }
}

/// The Parquet schema of a table.
fn parquet_schema<T: Table>(columns: &[Column<T>]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder(T::NAME).with_fields(fields).build()?))
}

fn field<T>(column: &Column<T>) -> Result<TypePtr, ParquetError> {
    let name = column.name;
    let repetition = if column.is_nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let leaf = match column.kind {
        Kind::Integer => primitive(name, PhysicalType::INT64, repetition),
        Kind::Text => primitive(name, PhysicalType::BYTE_ARRAY, repetition),
        Kind::Flag => primitive(name, PhysicalType::BOOLEAN, repetition),
        Kind::Integers => list(name, PhysicalType::INT64),
        Kind::Texts => list(name, PhysicalType::BYTE_ARRAY),
    }?;
    Ok(Arc::new(leaf))
}

fn primitive(name: &str, physical: PhysicalType, repetition: Repetition) -> Result<Type, ParquetError> {
    let logical = (physical == PhysicalType::BYTE_ARRAY).then_some(LogicalType::String);
    Type::primitive_type_builder(name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()
}

/// The three levels of a list that the Parquet format prescribes (LogicalTypes.md, "Lists").
fn list(name: &str, physical: PhysicalType) -> Result<Type, ParquetError> {
    let element = primitive("element", physical, Repetition::REQUIRED)?;
    let repeated = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(element)])
        .build()?;
    Type::group_type_builder(name)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(repeated)])
        .build()
}
