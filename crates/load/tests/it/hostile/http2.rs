//! HTTP/2 from a bad server: frames made by hand.

use std::io::Read;
use std::net::TcpStream;

use model::Variant;
use model::sample::FailureKind::{self, Closed, Limit, Protocol, Reset, Timeout, WrongLength, WrongVersion};

use super::Ending::{self, Close, Hold, Repeat};
use super::{Hostile, assert_connection_failed, assert_failed, assert_ok, assignment, expecting, run, say};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
/// `:status: 200`, indexed.
const OK: &[u8] = &[0x88];

pub(in super::super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A field that is neither indexed nor compressed.
pub(in super::super) fn literal(name: &str, value: &str) -> Vec<u8> {
    let (name_length, length) = (u8::try_from(name.len()).unwrap(), u8::try_from(value.len()).unwrap());
    [&[0, name_length], name.as_bytes(), &[length], value.as_bytes()].concat()
}

fn headers(flags: u8, block: &[u8]) -> Vec<u8> {
    frame(HEADERS, flags | END_HEADERS, 1, block)
}

fn goaway(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

/// Reads the client's preface and frames up to its request.
fn take_request(stream: &mut TcpStream) -> bool {
    const PREFACE_BYTES: usize = 24;
    let mut preface = [0; PREFACE_BYTES];
    let mut header = [0; 9];
    if stream.read_exact(&mut preface).is_err() {
        return false;
    }
    while stream.read_exact(&mut header).is_ok() {
        let [_, high, middle, low, kind, ..] = [[0].as_slice(), &header].concat()[..] else { return false };
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        if stream.read_exact(&mut vec![0; length]).is_err() {
            return false;
        }
        if kind == HEADERS {
            return true;
        }
    }
    false
}

/// What a server sends after its SETTINGS and how it ends; the kind of failure and what its reason names.
struct Case(&'static str, Vec<Vec<u8>>, Ending, FailureKind, &'static str);

/// Frames that no server may send.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn frames() -> Vec<Case> {
    let ok = || headers(0, OK);
    let huge = [0, 0x7f, 0xff, 0xff, PING, 0, 0, 0, 0].to_vec();
    let again = |length| frame(SETTINGS, 0, 0, &vec![0; length]);
    let setting = |id: u8, value: u32| frame(SETTINGS, 0, 0, &[&[0, id], &value.to_be_bytes()[..]].concat());
    vec![
        Case("a frame beyond the limit", vec![huge], Hold, Protocol, "FRAME_SIZE_ERROR"),
        Case("PING of 7 bytes", vec![frame(PING, 0, 0, &[0; 7])], Hold, Protocol, "FRAME_SIZE_ERROR"),
        Case("PING on a stream", vec![frame(PING, 0, 1, &[0; 8])], Hold, Protocol, "PROTOCOL_ERROR"),
        Case("cut SETTINGS", vec![again(5)], Hold, Protocol, "FRAME_SIZE_ERROR"),
        Case("SETTINGS on a stream", vec![frame(SETTINGS, 0, 1, &[])], Hold, Protocol, "PROTOCOL_ERROR"),
        Case("ACK with settings", vec![frame(SETTINGS, ACK, 0, &[0; 6])], Hold, Protocol, "FRAME_SIZE_ERROR"),
        Case("a server's push", vec![setting(2, 1)], Hold, Protocol, "SETTINGS_ENABLE_PUSH 1"),
        Case("a window of 2^31", vec![setting(4, 1 << 31)], Hold, Protocol, "FLOW_CONTROL_ERROR"),
        Case("tiny frames", vec![setting(5, 1)], Hold, Protocol, "SETTINGS_MAX_FRAME_SIZE 1"),
        Case(
            "a window beyond its limit",
            vec![frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])],
            Hold,
            Protocol,
            "FLOW_CONTROL_ERROR: WINDOW_UPDATE raises the connection's",
        ),
        Case(
            "a stream's window beyond its limit",
            vec![frame(WINDOW_UPDATE, 0, 1, &[0x7f, 0xff, 0xff, 0xff])],
            Hold,
            Protocol,
            "FLOW_CONTROL_ERROR: WINDOW_UPDATE raises a stream's",
        ),
        Case("a window by 0", vec![frame(WINDOW_UPDATE, 0, 0, &[0; 4])], Hold, Protocol, "PROTOCOL_ERROR"),
        Case(
            "CONTINUATION alone",
            vec![frame(CONTINUATION, 0, 1, &[])],
            Hold,
            Protocol,
            "outside a header block",
        ),
        Case(
            "PING inside a block",
            vec![frame(HEADERS, 0, 1, OK), frame(PING, 0, 0, &[0; 8])],
            Hold,
            Protocol,
            "inside the header block",
        ),
        Case(
            "padding beyond the payload",
            vec![frame(HEADERS, END_HEADERS | PADDED, 1, &[9, 0x88])],
            Hold,
            Protocol,
            "padding",
        ),
        Case("an idle stream", vec![frame(HEADERS, END_HEADERS, 7, OK)], Hold, Protocol, "PROTOCOL_ERROR"),
        Case("stream 0", vec![frame(DATA, 0, 0, b"x")], Hold, Protocol, "PROTOCOL_ERROR"),
        Case(
            "RST_STREAM of an idle stream",
            vec![frame(RST_STREAM, 0, 9, &[0; 4])],
            Hold,
            Protocol,
            "PROTOCOL_ERROR",
        ),
        Case("PRIORITY of 4 bytes", vec![frame(PRIORITY, 0, 1, &[0; 4])], Hold, Protocol, "FRAME_SIZE_ERROR"),
        Case("GOAWAY of 4 bytes", vec![frame(GOAWAY, 0, 0, &[0; 4])], Hold, Protocol, "FRAME_SIZE_ERROR"),
        Case(
            "an unexpected push",
            vec![frame(SETTINGS, ACK, 0, &[]), frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82])],
            Hold,
            Protocol,
            "PUSH_PROMISE although",
        ),
        Case(
            "DATA behind the end",
            vec![frame(HEADERS, 0, 1, OK), frame(CONTINUATION, 0, 3, &[])],
            Hold,
            Protocol,
            "inside the header block",
        ),
        Case("DATA before HEADERS", vec![frame(DATA, 0, 1, b"x")], Hold, Protocol, "DATA before"),
        Case(
            "trailers that do not end",
            vec![ok(), headers(0, &literal("a", "b"))],
            Hold,
            Protocol,
            "trailers without END_STREAM",
        ),
        Case(
            "a window overrun",
            vec![frame(SETTINGS, ACK, 0, &[]), ok(), frame(DATA, 0, 1, &vec![0; 16_384])],
            Hold,
            Protocol,
            "FLOW_CONTROL_ERROR: DATA beyond the stream's window",
        ),
    ]
}

