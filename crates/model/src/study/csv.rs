//! `[csv.NAME]`: tables that the study describes column by column.

use super::factors::DeclaredFactor;
use super::{Library, Study};
use crate::csv::{CellStatistic, CsvColumn, CsvTable, CsvValue, divisor};
use crate::error::InputError;
use crate::reader::{Placed, Table};

/// The tables that every result has.
const TAKEN: [&str; 5] = ["cells", "classes", "comparisons", "load", "validity"];

/// A table as written: its name, and the text of each column.
#[derive(Clone, Debug)]
pub(super) struct CsvEntry {
    name: Placed<String>,
    columns: Vec<(Placed<String>, Placed<String>)>,
}

pub(super) fn read(root: &Table<'_>) -> Result<Vec<CsvEntry>, InputError> {
    let Some(tables) = root.table("csv")? else { return Ok(Vec::new()) };
    let mut entries = Vec::new();
    for name in tables.keys() {
        let columns = tables.required(&name.value, Table::table)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if !name.value.bytes().all(is_plain) || TAKEN.contains(&name.value.as_str()) {
            let problem = format!(
                "`{}` is not a name for a table; write letters, digits, `-` and `_`, and none of {}",
                name.value,
                TAKEN.join(", ")
            );
            return Err(name.error(problem));
        }
        let texts = columns.keys().map(|key| {
            let text = columns.required(&key.value, Table::text)?;
            Ok((key, text))
        });
        let columns: Vec<_> = texts.collect::<Result<_, InputError>>()?;
        if columns.is_empty() {
            return Err(name.error(format!(
                "[csv.{}] has no columns; add one, such as `clients = \"clients\"`",
                name.value
            )));
        }
        entries.push(CsvEntry { name, columns });
    }
    Ok(entries)
}

pub(super) fn resolve(study: &Study, library: &impl Library) -> Result<Vec<CsvTable>, InputError> {
    let column = |(name, text): &(Placed<String>, Placed<String>)| {
        let value = resolve_value(&text.value, &study.factors, library);
        let value = value.map_err(|problem| text.error(format!("`{}`: {problem}", name.value)))?;
        Ok(CsvColumn { name: name.value.clone(), value })
    };
    let table = |entry: &CsvEntry| {
        let columns = entry.columns.iter().map(column).collect::<Result<_, InputError>>()?;
        Ok(CsvTable { name: entry.name.value.clone(), columns })
    };
    study.csv.iter().map(table).collect()
}

/// Reads `FACTOR`, or `METRIC`, or `STATISTIC of METRIC in UNIT`.
fn resolve_value(text: &str, factors: &[DeclaredFactor], library: &impl Library) -> Result<CsvValue, String> {
    if factors.iter().any(|factor| factor.name == text) {
        return Ok(CsvValue::Level(text.to_owned()));
    }
    let (statistic, rest) = match text.split_once(" of ") {
        Some((statistic, rest)) => (statistic.parse::<CellStatistic>()?, rest),
        None => (CellStatistic::Mean, text),
    };
    let (metric, unit) = rest.split_once(" in ").map_or((rest, None), |(metric, unit)| (metric, Some(unit)));
    let facts = library.metrics().into_iter().find(|facts| facts.name == metric).ok_or_else(|| {
        let factors: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
        format!(
            "`{metric}` is neither a metric nor a factor; write a factor ({}), a metric, or `mean of request_time in ms`",
            factors.join(", ")
        )
    })?;
    let divisor = match unit {
        Some(unit) => divisor(facts.unit, unit)?,
        None => 1,
    };
    Ok(CsvValue::Metric { metric: metric.to_owned(), statistic, divisor })
}

#[cfg(test)]
mod tests {
    use crate::csv::{CellStatistic, CsvValue};
    use crate::plan::Plan;
    use crate::study::tests::{SHORT, parse};

    fn with(columns: &str) -> Result<Plan, String> {
        parse(&format!("{SHORT}\n[csv.authors]\n{columns}\n"))
    }

    #[test]
    fn columns_are_levels_and_statistics() {
        let plan = with("place = 'network'\nmean_ms = 'mean of request_time in ms'\nload = 'page_load_time'")
            .unwrap();
        let [table] = plan.csv.as_slice() else { panic!("{:?}", plan.csv) };
        let values: Vec<_> =
            table.columns.iter().map(|column| (column.name.as_str(), &column.value)).collect();
        let metric = |metric: &str, divisor| CsvValue::Metric {
            metric: metric.to_owned(),
            statistic: CellStatistic::Mean,
            divisor,
        };
        let expected = [
            ("place", &CsvValue::Level("network".to_owned())),
            ("mean_ms", &metric("request_time", 1_000_000)),
            ("load", &metric("page_load_time", 1)),
        ];
        assert_eq!(values, expected);
        let json = serde_json::to_vec(&plan).unwrap();
        assert_eq!(Plan::from_json(&json).unwrap().csv, plan.csv);
    }

    #[test]
    fn faults_of_columns() {
        for (columns, expected) in [
            ("", "[csv.authors] has no columns"),
            ("a = 'citty'", "`a`: `citty` is neither a metric nor a factor"),
            ("a = 'average of request_time'", "`a`: `average` is not a statistic of a cell"),
            (
                "a = 'mean of request_time in MB'",
                "`a`: `MB` is not a unit of it; choose one of ns, us, ms, s",
            ),
            ("a = 1", "`a`"),
        ] {
            let fault = with(columns).unwrap_err();
            assert!(fault.contains(expected), "{columns}: {fault}");
        }
        let fault = parse(&format!("{SHORT}\n[csv.cells]\na = 'network'\n")).unwrap_err();
        assert!(fault.contains("`cells` is not a name for a table"), "{fault}");
    }
}
