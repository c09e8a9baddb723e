//! Videos that hls.js and dash.js play in Chromium, from the media to the metrics.

use std::path::Path;
use std::process::Command;

use model::media::TrackKind;
use model::player::{PlayerEvent, PlayerEventKind, PlayerFault};
use model::record::RunRecord;
use model::sample::Outcome;
use store::ResultFolder;

use crate::tool::{Ended, H123, cell, check, folder, machine, median, summary};

const SECOND_NS: u64 = 1_000_000_000;
/// Frames of the film: 25 each second. Browsers count one twice, or the last one not.
const FRAMES: f64 = 96.0;
pub(crate) const HEAD: &str = "question = 'What does a viewer in a browser see?'\nmetric = 'startup_time'\nmargin = '20%'\nruns = 1\nseed = 1\n\
                    accept = ['client_waited', 'server_waited']\n";
pub(crate) const FILM: &str = "[media.film]\nfolder = 'film'\n";
pub(crate) const FIXED: &str = "[workload.fixed]\nkind = 'player'\nmedia = 'film'\nbuffer = '4s'\nrule = 'fixed'\n\
                     representation = '300kbit/s'\nplayer = 'hlsjs'\n";
const ADAPTIVE: &str =
    "[workload.adaptive]\nkind = 'player'\nmedia = 'film'\nbuffer = '4s'\nrule = 'dashjs'\n";

const RUNGS: &str = "180p@150kbit/s,270p@300kbit/s";

/// Four segments of test card. They end in both tracks at the same time: dash.js may wait forever for a
/// shorter one.
pub(crate) fn make_film(place: &Path, rungs: &str) {
    let mut command = Command::new(H123);
    command.args(["content", "make", "film", "--length", "3.84s", "--segment", "0.96s", "--cache", "cache"]);
    command.args(["--video", rungs]).current_dir(place);
    Ended::of(command.output().unwrap()).expect(0);
}

fn run(place: &Path, study: &str) -> Vec<RunRecord> {
    std::fs::write(place.join("study.toml"), study).unwrap();
    let mut command = Command::new(H123);
    command.args(["run", "study.toml", "-q", "--out", "out"]).current_dir(place);
    Ended::of(command.output().unwrap()).expect_measured();
    ResultFolder::open(&place.join("out")).unwrap().records().unwrap().map(Result::unwrap).collect()
}

fn events(record: &RunRecord, what: PlayerEventKind, track: Option<TrackKind>) -> Vec<&PlayerEvent> {
    record.player.iter().filter(|event| event.what == what && event.track == track).collect()
}

/// What holds for every complete playback of the film.
fn expect_whole(record: &RunRecord) {
    assert!(record.outcome.is_ok(), "{:?}", record.outcome);
    assert!(record.player.is_sorted_by_key(|event| event.at_ns));
    let [first, .., last] = record.player.as_slice() else { panic!("{record:?}") };
    assert_eq!((first.what, last.what), (PlayerEventKind::Opened, PlayerEventKind::Ended));
    assert!(last.at_ns - first.at_ns >= 38 * SECOND_NS / 10, "it cannot be played faster: {last:?}");
    for kind in TrackKind::ALL {
        let arrived = events(record, PlayerEventKind::Arrived, Some(kind));
        let mut segments: Vec<u32> = arrived.iter().map(|event| event.segment).collect();
        segments.dedup();
        assert_eq!(segments, [0, 1, 2, 3], "{kind}: {:?}", record.player);
        assert!(arrived.iter().all(|event| event.track_buffered_ns > Some(0)), "{arrived:?}");
    }
    let paths = &record.clients[0].urls;
    for sample in &record.samples {
        let path = &paths[sample.url as usize];
        assert!(sample.outcome.is_ok() || sample.outcome.is_cancelled(), "{path}: {sample:?}");
        assert!(path.starts_with("/media/film/"), "the page of the player has no rows: {path}");
        if path.ends_with(".m4s") {
            assert_eq!(sample.expected_body_bytes, Some(sample.response_body_bytes), "{path}");
        }
        assert!(sample.intended_ns + SECOND_NS / 20 >= first.at_ns, "one clock: {sample:?}, {first:?}");
    }
}

