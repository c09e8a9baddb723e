//! The emulated link: a thread between two interfaces that forwards frames as [`path::Path`] says.

mod clock;
mod engine;
mod histogram;
mod port;
pub(crate) mod priority;
mod spin;

use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};

use model::network::Direction;
use model::record::LinkReport;

pub(crate) use clock::{monotonic_ns, nanoseconds};
use engine::{Command, Engine};
use port::Port;

use crate::error::{LabError, Step};
use crate::worker::{Pending, Worker};

/// A running emulator; dropping it stops the loop.
#[derive(Debug)]
pub(crate) struct Emulator {
    commands: mpsc::Sender<Command>,
    bell: Arc<OwnedFd>,
    thread: &'static str,
    _end: Pending<()>,
}

impl Emulator {
    /// Opens the two interfaces (client's, server's) on the worker's thread and starts the loop there.
    pub(crate) fn start(
        worker: &Worker,
        interfaces: [u32; 2],
        mtu_bytes: u32,
        directions: [Direction; 2],
    ) -> Result<Emulator, LabError> {
        let (commands, receiver) = mpsc::channel();
        let what = || "starting the emulator's loop".to_owned();
        let bell = rustix::event::eventfd(
            0,
            rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK,
        )
        .step(what)?;
        let loop_bell = bell.try_clone().step(what)?;
        let ports = worker.run(move || {
            let open = |interface| {
                Port::open(interface, mtu_bytes)
                    .step(|| "opening a packet socket with its receive ring".to_owned())
            };
            Ok([open(interfaces[0])?, open(interfaces[1])?])
        })?;
        let end = worker.begin(move || Engine::new(ports, mtu_bytes, receiver, loop_bell, &directions).run());
        Ok(Emulator { commands, bell: Arc::new(bell), thread: "emulator", _end: end })
    }

    /// Begins anew with these directions and seeds; all counters become zero, what is on the way is dropped.
    pub(crate) fn restart(&self, directions: [Direction; 2], seeds: [u64; 2]) -> Result<(), LabError> {
        let (done, answer) = mpsc::sync_channel(1);
        self.send(Command::Restart { directions, seeds, done });
        answer.recv().map_err(|_| LabError::ThreadEnded { thread: self.thread })
    }

    /// What happened since the last restart.
    pub(crate) fn report(&self) -> Result<LinkReport, LabError> {
        let (answer, receiver) = mpsc::sync_channel(1);
        self.send(Command::Report { answer });
        receiver.recv().map_err(|_| LabError::ThreadEnded { thread: self.thread })?
    }

    fn send(&self, command: Command) {
        // Where the loop is gone the answer's channel is closed, which the callers report.
        let _: Result<_, _> = self.commands.send(command);
        let _: Result<_, _> = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.send(Command::Stop);
    }
}
