//! What the figures over swept parameters share: which metrics they show, and their axes.

use analysis::summary::{Estimate, MetricSummary};

use super::panel::{LABEL_SIZE, WIDTH};
use super::runs::axis_title;
use super::spread::DECADES;
use crate::svg::{Anchor, Axis, Canvas, Point, Scale, SideAxis, at, fit, number, wrapped};
use crate::sweep::{Group, Parameter, Sweep};
use crate::text;
use crate::view::{Row, View};

pub(super) const LEFT: f64 = 52.0;
pub(super) const RIGHT: f64 = WIDTH - 12.0;
/// Below the heading and the title of the vertical axis.
pub(super) const TOP: f64 = 52.0;
pub(super) const HEIGHT: f64 = 190.0;
/// A parameter whose values span so much has a logarithmic axis: whoever sweeps so far mostly doubles.
const LOGARITHMIC_FROM: f64 = 7.5;
/// A sweep of so many values is shown without being asked for.
const ENOUGH: usize = 3;
/// Metrics beside the primary one.
const MOST_FURTHER: usize = 3;
/// Shown beside the primary metric, where they change over the sweep: of loops, of pages, of both.
const OF_LOOPS: [&str; 2] = ["requests_per_second", "request_time"];
const OF_PAGES: [&str; 1] = ["page_load_time"];
const OF_ANY: [&str; 2] = ["request_header_wire_bytes", "response_header_wire_bytes"];
/// What changes by less than this does not change.
const CHANGE: f64 = 1.1;

/// Whether there is a sweep to show without being asked for.
pub(super) fn has_sweep(view: &View<'_>) -> bool {
    view.sweeps.iter().any(|sweep| sweep.most_values() >= ENOUGH)
}

/// The sweeps that are drawn: short ones only where there is no other.
pub(super) fn drawn<'v>(view: &'v View<'_>) -> impl Iterator<Item = &'v Sweep> {
    let least = if has_sweep(view) { ENOUGH } else { 2 };
    view.sweeps.iter().filter(move |sweep| sweep.most_values() >= least)
}

