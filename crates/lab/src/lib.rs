//! The laboratory: hosts made of namespaces, emulated networks between them, and processes inside them.
//!
//! A [`Lab`] consists of [`Node`]s and the emulated links between them. Everything ends when the `Lab` is
//! dropped and when the tool ends: no namespace has a name in the file system, and all processes of a node
//! end with the node's process 1, which ends with the tool. This crate handles packets and processes; it
//! knows no HTTP.
//!
//! ```no_run
//! use lab::{Lab, PairSpec, Program};
//! use model::{Backend, Network, Pins};
//!
//! // While the process has a single thread: an ordinary user gets a user namespace.
//! lab::enter()?;
//! let (network, pins) = (Network::default(), Pins::default());
//! let (emulator_cpu, backend) = (None, Backend::UserSpace);
//! let lab = Lab::pair(PairSpec { network: &network, pins: &pins, seed: 1, emulator_cpu, backend })?;
//! let server = lab.server().addresses().v4.to_string();
//! lab.begin_measuring()?;
//! lab.client().spawn(Program::new("ping").args(["-c", "3", &server]))?.wait()?;
//! for report in lab.reports()? {
//!     println!("{} packets up, {} down", report.up.packets_in, report.down.packets_in);
//! }
//! # Ok::<(), lab::LabError>(())
//! ```

mod affinity;
mod calibration;
mod capability;
mod capture;
mod clock;
mod emulation;
mod emulator;
mod error;
mod handover;
mod limits;
mod link;
mod monitor;
mod mounts;
mod netem;
mod netlink;
mod netlink_bytes;
mod netns;
mod node;
mod observer;
mod offload;
mod pcapng;
mod priority;
mod probe;
mod process;
mod procfs;
pub mod registry;
mod relay;
mod settings;
mod stamp;
mod streams;
mod sysctl;
mod terminal;
mod thread;
mod worker;

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use model::record::LinkReport;
use model::topology::{AddressChange, Role};
use model::{Backend, Network, Pins, Topology};
use path::{LinkDirection, Seeds};

pub use capability::{Access, Capability, enter, probe, several_users};
use emulation::Emulation;
use error::Step;
pub use error::{LabError, MissingCapability};
use handover::{Followers, Handovers, Listeners};
pub use limits::{most_open_files, raise_open_files};
pub use monitor::{Monitor, MonitorSpec};
pub use mounts::OwnFile;
pub use netem::probe_netem;
use node::NodeBuilder;
pub use node::{Addresses, CpuUsage, Node};
pub use observer::{Observation, ObservedSegment};
pub use process::{Exit, Input, Output, Process, Program};
pub use relay::Relay;
pub use settings::LinkSettings;
pub use terminal::Terminal;

/// Nodes and the networks between them.
///
/// The fields are in the order in which they are dropped: processes, links, namespaces.
#[derive(Debug)]
pub struct Lab {
    nodes: Vec<Node>,
    links: Vec<Link>,
    /// The indices of the links on the route from the client to the server.
    route: Vec<usize>,
    client: usize,
    server: usize,
    /// Who learns of every changed address.
    listeners: Listeners,
    capture: Mutex<Option<capture::Writer>>,
}

/// The description of a lab.
#[derive(Clone, Copy, Debug)]
pub struct LabSpec<'a> {
    /// The nodes and their links.
    pub topology: &'a Topology,
    /// MTU, congestion control and initial window.
    pub settings: LinkSettings,
    /// Decides which packets are lost.
    pub seed: u64,
    /// The CPU of the emulators; any where `None`.
    pub emulator_cpu: Option<usize>,
    /// What emulates the network.
    pub backend: Backend,
}

/// The description of a pair of nodes.
#[derive(Clone, Copy, Debug)]
pub struct PairSpec<'a> {
    /// The network between the nodes.
    pub network: &'a Network,
    /// MTU, congestion control and initial window.
    pub pins: &'a Pins,
    /// Decides which packets are lost.
    pub seed: u64,
    /// The CPU of the emulator; any where `None`.
    pub emulator_cpu: Option<usize>,
    /// What emulates the network.
    pub backend: Backend,
}

