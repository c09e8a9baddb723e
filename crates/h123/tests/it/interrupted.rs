//! Ctrl-C, `kill -9` and `--resume`: stored runs remain, nothing else does.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::tool::{Ended, H123, folder, h123, machine, processes_with, repository, summary};

fn start(out: &Path) -> Child {
    let quick = ["quick", "--runs", "2", "--variant", "h1s", "--variant", "h3", "--network", "lan"];
    start_study(&quick, out)
}

/// Starts `h123 run` with these arguments.
fn start_study(study: &[&str], out: &Path) -> Child {
    let mut command = Command::new(H123);
    command.arg("run").args(study).arg("--out").arg(out).current_dir(repository());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until this many runs are stored; returns the network namespaces that the tool made meanwhile.
fn wait_for_runs(child: &Child, out: &Path, runs: usize) -> BTreeSet<String> {
    let begin = Instant::now();
    let mut made = BTreeSet::new();
    loop {
        let stored = std::fs::read_dir(out.join("samples")).map_or(0, |entries| {
            entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("run-")).count()
        });
        made.extend(namespaces(|pid| descends(pid, child.id())));
        if stored >= runs {
            let own = namespaces(|pid| pid == std::process::id());
            return made.difference(&own).cloned().collect();
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{stored} of {runs} runs after a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_child(child);
    kill_process(pid, signal).unwrap();
}

/// Network namespaces of the machine's processes of which this holds.
fn namespaces(holds: impl Fn(u32) -> bool) -> BTreeSet<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let links = pids
        .filter(|pid| holds(*pid))
        .filter_map(|pid| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok());
    links.map(|link| link.to_string_lossy().into_owned()).collect()
}

/// Whether a process is this one or a descendant.
fn descends(pid: u32, ancestor: u32) -> bool {
    let parent = |pid: &u32| -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
    };
    std::iter::successors(Some(pid), parent).any(|pid| pid == ancestor)
}