/// Header blocks and responses that no server may send.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn responses() -> Vec<Case> {
    let block = |block: &[u8]| vec![headers(END_STREAM, block)];
    let with = |name, value| vec![headers(END_STREAM, &[OK, &literal(name, value)].concat())];
    let sized = |length: &str| [OK, &literal("content-length", length)].concat();
    vec![
        Case("an index out of range", block(&[0xff, 0xff, 0xff, 0x7f]), Hold, Protocol, "COMPRESSION_ERROR"),
        Case("index 0", block(&[0x80]), Hold, Protocol, "COMPRESSION_ERROR"),
        Case(
            "a huge integer",
            block(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            Hold,
            Protocol,
            "COMPRESSION_ERROR",
        ),
        Case(
            "a string beyond the block",
            block(&[0, 1, b'a', 0x7f, 0xff, 0xff, 0x7f, b'b']),
            Hold,
            Protocol,
            "COMPRESSION_ERROR",
        ),
        Case(
            "bad Huffman",
            block(&[0, 1, b'a', 0x84, 0xff, 0xff, 0xff, 0xff]),
            Hold,
            Protocol,
            "COMPRESSION_ERROR",
        ),
        Case(
            "a table beyond its limit",
            block(&[0x3f, 0xff, 0xff, 0xff, 0x7f]),
            Hold,
            Protocol,
            "COMPRESSION_ERROR",
        ),
        Case("a cut block", block(&[0x40]), Hold, Protocol, "COMPRESSION_ERROR"),
        Case("no status", block(&literal("a", "b")), Hold, Protocol, "no :status"),
        Case("status 101", block(&[&[8, 3][..], b"101"].concat()), Hold, Protocol, "101"),
        Case("capitals", with("Server", "x"), Hold, Protocol, "malformed"),
        Case("a connection's field", with("connection", "close"), Hold, Protocol, "malformed"),
        Case("a line end", with("a", "b\r\nc: d"), Hold, Protocol, "malformed"),
        Case(
            "too long",
            vec![headers(0, &sized("5")), frame(DATA, END_STREAM, 1, b"abc")],
            Hold,
            WrongLength,
            "PROTOCOL_ERROR: the body ends 2 bytes short",
        ),
        Case(
            "too short",
            vec![headers(0, &sized("2")), frame(DATA, END_STREAM, 1, b"abc")],
            Hold,
            WrongLength,
            "PROTOCOL_ERROR: DATA exceeds",
        ),
        Case(
            "two lengths",
            vec![headers(0, &[sized("2"), literal("content-length", "3")].concat())],
            Hold,
            Protocol,
            "second content-length",
        ),
        Case(
            "a body with 204",
            vec![headers(0, &[0x89]), frame(DATA, END_STREAM, 1, b"abc")],
            Hold,
            WrongLength,
            "no content",
        ),
        Case(
            "a body that breaks off",
            vec![headers(0, OK), frame(DATA, 0, 1, b"abc")],
            Close,
            Closed,
            "without GOAWAY",
        ),
        Case(
            "a frame that breaks off",
            vec![headers(0, OK), frame(DATA, 0, 1, b"abc")[..10].to_vec()],
            Close,
            Closed,
            "without GOAWAY",
        ),
        Case("a head, then silence", vec![headers(0, OK)], Hold, Timeout, "only 0 bytes of the body"),
        Case("a head, then RST", vec![headers(0, OK)], Ending::Reset, Reset, "reading from 127.0.0.1:"),
        Case("silence", vec![Vec::new()], Hold, Timeout, "no response within 400 ms"),
        Case("a half-close", vec![Vec::new()], Close, Closed, "without GOAWAY"),
        Case("RST_STREAM", vec![frame(RST_STREAM, 0, 1, &[0, 0, 0, 2])], Hold, Reset, "INTERNAL_ERROR"),
        Case(
            "a refused stream",
            vec![frame(RST_STREAM, 0, 1, &[0, 0, 0, 7])],
            Hold,
            Reset,
            "may be sent again",
        ),
        Case("GOAWAY before the request", vec![goaway(0, 0)], Close, Closed, "did not process the request"),
        Case(
            "GOAWAY mid-stream",
            vec![headers(0, OK), frame(DATA, 0, 1, b"abc"), goaway(1, 0)],
            Close,
            Closed,
            "GOAWAY NO_ERROR and closed",
        ),
        Case(
            "GOAWAY with an error",
            vec![headers(0, OK), goaway(1, 11)],
            Close,
            Closed,
            "GOAWAY ENHANCE_YOUR_CALM",
        ),
        Case("GOAWAY, then silence", vec![goaway(1, 0)], Hold, Timeout, "no response within 400 ms"),
    ]
}

