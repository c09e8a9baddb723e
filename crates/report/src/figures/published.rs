//! Published ratios next to the measured ones. Only ratios to the baseline, because absolute numbers of other
//! machines cannot be compared.

use analysis::summary::{Comparison, Estimate};
use model::plan::Published;

use super::comparison::{draw_axis, draw_interval};
use super::panel::{self, Panel};
use super::rows::Rows;
use super::{Csv, Drawing, FigureKind, Key, View};
use crate::context::{Context, Row, verdict_name};
use crate::svg::{Anchor, Axis, Canvas, Scale, TICK_SIZE, WIDTH, at, count, fit};
use crate::text::{self, clean_line};

pub(super) const KIND: FigureKind = FigureKind {
    name: "published",
    shows: "published ratios next to the measured ones",
    by_default: "if the study has `[[published]]`",
    needs: "[[published]] in the study, for cells that it measures",
    suits: |view| !view.plan().published.is_empty(),
    draw,
};

const ROW: f64 = 42.0;
/// Height of the line with the metric and source of the rows below it.
const HEAD: f64 = 20.0;
const PLOT_RIGHT: f64 = 262.0;
const NOTE_LEFT: f64 = 276.0;
/// Intervals widen the axis at most to these ends.
const WIDEST: (f64, f64) = (0.1, 10.0);
/// A longer name is cut in the caption.
const MAX_NAME: usize = 160;
/// Sources named in the caption; the CSV has all.
const MAX_NAMED: usize = 24;

/// A published ratio and the comparison that measured the same.
struct Pair<'v, 'a> {
    published: &'v Published,
    /// The published ratio to the baseline.
    of_baseline: f64,
    row: &'v Row<'a>,
    measured: &'v Comparison,
}

impl Pair<'_, '_> {
    fn ratio(&self) -> Option<Estimate> {
        self.measured.ratio.filter(|ratio| ratio.value > 0.0)
    }

    /// Whether the published ratio is in the measured interval; `None` without an interval.
    fn is_within(&self) -> Option<bool> {
        let ratio = self.ratio()?;
        Some((ratio.low?..=ratio.high?).contains(&self.of_baseline))
    }

    fn is_believable(&self) -> bool {
        self.row.is_believable() && verdict_name(&self.measured.verdict).1 != "invalid"
    }

    /// Why there is no measured ratio.
    fn reason(&self) -> &'static str {
        if self.row.is_believable() { "no ratio here" } else { self.row.status() }
    }

    /// Where it was published.
    fn source(&self) -> String {
        text::shorten(&clean_line(&self.published.source), MAX_NAME)
    }

    /// The metric and the number of the source: what neighbouring rows have in common.
    fn head(&self, sources: &[String]) -> String {
        let metric = text::metric_title(&self.published.metric);
        let number = sources.iter().position(|known| *known == self.source()).unwrap_or_default() + 1;
        format!("{metric}, published in [{number}]")
    }

    fn describe(&self) -> String {
        let (level, published) = (&self.row.series.name, text::ratio(self.of_baseline));
        let metric = text::uncapital(&text::metric_title(&self.published.metric));
        let measured = match self.ratio() {
            Some(ratio) => format!("measured {}", text::ratio_with_interval(Some(ratio), "")),
            None => self.reason().to_owned(),
        };
        let within = match self.is_within() {
            Some(true) => ", inside the interval",
            Some(false) => ", outside the interval",
            None => "",
        };
        let mark = if self.is_believable() { "" } else { "; invalid" };
        format!("{level}, {metric}: {measured}; published {published}{within}{mark}; {}", self.source())
    }
}

/// The published ratios of a context, in the order of the study.
fn pairs<'v, 'a>(view: &'v View<'a>, context: &'v Context<'a>) -> Vec<Pair<'v, 'a>> {
    let mut pairs = Vec::new();
    for published in &view.plan().published {
        // Other values are in the section of the report.
        let Some(of_baseline) = published.ratio_to_baseline() else { continue };
        for row in &context.rows {
            let planned = row.planned.map_or(&[][..], |planned| &planned.levels);
            if published.levels.iter().all(|level| planned.contains(level)) {
                let measured = view.comparison(row.cell.cell, &published.metric);
                pairs.extend(measured.map(|measured| Pair { published, of_baseline, row, measured }));
            }
        }
    }
    pairs
}