/// An emulated link.
#[derive(Debug)]
struct Link {
    name: String,
    /// The nodes at its ends.
    ends: [String; 2],
    network: Mutex<Network>,
    seed: u64,
    mtu_bytes: u32,
    emulator: Box<dyn Emulation>,
    handovers: Option<Handovers>,
}

impl Lab {
    /// Builds two nodes, `client` and `server`, joined by an emulated network.
    ///
    /// # Errors
    /// As [`Lab::build`].
    pub fn pair(spec: PairSpec<'_>) -> Result<Lab, LabError> {
        let PairSpec { network, pins, seed, emulator_cpu, backend } = spec;
        let (topology, settings) = (&Topology::pair(network), LinkSettings::from(pins));
        Lab::build(LabSpec { topology, settings, seed, emulator_cpu, backend })
    }

    /// Builds every node and link of a topology. Each emulated link has its own thread.
    ///
    /// # Errors
    /// Capabilities are missing ([`LabError::Missing`]; see [`enter`]), the backend cannot emulate a network,
    /// or a system call fails.
    pub fn build(spec: LabSpec<'_>) -> Result<Lab, LabError> {
        capability::require()?;
        let LabSpec { topology, settings, seed, emulator_cpu, backend } = spec;
        let mtu_bytes = settings.mtu_bytes;
        limits::prepare(topology.nodes.len(), topology.links.len())?;
        for network in topology.links.iter().filter_map(|link| link.network.as_ref()) {
            backend.check(network, mtu_bytes)?;
        }
        let mut topology = topology.clone();
        let changes = topology.address_changes()?;
        topology.expect(&changes);
        // All concurrently: the kernel takes most of the time.
        let networks = topology.links.iter().map(|link| link.network.as_ref());
        let count = networks.clone().flatten().count();
        let begin = |network: &Network| match backend {
            Backend::UserSpace => emulator::begin(mtu_bytes, network, count),
            Backend::Netem => netem::begin(mtu_bytes),
        };
        let emulators: Vec<_> =
            networks.map(|network| network.map(begin).transpose()).collect::<Result<_, _>>()?;
        let nodes: Vec<_> =
            topology.nodes.iter().map(|node| NodeBuilder::new(node, settings)).collect::<Result<_, _>>()?;
        let nodes: Vec<Node> = nodes.into_iter().map(NodeBuilder::finish).collect::<Result<_, _>>()?;
        let mut connected = Vec::new();
        for (index, (link, emulator)) in topology.links.iter().zip(emulators).enumerate() {
            let [first, second] = link
                .ends
                .map(|(node, interface)| nodes[node].end(&topology.nodes[node].interfaces[interface]));
            let ends = [first?, second?];
            match emulator.zip(link.network.as_ref()) {
                Some((connect, network)) => connected.push((index, link, network, connect(ends)?)),
                None => nodes[link.ends[0].0].begin_wiring(ends, mtu_bytes).wait()??,
            }
        }
        let configured: Vec<_> = nodes
            .iter()
            .zip(&topology.nodes)
            .map(|(node, spec)| node.begin_configuring(spec, settings))
            .collect();
        let on_the_route: Vec<usize> =
            topology.route().unwrap_or_default().into_iter().map(|step| step.link).collect();
        let (mut links, mut route, listeners) = (Vec::new(), Vec::new(), Listeners::default());
        for (index, link, network, start) in connected {
            if on_the_route.contains(&index) {
                route.push(links.len());
            }
            let seed = link_seed(seed, index);
            let emulator = start(network, run_seeds(seed), emulator_cpu)?;
            let change = changes.iter().find(|change| change.link == index);
            let handovers = change
                .map(|change| handovers(change, &nodes, &topology, settings, &listeners))
                .transpose()?;
            links.push(Link {
                name: link.name.clone(),
                ends: link.ends.map(|(node, _)| topology.nodes[node].name.clone()),
                network: Mutex::new(network.clone()),
                seed,
                mtu_bytes,
                emulator,
                handovers,
            });
        }
        for pending in configured {
            pending.wait()??;
        }
        await_passing(&nodes, &topology, &links)?;
        let (client, server) = (topology.client, topology.server);
        Ok(Lab { nodes, links, route, client, server, listeners, capture: Mutex::default() })
    }

