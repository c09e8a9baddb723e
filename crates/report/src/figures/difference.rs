//! The gain of each level over the baseline against a swept parameter; all other factors share a plot.

use analysis::metrics::{self, Better};
use analysis::summary::{Comparison, Estimate, Verdict};

use super::swept::{self, Across, HEIGHT, LEFT, RIGHT, TOP};
use super::{Csv, Drawing, FigureKind, Panel, View, text};
use crate::context::{Row, verdict_name};
use crate::svg::{Anchor, Axis, Canvas, Point, Rect, Scale, TICK_SIZE, at, count, fit};
use crate::sweep::{Group, Sweep};

pub(super) const KIND: FigureKind = FigureKind {
    name: "difference",
    shows: "the gain over the baseline against a swept parameter",
    by_default: swept::BY_DEFAULT,
    needs: swept::NEEDS,
    suits: swept::has_sweep,
    draw,
};

/// The class of a line and half the height of its marks. They distinguish the contexts of a panel, because
/// dashes already mean cleartext.
const WEIGHTS: [(&str, f64); 4] =
    [("weight-1", 3.0), ("weight-2", 4.2), ("weight-3", 5.4), ("weight-4", 6.8)];
/// The weight of a single context.
const ALONE: (&str, f64) = ("", 4.4);
/// Height of an entry that explains a weight.
const KEY: f64 = 18.0;
/// The horizontal distance of the marks of different series, so that their intervals can be seen.
const APART: f64 = 3.0;
/// Intervals stretch the axis beyond the gains by at most this share of their range: a very wide one would
/// flatten all others.
const ROOM_SHARE: f64 = 0.4;

/// A point of a line.
struct Gain<'v, 'a> {
    /// The parameter's value.
    value: f64,
    gain: Estimate,
    comparison: &'v Comparison,
    row: &'v Row<'a>,
}

impl Gain<'_, '_> {
    fn is_valid(&self) -> bool {
        !matches!(self.comparison.verdict, Verdict::Invalid { .. }) && self.row.is_believable()
    }
}

fn draw(view: &View<'_>) -> Option<Drawing> {
    let mut panels = Vec::new();
    for metric in swept::metrics(view) {
        for sweep in swept::drawn(view) {
            for (number, groups) in sweep.groups.chunks(WEIGHTS.len()).enumerate() {
                panels.extend(draw_panel(view, metric, sweep, groups, number));
            }
        }
    }
    let baseline = view.baseline();
    let weights = match swept::drawn(view).any(|sweep| sweep.groups.len() > 1) {
        true => " Line weights and mark sizes distinguish the places named below the panel.",
        false => "",
    };
    Some(Drawing {
        title: format!("Difference to {baseline}"),
        caption: format!(
            "The gain of each level over {baseline}, in the unit of the metric: {baseline} minus the level \
             if less is better, the level minus {baseline} if more is better. Above the zero line the level \
             is better, below it worse. Bars are 95 % intervals over runs, cut where they are very wide. \
             Faded marks were not shown to differ; crossed marks are invalid.{weights}{}",
            swept::caveat(view)
        ),
        keys: Vec::new(),
        panels,
        csv: csv(view),
    })
}

/// Whether less of a metric is better, so that the gain is the baseline minus the level.
fn less_is_better(metric: &str) -> bool {
    metrics::find(metric).is_none_or(|metric| metric.better != Better::Higher)
}

fn gains<'v, 'a>(view: &'v View<'a>, metric: &str, group: &'v Group, series: usize) -> Vec<Gain<'v, 'a>> {
    let gain = |(value, row): (f64, &'v Row<'a>)| {
        let comparison = view.comparison(row.cell.cell, metric)?;
        let difference = comparison.difference?;
        let gain = if less_is_better(metric) { text::negated(difference) } else { difference };
        Some(Gain { value, gain, comparison, row })
    };
    swept::rows(view, group, series).filter_map(gain).collect()
}

/// The range of all gains and 0, and of their intervals where there is room; `None` without gains.
fn range(view: &View<'_>, metric: &str, groups: &[Group]) -> Option<(f64, f64)> {
    let series = groups.iter().flat_map(|group| (0..view.series.len()).map(move |series| (group, series)));
    let gains: Vec<Estimate> = series
        .flat_map(|(group, series)| gains(view, metric, group, series))
        .map(|gain| gain.gain)
        .filter(|gain| gain.value.is_finite())
        .collect();
    let span = |range: (f64, f64), end: f64| (range.0.min(end), range.1.max(end));
    let (low, high) = gains.iter().map(|gain| gain.value).fold((0.0, 0.0), span);
    let room = if high > low { (high - low) * ROOM_SHARE } else { f64::MAX };
    let ends = gains.iter().flat_map(|gain| [gain.low, gain.high]).flatten().filter(|end| end.is_finite());
    let ends = ends.map(|end| end.clamp(low - room, high + room));
    (!gains.is_empty()).then(|| ends.fold((low, high), span))
}

