//! The network file as written: its keys, their types and their units.

mod forms;

use toml::de::DeTable;

use super::{DelaySteps, Distribution, Loss, Outages, Reorder, UdpRule, Variation};
use crate::error::{InputError, Source};
use crate::keys;
use crate::reader::{Form, Key, Placed, Table, TableKeys, parse, read_file};
use crate::units;

/// Keys of the file alone.
const ROOT_KEYS: &[Key] = keys! {
    "title", "text", "required", r#""A phone in a tram""#, "One line that describes the network.";
    "source", "text", "required", r#""ping, 100 probes, 2024; the queue is a guess""#,
        "The source of the values, and which of them are a guess.";
    "timeline", "tables `[[timeline]]`", "none", "", "Changes during the run; see below.";
};
/// Keys of a network in the table of a study alone.
const INLINE_KEYS: &[Key] = keys! {
    "name", "text", "its keys and values", r#""office""#, "The name of the level in tables and figures.";
};
/// Keys of the file and of a change.
const BOTH_DIRECTIONS: &[Key] = keys! {
    "rtt", "duration", "none: no delay", r#""150ms""#,
        "The sum of both delays; each direction has half of it. Excludes `delay`.";
    "up", "table", "none", "{ rate = \"5Mbit/s\" }", "From the client to the server: overrides the keys below.";
    "down", "table", "none", "{ rate = \"20Mbit/s\" }", "From the server to the client: overrides the keys below.";
};
/// Keys of a direction, both without and within a change.
const DIRECTION_KEYS: &[Key] = keys! {
    "delay", "duration", "half of `rtt`", r#""20ms""#, "Propagation delay of one direction. Excludes `rtt`.";
    "delay_steps", "table", "none", r#"{ every = "15s", spread = "8ms" }"#,
        "The delay changes at intervals `every`, uniformly within `spread`.";
    "jitter", "duration or table", "none", r#""15ms""#,
        "Variation of the delay; see [below](#delay-and-jitter).";
    "rate", "rate or table", "`\"unlimited\"`", r#""50Mbit/s""#,
        "Rate of the link, over whole Ethernet frames without checksum; above 0.";
    "queue", "packets, size, duration, bandwidth-delay products, or table", "`\"1000 packets\"`", r#""100 packets""#,
        "The queue before the rate, such as `\"64kB\"`, `\"100ms\"` or `\"1bdp\"`; requires a `rate`.";
    "loss", "share or table", "`\"0%\"`", r#""0.5%""#, "Random loss.";
    "udp", "text, rate or table", "`\"open\"`", r#""blocked""#,
        "`blocked` drops UDP, and with it QUIC; a rate drops what exceeds it. TCP passes.";
    "duplicate", "share", "`\"0%\"`", r#""0.1%""#, "Share of packets that arrive twice.";
    "reorder", "share or table", "none", r#""1%""#, "Share of packets that skip the delay; requires a `delay`.";
};
/// Keys of a direction without a change.
const STEADY_KEYS: &[Key] = keys! {
    "lose", "list of texts", "none", r#"["3", "10-12"]"#, "Loss of chosen packets, by their numbers from 1.";
    "outages", "table", "none", r#"{ every = "15s", lasts = "100ms" }"#, "Recurring outages.";
};
/// Keys of a direction within a change.
const CHANGE_KEYS: &[Key] = keys! {
    "outage", "text", "none", r#""lost""#, "An outage from this instant: `lost` drops packets, `wait` queues them.";
};
const TIMELINE_KEYS: &[Key] = keys! {
    "at", "duration", "required", r#""12s""#, "The instant, from the start of the run.";
    "for", "duration", "for good", r#""2s""#, "How long the change lasts. Excludes `handover`.";
    "handover", "boolean", "`false`", "true", "The client's address changes, as when a phone leaves Wi-Fi.";
    "rebinding", "boolean", "`false`", "true",
        "A NAT at the client's end forgets its mappings: all connections get new ports.";
};

