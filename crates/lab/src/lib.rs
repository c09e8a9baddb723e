//! The laboratory: hosts made of namespaces, an emulated network between them, processes inside them.
//!
//! A [`Lab`] is [`Node`]s and the emulated links between. All of it vanishes when it is dropped, and when the tool ends in
//! any other way: namespaces have no name in the file system, and every process in a node dies with that node's process
//! 1, which dies with the tool.
//!
//! Every call that makes the process something else ([`enter`]) or starts threads is explicit; packets and processes
//! are all that this crate knows.

mod affinity;
mod calibration;
pub mod capability;
mod emulation;
mod emulator;
mod error;
mod handover;
mod link;
mod monitor;
mod mounts;
mod netem;
mod netlink;
mod netns;
mod node;
mod offload;
mod probe;
pub mod process;
pub mod registry;
mod stamp;
mod streams;
mod sysctl;
mod terminal;
mod worker;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use model::record::LinkReport;
use model::topology::Role;
use model::{Backend, Network, Pins, Topology};
use path::{LinkDirection, Seeds};

pub use capability::{Access, Capability, Missing, enter, probe, several_users};
use emulation::Emulation;
use emulator::capture;
pub use emulator::observer::{Seen, SeenSegment};
pub use error::LabError;
use handover::Handovers;
pub use monitor::{Monitor, MonitorSpec};
pub use mounts::OwnFile;
pub use netem::probe_netem;
pub use node::{Addresses, CpuUsage, Node};
pub use process::{Exit, Input, Output, Process, Program};
pub use terminal::Terminal;

/// Nodes and the networks between them.
///
/// The fields are in the order of their end: first the processes, then the links, then their namespaces.
#[derive(Debug)]
pub struct Lab {
    nodes: Vec<Node>,
    links: Vec<Link>,
    /// Which of the links are on the route from the client to the server.
    route: Vec<usize>,
    client: usize,
    server: usize,
    capture: Mutex<Option<capture::Writer>>,
}

/// What a lab is made of.
#[derive(Clone, Copy, Debug)]
pub struct LabSpec<'a> {
    /// The nodes and what joins them.
    pub topology: &'a Topology,
    /// MTU, congestion control and initial window.
    pub pins: &'a Pins,
    /// Decides which packets are lost.
    pub seed: u64,
    /// The CPU that the emulators run on; any where `None`.
    pub emulator_cpu: Option<usize>,
    /// What emulates.
    pub backend: Backend,
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
    /// What emulates.
    pub backend: Backend,
}

/// An emulated link.
#[derive(Debug)]
struct Link {
    name: String,
    /// The nodes at its ends.
    ends: [String; 2],
    network: Network,
    seed: u64,
    mtu_bytes: u32,
    emulator: Emulation,
    handovers: Option<Handovers>,
}

impl Lab {
    /// Builds two nodes, `client` and `server`, joined by an emulated network.
    ///
    /// # Errors
    /// As [`Lab::build`].
    pub fn pair(spec: PairSpec<'_>) -> Result<Lab, LabError> {
        let PairSpec { network, pins, seed, emulator_cpu, backend } = spec;
        Lab::build(LabSpec { topology: &Topology::pair(network), pins, seed, emulator_cpu, backend })
    }

