//! One host of a lab.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use model::Pins;
use model::topology::{Interface, Role, TopologyNode};

use crate::error::{LabError, Step};
use crate::link::{self, LinkEnd};
use crate::mounts::{self, OwnFile};
use crate::netns::{self, Init};
use crate::process::{self, Child, Process, Program};
use crate::stamp::StampedSocket;
use crate::sysctl;
use crate::worker::{Pending, Worker};

/// A host: a network and a PID namespace of its own, or this machine where nothing is emulated.
#[derive(Debug)]
pub struct Node {
    name: String,
    addresses: Addresses,
    children: Mutex<Children>,
    /// `None` where the node is this machine.
    isolation: Option<Isolation>,
    /// The thread that every process of the node is a child of; it lives as long as the node.
    worker: Worker,
}

/// Where a node is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4.
    pub v4: Ipv4Addr,
    /// IPv6; `None` where this kernel has none.
    pub v6: Option<Ipv6Addr>,
}

/// CPU time of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUsage {
    /// In user space, in nanoseconds.
    pub user_ns: u64,
    /// In the kernel, in nanoseconds.
    pub system_ns: u64,
}

#[derive(Debug)]
struct Isolation {
    init: Init,
    network: OwnedFd,
}

#[derive(Debug, Default)]
struct Children {
    running: Vec<Arc<Child>>,
    /// Who is told of every new one.
    watcher: Option<mpsc::Sender<Arc<Child>>>,
    /// What those that were waited for had used.
    ended: CpuUsage,
}

/// A node whose namespaces are being made.
#[derive(Debug)]
pub(crate) struct Beginning {
    name: String,
    addresses: Addresses,
    worker: Worker,
    isolation: Pending<Result<Isolation, LabError>>,
}

impl Beginning {
    pub(crate) fn new(node: &TopologyNode, pins: &Pins) -> Result<Beginning, LabError> {
        let worker = Worker::new(&node.name)?;
        let (pins, role) = (pins.clone(), node.role);
        let isolation = worker.begin(move || {
            let network = netns::unshare_node()?;
            let init = Init::fork()?;
            match role {
                Role::Host => sysctl::apply_node(&pins)?,
                Role::Router => sysctl::apply_node(&pins).and_then(|()| sysctl::apply_router())?,
                Role::Switch => sysctl::apply_silent()?,
            }
            link::configure_loopback()?;
            Ok(Isolation { init, network })
        });
        let addresses = Addresses {
            v4: node.address_v4().unwrap_or(Ipv4Addr::UNSPECIFIED),
            v6: node.address_v6().filter(|_| sysctl::has_ipv6()),
        };
        Ok(Beginning { name: node.name.clone(), addresses, worker, isolation })
    }

    pub(crate) fn finish(self) -> Result<Node, LabError> {
        let isolation = self.isolation.wait()??;
        Ok(Node {
            name: self.name,
            addresses: self.addresses,
            children: Mutex::default(),
            isolation: Some(isolation),
            worker: self.worker,
        })
    }
}

impl Node {
    /// A node that is this machine, reached over its loopback.
    pub(crate) fn direct(name: &str) -> Result<Node, LabError> {
        Ok(Node {
            name: name.to_owned(),
            addresses: Addresses {
                v4: Ipv4Addr::LOCALHOST,
                v6: sysctl::has_ipv6().then_some(Ipv6Addr::LOCALHOST),
            },
            children: Mutex::default(),
            isolation: None,
            worker: Worker::new(name)?,
        })
    }

    /// As the topology says; of a pair `client` or `server`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the node is reached; a switch has no address, which is the unspecified one here.
    pub const fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Starts a program in the node; it dies with the node at the latest, and with the tool however that ends.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn(&self, program: Program) -> Result<Process, LabError> {
        let is_direct = self.isolation.is_none();
        let process = self.worker.run(move || program.spawn(is_direct))?;
        let mut children = self.children();
        children.retire();
        children.running.push(process.child());
        if let Some(watcher) = &children.watcher
            && watcher.send(process.child()).is_err()
        {
            children.watcher = None;
        }
        Ok(process)
    }

    /// Runs a closure on a thread in the node's network namespace: sockets that it makes are the node's.
    ///
    /// # Errors
    /// The thread cannot be started, cannot enter, or panicked.
    pub fn enter<T: Send>(&self, job: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        let what = || format!("entering the node `{}`", self.name());
        std::thread::scope(|scope| {
            let inside = || -> Result<T, LabError> {
                if let Some(isolation) = &self.isolation {
                    netns::enter_network(isolation.network.as_fd()).step(what)?;
                }
                Ok(job())
            };
            let thread = std::thread::Builder::new().spawn_scoped(scope, inside).step(what)?;
            thread.join().map_err(|_| LabError::ThreadEnded { thread: self.name.clone() })?
        })
    }

    /// Puts files of the node's own in the place of the machine's, for every process that is started in it from now on.
    ///
    /// # Errors
    /// The node is this machine, whose files are left alone; a file is not there; or the kernel refuses.
    pub fn cover_files(&self, files: Vec<OwnFile>) -> Result<(), LabError> {
        let what = || format!("covering files of the node `{}`, which is this machine", self.name());
        self.isolation.as_ref().ok_or(std::io::ErrorKind::Unsupported).step(what)?;
        self.worker.run(move || mounts::cover(&files))
    }

