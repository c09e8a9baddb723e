//! One host of a lab.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use model::topology::{Interface, Role, TopologyNode};

use crate::error::{LabError, Step};
use crate::link::{self, LinkEnd};
use crate::mounts::{self, CoveredFile, OwnFile};
use crate::netns::{self, Init};
use crate::process::{self, Child, Process, Program};
use crate::procfs::{pid_namespace, pids};
use crate::settings::LinkSettings;
use crate::stamp::StampedSocket;
use crate::sysctl;
use crate::thread::thread_ended;
use crate::worker::{Pending, Worker};

/// A node's own files.
pub(crate) type Covered = Arc<Mutex<Vec<CoveredFile>>>;

/// A host: its network, mount and PID namespaces, or this machine where nothing is emulated.
#[derive(Debug)]
pub struct Node {
    name: String,
    addresses: Addresses,
    children: Mutex<Children>,
    covered: Covered,
    /// `None` where the node is this machine.
    isolation: Option<Isolation>,
    /// The thread that starts the node's processes; it lives as long as the node.
    worker: Worker,
}

/// A node's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4.
    pub v4: Ipv4Addr,
    /// IPv6; `None` where this kernel does not have it.
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
    /// Receives every new child.
    watcher: Option<mpsc::Sender<Arc<Child>>>,
    /// CPU time of the children that were waited for.
    ended: CpuUsage,
}

/// A node whose namespaces are under construction.
#[derive(Debug)]
pub(crate) struct NodeBuilder {
    name: String,
    addresses: Addresses,
    worker: Worker,
    isolation: Pending<Result<Isolation, LabError>>,
}

impl NodeBuilder {
    pub(crate) fn new(node: &TopologyNode, settings: LinkSettings) -> Result<NodeBuilder, LabError> {
        let worker = Worker::new(&node.name)?;
        let role = node.role;
        let isolation = worker.begin(move || {
            let network = netns::unshare_node()?;
            let init = Init::start()?;
            match role {
                Role::Host => sysctl::apply_node(settings)?,
                Role::Router => sysctl::apply_node(settings).and_then(|()| sysctl::apply_router())?,
                Role::Switch => sysctl::apply_silent()?,
            }
            link::configure_loopback()?;
            Ok(Isolation { init, network })
        });
        let addresses = Addresses {
            v4: node.address_v4().unwrap_or(Ipv4Addr::UNSPECIFIED),
            v6: node.address_v6().filter(|_| sysctl::has_ipv6()),
        };
        Ok(NodeBuilder { name: node.name.clone(), addresses, worker, isolation })
    }

    pub(crate) fn finish(self) -> Result<Node, LabError> {
        let isolation = self.isolation.wait()??;
        Ok(Node {
            name: self.name,
            addresses: self.addresses,
            children: Mutex::default(),
            covered: Covered::default(),
            isolation: Some(isolation),
            worker: self.worker,
        })
    }
}

impl Node {
    /// A node that is this machine, with its loopback addresses.
    pub(crate) fn direct(name: &str) -> Result<Node, LabError> {
        Ok(Node {
            name: name.to_owned(),
            addresses: Addresses {
                v4: Ipv4Addr::LOCALHOST,
                v6: sysctl::has_ipv6().then_some(Ipv6Addr::LOCALHOST),
            },
            children: Mutex::default(),
            covered: Covered::default(),
            isolation: None,
            worker: Worker::new(name)?,
        })
    }

    /// A node of another process's lab, by the node's process 1: programs run there, and nothing is measured.
    /// The calling process must have a single thread, because it enters the lab's user namespace.
    ///
    /// # Errors
    /// The lab has ended or belongs to another user.
    pub fn join(name: &str, init_pid: i32) -> Result<Node, LabError> {
        let what = || format!("entering the node `{name}` of a running lab");
        netns::join_user_namespace(init_pid).step(what)?;
        let node = Node::direct(name)?;
        let joined = node.worker.begin(move || netns::join_node(init_pid));
        joined.wait()?.step(what)?;
        Ok(node)
    }

