//! Handover: a host's address changes during the run, as when a phone leaves the Wi-Fi.
//!
//! The host gets its new address before it loses the old one, and the routes follow. Afterwards packets to
//! the old address are lost, and sockets bound to it cannot send. The connections are not notified: a TCP
//! connection hangs until its timeout; a QUIC client that opens a new socket continues.

use std::fmt;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::Network;
use model::topology::{AddressChange, TopologyNode};
use path::{Event, Timeline};

use crate::clock::monotonic_ns;
use crate::error::{LabError, Step};
use crate::link::{self, AddressChanger};
use crate::netns;
use crate::node::{Covered, Node};
use crate::settings::LinkSettings;
use crate::thread::{Thread, thread_ended};

const THREAD: &str = "handover";

/// The handovers of the host at one link.
#[derive(Debug)]
pub(crate) struct Handovers {
    /// The host's network namespace.
    network: OwnedFd,
    schedule: Arc<AddressSchedule>,
    state: Mutex<State>,
}

/// The host and its successive addresses.
#[derive(Debug)]
struct AddressSchedule {
    changer: AddressChanger,
    changes: AddressChange,
    followers: Followers,
}

/// What knows the host's address.
#[derive(Debug)]
pub(crate) struct Followers {
    /// The files of all nodes.
    pub(crate) files: Vec<Covered>,
    pub(crate) listeners: Listeners,
}

/// Functions that are called with the old and the new address of a host.
#[derive(Clone, Default)]
pub(crate) struct Listeners(Arc<Mutex<Vec<Listener>>>);

type Listener = Box<dyn FnMut(IpAddr, IpAddr) + Send>;

#[derive(Debug, Default)]
struct State {
    /// How many handovers the previous run did.
    done: usize,
    running: Option<Running>,
}

/// The handovers of the current run. Its thread ends when this is dropped, or at the first error.
#[derive(Debug)]
struct Running {
    stop: mpsc::Sender<()>,
    thread: Thread<(usize, Result<(), LabError>)>,
}

impl Handovers {
    /// The handovers of a host; its neighbours know the future addresses.
    pub(crate) fn new(
        node: &Node,
        spec: &TopologyNode,
        changes: AddressChange,
        settings: LinkSettings,
        followers: Followers,
    ) -> Result<Handovers, LabError> {
        let (_, interface) = changes.end;
        let end = node.end(&spec.interfaces[interface])?;
        let routes = spec.routes.iter().filter(|route| route.interface == interface).copied().collect();
        let changer = AddressChanger { node: end.node, interface: end.interface, routes, settings };
        let schedule = Arc::new(AddressSchedule { changer, changes, followers });
        Ok(Handovers { network: end.network, schedule, state: Mutex::default() })
    }

    /// Starts a run: the host has its first address, and the handovers happen at their times.
    pub(crate) fn begin(&self, network: &Network, start_ns: u64) -> Result<(), LabError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.finish()?;
        let done = std::mem::take(&mut state.done);
        let host = self
            .network
            .try_clone()
            .step(|| "duplicating a handle of a host's network namespace".to_owned())?;
        let (timeline, schedule) = (Timeline::new(network, start_ns), Arc::clone(&self.schedule));
        let (stop, stopped) = mpsc::channel();
        let (ready, is_ready) = mpsc::sync_channel(1);
        let thread = Thread::spawn(THREAD, move || {
            let entered = schedule.enter(&host, done);
            let failed = entered.is_err();
            let _: Result<_, _> = ready.send(entered);
            if failed { (done, Ok(())) } else { schedule.follow(timeline, &stopped) }
        })?;
        state.running = Some(Running { stop, thread });
        is_ready.recv().map_err(|_| thread_ended(THREAD))?
    }

    /// Whether every handover up to now succeeded.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let has_ended = state.running.as_ref().is_some_and(|running| running.thread.is_finished());
        if has_ended { state.finish() } else { Ok(()) }
    }
}

impl State {
    /// Ends the previous run, if any.
    fn finish(&mut self) -> Result<(), LabError> {
        let Some(Running { stop, thread }) = self.running.take() else { return Ok(()) };
        drop(stop);
        let (done, result) = thread.join()?;
        self.done = done;
        result
    }
}

impl AddressSchedule {
    /// Moves the calling thread into the host's network namespace and restores the host's first address.
    fn enter(&self, host: &OwnedFd, done: usize) -> Result<(), LabError> {
        netns::enter_network(host.as_fd()).step(|| format!("entering the node `{}`", self.changer.node))?;
        if done == 0 { Ok(()) } else { self.change(done, 0) }
    }

    /// Does the timeline's handovers at their times; returns how many.
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

    /// Names follow the address.
    fn rename(&self, old: IpAddr, new: IpAddr) -> Result<(), LabError> {
        for files in &self.followers.files {
            let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
            for file in files.iter_mut() {
                file.replace_address(old, new)
                    .step(|| "writing a host's new address into the nodes' files".to_owned())?;
            }
        }
        self.followers.listeners.notify(old, new);
        Ok(())
    }

    fn change(&self, from: usize, to: usize) -> Result<(), LabError> {
        for family in &self.changes.families {
            if let (Some(old), Some(new)) = (family.get(from), family.get(to)) {
                link::change_address(&self.changer, *old, *new)?;
                self.rename(old.0, new.0)?;
            }
        }
        Ok(())
    }
}

impl Listeners {
    pub(crate) fn add(&self, listener: impl FnMut(IpAddr, IpAddr) + Send + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(listener));
    }

    fn notify(&self, old: IpAddr, new: IpAddr) {
        for listener in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            listener(old, new);
        }
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listeners")
    }
}
