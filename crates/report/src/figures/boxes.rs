//! Box plots: quartiles, Tukey's fences at 1.5 interquartile ranges, and the values outside them.
//!
//! J. W. Tukey, *Exploratory Data Analysis*, 1977, section 2C; quartiles by definition 7 of Hyndman and Fan
//! (1996).

use analysis::distribution::Distribution;

use super::rows::Rows;
use super::spread::{self, Spread, values_of};
use super::{Context, Csv, Drawing, FigureKind, Row, View, text};
use crate::svg::{Canvas, Rect, at, count};

pub(super) const KIND: FigureKind = FigureKind {
    name: "boxes",
    shows: "quartiles and outliers",
    by_default: "if most cells have 20 values or more",
    needs: "values of the metric",
    suits: spread::is_worth_showing,
    draw,
};

const ROW: f64 = 36.0;
/// The distance of the fences from the box in interquartile ranges.
const FENCE: f64 = 1.5;
/// Outliers closer to each other than this are one mark; the more boxes there are, the fewer marks each has.
const MARK: f64 = 4.0;
/// The marks of all boxes together, if all of their rows were full.
const MAX_MARKS: f64 = 1_200.0;

/// The quartiles, whiskers and outliers of a cell.
#[derive(Clone, Debug, PartialEq)]
struct Tukey {
    quartiles: [f64; 3],
    /// The lowest and the highest value inside the fences.
    whiskers: (f64, f64),
    /// The values outside, with their counts.
    outliers: Vec<(f64, u64)>,
}

impl Tukey {
    fn of(values: &Distribution) -> Option<Tukey> {
        let [q1, median, q3] = [0.25, 0.5, 0.75].map(|q| values.quantile(q));
        let quartiles = [q1?, median?, q3?];
        let reach = FENCE * (quartiles[2] - quartiles[0]);
        let fences = quartiles[0] - reach..=quartiles[2] + reach;
        let counted = values.counted();
        let mut inside = counted.iter().map(|(value, _)| *value).filter(|value| fences.contains(value));
        let low = inside.next().unwrap_or(quartiles[0]);
        let high = inside.next_back().unwrap_or(low);
        // A quartile may lie between two values; the whisker never ends inside the box.
        let whiskers = (low.min(quartiles[0]), high.max(quartiles[2]));
        let outliers = counted.into_iter().filter(|(value, _)| !fences.contains(value)).collect();
        Some(Tukey { quartiles, whiskers, outliers })
    }

    fn outlying(&self, is_wanted: impl Fn(f64) -> bool) -> u64 {
        self.outliers.iter().filter(|(value, _)| is_wanted(*value)).map(|(_, count)| count).sum()
    }
}

fn draw(view: &View<'_>) -> Option<Drawing> {
    let median = |row: &Row<'_>| Some(text::value(&row.primary()?.unit, values_of(row)?.quantile(0.5)?));
    let rows = Rows::of(view, ROW).with_values(view.rows().filter_map(median));
    let panel = |context: &Context<'_>| {
        let spread = Spread::of(context, rows.plot())?;
        Some(rows.panel(
            context,
            &format!("quartiles of {}", view.metric_title()),
            |canvas, bottom| spread.draw_axis(view, canvas, bottom, ""),
            |canvas, row, y| {
                let tukey = values_of(row).and_then(Tukey::of)?;
                Some(draw_row(view, canvas, row, &rows, &tukey, &spread, y))
            },
        ))
    };
    Some(Drawing {
        title: format!("{}: quartiles and outliers", text::capital(&view.metric_title())),
        caption: format!(
            "The box holds the middle half of the values and is divided at the median. Whiskers reach to the last value inside \
             Tukey's fences, {FENCE} interquartile ranges from the box; rings are the values outside. {} Axes differ between \
             panels, and some do not begin at 0.",
            spread::describe_values(view)
        ),
        keys: Vec::new(),
        panels: view.contexts.iter().filter_map(panel).collect(),
        csv: csv(view),
    })
}

