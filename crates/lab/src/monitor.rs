//! The monitor: reads the state of processes, cores, sockets and interfaces during a run.
//!
//! One thread of the tool reads all sources in rounds, on the run's clock. It preempts no other thread
//! (SCHED_BATCH), and its rows include its own cost.

mod diag;
mod machine;
mod network;
mod process;
mod processes;
mod rows;
mod source;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use model::Reading;

use crate::clock::monotonic_ns;
use crate::error::LabError;
use crate::node::Node;
use crate::thread::{Thread, thread_ended};
use crate::{affinity, priority};
use machine::Machine;
use network::Network;
use processes::Processes;
use rows::{Budget, Rows};
use source::Buffer;

/// The thread's name, which identifies its cost.
const THREAD: &str = "monitor";
/// The share of a core, in parts per thousand, for dumps of the machine's socket table. A dump takes 0.25 ms
/// per node on an idle machine, and some milliseconds with tens of thousands of sockets.
const DUMP_PER_MILLE: u32 = 2;

/// What to monitor.
#[derive(Clone, Copy, Debug)]
pub struct MonitorSpec<'a> {
    /// The nodes whose processes, sockets and interfaces are read.
    pub nodes: &'a [&'a Node],
    /// The time from one round to the next.
    pub period: Duration,
    /// The monitor's CPU; any where `None`.
    pub cpu: Option<usize>,
}

/// A ready or running monitor; dropping it ends it.
#[derive(Debug)]
pub struct Monitor {
    /// Declared before the thread, which ends when this is dropped.
    commands: mpsc::Sender<Command>,
    thread: Thread<Rows>,
}

enum Command {
    /// Start, with the start of the run's clock; answered after the first round.
    Begin { run_start_ns: u64, done: mpsc::SyncSender<()> },
    /// Read one more round and end.
    Finish,
}

impl Monitor {
    /// Opens all sources and starts the thread, which reads nothing before [`Monitor::begin`]. Sources that
    /// this kernel lacks have no rows.
    ///
    /// # Errors
    /// A node cannot be entered, or the thread cannot be started.
    pub fn prepare(spec: MonitorSpec<'_>) -> Result<Monitor, LabError> {
        let sampler = Sampler::open(spec.nodes)?;
        let (commands, orders) = mpsc::channel();
        let (period, cpu) = (spec.period, spec.cpu);
        let run = move || {
            priority::lower();
            // Where the CPU is gone, the monitor runs on any CPU.
            let _: Result<_, _> = affinity::keep_to(cpu.as_slice());
            sampler.run(period, &orders)
        };
        Ok(Monitor { commands, thread: Thread::spawn(THREAD, run)? })
    }

    /// Reads the first round. The run's clock read 0 when CLOCK_MONOTONIC was `run_start_ns`. Counters are
    /// relative to this round.
    ///
    /// # Errors
    /// The thread ended.
    pub fn begin(&self, run_start_ns: u64) -> Result<(), LabError> {
        let (done, answer) = mpsc::sync_channel(1);
        self.send(Command::Begin { run_start_ns, done });
        answer.recv().map_err(|_| thread_ended(THREAD))
    }

    /// Reads the last round and returns all readings, in the order of time.
    ///
    /// # Errors
    /// The thread ended early.
    pub fn finish(self) -> Result<Vec<Reading>, LabError> {
        self.send(Command::Finish);
        Ok(self.thread.join()?.into_readings())
    }

    fn send(&self, command: Command) {
        // Where the thread is gone, the callers report it.
        let _: Result<_, _> = self.commands.send(command);
    }
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
        // Nodes that are this machine share the machine's network.
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
        // The receiver is gone where the run was aborted.
        let _: Result<_, _> = done.send(());
        let mut due_ns = run_start_ns;
        loop {
            let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
            // A round that would be late is skipped; the next one is on schedule.
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

    /// Reads every source once. Costly sources are read where they are due, and in the first and last round.
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
