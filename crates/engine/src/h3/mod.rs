//! HTTP/3 for a client (RFC 9114) over [`crate::quic`].

pub(crate) mod any_bytes;
mod early;
pub mod error;
pub mod frame;
mod own_streams;
mod peer_streams;
pub mod qpack;
mod reading;
mod request;
mod response;
pub mod settings;
pub mod stream_kind;
mod table;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, Bytes};
use model::Outcome;
use model::sample::{Failure, FailureKind};
use quinn_proto::{Dir, StreamEvent, StreamId};

use crate::contract::{
    Connection, EarlyData, Event, HeaderBytes, Input, NotNow, Request, RequestId, Sink, Transmit,
};
use crate::quic::{self, Quic, QuicConfig};
use early::Early;
use error::{Code, Violation};
use own_streams::OwnStreams;
use peer_streams::PeerStreams;
use qpack::{Decoder, Encoder};
use request::{Encoded, Templates};
use response::Fields;
use table::{Exchange, Table};

/// The limit of streams that are opened in advance, and so of requests in flight.
const STOCK_LIMIT: usize = 1024;

/// One HTTP/3 connection.
pub struct Http3 {
    /// The settings of the connection until `quic` is created.
    plan: Plan,
    quic: Option<Quic>,
    state: State,
    peer: PeerStreams,
    fields: Fields,
    templates: Templates,
    exchanges: Table,
    /// Request streams that are open and unused, lowest first.
    stock: VecDeque<StreamId>,
    early: Early,
    own: OwnStreams,
    /// Whether the last packets after the end were sent.
    is_quiet: bool,
}

struct Plan {
    config: Arc<QuicConfig>,
    server_name: String,
    remote: SocketAddr,
    base: Instant,
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the handshake is done.
    Opening,
    /// Before the handshake is done; requests leave as early data.
    Early,
    /// Accepts requests.
    Open,
    /// The server sent GOAWAY: requests in flight are finished.
    Draining,
    /// Only CONNECTION_CLOSE is sent.
    Over,
}

impl Http3 {
    /// A connection to `remote`; [`Connection::handle_connected`] starts it.
    ///
    /// `base` is the instant at which the driver's clock reads 0.
    pub fn new(
        config: Arc<QuicConfig>,
        server_name: String,
        remote: SocketAddr,
        base: Instant,
        seed: u64,
    ) -> Http3 {
        let (table_bytes, blocked_streams) = config.qpack;
        Http3 {
            plan: Plan { config, server_name, remote, base, seed },
            quic: None,
            state: State::Opening,
            peer: PeerStreams::default(),
            fields: Fields::new(Decoder::new(table_bytes as usize, usize::from(blocked_streams))),
            templates: Templates::new(Encoder::new(table_bytes as usize, 0)),
            exchanges: Table::default(),
            stock: VecDeque::new(),
            early: Early::default(),
            own: OwnStreams::default(),
            is_quiet: false,
        }
    }

    /// See [`crate::Client::local_address_changed`].
    pub fn local_address_changed(&mut self) -> bool {
        // A client must not migrate before the handshake is confirmed (RFC 9000, section 9).
        let may_move = matches!(self.state, State::Open | State::Draining);
        match self.quic.as_mut().filter(|_| may_move) {
            Some(quic) => {
                quic.local_address_changed();
                true
            }
            None => false,
        }
    }

    /// Handles the events of QUIC.
    fn drain_events(&mut self, now: u64, sink: &mut Sink<'_>) {
        self.handle_events(now, sink);
        self.flush_own_streams();
    }

    fn handle_events(&mut self, now: u64, sink: &mut Sink<'_>) {
        while let Some(event) = self.quic.as_mut().and_then(Quic::poll) {
            if self.state == State::Over {
                continue;
            }
            match event {
                quinn_proto::Event::Connected => self.handle_handshake(now, sink),
                quinn_proto::Event::ConnectionLost { reason } => self.handle_loss(&reason, sink),
                quinn_proto::Event::Stream(event) => self.handle_stream_event(now, &event, sink),
                quinn_proto::Event::HandshakeDataReady
                | quinn_proto::Event::DatagramReceived
                | quinn_proto::Event::DatagramsUnblocked => {}
            }
        }
        if self.state == State::Draining && self.exchanges.is_empty() {
            self.end(now, Code::H3_NO_ERROR, "");
            sink(Event::Closed(Outcome::Ok));
        }
    }

    fn handle_handshake(&mut self, now: u64, sink: &mut Sink<'_>) {
        let Some(quic) = &mut self.quic else { return };
        let handshake = quic.handshake();
        if handshake.alpn.as_deref() != Some("h3") {
            let found = handshake.alpn.as_deref().unwrap_or("no protocol");
            let reason = format!("ALPN chose {found}, expected h3");
            self.end(now, Code::H3_NO_ERROR, "");
            return self.say_failed(Failure::new(FailureKind::WrongVersion, reason), sink);
        }
        let was_accepted = self.state == State::Early && handshake.early_data == EarlyData::Accepted;
        if self.state == State::Early {
            self.settle_early(was_accepted);
        }
        let Http3 { quic: Some(quic), own, .. } = self else { return };
        if !was_accepted && !own.open(quic, self.plan.config.qpack) {
            let reason = "the server allows fewer than 3 unidirectional streams";
            let violation = Violation::new(Code::H3_GENERAL_PROTOCOL_ERROR, reason);
            return self.abort(now, &violation, sink);
        }
        self.state = State::Open;
        self.refill();
        sink(Event::Ready(handshake));
    }

