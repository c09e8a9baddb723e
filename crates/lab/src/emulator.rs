//! The emulated link: a thread between two interfaces that forwards frames as [`path::Path`] says.

pub(crate) mod capture;
mod clock;
mod engine;
mod histogram;
pub(crate) mod observer;
mod pcapng;
mod port;
pub(crate) mod priority;
mod spin;

use std::os::fd::OwnedFd;
use std::sync::mpsc;

use model::Network;
use model::record::LinkReport;

use capture::Tap;
pub(crate) use clock::{monotonic_ns, nanoseconds, thread_cpu_ns};
use engine::{Command, Engine};
use observer::{Observer, Seen};
use path::Seeds;
use port::Port;

use crate::affinity;
use crate::error::{LabError, Step};
use crate::link::{self, LinkEnd};
use crate::worker::{Pending, Worker};
use crate::{netns, sysctl};

const THREAD: &str = "emulator";
/// The emulator's interfaces, in a namespace of its own.
const SIDES: [&str; 2] = ["first", "second"];

/// A running emulator; dropping it stops the loop.
#[derive(Debug)]
pub(crate) struct Emulator {
    commands: mpsc::Sender<Command>,
    bell: OwnedFd,
    worker: Worker,
}

/// An emulator whose namespace and sockets are being made.
#[derive(Debug)]
pub(crate) struct Beginning {
    worker: Worker,
    ports: Pending<Result<[Port; 2], LabError>>,
    mtu_bytes: u32,
}

impl Beginning {
    /// Makes the namespace between the nodes and its sockets, on a thread that it returns at once.
    pub(crate) fn new(mtu_bytes: u32) -> Result<Beginning, LabError> {
        let worker = Worker::new(THREAD)?;
        let ports = worker.begin(move || {
            netns::unshare_network()?;
            sysctl::apply_silent()?;
            Port::open_pair(mtu_bytes).step(|| "opening packet sockets with receive rings".to_owned())
        });
        Ok(Beginning { worker, ports, mtu_bytes })
    }

    /// Creates the links into the namespaces of the nodes that *up* leads from and to, and the loop's ports.
    pub(crate) fn connect(self, ends: [LinkEnd; 2]) -> Result<Connected, LabError> {
        let Beginning { worker, ports, mtu_bytes } = self;
        let ports = ports.wait()??;
        let ports = worker.run(move || {
            for ((port, end), side) in ports.iter().zip(&ends).zip(SIDES) {
                let interface = link::create(side, end, mtu_bytes)?;
                port.bind(interface).step(|| format!("listening to the node `{}`", end.node))?;
            }
            Ok(ports)
        })?;
        Ok(Connected { worker, ports, mtu_bytes })
    }
}

/// An emulator whose links exist.
pub(crate) struct Connected {
    worker: Worker,
    ports: [Port; 2],
    mtu_bytes: u32,
}

impl Connected {
    /// Starts the loop, on one CPU where that is given.
    pub(crate) fn start(
        self,
        network: Network,
        seeds: [Seeds; 2],
        cpu: Option<usize>,
    ) -> Result<Emulator, LabError> {
        let Connected { worker, ports, mtu_bytes } = self;
        let (commands, receiver) = mpsc::channel();
        let what = || "starting the emulator's loop".to_owned();
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        let bell = rustix::event::eventfd(0, flags).step(what)?;
        let loop_bell = bell.try_clone().step(what)?;
        worker.run(move || {
            affinity::keep_to(cpu.as_slice()).step(|| format!("keeping the emulator to CPU {cpu:?}"))
        })?;
        drop(worker.begin(move || Engine::new(ports, mtu_bytes, receiver, loop_bell, &network, seeds).run()));
        Ok(Emulator { commands, bell, worker })
    }
}

impl Emulator {
    /// Begins anew with this network, at the start of its timeline, and seeds (up, down); all counters become zero, what is
    /// on the way is dropped. Returns when that start was, in nanoseconds of the monotonic clock.
    pub(crate) fn restart(&self, network: Network, seeds: [Seeds; 2]) -> Result<u64, LabError> {
        let (done, answer) = mpsc::sync_channel(1);
        self.send(Command::Restart { network: Box::new(network), seeds, done });
        answer.recv().map_err(|_| LabError::ThreadEnded { thread: THREAD.to_owned() })
    }

    /// What happened since the last restart.
    pub(crate) fn report(&self) -> Result<LinkReport, LabError> {
        let (answer, receiver) = mpsc::sync_channel(1);
        self.send(Command::Report { answer });
        receiver.recv().map_err(|_| LabError::ThreadEnded { thread: THREAD.to_owned() })?
    }

    /// From now on tells a capture of every frame, or nobody.
    pub(crate) fn tap(&self, tap: Option<Tap>) {
        self.send(Command::Capture { tap });
    }

    /// From now on notes what passes one end of the link.
    pub(crate) fn observe(&self, observer: Observer) {
        self.send(Command::Observe { observer });
    }

    /// What was noted since [`Emulator::observe`]; nothing is noted from now on.
    pub(crate) fn end_observing(&self) -> Result<Vec<Seen>, LabError> {
        let (answer, receiver) = mpsc::sync_channel(1);
        self.send(Command::EndObserving { answer });
        receiver.recv().map_err(|_| LabError::ThreadEnded { thread: THREAD.to_owned() })
    }

    fn send(&self, command: Command) {
        // Where the loop is gone the answer's channel is closed, which the callers report.
        let _: Result<_, _> = self.commands.send(command);
        let _: Result<_, _> = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.send(Command::Stop);
        // Closing a ring takes the kernel some 30 ms; nobody has to wait for it.
        self.worker.detach();
    }
}
