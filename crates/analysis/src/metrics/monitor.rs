//! What servers and clients cost, from the monitor's readings and the servers' own reports.

use std::collections::BTreeSet;

use model::external::ExternalReport;
use model::monitor::{Quantity, SubjectKind};
use model::number::float;
use model::record::ServerReport;

use super::{ANY, LOOPS, Metric, Table, View, bytes, count, duration};
use crate::monitor::{protocol_count, sum_of_peaks};

pub(super) const METRICS: &[Metric] = &[
    Metric {
        reads: &[Table::Servers],
        crosses_network: false,
        ..duration("server_cpu_per_request", "Server CPU per request", ANY, server_cpu_per_request)
    },
    monitored(bytes("server_memory_peak", "Peak server memory", ANY, server_memory_peak)),
    monitored(count("server_established_peak", "Peak established connections (server)", LOOPS, |view| {
        socket_peak(view, servers(view), Quantity::Established)
    })),
    monitored(count("client_established_peak", "Peak established connections (client)", LOOPS, |view| {
        socket_peak(view, clients(view), Quantity::Established)
    })),
    monitored(count("server_time_wait_peak", "Peak TIME-WAIT connections (server)", LOOPS, |view| {
        socket_peak(view, servers(view), Quantity::TimeWait)
    })),
    monitored(count("client_time_wait_peak", "Peak TIME-WAIT connections (client)", LOOPS, |view| {
        socket_peak(view, clients(view), Quantity::TimeWait)
    })),
    monitored(count("segments_retransmitted", "TCP retransmissions", ANY, |view| {
        protocol_count(view.record, Quantity::SegmentsRetransmitted).map(float)
    })),
    monitored(count("listen_drops", "Connections dropped by listeners", ANY, |view| {
        protocol_count(view.record, Quantity::ListenDrops).map(float)
    })),
    monitored(count("udp_receive_buffer_errors", "Datagrams dropped at the receiver", ANY, |view| {
        protocol_count(view.record, Quantity::UdpReceiveBufferErrors).map(float)
    })),
];

/// A metric from the monitor's readings.
const fn monitored(metric: Metric) -> Metric {
    Metric { reads: &[Table::Monitor], ..metric }
}

/// User and system time over all requests, including warm-up requests that have rows: the server does not
/// know the warm-up.
fn server_cpu_per_request(view: &View<'_>) -> Option<f64> {
    let cpu = |server: &ServerReport| server.cpu_user_ns.saturating_add(server.cpu_system_ns);
    let cpu_ns: u64 = view.servers.iter().map(cpu).sum();
    let requests = view.rows + view.external().map(ExternalReport::requests).sum::<u64>();
    (cpu_ns > 0 && requests > 0).then(|| float(cpu_ns) / float(requests))
}

/// The sum of the peak memory of all server processes, including servers behind proxies.
fn server_memory_peak(view: &View<'_>) -> Option<f64> {
    let backs = view.cell.into_iter().flat_map(|cell| &cell.chain.backs);
    let nodes = servers(view).chain(backs.map(|back| back.node.as_str())).collect();
    peak_on(view, &nodes, SubjectKind::Process, Quantity::PeakResident)
}

/// The nodes of the servers that the groups send requests to.
fn servers<'a>(view: &View<'a>) -> impl Iterator<Item = &'a str> {
    let is_used = view.planned().next().is_some();
    view.cell.filter(|_| is_used).map(|cell| cell.chain.node.as_str()).into_iter()
}

/// The nodes of the groups.
fn clients<'a>(view: &View<'a>) -> impl Iterator<Item = &'a str> {
    view.planned().map(|group| group.node.as_str())
}

/// The largest number of sockets of the nodes in a state, as the monitor's rounds saw it.
fn socket_peak<'n>(view: &View<'_>, nodes: impl Iterator<Item = &'n str>, state: Quantity) -> Option<f64> {
    peak_on(view, &nodes.collect(), SubjectKind::Sockets, state)
}

fn peak_on(view: &View<'_>, nodes: &BTreeSet<&str>, kind: SubjectKind, quantity: Quantity) -> Option<f64> {
    let peak = sum_of_peaks(view.record, quantity, |subject| {
        subject.kind == kind && subject.node.as_deref().is_some_and(|node| nodes.contains(node))
    });
    peak.map(float)
}
