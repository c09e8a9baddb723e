//! HTTP/2 against scripted servers.

use engine::h2::frame::{ErrorCode, FrameHeader, HEADER_BYTES, PREFACE, flag, kind};
use engine::h2::hpack::{Decoder, Encoder, Indexing};
use engine::h2::{Http2, Limits};
use engine::{Event, NotNow, Protocol, Request};
use model::Outcome;
use model::pins::Http2Pins;
use model::sample::FailureKind;
use proptest::prelude::*;

use super::{Log, LoggedEvent, broken, deliver, get, output, request, varied};

/// The bytes that a scripted server sends.
pub(super) struct Script {
    pub(super) bytes: Vec<u8>,
    hpack: Encoder,
}

pub(super) const OK: &[(&str, &str)] = &[(":status", "200")];

impl Script {
    /// Nothing yet.
    pub(super) fn bare() -> Self {
        Script { bytes: Vec::new(), hpack: Encoder::new(4096) }
    }

    /// SETTINGS and the acknowledgement of the client's.
    pub(super) fn new() -> Self {
        Script::bare().settings(&[]).frame(kind::SETTINGS, flag::ACK, 0, &[])
    }

    pub(super) fn frame(mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Self {
        let length = u32::try_from(payload.len()).unwrap();
        FrameHeader { length, kind, flags, stream }.write(&mut self.bytes);
        self.bytes.extend_from_slice(payload);
        self
    }

    pub(super) fn settings(self, settings: &[(u16, u32)]) -> Self {
        let entry = |&(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
        let payload: Vec<u8> = settings.iter().flat_map(entry).collect();
        self.frame(kind::SETTINGS, 0, 0, &payload)
    }

    pub(super) fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        self.hpack.begin(&mut block);
        for (name, value) in fields {
            self.hpack.field(name.as_bytes(), value.as_bytes(), Indexing::Incremental, &mut block);
        }
        block
    }

    pub(super) fn headers(mut self, stream: u32, end: bool, fields: &[(&str, &str)]) -> Self {
        let block = self.block(fields);
        self.frame(kind::HEADERS, flag::END_HEADERS | u8::from(end), stream, &block)
    }

    pub(super) fn data(self, stream: u32, end: bool, bytes: &[u8]) -> Self {
        self.frame(kind::DATA, u8::from(end), stream, bytes)
    }

    fn window(self, stream: u32, increment: u32) -> Self {
        self.frame(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
    }

    pub(super) fn reset(self, stream: u32, code: ErrorCode) -> Self {
        self.frame(kind::RST_STREAM, 0, stream, &code.0.to_be_bytes())
    }

    fn goaway(self, last: u32, code: ErrorCode, debug: &str) -> Self {
        let payload = [&last.to_be_bytes()[..], &code.0.to_be_bytes(), debug.as_bytes()].concat();
        self.frame(kind::GOAWAY, 0, 0, &payload)
    }
}

/// The frames of what the client sent, its preface taken off.
fn frames(bytes: &[u8]) -> Vec<(FrameHeader, Vec<u8>)> {
    let mut rest = bytes.strip_prefix(PREFACE).unwrap_or(bytes);
    let mut frames = Vec::new();
    while let Some((header, behind)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let header = FrameHeader::parse(header);
        let (payload, more) = behind.split_at(header.length as usize);
        frames.push((header, payload.to_vec()));
        rest = more;
    }
    assert!(rest.is_empty());
    frames
}

pub(super) fn frames_of(kind: u8, bytes: &[u8]) -> Vec<(FrameHeader, Vec<u8>)> {
    frames(bytes).into_iter().filter(|(header, _)| header.kind == kind).collect()
}

fn small_limits() -> Limits {
    Limits {
        header_list_bytes: 2000,
        header_block_bytes: 3000,
        header_block_frames: 20,
        informational: 3,
        idle_frames: 100,
        reply_bytes: 1000,
        ..Limits::default()
    }
}

/// A started connection with `requests` sent as 1, 2, 3 … on streams 1, 3, 5 …
fn open(pins: &Http2Pins, requests: &[Request]) -> Http2 {
    let mut http = Http2::new(pins, small_limits());
    http.start();
    for (id, request) in (1..).zip(requests) {
        http.send_request(id, request).unwrap();
    }
    http
}

fn run(requests: &[Request], input: &[u8], lengths: &[usize]) -> (Http2, Log, Vec<u8>) {
    let mut http = open(&Http2Pins::default(), requests);
    let mut log = Log::default();
    deliver(&mut http, input, lengths, &mut log);
    let sent = output(&mut http);
    (http, log, sent)
}

/// The events of `script` on two GETs, the same in one piece, byte by byte and in odd pieces.
#[track_caller]
fn answered(script: &Script) -> (Http2, Log, Vec<u8>) {
    let requests = [get("/a"), get("/b")];
    let (http, whole, sent) = run(&requests, &script.bytes, &[usize::MAX]);
    for lengths in [&[1][..], &[2], &[9], &[10, 3], &[64, 1, 8]] {
        let (other, pieces, other_sent) = run(&requests, &script.bytes, lengths);
        assert_eq!(pieces.0, whole.0, "in pieces of {lengths:?}");
        assert_eq!(other.available_requests(), http.available_requests());
        assert_eq!(other_sent, sent, "in pieces of {lengths:?}");
    }
    (http, whole, sent)
}

#[test]
fn the_first_bytes_are_preface_settings_and_window() {
    let mut http = open(&Http2Pins::default(), &[]);
    assert_eq!(http.available_requests(), 100);
    let sent = output(&mut http);
    assert!(sent.starts_with(PREFACE));
    let frames = frames(&sent);
    assert_eq!(frames.len(), 2);
    let settings: Vec<(u16, u32)> = frames[0]
        .1
        .as_chunks::<6>()
        .0
        .iter()
        .map(|&[a, b, c, d, e, f]| (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f])))
        .collect();
    assert_eq!(settings, [(1, 65_536), (2, 0), (4, 6 << 20), (5, 16_384), (6, 2000)]);
    assert_eq!(frames[1].1, ((15 << 20) - 65_535u32).to_be_bytes());
}