    /// A lab whose two nodes are this machine, joined by its loopback. Nothing is emulated, reported or
    /// calibrated.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn loopback() -> Result<Lab, LabError> {
        Lab::loopback_of(["client", "server"])
    }

    /// The same with nodes of these names: the client's, the server's, then any others.
    ///
    /// # Errors
    /// As [`Lab::loopback`].
    pub fn loopback_of(names: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Lab, LabError> {
        let nodes: Vec<Node> =
            names.into_iter().map(|name| Node::direct(name.as_ref())).collect::<Result<_, _>>()?;
        let (links, route, listeners) = (Vec::new(), Vec::new(), Listeners::default());
        Ok(Lab { nodes, links, route, client: 0, server: 1, listeners, capture: Mutex::default() })
    }

    /// Whether the lab has an emulated network.
    pub const fn is_emulated(&self) -> bool {
        !self.links.is_empty()
    }

    /// The node of the measured clients.
    pub fn client(&self) -> &Node {
        &self.nodes[self.client]
    }

    /// The node of the measured server.
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

    /// Starts the measurement: counters at zero, the networks' timelines at their start, random streams at
    /// their seeds. Handovers happen only after this call.
    ///
    /// # Errors
    /// An emulator ended, or an earlier handover failed.
    pub fn begin_measuring(&self) -> Result<(), LabError> {
        self.links.iter().try_for_each(|link| link.begin(&link.network()))
    }

    /// As [`Lab::begin_measuring`], but until [`Lab::begin_timelines`] every network stays as it is before
    /// its timeline: for clients that need time until they begin.
    ///
    /// # Errors
    /// As [`Lab::begin_measuring`].
    pub fn begin_measuring_without_timelines(&self) -> Result<(), LabError> {
        let before = |network: Network| Network { timeline: Vec::new(), ..network };
        self.links.iter().try_for_each(|link| link.begin(&before(link.network())))
    }

    /// Starts the measurement of the links with a timeline again, at its start. Packets on them are lost.
    ///
    /// # Errors
    /// As [`Lab::begin_measuring`].
    pub fn begin_timelines(&self) -> Result<(), LabError> {
        let networks = self.links.iter().map(|link| (link, link.network()));
        networks
            .filter(|(_, network)| !network.timeline.is_empty())
            .try_for_each(|(link, network)| link.begin(&network))
    }

    /// Calls this with the old and the new address of a host after every change of an address from now on.
    pub fn on_address_change(&self, listener: impl FnMut(IpAddr, IpAddr) + Send + 'static) {
        self.listeners.add(listener);
    }

    /// The names of the emulated links.
    pub fn link_names(&self) -> Vec<&str> {
        self.links.iter().map(|link| link.name.as_str()).collect()
    }

    /// The network that a link emulates now.
    pub fn network_of_link(&self, name: &str) -> Option<Network> {
        self.links.iter().find(|link| link.name == name).map(Link::network)
    }

    /// Changes the network of a link while packets are on it. The network's timeline counts from
    /// [`Lab::begin_measuring`]; handovers stay those of the first network.
    ///
    /// # Errors
    /// There is no link of this name, the backend cannot, or an emulator ended.
    pub fn change_link(&self, name: &str, network: &Network) -> Result<(), LabError> {
        let link = self.emulated(name)?;
        link.emulator.change(network)?;
        *link.network.lock().unwrap_or_else(PoisonError::into_inner) = network.clone();
        Ok(())
    }

    /// Makes the NAT at the first end of a link forget its mappings: all connections get new ports.
    ///
    /// # Errors
    /// As [`Lab::change_link`].
    pub fn rebind(&self, name: &str) -> Result<(), LabError> {
        self.emulated(name)?.emulator.rebind()
    }

    fn emulated(&self, name: &str) -> Result<&Link, LabError> {
        let link = self.links.iter().find(|link| link.name == name);
        link.ok_or(std::io::ErrorKind::NotFound).step(|| format!("finding the emulated link `{name}`"))
    }

    /// Writes every frame of the emulated links to a pcapng file from now on: where it leaves a node, where
    /// it reaches one, and lost frames with the reason as a comment. Without emulation nothing is written.
    ///
    /// An interface in the file has its node's name, preceded by the link's name where there are several
    /// links.
    ///
    /// # Errors
    /// The file cannot be created, or the previous file could not be written.
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

    /// Ends the file of [`Lab::begin_capture`]. Dropping the lab ends it too.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn end_capture(&self) -> Result<(), LabError> {
        let writer = self.capture.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(writer) = writer else { return Ok(()) };
        self.links.iter().try_for_each(|link| link.emulator.tap(None))?;
        writer.join()?.step(|| "writing a capture".to_owned())
    }

    /// Records from now on when TCP payload over these ports reaches and leaves a node, at its ends of
    /// emulated links. Returns false where that is impossible: all links of the node are wires, or the kernel
    /// emulates them.
    pub fn begin_observing(&self, node: &str, ports: &[u16]) -> bool {
        let mut is_observed = false;
        for link in &self.links {
            for (side, _) in link.ends.iter().enumerate().filter(|(_, end)| *end == node) {
                is_observed |= link.emulator.observe(side, node, ports);
            }
        }
        is_observed
    }

    /// Stops recording and returns what was recorded since [`Lab::begin_observing`], for each observed link.
    ///
    /// # Errors
    /// An emulator ended.
    pub fn end_observing(&self) -> Result<Vec<Observation>, LabError> {
        let mut all = Vec::new();
        for link in &self.links {
            all.extend(link.emulator.end_observing()?);
        }
        Ok(all)
    }

    /// A report of each link since [`Lab::begin_measuring`]; empty where nothing is emulated.
    ///
    /// # Errors
    /// An emulator ended or received a frame longer than the link allows, or a handover failed.
    pub fn reports(&self) -> Result<Vec<LinkReport>, LabError> {
        let report = |link: &Link| {
            link.handovers.as_ref().map_or(Ok(()), Handovers::check)?;
            Ok(LinkReport { link: link.name.clone(), ..link.emulator.report()? })
        };
        self.links.iter().map(report).collect()
    }
}

