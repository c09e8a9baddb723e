//! HTTP/1.1 against scripted servers.

use engine::h1::{Http1, Limits};
use engine::{Event, HeaderBytes, NotNow, Protocol};
use model::sample::FailureKind;
use model::{HttpVersion, Outcome};
use proptest::prelude::*;

use super::{Log, LoggedEvent, broken, deliver, get, output, request, varied};

/// One request with `method`, answered by `input` in pieces of `lengths`, then the stream's end where `end`.
fn run(method: &str, input: &[u8], end: bool, lengths: &[usize]) -> (Http1, Log) {
    let mut http = Http1::new(Limits { head_bytes: 400, fields: 12, informational: 3 });
    let mut log = Log::default();
    http.start();
    http.send_request(1, &request(method, "/", b"")).unwrap();
    output(&mut http);
    deliver(&mut http, input, lengths, &mut log);
    if end {
        http.handle_end(&mut |event| log.take(event));
    }
    (http, log)
}

/// What was seen. A beginning that is none of HTTP/1 is refused with its first piece, and quoted as far as it
/// came: the quotation is left out.
fn without_quotation(log: &Log) -> Vec<String> {
    let text = |seen| {
        let text = format!("{seen:?}");
        match (text.find("starts with "), text.find("; expected HTTP/1.1")) {
            (Some(start), Some(end)) => text[..start].to_owned() + &text[end..],
            _ => text,
        }
    };
    log.0.iter().map(text).collect()
}

/// The same in one piece, byte by byte and in odd pieces: always the same events.
#[track_caller]
fn answered(method: &str, input: &[u8], end: bool) -> Log {
    let (http, whole) = run(method, input, end, &[usize::MAX]);
    for lengths in [&[1][..], &[2], &[3, 1], &[7], &[16, 5]] {
        let (other, pieces) = run(method, input, end, lengths);
        assert_eq!(without_quotation(&pieces), without_quotation(&whole), "in pieces of {lengths:?}");
        assert_eq!(other.is_closed(), http.is_closed());
        assert_eq!(other.available_requests(), http.available_requests());
    }
    whole
}