    /// CPU time of every process of the node since it was started: those that run, with the children that they waited
    /// for, and those that the tool waited for. Children that their parent left behind are missing once they ended.
    pub fn cpu_usage(&self) -> CpuUsage {
        let mut children = self.children();
        children.retire();
        let mut usage = children.ended;
        match &self.isolation {
            None => children.running.iter().for_each(|child| usage.add(child.cpu_ns())),
            Some(isolation) => {
                let init = isolation.init.pid().as_raw_nonzero().get();
                processes_of(init).for_each(|pid| usage.add(process::cpu_of_running_ns(pid)));
            }
        }
        usage
    }

    /// Time that the threads of the node's running processes were runnable without running, so far; 0 where nothing is
    /// emulated, because nothing is measured there.
    pub fn run_queue_ns(&self) -> u64 {
        let Some(isolation) = &self.isolation else { return 0 };
        let init = isolation.init.pid().as_raw_nonzero().get();
        processes_of(init).filter(|pid| *pid != init).map(process::run_queue_of_running_ns).sum()
    }

    /// Configures the node's ends of its links, which must exist.
    pub(crate) fn begin_configuring(
        &self,
        node: &TopologyNode,
        pins: &Pins,
    ) -> Pending<Result<(), LabError>> {
        let (node, pins) = (node.clone(), pins.clone());
        self.worker.begin(move || link::configure(&node, &pins))
    }

    /// Waits until frames pass the node's interfaces, when those at the other ends are configured too.
    pub(crate) fn begin_waiting(&self, node: &TopologyNode) -> Pending<Result<(), LabError>> {
        let node = node.clone();
        self.worker.begin(move || link::wait_until_passing(&node))
    }

    /// Joins the node to another without an emulator; the first end is the node's own.
    pub(crate) fn begin_wiring(&self, ends: [LinkEnd; 2], mtu_bytes: u32) -> Pending<Result<(), LabError>> {
        self.worker.begin(move || link::create_wire(&ends, mtu_bytes))
    }

    /// The end of a link at one of its interfaces.
    pub(crate) fn end(&self, interface: &Interface) -> Result<LinkEnd, LabError> {
        let what = || format!("finding the network namespace of the node `{}`", self.name());
        let isolation = self.isolation.as_ref().ok_or(std::io::ErrorKind::NotFound).step(what)?;
        Ok(LinkEnd {
            node: self.name.clone(),
            interface: interface.name.clone(),
            mac: interface.mac,
            network: isolation.network.try_clone().step(what)?,
        })
    }

    /// A UDP socket of the node for reference round trips.
    pub(crate) fn probe_socket(&self) -> Result<StampedSocket, LabError> {
        let address = IpAddr::V4(self.addresses.v4);
        self.enter(move || StampedSocket::bind(address))?
            .step(|| format!("opening a probe's socket in the node `{}`", self.name()))
    }

    /// Every process that runs because of [`Node::spawn`], and from now on every new one; whoever watched before is told no
    /// more.
    pub(crate) fn watch(&self) -> mpsc::Receiver<Arc<Child>> {
        let (watcher, watched) = mpsc::channel();
        let mut children = self.children();
        for child in &children.running {
            // The receiver is just below.
            let _: Result<_, _> = watcher.send(Arc::clone(child));
        }
        children.watcher = Some(watcher);
        watched
    }

    /// Process 1 of the node's PID namespace, as the tool's counts; `None` where the node is this machine.
    pub(crate) fn init(&self) -> Option<i32> {
        self.isolation.as_ref().map(|isolation| isolation.init.pid().as_raw_nonzero().get())
    }

    fn children(&self) -> MutexGuard<'_, Children> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(isolation) = &self.isolation {
            isolation.init.kill();
        }
        // Process 1 stays until its namespace is empty, and a child is in it until it was waited for.
        for child in &self.children().running {
            child.kill();
            let _: Result<_, _> = child.wait(None);
        }
        // The kernel may take a while to take the namespaces apart; nobody has to wait for it.
        let isolation = self.isolation.take();
        drop(self.worker.begin(move || drop(isolation)));
        self.worker.detach();
    }
}

impl Children {
    /// Forgets those that were waited for, but not what they used.
    fn retire(&mut self) {
        let ended = &mut self.ended;
        self.running.retain(|child| {
            let exit = *child.exit();
            if let Some(exit) = exit {
                ended.add((exit.cpu_user_ns, exit.cpu_system_ns));
            }
            exit.is_none()
        });
    }
}

impl CpuUsage {
    const fn add(&mut self, (user_ns, system_ns): (u64, u64)) {
        self.user_ns += user_ns;
        self.system_ns += system_ns;
    }
}

/// Every process in the PID namespace of process 1 `init`, by its number in ours.
fn processes_of(init: i32) -> impl Iterator<Item = i32> {
    let namespace_of = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let wanted: Option<PathBuf> = namespace_of(init);
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(move |pid| wanted.is_some() && namespace_of(*pid) == wanted)
}
