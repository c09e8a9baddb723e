//! The keys of a network file one by one, in short and in full.

use super::written::{Jitter, Limit, Order, Queue, Rate, Stretches};
use super::{
    Codel, DelaySteps, Discipline, Distribution, Loss, OutagePackets, OutageTimes, Outages, Reorder,
    Variation,
};
use crate::error::InputError;
use crate::nearest::unknown;
use crate::reader::{Form, Placed, Table};
use crate::units;

const QUEUE_KEYS: &[&str] = &["limit", "discipline", "target", "interval", "ecn", "flows", "quantum"];
/// Which of the queue's keys a discipline has.
const DISCIPLINES: &[(&str, &[&str])] = &[
    ("drop-tail", &["limit", "discipline"]),
    ("codel", &["limit", "discipline", "target", "interval", "ecn"]),
    ("fq-codel", QUEUE_KEYS),
];
const MOST_GAP: u64 = 1_000_000;
const MOST_FLOWS: u64 = 65_536;
const FLOWS: u32 = 1024; // RFC 8290, section 4.1.2
const QUANTUM_BYTES: u32 = 1514; // RFC 8290, section 4.1.1

pub(super) fn delay_steps(table: &Table<'_>) -> Result<Option<Placed<DelaySteps>>, InputError> {
    let Some(steps) = table.table("delay_steps")? else { return Ok(None) };
    let steps = steps.with_keys(&["every", "spread"])?;
    let every_ns = above_zero(&steps, "every", "15s")?;
    let spread_ns = above_zero(&steps, "spread", "8ms")?;
    Ok(Some(steps.here(DelaySteps { every_ns, spread_ns })))
}

pub(super) fn jitter(table: &Table<'_>) -> Result<Option<Placed<Jitter>>, InputError> {
    match table.form("jitter", "15ms")? {
        None => Ok(None),
        Some(Form::Text(text)) => {
            let jitter = |text: String| {
                let spread_ns =
                    units::parse_duration_ns(&text).map_err(|problem| format!("`jitter`: {problem}"))?;
                Ok(Jitter {
                    spread_ns,
                    distribution: Distribution::Normal,
                    order: Order::Kept { correlation: None },
                })
            };
            text.map(jitter).map(Some)
        }
        Some(Form::Table(table)) => {
            let table = table.with_keys(&["spread", "distribution", "order", "correlation"])?;
            let spread_ns = above_zero(&table, "spread", "15ms")?;
            let distribution = table.parsed("distribution", "normal", |name| {
                named(
                    name,
                    "a distribution",
                    &[
                        ("normal", Distribution::Normal),
                        ("uniform", Distribution::Uniform),
                        ("pareto", Distribution::Pareto),
                    ],
                )
            })?;
            let is_free = table.parsed("order", "kept", |name| {
                named(name, "an order", &[("kept", false), ("free", true)])
            })?;
            let order = if is_free.is_some_and(|is_free| is_free.value) {
                let correlation = table.parsed("correlation", "25%", units::parse_share)?;
                if let Some(whole) = correlation.as_ref().filter(|share| share.value >= 1.0) {
                    return Err(whole.error("`correlation`: found 100%, which never varies; expected less"));
                }
                Order::Free { correlation: correlation.map_or(0.0, |share| share.value) }
            } else {
                Order::Kept { correlation: table.parsed("correlation", "200ms", units::parse_duration_ns)? }
            };
            let distribution = distribution.map_or(Distribution::Normal, |distribution| distribution.value);
            Ok(Some(table.here(Jitter { spread_ns, distribution, order })))
        }
    }
}

pub(super) fn rate(table: &Table<'_>) -> Result<Option<Placed<Rate>>, InputError> {
    match table.form("rate", "50Mbit/s")? {
        None => Ok(None),
        Some(Form::Text(text)) => {
            let rate = |text: String| match text.trim() {
                "unlimited" => Ok(Rate::Unlimited),
                text => match units::parse_rate_bits_per_s(text) {
                    Ok(0) => {
                        Err("`rate`: found a rate of 0, expected more than 0; for none, `outages`".to_owned())
                    }
                    Ok(bits_per_s) => Ok(Rate::Constant(bits_per_s)),
                    Err(problem) => Err(format!("`rate`: {problem}, or `unlimited`")),
                },
            };
            text.map(rate).map(Some)
        }
        Some(Form::Table(table)) => {
            let table = table.with_keys(&["mean", "steps", "drift", "mahimahi", "csv", "repeat"])?;
            let rate = rate_in_full(&table)?;
            Ok(Some(table.here(rate)))
        }
    }
}

