//! The tables as files, one entry each in [`TABLES`].

use analysis::metrics;
use analysis::summary::{Estimate, Verdict};
use model::plan::Level;

use crate::Table;
use crate::caveats::outcome_name;
use crate::encode::{Field, TableText};
use crate::load;
use crate::view::{View, status_name, verdict_name};

/// One kind of table.
struct TableKind {
    name: &'static str,
    title: &'static str,
    write: fn(&View<'_>) -> TableText,
}

const TABLES: &[TableKind] = &[
    TableKind {
        name: "cells",
        title: "Every cell, metric and statistic with its 95 % interval, one value per line",
        write: cells,
    },
    TableKind {
        name: "comparisons",
        title: "Every comparison with its baseline and verdict",
        write: comparisons,
    },
    TableKind {
        name: "load",
        title: "CPU, memory, sockets and drops of every cell, medians over runs",
        write: load,
    },
    TableKind { name: "validity", title: "Every check of every cell", write: validity },
];

/// Writes every table.
pub(crate) fn all(view: &View<'_>) -> Vec<Table> {
    let written = |kind: &TableKind| {
        let (csv, markdown, json) = (kind.write)(view).finish();
        Table { name: kind.name, title: kind.title, csv, markdown, json }
    };
    TABLES.iter().map(written).collect()
}

/// The factors of the matrix, in the order in which cells name them.
fn factors<'a>(view: &View<'a>) -> Vec<&'a str> {
    let mut factors: Vec<&str> = Vec::new();
    for level in view.summary().cells.iter().flat_map(|cell| &cell.levels) {
        if !factors.contains(&level.factor.as_str()) {
            factors.push(&level.factor);
        }
    }
    factors
}

fn level_fields<'a>(factors: &[&str], levels: &[&'a Level]) -> Vec<Field<'a>> {
    let value = |factor: &&str| levels.iter().find(|level| level.factor == *factor);
    factors
        .iter()
        .map(|factor| value(factor).map_or(Field::Empty, |level| Field::Text(&level.value)))
        .collect()
}

fn cells(view: &View<'_>) -> TableText {
    let factors = factors(view);
    let mut columns = vec!["cell"];
    columns.extend(&factors);
    columns.extend(["status", "metric", "unit", "statistic", "value", "low", "high", "runs", "samples"]);
    let mut table = TableText::new(&columns);
    for cell in &view.summary().cells {
        let levels: Vec<&Level> = cell.levels.iter().collect();
        let mut head = vec![Field::Whole(u64::from(cell.cell))];
        head.extend(level_fields(&factors, &levels));
        head.push(Field::Text(status_name(cell.status)));
        if cell.metrics.is_empty() {
            let mut row = head.clone();
            row.extend([Field::Empty; 9]);
            row.truncate(columns.len());
            table.row(&row);
        }
        for (name, metric) in &cell.metrics {
            let statistics = [
                ("mean", metric.mean),
                ("median", metric.median),
                ("iqr", metric.iqr),
                ("p90", metric.p90),
                ("p95", metric.p95),
                ("p99", metric.p99),
                ("p99.9", metric.p999),
            ];
            for (statistic, estimate) in statistics {
                let Estimate { value, low, high } = estimate;
                let mut row = head.clone();
                row.extend([Field::Text(name), Field::Text(&metric.unit), Field::Text(statistic)]);
                row.extend([Field::Number(value), Field::Maybe(low), Field::Maybe(high)]);
                row.extend([Field::Whole(u64::from(metric.runs)), Field::Whole(metric.samples)]);
                table.row(&row);
            }
        }
    }
    table
}

fn comparisons(view: &View<'_>) -> TableText {
    let factors = factors(view);
    let mut columns = vec!["cell", "baseline_cell"];
    columns.extend(&factors);
    columns.extend([
        "baseline",
        "metric",
        "unit",
        "primary",
        "pairs",
        "ratio",
        "ratio_low",
        "ratio_high",
        "difference",
        "difference_low",
        "difference_high",
        "p_adjusted",
        "p_equivalent_adjusted",
        "smallest_showable_ratio",
        "verdict",
        "because",
    ]);
    let mut table = TableText::new(&columns);
    for comparison in &view.summary().comparisons {
        let levels: Vec<&Level> = std::iter::once(&comparison.level).chain(&comparison.context).collect();
        let because = match &comparison.verdict {
            Verdict::Invalid { because } => because.join("; "),
            _ => String::new(),
        };
        let mut row =
            vec![Field::Whole(u64::from(comparison.cell)), Field::Whole(u64::from(comparison.baseline_cell))];
        row.extend(level_fields(&factors, &levels));
        row.extend([
            Field::Text(&view.summary().baseline.value),
            Field::Text(&comparison.metric),
            metrics::find(&comparison.metric).map_or(Field::Empty, |metric| Field::Text(metric.unit)),
            Field::Text(if comparison.primary { "yes" } else { "no" }),
            Field::Whole(u64::from(comparison.pairs)),
        ]);
        for estimate in [comparison.ratio, comparison.difference] {
            row.extend([
                Field::Maybe(estimate.map(|e| e.value)),
                Field::Maybe(estimate.and_then(|e| e.low)),
                Field::Maybe(estimate.and_then(|e| e.high)),
            ]);
        }
        row.extend([
            Field::Maybe(comparison.p_adjusted),
            Field::Maybe(comparison.p_equivalent_adjusted),
            Field::Maybe(comparison.smallest_showable_ratio),
            Field::Text(verdict_name(&comparison.verdict).0),
            Field::Text(&because),
        ]);
        table.row(&row);
    }
    table
}

fn load(view: &View<'_>) -> TableText {
    let factors = factors(view);
    let mut columns = vec!["cell"];
    columns.extend(&factors);
    let names: Vec<String> = load::COLUMNS.iter().map(|(name, _)| with_unit(name)).collect();
    columns.extend(names.iter().map(String::as_str));
    let mut table = TableText::new(&columns);
    for cell in &view.summary().cells {
        let levels: Vec<&Level> = cell.levels.iter().collect();
        let mut row = vec![Field::Whole(u64::from(cell.cell))];
        row.extend(level_fields(&factors, &levels));
        let median = |name: &str| cell.metrics.get(name).map(|metric| metric.median.value);
        row.extend(load::COLUMNS.iter().map(|(name, _)| Field::Maybe(median(name))));
        table.row(&row);
    }
    table
}

/// A metric's name that ends with its unit, where it has one.
fn with_unit(name: &str) -> String {
    match metrics::find(name).map(|metric| metric.unit) {
        Some("ns") => format!("{name}_ns"),
        Some("B") => format!("{name}_bytes"),
        _ => name.to_owned(),
    }
}

fn validity(view: &View<'_>) -> TableText {
    let factors = factors(view);
    let mut columns = vec!["cell"];
    columns.extend(&factors);
    columns.extend(["status", "check", "result", "measured", "threshold", "why", "remedy"]);
    let mut table = TableText::new(&columns);
    for cell in &view.summary().cells {
        let levels: Vec<&Level> = cell.levels.iter().collect();
        for result in &cell.validity {
            let mut row = vec![Field::Whole(u64::from(cell.cell))];
            row.extend(level_fields(&factors, &levels));
            row.extend([
                Field::Text(status_name(cell.status)),
                Field::Text(&result.check),
                Field::Text(outcome_name(result.result)),
                Field::Text(&result.measured),
                Field::Text(&result.threshold),
                Field::Text(&result.why),
                Field::Text(&result.remedy),
            ]);
            table.row(&row);
        }
    }
    table
}