#[test]
fn interleaved_responses_arrive_completely() {
    let script = Script::new()
        .headers(3, false, &[(":status", "200"), ("content-length", "6"), ("server", "test")])
        .headers(1, false, &[(":status", "103"), ("link", "</a.css>")])
        .data(3, false, b"abc")
        .headers(1, false, &[(":status", "404"), ("server", "test")])
        .data(1, true, b"nothing")
        .data(3, true, b"def");
    let (http, log, sent) = answered(&script);
    assert_eq!(log.0[1], LoggedEvent::Informational(1, 103, "</a.css>".to_owned()));
    assert_eq!((log.head_of(1).status, log.head_of(2).status), (404, 200));
    assert_eq!(log.head_of(2).content_length, Some(6));
    assert_eq!(log.head_of(2).bytes.raw, 10 + 15 + 10);
    assert_eq!((log.body_of(1), log.body_of(2)), (b"nothing".to_vec(), b"abcdef".to_vec()));
    assert!(log.has_ended(1) && log.has_ended(2));
    assert_eq!(http.available_requests(), 100);
    let acknowledged = frames_of(kind::SETTINGS, &sent);
    assert_eq!(acknowledged.last().unwrap().0.flags, flag::ACK);
}

#[test]
fn padding_priority_continuation_and_trailers_are_read() {
    let mut script = Script::new();
    let block = script.block(&[(":status", "200"), ("content-length", "3"), ("x-a", "some value")]);
    let (first, rest) = block.split_at(2);
    let (second, third) = rest.split_at(3);
    let padded = [&[4, 0x80, 0, 0, 0, 9][..], first, &[0; 4]].concat();
    let wire = padded.len() + second.len() + third.len() + 4 * 9;
    let script = script
        .frame(kind::HEADERS, flag::PADDED | flag::PRIORITY, 1, &padded)
        .frame(kind::CONTINUATION, 0, 1, second)
        .frame(kind::CONTINUATION, 0, 1, &[])
        .frame(kind::CONTINUATION, flag::END_HEADERS, 1, third)
        .frame(kind::PRIORITY, 0, 1, &[0, 0, 0, 0, 7])
        .frame(kind::DATA, flag::PADDED, 1, b"\x05abc\0\0\0\0\0")
        .frame(kind::DATA, flag::PADDED, 1, b"\0")
        .frame(0xfa, 0xff, 1, b"unknown frames are skipped")
        .headers(1, true, &[("x-sum", "1")])
        .frame(kind::DATA, flag::PADDED | flag::END_STREAM, 3, b"\x00");
    let (_, log, _) = answered(&script);
    assert_eq!(log.body_of(1), b"abc");
    assert!(log.has_ended(1));
    assert_eq!(log.head_of(1).bytes.wire as usize, wire);
    assert!(log.failure_of(2).1.contains("DATA before"), "{:?}", log.failure_of(2));
}

#[test]
fn head_204_and_304_have_no_body_whatever_they_announce() {
    let script = Script::new()
        .headers(1, true, &[(":status", "200"), ("content-length", "5")])
        .headers(3, false, &[(":status", "304"), ("content-length", "5")])
        .data(3, true, b"");
    let (_, log, _) = run(&[request("HEAD", "/", b""), get("/b")], &script.bytes, &[usize::MAX]);
    assert!(log.has_ended(1) && log.has_ended(2), "{:?}", log.0);
    let script = Script::new().headers(1, false, &[(":status", "200")]).data(1, true, b"x");
    let (_, log, _) = run(&[request("HEAD", "/", b"")], &script.bytes, &[usize::MAX]);
    assert_eq!(log.failure_of(1).0, FailureKind::WrongLength);
}

/// Scripts that make stream 1 fail and nothing else: kind, part of the reason, code of the reset that is
/// sent.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn stream_failures() -> Vec<(&'static str, Script, FailureKind, &'static str, Option<ErrorCode>)> {
    use FailureKind::{Limit, Protocol, Reset, WrongLength};
    let error = Some(ErrorCode::PROTOCOL_ERROR);
    let bad = |fields: &[(&str, &str)]| Script::new().headers(1, false, fields);
    let large = "x".repeat(1500);
    let flood = (0..4).fold(Script::new(), |script, _| script.headers(1, false, &[(":status", "103")]));
    vec![
        ("upper case", bad(&[(":status", "200"), ("X-Upper", "1")]), Protocol, "PROTOCOL_ERROR", error),
        ("no status", bad(&[("server", "x")]), Protocol, "no :status", error),
        ("status behind", bad(&[("server", "x"), (":status", "200")]), Protocol, "after a regular", error),
        (
            "status twice",
            bad(&[(":status", "200"), (":status", "200")]),
            Protocol,
            "duplicate :status",
            error,
        ),
        ("status 101", bad(&[(":status", "101")]), Protocol, "101", error),
        ("bad status", bad(&[(":status", "2000")]), Protocol, ":status that is not", error),
        (
            "request pseudo field",
            bad(&[(":status", "200"), (":path", "/")]),
            Protocol,
            "pseudo-header",
            error,
        ),
        (
            "connection field",
            bad(&[(":status", "200"), ("connection", "close")]),
            Protocol,
            "connection-spec",
            error,
        ),
        ("CR in a value", bad(&[(":status", "200"), ("x", "a\rb")]), Protocol, "CR", error),
        (
            "two lengths",
            bad(&[(":status", "200"), ("content-length", "1"), ("content-length", "2")]),
            Protocol,
            "second content-length",
            error,
        ),
        (
            "end in 1xx",
            Script::new().headers(1, true, &[(":status", "103")]),
            Protocol,
            "informational",
            error,
        ),
        ("DATA first", Script::new().data(1, false, b"x"), Protocol, "before the response's HEADERS", error),
        (
            "empty DATA first",
            Script::new().data(1, true, b""),
            Protocol,
            "before the response's HEADERS",
            error,
        ),
        (
            "body too long",
            bad(&[(":status", "200"), ("content-length", "1")]).data(1, false, b"ab"),
            WrongLength,
            "exceeds",
            error,
        ),
        (
            "body too short",
            bad(&[(":status", "200"), ("content-length", "3")]).data(1, true, b"ab"),
            WrongLength,
            "1 bytes short",
            error,
        ),
        (
            "no body at all",
            Script::new().headers(1, true, &[(":status", "200"), ("content-length", "3")]),
            WrongLength,
            "3 bytes short",
            error,
        ),
        (
            "trailers without end",
            bad(OK).headers(1, false, &[("x", "1")]),
            Protocol,
            "without END_STREAM",
            error,
        ),
        ("status in trailers", bad(OK).headers(1, true, OK), Protocol, "trailers", error),
        ("window update by 0", bad(OK).window(1, 0), Protocol, "by 0", error),
        (
            "window too large",
            bad(OK).window(1, 0x7fff_ffff),
            Protocol,
            "FLOW_CONTROL_ERROR",
            Some(ErrorCode::FLOW_CONTROL_ERROR),
        ),
        (
            "large list",
            bad(&[(":status", "200"), ("x", &large), ("y", &large)]),
            Limit,
            "limit 2000",
            Some(ErrorCode::CANCEL),
        ),
        ("informational flood", flood, Limit, "ENHANCE_YOUR_CALM", Some(ErrorCode::ENHANCE_YOUR_CALM)),
        ("reset", bad(OK).reset(1, ErrorCode(2)), Reset, "INTERNAL_ERROR", None),
        ("refused", Script::new().reset(1, ErrorCode::REFUSED_STREAM), Reset, "sent again", None),
    ]
}

