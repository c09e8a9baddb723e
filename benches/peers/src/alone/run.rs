//! One run of `h123 load`, its JSON read strictly.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::Exit;
use serde_json::Value;

use crate::machine::Disturbance;
use crate::measure::Started;
use crate::servers::{Bench, Server};
use crate::tools::load;
use crate::works::Work;

/// A run may take this much longer than expected.
const GRACE: Duration = Duration::from_secs(60);

/// What all tests share.
pub(super) struct Session<'a> {
    pub(super) bench: &'a Bench,
    /// Whether memory over time is measured with 100 million requests.
    pub(super) full: bool,
    /// What the reader must know.
    pub(super) notes: Vec<String>,
}

/// A run's own report, and its cost.
#[derive(Debug)]
pub(super) struct Ran {
    json: Value,
    pub(super) exit: Exit,
}

/// The command for a work, without its extent: as users run it.
pub(super) fn command(bench: &Bench, server: &Server, work: &Work) -> Command {
    let mut command = load(bench, server, work);
    command.arg("--quiet");
    command
}

impl Session<'_> {
    /// Runs a command on these CPUs, which should take about this long; `what` names it in a note on a busy
    /// machine.
    ///
    /// # Errors
    /// It takes much longer, a request fails, or nothing was measured.
    pub(super) fn run(
        &mut self,
        server: &Server,
        what: &str,
        command: &Command,
        cpus: &[usize],
        seconds: u64,
    ) -> Result<Ran> {
        let started = Started::begin(self.bench, server, "h123", command, cpus)?;
        let (ran, disturbance) = self.finish(started, server, seconds)?;
        if disturbance.is_much() {
            let Disturbance { others, stolen } = disturbance;
            self.notes.push(format!(
                "busy machine: {what}: other processes took {others:.2} CPU, {stolen:.2} was stolen"
            ));
        }
        Ok(ran)
    }

    /// Waits for the end of a run that should take about this long.
    ///
    /// # Errors
    /// It takes much longer, a request fails, or nothing was measured.
    pub(super) fn finish(
        &self,
        started: Started,
        server: &Server,
        seconds: u64,
    ) -> Result<(Ran, Disturbance)> {
        let ended = started.finish(self.bench, server, Duration::from_secs(seconds) + GRACE)?;
        let json = serde_json::from_str(&ended.output).context("the output of h123 is not JSON")?;
        let ran = Ran { json, exit: ended.exit };
        ensure!(ran.number("/requests/failed")? == 0.0, "requests failed; all must succeed");
        ensure!(ran.number("/requests/completed")? > 0.0, "no request succeeded");
        Ok((ran, ended.disturbance))
    }
}

impl Ran {
    pub(super) fn number(&self, pointer: &str) -> Result<f64> {
        number(&self.json, pointer)
    }

    /// CPU per request in microseconds, user space and kernel.
    pub(super) fn cpu_us(&self) -> Result<f64> {
        Ok((self.exit.cpu_user_ns + self.exit.cpu_system_ns) as f64
            / 1e3
            / self.number("/requests/completed")?)
    }
}

fn number(json: &Value, pointer: &str) -> Result<f64> {
    json.pointer(pointer)
        .and_then(Value::as_f64)
        .with_context(|| format!("the output has no number at `{pointer}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_missing_is_an_error() {
        let json: Value = serde_json::from_str(r#"{"a": {"b": 3, "c": null}}"#).unwrap();
        assert_eq!(number(&json, "/a/b").unwrap(), 3.0);
        for absent in ["/a/c", "/a/d", "/x"] {
            assert!(number(&json, absent).unwrap_err().to_string().contains(absent));
        }
    }
}
