//! The summary of one run: distributions that merge, and the facts that checks judge.

use std::collections::BTreeMap;
use std::ops::Range;

use model::CachedContent;
use model::assignment::Suspensions;
use model::plan::{ClientGroup, Plan};
use model::player::{Player, PlayerFault};
use model::record::{Calibration, LinkReport, Sending};
use model::sample::{FailureKind, HandshakeKind, Outcome, Pushes, Sample, ServerClose};
use model::variant::HttpVersion;
use model::workload::Workload;

use crate::distribution::Distribution;
use crate::estimate::Statistic;
use crate::metrics;
use crate::monitor::MonitorFacts;
use crate::rows::{Bodies, Stamps, Urls};
use crate::server_time::ServerFacts;
use crate::table::Table;

/// The summary of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// The run's number in the plan.
    pub run: u32,
    /// The cell that it repeats.
    pub cell: u32,
    /// The block that it belongs to.
    pub block: u32,
    /// When it began, Unix time: for people only.
    pub began_unix_ns: u64,
    /// How long it took, including setup.
    pub took_ns: u64,
    /// How much of the servers' files was in the page cache when it began; `None` where the study does not
    /// state it.
    pub content: Option<CachedContent>,
    /// How it ended.
    pub outcome: Outcome,
    /// By the metric's name. Metrics without a value are absent.
    pub metrics: BTreeMap<String, Distribution>,
    /// The numerators and denominators of metrics that are shares.
    pub shares: BTreeMap<String, ShareOfRun>,
    /// One entry per client group of the cell.
    pub groups: Vec<GroupFacts>,
    /// What the emulator did; empty if nothing was emulated.
    pub links: Vec<LinkReport>,
    /// Time that the servers' threads were runnable but had no core.
    pub server_run_queue_ns: u64,
    /// CPU time of each server over the run, in the order of the chain.
    pub server_cpu_ns: Vec<u64>,
    /// Whether a server had to be killed after the run because it did not stop when asked.
    pub server_was_killed: bool,
    /// How the server next to the clients sends, according to its description.
    pub sends: Sending,
    /// How many connections each server serves at the same time, in the order of the chain; `None` if
    /// unknown.
    pub server_concurrency: Vec<Option<u64>>,
    /// Why a server's log is incomplete, if one is.
    pub log_fault: Option<String>,
    /// What the monitor counted; `None` if it was off.
    pub monitor: Option<MonitorFacts>,
    /// The calibrated round trips; `None` if nothing was emulated.
    pub calibration: Option<Calibration>,
    /// Its lost tables, which may be the reason for empty fields above.
    pub lost: Vec<Table>,
}

/// A share in one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareOfRun {
    /// The numerator.
    pub hits: u64,
    /// The denominator.
    pub all: u64,
}

/// The wait of the first request for its first byte, and those of all requests; of the same URL in loops.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FirstWait {
    /// From the first request sent to its first byte.
    pub first_ns: f64,
    /// The lower quartile of the waits.
    pub quartile_ns: f64,
    /// The number of requests.
    pub requests: u64,
    /// Whether a quarter of them, as many as the quartile rests on, were sent after the first byte of the
    /// first one's response. Others do not meet a server that is any warmer.
    pub has_later: bool,
}

/// A third of the measuring phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Third {
    /// Requests intended in this third that succeeded.
    pub requests: u64,
    /// The median of their request times.
    pub median_ns: f64,
}

