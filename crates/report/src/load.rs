//! The effect of the load on the server in each cell, as read by the monitor: medians over runs.

use minijinja::context;
use minijinja::value::{Serde, Value};

use crate::answer;
use crate::context::{Context, Row};
use crate::text;

/// The metrics of the table and its headings.
pub(crate) const COLUMNS: &[(&str, &str)] = &[
    ("server_cpu_per_request", "CPU per request"),
    ("server_memory_peak", "peak memory"),
    ("server_established_peak", "ESTABLISHED, server"),
    ("client_established_peak", "ESTABLISHED, client"),
    ("server_time_wait_peak", "TIME-WAIT, server"),
    ("client_time_wait_peak", "TIME-WAIT, client"),
    ("segments_retransmitted", "TCP retransmissions"),
    ("listen_drops", "listen drops"),
    ("udp_receive_buffer_errors", "UDP receive buffer errors"),
];
/// A metric that does not need the monitor is not enough for a table.
const ALWAYS_KNOWN: &str = "server_cpu_per_request";

/// The table of one context; `None` if the monitor was off. A column that no cell has is omitted.
pub(crate) fn table(context: &Context<'_>) -> Option<Value> {
    let is_known = |name: &str| context.rows.iter().any(|row| row.metric(name).is_some());
    if !COLUMNS.iter().any(|(name, _)| *name != ALWAYS_KNOWN && is_known(name)) {
        return None;
    }
    let columns: Vec<_> = COLUMNS.iter().filter(|(name, _)| is_known(name)).collect();
    let median = |row: &Row<'_>, name: &str| {
        row.metric(name).map(|metric| text::value(&metric.unit, metric.median.value))
    };
    let row = |row: &Row<'_>| {
        context! {
            marker => answer::marker(row.series.style),
            level => &row.series.name,
            struck => !row.is_believable(),
            medians => Serde(columns.iter().map(|(name, _)| median(row, name)).collect::<Vec<_>>()),
        }
    };
    Some(context! {
        rows => context.rows.iter().map(row).collect::<Vec<_>>(),
        columns => columns.iter().map(|(_, title)| *title).collect::<Vec<_>>(),
    })
}
