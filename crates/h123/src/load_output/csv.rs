//! A load test's numbers as a table (`--csv`, RFC 4180): one line for each thing that was timed or counted.

use std::fmt::Write;

use super::summary::{Group, Summary};
use super::times::{QUANTILES, Times};

/// The table, with a line of names. What does not apply is empty; times are nanoseconds.
pub(crate) fn format(summary: &Summary) -> String {
    let mut text = String::from("scope,name,requests,failed,body_bytes,count,min,mean,sd");
    QUANTILES.iter().for_each(|(name, _)| text.extend([",", name]));
    text.push_str(",max,reason\n");
    let total = Line {
        requests: Some(summary.completed + summary.failed),
        failed: Some(summary.failed),
        body_bytes: Some(summary.body_bytes),
        ..Line::new("total", &summary.asked.url, Some(&summary.phases.latency))
    };
    total.write(&mut text);
    for (name, times) in summary.phases.named() {
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
    let per_connection = &summary.per_connection;
    for (name, times) in [
        ("requests", &per_connection.requests),
        ("mean_latency_ns", &per_connection.mean_latency_ns),
        ("received_bytes", &per_connection.received_bytes),
        ("lifetime_ns", &per_connection.lifetime_ns),
    ] {
        Line::new("per_connection", name, Some(times)).write(&mut text);
    }
    for (name, count) in summary.protocols.counts() {
        Line { count: Some(count), ..Line::new("connections", name, None) }.write(&mut text);
    }
    let never_sent = Line { requests: Some(summary.never_sent), ..Line::new("never_sent", "", None) };
    never_sent.write(&mut text);
    text
}

struct Line<'a> {
    scope: &'static str,
    name: &'a str,
    requests: Option<u64>,
    failed: Option<u64>,
    body_bytes: Option<u64>,
    /// What is counted where there are no times.
    count: Option<u64>,
    times: Option<&'a Times>,
    reason: &'a str,
}

impl<'a> Line<'a> {
    fn new(scope: &'static str, name: &'a str, times: Option<&'a Times>) -> Self {
        Line { scope, name, requests: None, failed: None, body_bytes: None, count: None, times, reason: "" }
    }

    fn of(scope: &'static str, name: &'a str, group: &'a Group) -> Self {
        Line {
            requests: Some(group.requests),
            failed: Some(group.failed),
            body_bytes: Some(group.body_bytes),
            reason: group.reason.as_deref().unwrap_or(""),
            ..Line::new(scope, name, Some(&group.latency))
        }
    }

    fn write(&self, text: &mut String) {
        let number = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
        let decimal = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.1}"));
        let mut fields = vec![
            self.scope.to_owned(),
            quoted(self.name),
            number(self.requests),
            number(self.failed),
            number(self.body_bytes),
        ];
        fields.push(number(self.times.map(Times::count).or(self.count)));
        fields.push(number(self.times.and_then(Times::min)));
        fields.push(decimal(self.times.and_then(Times::mean)));
        fields.push(decimal(self.times.and_then(Times::sd)));
        fields
            .extend(QUANTILES.iter().map(|(_, share)| number(self.times.and_then(|is| is.quantile(*share)))));
        fields.push(number(self.times.and_then(Times::max)));
        fields.push(quoted(self.reason));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", fields.join(","));
    }
}

/// A field as RFC 4180, section 2, wants it; line ends become spaces, so that a line is a record.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\"").replace(['\n', '\r'], " "))
    } else {
        field.to_owned()
    }
}
