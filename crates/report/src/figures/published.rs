//! What others have published beside what was measured: ratios to the baseline alone, for absolute numbers of other machines
//! cannot be compared.

use analysis::summary::{Comparison, Estimate};
use model::plan::Published;

use super::panel::{self, LABEL_SIZE, LEFT, Panel, TOP, WIDTH};
use super::{Drawing, Key};
use crate::encode::{Csv, Field};
use crate::svg::{Anchor, Axis, Canvas, Rect, Scale, at, fit};
use crate::text::{self, clean_line};
use crate::view::{Context, Row, View, status_name, verdict_name};

const ROW: f64 = 42.0;
const PLOT_RIGHT: f64 = 262.0;
const NOTE_LEFT: f64 = 276.0;
/// As far as intervals may widen the axis.
const WIDEST: (f64, f64) = (0.1, 10.0);
/// A name in the caption is cut where it is longer.
const MOST_NAME: usize = 160;
/// Sources named in the caption; the CSV has all.
const MOST_NAMED: usize = 8;

/// A published figure and the comparison that measured the same.
struct Pair<'v, 'a> {
    published: &'v Published,
    row: &'v Row<'a>,
    measured: &'v Comparison,
}

impl Pair<'_, '_> {
    fn ratio(&self) -> Option<Estimate> {
        self.measured.ratio.filter(|ratio| ratio.value > 0.0)
    }

    /// Whether the published ratio lies in the measured interval; `None` where there is none.
    fn is_within(&self) -> Option<bool> {
        let ratio = self.ratio()?;
        Some((ratio.low?..=ratio.high?).contains(&self.published.ratio))
    }

    fn is_believable(&self) -> bool {
        self.row.is_believable() && verdict_name(&self.measured.verdict).1 != "invalid"
    }
}

/// The published figures of a context, in the order of the study.
fn pairs<'v, 'a>(view: &'v View<'a>, context: &'v Context<'a>) -> Vec<Pair<'v, 'a>> {
    let mut pairs = Vec::new();
    for published in &view.plan().published {
        for row in &context.rows {
            let planned = row.planned.map_or(&[][..], |planned| &planned.levels);
            if !published.levels.iter().all(|level| planned.contains(level)) {
                continue;
            }
            let measured = view.comparison(row.cell.cell, &published.metric);
            pairs.extend(measured.map(|measured| Pair { published, row, measured }));
        }
    }
    pairs
}

/// Whether the study says what others published.
pub(super) fn has_some(view: &View<'_>) -> bool {
    !view.plan().published.is_empty()
}

