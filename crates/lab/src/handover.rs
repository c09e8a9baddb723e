//! Handover: a host's address changes while the run goes on, as when a phone leaves the Wi-Fi.
//!
//! Its new address is there before the old one goes, and the routes follow. From then on what is sent to the old address
//! finds nobody, and what is bound to it cannot send. Nothing is told to the connections themselves: a TCP connection
//! hangs until its owner gives up, a QUIC client that opens a new socket goes on.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use model::topology::{AddressChange, TopologyNode};
use model::{Network, Pins};
use path::{Event, Timeline};

use crate::emulator::monotonic_ns;
use crate::error::{LabError, Step};
use crate::link::{self, AddressChanger};
use crate::netns;
use crate::node::Node;

const THREAD: &str = "handover";

/// The handovers of the host at one link.
#[derive(Debug)]
pub(crate) struct Handovers {
    /// The host's network namespace.
    network: OwnedFd,
    itinerary: Arc<Itinerary>,
    state: Mutex<State>,
}

/// Who moves, and where to.
#[derive(Debug)]
struct Itinerary {
    mover: AddressChanger,
    changes: AddressChange,
}

#[derive(Debug, Default)]
struct State {
    /// How many the run before has done.
    done: usize,
    running: Option<Running>,
}

/// The handovers of the run that goes on; its thread ends when this is dropped, or with its first error.
#[derive(Debug)]
struct Running {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<(usize, Result<(), LabError>)>,
}

impl Handovers {
    /// Those of a host; its neighbours know the addresses to come.
    pub(crate) fn new(
        node: &Node,
        spec: &TopologyNode,
        changes: AddressChange,
        pins: &Pins,
    ) -> Result<Handovers, LabError> {
        let (_, interface) = changes.end;
        let end = node.end(&spec.interfaces[interface])?;
        let routes = spec.routes.iter().filter(|route| route.interface == interface).copied().collect();
        let mover = AddressChanger { node: end.node, interface: end.interface, routes, pins: pins.clone() };
        let itinerary = Arc::new(Itinerary { mover, changes });
        Ok(Handovers { network: end.network, itinerary, state: Mutex::default() })
    }

    /// A run begins: the host has its first address, and the network's handovers come at their time.
    pub(crate) fn begin(&self, network: &Network, start_ns: u64) -> Result<(), LabError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.finish()?;
        let done = std::mem::take(&mut state.done);
        let host = self.network.try_clone().step(|| "a handle of a host's network".to_owned())?;
        let (timeline, itinerary) = (Timeline::new(network, start_ns), Arc::clone(&self.itinerary));
        let (stop, stopped) = mpsc::channel();
        let (ready, is_ready) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name(THREAD.to_owned())
            .spawn(move || {
                let entered = itinerary.enter_at_first(&host, done);
                let failed = entered.is_err();
                let _: Result<_, _> = ready.send(entered);
                if failed { (done, Ok(())) } else { itinerary.follow(timeline, &stopped) }
            })
            .step(|| format!("starting the thread `{THREAD}`"))?;
        state.running = Some(Running { stop, thread });
        is_ready.recv().map_err(|_| LabError::ThreadEnded { thread: THREAD.to_owned() })?
    }

    /// Whether every handover so far was done.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let has_ended = state.running.as_ref().is_some_and(|running| running.thread.is_finished());
        if has_ended { state.finish() } else { Ok(()) }
    }
}

impl State {
    /// Ends the run before, if there is one.
    fn finish(&mut self) -> Result<(), LabError> {
        let Some(Running { stop, thread }) = self.running.take() else { return Ok(()) };
        drop(stop);
        let (done, result) =
            thread.join().map_err(|_| LabError::ThreadEnded { thread: THREAD.to_owned() })?;
        self.done = done;
        result
    }
}

impl Itinerary {
    /// The calling thread enters the host's network, where the first address holds again.
    fn enter_at_first(&self, host: &OwnedFd, done: usize) -> Result<(), LabError> {
        netns::enter_network(host.as_fd()).step(|| format!("entering the node `{}`", self.mover.node))?;
        if done == 0 { Ok(()) } else { self.change(done, 0) }
    }

    /// Does what the timeline says when it says it, and says how many handovers were done.
    fn follow(&self, mut timeline: Timeline, stopped: &mpsc::Receiver<()>) -> (usize, Result<(), LabError>) {
        let mut done = 0;
        while let Some(at_ns) = timeline.next_event_ns() {
            let left = Duration::from_nanos(at_ns.saturating_sub(monotonic_ns()));
            if stopped.recv_timeout(left) != Err(RecvTimeoutError::Timeout) {
                return (done, Ok(()));
            }
            if let Some(Event::Handover { .. }) = timeline.poll_event(monotonic_ns()) {
                if let Err(error) = self.change(done, done + 1) {
                    return (done, Err(error));
                }
                done += 1;
            }
        }
        (done, Ok(()))
    }

    fn change(&self, from: usize, to: usize) -> Result<(), LabError> {
        for family in &self.changes.families {
            if let (Some(old), Some(new)) = (family.get(from), family.get(to)) {
                link::change_address(&self.mover, *old, *new)?;
            }
        }
        Ok(())
    }
}
