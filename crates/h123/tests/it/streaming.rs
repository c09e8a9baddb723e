//! Media that studies describe, served by the origin and watched by players: films of audio and video, live
//! streams, libraries whose segments are cut just in time, and files that are cold or warm.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::media::TrackKind;
use model::player::{PlayerEvent, PlayerEventKind};
use model::record::RunRecord;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use store::ResultFolder;

use crate::tool::{Ended, H123, cell, check, folder, h123, machine, median, summary};

/// Writes a study with this metric, these factors and these tables.
fn write(folder: &Path, metric: &str, matrix: &str, tables: &str) -> PathBuf {
    let file = folder.join("study.toml");
    let text = format!(
        "question = 'What do viewers see?'\nmetric = '{metric}'\nmargin = '10%'\nseed = 1\n{matrix}\nnetwork = ['lan']\n{tables}"
    );
    std::fs::write(&file, text).unwrap();
    file
}

/// The result of such a study.
fn run(folder: &Path, metric: &str, matrix: &str, tables: &str) -> PathBuf {
    let (file, out) = (write(folder, metric, matrix, tables), folder.join("out"));
    h123(["run", file.to_str().unwrap(), "-q", "--out", out.to_str().unwrap()]).expect_measured();
    out
}

fn records(out: &Path) -> Vec<RunRecord> {
    ResultFolder::open(out).unwrap().records().unwrap().map(Result::unwrap).collect()
}

fn events(record: &RunRecord, what: PlayerEventKind, track: Option<TrackKind>) -> Vec<&PlayerEvent> {
    record.player.iter().filter(|event| event.what == what && event.track == track).collect()
}

/// The paths of a run's requests, in the order of its rows.
fn paths(record: &RunRecord) -> Vec<&str> {
    record.samples.iter().map(|sample| record.clients[0].urls[sample.url as usize].as_str()).collect()
}

#[test]
fn a_film_of_audio_and_video_is_played_over_every_version() {
    let _machine = machine();
    let place = folder();
    let out = run(
        place.path(),
        "request_time@video",
        "runs = 1\nbaseline = { variant = 'h1s' }\n[matrix]\nvariant = ['h1s', 'h2', 'h3']\nserver = ['origin']\nworkload = ['film']",
        "[media.film]\nsegment = '500ms'\nlength = '1500ms'\nvideo = { ladder = ['400kbit/s', '2Mbit/s'], spread = '20%' }\n\
         audio = { ladder = ['64kbit/s'] }\n\
         [workload.film]\nkind = 'player'\nmedia = 'film'\nbuffer = '1s'\nrule = 'throughput'\n",
    );
    for record in &records(&out) {
        assert!(record.outcome.is_ok(), "{:?}", record.outcome);
        for kind in [TrackKind::Audio, TrackKind::Video] {
            let arrived = events(record, PlayerEventKind::Arrived, Some(kind));
            let segments: Vec<u32> = arrived.iter().map(|event| event.segment).collect();
            assert_eq!(segments, [0, 1, 2], "{kind}: {:?}", record.player);
        }
        let (paths, unique) = (paths(record), BTreeSet::from_iter(paths(record)));
        assert_eq!(paths.len(), unique.len(), "nothing is requested twice: {paths:?}");
        assert!(unique.contains("/media/film/audio-64k/init.mp4"), "{paths:?}");
        assert!(
            paths.contains(&"/media/film/video-400k/init.mp4"),
            "the first segment is of the lowest: {paths:?}"
        );
        for sample in &record.samples {
            assert!(sample.outcome.is_ok(), "{sample:?}");
            assert_eq!(sample.expected_body_bytes, Some(sample.response_body_bytes));
        }
        let last = record.player.last().unwrap();
        assert_eq!((last.what, last.track, last.latency_ns), (PlayerEventKind::Ended, None, None));
        assert!(last.at_ns >= 1_500_000_000, "it cannot be played faster: {last:?}");
    }
    let summary = summary(&out);
    for variant in ["h1s", "h2", "h3"] {
        let cell = cell(&summary, &[variant]);
        assert!(
            median(cell, "request_time@video") > 0.0 && median(cell, "request_time@audio") > 0.0,
            "{cell:#}"
        );
        assert_eq!(median(cell, "availability@video"), 1.0);
        for sound in ["version", "status", "failed_requests", "body_length", "all_requested"] {
            assert_eq!(check(cell, sound)["result"], "pass", "{cell:#}");
        }
    }
}

