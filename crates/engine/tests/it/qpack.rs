//! QPACK's dynamic table within HTTP/3 connections, on a virtual clock.

use engine::h3::qpack::{Decoder, EncoderInstruction, Prefix, Text};
use engine::{Connection, Request};
use model::Pins;
use model::pins::Http3Pins;
use model::sample::FailureKind;
use path::sim::Endpoint;

use crate::quic_peer::*;

fn pins(qpack_table_bytes: u32) -> Pins {
    Pins { http3: Http3Pins { qpack_table_bytes, ..Http3Pins::default() }, ..Pins::default() }
}

/// The instructions that put `status` 200 with a literal name into a table of 220 bytes.
fn insertion() -> Vec<u8> {
    let mut bytes = Vec::new();
    EncoderInstruction::SetCapacity(220).write(&mut bytes);
    let (name, value) = (Text::plain(b"server"), Text::plain(b"test/1"));
    EncoderInstruction::InsertWithLiteralName { name, value }.write(&mut bytes);
    bytes
}

/// `:status` 200 from the static table, and the first entry of a table of 220 bytes.
fn dynamic_head() -> Vec<u8> {
    let mut section = Vec::new();
    Prefix { required_inserts: 1, base: 1 }.write(220 / 32, &mut section);
    section.extend_from_slice(&[0xc0 | 25, 0x80]);
    frame(0x01, &section)
}

fn dynamic_response() -> Vec<u8> {
    [dynamic_head(), frame(0x00, b"ok")].concat()
}

fn ended(run: &Run) -> Vec<u64> {
    let ends = run.client.seen.iter().filter_map(|(_, seen)| match seen {
        LoggedEvent::End(request) => Some(*request),
        _ => None,
    });
    ends.collect()
}

fn gets(count: usize) -> Vec<Request> {
    (0..count).map(|_| get("/")).collect()
}

#[test]
fn a_response_waits_for_the_table_and_is_acknowledged() {
    let replies =
        vec![Reply::Whole(dynamic_response()), Reply::Instructions(insertion(), response(b"static"))];
    let mut run = join(&Net::CLEAN, &pins(220), Script::replying(replies), gets(2));
    run_until_finished(&mut run, 2);
    assert_eq!(ended(&run).len(), 2);
    let bodies: Vec<&[u8]> = run.client.bodies.values().map(Vec::as_slice).collect();
    assert_eq!(bodies, [&b"ok"[..], b"static"]);
    let raw = run.client.seen.iter().find_map(|(_, seen)| match seen {
        LoggedEvent::Head(0, head) => Some((head.status, head.bytes.raw)),
        _ => None,
    });
    assert_eq!(raw, Some((200, 7 + 3 + 6 + 6)));
    let _ = run.run_until(50, |_, server| server.said.get(&2).is_some_and(|said| said.len() > 1));
    assert_eq!(run.server.said[&2], [0x03, 0x80], "the section of stream 0; no increment is left to say");
    assert_eq!(run.server.said[&0][..5], [0x00, 0x04, 0x0b, 0x01, 0x40], "SETTINGS announce the table");
}

#[test]
fn more_waiting_streams_than_announced_end_the_connection() {
    let replies = vec![Reply::Whole(dynamic_response())];
    let mut run = join(&Net::CLEAN, &pins(220), Script::replying(replies.clone()), gets(100));
    run.run_until(20_000, |_, server| server.uploads.len() == 100).unwrap();
    let a_second_later = run.now_ns + 1000 * MS;
    let _ =
        run.run_until(20_000, |browser, _| browser.next_timeout_ns().is_none_or(|at| at > a_second_later));
    assert_eq!((run.client.finished(), run.client.outcome()), (0, None), "all 100 wait");
    run.server.say(1, insertion());
    run_until_finished(&mut run, 100);
    assert_eq!(ended(&run).len(), 100);
    let many = Script { request_streams: 200, ..Script::replying(replies) };
    let mut run = join(&Net::CLEAN, &pins(220), many, gets(101));
    assert_failed(&run_until_closed(&mut run), FailureKind::Protocol, "QPACK_DECOMPRESSION_FAILED");
    assert_eq!(run.client.finished(), 101);
}

#[test]
fn each_fault_of_the_servers_qpack_has_its_code() {
    let cases: [(Reply, &str); 5] = [
        (Reply::Instructions(vec![0x3f, 0xbe, 0x01], response(b"")), "QPACK_ENCODER_STREAM_ERROR"),
        (Reply::Instructions(vec![0x00], response(b"")), "QPACK_ENCODER_STREAM_ERROR"),
        (Reply::Whole(frame(0x01, &[0x00, 0x00, 0x80])), "QPACK_DECOMPRESSION_FAILED"),
        (Reply::Whole(frame(0x01, &[0xff, 0x01, 0x00, 0x80])), "QPACK_DECOMPRESSION_FAILED"),
        (Reply::Whole(frame(0x01, &[0x02, 0xff])), "QPACK_DECOMPRESSION_FAILED"),
    ];
    for (reply, code) in cases {
        let mut run = join(&Net::CLEAN, &pins(220), Script::replying(vec![reply]), gets(1));
        assert_failed(&run_until_closed(&mut run), FailureKind::Protocol, code);
    }
    for said in [vec![0x03, 0x80], vec![0x03, 0x01], vec![0x03, 0x00]] {
        let streams = vec![(control_stream(&[]), false), (vec![0x02], false), (said, false)];
        let script = Script { streams, ..Script::replying(vec![Reply::Silence]) };
        let mut run = join(&Net::CLEAN, &pins(220), script, gets(1));
        assert_failed(&run_until_closed(&mut run), FailureKind::Protocol, "QPACK_DECODER_STREAM_ERROR");
    }
    let mut plain =
        join(&Net::CLEAN, &pins(0), Script::replying(vec![Reply::Whole(dynamic_response())]), gets(1));
    assert_failed(&run_until_closed(&mut plain), FailureKind::Protocol, "QPACK_DECOMPRESSION_FAILED");
}

