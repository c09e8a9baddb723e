//! The contract of every client engine: bytes in, bytes and events out, no I/O and no clock.
//!
//! The driver owns socket, buffer and clock. It makes **one mutation** (`send_request`, `handle_input`,
//! `handle_timeout`, `cancel`, `close`), then drains `poll_transmit` until it returns `None` and asks
//! `poll_timeout` when to come back. Events are pushed into a sink during the mutation that caused them: they
//! borrow the driver's receive buffer, so a body is never copied, and a sink cannot call back into the engine
//! because the engine is mutably borrowed.
//!
//! `now` is nanoseconds on any monotonic clock that does not change during a connection's life.

pub use model::sample::EarlyData;
use model::sample::Failure;
use model::{HttpVersion, Outcome};

/// The driver's name for a request, unique within a connection.
pub type RequestId = u64;

/// Where events go.
pub type Sink<'s> = dyn FnMut(Event<'_>) + 's;

/// A client's side of one connection: HTTP and whatever lies below it down to TCP or UDP.
pub trait Connection {
    /// How many more requests may be sent now: 0 before [`Event::Ready`], after GOAWAY, or at the peer's limit.
    ///
    /// One exception: where early data is on and a ticket allows it, requests are taken right after
    /// `handle_connected`. Safe methods leave as early data, others wait for the handshake; what the server rejects
    /// is sent again by the engine, and no event tells of it but [`Handshake::early_data`].
    fn available_requests(&self) -> usize;

    /// The TCP connection is established, or the UDP socket is there: begins the handshakes. A cleartext connection
    /// says [`Event::Ready`] at once.
    fn handle_connected(&mut self, now: u64, sink: &mut Sink<'_>);

    /// Begins a request; its bytes leave through `poll_transmit`.
    ///
    /// # Errors
    /// [`NotNow`] where `available_requests` is 0; nothing was sent then.
    fn send_request(&mut self, now: u64, id: RequestId, request: &Request) -> Result<HeaderBytes, NotNow>;

    /// How many of the next bytes of the stream are body that is only counted: the driver may throw away so many, or
    /// fewer, without reading them, and say [`Input::Skipped`]. 0 where every byte must be seen, as with TLS.
    fn skippable_bytes(&self) -> u64 {
        0
    }

    /// Takes what the transport read. All of it is consumed; what is incomplete is kept inside, within a limit.
    fn handle_input(&mut self, now: u64, input: Input<'_>, sink: &mut Sink<'_>);

    /// Does what was due by `now`; a no-op when called early.
    fn handle_timeout(&mut self, now: u64, sink: &mut Sink<'_>);

    /// Gives a request up: RST_STREAM, STOP_SENDING, or closing an HTTP/1.1 connection. No event follows for it.
    fn cancel(&mut self, now: u64, id: RequestId);

    /// Begins an orderly close (GOAWAY, close_notify, CONNECTION_CLOSE); [`Event::Closed`] is not waited for.
    fn close(&mut self, now: u64);

    /// Appends what is to be sent now to `out`, at most about 64 kB a call; `None` when there is nothing.
    fn poll_transmit(&mut self, now: u64, out: &mut Vec<u8>) -> Option<Transmit>;

    /// When `handle_timeout` must be called, if ever.
    fn poll_timeout(&self) -> Option<u64>;

    /// Whether the connection is over: every request has had its last event, nothing more will be sent.
    fn is_closed(&self) -> bool;
}

/// What the transport read.
#[derive(Debug)]
pub enum Input<'a> {
    /// Bytes of a TCP stream; the engine may decrypt them in place.
    Stream(&'a mut [u8]),
    /// So many bytes of a TCP stream were thrown away, at most [`Connection::skippable_bytes`].
    Skipped(u64),
    /// The TCP stream's end (FIN).
    End,
    /// The transport failed: refused, reset, unreachable.
    Broken(Failure),
    /// UDP datagrams of equal length laid end to end (GRO); the last may be shorter.
    Datagrams {
        /// The payloads.
        bytes: &'a mut [u8],
        /// Length of each but the last.
        segment_bytes: usize,
        /// The two ECN bits of the IP header.
        ecn: u8,
    },
}

/// How the bytes that `poll_transmit` appended are to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// As a part of the TCP stream.
    Stream,
    /// As UDP datagrams of equal length (GSO); the last may be shorter.
    Datagrams {
        /// Length of each but the last.
        segment_bytes: usize,
        /// The two ECN bits to set.
        ecn: u8,
    },
}

/// What happened. Per request: any number of `Informational`, then `Head`, `Data` or `Skipped`…, `End`; or `Failed` at any point.
#[derive(Debug)]
pub enum Event<'a> {
    /// The connection takes requests from now on.
    Ready(Handshake),
    /// A 1xx response (RFC 9110, section 15.2).
    Informational {
        /// The request that it answers.
        request: RequestId,
        /// The status code.
        status: u16,
    },
    /// The final response's head.
    Head {
        /// The request that it answers.
        request: RequestId,
        /// What it says.
        head: Head,
    },
    /// A piece of the response's body, transfer coding removed.
    Data {
        /// The request that it answers.
        request: RequestId,
        /// The piece.
        bytes: &'a [u8],
    },
    /// So many bytes of the response's body were thrown away unread.
    Skipped {
        /// The request that it answers.
        request: RequestId,
        /// How many.
        length: u64,
    },
    /// The response is whole.
    End {
        /// The request that it answers.
        request: RequestId,
    },
    /// This request failed; the connection may live on.
    Failed {
        /// The request.
        request: RequestId,
        /// Why.
        failure: Failure,
    },
    /// A response that nobody asked for has come, or will not come any more; its body was thrown away.
    Pushed(Pushed),
    /// The connection is over; unanswered requests have had their `Failed` before.
    Closed(Outcome),
}

