//! The keys of a network file one by one, in the short form and the full one.

use super::{Jitter, Limit, Order, Queue, Rate, Stretches};
use crate::error::InputError;
use crate::keys;
use crate::named::unknown;
use crate::network::{
    Codel, DelaySteps, Discipline, Distribution, FULL_FRAME_BYTES, Loss, OutagePackets, OutageTimes, Outages,
    Reorder, UdpRule, Variation,
};
use crate::reader::{Form, Key, Placed, Table};
use crate::units;

pub(super) const DELAY_STEPS_KEYS: &[Key] = keys! {
    "every", "duration", "required", r#""15s""#, "How long each delay is held.";
    "spread", "duration", "required", r#""8ms""#, "The largest distance from `delay`, at most `delay` itself.";
};
pub(super) const JITTER_KEYS: &[Key] = keys! {
    "spread", "duration", "required", r#""15ms""#,
        "Standard deviation; for `uniform` the largest distance from the mean. At most the delay.";
    "distribution", "text", "`\"normal\"`", r#""pareto""#,
        "`normal`, `uniform` or `pareto` (shape 3 as in netem, cut at its 99.99 % quantile).";
    "order", "text", "`\"kept\"`", r#""free""#,
        "`kept`: packets stay in order. `free`: each packet draws its own delay and may overtake others.";
    "correlation", "duration or share", "10 times the spread, 100 for `pareto`; `\"0%\"` with `free`", r#""200ms""#,
        "With `kept` half the time after which the delay is independent of its past; with `free` the correlation of successive draws.";
};
pub(super) const RATE_KEYS: &[Key] = keys! {
    "mean", "rate", "required with `steps` or `drift`", r#""20Mbit/s""#, "The mean of a varying rate.";
    "steps", "table", "none", r#"{ every = "15s", spread = "30%" }"#, "The rate changes at intervals.";
    "drift", "table", "none", r#"{ over = "1s", spread = "40%" }"#, "The rate changes continuously.";
    "mahimahi", "text", "none", r#""lte.trace""#, "A Mahimahi trace in `networks/`.";
    "csv", "text", "none", r#""lte.csv""#, "A table of times and rates in `networks/`.";
    "repeat", "duration", "the last rate holds", r#""60s""#, "With `csv`: the table restarts after this time.";
};
pub(super) const STEPS_KEYS: &[Key] = keys! {
    "every", "duration", "required", r#""15s""#, "How long each rate is held.";
    "spread", "share", "required", r#""30%""#, "Standard deviation as a share of the mean; above 0 %.";
};
pub(super) const DRIFT_KEYS: &[Key] = keys! {
    "over", "duration", "required", r#""1s""#, "The time after which the rate is independent of its past.";
    "spread", "share", "required", r#""40%""#, "Standard deviation as a share of the mean; above 0 %.";
};
pub(super) const QUEUE_KEYS: &[Key] = keys! {
    "limit", "packets, size, duration, or bandwidth-delay products", "`\"1000 packets\"`; `\"10240 packets\"` with `fq-codel`",
        r#""1bdp""#, "The size of the queue.";
    "discipline", "text", "`\"drop-tail\"`", r#""codel""#,
        "`drop-tail`, `codel` ([RFC 8289](https://www.rfc-editor.org/rfc/rfc8289)) or `fq-codel` ([RFC 8290](https://www.rfc-editor.org/rfc/rfc8290)).";
    "target", "duration", "`\"5ms\"`", r#""2ms""#, "CoDel: the acceptable standing delay.";
    "interval", "duration", "`\"100ms\"`", r#""50ms""#, "CoDel: how long the delay may exceed the target.";
    "ecn", "boolean", "`false`", "true", "CoDel: mark packets that support ECN (ECT becomes CE) instead of dropping them.";
    "flows", "whole number", "`1024`", "16", "FQ-CoDel: the number of queues that flows are hashed to; 1 to 65536.";
    "quantum", "size", "`\"1514B\"`", r#""300B""#, "FQ-CoDel: the bytes that a flow may send in one turn; 1 B to 16 MiB.";
};
pub(super) const LOSS_KEYS: &[Key] = keys! {
    "share", "share", "required without `p` and `r`", r#""2%""#, "Share of packets lost.";
    "burst", "text", "none: independent losses", r#""4 packets""#, "Mean length of a burst of losses; at least 1 packet.";
    "p", "share", "required without `share`", r#""1%""#, "Gilbert–Elliott: probability of good to bad.";
    "r", "share", "required without `share`", r#""25%""#, "Gilbert–Elliott: probability of bad to good.";
    "h", "share", "`\"0%\"`", r#""50%""#, "Gilbert–Elliott: share of packets delivered in the bad state.";
    "k", "share", "`\"100%\"`", r#""99%""#, "Gilbert–Elliott: share of packets delivered in the good state.";
};
pub(super) const UDP_KEYS: &[Key] = keys! {
    "rate", "rate", "required", r#""2Mbit/s""#, "UDP that exceeds this rate is dropped, over whole Ethernet frames.";
    "burst", "size", "what the rate sends in 50 ms, at least 10 full frames", r#""64kB""#,
        "What may pass at once after a pause; 1514 B to 4 GB.";
};
pub(super) const REORDER_KEYS: &[Key] = keys! {
    "share", "share", "`\"100%\"`", r#""25%""#, "Probability that a candidate skips the delay.";
    "gap", "whole number", "`1`", "5", "The first candidate is this many packets after the last reordered one; 1 to 1 000 000.";
};
pub(super) const OUTAGES_KEYS: &[Key] = keys! {
    "every", "duration", "required", r#""15s""#, "The period.";
    "lasts", "duration", "required", r#""100ms""#, "The length of an outage; less than `every`.";
    "packets", "text", "`\"lost\"`", r#""wait""#, "`lost`: packets are dropped. `wait`: they stay in the queue.";
    "at_random", "boolean", "`false`", "true", "The outage begins at a random instant of the period.";
};

