//! Each level against the baseline: ratio and interval on a logarithmic axis, the margin, the verdict.

use analysis::summary::{Comparison, Estimate};

use super::panel::{self, Panel, TOP};
use super::rows::{self, Rows};
use super::{Csv, Drawing, FigureKind, Key, Style, View, text};
use crate::context::{Context, Row, verdict_name};
use crate::svg::{Anchor, Axis, Canvas, LABEL_SIZE, Rect, Scale, TICK_SIZE, WIDTH, at, text_width};

pub(super) const KIND: FigureKind = FigureKind {
    name: "comparison",
    shows: "ratio to the baseline, interval, verdict",
    by_default: "always",
    needs: "a comparison of two cells",
    suits: |_| true,
    draw,
};

const ROW: f64 = 40.0;
/// A row whose interval is on a line below its ratio.
const HIGH_ROW: f64 = 56.0;
/// Where the text next to the plot begins if it is short, and the leftmost place where it may begin.
const NOTE_LEFT: f64 = 276.0;
const MIN_NOTE_LEFT: f64 = 250.0;
/// Between plot and text.
const GAP: f64 = 14.0;
/// Ratios beyond these ends are drawn as arrows.
const WIDEST: (f64, f64) = (0.02, 50.0);

fn draw(view: &View<'_>) -> Option<Drawing> {
    let domain = domain(view)?;
    let compared = |context: &Context<'_>| -> Vec<RatioRow> {
        context.rows.iter().filter_map(|row| ratio_row(view, row, domain)).collect()
    };
    let found: Vec<(&Context<'_>, Vec<RatioRow>)> =
        view.contexts.iter().map(|context| (context, compared(context))).collect();
    let baseline = view.baseline();
    let ground = Ground {
        layout: Layout::of(found.iter().flat_map(|(_, rows)| rows)),
        domain,
        margin_share: view.summary().margin_share,
        against: format!("ratio to {baseline}"),
        unit: view.metric_unit(),
        more_is_better: view.more_is_better(),
    };
    let panels = found.iter().filter(|(_, rows)| !rows.is_empty());
    let panels =
        panels.map(|(context, rows)| ground.panel(&context.name, &format!("ratios to {baseline}"), rows));
    let margin = text::percent(view.summary().margin_share);
    Some(Drawing {
        title: format!("{} against {baseline}", text::capital(&view.compared_title())),
        caption: format!(
            "Ratio of the {}s with its 95 % interval over runs, on a logarithmic axis: at 1 there is no difference. \
             Differences of up to {margin}, the shaded band, do not matter to this study.",
            view.statistic_noun()
        ),
        keys: vec![Key::new("band", &format!("within {margin} of {baseline}"))],
        panels: panels.collect(),
        csv: csv(view),
    })
}

/// The range that all panels share; `None` without a comparison.
pub(crate) fn domain(view: &View<'_>) -> Option<(f64, f64)> {
    let comparisons = view.rows().filter_map(|row| row.comparison);
    range(comparisons.map(|comparison| comparison.ratio), view.summary().margin_share)
}

/// The range that holds ratios, their intervals and the margin; `None` without a comparison.
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
    // Room for the outermost marks on any axis.
    let room = (high / low).powf(0.04).max(1.04);
    Some(((low / room).max(WIDEST.0), (high * room).min(WIDEST.1)))
}

fn ratio_row(view: &View<'_>, row: &Row<'_>, domain: (f64, f64)) -> Option<RatioRow> {
    let comparison = row.comparison?;
    let (verdict, class) = row.verdict(comparison);
    let ratio = describe_ratio(comparison.ratio, domain);
    Some(RatioRow {
        sentence: format!("{} against {}: {ratio}, {verdict}", row.series.name, view.baseline()),
        name: row.series.name.clone(),
        style: row.series.style,
        ratio: comparison.ratio,
        verdict,
        class,
        is_name_struck: row.is_struck(),
        is_believable: class != "invalid" && row.is_believable(),
    })
}

/// A level with its ratio and verdict.
pub(crate) struct RatioRow {
    pub(crate) name: String,
    pub(crate) style: Style,
    pub(crate) ratio: Option<Estimate>,
    pub(crate) verdict: &'static str,
    /// The verdict's class.
    pub(crate) class: &'static str,
    pub(crate) is_name_struck: bool,
    pub(crate) is_believable: bool,
    /// The description of all this.
    pub(crate) sentence: String,
}

/// The layout of rows of ratios: an interval that does not fit next to its ratio is on the next line.
pub(crate) struct Layout {
    rows: Rows,
    is_high: bool,
    notes_left: f64,
}

impl Layout {
    pub(crate) fn of<'r>(rows: impl Iterator<Item = &'r RatioRow> + Clone) -> Layout {
        let names = text::distinct(rows.clone().map(|row| row.name.clone()));
        let widths =
            rows.map(|row| text_width(&text::ratio_with_interval(row.ratio, text::NONE), LABEL_SIZE));
        let left = (WIDTH - widths.fold(0.0, f64::max)).min(NOTE_LEFT);
        let is_high = left < MIN_NOTE_LEFT;
        Layout {
            rows: Rows::new(&names, if is_high { HIGH_ROW } else { ROW }),
            is_high,
            notes_left: if is_high { NOTE_LEFT } else { left },
        }
    }
}

