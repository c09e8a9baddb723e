//! A load test's numbers for people: a few lines and one table that fits the terminal.

use std::fmt::Write;

use model::sample::FailureKind;
use model::units::{format_bytes, format_duration_ns, three_digits};

use super::summary::{Group, HeaderBytes, Summary, as_f64};
use super::thresholds::{Judged, percent};
use super::times::Times;
use crate::connect::advice;

/// So many URLs have a line.
const URLS: usize = 10;
/// Width of the names, and of the counts and times beside them.
const NAME: usize = 13;
const COUNT: usize = 9;
const TIME: usize = 9;

/// How the summary is to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) width: u16,
    pub(crate) colour: bool,
}

/// What a column of times shows.
#[derive(Clone, Copy, Debug)]
enum Column {
    Min,
    Mean,
    Sd,
    Max,
    Quantile(&'static str, f64),
}

/// The columns that fit.
fn columns(width: u16) -> Vec<Column> {
    use Column::{Max, Mean, Min, Quantile, Sd};
    let (p50, p90) = (Quantile("p50", 0.5), Quantile("p90", 0.9));
    let (p99, p999, p9999) = (Quantile("p99", 0.99), Quantile("p99.9", 0.999), Quantile("p99.99", 0.9999));
    match width {
        ..96 => vec![Mean, p50, p90, p99, p999, Max],
        96..116 => vec![Mean, Sd, p50, p90, p99, p999, p9999, Max],
        _ => vec![Min, Mean, Sd, p50, Quantile("p75", 0.75), p90, p99, p999, p9999, Max],
    }
}

/// The summary for people.
pub(crate) fn format(summary: &Summary, thresholds: &[Judged], look: Look) -> String {
    let mut out = Out { text: String::new(), look, columns: columns(look.width) };
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
        let quantile = |ns: Option<u64>| ns.map_or("–".to_owned(), |ns| time(as_f64(ns)));
        let (p50, max) = (quantile(group.latency.quantile(0.5)), quantile(group.latency.max()));
        let count = group.requests;
        let text = format!(
            "failed       {count} × {}: {reason}{advice} · after {p50} (p50), {max} (max)",
            kind.name()
        );
        out.paint(RED, &text);
    }
    for judged in thresholds {
        let (colour, word) = if judged.is_failed { (RED, "failed") } else { (PLAIN, "kept") };
        out.paint(colour, &format!("fail-if      {}: {word}, {}", judged.text, judged.measured()));
    }
    for warning in summary.warnings() {
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
    look: Look,
    columns: Vec<Column>,
}

impl Out {
    fn line(&mut self, text: &str) {
        self.paint(PLAIN, text);
    }

    /// A line of its own, indented, folded at the terminal's width.
    fn paint(&mut self, colour: &str, text: &str) {
        for (number, part) in folded(text, usize::from(self.look.width).saturating_sub(2)).iter().enumerate()
        {
            let indent = if number == 0 { 2 } else { 2 + NAME };
            let part = " ".repeat(indent) + part;
            // Writing to a String cannot fail.
            let _ = if self.look.colour && !colour.is_empty() {
                writeln!(self.text, "\x1b[{colour}m{part}\x1b[0m")
            } else {
                writeln!(self.text, "{part}")
            };
        }
    }

