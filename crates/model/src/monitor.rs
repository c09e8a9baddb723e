//! What the load does to processes, cores, sockets and interfaces: the quantities that the monitor reads, and its rows.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::NANOS_PER_S;

/// One quantity of one subject at one time.
///
/// All readings of a round have the same stamp.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// When the round began, in nanoseconds of the run's clock.
    pub at_ns: u64,
    /// What it is about.
    pub subject: Subject,
    /// What was read.
    pub quantity: Quantity,
    /// The value, in the quantity's unit; a counter's since the run's begin.
    pub value: u64,
}

/// What a reading is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Subject {
    /// The node that it belongs to; `None` for the tool's own process and its threads, and for the whole machine.
    pub node: Option<Name>,
    /// What it is.
    pub kind: SubjectKind,
    /// Such as `nginx: worker process`, `emulator`, `eth0`.
    pub name: Name,
    /// The number of the process or thread as the tool's PID namespace counts, or of the core; 0 for all else.
    pub id: u64,
}

/// The kinds of subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectKind {
    /// A process.
    Process,
    /// A thread of a process that has several.
    Thread,
    /// A core of the machine.
    Core,
    /// The sockets of a network namespace.
    Sockets,
    /// A network interface.
    Interface,
    /// The transport protocols of a network namespace.
    Protocols,
}

/// A name that many rows share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

/// Whether a value is a count since the run's begin, or what is there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// A count since the run's begin, or since the subject's own where that is later.
    Counter,
    /// What is there at that time.
    Gauge,
}

/// Where a quantity comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Code of its own reads it from here.
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
    /// The name in tables; a unit of time or size stands last in it.
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

/// Everything that the monitor reads; [`QUANTITIES`] describes each.
#[expect(missing_docs, reason = "each is described once, in QUANTITIES")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    CpuUser,
    CpuSystem,
    Waited,
    VoluntarySwitches,
    InvoluntarySwitches,
    MajorFaults,
    Resident,
    PeakResident,
    Threads,
    OpenFiles,
    CpuIrq,
    CpuSoftirq,
    CpuSteal,
    CpuIdle,
    CpuIowait,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    TimeWait,
    Close,
    CloseWait,
    LastAck,
    Listen,
    Closing,
    AcceptQueue,
    UdpSockets,
    ActiveOpens,
    PassiveOpens,
    FailedOpens,
    SegmentsReceived,
    SegmentsSent,
    SegmentsRetransmitted,
    SynRetransmitted,
    RetransmissionTimeouts,
    SpuriousTimeouts,
    ResetsSent,
    ListenOverflows,
    ListenDrops,
    BacklogDrops,
    DatagramsReceived,
    DatagramsSent,
    DatagramsWithoutPort,
    UdpReceiveBufferErrors,
    UdpSendBufferErrors,
    ReceivedBytes,
    ReceivedPackets,
    ReceivedDrops,
    SentBytes,
    SentPackets,
    SentDrops,
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