fn draw(view: &View<'_>) -> Option<Drawing> {
    let rows = Rows::of(view, ROW);
    let scale = Scale::logarithmic(domain(view)?, (rows.left(), PLOT_RIGHT));
    let sources = sources(view);
    let named = sources.iter().take(MAX_NAMED).enumerate();
    let named: Vec<String> = named.map(|(index, source)| format!("[{}] {source}", index + 1)).collect();
    let more = if sources.len() > MAX_NAMED { "; the others are in the CSV" } else { "" };
    let draw_panel = |context| draw_panel(view, context, &sources, &rows, scale);
    Some(Drawing {
        title: "Published and measured".to_owned(),
        caption: format!(
            "Ratios to {}, because times of other machines cannot be compared. The marker is the measured ratio with its 95 % \
             interval over runs, the vertical stroke the published one. The metric and the source are above. Published: \
             {}{more}.",
            view.baseline(),
            named.join("; ")
        ),
        keys: vec![Key::new("published", "published")],
        panels: view.contexts.iter().filter_map(draw_panel).collect(),
        csv: csv(view),
    })
}

/// The sources of all published ratios, in the order of their numbers.
fn sources(view: &View<'_>) -> Vec<String> {
    let pairs = view.contexts.iter().flat_map(|context| pairs(view, context));
    text::distinct(pairs.map(|pair| pair.source()))
}

/// The range that all panels share; `None` without a pair.
fn domain(view: &View<'_>) -> Option<(f64, f64)> {
    let pairs = || view.contexts.iter().flat_map(|context| pairs(view, context));
    pairs().next()?;
    let of_pair = |pair: Pair<'_, '_>| {
        let ratio = pair.ratio();
        // Intervals that exceed it are cut at the edge.
        let inside = |end: Option<f64>| end.map(|end| end.clamp(WIDEST.0, WIDEST.1));
        let ends =
            [inside(ratio.and_then(|r| r.low)), inside(ratio.and_then(|r| r.high)), ratio.map(|r| r.value)];
        ends.into_iter().flatten().chain([pair.of_baseline])
    };
    let values = pairs().flat_map(of_pair).filter(|value| value.is_finite() && *value > 0.0);
    let (low, high) = values.fold((0.95, 1.05), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
    // No stroke is on the edge.
    let room = (high / low).powf(0.05);
    Some((low / room, high * room))
}

fn draw_panel(
    view: &View<'_>,
    context: &Context<'_>,
    sources: &[String],
    rows: &Rows,
    scale: Scale,
) -> Option<Panel> {
    let groups = text::by_key(pairs(view, context).into_iter().map(|pair| (pair.head(sources), pair)));
    if groups.is_empty() {
        return None;
    }
    let number = groups.iter().map(|(_, pairs)| pairs.len()).sum();
    let bottom = rows.bottom(number) + count(groups.len()) * HEAD;
    let mut canvas = panel::headed(&context.name);
    draw_axis(&mut canvas, scale, bottom, &format!("ratio to {}, logarithmic", view.baseline()));
    let (mut description, mut index, mut heads) = (Vec::new(), 0, 0.0);
    for (head, pairs) in &groups {
        let place = at(0.0, rows.bottom(index) + heads + HEAD - 5.0);
        canvas.text(place, Anchor::Start, "axis-title halo", &fit(head, TICK_SIZE, WIDTH));
        heads += HEAD;
        for pair in pairs {
            description.push(draw_pair(&mut canvas, pair, rows, scale, rows.middle(index) + heads));
            index += 1;
        }
    }
    let title = format!("{}: published and measured ratios to {}", context.name, view.baseline());
    Some(Panel::new(title, &description, bottom + Axis::HEIGHT, canvas))
}

fn draw_pair(canvas: &mut Canvas, pair: &Pair<'_, '_>, rows: &Rows, scale: Scale, y: f64) -> String {
    let style = pair.row.series.style;
    let sentence = pair.describe();
    canvas.group(&style.row_class(pair.is_believable()), Some(&sentence), |c| {
        rows.draw_hit(c, y);
        rows.draw_label(c, pair.row, y);
        let x = scale.place(pair.of_baseline);
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
            None => ("note", pair.reason().to_owned()),
        };
        let published = format!("{} published", text::ratio(pair.of_baseline));
        c.text(at(NOTE_LEFT, y - 3.0), Anchor::Start, class, &measured);
        c.text(at(NOTE_LEFT, y + 13.0), Anchor::Start, "tick", &published);
    });
    sentence
}

fn csv(view: &View<'_>) -> String {
    let mut csv = Csv::default();
    for context in &view.contexts {
        for pair in pairs(view, context) {
            let ratio = pair.ratio();
            let fields = vec![
                ("baseline", view.summary().baseline.value.as_str().into()),
                ("metric", pair.published.metric.as_str().into()),
                ("published", pair.of_baseline.into()),
                ("measured", ratio.map(|ratio| ratio.value).into()),
                ("low", ratio.and_then(|ratio| ratio.low).into()),
                ("high", ratio.and_then(|ratio| ratio.high).into()),
                ("within", pair.is_within().map(|within| if within { "yes" } else { "no" }).into()),
                ("source", pair.published.source.as_str().into()),
            ];
            csv.cell(&context.name, pair.row, fields);
        }
    }
    csv.finish()
}