    /// Builds every node and link of a topology; each emulated link has a thread of its own.
    ///
    /// # Errors
    /// The rights are missing ([`LabError::Missing`]; see [`enter`]), a network asks for what cannot be had here, or the
    /// kernel refuses a step.
    pub fn build(spec: LabSpec<'_>) -> Result<Lab, LabError> {
        capability::require()?;
        let LabSpec { topology, pins, seed, emulator_cpu, backend } = spec;
        for network in topology.links.iter().filter_map(|link| link.network.as_ref()) {
            backend.check(network, pins.mtu_bytes)?;
        }
        let mut topology = topology.clone();
        let changes = topology.address_changes()?;
        topology.expect(&changes);
        // All at once: most of the time is the kernel's.
        let emulators = topology.links.iter().map(|link| {
            link.network.as_ref().map(|_| emulation::Beginning::new(backend, pins.mtu_bytes)).transpose()
        });
        let emulators: Vec<_> = emulators.collect::<Result<_, _>>()?;
        let nodes: Vec<_> =
            topology.nodes.iter().map(|node| node::Beginning::new(node, pins)).collect::<Result<_, _>>()?;
        let nodes: Vec<Node> = nodes.into_iter().map(node::Beginning::finish).collect::<Result<_, _>>()?;
        let mut connected = Vec::new();
        for (index, (link, emulator)) in topology.links.iter().zip(emulators).enumerate() {
            let [first, second] = link
                .ends
                .map(|(node, interface)| nodes[node].end(&topology.nodes[node].interfaces[interface]));
            let ends = [first?, second?];
            match emulator.zip(link.network.as_ref()) {
                Some((emulator, network)) => connected.push((index, link, network, emulator.connect(ends)?)),
                None => nodes[link.ends[0].0].begin_wiring(ends, pins.mtu_bytes).wait()??,
            }
        }
        let configured: Vec<_> = nodes
            .iter()
            .zip(&topology.nodes)
            .map(|(node, spec)| node.begin_configuring(spec, pins))
            .collect();
        let on_the_route: Vec<usize> =
            topology.route().unwrap_or_default().into_iter().map(|step| step.link).collect();
        let (mut links, mut route) = (Vec::new(), Vec::new());
        for (index, link, network, emulator) in connected {
            if on_the_route.contains(&index) {
                route.push(links.len());
            }
            let seed = link_seed(seed, index);
            let emulator = emulator.start(network.clone(), run_seeds(seed), emulator_cpu)?;
            let changes = changes.iter().find(|change| change.link == index).cloned();
            let handovers = changes
                .map(|change| {
                    let node = change.end.0;
                    Handovers::new(&nodes[node], &topology.nodes[node], change, pins)
                })
                .transpose()?;
            links.push(Link {
                name: link.name.clone(),
                ends: link.ends.map(|(node, _)| topology.nodes[node].name.clone()),
                network: network.clone(),
                seed,
                mtu_bytes: pins.mtu_bytes,
                emulator,
                handovers,
            });
        }
        for pending in configured {
            pending.wait()??;
        }
        await_passing(&nodes, &topology, &links)?;
        let (client, server) = (topology.client, topology.server);
        Ok(Lab { nodes, links, route, client, server, capture: Mutex::default() })
    }

