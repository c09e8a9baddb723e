//! The monitor's readings, compared with what the nodes are known to do.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use lab::{Lab, Monitor, MonitorSpec, Node, Process, Program};
use model::monitor::{Quantity, Reading, SubjectKind};

use crate::help::{MS, network, pair, wait_until};

const CONNECTIONS: usize = 5;
const BYTES: usize = 100_000;

/// The readings of a node, by what they are about.
struct NodeReadings<'a>(&'a [Reading], Option<&'a str>);

impl NodeReadings<'_> {
    fn of(&self, kind: SubjectKind, name: &str, quantity: Quantity) -> Vec<(u64, u64)> {
        let is_wanted = |reading: &&Reading| {
            let subject = &reading.subject;
            subject.node.as_deref() == self.1
                && subject.kind == kind
                && subject.name.starts_with(name)
                && reading.quantity == quantity
        };
        self.0.iter().filter(is_wanted).map(|reading| (reading.at_ns, reading.value)).collect()
    }

    fn last(&self, kind: SubjectKind, name: &str, quantity: Quantity) -> u64 {
        let found = self.of(kind, name, quantity);
        found.last().unwrap_or_else(|| panic!("no {} of {kind:?} {name} in {:?}", quantity.name(), self.1)).1
    }

    fn sockets(&self, quantity: Quantity) -> u64 {
        self.last(SubjectKind::Sockets, "", quantity)
    }
}

fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(Duration::try_from(now).unwrap().as_nanos()).unwrap()
}

fn watch(nodes: &[&Node], hertz: u32) -> (Monitor, u64) {
    let period = Duration::from_secs(1) / hertz;
    let monitor = Monitor::prepare(MonitorSpec { nodes, period, cpu: None }).unwrap();
    let start_ns = now_ns();
    monitor.begin(start_ns).unwrap();
    (monitor, start_ns)
}

fn shell(node: &Node, script: &str) -> Process {
    node.spawn(Program::new("sh").args(["-c", script])).unwrap()
}

/// Sockets of a node that are in TIME-WAIT, by the kernel.
fn waiting(node: &Node) -> usize {
    let text = node.enter(|| std::fs::read_to_string("/proc/thread-self/net/sockstat").unwrap()).unwrap();
    let line = text.lines().find(|line| line.starts_with("TCP:")).unwrap();
    line.split(' ').skip_while(|word| *word != "tw").nth(1).unwrap().parse().unwrap()
}

