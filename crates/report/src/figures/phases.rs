//! Where the time went: DNS, connect, TLS or QUIC, wait for the first byte, the rest.

use super::panel::{self, Panel, TOP, WIDTH};
use super::rows::Rows;
use super::runs::axis_title;
use super::{Drawing, Key};
use crate::encode::{Csv, Field};
use crate::svg::{Axis, Canvas, Rect, Scale};
use crate::text::{self, clean_line};
use crate::trace::{MOST_TRACED_REQUESTS, RunTrace};
use crate::view::{Context, Row, View, status_name};

const ROW: f64 = 28.0;

const DNS: &str = "k-dns";

/// The phases: name, class of the segment.
const PHASES: [(&str, &str); 5] = [
    ("DNS lookup", DNS),
    ("TCP connect", "k-connect"),
    ("TLS or QUIC handshake", "k-setup"),
    ("wait for the first byte", "k-wait"),
    ("rest of the load", "k-transfer"),
];

/// How long each phase of one run took.
fn phases(trace: &RunTrace) -> Option<[u64; 5]> {
    let first = trace.requests.first()?;
    let connection = trace.connection(first.connection?)?;
    let (ready, first_byte) = (connection.ready_ns?, first.first_byte_ns?);
    // In cleartext whoever is connected is ready.
    let tcp = if connection.is_encrypted { connection.connected_ns } else { connection.ready_ns };
    let connected = tcp.unwrap_or(connection.opened_ns);
    let (asked, known) = trace.dns_lookup_ns.unwrap_or_default();
    Some([
        known.saturating_sub(asked),
        connected.saturating_sub(connection.opened_ns),
        ready.saturating_sub(connected),
        first_byte.saturating_sub(ready),
        trace.end_ns().saturating_sub(first_byte),
    ])
}

pub(super) fn draw(view: &View<'_>) -> Option<Drawing> {
    let totals =
        view.rows_with_context().filter_map(|(_, row)| phases(row.trace?)).map(|phases| total(&phases));
    let rows = Rows::of(view, ROW).with_values(totals);
    let mut panels: Vec<Panel> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    for context in &view.contexts {
        match draw_panel(view, context, &rows) {
            Some(panel) => panels.push(panel),
            None => left_out.push(context.name.clone()),
        }
    }
    if panels.is_empty() {
        return None;
    }
    let is_looked_up = looks_up(view);
    let shown = PHASES.iter().filter(|(_, class)| is_looked_up || *class != DNS);
    let keys = shown.map(|(label, class)| Key::new(class, label)).collect();
    Some(Drawing {
        title: "Where the time went".to_owned(),
        caption: format!(
            "The run nearest to the median of each cell: the DNS lookup, where there was one, then its \
                  first connection until requests could be sent, then until the first byte of the first answer, then until the last byte of the last. Axes \
                  differ between panels; all begin at 0.{}",
            untraced(view, &left_out)
        ),
        keys,
        panels,
        csv: csv(view),
    })
}

/// So many contexts are named.
const MOST_NAMED: usize = 8;

/// What is to be said of runs that are not drawn, and of contexts that have none.
fn untraced(view: &View<'_>, left_out: &[String]) -> String {
    let is_untraced = |row: &Row<'_>| row.is_believable() && row.trace.is_none();
    if left_out.is_empty() && !view.rows_with_context().any(|(_, row)| is_untraced(row)) {
        return String::new();
    }
    let mut named: Vec<String> = left_out.iter().take(MOST_NAMED).cloned().collect();
    if left_out.len() > MOST_NAMED {
        named.push(format!("{} more", left_out.len() - MOST_NAMED));
    }
    let panels = match named.is_empty() {
        true => String::new(),
        false => format!(" Without a panel, for want of a run that is drawn: {}.", text::list(&named)),
    };
    format!(" A run of more than {MOST_TRACED_REQUESTS} requests is not drawn.{panels}")
}

/// Whether any client had to ask for the server's address.
fn looks_up(view: &View<'_>) -> bool {
    view.rows_with_context().any(|(_, row)| row.trace.is_some_and(RunTrace::looks_up))
}

