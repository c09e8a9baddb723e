//! `[[published]]`: published results of the same question, shown next to the measured ones.

use super::factors::{FactorKind, LEVEL_KEYS, resolve_level};
use super::{Library, Study};
use crate::class::RequestClass;
use crate::error::InputError;
use crate::keys;
use crate::level::Level;
use crate::plan::{NamedWorkload, Published};
use crate::reader::{Key, Placed, Table};

pub(super) const KEYS: &[Key] = keys! {
    "source", "text", "required", r#""Doe, Protocols compared, 2024, table 3""#, "Where the value was published; not empty.";
    "levels", "table", "required", r#"{ variant = "h2", network = "tokyo" }"#,
        "Levels of the matrix: one of the baseline's factor other than the baseline, and of others to restrict the cells.";
    "metric", "text", "the study's", r#""time_to_first_byte""#, "A [metric](#metrics) that a workload has.";
    "ratio", "number", "required", "0.85", "The level's published value divided by the baseline's; above 0.";
};
/// Ratios beyond this, or below its inverse, are no comparison of two protocols.
const MOST_RATIO: f64 = 1e6;

/// An entry as written.
#[derive(Clone, Debug)]
pub(super) struct PublishedEntry {
    source: String,
    levels: Placed<Vec<(Placed<String>, Placed<String>)>>,
    metric: Option<Placed<String>>,
    ratio: f64,
}

pub(super) fn read(root: &Table<'_>) -> Result<Vec<PublishedEntry>, InputError> {
    root.tables("published")?.into_iter().map(read_entry).collect()
}

fn read_entry(table: Table<'_>) -> Result<PublishedEntry, InputError> {
    let table = table.with_keys(KEYS)?;
    let source = table.required("source", Table::text)?.value;
    let levels = table.required("levels", Table::table)?.knowing(LEVEL_KEYS);
    let ratio = table.required("ratio", Table::number)?;
    if !(ratio.value >= 1.0 / MOST_RATIO && ratio.value <= MOST_RATIO) {
        let problem = format!(
            "`ratio` is {}; write the level's published value divided by the baseline's, above 0",
            ratio.value
        );
        return Err(ratio.error(problem));
    }
    let levels = levels.here(levels.level_entries()?);
    Ok(PublishedEntry { source, levels, metric: table.string("metric")?, ratio: ratio.value })
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
        if let Some(levels) = resolve_levels(study, written)? {
            let metric = resolve_metric(study, written, &levels, (workloads, classes), library)?;
            published.push(Published {
                source: written.source.clone(),
                levels,
                metric,
                ratio: written.ratio,
            });
        }
    }
    Ok(published)
}

/// In the order of the matrix; `None` if the command line left one out.
fn resolve_levels(study: &Study, written: &PublishedEntry) -> Result<Option<Vec<Level>>, InputError> {
    let baseline = &study.baseline;
    let compared = baseline.factor.value.as_str();
    let Some((_, level)) = written.levels.value.iter().find(|(factor, _)| factor.value == compared) else {
        let problem =
            format!("`levels` has no `{compared}`; add the level that is compared with the baseline");
        return Err(written.levels.error(problem));
    };
    if level.value == baseline.level.value {
        let problem = format!(
            "`levels`: `{}` is the baseline; write a level of `{compared}` that is compared with it",
            level.value
        );
        return Err(level.error(problem));
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
