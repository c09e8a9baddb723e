//! Two results against each other: a table for the terminal, Markdown for a pull request, and a page.

mod figure;
mod names;
mod page;

use analysis::across::{Across, CellAcross, CellCaveats};
use analysis::metrics::{self, Better};
use analysis::summary::{Estimate, RunPeriod, Verdict};
use model::plan::Level;

use crate::Terminal;
use crate::caveats::describe_reason;
use crate::context::verdict_name;
use crate::encode::markdown as escaped;
use crate::markdown;
use crate::terminal::{ascii, empty_table, finish_table, wrap};
use crate::text::{self, clean_line};

use names::Names;

pub use page::across_html;

/// The room of the table of cells in Markdown.
const MARKDOWN_TABLE_CHARS: usize = 40_000;
const HEADER: [&str; 5] = ["cell", "A", "B", "B against A", "verdict"];
/// Columns of numbers, aligned right.
const NUMERIC: [usize; 3] = [1, 2, 3];

/// One of the two results.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// A name that distinguishes it from the other result, such as the last part of its folder.
    pub name: &'a str,
    /// Its folder as the user wrote it.
    pub path: &'a str,
    /// When it was measured.
    pub measured: Option<RunPeriod>,
    /// How many runs are stored.
    pub runs: u32,
}

impl Side<'_> {
    /// The folder, preceded by the name if the folder does not end with it.
    fn describe(&self) -> String {
        let described = if self.path.trim_end_matches('/').ends_with(self.name) {
            self.path.to_owned()
        } else {
            format!("{} ({})", self.name, self.path)
        };
        clean_line(&described)
    }

    /// The number of runs and the time of measurement, such as `100 runs, 2026-11-22 13:05–13:07 UTC`.
    fn extent(&self) -> String {
        let runs = text::count(self.runs as usize, "run", "runs");
        self.measured.map_or(runs.clone(), |measured| format!("{runs}, {}", text::dates(&measured)))
    }
}

/// A comparison of two results.
#[derive(Clone, Copy, Debug)]
pub struct AcrossInput<'a> {
    /// The comparison.
    pub across: &'a Across,
    /// The factor that the studies compare, whose levels have the styles of the figures.
    pub factor: &'a str,
    /// The question of both studies.
    pub question: &'a str,
    /// Result A.
    pub a: Side<'a>,
    /// Result B.
    pub b: Side<'a>,
    /// The command that repeats the comparison.
    pub command: &'a str,
}

/// The output of `h123 compare`: the primary metric of every cell, other differences, and reasons for missing
/// verdicts.
pub fn across_terminal(input: &AcrossInput<'_>, style: Terminal) -> String {
    let (across, names) = (input.across, Names::new(input.across, input.factor));
    let width = usize::from(style.width);
    let mut out = String::new();
    wrap(&mut out, &format!("A: {}, {}", input.a.describe(), input.a.extent()), "", width);
    wrap(&mut out, &format!("B: {}, {}", input.b.describe(), input.b.extent()), "", width);
    wrap(&mut out, &lead(across, &names), "", width);
    let mut table = empty_table(style);
    table.set_header(HEADER);
    for cell in primary(across) {
        table.add_row(row(cell, &names));
    }
    out.push_str(&finish_table(table, &NUMERIC));
    out.push('\n');
    for note in notes(across, &names) {
        out.push('\n');
        wrap(&mut out, note.head, "", width);
        note.items.iter().for_each(|item| wrap(&mut out, item, "  ", width));
    }
    if style.plain { ascii(&out) } else { out }
}

/// The same in GitHub's Markdown, for a pull request.
pub fn across_markdown(input: &AcrossInput<'_>) -> String {
    let (across, names) = (input.across, Names::new(input.across, input.factor));
    let mut out = format!("### {}\n\n", escaped(&headline(across)));
    out.push_str(&format!(
        "A: {} ({}), B: {} ({})\n\n{}\n\n| {} |\n|---|---:|---:|---:|---|\n",
        escaped(&input.a.describe()),
        escaped(&input.a.extent()),
        escaped(&input.b.describe()),
        escaped(&input.b.extent()),
        escaped(&lead(across, &names)),
        HEADER.join(" | ")
    ));
    let line = |cell: &CellAcross| {
        let cells = row(cell, &names).map(|text| escaped(&text));
        let [name, a, b, ratio, verdict] = cells;
        let is_shown = matches!(cell.comparison.verdict, Verdict::Better | Verdict::Worse);
        let verdict = if is_shown { format!("**{verdict}**") } else { verdict };
        format!("| {name} | {a} | {b} | {ratio} | {verdict} |\n")
    };
    // Changed cells come first, so that a long table omits the others.
    let mut cells: Vec<&CellAcross> = primary(across).collect();
    let lines: Vec<String> = cells.iter().map(|cell| line(cell)).collect();
    if lines.iter().map(|line| line.chars().count()).sum::<usize>() > MARKDOWN_TABLE_CHARS {
        cells.sort_by_key(|cell| !matches!(cell.comparison.verdict, Verdict::Better | Verdict::Worse));
    }
    let lines: Vec<String> = cells.into_iter().map(line).collect();
    markdown::append(&mut out, &lines, MARKDOWN_TABLE_CHARS, "cells", "`h123 compare --html`");
    for note in notes(across, &names) {
        let mut folded = format!("\n<details><summary>{}</summary>\n\n", escaped(note.head));
        note.items.iter().for_each(|item| folded.push_str(&format!("- {}\n", escaped(item))));
        folded.push_str("\n</details>\n");
        markdown::append(&mut out, &[folded], markdown::MAX_CHARS, "notes", "`h123 compare --html`");
    }
    out
}

