//! Parquet to rows.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::ColumnDescPtr;

use super::checksum::FileChecksums;
use super::{Damage, TABLE_KEY, VERSION_KEY};
use crate::cell::{Kind, Value};
use crate::schema::{self, Column, Row, SCHEMA_VERSION, SetCell, Table};

/// The last bytes of a Parquet file: the footer's length and the magic number.
const TAIL_BYTES: u64 = 8;

/// The file of a table, read by row numbers; one row group is held in memory.
pub(crate) struct TableFile<T> {
    path: PathBuf,
    file: File,
    checksums: Option<FileChecksums>,
    parquet: SerializedFileReader<File>,
    /// The columns, each with its index in the file.
    columns: Vec<(usize, Column<T>)>,
    /// The number of the first row of each row group; at the end, the number of all rows.
    starts: Vec<u64>,
    loaded: Option<(usize, Vec<Row<T>>)>,
}

impl<T: Table> TableFile<T> {
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
        let columns = columns_of::<T>(parquet.metadata()).map_err(damage)?;
        let mut starts = vec![0];
        for group in parquet.metadata().row_groups() {
            let rows = u64::try_from(group.num_rows()).map_err(|error| damage(error.to_string()))?;
            starts.push(starts.last().unwrap_or(&0) + rows);
        }
        Ok(TableFile { path: path.to_owned(), file, checksums, parquet, columns, starts, loaded: None })
    }

    /// The number of rows.
    pub(crate) fn rows_total(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Checks that the file has the rows of a range.
    pub(crate) fn check_count(&self, range: &Range<u64>) -> Result<(), Damage> {
        let found = self.rows_total();
        if found >= range.end {
            return Ok(());
        }
        Err(self.damage(format!("it has {found} rows instead of at least {}", range.end)))
    }

    /// Calls `show` with each row of a range.
    pub(crate) fn for_each<E: From<Damage>>(
        &mut self,
        range: Range<u64>,
        mut show: impl FnMut(&Row<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check_count(&range)?;
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

    fn load(&mut self, group: usize) -> Result<&[Row<T>], Damage> {
        if self.loaded.as_ref().is_none_or(|(index, _)| *index != group) {
            self.loaded = None;
            let rows = self.decode(group).map_err(|reason| self.damage(reason))?;
            self.loaded = Some((group, rows));
        }
        Ok(self.loaded.as_ref().map_or(&[], |(_, rows)| rows.as_slice()))
    }

    fn decode(&self, group: usize) -> Result<Vec<Row<T>>, String> {
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
        let mut rows = vec![Row::default(); count];
        for (index, column) in &self.columns {
            let Some(set) = column.set else { continue };
            fill(&*reader, *index, column.kind, set, &mut rows)
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

fn columns_of<T: Table>(metadata: &ParquetMetaData) -> Result<Vec<(usize, Column<T>)>, String> {
    let file = metadata.file_metadata();
    let entry = |key: &str| {
        let entries = file.key_value_metadata()?;
        entries.iter().find(|entry| entry.key == key)?.value.as_deref()
    };
    let (version, table) = (entry(VERSION_KEY).unwrap_or("none"), entry(TABLE_KEY).unwrap_or("none"));
    if version != SCHEMA_VERSION.to_string() {
        return Err(format!(
            "the samples have version {version}, this h123 reads version {SCHEMA_VERSION}; use the h123 that wrote them"
        ));
    }
    if table != T::NAME {
        return Err(format!("it contains the table `{table}` instead of `{}`", T::NAME));
    }
    let leaves = file.schema_descr().columns();
    let with_index = |column: Column<T>| {
        let is_same =
            |leaf: &ColumnDescPtr| leaf.path().parts().first().is_some_and(|name| name == column.name);
        let index = leaves.iter().position(is_same);
        Ok((index.ok_or_else(|| format!("column `{}` is missing", column.name))?, column))
    };
    schema::columns().into_iter().map(with_index).collect()
}

fn fill<T>(
    group: &dyn RowGroupReader,
    index: usize,
    kind: Kind,
    set: SetCell<T>,
    rows: &mut [Row<T>],
) -> Result<(), String> {
    let reader = group.get_column_reader(index).map_err(|error| error.to_string())?;
    match (reader, kind) {
        (ColumnReader::Int64ColumnReader(reader), Kind::Integer) => {
            let cells = read_cells(reader, rows.len())?;
            cells.set(set, rows, |&integer| Ok(Value::Integer(unsigned(integer)?)))
        }
        (ColumnReader::Int64ColumnReader(reader), Kind::Integers) => {
            let cells = read_cells(reader, rows.len())?;
            let integers = cells.values.iter().copied().map(unsigned).collect::<Result<Vec<_>, _>>()?;
            cells.set_lists(set, rows, |range| Some(Value::Integers(integers.get(range)?)))
        }
        (ColumnReader::ByteArrayColumnReader(reader), Kind::Text) => {
            let cells = read_cells(reader, rows.len())?;
            cells.set(set, rows, |bytes| Ok(Value::Text(text_of(bytes)?)))
        }
        (ColumnReader::ByteArrayColumnReader(reader), Kind::Texts) => {
            let cells = read_cells(reader, rows.len())?;
            let texts = cells.values.iter().map(|bytes| text_of(bytes).map(str::to_owned));
            let texts = texts.collect::<Result<Vec<_>, _>>()?;
            cells.set_lists(set, rows, |range| Some(Value::Texts(texts.get(range)?)))
        }
        (ColumnReader::BoolColumnReader(reader), Kind::Flag) => {
            let cells = read_cells(reader, rows.len())?;
            cells.set(set, rows, |&flag| Ok(Value::Flag(flag)))
        }
        (_, kind) => Err(format!("its type is not {kind:?}")),
    }
}

/// A column's values with their levels; a column without nulls and lists has no levels.
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
        return Err(format!("it has {records} rows instead of {count}"));
    }
    Ok(cells)
}

impl<T> Cells<T> {
    fn set<'a, R>(
        &'a self,
        set: SetCell<R>,
        rows: &mut [Row<R>],
        value_of: impl Fn(&'a T) -> Result<Value<'a>, String>,
    ) -> Result<(), String> {
        let mut values = self.values.iter();
        for (index, row) in rows.iter_mut().enumerate() {
            let value = match self.definitions.get(index) {
                Some(0) => Value::Null,
                _ => value_of(values.next().ok_or("it has fewer values than rows")?)?,
            };
            set(row, value)?;
        }
        Ok(())
    }

    fn set_lists<'a, R>(
        &self,
        set: SetCell<R>,
        rows: &mut [Row<R>],
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
            set(row, value_of(first..value).ok_or("it has fewer values than rows")?)?;
        }
        Ok(())
    }
}

fn unsigned(integer: i64) -> Result<u64, String> {
    u64::try_from(integer).map_err(|_| format!("{integer} is negative"))
}

fn text_of(bytes: &ByteArray) -> Result<&str, String> {
    bytes.as_utf8().map_err(|error| error.to_string())
}
