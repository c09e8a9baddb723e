//! Both ends of an HTTP/3 connection for `path::sim`: the engine, and a scripted server on quinn-proto.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use engine::h3::Http3;
use engine::quic::QuicConfig;
use engine::tls::tls_config;
use engine::{Connection, Event, Handshake, Head, Input, Request, RequestId, Transmit};
use model::assignment::Trust;
use model::network::{Direction, Loss, Queue};
use model::sample::{Failure, FailureKind};
use model::{Outcome, Pins};
use path::sim::{Endpoint, Simulation};
use path::{LinkDirection, Path, Seeds};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{ConnectionHandle, DatagramEvent, Dir, StreamEvent, StreamId, VarInt};

use crate::authority::{Authority, NAME};

pub(crate) const MS: u64 = 1_000_000;
const STEPS: u64 = 200_000;
pub(crate) const CLIENT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 50_000);
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 443);

/// Any instant will do as the zero of the virtual clock.
#[expect(clippy::disallowed_methods, reason = "only differences to it are looked at")]
pub(crate) fn base() -> Instant {
    Instant::now()
}

/// What the client's sink was told, with the time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LoggedEvent {
    Ready(Handshake),
    Informational(RequestId, u16, String),
    Head(RequestId, Head),
    End(RequestId),
    Failed(RequestId, Failure),
    Closed(Outcome),
}

/// The engine under test, with a list of requests that it sends as soon as it may.
pub(crate) struct Browser {
    pub(crate) engine: Http3,
    pub(crate) wanted: VecDeque<Request>,
    pub(crate) sent: u64,
    pub(crate) seen: Vec<(u64, LoggedEvent)>,
    pub(crate) bodies: BTreeMap<RequestId, Vec<u8>>,
    pub(crate) wire_bytes: u32,
    /// When each datagram was sent, and its length.
    pub(crate) datagrams: Vec<(u64, usize)>,
    outgoing: Outgoing,
    connected: bool,
    /// The most datagrams that left in one call.
    pub(crate) largest_batch: usize,
    /// Requests that were taken before the handshake was done.
    pub(crate) early: u64,
    /// Gives this request up as soon as its head is there.
    pub(crate) cancels: Option<RequestId>,
}

/// Datagrams that wait for the path; each one at this interval is swapped with the next.
#[derive(Default)]
struct Outgoing {
    queue: VecDeque<Vec<u8>>,
    count: u64,
    swap_every: u64,
}

impl Outgoing {
    fn push(&mut self, datagram: Vec<u8>) {
        self.count += 1;
        self.queue.push_back(datagram);
        let length = self.queue.len();
        if self.swap_every > 0 && self.count.is_multiple_of(self.swap_every) && length > 1 {
            self.queue.swap(length - 1, length - 2);
        }
    }
}

impl Browser {
    fn record(&mut self, now: u64, act: impl FnOnce(&mut Http3, &mut engine::Sink<'_>)) {
        let Browser { engine, seen, bodies, .. } = self;
        act(engine, &mut |event| {
            seen.push((
                now,
                match event {
                    Event::Ready(handshake) => LoggedEvent::Ready(handshake),
                    Event::Informational { request, status, links } => LoggedEvent::Informational(
                        request,
                        status,
                        String::from_utf8_lossy(links).into_owned(),
                    ),
                    Event::Head { request, head } => LoggedEvent::Head(request, head),
                    Event::Data { request, bytes } => {
                        return bodies.entry(request).or_default().extend_from_slice(bytes);
                    }
                    Event::End { request } => LoggedEvent::End(request),
                    Event::Failed { request, failure } => LoggedEvent::Failed(request, failure),
                    other @ (Event::Pushed(_)
                    | Event::Promised { .. }
                    | Event::PushedInVain(_)
                    | Event::Skipped { .. }) => panic!("{other:?} over HTTP/3"),
                    Event::Closed(outcome) => LoggedEvent::Closed(outcome),
                },
            ));
        });
        let head_of =
            |id| move |(_, seen): &(u64, LoggedEvent)| matches!(seen, LoggedEvent::Head(of, _) if *of == id);
        if let Some(id) = self.cancels
            && self.seen.iter().any(head_of(id))
        {
            self.cancels = None;
            self.engine.cancel(now, id);
        }
        while self.engine.available_requests() > 0
            && let Some(request) = self.wanted.pop_front()
        {
            self.early += u64::from(!self.seen.iter().any(|(_, seen)| matches!(seen, LoggedEvent::Ready(_))));
            self.wire_bytes += self.engine.send_request(now, self.sent, &request).unwrap().wire;
            self.sent += 1;
        }
    }

    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        self.seen
            .iter()
            .find_map(|(_, seen)| if let LoggedEvent::Closed(outcome) = seen { Some(outcome) } else { None })
    }

