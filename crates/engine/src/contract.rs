//! The contract of every client engine: bytes in, bytes and events out, no I/O and no clock.
//!
//! The driver owns socket, buffer and clock. It makes **one mutation** (`send_request`, `handle_input`,
//! `handle_timeout`, `cancel`, `close`), then drains `poll_transmit` until it returns `None`, and
//! `poll_timeout` returns the time of the next call. Events are pushed into a sink during the mutation that
//! caused them: they borrow the driver's receive buffer, so a body is never copied, and a sink cannot call
//! back into the engine, because the engine is mutably borrowed.
//!
//! `now` is in nanoseconds on a monotonic clock, the same one during a connection's life.

use std::fmt;

pub use model::sample::EarlyData;
use model::sample::{Failure, ServerClose};
use model::{HttpVersion, Outcome};

/// The driver's number of a request, unique within a connection.
pub type RequestId = u64;

/// The receiver of events.
pub type Sink<'s> = dyn FnMut(Event<'_>) + 's;

/// The client's side of one connection: HTTP and the layers below it, down to TCP or UDP.
pub trait Connection {
    /// The number of requests that can be sent now: 0 before [`Event::Ready`], after GOAWAY, or at the peer's
    /// limit.
    ///
    /// One exception: with early data and a ticket that allows it, requests are accepted right after
    /// `handle_connected`. Requests with safe methods leave as early data, others wait for the handshake. The
    /// engine resends rejected early data; only [`Handshake::early_data`] reports that.
    fn available_requests(&self) -> usize;