/// What all rows of a figure of ratios have in common.
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
    pub(crate) fn panel(&self, heading: &str, title: &str, rows: &[RatioRow]) -> Panel {
        let bottom = self.layout.rows.bottom(rows.len());
        let mut canvas = panel::headed(heading);
        self.draw(&mut canvas, bottom);
        for (index, row) in rows.iter().enumerate() {
            self.draw_row(&mut canvas, row, self.layout.rows.middle(index));
        }
        let sentences: Vec<String> = rows.iter().map(|row| row.sentence.clone()).collect();
        Panel::new(format!("{heading}: {title}"), &sentences, bottom + Axis::HEIGHT, canvas)
    }

    fn scale(&self) -> Scale {
        Scale::logarithmic(self.domain, (self.layout.rows.left(), self.layout.notes_left - GAP))
    }

    fn draw(&self, canvas: &mut Canvas, bottom: f64) {
        let scale = self.scale();
        let (from, to) = (scale.place(1.0 / (1.0 + self.margin_share)), scale.place(1.0 + self.margin_share));
        canvas.rect(Rect { x: from, y: TOP, width: to - from, height: bottom - TOP }, "band");
        draw_axis(canvas, scale, bottom, &self.axis_title());
    }

    /// Which direction is better, and the ratio to what if there is room for its name.
    fn axis_title(&self) -> String {
        let (less, more) = match (self.unit, self.more_is_better) {
            ("ns", false) => ("faster", "slower"),
            (_, false) => ("less, better", "more, worse"),
            (_, true) => ("less, worse", "more, better"),
        };
        let title = |against: &str| format!("← {less} · {against} · {more} →");
        let whole = title(&self.against);
        if text_width(&whole, TICK_SIZE) <= WIDTH { whole } else { title("ratio to the baseline") }
    }

    fn draw_row(&self, canvas: &mut Canvas, row: &RatioRow, y: f64) {
        let (scale, rows) = (self.scale(), &self.layout.rows);
        canvas.group(&row.style.row_class(row.is_believable), Some(&row.sentence), |c| {
            rows.draw_hit(c, y);
            rows.draw_name(c, &row.name, row.style, row.is_name_struck, y);
            if let Some(ratio) = row.ratio {
                draw_interval(c, ratio, scale, y);
                rows::draw_mark(c, ratio.value, row.style, scale, y, 5.5);
                if !row.is_believable {
                    c.cross(at(scale.place(ratio.value), y), 7.0);
                }
            }
            self.draw_note(c, row, y);
        });
    }

    fn draw_note(&self, canvas: &mut Canvas, row: &RatioRow, y: f64) {
        let class = if row.is_believable || row.ratio.is_none() { "value" } else { "value struck" };
        let ratio = text::ratio_with_interval(row.ratio, text::NONE);
        let lines: Vec<&str> = match ratio.split_once(' ').filter(|_| self.layout.is_high) {
            Some((value, interval)) => vec![value, interval],
            None => vec![&ratio],
        };
        let mut y = if lines.len() > 1 { y - 10.0 } else { y - 2.0 };
        let left = self.layout.notes_left;
        for line in lines {
            canvas.text(at(left, y), Anchor::Start, class, line);
            y += 15.0;
        }
        canvas.text(at(left, y), Anchor::Start, &format!("verdict v-{}", row.class), row.verdict);
    }
}

/// An axis of ratios, with a line at 1.
pub(crate) fn draw_axis(canvas: &mut Canvas, scale: Scale, bottom: f64, title: &str) {
    // Rounding removes the noise of binary fractions.
    let label = |v: f64| format!("{}×", model::units::three_digits((v * 1e6).round() / 1e6));
    Axis { scale, top: TOP, bottom, title, label: &label }.draw(canvas);
    let one = scale.place(1.0);
    canvas.line(at(one, TOP - 4.0), at(one, bottom), "zero");
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

/// A ratio with its interval, and whether the axis holds it.
pub(crate) fn describe_ratio(ratio: Option<Estimate>, domain: (f64, f64)) -> String {
    let is_beyond = ratio.is_some_and(|ratio| ratio.value < domain.0 || ratio.value > domain.1);
    let beyond = if is_beyond { ", beyond the axis" } else { "" };
    format!("{}{beyond}", text::ratio_with_interval(ratio, "no ratio"))
}

fn csv(view: &View<'_>) -> String {
    let mut csv = Csv::default();
    for (context, row) in view.rows_with_context() {
        let Some(Comparison { ratio, verdict, .. }) = row.comparison else { continue };
        let fields = vec![
            ("baseline", view.summary().baseline.value.as_str().into()),
            ("ratio", ratio.map(|ratio| ratio.value).into()),
            ("low", ratio.and_then(|ratio| ratio.low).into()),
            ("high", ratio.and_then(|ratio| ratio.high).into()),
            ("verdict", verdict_name(verdict).0.into()),
        ];
        csv.cell(&context.name, row, fields);
    }
    csv.finish()
}