#[test]
fn requests_use_the_servers_table_once_it_acknowledged() {
    // SETTINGS: a table of 4096 bytes, no stream may wait.
    let control = [&[0x00][..], &frame(0x04, &[0x01, 0x50, 0x00])].concat();
    let streams = vec![(control, false), (vec![0x02], false), (vec![0x03], false)];
    let script = Script { streams, ..Script::replying(vec![Reply::Whole(response(b"ok"))]) };
    let mut run = join(&Net::CLEAN, &pins(4096), script, gets(1));
    run_until_finished(&mut run, 1);
    // After the SETTINGS the next request teaches the table.
    ask(&mut run, 2);
    assert!(run.run_until(1000, |_, server| server.said[&1].len() > 1).is_ok());
    let mut decoder = Decoder::new(4096, 0);
    decoder.handle_instructions(&run.server.said[&1][1..]).unwrap();
    let inserts = decoder.inserts();
    assert!(inserts >= 2, "authority and user-agent at least: {inserts}");
    let mut feedback = Vec::new();
    decoder.poll_feedback(&mut feedback);
    run.server.say(2, feedback);
    ask(&mut run, 3);
    ask(&mut run, 4);
    let sizes: Vec<usize> = run.server.uploads.iter().map(Vec::len).collect();
    assert!(sizes[3] < sizes[0] && sizes[0] == sizes[1], "{sizes:?}");
    let mut fields = Vec::new();
    let section = &run.server.uploads[3][2..];
    decoder.section(12, section, |name, value| fields.push((name.to_vec(), value.to_vec()))).unwrap();
    assert!(fields.contains(&(b"user-agent".to_vec(), b"h123".to_vec())), "{fields:?}");
    assert_eq!(fields.len(), 5);
}

/// With a table and without one, with a body and without: behind what is repeated, and learnt by no table.
#[test]
fn a_field_that_varies_is_the_last_of_a_repeated_section() {
    for table in [0, 4096] {
        let control = [&[0x00][..], &frame(0x04, &[0x01, 0x50, 0x00])].concat();
        let streams = vec![(control, false), (vec![0x02], false), (vec![0x03], false)];
        let script = Script { streams, ..Script::replying(vec![Reply::Whole(response(b"ok"))]) };
        let varied = |number: usize| Request {
            varying: Some(engine::VaryingField { name: "x-request-id", value: format!("0-{number}") }),
            body: vec![b'x'; if number.is_multiple_of(2) { 0 } else { 70 }].into(),
            template: u32::try_from(number % 2).unwrap(),
            ..get("/")
        };
        let requests = (0..300).map(varied).collect();
        let mut run = join(&Net::CLEAN, &pins(table), script, requests);
        run_until_finished(&mut run, 300);
        let mut found = Vec::new();
        let mut decoder = Decoder::new(4096, 0);
        decoder.handle_instructions(run.server.said.get(&1).map_or(&[], |said| &said[1..])).unwrap();
        for upload in &run.server.uploads {
            // HEADERS with a length of one or two bytes.
            let (length, begins) = match upload[1] {
                short @ 0..0x40 => (usize::from(short), 2),
                long => (usize::from(long & 0x3f) << 8 | usize::from(upload[2]), 3),
            };
            assert_eq!(upload[0], 0x01);
            let (section, rest) = upload[begins..].split_at(length);
            let mut last = Vec::new();
            decoder
                .section(0, section, |name, value| {
                    last = [name, b"=", value].concat();
                })
                .unwrap();
            let number: usize =
                std::str::from_utf8(last.strip_prefix(b"x-request-id=0-").unwrap()).unwrap().parse().unwrap();
            assert_eq!(rest.len(), if number.is_multiple_of(2) { 0 } else { 3 + 70 }, "request {number}");
            found.push(number);
        }
        found.sort_unstable();
        assert!(found.into_iter().eq(0..300));
        assert!(decoder.inserts() < 10, "{} entries of 300 requests", decoder.inserts());
    }
}

/// Sends one more request and waits until `count` are done.
fn ask(run: &mut Run, count: usize) {
    let now = run.now_ns;
    let id = count as u64 - 1;
    run.client.engine.send_request(now, id, &get("/")).unwrap();
    run_until_finished(run, count);
}
