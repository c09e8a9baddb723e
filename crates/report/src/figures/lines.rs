//! Medians over a swept parameter, with their intervals as bands.

use analysis::summary::MetricSummary;

use super::Drawing;
use super::panel::{self, Panel, WIDTH};
use super::runs::axis_title;
use super::swept::{self, Across, HEIGHT, TOP};
use crate::encode::{Csv, Field};
use crate::palette::{Shape, Style};
use crate::svg::{Axis, Canvas, Point, Scale, at};
use crate::sweep::{Group, Sweep};
use crate::text::{self, clean_line};
use crate::view::{Row, View, status_name};

pub(super) fn draw(view: &View<'_>) -> Option<Drawing> {
    let mut panels = Vec::new();
    for metric in swept::metrics(view) {
        for sweep in swept::drawn(view) {
            panels.extend(sweep.groups.iter().filter_map(|group| draw_panel(view, metric, sweep, group)));
        }
    }
    if panels.is_empty() {
        return None;
    }
    let mut over: Vec<String> = swept::drawn(view).map(|sweep| sweep.parameter.title()).collect();
    over.dedup();
    Some(Drawing {
        title: format!("Over {}", text::list(&over)),
        caption: format!(
            "Medians over runs; the band is their 95 % interval, its edges dotted for circles, dashed for squares and \
             drawn through for diamonds; it is cut where it is very wide. Cells that are alike in all but the parameter are joined \
             by a line, which says nothing about what lies between; it is faint beside what may not be believed, which is \
             crossed.{} Axes differ between panels.",
            swept::caveat(view)
        ),
        keys: Vec::new(),
        panels,
        csv: csv(view),
    })
}

