//! HTTP/3 over QUIC against a scripted server, on a virtual clock.

use model::pins::CongestionControl;
use model::sample::FailureKind;
use model::{HttpVersion, Outcome, Pins};
use proptest::prelude::*;

use crate::authority::{Authority, pinned_tls};
use crate::quic_peer::*;

#[test]
fn the_handshake_takes_one_round_trip_and_the_response_the_second() {
    let body = vec![7; 500];
    let mut run = join(
        &Net::CLEAN,
        &Pins::default(),
        Script::replying(vec![Reply::Whole(response(&body))]),
        vec![get("/a")],
    );
    run_until_finished(&mut run, 1);
    let [
        (ready_ns, LoggedEvent::Ready(handshake)),
        (head_ns, LoggedEvent::Head(0, head)),
        (end_ns, LoggedEvent::End(0)),
    ] = &run.client.seen[..]
    else {
        panic!("{:?}", run.client.seen)
    };
    assert_eq!((*ready_ns, *head_ns, *end_ns), (100 * MS, 200 * MS, 200 * MS));
    assert_eq!(handshake.alpn.as_deref(), Some("h3"));
    assert_eq!(handshake.tls_version.as_deref(), Some("TLSv1_3"));
    assert_eq!(handshake.cipher_suite.as_deref(), Some("TLS_AES_128_GCM_SHA256"));
    assert_eq!(handshake.key_exchange.as_deref(), Some("x25519"));
    assert!(!handshake.resumed);
    assert_eq!((head.status, head.version, head.content_length), (200, HttpVersion::Http3, Some(500)));
    assert_eq!(head.bytes.raw, 7 + 3 + 14 + 3);
    assert_eq!(head.bytes.wire as usize, headers(&[(":status", "200"), ("content-length", "500")]).len());
    assert_eq!(run.client.bodies[&0], body);
}

#[test]
fn the_first_datagram_has_the_pinned_size() {
    let mut run = join(
        &Net::CLEAN,
        &Pins::default(),
        Script::replying(vec![Reply::Whole(response(b""))]),
        vec![get("/")],
    );
    run_until_finished(&mut run, 1);
    assert_eq!(run.client.datagrams[0], (0, usize::from(Pins::default().quic_datagram_bytes)));
    assert!(run.client.datagrams.iter().all(|(_, bytes)| *bytes <= 1452), "{:?}", run.client.datagrams);
}

#[test]
fn the_request_has_the_requested_fields() {
    let mut post = get("/upload");
    post.method = "POST".into();
    post.body = bytes::Bytes::from_static(b"hello");
    let mut run =
        join(&Net::CLEAN, &Pins::default(), Script::replying(vec![Reply::Whole(response(b""))]), vec![post]);
    run_until_finished(&mut run, 1);
    let expected_head = headers(&[
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", crate::authority::NAME),
        (":path", "/upload"),
        ("content-length", "5"),
        ("user-agent", "h123"),
    ]);
    assert_eq!(run.server.uploads, [[&expected_head[..], &frame(0x00, b"hello")].concat()]);
    assert_eq!(run.client.wire_bytes as usize, expected_head.len());
}

#[test]
fn a_body_larger_than_the_windows_arrives_completely() {
    let mut pins = Pins::default();
    pins.http3.stream_window_bytes = 64 << 10;
    pins.http3.connection_window_bytes = 100 << 10;
    let body: Vec<u8> = (0..2_000_000_u32).map(|i| i.to_le_bytes()[1]).collect();
    let mut run =
        join(&Net::CLEAN, &pins, Script::replying(vec![Reply::Whole(response(&body))]), vec![get("/")]);
    run_until_finished(&mut run, 1);
    assert!(run.client.bodies[&0] == body);
    assert!(
        run.now_ns > 20 * 100 * MS,
        "a window of 64 KiB each 100 ms cannot be faster: {} ms",
        run.now_ns / MS
    );
}

#[test]
fn a_large_upload_passes_the_servers_windows() {
    let body: Vec<u8> = (0..3_000_000_u32).map(|i| i.to_le_bytes()[0]).collect();
    let mut post = get("/upload");
    post.method = "POST".into();
    post.body = body.clone().into();
    let mut run = join(
        &Net::CLEAN,
        &Pins::default(),
        Script::replying(vec![Reply::Whole(response(b"ok"))]),
        vec![post],
    );
    run_until_finished(&mut run, 1);
    assert!(run.server.uploads[0].ends_with(&body));
    assert_eq!(run.client.bodies[&0], b"ok");
}

