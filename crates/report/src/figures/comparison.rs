//! Each level against the baseline: ratio and interval on a logarithmic axis, the margin of interest, the verdict.

use analysis::summary::{Comparison, Estimate};

use super::panel::{self, LABEL_SIZE, LEFT, Panel, TOP, WIDTH};
use super::{Drawing, Key};
use crate::encode::{Csv, Field};
use crate::palette::Style;
use crate::svg::{Anchor, Axis, Canvas, Rect, Scale, at, fit};
use crate::text::{self, clean_line};
use crate::view::{Context, Row, View, verdict_name};

const ROW: f64 = 40.0;
const PLOT_RIGHT: f64 = 262.0;
const NOTE_LEFT: f64 = 276.0;
/// Ratios beyond these ends are drawn as arrows.
pub(crate) const WIDEST: (f64, f64) = (0.02, 50.0);

pub(super) fn draw(view: &View<'_>) -> Option<Drawing> {
    let scale = Scale::logarithmic(domain(view)?, (LEFT, PLOT_RIGHT));
    let panels: Vec<Panel> = view
        .contexts
        .iter()
        .filter(|context| context.rows.iter().any(|row| row.comparison.is_some()))
        .map(|context| draw_panel(view, context, scale))
        .collect();
    let (metric, baseline) = (view.metric_title(), view.baseline());
    let margin = text::percent(view.summary().margin_share);
    Some(Drawing {
        title: format!("{} against {baseline}", text::capital(&metric)),
        caption: format!(
            "Ratio of the medians, and its 95 % interval over runs, on a logarithmic axis: at 1 there is no \
             difference. Differences of up to {margin}, the shaded band, do not matter to this study."
        ),
        keys: vec![Key::new("band", &format!("within {margin} of {baseline}"))],
        panels,
        csv: csv(view),
    })
}

/// The range that all panels share; nothing where there is no ratio to draw.
pub(crate) fn domain(view: &View<'_>) -> Option<(f64, f64)> {
    let comparisons = view.rows_with_context().filter_map(|(_, row)| row.comparison);
    range(comparisons.map(|comparison| comparison.ratio), view.summary().margin_share)
}

/// The range that holds ratios, their intervals and the margin; nothing where there is no comparison.
pub(crate) fn range(
    comparisons: impl Iterator<Item = Option<Estimate>>,
    margin_share: f64,
) -> Option<(f64, f64)> {
    let mut comparisons = comparisons.peekable();
    comparisons.peek()?;
    let values = comparisons
        .flatten()
        .flat_map(|ratio| [Some(ratio.value), ratio.low, ratio.high])
        .flatten()
        .filter(|value| value.is_finite() && *value > 0.0)
        .chain([1.0 / (1.0 + margin_share) * 0.95, (1.0 + margin_share) * 1.05]);
    let (low, high) = values.fold((1.0, 1.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
    Some(((low * 0.96).max(WIDEST.0), (high * 1.04).min(WIDEST.1)))
}

fn draw_panel(view: &View<'_>, context: &Context<'_>, scale: Scale) -> Panel {
    let rows: Vec<RatioRow> = context.rows.iter().filter_map(|row| ratio_row(view, row)).collect();
    let ground = Ground {
        scale,
        margin_share: view.summary().margin_share,
        against: format!("ratio to {}", view.baseline()),
        unit: view.metric_unit(),
        more_is_better: view.more_is_better(),
    };
    ground.panel(&context.name, format!("{}: ratios to {}", context.name, view.baseline()), &rows)
}

fn ratio_row(view: &View<'_>, row: &Row<'_>) -> Option<RatioRow> {
    let (comparison, series) = (row.comparison?, view.series_of(row));
    let (verdict, class) = verdict_name(&comparison.verdict);
    Some(RatioRow {
        name: clean_line(&series.name),
        style: series.style,
        ratio: comparison.ratio,
        verdict,
        class,
        is_name_struck: !row.is_believable(),
        is_believable: class != "invalid" && row.is_believable(),
        sentence: describe(view, comparison),
    })
}

/// A level, what was found of it, and whether that may be believed.
pub(crate) struct RatioRow {
    pub(crate) name: String,
    pub(crate) style: Style,
    pub(crate) ratio: Option<Estimate>,
    pub(crate) verdict: &'static str,
    /// The verdict's class.
    pub(crate) class: &'static str,
    pub(crate) is_name_struck: bool,
    pub(crate) is_believable: bool,
    /// The same in words.
    pub(crate) sentence: String,
}

/// What all rows of a figure of ratios stand on.
pub(crate) struct Ground<'a> {
    pub(crate) scale: Scale,
    pub(crate) margin_share: f64,
    /// Such as `ratio to h1s`.
    pub(crate) against: String,
    pub(crate) unit: &'a str,
    pub(crate) more_is_better: bool,
}

impl Ground<'_> {
    /// A panel of rows below a heading.
    #[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
    pub(crate) fn panel(&self, heading: &str, title: String, rows: &[RatioRow]) -> Panel {
        let bottom = TOP + rows.len() as f64 * ROW;
        let mut canvas = Canvas::default();
        panel::heading(&mut canvas, heading);
        self.draw(&mut canvas, bottom);
        for (index, row) in rows.iter().enumerate() {
            draw_row(&mut canvas, row, self.scale, TOP + (index as f64 + 0.5) * ROW);
        }
        let sentences: Vec<&str> = rows.iter().map(|row| row.sentence.as_str()).collect();
        Panel {
            title,
            description: sentences.join("; "),
            class: String::new(),
            width: WIDTH,
            height: bottom + Axis::HEIGHT + 4.0,
            body: canvas.finish(),
        }
    }

    fn draw(&self, canvas: &mut Canvas, bottom: f64) {
        let scale = self.scale;
        let (from, to) = (scale.place(1.0 / (1.0 + self.margin_share)), scale.place(1.0 + self.margin_share));
        canvas.rect(Rect { x: from, y: TOP, width: to - from, height: bottom - TOP }, "band");
        let directions = match (self.unit, self.more_is_better) {
            ("ns", false) => ("faster", "slower"),
            (_, false) => ("less, better", "more, worse"),
            (_, true) => ("less, worse", "more, better"),
        };
        let title = format!("← {} · {} · {} →", directions.0, self.against, directions.1);
        let title = fit(&title, 11.5, WIDTH - LEFT + 40.0);
        let axis = Axis {
            scale,
            top: TOP,
            bottom,
            width: WIDTH,
            title: &title,
            label: &|v| format!("{}×", model::units::three_digits(trim(v))),
        };
        axis.draw(canvas);
        let one = scale.place(1.0);
        canvas.line(at(one, TOP - 4.0), at(one, bottom), "zero");
    }
}

