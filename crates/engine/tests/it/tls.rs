//! TLS against rustls' server in memory, and HTTP over it.

use std::io::{Read, Write};
use std::sync::Arc;

use engine::tcp::TcpConnection;
use engine::tls::{Tls, TlsConfigError, TlsEvent, offered_config, tls_config};
use engine::{
    Connection, Event, Handshake, HeaderBytes, Input, NotNow, Protocol, Request, RequestId, Sink, Transmit,
};
use model::assignment::Trust;
use model::pins::TlsVersion;
use model::sample::{Failure, FailureKind};
use model::tls::{ClientCertificate, TlsOffer};
use model::{Outcome, Pins, Variant};
use proptest::prelude::*;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConnection;
use rustls_pki_types::ServerName;

use crate::authority::{Authority, NAME, pinned_tls};
use crate::quic_peer::{assert_failed, assert_failure, get};

/// How the client's input is cut.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Whole,
    Bytes(usize),
    /// Lengths from 1 to the limit, from a seed.
    Random(u64, usize),
}

impl Cut {
    fn length(&mut self) -> usize {
        match self {
            Cut::Whole => usize::MAX,
            Cut::Bytes(bytes) => *bytes,
            Cut::Random(state, limit) => {
                *state =
                    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                1 + usize::try_from(*state >> 33).unwrap() % *limit
            }
        }
    }
}

fn client_tls(authority: &Authority, pins: &Pins, alpn: &[u8]) -> Tls {
    let config = tls_config(pins, alpn, &Trust::Authority(authority.pem()), &[]).unwrap();
    Tls::new(Arc::new(config), ServerName::try_from(NAME).unwrap()).unwrap()
}

/// rustls' server and what it has decrypted.
pub(crate) struct Server {
    pub(crate) tls: ServerConnection,
    pub(crate) plaintext: Vec<u8>,
    /// What came as early data.
    pub(crate) early: Vec<u8>,
}

pub(crate) fn server(authority: &Authority, alpn: &[&[u8]]) -> Server {
    let tls = ServerConnection::new(Arc::new(authority.server_config(alpn))).unwrap();
    Server { tls, plaintext: Vec::new(), early: Vec::new() }
}

/// Gives `bytes` to the server and returns its answer.
pub(crate) fn serve(server: &mut Server, mut bytes: &[u8]) -> Vec<u8> {
    while !bytes.is_empty() {
        server.tls.read_tls(&mut bytes).unwrap();
        if server.tls.process_new_packets().is_err() {
            break;
        }
        if let Some(mut early) = server.tls.early_data() {
            early.read_to_end(&mut server.early).unwrap();
        }
        // The end of what there is, which is no error here.
        let _ = server.tls.reader().read_to_end(&mut server.plaintext);
    }
    let mut out = Vec::new();
    while server.tls.wants_write() {
        server.tls.write_tls(&mut out).unwrap();
    }
    out
}

/// Gives `bytes` to the client, cut; the facts, if the handshake was done, and the plaintext.
fn receive(
    tls: &mut Tls,
    mut bytes: &mut [u8],
    cut: &mut Cut,
) -> Result<(Option<Handshake>, Vec<u8>), Failure> {
    let (mut facts, mut found) = (None, Vec::new());
    while !bytes.is_empty() {
        let (part, rest) = bytes.split_at_mut(cut.length().min(bytes.len()));
        bytes = rest;
        tls.handle_input(part, &mut |event| {
            match event {
                TlsEvent::Established(handshake) => facts = Some(handshake),
                TlsEvent::Plaintext(bytes) => found.extend_from_slice(bytes),
                TlsEvent::End => {}
            }
            Ok(())
        })?;
    }
    Ok((facts, found))
}

