//! The share of values at or below each value: the empirical distribution of every level in one plot.

use analysis::distribution::Distribution;
use model::class::metric_of;

use super::panel::{self, Panel, TOP};
use super::spread::{self, Spread, values_of};
use super::{Context, Csv, Drawing, FigureKind, Row, View};
use crate::svg::{Axis, Canvas, Point, Scale, SideAxis, WIDTH, at, count, float};

pub(super) const KIND: FigureKind = FigureKind {
    name: "ecdf",
    shows: "the cumulative distribution",
    by_default: "if most cells have 20 values or more",
    needs: "values of the metric",
    suits: spread::is_worth_showing,
    draw,
};

const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 8.0;
const HEIGHT: f64 = 210.0;
/// Steps of all curves together, and of each. Steps less than a pixel apart are one.
const MAX_STEPS: usize = 2_000;
const MAX_STEPS_OF_EACH: usize = 200;
const MIN_STEPS_OF_EACH: usize = 16;
/// Where curves have markers.
const MARKS: [(f64, &str); 5] =
    [(0.25, "25 %"), (0.5, "50 %"), (0.75, "75 %"), (0.95, "95 %"), (0.99, "99 %")];
/// Fewer values than this have one marker each.
const FEW: u64 = 13;

/// A value, and the number of values at or below it.
type Step = (f64, u64);

fn draw(view: &View<'_>) -> Option<Drawing> {
    Some(Drawing {
        title: format!("Distribution of {}", view.metric_title()),
        caption: format!(
            "The share of values that are at most the value on the axis. The farther left a curve rises, the \
             smaller its values. Marks are at 25, 50, 75, 95 and 99 %, or at every value if there are few. \
             {} Axes differ between panels.{}",
            spread::describe_values(view),
            if view.plan().classes.is_empty() { "" } else { " Each class of requests has further panels." }
        ),
        keys: Vec::new(),
        panels: with_classes(view).iter().filter_map(|(_, context)| draw_panel(view, context)).collect(),
        csv: csv(view),
    })
}

/// Every context with its metric, followed by its classes.
fn with_classes<'a>(view: &View<'a>) -> Vec<(String, Context<'a>)> {
    let metric = view.summary().metric.as_str();
    let of_context = |context: &Context<'a>| {
        let of_class = |(class, context)| (metric_of(metric, class), context);
        let whole = std::iter::once((metric.to_owned(), context.clone()));
        whole.chain(context.by_class().into_iter().map(of_class)).collect::<Vec<_>>()
    };
    view.contexts.iter().flat_map(of_context).collect()
}

fn draw_panel(view: &View<'_>, context: &Context<'_>) -> Option<Panel> {
    let spread = Spread::of(context, (LEFT, RIGHT))?;
    let bottom = TOP + HEIGHT;
    let shares = Scale::linear((0.0, 1.0), (bottom, TOP));
    let mut canvas = panel::headed(&context.name);
    let label = |share: f64| format!("{:.0} %", share * 100.0);
    SideAxis { scale: shares, left: LEFT, right: RIGHT, label: &label }.draw(&mut canvas, 4);
    spread.draw_axis(view, &mut canvas, bottom, "");
    let (mut description, mut notes) = (Vec::new(), Vec::new());
    for row in &context.rows {
        match values_of(row) {
            Some(values) => description.push(draw_curve(view, &mut canvas, row, values, &spread, shares)),
            None => notes.push(format!("{}: {}", row.series.name, row.status())),
        }
    }
    let height = panel::draw_notes(&mut canvas, &notes, (LEFT, RIGHT), bottom + Axis::HEIGHT);
    description.extend(notes);
    let title = format!("{}: distribution of {}", context.name, view.metric_title());
    Some(Panel::new(title, &description, height, canvas))
}

fn draw_curve(
    view: &View<'_>,
    canvas: &mut Canvas,
    row: &Row<'_>,
    values: &Distribution,
    spread: &Spread,
    shares: Scale,
) -> String {
    let level = &row.series.name;
    let quantile = |q: f64| values.quantile(q).unwrap_or(0.0);
    let within = |(q, share): (f64, &str)| format!("{share} within {}", spread.value(quantile(q)));
    let parts: Vec<String> = [MARKS[1], MARKS[3], MARKS[4]].into_iter().map(within).collect();
    let counted = spread::describe_count(view, row);
    let summary = format!("{level}: {} ({counted}){}", parts.join(", "), row.mark());
    canvas.group(&row.class(), Some(&summary), |c| {
        let steps = steps(values, spread.scale, steps_of_each(view));
        let place = |(value, seen): Step| at(spread.scale.place(value), shares.place(share(seen, values)));
        let mut points: Vec<Point> = Vec::with_capacity(steps.len() + 2);
        points.extend(steps.first().map(|(value, _)| at(spread.scale.place(*value), shares.place(0.0))));
        points.extend(steps.iter().copied().map(place));
        points.push(at(RIGHT, shares.place(1.0)));
        c.steps(&points, row.series.style.line_class());
        for (value, share, label) in marks(values) {
            let place = at(spread.scale.place(value), shares.place(share));
            let title = format!("{level}: {label} within {}", spread.value(value));
            c.group("dot", Some(&title), |c| c.marker(place, row.series.style, 4.0));
        }
        if !row.is_believable() {
            c.cross(at(spread.scale.place(quantile(0.5)), shares.place(0.5)), 6.0);
        }
    });
    summary
}

/// Value, share and label of every mark.
fn marks(values: &Distribution) -> Vec<(f64, f64, String)> {
    if values.count() >= FEW {
        let mark = |(q, label): &(f64, &str)| Some((values.quantile(*q)?, *q, (*label).to_owned()));
        return MARKS.iter().filter_map(mark).collect();
    }
    let mut seen = 0;
    let mark = |(value, count): (f64, u64)| {
        seen += count;
        (value, share(seen, values), format!("{seen} of {}", values.count()))
    };
    values.counted().into_iter().map(mark).collect()
}

fn share(seen: u64, values: &Distribution) -> f64 {
    float(seen) / float(values.count().max(1))
}

fn steps_of_each(view: &View<'_>) -> usize {
    (MAX_STEPS / spread::cells_with_values(view)).clamp(MIN_STEPS_OF_EACH, MAX_STEPS_OF_EACH)
}

/// The steps of a curve. Of steps within `1 / max` of the axis, only the last is kept, so that none is wrong
/// by more than that.
fn steps(values: &Distribution, scale: Scale, max: usize) -> Vec<Step> {
    let (left, right) = scale.range();
    let width = (right - left) / count(max);
    let mut steps: Vec<Step> = Vec::new();
    let (mut seen, mut last) = (0, None);
    for (value, times) in values.counted() {
        seen += times;
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
    let mut csv = Csv::default();
    let max = steps_of_each(view);
    for (metric, context) in &with_classes(view) {
        let Some(spread) = Spread::of(context, (LEFT, RIGHT)) else { continue };
        for row in &context.rows {
            let Some(values) = values_of(row) else { continue };
            for (value, seen) in steps(values, spread.scale, max) {
                let fields = vec![
                    ("metric", metric.as_str().into()),
                    ("unit", spread.unit.as_str().into()),
                    ("value", value.into()),
                    ("values_at_most", seen.into()),
                    ("share_at_most", share(seen, values).into()),
                ];
                csv.cell(&context.name, row, fields);
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