fn draw_row(
    view: &View<'_>,
    canvas: &mut Canvas,
    row: &Row<'_>,
    rows: &Rows,
    tukey: &Tukey,
    spread: &Spread,
    y: f64,
) -> String {
    let level = &row.series.name;
    let [q1, median, q3] = tukey.quartiles.map(|value| spread.value(value));
    let (low, high) = (spread.value(tukey.whiskers.0), spread.value(tukey.whiskers.1));
    let summary = format!(
        "{level}: median {median}, middle half {q1} to {q3}, whiskers {low} to {high}, {} outside ({}){}",
        text::grouped(tukey.outlying(|_| true)),
        spread::describe_count(view, row),
        row.mark()
    );
    canvas.group(&row.class(), Some(&summary), |c| {
        rows.draw_hit(c, y);
        rows.draw_label(c, row, y);
        let place = |value: f64| spread.scale.place(value);
        let [q1, median, q3] = tukey.quartiles.map(place);
        let (low, high) = (place(tukey.whiskers.0), place(tukey.whiskers.1));
        for (from, to) in [(low, q1), (q3, high)] {
            c.line(at(from, y), at(to, y), "thin");
        }
        for end in [low, high] {
            c.line(at(end, y - 5.0), at(end, y + 5.0), "thin");
        }
        c.rect(Rect { x: q1, y: y - 10.0, width: (q3 - q1).max(1.0), height: 20.0 }, "box");
        c.line(at(median, y - 10.0), at(median, y + 10.0), "median");
        draw_outliers(c, level, tukey, spread, mark_width(view, rows), y);
        rows.draw_value(c, row, &spread.value(tukey.quartiles[1]), y);
    });
    summary
}

fn mark_width(view: &View<'_>, rows: &Rows) -> f64 {
    let (left, right) = rows.plot();
    ((right - left) * count(spread::cells_with_values(view)) / MAX_MARKS).clamp(MARK, 5.0 * MARK)
}

/// A ring for each place that has outliers, regardless of their number.
fn draw_outliers(canvas: &mut Canvas, level: &str, tukey: &Tukey, spread: &Spread, width: f64, y: f64) {
    let bin = |value: f64| (spread.scale.place(value) / width).floor();
    for near in tukey.outliers.chunk_by(|(one, _), (other, _)| bin(*one) == bin(*other)) {
        let (Some((first, _)), Some((last, _))) = (near.first(), near.last()) else { continue };
        let count: u64 = near.iter().map(|(_, count)| count).sum();
        let (from, to) = (spread.value(*first), spread.value(*last));
        let values = match count {
            1 => from,
            _ => format!("{} values, {from} to {to}", text::grouped(count)),
        };
        let x = f64::midpoint(spread.scale.place(*first), spread.scale.place(*last));
        canvas.group("dot", Some(&format!("{level}, outside the fences: {values}")), |c| {
            c.ring(at(x, y), 2.6);
        });
    }
}

fn csv(view: &View<'_>) -> String {
    let mut csv = Csv::default();
    for (context, row) in view.rows_with_context() {
        let Some((values, metric)) = values_of(row).zip(row.primary()) else { continue };
        let Some(tukey) = Tukey::of(values) else { continue };
        let [q1, median, q3] = tukey.quartiles;
        let fields = vec![
            ("metric", view.summary().metric.as_str().into()),
            ("unit", metric.unit.as_str().into()),
            ("runs", row.pooled.map_or(0, |pooled| pooled.runs).into()),
            ("values", values.count().into()),
            ("least", values.quantile(0.0).into()),
            ("lower_whisker", tukey.whiskers.0.into()),
            ("lower_quartile", q1.into()),
            ("median", median.into()),
            ("upper_quartile", q3.into()),
            ("upper_whisker", tukey.whiskers.1.into()),
            ("most", values.quantile(1.0).into()),
            ("outliers_below", tukey.outlying(|value| value < q1).into()),
            ("outliers_above", tukey.outlying(|value| value > q3).into()),
        ];
        csv.cell(&context.name, row, fields);
    }
    csv.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_those_of_r() {
        // R: boxplot.stats(c(1, 2, 3, 4, 5, 6, 7, 8, 9, 30)) has whiskers 1 and 9 and the outlier 30;
        // quartiles here are those of quantile(type = 7).
        let tukey = Tukey::of(&(1..=9).chain([30]).map(f64::from).collect()).unwrap();
        assert_eq!(tukey.quartiles, [3.25, 5.5, 7.75]);
        assert_eq!(tukey.whiskers, (1.0, 9.0));
        assert_eq!(tukey.outliers, [(30.0, 1)]);
        assert_eq!((tukey.outlying(|v| v < 3.25), tukey.outlying(|v| v > 7.75)), (0, 1));
    }

    #[test]
    fn a_box_of_one_value_has_no_length() {
        let tukey = Tukey::of(&std::iter::once(7.0).collect()).unwrap();
        assert_eq!((tukey.quartiles, tukey.whiskers), ([7.0; 3], (7.0, 7.0)));
        assert!(tukey.outliers.is_empty());
        assert_eq!(Tukey::of(&Distribution::default()), None);
    }

    #[test]
    fn a_whisker_never_ends_inside_its_box() {
        let tukey = Tukey::of(&[0.0, 10.0, 10.0, 10.0, 10.5, 100.0].into_iter().collect()).unwrap();
        assert!(
            tukey.whiskers.0 <= tukey.quartiles[0] && tukey.whiskers.1 >= tukey.quartiles[2],
            "{tukey:?}"
        );
    }
}
