//! A direction as the kernel's queueing disciplines (tc(8)) emulate it, or the key that they do not support.
//!
//! A packet meets two devices. At the first, netem decides on loss and duplication, and a token bucket (tbf)
//! with a queue as its child lets packets go at the link's rate. At the second, netem delays them. The order
//! is that of `path`: loss, duplication, queue and rate, delay.
//!
//! A bucket lets a packet go when its transmission *begins*, and earlier by what it may save. So the second
//! device's netem sends once more at the same rate (`tc netem rate`), which computes on virtual times:
//! departure = max(last departure, arrival) + length / rate. The bucket releases a packet no later than the
//! link would begin to send it, hence the departures are exactly those of the link, and a timer of the bucket
//! that is late by less than what it saves costs no rate. Only a direction that has a rate and nothing else
//! goes without netem, and there packets leave when their transmission begins.

use thiserror::Error;

use super::{
    Codel, Direction, Discipline, Distribution, LinkRate, Loss, Network, Order, Queue, QueueLimit, Reorder,
};

/// An Ethernet header.
const HEADER_BYTES: u64 = 14;
/// How late the bucket's timer may be without costing rate.
const SLACK_NS: u64 = 250_000;
/// netem's arithmetic takes a jitter of 31 bits (`tabledist` in net/sched/sch_netem.c).
const MOST_JITTER_NS: u64 = i32::MAX as u64;
/// A pareto table exceeds netem's own 4 standard deviations, so that it is scaled down and its jitter up.
pub const PARETO_SCALE: u64 = 8;
/// FQ-CoDel's own bounds (net/sched/sch_fq_codel.c).
const LEAST_QUANTUM_BYTES: u32 = 256;
const MOST_FLOWS: u32 = 65_536;
const NS_PER_US: u64 = 1_000;
const NS_PER_S: u128 = 1_000_000_000;

/// What the kernel's queueing disciplines do to the packets of one direction, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelDirection {
    /// netem at the first device: loss and duplication.
    pub fate: Option<Fate>,
    /// The bucket and its queue.
    pub shaper: Option<Shaper>,
    /// The rate at which netem sends at the second device, in bytes per second.
    pub serialiser_bytes_per_s: Option<u64>,
    /// netem at the second device: the delay.
    pub delay: Option<Delay>,
}

/// Loss and duplication; never both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fate {
    /// Loss by chance.
    pub loss: Loss,
    /// From 0 to 1.
    pub duplicate_share: f64,
}

/// A token bucket and the queue before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shaper {
    /// The rate.
    pub bytes_per_s: u64,
    /// What the bucket holds: a full frame, and what comes in a quarter of a millisecond.
    pub burst_bytes: u64,
    /// The queue.
    pub queue: KernelQueue,
}

/// A queue, less what the bucket lets go before the link would.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelQueue {
    /// `pfifo`.
    Packets(u32),
    /// `bfifo`.
    Bytes(u32),
    /// `codel`.
    Codel {
        /// How many packets it holds.
        packets: u32,
        /// Its target is shorter by what the bucket hides from it.
        codel: Codel,
    },
    /// `fq_codel`.
    FqCodel {
        /// How many packets it holds.
        packets: u32,
        /// Its target is shorter by what the bucket hides from it.
        codel: Codel,
        /// How many queues the flows are hashed to.
        flows: u32,
        /// What a flow may send in one turn.
        quantum_bytes: u32,
    },
}

/// A delay, and what makes it vary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delay {
    /// Its mean.
    pub delay_ns: u64,
    /// Standard deviation (for the uniform distribution the furthest from the mean) and form, each packet for
    /// itself.
    pub jitter: Option<(u64, Distribution)>,
    /// Packets that skip it.
    pub reorder: Option<Reorder>,
}

impl Delay {
    /// Whether a packet may leave before one that came earlier.
    pub const fn may_reorder(&self) -> bool {
        self.jitter.is_some() || self.reorder.is_some()
    }
}