    pub(crate) fn engine_is_closed(&self) -> bool {
        self.engine.is_closed()
    }

    /// How many requests have had their last event.
    pub(crate) fn finished(&self) -> usize {
        self.seen
            .iter()
            .filter(|(_, seen)| matches!(seen, LoggedEvent::End(_) | LoggedEvent::Failed(..)))
            .count()
    }
}

impl Endpoint for Browser {
    fn handle_datagram(&mut self, now: u64, mut datagram: Vec<u8>) {
        let segment_bytes = datagram.len();
        self.record(now, |engine, sink| {
            engine.handle_input(now, Input::Datagrams { bytes: &mut datagram, segment_bytes, ecn: 0 }, sink);
        });
    }

    fn handle_timeout(&mut self, now: u64) {
        self.record(now, |engine, sink| engine.handle_timeout(now, sink));
    }

    fn poll_transmit(&mut self, now: u64) -> Option<Vec<u8>> {
        if !std::mem::replace(&mut self.connected, true) {
            self.record(now, |engine, sink| engine.handle_connected(now, sink));
        }
        if self.outgoing.queue.is_empty() {
            let mut out = Vec::new();
            while let Some(Transmit::Datagrams { segment_bytes, .. }) =
                self.engine.poll_transmit(now, &mut out)
            {
                self.largest_batch = self.largest_batch.max(out.len().div_ceil(segment_bytes));
                assert!(out.len() <= 65_000, "{} bytes in one call", out.len());
                for datagram in out.chunks(segment_bytes) {
                    self.datagrams.push((now, datagram.len()));
                    self.outgoing.push(datagram.to_vec());
                }
                out.clear();
            }
        }
        self.outgoing.queue.pop_front()
    }

    fn next_timeout_ns(&self) -> Option<u64> {
        self.engine.poll_timeout()
    }
}

/// What the server does when a request has come whole.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// These bytes on the request's stream, then its end.
    Whole(Vec<u8>),
    /// These bytes, and the stream stays open.
    Part(Vec<u8>),
    /// RESET_STREAM.
    Reset(u64),
    /// STOP_SENDING before the request is whole, then a reply.
    Stop(u64, Vec<u8>),
    /// Bytes on the control stream, then a whole reply.
    Control(Vec<u8>, Vec<u8>),
    /// Bytes on the QPACK encoder stream, then a whole reply.
    Instructions(Vec<u8>, Vec<u8>),
    /// CONNECTION_CLOSE of the application.
    Close(u64),
    /// A whole reply, and CONNECTION_CLOSE with H3_NO_ERROR as soon as it is acknowledged.
    Farewell(Vec<u8>),
    /// Nothing at all.
    Silence,
}

/// How the server behaves.
pub(crate) struct Script {
    /// Unidirectional streams opened at once: bytes, and whether the stream ends.
    pub(crate) streams: Vec<(Vec<u8>, bool)>,
    /// The reply to each request, by its number; the last one is repeated.
    pub(crate) replies: Vec<Reply>,
    pub(crate) alpn: &'static [u8],
    /// How many request streams the client may have open.
    pub(crate) request_streams: u32,
}

impl Script {
    pub(crate) fn replying(replies: Vec<Reply>) -> Script {
        let streams = vec![(control_stream(&[]), false), (vec![0x02], false), (vec![0x03], false)];
        Script { streams, replies, alpn: b"h3", request_streams: 100 }
    }
}

/// A control stream with empty SETTINGS and more.
pub(crate) fn control_stream(more: &[u8]) -> Vec<u8> {
    [&[0x00, 0x04, 0x00], more].concat()
}

/// A frame.
pub(crate) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    engine::h3::frame::encode_header(kind, payload.len() as u64, &mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// A HEADERS frame.
pub(crate) fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = Vec::new();
    engine::h3::qpack::encode_prefix(&mut section);
    for (name, value) in fields {
        engine::h3::qpack::encode_field(name.as_bytes(), value.as_bytes(), &mut section);
    }
    frame(0x01, &section)
}

/// A response with a body.
pub(crate) fn response(body: &[u8]) -> Vec<u8> {
    let length = body.len().to_string();
    [headers(&[(":status", "200"), ("content-length", &length)]), frame(0x00, body)].concat()
}