#[test]
fn a_live_stream_is_watched_near_its_edge() {
    let _machine = machine();
    let place = folder();
    let out = run(
        place.path(),
        "live_latency",
        "runs = 1\nbaseline = { variant = 'h2' }\n[matrix]\nvariant = ['h2', 'h3']\nserver = ['origin']\nworkload = ['mpd', 'hls']",
        "[media.news]\nsegment = '500ms'\nlength = '2s'\nlive = '10s'\nvideo = { ladder = ['400kbit/s'] }\n\
         [workload.mpd]\nkind = 'player'\nmanifest = '/media/news/manifest.mpd'\nlatency = '1500ms'\nduration = '2s'\n\
         buffer = '3s'\nrule = 'throughput'\n\
         [workload.hls]\nkind = 'player'\nmanifest = '/media/news/main.m3u8'\nlatency = '1500ms'\nduration = '2s'\n\
         buffer = '3s'\nrule = 'throughput'\n",
    );
    for record in &records(&out) {
        assert!(record.outcome.is_ok(), "{:?}", record.outcome);
        let paths = paths(record);
        let manifests = paths.iter().filter(|path| path.ends_with(".mpd") || path.ends_with(".m3u8"));
        assert!(manifests.count() >= 2, "the manifest is refreshed: {paths:?}");
        let arrived = events(record, PlayerEventKind::Arrived, Some(TrackKind::Video));
        assert!(arrived.len() >= 3, "{:?}", record.player);
        for event in &arrived {
            assert!(event.latency_ns.is_some(), "{event:?}");
        }
        assert_eq!(record.player.last().unwrap().what, PlayerEventKind::Ended, "{:?}", record.player);
    }
    let summary = summary(&out);
    for workload in ["mpd", "hls"] {
        for variant in ["h2", "h3"] {
            let cell = cell(&summary, &[variant, workload]);
            let latency_ns = median(cell, "live_latency");
            // The edge is the end of the newest segment, so playback is between it and the whole window.
            assert!((0.0..10e9).contains(&latency_ns), "{cell:#}");
            for sound in ["version", "failed_requests", "body_length"] {
                assert_eq!(check(cell, sound)["result"], "pass", "{cell:#}");
            }
        }
    }
}

/// Files that a server cuts fragments from, of a library of seven titles. The third fragment does not exist.
const LIBRARY: &str = "[media.film]\nsegment = '1s'\nlength = '6s'\ntitles = 7\nhds = { fragments = 2, gaps = [3] }\n\
    video = { ladder = ['400kbit/s'] }\n\
    [server.cut]\nuse = 'origin'\nset = { media = 'just_in_time', index_cache = true }\n\
    [server.uncached]\nuse = 'origin'\nset = { media = 'just_in_time', index_cache = false }\n\
    [workload.fragments]\nkind = 'closed'\nmedia = 'film'\norder = 'random'\nrequests = 60\n";

/// The lines of a run's access log that are about the library, as title and file.
fn requested_of(out: &Path, run: usize) -> Vec<(u32, String)> {
    let log = std::fs::read_to_string(out.join(format!("logs/run-{run:06}/server/access.log"))).unwrap();
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let (title, file) = line["path"].as_str()?.strip_prefix("/media/film/")?.split_once('/')?;
        assert_eq!(line["status"], 200, "{line}");
        Some((title.parse().unwrap(), file.to_owned()))
    };
    log.lines().filter_map(line).collect()
}