/// What checks need of one client group in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupFacts {
    /// The group's number within the cell.
    pub group: u16,
    /// Rows of requests, including the warm-up.
    pub rows: u64,
    /// Rows of requests that count.
    pub requests: u64,
    /// Rows that count, of requests that succeeded.
    pub requests_ok: u64,
    /// Responses by the HTTP version that they used, including the warm-up.
    pub versions: BTreeMap<HttpVersion, u64>,
    /// Responses by status code, of rows that count.
    pub statuses: BTreeMap<u16, u64>,
    /// Videos that were played to their end.
    pub videos_ended: u64,
    /// Players that gave up, by the reason.
    pub given_up: BTreeMap<PlayerFault, u64>,
    /// Failures by kind, of rows that count.
    pub failures: BTreeMap<FailureKind, u64>,
    /// Complete responses with an unexpected length, of rows that count.
    pub wrong_lengths: u64,
    /// The times of responses that fit into the server's initial window, in loops with one stream over TCP.
    pub small: SmallResponses,
    /// Distinct URLs among the rows that count.
    pub distinct_urls: u64,
    /// The results of the requests of each URL; empty if there are too many URLs.
    pub urls: Urls,
    /// The bodies of each URL; empty if there are too many URLs.
    pub bodies: BTreeMap<u32, Bodies>,
    /// Media types and content codings, which bodies count.
    pub contents: Vec<String>,
    /// Requests that succeeded with an empty body that was not expected.
    pub empty_bodies: u64,
    /// The timestamps of the rows that count.
    pub stamps: Stamps,
    /// The event at which the times of an external client start, if it is known.
    pub begins: Option<String>,
    /// Response body bytes of requests that succeeded; for an external client of all requests, 0 if it does
    /// not report them.
    pub body_bytes: u64,
    /// The sum of their squares, one for each request, where rows have them.
    pub body_bytes_squared: f64,
    /// What an HTTP/2 server pushed.
    pub pushed: Pushes,
    /// Connections opened.
    pub connections: u64,
    /// Connections that the server ended before the last connection was opened, by the reason: others had to
    /// replace them.
    pub replaced: BTreeMap<ServerClose, u64>,
    /// Encrypted connections by what they negotiated: TLS version, cipher suite, key exchange.
    pub tls: BTreeMap<String, u64>,
    /// Encrypted connections by the kind of their handshake.
    pub handshakes: BTreeMap<HandshakeKind, u64>,
    /// From the first request intended to the last response done.
    pub busy_ns: u64,
    /// CPU time of the client process, user and kernel.
    pub cpu_ns: u64,
    /// Time that the client process was runnable but had no core.
    pub run_queue_ns: u64,
    /// Whether its workload is an open loop.
    pub is_open: bool,
    /// sent − intended of the requests that count, 99th percentile.
    pub lag_p99_ns: u64,
    /// The client's part of this, without the wait for a free connection: 99th percentile.
    pub own_lag_p99_ns: u64,
    /// Requests that were due and never sent.
    pub never_sent: u64,
    /// Of these, requests for which no connection was free.
    pub never_sent_held: u64,
    /// Times in which the client's loop stood still.
    pub suspended: Suspensions,
    /// The server times of these requests.
    pub server: ServerFacts,
    /// Page loads of a browser.
    pub browser_loads: u64,
    /// The first error on the console of one of them.
    pub console_error: Option<String>,
    /// What an external client does not report ([`model::external::ExternalReport::not_reported`]).
    pub not_reported: Vec<String>,
    /// How long the first request waited, if one succeeded.
    pub first_wait: Option<FirstWait>,
    /// The measuring phase by thirds, if the workload is steady.
    pub thirds: Option<[Third; 3]>,
}

/// Responses that fit into the server's initial window, by the time from headers to end. The network does not
/// delay them between the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmallResponses {
    /// All of these responses.
    pub all: u64,
    /// Responses that took as long as a delayed acknowledgement: 38–52 ms.
    pub as_delayed_ack: u64,
    /// Responses that took slightly less or more: 24–38 ms and 52–66 ms.
    pub nearly: u64,
}

impl SmallResponses {
    /// Linux delays acknowledgements by 40 ms; timers and wake-ups add a few milliseconds.
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
    /// Whether it is the first summary of its run, which has one for each cell that it measures.
    pub fn is_first_of_run(&self) -> bool {
        self.groups.first().is_none_or(|facts| facts.group == 0)
    }

    /// The run without a table that is lost: metrics that need it have no value, and checks that read it
    /// leave the run out.
    #[must_use]
    pub fn without(mut self, plan: &Plan, table: Table) -> RunSummary {
        let is_lost = |name: &String| metrics::find(name).is_some_and(|metric| metric.needs(table, plan));
        self.metrics.retain(|name, _| !is_lost(name));
        self.shares.retain(|name, _| !is_lost(name));
        self.lost.push(table);
        self
    }

    /// The median of a metric's values in the run.
    pub fn value(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric).and_then(Distribution::median)
    }

    /// The run's value of a metric in comparisons: the study's statistic of its values in the run.
    pub fn compared(&self, metric: &str, plan: &Plan) -> Option<f64> {
        Statistic::from(metrics::compared(metric, plan.statistic)).of(self.metrics.get(metric)?)
    }
}

/// The page that a group loads.
pub(crate) fn page_of<'a>(plan: &'a Plan, group: &ClientGroup) -> Option<&'a model::Page> {
    plan.workload_of(group).workload.page()
}

/// The player of a group.
pub(crate) fn player_of<'a>(plan: &'a Plan, group: &ClientGroup) -> Option<&'a Player> {
    plan.workload_of(group).workload.player()
}

/// Whether a group's workload is a loop.
pub(crate) fn is_loop(plan: &Plan, group: &ClientGroup) -> bool {
    matches!(plan.workload_of(group).workload, Workload::Closed(_) | Workload::Open(_))
}