/// Bytes that a client with an upload of 1 MB sends in the second round trip, before any of it is
/// acknowledged.
fn first_flight_bytes(pins: &Pins) -> u64 {
    let mut post = get("/upload");
    post.method = "POST".into();
    post.body = vec![0; 1_000_000].into();
    let mut run = join(&Net::CLEAN, pins, Script::replying(vec![Reply::Whole(response(b"ok"))]), vec![post]);
    run_until_finished(&mut run, 1);
    let second = run.client.datagrams.iter().filter(|(at, _)| (100 * MS..200 * MS).contains(at));
    second.map(|(_, bytes)| *bytes as u64).sum()
}

#[test]
fn the_initial_window_is_the_pinned_one() {
    for congestion_control in [CongestionControl::Cubic, CongestionControl::Reno] {
        for packets in [10, 32] {
            let pins = Pins { initial_window_packets: packets, congestion_control, ..Pins::default() };
            let window = u64::from(packets) * 1452;
            let sent = first_flight_bytes(&pins);
            assert!(
                (window - 1452..window + 2 * 1452).contains(&sent),
                "{congestion_control:?}: {sent} bytes in a window of {window}; what the handshake acknowledged adds to it"
            );
        }
    }
}

#[test]
fn every_congestion_control_moves_an_upload() {
    for congestion_control in [CongestionControl::Cubic, CongestionControl::Reno, CongestionControl::Bbr] {
        let pins = Pins { congestion_control, ..Pins::default() };
        assert!(first_flight_bytes(&pins) > 10_000, "{congestion_control:?}");
    }
}

#[test]
fn exactly_what_is_pinned_is_negotiated() {
    for (pins, suite, group) in pinned_tls() {
        let mut run =
            join(&Net::CLEAN, &pins, Script::replying(vec![Reply::Whole(response(b"x"))]), vec![get("/")]);
        run_until_finished(&mut run, 1);
        let Some((at, LoggedEvent::Ready(handshake))) = run.client.seen.first() else { panic!("{suite}") };
        assert_eq!(*at, 100 * MS, "{suite}, {group}: no second round trip for another group");
        assert_eq!(handshake.cipher_suite.as_deref(), Some(suite));
        assert_eq!(handshake.key_exchange.as_deref(), Some(group));
    }
}

#[test]
fn loss_and_reordering_lose_nothing() {
    for seed in 1..=5 {
        let net = Net { rtt_ms: 40, loss_share: 0.05, swap_every: 3, seed };
        let body: Vec<u8> = (0..100_000_u32).map(|i| (i % 251) as u8).collect();
        let requests: Vec<_> = (0..20).map(|_| get("/")).collect();
        let mut run =
            join(&net, &Pins::default(), Script::replying(vec![Reply::Whole(response(&body))]), requests);
        run_until_finished(&mut run, 20);
        assert_eq!(run.client.bodies.len(), 20, "seed {seed}");
        assert!(run.client.bodies.values().all(|found| *found == body), "seed {seed}");
        let ends = run.client.seen.iter().filter(|(_, seen)| matches!(seen, LoggedEvent::End(_))).count();
        assert_eq!(ends, 20, "seed {seed}: {:?}", run.client.seen);
    }
}

#[test]
fn the_same_seed_gives_the_same_course() {
    let course = |seed| {
        let net = Net { rtt_ms: 40, loss_share: 0.1, swap_every: 5, seed };
        let script = Script::replying(vec![Reply::Whole(response(&[1; 20_000]))]);
        let mut run = join(&net, &Pins::default(), script, vec![get("/"), get("/")]);
        run_until_finished(&mut run, 2);
        run.client.seen.iter().map(|(at, _)| *at).collect::<Vec<_>>()
    };
    assert_eq!(course(3), course(3));
}

#[test]
fn the_servers_stream_limit_is_kept_and_used_again() {
    let mut script = Script::replying(vec![Reply::Whole(response(b"x"))]);
    script.request_streams = 3;
    let requests: Vec<_> = (0..10).map(|_| get("/")).collect();
    let mut run = join(&Net::CLEAN, &Pins::default(), script, requests);
    run_until_finished(&mut run, 3);
    assert_eq!(run.client.sent, 3, "no more than the limit, until the server raises it");
    run_until_finished(&mut run, 10);
    assert_eq!(run.client.bodies.len(), 10);
}

