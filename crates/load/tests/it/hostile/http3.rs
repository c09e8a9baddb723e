//! HTTP/3 from a bad server: real QUIC, raw bytes on its streams.

use std::future::Future;
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use model::Variant;
use model::assignment::Trust;
use model::sample::FailureKind::{
    self, Closed, Limit, Protocol, Refused, Reset, Timeout, Tls, WrongLength, WrongVersion,
};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, Endpoint, SendStream, ServerConfig, TransportConfig, VarInt};

use super::tls::{Authority, Identity, config};
use super::{
    assert_connection_failed, assert_failed, assert_ok, assignment, expecting, never_connecting, run,
};

/// SETTINGS without any setting, at the beginning of a control stream.
const CONTROL: &[u8] = &[0, 4, 0];
/// HEADERS with `:status: 200` from the static table.
const OK: &[u8] = &[1, 3, 0, 0, 0xd9];
/// The same with status 103.
const HINTS: &[u8] = &[1, 3, 0, 0, 0xd8];

/// A QUIC server on a separate thread; ends when dropped.
struct Server {
    address: SocketAddr,
    endpoint: Endpoint,
    thread: Option<JoinHandle<()>>,
}

type Behaviour = Pin<Box<dyn Future<Output = Option<()>>>>;

impl Server {
    /// Hands every connection to `behave`; what it cannot do because the client is gone is no failure.
    fn new(behave: impl Fn(Connection) -> Behaviour + Send + 'static) -> Server {
        Server::with(&Authority::new("known").identity("localhost", 2200), &["h3"], |_| {}, behave)
    }

    fn with(
        identity: &Identity,
        alpn: &[&str],
        set: impl FnOnce(&mut TransportConfig),
        behave: impl Fn(Connection) -> Behaviour + Send + 'static,
    ) -> Server {
        let crypto = QuicServerConfig::try_from(config(identity, alpn)).unwrap();
        let mut server = ServerConfig::with_crypto(Arc::new(crypto));
        let mut transport = TransportConfig::default();
        set(&mut transport);
        server.transport_config(Arc::new(transport));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let endpoint = {
            let _inside = runtime.enter();
            Endpoint::server(server, "127.0.0.1:0".parse().unwrap()).unwrap()
        };
        let accepting = endpoint.clone();
        let thread = std::thread::spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, async move {
                while let Some(incoming) = accepting.accept().await {
                    // A client that does not trust this server ends the handshake.
                    let Ok(connection) = incoming.await else { continue };
                    tokio::task::spawn_local(behave(connection));
                }
            });
        });
        Server { address: endpoint.local_addr().unwrap(), endpoint, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.endpoint.close(VarInt::from_u32(0x100), b"");
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Opens a stream of the server and writes this to it; the stream stays open as long as the returned value.
async fn stream(connection: &Connection, bytes: &[u8]) -> Option<SendStream> {
    let mut stream = connection.open_uni().await.ok()?;
    stream.write_all(bytes).await.ok()?;
    Some(stream)
}

/// How a server ends a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Finish,
    /// RESET_STREAM with H3_INTERNAL_ERROR.
    Reset,
    Hold,
    /// The response again and again.
    Repeat,
    /// CONNECTION_CLOSE with this code.
    Abort(u32),
}

/// Its streams, the first of them the control stream, and its answer to each request.
async fn serve(connection: Connection, streams: Vec<Vec<u8>>, answer: Vec<u8>, ending: Ending) -> Option<()> {
    let mut open = Vec::new();
    for bytes in &streams {
        open.push(stream(&connection, bytes).await?);
    }
    loop {
        let (mut send, mut receive) = connection.accept_bi().await.ok()?;
        receive.read(&mut [0; 4096]).await.ok()?;
        send.write_all(&answer).await.ok()?;
        match ending {
            Ending::Finish => send.finish().ok()?,
            Ending::Reset => send.reset(VarInt::from_u32(0x102)).ok()?,
            Ending::Hold => {
                connection.closed().await;
            }
            Ending::Repeat => {
                let flood = answer.repeat(1 + 20_000 / answer.len());
                loop {
                    send.write_all(&flood).await.ok()?;
                }
            }
            Ending::Abort(code) => {
                // What was written leaves before.
                tokio::time::sleep(Duration::from_millis(20)).await;
                connection.close(VarInt::from_u32(code), b"enough");
            }
        }
    }
}

/// The server's streams, its answer to a request and how it ends; the kind of failure and what its
/// reason names.
struct Case(&'static str, Vec<Vec<u8>>, Vec<u8>, Ending, FailureKind, &'static str);