/// Every table of a network file.
pub const KEYS: &[TableKeys] = &[
    TableKeys { table: "the network", keys: ROOT_KEYS },
    TableKeys { table: "the network in a study's matrix", keys: INLINE_KEYS },
    TableKeys { table: "the network and [[timeline]]", keys: BOTH_DIRECTIONS },
    TableKeys { table: "the network, [[timeline]], [up] and [down]", keys: DIRECTION_KEYS },
    TableKeys { table: "the network, [up] and [down]", keys: STEADY_KEYS },
    TableKeys { table: "[[timeline]]", keys: TIMELINE_KEYS },
    TableKeys { table: "[[timeline]], its up and down", keys: CHANGE_KEYS },
    TableKeys { table: "jitter", keys: forms::JITTER_KEYS },
    TableKeys { table: "delay_steps", keys: forms::DELAY_STEPS_KEYS },
    TableKeys { table: "rate", keys: forms::RATE_KEYS },
    TableKeys { table: "rate.steps", keys: forms::STEPS_KEYS },
    TableKeys { table: "rate.drift", keys: forms::DRIFT_KEYS },
    TableKeys { table: "queue", keys: forms::QUEUE_KEYS },
    TableKeys { table: "loss", keys: forms::LOSS_KEYS },
    TableKeys { table: "udp", keys: forms::UDP_KEYS },
    TableKeys { table: "reorder", keys: forms::REORDER_KEYS },
    TableKeys { table: "outages", keys: forms::OUTAGES_KEYS },
];

/// First and last numbers of packets.
pub(super) type Stretches = Vec<(u64, u64)>;

/// A file.
#[derive(Clone, Debug)]
pub(super) struct NetworkFile {
    pub(super) title: String,
    pub(super) source: String,
    pub(super) base: Directions,
    pub(super) timeline: Vec<Entry>,
}

/// Keys of both directions together, and of each.
#[derive(Clone, Debug)]
pub(super) struct Directions {
    pub(super) rtt: Option<Placed<u64>>,
    pub(super) common: Layer,
    pub(super) up: Layer,
    pub(super) down: Layer,
}

/// One `[[timeline]]`.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: Placed<u64>,
    pub(super) lasts: Option<Placed<u64>>,
    pub(super) handover: bool,
    pub(super) rebinding: bool,
    pub(super) both: Directions,
}

/// Keys of a direction; a missing one is inherited from the layer below.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    pub(super) delay: Option<Placed<u64>>,
    pub(super) delay_steps: Option<Placed<DelaySteps>>,
    pub(super) jitter: Option<Placed<Jitter>>,
    pub(super) rate: Option<Placed<Rate>>,
    pub(super) queue: Option<Placed<Queue>>,
    pub(super) loss: Option<Placed<Loss>>,
    pub(super) lose: Option<Placed<Stretches>>,
    pub(super) udp: Option<Placed<Option<UdpRule>>>,
    pub(super) duplicate: Option<Placed<f64>>,
    pub(super) reorder: Option<Placed<Reorder>>,
    pub(super) outages: Option<Placed<Outages>>,
}