    fn handle_loss(&mut self, reason: &quinn_proto::ConnectionError, sink: &mut Sink<'_>) {
        let (failure, orderly) = quic::connection_failure(reason);
        let was_open = !matches!(self.state, State::Opening | State::Early);
        let was_idle = was_open && self.exchanges.is_empty() && self.early.waiting.is_empty();
        self.state = State::Over;
        if orderly && was_idle {
            sink(Event::Closed(Outcome::Ok));
        } else {
            self.say_failed(failure, sink);
        }
    }

    fn handle_stream_event(&mut self, now: u64, event: &StreamEvent, sink: &mut Sink<'_>) {
        match *event {
            StreamEvent::Readable { id } if id.dir() == Dir::Bi => self.read_response(now, id, sink),
            StreamEvent::Readable { id } => self.read_peer_stream(now, id, sink),
            StreamEvent::Opened { dir: Dir::Uni } => {
                while let Some(id) =
                    self.quic.as_mut().and_then(|quic| quic.connection.streams().accept(Dir::Uni))
                {
                    self.peer.opened(id.into());
                    self.read_peer_stream(now, id, sink);
                }
            }
            StreamEvent::Writable { id } if id.dir() == Dir::Uni => self.flush_own_streams(),
            StreamEvent::Writable { id } => self.write_rest(id),
            StreamEvent::Stopped { id, error_code } => self.handle_stopped(now, id, error_code, sink),
            StreamEvent::Available { dir: Dir::Bi } => self.refill(),
            StreamEvent::Opened { dir: Dir::Bi }
            | StreamEvent::Available { dir: Dir::Uni }
            | StreamEvent::Finished { .. } => {}
        }
    }

    /// The server sent STOP_SENDING on a request stream; RFC 9000, section 3.5 requires a reset.
    fn handle_stopped(&mut self, now: u64, id: StreamId, code: quinn_proto::VarInt, sink: &mut Sink<'_>) {
        if id.dir() == Dir::Uni {
            let reason = "STOP_SENDING on a control or QPACK stream";
            return self.abort(now, &Violation::new(Code::H3_CLOSED_CRITICAL_STREAM, reason), sink);
        }
        if let Some(quic) = &mut self.quic {
            // The complete request may have been acknowledged meanwhile.
            let _ = quic.connection.send_stream(id).reset(code);
        }
        if let Some(exchange) = self.exchanges.get(id) {
            exchange.unsent = [Bytes::new(), Bytes::new()];
        }
    }

    /// Sends more of a request whose stream was blocked.
    fn write_rest(&mut self, id: StreamId) {
        let Http3 { quic: Some(quic), exchanges, .. } = self else { return };
        if let Some(exchange) = exchanges.get(id)
            && exchange.is_sending()
        {
            write(quic, id, exchange);
        }
    }

    /// Sends QPACK instructions.
    #[inline]
    fn flush_own_streams(&mut self) {
        if let Some(quic) = &mut self.quic
            && self.plan.config.qpack.0 > 0
        {
            self.own.flush(quic, self.fields.decoder(), self.templates.encoder());
        }
    }

    /// Ends both directions of a stream.
    fn give_up(&mut self, id: StreamId, code: Code) {
        self.fields.decoder().cancel(u64::from(id));
        let Some(quic) = &mut self.quic else { return };
        let code = quic::varint(code);
        // A closed direction needs no reset.
        let _ = quic.connection.send_stream(id).reset(code);
        let _ = quic.connection.recv_stream(id).stop(code);
    }

    /// Opens streams in advance; `available_requests` returns their number.
    fn refill(&mut self) {
        let takes_requests = matches!(self.state, State::Open | State::Early);
        let Some(quic) = self.quic.as_mut().filter(|_| takes_requests) else { return };
        let mut streams = quic.connection.streams();
        while self.stock.len() < STOCK_LIMIT
            && let Some(id) = streams.open(Dir::Bi)
        {
            self.stock.push_back(id);
        }
        while self.state == State::Open
            && !self.early.waiting.is_empty()
            && let Some(stream) = self.stock.pop_front()
            && let Some((id, encoded)) = self.early.waiting.pop_front()
        {
            self.begin(stream, id, encoded);
        }
    }

    /// Sends a request on an open stream.
    #[inline]
    fn begin(&mut self, stream: StreamId, id: RequestId, encoded: Encoded) {
        let Some(quic) = &mut self.quic else { return };
        let exchange = self.exchanges.insert(stream, id);
        exchange.response.reset(encoded.is_head);
        exchange.unsent = [encoded.head, encoded.body];
        write(quic, stream, exchange);
    }

