//! Server push: accepted and counted, or refused.

use engine::h2::frame::{ErrorCode, flag, kind};
use engine::h2::{Http2, Limits, PUSHES};
use engine::{Protocol, Pushed};
use model::pins::Http2Pins;
use model::sample::FailureKind;

use super::h2::{OK, Script, frames_of};
use super::{Log, LoggedEvent, deliver, get, output};

const ASKED: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "https"), (":authority", "example.test"), (":path", "/style.css")];

impl Script {
    /// PUSH_PROMISE on `parent` of `promised`.
    fn promise(mut self, parent: u32, promised: u32, fields: &[(&str, &str)]) -> Self {
        let block = self.block(fields);
        let payload = [&promised.to_be_bytes()[..], &block].concat();
        self.frame(kind::PUSH_PROMISE, flag::END_HEADERS, parent, &payload)
    }
}

/// What two GETs to a server with this script see, the same in any pieces, and what is sent.
fn run(pushes: u32, script: &Script) -> (Log, Vec<u8>) {
    let all = |lengths: &[usize]| {
        let limits = Limits { pushes, ..Limits::default() };
        let pins = Http2Pins { stream_window_bytes: 70_000, ..Http2Pins::default() };
        let mut http = Http2::new(&pins, limits);
        http.start();
        http.send_request(1, &get("/a")).unwrap();
        http.send_request(2, &get("/b")).unwrap();
        let mut log = Log::default();
        deliver(&mut http, &script.bytes, lengths, &mut log);
        (log, output(&mut http))
    };
    let (log, sent) = all(&[usize::MAX]);
    for lengths in [&[1][..], &[9, 2], &[10_000]] {
        let (other, other_sent) = all(lengths);
        assert_eq!((&other.0, &other_sent), (&log.0, &sent), "in pieces of {lengths:?}");
    }
    (log, sent)
}

fn pushed(log: &Log) -> Vec<Pushed> {
    let pushed =
        |seen: &LoggedEvent| if let LoggedEvent::Pushed(pushed) = seen { Some(*pushed) } else { None };
    log.0.iter().filter_map(pushed).collect()
}

fn resets(sent: &[u8]) -> Vec<(u32, u32)> {
    let reset = |payload: &[u8]| u32::from_be_bytes(payload.try_into().unwrap());
    frames_of(kind::RST_STREAM, sent)
        .iter()
        .map(|(header, payload)| (header.stream, reset(payload)))
        .collect()
}

const REFUSED: Pushed = Pushed { request: 1, status: None, body_bytes: 0, is_whole: false, is_refused: true };

#[test]
fn what_is_pushed_is_counted_and_the_table_follows() {
    let script = Script::new()
        .promise(1, 2, ASKED)
        .promise(
            1,
            4,
            &[(":method", "GET"), (":scheme", "https"), (":authority", "example.test"), (":path", "/x.js")],
        )
        .headers(1, false, OK)
        .headers(2, false, &[(":status", "200"), ("content-length", "5"), ("server", "test")])
        .data(2, false, b"he")
        .data(1, true, b"page")
        .data(2, true, b"llo")
        .headers(4, true, &[(":status", "404"), ("server", "test")])
        .headers(3, true, &[(":status", "200"), ("server", "test")]);
    let (log, sent) = run(PUSHES, &script);
    let whole = |status, body_bytes| Pushed {
        request: 1,
        status: Some(status),
        body_bytes,
        is_whole: true,
        is_refused: false,
    };
    assert_eq!(pushed(&log), [whole(200, 5), whole(404, 0)]);
    assert_eq!(log.body_of(1), b"page");
    assert_eq!(log.head_of(2).bytes.raw, 10 + 10, "the table is right after promises and pushes");
    assert!(log.has_ended(1) && log.has_ended(2) && resets(&sent).is_empty());
    let settings = &frames_of(kind::SETTINGS, &sent)[0].1;
    assert_eq!(settings[6..12], [0, 2, 0, 0, 0, 1], "SETTINGS_ENABLE_PUSH");
    assert_eq!(settings[30..], [0, 3, 0, 0, 0, 100], "SETTINGS_MAX_CONCURRENT_STREAMS");
}

#[test]
fn a_push_keeps_to_the_windows_and_they_are_opened_again() {
    let body = vec![7; 16_000];
    let mut script = Script::new().promise(1, 2, ASKED).headers(2, false, OK);
    for _ in 0..4 {
        script = script.data(2, false, &body);
    }
    let (log, sent) = run(PUSHES, &script);
    assert!(pushed(&log).is_empty());
    let opened = frames_of(kind::WINDOW_UPDATE, &sent);
    assert!(opened.iter().any(|(header, _)| header.stream == 2), "{opened:?}");
    // Without these updates: more than the window of 70 000 at once.
    let script = Script::new().promise(1, 2, ASKED).headers(2, false, OK);
    let script = script.data(2, false, &[0; 16_384]).data(2, true, b"");
    let (log, _) = run(PUSHES, &script);
    assert_eq!(pushed(&log)[0].body_bytes, 16_384);
}