#[test]
fn informational_responses_and_trailers_pass() {
    let whole = [
        headers(&[(":status", "103"), ("link", "</a.css>; rel=preload")]),
        frame(0x21, b"reserved"),
        headers(&[(":status", "200")]),
        frame(0x00, b"ab"),
        frame(0x40, b""),
        frame(0x00, b"c"),
        headers(&[("x-checksum", "1")]),
    ]
    .concat();
    let mut run =
        join(&Net::CLEAN, &Pins::default(), Script::replying(vec![Reply::Whole(whole)]), vec![get("/")]);
    run_until_finished(&mut run, 1);
    assert!(matches!(
        &run.client.seen[1..],
        [(_, LoggedEvent::Informational(0, 103, _)), (_, LoggedEvent::Head(0, _)), (_, LoggedEvent::End(0))]
    ));
    assert_eq!(run.client.bodies[&0], b"abc");
}

#[test]
fn head_and_304_have_no_body_whatever_their_length_says() {
    let mut head = get("/");
    head.method = "HEAD".into();
    head.template = 1;
    let long = headers(&[(":status", "200"), ("content-length", "500")]);
    let unchanged = headers(&[(":status", "304"), ("content-length", "500")]);
    let script = Script::replying(vec![Reply::Whole(long), Reply::Whole(unchanged)]);
    let mut run = join(&Net::CLEAN, &Pins::default(), script, vec![head, get("/")]);
    run_until_finished(&mut run, 2);
    let ends = run.client.seen.iter().filter(|(_, seen)| matches!(seen, LoggedEvent::End(_))).count();
    assert_eq!(ends, 2, "{:?}", run.client.seen);
}

#[test]
fn goaway_fails_unprocessed_requests_and_closes_after_the_rest() {
    let goaway = frame(0x07, &[0x04]);
    let script = Script::replying(vec![Reply::Control(goaway, response(b"first")), Reply::Silence]);
    let mut run = join(&Net::CLEAN, &Pins::default(), script, vec![get("/1"), get("/2"), get("/3")]);
    assert_eq!(run_until_closed(&mut run), Outcome::Ok);
    assert_eq!(run.client.bodies[&0], b"first");
    let failed = run.client.seen.iter().filter_map(|(_, seen)| match seen {
        LoggedEvent::Failed(id, failure) => Some((*id, failure.clone())),
        _ => None,
    });
    let failed: Vec<_> = failed.collect();
    assert_eq!(failed.len(), 2);
    for (id, failure) in failed {
        assert!(id == 1 || id == 2);
        assert_failure(&failure, FailureKind::Closed, "GOAWAY");
    }
    let closed = run.run_until(1000, |_, server| server.lost.is_some());
    assert_eq!(closed, Ok(()));
    assert!(run.client.engine_is_closed());
    assert!(run.server.lost.as_ref().unwrap().contains("256"), "H3_NO_ERROR: {:?}", run.server.lost);
}

#[test]
fn a_reset_fails_one_request_and_leaves_the_others() {
    let script = Script::replying(vec![Reply::Reset(0x10b), Reply::Whole(response(b"second"))]);
    let mut run = join(&Net::CLEAN, &Pins::default(), script, vec![get("/1"), get("/2")]);
    run_until_finished(&mut run, 2);
    let failure = run.client.seen.iter().find_map(|(_, seen)| match seen {
        LoggedEvent::Failed(0, failure) => Some(failure),
        _ => None,
    });
    assert_failure(failure.unwrap(), FailureKind::Reset, "H3_REQUEST_REJECTED");
    assert_eq!(run.client.bodies[&1], b"second");
    assert_eq!(run.client.outcome(), None);
}

#[test]
fn an_early_answer_ends_the_upload() {
    let mut post = get("/upload");
    post.method = "POST".into();
    post.body = vec![0; 20_000_000].into();
    let script =
        Script::replying(vec![Reply::Stop(0x100, response(b"enough")), Reply::Whole(response(b"next"))]);
    let mut run = join(&Net::CLEAN, &Pins::default(), script, vec![post]);
    run_until_finished(&mut run, 1);
    assert_eq!(run.client.bodies[&0], b"enough");
    assert!(run.now_ns <= 300 * MS, "{} ms", run.now_ns / MS);
}

