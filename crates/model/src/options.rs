//! How a client handles requests, connections and rows, apart from its workload.

use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::media::ByteRange;
use crate::named;
use crate::target::Target;
use crate::tls::TlsOptions;
use crate::units::{counted, format_ns};

/// Settings of the generator; each has a default, which a study's clients use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The requests.
    pub requests: RequestOptions,
    /// How connections are opened and used.
    pub connections: ConnectionOptions,
    /// What the protocols do beyond the pins.
    pub protocols: ProtocolOptions,
    /// What only browsers do.
    #[serde(skip_serializing_if = "BrowserOptions::is_default")]
    pub browser: BrowserOptions,
    /// Stop when more than this many of a million requests have failed, after [`LEAST_ENDED`] have ended.
    pub stop_at_failed_ppm: Option<u32>,
    /// The most requests with rows; further ones are summed up. All, if `None`.
    pub most_rows: Option<u64>,
}

/// The requests that must have ended before their share of failures can end a run.
pub const LEAST_ENDED: u64 = 100;

/// The requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestOptions {
    /// Further hosts; the assignment's target is number 0.
    pub further_targets: Vec<Target>,
    /// What differs from the defaults for single paths, by their index; paths beyond the end have the
    /// defaults.
    pub paths: Vec<PathOptions>,
    /// The method; GET where `None`, or POST where there is a body.
    pub method: Option<String>,
    /// Fields sent with every request, names in lower case; they replace the client's own.
    pub fields: Vec<(String, String)>,
    /// The bodies that requests may have.
    pub bodies: Vec<Body>,
    /// The default body of requests.
    pub body: Option<u32>,
    /// Paths are requested in random order instead of in turn.
    pub random_order: bool,
    /// Every request carries its group and number in the field [`crate::sample::REQUEST_ID_FIELD`], so that a
    /// server's log can be joined with the rows.
    pub request_ids: bool,
    /// `{random:1-7000}` in a path is replaced by a random number for every request.
    pub random_parts: bool,
}

named! { "an order";
    /// The order in which a loop requests its paths.
    pub enum Order {
        /// One after the other, and again from the first.
        InTurn = "in turn",
        /// Each drawn from all, with equal probability.
        Random = "random",
    }
}

impl Order {
    /// The order of [`RequestOptions::random_order`].
    pub const fn of(is_random: bool) -> Order {
        if is_random { Order::Random } else { Order::InTurn }
    }
}

named! { "a visit";
    /// Whether a client has been at the server before. The visit before is not measured.
    #[derive(Default)]
    pub enum Visit {
        /// It has no sessions.
        #[default]
        First = "first",
        /// It resumes the TLS sessions of a first visit; its cache is empty.
        Repeat = "repeat",
        /// It resumes the TLS sessions of a first visit and still has its cache; browsers alone.
        Cached = "cached",
        /// The first visit was over HTTP/2, and this one follows the Alt-Svc of its responses (RFC 7838) to
        /// HTTP/3; its cache is empty. Browsers alone.
        Upgrade = "upgrade",
    }
}

impl Visit {
    /// Whether it is the first.
    pub fn is_first(&self) -> bool {
        *self == Visit::First
    }

    /// Whether clients other than browsers make it.
    pub fn is_for_every_client(self) -> bool {
        matches!(self, Visit::First | Visit::Repeat)
    }

    const fn describe(self) -> Option<&'static str> {
        Some(match self {
            Visit::First => return None,
            Visit::Repeat => "repeat visit with an empty cache",
            Visit::Cached => "repeat visit with the cache of the first",
            Visit::Upgrade => "repeat visit with an empty cache, after a first one over HTTP/2",
        })
    }
}

/// What differs from the defaults for one path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PathOptions {
    /// The host: 0 is the assignment's target, others count [`RequestOptions::further_targets`] from 1.
    pub target: u16,
    /// The method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The body: an index into [`RequestOptions::bodies`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<u32>,
    /// The bytes that are requested (RFC 9110, section 14.2); `None` for the whole resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<ByteRange>,
    /// Further fields, names in lower case; they replace the client's own and those of all requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
    /// The response that is known to be right.
    #[serde(skip_serializing_if = "ExpectedResponse::is_unknown")]
    pub expects: ExpectedResponse,
}

/// What is known of a response before it arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ExpectedResponse {
    /// The status code; any of 200 to 299 where `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The length of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<u64>,
    /// CRC-32 of the body, as [`crate::sample::Sample::response_body_crc32`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_crc32: Option<u32>,
}

impl ExpectedResponse {
    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == ExpectedResponse::default()
    }
}

/// A request's body. All threads of a load test share its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<u8>", into = "Vec<u8>")]
pub struct Body(pub Arc<[u8]>);

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Body(bytes.into())
    }
}

impl From<Body> for Vec<u8> {
    fn from(body: Body) -> Self {
        body.0.to_vec()
    }
}

/// What only browsers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrowserOptions {
    /// How many times slower the page's process computes; 1 is the machine's own speed.
    pub cpu_slowdown: u32,
    /// Pictures of the page are taken whenever it changes during the load.
    pub filmstrip: bool,
}

impl BrowserOptions {
    fn is_default(&self) -> bool {
        *self == BrowserOptions::default()
    }
}

impl Default for BrowserOptions {
    fn default() -> Self {
        BrowserOptions { cpu_slowdown: 1, filmstrip: false }
    }
}