/// The keys of the queue's table that a discipline has.
const DISCIPLINES: &[(&str, &[&str])] = &[
    ("drop-tail", &["limit", "discipline"]),
    ("codel", &["limit", "discipline", "target", "interval", "ecn"]),
    ("fq-codel", &["limit", "discipline", "target", "interval", "ecn", "flows", "quantum"]),
];
const BITS_PER_BYTE: u64 = 8;
/// A policer's bucket usually holds what its rate sends in 50 ms.
const BURSTS_PER_S: u64 = 20;
const LEAST_BURST_FRAMES: u64 = 10;
/// A full frame.
const LEAST_BURST_BYTES: u32 = 1514;
const MOST_GAP: u64 = 1_000_000;
const MOST_FLOWS: u32 = 65_536;
const FLOWS: u32 = 1024; // RFC 8290, section 4.1.2
const QUANTUM_BYTES: u32 = 1514; // RFC 8290, section 4.1.1
const MOST_QUANTUM_BYTES: u32 = (1 << 24) - 1;

/// Reads a key that has a short form and a full one.
fn either<T>(
    table: &Table<'_>,
    key: &str,
    keys: &'static [Key],
    short: impl FnOnce(&str) -> Result<T, String>,
    full: impl FnOnce(&Table<'_>) -> Result<T, InputError>,
) -> Result<Option<Placed<T>>, InputError> {
    match table.form(key)? {
        None => Ok(None),
        Some(Form::Text(text)) => {
            text.map(|text| short(&text).map_err(|problem| format!("`{key}`: {problem}"))).map(Some)
        }
        Some(Form::Table(table)) => {
            let table = table.with_keys(keys)?;
            Ok(Some(table.here(full(&table)?)))
        }
    }
}

pub(super) fn delay_steps(table: &Table<'_>) -> Result<Option<Placed<DelaySteps>>, InputError> {
    let Some(steps) = table.table("delay_steps")? else { return Ok(None) };
    let steps = steps.with_keys(DELAY_STEPS_KEYS)?;
    let every_ns = steps.required("every", Table::duration_above_zero)?.value;
    let spread_ns = steps.required("spread", Table::duration_above_zero)?.value;
    Ok(Some(steps.here(DelaySteps { every_ns, spread_ns })))
}

pub(super) fn jitter(table: &Table<'_>) -> Result<Option<Placed<Jitter>>, InputError> {
    let normal = |spread_ns| Jitter {
        spread_ns,
        distribution: Distribution::Normal,
        order: Order::Kept { correlation: None },
    };
    let short = |text: &str| units::parse_duration_ns(text).map(normal);
    either(table, "jitter", JITTER_KEYS, short, |table| {
        let spread_ns = table.required("spread", Table::duration_above_zero)?.value;
        let distribution = table.named("distribution")?.map_or(Distribution::Normal, |named| named.value);
        let is_free =
            table.parsed("order", |name| named(name, "an order", &[("kept", false), ("free", true)]))?;
        let order = if is_free.is_some_and(|is_free| is_free.value) {
            let correlation = table.parsed("correlation", units::parse_share)?;
            if let Some(whole) = correlation.as_ref().filter(|share| share.value >= 1.0) {
                return Err(whole.error("`correlation`: a delay with 100% never varies; write less"));
            }
            Order::Free { correlation: correlation.map_or(0.0, |share| share.value) }
        } else {
            Order::Kept { correlation: table.parsed("correlation", units::parse_duration_ns)? }
        };
        Ok(Jitter { spread_ns, distribution, order })
    })
}

pub(super) fn rate(table: &Table<'_>) -> Result<Option<Placed<Rate>>, InputError> {
    let short = |text: &str| match text.trim() {
        "unlimited" => Ok(Rate::Unlimited),
        text => match units::parse_rate_bits_per_s(text) {
            Ok(0) => Err("0 is too low; write a rate above 0, or use `outages` to stop the link".to_owned()),
            Ok(bits_per_s) => Ok(Rate::Constant(bits_per_s)),
            Err(problem) => Err(format!("{problem}, or `unlimited`")),
        },
    };
    either(table, "rate", RATE_KEYS, short, rate_in_full)
}

fn rate_in_full(table: &Table<'_>) -> Result<Rate, InputError> {
    let mean = table.parsed("mean", units::parse_rate_bits_per_s)?;
    let (mahimahi, csv) = (table.string("mahimahi")?, table.string("csv")?);
    let repeat = table.parsed("repeat", units::parse_duration_ns)?;
    let steps = variation(table, "steps", STEPS_KEYS)?;
    let drift = variation(table, "drift", DRIFT_KEYS)?;
    if let (Some(repeat), None) = (&repeat, &csv) {
        return Err(
            repeat.error("`repeat` requires `csv`; add the table of times and rates, or remove `repeat`")
        );
    }
    if (steps.is_some() || drift.is_some()) && mean.is_none() {
        return Err(table.missing("mean"));
    }
    match (mean, mahimahi, csv) {
        (Some(mean), None, None) if mean.value == 0 => {
            Err(mean.error("`mean`: 0 is too low; write a rate above 0"))
        }
        (Some(mean), None, None) if steps.is_none() && drift.is_none() => {
            Err(mean.error("`mean` requires `steps` or `drift`; write a constant rate as `rate = \"…\"`"))
        }
        (Some(mean), None, None) => Ok(Rate::Varying { mean_bits_per_s: mean.value, steps, drift }),
        (None, Some(file), None) => Ok(Rate::Mahimahi(file.value)),
        (None, None, Some(file)) => {
            Ok(Rate::Csv { file: file.value, repeat_ns: repeat.map(|repeat| repeat.value) })
        }
        (None, None, None) => Err(table.error("`rate` is empty; write one of `mean`, `mahimahi`, `csv`")),
        _ => Err(table.error("`rate` has several of `mean`, `mahimahi`, `csv`; write one")),
    }
}

fn variation(table: &Table<'_>, key: &str, keys: &'static [Key]) -> Result<Option<Variation>, InputError> {
    let Some(table) = table.table(key)? else { return Ok(None) };
    let table = table.with_keys(keys)?;
    let spread = table.required("spread", |table, key| table.parsed(key, units::parse_share))?;
    if spread.value <= 0.0 {
        return Err(spread.error("`spread`: 0% is too low; write more than 0%"));
    }
    let every_ns = table.required(keys[0].name, Table::duration_above_zero)?.value;
    Ok(Some(Variation { spread_share: spread.value, every_ns }))
}

pub(super) fn queue(table: &Table<'_>) -> Result<Option<Placed<Queue>>, InputError> {
    if let Some(Form::Text(text)) = table.form("queue")? {
        let place = text.place.clone();
        let limit = Some(text.map(|text| limit(&text))?);
        return Ok(Some(Placed { value: Queue { limit, discipline: None }, place }));
    }
    let Some(table) = table.table("queue")? else { return Ok(None) };
    let table = table.with_keys(QUEUE_KEYS)?;
    let kind = table.parsed("discipline", |name| {
        named(name, "a discipline", DISCIPLINES).map(|keys| (name.to_owned(), keys))
    })?;
    let (kind, keys) = kind.map_or(("drop-tail".to_owned(), DISCIPLINES[0].1), |kind| kind.value);
    if let Some(key) = table.keys().find(|key| !keys.contains(&key.value.as_str())) {
        let problem = format!(
            "the discipline `{kind}` has no `{}`; remove it, or choose another discipline",
            key.value
        );
        return Err(key.error(problem));
    }
    let usual = Codel::default();
    let codel = Codel {
        target_ns: table.duration_above_zero("target")?.map_or(usual.target_ns, |target| target.value),
        interval_ns: table.duration_above_zero("interval")?.map_or(usual.interval_ns, |time| time.value),
        ecn: table.flag("ecn")?,
    };
    if codel.target_ns >= codel.interval_ns {
        return Err(table.error("`target` is not below `interval`; write about 5 % of it"));
    }
    let flows = table.integer("flows", 1..=MOST_FLOWS)?.map_or(FLOWS, |flows| flows.value);
    let quantum = table.size("quantum", 1..=MOST_QUANTUM_BYTES)?;
    let quantum_bytes = quantum.map_or(QUANTUM_BYTES, |quantum| quantum.value);
    let discipline = Some(match kind.as_str() {
        "codel" => Discipline::Codel(codel),
        "fq-codel" => Discipline::FqCodel { codel, flows, quantum_bytes },
        _ => Discipline::DropTail,
    });
    Ok(Some(table.here(Queue { limit: table.parsed("limit", limit)?, discipline })))
}

/// `100 packets`, `64kB`, `100ms` (what the link sends in this time), or `1bdp` (bandwidth-delay product of
/// the direction's rate and the whole RTT).
fn limit(text: &str) -> Result<Limit, String> {
    let fault =
        || format!("`{text}` is not a queue; write one such as `100 packets`, `64kB`, `100ms` or `1bdp`");
    if let Some(number) = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) {
        let packets: u64 = number.trim().parse().map_err(|_| fault())?;
        return if packets > 0 { Ok(Limit::Packets(packets)) } else { Err(fault()) };
    }
    if let Some(number) = text.strip_suffix("bdp") {
        let factor: f64 = number.trim().parse().map_err(|_| fault())?;
        return if factor > 0.0 && factor <= 1000.0 { Ok(Limit::Product(factor)) } else { Err(fault()) };
    }
    if let Ok(ns) = units::parse_duration_ns(text) {
        return if ns > 0 { Ok(Limit::Time(ns)) } else { Err(fault()) };
    }
    match units::parse_size_bytes(text) {
        Ok(bytes) if bytes >= FULL_FRAME_BYTES => Ok(Limit::Bytes(bytes)),
        Ok(_) => Err(format!("`{text}` is too small; write at least one full frame, 1514B")),
        Err(_) => Err(fault()),
    }
}

