//! The client that joins all variants.

use std::net::SocketAddr;
use std::time::Instant;

use engine::{Client, ClientConfig, ClientConfigError, Connection, Event, Input, Transmit};
use model::assignment::Trust;
use model::pins::TlsVersion;
use model::{HttpVersion, Pins, Variant};

use crate::authority::{Authority, NAME};
use crate::quic_peer::{base, get};
use crate::tls::{Server, serve, server};

fn config(variant: Variant, authority: &Authority) -> ClientConfig {
    ClientConfig::new(variant, NAME, &Pins::default(), &Trust::Authority(authority.pem()), &[]).unwrap()
}

fn client(config: &ClientConfig, base: Instant) -> Client {
    Client::new(config, SocketAddr::from(([127, 0, 0, 1], 443)), base, 1).unwrap()
}

/// All that is to be sent now.
fn transmit(client: &mut Client) -> (Vec<u8>, Option<Transmit>) {
    let (mut out, mut how) = (Vec::new(), None);
    while let Some(transmit) = client.poll_transmit(0, &mut out) {
        how = Some(transmit);
    }
    (out, how)
}

#[test]
fn cleartext_variants_are_ready_at_once_and_speak_their_protocol() {
    let authority = Authority::new();
    for (variant, beginning) in [(Variant::H1, "GET /a HTTP/1.1\r\n"), (Variant::H2c, "PRI * HTTP/2.0\r\n")] {
        let mut client = client(&config(variant, &authority), base());
        let mut is_ready = false;
        client.handle_connected(0, &mut |event| is_ready |= matches!(event, Event::Ready(_)));
        assert!(is_ready, "{variant}");
        client.send_request(0, 1, &get("/a")).unwrap();
        let (sent, how) = transmit(&mut client);
        assert_eq!(how, Some(Transmit::Stream), "{variant}");
        assert!(sent.starts_with(beginning.as_bytes()), "{variant}: {}", sent.escape_ascii());
    }
}

#[test]
fn encrypted_variants_over_tcp_shake_hands_first() {
    let authority = Authority::new();
    let cases = [(Variant::H1s, "GET /a HTTP/1.1\r\n"), (Variant::H2, "PRI * HTTP/2.0\r\n")];
    for (variant, beginning) in cases {
        let mut client = client(&config(variant, &authority), base());
        let mut server = server(&authority, &[b"h2", b"http/1.1"]);
        let mut alpn = None;
        client.handle_connected(0, &mut |_| panic!("too early"));
        let mut answer = serve(&mut server, &transmit(&mut client).0);
        client.handle_input(0, Input::Stream(&mut answer), &mut |event| {
            if let Event::Ready(handshake) = event {
                alpn = handshake.alpn;
            }
        });
        assert_eq!(alpn.map(String::into_bytes), variant.alpn().map(<[u8]>::to_vec), "{variant}");
        client.send_request(0, 1, &get("/a")).unwrap();
        serve(&mut server, &transmit(&mut client).0);
        let Server { plaintext, .. } = server;
        assert!(plaintext.starts_with(beginning.as_bytes()), "{variant}: {}", plaintext.escape_ascii());
    }
}

#[test]
fn a_response_over_h1s_arrives() {
    use std::io::Write;
    let authority = Authority::new();
    let mut client = client(&config(Variant::H1s, &authority), base());
    let mut server = server(&authority, &[b"http/1.1"]);
    client.handle_connected(0, &mut |_| ());
    let mut answer = serve(&mut server, &transmit(&mut client).0);
    client.handle_input(0, Input::Stream(&mut answer), &mut |_| ());
    client.send_request(0, 5, &get("/a")).unwrap();
    let mut answer = serve(&mut server, &transmit(&mut client).0);
    server.tls.writer().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
    answer.extend(serve(&mut server, &[]));
    let (mut head, mut body, mut ended) = (None, Vec::new(), false);
    client.handle_input(0, Input::Stream(&mut answer), &mut |event| match event {
        Event::Head { request: 5, head: found } => head = Some(found),
        Event::Data { request: 5, bytes } => body.extend_from_slice(bytes),
        Event::End { request: 5 } => ended = true,
        other => panic!("{other:?}"),
    });
    assert_eq!(head.map(|head| (head.status, head.version)), Some((200, HttpVersion::Http11)));
    assert_eq!((body, ended), (b"ok".to_vec(), true));
    client.close(0);
    let (sent, _) = transmit(&mut client);
    assert!(!sent.is_empty() && client.is_closed(), "close_notify leaves, and it is over");
}

#[test]
fn h3_begins_with_one_datagram_of_the_pinned_size() {
    let authority = Authority::new();
    let mut client = client(&config(Variant::H3, &authority), base());
    client.handle_connected(0, &mut |_| panic!("too early"));
    let mut out = vec![0xaa; 3];
    let how = client.poll_transmit(0, &mut out);
    assert_eq!(how, Some(Transmit::Datagrams { segment_bytes: 1452, ecn: 0b10 }));
    assert_eq!(out.len(), 3 + 1452, "appended to what was there");
    assert!(client.poll_timeout().is_none() && client.poll_transmit(0, &mut out).is_none());
    assert!(client.poll_timeout().is_some(), "the handshake is sent again if need be");
}

#[test]
fn pins_that_contradict_the_variant_are_refused() {
    let authority = Authority::new();
    let made = |variant, name: &str, pins: &Pins| {
        ClientConfig::new(variant, name, pins, &Trust::Authority(authority.pem()), &[]).err()
    };
    let old = Pins { tls_version: TlsVersion::V12, ..Pins::default() };
    assert!(matches!(made(Variant::H3, NAME, &old), Some(ClientConfigError::Quic(_))));
    assert!(made(Variant::H2, NAME, &old).is_none());
    let small = Pins { quic_datagram_bytes: 1000, ..Pins::default() };
    assert!(matches!(made(Variant::H3, NAME, &small), Some(ClientConfigError::Quic(_))));
    assert!(matches!(
        made(Variant::H1, "not a name", &Pins::default()),
        Some(ClientConfigError::ServerName(_))
    ));
}
