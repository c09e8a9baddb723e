//! Resolves a network: defaults, products, the timeline. Refuses contradictions.

use super::written::{self, Directions, Entry, Layer, Limit, NetworkFile};
use super::{
    Change, Direction, Discipline, Distribution, FULL_FRAME_BYTES, Jitter, LinkRate, Network, Order,
    OutagePackets, Queue, QueueLimit, trace,
};
use crate::error::{DataFile, InputError, Source};
use crate::number::{float, nearest};
use crate::reader::Placed;
use crate::units::{NANOS_PER_MS, NANOS_PER_S, format_ns};

/// A jitter that keeps the order changes no faster than this, whatever its spread.
const LEAST_DEFAULT_CORRELATION_NS: u64 = 50 * NANOS_PER_MS;
const BITS_PER_BYTE: u128 = 8;
/// Every change on the timeline holds both directions whole; this is the most steps of all their traces
/// together.
const MOST_STEPS_IN_ALL: usize = 4_000_000;

/// A queue before a link that never delays a packet.
const IDLE_QUEUE: &str = "`queue` requires a `rate`; add one, because otherwise nothing waits";

type Traces<'a> = &'a dyn Fn(&str) -> Result<DataFile, String>;

/// What a file's directions begin with: nothing is emulated.
fn nothing() -> [Direction; 2] {
    [Direction::default(), Direction::default()]
}

/// A network with these keys on top of its own values.
pub(super) fn change(
    network: &Network,
    written: &Directions,
    traces: Traces<'_>,
) -> Result<Network, InputError> {
    let layers = layers(written);
    let mut network = network.clone();
    let [up, down] = directions(&layers, &[network.up, network.down], traces)?;
    for (direction, layer) in [(&up, &layers[0]), (&down, &layers[1])] {
        let waits = direction.outages.is_some_and(|outages| outages.packets == OutagePackets::Wait);
        let is_idle = network.timeline.is_empty() && direction.rate == LinkRate::Unlimited && !waits;
        if let Some(queue) = layer.queue.as_ref().filter(|_| is_idle) {
            return Err(queue.error(IDLE_QUEUE));
        }
    }
    (network.up, network.down) = (up, down);
    for change in &mut network.timeline {
        [change.up, change.down] = directions(&layers, &[change.up.clone(), change.down.clone()], traces)?;
    }
    Ok(network)
}

pub(super) fn resolve(name: &str, written: &NetworkFile, traces: Traces<'_>) -> Result<Network, InputError> {
    let base = layers(&written.base);
    refuse_idle_queue(written, &base)?;
    let [up, down] = directions(&base, &nothing(), traces)?;
    let network = Network {
        name: name.to_owned(),
        title: written.title.clone(),
        source: written.source.clone(),
        up,
        down,
        timeline: Vec::new(),
    };
    let timeline = timeline(&network, &base, &written.timeline, traces)?;
    Ok(Network { timeline, ..network })
}

/// Up and down: the keys of one direction on top of those of both.
fn layers(both: &Directions) -> [Layer; 2] {
    let mut common = both.common.clone();
    if let Some(rtt) = &both.rtt {
        common.delay = Some(Placed { value: rtt.value / 2, place: rtt.place.clone() });
    }
    [both.up.upon(&common), both.down.upon(&common)]
}

/// The whole of both directions at every instant at which something changes.
fn timeline(
    network: &Network,
    base: &[Layer; 2],
    entries: &[Entry],
    traces: Traces<'_>,
) -> Result<Vec<Change>, InputError> {
    let end_ns = |entry: &Entry| entry.lasts.as_ref().map(|lasts| entry.at.value.saturating_add(lasts.value));
    let mut instants: Vec<u64> =
        entries.iter().flat_map(|entry| [Some(entry.at.value), end_ns(entry)]).flatten().collect();
    instants.sort_unstable();
    instants.dedup();
    let mut changes = Vec::new();
    let mut steps_in_all = 0;
    for at_ns in instants {
        let holds =
            |entry: &&Entry| entry.at.value <= at_ns && end_ns(entry).is_none_or(|end_ns| at_ns < end_ns);
        let mut now = base.clone();
        for entry in entries.iter().filter(holds) {
            let [up, down] = layers(&entry.both);
            now = [up.upon(&now[0]), down.upon(&now[1])];
        }
        let [up, down] = directions(&now, &nothing(), traces)?;
        for ((direction, before), layer) in [(&up, &network.up), (&down, &network.down)].into_iter().zip(&now)
        {
            if kind(direction) != kind(before)
                && let Some(queue) = &layer.queue
            {
                return Err(queue.error("the timeline changes the `discipline`; write one for the whole run"));
            }
        }
        steps_in_all += steps(&up.rate) + steps(&down.rate);
        if steps_in_all > MOST_STEPS_IN_ALL
            && let Some(entry) = entries.iter().rfind(|entry| entry.at.value <= at_ns)
        {
            return Err(entry.at.error(format!(
                "the changes up to this one have traces of {steps_in_all} steps, above {MOST_STEPS_IN_ALL}; write fewer \
                 changes, or shorter traces"
            )));
        }
        let begins = |entry: &&Entry| entry.at.value == at_ns;
        let handover = entries.iter().filter(begins).any(|entry| entry.handover);
        let rebinding = entries.iter().filter(begins).any(|entry| entry.rebinding);
        changes.push(Change { at_ns, up, down, handover, rebinding });
    }
    Ok(changes)
}

