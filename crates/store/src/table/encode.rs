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

use super::value::{Column, Kind, Value};
use super::{COLUMN_KEY, MEANING_KEY, ROW_GROUP_ROWS, TABLE_KEY, VERSION_KEY, parquet_schema};
use crate::schema::{Row, SCHEMA_VERSION};

/// Writes one table; rows wait in memory until a row group is full.
pub(crate) struct TableWriter<R: Row> {
    path: PathBuf,
    columns: Vec<Column<R>>,
    file: SerializedFileWriter<File>,
    rows: Vec<R>,
}

impl<R: Row> TableWriter<R> {
    /// Begins a file that must not exist.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let columns = R::columns();
        let context = || format!("cannot begin {}", path.display());
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
    pub(crate) fn push(&mut self, row: R) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() >= ROW_GROUP_ROWS { self.write_row_group() } else { Ok(()) }
    }

    /// Writes what is left and the footer, and waits until the disk has it all.
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

fn footer<R: Row>(columns: &[Column<R>]) -> Vec<KeyValue> {
    let entry = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    let mut entries = vec![
        entry(VERSION_KEY, SCHEMA_VERSION.to_string()),
        entry(TABLE_KEY, R::TABLE.to_owned()),
        entry(MEANING_KEY, R::MEANING.to_owned()),
    ];
    entries.extend(columns.iter().map(|column| {
        let unit = if column.unit.is_empty() { String::new() } else { format!(" [{}]", column.unit) };
        entry(&format!("{COLUMN_KEY}{}", column.name), format!("{}{unit}", column.meaning))
    }));
    entries
}

fn write_column<R>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    column: &Column<R>,
    rows: &[R],
) -> Result<()> {
    match column.kind {
        Kind::Integer | Kind::MaybeInteger | Kind::Integers => {
            write_values::<Int64Type, R>(group, column, rows, |value, values| match value {
                Value::Integer(integer) => push_integer(values, integer),
                Value::Integers(integers) => {
                    integers.iter().try_for_each(|&integer| push_integer(values, integer))
                }
                other => Err(anyhow!("found {other:?}, expected an integer")),
            })
        }
        Kind::Text | Kind::MaybeText | Kind::Texts => {
            write_values::<ByteArrayType, R>(group, column, rows, |value, values| {
                match value {
                    Value::Text(text) => push_text(values, text),
                    Value::Texts(texts) => texts.iter().for_each(|text| push_text(values, text)),
                    other => return Err(anyhow!("found {other:?}, expected a text")),
                }
                Ok(())
            })
        }
        Kind::Flag => write_values::<BoolType, R>(group, column, rows, |value, values| {
            let Value::Flag(flag) = value else {
                return Err(anyhow!("found {value:?}, expected true or false"));
            };
            values.push(flag);
            Ok(())
        }),
    }
}

fn write_values<T: DataType, R>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    column: &Column<R>,
    rows: &[R],
    push: impl Fn(Value<'_>, &mut Vec<T::T>) -> Result<()>,
) -> Result<()> {
    let mut values = Vec::with_capacity(rows.len());
    let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
    for row in rows {
        let value = (column.get)(row);
        levels(column.kind, value, &mut definitions, &mut repetitions);
        if !matches!(value, Value::Null) {
            push(value, &mut values)?;
        } else if !matches!(column.kind, Kind::MaybeInteger | Kind::MaybeText) {
            return Err(anyhow!("found null, expected a value"));
        }
    }
    let mut writer = group.next_column()?.context("the schema has fewer columns than the table")?;
    let levels = |levels: &Vec<i16>| (!levels.is_empty()).then(|| levels.clone());
    writer.typed::<T>().write_batch(
        &values,
        levels(&definitions).as_deref(),
        levels(&repetitions).as_deref(),
    )?;
    writer.close()?;
    Ok(())
}

/// Appends the definition and repetition levels of one cell (Parquet format, "Nested Encoding").
fn levels(kind: Kind, value: Value<'_>, definitions: &mut Vec<i16>, repetitions: &mut Vec<i16>) {
    let count = match (kind, value) {
        (Kind::MaybeInteger | Kind::MaybeText, value) => {
            definitions.push(i16::from(!matches!(value, Value::Null)));
            return;
        }
        (_, Value::Integers(list)) => list.len(),
        (_, Value::Texts(list)) => list.len(),
        _ => return,
    };
    for position in 0..count.max(1) {
        definitions.push(i16::from(count > 0));
        repetitions.push(i16::from(position > 0));
    }
}

fn push_integer(values: &mut Vec<i64>, integer: u64) -> Result<()> {
    let signed = i64::try_from(integer)
        .map_err(|_| anyhow!("found {integer}, expected at most {} (a signed 64-bit integer)", i64::MAX))?;
    values.push(signed);
    Ok(())
}

/// Neighbours are often alike: they share one buffer.
fn push_text(values: &mut Vec<ByteArray>, text: &str) {
    let same = values.last().filter(|last| last.data() == text.as_bytes()).cloned();
    values.push(same.unwrap_or_else(|| ByteArray::from(text)));
}
