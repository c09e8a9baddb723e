//! Client groups that run at the same time: several clients each, in several nodes, on several servers.

use std::path::{Path, PathBuf};

use model::RunRecord;
use serde_json::Value;
use store::ResultFolder;

use crate::tool::{cell, check, folder, h123, machine, median, summary};

/// A study of groups; `rest` has its topology, matrix, workloads and groups.
fn study(folder: &Path, head: &str, rest: &str) -> PathBuf {
    let text = format!(
        "question = \"Which?\"\nmetric = \"page_load_time\"\nmargin = \"3%\"\nruns = 2\n{head}\n\
         [workload.small]\nkind = \"page\"\npage = \"small\"\n{rest}"
    );
    let file = folder.join("study.toml");
    std::fs::write(&file, text).unwrap();
    file
}

fn run(folder: &Path, head: &str, rest: &str) -> (Value, PathBuf) {
    let (file, out) = (study(folder, head, rest), folder.join("out"));
    let ended = h123(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    ended.expect_measured();
    (summary(&out), out)
}

/// The runs of a result with all their rows.
fn records(out: &Path) -> Vec<RunRecord> {
    ResultFolder::open(out).unwrap().records().unwrap().map(Result::unwrap).collect()
}

#[test]
fn groups_in_two_cities_run_at_the_same_time_over_their_own_networks() {
    let _machine = machine();
    let folder = folder();
    let head = "baseline = { group = \"near-h1s\" }\ntopology = \"sites\"\n\
                [matrix]\nserver = [\"origin\"]\nnetwork = [\"own\"]\nworkload = [\"small\"]";
    let groups = "clients = 5\nstart = { evenly = \"400ms\" }\n\
                  [[group]]\nname = \"near-h1s\"\nnode = \"frankfurt\"\nvariant = \"h1s\"\n\
                  [[group]]\nname = \"near-h2\"\nnode = \"frankfurt\"\nvariant = \"h2\"\n\
                  [[group]]\nname = \"far-h3\"\nnode = \"tokyo\"\nvariant = \"h3\"\n";
    let (summary, out) = run(folder.path(), head, groups);
    assert_eq!(
        (&summary["runs_planned"], &summary["runs_stored"]),
        (&2.into(), &2.into()),
        "not one per group"
    );
    for (group, least_ms, most_ms) in
        [("near-h1s", 28.0, 300.0), ("near-h2", 28.0, 300.0), ("far-h3", 840.0, 1500.0)]
    {
        let cell = cell(&summary, &[group]);
        assert_eq!(cell["runs_ok"], 2, "{cell:#}");
        // Round trips of 7 and 280 ms: handshake, document and what it names.
        let load_ms = median(cell, "page_load_time") / 1e6;
        assert!((least_ms..most_ms).contains(&load_ms), "{group}: {load_ms} ms");
        assert_eq!(cell["metrics"]["page_load_time"]["samples"], 10, "five clients in two runs");
        for name in ["version", "status", "all_requested", "emulation", "calibration"] {
            assert_eq!(check(cell, name)["result"], "pass", "{cell:#}");
        }
    }
    let compared: Vec<&Value> =
        summary["comparisons"].as_array().unwrap().iter().filter(|one| one["primary"] == true).collect();
    assert_eq!(compared.len(), 2, "both others against the first, paired by run");
    // All rows of a run are on one clock: the groups overlap, and starts are spread over 400 ms.
    let records = records(&out);
    assert_eq!(records.len(), 2);
    for record in &records {
        let of = |group: u16| record.samples.iter().filter(move |sample| sample.group == group);
        let span = |group: u16| {
            let begin = of(group).map(|sample| sample.intended_ns).min().unwrap();
            (begin, of(group).filter_map(|sample| sample.done_ns).max().unwrap())
        };
        let (near, far) = (span(1), span(2));
        assert!(near.0 < far.1 && far.0 < near.1, "{near:?} {far:?}");
        for group in 0..3 {
            let begin = |client: u32| {
                of(group)
                    .filter(|sample| sample.client == client)
                    .map(|sample| sample.intended_ns)
                    .min()
                    .unwrap()
            };
            let begins: Vec<u64> = (0..5).map(begin).collect();
            let gaps: Vec<u64> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert_eq!(gaps, [80_000_000; 4], "as planned, whatever the machine does");
        }
        let groups: Vec<u16> = record.clients.iter().map(|client| client.group).collect();
        assert_eq!((groups, record.round_trips.len()), (vec![0, 1, 2], 3));
    }
}

#[test]
fn a_background_group_ends_with_the_measured_one() {
    let _machine = machine();
    let folder = folder();
    let head = "baseline = { variant = \"h1s\" }\n[matrix]\nvariant = [\"h1s\", \"h2\"]\nserver = [\"origin\"]\n\
                network = [{ rtt = \"20ms\", rate = \"20Mbit/s\" }]\nworkload = [\"small\"]";
    let groups = "[workload.bulk]\nkind = \"closed\"\npaths = [\"/bytes/2000\"]\nduration = \"60s\"\n\
                  [[group]]\nname = \"page\"\n\
                  [[group]]\nname = \"bulk\"\nbackground = true\nvariant = \"h2\"\nworkload = \"bulk\"\nend = { with = \"page\" }\n";
    let (summary, out) = run(folder.path(), head, groups);
    for variant in ["h1s", "h2"] {
        assert_eq!(cell(&summary, &[variant, "page"])["runs_ok"], 2, "{summary:#}");
        let bulk = cell(&summary, &[variant, "bulk"]);
        assert!(median(bulk, "requests_per_second") > 0.0, "{bulk:#}");
    }
    let primary =
        summary["comparisons"].as_array().unwrap().iter().filter(|one| one["primary"] == true).count();
    assert_eq!(primary, 1, "nothing is compared with the background");
    for record in records(&out) {
        let latest = record.clients.iter().map(|client| client.finished_ns).max().unwrap();
        assert!(latest < 20_000_000_000, "it did not run for its 60 s: {latest} ns");
        assert!(
            record.samples.iter().filter(|sample| sample.group == 1).all(|sample| sample.outcome.is_ok())
        );
    }
}

#[test]
fn each_group_can_have_its_own_server() {
    let _machine = machine();
    let folder = folder();
    let head = "baseline = { group = \"one\" }\n[matrix]\nnetwork = [\"lan\"]\nworkload = [\"small\"]";
    let groups = "[[group]]\nname = \"one\"\nvariant = \"h2\"\nserver = \"origin\"\n\
                  [[group]]\nname = \"two\"\nvariant = \"h2\"\nserver = \"nginx\"\n";
    let (summary, out) = run(folder.path(), head, groups);
    for group in ["one", "two"] {
        assert_eq!(cell(&summary, &[group])["runs_ok"], 2, "{summary:#}");
    }
    for record in records(&out) {
        let names: Vec<&str> = record.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["origin", "nginx"]);
    }
}
