//! What other people's load tools say of their requests: parsed from their text, never read from disk here.
//!
//! A tool that says something of each request gives [`Row`]s; one that says sums alone gives these. What it does not say is
//! named in [`Said::not_reported`], so that nobody takes its absence for a zero.

pub mod ab;
pub mod curl;
pub mod h2load;
pub mod siege;
pub mod wrk;

use model::sample::FailureKind;
use model::variant::HttpVersion;

/// The form of a tool's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// h2load's text, and the rows of its `--log-file`.
    H2load,
    /// The text of wrk with the script `clients/wrk/report.lua`.
    Wrk,
    /// A line of `curl --write-out '%{json}\n'` for each transfer.
    Curl,
    /// siege's `json_output`.
    Siege,
    /// ab's text, and the percentiles of its option `-e`.
    Ab,
}

/// What a tool was asked for, as far as its output has to be read with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Connections held open.
    pub connections: u64,
    /// Requests in flight when time ends the test, whose bytes a tool may count though it counts no such requests; 0 where a
    /// number of requests ends it.
    pub cut_off: u64,
}

/// What a tool said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// One for each request, in the order of their beginning; none where it says sums alone.
    pub rows: Vec<Row>,
    /// Requests without a row that succeeded.
    pub ok: u64,
    /// Requests without a row that did not.
    pub failures: Vec<(FailureKind, u64)>,
    /// How long the requests without rows took all together, by the tool's own clock.
    pub took_ns: Option<u64>,
    /// Times of requests without rows that succeeded, each with how many took so long.
    pub times: Vec<(u64, u64)>,
    /// Response body bytes of all requests.
    pub body_bytes: Option<u64>,
    /// Connections that it opened.
    pub connections: Option<u64>,
    /// The version of all responses, where it says it once for all of them.
    pub version: Option<HttpVersion>,
    /// CPU time in user space that it spent on its report.
    pub report_cpu_ns: u64,
    /// What it does not say.
    pub not_reported: Vec<NotReported>,
}

/// One request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Its beginning, in nanoseconds since that of the first one.
    pub start_ns: u64,
    /// From its beginning to the last byte of its response.
    pub took_ns: u64,
    /// From its beginning to the first byte of its response.
    pub wait_ns: Option<u64>,
    /// The status code.
    pub status: Option<u16>,
    /// The version that the response used.
    pub version: Option<HttpVersion>,
    /// Response body bytes.
    pub body_bytes: Option<u64>,
    /// How it failed, where it did.
    pub failure: Option<(FailureKind, String)>,
}

/// Something that a tool does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReported {
    /// The metric that cannot be had, or the check that cannot be made.
    pub about: &'static str,
    /// What it is that is not said, to follow *does not say*.
    pub what: &'static str,
}

/// Why an output is none of its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found}, expected {expected}")]
pub struct Unreadable {
    found: String,
    expected: String,
}

impl Format {
    /// Every form.
    pub const ALL: [Format; 5] = [Format::H2load, Format::Wrk, Format::Curl, Format::Siege, Format::Ab];

    /// The name in a client's description.
    pub const fn name(self) -> &'static str {
        match self {
            Format::H2load => "h2load",
            Format::Wrk => "wrk",
            Format::Curl => "curl",
            Format::Siege => "siege",
            Format::Ab => "ab",
        }
    }

    /// Reads what a tool said: its standard output, and the file that it was told to write.
    ///
    /// # Errors
    /// What was found in the place of what.
    pub fn parse(self, text: &str, file: &str, asked: Asked) -> Result<Said, Unreadable> {
        match self {
            Format::H2load => h2load::parse(text, file, asked.cut_off),
            Format::Wrk => wrk::parse(text, asked.connections),
            Format::Curl => curl::parse(text),
            Format::Siege => siege::parse(text),
            Format::Ab => ab::parse(text, file, asked.cut_off),
        }
    }

    /// Whether what it says can be read only together with a file that the tool writes.
    pub const fn needs_file(self) -> bool {
        matches!(self, Format::H2load | Format::Ab)
    }
}

impl Unreadable {
    fn new(found: &str, expected: impl Into<String>) -> Self {
        Unreadable { found: format!("`{}`", super::shown(found)), expected: expected.into() }
    }

    fn missing(expected: impl Into<String>) -> Self {
        Unreadable { found: "nothing of the kind".to_owned(), expected: expected.into() }
    }
}

const fn not_reported(about: &'static str, what: &'static str) -> NotReported {
    NotReported { about, what }
}

/// The body bytes of all requests, where those of requests that the end cut off are at most half a percent of them.
fn without_cut_off(bytes: u64, requests: u64, cut_off: u64) -> Result<u64, NotReported> {
    const MOST: u64 = 200;
    const WHAT: &str = "how many body bytes it received apart from those of requests that the end cut off";
    let is_small = cut_off.saturating_mul(MOST) <= requests;
    if is_small { Ok(bytes) } else { Err(not_reported("workloads_match", WHAT)) }
}

/// The not_reported of tools that see a response only as a whole.
fn of_the_head() -> [NotReported; 2] {
    const WHAT: &str = "when the head of each response came";
    [not_reported("wait_time", WHAT), not_reported("transfer_time", WHAT)]
}

/// What follows a label at the start of a line.
fn after<'a>(text: &'a str, label: &str) -> Result<&'a str, Unreadable> {
    let found = text.lines().find_map(|line| line.trim().strip_prefix(label)).map(str::trim);
    found.ok_or_else(|| Unreadable::missing(format!("a line `{label} …`")))
}

fn whole(text: &str) -> Result<u64, Unreadable> {
    text.trim().parse().map_err(|_| Unreadable::new(text, "a whole number"))
}

/// A number of units, each of so many nanoseconds; it must not be negative and not beyond a hundred days.
fn nanoseconds(text: &str, unit_ns: f64) -> Result<u64, Unreadable> {
    const MOST_NS: f64 = 8.64e15;
    let ns = text.trim().parse::<f64>().map_or(f64::NAN, |number| number * unit_ns);
    if !(0.0..=MOST_NS).contains(&ns) {
        return Err(Unreadable::new(text, "a time from 0 to 100 days"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "inside the range above")]
    Ok(ns.round() as u64)
}

/// The failure that a status stands for, where it does.
fn status_failure(status: u16) -> Option<(FailureKind, String)> {
    (!(200..300).contains(&status))
        .then(|| (FailureKind::WrongStatus, format!("status {status}, expected 2xx")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_bounded() {
        assert_eq!(nanoseconds("1.5", 1e6), Ok(1_500_000));
        for wrong in ["-1", "nan", "inf", "1e99", "", "x"] {
            assert!(nanoseconds(wrong, 1e9).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_are_those_of_descriptions() {
        for format in Format::ALL {
            assert_eq!(Format::ALL.into_iter().find(|known| known.name() == format.name()), Some(format));
        }
    }
}
