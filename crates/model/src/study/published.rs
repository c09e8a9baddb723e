//! `[[published]]`: published results of the same question, shown next to the measured ones.

use super::claims::{NamedLevel, parse_bound, read_level};
use super::factors::{FactorKind, LEVEL_KEYS, resolve_level};
use super::{Library, Study};
use crate::claim::Bound;
use crate::class::RequestClass;
use crate::error::InputError;
use crate::keys;
use crate::level::Level;
use crate::number::float;
use crate::plan::{NamedWorkload, Published, PublishedValue};
use crate::reader::{Key, Placed, Table};
use crate::statistic::Statistic;
use crate::units;

pub(super) const KEYS: &[Key] = keys! {
    "source", "text", "required", r#""Doe, Protocols compared, 2024, table 3""#, "Where the value was published; not empty.";
    "levels", "table", "required", r#"{ variant = "h2", network = "tokyo" }"#,
        "Levels of the matrix, of the cells that it is about; of a ratio, one of the compared factor.";
    "against", "table", "the baseline", r#"{ variant = "h2c" }"#, "The level that `ratio` is to.";
    "metric", "text", "the study's", r#""time_to_first_byte""#, "A [metric](#metrics) that a workload has.";
    "statistic", "text", "the study's", r#""iqr""#,
        "What was published: `median`, `mean`, `iqr`, `p90`, `p95`, `p99` or `p999`.";
    "ratio", "number", "none", "0.85", "The level's published value divided by the one in `against`; above 0.";
    "value", "duration, size, rate, number, or round trips", "none", r#""2rtt""#,
        "The published value itself. One of `ratio` and `value` is required.";
};
/// Ratios beyond this, or below its inverse, are no comparison of two protocols.
const MOST_RATIO: f64 = 1e6;

/// An entry as written.
#[derive(Clone, Debug)]
pub(super) struct PublishedEntry {
    source: String,
    levels: Placed<Vec<(Placed<String>, Placed<String>)>>,
    against: Option<NamedLevel>,
    metric: Option<Placed<String>>,
    statistic: Option<Statistic>,
    value: PublishedValue,
}

pub(super) fn read(root: &Table<'_>) -> Result<Vec<PublishedEntry>, InputError> {
    root.tables("published")?.into_iter().map(read_entry).collect()
}

fn read_entry(table: Table<'_>) -> Result<PublishedEntry, InputError> {
    let table = table.with_keys(KEYS)?;
    let source = table.required("source", Table::text)?.value;
    let levels = table.required("levels", Table::table)?.knowing(LEVEL_KEYS);
    let value = read_value(&table)?;
    let against = table.table("against")?.map(|_| read_level(&table, "against")).transpose()?;
    if let (Some((factor, _)), PublishedValue::Value(_) | PublishedValue::RoundTrips(_)) = (&against, value) {
        return Err(factor.error("`against` needs `ratio`; a `value` is not divided by anything"));
    }
    let levels = levels.here(levels.level_entries()?);
    let statistic = table.named("statistic")?.map(|statistic| statistic.value);
    Ok(PublishedEntry { source, levels, against, metric: table.string("metric")?, statistic, value })
}

fn read_value(table: &Table<'_>) -> Result<PublishedValue, InputError> {
    let value = table.parsed("value", parse_value)?.map(|value| value.value);
    match (table.number("ratio")?, value) {
        (Some(ratio), None) if ratio.value >= 1.0 / MOST_RATIO && ratio.value <= MOST_RATIO => {
            Ok(PublishedValue::Ratio(ratio.value))
        }
        (Some(ratio), None) => {
            let problem = format!(
                "`ratio` is {}; write the level's published value divided by the other's, above 0",
                ratio.value
            );
            Err(ratio.error(problem))
        }
        (None, Some(Bound::Plain(value))) => Ok(PublishedValue::Value(value)),
        (None, Some(Bound::RoundTrips(trips))) => Ok(PublishedValue::RoundTrips(trips)),
        (None, None) => Err(table.error("[[published]] has neither `ratio` nor `value`; add one of them")),
        (Some(ratio), Some(_)) => Err(ratio.error("`ratio` and `value` are both there; remove one of them")),
    }
}