/// Every quantity, in the order of [`Quantity`].
pub const QUANTITIES: &[QuantityInfo] = &[
    time(Quantity::CpuUser, "cpu_user_ns", CPU, Own("CPU clock and /proc/…/stat"), "CPU time in user space"),
    time(
        Quantity::CpuSystem,
        "cpu_system_ns",
        CPU,
        Own("CPU clock and /proc/…/stat"),
        "CPU time in the kernel",
    ),
    time(Quantity::Waited, "waited_ns", RUNNABLE, Own("/proc/…/schedstat"), "runnable, but not running"),
    count(
        Quantity::VoluntarySwitches,
        "voluntary_switches",
        RUNNABLE,
        STATUS,
        "context switches: it had to wait",
    ),
    count(
        Quantity::InvoluntarySwitches,
        "involuntary_switches",
        RUNNABLE,
        STATUS,
        "context switches: others got the core",
    ),
    count(
        Quantity::MajorFaults,
        "major_faults",
        PROCESS,
        Own("/proc/PID/stat"),
        "page faults that needed a disk",
    ),
    bytes(Quantity::Resident, "resident_bytes", PROCESS, Own("/proc/PID/status, VmRSS"), "memory held"),
    bytes(
        Quantity::PeakResident,
        "peak_resident_bytes",
        PROCESS,
        Own("/proc/PID/status, VmHWM"),
        "most memory held since the process began",
    ),
    gauge(Quantity::Threads, "threads", PROCESS, Own("/proc/PID/stat"), "threads"),
    gauge(Quantity::OpenFiles, "open_files", PROCESS, Own("/proc/PID/fd"), "open file descriptors"),
    time(Quantity::CpuIrq, "cpu_irq_ns", CORE, CORES, "interrupts"),
    time(Quantity::CpuSoftirq, "cpu_softirq_ns", CORE, CORES, "soft interrupts, the network's among them"),
    time(Quantity::CpuSteal, "cpu_steal_ns", CORE, CORES, "taken away by the hypervisor"),
    time(Quantity::CpuIdle, "cpu_idle_ns", CORE, CORES, "nothing to do"),
    time(Quantity::CpuIowait, "cpu_iowait_ns", CORE, CORES, "nothing to do but wait for a disk"),
    gauge(Quantity::SynSent, "syn_sent", SOCKETS, DIAG, "TCP sockets in SYN-SENT"),
    gauge(Quantity::SynReceived, "syn_received", SOCKETS, DIAG, "TCP sockets in SYN-RECEIVED"),
    gauge(
        Quantity::Established,
        "established",
        SOCKETS,
        Own("Tcp CurrEstab of /proc/net/snmp, less CLOSE-WAIT by sock_diag"),
        "TCP sockets in ESTABLISHED",
    ),
    gauge(Quantity::FinWait1, "fin_wait_1", SOCKETS, DIAG, "TCP sockets in FIN-WAIT-1"),
    gauge(Quantity::FinWait2, "fin_wait_2", SOCKETS, DIAG, "TCP sockets in FIN-WAIT-2"),
    gauge(
        Quantity::TimeWait,
        "time_wait",
        SOCKETS,
        Own("/proc/net/sockstat, less FIN-WAIT-2 by sock_diag"),
        "TCP sockets in TIME-WAIT",
    ),
    gauge(Quantity::Close, "close", SOCKETS, DIAG, "TCP sockets in CLOSED that still exist"),
    gauge(Quantity::CloseWait, "close_wait", SOCKETS, DIAG, "TCP sockets in CLOSE-WAIT"),
    gauge(Quantity::LastAck, "last_ack", SOCKETS, DIAG, "TCP sockets in LAST-ACK"),
    gauge(Quantity::Listen, "listen", SOCKETS, DIAG, "TCP sockets in LISTEN"),
    gauge(Quantity::Closing, "closing", SOCKETS, DIAG, "TCP sockets in CLOSING"),
    gauge(
        Quantity::AcceptQueue,
        "accept_queue",
        SOCKETS,
        DIAG,
        "connections that wait to be accepted, all listeners together",
    ),
    gauge(
        Quantity::UdpSockets,
        "udp_sockets",
        SOCKETS,
        Own("/proc/net/sockstat and sockstat6"),
        "UDP sockets",
    ),
    count(
        Quantity::ActiveOpens,
        "active_opens",
        PROTOCOLS,
        Counters(&[("Tcp", "ActiveOpens")]),
        "connections begun from here",
    ),
    count(
        Quantity::PassiveOpens,
        "passive_opens",
        PROTOCOLS,
        Counters(&[("Tcp", "PassiveOpens")]),
        "connections that others began",
    ),
    count(
        Quantity::FailedOpens,
        "failed_opens",
        PROTOCOLS,
        Counters(&[("Tcp", "AttemptFails")]),
        "connections that failed before they were established",
    ),
    count(
        Quantity::SegmentsReceived,
        "segments_received",
        PROTOCOLS,
        Counters(&[("Tcp", "InSegs")]),
        "TCP segments received",
    ),
    count(
        Quantity::SegmentsSent,
        "segments_sent",
        PROTOCOLS,
        Counters(&[("Tcp", "OutSegs")]),
        "TCP segments sent, those retransmitted not counted",
    ),
    count(
        Quantity::SegmentsRetransmitted,
        "segments_retransmitted",
        PROTOCOLS,
        Counters(&[("Tcp", "RetransSegs")]),
        "TCP segments sent again",
    ),
    count(
        Quantity::SynRetransmitted,
        "syn_retransmitted",
        PROTOCOLS,
        Counters(&[("TcpExt", "TCPSynRetrans")]),
        "of these, SYN and SYN-ACK",
    ),
    count(
        Quantity::RetransmissionTimeouts,
        "retransmission_timeouts",
        PROTOCOLS,
        Counters(&[("TcpExt", "TCPTimeouts")]),
        "retransmission timers that expired",
    ),
    count(
        Quantity::SpuriousTimeouts,
        "spurious_timeouts",
        PROTOCOLS,
        Counters(&[("TcpExt", "TCPSpuriousRTOs")]),
        "of these, needless ones",
    ),
    count(Quantity::ResetsSent, "resets_sent", PROTOCOLS, Counters(&[("Tcp", "OutRsts")]), "TCP resets sent"),
    count(
        Quantity::ListenOverflows,
        "listen_overflows",
        PROTOCOLS,
        Counters(&[("TcpExt", "ListenOverflows")]),
        "connections refused because a listener's queue was full",
    ),
    count(
        Quantity::ListenDrops,
        "listen_drops",
        PROTOCOLS,
        Counters(&[("TcpExt", "ListenDrops")]),
        "SYNs dropped by listeners, for whatever reason",
    ),
    count(
        Quantity::BacklogDrops,
        "backlog_drops",
        PROTOCOLS,
        Counters(&[("TcpExt", "TCPBacklogDrop")]),
        "segments dropped because a socket's backlog was full",
    ),
    count(
        Quantity::DatagramsReceived,
        "datagrams_received",
        PROTOCOLS,
        Counters(&[("Udp", "InDatagrams"), ("", "Udp6InDatagrams")]),
        "UDP datagrams received",
    ),
    count(
        Quantity::DatagramsSent,
        "datagrams_sent",
        PROTOCOLS,
        Counters(&[("Udp", "OutDatagrams"), ("", "Udp6OutDatagrams")]),
        "UDP datagrams sent",
    ),
    count(
        Quantity::DatagramsWithoutPort,
        "datagrams_without_port",
        PROTOCOLS,
        Counters(&[("Udp", "NoPorts"), ("", "Udp6NoPorts")]),
        "UDP datagrams for a port where nobody listened",
    ),
    count(
        Quantity::UdpReceiveBufferErrors,
        "udp_receive_buffer_errors",
        PROTOCOLS,
        Counters(&[("Udp", "RcvbufErrors"), ("", "Udp6RcvbufErrors")]),
        "UDP datagrams dropped because the receiver's buffer was full",
    ),
    count(
        Quantity::UdpSendBufferErrors,
        "udp_send_buffer_errors",
        PROTOCOLS,
        Counters(&[("Udp", "SndbufErrors"), ("", "Udp6SndbufErrors")]),
        "UDP datagrams not sent because the sender's buffer was full",
    ),
    QuantityInfo {
        unit: "B",
        ..count(
            Quantity::ReceivedBytes,
            "received_bytes",
            INTERFACE,
            DEV,
            "bytes received, Ethernet header included",
        )
    },
    count(Quantity::ReceivedPackets, "received_packets", INTERFACE, DEV, "packets received"),
    count(Quantity::ReceivedDrops, "received_drops", INTERFACE, DEV, "packets dropped on receipt"),
    QuantityInfo {
        unit: "B",
        ..count(Quantity::SentBytes, "sent_bytes", INTERFACE, DEV, "bytes sent, Ethernet header included")
    },
    count(Quantity::SentPackets, "sent_packets", INTERFACE, DEV, "packets sent"),
    count(Quantity::SentDrops, "sent_drops", INTERFACE, DEV, "packets dropped before they were sent"),
];