/// The length of a rate's table.
const fn steps(rate: &LinkRate) -> usize {
    match rate {
        LinkRate::Steps(table) => table.steps.len(),
        LinkRate::Opportunities(trace) => trace.at_ms.len(),
        LinkRate::Unlimited | LinkRate::Constant { .. } | LinkRate::Varying { .. } => 0,
    }
}

fn kind(direction: &Direction) -> std::mem::Discriminant<Discipline> {
    std::mem::discriminant(&direction.queue.discipline)
}

fn directions(
    layers: &[Layer; 2],
    before: &[Direction; 2],
    traces: Traces<'_>,
) -> Result<[Direction; 2], InputError> {
    let delay_ns =
        |index: usize| layers[index].delay.as_ref().map_or(before[index].delay_ns, |delay| delay.value);
    let rtt_ns = delay_ns(0).saturating_add(delay_ns(1));
    let [up, down] = [0, 1].map(|index| direction(&layers[index], &before[index], rtt_ns, traces));
    Ok([up?, down?])
}

/// A direction with the keys of a layer on top of the values that it had before.
fn direction(
    layer: &Layer,
    before: &Direction,
    rtt_ns: u64,
    traces: Traces<'_>,
) -> Result<Direction, InputError> {
    let delay_ns = layer.delay.as_ref().map_or(before.delay_ns, |delay| delay.value);
    let rate =
        layer.rate.as_ref().map_or_else(|| Ok(before.rate.clone()), |rate| resolve_rate(rate, traces))?;
    let queue = match &layer.queue {
        Some(queue) => resolve_queue(queue, rtt_ns, rate.mean_bits_per_s())?,
        None => before.queue,
    };
    check_delay(layer, before, delay_ns)?;
    if let Some(steps) = layer.delay_steps.as_ref().filter(|steps| steps.value.spread_ns > delay_ns) {
        return Err(steps.error("`spread` exceeds `delay`; write at most the delay of this direction"));
    }
    let reorder = layer.reorder.as_ref().filter(|reorder| reorder.value.share > 0.0);
    if let Some(reorder) = reorder.filter(|_| delay_ns == 0) {
        return Err(reorder.error(
            "`reorder` requires a `delay`; add one, because a reordered packet is one that skips the delay",
        ));
    }
    Ok(Direction {
        outages: layer.outages.as_ref().map_or(before.outages, |outages| Some(outages.value)),
        loss: layer.loss.as_ref().map_or(before.loss, |loss| loss.value),
        lost_packets: layer
            .lose
            .as_ref()
            .map_or_else(|| before.lost_packets.clone(), |lose| lose.value.clone()),
        udp: layer.udp.as_ref().map_or(before.udp, |rule| rule.value),
        duplicate_share: layer.duplicate.as_ref().map_or(before.duplicate_share, |share| share.value),
        queue,
        rate,
        delay_ns,
        delay_steps: layer.delay_steps.as_ref().map_or(before.delay_steps, |steps| Some(steps.value)),
        jitter: layer.jitter.as_ref().map_or(Ok(before.jitter), |jitter| resolve_jitter(jitter, delay_ns))?,
        reorder: match &layer.reorder {
            Some(_) => reorder.map(|reorder| reorder.value),
            None => before.reorder,
        },
    })
}

/// Refuses a new delay that is shorter than the variations that the direction had before.
fn check_delay(layer: &Layer, before: &Direction, delay_ns: u64) -> Result<(), InputError> {
    let Some(delay) = &layer.delay else { return Ok(()) };
    let jitter_ns = before.jitter.filter(|_| layer.jitter.is_none()).map(|jitter| jitter.spread_ns);
    let steps_ns = before.delay_steps.filter(|_| layer.delay_steps.is_none()).map(|steps| steps.spread_ns);
    for (key, spread_ns) in [("jitter", jitter_ns), ("delay_steps", steps_ns)] {
        if let Some(spread_ns) = spread_ns.filter(|spread_ns| *spread_ns > delay_ns) {
            return Err(delay.error(format!(
                "the delay of {} is below the network's `{key}` of {}; write a longer delay, or another `{key}`",
                format_ns(delay_ns),
                format_ns(spread_ns)
            )));
        }
    }
    Ok(())
}

