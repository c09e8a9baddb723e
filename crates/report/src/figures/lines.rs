//! Medians (or the study's statistic) over a swept parameter, with their intervals as bands.

use analysis::summary::MetricSummary;
use model::Statistic;

use super::swept::{self, Across, HEIGHT, TOP};
use super::{Csv, Drawing, FigureKind, Panel, Row, View, text};
use crate::palette::{Shape, Style};
use crate::svg::{Axis, Canvas, Point, Scale, at};
use crate::sweep::{Group, Sweep};

pub(super) const KIND: FigureKind = FigureKind {
    name: "lines",
    shows: "the metric against a swept parameter, with intervals",
    by_default: swept::BY_DEFAULT,
    needs: swept::NEEDS,
    suits: swept::has_sweep,
    draw,
};

fn draw(view: &View<'_>) -> Option<Drawing> {
    let metrics = swept::metrics(view);
    let panels = metrics.iter().flat_map(|metric| {
        swept::groups(view).filter_map(|(sweep, group)| draw_panel(view, metric, sweep, group))
    });
    let mut over: Vec<String> = swept::drawn(view).map(|sweep| sweep.parameter.title.clone()).collect();
    over.dedup();
    let values = match view.statistic() {
        Statistic::Median => "Medians",
        _ => "Medians, or the statistic that the axis names,",
    };
    Some(Drawing {
        title: format!("Over {}", text::list(&over)),
        caption: format!(
            "{values} over runs. The band is their 95 % interval, cut where it is very wide; its edges are dotted for circles, \
             dashed for squares and continuous for diamonds. Lines join cells that differ in the parameter only. They say nothing \
             about values in between, and are faint next to invalid cells, which are crossed.{} Axes differ between panels.",
            swept::caveat(view)
        ),
        keys: Vec::new(),
        panels: panels.collect(),
        csv: csv(view),
    })
}