    /// Both nodes are this machine, joined by its loopback: nothing is emulated, there are no reports and there is no
    /// calibration.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn loopback() -> Result<Lab, LabError> {
        Lab::loopback_of(["client", "server"])
    }

    /// The same with nodes of these names: first the client's, then the server's, then any others.
    ///
    /// # Errors
    /// As [`Lab::loopback`].
    pub fn loopback_of(names: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Lab, LabError> {
        let nodes: Vec<Node> =
            names.into_iter().map(|name| Node::direct(name.as_ref())).collect::<Result<_, _>>()?;
        let (links, route) = (Vec::new(), Vec::new());
        Ok(Lab { nodes, links, route, client: 0, server: 1, capture: Mutex::default() })
    }

    /// Whether there is an emulated network between nodes.
    pub const fn is_emulated(&self) -> bool {
        !self.links.is_empty()
    }

    /// The node of those who are measured.
    pub fn client(&self) -> &Node {
        &self.nodes[self.client]
    }

    /// The node of what they ask.
    pub fn server(&self) -> &Node {
        &self.nodes[self.server]
    }

    /// Every node, in the topology's order.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name() == name)
    }

    /// Counters begin at zero, the networks' timelines at their start and their randomness at its seed. Handovers happen from
    /// then on, and only then.
    ///
    /// # Errors
    /// An emulator ended, or a handover before failed.
    pub fn begin_measuring(&self) -> Result<(), LabError> {
        for link in &self.links {
            let start_ns = link.restart()?;
            if let Some(handovers) = &link.handovers {
                handovers.begin(&link.network, start_ns)?;
            }
        }
        Ok(())
    }

    /// Writes every frame of the emulated links to a pcapng file from now on: where it left a node, where it reached one, and
    /// what was lost with the reason as a comment. Nothing is written where nothing is emulated.
    ///
    /// An interface of the file has its node's name, after the link's where there are several links.
    ///
    /// # Errors
    /// The file cannot be made, or the one before could not be written.
    pub fn begin_capture(&self, path: &Path) -> Result<(), LabError> {
        self.end_capture()?;
        if self.links.is_empty() {
            return Ok(());
        }
        let is_alone = self.links.len() == 1;
        let sides = |link: &Link| {
            link.ends
                .each_ref()
                .map(|node| if is_alone { node.clone() } else { format!("{}:{node}", link.name) })
        };
        let sides: Vec<[String; 2]> = self.links.iter().map(sides).collect();
        let (taps, writer) = capture::begin(path, &sides)?;
        *self.capture.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        self.links.iter().zip(taps).try_for_each(|(link, tap)| link.emulator.tap(Some(tap)))
    }

    /// Ends the file of [`Lab::begin_capture`]; without this it is ended with the lab.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn end_capture(&self) -> Result<(), LabError> {
        let writer = self.capture.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(writer) = writer else { return Ok(()) };
        self.links.iter().try_for_each(|link| link.emulator.tap(None))?;
        writer.finish()
    }

    /// Notes from now on when TCP payload over these ports reaches and leaves a node, at its ends of emulated links. Whether
    /// it can: not where the node's links are wires, where the kernel emulates, and where nothing is emulated.
    pub fn begin_observing(&self, node: &str, ports: &[u16]) -> bool {
        let mut is_seen = false;
        for link in &self.links {
            for (side, _) in link.ends.iter().enumerate().filter(|(_, end)| *end == node) {
                is_seen |= link.emulator.observe(side, node, ports);
            }
        }
        is_seen
    }

    /// What was noted since [`Lab::begin_observing`], for each link that is seen; nothing is noted from now on.
    ///
    /// # Errors
    /// An emulator ended.
    pub fn end_observing(&self) -> Result<Vec<Seen>, LabError> {
        let mut all = Vec::new();
        for link in &self.links {
            all.extend(link.emulator.end_observing()?);
        }
        Ok(all)
    }

    /// What each link did since [`Lab::begin_measuring`]; empty where nothing is emulated.
    ///
    /// # Errors
    /// The emulator ended, or saw a frame longer than the link allows, or a handover failed.
    pub fn reports(&self) -> Result<Vec<LinkReport>, LabError> {
        let report = |link: &Link| {
            link.handovers.as_ref().map_or(Ok(()), Handovers::check)?;
            Ok(LinkReport { link: link.name.clone(), ..link.emulator.report()? })
        };
        self.links.iter().map(report).collect()
    }
}

impl Link {
    /// Begins anew as its network says; returns when that was, in nanoseconds of the monotonic clock.
    fn restart(&self) -> Result<u64, LabError> {
        self.emulator.restart(self.network.clone(), run_seeds(self.seed))
    }
}

fn has_switch(topology: &Topology) -> bool {
    topology.nodes.iter().any(|node| node.role == Role::Switch)
}

/// Waits until frames pass every link.
fn await_passing(nodes: &[Node], topology: &Topology, links: &[Link]) -> Result<(), LabError> {
    // An emulator's end of a link was set up before the node's, and passes frames by itself.
    if topology.links.iter().any(|link| link.network.is_none()) || has_switch(topology) {
        let specs = nodes.iter().zip(&topology.nodes);
        let waiting: Vec<_> = specs.map(|(node, spec)| node.begin_waiting(spec)).collect();
        for pending in waiting {
            pending.wait()??;
        }
    }
    links.iter().try_for_each(|link| link.emulator.await_passing())
}

/// The seed of a topology's link; the first has the lab's own.
const fn link_seed(seed: u64, index: usize) -> u64 {
    // An odd constant (the golden ratio's bits, as in SplitMix64) keeps the seeds of neighbours apart.
    seed ^ (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The seeds of the two directions.
fn run_seeds(seed: u64) -> [Seeds; 2] {
    [LinkDirection::Up, LinkDirection::Down].map(|way| Seeds::run(seed, way))
}
