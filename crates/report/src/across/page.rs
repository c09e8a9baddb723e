//! The page of `h123 compare --html`: one file, no script, nothing fetched, in the report's style.

use analysis::across::CellAcross;
use analysis::metrics::{self, Better};
use analysis::summary::Verdict;
use serde::Serialize;

use super::names::Names;
use super::{AcrossInput, Side, alone, caveats, counts, figure, lead, primary, row};
use crate::ReportError;
use crate::answer::style_marker;
use crate::caveats::describe_reason;
use crate::page::{self, FigurePart, NOTHING_DRAWN};
use crate::palette::Style;
use crate::text::{self, clean, clean_line};
use crate::view::verdict_name;

/// Metrics besides the primary one that a page shows of all cells together.
const MOST_EXPLORED: usize = 400;

#[derive(Serialize)]
struct Page {
    title: String,
    css: String,
    question: String,
    a: SidePart,
    b: SidePart,
    lead: String,
    margin: String,
    counts: Vec<(&'static str, &'static str, usize)>,
    cards: Vec<Card>,
    differences: Vec<[String; 3]>,
    alone: Vec<String>,
    caveats: Vec<String>,
    figures: Vec<FigurePart>,
    /// What the figures' template asks for; here none are chosen.
    missing_figures: [(); 0],
    nothing_drawn: &'static str,
    primary: Vec<TableRow>,
    explored: Vec<TableRow>,
    more: usize,
    command: String,
}

/// A result, and its folder where the name does not say it.
#[derive(Serialize)]
struct SidePart {
    name: String,
    path: Option<String>,
    extent: String,
}

/// What is alike in all but the compared factor.
#[derive(Serialize)]
struct Card {
    name: String,
    sentences: Vec<Sentence>,
}

#[derive(Serialize)]
struct Sentence {
    marker: String,
    level: String,
    class: &'static str,
    verdict: &'static str,
    ratio: Option<String>,
    interval: Option<String>,
    because: String,
}

#[derive(Serialize)]
struct TableRow {
    marker: String,
    cell: String,
    metric: String,
    a: String,
    b: String,
    ratio: String,
    verdict: &'static str,
    class: &'static str,
}

/// The page of two results against each other.
///
/// # Errors
/// Only where the template does not fit its data, which is a fault of this crate.
pub fn across_html(input: &AcrossInput<'_>) -> Result<String, ReportError> {
    let (across, names) = (input.across, Names::new(input.across, input.factor));
    let class_of = |word: &'static str| {
        let found = primary(across).map(|cell| verdict_name(&cell.comparison.verdict));
        found.into_iter().find(|(name, _)| *name == word).map_or("open", |(_, class)| class)
    };
    let explored = across.cells.iter().filter(|cell| !cell.comparison.primary);
    let mut explored: Vec<TableRow> = explored.map(|cell| table_row(cell, &names)).collect();
    let more = explored.len().saturating_sub(MOST_EXPLORED);
    explored.truncate(MOST_EXPLORED);
    let (a, b) = (side(&input.a), side(&input.b));
    let page = Page {
        title: format!("{} against {}", b.name, a.name),
        css: page::css(&names.all_series().into_iter().map(|(_, style)| style).collect::<Vec<Style>>()),
        question: clean_line(input.question),
        lead: lead(across, &names),
        margin: text::percent(across.margin_share),
        counts: counts(across).into_iter().map(|(word, count)| (word, class_of(word), count)).collect(),
        cards: cards(primary(across), &names),
        differences: across
            .differences
            .iter()
            .map(|d| [&d.about, &d.a, &d.b].map(|text| clean_line(text)))
            .collect(),
        alone: alone(across),
        caveats: caveats(across),
        figures: figure::draw(across, &names).iter().map(page::figure_part).collect(),
        missing_figures: [],
        nothing_drawn: NOTHING_DRAWN,
        primary: primary(across).map(|cell| table_row(cell, &names)).collect(),
        explored,
        more,
        command: clean(input.command),
        a,
        b,
    };
    page::render_template("across.html", &page)
}

fn side(side: &Side<'_>) -> SidePart {
    SidePart {
        name: clean_line(side.name),
        path: (side.path != side.name).then(|| clean_line(side.path)),
        extent: side.extent(),
    }
}

fn cards<'a>(cells: impl Iterator<Item = &'a CellAcross>, names: &Names) -> Vec<Card> {
    let mut cards: Vec<Card> = Vec::new();
    for cell in cells {
        let (name, sentence) = (names.context(&cell.comparison.context), sentence(cell, names));
        match cards.iter_mut().find(|card| card.name == name) {
            Some(card) => card.sentences.push(sentence),
            None => cards.push(Card { name, sentences: vec![sentence] }),
        }
    }
    cards
}

fn sentence(cell: &CellAcross, names: &Names) -> Sentence {
    let (verdict, class) = verdict_name(&cell.comparison.verdict);
    let because = match &cell.comparison.verdict {
        Verdict::Invalid { because } => describe_reason(&because.join("; ")),
        _ => String::new(),
    };
    let ratio = cell.comparison.ratio.filter(|_| class != "invalid");
    let (level, style) = names.series(&cell.comparison.context);
    Sentence {
        marker: style_marker(style),
        level,
        class,
        verdict,
        ratio: ratio.map(|ratio| text::ratio(ratio.value)),
        interval: ratio.as_ref().and_then(text::ratio_interval),
        because: text::shorten(&because, 400),
    }
}

fn table_row(cell: &CellAcross, names: &Names) -> TableRow {
    let [name, a, b, ratio, _] = row(cell, names);
    let (verdict, class) = verdict_name(&cell.comparison.verdict);
    let (_, style) = names.series(&cell.comparison.context);
    let marker = style_marker(style);
    let metric = metric_words(&cell.comparison.metric);
    TableRow { marker, cell: name, metric, a, b, ratio, verdict, class }
}

/// A metric's title, and which of its directions is better.
fn metric_words(metric: &str) -> String {
    let title = text::metric_title(metric);
    match metrics::find(metric).map(|known| known.better) {
        Some(Better::Lower) => format!("{title} (less is better)"),
        Some(Better::Higher) => format!("{title} (more is better)"),
        Some(Better::Neither) | None => title,
    }
}
