//! Requests as a table of their own, outside of any result, written while they come.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use model::Sample;
use model::assignment::ClientReport;

use crate::schema::{NotReported, RequestRow};
use crate::table::TableWriter;

/// A table of requests that grows: the columns are those of a result's `requests.parquet`, run and cell are 0.
///
/// It grows beside its place, under its name with the process's number and `.partial` behind it, and is moved there when
/// it is whole. Dropped before, it is removed: there is a readable file or none. One row group is held in memory.
pub struct RequestsFile {
    path: PathBuf,
    growing: Growing,
    table: TableWriter<RequestRow>,
    paths: Paths,
    rows: u64,
}

impl RequestsFile {
    /// Begins the file.
    ///
    /// # Errors
    /// The file exists, or cannot be made.
    pub fn create(path: &Path) -> Result<Self> {
        if path.symlink_metadata().is_ok() {
            bail!("the file exists, expected a new one");
        }
        let mut name = path.file_name().context("found a path without a file's name")?.to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let growing = path.with_file_name(name);
        let table = TableWriter::create(&growing)?;
        Ok(RequestsFile {
            path: path.to_owned(),
            growing: Growing(growing),
            table,
            paths: Paths::default(),
            rows: 0,
        })
    }

    /// Says which URLs the rows of a group count; to be said before its first row.
    pub fn urls(&mut self, group: u16, urls: &[String]) {
        self.paths.set(group, urls);
    }

    /// Adds a row.
    ///
    /// # Errors
    /// A number does not fit, or the disk refuses; then nothing more can be added.
    pub fn push(&mut self, sample: Sample) -> Result<()> {
        self.rows += 1;
        let (path, not_reported) = (self.paths.of(&sample), NotReported::default());
        self.table.push(RequestRow { run: 0, cell: 0, path, not_reported, sample })
    }

    /// Completes the file, waits until the disk has it, and moves it to its place; how many rows it has.
    ///
    /// # Errors
    /// The disk refuses, or the file exists by now.
    pub fn finish(self) -> Result<u64> {
        self.table.finish()?;
        if self.path.symlink_metadata().is_ok() {
            bail!(
                "found {}, expected no such file; it was not there when the test began",
                self.path.display()
            );
        }
        fs::rename(&self.growing.0, &self.path).with_context(|| {
            format!("cannot move {} to {}", self.growing.0.display(), self.path.display())
        })?;
        Ok(self.rows)
    }
}

/// A file that is removed unless it was moved away.
struct Growing(PathBuf);

impl Drop for Growing {
    fn drop(&mut self) {
        // It is gone already where all went well.
        let _ = fs::remove_file(&self.0);
    }
}

/// What client groups say of their rows: the URLs, shared by the rows that name them, and what rows lack.
#[derive(Default)]
pub(crate) struct Paths(Vec<Group>);

#[derive(Clone, Default)]
struct Group {
    urls: Vec<Arc<str>>,
    not_reported: NotReported,
}

impl Paths {
    /// The reports of the groups, in their order.
    pub(crate) fn new(clients: &[ClientReport]) -> Self {
        let mut paths = Paths::default();
        for (group, client) in (0..).zip(clients) {
            paths.set(group, &client.urls);
            if let (Some(external), Some(known)) = (&client.external, paths.0.get_mut(usize::from(group))) {
                known.not_reported = NotReported { headers: true, body: !external.has_row_bytes };
            }
        }
        paths
    }

    fn set(&mut self, group: u16, urls: &[String]) {
        let group = usize::from(group);
        if self.0.len() <= group {
            self.0.resize(group + 1, Group::default());
        }
        self.0[group].urls = urls.iter().map(|url| Arc::from(&**url)).collect();
    }

    pub(crate) fn of(&self, sample: &Sample) -> Option<Arc<str>> {
        let group = self.0.get(usize::from(sample.group))?;
        group.urls.get(usize::try_from(sample.url).ok()?).cloned()
    }

    pub(crate) fn not_reported(&self, sample: &Sample) -> NotReported {
        self.0.get(usize::from(sample.group)).map_or(NotReported::default(), |group| group.not_reported)
    }
}
