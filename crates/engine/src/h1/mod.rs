//! HTTP/1.1 (RFC 9112): one request at a time on a persistent connection.
//!
//! Responses are not copied: a head is parsed in the input, and body pieces are slices of the input. Only an
//! incomplete head or chunk line is buffered.

pub mod body;
pub mod encode;
pub mod head;

use memchr::memchr;
use model::Outcome;
use model::sample::{Failure, FailureKind, ServerClose};

use crate::contract::{Event, Head, HeaderBytes, NotNow, Request, RequestId, Sink};
use crate::protocol::Protocol;
use body::{Body, Piece};
use encode::{Encoder, Pending};
use head::{Framing, KnownHead, Parsed, ResponseHead};

/// The limits of the peer's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest head, and the largest trailer section, in bytes.
    pub head_bytes: usize,
    /// The most fields in a head.
    pub fields: usize,
    /// The most 1xx responses before a final one.
    pub informational: usize,
}

impl Default for Limits {
    /// 64 kB, 256 fields, 32 informational responses.
    fn default() -> Self {
        Limits { head_bytes: 64 << 10, fields: 256, informational: 32 }
    }
}

/// The client's side of an HTTP/1.1 connection.
#[derive(Debug)]
pub struct Http1 {
    limits: Limits,
    encoder: Encoder,
    pending: Pending,
    state: State,
    /// An incomplete head.
    partial: Vec<u8>,
    known: KnownHead,
    exchange: Option<Exchange>,
    /// No further requests: the peer closes the connection, or `close` was called.
    closing: bool,
    reported_closed: bool,
}

/// The state of a connection.
#[derive(Debug)]
enum State {
    /// Before `start`.
    New,
    /// No request is in flight.
    Idle,
    /// A request is in flight and a head is expected.
    Head,
    /// A body is being received.
    Body(Body),
    /// The connection is closed.
    Closed,
}

/// The request in flight.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    id: RequestId,
    is_head: bool,
    informational: usize,
    /// A byte of the response was received.
    answered: bool,
}

impl Http1 {
    /// A connection with these limits.
    pub fn new(limits: Limits) -> Self {
        Http1 {
            limits,
            encoder: Encoder::default(),
            pending: Pending::default(),
            state: State::New,
            partial: Vec::new(),
            known: KnownHead::default(),
            exchange: None,
            closing: false,
            reported_closed: false,
        }
    }