/// A key of a network that the kernel's queueing disciplines do not support.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the backend netem does not support `{key}` of the network `{network}`: {why}; use `user-space`")]
pub struct Unsupported {
    /// The network's name.
    pub network: String,
    /// The key, with the table of its direction, such as `down.queue.limit`.
    pub key: String,
    /// Why not, in one clause.
    pub why: String,
}

/// A key of a direction, and why it is not supported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedKey {
    /// The key.
    pub key: &'static str,
    /// Why not, in one clause.
    pub why: String,
}

/// Checks that the kernel's queueing disciplines support a network.
///
/// # Errors
/// The first key that they do not support.
pub fn check(network: &Network, mtu_bytes: u32) -> Result<(), Unsupported> {
    let unsupported = |key: String, why: String| Unsupported { network: network.name.clone(), key, why };
    if !network.timeline.is_empty() {
        let why = "packets in flight would be lost with every change".to_owned();
        return Err(unsupported("timeline".to_owned(), why));
    }
    for (name, direction) in [("up", &network.up), ("down", &network.down)] {
        KernelDirection::of(direction, mtu_bytes)
            .map_err(|UnsupportedKey { key, why }| unsupported(format!("{name}.{key}"), why))?;
    }
    Ok(())
}

impl KernelDirection {
    /// The direction as the kernel has it.
    ///
    /// # Errors
    /// The first key that it does not support.
    pub fn of(direction: &Direction, mtu_bytes: u32) -> Result<KernelDirection, UnsupportedKey> {
        refuse(direction)?;
        let loss = match direction.loss {
            Loss::Independent { share } if share <= 0.0 => Loss::None,
            loss => loss,
        };
        let duplicate_share = direction.duplicate_share;
        if loss != Loss::None && duplicate_share > 0.0 {
            return unsupported("duplicate", "with `loss`, netem draws the loss of a copy again");
        }
        let fate = (loss != Loss::None || duplicate_share > 0.0).then_some(Fate { loss, duplicate_share });
        let delay = Delay {
            delay_ns: direction.delay_ns,
            jitter: jitter(direction)?,
            reorder: direction.reorder.filter(|reorder| reorder.share > 0.0),
        };
        let delay = (delay != Delay::default()).then_some(delay);
        let shaper = shaper(direction, mtu_bytes)?;
        let serialiser_bytes_per_s = shaper
            .filter(|_| fate.is_some() || delay.is_some())
            .map(|Shaper { bytes_per_s, .. }| bytes_per_s);
        Ok(KernelDirection { fate, shaper, serialiser_bytes_per_s, delay })
    }
}

fn unsupported<T>(key: &'static str, why: impl Into<String>) -> Result<T, UnsupportedKey> {
    Err(UnsupportedKey { key, why: why.into() })
}

/// Refuses keys without a counterpart.
fn refuse(direction: &Direction) -> Result<(), UnsupportedKey> {
    if direction.outages.is_some() {
        return unsupported("outages", "netem has none");
    }
    if !direction.lost_packets.is_empty() {
        return unsupported("lose", "netem does not count packets");
    }
    if direction.udp.is_some() {
        return unsupported("udp", "netem does not tell UDP from TCP");
    }
    if direction.delay_steps.is_some() {
        return unsupported("delay_steps", "its delay has no steps");
    }
    match &direction.rate {
        LinkRate::Varying { steps: Some(_), .. } => unsupported("rate.steps", "its rate is constant"),
        LinkRate::Varying { .. } => unsupported("rate.drift", "its rate is constant"),
        LinkRate::Steps(_) => unsupported("rate.csv", "its rate is constant"),
        LinkRate::Opportunities(_) => unsupported("rate.mahimahi", "its rate is constant"),
        LinkRate::Unlimited | LinkRate::Constant { .. } => Ok(()),
    }
}

