//! What emulates a link: the lab's own emulator, or the kernel.

use model::record::LinkReport;
use model::{Backend, Network};
use path::Seeds;

use crate::capture::Tap;
use crate::emulator::observer::{Observer, Seen};
use crate::emulator::{self, Emulator};
use crate::error::LabError;
use crate::link::LinkEnd;
use crate::netem::{self, KernelLink};

/// A link that does to packets what a network says.
#[derive(Debug)]
pub(crate) enum Emulation {
    UserSpace(Emulator),
    Netem(KernelLink),
}

/// An emulation whose namespace is being made.
#[derive(Debug)]
pub(crate) enum Beginning {
    UserSpace(emulator::Beginning),
    Netem(netem::Beginning),
}

/// An emulation whose links exist.
pub(crate) enum Connected {
    UserSpace(emulator::Connected),
    Netem(netem::Connected),
}

impl Beginning {
    /// Makes the namespace between the nodes, on a thread that it returns at once.
    pub(crate) fn new(backend: Backend, mtu_bytes: u32) -> Result<Beginning, LabError> {
        Ok(match backend {
            Backend::UserSpace => Beginning::UserSpace(emulator::Beginning::new(mtu_bytes)?),
            Backend::Netem => Beginning::Netem(netem::Beginning::new(mtu_bytes)?),
        })
    }

    /// Creates the links into the namespaces of the nodes that *up* leads from and to.
    pub(crate) fn connect(self, ends: [LinkEnd; 2]) -> Result<Connected, LabError> {
        Ok(match self {
            Beginning::UserSpace(beginning) => Connected::UserSpace(beginning.connect(ends)?),
            Beginning::Netem(beginning) => Connected::Netem(beginning.connect(ends)?),
        })
    }
}

impl Connected {
    /// Starts the emulation; the CPU is that of the emulator's thread, and the kernel has none.
    pub(crate) fn start(
        self,
        network: Network,
        seeds: [Seeds; 2],
        cpu: Option<usize>,
    ) -> Result<Emulation, LabError> {
        Ok(match self {
            Connected::UserSpace(connected) => Emulation::UserSpace(connected.start(network, seeds, cpu)?),
            Connected::Netem(connected) => Emulation::Netem(connected.start(&network, seeds)?),
        })
    }
}

impl Emulation {
    /// What it is.
    pub(crate) const fn backend(&self) -> Backend {
        match self {
            Emulation::UserSpace(_) => Backend::UserSpace,
            Emulation::Netem(_) => Backend::Netem,
        }
    }

    /// Begins anew with this network and seeds (up, down); all counters become zero, what is on the way is dropped. Returns
    /// when that start was, in nanoseconds of the monotonic clock.
    pub(crate) fn restart(&self, network: Network, seeds: [Seeds; 2]) -> Result<u64, LabError> {
        match self {
            Emulation::UserSpace(emulator) => emulator.restart(network, seeds),
            Emulation::Netem(kernel) => kernel.restart(&network, seeds),
        }
    }

    /// Waits until both nodes can be reached; call it once their ends of the link are up.
    pub(crate) fn await_passing(&self) -> Result<(), LabError> {
        match self {
            Emulation::UserSpace(_) => Ok(()),
            Emulation::Netem(kernel) => kernel.await_passing(),
        }
    }

    /// What happened since the last restart.
    pub(crate) fn report(&self) -> Result<LinkReport, LabError> {
        match self {
            Emulation::UserSpace(emulator) => emulator.report(),
            Emulation::Netem(kernel) => kernel.report(),
        }
    }

    /// From now on notes what passes the end of `node`, which is that of `side`; whether it can.
    pub(crate) fn observe(&self, side: usize, node: &str, ports: &[u16]) -> bool {
        match self {
            Emulation::UserSpace(emulator) => {
                emulator.observe(Observer::new(side, node, ports));
                true
            }
            Emulation::Netem(_) => false,
        }
    }

    /// What was noted; nothing is from now on.
    pub(crate) fn end_observing(&self) -> Result<Vec<Seen>, LabError> {
        match self {
            Emulation::UserSpace(emulator) => emulator.end_observing(),
            Emulation::Netem(_) => Ok(Vec::new()),
        }
    }

    /// From now on tells a capture of every frame, or nobody.
    ///
    /// # Errors
    /// The kernel tells nobody.
    pub(crate) fn tap(&self, tap: Option<Tap>) -> Result<(), LabError> {
        match (self, tap) {
            (Emulation::UserSpace(emulator), tap) => {
                emulator.tap(tap);
                Ok(())
            }
            (Emulation::Netem(_), None) => Ok(()),
            (Emulation::Netem(_), Some(_)) => Err(LabError::Unsupported {
                what: "a capture of a link that the kernel emulates".to_owned(),
                remedy: "use the backend `user-space`, or run tcpdump in a node".to_owned(),
            }),
        }
    }
}
