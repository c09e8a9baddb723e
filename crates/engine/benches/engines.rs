//! What a request costs in the engine: nanoseconds of the client's own work, no system call and no server in
//! it.
//!
//! `cargo bench -p engine` prints one line for each variant. The peers are canned bytes (HTTP/1.1, HTTP/2) or
//! a quinn-proto server whose time is not counted (HTTP/3, so that row has encryption in it).

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on must fail")]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use engine::h2::frame::{FrameHeader, flag, kind};
use engine::h2::hpack::{Encoder, Indexing};
use engine::{Client, ClientConfig, Connection, Event, Input, Request, Transmit};
use model::assignment::Trust;
use model::{Pins, Variant};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{ConnectionHandle, DatagramEvent, Dir, StreamEvent, StreamId, VarInt};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

const NAME: &str = "server.test";
const BODY: [u8; 128] = [b'x'; 128];
/// As nginx answers for a file of 128 bytes.
const FIELDS: [(&str, &str); 7] = [
    ("server", "nginx/1.30.0"),
    ("date", "Sat, 21 Nov 2026 20:00:00 GMT"),
    ("content-type", "application/octet-stream"),
    ("content-length", "128"),
    ("last-modified", "Sat, 21 Nov 2026 19:00:00 GMT"),
    ("etag", "\"6560a1b0-80\""),
    ("accept-ranges", "bytes"),
];
const ROUNDS: usize = 15;
const STREAMS: u64 = 10;

fn main() {
    println!("user-space nanoseconds per request, 128 B body, median of {ROUNDS} rounds (least)");
    report("h1", 200_000, http1);
    report("h2c 10 streams, indexed heads", 200_000, |requests| http2(requests, Indexing::Incremental));
    report("h2c 10 streams, literal heads", 200_000, |requests| http2(requests, Indexing::Without));
    report("h3 10 streams, with encryption", 50_000, http3);
}

/// Runs rounds of this many requests; each returns the time that counts.
fn report(name: &str, requests: u64, round: impl Fn(u64) -> Duration) {
    let per_request = |time: Duration| time.as_nanos() as f64 / requests as f64;
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| per_request(round(requests))).collect();
    times.sort_by(f64::total_cmp);
    println!("{name:<32} {:>7.0} ({:.0})", times[ROUNDS / 2], times[0]);
}

fn get() -> Request {
    Request {
        template: 0,
        method: "GET".into(),
        scheme: "http".into(),
        authority: NAME.into(),
        path: "/128".into(),
        fields: vec![("user-agent".into(), "h123".into()), ("accept".into(), "*/*".into())],
        varying: None,
        body: bytes::Bytes::new(),
    }
}

fn client(variant: Variant, trust: &Trust, base: Instant) -> Client {
    let config = ClientConfig::new(variant, NAME, &Pins::default(), trust, &[]).unwrap();
    Client::new(&config, SocketAddr::from(([127, 0, 0, 1], 443)), base, 1).unwrap()
}

fn http1(requests: u64) -> Duration {
    let mut client = client(Variant::H1, &Trust::Anyone, Instant::now());
    let fields: String = FIELDS.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let answer = [format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes(), &BODY].concat();
    let mut input = answer.clone();
    let (request, mut out, mut ended) = (get(), Vec::new(), 0);
    client.handle_connected(0, &mut |_| {});
    let begin = Instant::now();
    for id in 0..requests {
        client.send_request(0, id, &request).unwrap();
        out.clear();
        while client.poll_transmit(0, &mut out).is_some() {}
        input.copy_from_slice(&answer);
        client.handle_input(0, Input::Stream(&mut input), &mut |event| ended += end(&event));
    }
    let time = begin.elapsed();
    assert_eq!(ended, requests);
    time
}

fn end(event: &Event<'_>) -> u64 {
    assert!(!matches!(event, Event::Failed { .. } | Event::Closed(_)), "{event:?}");
    u64::from(matches!(event, Event::End { .. }))
}

fn http2(requests: u64, indexing: Indexing) -> Duration {
    let mut client = client(Variant::H2c, &Trust::Anyone, Instant::now());
    let mut hpack = Encoder::new(4096);
    let mut head = |indexing| {
        let mut block = Vec::new();
        hpack.begin(&mut block);
        for (name, value) in [(":status", "200")].iter().chain(&FIELDS) {
            hpack.field(name.as_bytes(), value.as_bytes(), indexing, &mut block);
        }
        block
    };
    let mut input = Vec::new();
    FrameHeader { length: 0, kind: kind::SETTINGS, flags: 0, stream: 0 }.write(&mut input);
    FrameHeader { length: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 }.write(&mut input);
    let (request, mut out, mut ended) = (get(), Vec::new(), 0);
    client.handle_connected(0, &mut |_| {});
    let blocks = [head(indexing), head(indexing)];
    let mut time = Duration::ZERO;
    for round in 0..requests / STREAMS {
        for turn in 0..STREAMS {
            let stream = u32::try_from((round * STREAMS + turn) * 2 + 1).unwrap();
            let block = &blocks[usize::from(stream > 1)];
            answer_http2(stream, block, &mut input);
        }
        let begin = Instant::now();
        for turn in 0..STREAMS {
            client.send_request(0, turn, &request).unwrap();
        }
        out.clear();
        while client.poll_transmit(0, &mut out).is_some() {}
        client.handle_input(0, Input::Stream(&mut input), &mut |event| ended += end(&event));
        time += begin.elapsed();
        input.clear();
    }
    assert_eq!(ended, requests);
    time
}

