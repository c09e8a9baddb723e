//! The contract between a lab and what emulates its links: the user-space emulator or the kernel.

use std::fmt::Debug;

use model::record::LinkReport;
use model::{Backend, Network};
use path::Seeds;

use crate::capture::Tap;
use crate::error::LabError;
use crate::link::LinkEnd;
use crate::observer::Observation;

/// Creates the link's interfaces in the namespaces of the two nodes; *up* leads from the first to the second.
pub(crate) type Connect = Box<dyn FnOnce([LinkEnd; 2]) -> Result<Start, LabError>>;

/// Starts to emulate a network with the seeds of *up* and *down*. An emulator's thread runs on the given CPU.
pub(crate) type Start =
    Box<dyn FnOnce(&Network, [Seeds; 2], Option<usize>) -> Result<Box<dyn Emulation>, LabError>>;

/// A link that treats packets as a network prescribes.
pub(crate) trait Emulation: Debug + Send + Sync {
    fn backend(&self) -> Backend;

    /// Restarts with this network, at the start of its timeline, and these seeds (up, down): all counters
    /// become zero, and packets in flight are dropped. Returns the time of the restart in nanoseconds of the
    /// monotonic clock.
    fn restart(&self, network: &Network, seeds: [Seeds; 2]) -> Result<u64, LabError>;

    /// Changes the network while packets are on the link; its timeline continues from its start.
    ///
    /// # Errors
    /// The backend cannot, or the emulator ended.
    fn change(&self, network: &Network) -> Result<(), LabError>;

    /// Makes the NAT at the first end forget its mappings now.
    ///
    /// # Errors
    /// The backend cannot, or the emulator ended.
    fn rebind(&self) -> Result<(), LabError>;

    /// What happened since the last restart.
    fn report(&self) -> Result<LinkReport, LabError>;

    /// Waits until both nodes are reachable; call it once their ends of the link are up.
    fn await_passing(&self) -> Result<(), LabError> {
        Ok(())
    }

    /// Starts to record what passes the end `side` of the link, which is at `node`; false where the backend
    /// cannot.
    fn observe(&self, _side: usize, _node: &str, _ports: &[u16]) -> bool {
        false
    }

    /// Stops recording and returns what was recorded.
    fn end_observing(&self) -> Result<Vec<Observation>, LabError> {
        Ok(Vec::new())
    }

    /// Sends every frame to a capture from now on, or to none.
    ///
    /// # Errors
    /// The backend cannot capture.
    fn tap(&self, tap: Option<Tap>) -> Result<(), LabError>;
}
