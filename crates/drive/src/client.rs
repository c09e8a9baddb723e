//! Client processes: an assignment in, frames out, and a named failure for every fault.

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
use model::clients::DESCRIPTORS_A_PROCESS;
use model::frame::Decoder;
use model::page_events::PageEvents;
use model::player::PlayerEvent;
use model::sample::FailureKind;
use model::{ConnectionRow, Outcome, Sample};
use rustix::process::Signal;

use crate::log;

/// How many bytes are read from a client at once.
const READ_BYTES: usize = 1 << 16;
/// Portions that wait between the reading thread and the decoder.
const MOST_WAITING_CHUNKS: usize = 64;
/// How long a client may run after its last message.
const END_LIMIT: Duration = Duration::from_secs(2);

/// How often the stop flag is checked while the client sends nothing.
const STOP_POLL: Duration = Duration::from_millis(50);

/// The limits of a client process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time from its start to its last message. After it the client is killed, and the outcome is a timeout.
    pub time: Duration,
    /// Upper bound on its output, in bytes.
    pub bytes: u64,
    /// The CPUs that it may run on; all where empty.
    pub cpus: Vec<usize>,
}

/// The outcome of a client process: all complete rows, even where it failed afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientOutcome {
    /// Ok, or how the process failed. The rows contain the failures of single requests.
    pub outcome: Outcome,
    /// Rows of requests.
    pub samples: Vec<Sample>,
    /// Rows of connections.
    pub connections: Vec<ConnectionRow>,
    /// The player's events, where the workload plays a video.
    pub player: Vec<PlayerEvent>,
    /// The page loads of browsers.
    pub page_events: Vec<PageEvents>,
    /// Its report about itself; empty where it sent none.
    pub report: ClientReport,
}

/// Runs `PROGRAM load --assignment -` in a node and collects its output. Its messages for people go to `log`.
///
/// Blocks until the client is done, dead or out of time. The client has ended when this returns.
///
/// # Errors
/// Faults of the tool only: the log cannot be opened, or the assignment cannot be written as JSON. A client's
/// failure is an outcome.
pub fn run(
    node: &Node,
    program: &Path,
    assignment: &Assignment,
    limits: Limits,
    log: &Path,
) -> Result<ClientOutcome> {
    run_until(node, program, assignment, limits, log, &AtomicBool::new(false))
}

/// As [`run`]; in addition kills the client soon after `stop` is set. The outcome is then an *interrupted*
/// failure.
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
    run_until_enough(
        node,
        program,
        assignment,
        limits,
        log,
        Stops { kill: stop, end: &AtomicBool::new(false) },
    )
}

/// When a client ends early.
#[derive(Clone, Copy, Debug)]
pub struct Stops<'a> {
    /// Soon after this is set, the client is killed. The outcome is then an *interrupted* failure.
    pub kill: &'a AtomicBool,
    /// Soon after this is set, the client is asked to end. What is in flight is then unfinished.
    pub end: &'a AtomicBool,
}

/// As [`run`], but the client can end early.
///
/// # Errors
/// As [`run`].
pub fn run_until_enough(
    node: &Node,
    program: &Path,
    assignment: &Assignment,
    limits: Limits,
    log: &Path,
    stops: Stops<'_>,
) -> Result<ClientOutcome> {
    let text = serde_json::to_vec(assignment).context("cannot write the assignment as JSON")?;
    let stderr = log::open(log).with_context(|| format!("cannot open {}", log.display()))?;
    let mut program = Program::new(program)
        .args(["load", "--assignment", "-"])
        .stdin(Input::Bytes(text))
        .stdout(Output::Pipe)
        .stderr(Output::File(stderr));
    program.cpus.clone_from(&limits.cpus);
    program.open_files = Some(DESCRIPTORS_A_PROCESS.into());
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
    let mut reader = ClientReader::new(limits, log);
    let chunks = read_in_thread(stdout)?;
    let end = reader.listen(&chunks, started + time, stops, || process.signal(Signal::INT));
    // The reading thread ends with the pipe, and the pipe with the process.
    drop(chunks);
    reader.outcome.outcome = reader.outcome(end, &process);
    Ok(reader.outcome)
}