fn suffer(cases: Vec<Case>) {
    for Case(name, streams, answer, ending, kind, part) in cases {
        let server = Server::new(move |connection| {
            Box::pin(serve(connection, streams.clone(), answer.clone(), ending))
        });
        let mut assignment = expecting(kind, assignment(Variant::H3, server.address, 2));
        assignment.pins.http3.qpack_table_bytes = 4096;
        assignment.options.connections.requests_each = Some(1);
        assert_failed(name, &run(name, &assignment), kind, part);
    }
}

fn bytes(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// What no server may send on streams that it opens; no request is answered.
#[test]
fn each_stream_of_the_server_is_a_failure_of_its_kind() {
    let control = |more: &[u8]| vec![bytes(&[CONTROL, more])];
    let encoder = |more: &[u8]| vec![CONTROL.to_vec(), bytes(&[&[2], more])];
    let decoder = |more: &[u8]| vec![CONTROL.to_vec(), bytes(&[&[3], more])];
    let case = |name, streams, part| Case(name, streams, Vec::new(), Ending::Hold, Protocol, part);
    suffer(vec![
        case("no SETTINGS", vec![vec![0, 7, 1, 0]], "H3_MISSING_SETTINGS"),
        case("SETTINGS twice", control(&[4, 0]), "H3_FRAME_UNEXPECTED"),
        case("a setting of HTTP/2", vec![vec![0, 4, 2, 2, 0]], "H3_SETTINGS_ERROR"),
        case("a setting twice", vec![vec![0, 4, 4, 6, 1, 6, 1]], "H3_SETTINGS_ERROR"),
        case("cut SETTINGS", vec![vec![0, 4, 1, 6]], "H3_FRAME_ERROR"),
        case("DATA on the control stream", control(&[0, 1, 0]), "H3_FRAME_UNEXPECTED"),
        case("HEADERS on the control stream", control(OK), "H3_FRAME_UNEXPECTED"),
        case("MAX_PUSH_ID from a server", control(&[0xd, 1, 0]), "H3_FRAME_UNEXPECTED"),
        case("PING of HTTP/2", control(&[6, 0]), "H3_FRAME_UNEXPECTED"),
        case("CANCEL_PUSH", control(&[3, 1, 0]), "H3_ID_ERROR"),
        case("GOAWAY with a server's stream", control(&[7, 1, 3]), "H3_ID_ERROR"),
        case("GOAWAY that rises", control(&[7, 1, 4, 7, 1, 8]), "H3_ID_ERROR"),
        case("GOAWAY of two numbers", control(&[7, 2, 0, 0]), "H3_FRAME_ERROR"),
        case("two control streams", vec![CONTROL.to_vec(), CONTROL.to_vec()], "H3_STREAM_CREATION_ERROR"),
        case("an unexpected push", vec![CONTROL.to_vec(), vec![1, 0]], "H3_ID_ERROR"),
        case("a table beyond its limit", encoder(&[0x3f, 0xff, 0xff, 0x7f]), "QPACK_ENCODER_STREAM_ERROR"),
        case("an insertion without a table", encoder(&[0xc0, 1, b'a']), "QPACK_ENCODER_STREAM_ERROR"),
        case("a duplicate of nothing", encoder(&[0x3f, 0xe1, 0x1f, 0x00]), "QPACK_ENCODER_STREAM_ERROR"),
        case(
            "a name out of range",
            encoder(&[0x3f, 0xe1, 0x1f, 0xff, 0xff, 0x7f, 1, b'a']),
            "QPACK_ENCODER_STREAM_ERROR",
        ),
        case(
            "a name of gigabytes",
            encoder(&[0x3f, 0xe1, 0x1f, 0x5f, 0xff, 0xff, 0xff, 0xff, 0x0f]),
            "QPACK_ENCODER_STREAM_ERROR",
        ),
        case(
            "an integer without end",
            encoder(&[0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            "QPACK_ENCODER_STREAM_ERROR",
        ),
        case(
            "bad Huffman",
            encoder(&[0x3f, 0xe1, 0x1f, 0x64, 0xff, 0xff, 0xff, 0xff, 0]),
            "QPACK_ENCODER_STREAM_ERROR",
        ),
        case("an acknowledgement of nothing", decoder(&[0x80]), "QPACK_DECODER_STREAM_ERROR"),
        case("insertions that were none", decoder(&[0x01]), "QPACK_DECODER_STREAM_ERROR"),
        case("an increment of 0", decoder(&[0x00]), "QPACK_DECODER_STREAM_ERROR"),
    ]);
}

/// What no server may answer.
#[test]
fn each_response_is_a_failure_of_its_kind() {
    let sized = |length: u8| vec![1, 6, 0, 0, 0xd9, 0x54, 1, length];
    let case = |name, answer: Vec<u8>, ending, kind, part| {
        Case(name, vec![CONTROL.to_vec()], answer, ending, kind, part)
    };
    let (finish, hold) = (Ending::Finish, Ending::Hold);
    suffer(vec![
        case("DATA before HEADERS", vec![0, 1, b'x'], hold, Protocol, "H3_FRAME_UNEXPECTED"),
        case("SETTINGS", vec![4, 0], hold, Protocol, "H3_FRAME_UNEXPECTED"),
        case("a frame of HTTP/2", vec![2, 0], hold, Protocol, "H3_FRAME_UNEXPECTED"),
        case("PUSH_PROMISE", vec![5, 2, 0, 0], hold, Protocol, "H3_ID_ERROR"),
        case("a cut frame", bytes(&[OK, &[0, 9, b'x']]), finish, Protocol, "H3_FRAME_ERROR"),
        case("nothing at all", Vec::new(), finish, Protocol, "H3_MESSAGE_ERROR"),
        case(
            "HEADERS of gigabytes",
            vec![1, 0xc0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0],
            hold,
            Limit,
            "H3_EXCESSIVE_LOAD",
        ),
        case(
            "an index out of range",
            vec![1, 4, 0, 0, 0xff, 0x7f],
            hold,
            Protocol,
            "QPACK_DECOMPRESSION_FAILED",
        ),
        case(
            "a huge integer",
            bytes(&[&[1, 13, 0, 0], &[0xff; 10], &[0x7f]]),
            hold,
            Protocol,
            "QPACK_DECOMPRESSION_FAILED",
        ),
        case(
            "bad Huffman",
            vec![1, 9, 0, 0, 0x5f, 0, 0x84, 0xff, 0xff, 0xff, 0xff],
            hold,
            Protocol,
            "QPACK_DECOMPRESSION_FAILED",
        ),
        case("a cut section", vec![1, 3, 0, 0, 0x5f], hold, Protocol, "QPACK_DECOMPRESSION_FAILED"),
        case(
            "an entry that was not inserted",
            vec![1, 3, 2, 0, 0x80],
            hold,
            Timeout,
            "no response within 400 ms",
        ),
        case(
            "more insertions than there can be",
            vec![1, 4, 0xff, 0x7f, 0, 0x80],
            hold,
            Protocol,
            "QPACK_DECOMPRESSION_FAILED",
        ),
        case("no status", vec![1, 3, 0, 0, 0xc4], hold, Protocol, "H3_MESSAGE_ERROR"),
        case(
            "too long",
            bytes(&[&sized(b'5'), &[0, 3], b"abc"]),
            finish,
            WrongLength,
            "H3_MESSAGE_ERROR: 3 bytes",
        ),
        case("too short", bytes(&[&sized(b'2'), &[0, 3], b"abc"]), hold, WrongLength, "expected 2"),
        case("a head, then silence", OK.to_vec(), hold, Timeout, "only 0 bytes of the body"),
        case("silence", Vec::new(), hold, Timeout, "no response within 400 ms"),
        case("RESET_STREAM", OK.to_vec(), Ending::Reset, Reset, "H3_INTERNAL_ERROR"),
        case("an aborted connection", OK.to_vec(), Ending::Abort(0x102), Reset, "H3_INTERNAL_ERROR enough"),
        case("a closed connection", OK.to_vec(), Ending::Abort(0x100), Closed, "H3_NO_ERROR"),
    ]);
}

#[test]
fn goaway_with_a_request_under_way() {
    for (name, goaway, kind, part) in [
        ("not taken", [7, 1, 0], Closed, "GOAWAY before it accepted the request"),
        ("taken, then silent", [7, 1, 4], Timeout, "only 0 bytes of the body"),
    ] {
        let server = Server::new(move |connection| {
            Box::pin(async move {
                let mut control = stream(&connection, CONTROL).await?;
                let (mut send, _receive) = connection.accept_bi().await.ok()?;
                send.write_all(OK).await.ok()?;
                // The head and GOAWAY travel on separate streams: the head goes first.
                tokio::time::sleep(Duration::from_millis(50)).await;
                control.write_all(&goaway).await.ok()?;
                connection.closed().await;
                Some(())
            })
        });
        assert_failed(
            name,
            &run(name, &expecting(kind, assignment(Variant::H3, server.address, 2))),
            kind,
            part,
        );
    }
}

#[test]
fn floods_end_at_a_limit_and_fill_no_memory() {
    let case = |name, answer: &[u8], kind, part| {
        Case(name, vec![CONTROL.to_vec()], answer.to_vec(), Ending::Repeat, kind, part)
    };
    suffer(vec![
        case("1xx", HINTS, Limit, "more than 32 informational"),
        case("reserved frames", &[0x21, 1, 0], Timeout, "within 400 ms"),
        case("endless HEADERS", &[1, 0x80, 3, 0xff, 0xff], Protocol, "QPACK_DECOMPRESSION_FAILED"),
    ]);
    // Behind a head: empty DATA, and DATA without end.
    for (name, flood) in [("empty DATA", vec![0, 0]), ("DATA", vec![0, 4, b'a', b'b', b'c', b'd'])] {
        let server = Server::new(move |connection| {
            let flood = flood.repeat(10_000);
            Box::pin(async move {
                let _control = stream(&connection, CONTROL).await?;
                loop {
                    let (mut send, _receive) = connection.accept_bi().await.ok()?;
                    send.write_all(OK).await.ok()?;
                    while send.write_all(&flood).await.is_ok() {}
                }
            })
        });
        assert_failed(
            name,
            &run(name, &assignment(Variant::H3, server.address, 2)),
            Timeout,
            "of the body within 400 ms",
        );
    }
}

/// Streams of the server's that never stop: nothing grows, and the request's own limit ends it.
#[test]
fn endless_streams_of_the_server_fill_no_memory() {
    let insertion = bytes(&[&[0x41, b'n', 100], &[b'v'; 100]]);
    for (name, kind, flood) in [
        ("insertions", 2, insertion),
        ("capacities", 2, vec![0x20, 0x3f, 0xe1, 0x1f]),
        ("reserved frames", 0, vec![0x21, 1, 0]),
        ("an unknown stream", 0x21, vec![0; 100]),
    ] {
        let server = Server::new(move |connection| {
            let flood = flood.clone();
            Box::pin(async move {
                let first = if kind == 0 { CONTROL.to_vec() } else { vec![kind, 0x3f, 0xe1, 0x1f] };
                let _control = if kind == 0 { None } else { stream(&connection, CONTROL).await };
                let mut endless = stream(&connection, &first).await?;
                let flood = flood.repeat(1 + 20_000 / flood.len());
                while endless.write_all(&flood).await.is_ok() {}
                connection.closed().await;
                Some(())
            })
        });
        let mut assignment = assignment(Variant::H3, server.address, 2);
        assignment.pins.http3.qpack_table_bytes = 4096;
        assert_failed(name, &run(name, &assignment), Timeout, "no response within 400 ms");
    }
}

#[test]
fn critical_streams_that_end_end_the_connection() {
    for (name, bytes, resets) in [
        ("control", CONTROL, false),
        ("control, reset", CONTROL, true),
        ("encoder", &[2], false),
        ("decoder", &[3], true),
    ] {
        let server = Server::new(move |connection| {
            Box::pin(async move {
                let mut critical = stream(&connection, bytes).await?;
                // Its type must have come before the reset takes it back.
                tokio::time::sleep(Duration::from_millis(50)).await;
                match resets {
                    true => critical.reset(VarInt::from_u32(0)).ok()?,
                    false => critical.finish().ok()?,
                }
                connection.closed().await;
                Some(())
            })
        });
        let report = run(name, &expecting(Protocol, assignment(Variant::H3, server.address, 2)));
        assert_failed(name, &report, Protocol, "H3_CLOSED_CRITICAL_STREAM");
    }
}

/// What the RFC tells a client to ignore.
#[test]
fn what_is_reserved_is_tolerated() {
    let server = Server::new(|connection| {
        Box::pin(async move {
            // A reserved setting, frame and stream, the last with bytes.
            let _control = stream(&connection, &[0, 4, 4, 0x21, 5, 6, 1, 0x21, 2, 1, 2]).await?;
            let _reserved = stream(&connection, &[0x40, 0x5f, 1, 2, 3]).await?;
            let _empty = stream(&connection, &[]).await?;
            loop {
                let (mut send, mut receive) = connection.accept_bi().await.ok()?;
                receive.read(&mut [0; 4096]).await.ok()?;
                let answer =
                    [&[0x21, 3, 1, 2, 3], HINTS, OK, &[0x21, 0], &[0, 2, b'o', b'k'], &[0x40, 0x5f, 1, 9]];
                send.write_all(&answer.concat()).await.ok()?;
                send.finish().ok()?;
            }
        })
    });
    let report = run("reserved", &assignment(Variant::H3, server.address, 2));
    assert_ok("reserved", &report);
    assert!(report.samples.iter().all(|sample| sample.response_body_bytes == 2));
}

#[test]
fn a_server_that_allows_no_request_is_left() {
    let identity = Authority::new("known").identity("localhost", 2200);
    let none = |transport: &mut TransportConfig| {
        transport.max_concurrent_bidi_streams(VarInt::from_u32(0));
    };
    let server = Server::with(&identity, &["h3"], none, |connection| {
        Box::pin(async move {
            let _control = stream(&connection, CONTROL).await?;
            connection.closed().await;
            Some(())
        })
    });
    let report = run("no streams", &assignment(Variant::H3, server.address, 2));
    assert_failed("no streams", &report, Timeout, "allowed no request within 400 ms");
    let server = Server::with(&identity, &["h3"], none, |connection| {
        connection.close(VarInt::from_u32(0x100), b"");
        Box::pin(async { Some(()) })
    });
    let report = run("closed at once", &assignment(Variant::H3, server.address, 2));
    assert_failed(
        "closed at once",
        &report,
        Closed,
        "closed the connection before any request could be sent",
    );
    let server = Server::with(
        &identity,
        &["h3"],
        |transport| {
            transport.max_concurrent_uni_streams(VarInt::from_u32(0));
        },
        |connection| {
            Box::pin(async move {
                connection.closed().await;
                Some(())
            })
        },
    );
    let report = run("no control stream", &assignment(Variant::H3, server.address, 2));
    assert_failed("no control stream", &report, Protocol, "H3_GENERAL_PROTOCOL_ERROR");
}

#[test]
fn certificates_and_protocols_that_do_not_fit() {
    let (known, unknown) = (Authority::new("known"), Authority::new("unknown"));
    let silent = |connection: Connection| -> Behaviour {
        Box::pin(async move {
            connection.closed().await;
            Some(())
        })
    };
    for (name, identity, part) in [
        ("another name", known.identity("elsewhere.test", 2200), "not valid for name"),
        ("expired", known.identity("localhost", 2000), "expired"),
        ("unknown issuer", unknown.identity("localhost", 2200), "UnknownIssuer"),
    ] {
        let server = Server::with(&identity, &["h3"], |_| {}, silent);
        let mut assignment = expecting(Tls, assignment(Variant::H3, server.address, 2));
        assignment.target.trust = known.trust();
        let report = run(name, &assignment);
        assert_failed(name, &report, Tls, part);
        assert_connection_failed(name, &report, Tls, part);
    }
    let server = Server::with(&known.identity("localhost", 2200), &["hq-interop"], |_| {}, silent);
    let mut assignment = assignment(Variant::H3, server.address, 2);
    assignment.target.trust = Trust::Anyone;
    assert_failed("no h3", &run("no h3", &assignment), WrongVersion, "alert");
}

/// A UDP socket that answers every datagram so.
fn udp(answer: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
            let answer = answer(&buffer[..length]);
            // Loopback loses only packets that no socket receives any more.
            let _ = socket.send_to(&answer, peer);
        }
    });
    address
}

