//! Every run as a dot: the primary metric per level, with its median and interval.

use analysis::summary::MetricSummary;

use super::Drawing;
use super::panel::{self, Panel, TOP, WIDTH};
use super::rows::{self, Rows};
use crate::encode::{Csv, Field};
use crate::svg::{Axis, Canvas, Rect, Scale, at, fit};
use crate::text::{self, clean_line};
use crate::view::{Context, Row, View, status_name};

const ROW: f64 = 34.0;
/// Intervals widen an axis by so many times the range of its dots at most, on each side.
const WIDEST: f64 = 0.6;
/// An axis whose first dot is above this share of its last does not begin at 0.
const ZERO_BASED_BELOW: f64 = 0.6;

pub(super) fn draw(view: &View<'_>) -> Option<Drawing> {
    let metric = &view.summary().metric;
    let medians = view.rows_with_context().filter_map(|(_, row)| Some(median(row.metric(metric)?)));
    let rows = Rows::of(view, ROW).with_values(medians);
    let panels: Vec<Panel> =
        view.contexts.iter().filter_map(|context| draw_panel(view, context, &rows)).collect();
    if panels.is_empty() {
        return None;
    }
    Some(Drawing {
        title: format!("{}, run by run", text::capital(&text::metric_title(metric))),
        caption:
            "Each dot is one run, the first at the top of its row and the last at the bottom; the upright \
                  line is the median over runs, the bar its 95 % interval, with an arrow where that reaches \
                  farther than the axis. Axes differ between panels, and not \
                  all begin at 0."
                .to_owned(),
        keys: Vec::new(),
        panels,
        csv: csv(view),
    })
}

fn draw_panel(view: &View<'_>, context: &Context<'_>, rows: &Rows) -> Option<Panel> {
    let name = &view.summary().metric;
    let metrics = || context.rows.iter().filter_map(|row| row.metric(name));
    let domain = domain(metrics());
    let unit = &metrics().next()?.unit;
    let units = text::Scale::fitting(unit, domain.1);
    let scale = Scale::linear(domain, rows.plot());
    let bottom = rows.bottom(context.rows.len());
    let mut canvas = Canvas::default();
    panel::heading(&mut canvas, &context.name);
    let title = axis_title(&view.metric_title(), &units);
    let title = fit(&title, 11.5, WIDTH);
    let label = |value: f64| units.short(value);
    Axis { scale, top: TOP, bottom, width: WIDTH, title: &title, label: &label }.draw(&mut canvas);
    let mut description = Vec::new();
    for (index, row) in context.rows.iter().enumerate() {
        description.push(draw_row(view, &mut canvas, row, rows, scale, rows.middle(index)));
    }
    Some(Panel {
        title: format!("{}: {} of every run", context.name, view.metric_title()),
        description: description.join("; "),
        class: String::new(),
        width: WIDTH,
        height: bottom + Axis::HEIGHT + 4.0,
        body: canvas.finish(),
    })
}

/// What an axis shows: every dot, and of the intervals as much as leaves the dots apart.
fn domain<'m>(metrics: impl Iterator<Item = &'m MetricSummary> + Clone) -> (f64, f64) {
    let dots = metrics
        .clone()
        .flat_map(|metric| metric.per_run.iter().map(|run| run.value).chain([metric.median.value]));
    let (least, most) = dots.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
    let room = (most - least) * WIDEST;
    let ends = metrics.flat_map(|metric| [metric.median.low, metric.median.high]).flatten();
    let (low, high) = ends
        .map(|end| end.clamp(least - room, most + room))
        .fold((least, most), |(low, high), v| (low.min(v), high.max(v)));
    let pad = (high - low) * 0.05;
    (if least / most > ZERO_BASED_BELOW { low - pad } else { 0.0 }, high + pad)
}

/// A median as it stands beside its row.
fn median(metric: &MetricSummary) -> String {
    text::value(&metric.unit, metric.median.value)
}

/// Words and unit such as `page load time (ms)`.
pub(super) fn axis_title(words: &str, units: &text::Scale) -> String {
    if units.label.is_empty() { words.to_owned() } else { format!("{words} ({})", units.label) }
}

fn draw_row(
    view: &View<'_>,
    canvas: &mut Canvas,
    row: &Row<'_>,
    rows: &Rows,
    scale: Scale,
    y: f64,
) -> String {
    let series = view.series_of(row);
    let level = clean_line(&series.name);
    let class = panel::row_class(series.style, row.is_believable());
    let Some(metric) = row.metric(&view.summary().metric) else {
        return rows.draw_status(canvas, view, row, y);
    };
    let mark = if row.is_believable() { "" } else { ", invalid" };
    let summary = format!("{level}: median {}{mark}", text::estimate(&metric.unit, &metric.median));
    canvas.group(&class, Some(&summary), |c| {
        rows.draw_hit(c, y);
        rows.draw_label(c, view, row, y);
        draw_median(c, metric, scale, y);
        draw_dots(c, view, row, metric, scale, y);
        rows.draw_value(c, row, &median(metric), y);
    });
    summary
}

fn draw_median(canvas: &mut Canvas, metric: &MetricSummary, scale: Scale, y: f64) {
    if let (Some(low), Some(high)) = (metric.median.low, metric.median.high) {
        let (from, to) = (scale.place(low), scale.place(high));
        canvas.rect(Rect { x: from, y: y - 12.0, width: to - from, height: 24.0 }, "ci");
        rows::draw_ends(canvas, (low, high), scale, y, "thin");
    }
    let x = scale.place(metric.median.value);
    canvas.line(at(x, y - 13.0), at(x, y + 13.0), "median");
}

#[expect(clippy::cast_precision_loss, reason = "a run's place in its row")]
fn draw_dots(
    canvas: &mut Canvas,
    view: &View<'_>,
    row: &Row<'_>,
    metric: &MetricSummary,
    scale: Scale,
    y: f64,
) {
    let style = view.series_of(row).style;
    let count = metric.per_run.len();
    let radius = if count <= 12 { 3.6 } else { 2.2 };
    for (index, run) in metric.per_run.iter().enumerate() {
        let share = if count > 1 { index as f64 / (count - 1) as f64 - 0.5 } else { 0.0 };
        let title = format!(
            "{}, run {} (block {}): {}",
            clean_line(&view.series_of(row).name),
            run.run,
            run.block,
            text::value(&metric.unit, run.value)
        );
        canvas.group("dot", Some(&title), |c| {
            c.marker(at(scale.place(run.value), y + share * 18.0), style, radius)
        });
    }
}

fn csv(view: &View<'_>) -> String {
    let mut csv = Csv::new(&["context", "level", "run", "block", "metric", "unit", "value", "status"]);
    let name = &view.summary().metric;
    for (context, row) in view.rows_with_context() {
        let Some(metric) = row.metric(name) else { continue };
        for run in &metric.per_run {
            csv.row(&[
                Field::Text(&context.name),
                Field::Text(&view.series_of(row).name),
                Field::Whole(u64::from(run.run)),
                Field::Whole(u64::from(run.block)),
                Field::Text(name),
                Field::Text(&metric.unit),
                Field::Number(run.value),
                Field::Text(status_name(row.cell.status)),
            ]);
        }
    }
    csv.finish()
}
