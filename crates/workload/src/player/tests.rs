//! Players on a virtual clock.

use model::media::{LaterInitialization, Presentation, Segment};
use model::player::{Cmcd, Rule, Seek, constant_rate_video};
use proptest::prelude::*;

use super::*;
use crate::source::RequestSource;

const MS: u64 = 1_000_000;
/// A run's clock does not begin with its client.
const BEGAN: u64 = 7 * MS;

fn video(rule: Rule) -> Player {
    Player {
        presentation: constant_rate_video(&[1_000_000, 2_500_000, 8_000_000], 500 * MS, 16),
        goal_ns: 2_000 * MS,
        startup_ns: 500 * MS,
        rebuffer_ns: 500 * MS,
        rule,
        seeks: Vec::new(),
        live: None,
        cmcd: None,
        browser: None,
        origin: None,
    }
}

/// A request on its way.
struct InFlight {
    url: u32,
    sent_ns: u64,
    done_ns: u64,
    bytes: u64,
    pieces: u64,
    is_ok: bool,
}

/// Bodies arrive in this many pieces.
const PIECES: u64 = 20;

impl InFlight {
    /// When its next piece arrives; the last one ends it.
    fn next_ns(&self) -> u64 {
        self.sent_ns + (self.done_ns - self.sent_ns) * (self.pieces + 1) / PIECES
    }
}

/// Plays a presentation on a virtual clock; `link` returns how long the n-th request takes, or its failure
/// after a while.
fn play(player: &Player, link: impl FnMut(usize, u64) -> Result<u64, u64>) -> Vec<PlayerEvent> {
    observe(player, link, |_, _| {})
}

/// The same; `sees` is called after each request with its URL.
fn observe(
    player: &Player,
    mut link: impl FnMut(usize, u64) -> Result<u64, u64>,
    mut sees: impl FnMut(&VideoPlayer, u32),
) -> Vec<PlayerEvent> {
    let mut video = VideoPlayer::new(Arc::new(Video::new(player)), Seeds::new(1, 0, 0), BEGAN);
    let tracks = player.presentation.tracks.len();
    let (mut now, mut in_flight, mut requests) = (BEGAN, Vec::<InFlight>::new(), 0);
    while !video.is_finished(0) {
        video.handle_time(now);
        while let Some(url) = video.take_cancelled() {
            let place = in_flight.iter().position(|one| one.url == url).expect("it is in flight");
            in_flight.remove(place);
            video.handle_done(url, false, now);
        }
        while let Some(due) = video.poll_request(0, now) {
            assert!(due.intended_ns <= now);
            sees(&video, due.url);
            let bytes = video.expected_body_bytes(due.url).unwrap();
            let answer = link(requests, bytes);
            let done_ns = now + answer.unwrap_or_else(|took| took);
            in_flight.push(InFlight {
                url: due.url,
                sent_ns: now,
                done_ns,
                bytes,
                pieces: 0,
                is_ok: answer.is_ok(),
            });
            assert!(in_flight.len() <= tracks, "one request of each track at a time");
            requests += 1;
        }
        let arrives_ns = in_flight.iter().map(InFlight::next_ns).min();
        let Some(next) = arrives_ns.into_iter().chain(video.next_ns()).min() else { break };
        assert!(next > now || arrives_ns == Some(next) || video.is_finished(0), "it moves on");
        now = next;
        let arrived = in_flight.iter_mut().find(|one| one.next_ns() <= now);
        let Some(one) = arrived else { continue };
        one.pieces += 1;
        let url = one.url;
        if one.is_ok {
            video.handle_body(url, one.bytes * one.pieces / PIECES, now);
        }
        if let Some(done) =
            in_flight.iter().position(|one| one.pieces == PIECES && !video.cancelled.contains(&one.url))
        {
            let done = in_flight.remove(done);
            video.handle_done(done.url, done.is_ok, now);
        }
    }
    assert!(video.is_finished(0));
    let events = video.take_player_events();
    let least = usize::try_from(player.most_requests().unwrap()).unwrap() * EVENTS_PER_SEGMENT;
    assert!(events.len() <= least + 2 * player.seeks.len() + 2, "memory is bounded");
    events
}

