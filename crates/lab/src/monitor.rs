//! The monitor: what the load does to processes, cores, sockets and interfaces, read from outside while it does it.
//!
//! One thread of the tool reads all sources in rounds, by the clock of the run. It takes no core from anybody who wants it
//! (SCHED_BATCH), and its own cost is in its rows.

mod diag;
mod machine;
mod network;
mod parse;
mod process;
mod processes;
mod rows;
mod source;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use model::Reading;

use crate::affinity;
use crate::emulator::{monotonic_ns, priority};
use crate::error::{LabError, Step};
use crate::node::Node;
use machine::Machine;
use network::Network;
use processes::Processes;
use rows::{Budget, Rows};
use source::Buffer;

/// The thread's name, by which its cost is found.
const THREAD: &str = "monitor";
/// Of a core, in parts per thousand, that walking through the machine's table of sockets may take: a quarter of a millisecond
/// for each node on an idle machine, some milliseconds where there are tens of thousands.
const DUMP_PER_MILLE: u32 = 2;

/// What to watch.
#[derive(Clone, Copy, Debug)]
pub struct MonitorSpec<'a> {
    /// The nodes whose processes, sockets and interfaces are read.
    pub nodes: &'a [&'a Node],
    /// From one round to the next.
    pub period: Duration,
    /// The CPU that it runs on; any where `None`.
    pub cpu: Option<usize>,
}

/// A monitor that is ready or running; dropping it ends it.
#[derive(Debug)]
pub struct Monitor {
    /// `None` once it was told to finish.
    commands: Option<mpsc::Sender<Command>>,
    thread: Option<JoinHandle<Rows>>,
}

enum Command {
    /// The clock of the run began then; answered when the first round is done.
    Begin { run_start_ns: u64, done: mpsc::SyncSender<()> },
    /// One more round, then the end.
    Finish,
}

impl Monitor {
    /// Opens all that will be read, and starts the thread; nothing is read before [`Monitor::begin`].
    ///
    /// # Errors
    /// A node cannot be entered, or no thread can be started. What this kernel does not offer to be read has no rows.
    pub fn prepare(spec: MonitorSpec<'_>) -> Result<Monitor, LabError> {
        let sampler = Sampler::open(spec.nodes)?;
        let (commands, orders) = mpsc::channel();
        let (period, cpu) = (spec.period, spec.cpu);
        let run = move || {
            priority::lower();
            // Where the CPU is gone, any other will do.
            let _: Result<_, _> = affinity::keep_to(cpu.as_slice());
            sampler.run(period, &orders)
        };
        let thread = std::thread::Builder::new().name(THREAD.to_owned()).spawn(run);
        let thread = thread.step(|| "starting the monitor's thread".to_owned())?;
        Ok(Monitor { commands: Some(commands), thread: Some(thread) })
    }

    /// Begins with a round by a clock that read 0 when CLOCK_MONOTONIC was `run_start_ns`; counters count from this round on.
    ///
    /// # Errors
    /// The thread ended.
    pub fn begin(&self, run_start_ns: u64) -> Result<(), LabError> {
        let (done, answer) = mpsc::sync_channel(1);
        self.send(Command::Begin { run_start_ns, done });
        answer.recv().map_err(|_| ended())
    }

    /// Ends with a round; all that was read, in the order of time.
    ///
    /// # Errors
    /// The thread ended before.
    pub fn finish(mut self) -> Result<Vec<Reading>, LabError> {
        self.send(Command::Finish);
        let rows = self.thread.take().ok_or_else(ended)?.join().map_err(|_| ended())?;
        Ok(rows.into_readings())
    }

    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // Where the thread is gone, its answer is missing, which the callers report.
            let _: Result<_, _> = commands.send(command);
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        drop(self.commands.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed by the thread itself.
            let _: Result<_, _> = thread.join();
        }
    }
}

fn ended() -> LabError {
    LabError::ThreadEnded { thread: THREAD.to_owned() }
}

/// All sources.
struct Sampler {
    machine: Machine,
    processes: Processes,
    networks: Vec<Network>,
    dump: Budget,
    buffer: Buffer,
    rows: Rows,
}

impl Sampler {
    fn open(nodes: &[&Node]) -> Result<Sampler, LabError> {
        let (mut processes, mut networks) = (Processes::new(), Vec::new());
        for node in nodes {
            processes.add(node);
            if node.init().is_some() {
                networks.push(node.enter(|| Network::open(Some(node.name().into())))?);
            }
        }
        // Nodes that are this machine have one network, which is the machine's.
        if networks.len() < nodes.len() {
            networks.push(Network::open(None));
        }
        Ok(Sampler {
            machine: Machine::open(),
            processes,
            networks,
            dump: Budget::per_mille(DUMP_PER_MILLE),
            buffer: Buffer::new(),
            rows: Rows::new(),
        })
    }

    fn run(mut self, mut period: Duration, orders: &mpsc::Receiver<Command>) -> Rows {
        let Ok(Command::Begin { run_start_ns, done }) = orders.recv() else { return self.rows };
        self.round(run_start_ns, true);
        // Nobody waits where the run was given up.
        let _: Result<_, _> = done.send(());
        let mut due_ns = run_start_ns;
        loop {
            let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
            // A round that comes too late is left out: the next one is at its own time.
            let missed = monotonic_ns().saturating_sub(due_ns) / period_ns;
            due_ns = due_ns.saturating_add(period_ns.saturating_mul(missed + 1));
            let wait = Duration::from_nanos(due_ns.saturating_sub(monotonic_ns()));
            match orders.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) => self.round(run_start_ns, false),
                Ok(Command::Begin { .. }) => {}
                Ok(Command::Finish) => {
                    self.round(run_start_ns, true);
                    return self.rows;
                }
                Err(RecvTimeoutError::Disconnected) => return self.rows,
            }
            if self.rows.thin_out() {
                period *= 2;
            }
        }
    }

    /// Reads everything once; what is costly only where it is due, or at the begin and the end.
    fn round(&mut self, run_start_ns: u64, is_whole: bool) {
        let now_ns = monotonic_ns();
        let Sampler { machine, processes, networks, dump, buffer, rows } = self;
        rows.begin_round(now_ns.saturating_sub(run_start_ns));
        processes.read(now_ns, is_whole, rows, buffer);
        machine.read(rows, buffer);
        dump.spend(now_ns, is_whole, || networks.iter_mut().for_each(|network| network.dump(rows, buffer)));
        networks.iter_mut().for_each(|network| network.read(rows, buffer));
    }
}
