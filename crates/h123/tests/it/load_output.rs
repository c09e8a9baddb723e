//! The output of `load`: JSON, tables, distributions, rows, thresholds and the display.

use std::process::Command;

use serde_json::Value;

use crate::generator::Serving;
use crate::tool::{H123, folder, h123, machine, repository};

#[test]
fn the_numbers_are_written_in_every_form() {
    let _machine = machine();
    let serving = Serving::start();
    let (folder, ca) = (folder(), serving.ca());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (csv, hgrm) = (path("load.csv"), path("load.hgrm"));
    let url = serving.url(3, "/bytes/128");
    let args =
        ["load", &url, "--variant", "h2", "-c", "3", "-m", "2", "-n", "600", "--cacert", &ca, "--json"];
    let ended = h123(args.into_iter().chain(["--csv", &csv, "--hgrm", &hgrm])).expect(0);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["version"], 2);
    assert_eq!(json["requests"]["completed"], 600);
    assert_eq!(json["availability"], 1.0);
    for phase in ["latency_ns", "service_ns", "wait_ns", "transfer_ns"] {
        assert_eq!(json["phases"][phase]["count"], 600, "{phase}");
    }
    for phase in ["connect_ns", "handshake_ns"] {
        assert_eq!(json["phases"][phase]["count"], 3, "{phase}");
    }
    assert_eq!(json["latency_ns"]["beyond"]["p99"], 6, "the count behind a percentile");
    assert_eq!(json["by_status"]["200"]["requests"], 600);
    assert_eq!(json["by_url"][0]["requests"], 600);
    assert_eq!(json["per_connection"]["requests"]["count"], 3);
    let ratio = json["headers"]["request"]["ratio"].as_f64().unwrap();
    assert!(ratio < 0.7, "HPACK makes headers smaller: {ratio}");
    assert!(json["cpu"]["busiest_share"].as_f64().unwrap() > 0.0);
    let csv = std::fs::read_to_string(csv).unwrap();
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns), "{csv}");
    assert!(csv.lines().any(|line| line.starts_with("phase,handshake_ns,,,,,3,")), "{csv}");
    for name in ["availability,1,", "connections,3,", "cpu_user_ns,", "response_header_wire_bytes,"] {
        assert!(csv.lines().any(|line| line.starts_with(&format!("statistic,{name}"))), "{name}: {csv}");
    }
    let hgrm = std::fs::read_to_string(hgrm).unwrap();
    assert!(hgrm.contains("Total count    =          600]"), "{hgrm}");
}

#[test]
fn thresholds_decide_the_exit_status() {
    let _machine = machine();
    let serving = Serving::start();
    let (good, bad) = (serving.url(0, "/bytes/1"), serving.url(0, "/no-such"));
    let load = |url: &str, expression: &str| h123(["load", url, "-n", "20", "--fail-if", expression]);
    let kept = load(&good, "p99>1h").expect(0);
    assert!(kept.stdout.contains("fail-if      p99>1h: passed"), "{}", kept.stdout);
    let failed = load(&good, "rate>0.001/s").expect(4);
    assert!(failed.stdout.contains("fail-if      rate>0.001/s: failed"), "{}", failed.stdout);
    load(&bad, "failed>1%").expect(3);
    let wrong = load(&good, "p99>fast").expect(2);
    assert!(
        wrong.stderr.contains("p99>fast") && wrong.stderr.contains("such as `p99>50ms`"),
        "{}",
        wrong.stderr
    );
    let nowhere = h123(["load", &good, "-n", "1", "--csv", "/no/such/folder/load.csv"]).expect(2);
    assert!(nowhere.stderr.contains("--csv /no/such/folder/load.csv"), "{}", nowhere.stderr);
}

#[test]
fn failures_are_shown_by_kind_with_their_first_reason() {
    let _machine = machine();
    let serving = Serving::start();
    let ended = h123(["load", &serving.url(0, "/no-such"), "-n", "5"]).expect(3);
    assert!(ended.stdout.contains("0 completed, 5 failed"), "{}", ended.stdout);
    assert!(ended.stdout.contains("5 × wrong_status: status 404, expected 2xx"), "{}", ended.stdout);
    assert!(ended.stdout.contains("availability 0 %"), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\x1b'), "no colours in a pipe: {}", ended.stdout);
}

/// Runs the tool in a pseudo-terminal of Python and returns what was written to it.
fn in_a_terminal(args: &[&str]) -> String {
    let script = "import os, pty, sys\nos.environ['NO_COLOR'] = '1'\nsys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    let output = Command::new("python3")
        .args(["-c", script, H123])
        .args(args)
        .current_dir(repository())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_terminal_shows_a_block_that_the_summary_replaces() {
    let _machine = machine();
    let serving = Serving::start();
    let url = serving.url(0, "/bytes/1");
    let shown = in_a_terminal(&["load", &url, "-d", "1200ms"]);
    for part in ["% · ", "requests  ", "latency   p50", "errors    none", "\x1b[4A\x1b[J", " left"] {
        assert!(shown.contains(part), "{part:?} in {shown:?}");
    }
    let last = shown.rfind("\x1b[J").unwrap();
    assert!(shown[last..].contains("completed, 0 failed"), "the summary comes after the block: {shown:?}");
    let quiet = in_a_terminal(&["load", &url, "-d", "600ms", "--quiet"]);
    assert!(!quiet.contains("\x1b[") && quiet.contains("completed, 0 failed"), "{quiet:?}");
    let piped = h123(["load", &url, "-n", "100"]).expect(0);
    assert_eq!(piped.stderr, "", "a short test has no line in a pipe");
}