/// A server on quinn-proto that follows a script.
pub(crate) struct Peer {
    base: Instant,
    endpoint: quinn_proto::Endpoint,
    connection: Option<(ConnectionHandle, quinn_proto::Connection)>,
    script: Script,
    own: Vec<StreamId>,
    pub(crate) requests: BTreeMap<StreamId, Vec<u8>>,
    pub(crate) uploads: Vec<Vec<u8>>,
    /// What the client said on its own streams: control, QPACK encoder, QPACK decoder.
    pub(crate) said: BTreeMap<u64, Vec<u8>>,
    unsent: BTreeMap<StreamId, (Vec<u8>, usize, bool)>,
    answered: usize,
    /// The stream whose acknowledged end is followed by CONNECTION_CLOSE.
    leaves_after: Option<StreamId>,
    /// How the connection ended, in the server's eyes.
    pub(crate) lost: Option<String>,
    /// Codes with which the client reset or stopped request streams.
    pub(crate) client_stops: Vec<u64>,
    outgoing: Outgoing,
    responses: VecDeque<Vec<u8>>,
    timeout_ns: Option<u64>,
    /// Where the client's datagrams come from.
    pub(crate) client: SocketAddr,
    /// Where datagrams were sent, in order and without repetition.
    pub(crate) destinations: Vec<SocketAddr>,
}

impl Peer {
    fn new(base: Instant, tls: rustls::ServerConfig, script: Script, swap_every: u64) -> Peer {
        let crypto = QuicServerConfig::try_from(tls).unwrap();
        let mut server = quinn_proto::ServerConfig::with_crypto(Arc::new(crypto));
        let mut transport = quinn_proto::TransportConfig::default();
        transport
            .initial_mtu(1452)
            .mtu_discovery_config(None)
            .max_concurrent_bidi_streams(VarInt::from_u32(script.request_streams))
            .send_window(1 << 30);
        server.transport_config(Arc::new(transport));
        let endpoint = quinn_proto::Endpoint::new(
            Arc::new(quinn_proto::EndpointConfig::default()),
            Some(Arc::new(server)),
            false,
            Some([7; 32]),
        );
        Peer {
            base,
            endpoint,
            connection: None,
            script,
            own: Vec::new(),
            requests: BTreeMap::new(),
            uploads: Vec::new(),
            said: BTreeMap::new(),
            unsent: BTreeMap::new(),
            answered: 0,
            leaves_after: None,
            lost: None,
            client_stops: Vec::new(),
            outgoing: Outgoing { swap_every, ..Outgoing::default() },
            responses: VecDeque::new(),
            timeout_ns: None,
            client: CLIENT,
            destinations: Vec::new(),
        }
    }

    /// Says more on one of the script's streams.
    pub(crate) fn say(&mut self, stream: usize, bytes: Vec<u8>) {
        let id = self.own[stream];
        self.send(id, bytes, false);
    }

    /// Where the server believes the client to be.
    pub(crate) fn remote(&self) -> SocketAddr {
        self.connection.as_ref().unwrap().1.remote_address()
    }

