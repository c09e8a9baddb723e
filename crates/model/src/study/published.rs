//! `[[published]]`: what others have published of the same question, to be shown beside what is measured.

use super::resolve::check_name;
use super::written::{FactorKind, NAMES, levels_of};
use super::{Factor, Library, Study};
use crate::error::InputError;
use crate::nearest::unknown;
use crate::plan::{Level, NamedWorkload, Published};
use crate::reader::{Placed, Table};

const KEYS: &[&str] = &["source", "levels", "metric", "ratio"];
const EXAMPLE: &str = r#"levels = { variant = "h2", network = "tokyo" }"#;
/// Ratios beyond this, or below its inverse, are no comparison of two protocols.
const MOST_RATIO: f64 = 1e6;

/// An entry as written.
#[derive(Clone, Debug)]
pub(super) struct Written {
    source: String,
    levels: Placed<Vec<(String, Placed<String>)>>,
    metric: Option<Placed<String>>,
    ratio: f64,
}

pub(super) fn read(root: &Table<'_>) -> Result<Vec<Written>, InputError> {
    root.tables("published")?.into_iter().map(read_entry).collect()
}

fn read_entry(table: Table<'_>) -> Result<Written, InputError> {
    let table = table.with_keys(KEYS)?;
    let example = "Doe, Protocols compared, 2024, table 3";
    let source = table.string("source", example)?;
    let source = source.ok_or_else(|| table.missing("source", &format!("source = \"{example}\"")))?;
    if source.value.trim().is_empty() {
        return Err(source.error("`source`: found nothing, expected where the figure was published"));
    }
    let named = table.table("levels")?.ok_or_else(|| table.missing("levels", EXAMPLE))?.with_keys(NAMES)?;
    let mut levels = Vec::new();
    for key in named.keys() {
        if let Some(level) = named.string(&key.value, "h2")? {
            levels.push((key.value, level));
        }
    }
    let ratio = table.number("ratio", "0.85")?.ok_or_else(|| table.missing("ratio", "ratio = 0.85"))?;
    if !(ratio.value >= 1.0 / MOST_RATIO && ratio.value <= MOST_RATIO) {
        let problem = format!(
            "`ratio`: found {}, expected the level's published value divided by the baseline's, above 0",
            ratio.value
        );
        return Err(ratio.error(problem));
    }
    Ok(Written {
        source: source.value,
        levels: named.here(levels),
        metric: table.string("metric", "page_load_time")?,
        ratio: ratio.value,
    })
}

/// The entries whose levels the matrix has. Levels that the command line left out take theirs with them.
pub(super) fn resolve(
    study: &Study,
    workloads: &[&NamedWorkload],
    library: &impl Library,
) -> Result<Vec<Published>, InputError> {
    let mut published = Vec::new();
    for written in &study.published {
        if let Some(levels) = resolve_levels(study, written)? {
            let metric = resolve_metric(study, written, &levels, workloads, library)?;
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

/// In the order of the matrix; `None` where one is there no more.
fn resolve_levels(study: &Study, written: &Written) -> Result<Option<Vec<Level>>, InputError> {
    let baseline = &study.baseline;
    let compared = baseline.factor.name();
    let Some((_, level)) = written.levels.value.iter().find(|(factor, _)| factor == compared) else {
        let problem =
            format!("`levels`: found no `{compared}`, expected the one that is compared with the baseline");
        return Err(written.levels.error(problem));
    };
    if level.value == baseline.level.value {
        let problem = format!(
            "`levels`: found the baseline `{}` itself, expected a level of `{compared}` that is compared with it",
            level.value
        );
        return Err(level.error(problem));
    }
    let factors = &study.matrix.value;
    for (factor, level) in &written.levels.value {
        let Some(known) = factors.iter().find(|known| known.kind.name() == factor) else {
            let problem = format!("`levels`: found `{factor}`, which is no factor of this study's matrix");
            return Err(level.error(problem));
        };
        if !has(known, &level.value) && known.levels.place.line > 0 {
            let names: Vec<&str> =
                levels_of(factors, known.kind).iter().map(|level| level.value.as_str()).collect();
            let noun = format!("a level of `{factor}` in the matrix");
            return Err(level.error(format!("`levels`: {}", unknown(&level.value, &noun, &names))));
        }
    }
    let mut levels = Vec::new();
    for factor in factors {
        let named = written.levels.value.iter().find(|(named, _)| named == factor.kind.name());
        let Some((_, level)) = named else { continue };
        if !has(factor, &level.value) {
            return Ok(None);
        }
        levels.push(Level { factor: factor.kind.name().to_owned(), value: level.value.clone() });
    }
    Ok(Some(levels))
}

fn has(factor: &Factor, level: &str) -> bool {
    factor.levels.value.iter().any(|known| known.value == level)
}

/// The study's own metric, unless the entry names another, which one of its workloads has to have.
fn resolve_metric(
    study: &Study,
    written: &Written,
    levels: &[Level],
    workloads: &[&NamedWorkload],
    library: &impl Library,
) -> Result<String, InputError> {
    let Some(metric) = &written.metric else { return Ok(study.metric.value.clone()) };
    check_name(metric, "`metric`: ", "a metric", &library.metrics())?;
    let wanted = levels.iter().find(|level| level.factor == FactorKind::Workload.name());
    let mut problem = None;
    for named in workloads.iter().filter(|named| wanted.is_none_or(|level| level.value == named.name)) {
        match library.check_metric(&metric.value, &named.workload) {
            Ok(()) => return Ok(metric.value.clone()),
            Err(found) => problem = Some(format!("`metric`: workload `{}`: {found}", named.name)),
        }
    }
    Err(metric.error(problem.unwrap_or_else(|| "`metric`: found no workload that has it".to_owned())))
}