    /// The TCP connection is established, or the UDP socket is bound: starts the handshakes. A cleartext
    /// connection reports [`Event::Ready`] at once.
    fn handle_connected(&mut self, now: u64, sink: &mut Sink<'_>);

    /// Starts a request; its bytes leave through `poll_transmit`.
    ///
    /// # Errors
    /// [`NotNow`] if `available_requests` is 0; nothing is sent then.
    fn send_request(&mut self, now: u64, id: RequestId, request: &Request) -> Result<HeaderBytes, NotNow>;

    /// The number of next bytes of the stream that are body and only counted: the driver may discard at most
    /// this many unread, and report [`Input::Skipped`]. 0 if the engine needs every byte, as with TLS.
    fn skippable_bytes(&self) -> u64 {
        0
    }

    /// Takes input of the transport. All of it is consumed; incomplete parts are buffered, within a limit.
    fn handle_input(&mut self, now: u64, input: Input<'_>, sink: &mut Sink<'_>);

    /// Handles timeouts that are due by `now`; does nothing if called early.
    fn handle_timeout(&mut self, now: u64, sink: &mut Sink<'_>);

    /// Cancels a request: RST_STREAM, STOP_SENDING, or closing an HTTP/1.1 connection. No event follows for
    /// it.
    fn cancel(&mut self, now: u64, id: RequestId);

    /// Starts an orderly close (GOAWAY, close_notify, CONNECTION_CLOSE); do not wait for [`Event::Closed`].
    fn close(&mut self, now: u64);

    /// Appends pending output to `out`, at most about 64 kB per call; `None` if there is none.
    fn poll_transmit(&mut self, now: u64, out: &mut Vec<u8>) -> Option<Transmit>;

    /// When `handle_timeout` must be called; `None` if never.
    fn poll_timeout(&self) -> Option<u64>;

    /// Whether the connection is closed: every request has had its last event, nothing more will be sent.
    fn is_closed(&self) -> bool;
}

/// Input of the transport.
#[derive(Debug)]
pub enum Input<'a> {
    /// Bytes of a TCP stream; the engine may decrypt them in place.
    Stream(&'a mut [u8]),
    /// The number of bytes of a TCP stream that were discarded, at most [`Connection::skippable_bytes`].
    Skipped(u64),
    /// The end of the TCP stream (FIN).
    End,
    /// The transport failed: refused, reset, unreachable.
    Broken(Failure),
    /// Concatenated UDP datagrams of equal length (GRO); the last may be shorter.
    Datagrams {
        /// The payloads.
        bytes: &'a mut [u8],
        /// The length of each except the last.
        segment_bytes: usize,
        /// The two ECN bits of the IP header.
        ecn: u8,
    },
}

/// How to send the bytes that `poll_transmit` appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// In the TCP stream.
    Stream,
    /// As UDP datagrams of equal length (GSO); the last may be shorter.
    Datagrams {
        /// The length of each except the last.
        segment_bytes: usize,
        /// The two ECN bits to set.
        ecn: u8,
    },
}

/// An event. Per request: any number of `Informational`, then `Head`, `Data` or `Skipped`…, `End`; or
/// `Failed` at any point. A promise that is taken ([`Fate::Take`]) has the events of a request.
#[derive(Debug)]
pub enum Event<'a> {
    /// The connection accepts requests from now on.
    Ready(Handshake),
    /// A 1xx response (RFC 9110, section 15.2).
    Informational {
        /// The request that it answers.
        request: RequestId,
        /// The status code.
        status: u16,
        /// The values of `link` in 103 (RFC 8297), joined by `, `; empty in other responses.
        links: &'a [u8],
    },
    /// The server promises a response that was not requested (RFC 9113, section 8.4). The sink decides what
    /// becomes of it.
    Promised {
        /// The promised request.
        promise: Promise<'a>,
        /// What the sink decides.
        fate: &'a mut Fate,
    },
    /// The head of the final response.
    Head {
        /// The request that it answers.
        request: RequestId,
        /// The head.
        head: Head,
    },
    /// A piece of the response's body, without transfer coding.
    Data {
        /// The request that it answers.
        request: RequestId,
        /// The piece.
        bytes: &'a [u8],
    },
    /// Bytes of the response's body were discarded unread.
    Skipped {
        /// The request that it answers.
        request: RequestId,
        /// Their number.
        length: u64,
    },
    /// The response is complete.
    End {
        /// The request that it answers.
        request: RequestId,
    },
    /// The request failed; the connection may still be usable.
    Failed {
        /// The request.
        request: RequestId,
        /// Why.
        failure: Failure,
    },
    /// A pushed response ended, completely or not; its body was discarded ([`Fate::Discard`]).
    Pushed(Pushed),
    /// This many body bytes arrived of pushed responses that the client had refused.
    PushedInVain(u64),
    /// The connection is closed; unanswered requests had their `Failed` before.
    Closed(Outcome),
}

/// A promised request: its method is GET, and it has an authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise<'a> {
    /// The request whose response promised it.
    pub request: RequestId,
    /// `:scheme`.
    pub scheme: &'a [u8],
    /// `:authority`.
    pub authority: &'a [u8],
    /// `:path`.
    pub path: &'a [u8],
}

/// What becomes of a promised response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It is received, counted and discarded.
    #[default]
    Discard,
    /// It is the response to a request with this number of the driver, which is not sent.
    Take(RequestId),
    /// It is not needed: the stream is reset with CANCEL.
    Cancel,
    /// The server is not authoritative for it: the stream is reset with PROTOCOL_ERROR (RFC 9113, section
    /// 8.4).
    Refuse,
}

/// A discarded response that an HTTP/2 server pushed (RFC 9113, section 8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The request whose response promised it.
    pub request: RequestId,
    /// The status code, if the head was received.
    pub status: Option<u16>,
    /// Body bytes received.
    pub body_bytes: u64,
    /// Whether it is complete.
    pub is_whole: bool,
    /// Whether the client refused the promise.
    pub is_refused: bool,
}

/// The result of the handshakes; all `None` for cleartext.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// The protocol that ALPN chose.
    pub alpn: Option<String>,
    /// TLS version, such as `TLSv1_3`.
    pub tls_version: Option<String>,
    /// Cipher suite, as registered with IANA.
    pub cipher_suite: Option<String>,
    /// Key exchange group, as registered with IANA.
    pub key_exchange: Option<String>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// Whether early data was accepted.
    pub early_data: EarlyData,
}

