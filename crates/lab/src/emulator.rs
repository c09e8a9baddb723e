//! The user-space emulator: a thread between two interfaces that forwards frames as [`path::Path`] decides.

mod engine;
mod port;
mod spin;

use std::os::fd::OwnedFd;
use std::sync::mpsc;

use model::record::LinkReport;
use model::{Backend, Network};
use path::Seeds;

use crate::capture::Tap;
use crate::emulation::{Connect, Emulation, Start};
use crate::error::{LabError, Step};
use crate::observer::{Observation, Observer};
use crate::thread::thread_ended;
use crate::worker::Worker;
use crate::{affinity, link, netns, sysctl};
use engine::{Command, Engine};
use port::Port;

const THREAD: &str = "emulator";
/// The emulator's interfaces, in its own namespace.
const SIDES: [&str; 2] = ["first", "second"];

/// A running emulator; dropping it stops the loop.
#[derive(Debug)]
struct Emulator {
    commands: mpsc::Sender<Command>,
    bell: OwnedFd,
    worker: Worker,
}

/// Starts to create the namespace between two nodes and its sockets, without waiting. Each socket has a ring
/// that fits the network and the number of the lab's emulated links.
pub(crate) fn begin(mtu_bytes: u32, network: &Network, links: usize) -> Result<Connect, LabError> {
    let frames = port::ring_frames(network, links);
    let worker = Worker::new(THREAD)?;
    let ports = worker.begin(move || {
        netns::unshare_network()?;
        sysctl::apply_silent()?;
        Port::open_pair(mtu_bytes, frames).step(|| "opening packet sockets with receive rings".to_owned())
    });
    Ok(Box::new(move |ends| {
        let ports = ports.wait()??;
        let ports = worker.run(move || {
            for ((port, end), side) in ports.iter().zip(&ends).zip(SIDES) {
                let interface = link::create(side, end, mtu_bytes)?;
                port.bind(interface).step(|| format!("listening to the node `{}`", end.node))?;
            }
            Ok(ports)
        })?;
        let start: Start = Box::new(move |network, seeds, cpu| {
            Ok(Box::new(Emulator::start(worker, ports, mtu_bytes, network.clone(), seeds, cpu)?))
        });
        Ok(start)
    }))
}

impl Emulator {
    fn start(
        worker: Worker,
        ports: [Port; 2],
        mtu_bytes: u32,
        network: Network,
        seeds: [Seeds; 2],
        cpu: Option<usize>,
    ) -> Result<Emulator, LabError> {
        let (commands, receiver) = mpsc::channel();
        let what = || "starting the emulator's loop".to_owned();
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        let bell = rustix::event::eventfd(0, flags).step(what)?;
        let loop_bell = bell.try_clone().step(what)?;
        worker.run(move || {
            affinity::keep_to(cpu.as_slice()).step(|| format!("pinning the emulator to CPU {cpu:?}"))
        })?;
        drop(worker.begin(move || Engine::new(ports, mtu_bytes, receiver, loop_bell, &network, seeds).run()));
        Ok(Emulator { commands, bell, worker })
    }

    /// Sends a command that is answered, and waits for the answer.
    fn ask<T>(&self, command: impl FnOnce(mpsc::SyncSender<T>) -> Command) -> Result<T, LabError> {
        let (answer, receiver) = mpsc::sync_channel(1);
        self.send(command(answer));
        receiver.recv().map_err(|_| thread_ended(THREAD))
    }

    fn send(&self, command: Command) {
        // Where the loop is gone, the answer's channel is closed, which `ask` reports.
        let _: Result<_, _> = self.commands.send(command);
        let _: Result<_, _> = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

impl Emulation for Emulator {
    fn backend(&self) -> Backend {
        Backend::UserSpace
    }

    fn restart(&self, network: &Network, seeds: [Seeds; 2]) -> Result<u64, LabError> {
        self.ask(|done| Command::Restart { network: Box::new(network.clone()), seeds, done })
    }

    fn change(&self, network: &Network) -> Result<(), LabError> {
        self.ask(|done| Command::Change { network: Box::new(network.clone()), done })
    }

    fn rebind(&self) -> Result<(), LabError> {
        self.ask(|done| Command::Rebind { done })
    }

    fn report(&self) -> Result<LinkReport, LabError> {
        self.ask(|answer| Command::Report { answer })?
    }

    fn observe(&self, side: usize, node: &str, ports: &[u16]) -> bool {
        self.send(Command::Observe { observer: Observer::new(side, node, ports) });
        true
    }

    fn end_observing(&self) -> Result<Vec<Observation>, LabError> {
        self.ask(|answer| Command::EndObserving { answer })
    }

    fn tap(&self, tap: Option<Tap>) -> Result<(), LabError> {
        self.send(Command::Capture { tap });
        Ok(())
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.send(Command::Stop);
        // Closing a ring takes the kernel about 30 ms. Nobody waits for it.
        self.worker.detach();
    }
}
