//! The record of a run: the unit that is stored and analysed.

use serde::{Deserialize, Serialize};

use crate::assignment::ClientReport;
use crate::backend::Backend;
use crate::monitor::Reading;
use crate::named;
use crate::page_cache::CachedContent;
use crate::page_events::PageEvents;
use crate::plan::PlannedRun;
use crate::player::PlayerEvent;
use crate::sample::{ConnectionRow, Outcome, Sample};

/// The record of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run's number in the plan: [`crate::plan::PlannedRun::run`].
    pub run: u32,
    /// The cell that it repeats; the first one, if it measures several groups.
    pub cell: u32,
    /// The block that it belongs to.
    pub block: u32,
    /// When it began, Unix time in nanoseconds (for people; never subtracted).
    pub began_unix_ns: u64,
    /// How long it took, including setup.
    pub took_ns: u64,
    /// How much of the servers' files was in the page cache when the run began; `None` where the study does
    /// not state it.
    #[serde(default)]
    pub content: Option<CachedContent>,
    /// Ok, failed with a reason, or unsupported.
    pub outcome: Outcome,
    /// Rows of requests.
    pub samples: Vec<Sample>,
    /// Rows of connections.
    pub connections: Vec<ConnectionRow>,
    /// The reports of the client processes, by group.
    pub clients: Vec<ClientReport>,
    /// What the server process cost.
    pub servers: Vec<ServerReport>,
    /// The requests of this run in the servers' logs, if the study measures server time.
    pub server_requests: Vec<ServerRequest>,
    /// What happened to players, in the order of time of each group; empty where no workload plays anything.
    #[serde(default)]
    pub player: Vec<PlayerEvent>,
    /// The page loads of browsers.
    #[serde(default)]
    pub page_events: Vec<PageEvents>,
    /// What the emulator did; empty where there was none.
    pub links: Vec<LinkReport>,
    /// What the monitor read, in the order of time; empty where it was off.
    #[serde(default)]
    pub readings: Vec<Reading>,
    /// The reference round trips on the empty path of each client group, in their order; empty where nothing
    /// was emulated.
    pub round_trips: Vec<Calibration>,
}

impl RunRecord {
    /// The record of a planned run that has not begun.
    pub fn empty(planned: &PlannedRun) -> RunRecord {
        RunRecord { run: planned.run, cell: planned.cell, block: planned.block, ..RunRecord::default() }
    }
}

/// The report on a server process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// The adapter's name.
    pub name: String,
    /// The version that it reports.
    pub version: String,
    /// From start to ready.
    pub ready_after_ns: u64,
    /// CPU time in user space over the run, all its processes.
    pub cpu_user_ns: u64,
    /// CPU time in the kernel.
    pub cpu_system_ns: u64,
    /// Time that its threads were runnable but did not run, over the run.
    #[serde(default)]
    pub run_queue_ns: u64,
    /// Whether it was killed after the run, because it did not stop in time.
    #[serde(default)]
    pub was_killed: bool,
    /// What its logs lack: a log that reached its limit, or the access log if the study measures server time;
    /// `None` if they are complete.
    #[serde(default)]
    pub log_fault: Option<String>,
    /// How it sends over the variant that clients use, as far as its description reports it.
    #[serde(default)]
    pub sends: Sending,
    /// How many connections its workers serve at the same time; `None` if its description does not report it.
    #[serde(default)]
    pub concurrency: Option<u64>,
}

/// How a server sends, as texts to compare; `None` if its description does not report it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    /// Of QUIC: the congestion control, such as `cubic`.
    pub congestion_control: Option<String>,
    /// Of QUIC: the initial congestion window, in packets.
    pub initial_window: Option<String>,
    /// Of QUIC: whether packets are paced, `yes` or `no`.
    pub pacing: Option<String>,
    /// Of QUIC: whether packets leave in batches (UDP segmentation offload), `yes` or `no`.
    pub gso: Option<String>,
    /// Over TLS: the size of records, such as `16384` bytes or `dynamic`.
    pub tls_records: Option<String>,
}

impl Sending {
    /// The names of the keys of a description, in the order of [`Sending::values`].
    pub const NAMES: [&str; 5] = ["congestion_control", "initial_window", "pacing", "gso", "tls_records"];

    /// The values, in the order of [`Sending::NAMES`].
    pub fn values(&self) -> [Option<&str>; 5] {
        [&self.congestion_control, &self.initial_window, &self.pacing, &self.gso, &self.tls_records]
            .map(Option::as_deref)
    }

    /// The same from values in the order of [`Sending::NAMES`].
    pub fn of(
        [congestion_control, initial_window, pacing, gso, tls_records]: [Option<String>; 5],
    ) -> Sending {
        Sending { congestion_control, initial_window, pacing, gso, tls_records }
    }
}

