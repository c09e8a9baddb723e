//! The report in GitHub's Markdown, for an issue or a pull request: the answer, a table for each context,
//! the caveats. It is short enough for one comment.

use crate::caveats;
use crate::context::{Context, Row};
use crate::encode::markdown as escaped;
use crate::headline;
use crate::published::{self, PublishedRow};
use crate::text;
use crate::view::View;

/// GitHub accepts 65,536 characters; this leaves room for a few sentences of the reader.
pub(crate) const MAX_CHARS: usize = 60_000;
/// The room of tables; the rest is for caveats.
const TABLE_CHARS: usize = 40_000;
/// The room of published values.
const PUBLISHED_CHARS: usize = 10_000;
/// The room of a note about omitted parts.
const NOTE_CHARS: usize = 200;

/// Renders `report.md`.
pub(crate) fn render(view: &View<'_>) -> String {
    let mut out = format!("### {}\n\n", escaped(&text::clean_line(&view.summary().question)));
    for sentence in headline::sentences(view) {
        out.push_str(&format!("- {}\n", escaped(&sentence)));
    }
    let tables: Vec<String> = view.contexts.iter().map(|context| table(view, context)).collect();
    append(&mut out, &tables, TABLE_CHARS, "tables", "tables/comparisons.csv");
    let published: Vec<String> = published::section(view).rows.iter().map(published_row).collect();
    if !published.is_empty() {
        out.push_str("\n#### Published and measured\n\n| value | published | measured | result | reason |\n");
        out.push_str("|---|---:|---:|---|---|\n");
        append(&mut out, &published, TABLE_CHARS + PUBLISHED_CHARS, "values", "tables/published.csv");
    }
    out.push_str("\n#### Caveats\n\n");
    let caveats: Vec<String> = caveats(view);
    append(&mut out, &caveats, MAX_CHARS, "caveats", "report.html");
    out
}

/// Adds the parts that fit, and a note about the others.
pub(crate) fn append(out: &mut String, parts: &[String], max_chars: usize, things: &str, file: &str) {
    let mut length = out.chars().count();
    for (index, part) in parts.iter().enumerate() {
        length += part.chars().count();
        if length + NOTE_CHARS > max_chars {
            out.push_str(&format!("\n{index} of {} {things} are shown; {file} has all.\n", parts.len()));
            return;
        }
        out.push_str(part);
    }
}

fn table(view: &View<'_>, context: &Context<'_>) -> String {
    let head = [view.factor(), view.compared_title(), format!("against {}", view.baseline())];
    let note = if context.note.is_empty() { String::new() } else { format!(" ({})", escaped(&context.note)) };
    let mut out = format!(
        "\n**{}**{note}\n\n| {} | verdict | validity |\n|---|---:|---:|---|---|\n",
        escaped(&context.name),
        head.map(|text| escaped(&text)).join(" | ")
    );
    for row in &context.rows {
        out.push_str(&format!("| {} |\n", cells(row).map(|text| escaped(&text)).join(" | ")));
    }
    out
}

fn published_row(row: &PublishedRow) -> String {
    let cells = [&row.what, &row.published, &row.measured, row.result, &row.reason];
    format!("| {} |\n", cells.map(escaped).join(" | "))
}

fn cells(row: &Row<'_>) -> [String; 5] {
    let value = row.primary().map(|metric| text::estimate(&metric.unit, &metric.compared()));
    let ratio = row.comparison.and_then(|comparison| comparison.ratio);
    let mark =
        |text: String| if row.is_believable() || text == text::NONE { text } else { format!("({text})") };
    let verdict = match row.comparison {
        Some(comparison) => row.verdict(comparison).0,
        None if row.series.is_baseline => "baseline",
        None => text::NONE,
    };
    [
        row.series.name.clone(),
        mark(value.unwrap_or(text::NONE.to_owned())),
        mark(text::ratio_with_interval(ratio, text::NONE)),
        verdict.to_owned(),
        row.status().to_owned(),
    ]
}

/// One list item for each caveat.
fn caveats(view: &View<'_>) -> Vec<String> {
    let caveats = caveats::collect(view);
    let item = |text: String| format!("- {}\n", escaped(&text));
    let findings = caveats.findings.iter().map(|finding| {
        let places = finding.cells.iter().map(|place| format!("{} ({})", place.cell, place.measured));
        let places = text::shorten(&places.collect::<Vec<_>>().join("; "), 1_000);
        item(format!("{}: {}: {} In: {places}", finding.class, finding.check, finding.why))
    });
    let lost = caveats.lost.iter().chain(&caveats.partly);
    let lost = lost.map(|lost| item(format!("{}: {}: {}", lost.status, lost.cell, lost.reasons)));
    let damaged = caveats.damaged.iter().map(|what| item(format!("damaged or missing: {what}")));
    let whole = caveats.nothing.iter().chain(&caveats.missing).map(|text| item(text.clone()));
    whole.chain(damaged).chain(findings).chain(lost).collect()
}
