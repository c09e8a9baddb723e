//! The client protocol: the interface between the tool and its client processes.
//!
//! A client reads one [`Assignment`] as JSON on standard input and writes [`ClientMessage`]s to standard
//! output; nothing else passes. It depends on neither namespaces nor a shared machine.

use serde::{Deserialize, Serialize};

use crate::clients::Clients;
use crate::external::ExternalReport;
use crate::options::Options;
use crate::pins::Pins;
use crate::player::PlayerEvent;
use crate::sample::{ConnectionRow, Failure, Sample};
use crate::tally::{ConnectionTally, Counts, RequestTimes, Tally};
use crate::units::NANOS_PER_MS;
use crate::version::version_of;
use crate::workload::Workload;

pub use crate::target::{Target, Trust};

/// The version of the client protocol; a client refuses any other.
pub const ASSIGNMENT_VERSION: u32 = 8;

/// The input of a client process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// [`ASSIGNMENT_VERSION`].
    pub version: u32,
    /// The client group's number within the cell.
    pub group: u16,
    /// The node's name.
    pub node: String,
    /// The clock that stamps are taken from.
    pub clock: ClockReference,
    /// Where to send requests.
    pub target: Target,
    /// What to do.
    pub workload: Workload,
    /// How transports are set.
    pub pins: Pins,
    /// Seed of all randomness.
    pub seed: u64,
    /// Which clients of the group the process runs, and when they begin.
    #[serde(default, skip_serializing_if = "Clients::is_one")]
    pub clients: Clients,
    /// When to give up, in nanoseconds since the run's start: what is not done then has failed.
    pub deadline_ns: u64,
    /// When the group ends although its work is not done, in nanoseconds since the run's start. Requests in
    /// flight are unfinished then ([`ClientReport::unfinished`]); nothing fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_ns: Option<u64>,
    /// How requests, connections and rows are handled; what is left out has its default.
    #[serde(default, skip_serializing_if = "Options::is_default")]
    pub options: Options,
}

impl Assignment {
    /// Reads what a client gets on standard input.
    ///
    /// # Errors
    /// It is not JSON, or has another version or another form.
    pub fn from_json(json: &str) -> Result<Assignment, String> {
        let fault =
            |error: serde_json::Error| format!("the assignment is not valid JSON for this version: {error}");
        let version = version_of(json.as_bytes()).map_err(fault)?;
        if version != ASSIGNMENT_VERSION {
            return Err(format!(
                "the assignment has version {version}; this client supports {ASSIGNMENT_VERSION}; use the h123 that \
                 wrote it"
            ));
        }
        serde_json::from_str(json).map_err(fault)
    }
}

/// A node's monotonic clock and the reading at which the run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReference {
    /// Names the clock; stamps of different clocks are never subtracted. All nodes on one machine share one.
    pub id: String,
    /// CLOCK_MONOTONIC at the run's start, in nanoseconds.
    pub run_start_ns: u64,
}

/// What a client writes to standard output, in this order: `Hello`, any rows, then `Done` or `Fault`.
///
/// Each message is framed as a little-endian `u32` length and that many bytes of postcard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ClientMessage {
    /// The client understood its assignment.
    Hello {
        /// [`ASSIGNMENT_VERSION`].
        version: u32,
    },
    /// Rows of requests.
    Samples(Vec<Sample>),
    /// Rows of connections.
    Connections(Vec<ConnectionRow>),
    /// Rows of a player, in the order of time.
    Player(Vec<PlayerEvent>),
    /// All done; what it took.
    Done(Box<ClientReport>),
    /// The client could not do its work at all.
    Fault(Failure),
}

/// The report of a client process at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientReport {
    /// The client group.
    pub group: u16,
    /// The URLs that [`Sample::url`] counts.
    pub urls: Vec<String>,
    /// The media types and content codings that [`Sample::content`] counts, such as `text/html` or
    /// `text/css, gzip`.
    pub contents: Vec<String>,
    /// The clients that began.
    pub clients_begun: u32,
    /// Of these, the clients whose workload was done before the end of the run or of their group.
    pub clients_finished: u32,
    /// First request intended, in nanoseconds since the run's start.
    pub started_ns: u64,
    /// Last response done.
    pub finished_ns: u64,
    /// CPU time in user space between these two.
    pub cpu_user_ns: u64,
    /// CPU time in the kernel between these two.
    pub cpu_system_ns: u64,
    /// Time spent runnable but not running, between these two (from the scheduler's statistics).
    pub run_queue_ns: u64,
    /// Times in which its loop stood still.
    pub suspended: Suspensions,
    /// Peak resident memory.
    pub max_resident_bytes: u64,
    /// When the server's name was looked up; `None` where its address was known.
    #[serde(default)]
    pub dns_lookup: Option<DnsLookup>,
    /// The first change of its address, where there was one.
    #[serde(default)]
    pub address_change: Option<AddressChange>,
    /// How much later than intended requests were sent.
    pub lag: Lag,
    /// The client's part of this: how much later they were sent than a connection could have taken them.
    pub own_lag: Lag,
    /// Requests that were due and never sent: the queue was full, or the end came first.
    pub never_sent: u64,
    /// Of these, requests for which no connection was free: the server held all.
    pub never_sent_held: u64,
    /// Requests in flight, or waiting for a connection, when time ended the workload or the group.
    /// They have no row, because their outcome is unknown.
    #[serde(default)]
    pub unfinished: u64,
    /// Why the client stopped before its workload was done, where it did.
    pub stopped: Option<String>,
    /// Requests without a row, summed up.
    pub tallies: Vec<Tally>,
    /// The times of measured successes without a row.
    pub times: RequestTimes,
    /// Connections without a row, summed up.
    pub further_connections: ConnectionTally,
    /// The reasons why connections could not migrate to a new local address, and how many each kept from it.
    pub failed_migrations: Counts<String>,
    /// What the warm-up took, where there was one: what is counted began when it ended.
    pub warmup: Option<WarmupCost>,
    /// The report of an external client; `None` for h123's own.
    pub external: Option<Box<ExternalReport>>,
}