/// Inputs that answer GET, each with what is to be seen of it.
const GOOD: [(&str, &[u8], u16, &str); 12] = [
    ("length", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello"),
    ("equal lengths", b"HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\nContent-Length:2\r\n\r\nhi", 200, "hi"),
    ("no reason", b"HTTP/1.1 404\r\ncontent-length:0\r\n\r\n", 404, ""),
    ("lone LF in the head", b"HTTP/1.1 200 OK\ncontent-length: 3\nx: y\n\nabc", 200, "abc"),
    ("204", b"HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
    ("304 with a length", b"HTTP/1.1 304 Not Modified\r\ncontent-length: 10\r\n\r\n", 304, ""),
    ("chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n4\r\nWiki\r\nA\r\npedia in c\r\n0\r\n\r\n", 200, "Wikipedia in c"),
    (
        "chunked, extensions and trailers",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0003;a=b\r\nabc\r\n2 ;x=\"y\"\r\nde\r\n000\r\nX-Sum: 1\r\nY: 2\r\n\r\n",
        200,
        "abcde",
    ),
    ("empty chunked", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 200, ""),
    ("folded field", b"HTTP/1.1 200 OK\r\nx-long: a\r\n  b\r\n\tc\r\ncontent-length: 1\r\n\r\n!", 200, "!"),
    ("informational", b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n!", 200, "!"),
    ("empty value", b"HTTP/1.1 200 OK\r\nx-empty:\r\ncontent-length: \t1 \r\n\r\n!", 200, "!"),
];

#[test]
fn good_responses_in_any_pieces() {
    for (name, input, status, body) in GOOD {
        let log = answered("GET", input, false);
        let head = log.head_of(1);
        assert_eq!((head.status, head.version), (status, HttpVersion::Http11), "{name}");
        assert_eq!(log.body_of(1), body.as_bytes(), "{name}");
        assert_eq!(log.0.last(), Some(&LoggedEvent::End(1)), "{name}: the connection lives on");
        assert_eq!(run("GET", input, false, &[usize::MAX]).0.available_requests(), 1, "{name}");
    }
}

/// Inputs that break the protocol or a limit: kind and a part of the reason.
const BAD: [(&str, &[u8], FailureKind, &str); 32] = [
    ("other protocol", b"SSH-2.0-OpenSSH_9.2\r\n\r\n", FailureKind::Protocol, "SSH-2.0"),
    ("HTTP/2 in text", b"HTTP/2 200 OK\r\n\r\n", FailureKind::Protocol, "HTTP/2 200"),
    ("HTTP/2", b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0", FailureKind::WrongVersion, "in HTTP/2"),
    ("a TLS alert", b"\x15\x03\x03\0\x02\x02\x32", FailureKind::WrongVersion, "in TLS"),
    ("a TLS handshake", b"\x16\x03\x01\0\x0a\n\n", FailureKind::WrongVersion, "in TLS"),
    ("status 600", b"HTTP/1.1 600 X\r\n\r\n", FailureKind::Protocol, "100 to 599"),
    ("status of two digits", b"HTTP/1.1 20 OK\r\n\r\n", FailureKind::Protocol, "100 to 599"),
    ("status of four digits", b"HTTP/1.1 2000 OK\r\n\r\n", FailureKind::Protocol, "100 to 599"),
    ("101", b"HTTP/1.1 101 Switching Protocols\r\n\r\n", FailureKind::Protocol, "101"),
    ("two lengths", b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab", FailureKind::Protocol, "two different content-lengths"),
    ("two lengths in a list", b"HTTP/1.1 200 OK\r\ncontent-length: 1, 2\r\n\r\nab", FailureKind::Protocol, "two different content-lengths"),
    ("signed length", b"HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\na", FailureKind::Protocol, "content-length"),
    ("huge length", b"HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551616\r\n\r\na", FailureKind::Protocol, "content-length"),
    ("length and chunked", b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", FailureKind::Protocol, "both transfer-encoding and content-length"),
    ("gzip, chunked", b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n", FailureKind::Protocol, "expected chunked"),
    ("chunked twice", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n", FailureKind::Protocol, "expected chunked"),
    ("chunked in HTTP/1.0", b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", FailureKind::Protocol, "HTTP/1.0"),
    ("space before the colon", b"HTTP/1.1 200 OK\r\ncontent-length : 1\r\n\r\na", FailureKind::Protocol, "not a field"),
    ("no colon", b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", FailureKind::Protocol, "not a field"),
    ("no name", b"HTTP/1.1 200 OK\r\n: 1\r\n\r\n", FailureKind::Protocol, "not a field"),
    ("lone CR", b"HTTP/1.1 200 OK\r\nx: a\rb\r\n\r\n", FailureKind::Protocol, "lone CR"),
    ("NUL", b"HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n", FailureKind::Protocol, "NUL"),
    ("fold before the first field", b"HTTP/1.1 200 OK\r\n x: a\r\n\r\n", FailureKind::Protocol, "before the first field"),
    ("folded length", b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n 0\r\n\r\n", FailureKind::Protocol, "folded"),
    ("chunk size", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", FailureKind::Protocol, "xyz"),
    ("chunk size with a lone LF", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n", FailureKind::Protocol, "CR LF"),
    ("huge chunk", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1000000000000000\r\n", FailureKind::Protocol, "1000000000000000"),
    ("chunk too long", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n", FailureKind::Protocol, "not followed by CR LF"),
    ("bad trailer", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nbad trailer\r\n\r\n", FailureKind::Protocol, "not a field"),
    ("many fields", b"HTTP/1.1 200 OK\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\n\r\n", FailureKind::Limit, "12 fields"),
    ("many trailers", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\na:1\r\n\r\n", FailureKind::Limit, "12 fields"),
    ("informational flood", b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.1 100 C\r\n\r\n", FailureKind::Limit, "informational"),
];

#[test]
fn bad_responses_are_refused_by_name_in_any_pieces() {
    for (name, input, kind, part) in BAD {
        let log = answered("GET", input, false);
        let (found, reason) = log.failure_of(1);
        assert_eq!(found, kind, "{name}: {reason}");
        assert!(reason.contains(part), "{name}: {reason}");
        assert_eq!(log.closed_failure(), (found, reason), "{name}");
        assert!(run("GET", input, false, &[usize::MAX]).0.is_closed(), "{name}");
    }
}

#[test]
fn a_head_without_end_hits_the_limit() {
    let input = [b"HTTP/1.1 200 OK\r\nx: ".as_slice(), &[b'a'; 1000]].concat();
    let log = answered("GET", &input, false);
    assert_eq!(log.failure_of(1).0, FailureKind::Limit);
    let lines =
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;".as_slice(), &[b'a'; 5000]].concat();
    let log = answered("GET", &lines, false);
    assert_eq!(log.failure_of(1).0, FailureKind::Limit);
}

#[test]
fn a_field_that_varies_is_the_last_of_a_repeated_head() {
    let mut http = Http1::new(Limits::default());
    http.start();
    let mut plain = HeaderBytes::default();
    for (id, value) in [(1, None), (2, Some("0-9")), (3, Some("0-10")), (4, None)] {
        let upload = request("POST", "/", b"body");
        let upload = value.map_or_else(|| upload.clone(), |value| varied(upload.clone(), value));
        let size = http.send_request(id, &upload).unwrap();
        let sent = String::from_utf8(output(&mut http)).unwrap();
        let (head, body) = sent.split_once("\r\n\r\n").unwrap();
        assert_eq!((head.len() + 4, body), (size.wire as usize, "body"));
        match value {
            None => {
                assert!(head.ends_with("content-length: 4"), "{head}");
                plain = size;
            }
            Some(value) => {
                assert!(head.ends_with(&format!("content-length: 4\r\nx-request-id: {value}")), "{head}");
                let name = "x-request-id".len() + value.len();
                let more = (size.raw - plain.raw, size.wire - plain.wire);
                assert_eq!((more.0 as usize, more.1 as usize), (name, name + ": \r\n".len()));
            }
        }
        deliver(&mut http, b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", &[64], &mut Log::default());
    }
}

#[test]
fn heads_are_measured_before_and_on_the_wire() {
    let input = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX:  ab \r\n\r\nhello";
    let head = answered("GET", input, false).head_of(1);
    assert_eq!(head.content_length, Some(5));
    let raw = ":status".len() + 3 + "content-length".len() + 1 + 1 + 2;
    assert_eq!((head.bytes.raw as usize, head.bytes.wire as usize), (raw, input.len() - 5));
}

#[test]
fn responses_to_head_have_no_body_despite_their_fields() {
    for framing in ["content-length: 5", "transfer-encoding: chunked", "x: y"] {
        let log = answered("HEAD", format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n").as_bytes(), false);
        assert!(log.has_ended(1), "{framing}");
        assert_eq!(log.body_of(1), b"");
    }
}

#[test]
fn a_body_without_length_runs_until_the_end() {
    let log = answered("GET", b"HTTP/1.1 200 OK\r\n\r\nuntil the end", true);
    assert_eq!(log.body_of(1), b"until the end");
    assert_eq!(log.0[log.0.len() - 2..], [LoggedEvent::End(1), LoggedEvent::Closed(Outcome::Ok)]);
}

#[test]
fn http_1_0_closes_unless_it_says_otherwise() {
    let log = answered("GET", b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", false);
    assert_eq!(log.head_of(1).version, HttpVersion::Http10);
    assert_eq!(log.closed_with(), &Outcome::Ok);
    let input = b"HTTP/1.0 200 OK\r\nconnection: Keep-Alive\r\ncontent-length: 2\r\n\r\nok";
    assert_eq!(answered("GET", input, false).0.last(), Some(&LoggedEvent::End(1)));
}

#[test]
fn connection_close_ends_the_connection_behind_the_response() {
    let input = b"HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\ncontent-length: 2\r\n\r\nok";
    let (mut http, log) = run("GET", input, false, &[usize::MAX]);
    assert_eq!(log.0[log.0.len() - 2..], [LoggedEvent::End(1), LoggedEvent::Closed(Outcome::Ok)]);
    assert!(http.is_closed());
    assert_eq!(http.send_request(2, &get("/")), Err(NotNow));
}

#[test]
fn an_early_end_reports_the_received_bytes() {
    let cases: [(&[u8], &str); 5] = [
        (b"", "before any byte of the response"),
        (b"HTTP/1.1 200 OK\r\ncontent-", "inside the response's head"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", "after 3 of 10 body bytes"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc", "after 3 body bytes"),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
            "before the last chunk's end",
        ),
    ];
    for (input, part) in cases {
        let log = answered("GET", input, true);
        let (kind, reason) = log.failure_of(1);
        assert_eq!(kind, FailureKind::Closed);
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn garbage_without_a_line_is_named_at_once_and_what_may_be_another_protocol_when_the_stream_ends() {
    for input in [b"220 mail".as_slice(), b"SSH", b"HTTP/2", b"\x15\x02\x03\0\x02", b"\0\0\x12\x05"] {
        assert_eq!(answered("GET", input, false).failure_of(1).0, FailureKind::Protocol);
    }
    for input in [b"\0".as_slice(), b"\0\0\x12", b"\x15", b"HTTP/1"] {
        assert!(!answered("GET", input, false).has_ended(1), "{}", input.escape_ascii());
    }
    for input in [b"\0".as_slice(), b"220 mail", b"\x15\x02\x03\0\x02", b"\0\0\x12\x05"] {
        let log = answered("GET", input, true);
        let (kind, reason) = log.failure_of(1);
        assert_eq!(kind, FailureKind::Protocol, "{reason}");
        assert!(reason.contains(&format!("starts with \"{}\"", input.escape_ascii())), "{reason}");
    }
}

#[test]
fn bytes_behind_the_response_break_the_connection_not_the_request() {
    let input = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 408 Timeout\r\n\r\n";
    for length in [1, 2, usize::MAX] {
        let (http, log) = run("GET", input, false, &[length]);
        assert!(log.has_ended(1) && http.is_closed());
        let (kind, reason) = log.closed_failure();
        assert_eq!(kind, FailureKind::Protocol);
        assert!(reason.contains("no response is due"), "{reason}");
    }
}

#[test]
fn a_broken_stream_fails_the_request_with_its_failure() {
    let (mut http, mut log) =
        run("GET", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab", false, &[usize::MAX]);
    http.handle_broken(broken(), &mut |event| log.take(event));
    assert_eq!(log.failure_of(1), (FailureKind::Reset, "connection reset by peer"));
    assert_eq!(log.closed_with(), &Outcome::Failed(broken()));
    let events = log.0.len();
    http.handle_end(&mut |event| log.take(event));
    assert_eq!(log.0.len(), events, "Closed is said once");
}

#[test]
fn one_request_at_a_time_and_many_one_after_the_other() {
    let mut http = Http1::new(Limits::default());
    let mut log = Log::default();
    assert_eq!(http.send_request(0, &get("/a")), Err(NotNow), "not started");
    http.start();
    let mut sizes = Vec::new();
    for id in 0..50 {
        sizes.push(http.send_request(id, &get("/a")).unwrap());
        assert_eq!(http.send_request(id + 100, &get("/a")), Err(NotNow));
        let sent = output(&mut http);
        assert_eq!(sent, b"GET /a HTTP/1.1\r\nhost: example.test\r\naccept: */*\r\nuser-agent: h123\r\n\r\n");
        assert_eq!(sizes[0].wire as usize, sent.len());
        deliver(&mut http, b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", &[usize::MAX], &mut log);
        assert!(log.has_ended(id));
    }
    let raw = ":methodGET:path/ahostexample.testaccept*/*user-agenth123".len();
    assert!(sizes.iter().all(|&size| size == HeaderBytes { raw: u32::try_from(raw).unwrap(), ..sizes[0] }));
}

#[test]
fn request_bodies_leave_in_pieces_behind_their_length() {
    let body: Vec<u8> = (0..200_000u32).map(|number| (number % 251) as u8).collect();
    let mut http = Http1::new(Limits::default());
    http.start();
    http.send_request(1, &request("POST", "/up", &body)).unwrap();
    let mut out = Vec::new();
    assert!(http.poll_output(&mut out));
    assert!(out.len() <= 65 << 10, "{} bytes in one call", out.len());
    out.extend(output(&mut http));
    let head_end = out.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert!(out[..head_end].ends_with(b"content-length: 200000\r\n\r\n"));
    assert_eq!(out[head_end..], body);
    let mut http = Http1::new(Limits::default());
    http.start();
    http.send_request(1, &request("POST", "/up", b"")).unwrap();
    assert!(output(&mut http).ends_with(b"content-length: 0\r\n\r\n"));
}

#[test]
fn a_request_given_up_closes_the_connection_without_a_word() {
    let (mut http, mut log) =
        run("GET", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab", false, &[usize::MAX]);
    let events = log.0.len();
    http.cancel(7);
    assert!(!http.is_closed());
    http.cancel(1);
    assert!(http.is_closed());
    deliver(&mut http, b"more", &[1], &mut log);
    assert_eq!(log.0.len(), events);
}

#[test]
fn close_waits_for_the_response() {
    let (mut http, mut log) =
        run("GET", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no", false, &[usize::MAX]);
    http.close();
    assert!(!http.is_closed());
    deliver(&mut http, b"k", &[1], &mut log);
    assert!(log.has_ended(1) && http.is_closed());
    let mut idle = Http1::new(Limits::default());
    idle.start();
    idle.close();
    assert!(idle.is_closed());
}

proptest! {
    #[test]
    fn pieces_never_matter(case in 0usize..GOOD.len() + BAD.len(), lengths in proptest::collection::vec(1usize..40, 1..20), end in any::<bool>()) {
        let input = GOOD.get(case).map_or_else(|| BAD[case - GOOD.len()].1, |good| good.1);
        let (_, whole) = run("GET", input, end, &[usize::MAX]);
        let (_, pieces) = run("GET", input, end, &lengths);
        prop_assert_eq!(without_quotation(&pieces), without_quotation(&whole));
    }

    /// Bytes that look like HTTP here and there: the same events in any pieces, the wording of failures
    /// apart.
    #[test]
    fn any_bytes_mean_the_same_in_any_pieces(
        before in prop_oneof![
            Just(""),
            Just("HTTP/1.1 200 OK\r\n"),
            Just("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
        ],
        tokens in proptest::collection::vec(
            prop_oneof![
                Just("\r\n"), Just("\n"), Just("\r"), Just(":"), Just(" "), Just("0"), Just("1;a"), Just("5"), Just("abc"),
                Just("content-length: 3"), Just("connection: close"), Just("transfer-encoding: chunked"), Just("\r\n\r\n"),
            ],
            0..20,
        ),
        lengths in proptest::collection::vec(1usize..40, 1..20),
        end in any::<bool>(),
    ) {
        let input = before.to_owned() + &tokens.concat();
        let without_words = |log: Log| -> Vec<LoggedEvent> {
            let strip = |seen| match seen {
                LoggedEvent::Failed(id, kind, _) => LoggedEvent::Failed(id, kind, String::new()),
                LoggedEvent::Closed(Outcome::Failed(failure)) => LoggedEvent::Closed(Outcome::failed(failure.kind, "")),
                other => other,
            };
            log.0.into_iter().map(strip).collect()
        };
        let whole = without_words(run("GET", input.as_bytes(), end, &[usize::MAX]).1);
        prop_assert_eq!(&without_words(run("GET", input.as_bytes(), end, &lengths).1), &whole);
        prop_assert_eq!(&without_words(run("GET", input.as_bytes(), end, &[1]).1), &whole);
    }

    #[test]
    fn no_bytes_make_it_panic(input in proptest::collection::vec(any::<u8>(), 0..200), lengths in proptest::collection::vec(1usize..40, 1..20)) {
        run("GET", &input, true, &lengths);
    }
}

#[test]
fn another_protocol_is_recognised_at_its_first_line() {
    for length in [1, 3, usize::MAX] {
        let (_, log) = run("GET", b"SSH-2.0-OpenSSH_9.2\r\n", false, &[length]);
        assert_eq!(log.failure_of(1).0, FailureKind::Protocol);
    }
}

#[test]
fn body_pieces_are_slices_of_the_input() {
    let mut http = Http1::new(Limits::default());
    http.start();
    http.send_request(1, &get("/")).unwrap();
    let input = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let mut pieces = 0;
    http.handle_bytes(input, &mut |event| {
        if let Event::Data { bytes, .. } = event {
            assert!(input.as_ptr_range().contains(&bytes.as_ptr()));
            pieces += 1;
        }
    });
    assert_eq!(pieces, 2);
}

#[test]
fn bodies_may_be_discarded_unread() {
    let mut log = Log::default();
    let mut http = Http1::new(Limits::default());
    http.start();
    http.send_request(1, &get("/")).unwrap();
    assert_eq!(http.skippable_bytes(), 0, "no head has come");
    http.handle_bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nabc", &mut |event| log.take(event));
    assert_eq!(http.skippable_bytes(), 997);
    http.handle_skipped(900, &mut |event| log.take(event));
    http.handle_bytes(b"defg", &mut |event| log.take(event));
    assert_eq!(http.skippable_bytes(), 93);
    http.handle_skipped(93, &mut |event| log.take(event));
    let data = |bytes: &[u8]| LoggedEvent::Data(1, bytes.to_vec());
    let said = [
        data(b"abc"),
        LoggedEvent::Skipped(1, 900),
        data(b"defg"),
        LoggedEvent::Skipped(1, 93),
        LoggedEvent::End(1),
    ];
    assert_eq!(log.0[1..], said);
    assert_eq!(http.skippable_bytes(), 0);
    assert_eq!(http.available_requests(), 1);
}

#[test]
fn of_chunks_only_the_data_may_be_discarded() {
    let mut log = Log::default();
    let mut http = Http1::new(Limits::default());
    http.start();
    http.send_request(1, &get("/")).unwrap();
    http.handle_bytes(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", &mut |event| log.take(event));
    assert_eq!(http.skippable_bytes(), 0, "a chunk's size must be read");
    http.handle_bytes(b"ff\r\n", &mut |event| log.take(event));
    assert_eq!(http.skippable_bytes(), 255);
    http.handle_skipped(255, &mut |event| log.take(event));
    assert_eq!(http.skippable_bytes(), 0);
    http.handle_bytes(b"\r\n0\r\n\r\n", &mut |event| log.take(event));
    assert_eq!(log.0[1..], [LoggedEvent::Skipped(1, 255), LoggedEvent::End(1)]);
}

#[test]
fn a_stream_that_ends_after_discarded_bytes_leaves_the_body_too_short() {
    let mut log = Log::default();
    let mut http = Http1::new(Limits::default());
    http.start();
    http.send_request(1, &get("/")).unwrap();
    http.handle_bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n", &mut |event| log.take(event));
    http.handle_skipped(999, &mut |event| log.take(event));
    http.handle_end(&mut |event| log.take(event));
    assert!(log.failure_of(1).1.contains("after 999 of 1000 body bytes"), "{:?}", log.0);
}