/// One request as a server of the run knows it, joined with the client's row by the request's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRequest {
    /// Which server, counted from the clients: 0 is the one that they use, 1 the one behind it.
    pub server: u16,
    /// [`crate::sample::Sample::group`] of the client's row.
    pub group: u16,
    /// [`crate::sample::Sample::request`] of the client's row.
    pub request: u64,
    /// How long the request took at the server; its source defines the first and the last event.
    pub request_time_ns: u64,
    /// What that time is rounded to, or uncertain by.
    pub precision_ns: u64,
    /// Where that time comes from.
    pub source: TimeSource,
    /// The time in the server's log, if packets show a more precise one.
    pub log_time_ns: Option<u64>,
    /// When the request's last packet reached the server, in nanoseconds since the run's start on the clock
    /// of the client's row; known only from packets.
    pub arrived_ns: Option<u64>,
    /// When the response's first packet left the server, on the same clock. `None` also where that packet may
    /// have been the TLS session's.
    pub first_sent_ns: Option<u64>,
    /// When the response's last packet left the server for the first time, on the same clock.
    pub sent_ns: Option<u64>,
    /// The log's own stamp, Unix time in nanoseconds (for people; another clock than the rows').
    pub logged_unix_ns: Option<u64>,
    /// The status code in the log.
    pub status: Option<u16>,
    /// Body bytes sent, as the log has it.
    pub body_bytes: Option<u64>,
    /// The client's port as the server saw it.
    pub remote_port: Option<u16>,
}

named! { "a source of time";
    /// What a server's time was measured with.
    #[derive(Default)]
    pub enum TimeSource {
        /// The server's access log.
        #[default]
        Log = "log",
        /// The packets at the server's end of the emulated link: from the request's last to the response's
        /// last.
        Packets = "packets",
    }
}

/// What the emulator did on one link during one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// The link's name, such as `client-server`.
    pub link: String,
    /// What emulated it.
    #[serde(default)]
    pub backend: Backend,
    /// From the client's side to the server's.
    pub up: DirectionReport,
    /// From the server's side to the client's.
    pub down: DirectionReport,
    /// Whether the emulator ran with real-time priority; false where the kernel emulates.
    pub realtime: bool,
    /// CPU time of the emulator's thread; `None` where the kernel emulates.
    pub cpu_ns: Option<u64>,
}

/// What the emulator did in one direction, client traffic only (calibration is counted apart).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Frames that entered.
    pub packets_in: u64,
    /// Bytes of these frames, Ethernet header included.
    pub bytes_in: u64,
    /// Frames that left.
    pub packets_out: u64,
    /// Bytes of these frames.
    pub bytes_out: u64,
    /// Frames dropped because the study configures loss.
    pub lost_configured: u64,
    /// Frames dropped because they arrived during an outage.
    #[serde(default)]
    pub lost_outage: u64,
    /// Frames dropped because the queue was full.
    pub lost_queue: u64,
    /// Frames dropped by CoDel.
    #[serde(default)]
    pub lost_codel: u64,
    /// Frames dropped because the emulator could not keep up (ring full, send refused). A fault.
    pub lost_overload: u64,
    /// Packets that a middlebox dropped: UDP that the network's rule refuses, and packets to a mapping that a
    /// NAT forgot.
    #[serde(default)]
    pub lost_middlebox: u64,
    /// Frames that CoDel marked (CE) and did not drop.
    #[serde(default)]
    pub marked: u64,
    /// Copies of frames that the network was asked to make; `None` where the backend does not count them.
    #[serde(default)]
    pub duplicated: Option<u64>,
    /// Frames that left after one that had passed the link behind them; `None` where the backend does not
    /// count them.
    #[serde(default)]
    pub reordered: Option<u64>,
    /// How late frames left, against their due time; `None` where the backend does not measure it.
    pub lateness: Option<Lateness>,
}

/// How late the emulator released frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

/// Reference round trips on the empty path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// The client group whose path it is.
    pub group: u16,
    /// The RTT that the network promises.
    pub expected_rtt_ns: u64,
    /// Each probe's round trip; a lost one is absent.
    pub rtt_ns: Vec<u64>,
    /// How many probes were sent.
    pub sent: u32,
}

/// What a network did to the lab's test streams, and what it promises: reference measurements of rate and
/// loss, taken once per network and study, each impairment alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkCalibration {
    /// The network's name in the plan.
    pub network: String,
    /// What emulated it.
    #[serde(default, skip_serializing_if = "Backend::is_default")]
    pub backend: Backend,
    /// From the client's side to the server's.
    pub up: StreamCalibration,
    /// From the server's side to the client's.
    pub down: StreamCalibration,
}

/// The reference measurements of one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamCalibration {
    /// The rate; `None` where the network has none or one that varies.
    pub rate: Option<RateCalibration>,
    /// The loss.
    pub loss: LossCalibration,
}

/// How fast a link let full frames through that came faster than it can.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateCalibration {
    /// What the network promises, in bits per second of whole frames.
    pub expected_bits_per_s: u64,
    /// How fast the sender sent; below the promise, the sender was measured and not the link.
    pub offered_bits_per_s: u64,
    /// What came through, from the first frame's arrival to the last's.
    pub measured_bits_per_s: u64,
    /// Frames that came through.
    pub packets: u64,
}

/// How many packets a link lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossCalibration {
    /// Packets sent.
    pub sent: u64,
    /// Those that never came.
    pub lost: u64,
    /// How many are lost on average.
    pub expected: f64,
    /// The standard deviation of that number.
    pub deviation: f64,
}