    /// Its name in the topology; in a pair `client` or `server`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The node's addresses; unspecified for a switch, which has none.
    pub const fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Starts a program in the node. It ends with the node or the tool at the latest.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn(&self, program: Program) -> Result<Process, LabError> {
        let is_direct = self.is_machine();
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

    /// Runs a closure on a thread in the node's network namespace, so that its sockets are the node's.
    ///
    /// # Errors
    /// The thread cannot be started, cannot enter the namespace, or panicked.
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
            thread.join().map_err(|_| thread_ended(&self.name))?
        })
    }

    /// Whether the node is this machine itself, and not a namespace.
    pub fn is_machine(&self) -> bool {
        self.isolation.is_none()
    }

    /// Mounts files over the machine's files, for every process that is started in the node from now on.
    ///
    /// # Errors
    /// The node is this machine, a file does not exist, or the kernel refuses the mount.
    pub fn cover_files(&self, files: Vec<OwnFile>) -> Result<(), LabError> {
        let what = || format!("covering files of the node `{}`, which is this machine", self.name());
        self.isolation.as_ref().ok_or(std::io::ErrorKind::Unsupported).step(what)?;
        let covered = self.worker.run(move || mounts::cover(&files))?;
        self.covered.lock().unwrap_or_else(PoisonError::into_inner).extend(covered);
        Ok(())
    }

    /// The files of [`Node::cover_files`], now and later.
    pub(crate) fn covered(&self) -> Covered {
        Arc::clone(&self.covered)
    }

    /// CPU time of all processes of the node since its start: running processes, with the children that they
    /// waited for, and processes that the tool waited for. Orphans are missing once they have ended.
    pub fn cpu_usage(&self) -> CpuUsage {
        let mut children = self.children();
        children.retire();
        let mut usage = children.ended;
        match &self.isolation {
            None => children.running.iter().for_each(|child| usage.add(child.cpu_ns())),
            Some(isolation) => {
                let init = isolation.init.pid();
                processes_of(init).for_each(|pid| usage.add(process::cpu_of_running_ns(pid)));
            }
        }
        usage
    }

    /// Time up to now that the threads of the node's running processes were runnable without running; 0 where
    /// nothing is emulated, because nothing is measured there.
    pub fn run_queue_ns(&self) -> u64 {
        let Some(isolation) = &self.isolation else { return 0 };
        let init = isolation.init.pid();
        processes_of(init).filter(|pid| *pid != init).map(process::run_queue_of_running_ns).sum()
    }

    /// Starts to configure the node's ends of its links, which must exist.
    pub(crate) fn begin_configuring(
        &self,
        node: &TopologyNode,
        settings: LinkSettings,
    ) -> Pending<Result<(), LabError>> {
        let node = node.clone();
        self.worker.begin(move || link::configure(&node, settings))
    }

    /// Starts to wait until frames pass the node's interfaces; the other ends must be configured.
    pub(crate) fn begin_waiting(&self, node: &TopologyNode) -> Pending<Result<(), LabError>> {
        let node = node.clone();
        self.worker.begin(move || link::wait_until_passing(&node))
    }

    /// Starts to join the node to another without an emulator; the first end is this node's.
    pub(crate) fn begin_wiring(&self, ends: [LinkEnd; 2], mtu_bytes: u32) -> Pending<Result<(), LabError>> {
        self.worker.begin(move || link::create_wire(&ends, mtu_bytes))
    }

    /// The end of a link at one of the node's interfaces.
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

    /// A channel with every running process of [`Node::spawn`], and every new one from now on. A previous
    /// channel gets no more.
    pub(crate) fn watch(&self) -> mpsc::Receiver<Arc<Child>> {
        let (watcher, watched) = mpsc::channel();
        let mut children = self.children();
        for child in &children.running {
            // The receiver exists.
            let _: Result<_, _> = watcher.send(Arc::clone(child));
        }
        children.watcher = Some(watcher);
        watched
    }

    /// The PID of the node's process 1 in the tool's PID namespace; `None` where the node is this machine.
    pub fn init(&self) -> Option<i32> {
        self.isolation.as_ref().map(|isolation| isolation.init.pid())
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
        // Process 1 stays until its namespace is empty, and a child is in it until it is waited for.
        for child in &self.children().running {
            child.kill();
            let _: Result<_, _> = child.wait(None);
        }
        // Destroying the namespaces may take the kernel a while. Nobody waits for it.
        let isolation = self.isolation.take();
        drop(self.worker.begin(move || drop(isolation)));
        self.worker.detach();
    }
}

impl Children {
    /// Removes the children that were waited for, and keeps their CPU time.
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

/// The PIDs, in this process's namespace, of the processes in the PID namespace of process 1 `init`.
fn processes_of(init: i32) -> impl Iterator<Item = i32> {
    let wanted = pid_namespace(init);
    pids().filter(move |pid| wanted.is_some() && pid_namespace(*pid) == wanted)
}
