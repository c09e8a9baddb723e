//! Rows to Parquet.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use super::{COLUMN_KEY, MEANING_KEY, ROW_GROUP_ROWS, TABLE_KEY, VERSION_KEY, parquet_schema};
use crate::cell::{Kind, Value};
use crate::schema::{self, Column, Row, SCHEMA_VERSION, Table};

/// Writes one table; rows wait in memory until a row group is full.
pub(crate) struct TableWriter<T> {
    path: PathBuf,
    columns: Vec<Column<T>>,
    file: SerializedFileWriter<File>,
    rows: Vec<Row<T>>,
}

impl<T: Table> TableWriter<T> {
    /// Creates the file, which must not exist.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let columns = schema::columns::<T>();
        let context = || format!("cannot create {}", path.display());
        let file = File::create_new(path).with_context(context)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(concat!("h123 ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(footer(&columns)))
            .build();
        let schema = parquet_schema(&columns).with_context(context)?;
        let file = SerializedFileWriter::new(file, schema, Arc::new(properties)).with_context(context)?;
        Ok(TableWriter { path: path.to_owned(), columns, file, rows: Vec::new() })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: Row<T>) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() >= ROW_GROUP_ROWS { self.write_row_group() } else { Ok(()) }
    }

    /// Writes the remaining rows and the footer, and waits until all of it is on the disk.
    pub(crate) fn finish(mut self) -> Result<()> {
        if !self.rows.is_empty() {
            self.write_row_group()?;
        }
        let context = || format!("cannot finish {}", self.path.display());
        let file = self.file.into_inner().with_context(context)?;
        file.sync_all().with_context(context)
    }

    fn write_row_group(&mut self) -> Result<()> {
        let context = || format!("cannot write to {}", self.path.display());
        let mut group = self.file.next_row_group().with_context(context)?;
        for column in &self.columns {
            write_column(&mut group, column, &self.rows).with_context(|| {
                format!("cannot write column `{}` of {}", column.name, self.path.display())
            })?;
        }
        group.close().with_context(context)?;
        self.rows.clear();
        Ok(())
    }
}

fn footer<T: Table>(columns: &[Column<T>]) -> Vec<KeyValue> {
    let entry = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    let mut entries = vec![
        entry(VERSION_KEY, SCHEMA_VERSION.to_string()),
        entry(TABLE_KEY, T::NAME.to_owned()),
        entry(MEANING_KEY, T::MEANING.to_owned()),
    ];
    entries.extend(columns.iter().map(|column| {
        let unit = if column.unit().is_empty() { String::new() } else { format!(" [{}]", column.unit()) };
        entry(&format!("{COLUMN_KEY}{}", column.name), format!("{}{unit}", column.meaning))
    }));
    entries
}

fn write_column<T>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    column: &Column<T>,
    rows: &[Row<T>],
) -> Result<()> {
    match column.kind {
        Kind::Integer | Kind::Integers => {
            write_values::<Int64Type, T>(group, column, rows, |value, values| match value {
                Value::Integer(integer) => push_integer(values, integer),
                Value::Integers(integers) => {
                    integers.iter().try_for_each(|&integer| push_integer(values, integer))
                }
                other => Err(anyhow!("{other:?} is not an integer")),
            })
        }
        Kind::Text | Kind::Texts => write_values::<ByteArrayType, T>(group, column, rows, |value, values| {
            match value {
                Value::Text(text) => push_text(values, text),
                Value::Texts(texts) => texts.iter().for_each(|text| push_text(values, text)),
                other => return Err(anyhow!("{other:?} is not a text")),
            }
            Ok(())
        }),
        Kind::Flag => write_values::<BoolType, T>(group, column, rows, |value, values| {
            let Value::Flag(flag) = value else {
                return Err(anyhow!("{value:?} is not `true` or `false`"));
            };
            values.push(flag);
            Ok(())
        }),
    }
}

fn write_values<D: DataType, T>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    column: &Column<T>,
    rows: &[Row<T>],
    push: impl Fn(Value<'_>, &mut Vec<D::T>) -> Result<()>,
) -> Result<()> {
    let mut values = Vec::with_capacity(rows.len());
    let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
    for row in rows {
        let value = (column.get)(row);
        push_levels(column.is_nullable, value, &mut definitions, &mut repetitions);
        if !matches!(value, Value::Null) {
            push(value, &mut values)?;
        } else if !column.is_nullable {
            return Err(anyhow!("a value is missing"));
        }
    }
    let mut writer = group.next_column()?.context("the schema has fewer columns than the table")?;
    let levels = |levels| Some(levels).filter(|levels: &&[i16]| !levels.is_empty());
    writer.typed::<D>().write_batch(&values, levels(&definitions), levels(&repetitions))?;
    writer.close()?;
    Ok(())
}

/// Appends the definition and repetition levels of one cell (Parquet format, "Nested Encoding").
fn push_levels(is_nullable: bool, value: Value<'_>, definitions: &mut Vec<i16>, repetitions: &mut Vec<i16>) {
    let count = match value {
        Value::Integers(list) => list.len(),
        Value::Texts(list) => list.len(),
        value if is_nullable => return definitions.push(i16::from(!matches!(value, Value::Null))),
        _ => return,
    };
    for position in 0..count.max(1) {
        definitions.push(i16::from(count > 0));
        repetitions.push(i16::from(position > 0));
    }
}

fn push_integer(values: &mut Vec<i64>, integer: u64) -> Result<()> {
    let signed = i64::try_from(integer)
        .map_err(|_| anyhow!("{integer} exceeds {}, the largest integer of the samples", i64::MAX))?;
    values.push(signed);
    Ok(())
}

/// Adjacent rows often have equal texts: these share one buffer.
fn push_text(values: &mut Vec<ByteArray>, text: &str) {
    let same = values.last().filter(|last| last.data() == text.as_bytes()).cloned();
    values.push(same.unwrap_or_else(|| ByteArray::from(text)));
}