fn draw_panel(
    view: &View<'_>,
    metric: &str,
    sweep: &Sweep,
    groups: &[Group],
    number: usize,
) -> Option<Panel> {
    let unit = groups.iter().find_map(|group| swept::unit_of(view, group, metric))?;
    let (low, high) = range(view, metric, groups)?;
    let pad = (high - low) * 0.06;
    let bottom = TOP + HEIGHT;
    let scale = Scale::linear((low - pad, high + pad), (bottom, TOP));
    let units = text::Scale::fitting(unit, high.max(-low));
    let across = Across::of(sweep, groups.iter());
    let (title, baseline) = (text::metric_title(metric), view.baseline());
    let heading = match groups {
        [group] if !group.name.is_empty() => group.name.clone(),
        _ if number > 0 => format!("{title} over {} ({})", sweep.parameter.title, number + 1),
        _ => format!("{title} over {}", sweep.parameter.title),
    };
    let signed = match less_is_better(metric) {
        true => format!("{}, {baseline} − level", text::uncapital(&title)),
        false => format!("{}, level − {baseline}", text::uncapital(&title)),
    };
    let mut canvas = Canvas::default();
    swept::draw_side(&mut canvas, scale, &units);
    across.draw(&mut canvas, bottom);
    let zero = scale.place(0.0);
    canvas.line(at(LEFT, zero), at(RIGHT, zero), "zero");
    let mut description = Vec::new();
    for (place, group) in groups.iter().enumerate() {
        let weight = if groups.len() > 1 { WEIGHTS[place] } else { ALONE };
        for series in 0..view.series.len() {
            let gains = gains(view, metric, group, series);
            description.extend(draw_line(view, &mut canvas, group, &gains, weight, &across, scale));
        }
    }
    let height = draw_weights(&mut canvas, groups, bottom + Axis::HEIGHT);
    let side = format!("↑ better · {}", units.title(&signed));
    let title = format!("{signed} over {}", sweep.parameter.title);
    Some(swept::panel(&heading, &side, &title, &description, height, canvas))
}

/// Explains the weights of several groups; returns where the entries end.
fn draw_weights(canvas: &mut Canvas, groups: &[Group], top: f64) -> f64 {
    let mut y = top;
    for (group, (weight, radius)) in groups.iter().zip(WEIGHTS).filter(|_| groups.len() > 1) {
        canvas.line(at(LEFT, y + 6.0), at(LEFT + 30.0, y + 6.0), &format!("key-line {weight}"));
        let side = radius * 2.0;
        let mark = Rect { x: LEFT + 15.0 - radius, y: y + 6.0 - radius, width: side, height: side };
        canvas.rounded(mark, radius, "key-mark");
        let name = fit(&group.name, TICK_SIZE, RIGHT - LEFT - 38.0);
        canvas.text(at(LEFT + 38.0, y + 10.0), Anchor::Start, "tick", &name);
        y += KEY;
    }
    y
}

fn draw_line(
    view: &View<'_>,
    canvas: &mut Canvas,
    group: &Group,
    gains: &[Gain<'_, '_>],
    (weight, radius): (&str, f64),
    across: &Across,
    scale: Scale,
) -> Option<String> {
    let series = &gains.first()?.row.series;
    let context = if group.name.is_empty() { String::new() } else { format!(", {}", group.name) };
    let level = format!("{}{context}", series.name);
    let shift = (count(series.index) - count(view.series.len() - 1) / 2.0) * APART;
    let place = |value: f64, gain: f64| at(across.scale.place(value) + shift, scale.place(gain));
    if gains.len() > 1 {
        let points: Vec<(Point, bool)> =
            gains.iter().map(|point| (place(point.value, point.gain.value), point.is_valid())).collect();
        let class = format!("{} {weight}", series.style.line_class());
        canvas.group(&series.style.row_class(true), Some(&level), |c| {
            swept::join(c, &points, class.trim_end());
        });
    }
    let mut described = Vec::new();
    for point in gains {
        let Gain { value, gain, comparison, row } = point;
        let (verdict, _) = verdict_name(&comparison.verdict);
        let is_shown = matches!(comparison.verdict, Verdict::Better | Verdict::Worse | Verdict::Equivalent);
        let unit = row.metric(&comparison.metric).map_or("1", |metric| metric.unit.as_str());
        let (estimate, at_value) = (text::estimate(unit, gain), across.value(*value));
        described.push(format!("{} at {at_value}, {verdict}", text::value(unit, gain.value)));
        let title = format!("{level} at {at_value}: gain over {} {estimate}, {verdict}", view.baseline());
        let center = place(*value, gain.value);
        canvas.group(&series.style.row_class(point.is_valid() && is_shown), Some(&title), |c| {
            if let (Some(low), Some(high)) = (gain.low, gain.high) {
                c.line(place(*value, low), place(*value, high), "thin");
            }
            c.marker(center, series.style, radius);
            if !point.is_valid() {
                c.cross(center, 6.5);
            }
        });
    }
    Some(format!("{level}: {}", described.join(", ")))
}

fn csv(view: &View<'_>) -> String {
    let mut csv = Csv::default();
    for metric in swept::metrics(view) {
        for (sweep, group) in swept::groups(view) {
            let unit = swept::unit_of(view, group, metric).unwrap_or("1");
            for point in (0..view.series.len()).flat_map(|series| gains(view, metric, group, series)) {
                let fields = vec![
                    ("parameter", sweep.parameter.title.as_str().into()),
                    ("parameter_unit", sweep.parameter.unit.into()),
                    ("parameter_value", point.value.into()),
                    ("baseline", view.summary().baseline.value.as_str().into()),
                    ("metric", metric.into()),
                    ("unit", unit.into()),
                    ("gain", point.gain.value.into()),
                    ("low", point.gain.low.into()),
                    ("high", point.gain.high.into()),
                    ("verdict", verdict_name(&point.comparison.verdict).0.into()),
                ];
                csv.cell(&group.name, point.row, fields);
            }
        }
    }
    csv.finish()
}
