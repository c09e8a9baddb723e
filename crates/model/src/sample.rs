//! The rows that a client leaves behind: one per request, one per connection.

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::named;
use crate::variant::HttpVersion;

/// One request's row.
///
/// All stamps are nanoseconds since the run's start on the node's monotonic clock; 0 with `None` semantics is
/// never used: what did not happen is `None`. Rows of external clients have no header bytes, and body bytes
/// only where [`crate::external::ExternalReport::has_row_bytes`] says so; these fields are 0 then, and null
/// in files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The client group's number within the cell.
    pub group: u16,
    /// The client's number within the group.
    pub client: u32,
    /// The request's number within the group, in the order of intention. Where the group has several
    /// processes, each has every n-th number.
    pub request: u64,
    /// Which URL: an index into [`crate::assignment::ClientReport::urls`].
    pub url: u32,
    /// The connection that carried it: [`ConnectionRow::connection`]; `None` where none was ever had.
    pub connection: Option<u32>,
    /// Why it began.
    #[serde(default)]
    pub cause: Cause,
    /// Warm-up or measured.
    pub phase: Phase,
    /// When the workload wanted it sent.
    pub intended_ns: u64,
    /// How often it was sent again because its connection was lost ([`ConnectionRow::lost`]).
    #[serde(default)]
    pub resent: u32,
    /// When its first byte was handed to the transport for the first time; `None` where it was not sent, as
    /// the server pushed the response.
    pub sent_ns: Option<u64>,
    /// When the final response's head was read: its last byte, which nearly always comes with its first.
    pub first_byte_ns: Option<u64>,
    /// When the last byte of the response was read, or when it failed.
    pub done_ns: Option<u64>,
    /// The final status code.
    pub status: Option<u16>,
    /// The version that the response really used.
    pub version: Option<HttpVersion>,
    /// Request header bytes before compression (RFC 9113, section 6.5.2 without the 32 bytes of overhead:
    /// name + value, summed).
    pub request_header_raw_bytes: u32,
    /// Request header bytes on the wire: HTTP/1.1 head, or HEADERS frames with their frame headers.
    pub request_header_wire_bytes: u32,
    /// Response header bytes before compression, counted like those of the request.
    pub response_header_raw_bytes: u32,
    /// Response header bytes on the wire, counted like those of the request.
    pub response_header_wire_bytes: u32,
    /// Request body bytes sent.
    pub request_body_bytes: u64,
    /// Response body bytes received, after transfer coding and before content coding.
    pub response_body_bytes: u64,
    /// The body length that the workload knows to be right.
    pub expected_body_bytes: Option<u64>,
    /// CRC-32 (of gzip and Ethernet) of the response body; `None` where it was not computed: of pages, whose
    /// bodies are compared with the known content, and of most large bodies.
    pub response_body_crc32: Option<u32>,
    /// What the body is, by its fields: an index into [`crate::assignment::ClientReport::contents`].
    pub content: Option<u16>,
    /// How it ended.
    pub outcome: Outcome,
}

impl Sample {
    /// From intended to done, with any outcome: the latency that a user sees.
    #[inline]
    pub fn request_time_ns(&self) -> Option<u64> {
        self.done_ns?.checked_sub(self.intended_ns)
    }

    /// From sent to done.
    #[inline]
    pub fn service_time_ns(&self) -> Option<u64> {
        self.done_ns?.checked_sub(self.sent_ns?)
    }

    /// From sent to the response's head.
    #[inline]
    pub fn wait_time_ns(&self) -> Option<u64> {
        self.first_byte_ns?.checked_sub(self.sent_ns?)
    }

    /// From the response's head to done.
    #[inline]
    pub fn transfer_time_ns(&self) -> Option<u64> {
        self.done_ns?.checked_sub(self.first_byte_ns?)
    }

    /// From intended to sent.
    pub fn schedule_lag_ns(&self) -> Option<u64> {
        self.sent_ns?.checked_sub(self.intended_ns)
    }
}

/// The header field that carries the name of a request's row.
pub const REQUEST_ID_FIELD: &str = "x-request-id";

/// A request's name within a run, as text `GROUP-REQUEST`, such as `0-17`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestName {
    /// [`Sample::group`].
    pub group: u16,
    /// [`Sample::request`].
    pub request: u64,
}

impl fmt::Display for RequestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.group, self.request)
    }
}

impl FromStr for RequestName {
    type Err = NotRequestName;

    fn from_str(text: &str) -> Result<Self, NotRequestName> {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let (group, request) = text.split_once('-').ok_or(NotRequestName)?;
        if !is_number(group) || !is_number(request) {
            return Err(NotRequestName);
        }
        let group = group.parse().map_err(|_| NotRequestName)?;
        Ok(RequestName { group, request: request.parse().map_err(|_| NotRequestName)? })
    }
}

/// A text that is not the name of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a client group's and a request's number such as `0-17`")]
pub struct NotRequestName;

