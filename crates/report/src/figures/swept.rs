//! What the figures over swept parameters share: the metrics that they show, and their axes.

use analysis::summary::Estimate;

use super::panel::Panel;
use super::spread::DECADES;
use super::{Row, View, text};
use crate::svg::{
    Anchor, Axis, BOLD, Canvas, HEADING_SIZE, Point, Scale, SideAxis, TICK_SIZE, WIDTH, at, wrapped,
};
use crate::sweep::{Group, Sweep};

/// What the figures over one parameter need.
pub(super) const NEEDS: &str = "levels of one factor, not the compared one, that differ in one number only";
/// When they are drawn by default.
pub(super) const BY_DEFAULT: &str = "with a swept parameter of three or more values";

pub(super) const LEFT: f64 = 52.0;
pub(super) const RIGHT: f64 = WIDTH - 12.0;
/// Below the heading and the title of the vertical axis.
pub(super) const TOP: f64 = 52.0;
pub(super) const HEIGHT: f64 = 190.0;
/// A parameter whose values span this ratio has a logarithmic axis: wide sweeps mostly double.
const LOGARITHMIC_FROM: f64 = 7.5;
/// A sweep with this many values is drawn by default.
const ENOUGH: usize = 3;
/// Further metrics besides the primary one.
const MAX_FURTHER: usize = 3;
/// Further metrics in the order of importance; shown if the workloads have them and they change over the
/// sweep.
const FURTHER: [&str; 5] = [
    "page_load_time",
    "requests_per_second",
    "request_time",
    "response_header_wire_bytes",
    "request_header_wire_bytes",
];
/// A metric that changes by less than this ratio does not change.
const CHANGE: f64 = 1.1;

/// Whether there is a sweep to draw by default.
pub(super) fn has_sweep(view: &View<'_>) -> bool {
    view.sweeps.iter().any(|sweep| sweep.most_values() >= ENOUGH)
}

/// The sweeps that are drawn: short ones only if there is no longer one.
pub(super) fn drawn<'v>(view: &'v View<'_>) -> impl Iterator<Item = &'v Sweep> {
    let least = if has_sweep(view) { ENOUGH } else { 2 };
    view.sweeps.iter().filter(move |sweep| sweep.most_values() >= least)
}

/// A caption's sentence about sweeps whose levels differ in more than the parameter.
pub(super) fn caveat(view: &View<'_>) -> &'static str {
    let is_pure = drawn(view).all(|sweep| sweep.is_pure);
    if is_pure { "" } else { " These networks differ in more than their round-trip time." }
}

/// The primary metric, and further ones that change over a sweep.
pub(super) fn metrics<'v>(view: &'v View<'_>) -> Vec<&'v str> {
    let primary = view.summary().metric.as_str();
    let further = FURTHER.into_iter().filter(|name| *name != primary && changes(view, name));
    std::iter::once(primary).chain(further.take(MAX_FURTHER)).collect()
}

fn changes(view: &View<'_>, name: &str) -> bool {
    view.sweeps.iter().flat_map(|sweep| &sweep.groups).any(|group| {
        (0..view.series.len()).any(|series| {
            let values =
                rows(view, group, series).filter_map(|(_, row)| Some(row.metric(name)?.compared().value));
            let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
            low > 0.0 && high > low * CHANGE
        })
    })
}

/// Every group of every sweep that is drawn.
pub(super) fn groups<'v>(view: &'v View<'_>) -> impl Iterator<Item = (&'v Sweep, &'v Group)> {
    drawn(view).flat_map(|sweep| sweep.groups.iter().map(move |group| (sweep, group)))
}

/// One series' cells over a sweep: value and cell, ascending.
pub(super) fn rows<'v, 'a>(
    view: &'v View<'a>,
    group: &'v Group,
    series: usize,
) -> impl Iterator<Item = (f64, &'v Row<'a>)> {
    group.points.iter().filter_map(move |(values, context)| {
        let row = view.contexts[*context].rows.iter().find(|row| row.series.index == series)?;
        Some((*values.first()?, row))
    })
}

