//! The kernel as emulator: queueing disciplines (tc(8)) at two devices between the nodes.
//!
//! ```text
//! node ═ first ─ bridge ─ near ═ far ─ bridge ─ second ═ node
//! ```
//!
//! `═` is a veth pair. *Up*, a packet leaves at `near`, where loss, duplication, queue and rate are, and then at
//! `second`, where the delay is; *down* at `far` and `first`. Each bridge has two ports, does not learn and hands on
//! what is for one node only, so it is a wire that keeps the order. Nothing of this takes a thread: the lab's own configures,
//! asks for counters and sleeps.

mod bytes;
mod options;
mod probe;
mod statistics;
mod tree;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use model::network::kernel::{KernelDirection, Unhonoured, UnhonouredKey};
use model::record::LinkReport;
use model::{Backend, Network};
use path::Seeds;

pub use probe::probe_netem;
pub(crate) use statistics::Counters;
use statistics::{Asked, Carried};
pub(crate) use tree::Qdisc;

use crate::emulator::monotonic_ns;
use crate::error::{LabError, Step};
use crate::link::{self, LinkEnd};
use crate::netlink::{Netlink, Veth};
use crate::worker::{Pending, Worker};
use crate::{netns, offload, sysctl};

const THREAD: &str = "netem";
/// The interfaces that lead to the nodes.
const SIDES: [&str; 2] = ["first", "second"];
/// The pair of interfaces in the middle.
const MIDDLE: [&str; 2] = ["near", "far"];
const BRIDGES: [&str; 2] = ["bridge0", "bridge1"];
/// The Ethernet address of `far`, which nobody ever writes to.
const FAR_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0xfe];

/// The namespace between two nodes, while it is being made.
#[derive(Debug)]
pub(crate) struct Beginning {
    worker: Worker,
    middle: Pending<Result<[u32; 2], LabError>>,
    mtu_bytes: u32,
}

/// The namespace with links to the nodes.
pub(crate) struct Connected {
    worker: Worker,
    devices: Devices,
    mtu_bytes: u32,
}

/// A link that the kernel emulates.
#[derive(Debug)]
pub(crate) struct KernelLink {
    worker: Worker,
    devices: Devices,
    mtu_bytes: u32,
    state: Mutex<State>,
}

/// The indices of the interfaces, of which frames leave at one after the other.
#[derive(Clone, Copy, Debug)]
struct Devices {
    /// `near`, `second`.
    up: [u32; 2],
    /// `far`, `first`.
    down: [u32; 2],
}

/// What was asked for since the last restart, and what had come in before.
#[derive(Clone, Debug)]
struct State {
    asked: [Asked; 2],
    carried: [Carried; 2],
}

impl Beginning {
    /// Makes the namespace and its middle, on a thread that it returns at once.
    pub(crate) fn new(mtu_bytes: u32) -> Result<Beginning, LabError> {
        let worker = Worker::new(THREAD)?;
        let middle = worker.begin(move || {
            let network = netns::unshare_network()?;
            sysctl::apply_silent()?;
            create_middle(&network, mtu_bytes)
        });
        Ok(Beginning { worker, middle, mtu_bytes })
    }

    /// Creates the links into the namespaces of the nodes that *up* leads from and to.
    pub(crate) fn connect(self, ends: [LinkEnd; 2]) -> Result<Connected, LabError> {
        let Beginning { worker, middle, mtu_bytes } = self;
        let [near, far] = middle.wait()??;
        let [first, second] = worker.run(move || {
            let [one, other] = &ends;
            let [first, second] =
                [link::create(SIDES[0], one, mtu_bytes)?, link::create(SIDES[1], other, mtu_bytes)?];
            let what = || "joining the interfaces between two nodes".to_owned();
            let mut netlink = Netlink::open().step(what)?;
            for (bridge, ports) in BRIDGES.into_iter().zip([[first, near], [far, second]]) {
                join(&mut netlink, bridge, ports, mtu_bytes).step(what)?;
            }
            Ok([first, second])
        })?;
        let devices = Devices { up: [near, second], down: [far, first] };
        Ok(Connected { worker, devices, mtu_bytes })
    }
}

impl Connected {
    /// Puts the network in place.
    pub(crate) fn start(self, network: &Network, seeds: [Seeds; 2]) -> Result<KernelLink, LabError> {
        let Connected { worker, devices, mtu_bytes } = self;
        let state = State { asked: [Asked::default(); 2], carried: [Carried::default(); 2] };
        let link = KernelLink { worker, devices, mtu_bytes, state: Mutex::new(state) };
        link.restart(network, seeds)?;
        Ok(link)
    }
}