impl ClientOutcome {
    /// Adds the outcome of another process of the same group. The first failure remains the outcome.
    pub fn merge(&mut self, other: ClientOutcome) {
        let ClientOutcome { outcome, samples, connections, player, page_events, mut report } = other;
        if self.outcome.is_ok() {
            self.outcome = outcome;
        }
        // Each process numbers the contents that it met.
        let contents = std::mem::take(&mut report.contents);
        let numbers: Vec<u16> = contents.into_iter().map(|content| self.number_of(content)).collect();
        self.samples.extend(samples.into_iter().map(|mut sample| {
            sample.content = sample.content.and_then(|content| numbers.get(usize::from(content)).copied());
            sample
        }));
        self.samples.sort_by_key(|sample| sample.request);
        self.connections.extend(connections);
        self.player.extend(player);
        self.player.sort_by_key(|event| event.at_ns);
        self.page_events.extend(page_events);
        self.report.merge(report);
    }

    /// The number of a content among those of the report, to which it is added if it is new.
    fn number_of(&mut self, content: String) -> u16 {
        let contents = &mut self.report.contents;
        let place = contents.iter().position(|known| *known == content).unwrap_or_else(|| {
            contents.push(content);
            contents.len() - 1
        });
        u16::try_from(place).unwrap_or(u16::MAX)
    }

    pub(crate) fn empty() -> Self {
        ClientOutcome {
            outcome: Outcome::Ok,
            samples: Vec::new(),
            connections: Vec::new(),
            player: Vec::new(),
            page_events: Vec::new(),
            report: ClientReport::default(),
        }
    }
}

/// How a client's output ended.
enum End {
    /// `Done`.
    Done,
    /// `Fault`, a protocol error or an exceeded limit.
    Failed(Outcome),
    /// The pipe was closed before `Done`.
    Closed,
}

struct ClientReader<'a> {
    limits: Limits,
    log: &'a Path,
    decoder: Decoder,
    output_bytes: u64,
    is_greeted: bool,
    outcome: ClientOutcome,
}

impl<'a> ClientReader<'a> {
    fn new(limits: Limits, log: &'a Path) -> Self {
        ClientReader {
            limits,
            log,
            decoder: Decoder::default(),
            output_bytes: 0,
            is_greeted: false,
            outcome: ClientOutcome::empty(),
        }
    }

    fn listen(
        &mut self,
        chunks: &Receiver<Vec<u8>>,
        deadline: Instant,
        stops: Stops<'_>,
        ask_to_end: impl Fn(),
    ) -> End {
        let mut is_asked = false;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let limit = self.limits.time.as_millis();
                let reason = format!("the client did not finish within {limit} ms and was killed");
                return End::Failed(Outcome::failed(FailureKind::Timeout, reason));
            }
            match chunks.recv_timeout(left.min(STOP_POLL)) {
                Ok(chunk) => {
                    if let Some(end) = self.handle_bytes(&chunk) {
                        return end;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return End::Closed,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stops.end.load(Ordering::Relaxed) && !std::mem::replace(&mut is_asked, true) {
                ask_to_end();
            }
            if stops.kill.load(Ordering::Relaxed) {
                let reason = "interrupted: the client was killed before it finished";
                return End::Failed(Outcome::failed(FailureKind::Client, reason));
            }
        }
    }

    fn handle_bytes(&mut self, chunk: &[u8]) -> Option<End> {
        self.output_bytes += chunk.len() as u64;
        if self.output_bytes > self.limits.bytes {
            let reason =
                format!("client output exceeded {} bytes and the client was killed", self.limits.bytes);
            return Some(End::Failed(Outcome::failed(FailureKind::Limit, reason)));
        }
        self.decoder.handle_bytes(chunk);
        loop {
            match self.decoder.poll_message() {
                Ok(None) => return None,
                Ok(Some(message)) => {
                    if let Some(end) = self.handle_message(message) {
                        return Some(end);
                    }
                }
                Err(error) => return Some(self.protocol_error(&error.to_string())),
            }
        }
    }

    fn handle_message(&mut self, message: ClientMessage) -> Option<End> {
        match (self.is_greeted, message) {
            (false, ClientMessage::Hello { version: ASSIGNMENT_VERSION }) => self.is_greeted = true,
            (false, ClientMessage::Hello { version }) => {
                let problem = format!(
                    "the client uses protocol version {version}, not {ASSIGNMENT_VERSION}; use the h123 that started it"
                );
                return Some(self.protocol_error(&problem));
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
                return Some(self.protocol_error("a second greeting"));
            }
            (false, _) => return Some(self.protocol_error("rows before the greeting")),
        }
        None
    }

    fn protocol_error(&self, problem: &str) -> End {
        let reason = format!("client protocol error: {problem}{}", log::last_lines(&[self.log]));
        End::Failed(Outcome::failed(FailureKind::Client, reason))
    }

    /// The outcome, once the process is gone.
    fn outcome(&self, end: End, process: &Process) -> Outcome {
        let exit = match &end {
            End::Failed(_) => process.kill().map(Some),
            End::Done | End::Closed => process.wait_timeout(END_LIMIT),
        };
        let failed = |reason: String| Outcome::failed(FailureKind::Client, reason);
        let exit = match exit {
            Ok(Some(exit)) => exit,
            // It closed its output and still runs. Dropping it kills it.
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
                let words = log::last_lines(&[self.log]);
                let when = if matches!(end, End::Done) { "after" } else { "before" };
                failed(format!("the client ended {when} it had finished ({}){problem}{words}", exit.status))
            }
        }
    }
}

