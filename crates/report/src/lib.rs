//! Renders a summary as figures, tables, one self-contained HTML page and a table for the terminal.
//!
//! The page has the question, the summary, the caveats, figures, tables, the method, and the command that
//! repeats the study. Strings from servers and files are escaped where they are written.
//!
//! ```
//! // Values with the units of metrics are formatted as in the report.
//! assert_eq!(report::format_value("ns", 412e6), "412 ms");
//! // Every kind of figure declares itself.
//! let runs = report::figure_kinds().find(|kind| kind.name == "runs");
//! assert_eq!(runs.map(|kind| kind.by_default), Some("always"));
//! ```
//!
//! [`render`] turns an [`Input`] into a [`Report`]; [`across_html`], [`across_markdown`] and
//! [`across_terminal`] show two results against each other.

mod across;
mod answer;
mod caveats;
mod context;
mod encode;
mod figures;
mod headline;
mod limits;
mod load;
mod markdown;
mod method;
mod page;
mod palette;
mod playback;
mod published;
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
pub use encode::TableText;
pub use playback::{RunPlayback, SegmentSpan, StallSpan};
pub use timeline::{RunTimeline, Track};
pub use trace::{ConnectionTrace, MOST_TRACED_REQUESTS, RequestTrace, RunTrace, representative_run};

/// The data of a report.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The plan of the study.
    pub plan: &'a Plan,
    /// The result of the analysis.
    pub summary: &'a Summary,
    /// `environment.json`; all of it is shown.
    pub environment: &'a serde_json::Value,
    /// One run of each cell, request by request; the figures that need it omit cells without one.
    pub traces: &'a [RunTrace],
    /// The monitor's readings of one run of each cell.
    pub timelines: &'a [RunTimeline],
    /// The playback of a video in one run of each cell.
    pub playbacks: &'a [RunPlayback],
    /// The primary metric's values of each cell over all runs, for figures of their distribution.
    pub pooled: &'a [Pooled],
    /// The command that repeats the study.
    pub command: &'a str,
    /// A sentence about each damaged or missing part of the result.
    pub damaged: &'a [String],
    /// The style of the terminal output.
    pub terminal: Terminal,
}

/// The style of the terminal output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// The maximum width in columns.
    pub width: u16,
    /// Whether to use colours (a terminal, and no `NO_COLOR`).
    pub colour: bool,
    /// Whether to print plain ASCII lines, for pipes and logs.
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
    /// The output for the terminal.
    pub terminal: String,
    /// `report.md`: answer, tables and caveats for an issue or a pull request, at most 60,000 characters.
    pub markdown: String,
}

/// One figure as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The file's name without its extension.
    pub name: &'static str,
    /// Its heading.
    pub title: String,
    /// A description in a few sentences.
    pub caption: String,
    /// A complete SVG document.
    pub svg: String,
    /// The data behind it.
    pub csv: String,
}

/// One table as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The file's name without its extension.
    pub name: String,
    /// A description in one sentence.
    pub title: &'static str,
    /// The table as CSV (RFC 4180).
    pub csv: String,
    /// The table in GitHub's Markdown.
    pub markdown: String,
    /// The table as JSON, a list of objects; missing values are null.
    pub json: String,
}

/// Why a report could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A bug of h123: a template does not fit the data.
    #[error("the report's template failed: {0}. This is a bug of h123; please report it.")]
    Template(#[from] minijinja::Error),
}

/// One kind of figure, a row of the table in docs/figures.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FigureKind {
    /// Its name in a study, and that of its files.
    pub name: &'static str,
    /// What it shows.
    pub shows: &'static str,
    /// When it is drawn if a study does not choose its figures.
    pub by_default: &'static str,
}

/// All kinds of figures, in the order in which the report shows them.
pub fn figure_kinds() -> impl Iterator<Item = FigureKind> {
    let kinds = figures::FIGURES.iter();
    kinds.map(|kind| FigureKind { name: kind.name, shows: kind.shows, by_default: kind.by_default })
}

/// A value with a suitable unit, such as `412 ms`; `unit` is that of a metric.
pub fn format_value(unit: &str, value: f64) -> String {
    text::value(unit, value)
}

/// Renders the figures, the tables, the page and the terminal output.
///
/// # Errors
/// Only if a template does not fit its data, which is a bug of this crate.
pub fn render(input: &Input<'_>) -> Result<Report, ReportError> {
    let view = view::View::new(input);
    let drawings = figures::draw_all(&view);
    let tables = tables::all(&view);
    let html = page::render(&view, &drawings, &tables)?;
    let figures = drawings.figures.iter().map(figures::DrawnFigure::to_file).collect();
    let (terminal, markdown) = (terminal::render(&view), markdown::render(&view));
    Ok(Report { html, figures, tables, terminal, markdown })
}