fn draw_panel(view: &View<'_>, metric: &str, sweep: &Sweep, group: &Group) -> Option<Panel> {
    let unit = swept::unit_of(view, group, metric)?;
    let found = || {
        let rows = group.points.iter().flat_map(|(_, context)| &view.contexts[*context].rows);
        rows.filter_map(|row| row.metric(metric))
    };
    let (scale, logarithmic) = swept::upwards(found().map(|metric| metric.compared()))?;
    let across = Across::of(sweep, std::iter::once(group));
    let largest = found().map(|metric| metric.compared().value).fold(0.0, f64::max);
    let units = text::Scale::fitting(unit, largest);
    let title = text::statistic_title(metric, view.summary().statistic_of(metric));
    let heading = if group.name.is_empty() { &title } else { &group.name };
    let bottom = TOP + HEIGHT;
    let mut canvas = Canvas::default();
    swept::draw_side(&mut canvas, scale, &units);
    across.draw(&mut canvas, bottom);
    let cells = |series| swept::rows(view, group, series).collect::<Vec<(f64, &Row<'_>)>>();
    // Bands come first, so that none covers a line.
    for series in 0..view.series.len() {
        draw_bands(&mut canvas, metric, &cells(series), &across, scale);
    }
    let drawn = (0..view.series.len())
        .filter_map(|series| draw_series(&mut canvas, metric, &cells(series), &across, scale));
    let description: Vec<String> = drawn.collect();
    let title = text::uncapital(&title);
    let side = format!("{}{}", units.title(&title), if logarithmic { ", logarithmic" } else { "" });
    let title = format!("{title} over {}", sweep.parameter.title);
    Some(swept::panel(heading, &side, &title, &description, bottom + Axis::HEIGHT, canvas))
}

/// A cell of a series with its value of the parameter.
type SeriesPoint<'v, 'a> = (f64, &'v MetricSummary, &'v Row<'a>);

/// The cells of a series; `None` where one has no number, as a gap of the line.
fn found<'v, 'a>(metric: &str, cells: &[(f64, &'v Row<'a>)]) -> Vec<Option<SeriesPoint<'v, 'a>>> {
    cells.iter().map(|(value, row)| Some((*value, row.metric(metric)?, *row))).collect()
}

fn draw_bands(canvas: &mut Canvas, metric: &str, cells: &[(f64, &Row<'_>)], across: &Across, scale: Scale) {
    let Some((_, row)) = cells.first() else { return };
    let ends = |(value, metric, row): SeriesPoint<'_, '_>| {
        let (low, high) =
            metric.compared().low.zip(metric.compared().high).filter(|_| row.is_believable())?;
        Some((across.scale.place(value), scale.place(low), scale.place(high)))
    };
    let ends: Vec<Option<(f64, f64, f64)>> =
        found(metric, cells).into_iter().map(|cell| cell.and_then(ends)).collect();
    let style = row.series.style;
    canvas.group(&style.row_class(true), None, |c| {
        for band in ends.split(Option::is_none) {
            let band: Vec<(f64, f64, f64)> = band.iter().copied().flatten().collect();
            if band.len() > 1 {
                let lower: Vec<Point> = band.iter().map(|(x, low, _)| at(*x, *low)).collect();
                let upper: Vec<Point> = band.iter().map(|(x, _, high)| at(*x, *high)).collect();
                c.area(&lower.iter().chain(upper.iter().rev()).copied().collect::<Vec<Point>>(), "ci-area");
                // Edges distinguish bands that overlap or are printed without colour.
                [lower, upper].iter().for_each(|edge| c.path(edge, edge_class(style)));
            }
            if let [(x, low, high)] = band.as_slice() {
                c.line(at(*x, *low), at(*x, *high), "whisker");
            }
        }
    });
}

/// The dashes of a band's edge, by the series' shape.
const fn edge_class(style: Style) -> &'static str {
    match style.shape {
        Shape::Circle => "ci-edge dots",
        Shape::Square => "ci-edge dashes",
        Shape::Diamond => "ci-edge",
        Shape::Triangle => "ci-edge dots-and-dashes",
    }
}

fn draw_series(
    canvas: &mut Canvas,
    metric: &str,
    cells: &[(f64, &Row<'_>)],
    across: &Across,
    scale: Scale,
) -> Option<String> {
    let series = &cells.first()?.1.series;
    let found = found(metric, cells);
    let place = |(value, metric, _): &SeriesPoint<'_, '_>| {
        at(across.scale.place(*value), scale.place(metric.compared().value))
    };
    canvas.group(&series.style.row_class(true), Some(&series.name), |c| {
        for joined in found.split(Option::is_none) {
            let places: Vec<(Point, bool)> =
                joined.iter().flatten().map(|cell| (place(cell), cell.2.is_believable())).collect();
            swept::join(c, &places, series.style.line_class());
        }
    });
    let mut described = Vec::new();
    for cell in found.iter().flatten() {
        let (value, metric, row) = cell;
        let (at_value, mark) = (across.value(*value), row.mark());
        described.push(format!("{} at {at_value}{mark}", text::value(&metric.unit, metric.compared().value)));
        let estimate = text::estimate(&metric.unit, &metric.compared());
        canvas.group(&row.class(), Some(&format!("{} at {at_value}: {estimate}{mark}", series.name)), |c| {
            c.marker(place(cell), series.style, 4.6);
            if !row.is_believable() {
                c.cross(place(cell), 6.5);
            }
        });
    }
    (!described.is_empty()).then(|| format!("{}: {}", series.name, described.join(", ")))
}

fn csv(view: &View<'_>) -> String {
    let mut csv = Csv::default();
    for metric in swept::metrics(view) {
        for (sweep, group) in swept::groups(view) {
            for (value, row) in (0..view.series.len()).flat_map(|series| swept::rows(view, group, series)) {
                let Some(found) = row.metric(metric) else { continue };
                let fields = vec![
                    ("parameter", sweep.parameter.title.as_str().into()),
                    ("parameter_unit", sweep.parameter.unit.into()),
                    ("parameter_value", value.into()),
                    ("metric", metric.into()),
                    ("unit", found.unit.as_str().into()),
                    ("statistic", found.statistic.name().into()),
                    ("value", found.compared().value.into()),
                    ("low", found.compared().low.into()),
                    ("high", found.compared().high.into()),
                ];
                csv.cell(&group.name, row, fields);
            }
        }
    }
    csv.finish()
}