/// A handshake and 200 kB in both directions.
fn exchange(pins: &Pins, mut cut: Cut) -> Handshake {
    let authority = Authority::new();
    let (mut tls, mut server) = (client_tls(&authority, pins, b"h2"), server(&authority, &[b"h2"]));
    tls.start().unwrap();
    let mut out = Vec::new();
    let mut facts = None;
    for _ in 0..4 {
        tls.poll_output(&mut out);
        let mut answer = serve(&mut server, &out);
        out.clear();
        let (found, _) = receive(&mut tls, &mut answer, &mut cut).unwrap();
        facts = facts.or(found);
    }
    assert!(tls.is_established() && !server.tls.is_handshaking());
    let text: Vec<u8> = (0..200_000_u32).map(|i| (i % 253) as u8).collect();
    for piece in text.chunks(50_000) {
        tls.encrypt(piece, &mut out).unwrap();
    }
    let mut answer = serve(&mut server, &out);
    assert!(server.plaintext == text, "client to server, {} bytes arrived", server.plaintext.len());
    for piece in text.chunks(30_000) {
        server.tls.writer().write_all(piece).unwrap();
        answer.extend(serve(&mut server, &[]));
    }
    server.tls.send_close_notify();
    answer.extend(serve(&mut server, &[]));
    let (_, found) = receive(&mut tls, &mut answer, &mut cut).unwrap();
    assert!(found == text, "server to client, {} bytes arrived", found.len());
    facts.unwrap()
}

#[test]
fn records_pass_however_they_are_cut() {
    for cut in [Cut::Whole, Cut::Bytes(1), Cut::Bytes(5), Cut::Random(1, 40_000), Cut::Random(2, 50)] {
        let facts = exchange(&Pins::default(), cut);
        assert_eq!(facts.alpn.as_deref(), Some("h2"), "{cut:?}");
        assert!(!facts.resumed, "{cut:?}");
    }
}

/// What a client that offers `offer` agrees on with a server that has one version, one suite and one group.
fn agreed(offer: &TlsOffer, server: &TlsOffer, certificate: Option<&ClientCertificate>) -> Handshake {
    let authority = Authority::new();
    let trust = Trust::Authority(authority.pem());
    let config = offered_config(offer, certificate, b"h2", &trust, &[]).unwrap();
    let mut tls = Tls::new(Arc::new(config), ServerName::try_from(NAME).unwrap()).unwrap();
    let mut server = self::server_offering(&authority, server);
    tls.start().unwrap();
    let (mut out, mut facts) = (Vec::new(), None);
    for _ in 0..4 {
        tls.poll_output(&mut out);
        let mut answer = serve(&mut server, &out);
        out.clear();
        facts = facts.or(receive(&mut tls, &mut answer, &mut Cut::Whole).unwrap().0);
    }
    facts.unwrap()
}

fn server_offering(authority: &Authority, offer: &TlsOffer) -> Server {
    // A client's settings have the same provider as a server with this offer.
    let provider = offered_config(offer, None, b"h2", &Trust::Authority(authority.pem()), &[]).unwrap();
    let config = authority.server_config_with(Arc::clone(provider.crypto_provider()), offer);
    Server { tls: ServerConnection::new(Arc::new(config)).unwrap(), plaintext: Vec::new(), early: Vec::new() }
}

#[test]
fn an_offer_of_all_finds_what_a_server_has() {
    let all = TlsOffer::any();
    for version in [TlsVersion::V12, TlsVersion::V13] {
        for suite in all.clone().only(&[version]).suites {
            // The test's certificate has an ECDSA key.
            if suite.names().0.contains("_RSA_") {
                continue;
            }
            for group in all.groups.clone() {
                let server = TlsOffer { versions: vec![version], suites: vec![suite], groups: vec![group] };
                let facts = agreed(&all, &server, None);
                assert_eq!(facts.cipher_suite.as_deref(), Some(suite.names().0), "{server:?}");
                assert_eq!(facts.key_exchange, Some(format!("{group:?}").to_lowercase()), "{server:?}");
                let name = format!("TLSv{}", version.name().replace('.', "_"));
                assert_eq!(facts.tls_version, Some(name), "{server:?}");
            }
        }
    }
}