/// Fails unless every process of the result and every namespace that the tool made is gone within a few
/// seconds.
fn expect_nothing_left(out: &Path, made: &BTreeSet<String>) {
    assert!(!made.is_empty(), "no namespace was seen while the tool ran");
    let begin = Instant::now();
    loop {
        let processes = processes_with(out.to_str().unwrap());
        let clients = processes_with(&format!("{H123} load --assignment"));
        let left: Vec<_> = namespaces(|_| true).intersection(made).cloned().collect();
        if processes.is_empty() && clients.is_empty() && left.is_empty() {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "left behind: {processes:?} {clients:?} {left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interrupted_study_is_stored_and_can_be_continued() {
    let _machine = machine();
    let folder = folder();
    let out = folder.path().join("out");
    let child = start(&out);
    let made = wait_for_runs(&child, &out, 2);
    signal(&child, Signal::INT);
    let ended = Ended::of(child.wait_with_output().unwrap()).expect(130);
    let last = ended.stderr.lines().last().unwrap();
    assert!(last.ends_with(&format!("Continue with: h123 run --resume {}", out.display())), "{last}");
    expect_nothing_left(&out, &made);
    let cells = summary(&out)["cells"].as_array().unwrap().clone();
    assert!(cells.iter().all(|cell| cell["status"] != "failed"), "nothing failed: {cells:#?}");
    assert!(cells.iter().any(|cell| cell["status"] == "not measured" || cell["runs_ok"] != 0));
    let stored = summary(&out)["runs_stored"].as_u64().unwrap();
    assert!((2..8).contains(&stored), "{stored} runs");
    assert!(out.join("report.html").exists(), "what there is, is reported");

    let resumed = h123(["run", "--resume", out.to_str().unwrap()]);
    resumed.expect_measured();
    assert_eq!(summary(&out)["runs_stored"], 8);
    expect_nothing_left(&out, &made);

    let more = h123(["run", "--resume", out.to_str().unwrap(), "--runs", "3"]);
    more.expect_measured();
    let summary = summary(&out);
    assert_eq!((&summary["runs_stored"], &summary["runs_planned"]), (&12.into(), &12.into()));
    let html = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(html.contains("--network lan --runs 3"), "the command that repeats it has its runs");
    let fewer = h123(["run", "--resume", out.to_str().unwrap(), "--runs", "2"]).expect(2);
    assert!(fewer.stderr.contains("write --runs 4 or more"), "{}", fewer.stderr);
}

#[test]
fn a_killed_tool_leaves_nothing_and_its_runs_count() {
    let _machine = machine();
    let folder = folder();
    // At different moments of a run: while a lab comes up, while servers start, while clients work, while
    // rows are written.
    for (index, wait_ms) in [0, 20, 45, 70, 110].into_iter().enumerate() {
        let out = folder.path().join(format!("out{index}"));
        let mut child = start(&out);
        let mut made = wait_for_runs(&child, &out, 1);
        std::thread::sleep(Duration::from_millis(wait_ms));
        let own = namespaces(|pid| pid == std::process::id());
        made.extend(namespaces(|pid| descends(pid, child.id())).difference(&own).cloned());
        signal(&child, Signal::KILL);
        child.wait().unwrap();
        expect_nothing_left(&out, &made);
    }
    let out = folder.path().join("out4");
    let resumed = h123(["run", "--resume", out.to_str().unwrap()]);
    resumed.expect_measured();
    assert_eq!(summary(&out)["runs_stored"], 8);
}

/// Two arms, two swept numbers, two groups in each run.
const SWEPT: &str = r#"
question = "Is a swept study continued where it stopped?"
metric = "page_load_time"
baseline = { arm = "old" }
margin = "3%"
runs = 2
topology = "sites"

[matrix]
arm = ["old", "new"]
server = ["origin"]
network = ["own"]
clients = [1, 3]
"hold.initial_window_packets" = [10, 20]
workload = ["small"]

[arm.old]
variant = "h1s"

[arm.new]
variant = "h2"

[workload.small]
kind = "page"
page = "small"

[[group]]
name = "frankfurt"
node = "frankfurt"

[[group]]
name = "amsterdam"
node = "amsterdam"
"#;

#[test]
fn a_swept_study_of_groups_is_continued_where_it_stopped() {
    let _machine = machine();
    let folder = folder();
    let (file, out) = (folder.path().join("swept.toml"), folder.path().join("out"));
    std::fs::write(&file, SWEPT).unwrap();
    let child = start_study(&[file.to_str().unwrap()], &out);
    let made = wait_for_runs(&child, &out, 3);
    signal(&child, Signal::INT);
    Ended::of(child.wait_with_output().unwrap()).expect(130);
    expect_nothing_left(&out, &made);
    let stored = |run: u32| std::fs::read(out.join(format!("samples/run-{run:06}/requests.parquet"))).ok();
    let before: Vec<(u32, Vec<u8>)> = (0..16).filter_map(|run| Some((run, stored(run)?))).collect();
    assert!((3..16).contains(&before.len()), "{} of 16 runs", before.len());
    // The plan is the result's: the study's file is not read again.
    std::fs::remove_file(&file).unwrap();
    h123(["run", "--resume", out.to_str().unwrap()]).expect_measured();
    let summary = summary(&out);
    assert_eq!((&summary["runs_planned"], &summary["runs_stored"]), (&16.into(), &16.into()));
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 16, "two groups of each of eight points");
    for arm in ["old", "new"] {
        for (clients, window) in [("1", "10"), ("1", "20"), ("3", "10"), ("3", "20")] {
            for group in ["frankfurt", "amsterdam"] {
                let cell = crate::tool::cell(&summary, &[arm, clients, window, group]);
                assert_eq!(cell["runs_ok"], 2, "{cell:#}");
                let loads = 2 * clients.parse::<u64>().unwrap();
                assert_eq!(cell["metrics"]["page_load_time"]["samples"], loads, "{cell:#}");
            }
        }
    }
    let again = h123(["run", "--resume", out.to_str().unwrap(), "--runs", "3"]);
    again.expect_measured();
    assert_eq!(crate::tool::summary(&out)["runs_stored"], 24);
}

#[test]
fn resuming_a_complete_study_prints_its_result_again() {
    let _machine = machine();
    let folder = folder();
    let out = folder.path().join("out");
    let done = Ended::of(start(&out).wait_with_output().unwrap());
    done.expect_measured();
    let before = std::fs::read(out.join("summary.json")).unwrap();
    let again = h123(["run", "--resume", out.to_str().unwrap()]);
    assert_eq!(again.code, done.code, "{}", again.stderr);
    assert!(std::fs::read(out.join("summary.json")).unwrap() == before);
}

#[test]
fn a_result_is_not_continued_by_another_version_unless_told() {
    let _machine = machine();
    let folder = folder();
    let out = folder.path().join("out");
    let child = start(&out);
    let made = wait_for_runs(&child, &out, 2);
    signal(&child, Signal::INT);
    Ended::of(child.wait_with_output().unwrap()).expect(130);
    expect_nothing_left(&out, &made);
    let file = out.join("environment.json");
    let mut environment: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    environment["tool_version"] = "0.0.1".into();
    std::fs::write(&file, environment.to_string()).unwrap();
    let before = summary(&out);

    let refused = h123(["run", "--resume", out.to_str().unwrap()]).expect(2);
    assert!(
        refused.stderr.contains("h123 \"0.0.1\", now") && refused.stderr.contains("--mixed"),
        "{}",
        refused.stderr
    );
    assert_eq!(summary(&out), before, "nothing was measured");
    h123(["run", "--resume", out.to_str().unwrap(), "--mixed"]).expect_measured();
    assert_eq!(summary(&out)["runs_stored"], 8);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"continued with\": \"h123 \\\"0.0.1\\\", now"), "{text}");
}
