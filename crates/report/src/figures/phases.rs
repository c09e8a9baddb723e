//! The phases of a load: DNS lookup, TCP connect, TLS or QUIC handshake, wait for the first byte, transfer.

use super::panel::TOP;
use super::rows::Rows;
use super::{Context, Csv, Drawing, FigureKind, Key, Row, View, player, text};
use crate::svg::{Axis, Canvas, Rect, Scale, float};
use crate::trace::{MOST_TRACED_REQUESTS, RunTrace};

pub(super) const KIND: FigureKind = FigureKind {
    name: "phases",
    shows: "DNS, connect, TLS or QUIC, wait, transfer",
    by_default: "if a run has at most 500 requests and plays no video",
    needs: "a run with at most 500 requests",
    // A video's player is idle most of the time.
    suits: player::has_none,
    draw,
};

const ROW: f64 = 28.0;

const DNS: &str = "k-dns";

/// The phases: name, class of the bar.
const PHASES: [(&str, &str); 5] = [
    ("DNS lookup", DNS),
    ("TCP connect", "k-connect"),
    ("TLS or QUIC handshake", "k-setup"),
    ("wait for the first byte", "k-wait"),
    ("rest of the load", "k-transfer"),
];

/// The durations of the phases of a run.
fn durations(trace: &RunTrace) -> Option<[u64; 5]> {
    let first = trace.requests.first()?;
    let connection = trace.connection(first.connection?)?;
    let (ready, first_byte) = (connection.ready_ns?, first.first_byte_ns?);
    // A cleartext connection is ready as soon as it is connected.
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

fn draw(view: &View<'_>) -> Option<Drawing> {
    let totals = view.rows().filter_map(|row| durations(row.trace?)).map(|durations| total(&durations));
    let rows = Rows::of(view, ROW).with_values(totals);
    let mut panels = Vec::new();
    let mut omitted: Vec<String> = Vec::new();
    for context in &view.contexts {
        let Some(longest) = longest(context) else {
            omitted.push(context.name.clone());
            continue;
        };
        let units = text::Scale::fitting("ns", longest);
        let scale = Scale::linear((0.0, longest), rows.plot());
        panels.push(rows.panel(
            context,
            "phases of a load",
            |canvas, bottom| {
                let (title, label) = (units.title("time since the start"), |value: f64| units.short(value));
                Axis { scale, top: TOP, bottom, title: &title, label: &label }.draw(canvas);
            },
            |canvas, row, y| Some(draw_row(canvas, row, &rows, scale, y)),
        ));
    }
    let has_dns = view.rows().any(|row| row.trace.is_some_and(RunTrace::has_dns_lookup));
    let shown = PHASES.iter().filter(|(_, class)| has_dns || *class != DNS);
    Some(Drawing {
        title: "Phases of a load".to_owned(),
        caption: format!(
            "The run nearest to the median of each cell: the DNS lookup (if any), the set-up of its first connection, the wait \
             for the first byte of the first response, and the rest until the last byte of the last response. Axes differ \
             between panels; all begin at 0.{}",
            describe_omitted(view, &omitted)
        ),
        keys: shown.map(|(label, class)| Key::new(class, label)).collect(),
        panels,
        csv: csv(view),
    })
}

/// The longest load of a context; `None` where there is none.
fn longest(context: &Context<'_>) -> Option<f64> {
    let durations = context.rows.iter().filter_map(|row| durations(row.trace?));
    durations.map(|durations| durations.iter().sum()).max().filter(|total| *total > 0).map(float)
}

/// This many contexts are named.
const MAX_NAMED: usize = 8;

/// A caption's sentences about runs and contexts that are not drawn.
fn describe_omitted(view: &View<'_>, omitted: &[String]) -> String {
    if omitted.is_empty() && !view.rows().any(|row| row.is_believable() && row.trace.is_none()) {
        return String::new();
    }
    let mut named: Vec<String> = omitted.iter().take(MAX_NAMED).cloned().collect();
    if omitted.len() > MAX_NAMED {
        named.push(format!("{} more", omitted.len() - MAX_NAMED));
    }
    let panels = match named.is_empty() {
        true => String::new(),
        false => format!(" Not drawn, without such a run: {}.", text::list(&named)),
    };
    format!(" Only runs with at most {MOST_TRACED_REQUESTS} requests are drawn.{panels}")
}

fn draw_row(canvas: &mut Canvas, row: &Row<'_>, rows: &Rows, scale: Scale, y: f64) -> String {
    let level = &row.series.name;
    let Some(durations) = row.trace.and_then(durations) else {
        let reason = match row.is_believable() {
            true if row.trace.is_none() => format!("no run with at most {MOST_TRACED_REQUESTS} requests"),
            true => "no run to show".to_owned(),
            false => row.status().to_owned(),
        };
        return rows.draw_empty(canvas, row, &reason, y);
    };
    let parts = || PHASES.iter().zip(durations).filter(|(_, ns)| *ns > 0);
    canvas.group(&row.class(), None, |c| {
        rows.draw_label(c, row, y);
        let mut from = 0;
        for ((name, class), ns) in parts() {
            let (x, end) = (scale.place(float(from)), scale.place(float(from + ns)));
            let title = format!("{level}, {name}: {}", text::duration(ns));
            let rect = Rect { x, y: y - 8.0, width: end - x, height: 16.0 };
            c.group("phase", Some(&title), |c| c.rect(rect, class));
            from += ns;
        }
        rows.draw_value(c, row, &total(&durations), y);
    });
    let described: Vec<String> =
        parts().map(|((name, _), ns)| format!("{name} {}", text::duration(ns))).collect();
    format!("{level}: {}", described.join(", "))
}

/// The duration of all phases together.
fn total(durations: &[u64; 5]) -> String {
    text::value("ns", float(durations.iter().sum()))
}

fn csv(view: &View<'_>) -> String {
    let mut csv = Csv::default();
    for (context, row) in view.rows_with_context() {
        let Some((trace, durations)) = row.trace.and_then(|trace| Some((trace, durations(trace)?))) else {
            continue;
        };
        let happened = |class: &str| class != DNS || trace.has_dns_lookup();
        for ((name, _), ns) in PHASES.iter().zip(durations).filter(|((_, class), _)| happened(class)) {
            let fields = vec![
                ("run", trace.run.into()),
                ("phase", (*name).into()),
                ("unit", "ns".into()),
                ("value", ns.into()),
            ];
            csv.cell(&context.name, row, fields);
        }
    }
    csv.finish()
}
