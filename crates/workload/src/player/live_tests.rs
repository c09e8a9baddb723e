//! Live streams on a virtual clock.

use model::player::{LivePlay, Rule};

use super::*;
use crate::formats::hds::bootstrap::{
    Bootstrap, Discontinuity, FragmentRun, FragmentSpan, FragmentTable, SegmentRun, SegmentTable, runs_of,
};
use crate::formats::hds::parse_fragment_name;
use crate::source::{Content, RequestSource};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// The stream is older than the player.
const SEGMENT_MS: u64 = 2_000;
const WINDOW: u64 = 5;
/// How much older streams are, by the clock of their servers.
const AGE_MS: u64 = 100_000;

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
    let live = LivePlay {
        manifest: "/live/a.m3u8".to_owned(),
        latency_ns: 6 * S,
        catch_up,
        duration_ns: 60 * S,
        most_requests: None,
    };
    Player {
        presentation: model::media::Presentation::default(),
        goal_ns: 12 * S,
        startup_ns: 1,
        rebuffer_ns: 1,
        rule: Rule::Throughput,
        seeks: Vec::new(),
        live: Some(live),
        cmcd: None,
        browser: None,
        origin: None,
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
                let content =
                    Content { body, origin: "http://origin", now_ns: now, now_unix_ns: AGE_MS * MS + now };
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
fn requests_for_a_live_stream_are_limited() {
    let limited = |most: u64| {
        let mut player = player(false);
        player.live.as_mut().unwrap().most_requests = Some(most);
        let mut requests = 0;
        let (events, _) = watch(&player, |path, now_ms| {
            requests += 1;
            with_playlists(|now_ms| Some(healthy(now_ms)))(path, now_ms)
        });
        let last = events.last().unwrap();
        (requests, last.what, last.fault)
    };
    assert_eq!(limited(20), (20, PlayerEventKind::GaveUp, Some(PlayerFault::TooManyRequests)));
    let (requests, what, fault) = limited(210);
    assert!((50..100).contains(&requests), "{requests}");
    assert_eq!((what, fault), (PlayerEventKind::Ended, None));
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

/// An MPD at a time since the player began; `periods` gets the time since the stream did.
fn mpd(now_ms: u64, periods: impl FnOnce(u64) -> String) -> Option<Vec<u8>> {
    const HEAD: &str = "<MPD type='dynamic' availabilityStartTime='1970-01-01T00:00:00Z'
                        minimumUpdatePeriod='PT2S' timeShiftBufferDepth='PT10S'>";
    Some(format!("{HEAD}{}</MPD>", periods(AGE_MS + now_ms)).into_bytes())
}

/// A period from `start_ms` on, whose listed segments begin at `first_ms` and end before `end_ms`.
fn timeline(start_ms: u64, first_ms: u64, end_ms: u64, attributes: &str) -> String {
    let repeat = ((end_ms - first_ms) / SEGMENT_MS).saturating_sub(1);
    format!(
        "<Period start='PT{}S'><AdaptationSet contentType='video'><SegmentTemplate timescale='1000' {attributes}>
         <SegmentTimeline><S t='{first_ms}' d='{SEGMENT_MS}' r='{repeat}'/></SegmentTimeline></SegmentTemplate>
         <Representation id='v' bandwidth='1000000'/></AdaptationSet></Period>",
        start_ms / 1_000
    )
}

/// What a player requests, in its order, of a stream whose manifest comes from a function; and its events.
fn watched(manifest: impl Fn(u64) -> Option<Vec<u8>>) -> (Vec<String>, Vec<PlayerEvent>) {
    let mut segments = Vec::new();
    let (events, _) = watch(&player(false), |path, now_ms| match path {
        "/live/a.m3u8" => (20, manifest(now_ms)),
        _ => {
            segments.push(path.to_owned());
            (500, Some(vec![0; 1000]))
        }
    });
    let last = events.last().unwrap();
    assert_eq!((last.what, last.at_ns, last.fault), (PlayerEventKind::Ended, 60 * S, None), "{segments:?}");
    (segments, events)
}

/// The same, of a stream without gaps: it is watched at its latency.
fn watched_well(manifest: impl Fn(u64) -> Option<Vec<u8>>) -> Vec<String> {
    let (segments, events) = watched(manifest);
    let stalls = events.iter().filter(|event| event.what == PlayerEventKind::Stalled).count();
    assert_eq!(stalls, 0, "{segments:?}");
    let latencies = latencies_s(&events);
    assert!(latencies[1..].iter().all(|latency| (6.0..9.0).contains(latency)), "{latencies:?}");
    segments
}

/// Numbers of a timeline need not count: with `$Time$`, packagers leave them out or constant.
#[test]
fn a_sliding_timeline_is_aligned_by_its_times() {
    for attributes in ["media='$Time$'", "media='$Time$' startNumber='1'"] {
        let window = |now_ms: u64| now_ms / SEGMENT_MS * SEGMENT_MS;
        let segments = watched_well(|now_ms| {
            mpd(now_ms, |now_ms| {
                timeline(0, window(now_ms) - WINDOW * SEGMENT_MS, window(now_ms), attributes)
            })
        });
        let expected: Vec<String> = (0..segments.len() as u64)
            .map(|place| format!("/live/{}", 94_000 + place * SEGMENT_MS))
            .collect();
        assert_eq!(segments, expected);
        assert!(segments.len() >= 28, "{segments:?}");
    }
}

/// Each period has 5 segments with the numbers 1 to 5, and each second one a longer ladder. The next one is
/// announced before it begins.
#[test]
fn periods_may_leave_the_window_and_begin_again() {
    const PERIOD_MS: u64 = WINDOW * SEGMENT_MS;
    let period = |begin_ms: u64| {
        let media = format!("media='{}-$Number$'", begin_ms / PERIOD_MS);
        let has_more = (begin_ms / PERIOD_MS).is_multiple_of(2);
        let more = if has_more { "<Representation id='w' bandwidth='2000000'/>" } else { "" };
        let (begin_s, period_s, segment_s) = (begin_ms / 1_000, PERIOD_MS / 1_000, SEGMENT_MS / 1_000);
        format!(
            "<Period start='PT{begin_s}S' duration='PT{period_s}S'><AdaptationSet contentType='video'>
             <SegmentTemplate duration='{segment_s}' {media} initialization='{begin_s}-i'/>
             <Representation id='v' bandwidth='1000000'/>{more}</AdaptationSet></Period>"
        )
    };
    let listed = |period: u64| {
        let segments = (1..=WINDOW).map(move |number| format!("/live/{period}-{number}"));
        std::iter::once(format!("/live/{}-i", period * PERIOD_MS / 1_000)).chain(segments)
    };
    let numbered = watched_well(|now_ms| {
        mpd(now_ms, |now_ms| {
            let current = now_ms / PERIOD_MS * PERIOD_MS;
            [current - PERIOD_MS, current, current + PERIOD_MS].map(period).concat()
        })
    });
    // It begins with the third segment of the ninth period.
    let expected = (9..20).flat_map(listed).enumerate().filter(|(place, _)| ![1, 2].contains(place));
    let expected: Vec<String> = expected.map(|(_, path)| path).take(numbered.len()).collect();
    assert_eq!(numbered, expected);
    assert!(numbered.len() >= 34, "{numbered:?}");
}

/// The numbers of missing segments are not given again.
#[test]
fn gaps_in_a_playlist_keep_its_numbers() {
    let (segments, _) = watched(|now_ms| {
        let text = String::from_utf8(healthy(now_ms)).unwrap();
        Some(text.replace("/live/53.ts", "#EXT-X-GAP\n/live/53.ts").into_bytes())
    });
    let all =
        segments.iter().filter_map(|path| path.strip_prefix("/live/")?.strip_suffix(".ts")?.parse().ok());
    let numbers: Vec<u64> = all.collect();
    let expected: Vec<u64> = (47..).filter(|number| *number != 53).take(numbers.len()).collect();
    assert_eq!(numbers, expected);
    assert!(numbers.len() >= 27, "{numbers:?}");
}

/// A bootstrap of fragments of a live stream, given by their numbers and the times at which they begin, in
/// milliseconds. A gap before the first one has a discontinuity entry, so that segments are known.
fn live_bootstrap(fragments: &[(u32, u64)]) -> Vec<u8> {
    let spans: Vec<FragmentSpan> = fragments
        .iter()
        .map(|(number, start)| FragmentSpan { number: *number, start: *start, duration: 2_000 })
        .collect();
    let first = spans[0];
    let segment = (first.number - 1) / 5;
    let gap = FragmentRun {
        first_fragment: segment * 5 + 1,
        first_time: first.start,
        duration: 0,
        discontinuity: Some(Discontinuity::Numbers),
    };
    let has_gap = gap.first_fragment < first.number;
    let runs: Vec<FragmentRun> = has_gap.then_some(gap).into_iter().chain(runs_of(&spans, false)).collect();
    let last = fragments.last().map_or(0, |(_, start)| start + 2_000);
    let bootstrap = Bootstrap {
        timescale: 1_000,
        is_live: true,
        current_time: last,
        segment_tables: vec![SegmentTable {
            runs: vec![SegmentRun { first_segment: segment + 1, fragments_per_segment: 5 }],
            ..SegmentTable::default()
        }],
        fragment_tables: vec![FragmentTable { timescale: 1_000, runs, ..FragmentTable::default() }],
        ..Bootstrap::default()
    };
    let mut bytes = Vec::new();
    bootstrap.write(&mut bytes);
    bytes
}

/// What a player of a live HDS stream requests, by the numbers of the fragments, and its events. The window
/// comes from the time of the stream in milliseconds; a fragment that it lacks is not served.
fn fragments_watched(
    mut player: Player,
    window: impl Fn(u64) -> Vec<(u32, u64)>,
) -> (Vec<u32>, Vec<PlayerEvent>) {
    player.live.as_mut().unwrap().manifest = "/live/manifest.f4m".to_owned();
    let manifest = "<manifest xmlns='http://ns.adobe.com/f4m/1.0'><streamType>live</streamType>\
                    <bootstrapInfo profile='named' id='b' url='film.bootstrap'/>\
                    <media url='film' bitrate='1000' bootstrapInfoId='b'/></manifest>";
    let mut requested = Vec::new();
    let (events, _) = watch(&player, |path, now_ms| {
        let listed = window(AGE_MS + now_ms);
        match path {
            "/live/manifest.f4m" => (20, Some(manifest.as_bytes().to_vec())),
            "/live/film.bootstrap" => (20, Some(live_bootstrap(&listed))),
            fragment => {
                let (_, segment, number) = parse_fragment_name(fragment).unwrap();
                assert_eq!(segment, 1 + (number - 1) / 5, "{fragment}");
                requested.push(number);
                let exists = listed.iter().any(|(own, _)| *own == number);
                (300, exists.then(|| vec![0; 1000]))
            }
        }
    });
    (requested, events)
}

fn count_of(events: &[PlayerEvent], what: PlayerEventKind) -> usize {
    events.iter().filter(|event| event.what == what).count()
}

fn assert_watched(events: &[PlayerEvent]) {
    let last = events.last().unwrap();
    assert_eq!((last.what, last.at_ns, last.fault), (PlayerEventKind::Ended, 60 * S, None), "{events:#?}");
    assert_eq!(count_of(events, PlayerEventKind::Failed), 0, "{events:#?}");
}

/// The complete fragments of a stream by their times, with these numbers, in a sliding window.
fn sliding(now_ms: u64, number: impl Fn(u64) -> Option<u32>) -> Vec<(u32, u64)> {
    let end = now_ms / SEGMENT_MS;
    (end - WINDOW..end).filter_map(|place| Some((number(place)?, place * SEGMENT_MS))).collect()
}

/// Every fourth number is left out; nothing of the media is.
#[test]
fn numbers_of_fragments_may_have_gaps_without_gaps_in_the_media() {
    let number = |place: u64| u32::try_from(place + place / 3).unwrap() + 1;
    let (requested, events) =
        fragments_watched(player(false), |now_ms| sliding(now_ms, |place| Some(number(place))));
    assert_watched(&events);
    assert_eq!(count_of(&events, PlayerEventKind::Stalled), 0, "{events:#?}");
    let expected: Vec<u32> = (47..).map(number).take(requested.len()).collect();
    assert_eq!(requested, expected);
    assert!(requested.len() >= 28, "{requested:?}");
    let latencies = latencies_s(&events);
    assert!(latencies[1..].iter().all(|latency| (6.0..9.0).contains(latency)), "{latencies:?}");
}

/// Fragments that packagers lost leave a gap in numbers and times; it slides through the window until only
/// newer fragments are listed.
#[test]
fn missing_fragments_slide_through_the_window() {
    for lost in [1, 2, 3, 4] {
        let is_lost = move |place: u64| (55..55 + lost).contains(&place);
        let window =
            |now_ms| sliding(now_ms, |place| (!is_lost(place)).then(|| u32::try_from(place + 1).unwrap()));
        let (requested, events) = fragments_watched(player(false), window);
        assert_watched(&events);
        assert!(requested.iter().all(|number| !is_lost(u64::from(*number) - 1)), "{requested:?}");
        assert!(requested.is_sorted_by(|one, next| one < next) && requested.len() >= 24, "{requested:?}");
        // The lost media is left out of its time, and the edge is noted anew.
        let latency_s = *latencies_s(&events).last().unwrap();
        assert!((2.0..9.0).contains(&latency_s), "{lost} lost: {latency_s} s");
    }
}

/// The packager lost media, and numbers on without a gap.
#[test]
fn times_of_fragments_may_have_gaps_without_gaps_in_the_numbers() {
    let number = |place: u64| match place {
        0..55 => Some(u32::try_from(place).unwrap() + 1),
        55..57 => None,
        _ => Some(u32::try_from(place).unwrap() - 1),
    };
    let (requested, events) = fragments_watched(player(false), |now_ms| sliding(now_ms, number));
    assert_watched(&events);
    let expected: Vec<u32> = (48..).take(requested.len()).collect();
    assert_eq!(requested, expected, "the numbers have no gap");
    let latencies = latencies_s(&events);
    // Without the two fragments, playback is nearer to the edge.
    assert!(latencies.last().unwrap() < &9.0, "{latencies:?}");
}

/// The window of a stream whose packager lost much has less media than the player's latency, at first a
/// single fragment.
#[test]
fn a_player_does_not_begin_before_the_window() {
    let has = |place: u64| place >= 51 || place == 48;
    let window = |now_ms: u64| sliding(now_ms, |place| has(place).then(|| u32::try_from(place + 1).unwrap()));
    let (requested, events) = fragments_watched(player(false), window);
    assert_watched(&events);
    let expected: Vec<u32> = (48..)
        .filter(|place| has(*place))
        .map(|place| u32::try_from(place + 1).unwrap())
        .take(requested.len())
        .collect();
    assert_eq!(requested, expected);
}

/// A fragment that was listed is withdrawn before the player requests it, and it goes on after it.
#[test]
fn a_fragment_may_vanish_from_the_window() {
    let number = |now_ms: u64| {
        move |place: u64| {
            let has_vanished = place == 56 && now_ms >= 57 * SEGMENT_MS + 1_500;
            (!has_vanished).then(|| u32::try_from(place + 1).unwrap())
        }
    };
    let mut hesitant = Player { goal_ns: 2 * S, ..player(false) };
    hesitant.live.as_mut().unwrap().latency_ns = 8 * S;
    let (requested, events) = fragments_watched(hesitant, |now_ms| sliding(now_ms, number(now_ms)));
    assert_watched(&events);
    assert!(!requested.contains(&57) && requested.contains(&56) && requested.contains(&58), "{requested:?}");
    assert_eq!(count_of(&events, PlayerEventKind::Seeked), 0, "{events:#?}");
    assert_eq!(count_of(&events, PlayerEventKind::Stalled), 0, "{events:#?}");
}
