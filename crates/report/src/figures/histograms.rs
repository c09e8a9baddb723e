//! Histograms of all levels of a context, one above the other, with the same axis and the same bins.

use analysis::distribution::Distribution;

use super::Drawing;
use super::panel::{self, Panel, TOP, WIDTH};
use super::rows::Rows;
use super::spread::{self, Spread, values_of};
use crate::encode::{Csv, Field};
use crate::svg::{Axis, Canvas, Rect, at};
use crate::text::{self, clean_line};
use crate::view::{Context, Row, View, status_name};

const ROW: f64 = 58.0;
/// What a row's bars do not fill.
const GAP: f64 = 8.0;
const RIGHT: f64 = WIDTH - 8.0;
const FEWEST_BINS: usize = 8;
const MOST_BINS: usize = 48;
/// Bars of all panels together.
const MOST_BARS: usize = 720;

/// The bins of a context: of equal width on its axis.
struct Bins {
    spread: Spread,
    /// One edge more than bins, in the metric's unit.
    edges: Vec<f64>,
    /// The share that the height of a whole row is.
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
        let most = context.rows.iter().filter_map(|row| values_of(row)).map(Distribution::count).max()?;
        let rows = view.rows_with_context().filter(|(_, row)| values_of(row).is_some()).count();
        let allowed = (MOST_BARS / rows.max(1)).clamp(FEWEST_BINS, MOST_BINS);
        // The square root of the number of values, as spreadsheets do: few values make few bins.
        let root = usize::try_from(most.isqrt()).unwrap_or(MOST_BINS);
        let count = root.clamp(FEWEST_BINS, allowed);
        let (low, high) = (spread.scale.place(spread.range.0), spread.scale.place(spread.range.1));
        #[expect(clippy::cast_precision_loss, reason = "at most MOST_BINS")]
        let place = |index: usize| low + (high - low) * index as f64 / count as f64;
        let edges = (0..=count).map(|index| spread.scale.value_at(place(index))).collect();
        let mut bins = Bins { spread, edges, tallest: 0.0 };
        let values = context.rows.iter().filter_map(values_of);
        bins.tallest = values.map(|values| bins.histogram(values).tallest()).fold(0.0, f64::max);
        Some(bins)
    }

    fn count(&self) -> usize {
        self.edges.len() - 1
    }

    /// The first and the last bin hold what rounding puts outside of all edges.
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
    #[expect(clippy::cast_precision_loss, reason = "a share for a drawing")]
    fn share(&self, bin: usize) -> f64 {
        self.counts[bin] as f64 / self.total.max(1) as f64
    }

    fn tallest(&self) -> f64 {
        (0..self.counts.len()).map(|bin| self.share(bin)).fold(0.0, f64::max)
    }
}

pub(super) fn draw(view: &View<'_>) -> Option<Drawing> {
    let rows = Rows::of(view, ROW);
    let panels: Vec<Panel> =
        view.contexts.iter().filter_map(|context| draw_panel(view, context, &rows)).collect();
    if panels.is_empty() {
        return None;
    }
    Some(Drawing {
        title: format!("{}: histograms", text::capital(&view.metric_title())),
        caption: format!(
            "One above the other, with the same axis and the same bins: how many of its values each level has in each \
             bin, as a share. The scale is the same in all rows of a panel, and below them stands what the height of a row \
             is; no bar is lower than a pixel. {} \
             Axes differ between panels.",
            spread::what_is_shown(view)
        ),
        keys: Vec::new(),
        panels,
        csv: csv(view, &rows),
    })
}

fn draw_panel(view: &View<'_>, context: &Context<'_>, rows: &Rows) -> Option<Panel> {
    let bins = Bins::of(view, context, rows.left())?;
    let counted = |row: &Row<'_>| values_of(row).map(|values| bins.histogram(values));
    let histograms: Vec<Option<Histogram>> = context.rows.iter().map(counted).collect();
    let bottom = rows.bottom(context.rows.len());
    let mut canvas = Canvas::default();
    panel::heading(&mut canvas, &context.name);
    let full = format!(" · full height {}", text::percent(bins.tallest));
    bins.spread.draw_axis(view, &mut canvas, TOP, bottom, &full);
    let mut description = Vec::new();
    for ((index, row), histogram) in context.rows.iter().enumerate().zip(&histograms) {
        let y = rows.middle(index);
        description.push(match histogram {
            Some(histogram) => draw_row(view, &mut canvas, row, rows, histogram, &bins, y),
            None => rows.draw_status(&mut canvas, view, row, y),
        });
    }
    Some(Panel {
        title: format!("{}: histograms of {}", context.name, view.metric_title()),
        description: description.join("; "),
        class: String::new(),
        width: WIDTH,
        height: bottom + Axis::HEIGHT + 4.0,
        body: canvas.finish(),
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
    let (style, believable, bottom) = (view.series_of(row).style, row.is_believable(), y + ROW / 2.0);
    let level = clean_line(&view.series_of(row).name);
    let mark = if believable { "" } else { ", invalid" };
    let words = |bin: usize| {
        let (from, to) = (bins.spread.value(bins.edges[bin]), bins.spread.value(bins.edges[bin + 1]));
        format!("{} of its values from {from} to {to}", text::percent(histogram.share(bin)))
    };
    let fullest = (0..bins.count()).max_by_key(|bin| histogram.counts[*bin]).unwrap_or(0);
    let summary =
        format!("{level}: most often, {} ({}){mark}", words(fullest), spread::count_words(view, row));
    canvas.group(&panel::row_class(style, believable), Some(&summary), |c| {
        rows.draw_label(c, view, row, y);
        c.line(at(rows.left(), bottom), at(RIGHT, bottom), "grid");
        let place = |edge: usize| bins.spread.scale.place(bins.edges[edge]);
        for bin in (0..bins.count()).filter(|bin| histogram.counts[*bin] > 0) {
            let height = ((ROW - GAP) * histogram.share(bin) / bins.tallest).max(1.0);
            let (x, end) = (place(bin), place(bin + 1));
            let title = format!("{level}: {} ({})", words(bin), text::grouped(histogram.counts[bin]));
            c.group("dot", Some(&title), |c| {
                let width = (end - x - 0.6).max(1.0);
                c.rect(Rect { x, y: bottom - height, width, height }, "bar");
            });
        }
    });
    summary
}

fn csv(view: &View<'_>, rows: &Rows) -> String {
    let mut csv =
        Csv::new(&["context", "level", "metric", "unit", "from", "to", "values", "share", "status"]);
    for context in &view.contexts {
        let Some(bins) = Bins::of(view, context, rows.left()) else { continue };
        for row in &context.rows {
            let Some(histogram) = values_of(row).map(|values| bins.histogram(values)) else { continue };
            for bin in (0..bins.count()).filter(|bin| histogram.counts[*bin] > 0) {
                csv.row(&[
                    Field::Text(&context.name),
                    Field::Text(&view.series_of(row).name),
                    Field::Text(&view.summary().metric),
                    Field::Text(&bins.spread.unit),
                    Field::Number(bins.edges[bin]),
                    Field::Number(bins.edges[bin + 1]),
                    Field::Whole(histogram.counts[bin]),
                    Field::Number(histogram.share(bin)),
                    Field::Text(status_name(row.cell.status)),
                ]);
            }
        }
    }
    csv.finish()
}
