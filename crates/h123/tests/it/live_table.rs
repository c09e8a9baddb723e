//! What a terminal shows while a study runs, in a real one (`script`, util-linux).

use std::fs;
use std::process::Command;

use crate::tool::{H123, folder, machine, repository};

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

/// Everything that a terminal of 80 by 24 is sent by a study, with such variables in its environment.
fn shown(variables: &str) -> String {
    let place = folder();
    let (study, out) = (place.path().join("live.toml"), place.path().join("out"));
    fs::write(&study, STUDY).unwrap();
    let command = format!(
        "stty cols 80 rows 24; env -u CI TERM=xterm {variables} {H123} run {} --out {}",
        study.display(),
        out.display()
    );
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .current_dir(repository())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("page load time") && text.contains("report: "), "{text}");
    text
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
