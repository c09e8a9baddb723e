//! Every run as a dot: the primary metric per level, with its median (or the study's statistic) and interval.

use analysis::summary::MetricSummary;

use super::panel::TOP;
use super::rows::{self, Rows};
use super::{Context, Csv, Drawing, FigureKind, Row, View, text};
use crate::svg::{Axis, Canvas, Rect, Scale, at, count};

pub(super) const KIND: FigureKind = FigureKind {
    name: "runs",
    shows: "the metric of every run",
    by_default: "always",
    needs: "a run with a value",
    suits: |_| true,
    draw,
};

const ROW: f64 = 34.0;
/// Intervals widen an axis by at most this multiple of the range of its dots, on each side.
const WIDEST: f64 = 0.6;
/// An axis begins at 0 if its first dot is below this share of its last.
const ZERO_BASED_BELOW: f64 = 0.6;

fn draw(view: &View<'_>) -> Option<Drawing> {
    let rows = Rows::of(view, ROW).with_values(view.rows().filter_map(|row| Some(compared(row.primary()?))));
    let panel = |context: &Context<'_>| {
        let metrics = || context.rows.iter().filter_map(Row::primary);
        let unit = &metrics().next()?.unit;
        let domain = domain(metrics());
        let units = text::Scale::fitting(unit, domain.1);
        let scale = Scale::linear(domain, rows.plot());
        Some(rows.panel(
            context,
            &format!("{} of every run", view.compared_title()),
            |canvas, bottom| {
                let title = units.title(&view.compared_title());
                Axis { scale, top: TOP, bottom, title: &title, label: &|value| units.short(value) }
                    .draw(canvas);
            },
            |canvas, row, y| Some(draw_row(canvas, row, row.primary()?, &rows, scale, y)),
        ))
    };
    Some(Drawing {
        title: format!("{}, run by run", text::capital(&view.compared_title())),
        caption: format!(
            "Each dot is one run, the first at the top of its row and the last at the bottom. The vertical line is the {} \
             over runs, the bar its 95 % interval, with an arrow where the interval exceeds the axis. Axes differ between \
             panels, and some do not begin at 0.",
            view.statistic_noun()
        ),
        keys: Vec::new(),
        panels: view.contexts.iter().filter_map(panel).collect(),
        csv: csv(view),
    })
}

/// The range of an axis: every dot, and as much of the intervals as keeps the dots apart.
fn domain<'m>(metrics: impl Iterator<Item = &'m MetricSummary> + Clone) -> (f64, f64) {
    let dots = metrics
        .clone()
        .flat_map(|metric| metric.per_run.iter().map(|run| run.value).chain([metric.compared().value]));
    let (least, most) = dots.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
    let room = (most - least) * WIDEST;
    let ends = metrics.flat_map(|metric| [metric.compared().low, metric.compared().high]).flatten();
    let (low, high) = ends
        .map(|end| end.clamp(least - room, most + room))
        .fold((least, most), |(low, high), v| (low.min(v), high.max(v)));
    let pad = (high - low) * 0.05;
    (if least / most > ZERO_BASED_BELOW { low - pad } else { 0.0 }, high + pad)
}

/// The value next to a row.
fn compared(metric: &MetricSummary) -> String {
    text::value(&metric.unit, metric.compared().value)
}

fn draw_row(
    canvas: &mut Canvas,
    row: &Row<'_>,
    metric: &MetricSummary,
    rows: &Rows,
    scale: Scale,
    y: f64,
) -> String {
    let estimate = text::estimate(&metric.unit, &metric.compared());
    let summary =
        format!("{}: {} {estimate}{}", row.series.name, text::statistic_noun(metric.statistic), row.mark());
    canvas.group(&row.class(), Some(&summary), |c| {
        rows.draw_hit(c, y);
        rows.draw_label(c, row, y);
        draw_compared(c, metric, scale, y);
        draw_dots(c, row, metric, scale, y);
        rows.draw_value(c, row, &compared(metric), y);
    });
    summary
}

fn draw_compared(canvas: &mut Canvas, metric: &MetricSummary, scale: Scale, y: f64) {
    if let (Some(low), Some(high)) = (metric.compared().low, metric.compared().high) {
        let (from, to) = (scale.place(low), scale.place(high));
        canvas.rect(Rect { x: from, y: y - 12.0, width: to - from, height: 24.0 }, "ci");
        rows::draw_ends(canvas, (low, high), scale, y, "thin");
    }
    let x = scale.place(metric.compared().value);
    canvas.line(at(x, y - 13.0), at(x, y + 13.0), "median");
}

fn draw_dots(canvas: &mut Canvas, row: &Row<'_>, metric: &MetricSummary, scale: Scale, y: f64) {
    let runs = metric.per_run.len();
    let radius = if runs <= 12 { 3.6 } else { 2.2 };
    for (index, run) in metric.per_run.iter().enumerate() {
        let share = if runs > 1 { count(index) / count(runs - 1) - 0.5 } else { 0.0 };
        let value = text::value(&metric.unit, run.value);
        let title = format!("{}, run {} (block {}): {value}", row.series.name, run.run, run.block);
        canvas.group("dot", Some(&title), |c| {
            c.marker(at(scale.place(run.value), y + share * 18.0), row.series.style, radius);
        });
    }
}

fn csv(view: &View<'_>) -> String {
    let mut csv = Csv::default();
    for (context, row) in view.rows_with_context() {
        let Some(metric) = row.primary() else { continue };
        for run in &metric.per_run {
            let fields = vec![
                ("run", run.run.into()),
                ("block", run.block.into()),
                ("metric", view.summary().metric.as_str().into()),
                ("unit", metric.unit.as_str().into()),
                ("value", run.value.into()),
            ];
            csv.cell(&context.name, row, fields);
        }
    }
    csv.finish()
}
