//! Networks in a line, for plans, tables and reports.

use super::{
    Direction, Discipline, Distribution, Jitter, LinkRate, Loss, Network, Order, OutagePackets, OutageTimes,
    QueueLimit, UdpRule,
};
use crate::number::float;
use crate::units::{self, format_ns};

/// One line such as `RTT 150 ms, 50 Mbit/s, queue 937500 B`.
pub fn describe(network: &Network) -> String {
    let mut parts = vec![format!("RTT {}", format_ns(network.rtt_ns()))];
    let (up, down) = (&network.up, &network.down);
    let (rate_up, rate_down) = (rate(&up.rate), rate(&down.rate));
    parts.push(if rate_up == rate_down { rate_down } else { format!("{rate_down} down, {rate_up} up") });
    if down.rate != LinkRate::Unlimited {
        parts.push(queue(down));
    }
    let (more_up, more_down) = (chances(up), chances(down));
    if more_up == more_down {
        parts.extend(more_down);
    } else {
        parts.extend(more_up.into_iter().map(|words| format!("{words} up")));
        parts.extend(more_down.into_iter().map(|words| format!("{words} down")));
    }
    match network.timeline.len() {
        0 => {}
        1 => parts.push("1 change during the run".to_owned()),
        changes => parts.push(format!("{changes} changes during the run")),
    }
    parts.join(", ")
}

/// One direction in two parts: delay and rate, and the rest.
pub fn describe_direction(direction: &Direction) -> (String, String) {
    let first = format!("{} · {}", format_ns(direction.delay_ns), rate(&direction.rate));
    let mut rest = chances(direction);
    rest.push(queue(direction));
    (first, rest.join(", "))
}

fn rate(rate: &LinkRate) -> String {
    let mean = rate.mean_bits_per_s().map(|bits_per_s| units::format_rate(float(bits_per_s)));
    match (rate, mean) {
        (LinkRate::Unlimited, _) | (_, None) => "no rate limit".to_owned(),
        (LinkRate::Constant { .. }, Some(rate)) => rate,
        (LinkRate::Varying { .. }, Some(mean)) => format!("varying about {mean}"),
        (LinkRate::Steps(_) | LinkRate::Opportunities(_), Some(mean)) => {
            format!("{mean} on average by a trace")
        }
    }
}

fn queue(direction: &Direction) -> String {
    let limit = match direction.queue.limit {
        QueueLimit::Packets(packets) => format!("queue {packets} packets"),
        QueueLimit::Bytes(bytes) => format!("queue {}", units::format_bytes(float(bytes))),
    };
    let (name, codel) = match direction.queue.discipline {
        Discipline::DropTail => return limit,
        Discipline::Codel(codel) => ("CoDel", codel),
        Discipline::FqCodel { codel, .. } => ("FQ-CoDel", codel),
    };
    format!("{limit} under {name}{}", if codel.ecn { " with ECN" } else { "" })
}

/// What is left to chance, or happens at times.
fn chances(direction: &Direction) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(Jitter { spread_ns, distribution, order }) = direction.jitter {
        let form = match distribution {
            Distribution::Normal => "normal",
            Distribution::Uniform => "uniform",
            Distribution::Pareto => "Pareto",
        };
        let free = if matches!(order, Order::Free { .. }) { ", packets overtake" } else { "" };
        parts.push(format!("{form} jitter {}{free}", format_ns(spread_ns)));
    }
    if let Some(steps) = direction.delay_steps {
        parts.push(format!("delay ± {} every {}", format_ns(steps.spread_ns), format_ns(steps.every_ns)));
    }
    match direction.loss {
        Loss::None => {}
        Loss::Independent { share } => parts.push(format!("{} loss", percent(share))),
        loss @ Loss::GilbertElliott { .. } => {
            parts.push(format!("{} loss in bursts", percent(loss.mean_share())))
        }
    }
    if !direction.lost_packets.is_empty() {
        let packets: u64 = direction
            .lost_packets
            .iter()
            .map(|(first, last)| (last - first).saturating_add(1))
            .fold(0, u64::saturating_add);
        parts.push(format!("{packets} chosen packets lost"));
    }
    match direction.udp {
        None => {}
        Some(UdpRule::Blocked) => parts.push("UDP blocked".to_owned()),
        Some(UdpRule::Policed { bits_per_s, .. }) => {
            parts.push(format!("UDP limited to {}", units::format_rate(float(bits_per_s))));
        }
    }
    if direction.duplicate_share > 0.0 {
        parts.push(format!("{} twice", percent(direction.duplicate_share)));
    }
    if let Some(reorder) = direction.reorder {
        parts.push(format!("{} reordered", percent(reorder.share)));
    }
    if let Some(outages) = direction.outages {
        let what = match outages.packets {
            OutagePackets::Lost => "outage",
            OutagePackets::Wait => "standstill",
        };
        parts.push(match outages.times {
            OutageTimes::Always => format!("{what} at all times"),
            OutageTimes::Every { every_ns, lasts_ns, .. } => {
                format!("{what} of {} every {}", format_ns(lasts_ns), format_ns(every_ns))
            }
        });
    }
    parts
}

fn percent(share: f64) -> String {
    format!("{}%", units::three_digits(share * 100.0))
}
