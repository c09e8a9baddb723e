//! The rows of a load test, written to a file while it runs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use load::{Handed, Report, RowReceiver};
use model::units::format_duration_ns;
use rustix::time::{ClockId, clock_gettime};
use store::RequestsFile;

use super::summary::as_f64;
use crate::exit::UsageError;

/// A worker that waited for so long for its rows to be written was late for its requests.
const WORTH_SAYING_NS: u64 = 100_000;

/// A file for the rows of all workers.
pub(crate) struct RowFile {
    path: PathBuf,
    file: RequestsFile,
}

/// What became of the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WrittenRows {
    pub(crate) path: PathBuf,
    pub(crate) rows: u64,
    /// CPU time that writing them took, beside the workers' own.
    pub(crate) cpu_ns: u64,
    /// How long workers waited for the writer.
    pub(crate) waited_ns: u64,
    /// Why there is no file.
    pub(crate) fault: Option<String>,
}

impl RowFile {
    /// Begins the file.
    ///
    /// # Errors
    /// A file that exists or cannot be made: wrong usage.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let fault = |error| UsageError(format!("--samples {}: {error:#}", path.display()));
        Ok(RowFile { path: path.to_owned(), file: RequestsFile::create(path).map_err(fault)? })
    }

    /// Writes all rows that workers hand over, until the last of them has ended. Where the disk refuses, the rest is
    /// taken from the workers nonetheless, so that the test goes on.
    pub(crate) fn write(self, rows: RowReceiver) -> WrittenRows {
        let mut file = Ok(self.file);
        rows.for_each(|handed| {
            let Ok(open) = &mut file else { return };
            let taken = match handed {
                Handed::Urls { group, urls } => {
                    open.urls(group, &urls);
                    Ok(())
                }
                Handed::Rows(rows) => rows.drain(..).try_for_each(|row| open.push(row)),
            };
            if let Err(error) = taken {
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

    /// What a reader of the numbers has to know.
    pub(crate) fn warning(&self) -> Option<String> {
        if let Some(fault) = &self.fault {
            return Some(format!("--samples {}: there is no file of rows: {fault}", self.path.display()));
        }
        (self.waited_ns >= WORTH_SAYING_NS).then(|| {
            format!(
                "the load was held up for {} because rows could not be written as fast as they came; use a faster \
                 disk, a core more, or no --samples",
                format_duration_ns(as_f64(self.waited_ns))
            )
        })
    }

    /// Fails where there is no file.
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
