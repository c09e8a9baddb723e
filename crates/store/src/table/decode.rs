//! Parquet to rows.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

use super::checksum::FileChecksums;
use super::value::{Column, Kind, Value};
use super::{TABLE_KEY, VERSION_KEY};
use crate::read::Damage;
use crate::schema::{Row, SCHEMA_VERSION};

/// The last bytes of a Parquet file: the footer's length and the magic word.
const TAIL_BYTES: u64 = 8;

/// One table's file, read by row numbers; one row group is held in memory.
pub(crate) struct TableFile<R: Row> {
    path: PathBuf,
    file: File,
    checksums: Option<FileChecksums>,
    parquet: SerializedFileReader<File>,
    /// The columns, each with its place in the file.
    columns: Vec<(usize, Column<R>)>,
    /// The first row of each row group, and the number of all rows.
    starts: Vec<u64>,
    loaded: Option<(usize, Vec<R>)>,
}

impl<R: Row + Clone> TableFile<R> {
    /// Opens a file and verifies its footer.
    pub(crate) fn open(path: &Path, checksums: Option<FileChecksums>) -> Result<Self, Damage> {
        let damage = |reason: String| Damage { file: path.to_owned(), run: None, reason };
        let file = File::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => damage("it is missing".to_owned()),
            _ => damage(error.to_string()),
        })?;
        if let Some(checksums) = &checksums {
            verify_footer(&file, checksums).map_err(damage)?;
        }
        let again = file.try_clone().map_err(|error| damage(error.to_string()))?;
        let parquet = SerializedFileReader::new(again).map_err(|error| damage(error.to_string()))?;
        let columns = columns_of::<R>(parquet.metadata()).map_err(damage)?;
        let mut starts = vec![0];
        for group in parquet.metadata().row_groups() {
            let rows = u64::try_from(group.num_rows()).map_err(|error| damage(error.to_string()))?;
            starts.push(starts.last().unwrap_or(&0) + rows);
        }
        Ok(TableFile { path: path.to_owned(), file, checksums, parquet, columns, starts, loaded: None })
    }

    /// How many rows there are.
    pub(crate) fn rows_total(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The rows of a range, copied.
    pub(crate) fn rows(&mut self, range: Range<u64>) -> Result<Vec<R>, Damage> {
        let mut rows = Vec::new();
        self.for_each(range, |row| {
            rows.push(row.clone());
            Ok::<(), Damage>(())
        })?;
        Ok(rows)
    }

    /// Shows every row of a range in turn; memory stays bounded by a row group.
    pub(crate) fn for_each<E: From<Damage>>(
        &mut self,
        range: Range<u64>,
        mut show: impl FnMut(&R) -> Result<(), E>,
    ) -> Result<(), E> {
        if range.end > self.rows_total() {
            let reason = format!("found {} rows, expected at least {}", self.rows_total(), range.end);
            return Err(self.damage(reason).into());
        }
        for group in 0..self.starts.len() - 1 {
            let (start, end) = (self.starts[group], self.starts[group + 1]);
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from >= to {
                continue;
            }
            let rows = self.load(group)?;
            let position = |row: u64| usize::try_from(row - start).unwrap_or(usize::MAX);
            rows.get(position(from)..position(to)).unwrap_or_default().iter().try_for_each(&mut show)?;
        }
        Ok(())
    }

    fn load(&mut self, group: usize) -> Result<&[R], Damage> {
        if self.loaded.as_ref().is_none_or(|(index, _)| *index != group) {
            self.loaded = None;
            let rows = self.decode(group).map_err(|reason| self.damage(reason))?;
            self.loaded = Some((group, rows));
        }
        Ok(self.loaded.as_ref().map_or(&[], |(_, rows)| rows.as_slice()))
    }

    fn decode(&self, group: usize) -> Result<Vec<R>, String> {
        let metadata = self.parquet.metadata().row_group(group);
        if let Some(checksums) = &self.checksums {
            let ranges =
                || metadata.columns().iter().map(parquet::file::metadata::ColumnChunkMetaData::byte_range);
            let start = ranges().map(|(start, _)| start).min().unwrap_or(0);
            let end = ranges().map(|(start, length)| start.saturating_add(length)).max().unwrap_or(0);
            checksums.verify(&self.file, start..end)?;
        }
        let count = usize::try_from(metadata.num_rows()).map_err(|error| error.to_string())?;
        let reader = self.parquet.get_row_group(group).map_err(|error| error.to_string())?;
        let mut rows: Vec<R> = std::iter::repeat_with(R::blank).take(count).collect();
        for (place, column) in &self.columns {
            fill(&*reader, *place, column, &mut rows)
                .map_err(|reason| format!("column `{}`: {reason}", column.name))?;
        }
        Ok(rows)
    }

    fn damage(&self, reason: String) -> Damage {
        Damage { file: self.path.clone(), run: None, reason }
    }
}

fn verify_footer(file: &File, checksums: &FileChecksums) -> Result<(), String> {
    use std::os::unix::fs::FileExt;

    let bytes = file.metadata().map_err(|error| error.to_string())?.len();
    let tail_start = bytes.saturating_sub(TAIL_BYTES);
    checksums.verify(file, tail_start..bytes)?;
    let mut length = [0; 4];
    file.read_exact_at(&mut length, tail_start).map_err(|error| error.to_string())?;
    let footer_bytes = u64::from(u32::from_le_bytes(length));
    checksums.verify(file, tail_start.saturating_sub(footer_bytes)..bytes)
}

