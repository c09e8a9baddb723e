//! A network namespace: its sockets, its protocols, its interfaces.

use std::fs::File;

use model::monitor::{Counter, Name, Origin, QUANTITIES, Quantity, Subject, SubjectKind};

use super::diag::{Diag, States};
use super::parse::{self, Traffic};
use super::rows::{Rows, subject};
use super::source::{self, Buffer};

/// More interfaces than this are not read.
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

/// What is read in one network namespace. Its files and its netlink socket stay those of the namespace in which they were
/// opened.
#[derive(Debug)]
pub(super) struct Network {
    node: Option<Name>,
    files: Files,
    diag: Option<Diag>,
    /// By the last dump.
    states: States,
    sockets: Subject,
    protocols: Subject,
    /// The counters, with the places of their sums in `values`.
    wanted: Vec<(Counter, usize)>,
    /// The quantities of the sums, in their order; the last sum is [`CURRENT`], which is none of them.
    quantities: Vec<Quantity>,
    values: Vec<u64>,
    /// The sums when the run began.
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
    /// Opens what is read, in the namespace of the calling thread. What this kernel does not have has no rows.
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

    /// Reads all but the dump of sockets, which [`Network::dump`] makes before.
    pub(super) fn read(&mut self, rows: &mut Rows, buffer: &mut Buffer) {
        self.read_protocols(rows, buffer);
        self.read_sockets(rows, buffer);
        self.read_interfaces(rows, buffer);
    }

    /// Counts sockets by state one by one.
    pub(super) fn dump(&mut self, rows: &mut Rows, buffer: &mut Buffer) {
        let text = self.files.sockstat6.as_ref().and_then(|file| source::reread(file, buffer));
        // Each family's dump walks through the whole machine's table of sockets.
        let has_v6 = text.and_then(|text| parse::socket_count(text, "TCP6", "inuse")) > Some(0);
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
                parse::add_pairs(text, &self.wanted, &mut self.values);
            }
        }
        if let Some(text) = self.files.snmp6.as_ref().and_then(|file| source::reread(file, buffer)) {
            parse::add_lines(text, &self.wanted, &mut self.values);
        }
        let begin = self.begin.get_or_insert_with(|| self.values.clone());
        for ((quantity, now), begin) in self.quantities.iter().zip(&self.values).zip(begin) {
            rows.push(&self.protocols, *quantity, now.saturating_sub(*begin));
        }
    }

    /// The states that most sockets are in, from the kernel's own counts: exact, and for any number of sockets at one price.
    fn read_sockets(&mut self, rows: &mut Rows, buffer: &mut Buffer) {
        let current = self.values.last().copied().unwrap_or(0);
        rows.push(&self.sockets, Quantity::Established, current.saturating_sub(self.states.close_wait()));
        let Some(text) = self.files.sockstat.as_ref().and_then(|file| source::reread(file, buffer)) else {
            return;
        };
        let waiting = parse::socket_count(text, "TCP", "tw");
        let mut datagrams = parse::socket_count(text, "UDP", "inuse").unwrap_or(0);
        if let Some(text) = self.files.sockstat6.as_ref().and_then(|file| source::reread(file, buffer)) {
            datagrams += parse::socket_count(text, "UDP6", "inuse").unwrap_or(0);
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
        for (name, now) in parse::interfaces(text).take(MOST_INTERFACES) {
            let known = self.interfaces.iter().position(|(subject, _)| subject.name.as_bytes() == name);
            let place = known.unwrap_or_else(|| {
                let name = parse::printable(name);
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