#[test]
fn a_cancelled_request_has_no_further_events() {
    let script =
        Script::replying(vec![Reply::Whole(response(&[0; 5_000_000])), Reply::Whole(response(b"second"))]);
    let mut run = join(&Net::CLEAN, &Pins::default(), script, vec![get("/1"), get("/2")]);
    run.client.cancels = Some(0);
    run_until_finished(&mut run, 1);
    assert_eq!(run.client.bodies[&1], b"second");
    run.run_until(10_000, |_, server| !server.client_stops.is_empty()).unwrap();
    assert_eq!(run.server.client_stops, [0x10c]);
    assert!(
        !run.client
            .seen
            .iter()
            .any(|(_, seen)| matches!(seen, LoggedEvent::End(0) | LoggedEvent::Failed(0, _)))
    );
}

/// Runs a server that answers the one request with `reply` and sends `streams`; the connection's outcome.
fn hostile(streams: Vec<(Vec<u8>, bool)>, reply: Reply) -> (Run, Outcome) {
    let mut script = Script::replying(vec![reply]);
    if !streams.is_empty() {
        script.streams = streams;
    }
    let mut run = join(&Net::CLEAN, &Pins::default(), script, vec![get("/")]);
    let outcome = run_until_closed(&mut run);
    run.run_until(10_000, |_, server| server.lost.is_some()).unwrap();
    assert_eq!(run.client.finished(), 1, "{:?}", run.client.seen);
    assert!(run.client.engine_is_closed());
    (run, outcome)
}

#[test]
fn hostile_control_streams_end_the_connection_by_name() {
    let settings = |payload: &[u8]| [&[0x00][..], &frame(0x04, payload)].concat();
    type Streams = Vec<(Vec<u8>, bool)>;
    let cases: [(&str, Streams); 17] = [
        ("H3_MISSING_SETTINGS", vec![(vec![0x00, 0x07, 0x01, 0x00], false)]),
        ("H3_FRAME_UNEXPECTED", vec![(control_stream(&[0x04, 0x00]), false)]),
        ("H3_FRAME_UNEXPECTED", vec![(control_stream(&[0x00, 0x00]), false)]),
        ("H3_FRAME_UNEXPECTED", vec![(control_stream(&[0x01, 0x00]), false)]),
        ("H3_FRAME_UNEXPECTED", vec![(control_stream(&[0x06, 0x00]), false)]),
        ("H3_FRAME_UNEXPECTED", vec![(control_stream(&[0x0d, 0x01, 0x00]), false)]),
        ("H3_ID_ERROR", vec![(control_stream(&[0x03, 0x01, 0x00]), false)]),
        ("H3_ID_ERROR", vec![(control_stream(&[0x07, 0x01, 0x01]), false)]),
        ("H3_ID_ERROR", vec![(control_stream(&[0x07, 0x01, 0x04, 0x07, 0x01, 0x08]), false)]),
        ("H3_FRAME_ERROR", vec![(control_stream(&[0x07, 0x02, 0x04, 0x00]), false)]),
        ("H3_SETTINGS_ERROR", vec![(settings(&[0x02, 0x00]), false)]),
        ("H3_EXCESSIVE_LOAD", vec![(control_stream(&[0x07, 0x80, 0x01, 0x00, 0x00, 0x00]), false)]),
        ("H3_CLOSED_CRITICAL_STREAM", vec![(control_stream(&[]), true)]),
        ("H3_STREAM_CREATION_ERROR", vec![(control_stream(&[]), false), (control_stream(&[]), false)]),
        ("H3_ID_ERROR", vec![(control_stream(&[]), false), (vec![0x01, 0x00], false)]),
        ("QPACK_ENCODER_STREAM_ERROR", vec![(control_stream(&[]), false), (vec![0x02, 0x3f, 0x01], false)]),
        ("QPACK_DECODER_STREAM_ERROR", vec![(control_stream(&[]), false), (vec![0x03, 0x80], false)]),
    ];
    for (name, streams) in cases {
        let (run, outcome) = hostile(streams.clone(), Reply::Silence);
        let kind = if name == "H3_EXCESSIVE_LOAD" { FailureKind::Limit } else { FailureKind::Protocol };
        assert_failed(&outcome, kind, name);
        assert!(run.server.lost.is_some(), "{streams:?}");
    }
}

