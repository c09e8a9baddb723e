//! Videos over a link that carries more than one representation and less than the next, from the file to the
//! figure.

use std::path::Path;
use std::process::Command;

use model::player::{PlayerEvent, PlayerEventKind};
use model::record::RunRecord;
use store::ResultFolder;

use crate::tool::{Ended, H123, cell, check, folder, machine, median, summary};

const NETWORK: &str = "title = 'Slow'\nsource = 'a test'\nrtt = '20ms'\nrate = '4Mbit/s'\n";
const STUDY: &str = "question = 'What does a video look like that the link does not carry?'\nmetric = 'startup_time'\n\
    margin = '10%'\nruns = 1\nseed = 1\nbaseline = { variant = 'h2' }\n[matrix]\nvariant = ['h2', 'h3']\nserver = ['origin']\n\
    network = ['slow']\nworkload = ['fixed', 'adaptive', 'jumping']\n\
    [workload.fixed]\nkind = 'player'\nladder = ['1Mbit/s', '2.5Mbit/s', '8Mbit/s']\nsegment = '0.5s'\nsegments = 4\n\
    buffer = '1.5s'\nrule = 'fixed'\nrepresentation = '8Mbit/s'\n\
    [workload.adaptive]\nkind = 'player'\nladder = ['1Mbit/s', '2.5Mbit/s', '8Mbit/s']\nsegment = '0.5s'\nsegments = 12\n\
    buffer = '1.5s'\nrule = 'throughput'\n\
    [workload.jumping]\nkind = 'player'\nladder = ['1Mbit/s', '2.5Mbit/s', '8Mbit/s']\nsegment = '0.5s'\nsegments = 12\n\
    buffer = '1.5s'\nrule = 'hlsjs'\nseek = ['1s to 4s']\ncmcd = 'query'\n";
const SEGMENT_NS: u64 = 500_000_000;
const GOAL_NS: u64 = 1_500_000_000;
const SECOND_NS: f64 = 1e9;

fn events(record: &RunRecord, what: PlayerEventKind) -> Vec<&PlayerEvent> {
    record.player.iter().filter(|event| event.what == what).collect()
}

/// Asserts what holds for every complete playback, on any link.
fn expect_whole(record: &RunRecord, segments: usize) {
    assert!(record.outcome.is_ok(), "{:?}", record.outcome);
    let (requested, arrived) =
        (events(record, PlayerEventKind::Requested), events(record, PlayerEventKind::Arrived));
    assert_eq!((requested.len(), arrived.len(), record.samples.len()), (segments, segments, segments));
    for (sample, (requested, arrived)) in record.samples.iter().zip(requested.iter().zip(&arrived)) {
        assert!(sample.outcome.is_ok(), "{sample:?}");
        assert_eq!(sample.expected_body_bytes, Some(sample.response_body_bytes));
        assert_eq!(sample.response_body_bytes * 16, arrived.bits_per_s, "half a second of it");
        assert_eq!((sample.intended_ns, sample.done_ns), (requested.at_ns, Some(arrived.at_ns)));
        assert!(requested.buffered_ns <= GOAL_NS, "{requested:?}");
    }
    assert!(record.player.is_sorted_by_key(|event| event.at_ns));
    assert!(record.player.iter().all(|event| event.buffered_ns <= GOAL_NS + SEGMENT_NS));
    let stalls = events(record, PlayerEventKind::Stalled).len();
    assert_eq!(events(record, PlayerEventKind::Playing).len(), stalls + 1);
    let last = record.player.last().unwrap();
    assert_eq!((last.what, last.buffered_ns), (PlayerEventKind::Ended, 0));
    assert_eq!(record.connections.len(), 1, "all over one connection");
}

/// Asserts that playback jumped from the first to the fourth second, and cancelled what was on its way.
fn expect_jump(record: &RunRecord) {
    assert!(record.outcome.is_ok(), "{:?}", record.outcome);
    let seeked = events(record, PlayerEventKind::Seeked);
    assert_eq!(seeked.iter().map(|event| event.segment).collect::<Vec<_>>(), [8]);
    let arrived: Vec<u32> =
        events(record, PlayerEventKind::Arrived).iter().map(|event| event.segment).collect();
    assert!(arrived.ends_with(&[8, 9, 10, 11]) && !arrived.contains(&7), "{arrived:?}");
    for sample in &record.samples {
        assert!(sample.outcome.is_ok() || sample.outcome.is_cancelled(), "{sample:?}");
    }
    assert_eq!(record.player.last().unwrap().what, PlayerEventKind::Ended);
    assert_eq!(record.connections.len(), 1, "HTTP/2 and HTTP/3 cancel a stream, not the connection");
}

fn run(place: &Path) -> (ResultFolder, model::Plan) {
    std::fs::create_dir(place.join("networks")).unwrap();
    std::fs::write(place.join("networks/slow.toml"), NETWORK).unwrap();
    std::fs::write(place.join("study.toml"), STUDY).unwrap();
    let args = ["run", "study.toml", "-q", "--out", "out"];
    let ended = Ended::of(Command::new(H123).args(args).current_dir(place).output().unwrap());
    ended.expect_measured();
    let result = ResultFolder::open(&place.join("out")).unwrap();
    let plan = result.read_json("plan.json").unwrap();
    (result, plan)
}

