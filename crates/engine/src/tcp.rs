//! HTTP over TCP: a protocol over an ordered stream, in cleartext or over TLS.

use model::sample::{Failure, FailureKind};
use model::{Outcome, Variant};

use crate::contract::{
    Connection, EarlyData, Event, Handshake, HeaderBytes, Input, NotNow, Request, RequestId, Sink, Transmit,
    is_safe,
};
use crate::protocol::Protocol;
use crate::tls::{Tls, TlsEvent};

/// One TCP connection with an HTTP version on it.
pub struct TcpConnection<P> {
    protocol: P,
    tls: Option<Box<Tls>>,
    variant: Variant,
    state: State,
    /// Whether [`Event::Closed`] was reported.
    closed_said: bool,
    /// Cleartext that is being encrypted; kept to reuse its memory.
    cleartext: Vec<u8>,
    early: Early,
}

/// Early data and the output that waits behind it; usually empty.
#[derive(Debug, Default)]
struct Early {
    /// Sent early data, kept until the server accepts it.
    sent: Vec<u8>,
    /// Data that the ticket did not allow or the server rejected: sent first after the handshake.
    waiting: Vec<u8>,
    /// A request must not be early: further output stays with the protocol.
    is_held: bool,
}

/// The limit of early data, whatever a ticket allows, because a copy is kept.
const EARLY_LIMIT_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before TCP is established, or during the TLS handshake.
    Opening,
    /// During the TLS handshake; requests leave as early data.
    Early,
    /// Requests and responses, until the protocol is closed.
    Open,
    /// The peer sends no more: queued output still leaves, then close_notify.
    Closing,
    /// Only an alert leaves.
    Over,
}

impl<P: Protocol> TcpConnection<P> {
    /// A connection that speaks `protocol` as `variant`; encrypted if `tls` is given.
    pub fn new(variant: Variant, protocol: P, tls: Option<Tls>) -> Self {
        TcpConnection {
            protocol,
            tls: tls.map(Box::new),
            variant,
            state: State::Opening,
            closed_said: false,
            cleartext: Vec::new(),
            early: Early::default(),
        }
    }

    fn open(&mut self, handshake: Handshake, sink: &mut Sink<'_>) {
        self.state = State::Open;
        self.protocol.start();
        sink(Event::Ready(handshake));
    }

    /// Ends the connection because of `failure`.
    fn fail(&mut self, failure: Failure, sink: &mut Sink<'_>) {
        if self.state == State::Over {
            return;
        }
        self.state = State::Over;
        let closed_said = &mut self.closed_said;
        self.protocol.handle_broken(failure.clone(), &mut watched(closed_said, sink));
        self.say_closed(Outcome::Failed(failure), sink);
    }

    fn say_closed(&mut self, outcome: Outcome, sink: &mut Sink<'_>) {
        if !std::mem::replace(&mut self.closed_said, true) {
            sink(Event::Closed(outcome));
        }
    }

    fn handle_stream(&mut self, bytes: &mut [u8], sink: &mut Sink<'_>) {
        if self.state == State::Over {
            return;
        }
        let result = match &mut self.tls {
            None => {
                self.protocol.handle_bytes(bytes, &mut watched(&mut self.closed_said, sink));
                Ok(false)
            }
            Some(tls) => {
                let mut ended = false;
                let (protocol, state, variant) = (&mut self.protocol, &mut self.state, self.variant);
                let (closed_said, early) = (&mut self.closed_said, &mut self.early);
                tls.handle_input(bytes, &mut |event| {
                    match event {
                        TlsEvent::Established(handshake) => {
                            check_alpn(variant, &handshake)?;
                            match *state {
                                State::Opening => protocol.start(),
                                State::Early => early.answered(handshake.early_data),
                                State::Open | State::Closing | State::Over => return Ok(()),
                            }
                            *state = State::Open;
                            sink(Event::Ready(handshake));
                        }
                        TlsEvent::Plaintext(plaintext) => {
                            protocol.handle_bytes(plaintext, &mut watched(closed_said, sink));
                        }
                        TlsEvent::End => ended = true,
                    }
                    Ok(())
                })
                .map(|()| ended)
            }
        };
        match result {
            Err(failure) => self.fail(failure, sink),
            Ok(true) => self.handle_end(true, sink),
            Ok(false) => self.after_protocol(sink),
        }
    }

