//! Networks: what the path between two nodes does to packets, per direction and over time.
//!
//! The file (`networks/NAME.toml`) is read in two stages: `written` knows its keys and units, `resolve`
//! refuses what contradicts itself and computes the rest. This file has the resolved form: every value is in
//! one unit, and a change on the timeline is the whole direction from then on.

use serde::{Deserialize, Serialize};

use crate::error::{DataFile, InputError, Source};
use crate::named;

mod change;
pub mod kernel;
mod known;
mod resolve;
pub mod trace;
mod words;
mod written;

pub use known::ExpectedLoss;
pub use trace::{Opportunities, RateSteps};
pub use words::{describe, describe_direction};
pub(crate) use written::InlineNetwork;
pub use written::KEYS;

/// A whole Ethernet frame without checksum at the usual MTU: what one delivery opportunity carries.
pub const FULL_FRAME_BYTES: u64 = 1514;

/// A network, resolved: what each direction does to a packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// The name that studies use.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// The source of the values.
    pub source: String,
    /// From the client to the server.
    pub up: Direction,
    /// From the server to the client.
    pub down: Direction,
    /// What changes during a run, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Change>,
}

/// Both directions from an instant on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Counted from the run's start.
    pub at_ns: u64,
    /// From the client to the server.
    pub up: Direction,
    /// From the server to the client.
    pub down: Direction,
    /// Whether the client's address changes at this instant, as when it leaves Wi-Fi for a mobile network.
    pub handover: bool,
    /// Whether a NAT at the client's end forgets its mappings at this instant and gives new ports.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rebinding: bool,
}

/// What one direction does to a packet, in this order: outage, loss, the rule for UDP, duplication, queue and
/// rate, delay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// When no packet passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outages: Option<Outages>,
    /// Loss by chance.
    #[serde(default)]
    pub loss: Loss,
    /// Packets that are lost by their number (from 1, as they arrive in a run): first and last of each
    /// stretch, in order, without overlap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_packets: Vec<(u64, u64)>,
    /// What a middlebox does to UDP, which carries QUIC; TCP passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpRule>,
    /// Share of packets that come twice, from 0 to 1.
    #[serde(default)]
    pub duplicate_share: f64,
    /// The queue before the rate.
    pub queue: Queue,
    /// Rate of the link, counted over whole Ethernet frames without checksum (as netem counts).
    pub rate: LinkRate,
    /// Propagation delay.
    pub delay_ns: u64,
    /// Steps that the delay makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_steps: Option<DelaySteps>,
    /// Variation of the delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
    /// Packets that skip the delay and so overtake others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
}

/// What a middlebox does to UDP, as firewalls of offices do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UdpRule {
    /// It drops every packet.
    Blocked,
    /// It drops the packets that exceed a token bucket; no packet waits.
    Policed {
        /// The bucket's rate, over whole Ethernet frames without checksum; above 0.
        bits_per_s: u64,
        /// What the bucket holds, in bytes: at least a full frame.
        burst_bytes: u64,
    },
}

/// Loss by chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Nothing is lost.
    #[default]
    None,
    /// Each packet is lost with the same probability.
    Independent {
        /// From 0 to 1.
        share: f64,
    },
    /// Two states, good and bad, between which the link moves with every packet (Gilbert 1960, Elliott 1963);
    /// the names are those of the literature and of netem's `loss gemodel`.
    GilbertElliott {
        /// Probability of going from good to bad.
        p: f64,
        /// Probability of going from bad to good.
        r: f64,
        /// Probability that a packet comes through in the bad state.
        h: f64,
        /// Probability that a packet comes through in the good state.
        k: f64,
    },
}

impl Loss {
    /// The share of packets that is lost in the long run, from 0 to 1.
    pub fn mean_share(self) -> f64 {
        match self {
            Loss::None => 0.0,
            Loss::Independent { share } => share,
            Loss::GilbertElliott { p, r, h, k } => {
                let bad = if p + r > 0.0 { p / (p + r) } else { 0.0 };
                bad * (1.0 - h) + (1.0 - bad) * (1.0 - k)
            }
        }
    }
}

/// Times at which no packet passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outages {
    /// What happens to packets during it.
    pub packets: OutagePackets,
    /// When.
    pub times: OutageTimes,
}

named! { "what happens to packets";
    /// What an outage does to packets.
    pub enum OutagePackets {
        /// Packets that arrive during the outage are lost.
        Lost = "lost",
        /// Packets wait in the queue, up to its limit, until the outage is over.
        Wait = "wait",
    }
}

/// When outages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutageTimes {
    /// All the time: an outage of the timeline.
    Always,
    /// Once in each period.
    Every {
        /// From one period's start to the next.
        every_ns: u64,
        /// The outage's length, less than the period.
        lasts_ns: u64,
        /// At a random instant of each period, not at its start.
        at_random: bool,
    },
}

/// The queue before the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// How much it holds.
    pub limit: QueueLimit,
    /// Which packets are dropped, and when.
    pub discipline: Discipline,
}