pub(super) fn loss(table: &Table<'_>) -> Result<Option<Placed<Loss>>, InputError> {
    let short = |text: &str| units::parse_share(text).map(independent);
    either(table, "loss", LOSS_KEYS, short, |table| {
        let share = |key: &str| table.parsed(key, units::parse_share);
        let burst = table.parsed("burst", burst)?;
        let (h, k) = (share("h")?, share("k")?);
        let has_states = h.is_some() || k.is_some();
        match (share("share")?, burst, share("p")?, share("r")?) {
            (Some(share), None, None, None) if !has_states => Ok(independent(share.value)),
            (Some(share), Some(burst), None, None) if !has_states => {
                share.map(|share| bursts(share, burst.value)).map(|loss| loss.value)
            }
            (None, None, Some(p), Some(r)) if p.value + r.value <= 0.0 => {
                Err(p.error("`p` and `r` are 0%, so that the state never changes; write more than 0% for one of them"))
            }
            (None, None, Some(p), Some(r)) => {
                let (h, k) = (h.map_or(0.0, |h| h.value), k.map_or(1.0, |k| k.value));
                Ok(Loss::GilbertElliott { p: p.value, r: r.value, h, k })
            }
            _ => Err(table.error(
                "`loss` mixes models; write `share`, or `share` and `burst`, or `p` and `r` with optional `h` and `k`",
            )),
        }
    })
}