fn connect(lab: &Lab) -> (TcpListener, Vec<(TcpStream, TcpStream)>) {
    let (client, server) = (lab.client(), lab.server());
    let address = (server.addresses().v4, 80);
    let listener = server.enter(|| TcpListener::bind(address).unwrap()).unwrap();
    let pairs = (0..CONNECTIONS).map(|_| {
        let near = client.enter(|| TcpStream::connect(address).unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    });
    let pairs = pairs.collect();
    (listener, pairs)
}

pub(crate) fn what_happens_in_the_nodes_is_in_the_rows() {
    let lab = pair(&network(MS, Some(100_000_000), 0.0));
    let (client, server) = (lab.client(), lab.server());
    let busy = shell(server, "sleep 100 & while :; do :; done");
    wait_until("a busy server", || busy.cpu_ns().0 > 20_000_000);
    lab.begin_measuring().unwrap();
    let (monitor, start_ns) = watch(&[client, server], 10);

    let (listener, mut pairs) = connect(&lab);
    let queued = client.enter(|| TcpStream::connect((server.addresses().v4, 80)).unwrap()).unwrap();
    for (near, far) in &mut pairs {
        far.write_all(&vec![0; BYTES]).unwrap();
        near.read_exact(&mut vec![0; BYTES]).unwrap();
    }
    let brief = shell(client, "exit 0");
    brief.wait().unwrap();
    let before = busy.cpu_ns();
    wait_until("a busy server", || busy.cpu_ns().0 > before.0 + 100_000_000);
    // Acknowledgements may be held back for 40 ms; then nothing moves any more.
    std::thread::sleep(Duration::from_millis(200));
    let readings = monitor.finish().unwrap();
    let took_ns = now_ns() - start_ns + 20_000_000;
    let counted = lab.reports().unwrap().remove(0);

    assert!(readings.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns), "in the order of time");
    assert!(readings.iter().all(|reading| reading.at_ns <= took_ns), "within the run");
    let (near, far) = (NodeReadings(&readings, Some("client")), NodeReadings(&readings, Some("server")));
    let all = CONNECTIONS as u64 + 1;
    assert_eq!((near.sockets(Quantity::Established), far.sockets(Quantity::Established)), (all, all));
    assert_eq!((near.sockets(Quantity::Listen), far.sockets(Quantity::Listen)), (0, 1));
    assert_eq!(far.sockets(Quantity::AcceptQueue), 1, "the one that no process accepted");
    let opens = |found: &NodeReadings<'_>, quantity| found.last(SubjectKind::Protocols, "", quantity);
    assert_eq!((opens(&near, Quantity::ActiveOpens), opens(&far, Quantity::PassiveOpens)), (all, all));
    assert_eq!(far.of(SubjectKind::Protocols, "", Quantity::PassiveOpens)[0].1, 0, "since the run's begin");

    let moved = |found: &NodeReadings<'_>, quantity| found.last(SubjectKind::Interface, "eth0", quantity);
    assert_eq!(moved(&near, Quantity::ReceivedBytes), counted.down.bytes_out, "frame by frame");
    // What a node sends to nobody in particular (IPv6's housekeeping) leaves its interface and passes no
    // link.
    let housekeeping = moved(&near, Quantity::SentBytes) - counted.up.bytes_in;
    assert!(housekeeping <= 1000, "{housekeeping} bytes more");
    let housekeeping = moved(&far, Quantity::SentPackets) - counted.down.packets_in;
    assert!(housekeeping <= 10, "{housekeeping} packets more");
    assert!(counted.down.bytes_out > (BYTES * CONNECTIONS) as u64);

    let used = far.of(SubjectKind::Process, "sh", Quantity::CpuUser);
    let used_ns = used.last().unwrap().1 + far.last(SubjectKind::Process, "sh", Quantity::CpuSystem);
    assert!(used.len() >= 3 && used_ns >= 100_000_000, "{used:?}");
    assert!(used_ns <= took_ns, "one process, one core: {used_ns} of {took_ns}");
    assert!(used.windows(2).all(|pair| pair[0].1 <= pair[1].1), "a counter never falls: {used:?}");
    assert!(far.last(SubjectKind::Process, "sleep", Quantity::Resident) > 0, "a child's child");
    assert!(far.last(SubjectKind::Process, "sh", Quantity::OpenFiles) >= 3);
    let brief = near.of(SubjectKind::Process, "sh", Quantity::PeakResident);
    assert!(brief.iter().any(|(_, bytes)| *bytes > 0), "one that began and ended between two rounds");
    assert_eq!(near.of(SubjectKind::Process, "sleep", Quantity::Resident), [], "the server's");

    let tool = NodeReadings(&readings, None);
    assert!(tool.last(SubjectKind::Core, "cpu0", Quantity::CpuUser) < took_ns);
    for thread in ["emulator", "monitor"] {
        // How a few milliseconds divide into user and system is the ticks' chance.
        let cpu = [Quantity::CpuUser, Quantity::CpuSystem];
        assert!(cpu.map(|quantity| tool.last(SubjectKind::Thread, thread, quantity)).iter().sum::<u64>() > 0);
    }

    // The side that closes first waits.
    let (monitor, _) = watch(&[client, server], 10);
    for (mut near, mut far) in pairs {
        near.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(far.read(&mut [0]).unwrap(), 0);
        drop(far);
        assert_eq!(near.read(&mut [0]).unwrap(), 0);
    }
    wait_until("TIME-WAIT at the client", || waiting(client) == CONNECTIONS);
    let readings = monitor.finish().unwrap();
    let (near, far) = (NodeReadings(&readings, Some("client")), NodeReadings(&readings, Some("server")));
    assert_eq!((near.sockets(Quantity::TimeWait), far.sockets(Quantity::TimeWait)), (CONNECTIONS as u64, 0));
    assert_eq!(near.sockets(Quantity::Established), 1);
    drop((queued, listener, busy));
}