impl Queue {
    /// A drop-tail queue of this many packets, including the one in transmission.
    pub const fn packets(packets: u64) -> Queue {
        Queue { limit: QueueLimit::Packets(packets), discipline: Discipline::DropTail }
    }

    /// A drop-tail queue of this many bytes, including the packet in transmission.
    pub const fn bytes(bytes: u64) -> Queue {
        Queue { limit: QueueLimit::Bytes(bytes), discipline: Discipline::DropTail }
    }
}

impl Default for Queue {
    /// The length of a Linux network device's own queue.
    fn default() -> Queue {
        Queue::packets(1000)
    }
}

/// How much a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueLimit {
    /// The most packets, including the one in transmission.
    Packets(u64),
    /// The most bytes, including the packet in transmission.
    Bytes(u64),
}

/// How a queue decides which packets to drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// The packet that finds no room.
    DropTail,
    /// Controlled delay (RFC 8289), besides the packet that finds no room.
    Codel(Codel),
    /// A queue for each flow, served in turn, each under CoDel (RFC 8290); where there is no room, the head
    /// of the longest.
    FqCodel {
        /// The control of each flow's queue.
        codel: Codel,
        /// How many queues the flows are hashed to.
        flows: u32,
        /// What a flow may send in one turn.
        quantum_bytes: u32,
    },
}

/// CoDel's settings (RFC 8289, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Codel {
    /// A standing delay below this is acceptable.
    pub target_ns: u64,
    /// How long the delay may exceed the target: about the longest usual round trip.
    pub interval_ns: u64,
    /// Packets that can carry the mark (ECT) are marked (CE) and not dropped.
    pub ecn: bool,
}

impl Default for Codel {
    /// RFC 8289, sections 4.2 and 4.3: 5 ms and 100 ms.
    fn default() -> Codel {
        Codel { target_ns: 5_000_000, interval_ns: 100_000_000, ecn: false }
    }
}

/// How fast the link sends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkRate {
    /// A packet takes no time.
    #[default]
    Unlimited,
    /// The same at all times.
    Constant {
        /// Above 0.
        bits_per_s: u64,
    },
    /// Log-normal about a mean, from the run's seed.
    Varying {
        /// Its mean over time.
        mean_bits_per_s: u64,
        /// Held for a while, then another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        steps: Option<Variation>,
        /// Changing all the time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        drift: Option<Variation>,
    },
    /// By a table of times.
    Steps(RateSteps),
    /// By a Mahimahi trace.
    Opportunities(Opportunities),
}

impl LinkRate {
    /// The rate where it is the same at all times.
    pub const fn constant_bits_per_s(&self) -> Option<u64> {
        match self {
            LinkRate::Constant { bits_per_s } => Some(*bits_per_s),
            _ => None,
        }
    }

    /// The mean over time; `None` where it is unlimited.
    pub fn mean_bits_per_s(&self) -> Option<u64> {
        match self {
            LinkRate::Unlimited => None,
            LinkRate::Constant { bits_per_s } => Some(*bits_per_s),
            LinkRate::Varying { mean_bits_per_s, .. } => Some(*mean_bits_per_s),
            LinkRate::Steps(steps) => Some(steps.mean_bits_per_s()),
            LinkRate::Opportunities(opportunities) => Some(opportunities.mean_bits_per_s()),
        }
    }
}

/// By how much a rate varies, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variation {
    /// Standard deviation as a share of the mean.
    pub spread_share: f64,
    /// How long a step is held; for a drift, the time after which the rate is independent of its past.
    pub every_ns: u64,
}

/// A delay that changes at intervals, uniformly about its mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelaySteps {
    /// How long each value is held.
    pub every_ns: u64,
    /// The furthest that it lies from the delay, at most the delay itself.
    pub spread_ns: u64,
}

/// By how much the delay varies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// Standard deviation; for the uniform distribution the furthest from the mean.
    pub spread_ns: u64,
    /// Its form.
    pub distribution: Distribution,
    /// Whether packets stay in order.
    pub order: Order,
}

named! { "a distribution";
    /// The distribution of a jitter; its mean is the delay. Negative delays become 0.
    pub enum Distribution {
        /// Gauss.
        Normal = "normal",
        /// All values are equally likely.
        Uniform = "uniform",
        /// Many small values, few large: shape 3 as in netem, cut at its 99.99 % quantile.
        Pareto = "pareto",
    }
}

/// Whether jitter keeps packets in order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The delay is a smooth function of time: no packet overtakes another.
    Kept {
        /// The time after which the delay is independent of its past.
        correlation_ns: u64,
    },
    /// Each packet draws its own delay, as netem does, and may overtake others.
    Free {
        /// Correlation of a packet's draw with the one before, from 0 to less than 1.
        correlation: f64,
    },
}

/// Packets that skip the delay, as with netem's `reorder`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reorder {
    /// Probability that a candidate is chosen, from 0 to 1.
    pub share: f64,
    /// The first candidate is this many packets after the last chosen one; 1 makes every packet one.
    pub gap: u64,
}