#[test]
fn hostile_request_streams_end_the_connection_by_name() {
    let ok = headers(&[(":status", "200")]);
    let after = |more: &[u8]| [&ok[..], more].concat();
    let cases: [(&str, Vec<u8>); 10] = [
        ("H3_FRAME_UNEXPECTED", frame(0x00, b"x")),
        ("H3_FRAME_UNEXPECTED", after(&frame(0x04, b""))),
        ("H3_FRAME_UNEXPECTED", after(&frame(0x07, &[0]))),
        ("H3_FRAME_UNEXPECTED", after(&frame(0x02, b""))),
        ("H3_FRAME_UNEXPECTED", after(&[headers(&[("a", "b")]), frame(0x00, b"x")].concat())),
        ("H3_FRAME_UNEXPECTED", after(&[headers(&[("a", "b")]), headers(&[("a", "b")])].concat())),
        ("H3_ID_ERROR", after(&frame(0x05, &[0, 0, 0]))),
        ("H3_FRAME_ERROR", after(&[0x00, 0x05, 0x01])),
        ("QPACK_DECOMPRESSION_FAILED", frame(0x01, &[0x00, 0x00, 0xff, 0x24])),
        ("QPACK_DECOMPRESSION_FAILED", frame(0x01, &[])),
    ];
    for (name, bytes) in cases {
        let (_, outcome) = hostile(Vec::new(), Reply::Whole(bytes.clone()));
        assert_failed(&outcome, FailureKind::Protocol, name);
    }
}

#[test]
fn malformed_responses_fail_their_request_alone() {
    let with = |more: (&str, &str)| headers(&[(":status", "200"), more]);
    let long_value = "x".repeat(300_000);
    let cases: [(FailureKind, &str, Vec<u8>); 15] = [
        (FailureKind::Protocol, "head of a final response", Vec::new()),
        (FailureKind::Protocol, "no :status", headers(&[("a", "b")])),
        (FailureKind::Protocol, "duplicate :status", headers(&[(":status", "200"), (":status", "200")])),
        (FailureKind::Protocol, "100 to 599", headers(&[(":status", "20")])),
        (FailureKind::Protocol, "after a regular field", headers(&[("a", "b"), (":status", "200")])),
        (FailureKind::Protocol, ":path", headers(&[(":path", "/"), (":status", "200")])),
        (FailureKind::Protocol, "lowercase token", with(("Server", "x"))),
        (FailureKind::Protocol, "transfer-encoding", with(("transfer-encoding", "chunked"))),
        (FailureKind::Protocol, "NUL, CR or LF", with(("a", "b\r\nc: d"))),
        (FailureKind::Protocol, "not a number below 2^64", with(("content-length", "+5"))),
        (FailureKind::Protocol, "status 101", headers(&[(":status", "101")])),
        (FailureKind::WrongLength, "expected 5", [with(("content-length", "5")), frame(0, b"1234")].concat()),
        (
            FailureKind::WrongLength,
            "expected 5",
            [with(("content-length", "5")), frame(0, b"123456")].concat(),
        ),
        (FailureKind::Limit, "H3_EXCESSIVE_LOAD", with(("a", &long_value))),
        (FailureKind::Limit, "more than 32 informational", headers(&[(":status", "103")]).repeat(33)),
    ];
    for (kind, part, bytes) in cases {
        let script = Script::replying(vec![Reply::Whole(bytes), Reply::Whole(response(b"fine"))]);
        let mut run = join(&Net::CLEAN, &Pins::default(), script, vec![get("/1"), get("/2")]);
        run_until_finished(&mut run, 2);
        let failure = run.client.seen.iter().find_map(|(_, seen)| match seen {
            LoggedEvent::Failed(0, failure) => Some(failure.clone()),
            _ => None,
        });
        assert_failure(&failure.unwrap_or_else(|| panic!("{part}: {:?}", run.client.seen)), kind, part);
        assert_eq!(run.client.bodies[&1], b"fine");
    }
}

