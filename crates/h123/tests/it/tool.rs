//! Running the tool and reading its results.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tempfile::TempDir;

/// The binary under test.
pub(crate) const H123: &str = env!("CARGO_BIN_EXE_h123");

/// The machine, for one measuring test at a time.
pub(crate) fn machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The repository's folder.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A folder that removes itself, which every user may enter.
pub(crate) fn folder() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// A folder that is removed when this process ends, for any reason: statics are never dropped, so a
/// `TempDir` inside one would remain.
pub(crate) fn folder_until_exit() -> (Child, PathBuf) {
    let path = folder().keep();
    // The read ends with this process, whose end of the pipe is then gone.
    let remove = "trap '' INT TERM HUP; read -r _; rm -rf -- \"$1\"";
    let mut remover = Command::new("sh");
    remover.args(["-c", remove, "sh"]).arg(&path).current_dir("/");
    remover.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    (remover.spawn().unwrap(), path)
}

/// How a call of the tool ended.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn of(output: Output) -> Ended {
        Ended {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Fails with all output unless a study was measured, with or without invalid cells.
    pub(crate) fn expect_measured(&self) {
        assert!(matches!(self.code, 0 | 3), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
    }

    /// Fails with all output unless the tool ended as expected.
    pub(crate) fn expect(self, code: i32) -> Ended {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// Calls the tool in the repository.
pub(crate) fn h123<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Ended {
    Ended::of(Command::new(H123).args(args).current_dir(repository()).output().unwrap())
}

/// A result folder's `summary.json`.
pub(crate) fn summary(result: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(result.join("summary.json")).unwrap()).unwrap()
}

/// The cell of a summary that has all these levels.
pub(crate) fn cell<'s>(summary: &'s Value, levels: &[&str]) -> &'s Value {
    let cells = summary["cells"].as_array().unwrap();
    let has = |cell: &Value, wanted: &str| {
        cell["levels"].as_array().unwrap().iter().any(|level| level["value"] == wanted)
    };
    let found: Vec<&Value> =
        cells.iter().filter(|cell| levels.iter().all(|level| has(cell, level))).collect();
    assert_eq!(found.len(), 1, "cells with {levels:?}");
    found[0]
}

/// The median of a metric of a cell.
pub(crate) fn median(cell: &Value, metric: &str) -> f64 {
    let median = &cell["metrics"][metric]["median"]["value"];
    median.as_f64().unwrap_or_else(|| panic!("no {metric} in {cell:#}"))
}

/// The result of a named check of a cell.
pub(crate) fn check<'s>(cell: &'s Value, name: &str) -> &'s Value {
    let checks = cell["validity"].as_array().unwrap();
    checks
        .iter()
        .find(|check| check["check"] == name)
        .unwrap_or_else(|| panic!("no check {name} in {cell:#}"))
}

/// Processes, other than this one, whose command line contains a text.
pub(crate) fn processes_with(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let is_self = entry.file_name().to_string_lossy() == std::process::id().to_string();
        if line.contains(text) && !is_self {
            found.push(line);
        }
    }
    found
}
