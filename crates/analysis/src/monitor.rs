//! Sums of counters and peaks of gauges over the monitor's readings of a run.

use std::collections::{BTreeMap, BTreeSet};

use model::RunRecord;
use model::monitor::{Quantity, Reading, Subject, SubjectKind};
use model::plan::Cell;

/// The monitor's counts that checks judge; 0 if the kernel does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorFacts {
    /// Connections that were refused because a listen queue was full.
    pub listen_overflows: u64,
    /// Connections that listeners dropped, including these.
    pub listen_drops: u64,
    /// Connections that were accepted.
    pub passive_opens: u64,
    /// Datagrams dropped because the receiver's buffer was full, in all nodes.
    pub udp_receive_buffer_errors: u64,
    /// Datagrams not sent because the sender's buffer was full.
    pub udp_send_buffer_errors: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// The CPU time of all cores.
    pub cores: CoreFacts,
    /// Major page faults of all processes.
    pub major_faults: u64,
    /// TCP sockets in TIME-WAIT before the first request, in the node with most.
    pub time_wait_before: u64,
    /// Ports in use at once in a client's node (ESTABLISHED and TIME-WAIT), in the node with most.
    pub client_ports: u64,
}

/// The CPU time of all cores during a run; no cores if the monitor read none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreFacts {
    /// Time of all cores.
    pub all_ns: u64,
    /// User and system time, without interrupts.
    pub busy_ns: u64,
    /// User and system time of clients, servers and h123.
    pub known_ns: u64,
    /// Time that the hypervisor gave to other machines.
    pub steal_ns: u64,
    /// Idle time while waiting for a disk.
    pub iowait_ns: u64,
    /// The lowest frequency of the core that changed most, in Hz; 0 if unknown.
    pub slowest_hz: u64,
    /// The highest frequency of the same core.
    pub fastest_hz: u64,
    /// The number of cores.
    pub count: u64,
}

impl MonitorFacts {
    /// The counts of a run; `None` if the monitor read nothing.
    pub(crate) fn of(record: &RunRecord, cell: Option<&Cell>) -> Option<MonitorFacts> {
        let first_ns = Some(record.readings.first()?.at_ns);
        let count = |quantity| protocol_count(record, quantity).unwrap_or(0);
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

/// The lowest and the highest frequency of the core that changed most.
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

/// The peak number of ports in use in a client's node: ESTABLISHED and TIME-WAIT of the same round.
fn client_ports(record: &RunRecord, cell: Option<&Cell>) -> u64 {
    let nodes: BTreeSet<&str> = cell.iter().map(|cell| cell.group.node.as_str()).collect();
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

/// The count of a protocol's events over the run, in all nodes.
pub(crate) fn protocol_count(record: &RunRecord, quantity: Quantity) -> Option<u64> {
    sum_of_peaks(record, quantity, |subject| subject.kind == SubjectKind::Protocols)
}

/// The sum over subjects of each one's largest value; `None` without readings. The largest value of a counter
/// is its last.
pub(crate) fn sum_of_peaks(
    record: &RunRecord,
    quantity: Quantity,
    of: impl Fn(&Subject) -> bool,
) -> Option<u64> {
    let mut peaks: BTreeMap<&Subject, u64> = BTreeMap::new();
    let is_wanted = |reading: &&Reading| reading.quantity == quantity && of(&reading.subject);
    for reading in record.readings.iter().filter(is_wanted) {
        let peak = peaks.entry(&reading.subject).or_default();
        *peak = reading.value.max(*peak);
    }
    (!peaks.is_empty()).then(|| peaks.values().fold(0, |sum: u64, peak| sum.saturating_add(*peak)))
}