impl Layer {
    /// This layer on top of another.
    pub(super) fn upon(&self, below: &Layer) -> Layer {
        let (above, below) = (self.clone(), below.clone());
        Layer {
            delay: above.delay.or(below.delay),
            delay_steps: above.delay_steps.or(below.delay_steps),
            jitter: above.jitter.or(below.jitter),
            rate: above.rate.or(below.rate),
            queue: match (above.queue, below.queue) {
                (Some(above), Some(below)) => {
                    Some(Placed { value: above.value.upon(below.value), place: above.place })
                }
                (above, below) => above.or(below),
            },
            loss: above.loss.or(below.loss),
            lose: above.lose.or(below.lose),
            udp: above.udp.or(below.udp),
            duplicate: above.duplicate.or(below.duplicate),
            reorder: above.reorder.or(below.reorder),
            outages: above.outages.or(below.outages),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.delay.is_none()
            && self.delay_steps.is_none()
            && self.jitter.is_none()
            && self.rate.is_none()
            && self.queue.is_none()
            && self.loss.is_none()
            && self.lose.is_none()
            && self.udp.is_none()
            && self.duplicate.is_none()
            && self.reorder.is_none()
            && self.outages.is_none()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Jitter {
    pub(super) spread_ns: u64,
    pub(super) distribution: Distribution,
    pub(super) order: Order,
}

#[derive(Clone, Debug)]
pub(super) enum Order {
    Kept { correlation: Option<Placed<u64>> },
    Free { correlation: f64 },
}

#[derive(Clone, Debug)]
pub(super) enum Rate {
    Unlimited,
    Constant(u64),
    Varying { mean_bits_per_s: u64, steps: Option<Variation>, drift: Option<Variation> },
    Mahimahi(String),
    Csv { file: String, repeat_ns: Option<u64> },
}

#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) limit: Option<Placed<Limit>>,
    pub(super) discipline: Option<super::Discipline>,
}

impl Queue {
    fn upon(self, below: Queue) -> Queue {
        Queue { limit: self.limit.or(below.limit), discipline: self.discipline.or(below.discipline) }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Limit {
    Packets(u64),
    Bytes(u64),
    /// What the link sends in this many nanoseconds.
    Time(u64),
    /// A multiple of the bandwidth-delay product.
    Product(f64),
}

pub(super) fn read(source: Source<'_>) -> Result<NetworkFile, InputError> {
    read_document(source, &parse(source)?)
}

/// A file that is parsed, perhaps with changes.
pub(super) fn read_document(source: Source<'_>, document: &DeTable<'_>) -> Result<NetworkFile, InputError> {
    let keys = ROOT_KEYS.iter().chain(BOTH_DIRECTIONS).chain(DIRECTION_KEYS).chain(STEADY_KEYS);
    let root = Table::root(source, document, "the network", keys)?;
    Ok(NetworkFile {
        title: root.required("title", Table::text)?.value,
        source: root.required("source", Table::text)?.value,
        base: directions(&root, STEADY_KEYS)?,
        timeline: root.tables("timeline")?.into_iter().map(entry).collect::<Result<_, _>>()?,
    })
}

/// The line of a file with this key: a table or a list unchanged, anything else as a text.
pub(super) fn line(key: &str, value: &str) -> String {
    match value.trim_start().chars().next() {
        Some('{' | '[') => format!("{key} = {value}\n"),
        _ => format!("{key} = {}\n", toml::Value::from(value)),
    }
}

/// Keys without a file, such as those of the command line.
pub(super) fn read_keys(source: Source<'_>) -> Result<Directions, InputError> {
    let keys = BOTH_DIRECTIONS.iter().chain(DIRECTION_KEYS).chain(STEADY_KEYS);
    read_file(source, "the network", keys, |root| directions(root, STEADY_KEYS))
}

/// A network in the table of another file, such as a level of a study's matrix.
#[derive(Clone, Debug)]
pub(crate) struct InlineNetwork {
    /// The name that refers to it: the table's `name`, or one made of its keys and values.
    pub(crate) name: Placed<String>,
    pub(super) written: NetworkFile,
}

impl InlineNetwork {
    /// Reads the table.
    ///
    /// # Errors
    /// The place of an unknown key, a bad unit or a contradiction.
    pub(crate) fn read(table: Table<'_>) -> Result<InlineNetwork, InputError> {
        let keys = INLINE_KEYS.iter().chain(BOTH_DIRECTIONS).chain(DIRECTION_KEYS).chain(STEADY_KEYS);
        let table = table.with_keys(keys)?;
        let name = match table.text("name")? {
            Some(name) => name,
            None => table.here(automatic_name(&table)?),
        };
        let written = NetworkFile {
            title: name.value.clone(),
            source: "the study".to_owned(),
            base: directions(&table, STEADY_KEYS)?,
            timeline: Vec::new(),
        };
        Ok(InlineNetwork { name, written })
    }
}

/// Such as `rtt-20ms-loss-1%`; only texts can be part of it.
fn automatic_name(table: &Table<'_>) -> Result<String, InputError> {
    let mut parts = Vec::new();
    for key in table.keys() {
        match table.form(&key.value)? {
            Some(Form::Text(text)) => {
                let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '%');
                parts.push(key.value);
                parts.push(text.value.chars().filter(|c| plain(*c)).collect());
            }
            _ => {
                return Err(key.error(format!(
                    "a network with the table `{}` needs a name; add `name = \"…\"`",
                    key.value
                )));
            }
        }
    }
    if parts.is_empty() {
        return Err(table.error("the network is empty; write a key, such as `{ rtt = \"20ms\" }`"));
    }
    Ok(parts.join("-"))
}

fn entry(table: Table<'_>) -> Result<Entry, InputError> {
    let keys = TIMELINE_KEYS.iter().chain(BOTH_DIRECTIONS).chain(DIRECTION_KEYS).chain(CHANGE_KEYS);
    let table = table.with_keys(keys)?;
    let at = table.required("at", |table, key| table.parsed(key, units::parse_duration_ns))?;
    let lasts = table.duration_above_zero("for")?;
    let (handover, rebinding) = (table.flag("handover")?, table.flag("rebinding")?);
    let both = directions(&table, CHANGE_KEYS)?;
    if let Some(lasts) = lasts.as_ref().filter(|_| handover || rebinding) {
        let problem = match handover {
            true => "`for` excludes `handover`; write a second entry, because the new address stays",
            false => "`for` excludes `rebinding`; write a second entry, because the new ports stay",
        };
        return Err(lasts.error(problem));
    }
    let is_empty = both.common.is_empty() && both.up.is_empty() && both.down.is_empty() && both.rtt.is_none();
    if is_empty && !handover && !rebinding {
        return Err(table.error("[[timeline]] changes nothing; add a change, such as `rate = \"1Mbit/s\"`"));
    }
    Ok(Entry { at, lasts, handover, rebinding, both })
}

fn directions(table: &Table<'_>, keys: &'static [Key]) -> Result<Directions, InputError> {
    let one = |key: &str| match table.table(key)? {
        Some(table) => layer(&table.with_keys(DIRECTION_KEYS.iter().chain(keys))?),
        None => Ok(Layer::default()),
    };
    let rtt = table.parsed("rtt", units::parse_duration_ns)?;
    let both = Directions { rtt, common: layer(table)?, up: one("up")?, down: one("down")? };
    if both.rtt.is_some() {
        let named = [(&both.common, "delay"), (&both.up, "up.delay"), (&both.down, "down.delay")];
        for (layer, name) in named {
            if let Some(delay) = &layer.delay {
                let problem = format!("`{name}` excludes `rtt`, which sets both delays; remove one of them");
                return Err(delay.error(problem));
            }
        }
    }
    Ok(both)
}

fn layer(table: &Table<'_>) -> Result<Layer, InputError> {
    Ok(Layer {
        delay: table.parsed("delay", units::parse_duration_ns)?,
        delay_steps: forms::delay_steps(table)?,
        jitter: forms::jitter(table)?,
        rate: forms::rate(table)?,
        queue: forms::queue(table)?,
        loss: forms::loss(table)?,
        lose: forms::lose(table)?,
        udp: forms::udp(table)?,
        duplicate: table.parsed("duplicate", units::parse_share)?,
        reorder: forms::reorder(table)?,
        outages: forms::outages(table)?,
    })
}
