//! HTTP/1.1 from a bad server.

use std::io::Write;

use model::Variant;
use model::sample::FailureKind::{self, Closed, Limit, Protocol, Reset, Timeout, WrongStatus, WrongVersion};
use model::sample::ServerClose;

use super::Ending::{self, Close, Hold, Repeat};
use super::{
    Hostile, assert_connection_failed, assert_failed, assert_ok, assignment, expecting, run, say,
    take_something,
};

/// A server's answer to each request and how it ends; the kind of failure and what its reason names.
type Case = (&'static str, &'static str, Ending, FailureKind, &'static str);

const CASES: &[Case] = &[
    // Lies about the length.
    (
        "too long, then closed",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
        Close,
        Closed,
        "after 3 of 10 body bytes",
    ),
    (
        "too long, then silent",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
        Hold,
        Timeout,
        "only 3 bytes of the body within 400 ms",
    ),
    (
        "too long, then reset",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
        Ending::Reset,
        Reset,
        "reading from 127.0.0.1:",
    ),
    (
        "two lengths",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabc",
        Hold,
        Protocol,
        "two different content-lengths",
    ),
    ("no number", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", Hold, Protocol, "content-length"),
    (
        "beyond 64 bits",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
        Hold,
        Protocol,
        "content-length",
    ),
    (
        "length and chunks",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        Hold,
        Protocol,
        "both transfer-encoding and content-length",
    ),
    // Chunks.
    (
        "chunks of garbage",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\x00\x01zz\r\nabc",
        Hold,
        Protocol,
        "expected a size",
    ),
    (
        "a chunk beyond 64 bits",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10000000000000000\r\n",
        Hold,
        Protocol,
        "10000000000000000",
    ),
    (
        "a huge chunk, then closed",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffff\r\nabc",
        Close,
        Closed,
        "after 3 body bytes",
    ),
    (
        "no last chunk",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        Close,
        Closed,
        "before the last chunk's end",
    ),
    (
        "no end of a chunk's data",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcdef\r\n",
        Hold,
        Protocol,
        "not followed by CR LF",
    ),
    ("an unknown coding", "HTTP/1.1 200 OK\r\ntransfer-encoding: pigeon\r\n\r\n", Hold, Protocol, "pigeon"),
    // Another language.
    ("words", "220 mail.test ESMTP\r\n", Hold, Protocol, "220 mail.test"),
    ("bytes", "\x01\x02\x03", Close, Protocol, "\\x01\\x02\\x03"),
    ("bytes, then silence", "\x01\x02\x03", Hold, Protocol, "\\x01\\x02\\x03"),
    ("words without an end of line", "SSH-2.0-x", Hold, Protocol, "SSH-2.0-x"),
    ("a version to come", "HTTP/7", Hold, Protocol, "HTTP/7"),
    ("HTTP/2", "\0\0\0\x04\0\0\0\0\0", Hold, WrongVersion, "in HTTP/2"),
    ("TLS", "\x15\x03\x03\0\x02\x02\x28", Hold, WrongVersion, "in TLS"),
    ("HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", Close, WrongVersion, "HTTP/1.0"),
    ("another protocol", "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", Hold, Protocol, "101"),
    // Heads.
    ("no field", "HTTP/1.1 200 OK\r\nno field\r\n\r\n", Hold, Protocol, "not a field"),
    ("a NUL", "HTTP/1.1 200 OK\r\na: \0\r\n\r\n", Hold, Protocol, "NUL"),
    ("a cut head", "HTTP/1.1 200 OK\r\ncontent-le", Close, Closed, "inside the response's head"),
    (
        "another status",
        "HTTP/1.1 503 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        Close,
        WrongStatus,
        "503",
    ),
    // Nothing.
    ("silence", "", Hold, Timeout, "no response within 400 ms"),
    ("a half-close", "", Close, Closed, "before any byte of the response"),
    ("a reset", "", Ending::Reset, Reset, "reading from 127.0.0.1:"),
    (
        "a head, then silence",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n",
        Hold,
        Timeout,
        "only 0 bytes of the body",
    ),
];

/// Floods: a beginning, and what comes again and again.
const FLOODS: &[(&str, &str, &str, FailureKind, &str)] = &[
    ("a status line without end", "HTTP/1.1 200 ", "aaaaaaaa", Limit, "65536 bytes"),
    ("a field without end", "HTTP/1.1 200 OK\r\nx: ", "aaaaaaaa", Limit, "65536 bytes"),
    ("fields without end", "HTTP/1.1 200 OK\r\n", "x: y\r\n", Limit, "256 fields"),
    (
        "informational responses",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\na: b\r\n\r\n",
        Limit,
        "more than 32 informational",
    ),
    (
        "a chunk's extension",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;",
        "aaaaaaaa",
        Limit,
        "longer than 4096",
    ),
    (
        "trailers",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
        "x: y\r\n",
        Limit,
        "256 fields",
    ),
    ("a body without end", "HTTP/1.1 200 OK\r\n\r\n", "aaaaaaaa", Timeout, "within 400 ms"),
    (
        "chunks without end",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        "1\r\na\r\n",
        Timeout,
        "within 400 ms",
    ),
];

#[test]
fn each_is_a_failure_of_its_kind() {
    for (name, answer, ending, kind, part) in CASES {
        let pieces = [answer.as_bytes().to_vec()];
        let server = Hostile::new(move |mut stream| {
            take_something(&mut stream);
            say(&mut stream, &pieces, *ending);
        });
        let report = run(name, &expecting(*kind, assignment(Variant::H1, server.address, 2)));
        assert_failed(name, &report, *kind, part);
    }
}

#[test]
fn floods_end_at_a_limit_and_fill_no_memory() {
    for (name, beginning, flood, kind, part) in FLOODS {
        let pieces = [beginning.as_bytes().to_vec(), flood.as_bytes().to_vec()];
        let server = Hostile::new(move |mut stream| {
            take_something(&mut stream);
            say(&mut stream, &pieces, Repeat);
        });
        let report = run(name, &expecting(*kind, assignment(Variant::H1, server.address, 2)));
        assert_failed(name, &report, *kind, part);
    }
}

#[test]
fn more_bytes_than_announced_break_the_connection() {
    for (name, answer) in [
        ("too short", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabcdef"),
        ("a body with 204", "HTTP/1.1 204 No Content\r\ncontent-length: 3\r\n\r\nabc"),
    ] {
        let pieces = [answer.as_bytes().to_vec()];
        let server = Hostile::new(move |mut stream| {
            take_something(&mut stream);
            say(&mut stream, &pieces, Hold);
        });
        // What was asked for came whole; what came behind it is the connection's failure, and costs a new
        // one.
        let report = run(name, &assignment(Variant::H1, server.address, 3));
        assert_ok(name, &report);
        assert_eq!(report.connections.len(), 3, "{name}");
        assert_connection_failed(name, &report, Protocol, "no response is due");
    }
    let pieces = [b"HTTP/1.1 304 Not Modified\r\ncontent-length: 3\r\n\r\nabc".to_vec()];
    let server = Hostile::new(move |mut stream| {
        take_something(&mut stream);
        say(&mut stream, &pieces, Hold);
    });
    let report = run("a body with 304", &assignment(Variant::H1, server.address, 2));
    assert_failed("a body with 304", &report, WrongStatus, "304");
    assert_connection_failed("a body with 304", &report, Protocol, "no response is due");
}

#[test]
fn a_drip_is_no_answer() {
    let server = Hostile::new(|mut stream| {
        take_something(&mut stream);
        let mut drip = b"HTTP/1.1 200 ".iter().chain(std::iter::repeat(&b'a'));
        while drip.next().is_some_and(|byte| stream.write_all(&[*byte]).is_ok()) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    });
    let report = run("drip", &assignment(Variant::H1, server.address, 2));
    assert_failed("drip", &report, Timeout, "no response within 400 ms");
}

#[test]
fn a_server_that_closes_every_connection_at_once_costs_a_request_each() {
    let server = Hostile::new(drop);
    let report = run("closed at once", &assignment(Variant::H1, server.address, 3));
    assert_eq!(report.samples.len(), 3);
    assert!(report.samples.iter().all(|sample| !sample.outcome.is_ok()), "{:?}", report.samples);
}

#[test]
fn a_response_that_never_ends_does_not_block_the_client() {
    // One connection is flooded, the other is served; both share a worker.
    let mut count = 0;
    let server = Hostile::new(move |mut stream| {
        count += 1;
        let flooded = count == 1;
        std::thread::spawn(move || {
            while take_something(&mut stream) {
                let body = [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b'a'; 65_536]];
                match flooded {
                    true => say(&mut stream, &body, Repeat),
                    false => {
                        say(&mut stream, &[b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()], Hold)
                    }
                }
            }
        });
    });
    let mut assignment = assignment(Variant::H1, server.address, 2);
    assignment.workload.as_loop_mut().unwrap().connections = 2;
    let report = run("one floods", &assignment);
    let ok = report.samples.iter().filter(|sample| sample.outcome.is_ok()).count();
    assert_eq!(ok, 1, "{:?}", report.samples);
}

#[test]
fn a_server_that_ends_connections_is_named_with_its_reason() {
    let cases = [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok", ServerClose::CloseOption),
        ("HTTP/1.1 200 OK\r\n\r\nok", ServerClose::NoLength),
        ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", ServerClose::Http10),
    ];
    for (answer, reason) in cases {
        let server = Hostile::new(move |mut stream| {
            take_something(&mut stream);
            say(&mut stream, &[answer.as_bytes().to_vec()], Close);
        });
        let report = run(answer, &assignment(Variant::H1, server.address, 3));
        let reasons: Vec<_> = report.connections.iter().map(|row| row.server_close).collect();
        assert_eq!(reasons, [Some(reason); 3], "{answer}");
    }
}