/// How connections are opened and used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionOptions {
    /// The server's name is looked up before the first connection is opened; it must resolve to the target's
    /// address.
    pub dns_lookup: bool,
    /// Before other visits than the first, each client makes one that is not measured, and keeps the TLS
    /// sessions of it ([`crate::Workload::first_visit`]).
    #[serde(skip_serializing_if = "Visit::is_first")]
    pub visit: Visit,
    /// A connection is closed after this many requests.
    pub requests_each: Option<u64>,
    /// A connection that is not ready after this time has failed.
    pub connect_timeout_ns: Option<u64>,
    /// A request without a complete response this long after it was sent has failed.
    pub request_timeout_ns: Option<u64>,
    /// The connections that a closed loop holds open are opened evenly over this period.
    pub ramp_up_ns: u64,
    /// Local addresses, used in turn.
    pub sources: Vec<IpAddr>,
    /// TCP congestion control by the kernel's name; the system's where `None`.
    pub tcp_congestion: Option<String>,
    /// Leaves Nagle's algorithm on (RFC 896).
    pub nagle: bool,
    /// Send buffer asked of the kernel.
    pub send_buffer_bytes: Option<u32>,
    /// Receive buffer asked of the kernel.
    pub receive_buffer_bytes: Option<u32>,
    /// After waking, reads wait this long for more data: fewer reads, later responses.
    pub coalesce_ns: u64,
}

/// What TLS, HTTP/2, HTTP/3 and QUIC do beyond the pins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProtocolOptions {
    /// TLS.
    pub tls: TlsOptions,
    /// An HTTP/2 server may push (RFC 9113, section 8.4).
    pub accept_push: bool,
    /// How many HTTP/3 responses may wait for QPACK's table (RFC 9204, section 2.1.2); the engine's default
    /// where `None`.
    pub qpack_blocked_streams: Option<u16>,
    /// Each UDP datagram is sent by a separate call (no GSO).
    pub single_datagrams: bool,
    /// QUIC connections move to a new local address.
    pub migration: Option<Migration>,
    /// The folder of the qlog files, one for each QUIC connection.
    pub qlog: Option<String>,
    /// QUIC connections continue from a new socket whenever a local address goes away: how a client of a lab
    /// follows its handovers.
    pub follows_addresses: bool,
}

/// A migration: every QUIC connection continues from a new socket (RFC 9000, section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migration {
    /// When, in nanoseconds since the client started, warm-up included.
    pub after_ns: u64,
    /// The new local address; a new port of the old one where `None`.
    pub to: Option<IpAddr>,
}

impl RequestOptions {
    /// The body of a path's requests, an index into [`RequestOptions::bodies`]; `path` is the path's index.
    pub fn body_of(&self, path: usize) -> Option<u32> {
        self.paths.get(path).and_then(|own| own.body).or(self.body)
    }

    /// The method of a path's requests; `path` is its index.
    pub fn method_of(&self, path: usize) -> &str {
        let own = self.paths.get(path).and_then(|own| own.method.as_deref());
        let default = || if self.body_of(path).is_some() { "POST" } else { "GET" };
        own.or(self.method.as_deref()).unwrap_or_else(default)
    }
}

impl Options {
    /// What a study's workload sets, such as `10 requests per connection, method PUT`; empty for the
    /// defaults.
    pub fn describe(&self) -> String {
        let (requests, connections) = (&self.requests, &self.connections);
        let time = |what: &str, ns: Option<u64>| ns.map(|ns| format!("{what} timeout {}", format_ns(ns)));
        let each = connections.requests_each;
        let fields = requests.fields.len() as u64;
        let body = requests.body.and_then(|body| requests.bodies.get(body as usize));
        let count =
            |has: fn(&PathOptions) -> bool| requests.paths.iter().filter(|path| has(path)).count() as u64;
        let own = count(|path| path.method.is_some() || path.body.is_some());
        let (ranges, own_fields) =
            (count(|path| path.range.is_some()), count(|path| !path.fields.is_empty()));
        let expected = count(|path| !path.expects.is_unknown());
        let parts = [
            connections.visit.describe().map(str::to_owned),
            (self.browser.cpu_slowdown > 1)
                .then(|| format!("CPU {} times slower", self.browser.cpu_slowdown)),
            self.browser.filmstrip.then(|| "with a filmstrip".to_owned()),
            requests.random_order.then(|| "random order".to_owned()),
            requests.random_parts.then(|| "random parts of paths".to_owned()),
            (own > 0).then(|| format!("method or body of {}", counted(own, "path"))),
            (ranges > 0).then(|| format!("range of {}", counted(ranges, "path"))),
            (own_fields > 0).then(|| format!("fields of {}", counted(own_fields, "path"))),
            (expected > 0).then(|| format!("known responses of {}", counted(expected, "path"))),
            each.map(|each| format!("{} per connection", counted(each, "request"))),
            time("connect", connections.connect_timeout_ns),
            time("request", connections.request_timeout_ns),
            requests.method.as_ref().map(|method| format!("method {method}")),
            (fields > 0).then(|| counted(fields, "field")),
            body.map(|body| format!("body of {}", counted(body.0.len() as u64, "byte"))),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Whether every option has its default.
    pub fn is_default(&self) -> bool {
        *self == Options::default()
    }
}
