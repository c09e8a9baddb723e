//! Two results against each other: a table for the terminal, Markdown for a comment on a pull request, and a page.

mod figure;
mod names;
mod page;

use analysis::across::{Across, CellAcross, CellCaveats};
use analysis::metrics::{self, Better};
use analysis::summary::{Estimate, Measured, Verdict};
use comfy_table::presets::{ASCII_NO_BORDERS, UTF8_FULL_CONDENSED};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table};
use model::plan::Level;

use crate::Terminal;
use crate::caveats::describe_reason;
use crate::encode::markdown as escaped;
use crate::terminal::{ascii, wrap};
use crate::text::{self, clean_line};
use crate::view::verdict_name;

use names::Names;

pub use page::across_html;

const HEADER: [&str; 5] = ["cell", "A", "B", "B against A", "verdict"];
/// Columns of numbers, held to the right.
const NUMERIC: [usize; 3] = [1, 2, 3];

/// One of the two results.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// A name that the other one does not have, such as the last part of its folder.
    pub name: &'a str,
    /// Its folder as whoever asked wrote it.
    pub path: &'a str,
    /// When it was measured.
    pub measured: Option<Measured>,
    /// How many runs are stored.
    pub runs: u32,
}

impl Side<'_> {
    /// The folder, and the name where the folder does not end with it.
    fn words(&self) -> String {
        let words = if self.path.trim_end_matches('/').ends_with(self.name) {
            self.path.to_owned()
        } else {
            format!("{} ({})", self.name, self.path)
        };
        clean_line(&words)
    }

    /// How much was measured and when, such as `100 runs, 2026-11-22 13:05–13:07 UTC`.
    fn extent(&self) -> String {
        let runs = text::count(self.runs as usize, "run", "runs");
        self.measured.map_or(runs.clone(), |measured| format!("{runs}, {}", text::dates(&measured)))
    }
}

/// What is shown of two results.
#[derive(Clone, Copy, Debug)]
pub struct AcrossInput<'a> {
    /// What was found.
    pub across: &'a Across,
    /// The factor that the studies compare within, whose levels have the styles of their figures.
    pub factor: &'a str,
    /// The question of both studies.
    pub question: &'a str,
    /// Result A.
    pub a: Side<'a>,
    /// Result B.
    pub b: Side<'a>,
    /// The command that makes the page again.
    pub command: &'a str,
}

