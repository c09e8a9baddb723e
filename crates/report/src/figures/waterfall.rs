//! The requests of one page load, one row each, for every level: waiting to be sent, waiting for the first byte,
//! transfer, and the connections being set up.

use super::panel::{self, Panel, TOP, WIDTH};
use super::{Drawing, Key};
use crate::encode::{Csv, Field};
use crate::svg::{Axis, Canvas, Rect, Scale, at};
use crate::text::{self, clean_line, duration};
use crate::trace::{ConnectionTrace, RequestTrace, RunTrace};
use crate::view::{Context, Row, View};

/// Rows drawn at most; the caption says when there are more, and the CSV has all.
const MAX_ROWS: usize = 150;
/// Height that a panel's rows share.
const ROWS_HEIGHT: f64 = 250.0;
const PLOT_LEFT: f64 = 6.0;
const PLOT_RIGHT: f64 = WIDTH - 14.0;
/// The least width of a segment that took any time.
const LEAST: f64 = 0.7;

pub(super) fn draw(view: &View<'_>) -> Option<Drawing> {
    let context = largest_page(view)?;
    let rows: Vec<(&Row<'_>, &RunTrace)> =
        context.rows.iter().filter_map(|row| Some((row, row.trace?))).collect();
    let end_ns = rows.iter().map(|(_, trace)| trace.end_ns()).max()?.max(1);
    let most = rows.iter().map(|(_, trace)| trace.requests.len()).max()?;
    let panels = rows.iter().map(|(row, trace)| draw_panel(view, context, row, trace, end_ns)).collect();
    let cut = if most > MAX_ROWS {
        format!(" The first {MAX_ROWS} of {most} requests are drawn.")
    } else {
        String::new()
    };
    let mut keys = vec![
        Key::new("k-setup", "connection set-up"),
        Key::new("k-queue", "wanted, not yet sent"),
        Key::new("k-wait", "sent, no answer yet"),
        Key::new("k-transfer", "answer arriving"),
    ];
    if rows.iter().any(|(_, trace)| trace.looks_up()) {
        keys.insert(0, Key::new("k-dns", "DNS lookup"));
    }
    Some(Drawing {
        title: format!("One page load, request by request: {}", context.name),
        caption: format!(
            "The run nearest to the median of each cell, the same time axis for all. One line per request, in the \
             order in which the page names them; the dashed line is the end of the load.{cut}"
        ),
        keys,
        panels,
        csv: csv(view, &rows),
    })
}

/// The context with the largest page; of several, the one whose loads take longest.
fn largest_page<'v, 'a>(view: &'v View<'a>) -> Option<&'v Context<'a>> {
    view.contexts
        .iter()
        .filter(|context| context.rows.iter().any(|row| row.trace.is_some_and(|t| t.end_ns() > 0)))
        .filter_map(|context| {
            let bytes = context.rows.iter().find_map(|row| row.page_bytes(view.plan()))?;
            let longest = context.rows.iter().filter_map(|row| Some(row.trace?.end_ns())).max()?;
            Some(((bytes, longest), context))
        })
        .max_by_key(|(size, _)| *size)
        .map(|(_, context)| context)
}

fn draw_panel(view: &View<'_>, context: &Context<'_>, row: &Row<'_>, trace: &RunTrace, end_ns: u64) -> Panel {
    let series = view.series_of(row);
    let shown = trace.requests.len().min(MAX_ROWS);
    let end = as_f64(end_ns);
    let units = text::Scale::fitting("ns", end);
    let scale = Scale::linear((0.0, end * 1.02), (PLOT_LEFT, PLOT_RIGHT));
    #[expect(clippy::cast_precision_loss, reason = "at most MAX_ROWS")]
    let pitch = (ROWS_HEIGHT / shown.max(1) as f64).min(16.0);
    #[expect(clippy::cast_precision_loss, reason = "at most MAX_ROWS")]
    let bottom = TOP + shown as f64 * pitch + 4.0;
    let name = clean_line(&series.name);
    let mark = if row.is_believable() { "" } else { " (invalid)" };
    let heading = format!("{name}: {}{mark}", text::value("ns", as_f64(trace.end_ns())));
    let mut canvas = Canvas::default();
    let class = panel::row_class(series.style, row.is_believable());
    canvas.group(&class, None, |c| {
        c.marker(at(8.0, 10.0), series.style, 5.5);
        c.text(
            at(20.0, 15.0),
            crate::svg::Anchor::Start,
            if mark.is_empty() { "heading" } else { "heading struck" },
            &heading,
        );
        if !mark.is_empty() {
            c.cross(at(WIDTH - 12.0, 10.0), 6.0);
        }
        let title = format!("time since the start ({}), run {}", units.label, trace.run);
        let label = |value: f64| units.short(value);
        Axis { scale, top: TOP, bottom, width: WIDTH, title: &title, label: &label }.draw(c);
        let x = scale.place(as_f64(trace.end_ns()));
        c.line(at(x, TOP - 6.0), at(x, bottom), "finish");
        draw_requests(c, trace, shown, scale, pitch);
    });
    Panel {
        title: format!("{}: the requests of {name}", context.name),
        description: format!(
            "{} over {}, done after {}{mark}",
            text::count(trace.requests.len(), "request", "requests"),
            text::count(trace.connections.len(), "connection", "connections"),
            duration(trace.end_ns())
        ),
        class: format!("series s-{}", series.style.class),
        width: WIDTH,
        height: bottom + Axis::HEIGHT + 4.0,
        body: canvas.finish(),
    }
}

fn draw_requests(canvas: &mut Canvas, trace: &RunTrace, shown: usize, scale: Scale, pitch: f64) {
    let height = (pitch * 0.78).max(1.2);
    let mut seen = Vec::new();
    for (index, request) in trace.requests.iter().take(shown).enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "at most MAX_ROWS")]
        let y = TOP + index as f64 * pitch + (pitch - height) / 2.0;
        let dns_lookup = trace.dns_lookup_ns.filter(|_| index == 0);
        let is_first = |number: &u32| !seen.contains(number);
        let opened = request.connection.filter(is_first).and_then(|number| trace.connection(number));
        seen.extend(request.connection.filter(is_first));
        canvas.group("request", Some(&describe(request, dns_lookup, opened)), |c| {
            let mut segment = |from: Option<u64>, to: Option<u64>, class: &str| {
                let (Some(from), Some(to)) = (from, to) else { return };
                let (x, end) = (scale.place(as_f64(from)), scale.place(as_f64(to)));
                if to > from {
                    c.rect(Rect { x, y, width: (end - x).max(LEAST), height }, class);
                }
            };
            let sent = request.sent_ns.or(request.done_ns);
            segment(Some(request.intended_ns), sent, "k-queue");
            if let Some((asked, known)) = dns_lookup {
                segment(Some(asked), Some(known), "k-dns");
            }
            if let Some(connection) = opened {
                segment(Some(connection.opened_ns), connection.ready_ns, "k-setup");
            }
            segment(request.sent_ns, request.first_byte_ns.or(request.done_ns), "k-wait");
            segment(request.first_byte_ns, request.done_ns, "k-transfer");
            if request.failure.is_some() {
                let x = scale.place(as_f64(request.done_ns.unwrap_or(request.intended_ns)));
                c.cross(at(x, y + height / 2.0), 3.0);
            }
        });
    }
}

