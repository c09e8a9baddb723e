//! The page of `h123 compare --html`: one file, no script, nothing fetched, in the report's style.

use analysis::across::{Across, CellAcross};
use analysis::summary::Verdict;
use model::plan::Level;
use serde::Serialize;

use super::{counts, figure, label, lead, primary, row};
use crate::ReportError;
use crate::page::{self, FigurePart};
use crate::text::{self, clean, clean_line};
use crate::view::verdict_name;

/// Metrics besides the primary one that a page shows of all cells together.
const MOST_EXPLORED: usize = 400;

/// What the page is made of.
#[derive(Clone, Copy, Debug)]
pub struct AcrossInput<'a> {
    /// What was found.
    pub across: &'a Across,
    /// The question of both studies.
    pub question: &'a str,
    /// What result A is called, such as its folder.
    pub a: &'a str,
    /// What result B is called.
    pub b: &'a str,
    /// The command that makes the page again.
    pub command: &'a str,
}

#[derive(Serialize)]
struct Page {
    title: String,
    css: String,
    question: String,
    a: String,
    b: String,
    lead: String,
    margin: String,
    counts: Vec<(&'static str, &'static str, usize)>,
    sentences: Vec<Sentence>,
    doubts: Vec<[String; 3]>,
    alone: Vec<String>,
    figures: Vec<FigurePart>,
    /// What the figures' template asks for; here none are chosen.
    missing_figures: [(); 0],
    primary: Vec<TableRow>,
    explored: Vec<TableRow>,
    more: usize,
    command: String,
}

#[derive(Serialize)]
struct Sentence {
    cell: String,
    class: &'static str,
    verdict: &'static str,
    ratio: Option<String>,
    interval: Option<String>,
    because: String,
}

#[derive(Serialize)]
struct TableRow {
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
    let across = input.across;
    let class_of = |word: &'static str| {
        let found = primary(across).map(|cell| verdict_name(&cell.comparison.verdict));
        found.into_iter().find(|(name, _)| *name == word).map_or("open", |(_, class)| class)
    };
    let mut explored: Vec<TableRow> =
        across.cells.iter().filter(|cell| !cell.comparison.primary).map(table_row).collect();
    let more = explored.len().saturating_sub(MOST_EXPLORED);
    explored.truncate(MOST_EXPLORED);
    let alone = |cells: &[Vec<Level>], side: &str| -> Vec<String> {
        cells.iter().map(|levels| format!("{} is only in {side}", label(levels))).collect()
    };
    let (a, b) = (clean_line(input.a), clean_line(input.b));
    let page = Page {
        title: format!("{b} against {a}"),
        css: page::css(),
        question: clean_line(input.question),
        lead: lead(across),
        margin: text::percent(across.margin_share),
        counts: counts(across).into_iter().map(|(word, count)| (word, class_of(word), count)).collect(),
        sentences: primary(across).map(sentence).collect(),
        doubts: across.doubts.iter().map(|d| [&d.about, &d.a, &d.b].map(|text| clean_line(text))).collect(),
        alone: [alone(&across.only_in_a, "A"), alone(&across.only_in_b, "B")].concat(),
        figures: figure::draw(across).iter().map(page::figure_part).collect(),
        missing_figures: [],
        primary: primary(across).map(table_row).collect(),
        explored,
        more,
        command: clean(input.command),
        a,
        b,
    };
    page::render_template("across.html", &page)
}

fn sentence(cell: &CellAcross) -> Sentence {
    let (verdict, class) = verdict_name(&cell.comparison.verdict);
    let because = match &cell.comparison.verdict {
        Verdict::Invalid { because } => clean_line(&because.join("; ")),
        _ => String::new(),
    };
    let ratio = cell.comparison.ratio.filter(|_| class != "invalid");
    Sentence {
        cell: label(&cell.comparison.context),
        class,
        verdict,
        ratio: ratio.map(|ratio| text::ratio(ratio.value)),
        interval: ratio.as_ref().and_then(text::ratio_interval),
        because: text::shorten(&because, 400),
    }
}

fn table_row(cell: &CellAcross) -> TableRow {
    let [name, a, b, ratio, _] = row(cell);
    let (verdict, class) = verdict_name(&cell.comparison.verdict);
    TableRow { cell: name, metric: text::metric_title(&cell.comparison.metric), a, b, ratio, verdict, class }
}
