//! How much a level gains on the baseline over a swept parameter: a line of zero, all other factors in one plot.

use analysis::metrics::{self, Better};
use analysis::summary::{Comparison, Estimate, Verdict};

use super::Drawing;
use super::panel::{self, Panel, WIDTH};
use super::runs::axis_title;
use super::swept::{self, Across, HEIGHT, LEFT, RIGHT, TOP};
use crate::encode::{Csv, Field};
use crate::svg::{Anchor, Axis, Canvas, Point, Rect, Scale, at, fit};
use crate::sweep::{Group, Sweep};
use crate::text::{self, clean_line};
use crate::view::{Row, View, status_name, verdict_name};

/// Lines of one series are told apart by their weight and the size of their marks, since dashes are cleartext: so many
/// contexts are in one panel. Class of the line, half a mark's height.
const WEIGHTS: [(&str, f64); 4] =
    [("weight-1", 3.0), ("weight-2", 4.2), ("weight-3", 5.4), ("weight-4", 6.8)];
/// What a single context has.
const ALONE: (&str, f64) = ("", 4.4);
/// Height of an entry that says whose weight this is.
const KEY: f64 = 18.0;
/// How far the marks of different series stand apart, so that their intervals can be seen.
const APART: f64 = 3.0;

/// A point of a line: the parameter's value, the gain, its comparison and its cell.
type Gain<'v, 'a> = (f64, Estimate, &'v Comparison, &'v Row<'a>);

pub(super) fn draw(view: &View<'_>) -> Option<Drawing> {
    let mut panels = Vec::new();
    for metric in swept::metrics(view) {
        for sweep in swept::drawn(view) {
            for (number, groups) in sweep.groups.chunks(WEIGHTS.len()).enumerate() {
                panels.extend(draw_panel(view, metric, sweep, groups, number));
            }
        }
    }
    if panels.is_empty() {
        return None;
    }
    let baseline = view.baseline();
    let weights = match swept::drawn(view).any(|sweep| sweep.groups.len() > 1) {
        true => {
            " The weight of a line and the size of its marks say which of the places named below the panel it is of."
        }
        false => "",
    };
    Some(Drawing {
        title: format!("Difference to {baseline}"),
        caption: format!(
            "How much better than {baseline} a level is, in the metric's own unit: {baseline} minus the level where less \
             is better, the level minus {baseline} where more is. Above the line of zero it is better, below it worse. Bars \
             are 95 % intervals over runs, cut where they are very wide; what is faded was not shown to differ, what is crossed may not be \
             believed.{weights}{}",
            swept::caveat(view)
        ),
        keys: Vec::new(),
        panels,
        csv: csv(view),
    })
}

/// Whether a smaller value is better: then the gain is the baseline minus the level.
fn less_is_better(metric: &str) -> bool {
    metrics::find(metric).is_none_or(|metric| metric.better != Better::Higher)
}

fn gains<'v, 'a>(view: &'v View<'a>, metric: &str, group: &'v Group, series: usize) -> Vec<Gain<'v, 'a>> {
    let gain = |(value, row): (f64, &'v Row<'a>)| {
        let comparison = view.comparison(row.cell.cell, metric)?;
        let difference = comparison.difference?;
        let gain = match less_is_better(metric) {
            true => Estimate {
                value: -difference.value,
                low: difference.high.map(|high| -high),
                high: difference.low.map(|low| -low),
            },
            false => difference,
        };
        Some((value, gain, comparison, row))
    };
    swept::rows(view, group, series).filter_map(gain).collect()
}

/// How far beyond the gains, as a share of their own range, their intervals may stretch the axis: one that is very wide would
/// press all others onto the line of zero.
const ROOM_SHARE: f64 = 0.4;

/// The range of all gains and 0, and of their intervals as far as there is room; `None` where there is none.
fn range(view: &View<'_>, metric: &str, groups: &[Group]) -> Option<(f64, f64)> {
    let series = groups.iter().flat_map(|group| (0..view.series.len()).map(move |series| (group, series)));
    let gains: Vec<Estimate> = series
        .flat_map(|(group, series)| gains(view, metric, group, series))
        .map(|(_, gain, ..)| gain)
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
    let title = text::uncapital(&text::metric_title(metric));
    let baseline = view.baseline();
    let signed = match less_is_better(metric) {
        true => format!("{title}, {baseline} − level"),
        false => format!("{title}, level − {baseline}"),
    };
    let mut canvas = Canvas::default();
    let heading = match groups {
        [group] if !group.name.is_empty() => group.name.clone(),
        _ => {
            let name = format!("{} over {}", text::metric_title(metric), sweep.parameter.title());
            if number > 0 { format!("{name} ({})", number + 1) } else { name }
        }
    };
    swept::draw_side(&mut canvas, scale, &units);
    across.draw(&mut canvas, bottom);
    let zero = scale.place(0.0);
    canvas.line(at(LEFT, zero), at(RIGHT, zero), "zero");
    let mut description = Vec::new();
    for (place, group) in groups.iter().enumerate() {
        for series in 0..view.series.len() {
            let gains = gains(view, metric, group, series);
            let weight = if groups.len() > 1 { WEIGHTS[place] } else { ALONE };
            description.extend(draw_line(view, &mut canvas, group, &gains, weight, &across, scale));
        }
    }
    let mut height = bottom + Axis::HEIGHT + 4.0;
    for (group, (weight, radius)) in groups.iter().zip(WEIGHTS).filter(|_| groups.len() > 1) {
        canvas.line(at(LEFT, height + 6.0), at(LEFT + 30.0, height + 6.0), &format!("key-line {weight}"));
        let (x, y, side) = (LEFT + 15.0 - radius, height + 6.0 - radius, radius * 2.0);
        canvas.rounded(Rect { x, y, width: side, height: side }, radius, "key-mark");
        let name = fit(&group.name, 11.5, RIGHT - LEFT - 38.0);
        canvas.text(at(LEFT + 38.0, height + 10.0), Anchor::Start, "tick", &name);
        height += KEY;
    }
    let side = format!("↑ better · {}", axis_title(&signed, &units));
    let (body, down) = swept::below_heading(&heading, &side, canvas);
    Some(Panel {
        title: format!("{heading}: {signed} over {}", sweep.parameter.title()),
        description: description.join("; "),
        class: String::new(),
        width: WIDTH,
        height: height + down,
        body,
    })
}

fn is_valid(comparison: &Comparison, row: &Row<'_>) -> bool {
    !matches!(comparison.verdict, Verdict::Invalid { .. }) && row.is_believable()
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
    let (_, _, _, row) = gains.first()?;
    let series = view.series_of(row);
    let context = if group.name.is_empty() { String::new() } else { format!(", {}", group.name) };
    let level = format!("{}{context}", clean_line(&series.name));
    #[expect(clippy::cast_precision_loss, reason = "a handful of series")]
    let shift = (row.series as f64 - (view.series.len() - 1) as f64 / 2.0) * APART;
    let place = |value: f64, gain: f64| at(across.scale.place(value) + shift, scale.place(gain));
    let mut words = Vec::new();
    if gains.len() > 1 {
        let points: Vec<(Point, bool)> = gains
            .iter()
            .map(|(value, gain, comparison, row)| (place(*value, gain.value), is_valid(comparison, row)))
            .collect();
        let class = format!("{} {weight}", series.style.line_class());
        canvas.group(&panel::row_class(series.style, true), Some(&level), |c| {
            swept::join(c, &points, class.trim_end());
        });
    }
    for (value, gain, comparison, row) in gains {
        let (verdict, _) = verdict_name(&comparison.verdict);
        let is_shown = matches!(comparison.verdict, Verdict::Better | Verdict::Worse | Verdict::Equivalent);
        let is_valid = is_valid(comparison, row);
        let unit = row.cell.metrics.get(&comparison.metric).map_or("1", |metric| metric.unit.as_str());
        let estimate = text::estimate(unit, gain);
        words.push(format!("{} at {}, {verdict}", text::value(unit, gain.value), across.value(*value)));
        let title =
            format!("{level} at {}: gain on {} {estimate}, {verdict}", across.value(*value), view.baseline());
        let center = place(*value, gain.value);
        canvas.group(&panel::row_class(series.style, is_valid && is_shown), Some(&title), |c| {
            if let (Some(low), Some(high)) = (gain.low, gain.high) {
                c.line(place(*value, low), place(*value, high), "thin");
            }
            c.marker(center, series.style, radius);
            if !is_valid {
                c.cross(center, 6.5);
            }
        });
    }
    Some(format!("{level}: {}", words.join(", ")))
}

fn csv(view: &View<'_>) -> String {
    let mut csv = Csv::new(&[
        "parameter",
        "parameter_unit",
        "parameter_value",
        "context",
        "level",
        "baseline",
        "metric",
        "unit",
        "gain",
        "low",
        "high",
        "verdict",
        "status",
    ]);
    for metric in swept::metrics(view) {
        for (sweep, group) in swept::drawn(view).flat_map(|s| s.groups.iter().map(move |group| (s, group))) {
            let unit = swept::unit_of(view, group, metric).unwrap_or("1");
            for series in 0..view.series.len() {
                for (value, gain, comparison, row) in gains(view, metric, group, series) {
                    csv.row(&[
                        Field::Text(&sweep.parameter.title()),
                        Field::Text(sweep.parameter.unit()),
                        Field::Number(value),
                        Field::Text(&group.name),
                        Field::Text(&view.series_of(row).name),
                        Field::Text(&view.summary().baseline.value),
                        Field::Text(metric),
                        Field::Text(unit),
                        Field::Number(gain.value),
                        Field::Maybe(gain.low),
                        Field::Maybe(gain.high),
                        Field::Text(verdict_name(&comparison.verdict).0),
                        Field::Text(status_name(row.cell.status)),
                    ]);
                }
            }
        }
    }
    csv.finish()
}
