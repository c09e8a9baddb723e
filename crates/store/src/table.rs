//! Tables as Parquet files: written and read one row group at a time, so memory stays bounded.

pub(crate) mod checksum;
mod decode;
mod encode;
pub(crate) mod value;

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

pub(crate) use decode::TableFile;
pub(crate) use encode::TableWriter;
use value::{Column, Kind};

use crate::schema::Row;

/// Rows that are held in memory at once, and rows of a row group.
pub(crate) const ROW_GROUP_ROWS: usize = 65_536;

/// The footer's key of the schema's version.
const VERSION_KEY: &str = "h123.schema_version";
/// The footer's key of the table's name.
const TABLE_KEY: &str = "h123.table";
/// The footer's key of what a row is.
const MEANING_KEY: &str = "h123.rows";
/// The footer's key, with the column's name appended, of a column's unit and meaning.
const COLUMN_KEY: &str = "h123.column.";

/// The Parquet schema of a table.
fn parquet_schema<R: Row>(columns: &[Column<R>]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder(R::TABLE).with_fields(fields).build()?))
}

fn field<R>(column: &Column<R>) -> Result<TypePtr, ParquetError> {
    let (name, required, optional) = (&*column.name, Repetition::REQUIRED, Repetition::OPTIONAL);
    let leaf = match column.kind {
        Kind::Integer => primitive(name, PhysicalType::INT64, required),
        Kind::MaybeInteger => primitive(name, PhysicalType::INT64, optional),
        Kind::Text => primitive(name, PhysicalType::BYTE_ARRAY, required),
        Kind::MaybeText => primitive(name, PhysicalType::BYTE_ARRAY, optional),
        Kind::Flag => primitive(name, PhysicalType::BOOLEAN, required),
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

/// The three levels that the format's specification asks of a list (LogicalTypes.md, "Lists").
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
