//! The share of values at or below each value: every variant's empirical distribution in one plot.

use analysis::distribution::Distribution;

use super::Drawing;
use super::panel::{self, Panel, TOP, WIDTH};
use super::spread::{self, Spread, values_of};
use crate::encode::{Csv, Field};
use crate::svg::{Anchor, Axis, Canvas, Point, Scale, SideAxis, at};
use crate::text::clean_line;
use crate::view::{Context, Row, View, status_name};

const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 8.0;
const HEIGHT: f64 = 210.0;
const NOTE: f64 = 17.0;
/// Steps drawn of all curves together, and of each: what differs by less than a pixel is one step.
const MOST_STEPS: usize = 2_000;
const MOST_STEPS_OF_EACH: usize = 200;
const FEWEST_STEPS_OF_EACH: usize = 16;
/// Where curves have markers.
const MARKS: [(f64, &str); 5] =
    [(0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (0.95, "95 %"), (0.99, "99 %")];
/// Fewer values than this have one marker each.
const FEW: u64 = 13;

/// A value, and how many are at or below it.
type Step = (f64, u64);

pub(super) fn draw(view: &View<'_>) -> Option<Drawing> {
    let panels: Vec<Panel> = view.contexts.iter().filter_map(|context| draw_panel(view, context)).collect();
    if panels.is_empty() {
        return None;
    }
    let metric = view.metric_title();
    Some(Drawing {
        title: format!("How {metric} is distributed"),
        caption: format!(
            "The share of values that are at most as large as the value below: the farther left a curve rises, the \
             smaller its values. Marks are at 25, 50, 75, 95 and 99 %, or at every value where there are few. {} Axes \
             differ between panels.",
            spread::what_is_shown(view)
        ),
        keys: Vec::new(),
        panels,
        csv: csv(view),
    })
}

fn draw_panel(view: &View<'_>, context: &Context<'_>) -> Option<Panel> {
    let spread = Spread::of(context, (LEFT, RIGHT))?;
    let bottom = TOP + HEIGHT;
    let shares = Scale::linear((0.0, 1.0), (bottom, TOP));
    let mut canvas = Canvas::default();
    panel::heading(&mut canvas, &context.name);
    let label = |share: f64| format!("{:.0} %", share * 100.0);
    SideAxis { scale: shares, left: LEFT, right: RIGHT, label: &label }.draw(&mut canvas, 4);
    spread.draw_axis(view, &mut canvas, TOP, bottom, "");
    let (mut description, mut notes) = (Vec::new(), Vec::new());
    for row in &context.rows {
        let level = clean_line(&view.series_of(row).name);
        match values_of(row) {
            Some(values) => description.push(draw_curve(view, &mut canvas, row, values, &spread, shares)),
            None => notes.push(format!("{level}: {}", status_name(row.cell.status))),
        }
    }
    let mut height = bottom + Axis::HEIGHT + 4.0;
    for note in &notes {
        canvas.text(
            at(LEFT, height + 10.0),
            Anchor::Start,
            "note",
            &crate::svg::fit(note, 12.5, RIGHT - LEFT),
        );
        height += NOTE;
    }
    description.extend(notes);
    Some(Panel {
        title: format!("{}: distribution of {}", context.name, view.metric_title()),
        description: description.join("; "),
        class: String::new(),
        width: WIDTH,
        height,
        body: canvas.finish(),
    })
}

fn draw_curve(
    view: &View<'_>,
    canvas: &mut Canvas,
    row: &Row<'_>,
    values: &Distribution,
    spread: &Spread,
    shares: Scale,
) -> String {
    let series = view.series_of(row);
    let level = clean_line(&series.name);
    let believable = row.is_believable();
    let quantile = |q: f64| values.quantile(q).unwrap_or(0.0);
    let within = |(q, share): (f64, &str)| format!("{share} within {}", spread.value(quantile(q)));
    let parts: Vec<String> = [MARKS[1], MARKS[3], MARKS[4]].into_iter().map(within).collect();
    let mark = if believable { "" } else { ", invalid" };
    let summary = format!("{level}: {} ({}){mark}", parts.join(", "), spread::count_words(view, row));
    canvas.group(&panel::row_class(series.style, believable), Some(&summary), |c| {
        let steps = steps(values, spread.scale, steps_of_each(view));
        let place = |(value, seen): Step| at(spread.scale.place(value), shares.place(share(seen, values)));
        let mut points: Vec<Point> = Vec::with_capacity(steps.len() + 2);
        points.extend(steps.first().map(|(value, _)| at(spread.scale.place(*value), shares.place(0.0))));
        points.extend(steps.iter().copied().map(place));
        points.push(at(RIGHT, shares.place(1.0)));
        c.steps(&points, series.style.line_class());
        for (value, share, words) in marks(values) {
            let place = at(spread.scale.place(value), shares.place(share));
            let title = format!("{level}: {words} within {}", spread.value(value));
            c.group("dot", Some(&title), |c| c.marker(place, series.style, 4.0));
        }
        if !believable {
            c.cross(at(spread.scale.place(quantile(0.5)), shares.place(0.5)), 6.0);
        }
    });
    summary
}

/// Value, share and its words of every mark.
fn marks(values: &Distribution) -> Vec<(f64, f64, String)> {
    if values.count() >= FEW {
        let mark = |(q, words): &(f64, &str)| Some((values.quantile(*q)?, *q, (*words).to_owned()));
        return MARKS.iter().filter_map(mark).collect();
    }
    let mut seen = 0;
    let mark = |(value, count): (f64, u64)| {
        seen += count;
        (value, share(seen, values), format!("{seen} of {}", values.count()))
    };
    values.counted().into_iter().map(mark).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a share for a drawing")]
fn share(seen: u64, values: &Distribution) -> f64 {
    seen as f64 / values.count().max(1) as f64
}

fn steps_of_each(view: &View<'_>) -> usize {
    let curves = view.rows_with_context().filter(|(_, row)| values_of(row).is_some()).count();
    (MOST_STEPS / curves.max(1)).clamp(FEWEST_STEPS_OF_EACH, MOST_STEPS_OF_EACH)
}

/// The steps of a curve: of those that would share a place on the axis the last, so that none is wrong by more than its
/// width.
fn steps(values: &Distribution, scale: Scale, most: usize) -> Vec<Step> {
    let (left, right) = scale.range();
    #[expect(clippy::cast_precision_loss, reason = "at most MOST_STEPS")]
    let width = (right - left) / most as f64;
    let mut steps: Vec<Step> = Vec::new();
    let (mut seen, mut last) = (0, None);
    for (value, count) in values.counted() {
        seen += count;
        let bin = ((scale.place(value) - left) / width).floor();
        if last == Some(bin) {
            steps.pop();
        }
        steps.push((value, seen));
        last = Some(bin);
    }
    steps
}

fn csv(view: &View<'_>) -> String {
    let columns =
        ["context", "level", "metric", "unit", "value", "values_at_most", "share_at_most", "status"];
    let mut csv = Csv::new(&columns);
    let most = steps_of_each(view);
    for context in &view.contexts {
        let Some(spread) = Spread::of(context, (LEFT, RIGHT)) else { continue };
        for row in &context.rows {
            let Some(values) = values_of(row) else { continue };
            for (value, seen) in steps(values, spread.scale, most) {
                csv.row(&[
                    Field::Text(&context.name),
                    Field::Text(&view.series_of(row).name),
                    Field::Text(&view.summary().metric),
                    Field::Text(&spread.unit),
                    Field::Number(value),
                    Field::Whole(seen),
                    Field::Number(share(seen, values)),
                    Field::Text(status_name(row.cell.status)),
                ]);
            }
        }
    }
    csv.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_values_are_few_steps_and_the_last_is_all_of_them() {
        let values: Distribution = (1..=1_000_000).map(f64::from).collect();
        let scale = Scale::logarithmic((1.0, 1e6), (0.0, 300.0));
        let steps = steps(&values, scale, 100);
        assert!(steps.len() <= 101 && steps.len() > 60, "{}", steps.len());
        assert_eq!(steps.last().unwrap().1, 1_000_000);
        assert!(steps.is_sorted());
    }

    #[test]
    fn few_values_keep_every_step() {
        let values: Distribution = [3.0, 1.0, 2.0].into_iter().collect();
        let scale = Scale::linear((1.0, 3.0), (0.0, 300.0));
        assert_eq!(steps(&values, scale, 100), [(1.0, 1), (2.0, 2), (3.0, 3)]);
        assert_eq!(marks(&values)[1], (2.0, 2.0 / 3.0, "2 of 3".to_owned()));
    }
}
