//! The numbers of a load test for programs: durations in nanoseconds, sizes in bytes. docs/load.md describes
//! the keys.

use model::Histogram;
use serde_json::{Map, Value, json};

use super::protocols;
use super::summary::{Group, Summary};
use super::text::ratio;
use super::thresholds::ThresholdResult;
use super::warnings::warnings;
use crate::connect::advice;

/// The version of the keys: it changes when a key changes its meaning or is removed, and not when one is
/// added.
const VERSION: u32 = 2;
/// The quantiles that JSON and CSV have, by name.
pub(super) const QUANTILES: &[(&str, f64)] = &[
    ("p50", 0.50),
    ("p75", 0.75),
    ("p90", 0.90),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99_9", 0.999),
    ("p99_99", 0.9999),
];

/// The summary as JSON.
pub(crate) fn format(summary: &Summary, thresholds: &[ThresholdResult]) -> Value {
    let (setup, cpu, connections) = (&summary.setup, &summary.cpu, &summary.connections);
    let completed = &summary.completed;
    let [request_headers, response_headers] = summary
        .headers()
        .map(|(raw, wire)| json!({ "raw_bytes": raw, "wire_bytes": wire, "ratio": ratio(raw, wire) }));
    let phases: Map<String, Value> =
        summary.phases().into_iter().map(|(name, is)| (format!("{name}_ns"), times(is))).collect();
    let per_connection: Map<String, Value> =
        summary.per_connection().into_iter().map(|(name, is)| (name.to_owned(), times(is))).collect();
    let mut json = json!({
        "version": VERSION,
        "url": setup.url,
        "variant": setup.variant,
        "load": setup.load,
        "versions": summary.versions,
        "duration_ns": summary.duration_ns,
        "requests": requests(summary),
        "availability": summary.availability(),
        "phases": phases,
        "statuses": summary.statuses.iter().map(|(status, is)| (status.to_string(), json!(is.requests))).collect::<Map<_, _>>(),
        "by_status": summary.statuses.iter().map(|(status, is)| (status.to_string(), group(is))).collect::<Map<_, _>>(),
        "by_url": urls(summary),
        "errors": errors(summary),
        "schedule": {
            "sent_after_intended_ns": {
                "p50": summary.lag.p50_ns, "p99": summary.lag.p99_ns, "max": summary.lag.max_ns,
            },
            "never_sent": summary.never_sent,
        },
        "stopped": summary.stopped,
        "bytes": {
            "body": completed.response_body_bytes, "request_body": completed.request_body_bytes,
            "sent": connections.sent_bytes, "received": connections.received_bytes,
            "request_header_raw": completed.request_header_raw_bytes,
            "request_header_wire": completed.request_header_wire_bytes,
            "response_header_raw": completed.response_header_raw_bytes,
            "response_header_wire": completed.response_header_wire_bytes,
        },
        "headers": { "request": request_headers, "response": response_headers },
        "connections": connections.connections,
        "failed_connections": connections.failed(),
        "connection_errors": connections.failures.iter().map(|(kind, failed)| json!({
            "kind": kind.name(), "count": failed.connections, "first_reason": failed.first_reason,
        })).collect::<Vec<_>>(),
        "per_connection": per_connection,
        "cpu": {
            "user_ns": cpu.user_ns, "system_ns": cpu.system_ns,
            "requests": summary.ended(), "threads": cpu.threads,
            "share_of_threads": cpu.share, "busiest_share": cpu.busiest_share,
            "waiting_share": cpu.waiting_share, "is_bottleneck": cpu.is_bottleneck(),
            "max_resident_bytes": cpu.max_resident_bytes,
        },
        "rows": summary.rows.as_ref().map(|rows| json!({
            "file": rows.path, "written": rows.rows, "cpu_ns": rows.cpu_ns, "waited_ns": rows.waited_ns,
            "fault": rows.fault,
        })),
        "thresholds": thresholds.iter().map(ThresholdResult::to_json).collect::<Vec<_>>(),
        "warnings": warnings(summary),
    });
    for (key, is) in protocols::json(summary).as_object().into_iter().flatten() {
        json[key] = is.clone();
    }
    json["key_log"] = json!(summary.setup.key_log);
    json["qlog"] = json!(summary.setup.qlog);
    // The two that every reader wants are at the top too.
    json["latency_ns"] = times(&summary.latency);
    json["service_ns"] = times(&summary.times.service);
    json
}

fn requests(summary: &Summary) -> Value {
    let failures: Map<String, Value> =
        summary.failures.iter().map(|(kind, is)| (kind.name().to_owned(), is.requests.into())).collect();
    json!({
        "completed": summary.completed.requests, "failed": summary.failed, "failures": failures,
        "unfinished": summary.unfinished, "never_sent": summary.never_sent, "per_second": summary.per_second(),
    })
}

fn errors(summary: &Summary) -> Value {
    let errors = summary.failures.iter().map(|(kind, is)| {
        json!({
            "kind": kind.name(), "count": is.requests, "first_reason": is.reason, "time_ns": times(&is.latency),
            "advice": is.reason.as_deref().and_then(|reason| advice::on(*kind, reason)),
        })
    });
    errors.collect()
}

fn urls(summary: &Summary) -> Vec<Value> {
    let named = |url: Option<&str>, is: &Group| {
        let mut value = group(is);
        value["url"] = json!(url);
        value
    };
    let urls = summary.urls.iter().filter(|(_, is)| is.requests > 0).map(|(url, is)| named(Some(url), is));
    urls.chain(summary.further_urls.iter().map(|is| named(None, is))).collect()
}

fn group(is: &Group) -> Value {
    json!({
        "requests": is.requests, "failed": is.failed, "body_bytes": is.body_bytes, "latency_ns": times(&is.latency),
    })
}

/// Quantiles and moments, with the number of values; `beyond` is the number of values beyond each quantile.
fn times(is: &Histogram) -> Value {
    let mut value = json!({
        "count": is.count(), "min": is.min(), "max": is.max(), "mean": is.mean(), "sd": is.sd(),
    });
    for (name, share) in QUANTILES {
        value[*name] = json!(is.quantile(*share));
        value["beyond"][*name] = json!(is.beyond(*share));
    }
    value
}