#[test]
fn datagrams_that_are_no_quic() {
    // A long header of version 0 with both connection ids in exchange: a list of other versions (RFC 9000,
    // 17.2.1).
    let negotiation = |datagram: &[u8]| {
        let destination = usize::from(datagram[5]);
        let source = usize::from(datagram[6 + destination]);
        let (to, from) = (&datagram[6 + destination..][..=source], &datagram[5..][..=destination]);
        [&[0x80, 0, 0, 0, 0], to, from, &[0x6b, 0x33, 0x43, 0xcf]].concat()
    };
    for (name, address, kind, part) in [
        ("garbage", udp(|_| vec![0x5a; 1200]), Timeout, "400 ms passed in the QUIC handshake"),
        ("an echo", udp(<[u8]>::to_vec), Timeout, "400 ms passed in the QUIC handshake"),
        ("nothing", udp(|_| Vec::new()), Timeout, "400 ms passed in the QUIC handshake"),
        ("another version", udp(negotiation), WrongVersion, "QUIC version 1"),
    ] {
        assert_failed(
            name,
            &run(name, &never_connecting(kind, assignment(Variant::H3, address, 2))),
            kind,
            part,
        );
    }
    let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_failed("nobody", &run("nobody", &assignment(Variant::H3, gone, 2)), Refused, "127.0.0.1:");
}