/// Whether a request may leave as early data: only if it is safe to repeat (RFC 8470, section 2.2).
pub fn is_safe(request: &Request) -> bool {
    matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE") && request.body.is_empty()
}

/// The head of a final response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The HTTP version of the response.
    pub version: HttpVersion,
    /// `content-length`, if present.
    pub content_length: Option<u64>,
    /// Why the server ends the connection after this response, if it does. HTTP/2 and HTTP/3 have no such
    /// announcement in a response.
    pub closes: Option<ServerClose>,
    /// What the body is, by its fields.
    pub content: ContentFields,
    /// Its size, without 1xx responses.
    pub bytes: HeaderBytes,
}

/// The fields that say what a body is; longer values are cut. It has a fixed size, so that a head is copied
/// without an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentFields {
    /// `content-type`.
    pub media_type: ShortText<40>,
    /// `content-encoding`.
    pub coding: ShortText<15>,
}

/// A field value up to a number of bytes; empty without the field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ShortText<const BYTES: usize> {
    length: u8,
    bytes: [u8; BYTES],
}

impl ContentFields {
    /// Keeps a field if it is one of these.
    #[inline]
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) {
        match name.len() {
            12 if name.eq_ignore_ascii_case(b"content-type") => self.media_type.set(value),
            16 if name.eq_ignore_ascii_case(b"content-encoding") => self.coding.set(value),
            _ => {}
        }
    }
}

impl<const BYTES: usize> ShortText<BYTES> {
    fn set(&mut self, value: &[u8]) {
        let length = value.len().min(BYTES);
        self.bytes = [0; BYTES];
        self.bytes[..length].copy_from_slice(&value[..length]);
        self.length = u8::try_from(length).unwrap_or(u8::MAX);
    }

    /// Whether there was no such field, or an empty one.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl<const BYTES: usize> Default for ShortText<BYTES> {
    fn default() -> Self {
        ShortText { length: 0, bytes: [0; BYTES] }
    }
}

/// Bytes that are no printable ASCII are escaped.
impl<const BYTES: usize> fmt::Display for ShortText<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.bytes[..usize::from(self.length).min(BYTES)].escape_ascii(), f)
    }
}

impl<const BYTES: usize> fmt::Debug for ShortText<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// The size of a field section (RFC 9110, section 6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderBytes {
    /// Before compression: the sum of names and values, including pseudo-header fields; for HTTP/1.1 the
    /// method, target and status count as the corresponding pseudo-header fields.
    pub raw: u32,
    /// On the wire: the HTTP/1.1 head with line ends; HEADERS and CONTINUATION frames with frame headers.
    pub wire: u32,
}

/// A request of a workload. Engines cache its encoding by the `template` number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// On one connection, requests with equal numbers have equal contents, so that an engine can reuse their
    /// encoding.
    pub template: u32,
    /// The method.
    pub method: String,
    /// `http` or `https`.
    pub scheme: String,
    /// Host and port, as in the URL.
    pub authority: String,
    /// Path and query, from `/`.
    pub path: String,
    /// Other fields, with lowercase names; without `host`, `content-length` and connection-specific fields.
    pub fields: Vec<(String, String)>,
    /// A field that may differ between requests with equal `template` numbers.
    pub varying: Option<VaryingField>,
    /// The body; empty if there is none.
    pub body: bytes::Bytes,
}

/// A field that is appended to the cached encoding of a template; it is never added to a compression table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryingField {
    /// The name, in lowercase.
    pub name: &'static str,
    /// The value in this request.
    pub value: String,
}

impl VaryingField {
    /// The sum of the lengths of name and value.
    pub(crate) fn raw_bytes(&self) -> u32 {
        u32::try_from(self.name.len() + self.value.len()).unwrap_or(u32::MAX)
    }
}

/// The connection accepts no request at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection accepts no request now")]
pub struct NotNow;
