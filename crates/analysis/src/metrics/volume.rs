//! How many connections, requests, bytes and packets a run took.

use model::number::{self, float};
use model::record::LinkReport;
use model::sample::{Hints, Pushes};

use super::{ANY, Better, Metric, PAGE, RunValue, Table, View, bytes, count};
use crate::view::Totals;

pub(super) const METRICS: &[Metric] = &[
    Metric {
        reads: &[Table::Connections],
        ..count("connections", "Connections", ANY, |view| {
            let reported: u64 = view.external().filter_map(|report| report.connections).sum();
            Some(number::count(view.connections().count()) + float(reported))
        })
    },
    Metric {
        better: Better::Higher,
        ceiling: Some(1.0),
        start: "first request of each client intended",
        end: "its last response done",
        ..count("fairness", "Fairness between clients", ANY, fairness)
    },
    count("requests", "Requests", ANY, |view| Some(float(view.requests()))),
    count("requests_succeeded", "Requests that succeeded", ANY, |view| Some(float(succeeded(view)))),
    count("requests_failed", "Requests that failed", ANY, |view| {
        Some(float(view.requests().saturating_sub(succeeded(view))))
    }),
    bytes("request_header_raw_bytes", "Request headers before compression", PAGE, |view| {
        Some(float(view.totals.all.request_header_raw_bytes))
    }),
    bytes("request_header_wire_bytes", "Request headers on the wire", PAGE, |view| {
        Some(float(view.totals.all.request_header_wire_bytes))
    }),
    bytes("response_header_raw_bytes", "Response headers before compression", PAGE, |view| {
        Some(float(view.totals.all.response_header_raw_bytes))
    }),
    bytes("response_header_wire_bytes", "Response headers on the wire", PAGE, |view| {
        Some(float(view.totals.all.response_header_wire_bytes))
    }),
    Metric {
        better: Better::Neither,
        ..bytes("body_bytes_sent", "Body bytes sent", PAGE, |view| {
            Some(float(view.totals.all.request_body_bytes))
        })
    },
    Metric {
        better: Better::Neither,
        ..bytes("body_bytes_received", "Body bytes received", PAGE, |view| {
            Some(float(view.totals.all.response_body_bytes))
        })
    },
    Metric {
        reads: &[Table::Connections],
        ..count("reconnects", "Connections given up and replaced", ANY, |view| {
            let lost = number::count(view.connections().filter(|row| row.lost).count());
            (lost > 0.0).then_some(lost)
        })
    },
    Metric {
        reads: &[Table::Connections],
        ..count("requests_resent", "Requests sent again", ANY, |view| {
            let resent: u32 = view.connections().map(|row| row.resent).sum();
            view.connections().any(|row| row.lost).then(|| resent.into())
        })
    },
    offered("pushes_used", "Pushes used", |view| pushes(view, |pushed| pushed.used.into())),
    offered("pushes_unused", "Pushes unused", |view| {
        pushes(view, |pushed| pushed.whole.saturating_sub(pushed.used).into())
    }),
    offered("pushes_late", "Pushes too late", |view| pushes(view, |pushed| pushed.late.into())),
    Metric {
        unit: "B",
        ..offered("pushed_wasted_bytes", "Pushed bytes that nobody used", |view| {
            pushes(view, |pushed| pushed.wasted_bytes)
        })
    },
    offered("hints_used", "Hints used", |view| hints(view, |hinted| hinted.used)),
    offered("hints_unused", "Hints unused", |view| hints(view, |hinted| hinted.unused)),
    offered("hints_late", "Hints too late", |view| hints(view, |hinted| hinted.late)),
    entered("wire_bytes_up", "Bytes on the wire, up", "B", |view| sum(view, |link| link.up.bytes_in)),
    entered("wire_bytes_down", "Bytes on the wire, down", "B", |view| sum(view, |link| link.down.bytes_in)),
    entered("packets_up", "Packets on the wire, up", "1", |view| sum(view, |link| link.up.packets_in)),
    entered("packets_down", "Packets on the wire, down", "1", |view| sum(view, |link| link.down.packets_in)),
];

pub(super) fn succeeded(view: &View<'_>) -> u64 {
    let reported: u64 = view.external().map(|report| report.requests_ok).sum();
    view.totals.requests_ok + reported
}

/// What a client of a page makes of the resources that a server offers. No value without an offer.
const fn offered(name: &'static str, title: &'static str, value: RunValue) -> Metric {
    Metric { reads: &[Table::Connections], ..count(name, title, PAGE, value) }
}

fn pushes(view: &View<'_>, of: fn(Pushes) -> u64) -> Option<f64> {
    let mut sum = Pushes::default();
    view.connections().for_each(|row| sum += row.pushed);
    (sum != Pushes::default()).then(|| float(of(sum)))
}

fn hints(view: &View<'_>, of: fn(Hints) -> u32) -> Option<f64> {
    let mut sum = Hints::default();
    view.connections().for_each(|row| sum += row.hinted);
    (sum != Hints::default()).then(|| of(sum).into())
}

/// Jain's index of the goodput of clients: 1 where all are equal, 1/n where one of n has all (Jain, Chiu and
/// Hawe, *A quantitative measure of fairness and discrimination*, DEC-TR-301, 1984). `None` for a single
/// client. A client without a success has a goodput of 0.
fn fairness(view: &View<'_>) -> Option<f64> {
    let goodput = |totals: &Totals| {
        let (from, until) = (view.began_ns(totals)?, totals.all.last_done_ns?);
        let period_ns = until.checked_sub(from).filter(|ns| *ns > 0)?;
        Some(float(totals.ok_body_bytes) / float(period_ns))
    };
    let all: Vec<f64> = view.of_clients.iter().map(|totals| goodput(totals).unwrap_or(0.0)).collect();
    let (sum, squares) = (all.iter().sum::<f64>(), all.iter().map(|value| value * value).sum::<f64>());
    (all.len() > 1 && squares > 0.0).then(|| sum * sum / (number::count(all.len()) * squares))
}

/// What entered the links, of which less is better.
const fn entered(name: &'static str, title: &'static str, unit: &'static str, value: RunValue) -> Metric {
    Metric { unit, reads: &[Table::Links], ..bytes(name, title, PAGE, value) }
}

/// The sum over the links of what entered them, including frames that were lost; `None` if nothing was
/// emulated.
fn sum(view: &View<'_>, entered: fn(&LinkReport) -> u64) -> Option<f64> {
    let links = &view.record.links;
    (!links.is_empty()).then(|| float(links.iter().map(entered).sum()))
}