pub(crate) fn a_node_that_is_this_machine() {
    let lab = Lab::loopback().unwrap();
    let (client, server) = (lab.client(), lab.server());
    let busy = shell(server, "sleep 100 & while :; do :; done");
    let (monitor, _) = watch(&[client, server], 10);
    let before = busy.cpu_ns();
    wait_until("a busy server", || busy.cpu_ns().0 > before.0 + 50_000_000);
    let readings = monitor.finish().unwrap();
    let server = NodeReadings(&readings, Some("server"));
    assert!(server.last(SubjectKind::Process, "sh", Quantity::CpuUser) > 0);
    assert!(server.last(SubjectKind::Process, "sleep", Quantity::Resident) > 0, "by its process group");
    assert_eq!(NodeReadings(&readings, Some("client")).of(SubjectKind::Process, "", Quantity::CpuUser), []);
    let machine = NodeReadings(&readings, None);
    assert!(
        !machine.of(SubjectKind::Interface, "lo", Quantity::SentBytes).is_empty(),
        "once, for the machine"
    );
    assert_eq!(server.of(SubjectKind::Sockets, "", Quantity::Established), []);
}

/// Figures for people: what the monitor costs, by its own rows; nothing is asserted.
pub(crate) fn measure() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let lab = pair(&network(100_000, None, 0.0));
    let (client, server) = (lab.client(), lab.server());
    let busy = shell(server, "while :; do :; done");
    let address = (server.addresses().v4, 80);
    let listener = server.enter(|| TcpListener::bind(address).unwrap()).unwrap();
    let connect = |count: usize| -> Vec<(TcpStream, TcpStream)> {
        let pair = |_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap().0);
        client.enter(|| (0..count).map(pair).collect()).unwrap()
    };
    let mut held = connect(10);
    for (established, time_wait) in [(10, 0), (1000, 0), (1000, 20_000)] {
        held.extend(connect(established - held.len()));
        // The client's end waits, because it closes first.
        while waiting(client) < time_wait {
            connect(500).into_iter().for_each(|(near, far)| drop((near, far)));
        }
        std::thread::sleep(Duration::from_millis(200));
        for hertz in [2, 10] {
            let (monitor, _) = watch(&[client, server], hertz);
            std::thread::sleep(Duration::from_secs(10));
            let readings = monitor.finish().unwrap();
            let tool = NodeReadings(&readings, None);
            let cpu = [Quantity::CpuUser, Quantity::CpuSystem]
                .map(|quantity| tool.last(SubjectKind::Thread, "monitor", quantity));
            let rounds: std::collections::BTreeSet<u64> = readings.iter().map(|r| r.at_ns).collect();
            let dumps =
                NodeReadings(&readings, Some("client")).of(SubjectKind::Sockets, "", Quantity::Listen).len();
            let took_ns = *rounds.last().unwrap();
            let share = cpu.iter().sum::<u64>() as f64 / took_ns as f64 * 100.0;
            println!(
                "{hertz} Hz, {} ESTABLISHED and {} TIME-WAIT at the client: {share:.3} % of a core, {} rounds, \
                 {dumps} with all states, {} readings",
                held.len(),
                waiting(client),
                rounds.len(),
                readings.len()
            );
        }
    }
    drop(busy);
}