/// A link of a constant rate, nothing else.
fn at(bits_per_s: u64) -> impl FnMut(usize, u64) -> Result<u64, u64> {
    move |_, bytes| Ok(bytes * 8 * 1_000_000_000 / bits_per_s)
}

/// When something happened, in milliseconds since the player began.
fn stamps(events: &[PlayerEvent], what: PlayerEventKind) -> Vec<u64> {
    events.iter().filter(|event| event.what == what).map(|event| (event.at_ns - BEGAN) / MS).collect()
}

fn rungs(events: &[PlayerEvent]) -> Vec<u64> {
    let arrived = events.iter().filter(|event| event.what == PlayerEventKind::Arrived);
    arrived.map(|event| event.bits_per_s / 100_000).collect()
}

/// Start-up, media shown, stalls and the whole, in nanoseconds.
fn times(player: &Player, events: &[PlayerEvent]) -> (u64, u64, u64, u64) {
    let (mut startup, mut shown, mut stalled) = (0, 0, 0);
    let (mut before, mut state) = (BEGAN, PlayerEventKind::Requested);
    for event in events {
        let took = event.at_ns - before;
        match state {
            PlayerEventKind::Playing => shown += took,
            PlayerEventKind::Stalled => stalled += took,
            _ => startup += took,
        }
        before = event.at_ns;
        if event.track.is_none() {
            state = event.what;
        }
    }
    assert!(shown <= player.media_ns() || !player.seeks.is_empty());
    (startup, shown, stalled, before - BEGAN)
}

#[test]
fn a_link_of_half_the_bit_rate_stalls_for_half_of_the_time() {
    let player = video(Rule::Fixed { bits_per_s: 8_000_000 });
    let events = play(&player, at(4_000_000));
    // A segment of 4 Mbit takes a second and plays for half of one.
    let seconds = |from: u64, to: u64| (from..=to).map(|second| second * 1000).collect::<Vec<_>>();
    assert_eq!(stamps(&events, PlayerEventKind::Arrived), seconds(1, 16));
    assert_eq!(stamps(&events, PlayerEventKind::Requested), seconds(0, 15));
    assert_eq!(stamps(&events, PlayerEventKind::Playing), seconds(1, 16));
    let half_later: Vec<u64> = seconds(1, 15).into_iter().map(|ms| ms + 500).collect();
    assert_eq!(stamps(&events, PlayerEventKind::Stalled), half_later);
    assert_eq!(stamps(&events, PlayerEventKind::Ended), [16_500]);
    assert_eq!(times(&player, &events), (1000 * MS, 8000 * MS, 7500 * MS, 16_500 * MS));
}

#[test]
fn a_faster_link_waits_at_the_buffers_goal() {
    let player = video(Rule::Fixed { bits_per_s: 1_000_000 });
    let events = play(&player, at(4_000_000));
    // 125 ms for 500: the buffer grows by 375 with each, and above two seconds it is waited for.
    let requested = stamps(&events, PlayerEventKind::Requested);
    assert_eq!(requested[..8], [0, 125, 250, 375, 500, 625, 1125, 1625]);
    assert_eq!(times(&player, &events), (125 * MS, 8000 * MS, 0, 8125 * MS));
    let most = events.iter().map(|event| event.buffered_ns).max();
    assert_eq!(most, Some(2375 * MS));
}

#[test]
fn a_link_as_fast_as_the_media_never_stalls() {
    let player = video(Rule::Fixed { bits_per_s: 8_000_000 });
    let events = play(&player, at(8_000_000));
    assert_eq!(times(&player, &events), (500 * MS, 8000 * MS, 0, 8500 * MS));
    assert_eq!(stamps(&events, PlayerEventKind::Stalled), [0; 0]);
}

#[test]
fn rules_choose_what_the_link_carries() {
    let events = play(&video(Rule::Throughput), at(4_000_000));
    let mut expected = vec![25; 16];
    expected[0] = 10;
    assert_eq!(rungs(&events), expected);
    assert_eq!(rungs(&play(&video(Rule::Throughput), at(800_000))), [10; 16]);
    for rule in [Rule::Buffer, Rule::Bola] {
        let events = play(&video(rule), at(4_000_000));
        assert_eq!(rungs(&events)[0], 10, "{rule:?} begins at the bottom");
        assert!(rungs(&events).contains(&25), "{rule:?}: {:?}", rungs(&events));
        assert_eq!(rungs(&play(&video(rule), at(100_000_000)))[15], 80, "{rule:?}");
    }
}