#[test]
fn a_bad_response_fails_alone_in_any_pieces() {
    for (name, script, kind, part, code) in stream_failures() {
        // More frames for the stream that was reset, then the other response: the connection lives.
        let script = match code {
            Some(_) => script.data(1, false, b"late").headers(1, true, &[("late", "1")]),
            None => script,
        };
        let script = script.headers(3, false, &[(":status", "200"), ("late", "1")]).data(3, true, b"fine");
        let (http, log, sent) = answered(&script);
        let (found, reason) = log.failure_of(1);
        assert_eq!(found, kind, "{name}: {reason}");
        assert!(reason.contains(part), "{name}: {reason}");
        assert_eq!(log.body_of(2), b"fine", "{name}");
        assert!(log.has_ended(2) && !http.is_closed(), "{name}");
        let resets = frames_of(kind::RST_STREAM, &sent);
        let codes: Vec<&[u8]> = resets.iter().map(|(_, payload)| payload.as_slice()).collect();
        let expected: Vec<[u8; 4]> = code.iter().map(|code| code.0.to_be_bytes()).collect();
        assert_eq!(codes, expected, "{name}");
    }
}

/// Scripts that break the connection: kind, and what the reason must name.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn connection_failures() -> Vec<(&'static str, Script, FailureKind, &'static str, &'static str)> {
    use FailureKind::{Limit, Protocol, WrongVersion};
    let new = Script::new;
    let begun = || new().headers(1, false, OK);
    let many = |count, kind, flags, payload: &[u8]| {
        (0..count).fold(new(), |script, _| script.frame(kind, flags, 0, payload))
    };
    let mut http1 = Script::bare();
    http1.bytes = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    let continuation = |count: usize, payload: &[u8]| {
        (0..count).fold(new().frame(kind::HEADERS, 0, 1, &[]), |script, _| {
            script.frame(kind::CONTINUATION, 0, 1, payload)
        })
    };
    let resets = (0..101).fold(new().reset(1, ErrorCode(2)), |script, _| script.reset(1, ErrorCode(2)));
    let large_table = new().frame(kind::HEADERS, flag::END_HEADERS, 1, &[0x3f, 0xe2, 0xff, 0x03]);
    vec![
        ("HTTP/1 answer", http1, WrongVersion, "HTTP/1", "PROTOCOL_ERROR"),
        (
            "no SETTINGS first",
            Script::bare().frame(kind::PING, 0, 0, &[0; 8]),
            Protocol,
            "first frame",
            "PROTOCOL_ERROR",
        ),
        (
            "acknowledgement first",
            Script::bare().frame(kind::SETTINGS, flag::ACK, 0, &[]),
            Protocol,
            "first frame",
            "PROTOCOL_ERROR",
        ),
        (
            "frame too large",
            new().frame(kind::DATA, 0, 1, &[0; 16_385]),
            Protocol,
            "16385",
            "FRAME_SIZE_ERROR",
        ),
        (
            "push",
            new().frame(kind::PUSH_PROMISE, flag::END_HEADERS, 1, &[0, 0, 0, 2, 0x82]),
            Protocol,
            "PUSH_PROMISE",
            "PROTOCOL_ERROR",
        ),
        ("push setting", new().settings(&[(2, 1)]), Protocol, "ENABLE_PUSH", "PROTOCOL_ERROR"),
        (
            "window setting",
            new().settings(&[(4, 0x8000_0000)]),
            Protocol,
            "INITIAL_WINDOW_SIZE",
            "FLOW_CONTROL_ERROR",
        ),
        ("frame size setting", new().settings(&[(5, 16_383)]), Protocol, "MAX_FRAME_SIZE", "PROTOCOL_ERROR"),
        (
            "frame size setting 2",
            new().settings(&[(5, 1 << 24)]),
            Protocol,
            "MAX_FRAME_SIZE",
            "PROTOCOL_ERROR",
        ),
        (
            "settings length",
            new().frame(kind::SETTINGS, 0, 0, &[0; 5]),
            Protocol,
            "SETTINGS",
            "FRAME_SIZE_ERROR",
        ),
        ("settings stream", new().frame(kind::SETTINGS, 0, 1, &[]), Protocol, "SETTINGS", "PROTOCOL_ERROR"),
        (
            "acknowledgement length",
            new().frame(kind::SETTINGS, flag::ACK, 0, &[0; 6]),
            Protocol,
            "SETTINGS",
            "FRAME_SIZE_ERROR",
        ),
        ("ping length", new().frame(kind::PING, 0, 0, &[0; 7]), Protocol, "PING", "FRAME_SIZE_ERROR"),
        ("ping stream", new().frame(kind::PING, 0, 1, &[0; 8]), Protocol, "PING", "PROTOCOL_ERROR"),
        ("goaway length", new().frame(kind::GOAWAY, 0, 0, &[0; 7]), Protocol, "GOAWAY", "FRAME_SIZE_ERROR"),
        ("goaway stream", new().frame(kind::GOAWAY, 0, 1, &[0; 8]), Protocol, "GOAWAY", "PROTOCOL_ERROR"),
        (
            "reset length",
            new().frame(kind::RST_STREAM, 0, 1, &[0; 3]),
            Protocol,
            "RST_STREAM",
            "FRAME_SIZE_ERROR",
        ),
        ("reset of an idle stream", new().reset(5, ErrorCode(8)), Protocol, "idle stream", "PROTOCOL_ERROR"),
        ("reset of stream 0", new().reset(0, ErrorCode(8)), Protocol, "idle stream", "PROTOCOL_ERROR"),
        (
            "priority length",
            new().frame(kind::PRIORITY, 0, 1, &[0; 4]),
            Protocol,
            "PRIORITY",
            "FRAME_SIZE_ERROR",
        ),
        (
            "priority stream",
            new().frame(kind::PRIORITY, 0, 0, &[0; 5]),
            Protocol,
            "PRIORITY",
            "PROTOCOL_ERROR",
        ),
        (
            "window update length",
            new().frame(kind::WINDOW_UPDATE, 0, 0, &[0; 5]),
            Protocol,
            "WINDOW_UPDATE",
            "FRAME_SIZE_ERROR",
        ),
        ("window update by 0", new().window(0, 0), Protocol, "by 0", "PROTOCOL_ERROR"),
        ("window too large", new().window(0, 0x7fff_ffff), Protocol, "2147483647", "FLOW_CONTROL_ERROR"),
        ("window of an idle stream", new().window(5, 1), Protocol, "idle stream", "PROTOCOL_ERROR"),
        (
            "settings lift a window",
            new().window(1, 0x7fff_0000 - 65_535).settings(&[(4, 0x0002_0000)]),
            Protocol,
            "stream 1",
            "FLOW_CONTROL_ERROR",
        ),
        ("headers on an idle stream", new().headers(5, true, OK), Protocol, "idle stream", "PROTOCOL_ERROR"),
        ("headers on an even stream", new().headers(2, true, OK), Protocol, "idle stream", "PROTOCOL_ERROR"),
        ("data on an idle stream", new().data(5, true, b"x"), Protocol, "idle stream", "PROTOCOL_ERROR"),
        ("data on stream 0", new().data(0, true, b"x"), Protocol, "idle stream", "PROTOCOL_ERROR"),
        (
            "data behind the end",
            new().headers(1, true, OK).data(1, true, b"x"),
            Protocol,
            "has ended",
            "STREAM_CLOSED",
        ),
        (
            "headers behind the end",
            new().headers(1, true, OK).headers(1, true, OK),
            Protocol,
            "has ended",
            "STREAM_CLOSED",
        ),
        (
            "padding of data",
            begun().frame(kind::DATA, flag::PADDED, 1, b"\x04abc"),
            Protocol,
            "padding",
            "PROTOCOL_ERROR",
        ),
        (
            "padding without a byte",
            begun().frame(kind::DATA, flag::PADDED, 1, b""),
            Protocol,
            "DATA",
            "FRAME_SIZE_ERROR",
        ),
        (
            "padding of headers",
            new().frame(kind::HEADERS, flag::PADDED | flag::END_HEADERS, 1, b"\x02\x88"),
            Protocol,
            "padding",
            "PROTOCOL_ERROR",
        ),
        (
            "priority cut",
            new().frame(kind::HEADERS, flag::PRIORITY | flag::END_HEADERS, 1, &[0; 4]),
            Protocol,
            "HEADERS",
            "FRAME_SIZE_ERROR",
        ),
        (
            "continuation alone",
            new().frame(kind::CONTINUATION, flag::END_HEADERS, 1, b"\x88"),
            Protocol,
            "CONTINUATION",
            "PROTOCOL_ERROR",
        ),
        (
            "frame inside a block",
            new().frame(kind::HEADERS, 0, 1, b"\x88").frame(kind::PING, 0, 0, &[0; 8]),
            Protocol,
            "inside the header block",
            "PROTOCOL_ERROR",
        ),
        (
            "other stream in a block",
            new().frame(kind::HEADERS, 0, 1, b"\x88").frame(kind::CONTINUATION, 4, 3, b"\x88"),
            Protocol,
            "inside the header block",
            "PROTOCOL_ERROR",
        ),
        (
            "bad index",
            new().frame(kind::HEADERS, flag::END_HEADERS, 1, &[0xff, 0x7f]),
            Protocol,
            "index",
            "COMPRESSION_ERROR",
        ),
        (
            "bad string",
            new().frame(kind::HEADERS, flag::END_HEADERS, 1, &[0x40, 0x82, 0xff, 0xff]),
            Protocol,
            "Huffman",
            "COMPRESSION_ERROR",
        ),
        ("table too large", large_table, Protocol, "table size", "COMPRESSION_ERROR"),
        ("continuation flood", continuation(20, &[]), Limit, "20 frames", "ENHANCE_YOUR_CALM"),
        ("continuation bytes", continuation(4, &[0x88; 1000]), Limit, "3000 bytes", "ENHANCE_YOUR_CALM"),
        ("ping flood", many(59, kind::PING, 0, &[0; 8]), Limit, "replies", "ENHANCE_YOUR_CALM"),
        ("settings flood", many(99, kind::SETTINGS, 0, &[]), Limit, "", "ENHANCE_YOUR_CALM"),
        (
            "acknowledgement flood",
            many(101, kind::PING, flag::ACK, &[0; 8]),
            Limit,
            "100 consecutive frames",
            "ENHANCE_YOUR_CALM",
        ),
        ("unknown flood", many(101, 0xee, 0, &[]), Limit, "100 consecutive frames", "ENHANCE_YOUR_CALM"),
        (
            "empty data flood",
            (0..101).fold(begun(), |script, _| script.data(1, false, b"")),
            Limit,
            "100 consecutive frames",
            "ENHANCE_YOUR_CALM",
        ),
        ("reset flood", resets, Limit, "100 consecutive frames", "ENHANCE_YOUR_CALM"),
        (
            "window update flood",
            (0..101).fold(new(), |script, _| script.window(0, 1)),
            Limit,
            "100 consecutive frames",
            "ENHANCE_YOUR_CALM",
        ),
    ]
}