    fn drain(&mut self) {
        loop {
            let Some((handle, connection)) = &mut self.connection else { return };
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            let Some(event) = connection.poll() else { return };
            match event {
                quinn_proto::Event::Connected => self.open_streams(),
                quinn_proto::Event::ConnectionLost { reason } => self.lost = Some(reason.to_string()),
                quinn_proto::Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    while let Some(id) = self.connection().streams().accept(Dir::Bi) {
                        self.requests.insert(id, Vec::new());
                        self.read(id);
                    }
                }
                quinn_proto::Event::Stream(StreamEvent::Readable { id }) if id.dir() == Dir::Bi => {
                    self.read(id)
                }
                quinn_proto::Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    while let Some(id) = self.connection().streams().accept(Dir::Uni) {
                        self.read_uni(id);
                    }
                }
                quinn_proto::Event::Stream(StreamEvent::Readable { id }) => self.read_uni(id),
                quinn_proto::Event::Stream(StreamEvent::Writable { id }) => self.write(id),
                quinn_proto::Event::Stream(StreamEvent::Finished { id }) if self.leaves_after == Some(id) => {
                    let now = self.base;
                    self.connection().close(now, VarInt::from_u32(0x100), bytes::Bytes::new());
                }
                quinn_proto::Event::Stream(StreamEvent::Stopped { error_code, .. }) => {
                    self.client_stops.push(error_code.into());
                }
                _ => {}
            }
        }
    }

    fn connection(&mut self) -> &mut quinn_proto::Connection {
        &mut self.connection.as_mut().unwrap().1
    }

    fn open_streams(&mut self) {
        for (bytes, ends) in self.script.streams.clone() {
            let id = self.connection().streams().open(Dir::Uni).unwrap();
            self.own.push(id);
            self.unsent.insert(id, (bytes, 0, ends));
            self.write(id);
        }
    }

    fn read(&mut self, id: StreamId) {
        let reply = self.script.replies.get(self.answered).or(self.script.replies.last()).cloned();
        if let Some(Reply::Stop(code, reply)) = &reply
            && self.requests.contains_key(&id)
        {
            self.answered += 1;
            self.requests.remove(&id);
            self.connection().recv_stream(id).stop(VarInt::from_u64(*code).unwrap()).unwrap();
            return self.send(id, reply.clone(), true);
        }
        let (_, connection) = self.connection.as_mut().unwrap();
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let ended = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.requests.entry(id).or_default().extend_from_slice(&chunk.bytes),
                Ok(None) => break true,
                Err(quinn_proto::ReadError::Blocked) => break false,
                Err(quinn_proto::ReadError::Reset(code)) => {
                    self.client_stops.push(code.into());
                    break false;
                }
            }
        };
        drop(chunks);
        if ended {
            self.uploads.push(self.requests.remove(&id).unwrap_or_default());
            self.answered += 1;
            self.answer(id, reply.unwrap());
        }
    }

    fn read_uni(&mut self, id: StreamId) {
        let (_, connection) = self.connection.as_mut().unwrap();
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let said = self.said.entry(id.index()).or_default();
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            said.extend_from_slice(&chunk.bytes);
        }
        drop(chunks);
    }

    fn answer(&mut self, id: StreamId, reply: Reply) {
        match reply {
            Reply::Whole(bytes) | Reply::Stop(_, bytes) => self.send(id, bytes, true),
            Reply::Part(bytes) => self.send(id, bytes, false),
            Reply::Reset(code) => {
                self.connection().send_stream(id).reset(VarInt::from_u64(code).unwrap()).unwrap();
            }
            Reply::Control(control, bytes) => {
                let own = self.own[0];
                self.send(own, control, false);
                self.send(id, bytes, true);
            }
            Reply::Instructions(instructions, bytes) => {
                let own = self.own[1];
                self.send(own, instructions, false);
                self.send(id, bytes, true);
            }
            Reply::Close(code) => {
                let now = self.base;
                self.connection().close(now, VarInt::from_u64(code).unwrap(), bytes::Bytes::new());
            }
            Reply::Farewell(bytes) => {
                self.leaves_after = Some(id);
                self.send(id, bytes, true);
            }
            Reply::Silence => {}
        }
    }

    fn send(&mut self, id: StreamId, bytes: Vec<u8>, ends: bool) {
        self.unsent.insert(id, (bytes, 0, ends));
        self.write(id);
    }

    fn write(&mut self, id: StreamId) {
        let Some((bytes, sent, ends)) = self.unsent.get_mut(&id) else { return };
        let (_, connection) = self.connection.as_mut().unwrap();
        let mut stream = connection.send_stream(id);
        while *sent < bytes.len() {
            match stream.write(&bytes[*sent..]) {
                Ok(written) => *sent += written,
                Err(_) => return,
            }
        }
        if *ends {
            let _ = stream.finish();
        }
        self.unsent.remove(&id);
    }
}

impl Endpoint for Peer {
    fn handle_datagram(&mut self, now: u64, datagram: Vec<u8>) {
        let now = self.base + Duration::from_nanos(now);
        let mut buffer = Vec::new();
        match self.endpoint.handle(now, self.client, None, None, BytesMut::from(&datagram[..]), &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => self.connection().handle_event(event),
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut buffer, None) {
                    Ok(accepted) => self.connection = Some(accepted),
                    Err(error) => {
                        self.lost = Some(error.cause.to_string());
                        self.responses.extend(error.response.map(|_| buffer));
                    }
                }
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
        self.drain();
    }

    fn handle_timeout(&mut self, now: u64) {
        let now = self.base + Duration::from_nanos(now);
        self.connection().handle_timeout(now);
        self.drain();
    }

    fn poll_transmit(&mut self, now: u64) -> Option<Vec<u8>> {
        let instant = self.base + Duration::from_nanos(now);
        let mut out = Vec::new();
        if self.outgoing.queue.is_empty()
            && let Some((_, connection)) = &mut self.connection
        {
            while let Some(transmit) = connection.poll_transmit(instant, 10, &mut out) {
                if self.destinations.last() != Some(&transmit.destination) {
                    self.destinations.push(transmit.destination);
                }
                for datagram in out.chunks(transmit.segment_size.unwrap_or(transmit.size)) {
                    self.outgoing.push(datagram.to_vec());
                }
                out.clear();
            }
            let at = connection.poll_timeout();
            self.timeout_ns = at.map(|at| u64::try_from((at - self.base).as_nanos()).unwrap());
        }
        self.responses.pop_front().or_else(|| self.outgoing.queue.pop_front())
    }

