//! The times of requests, and how many succeed. `h123 load` and studies share these definitions.

use model::assignment::ClientReport;
use model::external::ExternalReport;
use model::number::float;
use model::record::ServerRequest;
use model::sample::Sample;
use model::study::Requirement;

use super::{
    ANY, Better, LOOPS, LOOPS_AND_PLAYER, Metric, OPEN, OPEN_AND_PLAYER, Table, Values, View, count,
    duration, request_duration, volume,
};

const LAST_BYTE: &str = "last byte of its response; only requests that succeeded";

pub(super) const METRICS: &[Metric] = &[
    Metric {
        start: "request intended",
        end: LAST_BYTE,
        is_response_time: true,
        external: Some(external_times),
        ..request_duration("request_time", "Request time", ANY, |sample| {
            of_success(sample, Sample::request_time_ns)
        })
    },
    Metric {
        unit: "1/s",
        better: Better::Higher,
        start: "first counted request intended, or the end of the warm-up",
        end: "last counted response done, without the time in which the client was suspended",
        ..count("requests_per_second", "Requests per second", ANY, run_requests_per_second)
    },
    Metric {
        unit: "bit/s",
        better: Better::Higher,
        start: "first counted request intended, or the end of the warm-up",
        end: "last counted response done, without the time in which the client was suspended; only response bodies of \
              requests that succeeded",
        ..count("goodput", "Goodput", ANY, goodput)
    },
    Metric {
        better: Better::Higher,
        ceiling: Some(1.0),
        values: Values::Share(|view| (volume::succeeded(view), view.requests())),
        ..count("availability", "Share of requests that succeeded", LOOPS_AND_PLAYER, |_| None)
    },
    Metric {
        start: "request sent",
        end: LAST_BYTE,
        is_response_time: true,
        external: Some(external_times),
        ..request_duration("service_time", "Service time", LOOPS, |sample| {
            of_success(sample, Sample::service_time_ns)
        })
    },
    Metric {
        start: "request sent",
        end: "headers of its response read; only requests that succeeded",
        is_response_time: true,
        ..request_duration("wait_time", "Time to response headers", LOOPS_AND_PLAYER, |sample| {
            of_success(sample, Sample::wait_time_ns)
        })
    },
    Metric {
        start: "headers of the response read",
        end: LAST_BYTE,
        ..request_duration("transfer_time", "Transfer time", LOOPS_AND_PLAYER, |sample| {
            of_success(sample, Sample::transfer_time_ns)
        })
    },
    Metric {
        start: "start in the server's log, or last packet of the request at the server's end of the link",
        end: "end in the server's log, or last packet of the response at the server's end of the link",
        requires: Some(Requirement::ServerTime),
        reads: &[Table::ServerRequests],
        crosses_network: false,
        values: Values::AtServer(|_, at_server| Some(at_server.request_time_ns)),
        ..duration("server_time", "Server time", ANY, |_| None)
    },
    Metric {
        start: "as for server_time",
        end: "first packet of the response at the server's end of the link; with a log alone, the end of server_time minus \
              the transfer time, at least 0",
        requires: Some(Requirement::ServerTime),
        reads: &[Table::ServerRequests],
        crosses_network: false,
        values: Values::AtServer(before_response_ns),
        ..duration("server_time_before_response", "Server time before the response", ANY, |_| None)
    },
    Metric {
        start: "request intended",
        end: "last byte of its response, minus the server time",
        requires: Some(Requirement::ServerTime),
        reads: &[Table::ServerRequests],
        values: Values::AtServer(outside_server_time_ns),
        ..duration("outside_server_time", "Time outside the server", ANY, |_| None)
    },
    Metric {
        better: Better::Neither,
        start: "request intended",
        end: "request sent",
        crosses_network: false,
        ..request_duration("schedule_lag", "Schedule lag", OPEN_AND_PLAYER, Sample::schedule_lag_ns)
    },
    Metric {
        reads: &[Table::Clients],
        ..count("never_sent", "Requests due but never sent", OPEN, |view| {
            Some(float(view.clients().map(|client| client.never_sent).sum()))
        })
    },
    Metric {
        reads: &[Table::Clients],
        ..count("unfinished", "Requests unfinished at the end", LOOPS, |view| {
            Some(float(view.clients().map(|client| client.unfinished).sum()))
        })
    },
    Metric {
        start: "end of the warm-up",
        reads: &[Table::Clients],
        crosses_network: false,
        ..duration("client_cpu_per_request", "Client CPU per request", LOOPS, client_cpu_per_request)
    },
];