#[test]
fn a_hostile_server_ends_the_connection_by_name_in_any_pieces() {
    for (name, script, kind, part, code) in connection_failures() {
        let (http, log, sent) = answered(&script);
        let (found, reason) = log.closed_failure();
        assert_eq!(found, kind, "{name}: {reason}");
        assert!(reason.contains(part) && reason.starts_with(code), "{name}: {reason}");
        assert!(http.is_closed() && http.available_requests() == 0, "{name}");
        let last = frames(&sent).pop().unwrap();
        assert_eq!(last.0.kind, kind::GOAWAY, "{name}");
        let ended =
            log.0.iter().filter(|seen| matches!(seen, LoggedEvent::End(_) | LoggedEvent::Failed(..))).count();
        assert_eq!(ended, 2, "{name}: both requests have their last event: {:?}", log.0);
    }
}

#[test]
fn windows_are_opened_again_when_half_is_used() {
    let pins =
        Http2Pins { stream_window_bytes: 100_000, connection_window_bytes: 150_000, ..Http2Pins::default() };
    let fill = |stream, count| {
        (0..count)
            .fold(Script::new().headers(1, false, OK), |script, _| script.data(stream, false, &[0; 10_000]))
    };
    let mut http = open(&pins, &[get("/a"), get("/b")]);
    output(&mut http);
    let mut log = Log::default();
    deliver(&mut http, &fill(1, 4).bytes, &[usize::MAX], &mut log);
    assert_eq!(frames_of(kind::WINDOW_UPDATE, &output(&mut http)), [], "less than half is used");
    assert_eq!(log.body_of(1).len(), 40_000);
    let more = Script::bare().data(1, false, &[0; 10_000]);
    deliver(&mut http, &more.bytes, &[usize::MAX], &mut log);
    let updates = frames_of(kind::WINDOW_UPDATE, &output(&mut http));
    assert_eq!(
        updates,
        [(
            FrameHeader { length: 4, kind: kind::WINDOW_UPDATE, flags: 0, stream: 1 },
            50_000u32.to_be_bytes().to_vec()
        )]
    );
    let more = (0..3).fold(Script::bare(), |script, _| script.data(1, false, &[0; 10_000]));
    deliver(&mut http, &more.bytes, &[usize::MAX], &mut log);
    let updates = frames_of(kind::WINDOW_UPDATE, &output(&mut http));
    assert_eq!(updates.len(), 1);
    assert_eq!((updates[0].0.stream, updates[0].1.as_slice()), (0, &80_000u32.to_be_bytes()[..]));
}

