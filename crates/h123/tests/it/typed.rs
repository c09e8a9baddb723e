//! The commands of README and `--help`, typed one after the other as a new user would; those that need a
//! server in a lab, whose ports are free. Only durations and counts are smaller.

use std::fmt::Write;
use std::process::Command;

use tempfile::TempDir;

use crate::tool::{Ended, H123, folder, h123, machine, repository};

/// Longer times and larger counts of the examples, and what the test types instead.
const SHORTER: [(&str, &str); 13] = [
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
    ("--runs 10", "--runs 1"),
    ("--runs 20", "--runs 2"),
];

/// Studies that take minutes: they are planned instead.
const LONG_STUDIES: [&str; 1] = ["h123 run video"];

/// Examples that the tests do not type: `install` downloads 300 MB, the tests of `lab` enter and change a
/// running lab, and those of `outside` measure a server of this machine in place of a site.
const NOT_TYPED: [&str; 4] =
    ["servers install", "lab --enter", "lab --change", "--url https://www.example.test/"];

/// What exists before an example: its text, and the commands that create it.
const PREPARED: [(&str, &str); 5] = [
    (
        "results/quick-20260101-120000",
        "[ -e results/quick-20260101-120000 ] || mv $(ls -d results/quick-2* | head -1) results/quick-20260101-120000",
    ),
    ("results/main", "[ -e results/main ] || cp -r results/quick-20260101-120000 results/main"),
    ("results/branch", "[ -e results/branch ] || cp -r results/quick-20260101-120000 results/branch"),
    ("my-study.toml", "h123 show quick > my-study.toml"),
    (
        "--access-log",
        "for log in a b c; do printf '{\"ended_unix_s\":1767225600.25,\"request_time_s\":0.125,\"protocol\":\"HTTP/2.0\",\
         \"method\":\"GET\",\"path\":\"/media/v/1.m4s\",\"status\":200,\"body_bytes\":1000}\\n' > $log.log; done",
    ),
];

/// The command with a smaller extent: a study has one run of few cells.
fn shorter(command: &str) -> String {
    let short = SHORTER.iter().fold(command.to_owned(), |text, (long, short)| text.replace(long, short));
    if LONG_STUDIES.contains(&command) {
        return short.replace("h123 run", "h123 plan");
    }
    if !short.starts_with("h123 run ") || short.contains("--resume") {
        return short;
    }
    let runs = if short.contains("--runs") { "" } else { " --runs 1" };
    let network = if short.contains("--network") { "" } else { " --network lan" };
    format!("{short}{runs}{network} --workload small --variant h1s --variant h3")
}

/// The exit statuses of a command that did what its reader expects: one with a threshold may miss it, and few
/// runs on a busy machine may be invalid.
fn expected(command: &str) -> &'static str {
    let is_judged = ["h123 run", "h123 report", "h123 compare"].iter().any(|name| command.starts_with(name));
    match (is_judged, command.contains("--fail-")) {
        (true, _) => "0|3|4",
        (false, true) => "0|4",
        (false, false) => "0",
    }
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

/// A folder with `h123` in `bin`, and an opener for `h123 report --open`.
fn place() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(H123, bin.join("h123")).unwrap();
    std::fs::write(bin.join("xdg-open"), "#!/bin/sh\ntest -s \"$1\"\n").unwrap();
    std::fs::set_permissions(bin.join("xdg-open"), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// A script that types the commands, and prints what each printed where its status was not expected.
fn script(commands: &[String]) -> String {
    let mut script = String::new();
    for command in commands {
        let short = shorter(command);
        let printed = command.replace('\'', "");
        if let Some(background) = short.strip_suffix('&') {
            // A person is slower than a server's start.
            writeln!(script, "{background}>> serve.log 2>&1 &").unwrap();
            writeln!(script, "for n in $(seq 50); do h123 trace http://127.0.0.1:8080/ --variant h1 >/dev/null 2>&1 && break; sleep 0.1; done").unwrap();
            continue;
        }
        for (_, preparation) in PREPARED.iter().filter(|(text, _)| command.contains(text)) {
            writeln!(script, "{preparation}").unwrap();
        }
        let accepted = expected(command);
        writeln!(script, "( {short} ) > out 2>&1; status=$?").unwrap();
        writeln!(
            script,
            "case $status in {accepted}) ;; *) echo '{printed}: status' $status; head -c 2000 out;; esac"
        )
        .unwrap();
    }
    script
}

/// Calls a program with the script in the place.
fn typed(place: &TempDir, program: &str, arguments: &[&str], script: &str) -> Ended {
    let path = format!("{}:{}", place.path().join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(program);
    command.args(arguments).args(["timeout", "240", "bash", "-c", script]).current_dir(place.path());
    command.env("PATH", path).env_remove("SSLKEYLOGFILE").env_remove("BROWSER");
    Ended::of(command.output().unwrap())
}

/// Types commands in one folder; returns what each printed where its status was not expected.
fn type_all(commands: &[String]) -> String {
    let ended = typed(&place(), "env", &[], &script(commands));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended.stdout
}

/// The same in a lab, where the first command starts a server.
fn type_all_with_server(commands: &[String]) -> String {
    let script = script(commands) + "cat serve.log >&2; kill $(jobs -p)\n";
    let ended = typed(&place(), H123, &["lab", "lan", "--"], &script);
    assert!(ended.stderr.contains("CA certificate: h123-ca.pem"), "no server began: {}", ended.stderr);
    ended.stdout
}

#[test]
fn the_load_commands_of_readme_work_as_typed() {
    let _machine = machine();
    let server = commands_of_readme("Look at one server");
    let load = commands_of_readme("Load testing");
    assert!(server.len() == 2 && load.len() == 6, "{server:?} {load:?}");
    assert_eq!(type_all_with_server(&[server, load].concat()), "");
}

#[test]
fn the_examples_of_help_with_a_server_work_as_typed() {
    let _machine = machine();
    let mut commands = commands_of_help("serve");
    let count = commands.len();
    for command in ["load", "trace"] {
        commands.extend(commands_of_help(command));
    }
    assert!(count == 5 && commands.len() > 25, "{commands:?}");
    assert_eq!(type_all_with_server(&commands), "");
}

#[test]
fn the_studies_and_labs_of_readme_work_as_typed() {
    let _machine = machine();
    let studies = commands_of_readme("Run a study");
    let labs = commands_of_readme("Explore a network by hand");
    assert!(studies.len() == 9 && labs.len() == 3, "{studies:?} {labs:?}");
    assert_eq!(type_all(&[studies, labs].concat()), "");
}

#[test]
fn the_other_examples_of_help_work_as_typed() {
    let _machine = machine();
    let commands =
        ["run", "plan", "report", "compare", "servers", "list", "show", "new", "schema", "completions"];
    let mut typed: Vec<String> =
        commands.into_iter().chain(["man", "lab"]).flat_map(commands_of_help).collect();
    typed.retain(|command| !NOT_TYPED.iter().any(|text| command.contains(text)));
    typed.push("h123 doctor".to_owned());
    assert!(typed.len() > 35, "{typed:?}");
    assert_eq!(type_all(&typed), "");
}