named! { "a cause of a request";
    /// Why a request began.
    #[derive(Default)]
    pub enum Cause {
        /// The workload had it due: a page names it, or a loop's turn came.
        #[default]
        Due = "due",
        /// A 103 response named it (RFC 8297).
        Hint = "hint",
        /// The server promised its response (RFC 9113, section 8.4): nothing was sent.
        Push = "push",
    }
}

named! { "a phase";
    /// The part of a run to which a row belongs.
    #[derive(Default)]
    pub enum Phase {
        /// Before the steady state; stored, not analysed.
        Warmup = "warmup",
        /// Counted.
        #[default]
        Measure = "measure",
    }
}

/// How a request, or a run, ended. Never rewritten afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// As expected, whole.
    #[default]
    Ok,
    /// It failed.
    Failed(Failure),
    /// What was requested does not exist here.
    Unsupported(String),
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind, for counting.
    pub kind: FailureKind,
    /// What happened, for people.
    pub reason: String,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: FailureKind, reason: impl Into<String>) -> Failure {
        Failure { kind, reason: reason.into() }
    }
}

named! { "a kind of failure";
    /// The kinds of failure that are counted apart.
    pub enum FailureKind {
        /// The name could not be resolved.
        Dns = "dns",
        /// Nobody listens.
        Refused = "refused",
        /// The peer reset the connection or the stream.
        Reset = "reset",
        /// The peer closed before the response was whole.
        Closed = "closed",
        /// A time limit passed.
        Timeout = "timeout",
        /// The TLS handshake or a record failed.
        Tls = "tls",
        /// The peer broke the protocol.
        Protocol = "protocol",
        /// A limit of ours was hit (header size, buffered bytes).
        Limit = "limit",
        /// The status was not the expected one.
        WrongStatus = "wrong_status",
        /// The body did not have the expected length.
        WrongLength = "wrong_length",
        /// The body had the expected length but different content.
        WrongContent = "wrong_content",
        /// A different version or protocol was negotiated.
        WrongVersion = "wrong_version",
        /// The server did not start, or died.
        Server = "server",
        /// The client process failed.
        Client = "client",
        /// The lab could not be built.
        Lab = "lab",
        /// The system refused (descriptors, ports, memory).
        System = "system",
        /// The client gave the request up and cancelled it, as players do with slow segments.
        Cancelled = "cancelled",
    }
}

impl Outcome {
    /// A failure of a kind, with its reason.
    pub fn failed(kind: FailureKind, reason: impl Into<String>) -> Self {
        Outcome::Failed(Failure { kind, reason: reason.into() })
    }

    /// Whether all went as expected.
    pub fn is_ok(&self) -> bool {
        matches!(self, Outcome::Ok)
    }

    /// Whether the client gave it up: no failure of the server or the network.
    pub fn is_cancelled(&self) -> bool {
        self.failure().is_some_and(|failure| failure.kind == FailureKind::Cancelled)
    }

    /// The failure, where it failed.
    #[inline]
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Outcome::Failed(failure) => Some(failure),
            Outcome::Ok | Outcome::Unsupported(_) => None,
        }
    }
}

/// One connection's row. Stamps as in [`Sample`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionRow {
    /// The client group's number within the cell.
    pub group: u16,
    /// The client's number within the group.
    pub client: u32,
    /// The connection's number within the group, in the order of opening; several processes as in
    /// [`Sample::request`].
    pub connection: u32,
    /// When the connect call was made (TCP) or the first datagram was sent (QUIC).
    pub opened_ns: u64,
    /// When TCP was established; `None` for QUIC, whose handshake is one with TLS.
    pub connected_ns: Option<u64>,
    /// When requests could first be sent: after TCP, and TLS where there is TLS, or QUIC's handshake.
    pub ready_ns: Option<u64>,
    /// When it was closed by either side.
    pub closed_ns: Option<u64>,
    /// Why the server ended it; `None` where the client did, or where it failed.
    pub server_close: Option<ServerClose>,
    /// The protocol that ALPN chose, as text.
    pub alpn: Option<String>,
    /// TLS version as the library names it.
    pub tls_version: Option<String>,
    /// Cipher suite as registered.
    pub cipher_suite: Option<String>,
    /// Key exchange group as registered.
    pub key_exchange: Option<String>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// What became of early data.
    pub early_data: EarlyData,
    /// Requests that left as early data; where it was rejected they were sent again.
    pub early_requests: u32,
    /// What an HTTP/2 server pushed.
    pub pushed: Pushes,
    /// What 103 responses named.
    #[serde(default)]
    pub hinted: Hints,
    /// When a QUIC connection migrated to a new local address, where it did.
    pub migrated: Option<MigrationTimes>,
    /// Whether the client gave it up, because its network had lost it ([`crate::pins::Reconnect`]).
    #[serde(default)]
    pub lost: bool,
    /// The requests that were in flight then and wait for another connection.
    #[serde(default)]
    pub resent: u32,
    /// Bytes handed to the transport: TCP payload or UDP payload.
    pub sent_bytes: u64,
    /// Bytes received from the transport.
    pub received_bytes: u64,
    /// Whether the client, a browser, does not report these bytes; they are 0 then, and null in files.
    #[serde(default)]
    pub lacks_bytes: bool,
    /// How it ended; `Ok` where it was closed in good order.
    pub outcome: Outcome,
}

