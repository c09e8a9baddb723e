//! Which processes are a node's, and what becomes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, mpsc};

use model::monitor::{Name, Quantity, Subject, SubjectKind};
use rustix::fs::{AtFlags, CWD, statat};

use super::parse::{self, Stat};
use super::process::{Sight, Watched};
use super::rows::{Budget, Rows, subject};
use super::source::{self, Buffer};
use crate::node::Node;
use crate::process::{Child, Exit};

/// More processes than this are not watched.
const MOST_PROCESSES: usize = 1024;

/// Of a core, in parts per thousand, that looking for new processes may take.
const SCAN_PER_MILLE: u32 = 1;

/// The processes of the tool and of the nodes.
#[derive(Debug)]
pub(super) struct Processes {
    owners: Vec<Owner>,
    watched: BTreeMap<i32, (usize, Watched)>,
    /// Processes of this machine that are none of ours.
    strangers: BTreeSet<i32>,
    scan: Budget,
    has_begun: bool,
}

/// Who has processes: the tool, or a node.
#[derive(Debug)]
struct Owner {
    node: Option<Name>,
    members: Members,
    /// Tells of every process that the tool starts in the node.
    arrivals: Option<mpsc::Receiver<Arc<Child>>>,
    /// Those whose end has not been read.
    children: Vec<Arc<Child>>,
}

/// How to know a member.
#[derive(Debug)]
enum Members {
    /// This process alone.
    Tool(i32),
    /// All in the PID namespace with this inode, but process 1.
    Namespace { inode: u64, init: i32 },
    /// All in a process group of one of the children: what a node that is this machine has.
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
            strangers: BTreeSet::new(),
            scan: Budget::per_mille(SCAN_PER_MILLE),
            has_begun: false,
        }
    }

    /// Watches a node's processes too.
    pub(super) fn add(&mut self, node: &Node) {
        let members =
            node.init().and_then(|init| Some(Members::Namespace { inode: namespace_of(init)?, init }));
        self.owners.push(Owner {
            node: Some(node.name().into()),
            members: members.unwrap_or(Members::Groups),
            arrivals: Some(node.watch()),
            children: Vec::new(),
        });
    }

    /// A round: who came, what each did, who went.
    pub(super) fn read(&mut self, now_ns: u64, must_scan: bool, rows: &mut Rows, buffer: &mut Buffer) {
        self.welcome();
        let mut scan = std::mem::replace(&mut self.scan, Budget::per_mille(SCAN_PER_MILLE));
        scan.spend(now_ns, must_scan, || self.look_for_new(buffer));
        self.scan = scan;
        let is_begin = !std::mem::replace(&mut self.has_begun, true);
        self.watched.retain(|_, (_, process)| match process.read(now_ns, buffer) {
            Sight::Alive => {
                if is_begin {
                    process.begin();
                }
                process.push(rows);
                true
            }
            // Its end says what it did last, if it is one that the tool waits for.
            Sight::Ended | Sight::Gone => process.is_child,
        });
        self.part(rows);
    }

    /// Takes in what the tool has started since.
    fn welcome(&mut self) {
        for (place, owner) in self.owners.iter_mut().enumerate() {
            let Some(arrivals) = &owner.arrivals else { continue };
            for child in arrivals.try_iter() {
                if child.exit().is_none() && self.watched.len() < MOST_PROCESSES {
                    let watched = Watched::new(child.pid(), owner.node.as_ref(), true);
                    self.watched.insert(child.pid(), (place, watched));
                }
                owner.children.push(child);
            }
        }
    }

    /// Goes through the machine's processes.
    fn look_for_new(&mut self, buffer: &mut Buffer) {
        let mut strangers = BTreeSet::new();
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
            if self.watched.contains_key(&pid) {
                continue;
            }
            let owner = if self.strangers.contains(&pid) { None } else { self.owner_of(pid, buffer) };
            match owner {
                Some(place) if self.watched.len() < MOST_PROCESSES => {
                    let is_child = self.owners[place].children.iter().any(|child| child.pid() == pid);
                    let watched = Watched::new(pid, self.owners[place].node.as_ref(), is_child);
                    self.watched.insert(pid, (place, watched));
                }
                Some(_) => {}
                None => drop(strangers.insert(pid)),
            }
        }
        // Numbers that came to others meanwhile are looked at again once.
        self.strangers = strangers;
    }

    fn owner_of(&self, pid: i32, buffer: &mut Buffer) -> Option<usize> {
        let namespace = namespace_of(pid);
        let text = source::read(&format!("/proc/{pid}/stat"), buffer);
        let group = text.and_then(Stat::parse).map(|stat| stat.group);
        self.owners.iter().position(|owner| match owner.members {
            Members::Tool(tool) => pid == tool,
            Members::Namespace { inode, init } => namespace == Some(inode) && pid != init,
            Members::Groups => owner.children.iter().any(|child| Some(child.pid()) == group),
        })
    }

    /// Reads the end of every child that has ended, and forgets it.
    fn part(&mut self, rows: &mut Rows) {
        for owner in &mut self.owners {
            let (watched, node) = (&mut self.watched, owner.node.as_ref());
            owner.children.retain(|child| {
                let Some(exit) = *child.exit() else { return true };
                match watched.remove(&child.pid()) {
                    Some((_, process)) => process.push_end(&exit, rows),
                    None => push_unseen(child, node, &exit, rows),
                }
                false
            });
        }
    }
}

/// The end of a process that no round saw alive.
fn push_unseen(child: &Child, node: Option<&Name>, exit: &Exit, rows: &mut Rows) {
    let name = parse::process_name(child.command(), b"");
    let id = u64::from(child.pid().unsigned_abs());
    let subject: Subject = subject(node, SubjectKind::Process, &name, id);
    for (quantity, value) in of_exit(exit) {
        rows.push_end(&subject, quantity, value);
    }
}

/// What the kernel says of a process when it is waited for, children that it waited for included.
pub(super) fn of_exit(exit: &Exit) -> [(Quantity, u64); 5] {
    [
        (Quantity::CpuUser, exit.cpu_user_ns),
        (Quantity::CpuSystem, exit.cpu_system_ns),
        (Quantity::VoluntarySwitches, exit.voluntary_switches),
        (Quantity::InvoluntarySwitches, exit.involuntary_switches),
        (Quantity::PeakResident, exit.max_resident_bytes),
    ]
}

/// The inode of a process's PID namespace; `None` where it is gone or somebody else's.
fn namespace_of(pid: i32) -> Option<u64> {
    statat(CWD, format!("/proc/{pid}/ns/pid"), AtFlags::empty()).ok().map(|stat| stat.st_ino)
}