/// A frame as large as the window is taken, one byte more is not.
#[test]
fn beyond_a_stream_window_the_stream_fails_and_beyond_the_connections_all() {
    let pins = Http2Pins { stream_window_bytes: 10, connection_window_bytes: 65_535, ..Http2Pins::default() };
    let mut http = open(&pins, &[get("/a"), get("/b")]);
    let mut log = Log::default();
    let script = Script::new().headers(1, false, OK).data(1, false, &[1; 10]).data(1, false, &[2; 11]);
    deliver(&mut http, &script.bytes, &[usize::MAX], &mut log);
    let (kind, reason) = log.failure_of(1);
    assert_eq!(kind, FailureKind::Protocol);
    assert!(reason.starts_with("FLOW_CONTROL_ERROR"), "{reason}");
    assert!(!http.is_closed());
    let pins =
        Http2Pins { max_frame_bytes: 1 << 20, connection_window_bytes: 70_000, ..Http2Pins::default() };
    let mut http = open(&pins, &[get("/a"), get("/b")]);
    let script = Script::new().headers(1, false, OK).data(1, false, &[1; 70_001]);
    let mut log = Log::default();
    deliver(&mut http, &script.bytes, &[usize::MAX], &mut log);
    let (kind, reason) = log.closed_failure();
    assert_eq!(kind, FailureKind::Protocol);
    assert!(reason.starts_with("FLOW_CONTROL_ERROR") && reason.contains("70000"), "{reason}");
}

/// Bytes of DATA sent for each stream.
fn sent_data(sent: &[u8]) -> Vec<(u32, usize, bool)> {
    let data = frames_of(kind::DATA, sent);
    data.iter()
        .map(|(header, payload)| (header.stream, payload.len(), header.has(flag::END_STREAM)))
        .collect()
}