    /// Closes the connection because of the peer's error.
    fn abort(&mut self, now: u64, violation: &Violation, sink: &mut Sink<'_>) {
        self.end(now, violation.code, &violation.reason);
        self.say_failed(failure_of(violation), sink);
    }

    fn end(&mut self, now: u64, code: Code, reason: &str) {
        self.state = State::Over;
        self.stock.clear();
        if let Some(quic) = &mut self.quic {
            quic.close(now, code, reason);
        }
    }

    /// Fails every request and the connection.
    fn say_failed(&mut self, failure: Failure, sink: &mut Sink<'_>) {
        self.state = State::Over;
        self.stock.clear();
        while let Some((id, request)) = self.exchanges.last_from(0) {
            self.exchanges.remove(id);
            sink(Event::Failed { request, failure: failure.clone() });
        }
        for (request, _) in self.early.waiting.drain(..) {
            sink(Event::Failed { request, failure: failure.clone() });
        }
        sink(Event::Closed(Outcome::Failed(failure)));
    }
}

/// Writes what flow control allows; ends the stream with the last byte.
fn write(quic: &mut Quic, id: StreamId, exchange: &mut Exchange) {
    let mut stream = quic.connection.send_stream(id);
    while exchange.is_sending() {
        let first = usize::from(!exchange.unsent[0].has_remaining());
        match stream.write_chunks(&mut exchange.unsent[first..]) {
            Ok(_) => {}
            // QUIC reports `Writable` or `Stopped` when that changes.
            Err(_) => return,
        }
    }
    // A stopped stream needs no end.
    let _ = stream.finish();
}

fn failure_of(violation: &Violation) -> Failure {
    Failure { kind: violation.kind, reason: violation.to_string() }
}

impl Connection for Http3 {
    fn available_requests(&self) -> usize {
        self.stock.len().saturating_sub(self.early.waiting.len())
    }

    fn handle_connected(&mut self, now: u64, sink: &mut Sink<'_>) {
        if self.state != State::Opening || self.quic.is_some() {
            return;
        }
        let plan = &self.plan;
        match Quic::connect(&plan.config, &plan.server_name, plan.remote, plan.base, now, plan.seed) {
            Ok(mut quic) => {
                // A ticket that allows early data brings the limits that the server had.
                if quic.connection.has_0rtt() && self.own.open(&mut quic, plan.config.qpack) {
                    self.state = State::Early;
                }
                self.quic = Some(quic);
                self.refill();
            }
            Err(failure) => self.say_failed(failure, sink),
        }
        self.drain_events(now, sink);
    }

    fn send_request(&mut self, _now: u64, id: RequestId, request: &Request) -> Result<HeaderBytes, NotNow> {
        if self.state == State::Early {
            return self.begin_early(id, request);
        }
        let stream = self.stock.pop_front().ok_or(NotNow)?;
        let encoded = self.templates.encoded(u64::from(stream), request);
        let size = encoded.header_bytes;
        self.begin(stream, id, encoded);
        self.flush_own_streams();
        if self.stock.is_empty() {
            self.refill();
        }
        Ok(size)
    }

    fn handle_input(&mut self, now: u64, input: Input<'_>, sink: &mut Sink<'_>) {
        match input {
            Input::Datagrams { bytes, segment_bytes, ecn } => {
                if let Some(quic) = &mut self.quic {
                    quic.handle_datagrams(now, bytes, segment_bytes, ecn);
                }
                self.drain_events(now, sink);
            }
            Input::Broken(failure) => {
                if self.state != State::Over {
                    self.say_failed(failure, sink);
                    self.is_quiet = true;
                }
            }
            // A UDP socket has neither.
            Input::Stream(_) | Input::Skipped(_) | Input::End => {}
        }
    }

    fn handle_timeout(&mut self, now: u64, sink: &mut Sink<'_>) {
        if let Some(quic) = &mut self.quic {
            quic.handle_timeout(now);
        }
        self.drain_events(now, sink);
    }

    fn cancel(&mut self, now: u64, id: RequestId) {
        if let Some(stream) = self.exchanges.stream_of(id) {
            self.give_up(stream, Code::H3_REQUEST_CANCELLED);
            self.exchanges.remove(stream);
        }
        self.early.sent.retain(|(request, _)| *request != id);
        self.early.waiting.retain(|(request, _)| *request != id);
        if self.state == State::Draining && self.exchanges.is_empty() {
            self.end(now, Code::H3_NO_ERROR, "");
        }
    }

    fn close(&mut self, now: u64) {
        if self.state != State::Over {
            self.end(now, Code::H3_NO_ERROR, "");
        }
    }

    fn poll_transmit(&mut self, now: u64, out: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = if self.is_quiet { None } else { self.quic.as_mut()?.poll_transmit(now, out) };
        self.is_quiet |= transmit.is_none() && self.state == State::Over;
        transmit
    }

    fn poll_timeout(&self) -> Option<u64> {
        if self.state == State::Over { None } else { self.quic.as_ref()?.poll_timeout() }
    }

    fn is_closed(&self) -> bool {
        self.state == State::Over && (self.is_quiet || self.quic.is_none())
    }
}