/// Reads a pipe on a separate thread, which waits where the decoder is slower.
pub(crate) fn read_in_thread(mut pipe: ChildStdout) -> Result<Receiver<Vec<u8>>> {
    let (sender, receiver): (SyncSender<Vec<u8>>, _) = mpsc::sync_channel(MOST_WAITING_CHUNKS);
    let read = move || {
        let mut chunk = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = pipe.read(&mut chunk) {
            if sender.send(chunk[..count].to_vec()).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("h123-client".to_owned()).spawn(read).context("cannot start a thread")?;
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a process says that made requests of these numbers, whose contents it numbers from 0.
    fn outcome(requests: &[u64], contents: &[&str]) -> ClientOutcome {
        let row = |(content, request): (u16, &u64)| Sample {
            request: *request,
            content: Some(content),
            ..Sample::default()
        };
        ClientOutcome {
            samples: (0..).zip(requests).map(row).collect(),
            report: ClientReport {
                contents: contents.iter().map(|content| (*content).to_owned()).collect(),
                clients_begun: 1,
                started_ns: 10 + requests[0],
                finished_ns: 100 + requests[0],
                cpu_user_ns: 5,
                ..ClientReport::default()
            },
            ..ClientOutcome::empty()
        }
    }

    #[test]
    fn processes_of_a_group_become_one_client() {
        let mut all = outcome(&[0, 2], &["text/html", "image/png"]);
        all.merge(outcome(&[1, 3], &["image/png", "text/css"]));
        assert_eq!(all.report.contents, ["text/html", "image/png", "text/css"]);
        let rows: Vec<(u64, Option<u16>)> =
            all.samples.iter().map(|sample| (sample.request, sample.content)).collect();
        assert_eq!(rows, [(0, Some(0)), (1, Some(1)), (2, Some(1)), (3, Some(2))]);
        let report = &all.report;
        assert_eq!((report.clients_begun, report.cpu_user_ns), (2, 10));
        assert_eq!((report.started_ns, report.finished_ns), (10, 101));
    }

    #[test]
    fn the_first_failure_of_a_group_is_kept() {
        let failed = |reason: &str| ClientOutcome {
            outcome: Outcome::failed(FailureKind::Client, reason),
            ..ClientOutcome::empty()
        };
        let mut all = outcome(&[0], &["text/html"]);
        all.merge(failed("one"));
        all.merge(failed("two"));
        assert_eq!(all.outcome, Outcome::failed(FailureKind::Client, "one"));
        assert_eq!(all.samples.len(), 1, "complete rows stay");
    }
}