    /// The peer sends no more; `is_whole` is false if an attacker could have truncated the stream.
    fn handle_end(&mut self, is_whole: bool, sink: &mut Sink<'_>) {
        match self.state {
            State::Closing | State::Over => {}
            State::Opening | State::Early => {
                let reason = "the server closed the connection before it was ready";
                self.fail(Failure::new(FailureKind::Closed, reason), sink);
            }
            State::Open if is_whole => {
                self.state = State::Closing;
                self.protocol.handle_end(&mut watched(&mut self.closed_said, sink));
                self.say_closed(Outcome::Ok, sink);
            }
            State::Open => self.handle_truncation(sink),
        }
    }

    /// TCP ended without close_notify: unanswered requests fail, even with a body that ends with the stream
    /// (RFC 9112, section 9.8). Many servers close idle connections like this, which is not a failure.
    fn handle_truncation(&mut self, sink: &mut Sink<'_>) {
        self.state = State::Over;
        let reason = "the server closed TCP without closing TLS (no close_notify)";
        let failure = Failure::new(FailureKind::Closed, reason);
        let mut any_failed = false;
        self.protocol.handle_broken(failure.clone(), &mut |event| match event {
            Event::Closed(_) => {}
            other => {
                any_failed |= matches!(other, Event::Failed { .. });
                sink(other);
            }
        });
        self.say_closed(if any_failed { Outcome::Failed(failure) } else { Outcome::Ok }, sink);
    }

    /// Closes the connection if the protocol is done with the stream.
    fn after_protocol(&mut self, sink: &mut Sink<'_>) {
        if self.state == State::Open && self.protocol.is_closed() {
            self.say_closed(Outcome::Ok, sink);
        }
    }

    /// Fills `out` with records that contain the protocol's output.
    fn seal(&mut self, out: &mut Vec<u8>) -> Result<(), Failure> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        if !self.early.waiting.is_empty() {
            tls.encrypt(&std::mem::take(&mut self.early.waiting), out)?;
        }
        self.cleartext.clear();
        if self.protocol.poll_output(&mut self.cleartext) {
            tls.encrypt(&self.cleartext, out)?;
        }
        Ok(())
    }

    /// Fills `out` with data that may leave before the server answers.
    fn seal_early(&mut self, out: &mut Vec<u8>) -> Result<(), Failure> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let early = &mut self.early;
        if !early.is_held {
            while early.waiting.len() < EARLY_LIMIT_BYTES && self.protocol.poll_output(&mut early.waiting) {}
        }
        let room = EARLY_LIMIT_BYTES.saturating_sub(early.sent.len()).min(early.waiting.len());
        let taken = tls.encrypt_early(&early.waiting[..room], out)?;
        early.sent.extend(early.waiting.drain(..taken));
        Ok(())
    }

    /// The protocol's current output may still be early data, later output may not.
    fn hold_early(&mut self) {
        if !std::mem::replace(&mut self.early.is_held, true) {
            while self.protocol.poll_output(&mut self.early.waiting) {}
        }
    }
}

impl Early {
    /// The server has answered; rejected early data is sent again, before the waiting output.
    fn answered(&mut self, fate: EarlyData) {
        let mut sent = std::mem::take(&mut self.sent);
        if fate != EarlyData::Accepted {
            sent.append(&mut self.waiting);
            self.waiting = sent;
        }
    }
}

