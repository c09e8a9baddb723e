//! The processes of the tool and of the nodes, from their start to their end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, mpsc};

use model::monitor::{Name, Subject, SubjectKind};

use super::process::{ProcessState, WatchedProcess, exit_readings};
use super::rows::{Budget, Rows, subject};
use super::source::{self, Buffer};
use crate::node::Node;
use crate::process::{Child, Exit};
use crate::procfs::{self, Stat, pid_namespace};

/// How many processes are monitored at most.
const MOST_PROCESSES: usize = 1024;

/// The share of a core, in parts per thousand, for scans for new processes.
const SCAN_PER_MILLE: u32 = 1;

/// The processes of the tool and of the nodes.
#[derive(Debug)]
pub(super) struct Processes {
    owners: Vec<Owner>,
    watched: BTreeMap<i32, (usize, WatchedProcess)>,
    /// Processes of this machine that belong to no owner.
    unrelated: BTreeSet<i32>,
    scan: Budget,
    has_begun: bool,
}

/// An owner of processes: the tool or a node.
#[derive(Debug)]
struct Owner {
    node: Option<Name>,
    members: Members,
    /// Receives every process that the tool starts in the node.
    arrivals: Option<mpsc::Receiver<Arc<Child>>>,
    /// Children whose end has not been read.
    children: Vec<Arc<Child>>,
}

/// How to recognise a member.
#[derive(Debug)]
enum Members {
    /// This process.
    Tool(i32),
    /// All processes in the PID namespace with this inode, except process 1.
    Namespace { inode: u64, init: i32 },
    /// All processes in a process group of one of the children, for a node that is this machine.
    Groups,
}

impl Processes {
    pub(super) fn new() -> Processes {
        let tool = std::process::id().cast_signed();
        Processes {
            owners: vec![Owner {
                node: None,
                members: Members::Tool(tool),
                arrivals: None,
                children: Vec::new(),
            }],
            watched: BTreeMap::new(),
            unrelated: BTreeSet::new(),
            scan: Budget::per_mille(SCAN_PER_MILLE),
            has_begun: false,
        }
    }

    /// Adds a node's processes.
    pub(super) fn add(&mut self, node: &Node) {
        let members =
            node.init().and_then(|init| Some(Members::Namespace { inode: pid_namespace(init)?, init }));
        self.owners.push(Owner {
            node: Some(node.name().into()),
            members: members.unwrap_or(Members::Groups),
            arrivals: Some(node.watch()),
            children: Vec::new(),
        });
    }

    /// Reads a round: new processes, running ones, ended ones.
    pub(super) fn read(&mut self, now_ns: u64, must_scan: bool, rows: &mut Rows, buffer: &mut Buffer) {
        self.add_started();
        let mut scan = std::mem::replace(&mut self.scan, Budget::per_mille(SCAN_PER_MILLE));
        scan.spend(now_ns, must_scan, || self.look_for_new(buffer));
        self.scan = scan;
        let is_begin = !std::mem::replace(&mut self.has_begun, true);
        self.watched.retain(|_, (_, process)| match process.read(now_ns, buffer) {
            ProcessState::Alive => {
                if is_begin {
                    process.begin();
                }
                process.push(rows);
                true
            }
            // The exit of a process that the tool waits for gives its last values.
            ProcessState::Ended | ProcessState::Gone => process.is_child,
        });
        self.remove_ended(rows);
    }

    /// Adds the processes that the tool has started since the last round.
    fn add_started(&mut self) {
        for (place, owner) in self.owners.iter_mut().enumerate() {
            let Some(arrivals) = &owner.arrivals else { continue };
            for child in arrivals.try_iter() {
                if child.exit().is_none() && self.watched.len() < MOST_PROCESSES {
                    let watched = WatchedProcess::new(child.pid(), owner.node.as_ref(), true);
                    self.watched.insert(child.pid(), (place, watched));
                }
                owner.children.push(child);
            }
        }
    }

    /// Scans the machine's processes.
    fn look_for_new(&mut self, buffer: &mut Buffer) {
        let mut unrelated = BTreeSet::new();
        for pid in procfs::pids() {
            if self.watched.contains_key(&pid) {
                continue;
            }
            let owner = if self.unrelated.contains(&pid) { None } else { self.owner_of(pid, buffer) };
            match owner {
                Some(place) if self.watched.len() < MOST_PROCESSES => {
                    let is_child = self.owners[place].children.iter().any(|child| child.pid() == pid);
                    let watched = WatchedProcess::new(pid, self.owners[place].node.as_ref(), is_child);
                    self.watched.insert(pid, (place, watched));
                }
                Some(_) => {}
                None => drop(unrelated.insert(pid)),
            }
        }
        // Drops PIDs that have ended, so that a reused PID is examined.
        self.unrelated = unrelated;
    }

    fn owner_of(&self, pid: i32, buffer: &mut Buffer) -> Option<usize> {
        let namespace = pid_namespace(pid);
        let text = source::read(&format!("/proc/{pid}/stat"), buffer);
        let group = text.and_then(Stat::parse).map(|stat| stat.group);
        self.owners.iter().position(|owner| match owner.members {
            Members::Tool(tool) => pid == tool,
            Members::Namespace { inode, init } => namespace == Some(inode) && pid != init,
            Members::Groups => owner.children.iter().any(|child| Some(child.pid()) == group),
        })
    }

    /// Adds the last rows of every child that has ended, and removes it.
    fn remove_ended(&mut self, rows: &mut Rows) {
        for owner in &mut self.owners {
            let (watched, node) = (&mut self.watched, owner.node.as_ref());
            owner.children.retain(|child| {
                let Some(exit) = *child.exit() else { return true };
                match watched.remove(&child.pid()) {
                    Some((_, process)) => process.push_end(&exit, rows),
                    None => push_unread(child, node, &exit, rows),
                }
                false
            });
        }
    }
}

/// Adds the end of a process that no round has read.
fn push_unread(child: &Child, node: Option<&Name>, exit: &Exit, rows: &mut Rows) {
    let name = procfs::process_name(child.command(), b"");
    let id = u64::from(child.pid().unsigned_abs());
    let subject: Subject = subject(node, SubjectKind::Process, &name, id);
    for (quantity, value) in exit_readings(exit) {
        rows.push_end(&subject, quantity, value);
    }
}