    fn next_timeout_ns(&self) -> Option<u64> {
        self.timeout_ns
    }
}

/// A network between the two.
pub(crate) struct Net {
    pub(crate) rtt_ms: u64,
    pub(crate) loss_share: f64,
    pub(crate) swap_every: u64,
    pub(crate) seed: u64,
}

impl Net {
    pub(crate) const CLEAN: Net = Net { rtt_ms: 100, loss_share: 0.0, swap_every: 0, seed: 1 };

    fn path(&self, seed: u64) -> Path<Vec<u8>> {
        let direction = Direction {
            delay_ns: self.rtt_ms * MS / 2,
            queue: Queue::packets(100_000),
            loss: Loss::Independent { share: self.loss_share },
            ..Direction::default()
        };
        Path::new(&direction, Seeds::run(seed, LinkDirection::Up))
    }
}

pub(crate) type Run = Simulation<Browser, Peer>;

/// A GET.
pub(crate) fn get(path: &str) -> Request {
    Request {
        template: 0,
        method: "GET".into(),
        scheme: "https".into(),
        authority: NAME.into(),
        path: path.into(),
        fields: vec![("user-agent".into(), "h123".into())],
        varying: None,
        body: bytes::Bytes::new(),
    }
}

/// Client and server joined; the client wants `requests`.
pub(crate) fn join(net: &Net, pins: &Pins, script: Script, requests: Vec<Request>) -> Run {
    let authority = Authority::new();
    join_trusting(net, pins, script, requests, &authority, &authority)
}

pub(crate) fn join_trusting(
    net: &Net,
    pins: &Pins,
    script: Script,
    requests: Vec<Request>,
    authority: &Authority,
    trusted: &Authority,
) -> Run {
    let tls = tls_config(pins, b"h3", &Trust::Authority(trusted.pem()), &[]).unwrap();
    let config = Arc::new(QuicConfig::new(pins, Arc::new(tls)).unwrap());
    let server = authority.server_config(&[script.alpn]);
    join_configured(net, config, server, script, requests)
}

/// The same with settings that may have seen connections before.
pub(crate) fn join_configured(
    net: &Net,
    config: Arc<QuicConfig>,
    server: rustls::ServerConfig,
    script: Script,
    requests: Vec<Request>,
) -> Run {
    let base = base();
    let browser = Browser {
        engine: Http3::new(config, NAME.into(), SERVER, base, net.seed),
        wanted: requests.into(),
        sent: 0,
        seen: Vec::new(),
        bodies: BTreeMap::new(),
        wire_bytes: 0,
        largest_batch: 0,
        early: 0,
        datagrams: Vec::new(),
        outgoing: Outgoing { swap_every: net.swap_every, ..Outgoing::default() },
        connected: false,
        cancels: None,
    };
    let peer = Peer::new(base, server, script, net.swap_every);
    Simulation::new(browser, peer, net.path(net.seed), net.path(net.seed + 1000))
}

/// Runs until `count` requests have had their last event.
pub(crate) fn run_until_finished(run: &mut Run, count: usize) {
    let result = run.run_until(STEPS, |browser, _| browser.finished() >= count);
    assert_eq!(result, Ok(()), "seen: {:?}, server: {:?}", run.client.seen, run.server.lost);
}

/// Runs until the client reports the end of the connection and all its data are delivered.
pub(crate) fn run_until_closed(run: &mut Run) -> Outcome {
    let result = run.run_until(STEPS, |browser, _| browser.outcome().is_some());
    assert_eq!(result, Ok(()), "seen: {:?}", run.client.seen);
    run.client.outcome().unwrap().clone()
}

/// The outcome's kind, and whether its reason contains `part`.
#[track_caller]
pub(crate) fn assert_failed(outcome: &Outcome, kind: FailureKind, part: &str) {
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_failure(failure, kind, part);
}

#[track_caller]
pub(crate) fn assert_failure(failure: &Failure, kind: FailureKind, part: &str) {
    assert_eq!(failure.kind, kind, "{failure:?}");
    assert!(failure.reason.contains(part), "found reason `{}`, expected `{part}` in it", failure.reason);
}