/// Removes the noise of binary fractions from a tick.
pub(crate) fn trim(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn draw_row(canvas: &mut Canvas, row: &RatioRow, scale: Scale, y: f64) {
    canvas.group(&panel::row_class(row.style, row.is_believable), Some(&row.sentence), |c| {
        c.rect(Rect { x: 0.0, y: y - ROW / 2.0, width: WIDTH, height: ROW }, "hit");
        panel::series_label(c, &row.name, row.style, row.is_name_struck, y);
        if let Some(ratio) = row.ratio {
            draw_interval(c, ratio, scale, y);
            c.marker(at(scale.place(ratio.value), y), row.style, 5.5);
            if !row.is_believable {
                c.cross(at(scale.place(ratio.value), y), 7.0);
            }
        }
        let ratio_class = if row.is_believable || row.ratio.is_none() { "value" } else { "value struck" };
        let room = WIDTH - NOTE_LEFT;
        let ratio = fit(&ratio_words(row.ratio, text::NONE), LABEL_SIZE, room);
        c.text(at(NOTE_LEFT, y - 2.0), Anchor::Start, ratio_class, &ratio);
        c.text(at(NOTE_LEFT, y + 13.0), Anchor::Start, &format!("verdict v-{}", row.class), row.verdict);
    });
}

/// A ratio and its interval, such as `0.72× (0.70–0.75)`.
pub(crate) fn ratio_words(ratio: Option<Estimate>, none: &str) -> String {
    ratio.map_or(none.to_owned(), |ratio| {
        let interval = text::ratio_interval(&ratio).map(|i| format!(" ({i})")).unwrap_or_default();
        format!("{}{interval}", text::ratio(ratio.value))
    })
}

/// A whisker from end to end of an interval; an end beyond the axis is an arrow.
pub(crate) fn draw_interval(canvas: &mut Canvas, ratio: Estimate, scale: Scale, y: f64) {
    let (Some(low), Some(high)) = (ratio.low, ratio.high) else { return };
    let (from, to) = (scale.place(low), scale.place(high));
    canvas.line(at(from, y), at(to, y), "whisker");
    for (value, x, outwards) in [(low, from, -1.0), (high, to, 1.0)] {
        if scale.contains(value) {
            canvas.line(at(x, y - 4.0), at(x, y + 4.0), "whisker");
        } else {
            let inner = x - 5.0 * outwards;
            canvas.path(&[at(inner, y - 5.0), at(x, y), at(inner, y + 5.0)], "whisker");
        }
    }
}

fn describe(view: &View<'_>, comparison: &Comparison) -> String {
    let (verdict, _) = verdict_name(&comparison.verdict);
    let level = clean_line(&comparison.level.value);
    let ratio = ratio_words(comparison.ratio, "no ratio");
    format!("{level} against {}: {ratio}, {verdict}", view.baseline())
}

fn csv(view: &View<'_>) -> String {
    let mut csv = Csv::new(&["context", "level", "baseline", "ratio", "low", "high", "verdict", "status"]);
    for (context, row) in view.rows_with_context() {
        let Some(comparison) = row.comparison else { continue };
        csv.row(&[
            Field::Text(&context.name),
            Field::Text(&comparison.level.value),
            Field::Text(&view.summary().baseline.value),
            Field::Maybe(comparison.ratio.map(|ratio| ratio.value)),
            Field::Maybe(comparison.ratio.and_then(|ratio| ratio.low)),
            Field::Maybe(comparison.ratio.and_then(|ratio| ratio.high)),
            Field::Text(verdict_name(&comparison.verdict).0),
            Field::Text(crate::view::status_name(row.cell.status)),
        ]);
    }
    csv.finish()
}