/// What `h123 compare` prints: the primary metric of every cell, what else differs, and why verdicts are missing.
pub fn across_terminal(input: &AcrossInput<'_>, style: Terminal) -> String {
    let (across, names) = (input.across, Names::new(input.across, input.factor));
    let width = usize::from(style.width);
    let mut out = String::new();
    wrap(&mut out, &format!("A: {}, {}", input.a.words(), input.a.extent()), "", width);
    wrap(&mut out, &format!("B: {}, {}", input.b.words(), input.b.extent()), "", width);
    wrap(&mut out, &lead(across, &names), "", width);
    let mut table = Table::new();
    table.force_no_tty();
    table.load_style(match style.plain {
        true => ASCII_NO_BORDERS.row_separator(LineStyle::none()),
        false => UTF8_FULL_CONDENSED,
    });
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(style.width).set_header(HEADER);
    for cell in primary(across) {
        table.add_row(row(cell, &names));
    }
    for index in NUMERIC {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    out.push_str(&table.trim_fmt());
    out.push('\n');
    for note in notes(across, &names) {
        out.push('\n');
        wrap(&mut out, &note.head, "", width);
        note.items.iter().for_each(|item| wrap(&mut out, item, "  ", width));
    }
    if style.plain { ascii(&out) } else { out }
}

/// The same for a comment on a pull request: GitHub's Markdown.
pub fn across_markdown(input: &AcrossInput<'_>) -> String {
    let (across, names) = (input.across, Names::new(input.across, input.factor));
    let mut out = format!("### {}\n\n", escaped(&headline(across)));
    out.push_str(&format!(
        "A: {} ({}), B: {} ({})\n\n{}\n\n| {} |\n|---|---:|---:|---:|---|\n",
        escaped(&input.a.words()),
        escaped(&input.a.extent()),
        escaped(&input.b.words()),
        escaped(&input.b.extent()),
        escaped(&lead(across, &names)),
        HEADER.join(" | ")
    ));
    for cell in primary(across) {
        let cells = row(cell, &names).map(|text| escaped(&text));
        let [name, a, b, ratio, verdict] = cells;
        let strong = matches!(cell.comparison.verdict, Verdict::Better | Verdict::Worse);
        let verdict = if strong { format!("**{verdict}**") } else { verdict };
        out.push_str(&format!("| {name} | {a} | {b} | {ratio} | {verdict} |\n"));
    }
    for note in notes(across, &names) {
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

/// How to read a ratio of a metric: which side of 1 is better.
fn direction(metric: &str, unit: &str) -> &'static str {
    match (metrics::find(metric).map(|known| known.better), unit) {
        (Some(Better::Lower), "ns") => "below 1× B is faster",
        (Some(Better::Lower), _) => "below 1× B is better, for it has less",
        (Some(Better::Higher), _) => "above 1× B is better, for it has more",
        (Some(Better::Neither) | None, _) => "neither side of 1× is better",
    }
}

/// The unit of the primary metric, as far as any cell has it.
fn unit(across: &Across) -> &str {
    primary(across).map(|cell| cell.unit.as_str()).find(|unit| !unit.is_empty()).unwrap_or_default()
}

fn lead(across: &Across, names: &Names) -> String {
    let title = text::uncapital(&text::metric_title(&across.metric));
    let shared = names.shared_words().map(|words| format!(" {words}")).unwrap_or_default();
    format!(
        "By {title}: the median of each cell in A and in B, and the ratio of B to A with its 95 % interval; {}. Differences \
         within {} do not matter.{shared}",
        direction(&across.metric, unit(across)),
        text::percent(across.margin_share),
    )
}

fn row(cell: &CellAcross, names: &Names) -> [String; 5] {
    let estimate = |estimate: Option<Estimate>| {
        estimate.map_or(text::NONE.to_owned(), |e| text::estimate(&cell.unit, &e))
    };
    let ratio = cell.comparison.ratio.map_or(text::NONE.to_owned(), |ratio| {
        let interval = text::ratio_interval(&ratio).map(|i| format!(" [{i}]")).unwrap_or_default();
        format!("{}{interval}", text::ratio(ratio.value))
    });
    let verdict = verdict_name(&cell.comparison.verdict).0.to_owned();
    [names.cell(&cell.comparison.context), estimate(cell.a), estimate(cell.b), ratio, verdict]
}

/// Cells that one of the two lacks, by all their levels.
fn alone(across: &Across) -> Vec<String> {
    let of = |cells: &[Vec<Level>], side: &str| -> Vec<String> {
        cells.iter().map(|levels| format!("{} is only in {side}", names::full(levels))).collect()
    };
    [of(&across.only_in_a, "A"), of(&across.only_in_b, "B")].concat()
}

/// The checks by which compared cells have caveats in their own result, one line each.
fn caveats(across: &Across) -> Vec<String> {
    let line = |found: &CellCaveats| {
        let title = crate::caveats::check_title(&found.check);
        format!("{title}: {} in A, {} in B", found.cells_in_a, found.cells_in_b)
    };
    let cells = text::count(primary(across).count(), "cell", "cells");
    let lines: Vec<String> = across.caveats.iter().map(line).collect();
    match lines.is_empty() {
        true => lines,
        false => std::iter::once(format!("of {cells} that both have")).chain(lines).collect(),
    }
}

struct Note {
    head: String,
    items: Vec<String>,
}

/// What a reader needs to know besides: reasons, differences, missing cells, and what further metrics say.
fn notes(across: &Across, names: &Names) -> Vec<Note> {
    let reasons = primary(across).filter_map(|cell| match &cell.comparison.verdict {
        Verdict::Invalid { because } => Some(format!(
            "{}: {}",
            names.cell(&cell.comparison.context),
            describe_reason(&because.join("; "))
        )),
        _ => None,
    });
    let differences = across.differences.iter().map(|caveat| {
        format!(
            "{}: {} in A, {} in B",
            clean_line(&caveat.about),
            clean_line(&caveat.a),
            clean_line(&caveat.b)
        )
    });
    let further = across.cells.iter().filter(|cell| !cell.comparison.primary).filter_map(|cell| {
        let (verdict, _) = verdict_name(&cell.comparison.verdict);
        let is_apart = matches!(cell.comparison.verdict, Verdict::Better | Verdict::Worse);
        let title = text::uncapital(&text::metric_title(&cell.comparison.metric));
        let [name, a, b, ratio, _] = row(cell, names);
        is_apart.then(|| format!("{name}, {title}: {verdict}, {ratio} ({a} to {b})"))
    });
    [
        Note { head: "No verdict, because".to_owned(), items: reasons.collect() },
        Note { head: "Cells that have caveats in their own result".to_owned(), items: caveats(across) },
        Note { head: "What else differs, and may be the cause".to_owned(), items: differences.collect() },
        Note { head: "Not compared".to_owned(), items: alone(across) },
        Note {
            head: "Other metrics that differ (explored, not corrected)".to_owned(),
            items: further.collect(),
        },
    ]
    .into_iter()
    .filter(|note| !note.items.is_empty())
    .collect()
}