    fn head(&mut self, summary: &Summary) {
        let asked = &summary.asked;
        let _ = writeln!(self.text, "{} · {} · {}", asked.url, asked.variant, asked.load);
        let colour = if summary.failed > 0 { RED } else { BOLD };
        let counts = format!(
            "requests     {} completed, {} failed in {} · {} requests/s",
            summary.completed,
            summary.failed,
            time(as_f64(summary.duration_ns)),
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
        if summary.phases.named().iter().all(|(_, times)| times.count() == 0) {
            return;
        }
        self.text.push('\n');
        self.header("", "count");
        let phases = &summary.phases;
        for (name, times) in [
            ("latency", &phases.latency),
            ("service time", &phases.service),
            ("wait", &phases.wait),
            ("transfer", &phases.transfer),
            ("DNS", &phases.dns),
            ("connect", &phases.connect),
            ("handshake", &phases.handshake),
            ("… resumed", &phases.resumed),
            ("… early data", &phases.early),
        ] {
            if times.count() > 0 {
                self.row(name, times.count(), times);
            }
        }
        self.text.push('\n');
    }

    /// By status and by URL, where there is more than one.
    fn groups(&mut self, summary: &Summary) {
        let mut statuses: Vec<(String, &Group)> =
            summary.statuses.iter().map(|(status, group)| (format!("  {status}"), group)).collect();
        if statuses.len() > 1 {
            self.header("status", "requests");
            statuses.drain(..).for_each(|(name, group)| self.row(&name, group.requests, &group.latency));
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
        let bytes = |bytes: u64| format_bytes(as_f64(bytes));
        let seconds = as_f64(summary.duration_ns) / 1e9;
        let rate = if seconds > 0.0 {
            format!(" ({}/s)", format_bytes(as_f64(summary.body_bytes) / seconds))
        } else {
            String::new()
        };
        let failed = match summary.failed_connections {
            0 => String::new(),
            failed => {
                let kind =
                    |(kind, (count, _)): (&FailureKind, &(u64, String))| format!("{count} × {}", kind.name());
                let kinds: Vec<String> = summary.connection_failures.iter().map(kind).collect();
                format!(" ({failed} failed: {})", kinds.join(", "))
            }
        };
        self.line(&format!(
            "bytes        {} of bodies{rate} · {} sent, {} received on {} connections{failed}",
            bytes(summary.body_bytes),
            bytes(summary.sent_bytes),
            bytes(summary.received_bytes),
            summary.connections
        ));
        if summary.completed > 0 {
            let each = |is: HeaderBytes| {
                let per = |total: u64| three_digits(as_f64(total) / as_f64(summary.completed));
                let ratio = is.ratio().map_or(String::new(), |ratio| format!(" ({})", three_digits(ratio)));
                format!("{} → {} B{ratio}", per(is.raw), per(is.wire))
            };
            self.line(&format!(
                "headers      sent {}, received {} per request, before → on the wire",
                each(summary.request_headers),
                each(summary.response_headers)
            ));
        }
        let per = &summary.per_connection.requests;
        if let (Some(mean), Some(sd), true) = (per.mean(), per.sd(), per.count() > 1) {
            let latency = &summary.per_connection.mean_latency_ns;
            let range = match (latency.min(), latency.max()) {
                (Some(min), Some(max)) => {
                    format!(" · mean latency from {} to {}", time(as_f64(min)), time(as_f64(max)))
                }
                _ => String::new(),
            };
            self.line(&format!(
                "a connection {} requests (sd {}, from {} to {}){range}",
                three_digits(mean),
                three_digits(sd),
                per.min().unwrap_or(0),
                per.max().unwrap_or(0)
            ));
        }
        if summary.asked.is_open {
            let lag = summary.lag;
            let [p50, p99, max] = [lag.p50_ns, lag.p99_ns, lag.max_ns].map(|ns| time(as_f64(ns)));
            self.line(&format!(
                "schedule     sent {p50} (p50), {p99} (p99), {max} (max) after the intended time"
            ));
        }
    }

    fn protocols(&mut self, summary: &Summary) {
        for (name, text) in summary.protocols.lines() {
            self.line(&format!("{name:<NAME$}{text}"));
        }
        if let Some(path) = &summary.asked.key_log {
            self.line(&format!("{:<NAME$}secrets of TLS and QUIC in {path} (SSLKEYLOGFILE)", "key log"));
        }
        if let Some(folder) = &summary.asked.qlog {
            self.line(&format!("{:<NAME$}what QUIC did in {folder} (QLOGDIR)", "qlog"));
        }
    }

    fn cpu(&mut self, summary: &Summary) {
        let cpu = &summary.cpu;
        if cpu.requests == 0 {
            return;
        }
        let per = |ns: u64| time(as_f64(ns) / as_f64(cpu.requests));
        let cores = match cpu.threads {
            1 => "a core".to_owned(),
            threads => format!("{threads} cores"),
        };
        self.line(&format!(
            "client CPU   {} user + {} system per request · {:.0} % of {cores} · {} of memory",
            per(cpu.user_ns),
            per(cpu.system_ns),
            cpu.share * 100.0,
            format_bytes(as_f64(cpu.max_resident_bytes))
        ));
    }

    fn rows(&mut self, summary: &Summary) {
        if let Some(rows) = summary.rows.as_ref().filter(|rows| rows.fault.is_none()) {
            self.line(&format!(
                "rows         {} in {} · writing them took {} of CPU beside the above",
                rows.rows,
                rows.path.display(),
                time(as_f64(rows.cpu_ns))
            ));
        }
    }

    fn header(&mut self, name: &str, count: &str) {
        let mut line = format!("{name:<NAME$}{count:>COUNT$}");
        for column in &self.columns {
            let name = match column {
                Column::Min => "min",
                Column::Mean => "mean",
                Column::Sd => "sd",
                Column::Max => "max",
                Column::Quantile(name, _) => name,
            };
            let _ = write!(line, "{name:>TIME$}");
        }
        self.paint(BOLD, &line);
    }

    fn row(&mut self, name: &str, count: u64, times: &Times) {
        let mut line = format!("{name:<NAME$}{count:>COUNT$}");
        for column in &self.columns {
            let value = match *column {
                Column::Min => times.min().map(as_f64),
                Column::Mean => times.mean(),
                Column::Sd => times.sd(),
                Column::Max => times.max().map(as_f64),
                // With none beyond it, it would only be the maximum again.
                Column::Quantile(_, share) if times.beyond(share) == 0 => None,
                Column::Quantile(_, share) => times.quantile(share).map(as_f64),
            };
            let value = value.map_or("–".to_owned(), time);
            let _ = write!(line, "{value:>TIME$}");
        }
        self.line(&line);
    }
}

fn time(ns: f64) -> String {
    format_duration_ns(ns)
}

/// A text in parts of at most this many characters, broken at spaces; parts after the first are further indented.
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