/// The unit of a metric in the cells of a group.
pub(super) fn unit_of<'v>(view: &'v View<'_>, group: &Group, metric: &str) -> Option<&'v str> {
    let rows = group.points.iter().flat_map(|(_, context)| &view.contexts[*context].rows);
    rows.filter_map(|row| row.metric(metric)).map(|metric| metric.unit.as_str()).next()
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
        let units = text::Scale::fitting(sweep.parameter.unit, high);
        let note = if is_wide { ", logarithmic" } else { "" };
        let title = format!("{}{note}", units.title(&sweep.parameter.title));
        Across { scale, values, title, parameter: sweep.parameter.title.clone(), units }
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, bottom: f64) {
        let (scale, title) = (self.scale, &self.title);
        Axis { scale, top: TOP, bottom, title, label: &|value| self.units.short(value) }
            .draw_at(canvas, &self.values);
        canvas.line(at(LEFT, bottom), at(RIGHT, bottom), "axis");
    }

    /// A value with its parameter, such as `round-trip time 5 ms`.
    pub(super) fn value(&self, value: f64) -> String {
        format!("{} {}", self.parameter, self.units.short_value(value))
    }
}

/// The labels and the grid of the vertical axis.
pub(super) fn draw_side(canvas: &mut Canvas, scale: Scale, units: &text::Scale) {
    SideAxis { scale, left: LEFT, right: RIGHT, label: &|value| units.short(value) }.draw(canvas, 5);
}

/// Font size and distance of the lines of a heading, and of an axis title.
const HEADING: (f64, f64) = (HEADING_SIZE * BOLD, 18.0);
const TITLE: (f64, f64) = (TICK_SIZE, 14.0);

/// A panel whose plot begins at [`TOP`] and ends at `bottom`. The heading and the title of the vertical axis
/// are above it, in as many lines as they need, which push the plot down.
pub(super) fn panel(
    heading: &str,
    side: &str,
    title: &str,
    description: &[String],
    bottom: f64,
    plot: Canvas,
) -> Panel {
    let mut canvas = Canvas::default();
    let mut down = 0.0;
    for (y, class, text, (size, height)) in
        [(15.0, "heading", heading, HEADING), (TOP - 16.0, "axis-title", side, TITLE)]
    {
        for (place, line) in wrapped(text, size, WIDTH).iter().enumerate() {
            down += if place > 0 { height } else { 0.0 };
            canvas.text(at(0.0, y + down), Anchor::Start, class, line);
        }
    }
    canvas.moved_down(down, plot);
    Panel::new(format!("{heading}: {title}"), description, bottom + down, canvas)
}

/// A line through places, faint next to invalid ones.
pub(super) fn join(canvas: &mut Canvas, places: &[(Point, bool)], class: &str) {
    let is_believable = |pair: &&[(Point, bool)]| pair.iter().all(|(_, believable)| *believable);
    let pairs: Vec<&[(Point, bool)]> = places.windows(2).collect();
    for run in pairs.chunk_by(|one, other| is_believable(one) == is_believable(other)) {
        let ends = run.iter().filter_map(|pair| pair.last()).map(|(place, _)| *place);
        let begin = run.first().and_then(|pair| pair.first()).map(|(place, _)| *place);
        let faint = if run.first().is_some_and(is_believable) { "" } else { " faint" };
        canvas.path(&begin.into_iter().chain(ends).collect::<Vec<Point>>(), &format!("{class}{faint}"));
    }
}

/// Intervals widen an axis at most by this factor: those of few runs would hide everything else.
pub(super) const WIDEST: f64 = 3.0;

/// A vertical scale for estimates and their intervals, and whether it is logarithmic.
pub(super) fn upwards(estimates: impl Iterator<Item = Estimate> + Clone) -> Option<(Scale, bool)> {
    let values = estimates.clone().map(|estimate| estimate.value);
    let (least, most) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_wrapped_and_never_cut() {
        let long = "Request time over requests per second that are asked for, of all that was asked";
        let lines = wrapped(long, HEADING.0, WIDTH);
        assert!(lines.len() == 2 && lines.join(" ") == long, "{lines:?}");
        let wrapped = panel(long, "request time (ms)", "title", &[], 100.0, Canvas::default());
        assert!(wrapped.height == 118.0 && !wrapped.body.contains('…'), "{}", wrapped.body);
        assert_eq!(panel("short", "time (ms)", "title", &[], 100.0, Canvas::default()).height, 100.0);
    }

    #[test]
    fn a_line_is_faint_next_to_invalid_places() {
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
