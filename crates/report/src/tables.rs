//! The tables as files, one entry each in [`TABLES`].

use analysis::metrics;
use analysis::summary::{CellSummary, Comparison, Estimate, MetricSummary, PublishedResult, Verdict};
use model::class::split_metric;
use model::csv::{CellStatistic, CsvColumn, CsvTable, CsvValue};
use model::number;
use model::plan::Level;
use serde_json::Value;

use crate::Table;
use crate::context::verdict_name;
use crate::encode::TableText;
use crate::load;
use crate::text;
use crate::view::View;

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
        name: "classes",
        title: "Every metric of every class of requests, with its comparison",
        write: classes,
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
    TableKind {
        name: "published",
        title: "Every published value next to the measured one",
        write: published,
    },
    TableKind { name: "validity", title: "Every check of every cell", write: validity },
];

/// Writes every table, and those that the study describes.
pub(crate) fn all(view: &View<'_>) -> Vec<Table> {
    let written = |kind: &TableKind| of_text(kind.name, kind.title, (kind.write)(view));
    let described = |table: &CsvTable| of_text(&table.name, "Columns of the study", of_study(view, table));
    let is_empty = |kind: &&TableKind| match kind.name {
        "classes" => view.plan().classes.is_empty(),
        "published" => view.summary().published.is_empty(),
        _ => false,
    };
    let tables = TABLES.iter().filter(|kind| !is_empty(kind)).map(written);
    tables.chain(view.plan().csv.iter().map(described)).collect()
}

fn of_text(name: &str, title: &'static str, text: TableText) -> Table {
    let TableText { csv, markdown, json } = text;
    Table { name: name.to_owned(), title, csv, markdown, json }
}

/// A table with the study's own columns: one row for each cell.
fn of_study(view: &View<'_>, table: &CsvTable) -> TableText {
    let columns: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    let value = |cell: &CellSummary, column: &CsvColumn| match &column.value {
        CsvValue::Level(factor) => {
            cell.levels.iter().find(|level| level.factor == *factor).map(|level| level.value.as_str()).into()
        }
        CsvValue::Metric { metric, statistic, divisor } => {
            let found = cell.metrics.get(metric).and_then(|metric| statistic_of(metric, *statistic));
            // A share has no unit.
            let is_share = *statistic == CellStatistic::WithinSd;
            found.map(|value| if is_share { value } else { value / number::float(*divisor) }).into()
        }
    };
    let row = |cell: &CellSummary| table.columns.iter().map(|column| value(cell, column)).collect();
    TableText::new(&columns, &view.summary().cells.iter().map(row).collect::<Vec<_>>())
}

fn statistic_of(metric: &MetricSummary, statistic: CellStatistic) -> Option<f64> {
    let estimate = match statistic {
        CellStatistic::Mean => metric.mean,
        CellStatistic::Median => metric.median,
        CellStatistic::Iqr => metric.iqr,
        CellStatistic::P90 => metric.p90,
        CellStatistic::P95 => metric.p95,
        CellStatistic::P99 => metric.p99,
        CellStatistic::P999 => metric.p999,
        CellStatistic::Min => return Some(metric.spread.min),
        CellStatistic::Max => return Some(metric.spread.max),
        CellStatistic::Sd => return metric.spread.sd,
        CellStatistic::WithinSd => return metric.spread.within_sd_share,
    };
    Some(estimate.value)
}

/// A column: its name, and its field of a row's item.
type Column<'a, T> = (String, Box<dyn Fn(T) -> Value + 'a>);

fn column<'a, T>(name: &str, read: impl Fn(T) -> Value + 'a) -> Column<'a, T> {
    (name.to_owned(), Box::new(read))
}

/// A table with a row for each item: some columns, the item's level of each factor, and further columns.
fn table<'a, T: Copy>(
    view: &View<'a>,
    items: impl Iterator<Item = T>,
    head: Vec<Column<'a, T>>,
    levels: fn(T) -> Vec<&'a Level>,
    tail: Vec<Column<'a, T>>,
) -> TableText {
    let all_levels = view.summary().cells.iter().flat_map(|cell| &cell.levels);
    let factors = text::distinct(all_levels.map(|level| level.factor.as_str()));
    let names = |columns: &[Column<'a, T>]| columns.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let [before, after] = [names(&head), names(&tail)];
    let columns = before.iter().map(String::as_str).chain(factors.iter().copied());
    let columns: Vec<&str> = columns.chain(after.iter().map(String::as_str)).collect();
    let row = |item: T| -> Vec<Value> {
        let levels = levels(item);
        let value = |factor: &&str| levels.iter().find(|level| level.factor == *factor);
        let values = factors.iter().map(|factor| value(factor).map(|level| level.value.as_str()).into());
        let head = head.iter().map(|(_, read)| read(item));
        head.chain(values).chain(tail.iter().map(|(_, read)| read(item))).collect()
    };
    TableText::new(&columns, &items.map(row).collect::<Vec<_>>())
}

/// A metric's statistic of a cell; `None` for a cell without metrics.
type Statistic<'a> = Option<(&'a str, &'a MetricSummary, &'static str, Estimate)>;