#[test]
fn request_bodies_keep_to_the_peers_windows_as_they_change() {
    let mut http =
        open(&Http2Pins::default(), &[request("POST", "/a", &[1; 70_000]), request("POST", "/b", &[2; 10])]);
    let mut log = Log::default();
    let sent = output(&mut http);
    let total: usize = sent_data(&sent).iter().map(|(_, length, _)| length).sum();
    assert_eq!(total, 65_535, "the connection's window");
    assert!(sent_data(&sent).contains(&(3, 10, true)));
    // The stream's window falls below nothing: 65525 are sent, 1000 allowed.
    deliver(&mut http, &Script::new().settings(&[(4, 1000)]).window(0, 100_000).bytes, &[1], &mut log);
    assert_eq!(sent_data(&output(&mut http)), []);
    deliver(&mut http, &Script::bare().window(1, 64_525).bytes, &[1], &mut log);
    assert_eq!(sent_data(&output(&mut http)), [], "the window is 0 now");
    deliver(&mut http, &Script::bare().window(1, 5).bytes, &[1], &mut log);
    assert_eq!(sent_data(&output(&mut http)), [(1, 5, false)]);
    deliver(&mut http, &Script::bare().settings(&[(4, 10_000)]).bytes, &[1], &mut log);
    assert_eq!(sent_data(&output(&mut http)), [(1, 4470, true)]);
    assert_eq!(log.0, []);
}

#[test]
fn an_early_answer_does_not_cut_the_request_short() {
    let mut http = open(&Http2Pins::default(), &[request("POST", "/a", &[1; 70_000])]);
    let mut log = Log::default();
    output(&mut http);
    deliver(&mut http, &Script::new().headers(1, true, OK).bytes, &[1], &mut log);
    assert!(log.has_ended(1));
    assert_eq!(http.available_requests(), 99, "the stream is still half open");
    deliver(&mut http, &Script::bare().window(1, 9999).window(0, 9999).bytes, &[1], &mut log);
    assert_eq!(sent_data(&output(&mut http)), [(1, 4465, true)]);
    assert_eq!(http.available_requests(), 100);
    // Or the server does not want the rest: RFC 9113, section 8.1.
    let mut http = open(&Http2Pins::default(), &[request("POST", "/a", &[1; 70_000])]);
    let mut log = Log::default();
    let script = Script::new().headers(1, true, OK).reset(1, ErrorCode::NO_ERROR);
    deliver(&mut http, &script.bytes, &[1], &mut log);
    assert!(log.has_ended(1) && log.0.len() == 2, "{:?}", log.0);
    assert_eq!(http.available_requests(), 100);
    assert_eq!(sent_data(&output(&mut http)), []);
}

#[test]
fn goaway_fails_what_was_not_processed_and_waits_for_the_rest() {
    let script =
        Script::new().headers(1, false, OK).goaway(1, ErrorCode::NO_ERROR, "bye").data(1, true, b"rest");
    let (http, log, _) = answered(&script);
    let (kind, reason) = log.failure_of(2);
    assert_eq!(kind, FailureKind::Closed);
    assert!(reason.contains("GOAWAY NO_ERROR (\"bye\")") && reason.contains("sent again"), "{reason}");
    assert_eq!(log.body_of(1), b"rest");
    assert_eq!(log.0[log.0.len() - 2..], [LoggedEvent::End(1), LoggedEvent::Closed(Outcome::Ok)]);
    assert!(http.is_closed());
    // With an error, mid-body, and the end of the stream behind it.
    let script = Script::new().headers(1, false, OK).goaway(1, ErrorCode(2), "").data(1, false, b"re");
    let (mut http, mut log, _) = run(&[get("/a"), get("/b")], &script.bytes, &[usize::MAX]);
    assert_eq!(http.available_requests(), 0);
    assert_eq!(http.send_request(9, &get("/c")), Err(NotNow));
    http.handle_end(&mut |event| log.take(event));
    let (kind, reason) = log.failure_of(1);
    assert_eq!(kind, FailureKind::Closed);
    assert!(reason.contains("GOAWAY INTERNAL_ERROR"), "{reason}");
    // A warning first, the true last stream later.
    let script = Script::new().goaway(0x7fff_ffff, ErrorCode::NO_ERROR, "").headers(3, true, OK).goaway(
        0,
        ErrorCode::NO_ERROR,
        "",
    );
    let (_, log, _) = answered(&script);
    assert!(log.has_ended(2));
    assert_eq!(log.failure_of(1).0, FailureKind::Closed);
    assert_eq!(log.closed_with(), &Outcome::Ok);
}

#[test]
fn settings_limit_the_requests_in_flight() {
    let mut http = open(&Http2Pins::default(), &[get("/a"), get("/b")]);
    let mut log = Log::default();
    assert_eq!(http.available_requests(), 98);
    deliver(&mut http, &Script::new().settings(&[(3, 3)]).bytes, &[1], &mut log);
    assert_eq!(http.available_requests(), 1);
    http.send_request(3, &get("/c")).unwrap();
    assert_eq!(http.send_request(4, &get("/d")), Err(NotNow));
    deliver(&mut http, &Script::bare().settings(&[(3, 0)]).headers(1, true, OK).bytes, &[1], &mut log);
    assert_eq!(http.available_requests(), 0);
    deliver(&mut http, &Script::bare().settings(&[(3, 100_000)]).bytes, &[1], &mut log);
    assert_eq!(http.available_requests(), 4096 - 2);
}

#[test]
fn identifiers_run_out() {
    let mut http = Http2::new(&Http2Pins::default(), Limits::default());
    http.skip_streams_to(0x7fff_fffd);
    http.start();
    assert_eq!(http.available_requests(), 2);
    http.send_request(1, &get("/")).unwrap();
    http.send_request(2, &get("/")).unwrap();
    assert_eq!((http.available_requests(), http.send_request(3, &get("/"))), (0, Err(NotNow)));
    let sent = frames_of(kind::HEADERS, &output(&mut http));
    assert_eq!(sent.iter().map(|(header, _)| header.stream).collect::<Vec<_>>(), [0x7fff_fffd, 0x7fff_ffff]);
}

