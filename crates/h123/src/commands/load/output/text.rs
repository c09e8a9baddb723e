//! The numbers of a load test for people: a few lines, and tables that fit the terminal.

use std::fmt::Write;

use model::Histogram;
use model::number::float;
use model::units::{counted, format_bytes, format_duration_ns, three_digits};

use super::protocols;
use super::summary::{Group, Summary};
use super::thresholds::{ThresholdResult, percent};
use super::warnings::warnings;
use crate::connect::advice;

/// The most URLs in the table.
const URLS: usize = 10;
/// Widths of names, counts and times.
const NAME: usize = 13;
const COUNT: usize = 9;
const TIME: usize = 9;

/// The style of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) width: u16,
    pub(crate) colour: bool,
}

/// A statistic: its name and its value.
type Column = (&'static str, fn(&Histogram) -> Option<f64>);

const COLUMNS: [Column; 10] = [
    ("min", |times| times.min().map(float)),
    ("mean", Histogram::mean),
    ("sd", Histogram::sd),
    ("p50", |times| quantile(times, 0.5)),
    ("p75", |times| quantile(times, 0.75)),
    ("p90", |times| quantile(times, 0.9)),
    ("p99", |times| quantile(times, 0.99)),
    ("p99.9", |times| quantile(times, 0.999)),
    ("p99.99", |times| quantile(times, 0.9999)),
    ("max", |times| times.max().map(float)),
];

/// A quantile. With no value beyond it, it would repeat the maximum.
fn quantile(times: &Histogram, share: f64) -> Option<f64> {
    times.quantile(share).filter(|_| times.beyond(share) > 0).map(float)
}

/// The columns that fit.
fn columns(width: u16) -> Vec<Column> {
    let hidden: &[&str] = match width {
        ..96 => &["min", "sd", "p75", "p99.99"],
        96..116 => &["min", "p75"],
        _ => &[],
    };
    COLUMNS.into_iter().filter(|(name, _)| !hidden.contains(name)).collect()
}

/// The summary for people.
pub(crate) fn format(summary: &Summary, thresholds: &[ThresholdResult], style: Style) -> String {
    let mut out = Out { text: String::new(), style, columns: columns(style.width) };
    out.head(summary);
    out.times(summary);
    out.groups(summary);
    out.sizes(summary);
    out.protocols(summary);
    out.cpu(summary);
    out.rows(summary);
    for (kind, group) in &summary.failures {
        let reason = group.reason.as_deref().unwrap_or("");
        let advice = advice::on(*kind, reason).map_or(String::new(), |advice| format!("; {advice}"));
        let quantile = |ns: Option<u64>| ns.map_or("–".to_owned(), |ns| time(float(ns)));
        let (p50, max) = (quantile(group.latency.quantile(0.5)), quantile(group.latency.max()));
        let count = group.requests;
        let text = format!(
            "failed       {count} × {}: {reason}{advice} · after {p50} (p50), {max} (max)",
            kind.name()
        );
        out.paint(RED, &text);
    }
    for result in thresholds {
        let (colour, word) = if result.is_failed { (RED, "failed") } else { (PLAIN, "passed") };
        out.paint(colour, &format!("fail-if      {}: {word}, {}", result.text, result.measured()));
    }
    for warning in warnings(summary) {
        out.paint(YELLOW, &format!("warning      {warning}"));
    }
    out.text.trim_end().to_owned()
}

const PLAIN: &str = "";
const BOLD: &str = "1";
const RED: &str = "31";
const YELLOW: &str = "33";

struct Out {
    text: String,
    style: Style,
    columns: Vec<Column>,
}

impl Out {
    fn line(&mut self, text: &str) {
        self.paint(PLAIN, text);
    }

    /// A line, indented and folded at the terminal's width.
    fn paint(&mut self, colour: &str, text: &str) {
        for (number, part) in folded(text, usize::from(self.style.width).saturating_sub(2)).iter().enumerate()
        {
            let indent = if number == 0 { 2 } else { 2 + NAME };
            let part = " ".repeat(indent) + part;
            // Writing to a String cannot fail.
            let _ = if self.style.colour && !colour.is_empty() {
                writeln!(self.text, "\x1b[{colour}m{part}\x1b[0m")
            } else {
                writeln!(self.text, "{part}")
            };
        }
    }

    fn head(&mut self, summary: &Summary) {
        let setup = &summary.setup;
        let _ = writeln!(self.text, "{} · {} · {}", setup.url, setup.variant, setup.load);
        let colour = if summary.failed > 0 { RED } else { BOLD };
        let counts = format!(
            "requests     {} completed, {} failed in {} · {} requests/s",
            summary.completed.requests,
            summary.failed,
            time(float(summary.duration_ns)),
            three_digits(summary.per_second())
        );
        self.paint(colour, &counts);
        let mut answered: Vec<String> =
            summary.versions.iter().map(|(name, count)| format!("{count} in {name}")).collect();
        if answered.is_empty() {
            answered.push("none".to_owned());
        }
        let availability =
            summary.availability().map_or("–".to_owned(), |share| format!("{} %", percent(share)));
        let mut line = format!("answered     {} · availability {availability}", answered.join(", "));
        for (count, what) in
            [(summary.unfinished, "in flight at the end"), (summary.never_sent, "never sent")]
        {
            if count > 0 {
                let _ = write!(line, " · {count} {what}");
            }
        }
        self.line(&line);
    }

    fn times(&mut self, summary: &Summary) {
        let phases = summary.phases().into_iter().filter(|(_, times)| times.count() > 0).collect::<Vec<_>>();
        if phases.is_empty() {
            return;
        }
        self.text.push('\n');
        self.header("", "count");
        let latency = phases.iter().find(|(name, _)| *name == "latency").map(|(_, times)| self.cells(times));
        for (name, times) in phases {
            // Without a schedule, requests are due when they are sent.
            if name == "service" && latency.as_ref() == Some(&self.cells(times)) {
                continue;
            }
            let name = match name {
                "service" => "service time",
                "dns" => "DNS",
                "resumed_handshake" => "… resumed",
                "early_handshake" => "… early data",
                same => same,
            };
            self.row(name, times.count(), times);
        }
        self.text.push('\n');
    }

    /// Tables by status and by URL, where there are several.
    fn groups(&mut self, summary: &Summary) {
        if summary.statuses.len() > 1 {
            self.header("status", "requests");
            for (status, group) in &summary.statuses {
                self.row(&format!("  {status}"), group.requests, &group.latency);
            }
            self.text.push('\n');
        }
        let mut urls: Vec<&(String, Group)> =
            summary.urls.iter().filter(|(_, group)| group.requests > 0).collect();
        if urls.len() > 1 {
            urls.sort_by_key(|(_, group)| std::cmp::Reverse(group.requests));
            self.header("URL", "requests");
            for (url, group) in urls.iter().take(URLS) {
                self.line(&format!("  {url}"));
                self.row("", group.requests, &group.latency);
            }
            if urls.len() > URLS || summary.further_urls.is_some() {
                self.line("  … and more: --json, --csv");
            }
            self.text.push('\n');
        }
    }

    fn sizes(&mut self, summary: &Summary) {
        let bytes = |bytes: u64| format_bytes(float(bytes));
        let (completed, connections) = (summary.completed.requests, &summary.connections);
        let body_bytes = summary.completed.response_body_bytes;
        let seconds = float(summary.duration_ns) / 1e9;
        let rate = if seconds > 0.0 {
            format!(" ({}/s)", format_bytes(float(body_bytes) / seconds))
        } else {
            String::new()
        };
        let failed = match connections.failed() {
            0 => String::new(),
            failed => {
                let kinds = connections.failures.iter();
                let kinds: Vec<String> =
                    kinds.map(|(kind, failed)| format!("{} × {}", failed.connections, kind.name())).collect();
                format!(" ({failed} failed: {})", kinds.join(", "))
            }
        };
        self.line(&format!(
            "bytes        {} of bodies{rate} · {} sent, {} received on {}{failed}",
            bytes(body_bytes),
            bytes(connections.sent_bytes),
            bytes(connections.received_bytes),
            counted(connections.connections, "connection")
        ));
        if completed > 0 {
            let [request, response] = summary.headers().map(|(raw, wire)| {
                let per = |total: u64| three_digits(float(total) / float(completed));
                let ratio =
                    ratio(raw, wire).map_or(String::new(), |ratio| format!(" ({})", three_digits(ratio)));
                format!("{} → {} B{ratio}", per(raw), per(wire))
            });
            self.line(&format!(
                "headers      sent {request}, received {response} per request, uncompressed → wire"
            ));
        }
        let per = &connections.requests;
        if let (Some(mean), Some(sd), true) = (per.mean(), per.sd(), per.count() > 1) {
            let latency = &connections.mean_latency;
            let range = match (latency.min(), latency.max()) {
                (Some(min), Some(max)) => match [min, max].map(|ns| time(float(ns))) {
                    [min, max] if min == max => format!(" · mean latency {min}"),
                    [min, max] => format!(" · mean latency from {min} to {max}"),
                },
                _ => String::new(),
            };
            let (min, max) = (per.min().unwrap_or(0), per.max().unwrap_or(0));
            let requests = if min == max {
                format!("{} each", counted(min, "request"))
            } else {
                format!("{} requests (sd {}, from {min} to {max})", three_digits(mean), three_digits(sd))
            };
            self.line(&format!("a connection {requests}{range}"));
        }
        if summary.setup.is_open {
            let lag = summary.lag;
            let [p50, p99, max] = [lag.p50_ns, lag.p99_ns, lag.max_ns].map(|ns| time(float(ns)));
            self.line(&format!(
                "schedule     sent {p50} (p50), {p99} (p99), {max} (max) after the intended time"
            ));
        }
    }

    fn protocols(&mut self, summary: &Summary) {
        for (name, text) in protocols::lines(summary) {
            self.line(&format!("{name:<NAME$}{text}"));
        }
        if let Some(path) = &summary.setup.key_log {
            self.line(&format!("{:<NAME$}TLS and QUIC secrets in {path} (SSLKEYLOGFILE)", "key log"));
        }
        if let Some(folder) = &summary.setup.qlog {
            self.line(&format!("{:<NAME$}QUIC events in {folder} (QLOGDIR)", "qlog"));
        }
    }

    fn cpu(&mut self, summary: &Summary) {
        let cpu = &summary.cpu;
        if summary.ended() == 0 {
            return;
        }
        let per = |ns: u64| time(float(ns) / float(summary.ended()));
        let cores = match cpu.threads {
            1 => "a core".to_owned(),
            threads => format!("{threads} cores"),
        };
        self.line(&format!(
            "client CPU   {} user + {} system per request · {:.0} % of {cores} · {} of memory",
            per(cpu.user_ns),
            per(cpu.system_ns),
            cpu.share * 100.0,
            format_bytes(float(cpu.max_resident_bytes))
        ));
    }

    fn rows(&mut self, summary: &Summary) {
        if let Some(rows) = summary.rows.as_ref().filter(|rows| rows.fault.is_none()) {
            self.line(&format!(
                "rows         {} in {} · writing them took a further {} of CPU time",
                rows.rows,
                rows.path.display(),
                time(float(rows.cpu_ns))
            ));
        }
    }

    fn header(&mut self, name: &str, count: &str) {
        let mut line = format!("{name:<NAME$}{count:>COUNT$}");
        for (name, _) in &self.columns {
            let _ = write!(line, "{name:>TIME$}");
        }
        self.paint(BOLD, &line);
    }

    fn row(&mut self, name: &str, count: u64, times: &Histogram) {
        self.line(&format!("{name:<NAME$}{count:>COUNT$}{}", self.cells(times)));
    }

    /// The statistics that fit, in columns.
    fn cells(&self, times: &Histogram) -> String {
        let value = |(_, statistic): &Column| statistic(times).map_or("–".to_owned(), time);
        self.columns.iter().map(|column| format!("{:>TIME$}", value(column))).collect()
    }
}

/// Bytes on the wire for each byte before compression.
pub(super) fn ratio(raw: u64, wire: u64) -> Option<f64> {
    (raw > 0).then(|| float(wire) / float(raw))
}

fn time(ns: f64) -> String {
    format_duration_ns(ns)
}

/// A text in parts of at most this many characters, broken at spaces. Parts after the first have a larger
/// indent.
fn folded(text: &str, width: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut room = width;
    for (number, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        let is_long_line = number > 0 && length + 1 > room;
        if is_long_line && parts.last().is_some_and(|part| part.chars().count() > NAME) {
            parts.push(word.to_owned());
            room = width.saturating_sub(NAME + length);
            continue;
        }
        if let Some(part) = parts.last_mut() {
            if number > 0 {
                part.push(' ');
            }
            part.push_str(word);
        }
        room = room.saturating_sub(length + usize::from(number > 0));
    }
    parts
}