fn independent(share: f64) -> Loss {
    if share > 0.0 { Loss::Independent { share } } else { Loss::None }
}

fn burst(text: &str) -> Result<f64, String> {
    let fault = || format!("`{text}` is not a mean length; write one such as `4 packets`, at least 1");
    let number = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")).ok_or_else(fault)?;
    let packets: f64 = number.trim().parse().map_err(|_| fault())?;
    if (1.0..=1e6).contains(&packets) { Ok(packets) } else { Err(fault()) }
}

/// Gilbert's model (everything is lost in the bad state, nothing in the good) from its share and mean burst.
fn bursts(share: f64, burst_packets: f64) -> Result<Loss, String> {
    if share <= 0.0 || share >= 1.0 {
        return Err("`share`: 0% and 100% have no bursts; write a share between them".to_owned());
    }
    let r = 1.0 / burst_packets;
    let p = r * share / (1.0 - share);
    if p > 1.0 {
        return Err(format!(
            "a loss of {}% in bursts of {burst_packets} packets is impossible; write bursts of at least {} packets",
            units::three_digits(share * 100.0),
            units::three_digits(share / (1.0 - share)),
        ));
    }
    Ok(Loss::GilbertElliott { p, r, h: 0.0, k: 1.0 })
}

/// Numbers of packets and stretches of them, `["3", "10-12"]`, in order and joined.
pub(super) fn lose(table: &Table<'_>) -> Result<Option<Placed<Stretches>>, InputError> {
    let Some(list) = table.strings("lose")? else { return Ok(None) };
    let mut stretches: Stretches = Vec::new();
    for item in list.value {
        let (first, last) = item.value.split_once('-').unwrap_or((&item.value, &item.value));
        let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => stretches.push((first, last)),
            _ => {
                let expected = "write the number of a packet from 1, or a range such as `10-12`";
                return Err(item.error(format!("`lose`: `{}` is not a packet; {expected}", item.value)));
            }
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

/// What a middlebox does to UDP: `open`, `blocked`, or a rate.
pub(super) fn udp(table: &Table<'_>) -> Result<Option<Placed<Option<UdpRule>>>, InputError> {
    let policed = |bits_per_s: u64, burst_bytes: Option<u64>| {
        let usual = (bits_per_s / BITS_PER_BYTE / BURSTS_PER_S).max(LEAST_BURST_FRAMES * FULL_FRAME_BYTES);
        Some(UdpRule::Policed { bits_per_s, burst_bytes: burst_bytes.unwrap_or(usual) })
    };
    let rate = |text: &str| match units::parse_rate_bits_per_s(text) {
        Ok(0) => Err("0 is too low; write a rate above 0, or `blocked`".to_owned()),
        rate => rate,
    };
    let short = |text: &str| match text.trim() {
        "open" => Ok(None),
        "blocked" => Ok(Some(UdpRule::Blocked)),
        text => match rate(text) {
            Ok(bits_per_s) => Ok(policed(bits_per_s, None)),
            Err(problem) => Err(format!("{problem}, `blocked` or `open`")),
        },
    };
    either(table, "udp", UDP_KEYS, short, |table| {
        let bits_per_s = table.required("rate", |table, key| table.parsed(key, rate))?.value;
        let burst = table.size("burst", LEAST_BURST_BYTES..=u32::MAX)?;
        Ok(policed(bits_per_s, burst.map(|burst| burst.value.into())))
    })
}

pub(super) fn reorder(table: &Table<'_>) -> Result<Option<Placed<Reorder>>, InputError> {
    let short = |text: &str| units::parse_share(text).map(|share| Reorder { share, gap: 1 });
    either(table, "reorder", REORDER_KEYS, short, |table| {
        let share = table.parsed("share", units::parse_share)?.map_or(1.0, |share| share.value);
        Ok(Reorder { share, gap: table.integer("gap", 1..=MOST_GAP)?.map_or(1, |gap| gap.value) })
    })
}

/// `outages` of the whole run, or the `outage` of a stretch of the timeline.
pub(super) fn outages(table: &Table<'_>) -> Result<Option<Placed<Outages>>, InputError> {
    if let Some(outage) = table.named("outage")? {
        return outage.map(|packets| Ok(Outages { packets, times: OutageTimes::Always })).map(Some);
    }
    let Some(table) = table.table("outages")? else { return Ok(None) };
    let table = table.with_keys(OUTAGES_KEYS)?;
    let every_ns = table.required("every", Table::duration_above_zero)?.value;
    let lasts_ns = table.required("lasts", Table::duration_above_zero)?.value;
    if lasts_ns >= every_ns {
        return Err(table.error("`lasts` is not below `every`; write a shorter outage"));
    }
    let packets = table.named("packets")?.map_or(OutagePackets::Lost, |packets| packets.value);
    let times = OutageTimes::Every { every_ns, lasts_ns, at_random: table.flag("at_random")? };
    Ok(Some(table.here(Outages { packets, times })))
}

fn named<T: Copy>(name: &str, noun: &str, known: &[(&str, T)]) -> Result<T, String> {
    let names: Vec<&str> = known.iter().map(|(known, _)| *known).collect();
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    found.ok_or_else(|| unknown(name, noun, &names))
}