#[test]
fn a_push_that_breaks_off_is_reported_as_it_was() {
    let begun = || Script::new().promise(1, 2, ASKED).headers(2, false, OK).data(2, false, b"half");
    let half = Pushed { request: 1, status: Some(200), body_bytes: 4, is_whole: false, is_refused: false };
    let (log, _) = run(PUSHES, &begun().reset(2, ErrorCode::CANCEL));
    assert_eq!(pushed(&log), [half]);
    let (log, sent) = run(PUSHES, &begun().headers(2, false, &[(":status", "200")]).data(2, false, b"more"));
    assert_eq!((pushed(&log), resets(&sent)), (vec![half], vec![(2, ErrorCode::PROTOCOL_ERROR.0)]));
    let (log, _) = run(PUSHES, &begun().frame(kind::PUSH_PROMISE, flag::END_HEADERS, 1, &[0, 0, 0, 2]));
    assert_eq!(pushed(&log), [half], "the connection's end ends it");
    assert_eq!(log.closed_failure().0, FailureKind::Protocol);
}

#[test]
fn a_promise_that_may_not_be_made_is_reset() {
    let post = &[(":method", "POST"), (":scheme", "https"), (":authority", "example.test"), (":path", "/")];
    let nowhere = &[(":method", "GET"), (":scheme", "https"), (":path", "/")];
    let body = &[(":method", "GET"), (":authority", "a"), (":path", "/"), ("content-length", "1")];
    for fields in [&post[..], nowhere, body] {
        let (log, sent) =
            run(PUSHES, &Script::new().promise(1, 2, fields).headers(1, true, OK).headers(2, true, OK));
        assert_eq!(resets(&sent), [(2, ErrorCode::PROTOCOL_ERROR.0)], "{fields:?}");
        assert!(log.has_ended(1));
        assert_eq!(pushed(&log), [REFUSED]);
    }
    let many =
        Script::new().promise(1, 2, ASKED).promise(1, 4, ASKED).headers(1, true, OK).headers(4, true, OK);
    let (log, sent) = run(1, &many);
    assert_eq!(resets(&sent), [(4, ErrorCode::REFUSED_STREAM.0)], "more than allowed at a time");
    assert!(log.has_ended(1));
}

#[test]
fn promises_that_break_the_protocol_end_the_connection() {
    let padded = [&[9][..], &2u32.to_be_bytes(), &[0x82]].concat();
    let cases = [
        (Script::new().promise(5, 2, ASKED), "on idle stream"),
        (Script::new().promise(2, 4, ASKED), "on idle stream"),
        (Script::new().promise(1, 3, ASKED), "expected an even one"),
        (Script::new().promise(1, 0, ASKED), "expected an even one"),
        (Script::new().promise(1, 4, ASKED).promise(1, 2, ASKED), "above 4"),
        (Script::new().frame(kind::PUSH_PROMISE, flag::END_HEADERS, 1, &[0, 0]), "PUSH_PROMISE with 2 bytes"),
        (Script::new().frame(kind::PUSH_PROMISE, flag::PADDED | flag::END_HEADERS, 1, &padded), "padding"),
        (Script::new().headers(2, true, OK), "on idle stream"),
        (Script::new().headers(1, true, OK).promise(1, 2, ASKED), "which has ended"),
        (Script::new().promise(1, 2, ASKED).headers(2, true, OK).data(2, true, b"x"), "which has ended"),
    ];
    for (script, part) in cases {
        let (log, _) = run(PUSHES, &script);
        let (kind, reason) = log.closed_failure();
        assert_eq!(kind, FailureKind::Protocol);
        assert!(reason.contains(part), "found `{reason}`, expected `{part}` in it");
    }
}

#[test]
fn without_the_option_a_push_is_refused_and_the_table_follows() {
    // The server has not acknowledged our SETTINGS: it may believe that push is on.
    let script = Script::bare()
        .settings(&[])
        .promise(1, 2, ASKED)
        .headers(1, true, &[(":status", "200"), ("server", "test")])
        .headers(2, true, OK)
        .frame(kind::SETTINGS, flag::ACK, 0, &[]);
    let (log, sent) = run(0, &script);
    assert_eq!(resets(&sent), [(2, ErrorCode::REFUSED_STREAM.0)]);
    assert!(log.has_ended(1));
    assert_eq!(pushed(&log), [REFUSED]);
    assert_eq!(log.head_of(1).bytes.raw, 10 + 10);
    let (log, _) = run(0, &Script::new().promise(1, 2, ASKED));
    assert!(log.closed_failure().1.contains("SETTINGS_ENABLE_PUSH is 0"));
}

