//! Client processes: an assignment in, frames out, and a named failure for everything that goes wrong between.

use std::io::Read;
use std::path::Path;
use std::process::ChildStdout;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lab::{Input, Node, Output, Process, Program};
use model::assignment::{ASSIGNMENT_VERSION, Assignment, ClientMessage, ClientReport};
use model::frame::Decoder;
use model::player::PlayerEvent;
use model::sample::FailureKind;
use model::{ConnectionRow, Outcome, Sample};

use crate::log;

/// Bytes read from a client at once.
const READ_BYTES: usize = 1 << 16;
/// Portions that wait between the reading thread and the decoder.
const PORTIONS_WAITING: usize = 64;
/// After its last message a client ends within this time, or is killed.
const END_LIMIT: Duration = Duration::from_secs(2);

/// How often a silent client is checked for a wish to stop.
const STOP_POLL: Duration = Duration::from_millis(50);

/// What a client process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From its start to its last message; later it is killed and the outcome is a timeout.
    pub time: Duration,
    /// All bytes that it may say.
    pub bytes: u64,
    /// The CPUs that it may run on; all where empty.
    pub cpus: Vec<usize>,
}

/// What a client process brought back: all rows that arrived whole, even where it failed afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientOutcome {
    /// Ok, or how the process failed. Failures of single requests stand in the rows.
    pub outcome: Outcome,
    /// Rows of requests.
    pub samples: Vec<Sample>,
    /// Rows of connections.
    pub connections: Vec<ConnectionRow>,
    /// What happened to the player, where the workload plays a video.
    pub player: Vec<PlayerEvent>,
    /// What it said of itself; empty where it did not come to that.
    pub report: ClientReport,
}

/// Runs `PROGRAM load --assignment -` in a node and collects what it says. Its messages to people go to `log`.
///
/// Blocks until the client is done, dead or out of time; kills it in any case before it returns.
///
/// # Errors
/// The tool's own faults alone: the log cannot be opened, the assignment is not JSON. Whatever the client does wrong is
/// an outcome.
pub fn run(
    node: &Node,
    program: &Path,
    assignment: &Assignment,
    limits: Limits,
    log: &Path,
) -> Result<ClientOutcome> {
    run_until(node, program, assignment, limits, log, &AtomicBool::new(false))
}

/// As [`run`], and kills the client soon after `stop` is set: the outcome is then a failure that says *interrupted*.
///
/// # Errors
/// As [`run`].
pub fn run_until(
    node: &Node,
    program: &Path,
    assignment: &Assignment,
    limits: Limits,
    log: &Path,
    stop: &AtomicBool,
) -> Result<ClientOutcome> {
    let text = serde_json::to_vec(assignment).context("cannot write the assignment as JSON")?;
    let stderr = log::open(log).with_context(|| format!("cannot open {}", log.display()))?;
    let mut program = Program::new(program)
        .args(["load", "--assignment", "-"])
        .stdin(Input::Bytes(text))
        .stdout(Output::Pipe)
        .stderr(Output::File(stderr));
    program.cpus.clone_from(&limits.cpus);
    let started = Instant::now();
    let mut process = match node.spawn(program) {
        Ok(process) => process,
        Err(error) => {
            let reason = format!("the client cannot be started: {:#}", anyhow::Error::from(error));
            let outcome = Outcome::failed(FailureKind::Client, reason);
            return Ok(ClientOutcome { outcome, ..ClientOutcome::empty() });
        }
    };
    let stdout = process.take_stdout().context("the client has no standard output")?;
    let time = limits.time;
    let mut conversation = Conversation::new(limits, log);
    let portions = read_in_thread(stdout)?;
    let end = conversation.listen(&portions, started + time, stop);
    // The reader ends with the pipe, and the pipe with the process: nothing is left behind.
    drop(portions);
    conversation.outcome.outcome = conversation.judge(end, &process);
    Ok(conversation.outcome)
}

impl ClientOutcome {
    pub(crate) fn empty() -> Self {
        ClientOutcome {
            outcome: Outcome::Ok,
            samples: Vec::new(),
            connections: Vec::new(),
            player: Vec::new(),
            report: ClientReport::default(),
        }
    }
}

/// How the talk with a client ended.
enum End {
    /// `Done`.
    Done,
    /// `Fault`, or words that are not the seam's.
    Failed(Outcome),
    /// The pipe was closed before `Done`.
    Closed,
}

struct Conversation<'a> {
    limits: Limits,
    log: &'a Path,
    decoder: Decoder,
    heard_bytes: u64,
    is_greeted: bool,
    outcome: ClientOutcome,
}

