//! The laboratory: hosts made of namespaces, an emulated network between them, processes inside them.
//!
//! A [`Lab`] is two [`Node`]s and the emulator between. All of it vanishes when it is dropped, and when the tool ends in
//! any other way: namespaces have no name in the file system, and every process in a node dies with that node's process
//! 1, which dies with the tool.
//!
//! Every call that makes the process something else ([`enter`]) or starts threads is explicit; packets and processes
//! are all that this crate knows.

mod affinity;
pub mod capability;
mod emulator;
mod error;
mod link;
mod mounts;
mod netlink;
mod netns;
mod node;
mod offload;
mod probe;
pub mod process;
pub mod registry;
mod stamp;
mod sysctl;
mod terminal;
mod worker;

use model::record::{Calibration, LinkReport};
use model::{Network, Pins};
use path::{Seeds, Way};

pub use capability::{Access, Capability, Missing, enter, probe, several_users};
use emulator::Emulator;
pub use error::LabError;
use link::End;
pub use mounts::OwnFile;
pub use node::{Addresses, CpuUsage, Node};
pub use process::{Exit, Input, Output, Process, Program};
pub use terminal::Terminal;

/// Two nodes and the network between them.
///
/// The fields are in the order of their end: first the processes, then the link, then its namespace.
#[derive(Debug)]
pub struct Lab {
    client: Node,
    server: Node,
    link: Option<Link>,
}

/// What a pair is made of.
#[derive(Clone, Copy, Debug)]
pub struct PairSpec<'a> {
    /// What the way between the nodes does to packets.
    pub network: &'a Network,
    /// MTU, congestion control and initial window.
    pub pins: &'a Pins,
    /// Decides which packets are lost.
    pub seed: u64,
    /// The CPU that the emulator runs on; any where `None`.
    pub emulator_cpu: Option<usize>,
}

#[derive(Debug)]
struct Link {
    network: Network,
    seed: u64,
    emulator: Emulator,
}

impl Lab {
    /// Builds two nodes, `client` and `server`, joined by an emulated network.
    ///
    /// # Errors
    /// The rights are missing ([`LabError::Missing`]; see [`enter`]) or the kernel refuses a step.
    pub fn pair(spec: PairSpec<'_>) -> Result<Lab, LabError> {
        capability::require()?;
        let PairSpec { network, pins, seed, emulator_cpu } = spec;
        if network.timeline.iter().any(|change| change.handover) {
            return Err(LabError::Unsupported { network: network.name.clone(), what: "a handover" });
        }
        let emulator = emulator::Beginning::new(pins.mtu_bytes)?;
        let nodes = [End::Client, End::Server].map(|end| node::Beginning::new(end, pins));
        let [client, server] = nodes;
        let nodes = [client?.finish()?, server?.finish()?];
        let emulator = emulator.connect([nodes[0].network()?, nodes[1].network()?])?;
        let configured = nodes.each_ref().map(|node| node.begin_configuring(pins));
        let emulator = emulator.start(network.clone(), run_seeds(seed), emulator_cpu)?;
        for pending in configured {
            pending.wait()??;
        }
        let [client, server] = nodes;
        Ok(Lab { client, server, link: Some(Link { network: network.clone(), seed, emulator }) })
    }

    /// Both nodes are this machine, joined by its loopback: nothing is emulated, there are no reports and there is no
    /// calibration.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn loopback() -> Result<Lab, LabError> {
        let (client, server) = (Node::direct(End::Client)?, Node::direct(End::Server)?);
        Ok(Lab { client, server, link: None })
    }

    /// Whether there is an emulated network between the nodes.
    pub const fn is_emulated(&self) -> bool {
        self.link.is_some()
    }

    /// The node of the clients.
    pub const fn client(&self) -> &Node {
        &self.client
    }

    /// The node of the servers.
    pub const fn server(&self) -> &Node {
        &self.server
    }

    /// Every node.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        [&self.client, &self.server].into_iter()
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes().find(|node| node.name() == name)
    }

    /// Measures round trips on the empty path, over the part of the network that leaves nothing to chance (delay and
    /// constant rate); `None` where nothing is emulated. It uses up none of the run's randomness.
    ///
    /// # Errors
    /// The emulator or a probe's socket failed.
    pub fn calibrate(&self, probes: u32) -> Result<Option<Calibration>, LabError> {
        let Some(link) = &self.link else { return Ok(None) };
        let certain = link.network.certain();
        let seeds = [Way::Up, Way::Down].map(|way| Seeds::calibration(link.seed, way));
        link.emulator.restart(certain.clone(), seeds)?;
        let calibration = probe::round_trips(&self.client, &self.server, &certain, probes)?;
        self.begin_measuring()?;
        Ok(Some(calibration))
    }

    /// Counters begin at zero, the network's timeline at its start and its randomness at its seed.
    ///
    /// # Errors
    /// The emulator ended.
    pub fn begin_measuring(&self) -> Result<(), LabError> {
        self.link
            .as_ref()
            .map_or(Ok(()), |link| link.emulator.restart(link.network.clone(), run_seeds(link.seed)))
    }

    /// What each link did since [`Lab::begin_measuring`]; empty where nothing is emulated.
    ///
    /// # Errors
    /// The emulator ended, or saw a frame longer than the link allows.
    pub fn reports(&self) -> Result<Vec<LinkReport>, LabError> {
        self.link.iter().map(|link| link.emulator.report()).collect()
    }
}

/// The seeds of the two directions.
fn run_seeds(seed: u64) -> [Seeds; 2] {
    [Way::Up, Way::Down].map(|way| Seeds::run(seed, way))
}