impl ClientReport {
    /// Adds the report of another process of the same group. Lags are then those of the latest process.
    pub fn merge(&mut self, other: ClientReport) {
        self.clients_begun += other.clients_begun;
        self.clients_finished += other.clients_finished;
        self.started_ns = self.started_ns.min(other.started_ns);
        self.finished_ns = self.finished_ns.max(other.finished_ns);
        self.cpu_user_ns += other.cpu_user_ns;
        self.cpu_system_ns += other.cpu_system_ns;
        self.run_queue_ns += other.run_queue_ns;
        self.suspended.count += other.suspended.count;
        self.suspended.total_ns += other.suspended.total_ns;
        self.suspended.max_ns = self.suspended.max_ns.max(other.suspended.max_ns);
        self.max_resident_bytes += other.max_resident_bytes;
        self.dns_lookup = self.dns_lookup.or(other.dns_lookup);
        self.address_change = match (self.address_change, other.address_change) {
            (Some(own), Some(other)) => Some(own.with(other)),
            (own, other) => own.or(other),
        };
        self.lag = self.lag.latest(other.lag);
        self.own_lag = self.own_lag.latest(other.own_lag);
        self.never_sent += other.never_sent;
        self.never_sent_held += other.never_sent_held;
        self.unfinished += other.unfinished;
        self.stopped = self.stopped.take().or(other.stopped);
        self.tallies.extend(other.tallies);
        self.times.merge(&other.times);
        self.further_connections.merge(&other.further_connections);
        self.failed_migrations.merge(&other.failed_migrations);
        self.warmup = match (self.warmup, other.warmup) {
            (Some(own), Some(other)) => Some(own.with(other)),
            (own, other) => own.or(other),
        };
    }

    /// How long its loop stood still after the warm-up, in nanoseconds.
    pub fn stood_still_ns(&self) -> u64 {
        self.suspended.total_ns.saturating_sub(self.warmup.unwrap_or_default().suspended_ns)
    }
}

/// Times in which a client's loop stood still although it had to act: the process was stopped, or the machine
/// was. Shorter ones than [`Suspensions::LEAST_NS`] are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspensions {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Suspensions {
    /// A loop that runs acts more often than this.
    pub const LEAST_NS: u64 = 50 * NANOS_PER_MS;

    /// The loop acted this much later than it had to.
    #[inline]
    pub fn note(&mut self, late_ns: u64) {
        if late_ns >= Self::LEAST_NS {
            self.count += 1;
            self.total_ns = self.total_ns.saturating_add(late_ns);
            self.max_ns = self.max_ns.max(late_ns);
        }
    }
}

/// A change of the client's address, such as a handover, in nanoseconds since the run's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressChange {
    /// When the client learned that its address was gone.
    pub at_ns: u64,
    /// When it received bytes of a response again: over a connection that migrated, or over a later one.
    /// `None` where it received none.
    pub received_ns: Option<u64>,
}

impl AddressChange {
    /// That of two processes: until the later of them received bytes again.
    #[must_use]
    fn with(self, other: AddressChange) -> AddressChange {
        AddressChange {
            at_ns: self.at_ns.min(other.at_ns),
            received_ns: self.received_ns.zip(other.received_ns).map(|(own, other)| own.max(other)),
        }
    }
}

/// A DNS lookup; stamps in nanoseconds since the run's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsLookup {
    /// When the resolver was asked.
    pub began_ns: u64,
    /// When it answered.
    pub ended_ns: u64,
}

/// What had been spent when the warm-up ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmupCost {
    /// When it ended, in nanoseconds since the run's start.
    pub ended_ns: u64,
    /// CPU time in user space until then.
    pub cpu_user_ns: u64,
    /// CPU time in the kernel until then.
    pub cpu_system_ns: u64,
    /// Time spent runnable but not running until then.
    pub run_queue_ns: u64,
    /// Time in which its loop stood still until then.
    pub suspended_ns: u64,
    /// Bytes handed to the transport until then, on all connections.
    pub sent_bytes: u64,
    /// Bytes received from the transport until then.
    pub received_bytes: u64,
}

impl WarmupCost {
    /// The cost of two processes of one group, whose warm-up ends at the same time.
    fn with(self, other: WarmupCost) -> WarmupCost {
        WarmupCost {
            ended_ns: self.ended_ns.max(other.ended_ns),
            cpu_user_ns: self.cpu_user_ns + other.cpu_user_ns,
            cpu_system_ns: self.cpu_system_ns + other.cpu_system_ns,
            run_queue_ns: self.run_queue_ns + other.run_queue_ns,
            suspended_ns: self.suspended_ns + other.suspended_ns,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            received_bytes: self.received_bytes + other.received_bytes,
        }
    }
}

impl Lag {
    fn latest(self, other: Lag) -> Lag {
        Lag {
            p50_ns: self.p50_ns.max(other.p50_ns),
            p99_ns: self.p99_ns.max(other.p99_ns),
            max_ns: self.max_ns.max(other.max_ns),
        }
    }
}

/// How much later than intended requests were sent: sent − intended, in nanoseconds, of measured requests of
/// an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lag {
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}
