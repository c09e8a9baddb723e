//! Runs an external client in a node and reads its output.

use std::fmt;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use lab::{Exit, Node, Output, Process, Program};
use model::Outcome;
use model::assignment::Assignment;
use model::clients::DESCRIPTORS_A_PROCESS;
use model::sample::FailureKind;
use rustix::time::{ClockId, clock_gettime};
use workload::formats::clients::ClientOutput;

use super::command::{ExternalLoop, Place};
use super::description::Client;
use super::report::{ClientInfo, ProcessUsage, report};
use crate::client::{ClientOutcome, Limits, read_in_thread};
use crate::program::Support;
use crate::{input, log};

/// How often a running client is checked.
const POLL: Duration = Duration::from_millis(50);
/// How long a client may run after it closed its output.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Upper bound on a client's output; curl writes most, 2 kB per request.
const MOST_TEXT_BYTES: u64 = 64 << 20;
/// Upper bound on a client's file: rows of 10 million requests.
const MOST_FILE_BYTES: u64 = 512 << 20;

/// The environment of an external client.
#[derive(Clone, Copy, Debug)]
pub struct ExternalSpec<'a> {
    /// The run's folder for this client's files; it is created.
    pub folder: &'a Path,
    /// The log for its messages.
    pub log: &'a Path,
    /// This tool's program: `{{self}}` in a description.
    pub tool: &'a Path,
    /// Whether the server's name resolves in the node.
    pub has_names: bool,
    /// The hashes of the servers' keys ([`crate::Authority::key_hash`]), separated by commas, which browsers
    /// trust.
    pub key_hash: &'a str,
    /// Whether others than h123 started the servers.
    pub is_outside: bool,
    /// Ends the client early when set.
    pub stop: &'a AtomicBool,
    /// Called when a browser is about to begin.
    pub begins: Begins<'a>,
}

/// A function that is called when a client is about to begin its requests, after it has taken seconds to
/// start.
#[derive(Clone, Copy)]
pub struct Begins<'a>(pub &'a (dyn Fn() -> Result<(), Outcome> + Sync));

impl Begins<'_> {
    /// For clients whose beginning nothing waits for.
    pub const UNHEARD: Begins<'static> = Begins(&|| Ok(()));
}

impl fmt::Debug for Begins<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Begins")
    }
}

impl Client {
    /// Runs the client in a node and reads its output. The client has ended when this returns.
    ///
    /// # Errors
    /// Faults of the tool only: a file cannot be written. A client's failure is an outcome.
    pub fn run(
        &self,
        node: &Node,
        assignment: &Assignment,
        limits: &Limits,
        spec: &ExternalSpec<'_>,
    ) -> Result<ClientOutcome> {
        let ended = |outcome: Outcome| Ok(ClientOutcome { outcome, ..ClientOutcome::empty() });
        let variant = assignment.target.variant;
        if let Some(reason) = self.refuses(variant, &assignment.workload, &assignment.options) {
            return ended(Outcome::Unsupported(reason));
        }
        let found = match self.probe(spec.tool) {
            Ok(found) => found,
            Err(error) => return ended(Outcome::failed(FailureKind::Client, format!("{error:#}"))),
        };
        if let Support::Unsupported(reason) = found.support(variant) {
            return ended(Outcome::Unsupported(reason));
        }
        let requested = ExternalLoop::of(assignment)?;
        let made = fs::create_dir_all(spec.folder).and_then(|()| spec.folder.canonicalize());
        let folder = made.with_context(|| format!("cannot create {}", spec.folder.display()))?;
        let place = Place { folder: &folder, tool: spec.tool, has_names: spec.has_names };
        let command = match self.command(&found, assignment, &requested, &place) {
            Ok(command) => command,
            Err(error) => return ended(Outcome::failed(FailureKind::Client, format!("{error:#}"))),
        };
        let writes = self.writes.as_ref().map(|name| folder.join(name));
        let running = Running { client: self, limits, spec, writes: writes.as_deref() };
        let (usage, ended_output) = match running.to_the_end(node, &command, assignment)? {
            Ok(ended) => ended,
            Err(outcome) => return ended(outcome),
        };
        let output = match self.read(&ended_output, writes.as_deref(), &requested, &running) {
            Ok(output) => output,
            Err(outcome) => return ended(outcome),
        };
        let (client, version, group) = (&self.name, &found.version, assignment.group);
        let is_asked_for_ids = assignment.options.requests.request_ids;
        let begins = self.begins.as_deref();
        let info =
            ClientInfo { client, version, begins, group, is_quic: variant.is_quic(), is_asked_for_ids };
        let (samples, report) = report(output, usage, &requested, &info);
        Ok(ClientOutcome { outcome: Outcome::Ok, samples, report, ..ClientOutcome::empty() })
    }

