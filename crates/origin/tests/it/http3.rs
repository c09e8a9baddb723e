//! HTTP/3 with a client that breaks the rules of RFC 9114 and RFC 9204: the origin answers with their errors.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use model::Variant;
use quinn::{ConnectionError, ReadError, VarInt};

use crate::client::Target;
use crate::{Running, block_on};

const DATA: u8 = 0x00;
const HEADERS: u8 = 0x01;
const SETTINGS: u8 = 0x04;
/// A frame type without a meaning (RFC 9114, section 7.2.8).
const RESERVED: u8 = 0x21;

const CONTROL: u8 = 0x00;
const QPACK_ENCODER: u8 = 0x02;
const QPACK_DECODER: u8 = 0x03;

/// How the origin answered.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// The stream has an answer with this many bytes.
    Answered(usize),
    /// The origin reset the stream with this code.
    Reset(u64),
    /// The origin closed the connection with this code.
    Closed(u64),
}

/// A QUIC connection without HTTP/3.
struct Raw {
    _endpoint: quinn::Endpoint,
    quic: quinn::Connection,
    /// Dropping a stream ends it.
    open: Vec<quinn::SendStream>,
}

impl Raw {
    async fn connect(target: &Target) -> Self {
        let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(target.tls(b"h3")).unwrap();
        let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(crypto)));
        let quic = endpoint.connect(target.address, "localhost").unwrap().await.unwrap();
        Raw { _endpoint: endpoint, quic, open: Vec::new() }
    }

    /// A connection with a valid control stream.
    async fn with_control(target: &Target) -> Self {
        let mut raw = Raw::connect(target).await;
        raw.send(&[CONTROL, SETTINGS, 0]).await;
        raw
    }

    /// Opens a unidirectional stream.
    async fn send(&mut self, bytes: &[u8]) {
        let mut stream = self.quic.open_uni().await.unwrap();
        stream.write_all(bytes).await.unwrap();
        self.open.push(stream);
    }

    /// Opens a request stream and ends it after these bytes.
    async fn request(&self, bytes: &[u8]) -> Outcome {
        let (mut send, mut receive) = self.quic.open_bi().await.unwrap();
        // The origin can stop the stream before all is written.
        let _ = send.write_all(bytes).await;
        let _ = send.finish();
        match receive.read_to_end(1 << 20).await {
            Ok(answer) => Outcome::Answered(answer.len()),
            Err(quinn::ReadToEndError::Read(ReadError::Reset(code))) => Outcome::Reset(code.into()),
            Err(_) => Outcome::Closed(self.closed().await),
        }
    }

    async fn closed(&self) -> u64 {
        let closed = tokio::time::timeout(Duration::from_secs(10), self.quic.closed()).await;
        let Ok(ConnectionError::ApplicationClosed(close)) = closed else {
            unreachable!("the origin does not close the connection: {closed:?}")
        };
        close.error_code.into()
    }
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap() | 0x4000;
    [&[kind], &length.to_be_bytes()[..], payload].concat()
}

/// A prefixed integer (RFC 7541, section 5.1).
fn integer(value: usize, bits: u32, first: u8, output: &mut Vec<u8>) {
    let most = (1 << bits) - 1;
    if value < most {
        return output.push(first | u8::try_from(value).unwrap());
    }
    output.push(first | u8::try_from(most).unwrap());
    let mut rest = value - most;
    while rest >= 128 {
        output.push(u8::try_from(rest % 128).unwrap() | 128);
        rest /= 128;
    }
    output.push(u8::try_from(rest).unwrap());
}

fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in fields {
        integer(name.len(), 3, 0x20, &mut section);
        section.extend_from_slice(name.as_bytes());
        integer(value.len(), 7, 0, &mut section);
        section.extend_from_slice(value.as_bytes());
    }
    section
}

fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, &section(fields))
}