/// Frames that come again and again.
fn floods() -> Vec<Case> {
    let calm = "ENHANCE_YOUR_CALM";
    let ok = || headers(0, OK);
    let hint = headers(0, &[&[8, 3][..], b"103"].concat());
    vec![
        Case(
            "CONTINUATION",
            vec![frame(HEADERS, 0, 1, &[]), frame(CONTINUATION, 0, 1, &literal("a", "b"))],
            Repeat,
            Limit,
            calm,
        ),
        Case(
            "empty CONTINUATION",
            vec![frame(HEADERS, 0, 1, &[]), frame(CONTINUATION, 0, 1, &[])],
            Repeat,
            Limit,
            calm,
        ),
        Case("PING", vec![frame(PING, 0, 0, &[0; 8])], Repeat, Limit, calm),
        Case("SETTINGS", vec![frame(SETTINGS, 0, 0, &[])], Repeat, Limit, calm),
        Case(
            "full SETTINGS",
            vec![frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0].repeat(2000))],
            Repeat,
            Limit,
            calm,
        ),
        Case("empty DATA", vec![ok(), frame(DATA, 0, 1, &[])], Repeat, Limit, calm),
        Case("padding", vec![ok(), frame(DATA, PADDED, 1, &[0])], Repeat, Limit, calm),
        Case("RST_STREAM", vec![frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])], Repeat, Reset, "CANCEL"),
        Case("WINDOW_UPDATE", vec![frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])], Repeat, Limit, calm),
        Case("PRIORITY", vec![frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 1])], Repeat, Limit, calm),
        Case("unknown frames", vec![frame(0xbb, 0, 0, &[0; 100])], Repeat, Limit, calm),
        Case("1xx", vec![hint], Repeat, Limit, "more than 32 informational"),
        Case(
            "DATA",
            vec![ok(), frame(DATA, 0, 1, &[0; 64])],
            Repeat,
            Timeout,
            "bytes of the body within 400 ms",
        ),
    ]
}

