//! External clients: somebody else's programs in the place of our own client.

use serde::{Deserialize, Serialize};

use crate::sample::FailureKind;
use crate::variant::HttpVersion;

/// The client that is this tool's own.
pub const OWN_CLIENT: &str = "h123";

/// What somebody else's program said of a run in which it was the client, as far as it stands in no row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalReport {
    /// The client's name, such as `wrk`.
    pub client: String,
    /// The version that it says it is.
    pub version: String,
    /// Requests without a row that succeeded.
    pub requests_ok: u64,
    /// Requests without a row that did not.
    pub failures: Vec<FailureCount>,
    /// How long the requests without a row took all together, by the program's own clock; `None` where it does not say.
    pub took_ns: Option<u64>,
    /// Times of requests without a row that succeeded, from sent to done, in nanoseconds, each once. Empty where it does not
    /// say.
    pub times_ns: Vec<u64>,
    /// How many requests took each of [`ExternalReport::times_ns`].
    pub times_requests: Vec<u64>,
    /// Response body bytes of all requests; `None` where it does not say.
    pub body_bytes: Option<u64>,
    /// Whether its rows have their own response body bytes; header bytes they never have.
    pub has_row_bytes: bool,
    /// Connections that it opened; `None` where it does not say.
    pub connections: Option<u64>,
    /// The version of HTTP that all its responses used; `None` where it does not say, or says it of each.
    pub http: Option<HttpVersion>,
    /// The event at which a request's time begins, for people; it ends with the last byte of the response. `None` where the
    /// client's description does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<String>,
    /// What it does not say: `ABOUT: reason`, a metric that cannot be had or a check that cannot be made, and why.
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

/// What a silence of [`ExternalReport::not_reported`] is about, and its reason.
pub fn split_not_reported(silence: &str) -> (&str, &str) {
    silence.split_once(": ").unwrap_or((silence, ""))
}

impl ExternalReport {
    /// Why a metric cannot be had or a check cannot be made, where that is so.
    pub fn silence(&self, about: &str) -> Option<&str> {
        let mut parts = self.not_reported.iter().map(|silence| split_not_reported(silence));
        parts.find(|(of, _)| *of == about).map(|(_, reason)| reason)
    }

    /// Each time of requests without a row, in nanoseconds, and how many took so long.
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