#[test]
fn more_than_a_segment_may_be_wanted_before_it_begins() {
    let fixed = video(Rule::Fixed { bits_per_s: 8_000_000 });
    let player = Player { startup_ns: 1500 * MS, rebuffer_ns: 1500 * MS, ..fixed };
    let events = play(&player, at(4_000_000));
    // 1.5 s are there at 3 s, and with what comes at 4 and 5 s they last until 5.5 s; the next 1.5 s are
    // there at 8 s.
    assert_eq!(stamps(&events, PlayerEventKind::Playing), [3000, 8000, 13_000, 16_000]);
    assert_eq!(stamps(&events, PlayerEventKind::Stalled), [5500, 10_500, 15_500]);
    let short = Player { presentation: constant_rate_video(&[8_000_000], 500 * MS, 1), ..player.clone() };
    let less = Player { rebuffer_ns: 1, ..player };
    let events = play(&less, at(4_000_000));
    assert_eq!(
        stamps(&events, PlayerEventKind::Playing)[..3],
        [3000, 6000, 7000],
        "one segment is enough then"
    );
    let events = play(&short, at(4_000_000));
    assert_eq!(stamps(&events, PlayerEventKind::Playing), [1000], "all media are enough");
    assert_eq!(stamps(&events, PlayerEventKind::Ended), [1500]);
}

#[test]
fn a_segment_that_failed_is_asked_for_once_more_at_the_bottom() {
    let player = video(Rule::Fixed { bits_per_s: 2_500_000 });
    let mut link = at(4_000_000);
    let events = play(&player, |request, bytes| if request == 3 { Err(MS) } else { link(request, bytes) });
    let failed = events.iter().position(|event| event.what == PlayerEventKind::Failed).unwrap();
    assert_eq!((events[failed].segment, events[failed].bits_per_s), (3, 2_500_000));
    let again = &events[failed + 1];
    assert_eq!((again.what, again.segment), (PlayerEventKind::Requested, 3));
    assert_eq!((again.at_ns, again.bits_per_s), (events[failed].at_ns, 1_000_000));
    assert_eq!(rungs(&events)[2..6], [25, 10, 25, 25]);
    assert_eq!(stamps(&events, PlayerEventKind::Ended).len(), 1);
    // Twice is too often: it gives up, and never reports its end.
    let events = play(&player, |request, bytes| if request >= 3 { Err(MS) } else { at(4_000_000)(0, bytes) });
    assert_eq!(stamps(&events, PlayerEventKind::Failed).len(), 2);
    let last = events.last().unwrap();
    assert_eq!((last.what, last.fault), (PlayerEventKind::GaveUp, Some(PlayerFault::SegmentFailed)));
    assert_eq!(rungs(&events).len(), 3);
}

/// Video and audio: 4 segments of 500 ms, and 2 of 1 s. The video has initializations.
fn both(rule: Rule) -> Player {
    let mut player = video(rule);
    let mut presentation = constant_rate_video(&[1_000_000, 8_000_000], 500 * MS, 4);
    for one in &mut presentation.tracks[0].representations {
        let url = format!("/init/{}", one.bits_per_s);
        one.initialization = Some(Segment { url, range: None, bytes: Some(1000) });
    }
    let mut audio = constant_rate_video(&[100_000], 1000 * MS, 2).tracks.remove(0);
    audio.kind = TrackKind::Audio;
    presentation.tracks.push(audio);
    player.presentation = presentation;
    player
}