#[test]
fn a_client_certificate_that_cannot_be_used_is_refused() {
    let (one, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let chain_pem = CertificateParams::new(vec![NAME.to_owned()]).unwrap().self_signed(&one).unwrap().pem();
    let trust = Trust::Authority(Authority::new().pem());
    let made = |chain_pem: &str, key_pem: &str| {
        let certificate = ClientCertificate { chain_pem: chain_pem.into(), key_pem: key_pem.into() };
        offered_config(&TlsOffer::any(), Some(&certificate), b"h2", &trust, &[]).map(|_| ())
    };
    let key_pem = one.serialize_pem();
    assert!(made(&chain_pem, &key_pem).is_ok());
    assert!(matches!(made(&chain_pem, &other.serialize_pem()), Err(TlsConfigError::ClientPair)));
    assert!(matches!(made(&key_pem, &key_pem), Err(TlsConfigError::ClientCertificate(_))));
    assert!(matches!(made(&chain_pem, &chain_pem), Err(TlsConfigError::ClientKey(_))));
}

#[test]
fn plaintext_right_behind_the_handshake_comes_after_it() {
    for tls_version in [TlsVersion::V12, TlsVersion::V13] {
        let authority = Authority::new();
        let pins = Pins { tls_version, ..Pins::default() };
        let (mut tls, mut server) = (client_tls(&authority, &pins, b"h2"), server(&authority, &[b"h2"]));
        // The server speaks as soon as it may: in TLS 1.2 in the same flight as its last message.
        server.tls.writer().write_all(b"first").unwrap();
        tls.start().unwrap();
        let (mut out, mut said) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            tls.poll_output(&mut out);
            let mut answer = serve(&mut server, &out);
            out.clear();
            tls.handle_input(&mut answer, &mut |event| {
                said.push(match event {
                    TlsEvent::Established(_) => "established".to_owned(),
                    TlsEvent::Plaintext(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                    TlsEvent::End => "end".to_owned(),
                });
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(said, ["established", "first"], "{tls_version:?}");
    }
}

#[test]
fn exactly_what_is_pinned_is_negotiated() {
    for (pins, suite, group) in pinned_tls() {
        let facts = exchange(&pins, Cut::Whole);
        assert_eq!(facts.cipher_suite.as_deref(), Some(suite));
        assert_eq!(facts.key_exchange.as_deref(), Some(group));
        assert_eq!(facts.tls_version.as_deref(), Some("TLSv1_3"));
    }
    let old_pins = Pins { tls_version: TlsVersion::V12, ..Pins::default() };
    // The server's last flight ends the handshake, also where it comes in one piece.
    assert_eq!(exchange(&old_pins, Cut::Whole), exchange(&old_pins, Cut::Bytes(1)));
    let old = exchange(&old_pins, Cut::Bytes(1));
    assert_eq!(old.tls_version.as_deref(), Some("TLSv1_2"));
    assert_eq!(old.cipher_suite.as_deref(), Some("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"));
}

#[test]
fn an_authority_that_is_none_is_refused() {
    let made = |trust: &Trust| tls_config(&Pins::default(), b"h2", trust, &[]).map(|_| ());
    assert!(matches!(made(&Trust::Authority("no PEM".into())), Err(TlsConfigError::Authority(_))));
    assert!(matches!(made(&Trust::System), Err(TlsConfigError::NoRoots)));
    assert!(made(&Trust::Anyone).is_ok());
}

#[test]
fn a_record_is_filled_before_the_next_begins() {
    let authority = Authority::new();
    let (mut tls, mut server) =
        (client_tls(&authority, &Pins::default(), b"h2"), server(&authority, &[b"h2"]));
    tls.start().unwrap();
    let mut out = Vec::new();
    tls.poll_output(&mut out);
    receive(&mut tls, &mut serve(&mut server, &out), &mut Cut::Whole).unwrap();
    out.clear();
    tls.poll_output(&mut out);
    serve(&mut server, &out);
    out.clear();
    tls.encrypt(&[1; 16_384 + 100], &mut out).unwrap();
    let lengths: Vec<_> = records(&out);
    assert_eq!(lengths, [16_384 + 17, 100 + 17], "a full record, and the rest");
}

/// Lengths of the records laid end to end.
fn records(mut bytes: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        lengths.push(length);
        bytes = &rest[length..];
    }
    lengths
}

/// A protocol of lines: a request is its path, an answer one line.
#[derive(Default)]
struct Lines {
    output: Vec<u8>,
    asked: Vec<RequestId>,
    partial: Vec<u8>,
    started: bool,
    closed: bool,
}

impl Protocol for Lines {
    fn start(&mut self) {
        self.started = true;
    }

    fn available_requests(&self) -> usize {
        if self.started && !self.closed { 100 } else { 0 }
    }

    fn send_request(&mut self, id: RequestId, request: &Request) -> Result<HeaderBytes, NotNow> {
        self.asked.push(id);
        self.output.extend_from_slice(request.path.as_bytes());
        self.output.push(b'\n');
        Ok(HeaderBytes::default())
    }

    fn handle_bytes(&mut self, bytes: &[u8], sink: &mut Sink<'_>) {
        for byte in bytes {
            if *byte == b'\n' {
                let request = self.asked.remove(0);
                sink(Event::Data { request, bytes: &self.partial });
                self.partial.clear();
                sink(Event::End { request });
            } else {
                self.partial.push(*byte);
            }
        }
    }

    fn handle_end(&mut self, sink: &mut Sink<'_>) {
        let reason = "ended".into();
        self.handle_broken(Failure { kind: FailureKind::Closed, reason }, sink);
    }

    fn handle_broken(&mut self, failure: Failure, sink: &mut Sink<'_>) {
        self.closed = true;
        for request in self.asked.drain(..) {
            sink(Event::Failed { request, failure: failure.clone() });
        }
    }

    fn cancel(&mut self, id: RequestId) {
        self.asked.retain(|asked| *asked != id);
    }

    fn close(&mut self) {
        self.closed = true;
    }

    fn poll_output(&mut self, out: &mut Vec<u8>) -> bool {
        let any = !self.output.is_empty();
        out.append(&mut self.output);
        any
    }

    fn is_closed(&self) -> bool {
        self.closed
    }
}

/// What the sink was told, in words.
#[derive(Default)]
struct Log(Vec<String>, Option<Outcome>);

impl Log {
    fn event(&mut self, event: &Event<'_>) {
        self.0.push(match event {
            Event::Ready(handshake) => format!("ready {}", handshake.alpn.as_deref().unwrap_or("-")),
            Event::Data { request, bytes } => format!("{request}: {}", String::from_utf8_lossy(bytes)),
            Event::End { request } => format!("{request} end"),
            Event::Failed { request, failure } => format!("{request} failed: {}", failure.kind.name()),
            Event::Closed(outcome) => {
                self.1 = Some(outcome.clone());
                "closed".into()
            }
            other => format!("{other:?}"),
        });
    }
}

fn transmit(connection: &mut impl Connection) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(transmit) = connection.poll_transmit(0, &mut out) {
        assert_eq!(transmit, Transmit::Stream);
    }
    out
}

/// A connection with `Lines` over TLS after the first two flights, and its server.
fn shaken_hands(
    variant: Variant,
    server_alpn: &[&[u8]],
    cut: &mut Cut,
) -> (TcpConnection<Lines>, Server, Log) {
    let authority = Authority::new();
    let tls = client_tls(&authority, &Pins::default(), variant.alpn().unwrap());
    let mut connection = TcpConnection::new(variant, Lines::default(), Some(tls));
    let mut server = server(&authority, server_alpn);
    let mut log = Log::default();
    connection.handle_connected(0, &mut |event| log.event(&event));
    assert_eq!(connection.available_requests(), 0);
    let mut answer = serve(&mut server, &transmit(&mut connection));
    feed(&mut connection, &mut answer, cut, &mut log);
    (connection, server, log)
}

fn feed(connection: &mut TcpConnection<Lines>, mut bytes: &mut [u8], cut: &mut Cut, log: &mut Log) {
    while !bytes.is_empty() {
        let (part, rest) = bytes.split_at_mut(cut.length().min(bytes.len()));
        bytes = rest;
        connection.handle_input(0, Input::Stream(part), &mut |event| log.event(&event));
    }
}

#[test]
fn tls_is_ready_after_one_flight_each_and_the_request_rides_with_finished() {
    for mut cut in [Cut::Whole, Cut::Bytes(1), Cut::Random(9, 100)] {
        let (mut connection, mut server, mut log) = shaken_hands(Variant::H2, &[b"h2"], &mut cut);
        assert_eq!(log.0, ["ready h2"], "{cut:?}");
        connection.send_request(0, 7, &get("/a")).unwrap();
        connection.send_request(0, 8, &get("/b")).unwrap();
        let mut answer = serve(&mut server, &transmit(&mut connection));
        assert_eq!(server.plaintext, b"/a\n/b\n", "with the client's Finished");
        server.tls.writer().write_all(b"A\nB\n").unwrap();
        answer.extend(serve(&mut server, &[]));
        feed(&mut connection, &mut answer, &mut cut, &mut log);
        assert_eq!(log.0[1..], ["7: A", "7 end", "8: B", "8 end"], "{cut:?}");
        connection.close(0);
        serve(&mut server, &transmit(&mut connection));
        assert!(connection.is_closed());
        assert!(server.tls.process_new_packets().unwrap().peer_has_closed(), "close_notify came");
    }
}

#[test]
fn requests_sent_together_share_a_record() {
    let (mut connection, mut server, _) = shaken_hands(Variant::H2, &[b"h2"], &mut Cut::Whole);
    serve(&mut server, &transmit(&mut connection));
    for id in 0..50 {
        connection.send_request(0, id, &get("/a")).unwrap();
    }
    assert_eq!(records(&transmit(&mut connection)), [50 * 3 + 17]);
}

#[test]
fn a_certificate_of_several_records_passes_however_it_is_cut() {
    let authority = Authority::new();
    let names = std::iter::once(NAME.to_owned()).chain((0..1500).map(|i| format!("alias-{i}.server.test")));
    let config = Arc::new(authority.server_config_named(&[b"h2"], names.collect()));
    for mut cut in [Cut::Whole, Cut::Bytes(1), Cut::Bytes(16_000), Cut::Random(3, 5_000)] {
        let mut tls = client_tls(&authority, &Pins::default(), b"h2");
        let tls_server = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut server = Server { tls: tls_server, plaintext: Vec::new(), early: Vec::new() };
        tls.start().unwrap();
        let mut out = Vec::new();
        tls.poll_output(&mut out);
        let mut answer = serve(&mut server, &out);
        assert!(answer.len() > 32_000, "{} bytes are no large flight", answer.len());
        let (facts, _) = receive(&mut tls, &mut answer, &mut cut).unwrap();
        assert!(facts.is_some() && tls.is_established(), "{cut:?}");
    }
}

#[test]
fn another_protocol_than_asked_for_is_a_wrong_version() {
    let (mut connection, _, log) = shaken_hands(Variant::H2, &[], &mut Cut::Whole);
    assert_eq!(log.0, ["closed"]);
    assert_failed(&log.1.unwrap(), FailureKind::WrongVersion, "expected h2");
    transmit(&mut connection);
    assert!(connection.is_closed());
    let (_, _, log) = shaken_hands(Variant::H2, &[b"http/1.1"], &mut Cut::Whole);
    assert_failed(&log.1.unwrap(), FailureKind::WrongVersion, "");
    let (_, _, log) = shaken_hands(Variant::H1s, &[], &mut Cut::Whole);
    assert_eq!(log.0, ["ready -"], "a server without ALPN speaks HTTP/1.1");
}

#[test]
fn a_wrong_authority_fails_with_the_reason_and_an_alert() {
    let (authority, other) = (Authority::new(), Authority::new());
    let tls = client_tls(&other, &Pins::default(), b"h2");
    let mut connection = TcpConnection::new(Variant::H2, Lines::default(), Some(tls));
    let mut server = server(&authority, &[b"h2"]);
    let mut log = Log::default();
    connection.handle_connected(0, &mut |event| log.event(&event));
    let mut answer = serve(&mut server, &transmit(&mut connection));
    feed(&mut connection, &mut answer, &mut Cut::Whole, &mut log);
    assert_failed(&log.1.unwrap(), FailureKind::Tls, "invalid peer certificate");
    let mut alert = &transmit(&mut connection)[..];
    server.tls.read_tls(&mut alert).unwrap();
    let said = server.tls.process_new_packets().unwrap_err();
    assert!(matches!(said, rustls::Error::AlertReceived(_)), "{said:?}");
    assert!(connection.is_closed());
}

#[test]
fn garbage_instead_of_tls_fails() {
    let authority = Authority::new();
    let mut tls = client_tls(&authority, &Pins::default(), b"h2");
    tls.start().unwrap();
    let mut answer = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    let failure = receive(&mut tls, &mut answer, &mut Cut::Bytes(1)).unwrap_err();
    assert_failure(&failure, FailureKind::Tls, "TLS");
}

#[test]
fn an_end_without_close_notify_fails_what_is_unanswered() {
    let (mut connection, _, mut log) = shaken_hands(Variant::H1s, &[b"http/1.1"], &mut Cut::Whole);
    connection.send_request(0, 1, &get("/a")).unwrap();
    connection.handle_input(0, Input::End, &mut |event| log.event(&event));
    assert_eq!(log.0[1..], ["1 failed: closed", "closed"]);
    assert_failed(&log.1.unwrap(), FailureKind::Closed, "close_notify");
    let (mut idle, _, mut log) = shaken_hands(Variant::H1s, &[b"http/1.1"], &mut Cut::Whole);
    idle.handle_input(0, Input::End, &mut |event| log.event(&event));
    assert_eq!(log.1, Some(Outcome::Ok), "an idle connection may end so");
}

#[test]
fn cleartext_is_ready_at_once() {
    let mut connection = TcpConnection::new(Variant::H1, Lines::default(), None);
    let mut log = Log::default();
    assert_eq!(connection.send_request(0, 1, &get("/a")), Err(NotNow));
    connection.handle_connected(0, &mut |event| log.event(&event));
    connection.send_request(0, 1, &get("/a")).unwrap();
    assert_eq!(transmit(&mut connection), b"/a\n");
    feed(&mut connection, &mut b"one\n".to_vec(), &mut Cut::Whole, &mut log);
    assert_eq!(log.0, ["ready -", "1: one", "1 end"]);
    let reset = Failure { kind: FailureKind::Reset, reason: "reset".into() };
    connection.send_request(0, 2, &get("/b")).unwrap();
    connection.handle_input(0, Input::Broken(reset), &mut |event| log.event(&event));
    assert_eq!(log.0[3..], ["2 failed: reset", "closed"]);
    assert!(connection.is_closed() && connection.available_requests() == 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_from_the_server_are_taken_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        seed in any::<u64>(),
    ) {
        let authority = Authority::new();
        let mut tls = client_tls(&authority, &Pins::default(), b"h2");
        tls.start().unwrap();
        let mut bytes = bytes;
        let _ = receive(&mut tls, &mut bytes, &mut Cut::Random(seed, 300));
        prop_assert!(!tls.is_established());
    }
}