fn rate_in_full(table: &Table<'_>) -> Result<Rate, InputError> {
    let mean = table.parsed("mean", "20Mbit/s", units::parse_rate_bits_per_s)?;
    let (mahimahi, csv) = (table.string("mahimahi", "lte.trace")?, table.string("csv", "lte.csv")?);
    let repeat = table.parsed("repeat", "60s", units::parse_duration_ns)?;
    let (steps, drift) = (variation(table, "steps", "every")?, variation(table, "drift", "over")?);
    if let (Some(repeat), None) = (&repeat, &csv) {
        return Err(repeat.error("found `repeat` without `csv`, expected it with a table of times and rates"));
    }
    if (steps.is_some() || drift.is_some()) && mean.is_none() {
        return Err(table.missing("mean", "mean = \"20Mbit/s\""));
    }
    match (mean, mahimahi, csv) {
        (Some(mean), None, None) if mean.value == 0 => {
            Err(mean.error("`mean`: found a rate of 0, expected more than 0"))
        }
        (Some(mean), None, None) if steps.is_none() && drift.is_none() => Err(mean
            .error("found a `mean` alone, expected `steps` or `drift`; for a constant rate `rate = \"…\"`")),
        (Some(mean), None, None) => Ok(Rate::Varying { mean_bits_per_s: mean.value, steps, drift }),
        (None, Some(file), None) => Ok(Rate::Mahimahi(file.value)),
        (None, None, Some(file)) => {
            Ok(Rate::Csv { file: file.value, repeat_ns: repeat.map(|repeat| repeat.value) })
        }
        (None, None, None) => Err(table.error("found no rate, expected one of `mean`, `mahimahi`, `csv`")),
        _ => Err(table.error("found several of `mean`, `mahimahi`, `csv`, expected one")),
    }
}

fn variation(table: &Table<'_>, key: &str, period: &str) -> Result<Option<Variation>, InputError> {
    let Some(table) = table.table(key)? else { return Ok(None) };
    let table = table.with_keys(&[period, "spread"])?;
    let spread = table.parsed("spread", "30%", units::parse_share)?;
    let spread = spread.ok_or_else(|| table.missing("spread", "spread = \"30%\""))?;
    if spread.value <= 0.0 {
        return Err(spread.error("`spread`: found none, expected more than 0%"));
    }
    Ok(Some(Variation { spread_share: spread.value, every_ns: above_zero(&table, period, "15s")? }))
}

pub(super) fn queue(table: &Table<'_>) -> Result<Option<Placed<Queue>>, InputError> {
    match table.form("queue", "1bdp")? {
        None => Ok(None),
        Some(Form::Text(text)) => {
            let place = text.place.clone();
            let limit = text.map(|text| limit(&text))?;
            let queue = Queue { limit: Some(limit), discipline: None };
            Ok(Some(Placed { value: queue, place }))
        }
        Some(Form::Table(table)) => {
            let table = table.with_keys(QUEUE_KEYS)?;
            let kind = table.parsed("discipline", "codel", |name| {
                named(name, "a discipline", DISCIPLINES).map(|keys| (name.to_owned(), keys))
            })?;
            let (kind, keys) = kind.map_or(("drop-tail".to_owned(), DISCIPLINES[0].1), |kind| kind.value);
            if let Some(key) = table.keys().find(|key| !keys.contains(&key.value.as_str())) {
                return Err(
                    key.error(format!("found `{}`, which the discipline `{kind}` does not have", key.value))
                );
            }
            let plain = Codel::default();
            let codel = Codel {
                target_ns: optional_above_zero(&table, "target", "5ms")?.unwrap_or(plain.target_ns),
                interval_ns: optional_above_zero(&table, "interval", "100ms")?.unwrap_or(plain.interval_ns),
                ecn: table.boolean("ecn")?.is_some_and(|ecn| ecn.value),
            };
            if codel.target_ns >= codel.interval_ns {
                return Err(
                    table.error("found a `target` that is not below the `interval`, expected some 5 % of it")
                );
            }
            let flows =
                table.integer("flows", 1..=MOST_FLOWS)?.and_then(|flows| u32::try_from(flows.value).ok());
            let quantum = table.parsed("quantum", "1514B", |text| {
                units::parse_size_bytes(text).and_then(|bytes| match u32::try_from(bytes) {
                    Ok(bytes) if (1..1 << 24).contains(&bytes) => Ok(bytes),
                    _ => Err(format!("found `{text}`, expected from 1B to 16MB")),
                })
            })?;
            let discipline = match kind.as_str() {
                "codel" => Discipline::Codel(codel),
                "fq-codel" => Discipline::FqCodel {
                    codel,
                    flows: flows.unwrap_or(FLOWS),
                    quantum_bytes: quantum.map_or(QUANTUM_BYTES, |quantum| quantum.value),
                },
                _ => Discipline::DropTail,
            };
            let discipline = Some(discipline);
            Ok(Some(table.here(Queue { limit: table.parsed("limit", "1bdp", limit)?, discipline })))
        }
    }
}