const fn count(
    quantity: Quantity,
    name: &'static str,
    of: &'static [SubjectKind],
    origin: Origin,
    meaning: &'static str,
) -> QuantityInfo {
    QuantityInfo { quantity, name, unit: "1", nature: Count, of, origin, meaning }
}

const fn time(
    quantity: Quantity,
    name: &'static str,
    of: &'static [SubjectKind],
    origin: Origin,
    meaning: &'static str,
) -> QuantityInfo {
    QuantityInfo { unit: "ns", ..count(quantity, name, of, origin, meaning) }
}

const fn gauge(
    quantity: Quantity,
    name: &'static str,
    of: &'static [SubjectKind],
    origin: Origin,
    meaning: &'static str,
) -> QuantityInfo {
    QuantityInfo { nature: Gauge, ..count(quantity, name, of, origin, meaning) }
}

const fn bytes(
    quantity: Quantity,
    name: &'static str,
    of: &'static [SubjectKind],
    origin: Origin,
    meaning: &'static str,
) -> QuantityInfo {
    QuantityInfo { unit: "B", ..gauge(quantity, name, of, origin, meaning) }
}

impl Quantity {
    /// Its description.
    pub const fn info(self) -> &'static QuantityInfo {
        // The slice is in the order of the variants; a test holds it to that.
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

impl SubjectKind {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            SubjectKind::Process => "process",
            SubjectKind::Thread => "thread",
            SubjectKind::Core => "core",
            SubjectKind::Sockets => "sockets",
            SubjectKind::Interface => "interface",
            SubjectKind::Protocols => "protocols",
        }
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name(text.into())
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        String::deserialize(deserializer).map(|text| Name(text.into()))
    }
}

