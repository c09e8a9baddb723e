//! Each level against the baseline: ratio and interval on a logarithmic axis, the margin of interest, the verdict.

use analysis::summary::{Comparison, Estimate};

use super::panel::{self, LABEL_SIZE, Panel, TOP, WIDTH};
use super::rows::{self, Rows};
use super::{Drawing, Key};
use crate::encode::{Csv, Field};
use crate::palette::Style;
use crate::svg::{Anchor, Axis, Canvas, Rect, Scale, at, text_width};
use crate::text::{self, clean_line};
use crate::view::{Context, Row, View, verdict_name};

const ROW: f64 = 40.0;
/// A row whose interval has a line of its own.
const HIGH_ROW: f64 = 56.0;
/// Where the words beside the plot begin, if they are short; they may begin as far left as that.
const NOTE_LEFT: f64 = 276.0;
const LEAST_NOTE_LEFT: f64 = 250.0;
/// Between plot and words.
const GAP: f64 = 14.0;
/// Ratios beyond these ends are drawn as arrows.
pub(crate) const WIDEST: (f64, f64) = (0.02, 50.0);

pub(super) fn draw(view: &View<'_>) -> Option<Drawing> {
    let domain = domain(view)?;
    let compared = |context: &Context<'_>| -> Vec<RatioRow> {
        context.rows.iter().filter_map(|row| ratio_row(view, row)).collect()
    };
    let found: Vec<(&Context<'_>, Vec<RatioRow>)> =
        view.contexts.iter().map(|context| (context, compared(context))).collect();
    let ground = Ground {
        layout: Layout::of(found.iter().flat_map(|(_, rows)| rows)),
        domain,
        margin_share: view.summary().margin_share,
        against: format!("ratio to {}", view.baseline()),
        unit: view.metric_unit(),
        more_is_better: view.more_is_better(),
    };
    let panels = found.iter().filter(|(_, rows)| !rows.is_empty()).map(|(context, rows)| {
        let title = format!("{}: ratios to {}", context.name, view.baseline());
        ground.panel(&context.name, title, rows)
    });
    let panels: Vec<Panel> = panels.collect();
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
    // Room for the outermost marks, however far the axis reaches.
    let room = (high / low).powf(0.04).max(1.04);
    Some(((low / room).max(WIDEST.0), (high * room).min(WIDEST.1)))
}