#[test]
fn a_video_is_played_by_both_players_over_every_version() {
    let _machine = machine();
    let place = folder();
    make_film(place.path(), RUNGS);
    let matrix = "baseline = { variant = 'h2' }\n[matrix]\nvariant = ['h1s', 'h2', 'h3']\nserver = ['origin']\nnetwork = ['lan']\n\
                  workload = ['fixed', 'adaptive']\nclient = ['chromium']\n";
    let records = run(place.path(), &format!("{HEAD}{matrix}{FILM}{FIXED}{ADAPTIVE}"));
    assert_eq!(records.len(), 6);
    records.iter().for_each(expect_whole);
    let summary = summary(&place.path().join("out"));
    for variant in ["h1s", "h2", "h3"] {
        for (workload, manifest, player) in [
            ("fixed", "/media/film/main.m3u8", "hls.js 1."),
            ("adaptive", "/media/film/manifest.mpd", "dash.js 5."),
        ] {
            let cell = cell(&summary, &[variant, workload]);
            assert_eq!(cell["runs_ok"], 1, "{cell:#}");
            for sound in ["version", "status", "failed_requests", "body_length", "console_errors"] {
                assert_eq!(check(cell, sound)["result"], "pass", "{sound} of {cell:#}");
            }
            let startup_ns = median(cell, "startup_time");
            assert!((1e6..3e9).contains(&startup_ns), "{startup_ns} ns in {cell:#}");
            let frames = median(cell, "frames");
            assert!((0.9 * FRAMES..1.1 * FRAMES).contains(&frames), "{frames} frames in {cell:#}");
            assert!(median(cell, "dropped_frames") < FRAMES, "{cell:#}");
            assert!(median(cell, "client_cpu_load") > 0.0, "{cell:#}");
            let number = usize::try_from(cell["cell"].as_u64().unwrap()).unwrap();
            let record = records.iter().find(|record| record.cell as usize == number).unwrap();
            let client = &record.clients[0];
            assert!(client.external.as_ref().unwrap().version.contains(player), "{client:?}");
            assert!(client.urls.iter().any(|url| url == manifest), "{client:?}");
        }
        let fixed = cell(&summary, &[variant, "fixed"]);
        assert_eq!(
            [median(fixed, "mean_representation"), median(fixed, "representation_switches")],
            [300e3, 0.0],
            "{fixed:#}"
        );
    }
    expect_script(place.path(), &records);
    let report = std::fs::read_to_string(place.path().join("out/report.html")).unwrap();
    assert!(report.contains("Playback of the video"), "the report draws the playback");
}

/// Both players jump over the middle of the film, and play on from there.
#[test]
fn both_players_jump_where_the_study_says() {
    let _machine = machine();
    let place = folder();
    make_film(place.path(), RUNGS);
    let matrix = "baseline = { variant = 'h2' }\n[matrix]\nvariant = ['h2']\nserver = ['origin']\nnetwork = ['lan']\n\
                  workload = ['fixed', 'adaptive']\nclient = ['chromium']\n";
    let seek = "seek = ['1s to 2900ms']\n";
    let records = run(place.path(), &format!("{HEAD}{matrix}{FILM}{FIXED}{seek}{ADAPTIVE}{seek}"));
    assert_eq!(records.len(), 2);
    for record in &records {
        assert!(record.outcome.is_ok(), "{:?}", record.outcome);
        let [seeked] = events(record, PlayerEventKind::Seeked, None)[..] else {
            panic!("{:?}", record.player)
        };
        assert_eq!(seeked.segment, 3, "its media begins at 2.88 s: {seeked:?}");
        let playing = events(record, PlayerEventKind::Playing, None);
        let [first, .., again] = playing[..] else { panic!("{playing:?}") };
        let before_ns = seeked.at_ns - first.at_ns;
        assert!((8 * SECOND_NS / 10..2 * SECOND_NS).contains(&before_ns), "it jumps at 1 s: {before_ns} ns");
        assert!(again.at_ns > seeked.at_ns && again.segment == 3, "{again:?}");
        let last = record.player.last().unwrap();
        assert_eq!(last.what, PlayerEventKind::Ended, "{:?}", record.player);
        let after_ns = last.at_ns - again.at_ns;
        assert!(after_ns < 2 * SECOND_NS, "0.94 s are left: {after_ns} ns");
    }
}

