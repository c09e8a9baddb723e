//! What a run's readings come to: sums of counters, peaks of gauges.

use std::collections::{BTreeMap, BTreeSet};

use model::RunRecord;
use model::foreign::ForeignReport;
use model::monitor::{Quantity, Reading, Subject, SubjectKind};
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
}

impl MonitorFacts {
    /// Those of a run; `None` where nothing was read.
    pub(crate) fn of(record: &RunRecord) -> Option<MonitorFacts> {
        if record.readings.is_empty() {
            return None;
        }
        let count = |quantity| counted(record, quantity).unwrap_or(0);
        Some(MonitorFacts {
            listen_overflows: count(Quantity::ListenOverflows),
            listen_drops: count(Quantity::ListenDrops),
            passive_opens: count(Quantity::PassiveOpens),
            udp_receive_buffer_errors: count(Quantity::UdpReceiveBufferErrors),
            udp_send_buffer_errors: count(Quantity::UdpSendBufferErrors),
            datagrams_received: count(Quantity::DatagramsReceived),
        })
    }
}

/// What all nodes counted of the protocols over the run.
fn counted(record: &RunRecord, quantity: Quantity) -> Option<u64> {
    sum_of_peaks(record, quantity, |subject| subject.kind == SubjectKind::Protocols)
}

/// User and kernel, over all requests, those of the warm-up included where they have rows: the server does not know of it.
pub(crate) fn server_cpu_per_request(view: &View<'_>) -> Option<f64> {
    let cpu = |server: &ServerReport| server.cpu_user_ns.saturating_add(server.cpu_system_ns);
    let cpu_ns: u64 = view.record.servers.iter().map(cpu).sum();
    let requests = view.rows + view.foreign().map(ForeignReport::requests).sum::<u64>();
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