fn draw_panel(view: &View<'_>, metric: &str, sweep: &Sweep, group: &Group) -> Option<Panel> {
    let unit = swept::unit_of(view, group, metric)?;
    let found = || {
        let rows = group.points.iter().flat_map(|(_, context)| &view.contexts[*context].rows);
        rows.filter_map(|row| row.metric(metric))
    };
    let (scale, logarithmic) = swept::upwards(found().map(|metric| metric.median))?;
    let across = Across::of(sweep, std::iter::once(group));
    let largest = found().map(|metric| metric.median.value).fold(0.0, f64::max);
    let units = text::Scale::fitting(unit, largest);
    let title = text::metric_title(metric);
    let heading = if group.name.is_empty() { &title } else { &group.name };
    let bottom = TOP + HEIGHT;
    let mut canvas = Canvas::default();
    let note = if logarithmic { ", logarithmic" } else { "" };
    let side = format!("{}{note}", axis_title(&text::uncapital(&title), &units));
    swept::draw_side(&mut canvas, scale, &units);
    across.draw(&mut canvas, bottom);
    let mut description = Vec::new();
    let cells = |series| swept::rows(view, group, series).collect::<Vec<(f64, &Row<'_>)>>();
    // Bands first, so that none covers a line.
    for series in 0..view.series.len() {
        draw_bands(view, &mut canvas, metric, &cells(series), &across, scale);
    }
    for series in 0..view.series.len() {
        description.extend(draw_series(view, &mut canvas, metric, &cells(series), &across, scale));
    }
    let (body, down) = swept::below_heading(heading, &side, canvas);
    Some(Panel {
        title: format!("{heading}: {} over {}", text::uncapital(&title), sweep.parameter.title()),
        description: description.join("; "),
        class: String::new(),
        width: WIDTH,
        height: bottom + down + Axis::HEIGHT + 4.0,
        body,
    })
}

/// A cell of a series with its value of the parameter.
type Found<'v, 'a> = (f64, &'v MetricSummary, &'v Row<'a>);

/// The cells of a series that have a number, where one has none the gap.
fn found<'v, 'a>(metric: &str, cells: &[(f64, &'v Row<'a>)]) -> Vec<Option<Found<'v, 'a>>> {
    cells.iter().map(|(value, row)| Some((*value, row.metric(metric)?, *row))).collect()
}

fn draw_bands(
    view: &View<'_>,
    canvas: &mut Canvas,
    metric: &str,
    cells: &[(f64, &Row<'_>)],
    across: &Across,
    scale: Scale,
) {
    let Some((_, row)) = cells.first() else { return };
    let ends = |(value, metric, row): Found<'_, '_>| {
        let (low, high) = metric.median.low.zip(metric.median.high).filter(|_| row.is_believable())?;
        Some((across.scale.place(value), scale.place(low), scale.place(high)))
    };
    let ends: Vec<Option<(f64, f64, f64)>> =
        found(metric, cells).into_iter().map(|cell| cell.and_then(ends)).collect();
    let style = view.series_of(row).style;
    canvas.group(&panel::row_class(style, true), None, |c| {
        for band in ends.split(Option::is_none) {
            let band: Vec<(f64, f64, f64)> = band.iter().copied().flatten().collect();
            if band.len() > 1 {
                let lower: Vec<Point> = band.iter().map(|(x, low, _)| at(*x, *low)).collect();
                let upper: Vec<Point> = band.iter().map(|(x, _, high)| at(*x, *high)).collect();
                c.area(&lower.iter().chain(upper.iter().rev()).copied().collect::<Vec<Point>>(), "ci-area");
                // Where bands overlap, and on paper without colour, their edges tell them apart.
                [lower, upper].iter().for_each(|edge| c.path(edge, edge_class(style)));
            }
            if let [(x, low, high)] = band.as_slice() {
                c.line(at(*x, *low), at(*x, *high), "whisker");
            }
        }
    });
}

/// The edge of a band: dashes by the series' shape.
const fn edge_class(style: Style) -> &'static str {
    match style.shape {
        Shape::Circle => "ci-edge dots",
        Shape::Square => "ci-edge dashes",
        Shape::Diamond => "ci-edge",
        Shape::Triangle => "ci-edge dots-and-dashes",
    }
}

fn draw_series(
    view: &View<'_>,
    canvas: &mut Canvas,
    metric: &str,
    cells: &[(f64, &Row<'_>)],
    across: &Across,
    scale: Scale,
) -> Option<String> {
    let series = view.series_of(cells.first()?.1);
    let level = clean_line(&series.name);
    let found = found(metric, cells);
    let mut words = Vec::new();
    canvas.group(&panel::row_class(series.style, true), Some(&level), |c| {
        // Cells next to each other are joined; where one has no number, the line has a gap.
        for joined in found.split(Option::is_none) {
            let joined: Vec<Found<'_, '_>> = joined.iter().copied().flatten().collect();
            let place = |(value, metric, row): &Found<'_, '_>| {
                (at(across.scale.place(*value), scale.place(metric.median.value)), row.is_believable())
            };
            let places: Vec<(Point, bool)> = joined.iter().map(place).collect();
            swept::join(c, &places, series.style.line_class());
        }
    });
    for (value, metric, row) in found.into_iter().flatten() {
        let believable = row.is_believable();
        let mark = if believable { "" } else { ", invalid" };
        let estimate = text::estimate(&metric.unit, &metric.median);
        words.push(format!(
            "{} at {}{mark}",
            text::value(&metric.unit, metric.median.value),
            across.value(value)
        ));
        let title = format!("{level} at {}: {estimate}{mark}", across.value(value));
        let place = at(across.scale.place(value), scale.place(metric.median.value));
        canvas.group(&panel::row_class(series.style, believable), Some(&title), |c| {
            c.marker(place, series.style, 4.6);
            if !believable {
                c.cross(place, 6.5);
            }
        });
    }
    (!words.is_empty()).then(|| format!("{level}: {}", words.join(", ")))
}

fn csv(view: &View<'_>) -> String {
    let mut csv = Csv::new(&[
        "parameter",
        "parameter_unit",
        "parameter_value",
        "context",
        "level",
        "metric",
        "unit",
        "median",
        "low",
        "high",
        "status",
    ]);
    for metric in swept::metrics(view) {
        for (sweep, group) in swept::drawn(view).flat_map(|s| s.groups.iter().map(move |group| (s, group))) {
            for (value, row) in (0..view.series.len()).flat_map(|series| swept::rows(view, group, series)) {
                let Some(found) = row.metric(metric) else { continue };
                csv.row(&[
                    Field::Text(&sweep.parameter.title()),
                    Field::Text(sweep.parameter.unit()),
                    Field::Number(value),
                    Field::Text(&group.name),
                    Field::Text(&view.series_of(row).name),
                    Field::Text(metric),
                    Field::Text(&found.unit),
                    Field::Number(found.median.value),
                    Field::Maybe(found.median.low),
                    Field::Maybe(found.median.high),
                    Field::Text(status_name(row.cell.status)),
                ]);
            }
        }
    }
    csv.finish()
}
