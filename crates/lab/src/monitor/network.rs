//! A network namespace: its sockets, protocols and interfaces.

use std::fs::File;

use model::monitor::{Counter, Name, Origin, QUANTITIES, Quantity, Subject, SubjectKind};

use super::diag::{Diag, States};
use super::rows::{Rows, subject};
use super::source::{self, Buffer};
use crate::procfs::{self, Traffic};

/// How many interfaces are read at most.
const MOST_INTERFACES: usize = 256;

const TRAFFIC: [Quantity; 6] = [
    Quantity::ReceivedBytes,
    Quantity::ReceivedPackets,
    Quantity::ReceivedDrops,
    Quantity::SentBytes,
    Quantity::SentPackets,
    Quantity::SentDrops,
];

/// TCP connections in ESTABLISHED or CLOSE-WAIT.
const CURRENT: Counter = ("Tcp", "CurrEstab");

/// The sources in one network namespace. Files and netlink socket belong to the namespace in which they were
/// opened.
#[derive(Debug)]
pub(super) struct Network {
    node: Option<Name>,
    files: Files,
    diag: Option<Diag>,
    /// The last dump.
    states: States,
    sockets: Subject,
    protocols: Subject,
    /// The counters, with the index of their sum in `values`.
    wanted: Vec<(Counter, usize)>,
    /// The quantities of the sums, in their order. The last sum is [`CURRENT`], which is no quantity.
    quantities: Vec<Quantity>,
    values: Vec<u64>,
    /// The sums at the start of the run.
    begin: Option<Vec<u64>>,
    interfaces: Vec<(Subject, Traffic)>,
}

#[derive(Debug)]
struct Files {
    snmp: Option<File>,
    netstat: Option<File>,
    snmp6: Option<File>,
    sockstat: Option<File>,
    sockstat6: Option<File>,
    dev: Option<File>,
}

impl Network {
    /// Opens the sources in the namespace of the calling thread. Sources that this kernel lacks have no rows.
    pub(super) fn open(node: Option<Name>) -> Network {
        let open = |name: &str| File::open(format!("/proc/thread-self/net/{name}")).ok();
        let files = Files {
            snmp: open("snmp"),
            netstat: open("netstat"),
            snmp6: open("snmp6"),
            sockstat: open("sockstat"),
            sockstat6: open("sockstat6"),
            dev: open("dev"),
        };
        let (mut wanted, mut quantities) = (Vec::new(), Vec::new());
        for info in QUANTITIES {
            if let Origin::Counters(counters) = info.origin {
                wanted.extend(counters.iter().map(|counter| (*counter, quantities.len())));
                quantities.push(info.quantity);
            }
        }
        wanted.push((CURRENT, quantities.len()));
        Network {
            files,
            diag: Diag::open().ok(),
            states: States::default(),
            sockets: subject(node.as_ref(), SubjectKind::Sockets, "sockets", 0),
            protocols: subject(node.as_ref(), SubjectKind::Protocols, "protocols", 0),
            values: vec![0; quantities.len() + 1],
            wanted,
            quantities,
            begin: None,
            interfaces: Vec::new(),
            node,
        }
    }

    /// Reads all sources except the dump of sockets; call [`Network::dump`] first.
    pub(super) fn read(&mut self, rows: &mut Rows, buffer: &mut Buffer) {
        self.read_protocols(rows, buffer);
        self.read_sockets(rows, buffer);
        self.read_interfaces(rows, buffer);
    }

    /// Dumps the sockets and counts them by state.
    pub(super) fn dump(&mut self, rows: &mut Rows, buffer: &mut Buffer) {
        let text = self.files.sockstat6.as_ref().and_then(|file| source::reread(file, buffer));
        // Each family's dump walks through the whole machine's socket table.
        let has_v6 = text.and_then(|text| procfs::socket_count(text, "TCP6", "inuse")) > Some(0);
        let Some(Ok(states)) = self.diag.as_mut().map(|diag| diag.dump(has_v6)) else { return };
        self.states = states;
        for (quantity, count) in states.readings() {
            rows.push(&self.sockets, quantity, count);
        }
    }

    fn read_protocols(&mut self, rows: &mut Rows, buffer: &mut Buffer) {
        self.values.fill(0);
        for file in [&self.files.snmp, &self.files.netstat].into_iter().flatten() {
            if let Some(text) = source::reread(file, buffer) {
                procfs::add_pairs(text, &self.wanted, &mut self.values);
            }
        }
        if let Some(text) = self.files.snmp6.as_ref().and_then(|file| source::reread(file, buffer)) {
            procfs::add_lines(text, &self.wanted, &mut self.values);
        }
        let begin = self.begin.get_or_insert_with(|| self.values.clone());
        for ((quantity, now), begin) in self.quantities.iter().zip(&self.values).zip(begin) {
            rows.push(&self.protocols, *quantity, now.saturating_sub(*begin));
        }
    }

    /// The states of most sockets, from the kernel's counters: exact, and at a cost that does not depend on
    /// their number.
    fn read_sockets(&mut self, rows: &mut Rows, buffer: &mut Buffer) {
        let current = self.values.last().copied().unwrap_or(0);
        rows.push(&self.sockets, Quantity::Established, current.saturating_sub(self.states.close_wait()));
        let Some(text) = self.files.sockstat.as_ref().and_then(|file| source::reread(file, buffer)) else {
            return;
        };
        let waiting = procfs::socket_count(text, "TCP", "tw");
        let mut datagrams = procfs::socket_count(text, "UDP", "inuse").unwrap_or(0);
        if let Some(text) = self.files.sockstat6.as_ref().and_then(|file| source::reread(file, buffer)) {
            datagrams += procfs::socket_count(text, "UDP6", "inuse").unwrap_or(0);
        }
        if let Some(waiting) = waiting {
            let waiting = waiting.saturating_sub(self.states.small_fin_wait_2);
            rows.push(&self.sockets, Quantity::TimeWait, waiting);
        }
        rows.push(&self.sockets, Quantity::UdpSockets, datagrams);
    }

    fn read_interfaces(&mut self, rows: &mut Rows, buffer: &mut Buffer) {
        let is_begin = self.interfaces.is_empty();
        let Some(text) = self.files.dev.as_ref().and_then(|file| source::reread(file, buffer)) else {
            return;
        };
        for (name, now) in procfs::interfaces(text).take(MOST_INTERFACES) {
            let known = self.interfaces.iter().position(|(subject, _)| subject.name.as_bytes() == name);
            let place = known.unwrap_or_else(|| {
                let name = procfs::printable(name);
                let begin = if is_begin { now } else { Traffic::default() };
                let subject = subject(self.node.as_ref(), SubjectKind::Interface, &name, 0);
                self.interfaces.push((subject, begin));
                self.interfaces.len() - 1
            });
            let (subject, begin) = &self.interfaces[place];
            for ((quantity, now), begin) in TRAFFIC.into_iter().zip(now).zip(begin) {
                rows.push(subject, quantity, now.saturating_sub(*begin));
            }
        }
    }
}
