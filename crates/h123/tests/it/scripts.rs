//! Timing scripts: recorded from a player's session, a HAR file and a log, replayed by studies and load
//! tests.

use std::path::Path;

use model::RunRecord;
use model::formats::timing_script::{ParsedScript, TimingScript};
use serde_json::Value;
use store::ResultFolder;

use crate::tool::{cell, check, folder, h123, machine, median, summary};

/// A study with these workloads, run once per cell; its result.
fn run(folder: &Path, name: &str, metric: &str, rest: &str) -> std::path::PathBuf {
    let text = format!("question = \"Which?\"\nmetric = \"{metric}\"\nmargin = \"5%\"\nruns = 1\n{rest}");
    let (file, out) = (folder.join(format!("{name}.toml")), folder.join(name));
    std::fs::write(&file, text).unwrap();
    h123(["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]).expect_measured();
    out
}

fn records(out: &Path) -> Vec<RunRecord> {
    ResultFolder::open(out).unwrap().records().unwrap().map(Result::unwrap).collect()
}

fn script(path: &Path) -> TimingScript {
    ParsedScript::parse(&std::fs::read_to_string(path).unwrap()).unwrap().script
}

#[test]
fn a_players_session_is_recorded_and_replayed_over_other_versions() {
    let _machine = machine();
    let folder = folder();
    let video = "baseline = { variant = \"h2\" }\nserver_time = true\n[matrix]\nvariant = [\"h2\"]\nserver = [\"origin\"]\n\
        network = [\"lan\"]\nworkload = [\"video\"]\n[workload.video]\nkind = \"player\"\n\
        ladder = [\"1Mbit/s\", \"2.5Mbit/s\"]\nsegment = \"0.5s\"\nsegments = 8\nbuffer = \"1s\"\nrule = \"throughput\"\n";
    let result = run(folder.path(), "video", "startup_time", video);
    let (jsonl, tsv) = (folder.path().join("session.jsonl"), folder.path().join("session.tsv"));
    let record = |args: &[&str]| h123([&["record"], args].concat());
    let (result, jsonl_text) = (result.to_str().unwrap(), jsonl.to_str().unwrap());
    let ended = record(&[result, "--cell", "h2", "--class", "video=/bytes/*", "-o", jsonl_text]).expect(0);
    assert!(
        ended.stderr.contains("8 requests in ") && ended.stderr.contains("7 wait for others"),
        "{}",
        ended.stderr
    );
    let session = script(&jsonl);
    assert_eq!(session.variant, Some(model::Variant::H2));
    assert!(session.recorded.starts_with("client 0 of cell h2"), "{}", session.recorded);
    for (place, request) in (0_u32..).zip(&session.requests) {
        let before: Vec<u32> = place.checked_sub(1).into_iter().collect();
        assert_eq!((&request.after, request.class.as_deref()), (&before, Some("video")));
        let expects = request.expects;
        assert!(expects.status == Some(200) && expects.body_bytes.is_some() && expects.body_crc32.is_some());
    }
    record(&[jsonl_text, "-o", jsonl_text]).expect(2);
    record(&[jsonl_text, "--tsv", "-o", tsv.to_str().unwrap()]).expect(0);
    assert_eq!(script(&tsv).lasts_ns(), session.lasts_ns());

    // By the responses, ten times faster, over the recorded version and another.
    let replay = "baseline = { variant = \"h2\" }\n[matrix]\nvariant = [\"h1s\", \"h2\"]\nserver = [\"origin\"]\n\
        network = [\"lan\"]\nworkload = [\"replay\"]\n[workload.replay]\nkind = \"script\"\nscript = \"session.jsonl\"\n\
        replay = \"dependency\"\nspeed = 10\nclients = 3\nstart = { evenly = \"300ms\" }\n[class.video]\npaths = [\"/bytes/*\"]\n";
    let out = run(folder.path(), "replayed", "request_time@video", replay);
    let (summary, records) = (summary(&out), records(&out));
    for (variant, version) in [("h1s", "caveat"), ("h2", "pass")] {
        let cell = cell(&summary, &[variant]);
        assert_eq!((median(cell, "requests"), median(cell, "availability")), (24.0, 1.0), "{cell:#}");
        assert_eq!(check(cell, "script_variant")["result"], version, "{cell:#}");
        for name in ["status", "body_length", "body_content", "urls"] {
            assert_eq!(check(cell, name)["result"], "pass", "{name}: {cell:#}");
        }
    }
    for record in &records {
        for client in 0..3 {
            let rows: Vec<_> = record.samples.iter().filter(|row| row.client == client).collect();
            let path = |row: &&model::Sample| record.clients[0].urls[row.url as usize].clone();
            let paths: Vec<String> = rows.iter().map(path).collect();
            let recorded: Vec<String> = session.requests.iter().map(|request| request.url.clone()).collect();
            assert_eq!(paths, recorded);
            for ((before, row), request) in rows.iter().zip(&rows[1..]).zip(&session.requests[1..]) {
                assert_eq!(row.intended_ns, before.done_ns.unwrap() + request.gap_ns / 10);
            }
        }
    }
    let text = h123(["plan", folder.path().join("replayed.toml").to_str().unwrap()]).expect(0).stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("10 times faster than recorded, recorded over h2"), "{text}");

    // The server's log of the recorded run, condensed.
    let log = folder.path().join("access.log");
    write_log(&log, &records);
    let json =
        h123(["report", "--access-log", log.to_str().unwrap(), "--class", "small=/bytes/62500", "--json"])
            .expect(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["logs"][0]["requests"], 48, "{json:#}");
}

/// Rows as an access log in the form of the built-in origin.
fn write_log(path: &Path, records: &[RunRecord]) {
    let line = |record: &RunRecord, row: &model::Sample| {
        let (path, status) = (&record.clients[0].urls[row.url as usize], row.status.unwrap());
        let took_us = row.service_time_ns().unwrap() / 1000;
        format!(
            "{{\"ended_unix_us\":5,\"request_time_us\":{took_us},\"path\":\"{path}\",\"status\":{status}}}\n"
        )
    };
    let lines = records.iter().flat_map(|record| record.samples.iter().map(move |row| line(record, row)));
    std::fs::write(path, lines.collect::<String>()).unwrap();
}

#[test]
fn variants_replay_their_own_scripts_and_the_comparison_says_so() {
    let _machine = machine();
    let folder = folder();
    std::fs::write(folder.path().join("a.tsv"), "0\t/bytes/1000\n20\t/bytes/2000\n").unwrap();
    std::fs::write(
        folder.path().join("b.jsonl"),
        "{\"h123_script\":1,\"variant\":\"h2\"}\n{\"at_ms\":0,\"url\":\"/bytes/1000\",\"crc32\":\"00000000\"}\n\
         {\"at_ms\":0,\"url\":\"/status/404\",\"status\":404}\n{\"at_ms\":9,\"url\":\"/bytes/3000\",\"bytes\":3001}\n",
    )
    .unwrap();
    let rest = "baseline = { variant = \"h1s\" }\n[matrix]\nvariant = [\"h1s\", \"h2\"]\nserver = [\"origin\"]\n\
        network = [\"lan\"]\nworkload = [\"session\"]\n[workload.session]\nkind = \"script\"\n\
        script = { h1s = \"a.tsv\", h2 = \"b.jsonl\" }\n";
    let out = run(folder.path(), "own", "request_time", rest);
    let (summary, records) = (summary(&out), records(&out));
    let own = cell(&summary, &["h2"]);
    let found = check(own, "workloads_match");
    assert_eq!(found["result"], "caveat", "{own:#}");
    assert!(found["measured"].as_str().unwrap().starts_with("a different script: 3 requests"), "{found:#}");
    assert_eq!(check(own, "body_content")["result"], "invalid", "{own:#}");
    assert_eq!(check(own, "body_length")["result"], "invalid", "{own:#}");
    let of_h2 = records.iter().find(|record| record.samples.len() == 3).unwrap();
    let mut outcomes: Vec<(String, String)> = of_h2
        .samples
        .iter()
        .map(|row| {
            let reason = row.outcome.failure().map_or("ok".to_owned(), |failure| failure.reason.clone());
            (of_h2.clients[0].urls[row.url as usize].clone(), reason)
        })
        .collect();
    outcomes.sort();
    assert!(outcomes[0].1.ends_with("expected 00000000"), "{outcomes:?}");
    assert_eq!(outcomes[1].1, "3000 body bytes, expected 3001");
    assert_eq!(outcomes[2], ("/status/404".to_owned(), "ok".to_owned()));
}

#[test]
fn sources_without_a_session_are_refused_with_what_to_do() {
    let folder = folder();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let text = file("notes.txt", "hello\n");
    let har = file("empty.har", "{\"log\":{\"entries\":[]}}");
    let broken = file("broken.har", "{\"log\":{}}");
    let script = file("script.jsonl", "{\"h123_script\":1}\n{\"at_ms\":\"x\"}\n");
    for (args, expected) in [
        (&[text.as_str()][..], "has the format of no server"),
        (&[&har], "no request is left; nothing can be recorded"),
        (&[&broken], "broken.har: it is not a HAR file (missing field `entries`"),
        (&[&script], "script.jsonl: line 2"),
        (&[&text, "--cell", "h2"], "--cell requires a result folder"),
        (&[&text, "--log-format", "nginxx"], "--log-format: "),
        (&["nowhere"], "cannot read nowhere"),
        (&[folder.path().to_str().unwrap()], "is not a result"),
    ] {
        let ended = h123([&["record"], args].concat()).expect(2);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
    }
    let log = file("log", "nonsense\n");
    let ended = h123(["report", "--access-log", &log, "--log-format", "{path} {request_time_s}"]).expect(2);
    assert!(ended.stderr.contains("has no request; line 1: `nonsense` is not"), "{}", ended.stderr);
}