/// Each once, before the first segment that needs it, also after a jump.
#[test]
fn later_initializations_are_requested() {
    let mut player = both(Rule::Fixed { bits_per_s: 1_000_000 });
    player.presentation.tracks.truncate(1);
    let own = &mut player.presentation.tracks[0].representations[0];
    for (place, segment) in own.segments.iter_mut().enumerate() {
        segment.url = format!("/{place}");
    }
    let first = own.initialization.clone().unwrap();
    let later = Segment { url: "/init/later".to_owned(), ..first };
    let of = |first_segment, resource| LaterInitialization { first_segment, resource };
    own.later_initializations = vec![of(1, later), of(3, first)];
    let urls = |player: &Player| {
        let mut urls = Vec::new();
        let quick = |_, _| Ok(10 * MS);
        observe(player, quick, |video, url| urls.push(video.paths()[url as usize].to_owned()));
        urls
    };
    assert_eq!(urls(&player), ["/init/1000000", "/0", "/init/later", "/1", "/2", "/3"]);
    assert!(player.most_requests() >= Some(6) && player.resources().len() == 8, "{:?}", player.resources());
    player.seeks = vec![Seek { at_ns: 100 * MS, to_ns: 1_000 * MS }];
    player.goal_ns = 500 * MS;
    let found = urls(&player);
    assert_eq!(found.iter().filter(|url| url.starts_with("/init/")).count(), 2, "{found:?}");
}

#[test]
fn playback_needs_both_tracks() {
    let player = both(Rule::Fixed { bits_per_s: 1_000_000 });
    // The initialization takes 100 ms, each segment of video 200, each of audio 1200.
    let mut urls = Vec::new();
    let took = |_, bytes| {
        Ok(match bytes {
            1000 => 100,
            12_500 => 1200,
            _ => 200,
        } * MS)
    };
    let events = observe(&player, took, |video, url| urls.push(video.paths()[url as usize].to_owned()));
    assert_eq!(urls[..2], ["/init/1000000", "/bytes/12500"], "both at once, the initialization first");
    assert_eq!(urls.iter().filter(|url| url.starts_with("/init/")).count(), 1);
    let of = |kind, what| -> Vec<u64> {
        let own = events.iter().filter(|event| event.track == Some(kind) && event.what == what);
        own.map(|event| (event.at_ns - BEGAN) / MS).collect()
    };
    assert_eq!(of(TrackKind::Video, PlayerEventKind::Arrived), [300, 500, 700, 900]);
    assert_eq!(of(TrackKind::Audio, PlayerEventKind::Arrived), [1200, 2400]);
    // Two seconds of video wait for the audio; a second of it is shown until 2.2 s.
    assert_eq!(stamps(&events, PlayerEventKind::Playing), [1200, 2400]);
    assert_eq!(stamps(&events, PlayerEventKind::Stalled), [2200]);
    assert_eq!(times(&player, &events), (1200 * MS, 2000 * MS, 200 * MS, 3400 * MS));
    let video = events.iter().find(|event| event.what == PlayerEventKind::Arrived).unwrap();
    assert_eq!((video.buffered_ns, video.track_buffered_ns), (0, Some(500 * MS)));
}

#[test]
fn a_jump_drops_the_buffers_and_what_is_requested() {
    let mut player = video(Rule::Fixed { bits_per_s: 1_000_000 });
    player.seeks = vec![Seek { at_ns: 1000 * MS, to_ns: 6250 * MS }];
    // A segment takes 300 ms: that of 1500 to 2000 ms arrives, and the next one is on its way.
    let events = play(&player, |_, _| Ok(300 * MS));
    let seeked = events.iter().find(|event| event.what == PlayerEventKind::Seeked).unwrap();
    assert_eq!(((seeked.at_ns - BEGAN) / MS, seeked.segment, seeked.buffered_ns), (1300, 12, 0));
    let arrived = events.iter().filter(|event| event.what == PlayerEventKind::Arrived);
    assert_eq!(arrived.map(|event| event.segment).collect::<Vec<_>>(), [0, 1, 2, 3, 12, 13, 14, 15]);
    // Half of the segment is enough to resume; 1.75 s are left.
    assert_eq!(stamps(&events, PlayerEventKind::Playing), [300, 1900]);
    assert_eq!(stamps(&events, PlayerEventKind::Ended), [1900 + 1750]);
    player.seeks = vec![Seek { at_ns: 1000 * MS, to_ns: 0 }];
    let events = play(&player, |_, _| Ok(300 * MS));
    assert_eq!(stamps(&events, PlayerEventKind::Ended), [300 + 1000 + 300 + 8000], "the beginning again");
}