/// What is to be said of sweeps whose levels are not alike in all else.
pub(super) fn caveat(view: &View<'_>) -> &'static str {
    if drawn(view).all(|sweep| sweep.is_pure) {
        ""
    } else {
        " These networks differ in more than their round-trip time."
    }
}

/// The primary metric, and others that change over a sweep.
pub(super) fn metrics<'v>(view: &'v View<'_>) -> Vec<&'v str> {
    let primary = view.summary().metric.as_str();
    let has_loops = view.summary().cells.iter().any(|cell| cell.metrics.contains_key(OF_LOOPS[0]));
    let of_workload = if has_loops { &OF_LOOPS[..] } else { &OF_PAGES };
    let further = of_workload.iter().chain(&OF_ANY).copied();
    let further = further.filter(|name| *name != primary && changes(view, name));
    std::iter::once(primary).chain(further.take(MOST_FURTHER)).collect()
}

fn changes(view: &View<'_>, name: &str) -> bool {
    view.sweeps.iter().flat_map(|sweep| &sweep.groups).any(|group| {
        (0..view.series.len()).any(|series| {
            let medians =
                rows(view, group, series).filter_map(|(_, row)| Some(row.metric(name)?.median.value));
            let (low, high) = medians.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
            low > 0.0 && high > low * CHANGE
        })
    })
}

/// One series' cells over a sweep: value and cell, ascending.
pub(super) fn rows<'v, 'a>(
    view: &'v View<'a>,
    group: &'v Group,
    series: usize,
) -> impl Iterator<Item = (f64, &'v Row<'a>)> {
    group.points.iter().filter_map(move |(values, context)| {
        let row = view.contexts[*context].rows.iter().find(|row| row.series == series)?;
        Some((*values.first()?, row))
    })
}

/// The unit of a metric in the cells of a group.
pub(super) fn unit_of<'v>(view: &'v View<'_>, group: &Group, metric: &str) -> Option<&'v str> {
    let rows = group.points.iter().flat_map(|(_, context)| &view.contexts[*context].rows);
    rows.filter_map(|row| row.metric(metric)).map(|metric: &MetricSummary| metric.unit.as_str()).next()
}

/// A parameter's axis: a label at each of its values.
pub(super) struct Across {
    pub(super) scale: Scale,
    values: Vec<f64>,
    title: String,
    parameter: String,
    units: text::Scale,
}

impl Across {
    pub(super) fn of<'g>(sweep: &Sweep, groups: impl Iterator<Item = &'g Group>) -> Across {
        let mut values: Vec<f64> = groups.flat_map(|group| group.values(0)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (low, high) = (values.first().copied().unwrap_or(0.0), values.last().copied().unwrap_or(1.0));
        let is_wide = low > 0.0 && high / low >= LOGARITHMIC_FROM;
        // Room for the outermost markers.
        let places = (LEFT + 10.0, RIGHT - 10.0);
        let scale = if is_wide {
            Scale::logarithmic((low, high), places)
        } else {
            Scale::linear((low, high), places)
        };
        let units = units_of(&sweep.parameter, high);
        let note = if is_wide { ", logarithmic" } else { "" };
        let title = format!("{}{note}", axis_title(&sweep.parameter.title(), &units));
        Across { scale, values, title, parameter: sweep.parameter.title(), units }
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, bottom: f64) {
        let label = |value: f64| self.units.short(value);
        let title = fit(&self.title, 11.5, WIDTH - LEFT);
        let axis = Axis { scale: self.scale, top: TOP, bottom, width: WIDTH, title: &title, label: &label };
        axis.draw_at(canvas, &self.values);
        canvas.line(at(LEFT, bottom), at(RIGHT, bottom), "axis");
    }

    /// A value in words, such as `round-trip time 5 ms`.
    pub(super) fn value(&self, value: f64) -> String {
        format!("{} {}", self.parameter, self.units.short_value(value))
    }
}

/// The unit that a parameter's axis has.
pub(super) fn units_of(parameter: &Parameter, largest: f64) -> text::Scale {
    text::Scale::fitting(parameter.unit(), largest)
}

/// The labels and the grid of the vertical axis.
pub(super) fn draw_side(canvas: &mut Canvas, scale: Scale, units: &text::Scale) {
    let label = |value: f64| units.short(value);
    SideAxis { scale, left: LEFT, right: RIGHT, label: &label }.draw(canvas, 5);
}

/// Font sizes of a heading, whose letters are bold, and of an axis' title; and from one line to the next.
const HEADING: (f64, f64) = (14.5 * 1.12, 18.0);
const TITLE: (f64, f64) = (11.5, 14.0);

/// Puts the heading of a panel and the title of its vertical axis above what is drawn from [`TOP`] on, in as many lines as
/// they need, and says by how much they push it down.
pub(super) fn below_heading(heading: &str, title: &str, plot: Canvas) -> (String, f64) {
    let mut canvas = Canvas::default();
    let mut down = 0.0;
    for (y, class, text, (size, height)) in
        [(15.0, "heading", heading, HEADING), (TOP - 16.0, "axis-title", title, TITLE)]
    {
        for (place, line) in wrapped(text, size, WIDTH).iter().enumerate() {
            down += if place > 0 { height } else { 0.0 };
            canvas.text(at(0.0, y + down), Anchor::Start, class, line);
        }
    }
    let (above, plot) = (canvas.finish(), plot.finish());
    match down > 0.0 {
        true => (format!("{above}<g transform=\"translate(0 {})\">{plot}</g>", number(down)), down),
        false => (format!("{above}{plot}"), down),
    }
}

/// A line through places, faint on the way to and from those that may not be believed.
pub(super) fn join(canvas: &mut Canvas, places: &[(Point, bool)], class: &str) {
    let is_believable = |pair: &&[(Point, bool)]| pair.iter().all(|(_, believable)| *believable);
    let ways: Vec<&[(Point, bool)]> = places.windows(2).collect();
    for alike in ways.chunk_by(|one, other| is_believable(one) == is_believable(other)) {
        let ends = alike.iter().filter_map(|pair| pair.last()).map(|(place, _)| *place);
        let begin = alike.first().and_then(|pair| pair.first()).map(|(place, _)| *place);
        let faint = if alike.first().is_some_and(is_believable) { "" } else { " faint" };
        canvas.path(&begin.into_iter().chain(ends).collect::<Vec<Point>>(), &format!("{class}{faint}"));
    }
}

/// Intervals widen an axis so many times at most: those of few runs would leave nothing else to see.
pub(super) const WIDEST: f64 = 3.0;

/// A vertical scale for medians and their intervals, and whether it is logarithmic.
pub(super) fn upwards(estimates: impl Iterator<Item = Estimate> + Clone) -> Option<(Scale, bool)> {
    let medians = estimates.clone().map(|estimate| estimate.value);
    let (least, most) = medians.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
    if least > most {
        return None;
    }
    let (low, high) = estimates.fold((least, most), |(low, high), estimate| {
        (estimate.low.unwrap_or(low).min(low), estimate.high.unwrap_or(high).max(high))
    });
    let (low, high) = (low.max(least / WIDEST), high.min(most * WIDEST));
    let places = (TOP + HEIGHT, TOP);
    if low > 0.0 && high / low > DECADES {
        return Some((Scale::logarithmic((low / 1.15, high * 1.15), places), true));
    }
    Some((Scale::linear((low.min(0.0), high * 1.06), places), false))
}

/// The size that labels in a plot have.
pub(super) const LABEL: f64 = LABEL_SIZE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_wrapped_and_never_cut() {
        let long = "Request time over requests per second that are asked for, of all that was asked";
        let lines = wrapped(long, HEADING.0, WIDTH);
        assert!(lines.len() == 2 && lines.join(" ") == long, "{lines:?}");
        let (body, down) = below_heading(long, "request time (ms)", Canvas::default());
        assert!(down == 18.0 && body.contains("translate(0 18)") && !body.contains('…'), "{body}");
        assert_eq!(below_heading("short", "time (ms)", Canvas::default()).1, 0.0);
    }

    #[test]
    fn a_line_is_faint_beside_what_may_not_be_believed() {
        let mut canvas = Canvas::default();
        let places = [(0.0, true), (1.0, true), (2.0, false), (3.0, true), (4.0, true)];
        join(&mut canvas, &places.map(|(x, believable)| (at(x, 0.0), believable)), "curve");
        assert_eq!(
            canvas.finish(),
            "<path class=\"curve\" d=\"M0 0L1 0\"/><path class=\"curve faint\" d=\"M1 0L2 0L3 0\"/>\
             <path class=\"curve\" d=\"M3 0L4 0\"/>"
        );
    }
}