/// What an HTTP/2 server pushed (RFC 9113, section 8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The request with whose response it was promised.
    pub request: RequestId,
    /// The status code, where the head came.
    pub status: Option<u16>,
    /// Body bytes received.
    pub body_bytes: u64,
    /// Whether it came whole.
    pub is_whole: bool,
}

/// What the handshakes agreed on; all `None` for cleartext.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// The protocol that ALPN chose.
    pub alpn: Option<String>,
    /// TLS version, such as `TLSv1_3`.
    pub tls_version: Option<String>,
    /// Cipher suite as registered.
    pub cipher_suite: Option<String>,
    /// Key exchange group as registered.
    pub key_exchange: Option<String>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// What became of early data.
    pub early_data: EarlyData,
}

/// Whether a request may leave as early data: only one that is safe to be repeated (RFC 8470, section 2.2).
pub fn is_safe(request: &Request) -> bool {
    matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE") && request.body.is_empty()
}

/// The head of a final response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The version of HTTP that it came in.
    pub version: HttpVersion,
    /// `content-length`, where given.
    pub content_length: Option<u64>,
    /// Its size, field section of any 1xx response excluded.
    pub bytes: HeaderBytes,
}

/// The size of a field section (RFC 9110, section 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderBytes {
    /// Before compression: names and values summed, pseudo-header fields included; for HTTP/1.1 the method,
    /// target and status count as the corresponding pseudo-header fields.
    pub raw: u32,
    /// On the wire: the HTTP/1.1 head with its line ends; HEADERS and CONTINUATION frames with frame headers.
    pub wire: u32,
}

/// A request as a workload wants it; engines keep what they encoded by its address-free `template` number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Equal numbers on one connection promise equal contents, so that an engine may reuse its encoding.
    pub template: u32,
    /// The method.
    pub method: String,
    /// `http` or `https`.
    pub scheme: String,
    /// Host and port as in the URL.
    pub authority: String,
    /// Path and query, from `/`.
    pub path: String,
    /// Further fields, names in lower case; without `host`, `content-length` and connection-specific fields.
    pub fields: Vec<(String, String)>,
    /// A field that is another in every request, and that `template` promises nothing about.
    pub varying: Option<VaryingField>,
    /// The body; empty where there is none.
    pub body: bytes::Bytes,
}

/// A field that is written anew behind what an engine keeps of a template; no table of header compression learns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryingField {
    /// In lower case.
    pub name: &'static str,
    /// The value of this request.
    pub value: String,
}

impl VaryingField {
    /// Name and value, summed.
    pub(crate) fn raw_bytes(&self) -> u32 {
        u32::try_from(self.name.len() + self.value.len()).unwrap_or(u32::MAX)
    }
}

/// The engine takes no request at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection takes no request now")]
pub struct NotNow;