/// A sink that notes whether the protocol itself reported that the connection is closed.
fn watched<'a>(closed_said: &'a mut bool, sink: &'a mut Sink<'_>) -> impl FnMut(Event<'_>) + 'a {
    move |event| {
        if matches!(event, Event::Closed(_)) && std::mem::replace(closed_said, true) {
            return;
        }
        sink(event);
    }
}

/// Whether ALPN chose the expected protocol. A server without ALPN speaks HTTP/1.1 (RFC 7301, section 3.2
/// allows it to ignore the extension).
fn check_alpn(variant: Variant, handshake: &Handshake) -> Result<(), Failure> {
    let asked = variant.alpn().map(|name| String::from_utf8_lossy(name).into_owned());
    if handshake.alpn == asked || (handshake.alpn.is_none() && variant == Variant::H1s) {
        return Ok(());
    }
    let found = handshake.alpn.as_deref().unwrap_or("no protocol");
    Err(Failure::new(
        FailureKind::WrongVersion,
        format!("ALPN chose {found}, expected {}", asked.unwrap_or_default()),
    ))
}

impl<P: Protocol> Connection for TcpConnection<P> {
    fn available_requests(&self) -> usize {
        match self.state {
            State::Open | State::Early => self.protocol.available_requests(),
            State::Opening | State::Closing | State::Over => 0,
        }
    }

    fn handle_connected(&mut self, _now: u64, sink: &mut Sink<'_>) {
        if self.state != State::Opening {
            return;
        }
        match &mut self.tls {
            None => self.open(Handshake::default(), sink),
            Some(tls) => match tls.start() {
                Err(failure) => self.fail(failure, sink),
                Ok(()) if tls.takes_early_data() => {
                    self.state = State::Early;
                    self.protocol.start();
                }
                Ok(()) => {}
            },
        }
    }

    fn send_request(&mut self, _now: u64, id: RequestId, request: &Request) -> Result<HeaderBytes, NotNow> {
        match self.state {
            State::Open => self.protocol.send_request(id, request),
            State::Early => {
                if !is_safe(request) {
                    self.hold_early();
                }
                self.protocol.send_request(id, request)
            }
            State::Opening | State::Closing | State::Over => Err(NotNow),
        }
    }

    fn skippable_bytes(&self) -> u64 {
        match (self.state, &self.tls) {
            (State::Open, None) => self.protocol.skippable_bytes(),
            _ => 0,
        }
    }

    fn handle_input(&mut self, _now: u64, input: Input<'_>, sink: &mut Sink<'_>) {
        match input {
            Input::Stream(bytes) => self.handle_stream(bytes, sink),
            Input::Skipped(length) => {
                self.protocol.handle_skipped(length, &mut watched(&mut self.closed_said, sink));
                self.after_protocol(sink);
            }
            Input::End => self.handle_end(self.tls.is_none(), sink),
            Input::Broken(failure) => self.fail(failure, sink),
            Input::Datagrams { .. } => {}
        }
    }

    fn handle_timeout(&mut self, _now: u64, _sink: &mut Sink<'_>) {}

    fn cancel(&mut self, _now: u64, id: RequestId) {
        self.protocol.cancel(id);
    }

    fn close(&mut self, _now: u64) {
        match self.state {
            State::Open => self.protocol.close(),
            State::Opening | State::Early => self.state = State::Over,
            State::Closing | State::Over => {}
        }
    }

    fn poll_transmit(&mut self, _now: u64, out: &mut Vec<u8>) -> Option<Transmit> {
        let before = out.len();
        if let Some(tls) = &mut self.tls {
            tls.poll_output(out);
        }
        if self.state == State::Early && self.seal_early(out).is_err() {
            // The requests fail when the driver reports the connection's end.
            self.state = State::Over;
        }
        if matches!(self.state, State::Open | State::Closing) {
            let sealed_from = out.len();
            let sent = match self.tls {
                Some(_) => self.seal(out),
                None => {
                    self.protocol.poll_output(out);
                    Ok(())
                }
            };
            let is_done =
                out.len() == sealed_from && (self.state == State::Closing || self.protocol.is_closed());
            // Exhausted keys end the connection; the requests fail when the driver reports its end.
            if sent.is_err() || is_done {
                self.state = State::Over;
                if let Some(tls) = &mut self.tls {
                    // Without close_notify, the end of TCP follows.
                    let _ = tls.close(out);
                }
            }
        }
        (out.len() > before).then_some(Transmit::Stream)
    }

    fn poll_timeout(&self) -> Option<u64> {
        None
    }

    fn is_closed(&self) -> bool {
        self.state == State::Over && self.tls.as_ref().is_none_or(|tls| !tls.has_output())
    }
}
