//! Live streams on a virtual clock.

use model::player::{LivePlay, Rule};

use super::*;
use crate::source::{Content, RequestSource};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// The stream is older than the player.
const SEGMENT_MS: u64 = 2_000;
const WINDOW: u64 = 5;

/// A media playlist with the segments `first` to `end`.
fn playlist(first: u64, end: u64) -> Vec<u8> {
    let mut text =
        format!("#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:{first}\n");
    for number in first..end {
        text.push_str(&format!("#EXTINF:2.0,\n/live/{number}.ts\n"));
    }
    text.into_bytes()
}

/// The playlist of a healthy stream at a time since the player began.
fn healthy(now_ms: u64) -> Vec<u8> {
    let end = 50 + now_ms / SEGMENT_MS;
    playlist(end - WINDOW, end)
}

fn player(catch_up: bool) -> Player {
    let live =
        LivePlay { manifest: "/live/a.m3u8".to_owned(), latency_ns: 6 * S, catch_up, duration_ns: 60 * S };
    Player {
        presentation: model::media::Presentation::default(),
        goal_ns: 12 * S,
        startup_ns: 1,
        rebuffer_ns: 1,
        rule: Rule::Throughput,
        seeks: Vec::new(),
        live: Some(live),
        cmcd: None,
    }
}

/// What a server answers: after how long, and the body; `None` for a failure.
type Answer = (u64, Option<Vec<u8>>);

/// Watches a stream; `server` answers the path of a request at a time in milliseconds. The events, and how
/// many requests there were for the playlist.
fn watch(player: &Player, mut server: impl FnMut(&str, u64) -> Answer) -> (Vec<PlayerEvent>, usize) {
    let mut urls = UrlTable::new(player.resources());
    let mut video = VideoPlayer::new(Arc::new(Video::new(player)), Seeds::new(1, 0, 0), 0);
    let mut in_flight: Vec<(u64, u32, Option<Vec<u8>>)> = Vec::new();
    let (mut now, mut manifests, mut rounds) = (0, 0, 0);
    while !video.is_finished(now) {
        rounds += 1;
        assert!(rounds < 100_000, "it goes on forever");
        video.handle_time(now);
        while let Some(url) = video.take_cancelled() {
            in_flight.retain(|(_, own, _)| *own != url);
            video.handle_done(url, false, now);
        }
        while let Some(due) = video.poll_request(0, now) {
            let path = urls.resources()[due.url as usize].path.clone();
            let (took_ms, body) = server(&path, now / MS);
            manifests += usize::from(video.wants_body(due.url));
            in_flight.push((now + took_ms * MS, due.url, body));
        }
        let done_ns = in_flight.iter().map(|(done_ns, ..)| *done_ns).min();
        let Some(next) = done_ns.into_iter().chain(video.next_ns()).min() else { break };
        now = next.max(now);
        let Some(done) = in_flight.iter().position(|(done_ns, ..)| *done_ns <= now) else { continue };
        let (_, url, body) = in_flight.remove(done);
        if let Some(body) = &body {
            video.handle_body(url, body.len() as u64, now);
            if video.wants_body(url) {
                let body = (body.len() < 4 << 20).then_some(body.as_slice());
                let content = Content { body, origin: "http://origin", now_ns: now, now_unix_ns: now };
                video.handle_content(url, &content, &mut urls);
            }
        }
        video.handle_done(url, body.is_some(), now);
    }
    assert!(video.is_finished(now), "{:?}", video.events);
    (video.take_player_events(), manifests)
}

/// A server whose playlists come from a function, and whose segments take half a second.
fn with_playlists(mut playlist: impl FnMut(u64) -> Option<Vec<u8>>) -> impl FnMut(&str, u64) -> Answer {
    move |path, now_ms| match path {
        "/live/a.m3u8" => (20, playlist(now_ms)),
        _ => (500, Some(vec![0; 1000])),
    }
}

fn latencies_s(events: &[PlayerEvent]) -> Vec<f64> {
    let arrived = events.iter().filter(|event| event.what == PlayerEventKind::Arrived);
    arrived.filter_map(|event| event.latency_ns).map(|ns| model::number::float(ns) / 1e9).collect()
}

#[test]
fn a_live_stream_is_watched_behind_its_edge() {
    let (events, manifests) = watch(&player(false), with_playlists(|now_ms| Some(healthy(now_ms))));
    let last = events.last().unwrap();
    assert_eq!((last.what, last.at_ns, last.fault), (PlayerEventKind::Ended, 60 * S, None));
    assert_eq!(
        events.iter().filter(|event| event.what == PlayerEventKind::Stalled).count(),
        0,
        "{events:#?}"
    );
    // Three segments before the edge, and half a second until the first is there.
    let latencies = latencies_s(&events);
    assert!(latencies[1..].iter().all(|latency| (6.0..9.0).contains(latency)), "{latencies:?}");
    let arrived: Vec<u32> = events
        .iter()
        .filter(|event| event.what == PlayerEventKind::Arrived)
        .map(|event| event.segment)
        .collect();
    assert!(arrived.is_sorted() && arrived.len() >= 28, "{arrived:?}");
    assert!((25..=70).contains(&manifests), "{manifests}");
}