fn draw_panel(view: &View<'_>, context: &Context<'_>, rows: &Rows) -> Option<Panel> {
    let totals = context.rows.iter().filter_map(|row| phases(row.trace?));
    let longest = totals.map(|phases| phases.iter().sum::<u64>()).max().filter(|total| *total > 0)?;
    let units = text::Scale::fitting("ns", as_f64(longest));
    let scale = Scale::linear((0.0, as_f64(longest)), rows.plot());
    let bottom = rows.bottom(context.rows.len());
    let mut canvas = Canvas::default();
    panel::heading(&mut canvas, &context.name);
    let label = |value: f64| units.short(value);
    let title = axis_title("time since the start", &units);
    Axis { scale, top: TOP, bottom, width: WIDTH, title: &title, label: &label }.draw(&mut canvas);
    let mut description = Vec::new();
    for (index, row) in context.rows.iter().enumerate() {
        description.push(draw_row(view, &mut canvas, row, rows, scale, rows.middle(index)));
    }
    Some(Panel {
        title: format!("{}: phases of a load", context.name),
        description: description.join("; "),
        class: String::new(),
        width: WIDTH,
        height: bottom + Axis::HEIGHT + 4.0,
        body: canvas.finish(),
    })
}

fn draw_row(
    view: &View<'_>,
    canvas: &mut Canvas,
    row: &Row<'_>,
    rows: &Rows,
    scale: Scale,
    y: f64,
) -> String {
    let series = view.series_of(row);
    let level = clean_line(&series.name);
    let class = panel::row_class(series.style, row.is_believable());
    let Some(phases) = row.trace.and_then(phases) else {
        let words = match row.is_believable() {
            true if row.trace.is_none() => format!("no run with at most {MOST_TRACED_REQUESTS} requests"),
            true => "no run to show".to_owned(),
            false => status_name(row.cell.status).to_owned(),
        };
        return rows.draw_empty(canvas, view, row, &words, y);
    };
    let parts: Vec<String> = PHASES
        .iter()
        .zip(phases)
        .filter(|(_, ns)| *ns > 0)
        .map(|((name, _), ns)| format!("{name} {}", text::duration(ns)))
        .collect();
    canvas.group(&class, None, |c| {
        rows.draw_label(c, view, row, y);
        let mut from = 0;
        for ((name, class), ns) in PHASES.iter().zip(phases).filter(|(_, ns)| *ns > 0) {
            let (x, end) = (scale.place(as_f64(from)), scale.place(as_f64(from + ns)));
            let title = format!("{level}, {name}: {}", text::duration(ns));
            let rect = Rect { x, y: y - 8.0, width: end - x, height: 16.0 };
            c.group("phase", Some(&title), |c| c.rect(rect, class));
            from += ns;
        }
        rows.draw_value(c, row, &total(&phases), y);
    });
    format!("{level}: {}", parts.join(", "))
}

/// What all phases take together.
fn total(phases: &[u64; 5]) -> String {
    text::value("ns", as_f64(phases.iter().sum()))
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds on a drawing")]
fn as_f64(ns: u64) -> f64 {
    ns as f64
}

fn csv(view: &View<'_>) -> String {
    let mut csv = Csv::new(&["context", "level", "run", "phase", "unit", "value", "status"]);
    for (context, row) in view.rows_with_context() {
        let Some((trace, phases)) = row.trace.and_then(|trace| Some((trace, phases(trace)?))) else {
            continue;
        };
        let happened = |class: &str| class != DNS || trace.looks_up();
        for ((name, _), ns) in PHASES.iter().zip(phases).filter(|((_, class), _)| happened(class)) {
            csv.row(&[
                Field::Text(&context.name),
                Field::Text(&view.series_of(row).name),
                Field::Whole(u64::from(trace.run)),
                Field::Text(name),
                Field::Text("ns"),
                Field::Whole(ns),
                Field::Text(status_name(row.cell.status)),
            ]);
        }
    }
    csv.finish()
}
