//! Functions that pass any bytes to a decoder, for `cargo fuzz` and for a smoke test on stable Rust.
//!
//! None may panic, hang, or exceed its memory limits; most also check a property.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use model::assignment::Trust;
use model::pins::Http2Pins;
use model::{Pins, Variant};
use rustls_pki_types::ServerName;

use crate::contract::{Connection, Event, Fate, Input, Request};
use crate::h1::{self, Http1};
use crate::h2::hpack;
use crate::h2::{self, Http2};
use crate::protocol::Protocol;
use crate::tls::{Tls, tls_config};
use crate::{Client, ClientConfig, huffman, prefix_integer};

/// A fuzz target: it takes any bytes, and the instant at which its clock reads 0.
pub type Target = fn(&[u8], Instant);

/// All targets by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("http1", |data, _| http1(data)),
    ("http2", |data, _| http2(data)),
    ("hpack", |data, _| hpack(data)),
    ("huffman", |data, _| huffman(data)),
    ("integer", |data, _| integer(data)),
    ("http3", |data, _| crate::h3::any_bytes::streams(data)),
    ("qpack", |data, _| crate::h3::any_bytes::qpack(data)),
    ("tls", |data, _| tls(data)),
    ("quic", quic),
    ("client_protocol", |data, _| client_protocol(data)),
];

/// A response's head and body: the events do not depend on how the input is cut.
pub fn http1(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else { return };
    let run = |length: usize| {
        let mut http = Http1::new(h1::Limits::default());
        respond(&mut http, bytes, length, 1)
    };
    assert_eq!(run(usize::MAX), run(usize::from(*cut).max(1)));
}

/// Frames with header blocks, with and without push: the events do not depend on how the input is cut.
pub fn http2(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else { return };
    let run = |length: usize| {
        let limits = h2::Limits { pushes: u32::from(cut & 1) * 4, ..h2::Limits::default() };
        respond(&mut Http2::new(&Http2Pins::default(), limits), bytes, length, 3)
    };
    assert_eq!(run(usize::MAX), run(usize::from(*cut).max(1)));
}

/// Passes `bytes` in pieces to a protocol with open requests; returns the counts of events, and the body
/// bytes.
fn respond(protocol: &mut impl Protocol, bytes: &[u8], length: usize, requests: u64) -> [u64; 5] {
    let mut seen = [0; 5];
    let fates = [Fate::Discard, Fate::Take(requests), Fate::Cancel, Fate::Refuse];
    protocol.start();
    for id in 0..requests {
        // At its limits a protocol may accept no more requests.
        let _ = protocol.send_request(id, &request());
    }
    let mut sink = |event: Event<'_>| match event {
        Event::Data { bytes, .. } => seen[0] += bytes.len() as u64,
        Event::Head { .. } | Event::Informational { .. } => seen[1] += 1,
        Event::End { .. } => seen[2] += 1,
        Event::Failed { .. } => seen[3] += 1,
        Event::Pushed(pushed) => seen[4] += 1 + pushed.body_bytes,
        Event::Promised { promise, fate } => *fate = fates[promise.path.len() % fates.len()],
        Event::PushedInVain(bytes) => seen[4] += bytes,
        Event::Skipped { .. } | Event::Ready(_) | Event::Closed(_) => {}
    };
    for piece in bytes.chunks(length) {
        protocol.handle_bytes(piece, &mut sink);
    }
    protocol.handle_end(&mut sink);
    let mut out = Vec::new();
    while protocol.poll_output(&mut out) {}
    seen
}

fn request() -> Request {
    Request {
        template: 0,
        method: "GET".into(),
        scheme: "https".into(),
        authority: "server.test".into(),
        path: "/".into(),
        fields: Vec::new(),
        varying: None,
        body: bytes::Bytes::new(),
    }
}

/// Consecutive header blocks, each after a byte with its length.
pub fn hpack(data: &[u8]) {
    let mut decoder = hpack::Decoder::new(4096);
    let mut rest = data;
    while let Some((length, behind)) = rest.split_first() {
        let (block, behind) = behind.split_at(behind.len().min(usize::from(*length)));
        rest = behind;
        if decoder.decode(block, |_| {}).is_err() {
            return;
        }
        assert!(decoder.table_size() <= 4096);
    }
}

/// A string in the Huffman code; a valid one is encoded to the same bytes.
pub fn huffman(data: &[u8]) {
    let mut text = Vec::new();
    if huffman::decode(data, &mut text).is_ok() {
        let mut again = Vec::new();
        huffman::encode(&text, &mut again);
        assert_eq!(again, data);
    }
}

/// An integer with a prefix; the shortest form of a valid one has the same value.
pub fn integer(data: &[u8]) {
    for prefix_bits in 1..=8 {
        let mut position = 0;
        if let Ok(value) = prefix_integer::decode(data, &mut position, prefix_bits) {
            let mut again = Vec::new();
            prefix_integer::encode(value, prefix_bits, 0, &mut again);
            assert!(
                again.len() <= position && prefix_integer::decode(&again, &mut 0, prefix_bits) == Ok(value)
            );
        }
    }
}

/// A server's answer to a ClientHello.
pub fn tls(data: &[u8]) {
    let config = tls_config(&Pins::default(), b"h2", &Trust::Anyone, &[]);
    let (Ok(config), Ok(name)) = (config, ServerName::try_from("server.test")) else { return };
    let Ok(mut tls) = Tls::new(Arc::new(config), name) else { return };
    if tls.start().is_ok() {
        let mut bytes = data.to_vec();
        let _ = tls.handle_input(&mut bytes, &mut |_| Ok(()));
        assert!(!tls.is_established(), "the handshake is done without the server's keys");
    }
}

/// Datagrams that answer a QUIC client's first one, each after a byte with its length.
pub fn quic(data: &[u8], base: Instant) {
    let config = ClientConfig::new(Variant::H3, "server.test", &Pins::default(), &Trust::Anyone, &[]);
    let Ok(config) = config else { return };
    let Ok(mut client) = Client::new(&config, SocketAddr::from(([127, 0, 0, 1], 443)), base, 1) else {
        return;
    };
    client.handle_connected(0, &mut |_| {});
    let mut out = Vec::new();
    let mut rest = data;
    while let Some((length, behind)) = rest.split_first() {
        let (datagram, behind) = behind.split_at(behind.len().min(usize::from(*length) * 6));
        rest = behind;
        let mut bytes = datagram.to_vec();
        let segment_bytes = bytes.len().max(1);
        client.handle_input(0, Input::Datagrams { bytes: &mut bytes, segment_bytes, ecn: 0 }, &mut |_| {});
        while client.poll_transmit(0, &mut out).is_some() {
            out.clear();
        }
    }
}

/// The messages of a client process.
pub fn client_protocol(data: &[u8]) {
    let mut decoder = model::frame::Decoder::default();
    decoder.handle_bytes(data);
    while let Ok(Some(_)) = decoder.poll_message() {}
}