#[test]
fn playback_catches_up_with_the_edge() {
    let slow = |path: &str, now_ms: u64| match path {
        "/live/a.m3u8" => (20, Some(healthy(now_ms))),
        // Three seconds without anything.
        _ if (9_000..10_000).contains(&now_ms) => (4_000, Some(vec![0; 1000])),
        _ => (100, Some(vec![0; 1000])),
    };
    let at_end = |catch_up| *latencies_s(&watch(&player(catch_up), slow).0).last().unwrap();
    let (with, without) = (at_end(true), at_end(false));
    assert!(with < without - 0.2 || (with - 6.0).abs() < 0.3, "{with} s with, {without} s without");
    assert!((5.5..=7.0).contains(&with), "{with} s");
}

#[test]
fn a_player_that_was_left_behind_jumps_to_the_edge() {
    let (events, _) = watch(&player(false), |path, now_ms| match path {
        "/live/a.m3u8" => (20, Some(healthy(now_ms))),
        _ if (6_000..7_000).contains(&now_ms) => (25_000, Some(vec![0; 1000])),
        _ => (100, Some(vec![0; 1000])),
    });
    let seeked = events.iter().filter(|event| event.what == PlayerEventKind::Seeked).count();
    assert!(seeked >= 1, "{events:#?}");
    assert_eq!(events.last().unwrap().what, PlayerEventKind::Ended);
    assert!(latencies_s(&events).last().unwrap() < &9.0);
}

#[test]
fn bad_manifests_have_a_named_outcome() {
    let fault = |server: &mut dyn FnMut(&str, u64) -> Answer| {
        let (events, manifests) = watch(&player(true), server);
        let last = events.last().unwrap();
        assert_eq!(last.what, PlayerEventKind::GaveUp, "{events:#?}");
        (last.fault.unwrap(), manifests)
    };
    let invalid = fault(&mut with_playlists(|_| Some(b"<html>not found</html>".to_vec())));
    assert_eq!(invalid, (PlayerFault::ManifestInvalid, 3));
    let empty = fault(&mut with_playlists(|_| Some(playlist(5, 5))));
    assert_eq!(empty.0, PlayerFault::ManifestInvalid);
    let failing = fault(&mut with_playlists(|_| None));
    assert_eq!(failing, (PlayerFault::ManifestFailed, 3));
    let stalled = fault(&mut with_playlists(|now_ms| Some(healthy(now_ms.min(10_000)))));
    assert_eq!(stalled.0, PlayerFault::ManifestStalled);
    let back = fault(&mut with_playlists(|now_ms| Some(healthy(if now_ms > 10_000 { 0 } else { now_ms }))));
    assert_eq!(back.0, PlayerFault::ManifestWentBack);
    let endless = fault(&mut with_playlists(|_| Some(vec![b'#'; 5 << 20])));
    assert_eq!(endless, (PlayerFault::ManifestTooLarge, 3));
    let many = fault(&mut with_playlists(|_| Some(playlist(0, 60_000))));
    assert_eq!(many.0, PlayerFault::ManifestTooLarge);
    let elsewhere = fault(&mut with_playlists(|_| {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2.0,\nhttps://example.org/1.ts\n";
        Some(text.as_bytes().to_vec())
    }));
    assert_eq!(elsewhere.0, PlayerFault::ManifestInvalid);
    let missing = fault(&mut |path: &str, now_ms: u64| match path {
        "/live/a.m3u8" => (20, Some(healthy(now_ms))),
        _ => (5, None),
    });
    assert_eq!(missing.0, PlayerFault::SegmentFailed);
    let slow = fault(&mut |path: &str, now_ms: u64| match path {
        "/live/a.m3u8" => (20, Some(healthy(now_ms))),
        _ => (100_000, None),
    });
    assert_eq!(slow.0, PlayerFault::NeverPlayed);
}

#[test]
fn a_stream_that_ends_is_played_to_its_end() {
    let (events, _) = watch(
        &player(false),
        with_playlists(|now_ms| {
            let mut text = healthy(now_ms.min(20_000));
            if now_ms >= 20_000 {
                text.extend_from_slice(b"#EXT-X-ENDLIST\n");
            }
            Some(text)
        }),
    );
    let last = events.last().unwrap();
    assert_eq!(last.what, PlayerEventKind::Ended);
    assert!(last.at_ns < 30 * S, "{}", last.at_ns);
}
