//! A viewer of a page or a video in Chromium whose network gives it another address in the middle.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use model::player::PlayerEventKind;
use model::record::RunRecord;
use model::sample::{Outcome, Sample};
use store::ResultFolder;

use crate::browser_video::{FILM, FIXED, HEAD, make_film};
use crate::tool::{Ended, H123, folder, machine};

const MS_NS: u64 = 1_000_000;
/// A browser says some milliseconds late that it failed, and the timeline begins some before its load.
const EARLY_NS: u64 = 200 * MS_NS;
/// How long a browser may take to notice that its address is gone.
const NOTICE_NS: u64 = 5_000 * MS_NS;

/// The runs over HTTP/3 and HTTP/2 at 4 Mbit/s with a handover this long after the load's begin.
fn run(place: &Path, at_ms: u64, (workload, metric): (&str, &str), more: &str) -> [RunRecord; 2] {
    let network = format!(
        "title = 'From one network to the next'\nsource = 'a test'\nrtt = '20ms'\nrate = '4Mbit/s'\n\
         [[timeline]]\nat = '{at_ms}ms'\nhandover = true\n"
    );
    std::fs::create_dir_all(place.join("networks")).unwrap();
    std::fs::write(place.join("networks/leaving.toml"), network).unwrap();
    let matrix = format!(
        "baseline = {{ variant = 'h3' }}\n[matrix]\nvariant = ['h3', 'h2']\nserver = ['origin']\n\
         network = ['leaving']\nworkload = ['{workload}']\nclient = ['chromium']\n"
    );
    let head = HEAD.replace("startup_time", metric);
    std::fs::write(place.join("study.toml"), format!("{head}{matrix}{more}")).unwrap();
    let mut command = Command::new(H123);
    command.args(["run", "study.toml", "-q", "--out", "out"]).current_dir(place);
    Ended::of(command.output().unwrap()).expect_measured();
    let folder = ResultFolder::open(&place.join("out")).unwrap();
    let mut records: Vec<RunRecord> = folder.records().unwrap().map(Result::unwrap).collect();
    records.sort_by_key(|record| record.cell);
    records.try_into().unwrap()
}

/// The requests that failed: the handover, this long after the load's begin, broke each.
fn broken(record: &RunRecord, at_ms: u64) -> Vec<&Sample> {
    let due_ns = record.page_events[0].began_ns + at_ms * MS_NS;
    let failed: Vec<&Sample> = record.samples.iter().filter(|sample| !sample.outcome.is_ok()).collect();
    for sample in &failed {
        let Outcome::Failed(failure) = &sample.outcome else { panic!("{sample:?}") };
        assert!(failure.reason.starts_with("net::ERR_"), "{failure:?}");
        let done_ns = sample.done_ns.unwrap();
        assert!(
            sample.intended_ns <= due_ns + NOTICE_NS && done_ns + EARLY_NS >= due_ns,
            "{due_ns}: {sample:?}"
        );
        assert!(done_ns <= due_ns + NOTICE_NS, "nothing hangs: {due_ns}: {sample:?}");
    }
    failed
}

/// Without the handover, 1.6 MB take 3.2 s.
#[test]
fn a_handover_breaks_what_a_page_waits_for() {
    const AT_MS: u64 = 1_500;
    let _machine = machine();
    let place = folder();
    let page = "[workload.large]\nkind = 'page'\npage = 'large'\n";
    for record in run(place.path(), AT_MS, ("large", "page_load_time"), page) {
        let load = &record.page_events[0];
        let failed = broken(&record, AT_MS);
        assert!(record.outcome.is_ok() && failed.len() >= 2, "{record:?}");
        // Some were never sent.
        let connections: BTreeSet<u32> = failed.iter().filter_map(|sample| sample.connection).collect();
        assert_eq!(connections.len(), 1, "{failed:?}");
        let loaded_ns = load.loaded_ns.unwrap();
        assert!(
            loaded_ns + EARLY_NS >= load.began_ns + AT_MS * MS_NS,
            "the handover was in the load: {load:?}"
        );
        assert!(load.console_errors >= 2, "the browser says what is missing: {load:?}");
        let first = &record.samples[0];
        assert!(first.outcome.is_ok() && first.done_ns.unwrap() < load.began_ns + AT_MS * MS_NS, "{first:?}");
    }
}

/// The player and its page take 1 s, and each of four segments 0.7 s: one is on its way.
#[test]
fn a_video_goes_on_after_a_handover() {
    const AT_MS: u64 = 3_000;
    let _machine = machine();
    let place = folder();
    make_film(place.path(), "360p@3Mbit/s");
    let fixed = FIXED.replace("300kbit/s", "3Mbit/s");
    for record in run(place.path(), AT_MS, ("fixed", "startup_time"), &format!("{FILM}{fixed}")) {
        assert!(record.outcome.is_ok(), "{record:?}");
        let (failed, events) = (broken(&record, AT_MS), &record.player);
        assert!(!failed.is_empty(), "a segment was on its way: {record:?}");
        let due_ns = record.page_events[0].began_ns + AT_MS * MS_NS;
        let arrived = |is_after: bool| {
            let of = |kind: &&model::player::PlayerEvent| kind.what == PlayerEventKind::Arrived;
            events.iter().filter(of).filter(|event| (event.at_ns > due_ns) == is_after).count()
        };
        assert!(arrived(false) >= 1 && arrived(true) >= 1, "{due_ns}: {events:?}");
        let last = events.last().unwrap();
        assert_eq!(last.what, PlayerEventKind::Ended, "{events:?}");
        assert!(last.frames >= Some(80), "almost all of 96 pictures are shown: {last:?}");
        // What was broken is requested again, over a new connection.
        for broken in failed {
            let again = record.samples.iter().find(|sample| {
                sample.url == broken.url && sample.outcome.is_ok() && sample.intended_ns > broken.intended_ns
            });
            let again = again.unwrap_or_else(|| panic!("{broken:?} of {:?}", record.samples));
            assert_ne!(again.connection, broken.connection, "{again:?}");
        }
    }
}
