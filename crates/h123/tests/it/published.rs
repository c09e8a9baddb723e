//! The studies that repeat published ones, corrected: the round trips that the protocols need.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::tool::{Ended, H123, cell, folder, machine, repository, summary};

const RTT_NS: f64 = 60e6;
/// Attempts on a machine that other programs use: they lengthen runs and never shorten one.
const ATTEMPTS: usize = 3;

/// Runs a built-in study a few times over its network without jitter only.
fn measure(study: &str, out: &Path) -> Value {
    let place = out.parent().unwrap();
    let text = std::fs::read_to_string(repository().join(format!("studies/{study}.toml"))).unwrap();
    let is_jittery = |line: &&str| line.contains("name = \"jittery\"");
    let text: String =
        text.lines().filter(|line| !is_jittery(line)).map(|line| format!("{line}\n")).collect();
    let file = place.join(format!("{study}.toml"));
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(H123);
    command.args(["run", file.to_str().unwrap(), "--runs", "3", "--out"]).arg(out).current_dir(repository());
    Ended::of(command.output().unwrap()).expect_measured();
    summary(out)
}

/// Why the fastest run of a cell does not take this many round trips within 5 %.
fn complaint(summary: &Value, level: &str, metric: &str, round_trips: f64) -> Option<String> {
    let runs = cell(summary, &[level])["metrics"][metric]["per_run"].as_array().unwrap();
    let fastest = runs.iter().filter_map(|run| run["value"].as_f64()).reduce(f64::min).unwrap();
    let found = fastest / RTT_NS;
    // The margin is for the machine: nothing may be faster than the round trips that it needs.
    assert!(found > round_trips, "{level}: {found} round trips, fewer than {round_trips}");
    (found > 1.05 * round_trips).then(|| format!("{level}: {found} round trips, expected {round_trips}"))
}

fn expect_round_trips(study: &str, metric: &str, expected: &[(&str, f64)]) {
    let _machine = machine();
    let folder = folder();
    let mut complaints = Vec::new();
    for attempt in 0..ATTEMPTS {
        let summary = measure(study, &folder.path().join(attempt.to_string()));
        complaints = expected
            .iter()
            .filter_map(|(level, round_trips)| complaint(&summary, level, metric, *round_trips))
            .collect();
        if complaints.is_empty() {
            return;
        }
    }
    panic!("{complaints:?}");
}

#[test]
fn twenty_requests_take_two_to_five_round_trips() {
    let expected = [
        ("HTTP/2, 20 streams", 2.0),
        ("HTTP/1.1, 10 connections", 3.0),
        ("HTTP/1.1, 6 connections", 5.0),
        ("HTTP/2, two sessions", 4.0),
    ];
    expect_round_trips("aalto", "batch_time", &expected);
}

/// In addition to the 100 ms that the document takes.
#[test]
fn a_style_sheet_takes_a_round_trip_unless_it_is_pushed_or_hinted_at() {
    let taken = |round_trips: f64| round_trips + 100e6 / RTT_NS;
    let expected = [("asked", taken(3.0)), ("pushed", taken(2.0)), ("hinted", taken(2.0))];
    expect_round_trips("aalto-push", "page_load_time", &expected);
}