impl<'a> Conversation<'a> {
    fn new(limits: Limits, log: &'a Path) -> Self {
        Conversation {
            limits,
            log,
            decoder: Decoder::default(),
            heard_bytes: 0,
            is_greeted: false,
            outcome: ClientOutcome::empty(),
        }
    }

    fn listen(&mut self, portions: &Receiver<Vec<u8>>, deadline: Instant, stop: &AtomicBool) -> End {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let limit = self.limits.time.as_millis();
                let reason = format!("the client was not done within {limit} ms and was killed");
                return End::Failed(Outcome::failed(FailureKind::Timeout, reason));
            }
            match portions.recv_timeout(left.min(STOP_POLL)) {
                Ok(portion) => {
                    if let Some(end) = self.hear(&portion) {
                        return end;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return End::Closed,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop.load(Ordering::Relaxed) {
                let reason = "interrupted: the client was killed before it was done";
                return End::Failed(Outcome::failed(FailureKind::Client, reason));
            }
        }
    }

    fn hear(&mut self, portion: &[u8]) -> Option<End> {
        self.heard_bytes += portion.len() as u64;
        if self.heard_bytes > self.limits.bytes {
            let reason = format!("the client said more than {} bytes and was killed", self.limits.bytes);
            return Some(End::Failed(Outcome::failed(FailureKind::Limit, reason)));
        }
        self.decoder.handle_bytes(portion);
        loop {
            match self.decoder.poll_message() {
                Ok(None) => return None,
                Ok(Some(message)) => {
                    if let Some(end) = self.understand(message) {
                        return Some(end);
                    }
                }
                Err(error) => return Some(self.misunderstood(&error.to_string())),
            }
        }
    }

    fn understand(&mut self, message: ClientMessage) -> Option<End> {
        match (self.is_greeted, message) {
            (false, ClientMessage::Hello { version: ASSIGNMENT_VERSION }) => self.is_greeted = true,
            (false, ClientMessage::Hello { version }) => {
                let problem = format!("found version {version} of the seam, expected {ASSIGNMENT_VERSION}");
                return Some(self.misunderstood(&problem));
            }
            (_, ClientMessage::Fault(failure)) => return Some(End::Failed(Outcome::Failed(failure))),
            (true, ClientMessage::Samples(rows)) => self.outcome.samples.extend(rows),
            (true, ClientMessage::Connections(rows)) => self.outcome.connections.extend(rows),
            (true, ClientMessage::Player(rows)) => self.outcome.player.extend(rows),
            (true, ClientMessage::Done(report)) => {
                self.outcome.report = *report;
                return Some(End::Done);
            }
            (true, ClientMessage::Hello { .. }) => {
                return Some(self.misunderstood("found a second greeting"));
            }
            (false, _) => return Some(self.misunderstood("found rows before the greeting")),
        }
        None
    }

    fn misunderstood(&self, problem: &str) -> End {
        let reason = format!("the client broke the seam: {problem}{}", log::last_words(&[self.log]));
        End::Failed(Outcome::failed(FailureKind::Client, reason))
    }

    /// The outcome, once the process is gone.
    fn judge(&self, end: End, process: &Process) -> Outcome {
        let exit = match &end {
            End::Failed(_) => process.kill().map(Some),
            End::Done | End::Closed => process.wait_timeout(END_LIMIT),
        };
        let failed = |reason: String| Outcome::failed(FailureKind::Client, reason);
        let exit = match exit {
            Ok(Some(exit)) => exit,
            // It has closed its output and goes on: dropping it kills it.
            Ok(None) => {
                return failed("the client did not end after its last message and was killed".to_owned());
            }
            Err(error) => return failed(error.to_string()),
        };
        match end {
            End::Failed(outcome) => outcome,
            End::Done if exit.status.success() => Outcome::Ok,
            End::Done | End::Closed => {
                let problem = self.decoder.finish().err().map_or(String::new(), |error| format!("; {error}"));
                let words = log::last_words(&[self.log]);
                let when = if matches!(end, End::Done) { "after" } else { "before" };
                failed(format!("the client ended {when} it was done ({}){problem}{words}", exit.status))
            }
        }
    }
}

/// Reads a pipe on a thread of its own; the thread waits where the decoder is slower.
pub(crate) fn read_in_thread(mut pipe: ChildStdout) -> Result<Receiver<Vec<u8>>> {
    let (sender, receiver): (SyncSender<Vec<u8>>, _) = mpsc::sync_channel(PORTIONS_WAITING);
    let read = move || {
        let mut portion = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = pipe.read(&mut portion) {
            if sender.send(portion[..count].to_vec()).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("h123-client".to_owned()).spawn(read).context("cannot start a thread")?;
    Ok(receiver)
}