pub(super) fn draw(view: &View<'_>) -> Option<Drawing> {
    let scale = Scale::logarithmic(domain(view)?, (LEFT, PLOT_RIGHT));
    let panels: Vec<Panel> =
        view.contexts.iter().filter_map(|context| draw_panel(view, context, scale)).collect();
    let mut sources: Vec<String> = Vec::new();
    for pair in view.contexts.iter().flat_map(|context| pairs(view, context)) {
        let source = text::shorten(&clean_line(&pair.published.source), MOST_NAME);
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    let more = if sources.len() > MOST_NAMED { "; …" } else { "" };
    sources.truncate(MOST_NAMED);
    let baseline = view.baseline();
    Some(Drawing {
        title: "Published and measured".to_owned(),
        caption: format!(
            "Ratios to {baseline} alone, for seconds of other machines say nothing here. The mark is what was measured, with \
             its 95 % interval over runs; the upright stroke is what was published. Published: {}{more}.",
            sources.join("; ")
        ),
        keys: vec![Key::new("published", "published")],
        panels,
        csv: csv(view),
    })
}

/// The range that all panels share; nothing where there is no pair.
fn domain(view: &View<'_>) -> Option<(f64, f64)> {
    let pairs = || view.contexts.iter().flat_map(|context| pairs(view, context));
    pairs().next()?;
    let of_pair = |pair: Pair<'_, '_>| {
        let ratio = pair.ratio();
        // Intervals that run out of it are cut at the edge.
        let inside = |end: Option<f64>| end.map(|end| end.clamp(WIDEST.0, WIDEST.1));
        let ends =
            [inside(ratio.and_then(|r| r.low)), inside(ratio.and_then(|r| r.high)), ratio.map(|r| r.value)];
        ends.into_iter().flatten().chain([pair.published.ratio])
    };
    let values = pairs().flat_map(of_pair).filter(|value| value.is_finite() && *value > 0.0);
    let (low, high) = values.fold((0.95, 1.05), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
    Some((low * 0.96, high * 1.04))
}

fn draw_panel(view: &View<'_>, context: &Context<'_>, scale: Scale) -> Option<Panel> {
    let pairs = pairs(view, context);
    if pairs.is_empty() {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
    let bottom = TOP + pairs.len() as f64 * ROW;
    let mut canvas = Canvas::default();
    panel::heading(&mut canvas, &context.name);
    let label = |v: f64| format!("{}×", model::units::three_digits((v * 1e6).round() / 1e6));
    let title = fit(&format!("ratio to {}, logarithmic", view.baseline()), 11.5, WIDTH - LEFT);
    Axis { scale, top: TOP, bottom, width: WIDTH, title: &title, label: &label }.draw(&mut canvas);
    let one = scale.place(1.0);
    canvas.line(at(one, TOP - 4.0), at(one, bottom), "zero");
    let mut description = Vec::new();
    for (index, pair) in pairs.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
        let y = TOP + (index as f64 + 0.5) * ROW;
        description.push(draw_pair(view, &mut canvas, pair, scale, y));
    }
    Some(Panel {
        title: format!("{}: published and measured ratios to {}", context.name, view.baseline()),
        description: description.join("; "),
        class: String::new(),
        width: WIDTH,
        height: bottom + Axis::HEIGHT + 4.0,
        body: canvas.finish(),
    })
}

fn draw_pair(view: &View<'_>, canvas: &mut Canvas, pair: &Pair<'_, '_>, scale: Scale, y: f64) -> String {
    let style = view.series_of(pair.row).style;
    let sentence = describe(view, pair);
    canvas.group(&panel::row_class(style, pair.is_believable()), Some(&sentence), |c| {
        c.rect(Rect { x: 0.0, y: y - ROW / 2.0, width: WIDTH, height: ROW }, "hit");
        panel::row_label(c, view, pair.row, y);
        let x = scale.place(pair.published.ratio);
        c.line(at(x, y - 13.0), at(x, y + 13.0), "published");
        if let Some(ratio) = pair.ratio() {
            if let (Some(low), Some(high)) = (ratio.low, ratio.high) {
                let (from, to) = (scale.place(low), scale.place(high));
                c.line(at(from, y), at(to, y), "whisker");
                for end in [from, to] {
                    c.line(at(end, y - 4.0), at(end, y + 4.0), "whisker");
                }
            }
            let place = at(scale.place(ratio.value), y);
            c.marker(place, style, 5.0);
            if !pair.is_believable() {
                c.cross(place, 7.0);
            }
        }
        let room = WIDTH - NOTE_LEFT;
        let (class, measured) = match pair.ratio() {
            Some(ratio) if pair.is_believable() => ("value", format!("{} here", text::ratio(ratio.value))),
            Some(ratio) => ("value struck", format!("{} here", text::ratio(ratio.value))),
            None => ("note", no_number(pair).to_owned()),
        };
        let published = text::ratio(pair.published.ratio);
        c.text(at(NOTE_LEFT, y - 3.0), Anchor::Start, class, &fit(&measured, LABEL_SIZE, room));
        c.text(
            at(NOTE_LEFT, y + 13.0),
            Anchor::Start,
            "tick",
            &fit(&format!("{published} published"), 11.5, room),
        );
    });
    sentence
}

/// Why there is nothing beside a published figure.
fn no_number(pair: &Pair<'_, '_>) -> &'static str {
    if pair.row.is_believable() { "no ratio here" } else { status_name(pair.row.cell.status) }
}

fn describe(view: &View<'_>, pair: &Pair<'_, '_>) -> String {
    let level = clean_line(&view.series_of(pair.row).name);
    let metric = text::uncapital(&text::metric_title(&pair.published.metric));
    let measured = pair.ratio().map_or(no_number(pair).to_owned(), |ratio| {
        let interval =
            text::ratio_interval(&ratio).map(|interval| format!(" ({interval})")).unwrap_or_default();
        format!("measured {}{interval}", text::ratio(ratio.value))
    });
    let within = match pair.is_within() {
        Some(true) => ", which the interval holds",
        Some(false) => ", outside the interval",
        None => "",
    };
    let mark = if pair.is_believable() { "" } else { "; invalid" };
    format!(
        "{level}, {metric}: {measured}; published {}{within}{mark}; {}",
        text::ratio(pair.published.ratio),
        text::shorten(&clean_line(&pair.published.source), MOST_NAME)
    )
}

fn csv(view: &View<'_>) -> String {
    let mut csv = Csv::new(&[
        "context",
        "level",
        "baseline",
        "metric",
        "published",
        "measured",
        "low",
        "high",
        "within",
        "source",
        "status",
    ]);
    for context in &view.contexts {
        for pair in pairs(view, context) {
            let ratio = pair.ratio();
            csv.row(&[
                Field::Text(&context.name),
                Field::Text(&view.series_of(pair.row).name),
                Field::Text(&view.summary().baseline.value),
                Field::Text(&pair.published.metric),
                Field::Number(pair.published.ratio),
                Field::Maybe(ratio.map(|ratio| ratio.value)),
                Field::Maybe(ratio.and_then(|ratio| ratio.low)),
                Field::Maybe(ratio.and_then(|ratio| ratio.high)),
                pair.is_within()
                    .map_or(Field::Empty, |within| Field::Text(if within { "yes" } else { "no" })),
                Field::Text(&pair.published.source),
                Field::Text(status_name(pair.row.cell.status)),
            ]);
        }
    }
    csv.finish()
}
