//! The times of page loads, of batches of requests, and of connection establishment.

use model::Page;
use model::number::float;
use model::page_events::PageEvents;
use model::study::Requirement;

use super::{ANY, LOOPS, Metric, PAGE, Table, View, count, duration, of_client};

/// The name of the time that a DNS lookup takes.
pub const DNS_LOOKUP_TIME: &str = "dns_lookup_time";
const START: &str =
    "DNS lookup begins; without a lookup, first connection opened; in a browser, navigation begins";
const NAVIGATION: &str = "navigation begins; browsers only";

pub(super) const METRICS: &[Metric] = &[
    Metric {
        start: START,
        end: "last byte of the last resource; in a browser, the event `load`; only if every resource succeeded",
        reads: &[Table::Connections, Table::PageEvents],
        starts_with_dns_lookup: true,
        ..of_client(duration("page_load_time", "Page load time", PAGE, |view| {
            let is_whole = view.totals.all.requests == view.totals.requests_succeeded;
            if is_browser(view) {
                // Real pages have requests that fail, which the check `failed_requests` judges.
                let is_outside = view.workload.page().is_some_and(Page::is_outside);
                return since_navigation(view, |events| events.loaded_ns.filter(|_| is_whole || is_outside));
            }
            since_start(view, view.totals.all.last_done_ns.filter(|_| is_whole))
        }))
    },
    Metric {
        start: START,
        end: "last response of the batch done; only in scripts and in loops that end after a number of requests, if every request succeeded",
        reads: &[Table::Connections],
        starts_with_dns_lookup: true,
        ..of_client(duration("batch_time", "Batch time", LOOPS, |view| {
            view.workload.requests()?;
            let is_whole = view.totals.all.requests == view.totals.requests_succeeded;
            since_start(view, view.totals.all.last_done_ns.filter(|_| is_whole))
        }))
    },
    Metric {
        start: START,
        end: "headers of the document's response read",
        reads: &[Table::Connections, Table::PageEvents],
        starts_with_dns_lookup: true,
        ..of_client(duration("time_to_first_byte", "Time to first byte", PAGE, |view| {
            if is_browser(view) {
                return since_navigation(view, |events| events.first_byte_ns);
            }
            since_start(view, view.totals.document?.first_byte_ns)
        }))
    },
    Metric {
        start: "DNS lookup begins",
        end: "address of the server known",
        requires: Some(Requirement::DnsLookup),
        reads: &[Table::Clients],
        ..duration(DNS_LOOKUP_TIME, "DNS lookup", ANY, |view| {
            let lookup = view.dns_lookup()?;
            lookup.ended_ns.checked_sub(lookup.began_ns).map(float)
        })
    },
    Metric {
        start: "first connection opened",
        end: "this connection ready for requests",
        reads: &[Table::Connections],
        ..of_client(duration("handshake_time", "Handshake time", PAGE, |view| {
            let first = view.first_connection()?;
            first.ready_ns?.checked_sub(first.opened_ns).map(float)
        }))
    },
    Metric {
        start: NAVIGATION,
        end: "first paint of text or an image",
        ..of_events("first_contentful_paint", "First contentful paint", |view| {
            since_navigation(view, |events| events.first_contentful_paint_ns)
        })
    },
    Metric {
        start: NAVIGATION,
        end: "paint of the largest text or image, to 1 ms",
        ..of_events("largest_contentful_paint", "Largest contentful paint", |view| {
            since_navigation(view, |events| events.largest_contentful_paint_ns)
        })
    },
    Metric {
        start: NAVIGATION,
        end: "the event `DOMContentLoaded`",
        ..of_events("dom_content_loaded", "DOM content loaded", |view| {
            since_navigation(view, |events| events.dom_content_loaded_ns)
        })
    },
    Metric {
        start: "TCP connect for the document begins; browsers only, not over QUIC",
        end: "TCP established",
        ..of_events("connect_time", "TCP connect", |view| {
            let events = view.page_events()?;
            between(events.connect_began_ns, events.connect_ended_ns)
        })
    },
    Metric {
        start: "handshake of TLS or QUIC for the document begins; browsers only, not over cleartext",
        end: "handshake done",
        ..of_events("secure_handshake_time", "TLS or QUIC handshake", |view| {
            let events = view.page_events()?;
            between(events.handshake_began_ns, events.handshake_ended_ns)
        })
    },
    Metric {
        start: "request for the document sent; browsers only",
        end: "headers of its response read",
        ..of_events("document_wait_time", "Wait for the document", |view| {
            let events = view.page_events()?;
            between(events.sent_ns, events.first_byte_ns)
        })
    },
    Metric {
        start: "headers of the document's response read; browsers only",
        end: "last byte of the document read",
        ..of_events("document_transfer_time", "Transfer of the document", |view| {
            let events = view.page_events()?;
            between(events.first_byte_ns, events.done_ns)
        })
    },
    Metric {
        unit: "1",
        crosses_network: false,
        start: "navigation begins; browsers only",
        end: "the page is loaded and the network idle",
        ..of_events("cumulative_layout_shift", "Cumulative layout shift", |view| {
            view.page_events()?.layout_shift_millionths.map(|millionths| float(millionths) / 1e6)
        })
    },
    Metric {
        reads: &[Table::PageEvents],
        ..count("console_errors", "Errors on the console", PAGE, |view| {
            Some(float(view.page_events()?.console_errors))
        })
    },
];

/// A value of a browser's page load, of which less is better.
const fn of_events(name: &'static str, title: &'static str, value: fn(&View<'_>) -> Option<f64>) -> Metric {
    Metric { reads: &[Table::PageEvents], ..duration(name, title, PAGE, value) }
}

/// Browsers are the external clients that load pages. Without their events nothing else replaces them: the
/// first connection of a browser is no begin of its navigation.
fn is_browser(view: &View<'_>) -> bool {
    view.page_events().is_some() || view.external().next().is_some()
}

/// The time from the start of a browser's navigation to an event.
fn since_navigation(view: &View<'_>, event: impl Fn(&PageEvents) -> Option<u64>) -> Option<f64> {
    let events = view.page_events()?;
    events.since_start_ns(event(events)).map(float)
}

fn between(began_ns: Option<u64>, ended_ns: Option<u64>) -> Option<f64> {
    ended_ns?.checked_sub(began_ns?).map(float)
}

/// The time from the DNS lookup, or from the first connection, to an event.
fn since_start(view: &View<'_>, end_ns: Option<u64>) -> Option<f64> {
    let opened_ns = view.first_connection()?.opened_ns;
    let began_ns = view.dns_lookup().map_or(opened_ns, |lookup| lookup.began_ns.min(opened_ns));
    end_ns?.checked_sub(began_ns).map(float)
}