#[test]
fn a_stream_of_unknown_type_is_stopped_and_the_rest_continues() {
    let mut script = Script::replying(vec![Reply::Whole(response(b"fine"))]);
    script.streams.push((vec![0x40, 0x54, 1, 2, 3], false));
    let mut run = join(&Net::CLEAN, &Pins::default(), script, vec![get("/")]);
    run_until_finished(&mut run, 1);
    assert_eq!(run.client.bodies[&0], b"fine");
    run.run_until(10_000, |_, server| !server.client_stops.is_empty()).unwrap();
    assert_eq!(run.server.client_stops, [0x103]);
}

#[test]
fn a_closed_connection_fails_its_requests() {
    let (run, outcome) = {
        let script = Script::replying(vec![Reply::Close(0x102)]);
        let mut run = join(&Net::CLEAN, &Pins::default(), script, vec![get("/1"), get("/2")]);
        let outcome = run_until_closed(&mut run);
        (run, outcome)
    };
    assert_failed(&outcome, FailureKind::Reset, "H3_INTERNAL_ERROR");
    assert_eq!(run.client.finished(), 2);
}

#[test]
fn a_server_that_leaves_in_good_order_fails_only_what_it_left_unanswered() {
    let mut script = Script::replying(vec![Reply::Whole(response(b"first")), Reply::Close(0x100)]);
    script.request_streams = 1;
    let mut run = join(&Net::CLEAN, &Pins::default(), script, vec![get("/1"), get("/2")]);
    assert_failed(&run_until_closed(&mut run), FailureKind::Closed, "H3_NO_ERROR");
    assert!(run.client.seen.iter().any(|(_, seen)| matches!(seen, LoggedEvent::End(0))));
    assert!(run.client.seen.iter().any(|(_, seen)| matches!(seen, LoggedEvent::Failed(1, _))));
    let script = Script::replying(vec![Reply::Farewell(response(b"only"))]);
    let mut run = join(&Net::CLEAN, &Pins::default(), script, vec![get("/")]);
    assert_eq!(run_until_closed(&mut run), Outcome::Ok);
    assert_eq!(run.client.bodies[&0], b"only");
    assert!(run.client.engine_is_closed());
}

#[test]
fn a_wrong_authority_fails_the_handshake_with_the_reason() {
    let (authority, other) = (Authority::new(), Authority::new());
    let script = Script::replying(vec![Reply::Silence]);
    let mut run = join_trusting(&Net::CLEAN, &Pins::default(), script, vec![get("/")], &authority, &other);
    let outcome = run_until_closed(&mut run);
    assert_failed(&outcome, FailureKind::Tls, "certificate");
    assert_eq!(run.client.sent, 0);
}

#[test]
fn another_protocol_than_h3_is_a_wrong_version() {
    let mut script = Script::replying(vec![Reply::Silence]);
    script.alpn = b"hq-interop";
    let mut run = join(&Net::CLEAN, &Pins::default(), script, vec![get("/")]);
    let outcome = run_until_closed(&mut run);
    let Outcome::Failed(failure) = outcome else { panic!() };
    assert_eq!(failure.kind, FailureKind::WrongVersion, "{failure:?}");
}

#[test]
fn a_server_that_stalls_times_the_request_out() {
    let begun = [headers(&[(":status", "200")]), frame(0x00, b"half")].concat();
    let script = Script::replying(vec![Reply::Part(begun)]);
    let mut run = join(&Net::CLEAN, &Pins::default(), script, vec![get("/")]);
    let outcome = run_until_closed(&mut run);
    assert_failed(&outcome, FailureKind::Timeout, "30000 ms");
    assert_eq!(run.client.finished(), 1);
    assert_eq!(run.client.bodies[&0], b"half", "what came is handed on");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_on_any_stream_end_in_order(
        reply in prop::collection::vec(any::<u8>(), 0..200),
        control in prop::collection::vec(any::<u8>(), 0..60),
        typed in 0_u8..4,
    ) {
        let mut script = Script::replying(vec![Reply::Whole(reply)]);
        script.streams = vec![([&[typed], &control[..]].concat(), false)];
        let mut run = join(&Net::CLEAN, &Pins::default(), script, vec![get("/")]);
        let result = run.run_until(10_000, |browser, _| browser.finished() == 1 || browser.outcome().is_some());
        prop_assert_eq!(result, Ok(()));
        if run.client.outcome().is_some() {
            prop_assert_eq!(run.client.finished(), usize::try_from(run.client.sent).unwrap());
        }
    }
}