    /// Takes one step through `bytes`; returns the number of used bytes.
    fn step(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<usize, Failure> {
        match &mut self.state {
            State::New | State::Idle => Err(protocol(format!(
                "the server sent {} bytes where no response is due; they start with \"{}\"",
                bytes.len(),
                bytes[..bytes.len().min(24)].escape_ascii()
            ))),
            State::Closed => Ok(bytes.len()),
            State::Head => self.head_step(bytes, sink),
            State::Body(body) => {
                let Some(exchange) = self.exchange else { return Ok(bytes.len()) };
                let (used, piece) = body.step(bytes, &self.limits)?;
                match piece {
                    Piece::Nothing => {}
                    Piece::Data(range) => sink(Event::Data { request: exchange.id, bytes: &bytes[range] }),
                    Piece::LastData(range) => {
                        sink(Event::Data { request: exchange.id, bytes: &bytes[range] });
                        self.finish(sink);
                    }
                    Piece::End => self.finish(sink),
                }
                Ok(used)
            }
        }
    }

    fn head_step(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<usize, Failure> {
        if let Some(exchange) = &mut self.exchange {
            exchange.answered = true;
        }
        if self.partial.is_empty() {
            if let Some(head) = self.known.find(bytes) {
                self.take_head(&head, bytes, sink)?;
                return Ok(head.length);
            }
            return match head::parse(bytes, &self.limits)? {
                Parsed::Whole(head) => {
                    self.known.remember(&bytes[..head.length], head);
                    self.take_head(&head, bytes, sink)?;
                    Ok(head.length)
                }
                Parsed::Partial => {
                    self.partial.extend_from_slice(bytes);
                    Ok(bytes.len())
                }
            };
        }
        let before = self.partial.len();
        let room = (self.limits.head_bytes + 1).saturating_sub(before);
        let taken = bytes.len().min(room);
        self.partial.extend_from_slice(&bytes[..taken]);
        head::check_beginning(&self.partial)?;
        let Some(length) = head::find_end(&self.partial, before.saturating_sub(3)) else {
            if self.partial.len() > self.limits.head_bytes {
                return Err(head::too_large(&self.limits));
            }
            if memchr(b'\n', &self.partial[before..]).is_some() {
                // A peer with another protocol may wait now, so complete lines are parsed.
                head::parse(&self.partial, &self.limits)?;
            }
            return Ok(taken);
        };
        self.partial.truncate(length);
        let partial = std::mem::take(&mut self.partial);
        let parsed = head::parse(&partial, &self.limits)?;
        match parsed {
            Parsed::Whole(head) => self.take_head(&head, &partial, sink)?,
            Parsed::Partial => return Err(protocol("the response's head has no end")),
        }
        self.partial = partial;
        self.partial.clear();
        Ok(length - before)
    }

    /// Acts on a head, which is at the start of `bytes`.
    fn take_head(&mut self, head: &ResponseHead, bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), Failure> {
        let Some(exchange) = &mut self.exchange else { return Ok(()) };
        let id = exchange.id;
        if head.status == 101 {
            return Err(protocol("the server switched protocols (101) without a request for it"));
        }
        if head.status < 200 {
            exchange.informational += 1;
            if exchange.informational > self.limits.informational {
                return Err(Failure::new(
                    FailureKind::Limit,
                    format!("more than {} informational (1xx) responses", self.limits.informational),
                ));
            }
            let links = head::links(head, bytes);
            sink(Event::Informational { request: id, status: head.status, links: &links });
            return Ok(());
        }
        let framing = head.framing(exchange.is_head);
        let closes = head.closes.or(matches!(framing, Framing::UntilClose).then_some(ServerClose::NoLength));
        self.closing |= closes.is_some();
        sink(Event::Head {
            request: id,
            head: Head {
                status: head.status,
                version: head.version,
                content_length: head.content_length,
                closes,
                content: head.content,
                bytes: head.size,
            },
        });
        match Body::new(framing) {
            Some(body) => self.state = State::Body(body),
            None => self.finish(sink),
        }
        Ok(())
    }

    /// The response is complete.
    fn finish(&mut self, sink: &mut Sink<'_>) {
        if let Some(exchange) = self.exchange.take() {
            sink(Event::End { request: exchange.id });
        }
        if self.closing {
            self.end(Outcome::Ok, sink);
        } else {
            self.state = State::Idle;
        }
    }

    /// Closes the connection: an unanswered request fails if the outcome is a failure.
    fn end(&mut self, outcome: Outcome, sink: &mut Sink<'_>) {
        self.state = State::Closed;
        self.closing = true;
        self.partial = Vec::new();
        self.pending.drop_all();
        if let (Some(exchange), Outcome::Failed(failure)) = (self.exchange.take(), &outcome) {
            sink(Event::Failed { request: exchange.id, failure: failure.clone() });
        }
        if !std::mem::replace(&mut self.reported_closed, true) {
            sink(Event::Closed(outcome));
        }
    }

    /// The failure of the request if the stream ends now.
    fn cut_short(&self, exchange: Exchange) -> Failure {
        if let Some(failure) = head::refused_at_end(&self.partial) {
            return failure;
        }
        let reason = match &self.state {
            State::Body(body) => format!("the server closed the connection {}", body.position()),
            _ if exchange.answered => {
                format!("the server closed the connection inside the response's head, after {} bytes", self.partial.len())
            }
            _ => "the server closed the connection before any byte of the response; the request may be sent again"
                .to_owned(),
        };
        Failure::new(FailureKind::Closed, reason)
    }
}

impl Protocol for Http1 {
    fn start(&mut self) {
        if matches!(self.state, State::New) {
            self.state = State::Idle;
        }
    }

    fn available_requests(&self) -> usize {
        usize::from(matches!(self.state, State::Idle) && !self.closing)
    }

    fn send_request(&mut self, id: RequestId, request: &Request) -> Result<HeaderBytes, NotNow> {
        if self.available_requests() == 0 {
            return Err(NotNow);
        }
        let size = self.encoder.encode(request, &mut self.pending);
        let is_head = request.method == "HEAD";
        self.exchange = Some(Exchange { id, is_head, informational: 0, answered: false });
        self.state = State::Head;
        Ok(size)
    }

    fn handle_bytes(&mut self, bytes: &[u8], sink: &mut Sink<'_>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.step(rest, sink) {
                Ok(used) => rest = &rest[used..],
                Err(failure) => return self.end(Outcome::Failed(failure), sink),
            }
        }
    }

    fn skippable_bytes(&self) -> u64 {
        match &self.state {
            State::Body(body) => body.skippable_bytes(),
            State::New | State::Idle | State::Head | State::Closed => 0,
        }
    }

    fn handle_skipped(&mut self, length: u64, sink: &mut Sink<'_>) {
        let (State::Body(body), Some(exchange)) = (&mut self.state, self.exchange) else { return };
        let is_whole = body.skip(length);
        sink(Event::Skipped { request: exchange.id, length });
        if is_whole {
            self.finish(sink);
        }
    }

    fn handle_end(&mut self, sink: &mut Sink<'_>) {
        if let State::Body(body) = &self.state
            && body.ends_with_the_stream()
        {
            return self.finish(sink);
        }
        match self.exchange {
            Some(exchange) => {
                let failure = self.cut_short(exchange);
                self.end(Outcome::Failed(failure), sink);
            }
            None => self.end(Outcome::Ok, sink),
        }
    }

    fn handle_broken(&mut self, failure: Failure, sink: &mut Sink<'_>) {
        self.end(Outcome::Failed(failure), sink);
    }

    fn cancel(&mut self, id: RequestId) {
        if self.exchange.is_some_and(|exchange| exchange.id == id) {
            self.exchange = None;
            self.closing = true;
            self.state = State::Closed;
            self.pending.drop_all();
        }
    }

    fn close(&mut self) {
        self.closing = true;
        if self.exchange.is_none() {
            self.state = State::Closed;
        }
    }

    fn poll_output(&mut self, out: &mut Vec<u8>) -> bool {
        self.pending.poll(out)
    }

    fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }
}

/// A protocol error of the peer.
pub(crate) fn protocol(reason: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Protocol, reason)
}
