//! The commands of README and `--help`, typed one after the other as a new user would, in a lab, whose ports
//! are free. Only durations and counts are smaller.

use std::fmt::Write;
use std::process::Command;

use crate::tool::{Ended, H123, folder, h123, machine, repository};

/// Longer times and larger counts of the examples, and what the test types instead.
const SHORTER: [(&str, &str); 11] = [
    ("-d 1min", "-d 1s"),
    ("-d 30s", "-d 1s"),
    ("-d 10s", "-d 1s"),
    ("-d 5s", "-d 1s"),
    ("10s@", "300ms@"),
    ("20s@", "300ms@"),
    ("--warmup 5s", "--warmup 200ms"),
    ("--ramp-up 10s", "--ramp-up 200ms -d 1s"),
    ("--migrate-at 5s", "--migrate-at 300ms"),
    ("-n 100000", "-n 2000"),
    ("-n 10000", "-n 1000"),
];

/// The exit statuses of a command that did what its reader expects: one with a threshold may miss it.
fn expected(command: &str) -> &'static str {
    if command.contains("--fail-if") { "0 or 4" } else { "0" }
}

/// The commands of the fenced blocks of README's section with this heading; comments are left out.
fn commands_of_readme(heading: &str) -> Vec<String> {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let section = readme.split(&format!("### {heading}\n")).nth(1).unwrap();
    let section = section.split("\n### ").next().unwrap().split("\n## ").next().unwrap();
    let is_command = |line: &&str| line.starts_with("h123 ") || line.starts_with("printf ");
    let blocks = section.split("```").skip(1).step_by(2).flat_map(str::lines);
    let lines = blocks.map(|line| line.strip_prefix("$ ").unwrap_or(line)).filter(is_command);
    lines.map(|line| line.split("  #").next().unwrap().trim_end().to_owned()).collect()
}

/// The commands among the examples of a command's help.
fn commands_of_help(command: &str) -> Vec<String> {
    let help = h123([command, "--help"]).expect(0).stdout;
    let examples = help.split("\nExample").nth(1).unwrap_or_else(|| panic!("{command} has no examples"));
    let lines = examples.lines().skip(1).take_while(|line| line.is_empty() || line.starts_with("  "));
    lines.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// Types commands in one folder of a lab; returns what each printed where its status was not expected.
fn type_all(commands: &[String]) -> String {
    let folder = folder();
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    std::os::unix::fs::symlink(H123, folder.path().join("bin/h123")).unwrap();
    let mut script = String::new();
    for command in commands {
        let short = SHORTER.iter().fold(command.clone(), |text, (long, short)| text.replace(long, short));
        let printed = command.replace('\'', "");
        if let Some(background) = short.strip_suffix('&') {
            // A person is slower than a server's start.
            writeln!(script, "{background}>> serve.log 2>&1 &").unwrap();
            writeln!(script, "for n in $(seq 50); do h123 trace http://127.0.0.1:8080/ --variant h1 >/dev/null 2>&1 && break; sleep 0.1; done").unwrap();
            continue;
        }
        let accepted = if expected(command) == "0" { "0" } else { "0|4" };
        writeln!(script, "( {short} ) > out 2>&1; status=$?").unwrap();
        writeln!(
            script,
            "case $status in {accepted}) ;; *) echo '{printed}: status' $status; head -c 2000 out;; esac"
        )
        .unwrap();
    }
    script += "cat serve.log >&2; kill $(jobs -p)\n";
    let path = format!("{}:{}", folder.path().join("bin").display(), std::env::var("PATH").unwrap());
    let lab = Command::new(H123)
        .args(["lab", "lan", "--", "timeout", "240", "bash", "-c", &script])
        .current_dir(folder.path())
        .env("PATH", path)
        .env_remove("SSLKEYLOGFILE")
        .output()
        .unwrap();
    let ended = Ended::of(lab);
    assert!(ended.stderr.contains("CA certificate: h123-ca.pem"), "no server began: {}", ended.stderr);
    ended.stdout
}

#[test]
fn the_load_commands_of_readme_work_as_typed() {
    let _machine = machine();
    let server = commands_of_readme("Look at one server");
    let load = commands_of_readme("Load testing");
    assert!(server.len() == 2 && load.len() == 6, "{server:?} {load:?}");
    assert_eq!(type_all(&[server, load].concat()), "");
}

#[test]
fn the_examples_of_help_work_as_typed() {
    let _machine = machine();
    let mut commands = commands_of_help("serve");
    let count = commands.len();
    for command in ["load", "trace"] {
        commands.extend(commands_of_help(command));
    }
    assert!(count == 4 && commands.len() > 25, "{commands:?}");
    assert_eq!(type_all(&commands), "");
}
