//! The output of external load tools.
//!
//! A tool that reports each request gives [`Row`]s; one that reports only totals gives those. What a tool
//! does not report is listed in [`ClientOutput::not_reported`], so that a missing value never counts as zero.

pub mod ab;
pub mod curl;
pub mod h2load;
pub mod siege;
pub mod wrk;

use std::fmt::Display;

use model::sample::FailureKind;
use model::variant::HttpVersion;

use super::{EXPECTED_TIME, nanoseconds, shown};

model::named! { "an output format";
    /// The format of a tool's output, by its name in a client's description.
    pub enum Format {
        /// h2load's text, and the rows of its `--log-file`.
        H2load = "h2load",
        /// The text of wrk with the script `clients/wrk/report.lua`.
        Wrk = "wrk",
        /// A line of `curl --write-out '%{json}\n'` for each transfer.
        Curl = "curl",
        /// siege's `json_output`.
        Siege = "siege",
        /// ab's text, and the percentiles of its option `-e`.
        Ab = "ab",
    }
}

/// The part of a tool's command line that is needed to read its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestedLoad {
    /// Connections held open.
    pub connections: u64,
    /// Requests in flight when time ends the test; 0 where a number of requests ends it. A tool may count
    /// their bytes but not the requests.
    pub cut_off: u64,
}

/// The output of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientOutput {
    /// One for each request, in the order in which they began; empty where the tool reports only totals.
    pub rows: Vec<Row>,
    /// Successful requests without a row.
    pub ok: u64,
    /// Failed requests without a row.
    pub failures: Vec<(FailureKind, u64)>,
    /// How long all requests without a row took together, by the tool's clock.
    pub took_ns: Option<u64>,
    /// Distinct times of successful requests without a row, each with the number of requests.
    pub times: Vec<(u64, u64)>,
    /// Response body bytes of all requests.
    pub body_bytes: Option<u64>,
    /// Connections that the tool opened.
    pub connections: Option<u64>,
    /// The version of all responses, where the tool reports one for all of them.
    pub version: Option<HttpVersion>,
    /// CPU time in user space that the tool spent on its report.
    pub report_cpu_ns: u64,
    /// What the tool does not report.
    pub not_reported: Vec<MissingValue>,
}

/// One request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Its start, in nanoseconds since the start of the first request.
    pub start_ns: u64,
    /// From its start to the last byte of its response.
    pub took_ns: u64,
    /// From its start to the first byte of its response.
    pub wait_ns: Option<u64>,
    /// The status code.
    pub status: Option<u16>,
    /// The version of the response.
    pub version: Option<HttpVersion>,
    /// Response body bytes.
    pub body_bytes: Option<u64>,
    /// How it failed, if it did.
    pub failure: Option<(FailureKind, String)>,
}

/// A value that a tool does not report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingValue {
    /// The metric or the check that needs it.
    pub about: &'static str,
    /// The value; continues the sentence *The tool does not report …*.
    pub what: &'static str,
}

/// The output does not have its format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OutputError(String);

impl Format {
    /// Parses a tool's standard output and the file that the tool wrote.
    ///
    /// # Errors
    /// The first part that does not have this format.
    pub fn parse(self, text: &str, file: &str, load: RequestedLoad) -> Result<ClientOutput, OutputError> {
        match self {
            Format::H2load => h2load::parse(text, file, load.cut_off),
            Format::Wrk => wrk::parse(text, load.connections),
            Format::Curl => curl::parse(text),
            Format::Siege => siege::parse(text),
            Format::Ab => ab::parse(text, file, load.cut_off),
        }
    }

    /// Whether the output includes a file that the tool writes.
    pub const fn needs_file(self) -> bool {
        matches!(self, Format::H2load | Format::Ab)
    }
}

impl OutputError {
    /// A part of the output is not what belongs there.
    fn wrong(found: &str, expected: impl Display) -> Self {
        OutputError(format!("`{}` is not {expected}", shown(found)))
    }

    /// Text that is not the JSON in `expected`. The reason quotes the text, so it is cut too.
    fn json(found: &str, expected: &str, reason: &serde_json::Error) -> Self {
        OutputError::wrong(found, format_args!("{expected} ({})", shown(&reason.to_string())))
    }

    fn missing(expected: impl Display) -> Self {
        OutputError(format!("the output has no {expected}"))
    }
}

impl ClientOutput {
    /// The output of a tool that reports only totals, and no response's head. Failures that did not occur are
    /// left out.
    fn totals(ok: u64, failures: &[(FailureKind, u64)]) -> Self {
        let failures = failures.iter().copied().filter(|(_, requests)| *requests > 0).collect();
        let not_reported = [HEADS.as_slice(), &[CUT_OFF, OPENED, GOODPUT]].concat();
        ClientOutput { ok, failures, not_reported, ..ClientOutput::default() }
    }

    /// Adds values that the tool does not report.
    fn lacks<const N: usize>(&mut self, what: &'static str, metrics: [&'static str; N]) {
        self.not_reported.extend(metrics.map(|about| MissingValue { about, what }));
    }

    /// Sets the body bytes of all requests, where those of requests that were cut off are at most half a
    /// percent of them.
    fn set_body_bytes(&mut self, bytes: u64, requests: u64, cut_off: u64) {
        if cut_off.saturating_mul(200) <= requests {
            self.body_bytes = Some(bytes);
        } else {
            self.lacks("how many body bytes belong to complete responses", ["workloads_match"]);
        }
    }
}

/// The metrics of each request's time.
const TIMES: [&str; 2] = ["request_time", "service_time"];
/// What tools lack that see a response only as a whole.
const HEADS: [MissingValue; 2] = [
    MissingValue { about: "wait_time", what: "when the headers of each response arrived" },
    MissingValue { about: "transfer_time", what: "when the headers of each response arrived" },
];
const CUT_OFF: MissingValue =
    MissingValue { about: "unfinished", what: "how many requests were cut off at the end" };
const GOODPUT: MissingValue = MissingValue { about: "goodput", what: "the body bytes of single responses" };
const OPENED: MissingValue = MissingValue { about: "connections", what: "how many connections it opened" };

/// The text after a label at the start of a line.
fn after<'a>(text: &'a str, label: &str) -> Result<&'a str, OutputError> {
    let found = text.lines().find_map(|line| line.trim().strip_prefix(label)).map(str::trim);
    found.ok_or_else(|| OutputError::missing(format_args!("line `{label} …`")))
}

fn whole(text: &str) -> Result<u64, OutputError> {
    text.trim().parse().map_err(|_| OutputError::wrong(text, "a whole number"))
}

/// A number of units of `unit_ns` each, in nanoseconds.
fn time(text: &str, unit_ns: f64) -> Result<u64, OutputError> {
    let ns = text.trim().parse().ok().and_then(|number| nanoseconds(number, unit_ns));
    ns.ok_or_else(|| OutputError::wrong(text, EXPECTED_TIME))
}

/// The failure that a status means, if it is not 2xx.
fn status_failure(status: u16) -> Option<(FailureKind, String)> {
    (!(200..300).contains(&status))
        .then(|| (FailureKind::WrongStatus, format!("status {status}, expected 2xx")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_bounded() {
        assert_eq!(time("1.5", 1e6), Ok(1_500_000));
        for wrong in ["-1", "nan", "inf", "1e99", "", "x"] {
            assert!(time(wrong, 1e9).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_differ() {
        for format in Format::ALL {
            assert_eq!(Format::ALL.into_iter().find(|known| known.name() == format.name()), Some(format));
        }
    }
}
