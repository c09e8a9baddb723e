//! The report: figures, tables, one self-contained HTML page and the table on the terminal. Data in, text out.
//!
//! The order is the reader's: the question, the answer, what may not be believed, figures, tables, how it was
//! measured, how to run it again. Every string that may come from a server or a file is escaped where it is written.

mod across;
mod alike;
mod answer;
mod caveats;
mod encode;
mod figures;
mod limits;
mod load;
mod method;
mod page;
mod palette;
mod playback;
mod server_time;
mod svg;
mod sweep;
mod tables;
mod terminal;
mod text;
mod timeline;
mod topology;
mod trace;
mod view;

use analysis::Pooled;
use analysis::summary::Summary;
use model::Plan;

pub use across::{AcrossInput, Side, across_html, across_markdown, across_terminal};
pub use playback::{RunPlayback, SegmentSpan, StallSpan};
pub use timeline::{RunTimeline, Track};
pub use trace::{ConnectionTrace, MOST_TRACED_REQUESTS, RequestTrace, RunTrace, representative_run};

/// All that a report is made of.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// What was to be done.
    pub plan: &'a Plan,
    /// What analysis found.
    pub summary: &'a Summary,
    /// `environment.json`: shown as it is, whatever it holds.
    pub environment: &'a serde_json::Value,
    /// One run of each cell, request by request; cells without one are left out of the figures that need it.
    pub traces: &'a [RunTrace],
    /// What the monitor saw of one run of each cell.
    pub timelines: &'a [RunTimeline],
    /// How a video was played in one run of each cell.
    pub playbacks: &'a [RunPlayback],
    /// The primary metric's values of each cell, over all runs: for pictures of how they are spread.
    pub pooled: &'a [Pooled],
    /// The command that measures all this again.
    pub command: &'a str,
    /// What of the result is damaged or missing, one sentence each.
    pub damaged: &'a [String],
    /// How the terminal's table is to look.
    pub terminal: Terminal,
}

/// How the terminal's table is to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Columns to fill at most.
    pub width: u16,
    /// Whether colours are wanted (a terminal, and no `NO_COLOR`).
    pub colour: bool,
    /// Plain lines of ASCII, for pipes and logs.
    pub plain: bool,
}

/// A rendered report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// `report.html`.
    pub html: String,
    /// `figures/NAME.svg` and `figures/NAME.csv`.
    pub figures: Vec<Figure>,
    /// `tables/NAME.csv`, `.md` and `.json`.
    pub tables: Vec<Table>,
    /// What the terminal shows.
    pub terminal: String,
}

/// One figure as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The file's name without its ending.
    pub name: &'static str,
    /// Its heading.
    pub title: String,
    /// What it shows, in a sentence or two.
    pub caption: String,
    /// A whole SVG document.
    pub svg: String,
    /// The data behind it.
    pub csv: String,
}

/// One table as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The file's name without its ending.
    pub name: &'static str,
    /// What it holds, in a sentence.
    pub title: &'static str,
    /// The table, RFC 4180.
    pub csv: String,
    /// The same in GitHub's Markdown.
    pub markdown: String,
    /// The same as a list of objects; what is absent is null.
    pub json: String,
}

/// Why a report could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A fault of the tool: a template does not fit the data.
    #[error("the report's template failed: {0}; this is a fault of h123, please report it")]
    Template(#[from] minijinja::Error),
}

/// The names of all figures, in the order in which the report shows them.
pub fn figure_names() -> impl Iterator<Item = &'static str> {
    figures::FIGURES.iter().map(|kind| kind.name)
}

/// A value with the unit that suits it, such as `412 ms`.
pub fn format_value(unit: &str, value: f64) -> String {
    text::value(unit, value)
}

/// Renders everything.
///
/// # Errors
/// Only where a template does not fit its data, which is a fault of this crate.
pub fn render(input: &Input<'_>) -> Result<Report, ReportError> {
    let view = view::View::new(input);
    let drawings = figures::draw_all(&view);
    let tables = tables::all(&view);
    let html = page::render(&view, &drawings, &tables)?;
    let figures = drawings.figures.iter().map(figures::DrawnFigure::to_file).collect();
    Ok(Report { html, figures, tables, terminal: terminal::render(&view) })
}
