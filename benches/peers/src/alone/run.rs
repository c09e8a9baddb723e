//! One run of `h123 load`, its JSON read strictly.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::Exit;
use serde_json::Value;

use crate::child::Running;
use crate::machine;
use crate::parse;
use crate::servers::{Bench, Server};
use crate::works::Work;

/// A run may take so much longer than expected.
const GRACE: Duration = Duration::from_secs(60);

/// What a run said about itself, and what it cost.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) json: Value,
    pub(super) ended: Exit,
    /// Said where other processes took CPU meanwhile.
    pub(super) disturbance: Option<String>,
}

/// A run that was started.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) running: Running,
    machine: machine::Total,
    server: machine::Cpu,
    began: Instant,
}

/// The command for a work, without its extent: as users run it, but for `--samples`.
pub(super) fn command(bench: &Bench, server: &Server, work: &Work) -> Command {
    let mut command = Command::new(&bench.h123);
    command.arg("load").arg(&server.url).args(["--variant", work.variant.name(), "--json", "--quiet"]);
    command.args(["-c", &work.connections.to_string(), "-m", &work.streams.to_string()]);
    if work.variant.scheme() == "https" {
        command.arg("--cacert").arg(&server.authority);
    }
    command
}

/// Starts a command on these CPUs; `name` is that of its files.
pub(super) fn start(
    bench: &Bench,
    server: &Server,
    name: &str,
    command: Command,
    cpus: &[usize],
) -> Result<Started> {
    let (machine, server, began) = (machine::total()?, server.cpu()?, Instant::now());
    let running = bench.start(name, &command, cpus)?;
    Ok(Started { running, machine, server, began })
}

impl Started {
    /// Waits for the end of a run that should take about this long.
    ///
    /// # Errors
    /// It takes much longer, a request fails, or nothing was measured.
    pub(super) fn finish(self, server: &Server, expected: Duration, stop: &AtomicBool) -> Result<Ran> {
        let ended = self.running.wait(expected + GRACE, stop)?;
        let elapsed_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (machine, now) = (machine::total()?, server.cpu()?);
        let output = self.running.stdout()?;
        ensure!(
            ended.status.success(),
            "h123 ended with {}: {}",
            ended.status,
            parse::h123_failure(&output).unwrap_or_else(|| self.running.last_words())
        );
        let json: Value = serde_json::from_str(&output).context("the output of h123 is no JSON")?;
        ensure!(number(&json, "/requests/failed")? == 0.0, "found failed requests, expected none");
        ensure!(number(&json, "/requests/completed")? > 0.0, "found no completed request");
        let known_ns = ended.cpu_user_ns + ended.cpu_system_ns + (now.user_ns + now.system_ns)
            - (self.server.user_ns + self.server.system_ns);
        let found = machine::disturbance(self.machine, machine, known_ns, elapsed_ns);
        let disturbance = found
            .is_much()
            .then(|| format!("other processes took {:.2} CPU, {:.2} was stolen", found.others, found.stolen));
        Ok(Ran { json, ended, disturbance })
    }
}

impl Ran {
    pub(super) fn number(&self, pointer: &str) -> Result<f64> {
        number(&self.json, pointer)
    }

    /// CPU per request in microseconds, user space and kernel.
    pub(super) fn cpu_us(&self) -> Result<f64> {
        Ok((self.ended.cpu_user_ns + self.ended.cpu_system_ns) as f64
            / 1e3
            / self.number("/requests/completed")?)
    }
}

/// Notes that a machine was busy.
pub(super) fn note(notes: &mut Vec<String>, what: &str, ran: &Ran) {
    notes.extend(ran.disturbance.iter().map(|words| format!("busy machine: {what}: {words}")));
}

fn number(json: &Value, pointer: &str) -> Result<f64> {
    json.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("found no number at `{pointer}`"))
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