fn columns_of<R: Row>(metadata: &ParquetMetaData) -> Result<Vec<(usize, Column<R>)>, String> {
    let file = metadata.file_metadata();
    let entry = |key: &str| {
        let entries = file.key_value_metadata()?;
        entries.iter().find(|entry| entry.key == key)?.value.as_deref()
    };
    let (version, table) = (entry(VERSION_KEY).unwrap_or("none"), entry(TABLE_KEY).unwrap_or("none"));
    if version != SCHEMA_VERSION.to_string() {
        return Err(format!(
            "found schema version {version}, expected {SCHEMA_VERSION}: read it with the h123 that wrote it"
        ));
    }
    if table != R::TABLE {
        return Err(format!("found the table `{table}`, expected `{}`", R::TABLE));
    }
    let place_of = |column: &Column<R>| {
        let leaves = file.schema_descr().columns();
        leaves.iter().position(|leaf| leaf.path().parts().first() == Some(&column.name))
    };
    let with_place = |column: Column<R>| match place_of(&column) {
        Some(place) => Ok((place, column)),
        None => Err(format!("found no column `{}`, expected one", column.name)),
    };
    R::columns().into_iter().map(with_place).collect()
}

fn fill<R>(
    group: &dyn RowGroupReader,
    place: usize,
    column: &Column<R>,
    rows: &mut [R],
) -> Result<(), String> {
    let reader = group.get_column_reader(place).map_err(|error| error.to_string())?;
    match (reader, column.kind) {
        (ColumnReader::Int64ColumnReader(reader), Kind::Integer | Kind::MaybeInteger) => {
            let cells = read_cells(reader, rows.len())?;
            cells.set(column, rows, |&integer| Ok(Value::Integer(unsigned(integer)?)))
        }
        (ColumnReader::Int64ColumnReader(reader), Kind::Integers) => {
            let cells = read_cells(reader, rows.len())?;
            let integers = cells.values.iter().copied().map(unsigned).collect::<Result<Vec<_>, _>>()?;
            cells.set_lists(column, rows, |range| Some(Value::Integers(integers.get(range)?)))
        }
        (ColumnReader::ByteArrayColumnReader(reader), Kind::Text | Kind::MaybeText) => {
            let cells = read_cells(reader, rows.len())?;
            cells.set(column, rows, |bytes| Ok(Value::Text(text_of(bytes)?)))
        }
        (ColumnReader::ByteArrayColumnReader(reader), Kind::Texts) => {
            let cells = read_cells(reader, rows.len())?;
            let texts = cells.values.iter().map(|bytes| text_of(bytes).map(str::to_owned));
            let texts = texts.collect::<Result<Vec<_>, _>>()?;
            cells.set_lists(column, rows, |range| Some(Value::Texts(texts.get(range)?)))
        }
        (ColumnReader::BoolColumnReader(reader), Kind::Flag) => {
            let cells = read_cells(reader, rows.len())?;
            cells.set(column, rows, |&flag| Ok(Value::Flag(flag)))
        }
        (_, kind) => Err(format!("found another type in the file, expected {kind:?}")),
    }
}

/// A column's values with their levels; columns that need no levels have none.
struct Cells<T> {
    values: Vec<T>,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
}

fn read_cells<T: DataType>(mut reader: ColumnReaderImpl<T>, count: usize) -> Result<Cells<T::T>, String> {
    let mut cells = Cells { values: Vec::new(), definitions: Vec::new(), repetitions: Vec::new() };
    let (records, _, _) = reader
        .read_records(count, Some(&mut cells.definitions), Some(&mut cells.repetitions), &mut cells.values)
        .map_err(|error| error.to_string())?;
    if records != count {
        return Err(format!("found {records} rows, expected {count}"));
    }
    Ok(cells)
}

impl<T> Cells<T> {
    fn set<'a, R>(
        &'a self,
        column: &Column<R>,
        rows: &mut [R],
        value_of: impl Fn(&'a T) -> Result<Value<'a>, String>,
    ) -> Result<(), String> {
        let mut values = self.values.iter();
        for (index, row) in rows.iter_mut().enumerate() {
            let value = match self.definitions.get(index) {
                Some(0) => Value::Null,
                _ => value_of(values.next().ok_or("found fewer values than rows")?)?,
            };
            (column.set)(row, value)?;
        }
        Ok(())
    }

    fn set_lists<'a, R>(
        &self,
        column: &Column<R>,
        rows: &mut [R],
        value_of: impl Fn(Range<usize>) -> Option<Value<'a>>,
    ) -> Result<(), String> {
        let (mut level, mut value) = (0, 0);
        for row in rows {
            let first = value;
            loop {
                value += usize::from(self.definitions.get(level) == Some(&1));
                level += 1;
                if self.repetitions.get(level) != Some(&1) {
                    break;
                }
            }
            (column.set)(row, value_of(first..value).ok_or("found fewer values than rows")?)?;
        }
        Ok(())
    }
}

fn unsigned(integer: i64) -> Result<u64, String> {
    u64::try_from(integer).map_err(|_| format!("found {integer}, expected 0 or more"))
}

fn text_of(bytes: &ByteArray) -> Result<&str, String> {
    bytes.as_utf8().map_err(|error| error.to_string())
}
