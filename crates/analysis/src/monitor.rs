//! What a run's readings come to: sums of counters, peaks of gauges.

use std::collections::{BTreeMap, BTreeSet};

use model::RunRecord;
use model::external::ExternalReport;
use model::monitor::{Quantity, Reading, Subject, SubjectKind};
use model::plan::Cell;
use model::record::ServerReport;

use crate::fold::View;
use crate::number;

/// What the monitor counted that checks look at; 0 where the kernel does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorFacts {
    /// Connections that were refused because a listener's queue was full.
    pub listen_overflows: u64,
    /// Dropped by listeners, these included.
    pub listen_drops: u64,
    /// Connections that others began.
    pub passive_opens: u64,
    /// Datagrams dropped because the receiver's buffer was full, in all nodes.
    pub udp_receive_buffer_errors: u64,
    /// Datagrams not sent because the sender's buffer was full.
    pub udp_send_buffer_errors: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// What the machine's cores did.
    pub cores: CoreFacts,
    /// Page faults that needed a disk, of all processes.
    pub major_faults: u64,
    /// TCP sockets in TIME-WAIT before the run asked for anything, in the node that had most.
    pub time_wait_before: u64,
    /// Sockets of a client's node that held a port at once, ESTABLISHED and TIME-WAIT, in the node that had most.
    pub client_ports: u64,
}

/// What the machine's cores did during a run, all together; no core of them where the monitor read none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreFacts {
    /// Time of all cores.
    pub all_ns: u64,
    /// In programs and in the kernel on their behalf; interrupts are not in it.
    pub busy_ns: u64,
    /// Of this, in processes that the monitor knows: clients, servers and the tool.
    pub known_ns: u64,
    /// Taken away by the hypervisor.
    pub steal_ns: u64,
    /// Nothing to do but wait for a disk.
    pub iowait_ns: u64,
    /// The slowest and the fastest that a core was seen to run at, in Hz, of the core that changed most; 0 where unknown.
    pub slowest_hz: u64,
    /// See [`CoreFacts::slowest_hz`].
    pub fastest_hz: u64,
    /// How many cores.
    pub count: u64,
}

impl MonitorFacts {
    /// Those of a run; `None` where nothing was read.
    pub(crate) fn of(record: &RunRecord, cell: Option<&Cell>) -> Option<MonitorFacts> {
        let first_ns = Some(record.readings.first()?.at_ns);
        let count = |quantity| counted(record, quantity).unwrap_or(0);
        Some(MonitorFacts {
            listen_overflows: count(Quantity::ListenOverflows),
            listen_drops: count(Quantity::ListenDrops),
            passive_opens: count(Quantity::PassiveOpens),
            udp_receive_buffer_errors: count(Quantity::UdpReceiveBufferErrors),
            udp_send_buffer_errors: count(Quantity::UdpSendBufferErrors),
            datagrams_received: count(Quantity::DatagramsReceived),
            cores: CoreFacts::of(record),
            major_faults: of_processes(record, Quantity::MajorFaults),
            time_wait_before: most_of_a_node(record, |reading| {
                reading.quantity == Quantity::TimeWait && Some(reading.at_ns) == first_ns
            }),
            client_ports: client_ports(record, cell),
        })
    }
}

impl CoreFacts {
    fn of(record: &RunRecord) -> CoreFacts {
        let of_cores = |quantity| {
            sum_of_peaks(record, quantity, |subject| subject.kind == SubjectKind::Core).unwrap_or(0)
        };
        let busy_ns = of_cores(Quantity::CpuUser) + of_cores(Quantity::CpuSystem);
        let (steal_ns, iowait_ns) = (of_cores(Quantity::CpuSteal), of_cores(Quantity::CpuIowait));
        let interrupts_ns = of_cores(Quantity::CpuIrq) + of_cores(Quantity::CpuSoftirq);
        let cores = record.readings.iter().filter(|reading| reading.subject.kind == SubjectKind::Core);
        let ids: BTreeSet<u64> = cores.clone().map(|reading| reading.subject.id).collect();
        let (slowest_hz, fastest_hz) = frequencies(cores);
        CoreFacts {
            all_ns: busy_ns + steal_ns + iowait_ns + interrupts_ns + of_cores(Quantity::CpuIdle),
            busy_ns,
            known_ns: of_processes(record, Quantity::CpuUser) + of_processes(record, Quantity::CpuSystem),
            steal_ns,
            iowait_ns,
            slowest_hz,
            fastest_hz,
            count: ids.len() as u64,
        }
    }
}

/// The slowest and the fastest of the core that changed most.
fn frequencies<'r>(cores: impl Iterator<Item = &'r Reading>) -> (u64, u64) {
    let mut ranges: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for reading in cores.filter(|reading| reading.quantity == Quantity::Frequency && reading.value > 0) {
        let (slowest, fastest) = ranges.entry(reading.subject.id).or_insert((reading.value, reading.value));
        *slowest = reading.value.min(*slowest);
        *fastest = reading.value.max(*fastest);
    }
    let change = |(slowest, fastest): &(u64, u64)| u128::from(*fastest) * 1_000_000 / u128::from(*slowest);
    ranges.into_values().max_by_key(change).unwrap_or_default()
}

fn of_processes(record: &RunRecord, quantity: Quantity) -> u64 {
    sum_of_peaks(record, quantity, |subject| subject.kind == SubjectKind::Process).unwrap_or(0)
}

