//! One run condensed: distributions that merge, and the facts that checks judge.

use std::collections::BTreeMap;
use std::ops::Range;

use model::plan::{ClientGroup, Plan};
use model::player::Player;
use model::record::{Calibration, LinkReport, RunRecord, Sending};
use model::sample::{FailureKind, HandshakeKind, Outcome, Sample};
use model::variant::HttpVersion;

use crate::distribution::Distribution;
use crate::fold::RunFold;
use crate::monitor::MonitorFacts;
use crate::rows::{Stamps, Urls};
use crate::server_time::ServerFacts;
use crate::tables::Table;

/// What analysis keeps of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// The run's number in the plan.
    pub run: u32,
    /// The cell that it repeats.
    pub cell: u32,
    /// The block that it belongs to.
    pub block: u32,
    /// When it began, Unix time: for people alone.
    pub began_unix_ns: u64,
    /// How long it took, lab included.
    pub took_ns: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// By the metric's name; a metric that this run does not have is absent.
    pub metrics: BTreeMap<&'static str, Distribution>,
    /// Of metrics that are shares, what they are shares of.
    pub shares: BTreeMap<&'static str, ShareOfRun>,
    /// One entry per client group of the cell.
    pub groups: Vec<GroupFacts>,
    /// What the emulator did; empty where there was none.
    pub links: Vec<LinkReport>,
    /// Time that the servers' threads were runnable but did not run.
    pub server_run_queue_ns: u64,
    /// CPU time of each server over the run, in the order of the chain.
    pub server_cpu_ns: Vec<u64>,
    /// Whether a server had to be killed after the run, because it did not end when it was asked to.
    pub server_was_killed: bool,
    /// How the server that the clients ask sends, as far as its description says.
    pub sends: Sending,
    /// Why a server's log tells less than it should, where one does.
    pub log_fault: Option<String>,
    /// What the monitor counted; `None` where it was off.
    pub monitor: Option<MonitorFacts>,
    /// The reference round trips; `None` where nothing was emulated.
    pub calibration: Option<Calibration>,
    /// Tables of it that are lost; empty fields above may be theirs.
    pub lost: Vec<&'static Table>,
}

/// So many of all, in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareOfRun {
    /// Those of which it is the share.
    pub hits: u64,
    /// All.
    pub all: u64,
}

/// A third of the measuring phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Third {
    /// Requests that were intended in it and succeeded.
    pub requests: u64,
    /// The median of their times.
    pub median_ns: f64,
}

/// What checks need to know of one client group in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupFacts {
    /// The group's number within the cell.
    pub group: u16,
    /// Rows of requests, warm-up included.
    pub rows: u64,
    /// Rows of requests that count.
    pub requests: u64,
    /// Of these, those that succeeded.
    pub requests_ok: u64,
    /// Responses by the version that they really used, warm-up included.
    pub versions: BTreeMap<HttpVersion, u64>,
    /// Responses by status code, of rows that count.
    pub statuses: BTreeMap<u16, u64>,
    /// Failures by kind, of rows that count.
    pub failures: BTreeMap<FailureKind, u64>,
    /// Whole responses whose body had another length than expected, of rows that count.
    pub wrong_lengths: u64,
    /// How long the responses took that fit into the server's first window, in loops of one stream over TCP.
    pub small: SmallResponses,
    /// Distinct URLs among the rows that count.
    pub distinct_urls: u64,
    /// What became of the requests of each of these; empty where they are too many to be told apart.
    pub urls: Urls,
    /// Of the requests that succeeded, those whose body was empty and that were not known to be so.
    pub empty_bodies: u64,
    /// The stamps of the rows that count.
    pub stamps: Stamps,
    /// The event at which its client's times begin, where that is somebody else's program and known.
    pub begins: Option<String>,
    /// Response body bytes received by requests that succeeded; of an external client by all, 0 where it does not say.
    pub body_bytes: u64,
    /// Connections opened.
    pub connections: u64,
    /// Encrypted connections by what they negotiated: TLS version, cipher suite, key exchange.
    pub tls: BTreeMap<String, u64>,
    /// Encrypted connections by the kind of their handshake.
    pub handshakes: BTreeMap<HandshakeKind, u64>,
    /// First request intended until last response done.
    pub busy_ns: u64,
    /// CPU time of the client process, user and kernel.
    pub cpu_ns: u64,
    /// Time that the client process was runnable but did not run.
    pub run_queue_ns: u64,
    /// Whether its requests were due at the times of a schedule.
    pub is_open: bool,
    /// sent − intended of the requests that count, 99th percentile.
    pub lag_p99_ns: u64,
    /// Requests that were due and never sent.
    pub never_sent: u64,
    /// What the server says of these requests.
    pub server: ServerFacts,
    /// What its client does not say, where that is somebody else's program ([`model::external::ExternalReport::not_reported`]).
    pub not_reported: Vec<String>,
    /// The measuring phase by thirds, where the workload is the same from its first to its last request.
    pub thirds: Option<[Third; 3]>,
}

/// Responses that a server can send at once, by the time from their head to their end: nothing on the network makes them
/// wait between the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmallResponses {
    /// All of them.
    pub all: u64,
    /// Those that took what a delayed acknowledgement takes: from 38 to 52 ms.
    pub as_delayed_ack: u64,
    /// Those that took somewhat less or more: from 24 to 38 and from 52 to 66 ms.
    pub nearly: u64,
}

impl SmallResponses {
    /// TCP of Linux holds an acknowledgement back for 40 ms; timers and wake-ups add a few.
    const DELAYED_ACK_NS: Range<u64> = 38_000_000..52_000_000;
    const NEARLY_NS: Range<u64> = 24_000_000..66_000_000;

    pub(crate) fn count(&mut self, sample: &Sample, window_bytes: u64) {
        let bytes = sample.response_body_bytes + u64::from(sample.response_header_wire_bytes);
        let (Some(first_byte_ns), Some(done_ns)) = (sample.first_byte_ns, sample.done_ns) else { return };
        if sample.response_body_bytes == 0 || bytes > window_bytes {
            return;
        }
        self.all += 1;
        let took_ns = done_ns.saturating_sub(first_byte_ns);
        if Self::DELAYED_ACK_NS.contains(&took_ns) {
            self.as_delayed_ack += 1;
        } else if Self::NEARLY_NS.contains(&took_ns) {
            self.nearly += 1;
        }
    }
}

impl RunSummary {
    /// Condenses one run with all its rows.
    pub fn of(plan: &Plan, record: &RunRecord) -> RunSummary {
        let mut fold = RunFold::new(plan, record);
        record.samples.iter().for_each(|sample| fold.push(sample));
        fold.finish()
    }

    /// The run's value of a metric: its median, where it has many samples.
    pub fn value(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric).and_then(Distribution::median)
    }
}

/// The page that a group loads, if it loads one.
pub(crate) fn page_of<'a>(plan: &'a Plan, group: &ClientGroup) -> Option<&'a model::Page> {
    plan.workload_of(group).workload.page()
}

/// The player of a group, if it plays a video.
pub(crate) fn player_of<'a>(plan: &'a Plan, group: &ClientGroup) -> Option<&'a Player> {
    plan.workload_of(group).workload.player()
}

/// Whether a group keeps a loop going, which takes as many requests as it gets.
pub(crate) fn is_loop(plan: &Plan, group: &ClientGroup) -> bool {
    plan.workload_of(group).workload.as_loop().is_some()
}
