//! A table of requests outside a result, written while the requests are made.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use model::Sample;
use model::assignment::ClientReport;

use crate::schema::{Request, Row};
use crate::table::TableWriter;

/// A file with the columns of a result's `requests.parquet`; `run` and `cell` are 0.
///
/// It is written as `NAME.PID.partial` in the same folder, and renamed when it is whole. If it is dropped
/// before, it is removed: there is a readable file or none. One row group is held in memory.
pub struct RequestsFile {
    path: PathBuf,
    partial: PartialFile,
    table: TableWriter<Request>,
    urls: Urls,
    rows: u64,
}

impl RequestsFile {
    /// Creates the file.
    ///
    /// # Errors
    /// The file exists or cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        if path.symlink_metadata().is_ok() {
            bail!("the file exists; choose another name or remove it");
        }
        let mut name = path.file_name().context("the path has no file name")?.to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let partial = path.with_file_name(name);
        let table = TableWriter::create(&partial)?;
        Ok(RequestsFile {
            path: path.to_owned(),
            partial: PartialFile(partial),
            table,
            urls: Urls::default(),
            rows: 0,
        })
    }

    /// Sets the URLs that the rows of a group refer to; call it before the group's first row.
    pub fn urls(&mut self, group: u16, urls: &[String]) {
        self.urls.set(group, urls);
    }

    /// Adds a row.
    ///
    /// # Errors
    /// A number does not fit, or the file cannot be written; then nothing more can be added.
    pub fn push(&mut self, sample: Sample) -> Result<()> {
        self.rows += 1;
        self.table.push(Row { run: 0, cell: 0, item: self.urls.request(sample) })
    }

    /// Completes the file, syncs it to the disk, renames it, and returns the number of rows.
    ///
    /// # Errors
    /// The file cannot be written, or was created by someone else meanwhile.
    pub fn finish(self) -> Result<u64> {
        self.table.finish()?;
        if self.path.symlink_metadata().is_ok() {
            bail!("{} was created during the test; it is not overwritten", self.path.display());
        }
        fs::rename(&self.partial.0, &self.path).with_context(|| {
            format!("cannot rename {} to {}", self.partial.0.display(), self.path.display())
        })?;
        Ok(self.rows)
    }
}

/// A file that is removed unless it was renamed.
struct PartialFile(PathBuf);

impl Drop for PartialFile {
    fn drop(&mut self) {
        // A file that was renamed is already gone.
        let _ = fs::remove_file(&self.0);
    }
}

/// The URLs of each client group, shared by the rows that name them, and which bytes the group reports.
#[derive(Default)]
pub(crate) struct Urls(Vec<Group>);

#[derive(Clone, Default)]
struct Group {
    urls: Vec<Arc<str>>,
    lacks_header_bytes: bool,
    lacks_body_bytes: bool,
}

impl Urls {
    /// From the reports of the groups, in their order.
    pub(crate) fn new(clients: &[ClientReport]) -> Self {
        let mut urls = Urls::default();
        for (group, client) in (0..).zip(clients) {
            let group = urls.set(group, &client.urls);
            group.lacks_header_bytes = client.external.is_some();
            group.lacks_body_bytes = client.external.as_ref().is_some_and(|external| !external.has_row_bytes);
        }
        urls
    }

    fn set(&mut self, group: u16, urls: &[String]) -> &mut Group {
        let group = usize::from(group);
        if self.0.len() <= group {
            self.0.resize(group + 1, Group::default());
        }
        let group = &mut self.0[group];
        group.urls = urls.iter().map(|url| Arc::from(&**url)).collect();
        group
    }

    /// A sample as a row of the table `requests`.
    pub(crate) fn request(&self, sample: Sample) -> Request {
        let group = self.0.get(usize::from(sample.group));
        let url = |group: &Group| group.urls.get(usize::try_from(sample.url).ok()?).cloned();
        Request {
            path: group.and_then(url),
            has_header_bytes: group.is_none_or(|group| !group.lacks_header_bytes),
            has_body_bytes: group.is_none_or(|group| !group.lacks_body_bytes),
            sample,
        }
    }
}
