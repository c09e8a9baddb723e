//! What others have published beside what was measured: ratios to the baseline alone, for absolute numbers of other machines
//! cannot be compared.

use analysis::summary::{Comparison, Estimate};
use model::plan::Published;

use super::comparison::draw_interval;
use super::panel::{self, Panel, TOP, WIDTH};
use super::rows::Rows;
use super::{Drawing, Key};
use crate::encode::{Csv, Field};
use crate::svg::{Anchor, Axis, Canvas, Scale, at, fit};
use crate::text::{self, clean_line};
use crate::view::{Context, Row, View, status_name, verdict_name};

const ROW: f64 = 42.0;
/// Height of the line that says which metric and source the rows below are of.
const HEAD: f64 = 20.0;
const PLOT_RIGHT: f64 = 262.0;
const NOTE_LEFT: f64 = 276.0;
/// As far as intervals may widen the axis.
const WIDEST: (f64, f64) = (0.1, 10.0);
/// A name in the caption is cut where it is longer.
const MOST_NAME: usize = 160;
/// Sources named in the caption; the CSV has all.
const MOST_NAMED: usize = 24;

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
    let rows = Rows::of(view, ROW);
    let scale = Scale::logarithmic(domain(view)?, (rows.left(), PLOT_RIGHT));
    let sources = sources(view);
    let draw_panel = |context| draw_panel(view, context, &sources, &rows, scale);
    let panels: Vec<Panel> = view.contexts.iter().filter_map(draw_panel).collect();
    let named = sources.iter().take(MOST_NAMED).enumerate();
    let named: Vec<String> = named.map(|(index, source)| format!("[{}] {source}", index + 1)).collect();
    let more = if sources.len() > MOST_NAMED { "; the others are in the CSV" } else { "" };
    let baseline = view.baseline();
    Some(Drawing {
        title: "Published and measured".to_owned(),
        caption: format!(
            "Ratios to {baseline} alone, for seconds of other machines say nothing here. The mark is what was measured, with \
             its 95 % interval over runs; the upright stroke is what was published, of the metric and in the source that stand \
             above it. Published: {}{more}.",
            named.join("; ")
        ),
        keys: vec![Key::new("published", "published")],
        panels,
        csv: csv(view),
    })
}

/// Where anything that is drawn was published, in the order of their numbers.
fn sources(view: &View<'_>) -> Vec<String> {
    let mut sources: Vec<String> = Vec::new();
    for pair in view.contexts.iter().flat_map(|context| pairs(view, context)) {
        let source = source(pair.published);
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    sources
}

fn source(published: &Published) -> String {
    text::shorten(&clean_line(&published.source), MOST_NAME)
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
    // No stroke lies on the edge.
    let room = (high / low).powf(0.05);
    Some((low / room, high * room))
}

/// What is alike of neighbouring rows: the metric, and the number of its source.
fn head(pair: &Pair<'_, '_>, sources: &[String]) -> String {
    let metric = text::metric_title(&pair.published.metric);
    let number = sources.iter().position(|known| *known == source(pair.published)).unwrap_or_default() + 1;
    format!("{metric}, published in [{number}]")
}

fn draw_panel(
    view: &View<'_>,
    context: &Context<'_>,
    sources: &[String],
    rows: &Rows,
    scale: Scale,
) -> Option<Panel> {
    let mut groups: Vec<(String, Vec<Pair<'_, '_>>)> = Vec::new();
    for pair in pairs(view, context) {
        let head = head(&pair, sources);
        match groups.iter_mut().find(|(known, _)| *known == head) {
            Some((_, pairs)) => pairs.push(pair),
            None => groups.push((head, vec![pair])),
        }
    }
    let count: usize = groups.iter().map(|(_, pairs)| pairs.len()).sum();
    if count == 0 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of groups")]
    let bottom = rows.bottom(count) + groups.len() as f64 * HEAD;
    let mut canvas = Canvas::default();
    panel::heading(&mut canvas, &context.name);
    let label = |v: f64| format!("{}×", model::units::three_digits((v * 1e6).round() / 1e6));
    let title = fit(&format!("ratio to {}, logarithmic", view.baseline()), 11.5, WIDTH);
    Axis { scale, top: TOP, bottom, width: WIDTH, title: &title, label: &label }.draw(&mut canvas);
    let one = scale.place(1.0);
    canvas.line(at(one, TOP - 4.0), at(one, bottom), "zero");
    let (mut description, mut index, mut heads) = (Vec::new(), 0, 0.0);
    for (head, pairs) in &groups {
        let place = at(0.0, rows.top(index) + heads + HEAD - 5.0);
        canvas.text(place, Anchor::Start, "axis-title halo", &fit(head, 11.5, WIDTH));
        heads += HEAD;
        for pair in pairs {
            description.push(draw_pair(view, &mut canvas, pair, rows, scale, rows.middle(index) + heads));
            index += 1;
        }
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

fn draw_pair(
    view: &View<'_>,
    canvas: &mut Canvas,
    pair: &Pair<'_, '_>,
    rows: &Rows,
    scale: Scale,
    y: f64,
) -> String {
    let style = view.series_of(pair.row).style;
    let sentence = describe(view, pair);
    canvas.group(&panel::row_class(style, pair.is_believable()), Some(&sentence), |c| {
        rows.draw_hit(c, y);
        rows.draw_label(c, view, pair.row, y);
        let x = scale.place(pair.published.ratio);
        c.line(at(x, y - 13.0), at(x, y + 13.0), "published");
        if let Some(ratio) = pair.ratio() {
            draw_interval(c, ratio, scale, y);
            let place = at(scale.place(ratio.value), y);
            c.marker(place, style, 5.0);
            if !pair.is_believable() {
                c.cross(place, 7.0);
            }
        }
        let (class, measured) = match pair.ratio() {
            Some(ratio) if pair.is_believable() => ("value", format!("{} here", text::ratio(ratio.value))),
            Some(ratio) => ("value struck", format!("{} here", text::ratio(ratio.value))),
            None => ("note", no_number(pair).to_owned()),
        };
        let published = format!("{} published", text::ratio(pair.published.ratio));
        c.text(at(NOTE_LEFT, y - 3.0), Anchor::Start, class, &measured);
        c.text(at(NOTE_LEFT, y + 13.0), Anchor::Start, "tick", &published);
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
        source(pair.published)
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
