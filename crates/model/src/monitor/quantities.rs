//! Every quantity that the monitor reads, described in one place.

use serde::{Deserialize, Serialize};

use super::SubjectKind;

/// Whether a value is a count since the start of the run, or the current value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// A count since the start of the run, or of the subject if that is later.
    Counter,
    /// The value at that time.
    Gauge,
}

/// Where a quantity comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Its own code reads it from this source.
    Own(&'static str),
    /// The sum of these counters of `/proc/net/snmp`, `netstat` and `snmp6`, by the names of the kernel.
    Counters(&'static [Counter]),
}

/// A counter of the kernel: its line's prefix (`Tcp`, `TcpExt`, `Udp`; empty for `snmp6`) and its name.
pub type Counter = (&'static str, &'static str);

/// A quantity described.
#[derive(Clone, Copy, Debug)]
pub struct QuantityInfo {
    /// Which.
    pub quantity: Quantity,
    /// The name in tables; a unit of time or size is its suffix.
    pub name: &'static str,
    /// `ns`, `B`, or `1` for counts.
    pub unit: &'static str,
    /// Counter or gauge.
    pub nature: Nature,
    /// The kinds of subject that have it.
    pub of: &'static [SubjectKind],
    /// Where it comes from.
    pub origin: Origin,
    /// One line for people.
    pub meaning: &'static str,
}

/// Declares [`Quantity`] and [`QUANTITIES`], in the same order.
macro_rules! quantities {
    ($($quantity:ident = $kind:ident($($description:tt)*);)*) => {
        /// Everything that the monitor reads; [`QUANTITIES`] describes each.
        #[expect(missing_docs, reason = "each is described once, in QUANTITIES")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Quantity { $($quantity),* }

        /// Every quantity, in the order of [`Quantity`].
        pub const QUANTITIES: &[QuantityInfo] = &[$($kind(Quantity::$quantity, $($description)*)),*];
    };
}

use Nature::{Counter as Count, Gauge};
use Origin::{Counters, Own};

const PROCESS: &[SubjectKind] = &[SubjectKind::Process];
const RUNNABLE: &[SubjectKind] = &[SubjectKind::Process, SubjectKind::Thread];
const CPU: &[SubjectKind] = &[SubjectKind::Process, SubjectKind::Thread, SubjectKind::Core];
const CORE: &[SubjectKind] = &[SubjectKind::Core];
const SOCKETS: &[SubjectKind] = &[SubjectKind::Sockets];
const PROTOCOLS: &[SubjectKind] = &[SubjectKind::Protocols];
const INTERFACE: &[SubjectKind] = &[SubjectKind::Interface];

const STATUS: Origin = Own("/proc/PID/task/TID/status");
const CORES: Origin = Own("/proc/stat, in ticks of 10 ms");
const DIAG: Origin = Own("sock_diag");
const DEV: Origin = Own("/proc/net/dev");

quantities! {
    CpuUser = time("cpu_user_ns", CPU, Own("CPU clock and /proc/…/stat"), "CPU time in user space");
    CpuSystem = time("cpu_system_ns", CPU, Own("CPU clock and /proc/…/stat"), "CPU time in the kernel");
    Waited = time("waited_ns", RUNNABLE, Own("/proc/…/schedstat"), "runnable, but not running");
    VoluntarySwitches = count("voluntary_switches", RUNNABLE, STATUS, "context switches because it blocked");
    InvoluntarySwitches = count("involuntary_switches", RUNNABLE, STATUS,
        "context switches because it was preempted");
    MajorFaults = count("major_faults", PROCESS, Own("/proc/PID/stat"), "page faults that needed a disk");
    Resident = bytes("resident_bytes", PROCESS, Own("/proc/PID/status, VmRSS"), "resident memory");
    PeakResident = bytes("peak_resident_bytes", PROCESS, Own("/proc/PID/status, VmHWM"),
        "peak resident memory since the process began");
    Threads = gauge("threads", PROCESS, Own("/proc/PID/stat"), "threads");
    OpenFiles = gauge("open_files", PROCESS, Own("/proc/PID/fd"), "open file descriptors");
    CpuIrq = time("cpu_irq_ns", CORE, CORES, "interrupts");
    CpuSoftirq = time("cpu_softirq_ns", CORE, CORES, "soft interrupts, including the network's");
    CpuSteal = time("cpu_steal_ns", CORE, CORES, "stolen by the hypervisor");
    CpuIdle = time("cpu_idle_ns", CORE, CORES, "idle");
    CpuIowait = time("cpu_iowait_ns", CORE, CORES, "idle while waiting for a disk");
    Frequency = hertz("frequency_hz", CORE, Own("scaling_cur_freq of the core's cpufreq, where the kernel has it"),
        "current frequency");
    SynSent = gauge("syn_sent", SOCKETS, DIAG, "TCP sockets in SYN-SENT");
    SynReceived = gauge("syn_received", SOCKETS, DIAG, "TCP sockets in SYN-RECEIVED");
    Established = gauge("established", SOCKETS, Own("Tcp CurrEstab of /proc/net/snmp, less CLOSE-WAIT by sock_diag"),
        "TCP sockets in ESTABLISHED");
    FinWait1 = gauge("fin_wait_1", SOCKETS, DIAG, "TCP sockets in FIN-WAIT-1");
    FinWait2 = gauge("fin_wait_2", SOCKETS, DIAG, "TCP sockets in FIN-WAIT-2");
    TimeWait = gauge("time_wait", SOCKETS, Own("/proc/net/sockstat, less FIN-WAIT-2 by sock_diag"),
        "TCP sockets in TIME-WAIT");
    Close = gauge("close", SOCKETS, DIAG, "TCP sockets in CLOSED that still exist");
    CloseWait = gauge("close_wait", SOCKETS, DIAG, "TCP sockets in CLOSE-WAIT");
    LastAck = gauge("last_ack", SOCKETS, DIAG, "TCP sockets in LAST-ACK");
    Listen = gauge("listen", SOCKETS, DIAG, "TCP sockets in LISTEN");
    Closing = gauge("closing", SOCKETS, DIAG, "TCP sockets in CLOSING");
    AcceptQueue = gauge("accept_queue", SOCKETS, DIAG,
        "connections that wait to be accepted, all listeners together");
    UdpSockets = gauge("udp_sockets", SOCKETS, Own("/proc/net/sockstat and sockstat6"), "UDP sockets");
    ActiveOpens = count("active_opens", PROTOCOLS, Counters(&[("Tcp", "ActiveOpens")]),
        "connections opened from here");
    PassiveOpens = count("passive_opens", PROTOCOLS, Counters(&[("Tcp", "PassiveOpens")]),
        "connections opened by others");
    FailedOpens = count("failed_opens", PROTOCOLS, Counters(&[("Tcp", "AttemptFails")]),
        "connections that failed before they were established");
    SegmentsReceived = count("segments_received", PROTOCOLS, Counters(&[("Tcp", "InSegs")]),
        "TCP segments received");
    SegmentsSent = count("segments_sent", PROTOCOLS, Counters(&[("Tcp", "OutSegs")]),
        "TCP segments sent, excluding retransmissions");
    SegmentsRetransmitted = count("segments_retransmitted", PROTOCOLS, Counters(&[("Tcp", "RetransSegs")]),
        "TCP retransmissions");
    SynRetransmitted = count("syn_retransmitted", PROTOCOLS, Counters(&[("TcpExt", "TCPSynRetrans")]),
        "of these, SYN and SYN-ACK");
    RetransmissionTimeouts = count("retransmission_timeouts", PROTOCOLS, Counters(&[("TcpExt", "TCPTimeouts")]),
        "retransmission timers that expired");
    SpuriousTimeouts = count("spurious_timeouts", PROTOCOLS, Counters(&[("TcpExt", "TCPSpuriousRTOs")]),
        "of these, spurious ones");
    ResetsSent = count("resets_sent", PROTOCOLS, Counters(&[("Tcp", "OutRsts")]), "TCP resets sent");
    ListenOverflows = count("listen_overflows", PROTOCOLS, Counters(&[("TcpExt", "ListenOverflows")]),
        "connections dropped because an accept queue was full");
    ListenDrops = count("listen_drops", PROTOCOLS, Counters(&[("TcpExt", "ListenDrops")]),
        "SYNs dropped by listeners, for any reason");
    BacklogDrops = count("backlog_drops", PROTOCOLS, Counters(&[("TcpExt", "TCPBacklogDrop")]),
        "segments dropped because a socket's backlog was full");
    DatagramsReceived = count("datagrams_received", PROTOCOLS, Counters(&[("Udp", "InDatagrams"), ("", "Udp6InDatagrams")]),
        "UDP datagrams received");
    DatagramsSent = count("datagrams_sent", PROTOCOLS, Counters(&[("Udp", "OutDatagrams"), ("", "Udp6OutDatagrams")]),
        "UDP datagrams sent");
    DatagramsWithoutPort = count("datagrams_without_port", PROTOCOLS, Counters(&[("Udp", "NoPorts"), ("", "Udp6NoPorts")]),
        "UDP datagrams for a port without a listener");
    UdpReceiveBufferErrors = count("udp_receive_buffer_errors", PROTOCOLS, Counters(&[("Udp", "RcvbufErrors"), ("", "Udp6RcvbufErrors")]),
        "UDP datagrams dropped because the receiver's buffer was full");
    UdpSendBufferErrors = count("udp_send_buffer_errors", PROTOCOLS, Counters(&[("Udp", "SndbufErrors"), ("", "Udp6SndbufErrors")]),
        "UDP datagrams not sent because the sender's buffer was full");
    ReceivedBytes = counted_bytes("received_bytes", INTERFACE, DEV,
        "bytes received, Ethernet header included");
    ReceivedPackets = count("received_packets", INTERFACE, DEV, "packets received");
    ReceivedDrops = count("received_drops", INTERFACE, DEV, "packets dropped on receipt");
    SentBytes = counted_bytes("sent_bytes", INTERFACE, DEV, "bytes sent, Ethernet header included");
    SentPackets = count("sent_packets", INTERFACE, DEV, "packets sent");
    SentDrops = count("sent_drops", INTERFACE, DEV, "packets dropped before they were sent");
}

type Name = &'static str;
type Subjects = &'static [SubjectKind];

const fn count(quantity: Quantity, name: Name, of: Subjects, origin: Origin, meaning: Name) -> QuantityInfo {
    QuantityInfo { quantity, name, unit: "1", nature: Count, of, origin, meaning }
}

const fn time(quantity: Quantity, name: Name, of: Subjects, origin: Origin, meaning: Name) -> QuantityInfo {
    QuantityInfo { unit: "ns", ..count(quantity, name, of, origin, meaning) }
}

const fn counted_bytes(
    quantity: Quantity,
    name: Name,
    of: Subjects,
    origin: Origin,
    meaning: Name,
) -> QuantityInfo {
    QuantityInfo { unit: "B", ..count(quantity, name, of, origin, meaning) }
}

const fn gauge(quantity: Quantity, name: Name, of: Subjects, origin: Origin, meaning: Name) -> QuantityInfo {
    QuantityInfo { nature: Gauge, ..count(quantity, name, of, origin, meaning) }
}

const fn bytes(quantity: Quantity, name: Name, of: Subjects, origin: Origin, meaning: Name) -> QuantityInfo {
    QuantityInfo { unit: "B", ..gauge(quantity, name, of, origin, meaning) }
}

const fn hertz(quantity: Quantity, name: Name, of: Subjects, origin: Origin, meaning: Name) -> QuantityInfo {
    QuantityInfo { unit: "Hz", ..gauge(quantity, name, of, origin, meaning) }
}

impl Default for Quantity {
    fn default() -> Quantity {
        QUANTITIES[0].quantity
    }
}

impl Quantity {
    /// Its description.
    pub const fn info(self) -> &'static QuantityInfo {
        &QUANTITIES[self as usize]
    }

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// The quantity of a name in tables.
    pub fn of_name(name: &str) -> Option<Quantity> {
        QUANTITIES.iter().find(|info| info.name == name).map(|info| info.quantity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quantity_is_described_once_and_in_order() {
        for (place, info) in QUANTITIES.iter().enumerate() {
            assert_eq!(info.quantity as usize, place, "{}", info.name);
            assert_eq!(Quantity::of_name(info.name), Some(info.quantity), "a name stands twice");
            assert!(!info.of.is_empty() && !info.meaning.is_empty(), "{}", info.name);
            let suffix = match info.unit {
                "ns" => "_ns",
                "B" => "_bytes",
                "Hz" => "_hz",
                "1" => "",
                other => panic!("an unknown unit {other}"),
            };
            assert!(info.name.ends_with(suffix), "{}", info.name);
        }
        assert_eq!(Quantity::SentDrops as usize + 1, QUANTITIES.len(), "the last variant");
        assert_eq!(Quantity::of_name("speed"), None);
    }
}
