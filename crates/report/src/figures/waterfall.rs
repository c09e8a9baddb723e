//! The requests of one page load, one row each, for every level: connection set-up, waiting to be sent,
//! waiting for the first byte, transfer.

use model::sample::Cause;

use super::panel::{Panel, TOP};
use super::{Context, Csv, Drawing, FigureKind, Key, Row, View};
use crate::svg::{Anchor, Axis, Canvas, Rect, Scale, WIDTH, at, count, float};
use crate::text::{self, clean_line, duration};
use crate::trace::{ConnectionTrace, RequestTrace, RunTrace};

pub(super) const KIND: FigureKind = FigureKind {
    name: "waterfall",
    shows: "the requests of a page load",
    by_default: "if a workload loads a page",
    needs: "a page load with at most 500 requests",
    suits: |_| true,
    draw,
};

/// Rows that are drawn; the caption says if there are more, and the CSV has all.
const MAX_ROWS: usize = 150;
/// Height that a panel's rows share.
const ROWS_HEIGHT: f64 = 250.0;
const PLOT_LEFT: f64 = 6.0;
const PLOT_RIGHT: f64 = WIDTH - 14.0;
/// The least width of a bar that took any time.
const MIN_WIDTH: f64 = 0.7;

fn draw(view: &View<'_>) -> Option<Drawing> {
    let context = largest_page(view)?;
    let rows: Vec<(&Row<'_>, &RunTrace)> =
        context.rows.iter().filter_map(|row| Some((row, row.trace?))).collect();
    let end_ns = rows.iter().map(|(_, trace)| trace.end_ns()).max()?.max(1);
    let most = rows.iter().map(|(_, trace)| trace.requests.len()).max()?;
    let cut = match most > MAX_ROWS {
        true => format!(" The first {MAX_ROWS} of {most} requests are drawn."),
        false => String::new(),
    };
    let mut keys = vec![
        Key::new("k-setup", "connection set-up"),
        Key::new("k-queue", "waiting to be sent"),
        Key::new("k-wait", "waiting for the first byte"),
        Key::new("k-transfer", "transfer of the response"),
    ];
    if rows.iter().any(|(_, trace)| trace.has_dns_lookup()) {
        keys.insert(0, Key::new("k-dns", "DNS lookup"));
    }
    Some(Drawing {
        title: format!("Requests of one page load: {}", context.name),
        caption: format!(
            "The run nearest to the median of each cell, all with the same time axis. Each request has one row, in the order in \
             which the page names them. The dashed line is the end of the load.{cut}"
        ),
        keys,
        panels: rows.iter().map(|(row, trace)| draw_panel(context, row, trace, end_ns)).collect(),
        csv: csv(&rows),
    })
}

/// The context with the largest page; of several, the one with the longest load.
fn largest_page<'v, 'a>(view: &'v View<'a>) -> Option<&'v Context<'a>> {
    let size = |context: &'v Context<'a>| {
        let page = context.rows.iter().find_map(|row| row.page(view.plan()))?;
        let longest = context.rows.iter().filter_map(|row| Some(row.trace?.end_ns())).max()?;
        (longest > 0).then_some(((page.total_bytes(), longest), context))
    };
    view.contexts.iter().filter_map(size).max_by_key(|(size, _)| *size).map(|(_, context)| context)
}

fn draw_panel(context: &Context<'_>, row: &Row<'_>, trace: &RunTrace, end_ns: u64) -> Panel {
    let series = &row.series;
    let shown = trace.requests.len().min(MAX_ROWS);
    let end = float(end_ns);
    let units = text::Scale::fitting("ns", end);
    let scale = Scale::linear((0.0, end * 1.02), (PLOT_LEFT, PLOT_RIGHT));
    let pitch = (ROWS_HEIGHT / count(shown.max(1))).min(16.0);
    let bottom = TOP + count(shown) * pitch + 4.0;
    let mark = if row.is_believable() { "" } else { " (invalid)" };
    let heading = format!("{}: {}{mark}", series.name, text::value("ns", float(trace.end_ns())));
    let mut canvas = Canvas::default();
    canvas.group(&row.class(), None, |c| {
        c.marker(at(8.0, 10.0), series.style, 5.5);
        let class = if row.is_believable() { "heading" } else { "heading struck" };
        c.text(at(20.0, 15.0), Anchor::Start, class, &heading);
        if !row.is_believable() {
            c.cross(at(WIDTH - 12.0, 10.0), 6.0);
        }
        let title = format!("{}, {}", units.title("time since the start"), trace.name());
        Axis { scale, top: TOP, bottom, title: &title, label: &|value| units.short(value) }.draw(c);
        let x = scale.place(float(trace.end_ns()));
        c.line(at(x, TOP - 6.0), at(x, bottom), "finish");
        draw_requests(c, trace, shown, scale, pitch);
    });
    let described = format!(
        "{} over {}, done after {}{mark}",
        text::count(trace.requests.len(), "request", "requests"),
        text::count(trace.connections.len(), "connection", "connections"),
        duration(trace.end_ns())
    );
    let title = format!("{}: the requests of {}", context.name, series.name);
    Panel::new(title, &[described], bottom + Axis::HEIGHT, canvas).of_series(series.style)
}

fn draw_requests(canvas: &mut Canvas, trace: &RunTrace, shown: usize, scale: Scale, pitch: f64) {
    let height = (pitch * 0.78).max(1.2);
    let mut seen = Vec::new();
    for (index, request) in trace.requests.iter().take(shown).enumerate() {
        let y = TOP + count(index) * pitch + (pitch - height) / 2.0;
        let dns_lookup = trace.dns_lookup_ns.filter(|_| index == 0);
        let is_first = |number: &u32| !seen.contains(number);
        let opened = request.connection.filter(is_first).and_then(|number| trace.connection(number));
        seen.extend(request.connection.filter(is_first));
        canvas.group("request", Some(&describe(request, dns_lookup, opened)), |c| {
            let mut bar = |from: Option<u64>, to: Option<u64>, class: &str| {
                let (Some(from), Some(to)) = (from, to) else { return };
                let (x, end) = (scale.place(float(from)), scale.place(float(to)));
                if to > from {
                    c.rect(Rect { x, y, width: (end - x).max(MIN_WIDTH), height }, class);
                }
            };
            // A pushed response is awaited from its promise on.
            let promised_ns = Some(request.intended_ns).filter(|_| request.cause == Cause::Push);
            let sent_ns = request.sent_ns.or(promised_ns);
            bar(Some(request.intended_ns), sent_ns.or(request.done_ns), "k-queue");
            if let Some((asked, known)) = dns_lookup {
                bar(Some(asked), Some(known), "k-dns");
            }
            if let Some(connection) = opened {
                bar(Some(connection.opened_ns), connection.ready_ns, "k-setup");
            }
            bar(sent_ns, request.first_byte_ns.or(request.done_ns), "k-wait");
            bar(request.first_byte_ns, request.done_ns, "k-transfer");
            if request.failure.is_some() {
                let x = scale.place(float(request.done_ns.unwrap_or(request.intended_ns)));
                c.cross(at(x, y + height / 2.0), 3.0);
            }
        });
    }
}

/// A request, preceded by the DNS lookup and the connection set-up if it caused them.
fn describe(
    request: &RequestTrace,
    dns_lookup: Option<(u64, u64)>,
    opened: Option<&ConnectionTrace>,
) -> String {
    let stamp = |name: &str, stamp: Option<u64>| stamp.map(|ns| format!("{name} {}", duration(ns)));
    let from_to = |name: &str, from: u64, to: u64| format!("{name} {} to {}", duration(from), duration(to));
    let mut parts = vec![text::shorten(&clean_line(&request.url), 120)];
    parts.extend(dns_lookup.map(|(asked, known)| from_to("DNS lookup", asked, known)));
    parts.extend(request.connection.map(|number| format!("connection {number}")));
    parts.extend(opened.and_then(|own| Some(from_to("set up", own.opened_ns, own.ready_ns?))));
    let wanted = match request.cause {
        Cause::Due => "wanted",
        Cause::Hint => "hinted",
        Cause::Push => "promised",
    };
    parts.extend(stamp(wanted, Some(request.intended_ns)));
    parts.extend(stamp("sent", request.sent_ns));
    parts.extend(stamp("first byte", request.first_byte_ns));
    parts.extend(stamp("done", request.done_ns));
    parts.push(text::value("B", float(request.body_bytes)));
    parts.extend(request.failure.as_ref().map(|reason| format!("failed: {}", clean_line(reason))));
    parts.join(" · ")
}

fn csv(rows: &[(&Row<'_>, &RunTrace)]) -> String {
    let mut csv = Csv::default();
    for (row, trace) in rows {
        for request in &trace.requests {
            let connection = request.connection.and_then(|number| trace.connection(number));
            csv.row(&[
                ("level", row.series.name.as_str().into()),
                ("run", trace.run.into()),
                ("url", request.url.as_str().into()),
                ("dns_lookup_began_ns", trace.dns_lookup_ns.map(|(began, _)| began).into()),
                ("dns_lookup_ended_ns", trace.dns_lookup_ns.map(|(_, ended)| ended).into()),
                ("connection", request.connection.into()),
                ("opened_ns", connection.map(|c| c.opened_ns).into()),
                ("connected_ns", connection.and_then(|c| c.connected_ns).into()),
                ("ready_ns", connection.and_then(|c| c.ready_ns).into()),
                ("intended_ns", request.intended_ns.into()),
                ("sent_ns", request.sent_ns.into()),
                ("first_byte_ns", request.first_byte_ns.into()),
                ("done_ns", request.done_ns.into()),
                ("body_bytes", request.body_bytes.into()),
                ("failure", request.failure.as_deref().into()),
                ("status", row.status().into()),
            ]);
        }
    }
    csv.finish()
}