/// Requests that succeeded per second of a period; `None` for an empty period.
pub fn requests_per_second(requests_ok: u64, period_ns: u64) -> Option<f64> {
    per_second(requests_ok, period_ns)
}

fn per_second(number: u64, period_ns: u64) -> Option<f64> {
    (period_ns > 0).then(|| float(number) / float(period_ns) * float(model::units::NANOS_PER_S))
}

/// The share of requests that succeeded; `None` without requests.
pub fn availability(requests_ok: u64, requests: u64) -> Option<f64> {
    (requests > 0).then(|| float(requests_ok) / float(requests))
}

/// A time of a request that succeeded.
fn of_success(sample: &Sample, time: fn(&Sample) -> Option<u64>) -> Option<u64> {
    time(sample).filter(|_| sample.outcome.is_ok())
}

/// External clients have closed loops only, where a request is sent at its intended time. Their times are
/// therefore both request times and service times.
fn external_times(report: &ExternalReport) -> Vec<(u64, u64)> {
    report.times().collect()
}

/// An external client without rows reports how long its requests took together.
fn run_requests_per_second(view: &View<'_>) -> Option<f64> {
    if view.totals.all.requests == 0 {
        let requests_ok = view.external().map(|report| report.requests_ok).sum();
        let period_ns = view.external().filter_map(|report| report.took_ns).max().unwrap_or(0);
        return requests_per_second(requests_ok, period_ns);
    }
    requests_per_second(view.totals.requests_ok, period_ns(view)?)
}

/// The bits of successful response bodies per second (RFC 2647, section 3.17); `None` for clients without
/// rows, which do not report the bytes of successes.
fn goodput(view: &View<'_>) -> Option<f64> {
    per_second(view.totals.ok_body_bytes * 8, period_ns(view)?)
}

/// From the first counted request intended, but not before the end of the warm-up, to the last response done,
/// without the time in which all clients stood still.
fn period_ns(view: &View<'_>) -> Option<u64> {
    let period_ns = view.totals.all.last_done_ns?.checked_sub(view.began_ns(&view.totals)?)?;
    period_ns.checked_sub(view.clients().map(ClientReport::stood_still_ns).min().unwrap_or(0))
}

/// The server time without the time in which the client receives the response. Both are durations, so the
/// server's clock does not matter.
fn before_response_ns(sample: &Sample, at_server: &ServerRequest) -> Option<u64> {
    match at_server.arrived_ns.zip(at_server.first_sent_ns) {
        Some((arrived_ns, first_sent_ns)) => first_sent_ns.checked_sub(arrived_ns),
        None => Some(at_server.request_time_ns.saturating_sub(sample.transfer_time_ns()?)),
    }
}

/// 0 if the server time, which is rounded, is longer than the request time.
fn outside_server_time_ns(sample: &Sample, at_server: &ServerRequest) -> Option<u64> {
    Some(sample.request_time_ns()?.saturating_sub(at_server.request_time_ns))
}

/// User and system time since the end of the warm-up, over the requests that count.
fn client_cpu_per_request(view: &View<'_>) -> Option<f64> {
    let spent = |client: &ClientReport| {
        let warmup = client.warmup.unwrap_or_default();
        let all_ns = client.cpu_user_ns.saturating_add(client.cpu_system_ns);
        all_ns.saturating_sub(warmup.cpu_user_ns).saturating_sub(warmup.cpu_system_ns)
    };
    let (cpu_ns, requests) = (float(view.clients().map(spent).sum()), view.requests());
    (requests > 0).then(|| cpu_ns / float(requests))
}
