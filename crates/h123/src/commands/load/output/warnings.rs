//! What a reader has to know before using the numbers of a load test.

use model::assignment::Lag;
use model::units::{counted, format_ns};

use super::protocols;
use super::summary::{Summary, is_late};

/// What a reader has to know before using the numbers.
pub(super) fn warnings(summary: &Summary) -> Vec<String> {
    let mut warnings = Vec::new();
    if summary.completed.requests == 0 {
        warnings.push("nothing was measured: no request succeeded".to_owned());
    }
    if let (0, Some((kind, failed))) = (summary.failed, summary.connections.failures.first_key_value()) {
        warnings.push(format!(
            "{} failed although no request did: {}: {}",
            counted(summary.connections.failed(), "connection"),
            kind.name(),
            failed.first_reason
        ));
    }
    if summary.never_sent > 0 {
        warnings.push(format!(
            "the schedule was missed: {} due and never sent because no connection was free",
            counted(summary.never_sent, "request")
        ));
    }
    if is_late(summary.own_lag) {
        warnings.push(format!(
            "the schedule was missed: requests were sent {} after the intended time; latency counts from the \
             intended time",
            describe(summary.lag)
        ));
    } else if is_late(summary.lag) {
        warnings.push(format!(
            "the server held every connection: requests waited {} for a free one, which is part of their latency; \
             use more connections or streams if the server should receive them on time",
            describe(summary.lag)
        ));
    }
    if summary.suspended.count > 0 {
        warnings.push(format!(
            "the client stood still {}, for up to {}: it was stopped, or its machine was; throughput is computed \
             without this time, latencies contain it",
            counted(summary.suspended.count, "time"),
            format_ns(summary.suspended.max_ns)
        ));
    }
    if summary.setup.coalesce_ns > 0 {
        warnings.push(format!(
            "latencies are not the server's: every read waited {} for more bytes (--coalesce is for throughput)",
            format_ns(summary.setup.coalesce_ns)
        ));
    }
    if summary.cpu.is_bottleneck() {
        warnings.push(format!(
            "the generator was the bottleneck: a thread used its CPU for {:.0} % of the time; use more --threads \
             or less load",
            summary.cpu.busiest_share * 100.0
        ));
    }
    if summary.cpu.is_starved() {
        warnings.push(format!(
            "the generator waited for a core for {:.0} % of the time, which adds to the server's times; give it \
             its own core",
            summary.cpu.waiting_share * 100.0
        ));
    }
    if let Some(rows) = &summary.rows {
        warnings.extend(rows.warning());
    }
    warnings.extend(protocols::warnings(summary));
    if let Some(reason) = &summary.stopped {
        warnings.push(format!("stopped early: {reason}"));
    }
    warnings
}

fn describe(lag: Lag) -> String {
    let [p50, p99, max] = [lag.p50_ns, lag.p99_ns, lag.max_ns].map(format_ns);
    format!("{p50} (p50), {p99} (p99), {max} (max)")
}