impl Link {
    fn network(&self) -> Network {
        self.network.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Restarts its network; returns the time of the restart in nanoseconds of the monotonic clock.
    fn restart(&self) -> Result<u64, LabError> {
        self.emulator.restart(&self.network(), run_seeds(self.seed))
    }

    /// Restarts with this network, and begins its handovers.
    fn begin(&self, network: &Network) -> Result<(), LabError> {
        let start_ns = self.emulator.restart(network, run_seeds(self.seed))?;
        self.handovers.as_ref().map_or(Ok(()), |handovers| handovers.begin(network, start_ns))
    }
}

fn has_switch(topology: &Topology) -> bool {
    topology.nodes.iter().any(|node| node.role == Role::Switch)
}

/// Waits until frames pass every link.
fn await_passing(nodes: &[Node], topology: &Topology, links: &[Link]) -> Result<(), LabError> {
    // An emulator's end of a link was set up before the node's end, and passes frames at once.
    if topology.links.iter().any(|link| link.network.is_none()) || has_switch(topology) {
        let specs = nodes.iter().zip(&topology.nodes);
        let waiting: Vec<_> = specs.map(|(node, spec)| node.begin_waiting(spec)).collect();
        for pending in waiting {
            pending.wait()??;
        }
    }
    links.iter().try_for_each(|link| link.emulator.await_passing())
}

/// The handovers of a link, at the node whose address changes.
fn handovers(
    change: &AddressChange,
    nodes: &[Node],
    topology: &Topology,
    settings: LinkSettings,
    listeners: &Listeners,
) -> Result<Handovers, LabError> {
    let node = change.end.0;
    let covered = nodes.iter().map(Node::covered).collect();
    let followers = Followers { files: covered, listeners: listeners.clone() };
    Handovers::new(&nodes[node], &topology.nodes[node], change.clone(), settings, followers)
}

/// The seed of a topology's link; the first link has the lab's seed.
const fn link_seed(seed: u64, index: usize) -> u64 {
    // An odd constant (the bits of the golden ratio, as in SplitMix64) separates the seeds of neighbours.
    seed ^ (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The seeds of the two directions.
fn run_seeds(seed: u64) -> [Seeds; 2] {
    [LinkDirection::Up, LinkDirection::Down].map(|direction| Seeds::run(seed, direction))
}