/// A request in words, with what was done for it first: the DNS lookup, and its connection where it opened one.
fn describe(
    request: &RequestTrace,
    dns_lookup: Option<(u64, u64)>,
    opened: Option<&ConnectionTrace>,
) -> String {
    let stamp = |name: &str, stamp: Option<u64>| stamp.map(|ns| format!("{name} {}", duration(ns)));
    let mut parts = vec![text::shorten(&clean_line(&request.url), 120)];
    let from_to = |name: &str, from: u64, to: u64| format!("{name} {} to {}", duration(from), duration(to));
    parts.extend(dns_lookup.map(|(asked, known)| from_to("DNS lookup", asked, known)));
    parts.extend(request.connection.map(|number| format!("connection {number}")));
    let set_up = |own: &ConnectionTrace| Some(from_to("set up", own.opened_ns, own.ready_ns?));
    parts.extend(opened.and_then(set_up));
    parts.extend(stamp("wanted", Some(request.intended_ns)));
    parts.extend(stamp("sent", request.sent_ns));
    parts.extend(stamp("first byte", request.first_byte_ns));
    parts.extend(stamp("done", request.done_ns));
    parts.push(text::value("B", as_f64(request.body_bytes)));
    parts.extend(request.failure.as_ref().map(|reason| format!("failed: {}", clean_line(reason))));
    parts.join(" · ")
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds on a drawing")]
fn as_f64(ns: u64) -> f64 {
    ns as f64
}

fn csv(view: &View<'_>, rows: &[(&Row<'_>, &RunTrace)]) -> String {
    let mut csv = Csv::new(&[
        "level",
        "run",
        "url",
        "dns_lookup_began_ns",
        "dns_lookup_ended_ns",
        "connection",
        "opened_ns",
        "connected_ns",
        "ready_ns",
        "intended_ns",
        "sent_ns",
        "first_byte_ns",
        "done_ns",
        "body_bytes",
        "failure",
        "status",
    ]);
    let maybe = |value: Option<u64>| value.map_or(Field::Empty, Field::Whole);
    for (row, trace) in rows {
        for request in &trace.requests {
            let connection = request.connection.and_then(|number| trace.connection(number));
            csv.row(&[
                Field::Text(&view.series_of(row).name),
                Field::Whole(u64::from(trace.run)),
                Field::Text(&request.url),
                maybe(trace.dns_lookup_ns.map(|(began, _)| began)),
                maybe(trace.dns_lookup_ns.map(|(_, ended)| ended)),
                maybe(request.connection.map(u64::from)),
                maybe(connection.map(|c| c.opened_ns)),
                maybe(connection.and_then(|c| c.connected_ns)),
                maybe(connection.and_then(|c| c.ready_ns)),
                Field::Whole(request.intended_ns),
                maybe(request.sent_ns),
                maybe(request.first_byte_ns),
                maybe(request.done_ns),
                Field::Whole(request.body_bytes),
                request.failure.as_deref().map_or(Field::Empty, Field::Text),
                Field::Text(crate::view::status_name(row.cell.status)),
            ]);
        }
    }
    csv.finish()
}