    /// Reads the client's text and file. The file is removed, because its rows are stored with the run.
    fn read(
        &self,
        ended: &ExitOutput,
        writes: Option<&Path>,
        requested: &ExternalLoop<'_>,
        running: &Running<'_>,
    ) -> Result<ClientOutput, Outcome> {
        let failed = |reason: String| Outcome::failed(FailureKind::Client, reason);
        let words = || log::last_lines(&[running.spec.log]);
        let name = &self.name;
        let file = match writes.map(|path| input::read_bytes(path, MOST_FILE_BYTES)) {
            Some(Err(error)) if error.kind() != ErrorKind::NotFound => {
                return Err(failed(format!("the file that {name} wrote cannot be read: {error}")));
            }
            Some(Ok(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            Some(Err(_)) | None => String::new(),
        };
        let output = self.output.parse(&ended.text, &file, requested.for_reading()).map_err(|error| {
            let (status, form) = (ended.exit.status, self.output.name());
            failed(format!("the output of {name} is not in the format {form} ({status}): {error}{}", words()))
        })?;
        let is_silent = output.failures.is_empty() && output.rows.iter().all(|row| row.failure.is_none());
        if !ended.exit.status.success() && is_silent {
            return Err(failed(format!("{name} failed ({}){}", ended.exit.status, words())));
        }
        if let Some(path) = writes {
            // If this fails, the result is only larger than necessary.
            let _ = fs::remove_file(path);
        }
        Ok(output)
    }
}

/// A client during its run.
struct Running<'a> {
    client: &'a Client,
    limits: &'a Limits,
    spec: &'a ExternalSpec<'a>,
    writes: Option<&'a Path>,
}

/// The exit and the output of a client that ended.
struct ExitOutput {
    exit: Exit,
    text: String,
}

impl Running<'_> {
    /// Starts it and waits for its end; its standard output follows its standard error in the log.
    fn to_the_end(
        &self,
        node: &Node,
        command: &[String],
        assignment: &Assignment,
    ) -> Result<Result<(ProcessUsage, ExitOutput), Outcome>> {
        let (program, args) = command.split_first().context("the command is empty; write a program")?;
        let log = self.spec.log;
        let stderr = log::open(log).with_context(|| format!("cannot open {}", log.display()))?;
        let mut program = Program::new(program).args(args).stdout(Output::Pipe).stderr(Output::File(stderr));
        program.open_files = Some(DESCRIPTORS_A_PROCESS.into());
        program.cpus.clone_from(&self.limits.cpus);
        let run_start_ns = assignment.clock.run_start_ns;
        let started_ns = now_ns().saturating_sub(run_start_ns);
        let deadline = Instant::now() + self.limits.time;
        let mut process = match node.spawn(program) {
            Ok(process) => process,
            Err(error) => {
                let reason = format!("{} cannot be started: {:#}", self.client.name, anyhow!(error));
                return Ok(Err(Outcome::failed(FailureKind::Client, reason)));
            }
        };
        let stdout = process.take_stdout().context("the client has no standard output")?;
        let portions = read_in_thread(stdout)?;
        let mut text = Vec::new();
        let heard = self.listen(&process, &portions, &mut text, deadline);
        let text = String::from_utf8_lossy(&text).into_owned();
        append(log, &text)?;
        let run_queue_ns = match heard {
            Ok(run_queue_ns) => run_queue_ns,
            Err(outcome) => {
                process.kill().map_err(|error| anyhow!(error))?;
                return Ok(Err(outcome));
            }
        };
        let Some(exit) = process.wait_timeout(END_LIMIT)? else {
            process.kill()?;
            let reason =
                format!("{} did not end after it closed its output and was killed", self.client.name);
            return Ok(Err(Outcome::failed(FailureKind::Client, reason)));
        };
        if exit.status.code().is_none() {
            let words = log::last_lines(&[log]);
            let reason = format!("{} crashed ({}){words}", self.client.name, exit.status);
            return Ok(Err(Outcome::failed(FailureKind::Client, reason)));
        }
        let usage = ProcessUsage {
            started_ns,
            finished_ns: now_ns().saturating_sub(run_start_ns),
            cpu_user_ns: exit.cpu_user_ns,
            cpu_system_ns: exit.cpu_system_ns,
            run_queue_ns,
            max_resident_bytes: exit.max_resident_bytes,
        };
        Ok(Ok((usage, ExitOutput { exit, text })))
    }

    /// Collects its output until it closes it; returns how long it had waited for a CPU at the last check.
    fn listen(
        &self,
        process: &Process,
        portions: &Receiver<Vec<u8>>,
        text: &mut Vec<u8>,
        deadline: Instant,
    ) -> Result<u64, Outcome> {
        let name = &self.client.name;
        let mut run_queue_ns = 0;
        let mut looked = Instant::now();
        loop {
            match portions.recv_timeout(POLL) {
                Ok(portion) => text.extend_from_slice(&portion),
                Err(RecvTimeoutError::Disconnected) => return Ok(run_queue_ns),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if text.len() as u64 > MOST_TEXT_BYTES.min(self.limits.bytes) {
                let reason = format!("the output of {name} exceeded {} bytes and it was killed", text.len());
                return Err(Outcome::failed(FailureKind::Limit, reason));
            }
            if looked.elapsed() < POLL {
                continue;
            }
            looked = Instant::now();
            run_queue_ns = run_queue_ns.max(process.run_queue_ns());
            if self.file_bytes() > MOST_FILE_BYTES.min(self.limits.bytes) {
                let reason =
                    format!("{name} wrote a file of more than {MOST_FILE_BYTES} bytes and was killed");
                return Err(Outcome::failed(FailureKind::Limit, reason));
            }
            if looked >= deadline {
                let limit = self.limits.time.as_millis();
                let reason = format!("{name} did not finish within {limit} ms and was killed");
                return Err(Outcome::failed(FailureKind::Timeout, reason));
            }
            if self.spec.stop.load(Ordering::Relaxed) {
                let reason = format!("interrupted: {name} was killed before it finished");
                return Err(Outcome::failed(FailureKind::Client, reason));
            }
        }
    }

    fn file_bytes(&self) -> u64 {
        let metadata = self.writes.and_then(|path| fs::metadata(path).ok());
        metadata.map_or(0, |metadata| metadata.len())
    }
}

fn append(log: &Path, text: &str) -> Result<()> {
    let written = log::open(log).and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write {}", PathBuf::from(log).display()))
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}
