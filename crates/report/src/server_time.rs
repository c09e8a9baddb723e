//! Where the time of requests went: what clients waited, what of it passed at the server, and what outside.

use serde::Serialize;

use crate::answer;
use crate::text::{self, clean_line};
use crate::view::{Context, Row, View};

/// The metrics that are the columns; the last is what is left of the first without the second.
const COLUMNS: [&str; 3] = ["request_time", "server_time", "outside_server_time"];
/// The check that says where the server's time comes from, and how finely.
const SOURCE: &str = "server_time_precision";

/// One cell's medians.
#[derive(Serialize)]
pub(crate) struct ServerTimeRow {
    pub(crate) marker: String,
    pub(crate) level: String,
    /// In the order of [`headings`].
    pub(crate) times: Vec<String>,
    /// How the server's time is known.
    pub(crate) source: String,
    pub(crate) struck: bool,
}

/// What stands above the medians.
pub(crate) fn headings() -> Vec<String> {
    COLUMNS.map(text::metric_title).to_vec()
}

/// The cells of a context whose servers say their time; none where the study does not ask for it.
pub(crate) fn rows(view: &View<'_>, context: &Context<'_>) -> Vec<ServerTimeRow> {
    context.rows.iter().filter_map(|row| of_row(view, row)).collect()
}

fn of_row(view: &View<'_>, row: &Row<'_>) -> Option<ServerTimeRow> {
    row.metric(COLUMNS[1])?;
    let median = |name: &&str| {
        row.metric(name)
            .map_or_else(|| text::NONE.to_owned(), |metric| text::estimate(&metric.unit, &metric.median))
    };
    let source = row.cell.validity.iter().find(|check| check.check == SOURCE);
    Some(ServerTimeRow {
        marker: answer::marker(view, row.series),
        level: clean_line(&view.series_of(row).name),
        times: COLUMNS.iter().map(median).collect(),
        source: source.map_or_else(|| text::NONE.to_owned(), |check| clean_line(&check.measured)),
        struck: !row.is_believable(),
    })
}
