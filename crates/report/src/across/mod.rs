//! Two results against each other: a table for the terminal, Markdown for a comment on a pull request, and a page.

mod figure;
mod page;

use analysis::across::{Across, CellAcross};
use analysis::summary::{Estimate, Verdict};
use comfy_table::presets::{ASCII_NO_BORDERS, UTF8_FULL_CONDENSED};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table};
use model::plan::Level;

use crate::Terminal;
use crate::encode::markdown as escaped;
use crate::terminal::{ascii, wrap};
use crate::text::{self, clean_line};
use crate::view::verdict_name;

pub use page::{AcrossInput, across_html};

const HEADER: [&str; 5] = ["cell", "A", "B", "B against A", "verdict"];
/// Columns of numbers, held to the right.
const NUMERIC: [usize; 3] = [1, 2, 3];

/// What `h123 compare` prints: the primary metric of every cell, what else differs, and why verdicts are missing.
pub fn across_terminal(across: &Across, style: Terminal) -> String {
    let width = usize::from(style.width);
    let mut out = String::new();
    wrap(&mut out, &lead(across), "", width);
    let mut table = Table::new();
    table.force_no_tty();
    table.load_style(match style.plain {
        true => ASCII_NO_BORDERS.row_separator(LineStyle::none()),
        false => UTF8_FULL_CONDENSED,
    });
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(style.width).set_header(HEADER);
    for cell in primary(across) {
        table.add_row(row(cell));
    }
    for index in NUMERIC {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    out.push_str(&table.trim_fmt());
    out.push('\n');
    for note in notes(across) {
        out.push('\n');
        wrap(&mut out, &note.head, "", width);
        note.items.iter().for_each(|item| wrap(&mut out, item, "  ", width));
    }
    if style.plain { ascii(&out) } else { out }
}

/// The same for a comment on a pull request: GitHub's Markdown.
pub fn across_markdown(across: &Across) -> String {
    let mut out = format!("### {}\n\n", escaped(&headline(across)));
    out.push_str(&format!(
        "{}\n\n| {} |\n|---|---:|---:|---:|---|\n",
        escaped(&lead(across)),
        HEADER.join(" | ")
    ));
    for cell in primary(across) {
        let cells = row(cell).map(|text| escaped(&text));
        let [name, a, b, ratio, verdict] = cells;
        let strong = matches!(cell.comparison.verdict, Verdict::Better | Verdict::Worse);
        let verdict = if strong { format!("**{verdict}**") } else { verdict };
        out.push_str(&format!("| {name} | {a} | {b} | {ratio} | {verdict} |\n"));
    }
    for note in notes(across) {
        out.push_str(&format!("\n<details><summary>{}</summary>\n\n", escaped(&note.head)));
        note.items.iter().for_each(|item| out.push_str(&format!("- {}\n", escaped(item))));
        out.push_str("\n</details>\n");
    }
    out
}

fn primary(across: &Across) -> impl Iterator<Item = &CellAcross> {
    across.cells.iter().filter(|cell| cell.comparison.primary)
}

fn headline(across: &Across) -> String {
    counts(across).iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// How many cells have which verdict, those that matter most first.
fn counts(across: &Across) -> Vec<(&'static str, usize)> {
    let words = ["worse", "better", "equivalent", "no difference shown", "invalid"].map(|word| {
        let count = primary(across).filter(|cell| verdict_name(&cell.comparison.verdict).0 == word).count();
        (word, count)
    });
    words.into_iter().filter(|(_, count)| *count > 0).collect()
}

fn lead(across: &Across) -> String {
    let title = text::uncapital(&text::metric_title(&across.metric));
    format!(
        "By {title}: the median of each cell in A and in B, and the ratio of B to A with its 95 % interval; differences within \
         {} do not matter.",
        text::percent(across.margin_share)
    )
}

fn row(cell: &CellAcross) -> [String; 5] {
    let estimate = |estimate: Option<Estimate>| {
        estimate.map_or(text::NONE.to_owned(), |e| text::estimate(&cell.unit, &e))
    };
    let ratio = cell.comparison.ratio.map_or(text::NONE.to_owned(), |ratio| {
        let interval = text::ratio_interval(&ratio).map(|i| format!(" [{i}]")).unwrap_or_default();
        format!("{}{interval}", text::ratio(ratio.value))
    });
    let verdict = verdict_name(&cell.comparison.verdict).0.to_owned();
    [label(&cell.comparison.context), estimate(cell.a), estimate(cell.b), ratio, verdict]
}

fn label(levels: &[Level]) -> String {
    clean_line(&levels.iter().map(|level| level.value.as_str()).collect::<Vec<_>>().join(" · "))
}

/// A ratio and its interval, such as `0.72× (0.70–0.75)`.
fn ratio_words(ratio: Option<Estimate>) -> String {
    ratio.map_or(text::NONE.to_owned(), |ratio| {
        let interval = text::ratio_interval(&ratio).map(|i| format!(" ({i})")).unwrap_or_default();
        format!("{}{interval}", text::ratio(ratio.value))
    })
}

struct Note {
    head: String,
    items: Vec<String>,
}

/// What a reader needs to know besides: reasons, doubts, missing cells, and what further metrics say.
fn notes(across: &Across) -> Vec<Note> {
    let reasons = primary(across).filter_map(|cell| match &cell.comparison.verdict {
        Verdict::Invalid { because } => {
            Some(format!("{}: {}", label(&cell.comparison.context), clean_line(&because.join("; "))))
        }
        _ => None,
    });
    let doubts = across.doubts.iter().map(|doubt| {
        format!("{}: {} in A, {} in B", clean_line(&doubt.about), clean_line(&doubt.a), clean_line(&doubt.b))
    });
    let alone = |cells: &[Vec<Level>], side: &str| -> Vec<String> {
        cells.iter().map(|levels| format!("{} is only in {side}", label(levels))).collect()
    };
    let further = across.cells.iter().filter(|cell| !cell.comparison.primary).filter_map(|cell| {
        let (verdict, _) = verdict_name(&cell.comparison.verdict);
        let is_apart = matches!(cell.comparison.verdict, Verdict::Better | Verdict::Worse);
        let title = text::uncapital(&text::metric_title(&cell.comparison.metric));
        let [name, a, b, ratio, _] = row(cell);
        is_apart.then(|| format!("{name}, {title}: {verdict}, {ratio} ({a} to {b})"))
    });
    [
        Note { head: "No verdict, because".to_owned(), items: reasons.collect() },
        Note { head: "What else differs, and may be the cause".to_owned(), items: doubts.collect() },
        Note {
            head: "Not compared".to_owned(),
            items: [alone(&across.only_in_a, "A"), alone(&across.only_in_b, "B")].concat(),
        },
        Note {
            head: "Other metrics that differ (explored, not corrected)".to_owned(),
            items: further.collect(),
        },
    ]
    .into_iter()
    .filter(|note| !note.items.is_empty())
    .collect()
}