fn ratio_row(view: &View<'_>, row: &Row<'_>) -> Option<RatioRow> {
    let (comparison, series) = (row.comparison?, view.series_of(row));
    let (verdict, class) = row.verdict(comparison);
    Some(RatioRow {
        name: clean_line(&series.name),
        style: series.style,
        ratio: comparison.ratio,
        verdict,
        class,
        is_name_struck: row.is_struck(),
        is_believable: class != "invalid" && row.is_believable(),
        sentence: describe(view, row, comparison),
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

/// How rows of ratios are laid out: an interval that does not fit beside its ratio has a line of its own.
pub(crate) struct Layout {
    rows: Rows,
    is_high: bool,
    notes_left: f64,
}

impl Layout {
    pub(crate) fn of<'r>(rows: impl Iterator<Item = &'r RatioRow> + Clone) -> Layout {
        let mut names: Vec<String> = Vec::new();
        for row in rows.clone() {
            if !names.contains(&row.name) {
                names.push(row.name.clone());
            }
        }
        let words = rows.map(|row| text_width(&ratio_words(row.ratio, text::NONE), LABEL_SIZE));
        let left = (WIDTH - words.fold(0.0, f64::max)).min(NOTE_LEFT);
        let is_high = left < LEAST_NOTE_LEFT;
        Layout {
            rows: Rows::new(&names, if is_high { HIGH_ROW } else { ROW }),
            is_high,
            notes_left: if is_high { NOTE_LEFT } else { left },
        }
    }
}

/// What all rows of a figure of ratios stand on.
pub(crate) struct Ground<'a> {
    pub(crate) layout: Layout,
    /// The range of the axis.
    pub(crate) domain: (f64, f64),
    pub(crate) margin_share: f64,
    /// Such as `ratio to h1s`.
    pub(crate) against: String,
    pub(crate) unit: &'a str,
    pub(crate) more_is_better: bool,
}

impl Ground<'_> {
    /// A panel of rows below a heading.
    pub(crate) fn panel(&self, heading: &str, title: String, rows: &[RatioRow]) -> Panel {
        let bottom = self.layout.rows.bottom(rows.len());
        let mut canvas = Canvas::default();
        panel::heading(&mut canvas, heading);
        self.draw(&mut canvas, bottom);
        for (index, row) in rows.iter().enumerate() {
            self.draw_row(&mut canvas, row, self.layout.rows.middle(index));
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

    fn scale(&self) -> Scale {
        Scale::logarithmic(self.domain, (self.layout.rows.left(), self.layout.notes_left - GAP))
    }

    fn draw(&self, canvas: &mut Canvas, bottom: f64) {
        let scale = self.scale();
        let (from, to) = (scale.place(1.0 / (1.0 + self.margin_share)), scale.place(1.0 + self.margin_share));
        canvas.rect(Rect { x: from, y: TOP, width: to - from, height: bottom - TOP }, "band");
        let title = self.axis_title();
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

    /// Which way is better, and the ratio to what, if there is room for its name.
    fn axis_title(&self) -> String {
        let (less, more) = match (self.unit, self.more_is_better) {
            ("ns", false) => ("faster", "slower"),
            (_, false) => ("less, better", "more, worse"),
            (_, true) => ("less, worse", "more, better"),
        };
        let title = |against: &str| format!("← {less} · {against} · {more} →");
        let whole = title(&self.against);
        if text_width(&whole, 11.5) <= WIDTH { whole } else { title("ratio to the baseline") }
    }

    fn draw_row(&self, canvas: &mut Canvas, row: &RatioRow, y: f64) {
        let (scale, rows) = (self.scale(), &self.layout.rows);
        canvas.group(&panel::row_class(row.style, row.is_believable), Some(&row.sentence), |c| {
            rows.draw_hit(c, y);
            rows.draw_name(c, &row.name, row.style, row.is_name_struck, y);
            if let Some(ratio) = row.ratio {
                draw_interval(c, ratio, scale, y);
                rows::draw_mark(c, ratio.value, row.style, scale, y, 5.5);
                if !row.is_believable {
                    c.cross(at(scale.place(ratio.value), y), 7.0);
                }
            }
            self.draw_words(c, row, y);
        });
    }

    fn draw_words(&self, canvas: &mut Canvas, row: &RatioRow, y: f64) {
        let class = if row.is_believable || row.ratio.is_none() { "value" } else { "value struck" };
        let ratio = ratio_words(row.ratio, text::NONE);
        let lines: Vec<&str> = match ratio.split_once(' ').filter(|_| self.layout.is_high) {
            Some((value, interval)) => vec![value, interval],
            None => vec![&ratio],
        };
        let mut y = if lines.len() > 1 { y - 10.0 } else { y - 2.0 };
        for line in lines {
            canvas.text(at(self.layout.notes_left, y), Anchor::Start, class, line);
            y += 15.0;
        }
        canvas.text(
            at(self.layout.notes_left, y),
            Anchor::Start,
            &format!("verdict v-{}", row.class),
            row.verdict,
        );
    }
}

/// Removes the noise of binary fractions from a tick.
pub(crate) fn trim(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
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
    for (value, x) in [(low, from), (high, to)] {
        if scale.contains(value) {
            canvas.line(at(x, y - 4.0), at(x, y + 4.0), "whisker");
        }
    }
    rows::draw_ends(canvas, (low, high), scale, y, "whisker");
}

/// What is said of a ratio that the axis does not hold; nothing of others.
pub(crate) fn beyond(ratio: Option<Estimate>, domain: (f64, f64)) -> &'static str {
    match ratio {
        Some(ratio) if ratio.value < domain.0 || ratio.value > domain.1 => ", beyond the axis",
        _ => "",
    }
}

fn describe(view: &View<'_>, row: &Row<'_>, comparison: &Comparison) -> String {
    let (verdict, _) = row.verdict(comparison);
    let level = clean_line(&comparison.level.value);
    let ratio = ratio_words(comparison.ratio, "no ratio");
    let beyond = domain(view).map_or("", |domain| beyond(comparison.ratio, domain));
    format!("{level} against {}: {ratio}{beyond}, {verdict}", view.baseline())
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