/// How often the monitor reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorRate {
    /// Never.
    Off,
    /// So many times a second, [`MonitorRate::HERTZ`]; and at a run's begin and end in any case.
    Hertz(u8),
}

impl MonitorRate {
    /// The rates that can be had.
    pub const HERTZ: std::ops::RangeInclusive<u8> = 1..=10;

    /// From one round to the next; `None` where there are none.
    pub const fn period_ns(self) -> Option<u64> {
        match self {
            MonitorRate::Hertz(hertz) if hertz > 0 => Some(NANOS_PER_S / hertz as u64),
            MonitorRate::Off | MonitorRate::Hertz(_) => None,
        }
    }
}

impl Default for MonitorRate {
    fn default() -> MonitorRate {
        MonitorRate::Hertz(2)
    }
}

impl fmt::Display for MonitorRate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MonitorRate::Off => formatter.write_str("off"),
            MonitorRate::Hertz(hertz) => write!(formatter, "{hertz}Hz"),
        }
    }
}

impl FromStr for MonitorRate {
    type Err = String;

    fn from_str(text: &str) -> Result<MonitorRate, String> {
        let trimmed = text.trim();
        if trimmed == "off" {
            return Ok(MonitorRate::Off);
        }
        let hertz = trimmed.strip_suffix("Hz").and_then(|number| number.trim().parse().ok());
        hertz.filter(|hertz| MonitorRate::HERTZ.contains(hertz)).map(MonitorRate::Hertz).ok_or_else(|| {
            format!(
                "found `{text}`, expected a whole number of rounds per second from `1Hz` to `10Hz`, or `off`"
            )
        })
    }
}

impl Serialize for MonitorRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MonitorRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MonitorRate, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
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
                "1" => "",
                other => panic!("an unknown unit {other}"),
            };
            assert!(info.name.ends_with(suffix), "{}", info.name);
        }
        assert_eq!(Quantity::SentDrops as usize + 1, QUANTITIES.len(), "the last variant");
        assert_eq!(Quantity::of_name("speed"), None);
    }

    #[test]
    fn a_rate_is_written_as_it_is_read() {
        for (text, rate) in
            [("off", MonitorRate::Off), ("2Hz", MonitorRate::default()), ("10Hz", MonitorRate::Hertz(10))]
        {
            assert_eq!(text.parse(), Ok(rate));
            assert_eq!(rate.to_string(), text);
            let json = serde_json::to_string(&rate).unwrap();
            assert_eq!(serde_json::from_str::<MonitorRate>(&json).unwrap(), rate);
        }
        assert_eq!(" 5 Hz ".parse(), Ok(MonitorRate::Hertz(5)));
        assert_eq!(MonitorRate::Hertz(10).period_ns(), Some(100_000_000));
        assert_eq!(MonitorRate::Off.period_ns(), None);
    }

    #[test]
    fn other_rates_are_refused() {
        for text in ["", "2", "0Hz", "11Hz", "0.5Hz", "-1Hz", "2 kHz", "300Hz", "on"] {
            let problem = text.parse::<MonitorRate>().unwrap_err();
            assert!(problem.starts_with(&format!("found `{text}`, expected")), "{problem}");
        }
    }
}
