//! Histograms of all levels of a context, one above the other, with the same axis and bins.

use analysis::distribution::Distribution;

use super::rows::Rows;
use super::spread::{self, Spread, values_of};
use super::{Context, Csv, Drawing, FigureKind, Row, View, text};
use crate::svg::{self, Canvas, Rect, WIDTH, at, float};

pub(super) const KIND: FigureKind = FigureKind {
    name: "histograms",
    shows: "the distribution in bins",
    by_default: "if most cells have 100 values or more",
    needs: "values of the metric",
    suits: spread::is_worth_binning,
    draw,
};

const ROW: f64 = 58.0;
/// The part of a row above its highest bar.
const GAP: f64 = 8.0;
const RIGHT: f64 = WIDTH - 8.0;
const MIN_BINS: usize = 8;
const MAX_BINS: usize = 48;
/// Bars of all panels together.
const MAX_BARS: usize = 720;

/// The bins of a context, of equal width on its axis.
struct Bins {
    spread: Spread,
    /// One more edge than bins, in the metric's unit.
    edges: Vec<f64>,
    /// The share that corresponds to the full height of a row.
    tallest: f64,
}

/// The counts of one cell.
struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Bins {
    fn of(view: &View<'_>, context: &Context<'_>, left: f64) -> Option<Bins> {
        let spread = Spread::of(context, (left, RIGHT))?;
        let most = context.rows.iter().filter_map(values_of).map(Distribution::count).max()?;
        let allowed = (MAX_BARS / spread::cells_with_values(view)).clamp(MIN_BINS, MAX_BINS);
        // The square root of the number of values, as in spreadsheets.
        let root = usize::try_from(most.isqrt()).unwrap_or(MAX_BINS);
        let count = root.clamp(MIN_BINS, allowed);
        let (low, high) = (spread.scale.place(spread.range.0), spread.scale.place(spread.range.1));
        let place = |index: usize| low + (high - low) * svg::count(index) / svg::count(count);
        let edges = (0..=count).map(|index| spread.scale.value_at(place(index))).collect();
        let mut bins = Bins { spread, edges, tallest: 0.0 };
        let values = context.rows.iter().filter_map(values_of);
        bins.tallest = values.map(|values| bins.histogram(values).tallest()).fold(0.0, f64::max);
        Some(bins)
    }

    fn count(&self) -> usize {
        self.edges.len() - 1
    }

    /// The first and the last bin also count values that rounding puts outside all edges.
    fn histogram(&self, values: &Distribution) -> Histogram {
        let mut counts = vec![0; self.count()];
        for (value, count) in values.counted() {
            let place = self.edges.partition_point(|edge| *edge <= value);
            counts[place.saturating_sub(1).min(self.count() - 1)] += count;
        }
        Histogram { counts, total: values.count() }
    }
}

impl Histogram {
    fn share(&self, bin: usize) -> f64 {
        float(self.counts[bin]) / float(self.total.max(1))
    }

    /// The bins with values.
    fn filled(&self) -> impl Iterator<Item = usize> {
        (0..self.counts.len()).filter(|bin| self.counts[*bin] > 0)
    }

    fn tallest(&self) -> f64 {
        (0..self.counts.len()).map(|bin| self.share(bin)).fold(0.0, f64::max)
    }
}

fn draw(view: &View<'_>) -> Option<Drawing> {
    let rows = Rows::of(view, ROW);
    let panel = |context: &Context<'_>| {
        let bins = Bins::of(view, context, rows.left())?;
        let note = format!(" · full height {}", text::percent(bins.tallest));
        Some(rows.panel(
            context,
            &format!("histograms of {}", view.metric_title()),
            |canvas, bottom| bins.spread.draw_axis(view, canvas, bottom, &note),
            |canvas, row, y| {
                let histogram = bins.histogram(values_of(row)?);
                Some(draw_row(view, canvas, row, &rows, &histogram, &bins, y))
            },
        ))
    };
    Some(Drawing {
        title: format!("{}: histograms", text::capital(&view.metric_title())),
        caption: format!(
            "The share of each level's values in each bin. All rows of a panel have the same axis, bins and scale; the full height \
             of a row is given below them. No bar is lower than one pixel. {} Axes differ between panels.",
            spread::describe_values(view)
        ),
        keys: Vec::new(),
        panels: view.contexts.iter().filter_map(panel).collect(),
        csv: csv(view, &rows),
    })
}

fn draw_row(
    view: &View<'_>,
    canvas: &mut Canvas,
    row: &Row<'_>,
    rows: &Rows,
    histogram: &Histogram,
    bins: &Bins,
    y: f64,
) -> String {
    let (level, bottom) = (&row.series.name, y + ROW / 2.0);
    let describe = |bin: usize| {
        let (from, to) = (bins.spread.value(bins.edges[bin]), bins.spread.value(bins.edges[bin + 1]));
        format!("{} of the values from {from} to {to}", text::percent(histogram.share(bin)))
    };
    let fullest = (0..bins.count()).max_by_key(|bin| histogram.counts[*bin]).unwrap_or(0);
    let count = spread::describe_count(view, row);
    let summary = format!("{level}: most often, {} ({count}){}", describe(fullest), row.mark());
    canvas.group(&row.class(), Some(&summary), |c| {
        rows.draw_label(c, row, y);
        c.line(at(rows.left(), bottom), at(RIGHT, bottom), "grid");
        let place = |edge: usize| bins.spread.scale.place(bins.edges[edge]);
        for bin in histogram.filled() {
            let height = ((ROW - GAP) * histogram.share(bin) / bins.tallest).max(1.0);
            let (x, end) = (place(bin), place(bin + 1));
            let title = format!("{level}: {} ({})", describe(bin), text::grouped(histogram.counts[bin]));
            c.group("dot", Some(&title), |c| {
                let width = (end - x - 0.6).max(1.0);
                c.rect(Rect { x, y: bottom - height, width, height }, "bar");
            });
        }
    });
    summary
}

fn csv(view: &View<'_>, rows: &Rows) -> String {
    let mut csv = Csv::default();
    for context in &view.contexts {
        let Some(bins) = Bins::of(view, context, rows.left()) else { continue };
        for row in &context.rows {
            let Some(histogram) = values_of(row).map(|values| bins.histogram(values)) else { continue };
            for bin in histogram.filled() {
                let fields = vec![
                    ("metric", view.summary().metric.as_str().into()),
                    ("unit", bins.spread.unit.as_str().into()),
                    ("from", bins.edges[bin].into()),
                    ("to", bins.edges[bin + 1].into()),
                    ("values", histogram.counts[bin].into()),
                    ("share", histogram.share(bin).into()),
                ];
                csv.cell(&context.name, row, fields);
            }
        }
    }
    csv.finish()
}