#[test]
fn a_link_below_the_bit_rate_stalls_a_fixed_representation() {
    let _machine = machine();
    let place = folder();
    make_film(place.path(), "360p@3Mbit/s");
    std::fs::create_dir(place.path().join("networks")).unwrap();
    let slow = "title = 'Slow'\nsource = 'a test'\nrtt = '20ms'\nrate = '2Mbit/s'\n";
    std::fs::write(place.path().join("networks/slow.toml"), slow).unwrap();
    let matrix = "baseline = { variant = 'h2' }\n[matrix]\nvariant = ['h2']\nserver = ['origin']\nnetwork = ['slow']\n\
                  workload = ['fixed']\nclient = ['chromium']\n";
    let fixed = FIXED.replace("300kbit/s", "3Mbit/s").replace("hlsjs", "dashjs");
    let records = run(place.path(), &format!("{HEAD}{matrix}{FILM}{fixed}"));
    let [record] = records.as_slice() else { panic!("{records:?}") };
    expect_whole(record);
    let (stalled, playing) =
        (events(record, PlayerEventKind::Stalled, None), events(record, PlayerEventKind::Playing, None));
    assert!(!stalled.is_empty() && playing.len() == stalled.len() + 1, "{:?}", record.player);
    for (stalled, resumed) in stalled.iter().zip(&playing[1..]) {
        assert!(stalled.at_ns < resumed.at_ns && stalled.buffered_ns < SECOND_NS / 4, "{stalled:?}");
        assert!(resumed.at_ns - stalled.at_ns > SECOND_NS / 50 && resumed.buffered_ns > 0, "{resumed:?}");
    }
    let summary = summary(&place.path().join("out"));
    let cell = cell(&summary, &["h2"]);
    assert!(median(cell, "stalls") >= 1.0 && median(cell, "stall_share") > 0.05, "{cell:#}");
    assert_eq!(median(cell, "mean_representation"), 3e6, "{cell:#}");
}

/// The session of a run becomes a timing script.
fn expect_script(place: &Path, records: &[RunRecord]) {
    let mut command = Command::new(H123);
    command.args(["record", "out", "--cell", "h3,adaptive"]).current_dir(place);
    let script = Ended::of(command.output().unwrap()).expect(0).stdout;
    let lines: Vec<serde_json::Value> =
        script.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["variant"], "h3", "{script}");
    let of_class = |class: &str| lines.iter().filter(|line| line["class"] == class).count();
    assert!(of_class("video") >= 4 && of_class("audio") >= 4, "{script}");
    let sent = |record: &RunRecord| record.samples.iter().filter(|sample| sample.outcome.is_ok()).count();
    assert!(records.iter().any(|record| sent(record) == lines.len() - 1), "{script}");
}

const LIVE: &str = "baseline = { variant = 'h2' }\n[matrix]\nvariant = ['h2']\nserver = ['nginx']\nnetwork = ['lan']\n\
    workload = ['show']\nclient = ['chromium']\n\
    [media.film]\nfolder = 'film'\nlive = '30s'\nsegment = '1s'\n\
    [workload.show]\nkind = 'player'\nmanifest = '/media/film/index.m3u8'\nlatency = '2s'\nduration = '5s'\n\
    buffer = '6s'\nrule = 'hlsjs'\n";

#[test]
fn a_live_stream_is_watched_behind_its_edge() {
    let _machine = machine();
    let place = folder();
    make_film(place.path(), RUNGS);
    let records = run(place.path(), &format!("{HEAD}{LIVE}"));
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert!(record.outcome.is_ok(), "{:?}", record.outcome);
    let [first, .., last] = record.player.as_slice() else { panic!("{record:?}") };
    assert_eq!(last.what, PlayerEventKind::Ended, "{:?}", record.player);
    let watched_ns = last.at_ns - first.at_ns;
    assert!((49 * SECOND_NS / 10..7 * SECOND_NS).contains(&watched_ns), "{watched_ns} ns");
    let arrived = events(record, PlayerEventKind::Arrived, Some(TrackKind::Video));
    assert!(arrived.len() >= 3, "{:?}", record.player);
    assert!(arrived.iter().all(|event| event.segment_ns >= 9 * SECOND_NS / 10), "{arrived:?}");
    let paths = &record.clients[0].urls;
    let manifests = record.samples.iter().filter(|sample| paths[sample.url as usize].ends_with(".m3u8"));
    assert!(manifests.count() >= 3, "the playlist is read again: {paths:?}");
    let summary = summary(&place.path().join("out"));
    let latency_ns = median(cell(&summary, &["h2"]), "live_latency");
    assert!((0.0..10e9).contains(&latency_ns), "{latency_ns} ns");
}