#[test]
fn rules_of_players_abandon_a_segment_that_is_too_slow() {
    for rule in [Rule::DashjsThroughput, Rule::Dashjs, Rule::Hlsjs] {
        let mut player = video(rule);
        player.presentation = constant_rate_video(&[300_000, 1_000_000, 8_000_000], 2000 * MS, 30);
        player.goal_ns = 12_000 * MS;
        // 30 Mbit/s for ten requests, then 600 kbit/s.
        let events = play(&player, |request, bytes| {
            let bits_per_s = if request < 10 { 30_000_000 } else { 600_000 };
            Ok(bytes * 8 * 1_000_000_000 / bits_per_s)
        });
        let abandoned = events.iter().position(|event| event.what == PlayerEventKind::Abandoned);
        let abandoned = abandoned.unwrap_or_else(|| panic!("{rule:?}: {events:#?}"));
        let event = &events[abandoned];
        assert_eq!(event.bits_per_s, 8_000_000, "{rule:?}");
        let again =
            events[abandoned + 1..].iter().find(|event| event.what == PlayerEventKind::Requested).unwrap();
        assert_eq!(again.segment, event.segment, "{rule:?}: the same again");
        assert!(again.bits_per_s < 8_000_000, "{rule:?}");
        assert_eq!(stamps(&events, PlayerEventKind::Ended).len(), 1, "{rule:?}");
    }
}

#[test]
fn requests_say_what_the_player_knows() {
    let mut player = both(Rule::Fixed { bits_per_s: 8_000_000 });
    player.cmcd = Some(Cmcd::Query);
    let mut said = Vec::new();
    play(&player, |_, _| Ok(0));
    observe(&player, |_, _| Ok(300 * MS), |video, url| said.push(video.cmcd(url).unwrap()));
    let sid = said[0].session.strip_suffix(",st=v").unwrap().to_owned();
    assert!(sid.starts_with("sid=\"") && sid.len() == 42, "{sid}");
    assert!(said.iter().all(|keys| keys.session == said[0].session), "one session");
    assert_eq!(said[0].object, "br=8000,ot=i,tb=8000");
    assert_eq!(said[0].request, "bl=0,nor=\"/bytes/500000\",su");
    assert_eq!(said[1].object, "br=100,d=1000,ot=a,tb=100");
    let second =
        said.iter().find(|keys| keys.object.contains("ot=v") && keys.request.contains("mtp")).unwrap();
    assert_eq!(second.object, "br=8000,d=500,ot=v,tb=8000");
    // 500 kB within 300 ms.
    assert_eq!(second.request, "bl=500,dl=500,mtp=13300,nor=\"/bytes/500000\"");
    let query = said[0].query();
    assert!(
        query.starts_with("bl%3D0%2Cbr%3D8000%2Cnor%3D%22%2Fbytes%2F500000%22%2Cot%3Di%2Csid%3D%22"),
        "{query}"
    );
    assert_eq!(
        said[0].fields().map(|(name, _)| name).collect::<Vec<_>>(),
        ["cmcd-object", "cmcd-request", "cmcd-session"]
    );
    assert_eq!(player.resources().len(), 5);
}

fn rules() -> impl Strategy<Value = Rule> {
    let fixed = prop_oneof![Just(1_000_000), Just(2_500_000), Just(8_000_000)];
    let fixed = fixed.prop_map(|bits_per_s| Rule::Fixed { bits_per_s });
    let names = proptest::sample::select(Rule::NAMES[1..].to_vec());
    prop_oneof![fixed, names.prop_map(|name| Rule::adaptive(name).unwrap())]
}

/// A presentation of one or two tracks whose segments have these durations, in milliseconds.
fn presentation(video_ms: &[u64], audio_ms: &[u64]) -> Presentation {
    let track = |kind, durations_ms: &[u64], ladder: &[u64]| {
        let mut track =
            constant_rate_video(ladder, MS, u32::try_from(durations_ms.len()).unwrap()).tracks.remove(0);
        track.kind = kind;
        track.durations_ns = durations_ms.iter().map(|ms| ms * MS).collect();
        for one in &mut track.representations {
            let bits_per_s = one.bits_per_s;
            for (segment, ms) in one.segments.iter_mut().zip(durations_ms) {
                let bytes = bits_per_s * ms / 8000;
                *segment =
                    Segment { url: format!("/{kind}/{bits_per_s}/{ms}"), range: None, bytes: Some(bytes) };
            }
        }
        track
    };
    let mut tracks = vec![track(TrackKind::Video, video_ms, &[1_000_000, 2_500_000, 8_000_000])];
    if !audio_ms.is_empty() {
        tracks.push(track(TrackKind::Audio, audio_ms, &[64_000, 128_000]));
    }
    Presentation { tracks }
}