fn suffer(cases: Vec<Case>) {
    for Case(name, pieces, ending, kind, part) in cases {
        let server = Hostile::new(move |mut stream| {
            if take_request(&mut stream) {
                let pieces = [&[frame(SETTINGS, 0, 0, &[])], &pieces[..]].concat();
                say(&mut stream, &pieces, ending);
            }
        });
        let mut assignment = expecting(kind, assignment(Variant::H2c, server.address, 2));
        assignment.pins.http2.stream_window_bytes = 10_000;
        assignment.options.connections.requests_each = Some(1);
        let report = run(name, &assignment);
        assert_failed(name, &report, kind, part);
    }
}

#[test]
fn each_frame_is_a_failure_of_its_kind() {
    suffer(frames());
}

#[test]
fn each_response_is_a_failure_of_its_kind() {
    suffer(responses());
}

#[test]
fn floods_end_at_a_limit_and_fill_no_memory() {
    suffer(floods());
}

#[test]
fn another_language_is_named() {
    for (name, answer, ending, kind, part) in [
        (
            "HTTP/1.1",
            "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n",
            Close,
            WrongVersion,
            "in HTTP/1",
        ),
        ("words", "220 mail.test ESMTP\r\n", Hold, Protocol, "expected SETTINGS"),
        ("nothing", "", Close, Closed, "it may not speak HTTP/2 here"),
        ("silence", "", Hold, Timeout, "no response"),
    ] {
        let server = Hostile::new(move |mut stream| {
            if take_request(&mut stream) {
                say(&mut stream, &[answer.as_bytes().to_vec()], ending);
            }
        });
        assert_failed(
            name,
            &run(name, &expecting(kind, assignment(Variant::H2c, server.address, 2))),
            kind,
            part,
        );
    }
}

/// What the RFC tells a client to ignore, before, between and behind good frames.
#[test]
fn what_is_reserved_is_tolerated() {
    let server = Hostile::new(|mut stream| {
        if !take_request(&mut stream) {
            return;
        }
        let settings = [[0, 0xf0, 1, 2, 3, 4], [0x0a, 0x0a, 0, 0, 0, 0], [0, 3, 0, 0, 0, 10]].concat();
        let pieces = [
            frame(SETTINGS, 0xfe, 0, &settings),
            frame(0xf7, 0xff, 1, b"grease"),
            frame(PING, 0xfe, 1 << 31, &[1; 8]),
            frame(PRIORITY, 0, 1, &[0x80, 0, 0, 0, 1]),
            frame(SETTINGS, ACK, 0, &[]),
            headers(0, &[&[8, 3][..], b"103"].concat()),
            frame(HEADERS, PADDED, 1, &[2, 0x88, 0, 0]),
            frame(CONTINUATION, END_HEADERS, 1, &literal("a", "b")),
            frame(0x42, 0, 3, &[]),
            frame(DATA, PADDED, 1 | 1 << 31, &[3, b'o', b'k', 0, 0, 0]),
            frame(WINDOW_UPDATE, 0, 1, &[0x80, 0, 0, 5]),
            headers(END_STREAM, &literal("trailer", "x")),
            goaway(1, 0),
        ];
        // In one piece: behind the end of the response and before GOAWAY the next request could leave.
        say(&mut stream, &[pieces.concat()], Close);
    });
    let report = run("reserved", &assignment(Variant::H2c, server.address, 2));
    assert_ok("reserved", &report);
    assert!(report.samples.iter().all(|sample| sample.response_body_bytes == 2));
}

/// A server that allows no more requests does not block its clients for ever.
#[test]
fn a_server_that_allows_no_request_is_left() {
    let server = Hostile::new(|mut stream| {
        if take_request(&mut stream) {
            let pieces = [frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 0]), headers(END_STREAM, OK)];
            say(&mut stream, &pieces, Hold);
        }
    });
    let report = run("no streams", &assignment(Variant::H2c, server.address, 2));
    assert_ok("no streams", &report);
    assert_connection_failed("no streams", &report, Timeout, "allowed no request within 400 ms");
}
