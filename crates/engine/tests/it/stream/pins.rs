//! Each pin of HTTP/2 is announced, and held to.

use engine::Protocol;
use engine::h2::frame::{PREFACE, flag, kind};
use engine::h2::{Http2, Limits};
use model::pins::Http2Pins;
use model::sample::FailureKind;

use super::h2::{OK, Script, frames_of};
use super::{Log, deliver, get, output};

const PINS: Http2Pins = Http2Pins {
    stream_window_bytes: 100_000,
    connection_window_bytes: 150_000,
    header_table_bytes: 128,
    max_frame_bytes: 20_000,
    accept_push: false,
};

/// A connection with these pins and one sent request, after the client's preface.
fn open(pins: &Http2Pins) -> (Http2, Vec<u8>) {
    let mut http = Http2::new(pins, Limits::default());
    http.start();
    http.send_request(1, &get("/a")).unwrap();
    let sent = output(&mut http);
    (http, sent)
}

/// How the connection ended after `script`, if it did.
fn failure(pins: &Http2Pins, script: &Script) -> Option<(FailureKind, String)> {
    let (mut http, _) = open(pins);
    let mut log = Log::default();
    deliver(&mut http, &script.bytes, &[usize::MAX], &mut log);
    http.is_closed().then(|| {
        let (kind, reason) = log.closed_failure();
        (kind, reason.to_owned())
    })
}

#[test]
fn what_is_pinned_is_announced() {
    let (_, sent) = open(&PINS);
    assert!(sent.starts_with(PREFACE));
    let settings = &frames_of(kind::SETTINGS, &sent)[0].1;
    let value = |id: u8| {
        let entry = settings.as_chunks::<6>().0.iter().find(|entry| entry[1] == id).unwrap();
        u32::from_be_bytes([entry[2], entry[3], entry[4], entry[5]])
    };
    assert_eq!((value(1), value(4), value(5)), (128, 100_000, 20_000));
    let updates = frames_of(kind::WINDOW_UPDATE, &sent);
    assert_eq!((updates.len(), updates[0].0.stream), (1, 0));
    assert_eq!(updates[0].1, (150_000u32 - 65_535).to_be_bytes());
}

#[test]
fn before_settings_a_hundred_requests_are_taken_as_browsers_do() {
    let (mut http, _) = open(&PINS);
    assert_eq!(http.available_requests(), 99);
    for id in 2..=100 {
        http.send_request(id, &get("/a")).unwrap();
    }
    assert_eq!(http.available_requests(), 0);
    deliver(&mut http, &Script::new().settings(&[(3, 128)]).bytes, &[usize::MAX], &mut Log::default());
    assert_eq!(http.available_requests(), 28);
}

#[test]
fn frames_may_be_as_large_as_pinned_and_no_larger() {
    let pins = Http2Pins { header_table_bytes: 4096, ..PINS };
    let data = |bytes: usize| Script::new().headers(1, false, OK).data(1, false, &vec![0; bytes]);
    assert_eq!(failure(&pins, &data(20_000)), None);
    let (kind, reason) = failure(&pins, &data(20_001)).unwrap();
    assert_eq!(kind, FailureKind::Protocol);
    assert!(reason.contains("SETTINGS_MAX_FRAME_SIZE is 20000"), "{reason}");
}

#[test]
fn the_windows_hold_as_pinned() {
    // A stream's window is opened again at half of 100 000, the connection's at half of 150 000.
    let (mut http, _) = open(&Http2Pins { header_table_bytes: 4096, ..PINS });
    let mut log = Log::default();
    let mut opened = Vec::new();
    deliver(&mut http, &Script::new().headers(1, false, OK).bytes, &[usize::MAX], &mut log);
    for _ in 0..8 {
        deliver(&mut http, &Script::bare().data(1, false, &[0; 10_000]).bytes, &[usize::MAX], &mut log);
        for (header, payload) in frames_of(kind::WINDOW_UPDATE, &output(&mut http)) {
            opened.push((
                log.body_of(1).len(),
                header.stream,
                u32::from_be_bytes(payload.try_into().unwrap()),
            ));
        }
    }
    assert_eq!(opened, [(50_000, 1, 50_000), (80_000, 0, 80_000)]);
}

#[test]
fn the_header_table_is_no_larger_than_pinned() {
    let update = |size: u8| {
        let block = [0x3f, size - 31, 0x88];
        Script::new().frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &block)
    };
    assert_eq!(failure(&PINS, &update(128)), None);
    let (_, reason) = failure(&PINS, &update(129)).unwrap();
    assert!(reason.contains("COMPRESSION_ERROR") && reason.contains("allows 128"), "{reason}");
    // The table was 4096 bytes large and must be said to be smaller, once the server knows.
    let (_, reason) = failure(&PINS, &Script::new().headers(1, true, OK)).unwrap();
    assert!(reason.contains("no table size update"), "{reason}");
    let large = Http2Pins { header_table_bytes: 65_536, ..PINS };
    assert_eq!(failure(&large, &Script::new().headers(1, true, OK)), None);
}
