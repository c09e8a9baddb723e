//! The terminal output: a compact table for each context with its ratios drawn, and the caveats below.

mod plot;

use comfy_table::presets::{ASCII_NO_BORDERS, UTF8_FULL_CONDENSED};
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table};

use crate::Terminal;
use crate::caveats::{self, Caveats};
use crate::context::{Context, Row};
use crate::figures::comparison::domain;
use crate::headline;
use crate::method;
use crate::server_time;
use crate::text::{self, clean_line};
use crate::view::View;
use plot::Plot;

/// A narrower table cannot be read; it gets this width, and the terminal wraps it.
const MIN_WIDTH: u16 = 40;
/// Columns of numbers, aligned right.
const NUMERIC: [usize; 2] = [1, 2];
/// The width of a further column besides its text.
const COLUMN_BORDER: usize = 3;
/// The least and greatest indentation of a plot below its table; it depends on the longest name.
const MIN_INDENT: usize = 12;
const MAX_INDENT: usize = 28;

/// Renders tables and caveats.
pub(crate) fn render(view: &View<'_>) -> String {
    let style = view.input.terminal;
    let width = usize::from(style.width.max(MIN_WIDTH));
    let mut out = String::new();
    wrap(&mut out, &clean_line(&view.summary().question), "", width);
    let drawn = drawn(view, style, width);
    for context in &view.contexts {
        out.push('\n');
        let note = if context.note.is_empty() { String::new() } else { format!("  ({})", context.note) };
        wrap(&mut out, &format!("{}{note}", context.name), "", width);
        let within = drawn.filter(|(_, place)| *place == Place::Column);
        out.push_str(&table(view, context, style, within.map(|(plot, _)| plot)));
        out.push('\n');
        if let Some((plot, Place::Below)) = drawn {
            out.push_str(&plots_below(view, context, &plot));
        }
        if let Some(times) = server_times(view, context, style) {
            out.push_str(&times);
            out.push('\n');
        }
    }
    out.push('\n');
    if let Some(sentence) = method::describe_repetition(view) {
        wrap(&mut out, &sentence, "", width);
        out.push('\n');
    }
    write_caveats(&mut out, &caveats::collect(view), width);
    // Last, because the end of a long output is what a terminal shows.
    let answer = headline::sentences(view);
    if !answer.is_empty() {
        out.push_str("\nSummary\n");
    }
    answer.iter().for_each(|sentence| wrap(&mut out, sentence, "  ", width));
    if style.plain { ascii(&out) } else { out }
}

/// Where the ratios are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In a column of the table.
    Column,
    /// Below the table, if the terminal has no room for another column.
    Below,
}

/// The plot that all tables share, in the width that the widest table leaves; `None` without a ratio.
fn drawn(view: &View<'_>, style: Terminal, width: usize) -> Option<(Plot, Place)> {
    let domain = domain(view)?;
    let tables = view.contexts.iter().map(|context| table(view, context, style, None));
    let widest = tables.flat_map(|table| table.lines().map(visible_width).max()).max().unwrap_or(width);
    let room = width.saturating_sub(widest + COLUMN_BORDER);
    let place = if room >= plot::MIN_COLUMNS { Place::Column } else { Place::Below };
    let columns = if place == Place::Column { room } else { width.saturating_sub(indent(view) + 2) };
    Some((Plot::new(domain, columns.min(plot::MAX_COLUMNS), style.plain), place))
}

/// The indentation of plots below their tables: right of the longest name that leaves room for them.
fn indent(view: &View<'_>) -> usize {
    let width = usize::from(view.input.terminal.width.max(MIN_WIDTH));
    let most = width.saturating_sub(plot::MIN_COLUMNS + 2).min(MAX_INDENT);
    let names = view.series.iter().map(|series| series.name.chars().count() + 2);
    names.filter(|wanted| *wanted <= most).max().unwrap_or_default().max(MIN_INDENT)
}

/// The visible characters of a line: all but the sequences that colour it.
fn visible_width(line: &str) -> usize {
    let coloured = line.split('\u{1b}');
    coloured
        .enumerate()
        .map(|(index, part)| match index {
            0 => part.chars().count(),
            _ => part.split_once('m').map_or(0, |(_, rest)| rest.chars().count()),
        })
        .sum()
}

/// The ratios of a context, one line each, below an axis.
fn plots_below(view: &View<'_>, context: &Context<'_>, plot: &Plot) -> String {
    let rows: Vec<_> = context.rows.iter().filter(|row| row.comparison.is_some()).collect();
    if rows.is_empty() {
        return String::new();
    }
    let indent = indent(view);
    let mut out = format!("{:indent$}{}\n", "", plot.axis().trim_end());
    for row in rows {
        let name = row.series.name.as_str();
        let label = if name.chars().count() + 2 <= indent { name } else { "" };
        if label.is_empty() {
            wrap(&mut out, name, " ", usize::from(view.input.terminal.width.max(MIN_WIDTH)));
        }
        out.push_str(&format!(" {label:<rest$}{}\n", bar(plot, row), rest = indent - 1));
    }
    out
}

fn bar(plot: &Plot, row: &Row<'_>) -> String {
    let ratio = row.comparison.and_then(|comparison| comparison.ratio);
    plot.bar(ratio, row.is_believable())
}

