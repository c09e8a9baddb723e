//! The times of page loads, of batches of requests, and of connection establishment.

use model::number::float;
use model::study::Requirement;

use super::{ANY, LOOPS, Metric, PAGE, Table, View, duration, of_client};

/// The name of the time that a DNS lookup takes.
pub const DNS_LOOKUP_TIME: &str = "dns_lookup_time";
const START: &str = "DNS lookup begins; without a lookup, first connection opened";

pub(super) const METRICS: &[Metric] = &[
    Metric {
        start: START,
        end: "last byte of the last resource; only if every resource succeeded",
        reads: &[Table::Connections],
        starts_with_dns_lookup: true,
        ..of_client(duration("page_load_time", "Page load time", PAGE, |view| {
            let is_whole = view.totals.all.requests == view.totals.requests_succeeded;
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
        reads: &[Table::Connections],
        starts_with_dns_lookup: true,
        ..of_client(duration("time_to_first_byte", "Time to first byte", PAGE, |view| {
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
];

/// The time from the DNS lookup, or from the first connection, to an event.
fn since_start(view: &View<'_>, end_ns: Option<u64>) -> Option<f64> {
    let opened_ns = view.first_connection()?.opened_ns;
    let began_ns = view.dns_lookup().map_or(opened_ns, |lookup| lookup.began_ns.min(opened_ns));
    end_ns?.checked_sub(began_ns).map(float)
}