#[test]
fn a_player_that_gives_up_is_a_named_outcome() {
    let _machine = machine();
    let place = folder();
    make_film(place.path(), RUNGS);
    // Without another level to turn to. The folder has links to the cache. If the first segment fails while
    // the initialization is on its way, hls.js 1.7 sometimes requests nothing more.
    for rung in ["video-150k", "video-300k"] {
        let playlist = place.path().join("film").join(rung).join("index.m3u8");
        let text = std::fs::read_to_string(&playlist).unwrap();
        std::fs::remove_file(&playlist).unwrap();
        std::fs::write(&playlist, text.replace("/3.m4s", "/99.m4s")).unwrap();
    }
    std::fs::write(place.path().join("film/text.m3u8"), "no playlist\n").unwrap();
    let matrix = "baseline = { variant = 'h2' }\n[matrix]\nvariant = ['h2']\nserver = ['origin']\nnetwork = ['lan']\n\
                  workload = ['fixed', 'gone', 'none']\nclient = ['chromium']\n";
    let live = |name: &str, player: &str, manifest: &str| {
        format!(
            "[workload.{name}]\nkind = 'player'\nmanifest = '/media/film/{manifest}'\nlatency = '2s'\nduration = '30s'\n\
             buffer = '6s'\nrule = '{player}'\n"
        )
    };
    let study = format!(
        "{HEAD}{matrix}{FILM}{FIXED}{}{}",
        live("gone", "dashjs", "gone.mpd"),
        live("none", "hlsjs", "text.m3u8")
    );
    let records = run(place.path(), &study);
    let expected = [
        ("hls.js gave up (segment_failed): ", PlayerFault::SegmentFailed),
        ("dash.js gave up (manifest_failed): error", PlayerFault::ManifestFailed),
        ("hls.js gave up (manifest_invalid): manifestParsingError", PlayerFault::ManifestInvalid),
    ];
    for (record, (words, fault)) in records.iter().zip(expected) {
        let Outcome::Failed(failure) = &record.outcome else { panic!("{:?}", record.outcome) };
        assert!(failure.reason.starts_with(words), "{}", failure.reason);
        let last = record.player.last().unwrap();
        assert_eq!((last.what, last.fault), (PlayerEventKind::GaveUp, Some(fault)), "{last:?}");
        assert!(!record.samples.is_empty(), "its requests are kept");
    }
    assert_eq!(records.len(), 3);
}

/// Modelled media has valid manifests and nothing to decode: the players read the manifests and request what
/// they list.
#[test]
fn modelled_manifests_are_read_by_both_players() {
    let _machine = machine();
    let place = folder();
    std::fs::create_dir(place.path().join("media")).unwrap();
    let tiny = "title = 'Tiny'\nsegment = '1s'\nlength = '3s'\nvideo = { ladder = ['80kbit/s', '160kbit/s'] }\n\
                audio = { ladder = ['32kbit/s'] }\n";
    std::fs::write(place.path().join("media/tiny.toml"), tiny).unwrap();
    let mut command = Command::new(H123);
    command.args(["content", "make", "film", "--modelled", "tiny"]).current_dir(place.path());
    Ended::of(command.output().unwrap()).expect(0);
    let matrix = "baseline = { variant = 'h3' }\n[matrix]\nvariant = ['h3']\nserver = ['origin']\nnetwork = ['lan']\n\
                  workload = ['hls', 'adaptive', 'news_hls', 'news_dash']\nclient = ['chromium']\n\
                  [media.news]\nsegment = '1s'\nlength = '3s'\nlive = '10s'\nvideo = { ladder = ['80kbit/s'] }\n";
    let hls = ADAPTIVE.replace("adaptive", "hls").replace("dashjs", "hlsjs");
    let live = |name: &str, rule: &str, manifest: &str| {
        format!(
            "[workload.{name}]\nkind = 'player'\nmanifest = '/media/news/{manifest}'\nlatency = '3s'\nduration = '10s'\n\
             buffer = '4s'\nrule = '{rule}'\n"
        )
    };
    let (news_hls, news_dash) =
        (live("news_hls", "hlsjs", "main.m3u8"), live("news_dash", "dashjs", "manifest.mpd"));
    let records = run(place.path(), &format!("{HEAD}{matrix}{FILM}{hls}{ADAPTIVE}{news_hls}{news_dash}"));
    assert_eq!(records.len(), 4);
    for record in &records {
        let Outcome::Failed(failure) = &record.outcome else { panic!("{:?}", record.outcome) };
        assert!(failure.reason.contains("gave up (media_invalid)"), "{}", failure.reason);
        let urls = &record.clients[0].urls;
        let requested: Vec<&str> = record
            .samples
            .iter()
            .inspect(|sample| assert!(sample.outcome.is_ok() || sample.outcome.is_cancelled(), "{sample:?}"))
            .map(|sample| urls[sample.url as usize].as_str())
            .collect();
        assert!(
            requested.iter().any(|path| path.contains("/video-") && !path.ends_with(".m3u8")),
            "{requested:?}"
        );
    }
}