named! { "a reason to close a connection";
    /// Why a server ended a connection.
    pub enum ServerClose {
        /// A response had `Connection: close` (RFC 9112, section 9.6).
        CloseOption = "close_option",
        /// A response in HTTP/1.0 had no `Connection: keep-alive` (RFC 9112, section 9.3).
        Http10 = "http10",
        /// A response had no length: its end is the connection's (RFC 9112, section 6.3).
        NoLength = "no_length",
        /// No response announced it: an idle connection timed out, or HTTP/2 or HTTP/3 sent GOAWAY.
        Unannounced = "unannounced",
    }
}

named! { "an outcome of early data";
    /// What became of early data (RFC 8446, section 4.2.10).
    #[derive(Default)]
    pub enum EarlyData {
        /// None was offered: it is off, or no ticket allows it.
        #[default]
        NotTried = "not_tried",
        /// It was offered, and the server took it.
        Accepted = "accepted",
        /// It was offered, and the server refused: the requests were sent again.
        Rejected = "rejected",
    }
}

/// Pushed responses (RFC 9113, section 8.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pushes {
    /// Those that came whole.
    pub whole: u32,
    /// Of these, resources of the page that a client loads; the others were discarded.
    #[serde(default)]
    pub used: u32,
    /// Those that were promised and did not come whole.
    pub broken: u32,
    /// Promises that the client refused: too many at once, malformed, or of another origin.
    pub refused: u32,
    /// Promises that the client cancelled, because it had requested the resource or it was promised before.
    #[serde(default)]
    pub late: u32,
    /// Body bytes of all.
    pub body_bytes: u64,
    /// Body bytes of those that were not used.
    #[serde(default)]
    pub wasted_bytes: u64,
}

impl AddAssign for Pushes {
    fn add_assign(&mut self, other: Pushes) {
        self.whole += other.whole;
        self.used += other.used;
        self.broken += other.broken;
        self.refused += other.refused;
        self.late += other.late;
        self.body_bytes += other.body_bytes;
        self.wasted_bytes += other.wasted_bytes;
    }
}

/// Resources that 103 responses named (RFC 8297).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hints {
    /// Those that the client requested for that.
    pub used: u32,
    /// Those that it had requested before, or that were named before.
    pub late: u32,
    /// Those that are no resources of the page, or of another origin.
    pub unused: u32,
}

impl AddAssign for Hints {
    fn add_assign(&mut self, other: Hints) {
        self.used += other.used;
        self.late += other.late;
        self.unused += other.unused;
    }
}

/// When a connection migrated to a new local address (RFC 9000, section 9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationTimes {
    /// When its first packet left from the new address.
    pub at_ns: u64,
    /// When the server's first packet arrived there; `None` where none did.
    pub answered_ns: Option<u64>,
}

/// The kinds of handshake that are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HandshakeKind {
    /// From scratch.
    Cold,
    /// With a session from before.
    Resumed,
    /// With a session from before, and the server took early data.
    Early,
}

impl ConnectionRow {
    /// How the handshake of TLS or QUIC went and how long it took, in nanoseconds; `None` for cleartext, and
    /// where it was never done.
    pub fn handshake(&self) -> Option<(HandshakeKind, u64)> {
        // QUIC has no separate connect.
        let is_encrypted = self.tls_version.is_some() || self.connected_ns.is_none();
        let ready_ns = self.ready_ns.filter(|_| is_encrypted)?;
        let kind = match (self.early_data, self.resumed) {
            (EarlyData::Accepted, _) => HandshakeKind::Early,
            (EarlyData::NotTried | EarlyData::Rejected, true) => HandshakeKind::Resumed,
            (EarlyData::NotTried | EarlyData::Rejected, false) => HandshakeKind::Cold,
        };
        Some((kind, ready_ns.saturating_sub(self.connected_ns.unwrap_or(self.opened_ns))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requests_name_comes_back() {
        for name in
            [RequestName { group: 0, request: 17 }, RequestName { group: u16::MAX, request: u64::MAX }]
        {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        assert_eq!(RequestName { group: 3, request: 4 }.to_string(), "3-4");
        for text in
            ["", "-", "1", "1-", "-1", "1-2-3", "+1-2", "1- 2", "70000-1", "0-18446744073709551616", "a-b"]
        {
            assert_eq!(text.parse::<RequestName>(), Err(NotRequestName), "{text}");
        }
    }
}
