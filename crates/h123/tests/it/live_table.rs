//! What a terminal shows while a study runs, in a real one (`script`, util-linux).

use std::fs;
use std::process::Command;

use crate::tool::{H123, cell, folder, machine, repository, summary};

const STUDY: &str = r#"
question = "What does a terminal show?"
metric = "page_load_time"
baseline = { variant = "h1" }
margin = "50%"
runs = 8
topology = "direct"
[matrix]
variant = ["h1", "h2c"]
server = ["origin"]
network = ["own"]
workload = ["small"]
[workload.small]
kind = "page"
page = "small"
"#;

/// Everything that a command writes to a terminal.
fn typed(command: &str) -> String {
    let output = Command::new("script")
        .args(["-qec", command, "/dev/null"])
        .current_dir(repository())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Everything that a study writes to a terminal of 80 by 24, with these variables in its environment.
fn shown(variables: &str) -> String {
    let place = folder();
    let (study, out) = (place.path().join("live.toml"), place.path().join("out"));
    fs::write(&study, STUDY).unwrap();
    let command = format!(
        "stty cols 80 rows 24; env -u CI TERM=xterm {variables} {H123} run {} --out {}",
        study.display(),
        out.display()
    );
    let text = typed(&command);
    assert!(text.contains("page load time") && text.contains("report: "), "{text}");
    text
}

const INVALID: &str = r#"
question = "What is invalid?"
metric = "request_time"
baseline = { workload = "good" }
margin = "50%"
runs = 2
topology = "direct"
[matrix]
variant = ["h1"]
server = ["origin"]
network = ["own"]
workload = ["good", "missing"]
[workload.good]
kind = "closed"
paths = ["/delay/20"]
duration = "700ms"
[workload.missing]
kind = "closed"
paths = ["/status/404"]
duration = "700ms"
think_time = "20ms"
"#;

/// The number of runs of a cell that are done, and of its invalid runs, in every table that a terminal of 80
/// by 24 is sent by this command.
fn counts(arguments: &str, cell: &str) -> Vec<(usize, usize)> {
    let command = format!("stty cols 80 rows 24; env -u CI TERM=xterm NO_COLOR=1 {H123} run {arguments}");
    let text = typed(&command);
    // The report after the last table has other columns.
    let tables = &text[..text.rfind("\u{1b}[J").unwrap_or_else(|| panic!("{text}"))];
    let counts = tables.lines().filter(|line| line.contains(cell)).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_end_matches(',')).collect();
        let done = words.iter().find_map(|word| word.split_once('/')?.0.parse().ok())?;
        let place = words.iter().position(|word| *word == "invalid");
        Some((done, place.map_or(0, |place| words[place - 1].parse().unwrap())))
    });
    let counts: Vec<(usize, usize)> = counts.collect();
    assert!(!counts.is_empty(), "{text}");
    counts
}

#[test]
fn the_live_count_of_invalid_runs_is_that_of_the_final_table_after_resuming_too() {
    let _machine = machine();
    let place = folder();
    let (study, out) = (place.path().join("live.toml"), place.path().join("out"));
    fs::write(&study, INVALID).unwrap();
    let begun = counts(&format!("{} --out {}", study.display(), out.display()), "missing ");
    assert!(begun.iter().all(|(done, invalid)| done == invalid), "all its requests fail: {begun:?}");
    assert!(begun.iter().any(|(done, _)| *done > 0), "{begun:?}");
    let resumed = counts(&format!("--resume {} --runs 4", out.display()), "missing ");
    assert!(resumed.iter().all(|(done, invalid)| *done >= 2 && done == invalid), "{resumed:?}");
    let summary = summary(&out);
    let missing = cell(&summary, &["missing"]);
    assert_eq!((&missing["status"], &missing["runs_ok"]), (&"invalid".into(), &4.into()));
    assert!(cell(&summary, &["good"])["status"] != "failed");
}

#[test]
fn a_terminal_gets_a_table_that_lives_and_goes_and_ci_gets_lines() {
    let _machine = machine();
    let live = shown("NO_COLOR=");
    for part in ["0/16 runs", "cell", "state", "h2c", "waiting", "\u{1b}[J", "\u{1b}[2m"] {
        assert!(live.contains(part), "a terminal lacks {part:?}: {live}");
    }
    let drawn = live.matches(" runs · ").count();
    assert_eq!(live.matches("\u{1b}[J").count(), drawn, "each table is removed again: {live}");
    let plain = shown("NO_COLOR=1");
    assert!(plain.contains("\u{1b}[J") && !plain.contains("\u{1b}[2m"), "{plain}");
    assert!(!shown("NO_COLOR=1 CI=true").contains('\u{1b}'), "plain lines in CI");
}