/// As a bound of a claim, or a rate; not below 0.
fn parse_value(text: &str) -> Result<Bound, String> {
    let rate = units::parse_rate_bits_per_s(text).map(|rate| Bound::Plain(float(rate)));
    match parse_bound(text).or_else(|problem| rate.map_err(|_| problem))? {
        Bound::Plain(value) | Bound::RoundTrips(value) if value < 0.0 => {
            Err(format!("`{text}` is below 0; write the published value"))
        }
        value => Ok(value),
    }
}

/// The entries whose levels the matrix has. An entry without one of them, left out on the command line, is
/// left out too.
pub(super) fn resolve(
    study: &Study,
    workloads: &[&NamedWorkload],
    classes: &[RequestClass],
    library: &impl Library,
) -> Result<Vec<Published>, InputError> {
    let mut published = Vec::new();
    for written in &study.published {
        let against = match &written.against {
            Some((factor, value)) => Some(resolve_level(study, "`against`: ", factor, value)?),
            None => None,
        };
        let is_run = against.as_ref().is_none_or(|(_, is_run)| *is_run);
        let Some(levels) = resolve_levels(study, written)?.filter(|_| is_run) else { continue };
        published.push(Published {
            source: written.source.clone(),
            metric: resolve_metric(study, written, &levels, (workloads, classes), library)?,
            levels,
            against: against.map(|(level, _)| level),
            statistic: written.statistic,
            value: written.value,
        });
    }
    Ok(published)
}

/// In the order of the matrix; `None` if the command line left one out.
fn resolve_levels(study: &Study, written: &PublishedEntry) -> Result<Option<Vec<Level>>, InputError> {
    if let PublishedValue::Ratio(_) = written.value {
        check_compared(study, written)?;
    }
    let mut levels = Vec::new();
    let mut has_all = true;
    for (factor, value) in &written.levels.value {
        let (level, is_run) = resolve_level(study, "`levels`: ", factor, value)?;
        has_all &= is_run;
        levels.push(level);
    }
    let place = |level: &Level| study.factors.iter().position(|factor| factor.name == level.factor);
    levels.sort_by_key(place);
    Ok(has_all.then_some(levels))
}

/// Refuses a ratio without a level of the compared factor, or with the same one on both sides.
fn check_compared(study: &Study, written: &PublishedEntry) -> Result<(), InputError> {
    let baseline = &study.baseline;
    let (compared, other, name) = match &written.against {
        Some((factor, level)) => (factor.value.as_str(), level.value.as_str(), "the level in `against`"),
        None => (baseline.factor.value.as_str(), baseline.level.value.as_str(), "the baseline"),
    };
    let Some((_, level)) = written.levels.value.iter().find(|(factor, _)| factor.value == compared) else {
        let problem = format!("`levels` has no `{compared}`; add the level that is compared with {name}");
        return Err(written.levels.error(problem));
    };
    if level.value == other {
        let problem = format!(
            "`levels`: `{}` is {name}; write a level of `{compared}` that is compared with it",
            level.value
        );
        return Err(level.error(problem));
    }
    Ok(())
}

/// The study's metric, or the entry's own, which one of the workloads must have.
fn resolve_metric(
    study: &Study,
    written: &PublishedEntry,
    levels: &[Level],
    (workloads, classes): (&[&NamedWorkload], &[RequestClass]),
    library: &impl Library,
) -> Result<String, InputError> {
    let Some(metric) = &written.metric else { return Ok(study.metric.value.clone()) };
    super::metric::check_exists(metric, classes, library)?;
    let wanted = levels.iter().find(|level| level.factor == FactorKind::Workload.name());
    let mut problem = None;
    for named in workloads.iter().filter(|named| wanted.is_none_or(|level| level.value == named.name)) {
        match super::metric::check_workload(&metric.value, &named.workload, library) {
            Ok(()) => return Ok(metric.value.clone()),
            Err(found) => problem = Some(format!("`metric`: workload `{}`: {found}", named.name)),
        }
    }
    Err(metric.error(problem.unwrap_or_else(|| "`metric`: no workload has it; choose another".to_owned())))
}
