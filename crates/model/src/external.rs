//! External clients: other programs in place of h123's own client.

use serde::{Deserialize, Serialize};

use crate::sample::FailureKind;
use crate::variant::HttpVersion;

/// The client that is this tool's own.
pub const OWN_CLIENT: &str = "h123";
/// The check that a client with several paths does not support if its rows do not name them.
pub const URLS: &str = "urls";

/// The report of an external client on a run, apart from its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalReport {
    /// The client's name, such as `wrk`.
    pub client: String,
    /// The version that it reports.
    pub version: String,
    /// Requests without a row that succeeded.
    pub requests_ok: u64,
    /// Requests without a row that did not.
    pub failures: Vec<FailureCount>,
    /// How long the requests without a row took all together, by the program's own clock; `None` if it does
    /// not report it.
    pub took_ns: Option<u64>,
    /// Times of requests without a row that succeeded, from sent to done, in nanoseconds, each once. Empty if
    /// it does not report them.
    pub times_ns: Vec<u64>,
    /// How many requests took each of [`ExternalReport::times_ns`].
    pub times_requests: Vec<u64>,
    /// Response body bytes of all requests; `None` if it does not report it.
    pub body_bytes: Option<u64>,
    /// Whether its rows have their own response body bytes; header bytes they never have.
    pub has_row_bytes: bool,
    /// Connections that it opened; `None` if it does not report it.
    pub connections: Option<u64>,
    /// The version of HTTP that all its responses used; `None` if it does not report it, or only for each
    /// response.
    pub http: Option<HttpVersion>,
    /// The event at which a request's time begins, for people; it ends with the last byte of the response.
    /// `None` if the client's description does not state it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<String>,
    /// What it does not report: `ABOUT: reason`, with a metric or a check that is not available, and why.
    pub not_reported: Vec<String>,
}

/// Failures of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureCount {
    /// The kind.
    pub kind: FailureKind,
    /// How many.
    pub requests: u64,
}

/// The subject and the reason of an entry of [`ExternalReport::not_reported`].
pub fn split_not_reported(entry: &str) -> (&str, &str) {
    entry.split_once(": ").unwrap_or((entry, ""))
}

impl ExternalReport {
    /// Why a metric or a check is not available, if it is not.
    pub fn reason_not_reported(&self, about: &str) -> Option<&str> {
        let mut parts = self.not_reported.iter().map(|entry| split_not_reported(entry));
        parts.find(|(of, _)| *of == about).map(|(_, reason)| reason)
    }

    /// Each time of requests without a row, in nanoseconds, and the number of requests that took it.
    pub fn times(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.times_ns.iter().copied().zip(self.times_requests.iter().copied())
    }

    /// Sets [`ExternalReport::times`].
    pub fn set_times(&mut self, times: &[(u64, u64)]) {
        (self.times_ns, self.times_requests) = times.iter().copied().unzip();
    }

    /// All requests without a row.
    pub fn requests(&self) -> u64 {
        self.failures.iter().fold(self.requests_ok, |sum, failure| sum.saturating_add(failure.requests))
    }
}