/// `100 packets`, `64kB`, or `1bdp` (bandwidth-delay product of the direction's rate and the whole RTT).
fn limit(text: &str) -> Result<Limit, String> {
    let fault = || format!("found `{text}`, expected a queue such as `100 packets`, `64kB` or `1bdp`");
    if let Some(number) = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) {
        let packets: u64 = number.trim().parse().map_err(|_| fault())?;
        return if packets > 0 { Ok(Limit::Packets(packets)) } else { Err(fault()) };
    }
    if let Some(number) = text.strip_suffix("bdp") {
        let factor: f64 = number.trim().parse().map_err(|_| fault())?;
        return if factor > 0.0 && factor <= 1000.0 { Ok(Limit::Product(factor)) } else { Err(fault()) };
    }
    match units::parse_size_bytes(text) {
        Ok(bytes) if bytes >= super::FULL_FRAME_BYTES => Ok(Limit::Bytes(bytes)),
        Ok(_) => Err(format!("found `{text}`, expected at least one full frame, 1514B")),
        Err(_) => Err(fault()),
    }
}

pub(super) fn loss(table: &Table<'_>) -> Result<Option<Placed<Loss>>, InputError> {
    match table.form("loss", "1%")? {
        None => Ok(None),
        Some(Form::Text(text)) => {
            let share =
                |text: String| units::parse_share(&text).map_err(|problem| format!("`loss`: {problem}"));
            Ok(Some(text.map(|text| share(text).map(independent))?))
        }
        Some(Form::Table(table)) => {
            let table = table.with_keys(&["share", "burst", "p", "r", "h", "k"])?;
            let share = |key: &str, example: &str| table.parsed(key, example, units::parse_share);
            let burst = table.parsed("burst", "4 packets", burst)?;
            let (p, r) = (share("p", "1%")?, share("r", "25%")?);
            let (h, k) = (share("h", "0%")?, share("k", "100%")?);
            match (share("share", "1%")?, burst, p, r) {
                (Some(share), None, None, None) if h.is_none() && k.is_none() => {
                    Ok(Some(table.here(independent(share.value))))
                }
                (Some(share), Some(burst), None, None) if h.is_none() && k.is_none() => {
                    let place = share.place.clone();
                    let loss = share.map(|share| bursts(share, burst.value))?;
                    Ok(Some(Placed { value: loss.value, place }))
                }
                (None, None, Some(p), Some(r)) => {
                    if p.value + r.value <= 0.0 {
                        return Err(p.error("found `p` and `r` of 0%, which never change state; expected one above"));
                    }
                    let (h, k) = (h.map_or(0.0, |h| h.value), k.map_or(1.0, |k| k.value));
                    Ok(Some(table.here(Loss::GilbertElliott { p: p.value, r: r.value, h, k })))
                }
                _ => Err(table.error(
                    "found a mixture, expected `share`, or `share` and `burst`, or `p` and `r` with `h` and `k` where wanted",
                )),
            }
        }
    }
}

fn independent(share: f64) -> Loss {
    if share > 0.0 { Loss::Independent { share } } else { Loss::None }
}

fn burst(text: &str) -> Result<f64, String> {
    let fault = || format!("found `{text}`, expected a mean length such as `4 packets`, at least 1");
    let number = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")).ok_or_else(fault)?;
    let packets: f64 = number.trim().parse().map_err(|_| fault())?;
    if (1.0..=1e6).contains(&packets) { Ok(packets) } else { Err(fault()) }
}