const METHOD: (&str, &str) = (":method", "GET");
const SCHEME: (&str, &str) = (":scheme", "https");
const AUTHORITY: (&str, &str) = (":authority", "localhost");
const PATH: (&str, &str) = (":path", "/status/200");

/// A valid request with further fields.
fn get(more: &[(&str, &str)]) -> Vec<u8> {
    headers(&[&[METHOD, SCHEME, AUTHORITY, PATH], more].concat())
}

/// Sends each request on a new connection.
fn outcomes(requests: Vec<(&'static str, Vec<u8>)>, expected: &Outcome) {
    let running = Running::start(|_| ());
    let target = running.target(Variant::H3);
    block_on(async {
        for (name, bytes) in requests {
            let raw = Raw::with_control(&target).await;
            assert_eq!(&raw.request(&bytes).await, expected, "{name}");
            if matches!(expected, Outcome::Reset(_)) {
                assert!(
                    matches!(raw.request(&get(&[])).await, Outcome::Answered(_)),
                    "{name}: the next request"
                );
            }
        }
    });
    running.stop();
}

#[test]
fn malformed_requests_are_reset_and_the_connection_continues() {
    let post: &[_] = &[(":method", "POST"), SCHEME, AUTHORITY, (":path", "/echo")];
    let requests = vec![
        ("two :path", headers(&[METHOD, SCHEME, AUTHORITY, PATH, (":path", "/other")])),
        ("two :method", headers(&[METHOD, METHOD, SCHEME, AUTHORITY, PATH])),
        ("no :path", headers(&[METHOD, SCHEME, AUTHORITY])),
        ("no :scheme", headers(&[METHOD, AUTHORITY, PATH])),
        ("no :method", headers(&[SCHEME, AUTHORITY, PATH])),
        ("empty :path", headers(&[METHOD, SCHEME, AUTHORITY, (":path", "")])),
        ("no authority", headers(&[METHOD, SCHEME, PATH])),
        ("empty authority", headers(&[METHOD, SCHEME, (":authority", ""), PATH])),
        ("user information", headers(&[METHOD, SCHEME, (":authority", "a@localhost"), PATH])),
        (":status", headers(&[METHOD, SCHEME, AUTHORITY, PATH, (":status", "200")])),
        ("late :path", headers(&[METHOD, SCHEME, AUTHORITY, ("accept", "*/*"), PATH])),
        ("CONNECT with :path", headers(&[(":method", "CONNECT"), AUTHORITY, PATH])),
        ("connection", get(&[("connection", "keep-alive")])),
        ("transfer-encoding", get(&[("transfer-encoding", "chunked")])),
        ("te", get(&[("te", "gzip")])),
        ("another host", get(&[("host", "elsewhere")])),
        ("two hosts", get(&[("host", "localhost"), ("host", "localhost")])),
        ("uppercase", get(&[("Accept", "*/*")])),
        ("line feed", get(&[("accept", "a\nb")])),
        ("two lengths", get(&[("content-length", "1"), ("content-length", "2")])),
        ("no length", get(&[("content-length", "-1")])),
        ("no body", get(&[("content-length", "5")])),
        ("short body", [get(&[("content-length", "5")]), frame(DATA, b"abcd")].concat()),
        ("long body", [get(&[("content-length", "1")]), frame(DATA, b"ab")].concat()),
        (
            "short body of /echo",
            [headers(&[post, &[("content-length", "5")]].concat()), frame(DATA, b"ab")].concat(),
        ),
        ("pseudo-header in trailers", [get(&[]), headers(&[PATH])].concat()),
    ];
    outcomes(requests, &Outcome::Reset(0x10e));
}

#[test]
fn frames_in_a_wrong_place_close_the_connection() {
    let trailers = || headers(&[("x-checksum", "1")]);
    let body = || frame(DATA, b"ab");
    let requests = vec![
        ("DATA first", [body(), get(&[])].concat()),
        ("DATA after trailers", [get(&[]), body(), trailers(), body()].concat()),
        ("HEADERS after trailers", [get(&[]), trailers(), trailers()].concat()),
        (
            "DATA after the trailers of /echo",
            [
                headers(&[(":method", "POST"), SCHEME, AUTHORITY, (":path", "/echo")]),
                body(),
                trailers(),
                body(),
            ]
            .concat(),
        ),
        ("SETTINGS", [get(&[]), frame(SETTINGS, &[])].concat()),
        ("PUSH_PROMISE", [get(&[]), frame(5, &[0, 0, 0])].concat()),
        ("GOAWAY", [get(&[]), frame(7, &[0])].concat()),
        ("PRIORITY of HTTP/2", [get(&[]), frame(2, &[0; 5])].concat()),
    ];
    outcomes(requests, &Outcome::Closed(0x105));
    outcomes(vec![("half a frame", get(&[])[..20].to_vec())], &Outcome::Closed(0x106));
}

#[test]
fn field_sections_that_cannot_be_decoded_close_the_connection() {
    let requests = vec![
        ("the dynamic table", frame(HEADERS, &[2, 0, 0x80])),
        ("static index 99", frame(HEADERS, &[0, 0, 0xff, 36])),
        ("half a string", frame(HEADERS, &[0, 0, 0x23, b'a'])),
        ("half a prefix", frame(HEADERS, &[0])),
    ];
    outcomes(requests, &Outcome::Closed(0x200));
}

#[test]
fn the_origin_does_not_buffer_what_a_frame_announces() {
    let announced =
        |kind: u8| [&[kind], &(0x8000_0000_u32 | 0x3fff_ffff).to_be_bytes()[..], &[0; 9]].concat();
    outcomes(vec![("HEADERS", announced(HEADERS))], &Outcome::Reset(0x107));
    outcomes(vec![("trailers", [get(&[]), announced(HEADERS)].concat())], &Outcome::Reset(0x107));
    let running = Running::start(|_| ());
    let target = running.target(Variant::H3);
    block_on(async {
        let raw = Raw::with_control(&target).await;
        let reserved: Vec<u8> = (0..100).flat_map(|_| frame(RESERVED, &[7; 16_000])).collect();
        let outcome = raw.request(&[reserved, get(&[])].concat()).await;
        assert!(matches!(outcome, Outcome::Answered(_)), "{outcome:?}");
        let mut raw = Raw::connect(&target).await;
        raw.send(&[&[CONTROL], &announced(SETTINGS)[..]].concat()).await;
        assert_eq!(raw.closed().await, 0x107);
    });
    running.stop();
}

#[test]
fn unidirectional_streams_obey_their_rules() {
    let running = Running::start(|_| ());
    let target = running.target(Variant::H3);
    let cases: &[(&str, &[&[u8]], u64)] = &[
        ("two control streams", &[&[CONTROL, SETTINGS, 0], &[CONTROL]], 0x103),
        ("two encoder streams", &[&[QPACK_ENCODER], &[QPACK_ENCODER]], 0x103),
        ("a push stream", &[&[1, 0]], 0x103),
        ("GOAWAY before SETTINGS", &[&[CONTROL, 7, 1, 0]], 0x10a),
        ("a reserved frame before SETTINGS", &[&[CONTROL, RESERVED, 0]], 0x10a),
        ("two SETTINGS", &[&[CONTROL, SETTINGS, 0, SETTINGS, 0]], 0x105),
        ("DATA", &[&[CONTROL, SETTINGS, 0, DATA, 0]], 0x105),
        ("PING of HTTP/2", &[&[CONTROL, SETTINGS, 0, 6, 0]], 0x105),
        ("a setting of HTTP/2", &[&[CONTROL, SETTINGS, 2, 2, 0]], 0x109),
        ("a setting twice", &[&[CONTROL, SETTINGS, 4, 6, 9, 6, 9]], 0x109),
        ("half a setting", &[&[CONTROL, SETTINGS, 1, 6]], 0x106),
        ("a long GOAWAY", &[&[CONTROL, SETTINGS, 0, 7, 2, 0, 0]], 0x106),
        ("CANCEL_PUSH", &[&[CONTROL, SETTINGS, 0, 3, 1, 0]], 0x108),
        ("a smaller MAX_PUSH_ID", &[&[CONTROL, SETTINGS, 0, 13, 1, 9, 13, 1, 8]], 0x108),
        ("a larger GOAWAY", &[&[CONTROL, SETTINGS, 0, 7, 1, 4, 7, 1, 8]], 0x108),
        ("a table capacity", &[&[QPACK_ENCODER, 0x3f, 0xe1, 0x1f]], 0x201),
        ("an insertion", &[&[QPACK_ENCODER, 0xc1, 1, b'/']], 0x201),
        ("an endless string", &[&[QPACK_ENCODER, 0x41, b'a', 0x7f, 0xff, 0xff, 0xff, 0x7f]], 0x201),
        ("an acknowledgement of nothing", &[&[QPACK_DECODER, 0x80]], 0x202),
        ("an increment of 1", &[&[QPACK_DECODER, 0x01]], 0x202),
    ];
    block_on(async {
        for (name, streams, code) in cases {
            let mut raw = Raw::connect(&target).await;
            for bytes in *streams {
                raw.send(bytes).await;
            }
            assert_eq!(raw.closed().await, *code, "{name}");
        }
    });
    let served = running.stop();
    assert!(served.failures.iter().any(|why| why.contains("H3_STREAM_CREATION_ERROR")), "{served:?}");
}

#[test]
fn critical_streams_stay_open_and_unknown_streams_are_stopped() {
    let running = Running::start(|_| ());
    let target = running.target(Variant::H3);
    block_on(async {
        for (kind, is_reset) in [
            (CONTROL, false),
            (CONTROL, true),
            (QPACK_ENCODER, false),
            (QPACK_ENCODER, true),
            (QPACK_DECODER, false),
        ] {
            let mut raw = Raw::connect(&target).await;
            raw.send(if kind == CONTROL { &[CONTROL, SETTINGS, 0] } else { std::slice::from_ref(&kind) })
                .await;
            let mut stream = raw.open.pop().unwrap();
            if is_reset {
                // The origin has to know the type of the stream.
                tokio::time::sleep(Duration::from_millis(100)).await;
                stream.reset(VarInt::from_u32(0x100)).unwrap();
            } else {
                stream.finish().unwrap();
            }
            assert_eq!(raw.closed().await, 0x104, "stream of type {kind}, reset: {is_reset}");
        }
        let mut raw = Raw::with_control(&target).await;
        raw.send(&[RESERVED, 1, 2, 3]).await;
        let stopped = raw.open.pop().unwrap().stopped().await.unwrap();
        assert_eq!(stopped, Some(VarInt::from_u32(0x103)));
        assert!(matches!(raw.request(&get(&[])).await, Outcome::Answered(_)));
    });
    running.stop();
}

/// A client must not stop the control stream or the QPACK streams of the origin either (RFC 9114, section
/// 6.2.1; RFC 9204, section 4.2).
#[test]
fn the_origins_critical_streams_must_not_be_stopped() {
    let running = Running::start(|_| ());
    let target = running.target(Variant::H3);
    for stopped in [CONTROL, QPACK_ENCODER, QPACK_DECODER] {
        block_on(async {
            let raw = Raw::with_control(&target).await;
            assert!(matches!(raw.request(&get(&[])).await, Outcome::Answered(_)));
            for _ in 0..3 {
                let mut stream = raw.quic.accept_uni().await.unwrap();
                let mut first = [0; 1];
                stream.read_exact(&mut first).await.unwrap();
                if first == [stopped] {
                    stream.stop(VarInt::from_u32(0x100)).unwrap();
                } else {
                    // A dropped stream would be stopped too.
                    std::mem::forget(stream);
                }
            }
            assert_eq!(raw.closed().await, 0x104, "stream of type {stopped}");
        });
    }
    let served = running.stop();
    let is_named = |why: &String| why.contains("STOP_SENDING for a control or QPACK stream");
    assert_eq!(served.failures.iter().filter(|why| is_named(why)).count(), 3, "{served:?}");
}

#[test]
fn a_request_may_arrive_in_any_pieces_with_reserved_frames() {
    let running = Running::start(|_| ());
    let target = running.target(Variant::H3);
    let post = [(":method", "POST"), SCHEME, AUTHORITY, (":path", "/echo"), ("content-length", "6")];
    let request = [
        frame(RESERVED, b"abc"),
        headers(&post),
        frame(DATA, b"abc"),
        frame(RESERVED, b""),
        frame(DATA, b"def"),
        headers(&[("x-checksum", "1")]),
        frame(RESERVED, b"abc"),
    ]
    .concat();
    block_on(async {
        let raw = Raw::with_control(&target).await;
        let (mut send, mut receive) = raw.quic.open_bi().await.unwrap();
        for byte in request.chunks(1) {
            send.write_all(byte).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        send.finish().unwrap();
        let answer = receive.read_to_end(1 << 16).await.unwrap();
        assert!(answer.ends_with(b"\x00\x026\n"), "{}", answer.escape_ascii());
    });
    running.stop();
}

#[test]
fn clients_prove_their_address_if_many_handshakes_are_incomplete() {
    for (handshakes, retried) in [(0, 1), (1, 0)] {
        let running = Running::start(|config| config.quic_handshakes = handshakes);
        assert_eq!(block_on(running.target(Variant::H3).get("/p/")).status, StatusCode::OK);
        let served = running.stop();
        assert_eq!((served.retried_connections, served.connections), (retried, 1));
    }
}

#[test]
fn a_quic_handshake_has_to_be_complete_in_time() {
    for early_data in [false, true] {
        let running = Running::start(|config| {
            config.head_timeout = Duration::from_millis(200);
            config.early_data = early_data;
            config.pins.resumption = early_data;
        });
        let mut target = running.target(Variant::H3);
        // Forwards the first datagram of the client only, so that the origin waits for the rest.
        let proxy = UdpSocket::bind("127.0.0.1:0").unwrap();
        let origin = std::mem::replace(&mut target.address, proxy.local_addr().unwrap());
        block_on(async {
            let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(target.tls(b"h3")).unwrap();
            let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
            endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(crypto)));
            let connecting = endpoint.connect(target.address, "localhost").unwrap();
            let forward = tokio::task::spawn_blocking(move || {
                let mut datagram = [0; 2_000];
                let length = proxy.recv(&mut datagram).unwrap();
                proxy.send_to(&datagram[..length], origin).unwrap();
                proxy
            });
            let _ = tokio::time::timeout(Duration::from_millis(800), connecting).await;
            forward.await.unwrap();
        });
        let served = running.stop();
        assert_eq!(served.connections, 1);
        assert!(
            served.failures.iter().any(|why| why.contains("handshake was not complete in time")),
            "{served:?}"
        );
    }
}

#[test]
fn connections_of_one_variant_leave_room_for_the_others() {
    let running = Running::start(|config| config.most_connections = 1);
    block_on(async {
        let raw = Raw::with_control(&running.target(Variant::H3)).await;
        for variant in [Variant::H1, Variant::H2] {
            assert_eq!(running.target(variant).get("/p/").await.status, StatusCode::OK, "{variant}");
        }
        assert!(matches!(raw.request(&get(&[])).await, Outcome::Answered(_)));
    });
    assert_eq!(running.stop().refused_connections, 0);
}