#[test]
fn a_promise_may_be_continued() {
    let mut script = Script::new();
    let block = script.block(ASKED);
    let (first, rest) = block.split_at(3);
    let payload = [&[1][..], &2u32.to_be_bytes(), first, &[0]].concat();
    let script = script
        .frame(kind::PUSH_PROMISE, flag::PADDED, 1, &payload)
        .frame(kind::CONTINUATION, flag::END_HEADERS, 1, rest)
        .headers(2, true, OK)
        .headers(1, true, OK);
    let (log, _) = run(PUSHES, &script);
    assert_eq!(pushed(&log).len(), 1);
    assert!(log.has_ended(1));
}

const GET: &[(&str, &str)] = &[(":method", "GET"), (":scheme", "https"), (":authority", "example.test")];

/// GET of a path; what becomes of the promise follows from the path.
fn asked(path: &'static str) -> Vec<(&'static str, &'static str)> {
    [GET, &[(":path", path)]].concat()
}

#[test]
fn a_taken_push_has_the_events_of_a_request() {
    let begun = || Script::new().promise(1, 2, &asked("/take")).headers(1, true, OK).headers(3, true, OK);
    let sized = &[(":status", "200"), ("content-length", "5"), ("server", "test")];
    let script = begun().headers(2, false, sized).data(2, false, b"he").data(2, true, b"llo");
    let (log, sent) = run(PUSHES, &script);
    assert_eq!(log.0[0], LoggedEvent::Promised(1, "https://example.test/take".to_owned()));
    assert_eq!((log.head_of(100).status, log.body_of(100)), (200, b"hello".to_vec()));
    assert!(log.has_ended(100) && pushed(&log).is_empty() && resets(&sent).is_empty());
    let failure = |script: &Script| {
        let (log, _) = run(PUSHES, script);
        let (kind, reason) = log.failure_of(100);
        (kind, reason.to_owned())
    };
    let (kind, reason) = failure(&begun().headers(2, false, sized).data(2, true, b"he"));
    assert!(kind == FailureKind::WrongLength && reason.contains("3 bytes short"), "{reason}");
    let (kind, reason) = failure(&begun().reset(2, ErrorCode::CANCEL));
    assert!(kind == FailureKind::Reset && reason.contains("CANCEL"), "{reason}");
}

#[test]
fn a_taken_push_fails_with_its_connection() {
    let mut http = Http2::new(&Http2Pins::default(), Limits { pushes: PUSHES, ..Limits::default() });
    http.start();
    http.send_request(1, &get("/a")).unwrap();
    let mut log = Log::default();
    let script = Script::new().promise(1, 2, &asked("/take")).headers(1, true, OK);
    http.handle_bytes(&script.bytes, &mut |event| log.take(event));
    http.handle_end(&mut |event| log.take(event));
    assert!(log.has_ended(1), "no request is in flight any more");
    assert_eq!(log.failure_of(100).0, FailureKind::Closed);
}

#[test]
fn a_taken_push_outlives_goaway() {
    let goaway = [&3u32.to_be_bytes()[..], &0u32.to_be_bytes()].concat();
    let script = Script::new()
        .promise(1, 2, &asked("/take"))
        .frame(kind::GOAWAY, 0, 0, &goaway)
        .promise(1, 4, &asked("/cancel"))
        .headers(1, true, OK)
        .headers(3, true, OK)
        .headers(2, true, OK);
    let (log, sent) = run(PUSHES, &script);
    assert!(log.has_ended(1) && log.has_ended(2) && log.has_ended(100));
    assert_eq!(resets(&sent), [(4, ErrorCode::CANCEL.0)]);
}

#[test]
fn what_was_refused_is_reset_and_its_bytes_are_counted() {
    let script = Script::new()
        .promise(1, 2, &asked("/cancel"))
        .promise(1, 4, &asked("/refuse"))
        .headers(2, false, OK)
        .data(2, true, b"in vain")
        .headers(1, true, OK)
        .headers(3, true, OK);
    let (log, sent) = run(PUSHES, &script);
    assert_eq!(resets(&sent), [(2, ErrorCode::CANCEL.0), (4, ErrorCode::PROTOCOL_ERROR.0)]);
    assert!(log.0.contains(&LoggedEvent::PushedInVain(7)));
    assert!(log.has_ended(1) && log.has_ended(2) && pushed(&log).is_empty());
}

#[test]
fn a_taken_push_can_be_cancelled() {
    let mut http = Http2::new(&Http2Pins::default(), Limits { pushes: PUSHES, ..Limits::default() });
    http.start();
    http.send_request(1, &get("/a")).unwrap();
    let mut log = Log::default();
    let script = Script::new().promise(1, 2, &asked("/take")).headers(2, false, OK);
    http.handle_bytes(&script.bytes, &mut |event| log.take(event));
    http.cancel(100);
    assert_eq!(resets(&output(&mut http)), [(2, ErrorCode::CANCEL.0)]);
    http.handle_bytes(&Script::bare().data(2, true, b"late").bytes, &mut |event| log.take(event));
    assert!(log.0.ends_with(&[LoggedEvent::PushedInVain(4)]), "{:?}", log.0);
}