/// The time of requests, in the cells whose servers report theirs.
fn server_times(view: &View<'_>, context: &Context<'_>, style: Terminal) -> Option<String> {
    let rows = server_time::rows(context);
    if rows.is_empty() {
        return None;
    }
    let mut table = empty_table(style);
    let headings = server_time::headings().into_iter().map(|heading| text::uncapital(&heading));
    table.set_header([view.factor()].into_iter().chain(headings));
    for row in rows {
        let mark = |time: String| if row.struck && time != text::NONE { format!("({time})") } else { time };
        table.add_row([row.level].into_iter().chain(row.times.into_iter().map(mark)));
    }
    Some(finish_table(table, &[1, 2, 3]))
}

/// A table in this style, without rows.
pub(crate) fn empty_table(style: Terminal) -> Table {
    let mut table = Table::new();
    table.force_no_tty();
    if style.colour {
        table.enforce_styling();
    }
    table.load_style(if style.plain {
        ASCII_NO_BORDERS.row_separator(LineStyle::none())
    } else {
        UTF8_FULL_CONDENSED
    });
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(style.width.max(MIN_WIDTH));
    table
}

/// The text of a table with these columns aligned right.
pub(crate) fn finish_table(mut table: Table, numeric: &[usize]) -> String {
    for index in numeric {
        if let Some(column) = table.column_mut(*index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

fn table(view: &View<'_>, context: &Context<'_>, style: Terminal, plot: Option<Plot>) -> String {
    let mut table = empty_table(style);
    let mut header = vec![
        view.factor(),
        view.compared_title(),
        format!("against {}", view.baseline()),
        "verdict".to_owned(),
        "validity".to_owned(),
    ];
    header.extend(plot.map(|plot| plot.axis()));
    table.set_header(header);
    for row in &context.rows {
        let mut cells = table_row(row, style);
        cells.extend(plot.map(|plot| Cell::new(bar(&plot, row))));
        table.add_row(cells);
    }
    finish_table(table, &NUMERIC)
}

fn table_row(row: &Row<'_>, style: Terminal) -> Vec<Cell> {
    let estimate = row.primary().map(|metric| text::estimate(&metric.unit, &metric.compared()));
    let value = estimate.unwrap_or(text::NONE.to_owned());
    let ratio = row.comparison.and_then(|comparison| comparison.ratio);
    let ratio = text::ratio_with_interval(ratio, text::NONE);
    let (verdict, class) = match row.comparison {
        Some(comparison) => row.verdict(comparison),
        None if row.series.is_baseline => ("baseline", "baseline"),
        None => (text::NONE, "none"),
    };
    let colour = match class {
        "better" => Some(Color::Green),
        "worse" => Some(Color::Yellow),
        "invalid" => Some(Color::Red),
        _ => None,
    };
    let is_invalid = !row.is_believable();
    let mark = |text: String| if is_invalid && text != text::NONE { format!("({text})") } else { text };
    let paint = |cell: Cell, colour: Option<Color>| match colour {
        Some(colour) if style.colour => cell.fg(colour),
        _ => cell,
    };
    let name = Cell::new(&row.series.name);
    let name = if style.colour { name.add_attribute(Attribute::Bold) } else { name };
    vec![
        name,
        Cell::new(mark(value)),
        Cell::new(mark(ratio)),
        paint(Cell::new(verdict), colour),
        paint(Cell::new(row.status()), is_invalid.then_some(Color::Red)),
    ]
}

fn write_caveats(out: &mut String, caveats: &Caveats, width: usize) {
    wrap(out, "Caveats", "", width);
    if let Some(nothing) = &caveats.nothing {
        wrap(out, nothing, "  ", width);
    }
    if let Some(missing) = &caveats.missing {
        wrap(out, missing, "  ", width);
    }
    for what in &caveats.damaged {
        wrap(out, &format!("damaged or missing: {what}"), "  ", width);
    }
    for finding in &caveats.findings {
        // Only the page lists all thresholds; here places that differ in them only are one.
        let measured = finding.cells.iter().map(|place| (&place.measured, place.cell.as_str()));
        let measured = text::by_key(measured);
        let places: Vec<String> =
            measured.iter().map(|(found, cells)| format!("{} ({found})", cells.join(", "))).collect();
        let threshold = finding.cells.first().map_or("", |place| place.threshold.as_str());
        let head =
            format!("{}: {}, threshold {threshold}. In: {}", finding.class, finding.check, places.join("; "));
        wrap(out, &head, "  ", width);
        wrap(out, &format!("{} {}", finding.why, finding.remedy), "    ", width);
    }
    for lost in caveats.lost.iter().chain(&caveats.partly) {
        wrap(out, &format!("{}: {}: {}", lost.status, lost.cell, lost.reasons), "  ", width);
    }
    for not_reported in &caveats.not_reported {
        // The reason names the client, and the page lists the cells.
        wrap(out, &format!("not reported: {}: {}", not_reported.metrics, not_reported.reason), "  ", width);
    }
}

/// Adds a text in lines of at most `width` characters.
pub(crate) fn wrap(out: &mut String, text: &str, indent: &str, width: usize) {
    let mut line = String::new();
    for word in text.split_whitespace() {
        let length = indent.chars().count() + line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && length > width {
            out.push_str(&format!("{indent}{line}\n"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    out.push_str(&format!("{indent}{line}\n"));
}

/// The same text in ASCII, for logs.
pub(crate) fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '–' | '−' | '‒' | '—' => out.push('-'),
            '×' => out.push('x'),
            '·' => out.push('/'),
            'µ' => out.push('u'),
            '…' => out.push('~'),
            '±' => out.push_str("+-"),
            '→' => out.push_str("->"),
            '“' | '”' => out.push('"'),
            '‘' | '’' => out.push('\''),
            '\u{202f}' | '\u{a0}' => out.push(' '),
            c if c.is_ascii() => out.push(c),
            _ => out.push('?'),
        }
    }
    out
}