impl Direction {
    /// Whether it does anything beyond handing packets over.
    pub fn is_impaired(&self) -> bool {
        *self != Direction { queue: self.queue, ..Direction::default() }
    }

    /// Whether it does more than deliver every packet later: delay and jitter alone limit and lose nothing.
    fn limits_or_loses(&self) -> bool {
        Direction { delay_ns: 0, jitter: None, delay_steps: None, ..self.clone() }.is_impaired()
    }

    /// The deterministic part: delay, queue and a constant rate, without what depends on chance or time.
    pub fn certain(&self) -> Direction {
        let rate = match &self.rate {
            LinkRate::Constant { bits_per_s } => LinkRate::Constant { bits_per_s: *bits_per_s },
            _ => LinkRate::Unlimited,
        };
        Direction { delay_ns: self.delay_ns, rate, queue: self.queue, ..Direction::default() }
    }

    /// Whether its packets may overtake each other.
    pub fn may_reorder(&self) -> bool {
        let is_free = self.jitter.is_some_and(|jitter| matches!(jitter.order, Order::Free { .. }));
        is_free || self.reorder.is_some()
    }
}

impl Direction {
    /// Whether the seed decides anything.
    fn depends_on_seed(&self) -> bool {
        let is_fair = matches!(self.queue.discipline, Discipline::FqCodel { .. });
        let varies = matches!(self.rate, LinkRate::Varying { .. });
        let is_chance = self.loss.mean_share() > 0.0 || self.duplicate_share > 0.0 || self.reorder.is_some();
        // Periodic events begin at a random phase.
        let has_periods = self.outages.is_some() || self.delay_steps.is_some();
        is_fair || varies || is_chance || has_periods || self.jitter.is_some()
    }
}

impl Network {
    /// Whether the seed decides anything, at the start or after a change.
    pub fn depends_on_seed(&self) -> bool {
        let changes = self.timeline.iter().flat_map(|change| [&change.up, &change.down]);
        [&self.up, &self.down].into_iter().chain(changes).any(Direction::depends_on_seed)
    }

    /// Sum of both propagation delays at the run's start, in nanoseconds.
    pub const fn rtt_ns(&self) -> u64 {
        self.up.delay_ns + self.down.delay_ns
    }

    /// Whether it changes anything beyond handing packets over.
    pub fn is_impaired(&self) -> bool {
        let changes = self.timeline.iter().flat_map(|change| [&change.up, &change.down]);
        [&self.up, &self.down].into_iter().chain(changes).any(Direction::is_impaired)
            || self.timeline.iter().any(|change| change.handover || change.rebinding)
    }

    /// Whether packets wait for others or are lost, at the start or after a change. A network that only
    /// delays packets does neither.
    pub fn limits_or_loses(&self) -> bool {
        let changes = self.timeline.iter().flat_map(|change| [&change.up, &change.down]);
        [&self.up, &self.down].into_iter().chain(changes).any(Direction::limits_or_loses)
            || self.timeline.iter().any(|change| change.handover || change.rebinding)
    }

    /// The deterministic part at the start of the run: the basis of reference measurements.
    pub fn certain(&self) -> Network {
        let (up, down) = (self.up.certain(), self.down.certain());
        Network { up, down, timeline: Vec::new(), ..self.clone() }
    }

    /// Reads and resolves a network file (`networks/NAME.toml`) that names no other file.
    ///
    /// # Errors
    /// File, line and column of an unknown key, a bad unit or a contradiction.
    pub fn parse(name: &str, source: Source<'_>) -> Result<Network, InputError> {
        let no_files = |file: &str| Err(format!("the trace `{file}` is not available here"));
        Network::parse_with(name, source, &no_files)
    }

    /// Reads and resolves a network file; `trace` gives the text of a trace that it names.
    ///
    /// # Errors
    /// File, line and column of an unknown key, a bad unit or a contradiction, in the network's file or in
    /// the trace's.
    pub fn parse_with(
        name: &str,
        source: Source<'_>,
        trace: &dyn Fn(&str) -> Result<DataFile, String>,
    ) -> Result<Network, InputError> {
        resolve::resolve(name, &written::read(source)?, trace)
    }

    /// As [`Network::parse_with`], from the file's document with changes.
    pub(crate) fn of_document(
        name: &str,
        source: Source<'_>,
        document: &toml::de::DeTable<'_>,
        trace: &dyn Fn(&str) -> Result<DataFile, String>,
    ) -> Result<Network, InputError> {
        resolve::resolve(name, &written::read_document(source, document)?, trace)
    }

    /// Resolves a network in a table of another file.
    ///
    /// # Errors
    /// The place of a contradiction, or of a trace's fault.
    pub(crate) fn of_table(
        table: &InlineNetwork,
        trace: &dyn Fn(&str) -> Result<DataFile, String>,
    ) -> Result<Network, InputError> {
        resolve::resolve(&table.name.value, &table.written, trace)
    }
}

#[cfg(test)]
mod tests;
