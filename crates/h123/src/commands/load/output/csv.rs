//! The numbers of a load test as CSV (RFC 4180): one line for each thing that was timed or counted.

use std::fmt::Write;

use model::Histogram;

use super::json::QUANTILES;
use super::protocols;
use super::summary::{Group, Summary};

/// The table, with a line of names. Fields that do not apply are empty; times are nanoseconds.
pub(crate) fn format(summary: &Summary) -> String {
    let mut text = String::from("scope,name,value,requests,failed,body_bytes,count,min,mean,sd");
    QUANTILES.iter().for_each(|(name, _)| text.extend([",", name]));
    text.push_str(",max,reason\n");
    let total = Line {
        counts: [summary.ended(), summary.failed, summary.completed.response_body_bytes].map(Some),
        ..Line::new("total", &summary.setup.url, Some(&summary.latency))
    };
    total.write(&mut text);
    for (name, times) in summary.phases() {
        Line::new("phase", &format!("{name}_ns"), Some(times)).write(&mut text);
    }
    for (status, group) in &summary.statuses {
        Line::of("status", &status.to_string(), group).write(&mut text);
    }
    for (kind, group) in &summary.failures {
        Line::of("error", kind.name(), group).write(&mut text);
    }
    for (url, group) in &summary.urls {
        Line::of("url", url, group).write(&mut text);
    }
    if let Some(group) = &summary.further_urls {
        Line::of("url", "", group).write(&mut text);
    }
    for (name, times) in summary.per_connection() {
        Line::new("per_connection", name, Some(times)).write(&mut text);
    }
    for (name, count) in protocols::counts(summary) {
        Line { value: Some(count.to_string()), ..Line::new("connections", name, None) }.write(&mut text);
    }
    for (name, value) in statistics(summary) {
        Line { value, ..Line::new("statistic", name, None) }.write(&mut text);
    }
    text
}

/// Single numbers: durations in nanoseconds, sizes in bytes, shares from 0 to 1.
fn statistics(summary: &Summary) -> Vec<(&'static str, Option<String>)> {
    let whole = |value: u64| Some(value.to_string());
    let (completed, connections, cpu) = (&summary.completed, &summary.connections, &summary.cpu);
    let mut statistics = vec![
        ("duration_ns", whole(summary.duration_ns)),
        ("requests_per_second", Some(summary.per_second().to_string())),
        ("availability", summary.availability().map(|share| share.to_string())),
        ("unfinished", whole(summary.unfinished)),
        ("never_sent", whole(summary.never_sent)),
    ];
    if summary.setup.is_open {
        statistics.extend([
            ("sent_after_intended_p50_ns", whole(summary.lag.p50_ns)),
            ("sent_after_intended_p99_ns", whole(summary.lag.p99_ns)),
            ("sent_after_intended_max_ns", whole(summary.lag.max_ns)),
        ]);
    }
    statistics.extend([
        ("connections", whole(connections.connections)),
        ("failed_connections", whole(connections.failed())),
        ("sent_bytes", whole(connections.sent_bytes)),
        ("received_bytes", whole(connections.received_bytes)),
        ("request_body_bytes", whole(completed.request_body_bytes)),
        ("request_header_raw_bytes", whole(completed.request_header_raw_bytes)),
        ("request_header_wire_bytes", whole(completed.request_header_wire_bytes)),
        ("response_header_raw_bytes", whole(completed.response_header_raw_bytes)),
        ("response_header_wire_bytes", whole(completed.response_header_wire_bytes)),
        ("cpu_user_ns", whole(cpu.user_ns)),
        ("cpu_system_ns", whole(cpu.system_ns)),
        ("cpu_share_of_threads", Some(cpu.share.to_string())),
        ("cpu_busiest_share", Some(cpu.busiest_share.to_string())),
        ("cpu_waiting_share", Some(cpu.waiting_share.to_string())),
        ("cpu_is_bottleneck", Some(u8::from(cpu.is_bottleneck()).to_string())),
        ("max_resident_bytes", whole(cpu.max_resident_bytes)),
    ]);
    statistics
}

struct Line<'a> {
    scope: &'static str,
    name: &'a str,
    value: Option<String>,
    /// Requests, failed requests, bytes of bodies.
    counts: [Option<u64>; 3],
    times: Option<&'a Histogram>,
    reason: &'a str,
}

impl<'a> Line<'a> {
    fn new(scope: &'static str, name: &'a str, times: Option<&'a Histogram>) -> Self {
        Line { scope, name, value: None, counts: [None; 3], times, reason: "" }
    }

    fn of(scope: &'static str, name: &'a str, group: &'a Group) -> Self {
        Line {
            counts: [group.requests, group.failed, group.body_bytes].map(Some),
            reason: group.reason.as_deref().unwrap_or(""),
            ..Line::new(scope, name, Some(&group.latency))
        }
    }

    fn write(&self, text: &mut String) {
        let number = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
        let decimal = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.1}"));
        let times = self.times;
        let value = self.value.clone().unwrap_or_default();
        let mut fields = vec![self.scope.to_owned(), quoted(self.name), value];
        fields.extend(self.counts.into_iter().chain([times.map(Histogram::count)]).map(number));
        fields.push(number(times.and_then(Histogram::min)));
        fields.extend([Histogram::mean, Histogram::sd].map(|of| decimal(times.and_then(of))));
        // With no value beyond it, a quantile would repeat the maximum.
        let quantile = |share: f64| times.filter(|is| is.beyond(share) > 0)?.quantile(share);
        fields.extend(QUANTILES.iter().map(|(_, share)| number(quantile(*share))));
        fields.push(number(times.and_then(Histogram::max)));
        fields.push(quoted(self.reason));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", fields.join(","));
    }
}

/// A field in the form of RFC 4180, section 2. Line ends become spaces, so that a line is a record.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\"").replace(['\n', '\r'], " "))
    } else {
        field.to_owned()
    }
}