/// Gilbert's model (everything is lost in the bad state, nothing in the good) from its share and mean burst.
fn bursts(share: f64, burst_packets: f64) -> Result<Loss, String> {
    if share <= 0.0 || share >= 1.0 {
        return Err("`share`: found 0% or 100%, which has no bursts; expected a share between".to_owned());
    }
    let r = 1.0 / burst_packets;
    let p = r * share / (1.0 - share);
    if p > 1.0 {
        return Err(format!(
            "found {}% of loss in bursts of {burst_packets}, which cannot be: at that share bursts are at least {} long",
            units::three_digits(share * 100.0),
            units::three_digits(share / (1.0 - share)),
        ));
    }
    Ok(Loss::GilbertElliott { p, r, h: 0.0, k: 1.0 })
}

/// Numbers of packets and stretches of them, `["3", "10-12"]`, in order and joined.
pub(super) fn lose(table: &Table<'_>) -> Result<Option<Placed<Stretches>>, InputError> {
    let Some(list) = table.strings("lose", r#"["3", "10-12"]"#)? else { return Ok(None) };
    let mut stretches: Stretches = Vec::new();
    for item in list.value {
        let (text, fault) =
            (item.value.clone(), "expected the number of a packet from 1, or a stretch such as `10-12`");
        let (first, last) = text.split_once('-').unwrap_or((&text, &text));
        let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => stretches.push((first, last)),
            _ => return Err(item.error(format!("`lose`: found `{text}`, {fault}"))),
        }
    }
    stretches.sort_unstable();
    stretches.dedup_by(|next, before| {
        let joins = next.0 <= before.1.saturating_add(1);
        if joins {
            before.1 = before.1.max(next.1);
        }
        joins
    });
    Ok(Some(Placed { value: stretches, place: list.place }))
}

pub(super) fn reorder(table: &Table<'_>) -> Result<Option<Placed<Reorder>>, InputError> {
    match table.form("reorder", "1%")? {
        None => Ok(None),
        Some(Form::Text(text)) => {
            let share =
                |text: String| units::parse_share(&text).map_err(|problem| format!("`reorder`: {problem}"));
            Ok(Some(text.map(|text| share(text).map(|share| Reorder { share, gap: 1 }))?))
        }
        Some(Form::Table(table)) => {
            let table = table.with_keys(&["share", "gap"])?;
            let share = table.parsed("share", "25%", units::parse_share)?.map_or(1.0, |share| share.value);
            let gap = table.integer("gap", 1..=MOST_GAP)?.map_or(1, |gap| gap.value);
            Ok(Some(table.here(Reorder { share, gap })))
        }
    }
}

/// `outages` of the whole run, or the `outage` of a stretch of the timeline.
pub(super) fn outages(table: &Table<'_>) -> Result<Option<Placed<Outages>>, InputError> {
    const PACKETS: &[(&str, OutagePackets)] = &[("lost", OutagePackets::Lost), ("wait", OutagePackets::Wait)];
    let packets = |name: &str| named(name, "what becomes of packets", PACKETS);
    if let Some(outage) = table.parsed("outage", "lost", packets)? {
        return outage.map(|packets| Ok(Outages { packets, times: OutageTimes::Always })).map(Some);
    }
    let Some(table) = table.table("outages")? else { return Ok(None) };
    let table = table.with_keys(&["every", "lasts", "packets", "at_random"])?;
    let (every_ns, lasts_ns) = (above_zero(&table, "every", "15s")?, above_zero(&table, "lasts", "100ms")?);
    if lasts_ns >= every_ns {
        return Err(
            table.error("found outages that last as long as their period or longer, expected shorter ones")
        );
    }
    let packets =
        table.parsed("packets", "lost", packets)?.map_or(OutagePackets::Lost, |packets| packets.value);
    let at_random = table.boolean("at_random")?.is_some_and(|at_random| at_random.value);
    let times = OutageTimes::Every { every_ns, lasts_ns, at_random };
    Ok(Some(table.here(Outages { packets, times })))
}

fn named<T: Copy>(name: &str, noun: &str, known: &[(&str, T)]) -> Result<T, String> {
    let names: Vec<&str> = known.iter().map(|(known, _)| *known).collect();
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| unknown(name, noun, &names))
}

fn above_zero(table: &Table<'_>, key: &str, example: &str) -> Result<u64, InputError> {
    optional_above_zero(table, key, example)?
        .ok_or_else(|| table.missing(key, &format!("{key} = \"{example}\"")))
}

fn optional_above_zero(table: &Table<'_>, key: &str, example: &str) -> Result<Option<u64>, InputError> {
    match table.parsed(key, example, units::parse_duration_ns)? {
        Some(none) if none.value == 0 => Err(none.error(format!("`{key}`: found 0, expected more"))),
        found => Ok(found.map(|found| found.value)),
    }
}