fn answer_http2(stream: u32, block: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(block.len()).unwrap();
    FrameHeader { length, kind: kind::HEADERS, flags: flag::END_HEADERS, stream }.write(out);
    out.extend_from_slice(block);
    FrameHeader { length: 128, kind: kind::DATA, flags: flag::END_STREAM, stream }.write(out);
    out.extend_from_slice(&BODY);
}

/// A quinn-proto server that sends the same answer to every request.
struct Server {
    endpoint: quinn_proto::Endpoint,
    connection: Option<(ConnectionHandle, quinn_proto::Connection)>,
    answer: Vec<u8>,
    asked: HashMap<StreamId, ()>,
}

impl Server {
    fn new() -> Server {
        let key = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![key.cert.der().clone()], private)
            .unwrap();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let crypto = QuicServerConfig::try_from(tls).unwrap();
        let mut config = quinn_proto::ServerConfig::with_crypto(Arc::new(crypto));
        let mut transport = quinn_proto::TransportConfig::default();
        transport
            .initial_mtu(1452)
            .mtu_discovery_config(None)
            .max_concurrent_bidi_streams(VarInt::from_u32(128));
        config.transport_config(Arc::new(transport));
        let endpoint_config = Arc::new(quinn_proto::EndpointConfig::default());
        let endpoint =
            quinn_proto::Endpoint::new(endpoint_config, Some(Arc::new(config)), false, Some([7; 32]));
        let mut section = Vec::new();
        engine::h3::qpack::encode_prefix(&mut section);
        for (name, value) in [(":status", "200")].iter().chain(&FIELDS) {
            engine::h3::qpack::encode_field(name.as_bytes(), value.as_bytes(), &mut section);
        }
        let mut answer = Vec::new();
        engine::h3::frame::encode_header(0x01, section.len() as u64, &mut answer);
        answer.extend_from_slice(&section);
        engine::h3::frame::encode_header(0x00, 128, &mut answer);
        answer.extend_from_slice(&BODY);
        Server { endpoint, connection: None, answer, asked: HashMap::new() }
    }

    fn handle(&mut self, now: Instant, datagram: &[u8]) {
        let from = SocketAddr::from(([127, 0, 0, 1], 50_000));
        let mut scratch = Vec::new();
        match self.endpoint.handle(now, from, None, None, BytesMut::from(datagram), &mut scratch) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                self.connection.as_mut().unwrap().1.handle_event(event);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.connection = Some(self.endpoint.accept(incoming, now, &mut scratch, None).ok().unwrap());
            }
            _ => {}
        }
    }

    fn serve(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                quinn_proto::Event::Connected => {
                    let control = connection.streams().open(Dir::Uni).unwrap();
                    connection.send_stream(control).write(&[0x00, 0x04, 0x00]).unwrap();
                }
                quinn_proto::Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    while let Some(id) = connection.streams().accept(Dir::Bi) {
                        self.asked.insert(id, ());
                    }
                }
                _ => {}
            }
        }
        let answer = &self.answer;
        self.asked.retain(|id, ()| {
            let mut stream = connection.recv_stream(*id);
            let mut chunks = stream.read(true).unwrap();
            let is_whole = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(_)) => {}
                    Ok(None) => break true,
                    Err(_) => break false,
                }
            };
            let _ = chunks.finalize();
            if is_whole {
                assert_eq!(connection.send_stream(*id).write(answer), Ok(answer.len()));
                connection.send_stream(*id).finish().unwrap();
            }
            !is_whole
        });
    }

    /// What is to be sent, in batches of equal datagrams.
    fn poll(&mut self, now: Instant) -> Vec<(Vec<u8>, usize)> {
        let mut batches = Vec::new();
        let Some((_, connection)) = &mut self.connection else { return batches };
        loop {
            let mut out = Vec::new();
            let Some(transmit) = connection.poll_transmit(now, 10, &mut out) else { return batches };
            batches.push((out, transmit.segment_size.unwrap_or(transmit.size)));
        }
    }
}

fn http3(requests: u64) -> Duration {
    let base = Instant::now();
    let mut client = client(Variant::H3, &Trust::Anyone, base);
    let mut server = Server::new();
    let request = get();
    let (mut sent, mut ended, mut now, mut time) = (0, 0, 0, Duration::ZERO);
    let mut out = Vec::new();
    client.handle_connected(0, &mut |_| {});
    while ended < requests {
        now += 50_000;
        let instant = base + Duration::from_nanos(now);
        let begin = Instant::now();
        while sent - ended < STREAMS && sent < requests && client.available_requests() > 0 {
            client.send_request(now, sent, &request).unwrap();
            sent += 1;
        }
        let mut batches = Vec::new();
        while let Some(Transmit::Datagrams { segment_bytes, .. }) = client.poll_transmit(now, &mut out) {
            batches.push((out.len(), segment_bytes));
            if out.len() > 32_000 {
                break;
            }
        }
        time += begin.elapsed();
        let mut start = 0;
        for (end, segment_bytes) in batches {
            out[start..end].chunks(segment_bytes).for_each(|datagram| server.handle(instant, datagram));
            start = end;
        }
        out.clear();
        server.serve();
        for (mut bytes, segment_bytes) in server.poll(instant) {
            let begin = Instant::now();
            let input = Input::Datagrams { bytes: &mut bytes, segment_bytes, ecn: 0 };
            client.handle_input(now, input, &mut |event| ended += end(&event));
            time += begin.elapsed();
        }
        if client.poll_timeout().is_some_and(|at| at <= now) {
            client.handle_timeout(now, &mut |event| ended += end(&event));
        }
    }
    time
}