fn resolve_jitter(written: &Placed<written::Jitter>, delay_ns: u64) -> Result<Option<Jitter>, InputError> {
    let written::Jitter { spread_ns, distribution, order } = written.value.clone();
    if spread_ns == 0 {
        return Ok(None);
    }
    if spread_ns > delay_ns {
        return Err(written.error(format!(
            "`jitter` is {}, above the delay of {}; write at most the delay of this direction",
            format_ns(spread_ns),
            format_ns(delay_ns)
        )));
    }
    // The correlation must be this much longer than the spread, so that the delay practically never falls
    // faster than time passes: once in ten million packets, and for the heavy tail of Pareto's in a hundred
    // thousand.
    let (least, usual) = match distribution {
        Distribution::Normal | Distribution::Uniform => (8_u64, 10_u64),
        Distribution::Pareto => (80, 100),
    };
    let order = match order {
        written::Order::Free { correlation } => Order::Free { correlation },
        written::Order::Kept { correlation: None } => {
            Order::Kept { correlation_ns: usual.saturating_mul(spread_ns).max(LEAST_DEFAULT_CORRELATION_NS) }
        }
        written::Order::Kept { correlation: Some(correlation) }
            if correlation.value < spread_ns.saturating_mul(least) =>
        {
            return Err(correlation.error(format!(
                "`correlation` is {}, too short to keep packets in order; write at least {least} times the spread, {}, \
                 or `order = \"free\"`",
                format_ns(correlation.value),
                format_ns(spread_ns.saturating_mul(least))
            )));
        }
        written::Order::Kept { correlation: Some(correlation) } => {
            Order::Kept { correlation_ns: correlation.value }
        }
    };
    Ok(Some(Jitter { spread_ns, distribution, order }))
}

fn resolve_rate(written: &Placed<written::Rate>, traces: Traces<'_>) -> Result<LinkRate, InputError> {
    let read = |file: &str| traces(file).map_err(|problem| written.error(format!("`rate`: {problem}")));
    Ok(match &written.value {
        written::Rate::Unlimited => LinkRate::Unlimited,
        written::Rate::Constant(bits_per_s) => LinkRate::Constant { bits_per_s: *bits_per_s },
        written::Rate::Varying { mean_bits_per_s, steps, drift } => {
            LinkRate::Varying { mean_bits_per_s: *mean_bits_per_s, steps: *steps, drift: *drift }
        }
        written::Rate::Mahimahi(file) => {
            let DataFile { file, text } = read(file)?;
            LinkRate::Opportunities(trace::parse_mahimahi(Source { file: &file, text: &text })?)
        }
        written::Rate::Csv { file, repeat_ns } => {
            let DataFile { file, text } = read(file)?;
            LinkRate::Steps(trace::parse_csv(Source { file: &file, text: &text }, *repeat_ns)?)
        }
    })
}

fn resolve_queue(
    queue: &Placed<written::Queue>,
    rtt_ns: u64,
    rate_bits_per_s: Option<u64>,
) -> Result<Queue, InputError> {
    let discipline = queue.value.discipline.unwrap_or(Discipline::DropTail);
    let Some(limit) = &queue.value.limit else {
        let limit = match discipline {
            // RFC 8290, section 5.2.1: the reference implementation's limit.
            Discipline::FqCodel { .. } => QueueLimit::Packets(10_240),
            Discipline::DropTail | Discipline::Codel(_) => Queue::default().limit,
        };
        return Ok(Queue { limit, discipline });
    };
    let limit = match limit.value {
        Limit::Packets(packets) => QueueLimit::Packets(packets),
        Limit::Bytes(bytes) => QueueLimit::Bytes(bytes),
        Limit::Time(ns) => {
            let rate = rate_bits_per_s.ok_or_else(|| {
                limit.error("a queue as a duration requires a `rate`; add one, or use another unit")
            })?;
            let bytes = u128::from(rate) * u128::from(ns) / u128::from(NANOS_PER_S) / BITS_PER_BYTE;
            QueueLimit::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX).max(FULL_FRAME_BYTES))
        }
        Limit::Product(factor) => {
            let rate = rate_bits_per_s.ok_or_else(|| {
                limit.error("a queue in `bdp` requires a `rate`; add one, or use another unit")
            })?;
            let product = u128::from(rate) * u128::from(rtt_ns) / u128::from(NANOS_PER_S) / BITS_PER_BYTE;
            let product = u64::try_from(product).unwrap_or(u64::MAX);
            QueueLimit::Bytes(nearest((float(product) * factor).floor()).max(FULL_FRAME_BYTES))
        }
    };
    Ok(Queue { limit, discipline })
}

/// A queue before a link that never delays a packet is a mistake.
fn refuse_idle_queue(written: &NetworkFile, base: &[Layer; 2]) -> Result<(), InputError> {
    let fills = |layer: &Layer| {
        let is_limited =
            layer.rate.as_ref().is_some_and(|rate| !matches!(rate.value, written::Rate::Unlimited));
        let waits = |outages: &Placed<super::Outages>| outages.value.packets == OutagePackets::Wait;
        is_limited || layer.outages.as_ref().is_some_and(waits)
    };
    let queue = base.iter().find_map(|layer| layer.queue.as_ref());
    match queue {
        Some(queue) if written.timeline.is_empty() && !base.iter().any(fills) => Err(queue.error(IDLE_QUEUE)),
        _ => Ok(()),
    }
}
