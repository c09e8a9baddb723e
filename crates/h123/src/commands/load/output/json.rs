//! A load test's numbers for programs: durations in nanoseconds, sizes in bytes. docs/load.md describes the keys.

use model::sample::FailureKind;
use serde_json::{Map, Value, json};

use super::summary::{Group, HeaderBytes, Summary};
use super::thresholds::Judged;
use super::times::{QUANTILES, Times};
use crate::connect::advice;

/// The version of the keys: it changes when one changes its meaning or goes; new ones may come without.
const VERSION: u32 = 1;

/// The summary as JSON.
pub(crate) fn format(summary: &Summary, thresholds: &[Judged]) -> Value {
    let (asked, per_connection, cpu) = (&summary.asked, &summary.per_connection, &summary.cpu);
    let phases: Map<String, Value> =
        summary.phases.named().into_iter().map(|(name, is)| (format!("{name}_ns"), times(is))).collect();
    let mut json = json!({
        "version": VERSION,
        "url": asked.url,
        "variant": asked.variant,
        "load": asked.load,
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
            "body": summary.body_bytes, "request_body": summary.request_body_bytes,
            "sent": summary.sent_bytes, "received": summary.received_bytes,
            "request_header_raw": summary.request_headers.raw,
            "request_header_wire": summary.request_headers.wire,
            "response_header_raw": summary.response_headers.raw,
            "response_header_wire": summary.response_headers.wire,
        },
        "headers": { "request": headers(summary.request_headers), "response": headers(summary.response_headers) },
        "connections": summary.connections,
        "failed_connections": summary.failed_connections,
        "connection_errors": connection_errors(summary),
        "per_connection": {
            "requests": times(&per_connection.requests),
            "mean_latency_ns": times(&per_connection.mean_latency_ns),
            "received_bytes": times(&per_connection.received_bytes),
            "lifetime_ns": times(&per_connection.lifetime_ns),
        },
        "cpu": {
            "user_ns": cpu.user_ns, "system_ns": cpu.system_ns,
            "requests": cpu.requests, "threads": cpu.threads,
            "share_of_threads": cpu.share, "busiest_share": cpu.busiest_share,
            "waiting_share": cpu.waiting_share, "is_bottleneck": cpu.is_bottleneck(),
            "max_resident_bytes": cpu.max_resident_bytes,
        },
        "rows": summary.rows.as_ref().map(|rows| json!({
            "file": rows.path, "written": rows.rows, "cpu_ns": rows.cpu_ns, "waited_ns": rows.waited_ns,
            "fault": rows.fault,
        })),
        "thresholds": thresholds.iter().map(Judged::to_json).collect::<Vec<_>>(),
        "warnings": summary.warnings(),
    });
    for (key, is) in summary.protocols.json(&summary.phases) {
        json[key] = is;
    }
    json["key_log"] = json!(summary.asked.key_log);
    json["qlog"] = json!(summary.asked.qlog);
    // The two that every reader wants stand at the top too.
    for (key, is) in [("latency_ns", &summary.phases.latency), ("service_ns", &summary.phases.service)] {
        json[key] = times(is);
    }
    json
}

fn requests(summary: &Summary) -> Value {
    let failures: Map<String, Value> =
        summary.failures.iter().map(|(kind, is)| (kind.name().to_owned(), is.requests.into())).collect();
    json!({
        "completed": summary.completed, "failed": summary.failed, "failures": failures,
        "unfinished": summary.unfinished, "never_sent": summary.never_sent, "per_second": summary.per_second(),
    })
}

fn errors(summary: &Summary) -> Vec<Value> {
    let error = |(kind, is): (&FailureKind, &Group)| {
        json!({
            "kind": kind.name(), "count": is.requests, "first_reason": is.reason, "time_ns": times(&is.latency),
            "advice": is.reason.as_deref().and_then(|reason| advice::on(*kind, reason)),
        })
    };
    summary.failures.iter().map(error).collect()
}

fn connection_errors(summary: &Summary) -> Vec<Value> {
    let error = |(kind, (count, reason)): (&FailureKind, &(u64, String))| json!({ "kind": kind.name(), "count": count, "first_reason": reason });
    summary.connection_failures.iter().map(error).collect()
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

fn headers(is: HeaderBytes) -> Value {
    json!({ "raw_bytes": is.raw, "wire_bytes": is.wire, "ratio": is.ratio() })
}

/// Quantiles and moments, with the count behind them; `beyond` says how many lie beyond each quantile.
fn times(is: &Times) -> Value {
    let mut value = json!({
        "count": is.count(), "min": is.min(), "max": is.max(), "mean": is.mean(), "sd": is.sd(),
    });
    for (name, share) in QUANTILES {
        value[*name] = json!(is.quantile(*share));
        value["beyond"][*name] = json!(is.beyond(*share));
    }
    value
}
