//! The network file as written: its keys, their types and their units.

use toml::de::DeTable;

use super::{DelaySteps, Distribution, Loss, Outages, Reorder, Variation, forms};
use crate::error::{InputError, Source};
use crate::reader::{Placed, Table};
use crate::units;

/// What either direction may say.
const WAY_KEYS: &[&str] =
    &["delay", "delay_steps", "jitter", "rate", "queue", "loss", "lose", "duplicate", "reorder", "outages"];
const CHANGE_KEYS: &[&str] =
    &["delay", "delay_steps", "jitter", "rate", "queue", "loss", "duplicate", "reorder", "outage"];
const BOTH_WAYS: &[&str] = &["rtt", "up", "down"];
const ROOT_KEYS: &[&str] = &["title", "source", "timeline"];
const TIMELINE_KEYS: &[&str] = &["at", "for", "handover"];

const MOST_TEXT_BYTES: usize = 256 << 10;

/// First and last numbers of packets.
pub(super) type Stretches = Vec<(u64, u64)>;

/// A file.
pub(super) struct Written {
    pub(super) title: String,
    pub(super) source: String,
    pub(super) base: Ways,
    pub(super) timeline: Vec<Entry>,
}

/// What is said of both directions together and of each.
pub(super) struct Ways {
    pub(super) rtt: Option<Placed<u64>>,
    pub(super) common: Layer,
    pub(super) up: Layer,
    pub(super) down: Layer,
}

/// One `[[timeline]]`.
pub(super) struct Entry {
    pub(super) at: Placed<u64>,
    pub(super) lasts: Option<Placed<u64>>,
    pub(super) handover: bool,
    pub(super) ways: Ways,
}

/// What is said of a direction; what is not said is taken from below.
#[derive(Clone, Default)]
pub(super) struct Layer {
    pub(super) delay: Option<Placed<u64>>,
    pub(super) delay_steps: Option<Placed<DelaySteps>>,
    pub(super) jitter: Option<Placed<Jitter>>,
    pub(super) rate: Option<Placed<Rate>>,
    pub(super) queue: Option<Placed<Queue>>,
    pub(super) loss: Option<Placed<Loss>>,
    pub(super) lose: Option<Placed<Stretches>>,
    pub(super) duplicate: Option<Placed<f64>>,
    pub(super) reorder: Option<Placed<Reorder>>,
    pub(super) outages: Option<Placed<Outages>>,
}

impl Layer {
    /// This layer upon another.
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
            && self.duplicate.is_none()
            && self.reorder.is_none()
            && self.outages.is_none()
    }
}

#[derive(Clone)]
pub(super) struct Jitter {
    pub(super) spread_ns: u64,
    pub(super) distribution: Distribution,
    pub(super) order: Order,
}

#[derive(Clone)]
pub(super) enum Order {
    Kept { correlation: Option<Placed<u64>> },
    Free { correlation: f64 },
}

#[derive(Clone)]
pub(super) enum Rate {
    Unlimited,
    Constant(u64),
    Varying { mean_bits_per_s: u64, steps: Option<Variation>, drift: Option<Variation> },
    Mahimahi(String),
    Csv { file: String, repeat_ns: Option<u64> },
}

#[derive(Clone)]
pub(super) struct Queue {
    pub(super) limit: Option<Placed<Limit>>,
    pub(super) discipline: Option<super::Discipline>,
}

impl Queue {
    fn upon(self, below: Queue) -> Queue {
        Queue { limit: self.limit.or(below.limit), discipline: self.discipline.or(below.discipline) }
    }
}

#[derive(Clone)]
pub(super) enum Limit {
    Packets(u64),
    Bytes(u64),
    /// So many times the bandwidth-delay product.
    Product(f64),
}

pub(super) fn read(source: Source<'_>) -> Result<Written, InputError> {
    if source.text.len() > MOST_TEXT_BYTES {
        let problem = format!("found {} bytes, expected at most {MOST_TEXT_BYTES}", source.text.len());
        return Err(source.error(0..0, problem));
    }
    let document = DeTable::parse(source.text).map_err(|error| source.toml_error(&error))?;
    let keys = [ROOT_KEYS, BOTH_WAYS, WAY_KEYS].concat();
    let root = Table::root(source, document.get_ref(), "the network", &keys)?;
    let text = |key: &str, example: &str| match root.string(key, example)? {
        Some(text) if text.value.trim().is_empty() => {
            Err(text.error(format!("`{key}`: found nothing, expected one such as `{example}`")))
        }
        Some(text) => Ok(text.value),
        None => Err(root.missing(key, &format!("{key} = \"{example}\""))),
    };
    Ok(Written {
        title: text("title", "A line at home")?,
        source: text("source", "measured by …, 2024; the queue is ours")?,
        base: ways(&root, WAY_KEYS)?,
        timeline: root.tables("timeline")?.into_iter().map(entry).collect::<Result<_, _>>()?,
    })
}

fn entry(table: Table<'_>) -> Result<Entry, InputError> {
    let table = table.with_keys(&[TIMELINE_KEYS, BOTH_WAYS, CHANGE_KEYS].concat())?;
    let at = table.parsed("at", "12s", units::parse_duration_ns)?;
    let at = at.ok_or_else(|| table.missing("at", "at = \"12s\""))?;
    let lasts = table.parsed("for", "2s", units::parse_duration_ns)?;
    let handover = table.boolean("handover")?.is_some_and(|handover| handover.value);
    let ways = ways(&table, CHANGE_KEYS)?;
    if let Some(lasts) = &lasts {
        if lasts.value == 0 {
            return Err(lasts.error("`for`: found no time, expected more than 0"));
        }
        if handover {
            return Err(lasts.error(
                "found both `handover` and `for`, expected one: an address that changed stays; write a second entry",
            ));
        }
    }
    let is_empty = ways.common.is_empty() && ways.up.is_empty() && ways.down.is_empty() && ways.rtt.is_none();
    if is_empty && !handover {
        return Err(table.error("found nothing that changes, expected one such as `rate = \"1Mbit/s\"`"));
    }
    Ok(Entry { at, lasts, handover, ways })
}

fn ways(table: &Table<'_>, keys: &[&str]) -> Result<Ways, InputError> {
    let one = |way: &str| match table.table(way)? {
        Some(table) => layer(&table.with_keys(keys)?),
        None => Ok(Layer::default()),
    };
    let ways = Ways {
        rtt: table.parsed("rtt", "150ms", units::parse_duration_ns)?,
        common: layer(table)?,
        up: one("up")?,
        down: one("down")?,
    };
    if ways.rtt.is_some() {
        let named = [(&ways.common, "delay"), (&ways.up, "up.delay"), (&ways.down, "down.delay")];
        for (layer, name) in named {
            if let Some(delay) = &layer.delay {
                let problem = format!("found both `rtt` and `{name}`, expected one: `rtt` is split evenly");
                return Err(delay.error(problem));
            }
        }
    }
    Ok(ways)
}

fn layer(table: &Table<'_>) -> Result<Layer, InputError> {
    Ok(Layer {
        delay: table.parsed("delay", "75ms", units::parse_duration_ns)?,
        delay_steps: forms::delay_steps(table)?,
        jitter: forms::jitter(table)?,
        rate: forms::rate(table)?,
        queue: forms::queue(table)?,
        loss: forms::loss(table)?,
        lose: forms::lose(table)?,
        duplicate: table.parsed("duplicate", "0.1%", units::parse_share)?,
        reorder: forms::reorder(table)?,
        outages: forms::outages(table)?,
    })
}