fn jitter(direction: &Direction) -> Result<Option<(u64, Distribution)>, UnsupportedKey> {
    let Some(jitter) = direction.jitter.filter(|jitter| jitter.spread_ns > 0) else { return Ok(None) };
    let scale = if jitter.distribution == Distribution::Pareto { PARETO_SCALE } else { 1 };
    match jitter.order {
        Order::Kept { .. } => {
            unsupported("jitter", "it draws a delay for each packet, which reorders them: `order = \"free\"`")
        }
        Order::Free { correlation } if correlation > 0.0 => {
            unsupported("jitter.correlation", "its correlation changes the distribution")
        }
        Order::Free { .. } if jitter.spread_ns.saturating_mul(scale) > MOST_JITTER_NS => {
            let most_ms = MOST_JITTER_NS / scale / 1_000_000;
            unsupported("jitter.spread", format!("its jitter is at most {most_ms} ms"))
        }
        Order::Free { .. } => Ok(Some((jitter.spread_ns, jitter.distribution))),
    }
}

fn shaper(direction: &Direction, mtu_bytes: u32) -> Result<Option<Shaper>, UnsupportedKey> {
    let LinkRate::Constant { bits_per_s } = direction.rate else { return Ok(None) };
    if bits_per_s == 0 || bits_per_s % 8 != 0 {
        return unsupported("rate", format!("{bits_per_s} bit/s are not whole bytes per second"));
    }
    let bytes_per_s = bits_per_s / 8;
    let frame_bytes = u64::from(mtu_bytes) + HEADER_BYTES;
    let early_bytes = narrow(u128::from(bytes_per_s) * u128::from(SLACK_NS) / NS_PER_S);
    let burst_bytes = frame_bytes + early_bytes;
    // CoDel sees a packet when the one ahead has left the bucket, not when its own transmission begins.
    let hidden_ns = narrow(u128::from(burst_bytes) * NS_PER_S / u128::from(bytes_per_s));
    let queue = queue(direction.queue, frame_bytes, early_bytes, hidden_ns)?;
    Ok(Some(Shaper { bytes_per_s, burst_bytes, queue }))
}

/// The queue without the packets that left it early and the one in transmission.
fn queue(
    queue: Queue,
    frame_bytes: u64,
    early_bytes: u64,
    hidden_ns: u64,
) -> Result<KernelQueue, UnsupportedKey> {
    let packets = match queue.limit {
        QueueLimit::Packets(packets) => {
            let gone = 1 + early_bytes / frame_bytes;
            let least = gone + 1;
            if packets < least {
                return unsupported(
                    "queue.limit",
                    format!("its queue has at least {least} packets at this rate"),
                );
            }
            u32::try_from(packets - gone).unwrap_or(u32::MAX)
        }
        QueueLimit::Bytes(bytes) if queue.discipline == Discipline::DropTail => {
            let least = 2 * frame_bytes + early_bytes;
            if bytes < least {
                return unsupported(
                    "queue.limit",
                    format!("its queue has at least {least} bytes at this rate"),
                );
            }
            let waiting = bytes - frame_bytes - early_bytes;
            return Ok(KernelQueue::Bytes(u32::try_from(waiting).unwrap_or(u32::MAX)));
        }
        QueueLimit::Bytes(_) => {
            return unsupported("queue.limit", "CoDel's limit is in packets there");
        }
    };
    match queue.discipline {
        Discipline::DropTail => Ok(KernelQueue::Packets(packets)),
        Discipline::Codel(codel) => Ok(KernelQueue::Codel { packets, codel: shortened(codel, hidden_ns)? }),
        Discipline::FqCodel { codel, flows, quantum_bytes } => {
            if quantum_bytes < LEAST_QUANTUM_BYTES {
                return unsupported(
                    "queue.quantum",
                    format!("its quantum is at least {LEAST_QUANTUM_BYTES} bytes"),
                );
            }
            if !(1..=MOST_FLOWS).contains(&flows) {
                return unsupported("queue.flows", format!("its flows are 1 to {MOST_FLOWS}"));
            }
            let codel = shortened(codel, hidden_ns)?;
            Ok(KernelQueue::FqCodel { packets, codel, flows, quantum_bytes })
        }
    }
}