#[test]
fn fragments_of_a_library_are_cut_just_in_time() {
    let _machine = machine();
    let place = folder();
    let out = run(
        place.path(),
        "request_time",
        "runs = 1\nbaseline = { server = 'origin' }\n[matrix]\nvariant = ['h2']\nserver = ['origin', 'cut', 'uncached']\n\
         workload = ['fragments']",
        LIBRARY,
    );
    let folders: BTreeSet<String> = std::fs::read_dir(out.join("logs/content/media/film"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.parse::<u32>().is_ok())
        .collect();
    assert_eq!(folders, (1..=7).map(|title| title.to_string()).collect());
    let records = records(&out);
    let requested: Vec<Vec<(u32, String)>> = (0..records.len()).map(|run| requested_of(&out, run)).collect();
    for (record, requested) in records.iter().zip(&requested) {
        assert!(record.outcome.is_ok(), "{:?}", record.outcome);
        assert_eq!((record.samples.len(), requested.len()), (60, 60));
        let titles: BTreeSet<u32> = requested.iter().map(|(title, _)| *title).collect();
        let files: BTreeSet<&str> = requested.iter().map(|(_, file)| file.as_str()).collect();
        assert_eq!(titles, (1..=7).collect(), "all titles are drawn");
        let expected = ["Seg1-Frag1", "Seg1-Frag2", "Seg2-Frag4", "Seg3-Frag5", "Seg3-Frag6", "Seg4-Frag7"];
        assert_eq!(files, BTreeSet::from(expected), "and all fragments that exist");
        // Runs of a block have the same seed, so they request the same bytes, however these are made.
        let bytes = |record: &RunRecord| -> Vec<(u64, Option<u32>)> {
            record.samples.iter().map(|row| (row.response_body_bytes, row.response_body_crc32)).collect()
        };
        assert_eq!(bytes(record), bytes(&records[0]));
    }
    assert!(requested.iter().all(|other| *other == requested[0]), "{requested:?}");
    let summary = summary(&out);
    for server in ["origin", "cut", "uncached"] {
        for sound in ["status", "failed_requests", "body_length", "workloads_match"] {
            let cell = cell(&summary, &[server]);
            if sound != "workloads_match" || server != "origin" {
                assert_eq!(check(cell, sound)["result"], "pass", "{cell:#}");
            }
        }
    }
}

/// Starts a study, and interrupts it once a run is stored.
fn interrupt(study: &Path, out: &Path) {
    let mut command = Command::new(H123);
    command.arg("run").arg(study).args(["-q", "--out"]).arg(out);
    let child: Child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stored = || {
        let runs = std::fs::read_dir(out.join("samples")).into_iter().flatten().flatten();
        runs.filter(|run| run.file_name().to_string_lossy().starts_with("run-")).count()
    };
    let begin = Instant::now();
    while stored() == 0 {
        assert!(begin.elapsed() < Duration::from_secs(60), "no run after a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    Ended::of(child.wait_with_output().unwrap()).expect(130);
}

#[test]
fn files_are_cold_or_warm_when_each_run_begins_also_after_an_interruption() {
    let _machine = machine();
    // The build's folder is on a disk; a file system in memory is never cold.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for state in ["cold", "warm"] {
        let study = write(
            place.path(),
            "request_time",
            &format!(
                "runs = 4\npage_cache = '{state}'\nbaseline = {{ variant = 'h2' }}\n[matrix]\nvariant = ['h2']\n\
                 server = ['cut']\nworkload = ['fragments']"
            ),
            &LIBRARY.replace(
                "[server.uncached]\nuse = 'origin'\nset = { media = 'just_in_time', index_cache = false }\n",
                "",
            ),
        );
        let out = place.path().join(state);
        interrupt(&study, &out);
        assert!(records(&out).len() < 4, "it was interrupted before its end");
        h123(["run", "-q", "--resume", out.to_str().unwrap()]).expect_measured();
        let records = records(&out);
        assert_eq!(records.len(), 4);
        for record in &records {
            assert!(record.outcome.is_ok(), "{:?}", record.outcome);
            let content = record.content.unwrap();
            let cached = if state == "cold" { 0 } else { content.bytes };
            assert!(content.bytes > 250_000, "{content:?}");
            assert_eq!(content.cached_bytes, cached, "{state}: {content:?}");
        }
        let summary = summary(&out);
        assert_eq!(check(cell(&summary, &["h2"]), "page_cache")["result"], "pass", "{summary:#}");
    }
}
