//! The kernel as emulator: queueing disciplines (qdiscs, tc(8)) at two devices between the nodes.
//!
//! ```text
//! node ═ first ─ bridge ─ near ═ far ─ bridge ─ second ═ node
//! ```
//!
//! `═` is a veth pair. *Up*, a packet leaves at `near`, which has loss, duplication, queue and rate, and then
//! at `second`, which has the delay; *down*, it leaves at `far` and `first`. Each bridge has two ports, does
//! not learn addresses and forwards unicast frames only, so it is a wire that keeps the order. The lab's
//! thread only configures the devices and reads their counters.

mod options;
mod probe;
mod statistics;
mod tree;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use model::network::kernel::{KernelDirection, Unsupported, UnsupportedKey};
use model::record::LinkReport;
use model::{Backend, Network};
use path::Seeds;

pub use probe::probe_netem;
use statistics::{DirectionSetup, InterfaceCounters, QdiscCounters};

use crate::capture::Tap;
use crate::clock::monotonic_ns;
use crate::emulation::{Connect, Emulation, Start};
use crate::error::{LabError, Step};
use crate::netlink::{Netlink, Qdisc, Veth};
use crate::worker::Worker;
use crate::{link, netns, offload, sysctl};

const THREAD: &str = "netem";
/// The interfaces that lead to the nodes.
const SIDES: [&str; 2] = ["first", "second"];
/// The pair of interfaces in the middle.
const MIDDLE: [&str; 2] = ["near", "far"];
const BRIDGES: [&str; 2] = ["bridge0", "bridge1"];
/// The Ethernet address of `far`; no node sends to it.
const FAR_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0xfe];

/// A link that the kernel emulates.
#[derive(Debug)]
struct KernelLink {
    worker: Worker,
    devices: Devices,
    mtu_bytes: u32,
    state: Mutex<State>,
}

/// The indices of the interfaces at which frames leave, in their order.
#[derive(Clone, Copy, Debug)]
struct Devices {
    /// `near`, `second`.
    up: [u32; 2],
    /// `far`, `first`.
    down: [u32; 2],
}

/// The configuration since the last restart, and the interfaces' counters at that time.
#[derive(Clone, Debug, Default)]
struct State {
    setup: [DirectionSetup; 2],
    carried: [InterfaceCounters; 2],
}

/// Starts to create the namespace between two nodes and the devices in its middle, without waiting.
pub(crate) fn begin(mtu_bytes: u32) -> Result<Connect, LabError> {
    let worker = Worker::new(THREAD)?;
    let middle = worker.begin(move || {
        let network = netns::unshare_network()?;
        sysctl::apply_silent()?;
        create_middle(&network, mtu_bytes)
    });
    Ok(Box::new(move |ends| {
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
        let start: Start = Box::new(move |network, seeds, _| {
            let link = KernelLink { worker, devices, mtu_bytes, state: Mutex::default() };
            link.restart(network, seeds)?;
            Ok(Box::new(link))
        });
        Ok(start)
    }))
}

impl Emulation for KernelLink {
    fn backend(&self) -> Backend {
        Backend::Netem
    }

    /// Where the kernel's netem takes a seed (Linux 6.6), the same seeds lose the same packets.
    fn restart(&self, network: &Network, seeds: [Seeds; 2]) -> Result<u64, LabError> {
        let directions = [("up", &network.up), ("down", &network.down)].map(|(name, direction)| {
            KernelDirection::of(direction, self.mtu_bytes).map_err(|UnsupportedKey { key, why }| {
                Unsupported { network: network.name.clone(), key: format!("{name}.{key}"), why }
            })
        });
        let [up, down] = directions;
        let (up, down) = (up?, down?);
        let setup = [DirectionSetup::of(&up), DirectionSetup::of(&down)];
        let [up_seed, down_seed] = seeds.map(Seeds::whole);
        let devices = self.devices;
        let carried = self.worker.run(move || {
            let ticks =
                options::Ticks::read().step(|| "reading the clock of packet scheduling".to_owned())?;
            let mut netlink =
                Netlink::open().step(|| "opening a netlink socket between two nodes".to_owned())?;
            // From the last device to the first, so that no packet waits in a queue that is replaced.
            for (devices, direction, seed) in [(devices.up, &up, up_seed), (devices.down, &down, down_seed)] {
                let [first, second] = devices;
                replace(&mut netlink, second, &tree::second(direction, seed))?;
                replace(&mut netlink, first, &tree::first(direction, seed, &ticks))?;
            }
            read_interface_counters()
        })?;
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State { setup, carried };
        Ok(monotonic_ns())
    }

    fn await_passing(&self) -> Result<(), LabError> {
        let Devices { up: [near, second], down: [far, first] } = self.devices;
        self.worker.run(move || {
            link::await_passing(&[first, near, far, second])
                .step(|| "waiting for the carrier of the links to two nodes".to_owned())
        })
    }

    fn change(&self, _: &Network) -> Result<(), LabError> {
        Err(unchangeable())
    }

    fn rebind(&self) -> Result<(), LabError> {
        Err(unchangeable())
    }

    fn report(&self) -> Result<LinkReport, LabError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let devices = self.devices;
        let (counters, carried) = self.worker.run(move || {
            let what = || "asking for the counters of queueing disciplines".to_owned();
            let mut counters = Vec::new();
            let read = |kind, message: &[u8]| counters.extend(QdiscCounters::read(kind, message));
            Netlink::open().and_then(|mut netlink| netlink.each_qdisc(read)).step(what)?;
            Ok((counters, read_interface_counters()?))
        })?;
        let direction = |side: usize, [first, second]: [u32; 2]| {
            let came = carried[side].since(state.carried[side]);
            statistics::report(&counters, state.setup[side], first, second, came)
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

    fn tap(&self, tap: Option<Tap>) -> Result<(), LabError> {
        if tap.is_none() {
            return Ok(());
        }
        Err(LabError::Unsupported {
            what: "a capture of a link that the kernel emulates".to_owned(),
            remedy: "use the backend `user-space`, or run tcpdump in a node".to_owned(),
        })
    }
}

fn unchangeable() -> LabError {
    LabError::Unsupported {
        what: "a change of a link that the kernel emulates".to_owned(),
        remedy: "use the backend `user-space`".to_owned(),
    }
}

impl Drop for KernelLink {
    fn drop(&mut self) {
        // Destroying the namespace may take the kernel a while. Nobody waits for it.
        self.worker.detach();
    }
}

/// The bytes and packets that the interfaces to the two nodes have received.
fn read_interface_counters() -> Result<[InterfaceCounters; 2], LabError> {
    let text = std::fs::read("/proc/thread-self/net/dev");
    let text = text.step(|| "reading the counters of interfaces".to_owned())?;
    Ok(SIDES.map(|side| InterfaceCounters::read(&text, side)))
}

/// Creates the pair in the middle, both ends in this namespace. It is created first so that the kernel lists
/// its counters first.
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

/// Joins two interfaces by a bridge that acts as a wire.
fn join(netlink: &mut Netlink, bridge: &str, ports: [u32; 2], mtu_bytes: u32) -> io::Result<()> {
    netlink.create_bridge(bridge, mtu_bytes)?;
    let bridge = link::interface_index(bridge)?;
    for port in ports {
        netlink.put_under(port, bridge)?;
        netlink.make_wire_port(port)?;
    }
    netlink.set_up(bridge)
}

/// Replaces an interface's qdiscs.
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

/// Whether there was no qdisc to delete: an interface's default qdisc cannot be deleted.
fn is_none(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL))
}