/// An old stream stays open while many come and go; identifiers whose place it holds are skipped.
#[test]
fn one_stream_outlives_a_thousand() {
    let mut http = open(&Http2Pins::default(), &[get("/old")]);
    let mut log = Log::default();
    deliver(&mut http, &Script::new().bytes, &[usize::MAX], &mut log);
    let mut last = 1;
    for id in 2..1000 {
        output(&mut http);
        http.send_request(id, &get("/new")).unwrap();
        let sent = frames_of(kind::HEADERS, &output(&mut http));
        let stream = sent[0].0.stream;
        assert!(stream > last && stream % 2 == 1);
        last = stream;
        deliver(&mut http, &Script::bare().headers(stream, true, OK).bytes, &[usize::MAX], &mut log);
        assert!(log.has_ended(id));
    }
    deliver(&mut http, &Script::bare().headers(1, true, OK).bytes, &[usize::MAX], &mut log);
    assert!(log.has_ended(1));
}

#[test]
fn requests_are_compressed_and_repeated_blocks_copied() {
    let mut http = open(&Http2Pins::default(), &[]);
    output(&mut http);
    let mut decoder = Decoder::new(65_536);
    let mut sizes = Vec::new();
    for id in 0..6 {
        sizes.push(http.send_request(id, &get("/path")).unwrap());
        let sent = frames(&output(&mut http));
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        decoder.decode(&sent[0].1, |field| fields.push(text(field.name) + "=" + &text(field.value))).unwrap();
        let expected = [
            ":method=GET",
            ":authority=example.test",
            ":scheme=http",
            ":path=/path",
            "accept=*/*",
            "user-agent=h123",
        ];
        assert_eq!(fields, expected);
        assert_eq!(sizes[sizes.len() - 1].wire, sent[0].0.length + 9);
        if id == 3 {
            // The peer shrinks its table: kept blocks are wrong from now on.
            let mut log = Log::default();
            deliver(&mut http, &Script::new().settings(&[(1, 0)]).bytes, &[1], &mut log);
            output(&mut http);
        }
    }
    assert!(sizes[1].wire < sizes[0].wire && sizes[1] == sizes[2] && sizes[2] == sizes[3], "{sizes:?}");
    assert!(sizes[4].wire > sizes[3].wire && sizes[5].wire >= sizes[4].wire - 1, "{sizes:?}");
    assert!(sizes.iter().all(|size| size.raw == sizes[0].raw));
}

/// A field that varies stands behind the repeated block, is different each time, and enters no table.
#[test]
fn a_field_that_varies_costs_its_own_bytes_alone() {
    let mut http = open(&Http2Pins::default(), &[]);
    let mut decoder = Decoder::new(65_536);
    let mut sizes = Vec::new();
    let ids = [None, None, Some("0-1"), Some("0-2"), None, Some("0-1")];
    for (number, id) in (0..).zip(ids) {
        let request = id.map_or_else(|| get("/path"), |id| varied(get("/path"), id));
        output(&mut http);
        sizes.push(http.send_request(number, &request).unwrap());
        let sent = frames(&output(&mut http));
        let mut last = (Vec::new(), Vec::new());
        let mut fields = 0;
        let take = |field: engine::h2::hpack::Field<'_>| {
            fields += 1;
            last = (field.name.to_vec(), field.value.to_vec());
        };
        decoder.decode(&sent[0].1, take).unwrap();
        let expected = id.map_or(("user-agent", "h123"), |id| ("x-request-id", id));
        assert_eq!((last.0.as_slice(), last.1.as_slice()), (expected.0.as_bytes(), expected.1.as_bytes()));
        assert_eq!(fields, 6 + u32::from(id.is_some()));
        assert_eq!(sizes[sizes.len() - 1].wire, sent[0].0.length + 9);
    }
    assert_eq!(sizes[2], sizes[3]);
    assert_eq!((sizes[1], sizes[2]), (sizes[4], sizes[5]), "nothing was learnt");
    assert_eq!(sizes[2].raw, sizes[1].raw + 12 + 3);
    assert!(sizes[2].wire > sizes[1].wire && sizes[2].wire <= sizes[1].wire + 3 + 12 + 3, "{sizes:?}");
}

#[test]
fn equal_blocks_are_decoded_with_the_current_table() {
    let requests: Vec<Request> = (0..5).map(|_| get("/a")).collect();
    // `content-length` enters the table as 3, later as 5; 0xbe is its newest entry.
    let (first, again, other) = (&b"\x88\x5c\x013"[..], &b"\x88\xbe"[..], &b"\x88\x5c\x015"[..]);
    let mut script = Script::new();
    for (stream, block, body) in
        [(1, first, "abc"), (3, again, "abc"), (5, again, "abc"), (7, other, "abcde"), (9, again, "abcde")]
    {
        script =
            script.frame(kind::HEADERS, flag::END_HEADERS, stream, block).data(stream, true, body.as_bytes());
    }
    let (_, log, _) = run(&requests, &script.bytes, &[usize::MAX]);
    let lengths: Vec<Option<u64>> = (1..=5).map(|id| log.head_of(id).content_length).collect();
    assert_eq!(lengths, [Some(3), Some(3), Some(3), Some(5), Some(5)]);
    assert!((1..=5).all(|id| log.has_ended(id)), "{:?}", log.0);
}

#[test]
fn long_requests_are_continued() {
    let mut long = get("/long");
    long.fields.push(("x-long".to_owned(), "\u{1}".repeat(20_000)));
    let mut http = open(&Http2Pins::default(), &[long]);
    let sent = frames(&output(&mut http));
    let (first, second) = (&sent[2].0, &sent[3].0);
    assert_eq!((first.kind, first.flags, first.length), (kind::HEADERS, flag::END_STREAM, 16_384));
    assert_eq!((second.kind, second.flags, second.stream), (kind::CONTINUATION, flag::END_HEADERS, 1));
}