/// CoDel with a target that is shorter by the wait that it does not see, in whole microseconds.
fn shortened(codel: Codel, hidden_ns: u64) -> Result<Codel, UnsupportedKey> {
    let target_us = codel.target_ns.saturating_sub(hidden_ns) / NS_PER_US;
    if target_us == 0 {
        let least_us = hidden_ns / NS_PER_US + 1;
        let why = format!(
            "at this rate a packet waits {least_us} µs where CoDel does not see it; its target is longer"
        );
        return unsupported("queue.target", why);
    }
    if codel.interval_ns < NS_PER_US || codel.interval_ns / NS_PER_US > u64::from(u32::MAX) {
        return unsupported("queue.interval", "its interval is 1 µs to an hour");
    }
    Ok(Codel { target_ns: target_us * NS_PER_US, ..codel })
}

fn narrow(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Source;

    const MTU: u32 = 1500;

    fn network(lines: &str) -> Network {
        let text = format!("title = 'x'\nsource = 'y'\n{lines}\n");
        let trace = |_: &str| {
            Ok(crate::error::DataFile { file: "networks/a.trace".to_owned(), text: "1\n2\n".to_owned() })
        };
        Network::parse_with("n", Source { file: "n.toml", text: &text }, &trace).unwrap()
    }

    fn down(lines: &str) -> KernelDirection {
        KernelDirection::of(&network(lines).down, MTU).unwrap()
    }

    #[test]
    fn nothing_asked_is_nothing_done() {
        assert_eq!(down(""), KernelDirection::default());
        assert_eq!(down("loss = '0%'\ndelay = '0ms'\nrate = 'unlimited'"), KernelDirection::default());
    }

    #[test]
    fn a_rate_alone_needs_no_netem() {
        // 100 Mbit/s bring 3125 bytes in a quarter of a millisecond, two full frames and a bit.
        let found = down("rate = '100Mbit/s'");
        let queue = KernelQueue::Packets(1000 - 3);
        let shaper = Shaper { bytes_per_s: 12_500_000, burst_bytes: 1514 + 3125, queue };
        assert_eq!(found, KernelDirection { shaper: Some(shaper), ..KernelDirection::default() });
    }

    #[test]
    fn a_rate_with_another_impairment_has_a_serialiser() {
        for lines in ["delay = '5ms'", "loss = '1%'", "duplicate = '1%'"] {
            let found = down(&format!("rate = '8Mbit/s'\n{lines}"));
            assert_eq!(found.serialiser_bytes_per_s, Some(1_000_000), "{lines}");
        }
        let delay = Delay { delay_ns: 5_000_000, ..Delay::default() };
        assert_eq!(
            down("delay = '5ms'"),
            KernelDirection { delay: Some(delay), ..KernelDirection::default() }
        );
    }

    #[test]
    fn queues_are_shorter_by_what_left_them_early() {
        let queue = |lines: &str| down(&format!("rate = '8Mbit/s'\nqueue = {lines}")).shaper.unwrap().queue;
        assert_eq!(queue("'10 packets'"), KernelQueue::Packets(9));
        assert_eq!(queue("'64kB'"), KernelQueue::Bytes(64_000 - 1514 - 250));
        // A full frame and 250 bytes take 1.764 ms at 8 Mbit/s.
        let codel = Codel { target_ns: 3_236_000, interval_ns: 100_000_000, ecn: true };
        let limit = KernelQueue::Codel { packets: 99, codel };
        assert_eq!(queue("{ limit = '100 packets', discipline = 'codel', ecn = true }"), limit);
        let codel = Codel { ecn: false, ..codel };
        let limit = KernelQueue::FqCodel { packets: 10_239, codel, flows: 1024, quantum_bytes: 1514 };
        assert_eq!(queue("{ discipline = 'fq-codel' }"), limit);
    }

    /// A bucket with a backlog, and a sender behind it with the rate: together they are the link, packet by
    /// packet.
    #[test]
    fn bucket_and_serialiser_are_the_link() {
        let Shaper { bytes_per_s, burst_bytes, .. } = down("rate = '8Mbit/s'\ndelay = '1ms'").shaper.unwrap();
        let ns = |bytes: u64| bytes * 1_000_000_000 / bytes_per_s;
        let mut numbers = crate::shuffle::SplitMix64::new(5);
        let (mut arrival_ns, mut link_ns, mut sent_ns) = (0, 0, 0);
        // The bucket as time: when it was, or would have been, empty of debt.
        let (mut tokens_ns, mut checked_ns) = (ns(burst_bytes), 0);
        for packet in 0..5_000 {
            let bytes = 60 + numbers.next_u64() % 1455;
            arrival_ns += numbers.next_u64() % if packet / 100 % 2 == 0 { 100_000 } else { 3_000_000 };
            link_ns = arrival_ns.max(link_ns) + ns(bytes);
            let now_ns = arrival_ns.max(checked_ns);
            let full = (tokens_ns + now_ns - checked_ns).min(ns(burst_bytes));
            let wait_ns = ns(bytes).saturating_sub(full);
            // The timer is late by up to what the bucket saves.
            let late_ns = if wait_ns > 0 { numbers.next_u64() % SLACK_NS } else { 0 };
            let released_ns = now_ns + wait_ns + late_ns;
            tokens_ns = (full + wait_ns + late_ns).min(ns(burst_bytes)) - ns(bytes);
            checked_ns = released_ns;
            sent_ns = released_ns.max(sent_ns) + ns(bytes);
            assert_eq!(sent_ns, link_ns, "packet {packet}");
        }
    }

    #[test]
    fn what_netem_does_not_support_is_named() {
        for (lines, key) in [
            ("outages = { every = '15s', lasts = '1s' }", "outages"),
            ("lose = ['3']", "lose"),
            ("delay = '9ms'\ndelay_steps = { every = '15s', spread = '5ms' }", "delay_steps"),
            ("delay = '9ms'\njitter = '1ms'", "jitter"),
            (
                "delay = '9ms'\njitter = { spread = '1ms', order = 'free', correlation = '5%' }",
                "jitter.correlation",
            ),
            ("delay = '3s'\njitter = { spread = '2.5s', order = 'free' }", "jitter.spread"),
            (
                "delay = '1s'\njitter = { spread = '300ms', order = 'free', distribution = 'pareto' }",
                "jitter.spread",
            ),
            ("rate = { mean = '8Mbit/s', drift = { over = '2s', spread = '5%' } }", "rate.drift"),
            ("rate = { mean = '8Mbit/s', steps = { every = '2s', spread = '5%' } }", "rate.steps"),
            ("rate = { mahimahi = 'a.trace' }", "rate.mahimahi"),
            ("rate = '1001bit/s'", "rate"),
            ("rate = '8Mbit/s'\nqueue = '1 packet'", "queue.limit"),
            ("rate = '8Mbit/s'\nqueue = '3000B'", "queue.limit"),
            ("rate = '8Mbit/s'\nqueue = { limit = '64kB', discipline = 'codel' }", "queue.limit"),
            ("rate = '1Mbit/s'\nqueue = { discipline = 'codel' }", "queue.target"),
            ("rate = '8Mbit/s'\nqueue = { discipline = 'fq-codel', quantum = '100B' }", "queue.quantum"),
            ("loss = '1%'\nduplicate = '1%'", "duplicate"),
        ] {
            let found = check(&network(&format!("[up]\n{lines}")), MTU).unwrap_err();
            assert_eq!(found.key, format!("up.{key}"), "{lines}: {found}");
            assert_eq!(check(&network(lines), MTU).unwrap_err().key, format!("up.{key}"), "{lines}");
            let down = network(&format!("[down]\n{lines}"));
            let text = check(&down, MTU).unwrap_err().to_string();
            assert!(
                text.contains(&format!("netem does not support `down.{key}` of the network `n`")),
                "{text}"
            );
        }
        let found = check(&network("rtt = '9ms'\n[[timeline]]\nat = '1s'\nrtt = '5ms'"), MTU).unwrap_err();
        assert_eq!(found.key, "timeline");
        assert_eq!(check(&network("rtt = '30ms'\nrate = '100Mbit/s'\nloss = '1%'"), MTU), Ok(()));
    }
}