fn primary(across: &Across) -> impl Iterator<Item = &CellAcross> {
    across.cells.iter().filter(|cell| cell.comparison.primary)
}

fn headline(across: &Across) -> String {
    counts(across).iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// The number of cells with each verdict, the most important first.
fn counts(across: &Across) -> Vec<(&'static str, usize)> {
    let words = ["worse", "better", "equivalent", "no difference shown", "invalid"].map(|word| {
        let count = primary(across).filter(|cell| verdict_name(&cell.comparison.verdict).0 == word).count();
        (word, count)
    });
    words.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Which side of 1 is better for a metric.
fn direction(metric: &str, unit: &str) -> &'static str {
    match (metrics::find(metric).map(|known| known.better), unit) {
        (Some(Better::Lower), "ns") => "below 1× B is faster",
        (Some(Better::Lower), _) => "below 1× B is better (less is better)",
        (Some(Better::Higher), _) => "above 1× B is better (more is better)",
        (Some(Better::Neither) | None, _) => "neither side of 1× is better",
    }
}

/// The unit of the primary metric in the first cell that has it.
fn unit(across: &Across) -> &str {
    primary(across).map(|cell| cell.unit.as_str()).find(|unit| !unit.is_empty()).unwrap_or_default()
}

fn lead(across: &Across, names: &Names) -> String {
    let title = text::metric_title(&across.metric);
    let noun = text::statistic_noun(across.statistic);
    let shared = names.describe_shared().map(|words| format!(" {words}")).unwrap_or_default();
    format!(
        "{title}: the {noun} of each cell in A and in B, and the ratio of B to A with its 95 % interval; {}. Differences within \
         {} do not matter.{shared}",
        direction(&across.metric, unit(across)),
        text::percent(across.margin_share),
    )
}

fn row(cell: &CellAcross, names: &Names) -> [String; 5] {
    let estimate = |estimate: Option<Estimate>| {
        estimate.map_or(text::NONE.to_owned(), |e| text::estimate(&cell.unit, &e))
    };
    let ratio = text::ratio_with_interval(cell.comparison.ratio, text::NONE);
    let verdict = verdict_name(&cell.comparison.verdict).0.to_owned();
    [names.cell(&cell.comparison.context), estimate(cell.a), estimate(cell.b), ratio, verdict]
}

/// Cells that only one of the two has, with all their levels.
fn alone(across: &Across) -> Vec<String> {
    let only_in = |side: &str, cells: &[Vec<Level>]| -> Vec<String> {
        cells.iter().map(|levels| format!("{} is only in {side}", names::full(levels))).collect()
    };
    [only_in("A", &across.only_in_a), only_in("B", &across.only_in_b)].concat()
}

/// The checks that raise caveats about compared cells in their own result, one line each.
fn caveats(across: &Across) -> Vec<String> {
    let line = |found: &CellCaveats| {
        let title = crate::caveats::check_title(&found.check);
        let in_a = text::count(found.cells_in_a as usize, "cell", "cells");
        format!("{title}: {in_a} in A, {} in B", found.cells_in_b)
    };
    let cells = text::count(primary(across).count(), "cell", "cells");
    let lines: Vec<String> = across.caveats.iter().map(line).collect();
    match lines.is_empty() {
        true => lines,
        false => std::iter::once(format!("of {cells} in both results")).chain(lines).collect(),
    }
}

struct Note {
    head: &'static str,
    items: Vec<String>,
}

/// Why a comparison has no verdict.
fn reason(cell: &CellAcross) -> Option<String> {
    match &cell.comparison.verdict {
        Verdict::Invalid { because } => Some(describe_reason(&because.join("; "))),
        _ => None,
    }
}

/// Further information: reasons, differences, missing cells, and other metrics that differ.
fn notes(across: &Across, names: &Names) -> Vec<Note> {
    let reasons = primary(across)
        .filter_map(|cell| Some(format!("{}: {}", names.cell(&cell.comparison.context), reason(cell)?)));
    let differences = across.differences.iter().map(|difference| {
        let [about, a, b] = [&difference.about, &difference.a, &difference.b].map(|text| clean_line(text));
        format!("{about}: {a} in A, {b} in B")
    });
    let further = across.cells.iter().filter(|cell| !cell.comparison.primary).filter_map(|cell| {
        let (verdict, _) = verdict_name(&cell.comparison.verdict);
        let is_different = matches!(cell.comparison.verdict, Verdict::Better | Verdict::Worse);
        let title = text::uncapital(&text::metric_title(&cell.comparison.metric));
        let [name, a, b, ratio, _] = row(cell, names);
        is_different.then(|| format!("{name}, {title}: {verdict}, {ratio} ({a} to {b})"))
    });
    let notes = [
        Note { head: "No verdict", items: reasons.collect() },
        Note { head: "Caveats in the compared results", items: caveats(across) },
        Note { head: "Other differences, which may be the cause", items: differences.collect() },
        Note { head: "Not compared", items: alone(across) },
        Note { head: "Other metrics that differ (exploratory, not corrected)", items: further.collect() },
    ];
    notes.into_iter().filter(|note| !note.items.is_empty()).collect()
}