impl KernelLink {
    /// Begins anew with this network; all counters become zero, what is on the way is dropped. Where the kernel's netem
    /// takes a seed (Linux 6.6), the same seeds lose the same packets again. Returns when that was, in nanoseconds of the
    /// monotonic clock.
    ///
    /// # Errors
    /// The network asks for what netem cannot do, or for a queueing discipline that this kernel lacks.
    pub(crate) fn restart(&self, network: &Network, seeds: [Seeds; 2]) -> Result<u64, LabError> {
        let directions =
            [("up", &network.up), ("down", &network.down)].map(|(way, direction)| {
                KernelDirection::of(direction, self.mtu_bytes).map_err(|UnhonouredKey { key, why }| {
                    Unhonoured { network: network.name.clone(), key: format!("{way}.{key}"), why }
                })
            });
        let [up, down] = directions;
        let (up, down) = (up?, down?);
        let asked = [Asked::of(&up), Asked::of(&down)];
        let [up_seed, down_seed] = seeds.map(Seeds::whole);
        let devices = self.devices;
        let carried = self.worker.run(move || {
            let ticks =
                options::Ticks::read().step(|| "reading the clock of packet scheduling".to_owned())?;
            let mut netlink =
                Netlink::open().step(|| "opening a netlink socket between two nodes".to_owned())?;
            // From the end to the beginning, so that nothing waits where nobody will let it go.
            for (devices, direction, seed) in [(devices.up, &up, up_seed), (devices.down, &down, down_seed)] {
                let [first, second] = devices;
                replace(&mut netlink, second, &tree::second(direction, seed))?;
                replace(&mut netlink, first, &tree::first(direction, seed, &ticks))?;
            }
            let text = std::fs::read_to_string("/proc/thread-self/net/dev");
            let text = text.step(|| "reading the counters of interfaces".to_owned())?;
            Ok(SIDES.map(|side| statistics::carried(&text, side)))
        })?;
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State { asked, carried };
        Ok(monotonic_ns())
    }

    /// Waits until the bridges hand on what comes.
    pub(crate) fn await_passing(&self) -> Result<(), LabError> {
        let Devices { up: [near, second], down: [far, first] } = self.devices;
        self.worker.run(move || {
            link::await_passing(&[first, near, far, second])
                .step(|| "waiting for the carrier of the links to two nodes".to_owned())
        })
    }

    /// What happened since the last restart.
    pub(crate) fn report(&self) -> Result<LinkReport, LabError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let devices = self.devices;
        let (counters, carried) = self.worker.run(move || {
            let what = || "asking for the counters of queueing disciplines".to_owned();
            let counters = Netlink::open().and_then(|mut netlink| netlink.qdiscs()).step(what)?;
            let text = std::fs::read_to_string("/proc/thread-self/net/dev").step(what)?;
            Ok((counters, SIDES.map(|side| statistics::carried(&text, side))))
        })?;
        let direction = |way: usize, [first, second]: [u32; 2]| {
            let came = carried[way].since(state.carried[way]);
            statistics::report(&counters, state.asked[way], first, second, came)
        };
        Ok(LinkReport {
            link: String::new(),
            backend: Backend::Netem,
            up: direction(0, devices.up),
            down: direction(1, devices.down),
            realtime: false,
            cpu_ns: None,
        })
    }
}

impl Drop for KernelLink {
    fn drop(&mut self) {
        // The kernel may take a while to take the namespace apart; nobody has to wait for it.
        self.worker.detach();
    }
}

/// The pair in the middle, both ends in this namespace; first of all, so that its counters are told first, too.
fn create_middle(network: &OwnedFd, mtu_bytes: u32) -> Result<[u32; 2], LabError> {
    let what = || "creating the interfaces between two nodes".to_owned();
    let mut netlink = Netlink::open().step(what)?;
    let [near, far] = MIDDLE;
    netlink
        .create_veth(&Veth {
            name: near,
            mac: None,
            peer_name: far,
            peer_mac: FAR_MAC,
            peer_network: network.as_fd(),
            mtu_bytes,
        })
        .step(what)?;
    let mut indices = [0; 2];
    for (index, name) in indices.iter_mut().zip(MIDDLE) {
        offload::switch_off(name).step(what)?;
        *index = link::interface_index(name).step(what)?;
        netlink.set_up(*index).step(what)?;
    }
    Ok(indices)
}

/// Makes a wire of a bridge.
fn join(netlink: &mut Netlink, bridge: &str, ports: [u32; 2], mtu_bytes: u32) -> io::Result<()> {
    netlink.create_bridge(bridge, mtu_bytes)?;
    let bridge = link::interface_index(bridge)?;
    for port in ports {
        netlink.put_under(port, bridge)?;
        netlink.make_wire_port(port)?;
    }
    netlink.set_up(bridge)
}

/// Puts queueing disciplines in the place of those that an interface has.
fn replace(netlink: &mut Netlink, index: u32, qdiscs: &[Qdisc]) -> Result<(), LabError> {
    let what = || "removing a queueing discipline".to_owned();
    match netlink.delete_root_qdisc(index) {
        Err(error) if !is_none(&error) => return Err(error).step(what),
        _ => {}
    }
    for qdisc in qdiscs {
        netlink.add_qdisc(index, qdisc).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT) => probe::missing(qdisc.kind),
            _ => LabError::System {
                step: format!("adding the queueing discipline `{}`", qdisc.kind),
                source: error,
            },
        })?;
    }
    Ok(())
}

/// Whether there was nothing to delete: an interface without a queueing discipline has one that cannot be deleted.
fn is_none(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL))
}
