//! The rows of a load test, written to a file while it runs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use load::{Report, RowMessage, RowReceiver};
use model::units::format_ns;
use rustix::time::{ClockId, clock_gettime};
use store::RequestsFile;

use crate::exit::UsageError;

/// A worker that waited this long for its rows to be written sent requests late.
const LATE_NS: u64 = 100_000;

/// A file for the rows of all workers.
pub(crate) struct RowFile {
    path: PathBuf,
    file: RequestsFile,
}

/// The written rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WrittenRows {
    pub(crate) path: PathBuf,
    pub(crate) rows: u64,
    /// CPU time for writing them, in addition to the workers'.
    pub(crate) cpu_ns: u64,
    /// How long workers waited for the writer.
    pub(crate) waited_ns: u64,
    /// Why there is no complete file.
    pub(crate) fault: Option<String>,
}

impl RowFile {
    /// Begins the file.
    ///
    /// # Errors
    /// A [`UsageError`]: the file exists or cannot be created.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let fault = |error| UsageError(format!("--samples {}: {error:#}", path.display()));
        Ok(RowFile { path: path.to_owned(), file: RequestsFile::create(path).map_err(fault)? })
    }

    /// Writes all rows of the workers, until the last worker has ended. After a disk error the remaining rows
    /// are dropped, so that the test goes on.
    pub(crate) fn write(self, rows: RowReceiver) -> WrittenRows {
        let mut file = Ok(self.file);
        rows.for_each(|message| {
            let Ok(open) = &mut file else { return };
            let result = match message {
                RowMessage::Urls { group, urls } => {
                    open.urls(group, &urls);
                    Ok(())
                }
                RowMessage::Rows(rows) => rows.drain(..).try_for_each(|row| open.push(row)),
            };
            if let Err(error) = result {
                file = Err(error);
            }
        });
        let finished = file.and_then(RequestsFile::finish);
        let (rows, fault) = match finished {
            Ok(rows) => (rows, None),
            Err(error) => (0, Some(format!("{error:#}"))),
        };
        WrittenRows { path: self.path, rows, cpu_ns: thread_cpu_ns(), waited_ns: 0, fault }
    }
}

impl WrittenRows {
    /// Adds how long the workers waited.
    pub(crate) fn with_waits(mut self, reports: &[Report]) -> Self {
        self.waited_ns = reports.iter().map(|report| report.rows_waited_ns).sum();
        self
    }

    /// What a reader has to know before using the numbers.
    pub(crate) fn warning(&self) -> Option<String> {
        if let Some(fault) = &self.fault {
            return Some(format!(
                "--samples {}: the file of rows could not be written: {fault}",
                self.path.display()
            ));
        }
        (self.waited_ns >= LATE_NS).then(|| {
            format!(
                "the load waited {} for rows to be written; use a faster disk, another core, or no --samples",
                format_ns(self.waited_ns)
            )
        })
    }

    /// Fails if there is no complete file.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.fault {
            Some(fault) => Err(anyhow::anyhow!("{fault}"))
                .with_context(|| format!("the rows could not be written to {}", self.path.display())),
            None => Ok(()),
        }
    }
}

/// CPU time of the calling thread.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