#[test]
fn videos_are_played_stored_analysed_and_drawn() {
    let _machine = machine();
    let place = folder();
    let (result, plan) = run(place.path());
    let records: Vec<RunRecord> = result.records().unwrap().map(Result::unwrap).collect();
    assert_eq!(records.len(), 6);
    for record in &records {
        let level = plan.cells[record.cell as usize].level("workload").unwrap();
        let representations = record.player.iter().map(|event| event.bits_per_s);
        if level == "fixed" {
            expect_whole(record, 4);
            assert!(representations.clone().all(|bits_per_s| bits_per_s == 8_000_000));
            // A segment takes a second at least and plays for half of one.
            assert_eq!(events(record, PlayerEventKind::Stalled).len(), 3);
        } else if level == "jumping" {
            expect_jump(record);
        } else {
            expect_whole(record, 12);
            assert_eq!(representations.clone().max(), Some(2_500_000), "the link carries no more");
        }
    }
    let out = place.path().join("out");
    let summary = summary(&out);
    for variant in ["h2", "h3"] {
        let fixed = cell(&summary, &[variant, "fixed"]);
        assert!(median(fixed, "startup_time") >= SECOND_NS, "{fixed:#}");
        assert_eq!([median(fixed, "stalls"), median(fixed, "mean_representation")], [3.0, 8e6]);
        let share = median(fixed, "stall_share");
        assert!((1.5 / 4.5 - 1e-9..1.0).contains(&share), "{share}");
        let played = median(fixed, "played_share");
        assert!((0.0..=2.0 / 4.5 + 1e-9).contains(&played), "{played}");
        let adaptive = cell(&summary, &[variant, "adaptive"]);
        assert!((1e6..=2.5e6).contains(&median(adaptive, "mean_representation")), "{adaptive:#}");
        assert!(median(adaptive, "representation_switches") >= 1.0);
        for sound in ["version", "status", "failed_requests", "body_length"] {
            assert_eq!(check(adaptive, sound)["result"], "pass", "{adaptive:#}");
        }
        if variant == "h3" {
            assert_eq!(check(adaptive, "workloads_match")["result"], "pass", "{adaptive:#}");
        }
        assert!(adaptive["metrics"].get("page_load_time").is_none());
        let jumping = cell(&summary, &[variant, "jumping"]);
        assert!(median(jumping, "seek_time") > 0.0 && median(jumping, "qoe").is_finite(), "{jumping:#}");
        for sound in ["failed_requests", "all_requested"] {
            assert_eq!(check(jumping, sound)["result"], "pass", "{jumping:#}");
        }
    }
    let csv = std::fs::read_to_string(out.join("figures/player.csv")).unwrap();
    let marks = |mark: &str| csv.lines().filter(|line| line.split(',').nth(3) == Some(mark)).count();
    assert_eq!((marks("start-up"), marks("end")), (6, 6), "{csv}");
    assert!(marks("segment") > 2 * (4 + 12), "{csv}");
    assert!(marks("stall") >= 2 * 3);
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    for part in ["Playback of the video", "video: ", "fixed at 8", "3 stalls"] {
        assert!(report.contains(part), "no {part} in the report");
    }
    assert!(!out.join("logs/content/bytes").exists(), "the origin makes segments in memory");
}

const LIVE: &str = "question = 'How far is a viewer behind the edge of a live stream of HDS?'\nmetric = 'live_latency'\n\
    margin = '10%'\nruns = 1\nseed = 1\nbaseline = { variant = 'h1' }\n[matrix]\nvariant = ['h1', 'h3']\nserver = ['origin']\n\
    network = ['lan']\nworkload = ['viewer']\n\
    [media.news]\nsegment = '1s'\nlength = '3s'\nlive = '10s'\nhds = { fragments = 5, gaps = [3] }\n\
    video = { ladder = ['400kbit/s'], spread = '10%' }\n\
    [workload.viewer]\nkind = 'player'\nmanifest = '/media/news/manifest.f4m'\nlatency = '3s'\nduration = '8s'\n\
    buffer = '4s'\nrule = 'throughput'\n";

/// The bootstrap slides: the viewer reads it again for every fragment, and skips the numbers that do not
/// exist.
#[test]
fn a_live_stream_of_hds_is_watched_behind_its_edge() {
    let _machine = machine();
    let folder = folder();
    std::fs::write(folder.path().join("live.toml"), LIVE).unwrap();
    let mut command = Command::new(H123);
    command.args(["run", "live.toml", "--out", "out"]).current_dir(folder.path());
    Ended::of(command.output().unwrap()).expect_measured();
    let summary = summary(&folder.path().join("out"));
    for variant in ["h1", "h3"] {
        let cell = cell(&summary, &[variant]);
        assert_eq!(check(cell, "failed_requests")["result"], "pass", "{cell:#}");
        let latency_ns = median(cell, "live_latency");
        assert!((2e9..6e9).contains(&latency_ns), "{variant}: {latency_ns} ns");
        // The manifest once; then at least six fragments, and a bootstrap before each.
        assert!(median(cell, "requests") >= 13.0, "{cell:#}");
    }
}