/// The largest sum over the sockets of one node.
fn most_of_a_node(record: &RunRecord, is_wanted: impl Fn(&Reading) -> bool) -> u64 {
    let mut nodes: BTreeMap<Option<&str>, u64> = BTreeMap::new();
    let sockets = |reading: &&Reading| reading.subject.kind == SubjectKind::Sockets && is_wanted(reading);
    for reading in record.readings.iter().filter(sockets) {
        *nodes.entry(reading.subject.node.as_deref()).or_default() += reading.value;
    }
    nodes.into_values().max().unwrap_or(0)
}

/// Ports that the clients of a node held at most at once: ESTABLISHED and TIME-WAIT of the same round.
fn client_ports(record: &RunRecord, cell: Option<&Cell>) -> u64 {
    let nodes: BTreeSet<&str> =
        cell.iter().flat_map(|cell| &cell.clients).map(|group| group.node.as_str()).collect();
    let mut rounds: BTreeMap<(&str, u64), u64> = BTreeMap::new();
    for reading in &record.readings {
        let holds_a_port = matches!(reading.quantity, Quantity::Established | Quantity::TimeWait);
        if let Some(node) =
            reading.subject.node.as_deref().filter(|node| holds_a_port && nodes.contains(node))
        {
            *rounds.entry((node, reading.at_ns)).or_default() += reading.value;
        }
    }
    rounds.into_values().max().unwrap_or(0)
}

/// What all nodes counted of the protocols over the run.
fn counted(record: &RunRecord, quantity: Quantity) -> Option<u64> {
    sum_of_peaks(record, quantity, |subject| subject.kind == SubjectKind::Protocols)
}

/// User and kernel, over all requests, those of the warm-up included where they have rows: the server does not know of it.
pub(crate) fn server_cpu_per_request(view: &View<'_>) -> Option<f64> {
    let cpu = |server: &ServerReport| server.cpu_user_ns.saturating_add(server.cpu_system_ns);
    let cpu_ns: u64 = view.record.servers.iter().map(cpu).sum();
    let requests = view.rows + view.external().map(ExternalReport::requests).sum::<u64>();
    (cpu_ns > 0 && requests > 0).then(|| number::float(cpu_ns) / number::float(requests))
}

/// The most memory that the processes of the groups' servers held, each at its own peak; what stands behind a proxy included.
pub(crate) fn server_memory_peak(view: &View<'_>) -> Option<f64> {
    let backs = view.cell.iter().flat_map(|cell| &cell.chains).filter_map(|chain| chain.back.as_ref());
    let nodes: BTreeSet<&str> = servers(view).chain(backs.map(|back| back.node.as_str())).collect();
    let peak = sum_of_peaks(view.record, Quantity::PeakResident, |subject| {
        subject.kind == SubjectKind::Process
            && subject.node.as_deref().is_some_and(|node| nodes.contains(node))
    });
    peak.map(number::float)
}

pub(crate) fn server_established_peak(view: &View<'_>) -> Option<f64> {
    most_sockets(view, servers(view), Quantity::Established)
}

pub(crate) fn client_established_peak(view: &View<'_>) -> Option<f64> {
    most_sockets(view, clients(view), Quantity::Established)
}

pub(crate) fn server_time_wait_peak(view: &View<'_>) -> Option<f64> {
    most_sockets(view, servers(view), Quantity::TimeWait)
}

pub(crate) fn client_time_wait_peak(view: &View<'_>) -> Option<f64> {
    most_sockets(view, clients(view), Quantity::TimeWait)
}

pub(crate) fn segments_retransmitted(view: &View<'_>) -> Option<f64> {
    counted(view.record, Quantity::SegmentsRetransmitted).map(number::float)
}

pub(crate) fn listen_drops(view: &View<'_>) -> Option<f64> {
    counted(view.record, Quantity::ListenDrops).map(number::float)
}

pub(crate) fn udp_receive_buffer_errors(view: &View<'_>) -> Option<f64> {
    counted(view.record, Quantity::UdpReceiveBufferErrors).map(number::float)
}

/// The nodes of the servers that the groups ask.
fn servers<'a>(view: &View<'a>) -> impl Iterator<Item = &'a str> {
    let asked: BTreeSet<usize> = view.planned().map(|group| group.chain).collect();
    let chains = view.cell.map_or(&[][..], |cell| &cell.chains).iter().enumerate();
    chains.filter(move |(place, _)| asked.contains(place)).map(|(_, chain)| chain.node.as_str())
}

/// The nodes of the groups.
fn clients<'a>(view: &View<'a>) -> impl Iterator<Item = &'a str> {
    view.planned().map(|group| group.node.as_str())
}

/// The most sockets of the nodes that were in a state at once, as far as rounds saw it.
fn most_sockets<'n>(view: &View<'_>, nodes: impl Iterator<Item = &'n str>, state: Quantity) -> Option<f64> {
    let nodes: BTreeSet<&str> = nodes.collect();
    let most = sum_of_peaks(view.record, state, |subject| {
        subject.kind == SubjectKind::Sockets
            && subject.node.as_deref().is_some_and(|node| nodes.contains(node))
    });
    most.map(number::float)
}

/// The sum over subjects of the largest value of each; `None` where there is no such reading. A counter's largest value is its
/// last.
fn sum_of_peaks(record: &RunRecord, quantity: Quantity, of: impl Fn(&Subject) -> bool) -> Option<u64> {
    let mut peaks: BTreeMap<&Subject, u64> = BTreeMap::new();
    let is_wanted = |reading: &&Reading| reading.quantity == quantity && of(&reading.subject);
    for reading in record.readings.iter().filter(is_wanted) {
        let peak = peaks.entry(&reading.subject).or_default();
        *peak = reading.value.max(*peak);
    }
    (!peaks.is_empty()).then(|| peaks.values().fold(0, |sum: u64, peak| sum.saturating_add(*peak)))
}