#[test]
fn body_pieces_are_slices_of_the_input() {
    let mut http = open(&Http2Pins::default(), &[get("/a")]);
    let input = Script::new()
        .headers(1, false, OK)
        .frame(kind::DATA, flag::PADDED, 1, b"\x01abc\0")
        .data(1, true, b"de")
        .bytes;
    let mut pieces = 0;
    http.handle_bytes(&input, &mut |event| {
        if let Event::Data { bytes, .. } = event {
            assert!(input.as_ptr_range().contains(&bytes.as_ptr()));
            pieces += 1;
        }
    });
    assert_eq!(pieces, 2);
}

#[test]
fn pings_are_answered_with_their_own_bytes() {
    let (_, _, sent) = answered(&Script::new().frame(kind::PING, 0, 0, b"12345678"));
    let pings = frames_of(kind::PING, &sent);
    assert_eq!(
        pings,
        [(FrameHeader { length: 8, kind: kind::PING, flags: flag::ACK, stream: 0 }, b"12345678".to_vec())]
    );
}

#[test]
fn what_is_given_up_is_reset_and_forgotten() {
    let mut http = open(&Http2Pins::default(), &[get("/a"), get("/b")]);
    let mut log = Log::default();
    let before = Script::new().headers(1, false, &[(":status", "200"), ("x", "1")]);
    let hpack = before.hpack;
    // Given up in the middle of a DATA frame.
    let data = Script::bare().data(1, false, b"abcdef").bytes;
    deliver(&mut http, &[&before.bytes, &data[..12]].concat(), &[usize::MAX], &mut log);
    http.cancel(1);
    let sent = frames_of(kind::RST_STREAM, &output(&mut http));
    assert_eq!((sent[0].0.stream, sent[0].1.as_slice()), (1, &ErrorCode::CANCEL.0.to_be_bytes()[..]));
    let events = log.0.len();
    let script = Script { bytes: data[12..].to_vec(), hpack };
    let script = script.data(1, false, b"more").headers(1, true, &[("x", "2")]).headers(
        3,
        true,
        &[(":status", "200"), ("x", "2")],
    );
    deliver(&mut http, &script.bytes, &[1], &mut log);
    assert_eq!(log.0.len(), events + 2, "{:?}", log.0);
    assert!(log.has_ended(2));
}

#[test]
fn the_streams_end_and_a_broken_stream_fail_what_is_open() {
    let (mut http, mut log, _) =
        run(&[get("/a"), get("/b")], &Script::new().headers(3, true, OK).bytes, &[1]);
    http.handle_end(&mut |event| log.take(event));
    let (kind, reason) = log.failure_of(1);
    assert_eq!((kind, reason.contains("without GOAWAY")), (FailureKind::Closed, true));
    let (mut http, mut log, _) = run(&[get("/a"), get("/b")], &Script::new().bytes, &[1]);
    http.handle_broken(broken(), &mut |event| log.take(event));
    assert_eq!(log.failure_of(1).0, FailureKind::Reset);
    assert_eq!(log.failure_of(2).0, FailureKind::Reset);
    assert_eq!(log.closed_with(), &Outcome::Failed(broken()));
    let (mut http, mut log, _) = run(&[], &Script::new().bytes, &[1]);
    http.handle_end(&mut |event| log.take(event));
    assert_eq!(log.0, [LoggedEvent::Closed(Outcome::Ok)]);
    http.handle_end(&mut |event| log.take(event));
    assert_eq!(log.0.len(), 1, "Closed is said once");
}

#[test]
fn close_sends_goaway_and_waits_for_the_responses() {
    let (mut http, mut log, _) = run(&[get("/a")], &Script::new().bytes, &[1]);
    http.close();
    assert_eq!(http.available_requests(), 0);
    assert!(!http.is_closed());
    assert_eq!(frames_of(kind::GOAWAY, &output(&mut http)).len(), 1);
    deliver(&mut http, &Script::bare().headers(1, true, OK).bytes, &[1], &mut log);
    assert_eq!(log.closed_with(), &Outcome::Ok);
    assert!(http.is_closed());
}

proptest! {
    #[test]
    fn pieces_never_matter(case in 0usize..1000, lengths in proptest::collection::vec(1usize..60, 1..20)) {
        let mut scripts: Vec<Script> = stream_failures().into_iter().map(|case| case.1).collect();
        scripts.extend(connection_failures().into_iter().map(|case| case.1));
        let script = &scripts[case % scripts.len()];
        let requests = [get("/a"), get("/b")];
        let (_, whole, whole_sent) = run(&requests, &script.bytes, &[usize::MAX]);
        let (_, pieces, sent) = run(&requests, &script.bytes, &lengths);
        prop_assert_eq!(pieces.0, whole.0);
        prop_assert_eq!(sent, whole_sent);
    }

    /// Frames of any kind with any payload: no panic, and every request has exactly one last event.
    #[test]
    fn any_frames_end_in_order(
        frames in proptest::collection::vec((0u8..11, any::<u8>(), 0u32..6, proptest::collection::vec(any::<u8>(), 0..40)), 0..30),
        lengths in proptest::collection::vec(1usize..60, 1..20),
    ) {
        let script = frames.iter().fold(Script::new(), |script, (kind, flags, stream, payload)| {
            script.frame(*kind, *flags, *stream, payload)
        });
        let (mut http, mut log, _) = run(&[get("/a"), request("POST", "/b", &[0; 100_000])], &script.bytes, &lengths);
        http.handle_end(&mut |event| log.take(event));
        for id in [1, 2] {
            let last = log.0.iter().filter(|seen| matches!(seen, LoggedEvent::End(other) | LoggedEvent::Failed(other, ..) if *other == id)).count();
            prop_assert_eq!(last, 1);
        }
        prop_assert_eq!(log.0.iter().filter(|seen| matches!(seen, LoggedEvent::Closed(_))).count(), 1);
    }
}
