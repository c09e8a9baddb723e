//! The time of requests: total, at the server, and outside the server.

use serde::Serialize;

use crate::answer;
use crate::context::{Context, Row};
use crate::text::{self, clean_line};

/// The metrics in the columns; the last is the difference of the first two for each request.
const COLUMNS: [&str; 3] = ["request_time", "server_time", "outside_server_time"];
/// The check that reports the source and precision of the server's time.
const SOURCE: &str = "server_time_precision";

/// One cell's medians.
#[derive(Serialize)]
pub(crate) struct ServerTimeRow {
    pub(crate) marker: String,
    pub(crate) level: String,
    /// In the order of [`headings`].
    pub(crate) times: Vec<String>,
    /// The source and precision of the server's time.
    pub(crate) source: String,
    pub(crate) struck: bool,
}

/// The headings of the medians.
pub(crate) fn headings() -> Vec<String> {
    COLUMNS.map(text::metric_title).to_vec()
}

/// The cells of a context whose servers report their time; empty if the study does not request it.
pub(crate) fn rows(context: &Context<'_>) -> Vec<ServerTimeRow> {
    context.rows.iter().filter_map(of_row).collect()
}

fn of_row(row: &Row<'_>) -> Option<ServerTimeRow> {
    row.metric(COLUMNS[1])?;
    let median = |name: &&str| {
        row.metric(name)
            .map_or_else(|| text::NONE.to_owned(), |metric| text::estimate(&metric.unit, &metric.median))
    };
    let source = row.cell.validity.iter().find(|check| check.check == SOURCE);
    Some(ServerTimeRow {
        marker: answer::marker(row.series.style),
        level: row.series.name.clone(),
        times: COLUMNS.iter().map(median).collect(),
        source: source.map_or_else(|| text::NONE.to_owned(), |check| clean_line(&check.measured)),
        struck: !row.is_believable(),
    })
}