fn cells(view: &View<'_>) -> TableText {
    type Item<'a> = (&'a CellSummary, Statistic<'a>);
    let statistics = |cell| {
        let metrics = <&CellSummary>::clone(&cell).metrics.iter();
        let statistics = metrics.flat_map(|(name, metric)| {
            let named = [
                ("mean", metric.mean),
                ("median", metric.median),
                ("iqr", metric.iqr),
                ("p90", metric.p90),
                ("p95", metric.p95),
                ("p99", metric.p99),
                ("p99.9", metric.p999),
            ];
            let spread = metric.spread;
            let pooled = [("min", Some(spread.min)), ("max", Some(spread.max)), ("sd", spread.sd)];
            let pooled = pooled.into_iter().filter_map(|(statistic, value)| {
                Some((statistic, Estimate { value: value?, low: None, high: None }))
            });
            let named = named.into_iter().chain(pooled);
            named.map(move |(statistic, estimate)| Some((name.as_str(), metric, statistic, estimate)))
        });
        let none = cell.metrics.is_empty().then_some(None);
        none.into_iter().chain(statistics).map(move |statistic| (cell, statistic))
    };
    table(
        view,
        view.summary().cells.iter().flat_map(statistics),
        vec![column("cell", |(cell, _): Item<'_>| cell.cell.into())],
        |(cell, _)| cell.levels.iter().collect(),
        vec![
            column("status", |(cell, _): Item<'_>| cell.status.name().into()),
            column("metric", |(_, found): Item<'_>| found.map(|(name, ..)| name).into()),
            column("unit", |(_, found): Item<'_>| found.map(|(_, metric, ..)| metric.unit.as_str()).into()),
            column("statistic", |(_, found): Item<'_>| found.map(|(_, _, statistic, _)| statistic).into()),
            column("value", |(_, found): Item<'_>| found.map(|(.., estimate)| estimate.value).into()),
            column("low", |(_, found): Item<'_>| found.and_then(|(.., estimate)| estimate.low).into()),
            column("high", |(_, found): Item<'_>| found.and_then(|(.., estimate)| estimate.high).into()),
            column("runs", |(_, found): Item<'_>| found.map(|(_, metric, ..)| metric.runs).into()),
            column("samples", |(_, found): Item<'_>| found.map(|(_, metric, ..)| metric.samples).into()),
        ],
    )
}

fn classes(view: &View<'_>) -> TableText {
    type Item<'a> = (&'a CellSummary, &'a str, &'a MetricSummary);
    let of_cell = |cell: &'_ _| {
        let metrics = <&CellSummary>::clone(cell).metrics.iter();
        let of_class = metrics.filter(|(name, _)| split_metric(name).1.is_some());
        let cell = *cell;
        of_class.map(move |(name, metric)| (cell, name.as_str(), metric)).collect::<Vec<_>>()
    };
    let cells: Vec<&CellSummary> = view.summary().cells.iter().collect();
    let compared = |(cell, name, _): Item<'_>| view.comparison(cell.cell, name);
    let ratio = move |item: Item<'_>| compared(item).and_then(|comparison| comparison.ratio);
    table(
        view,
        cells.iter().flat_map(of_cell),
        vec![
            column("cell", |(cell, ..): Item<'_>| cell.cell.into()),
            column("class", |(_, name, _): Item<'_>| split_metric(name).1.into()),
            column("metric", |(_, name, _): Item<'_>| split_metric(name).0.into()),
        ],
        |(cell, ..)| cell.levels.iter().collect(),
        vec![
            column("unit", |(.., metric): Item<'_>| metric.unit.as_str().into()),
            column("statistic", |(.., metric): Item<'_>| metric.statistic.name().into()),
            column("value", |(.., metric): Item<'_>| metric.compared().value.into()),
            column("low", |(.., metric): Item<'_>| metric.compared().low.into()),
            column("high", |(.., metric): Item<'_>| metric.compared().high.into()),
            column("runs", |(.., metric): Item<'_>| metric.runs.into()),
            column("samples", |(.., metric): Item<'_>| metric.samples.into()),
            column("ratio", move |item: Item<'_>| ratio(item).map(|e| e.value).into()),
            column("ratio_low", move |item: Item<'_>| ratio(item).and_then(|e| e.low).into()),
            column("ratio_high", move |item: Item<'_>| ratio(item).and_then(|e| e.high).into()),
            column("verdict", move |item: Item<'_>| {
                compared(item).map(|c| verdict_name(&c.verdict).0).into()
            }),
        ],
    )
}

fn comparisons(view: &View<'_>) -> TableText {
    let summary = view.summary();
    let because = |comparison: &Comparison| match &comparison.verdict {
        Verdict::Invalid { because } => because.join("; "),
        _ => String::new(),
    };
    table(
        view,
        summary.comparisons.iter(),
        vec![
            column("cell", |c: &Comparison| c.cell.into()),
            column("baseline_cell", |c: &Comparison| c.baseline_cell.into()),
        ],
        |comparison| std::iter::once(&comparison.level).chain(&comparison.context).collect(),
        vec![
            column("baseline", |_: &Comparison| summary.baseline.value.as_str().into()),
            column("metric", |c: &Comparison| c.metric.as_str().into()),
            column("unit", |c: &Comparison| metrics::find(&c.metric).map(|metric| metric.unit).into()),
            column("primary", |c: &Comparison| if c.primary { "yes" } else { "no" }.into()),
            column("pairs", |c: &Comparison| c.pairs.into()),
            column("ratio", |c: &Comparison| c.ratio.map(|e| e.value).into()),
            column("ratio_low", |c: &Comparison| c.ratio.and_then(|e| e.low).into()),
            column("ratio_high", |c: &Comparison| c.ratio.and_then(|e| e.high).into()),
            column("difference", |c: &Comparison| c.difference.map(|e| e.value).into()),
            column("difference_low", |c: &Comparison| c.difference.and_then(|e| e.low).into()),
            column("difference_high", |c: &Comparison| c.difference.and_then(|e| e.high).into()),
            column("p_adjusted", |c: &Comparison| c.p_adjusted.into()),
            column("p_equivalent_adjusted", |c: &Comparison| c.p_equivalent_adjusted.into()),
            column("smallest_showable_ratio", |c: &Comparison| c.smallest_showable_ratio.into()),
            column("verdict", |c: &Comparison| verdict_name(&c.verdict).0.into()),
            column("because", move |c: &Comparison| because(c).into()),
        ],
    )
}

fn load(view: &View<'_>) -> TableText {
    let median = |cell: &CellSummary, name: &str| cell.metrics.get(name).map(|metric| metric.median.value);
    let columns = load::COLUMNS.iter();
    table(
        view,
        view.summary().cells.iter(),
        vec![column("cell", |cell: &CellSummary| cell.cell.into())],
        |cell| cell.levels.iter().collect(),
        columns.map(|(name, _)| column(&with_unit(name), move |cell| median(cell, name).into())).collect(),
    )
}

/// A metric's name, followed by its unit if it has one.
fn with_unit(name: &str) -> String {
    match metrics::find(name).map(|metric| metric.unit) {
        Some("ns") => format!("{name}_ns"),
        Some("B") => format!("{name}_bytes"),
        _ => name.to_owned(),
    }
}

fn published(view: &View<'_>) -> TableText {
    type Item<'a> = &'a PublishedResult;
    let measured =
        |of: fn(Estimate) -> Option<f64>| move |found: Item<'_>| found.measured.and_then(of).into();
    table(
        view,
        view.summary().published.iter(),
        vec![column("cell", |found: Item<'_>| found.cell.into())],
        |found| found.levels.iter().collect(),
        vec![
            column("against", |found: Item<'_>| {
                found.against.as_ref().map(|level| level.value.as_str()).into()
            }),
            column("metric", |found: Item<'_>| found.metric.as_str().into()),
            column("statistic", |found: Item<'_>| found.statistic.name().into()),
            column("unit", |found: Item<'_>| found.unit.as_str().into()),
            column("published", |found: Item<'_>| found.published.into()),
            column("measured", measured(|found| Some(found.value))),
            column("low", measured(|found| found.low)),
            column("high", measured(|found| found.high)),
            column("result", |found: Item<'_>| found.result.name().into()),
            column("reason", |found: Item<'_>| found.reason.as_str().into()),
            column("source", |found: Item<'_>| found.source.as_str().into()),
        ],
    )
}

fn validity(view: &View<'_>) -> TableText {
    type Item<'a> = (&'a CellSummary, &'a analysis::summary::CheckResult);
    let results =
        view.summary().cells.iter().flat_map(|cell| cell.validity.iter().map(move |result| (cell, result)));
    table(
        view,
        results,
        vec![column("cell", |(cell, _): Item<'_>| cell.cell.into())],
        |(cell, _)| cell.levels.iter().collect(),
        vec![
            column("status", |(cell, _): Item<'_>| cell.status.name().into()),
            column("check", |(_, result): Item<'_>| result.check.as_str().into()),
            column("result", |(_, result): Item<'_>| result.result.name().into()),
            column("measured", |(_, result): Item<'_>| result.measured.as_str().into()),
            column("threshold", |(_, result): Item<'_>| result.threshold.as_str().into()),
            column("why", |(_, result): Item<'_>| result.why.as_str().into()),
            column("remedy", |(_, result): Item<'_>| result.remedy.as_str().into()),
        ],
    )
}