proptest! {
    #[test]
    fn time_and_media_add_up_on_any_link(
        rule in rules(),
        video_ms in proptest::collection::vec(1_u64..3000, 1..40),
        audio_ms in proptest::collection::vec(1_u64..3000, 0..40),
        (goal_ms, startup_ms, rebuffer_ms) in (1_u64..20_000, 1_u64..20_000, 1_u64..20_000),
        took_ms in proptest::collection::vec(0_u64..6000, 1..60),
    ) {
        let player = Player {
            presentation: presentation(&video_ms, &audio_ms),
            goal_ns: goal_ms * MS,
            startup_ns: startup_ms * MS,
            rebuffer_ns: rebuffer_ms * MS,
            ..video(rule)
        };
        let link = |request: usize, _| Ok(took_ms[request % took_ms.len()] * MS);
        let events = play(&player, link);
        prop_assert_eq!(&events, &play(&player, link), "the same again");
        prop_assert!(events.is_sorted_by_key(|event| event.at_ns));
        let (startup, shown, stalled, wall) = times(&player, &events);
        prop_assert_eq!(shown, player.media_ns());
        prop_assert_eq!(startup + shown + stalled, wall);
        let longest = player.longest_segment_ns();
        for track in &player.presentation.tracks {
            let own = || events.iter().filter(|event| event.track == Some(track.kind));
            let most = own().filter_map(|event| event.track_buffered_ns).max().unwrap_or(0);
            prop_assert!(most <= player.goal_ns + longest, "{most} buffered");
            for event in own().filter(|event| event.what == PlayerEventKind::Requested) {
                prop_assert!(event.track_buffered_ns <= Some(player.goal_ns));
            }
            let arrived = || own().filter(|event| event.what == PlayerEventKind::Arrived);
            let segments: Vec<u32> = arrived().map(|event| event.segment).collect();
            let count = u32::try_from(track.durations_ns.len()).unwrap();
            prop_assert_eq!(segments, (0..count).collect::<Vec<_>>(), "each once, in order");
            prop_assert_eq!(arrived().map(|event| event.segment_ns).sum::<u64>(), track.duration_ns());
            let requested = own().filter(|event| event.what == PlayerEventKind::Requested).count();
            let abandoned = own().filter(|event| event.what == PlayerEventKind::Abandoned).count();
            prop_assert_eq!(requested, arrived().count() + abandoned);
        }
        let stalls = stamps(&events, PlayerEventKind::Stalled).len();
        prop_assert_eq!(stamps(&events, PlayerEventKind::Playing).len(), stalls + 1);
        prop_assert_eq!(events.last().map(|event| event.what), Some(PlayerEventKind::Ended));
    }

    #[test]
    fn jumps_lose_no_time(
        rule in rules(),
        jumps in proptest::collection::vec((1_u64..8000, 0_u64..8000), 1..6),
        took_ms in proptest::collection::vec(0_u64..2000, 1..60),
    ) {
        let mut player = video(rule);
        let mut begins_ms = 0;
        for (at_ms, to_ms) in jumps.into_iter().filter(|(_, to_ms)| *to_ms < 8000) {
            if at_ms > begins_ms {
                player.seeks.push(Seek { at_ns: at_ms * MS, to_ns: to_ms * MS });
                begins_ms = to_ms;
            }
        }
        let events = play(&player, |request, _| Ok(took_ms[request % took_ms.len()] * MS));
        let (startup, shown, stalled, wall) = times(&player, &events);
        let mut expected_ns = player.media_ns();
        for seek in &player.seeks {
            expected_ns = expected_ns + seek.at_ns - seek.to_ns;
        }
        prop_assert_eq!(shown, expected_ns, "{:?}", player.seeks);
        prop_assert_eq!(startup + shown + stalled, wall);
        prop_assert_eq!(stamps(&events, PlayerEventKind::Seeked).len(), player.seeks.len());
        prop_assert_eq!(events.last().map(|event| event.what), Some(PlayerEventKind::Ended));
    }
}
