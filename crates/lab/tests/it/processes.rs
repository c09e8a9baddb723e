//! Programs inside nodes, and their end.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use lab::{Input, Lab, Output, Process, Program};

use crate::help::{MS, network, pair, processes_with, wait_until};
use crate::{ROLE, help};

const PATIENCE: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Program {
    Program::new("sh").args(["-c", script])
}

fn output(mut process: Process) -> String {
    let mut text = String::new();
    process.take_stdout().unwrap().read_to_string(&mut text).unwrap();
    assert!(process.wait().unwrap().status.success());
    text
}

pub(crate) fn input_output_and_exit() {
    let lab = pair(&network(MS, None, 0.0));
    let bytes = vec![b'x'; 300_000];
    let program = shell("wc -c; echo $GREETING; pwd");
    let program = Program {
        env: vec![("GREETING".into(), "hello".into())],
        directory: Some("/".into()),
        ..program.stdin(Input::Bytes(bytes)).stdout(Output::Pipe)
    };
    let text = output(lab.client().spawn(program).unwrap());
    assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["300000", "hello", "/"]);

    let mut process =
        lab.client().spawn(Program::new("cat").stdin(Input::Pipe).stdout(Output::Pipe)).unwrap();
    process.take_stdin().unwrap().write_all(b"through").unwrap();
    assert_eq!(output(process), "through");

    let process = lab.server().spawn(shell("exit 3")).unwrap();
    assert_eq!(process.wait().unwrap().status.code(), Some(3));
    assert_eq!(process.wait().unwrap().status.code(), Some(3), "asked again");

    let error = lab.server().spawn(Program::new("/no/such/program")).unwrap_err();
    assert!(error.to_string().contains("/no/such/program"), "{error}");

    let program = shell("grep Cpus_allowed_list /proc/self/status").stdout(Output::Pipe);
    let text = output(lab.client().spawn(Program { cpus: vec![0], ..program }).unwrap());
    assert_eq!(text.split_whitespace().last(), Some("0"));
}

pub(crate) fn stop_and_timeout() {
    use std::os::unix::process::ExitStatusExt;
    let lab = pair(&network(MS, None, 0.0));
    let process = lab.client().spawn(Program::new("sleep").args(["1000"])).unwrap();
    assert_eq!(process.wait_timeout(Duration::from_millis(20)).unwrap(), None);
    assert_eq!(process.stop(PATIENCE).unwrap().status.signal(), Some(libc::SIGTERM));

    let mut process = lab
        .client()
        .spawn(shell("trap '' TERM; echo deaf; while :; do sleep 1; done").stdout(Output::Pipe))
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.take_stdout().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(process.stop(Duration::from_millis(50)).unwrap().status.signal(), Some(libc::SIGKILL));
}

pub(crate) fn cpu_time_is_counted() {
    let lab = pair(&network(MS, None, 0.0));
    let burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    let before = lab.server().cpu_usage();
    let process = lab.server().spawn(shell(burn)).unwrap();
    let exit = process.wait().unwrap();
    assert!(exit.cpu_user_ns > 0 && exit.max_resident_bytes > 0, "{exit:?}");
    drop(process);
    let after = lab.server().cpu_usage();
    assert!(after.user_ns - before.user_ns >= exit.cpu_user_ns, "{before:?} {after:?} {exit:?}");
    // A worker of a server that goes on running.
    let process = lab.server().spawn(shell(&format!("({burn}; sleep 1000) & wait"))).unwrap();
    let used = || lab.server().cpu_usage().user_ns - after.user_ns;
    wait_until("a worker's CPU time counted", || used() >= exit.cpu_user_ns / 3);
    assert!(lab.client().cpu_usage().user_ns < exit.cpu_user_ns, "the other node did nothing");
    drop(process);
}

pub(crate) fn a_node_has_its_own_processes() {
    let lab = pair(&network(MS, None, 0.0));
    let text = output(lab.client().spawn(shell("echo $$").stdout(Output::Pipe)).unwrap());
    assert!(
        text.trim().parse::<u32>().unwrap() < 20,
        "{text} is the first process of its namespace but for init"
    );
    let interfaces = |node: &lab::Node| {
        output(
            node.spawn(shell("sed -n 's/ *\\([a-z0-9]*\\):.*/\\1/p' /proc/net/dev").stdout(Output::Pipe))
                .unwrap(),
        )
    };
    for node in [lab.client(), lab.server()] {
        let found = interfaces(node);
        assert!(found.split_whitespace().all(|name| name != "client" && name != "server"), "{found}");
        assert!(found.split_whitespace().any(|name| name == "eth0"), "{found}");
    }
}

pub(crate) fn all_end_when_the_lab_is_dropped() {
    let lab = pair(&network(MS, None, 0.0));
    let marker = marker("dropped");
    let process = lab.server().spawn(shell(&lingering(&marker))).unwrap();
    let sleepers = || processes_with(&format!("sleep {}", number(&marker)));
    wait_until("the sleepers there", || sleepers().len() >= 3);
    drop(lab);
    wait_until("no sleeper left", || sleepers().is_empty());
    assert!(process.wait_timeout(PATIENCE).unwrap().is_some(), "its end is known to who asks later");
}

pub(crate) fn all_end_when_the_tool_is_killed() {
    let marker = marker("killed");
    let mut command = Command::new("/proc/self/exe");
    command.env(ROLE, "tool").arg(&marker).stdout(Stdio::piped());
    let mut tool = command.spawn().unwrap();
    let mut namespaces = String::new();
    BufReader::new(tool.stdout.take().unwrap()).read_line(&mut namespaces).unwrap();
    let sleepers = || processes_with(&format!("sleep {}", number(&marker)));
    wait_until("the sleepers there", || sleepers().len() >= 6);
    let theirs: BTreeSet<String> = namespaces.split_whitespace().map(str::to_owned).collect();
    let found = network_namespaces(&all_processes());
    assert!(theirs.intersection(&found).count() >= 3, "{theirs:?} in {found:?}");
    tool.kill().unwrap();
    tool.wait().unwrap();
    wait_until("no sleeper left", || sleepers().is_empty());
    wait_until("no namespace left", || network_namespaces(&all_processes()).is_disjoint(&theirs));
}

pub(crate) fn many_labs_leave_nothing_behind() {
    let count = |folder: &str| std::fs::read_dir(folder).unwrap().count();
    let state = || (count("/proc/self/fd"), count("/proc/self/task"));
    wait_until("earlier labs gone", || count("/proc/self/task") == 1);
    let (before, there_before) = (state(), network_namespaces(&family()));
    let network = network(MS, Some(100_000_000), 0.0);
    let mut made = BTreeSet::new();
    for _ in 0..40 {
        let lab = pair(&network);
        let sleeper = lab.server().spawn(Program::new("sleep").args(["1000"])).unwrap();
        made.extend(network_namespaces(&family()));
        drop(lab);
        drop(sleeper);
    }
    let made: BTreeSet<_> = made.difference(&there_before).cloned().collect();
    assert!(made.len() >= 3, "{made:?}");
    wait_until("descriptors and threads as before", || state() == before);
    wait_until("no namespace left", || network_namespaces(&all_processes()).is_disjoint(&made));
}

/// What the killed tool was: a lab with sleepers in both nodes. Prints its namespaces and never returns.
pub(crate) fn be_a_tool() -> ! {
    let marker = std::env::args().nth(1).unwrap();
    let before = network_namespaces(&family());
    let lab = pair(&network(MS, None, 0.0));
    let sleepers = [lab.client(), lab.server()].map(|node| node.spawn(shell(&lingering(&marker))).unwrap());
    let new: Vec<String> = network_namespaces(&family()).difference(&before).cloned().collect();
    println!("{}", new.join(" "));
    std::thread::sleep(Duration::from_secs(3600));
    drop((lab, sleepers));
    std::process::exit(0)
}

pub(crate) fn a_lab_without_namespaces() {
    let lab = Lab::loopback().unwrap();
    assert!(!lab.is_emulated());
    assert_eq!(lab.reports().unwrap(), []);
    assert_eq!(lab.calibrate(3).unwrap(), None);
    assert!(lab.server().addresses().v4.is_loopback());
    let text = output(lab.client().spawn(shell("echo here").stdout(Output::Pipe)).unwrap());
    assert_eq!(text, "here\n");
    let marker = marker("loopback");
    let sleeper = lab.server().spawn(Program::new("sleep").args([number(&marker)])).unwrap();
    wait_until("a sleeper there", || processes_with(&format!("sleep {}", number(&marker))).len() == 1);
    drop(lab);
    assert!(sleeper.wait_timeout(PATIENCE).unwrap().is_some());
}

/// Three sleepers, two of which have left their session.
fn lingering(marker: &str) -> String {
    let number = number(marker);
    format!("setsid sh -c 'sleep {number} & sleep {number}' & sleep {number}")
}

/// A text that no other process has on its command line.
fn marker(what: &str) -> String {
    format!("marker-{what}-{}-{}", help::effective_user(), std::process::id())
}

/// How long a sleeper sleeps, different for each marker.
fn number(marker: &str) -> String {
    let sum: u64 = marker.bytes().fold(7, |sum: u64, byte| (sum * 31 + u64::from(byte)) % 1_000_003);
    format!("{}", 5_000_000 + sum)
}

fn all_processes() -> BTreeSet<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// This process and what descends from it: other processes may run labs at the same time.
fn family() -> BTreeSet<u32> {
    let parent = |pid: &u32| -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
    };
    let own = std::process::id();
    let descends = |pid: &u32| std::iter::successors(Some(*pid), parent).any(|ancestor| ancestor == own);
    all_processes().into_iter().filter(descends).collect()
}

/// The network namespaces that any thread of these processes is in, as the kernel names them.
fn network_namespaces(processes: &BTreeSet<u32>) -> BTreeSet<String> {
    let tasks = processes.iter().flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/task")));
    let names = tasks
        .flat_map(|tasks| tasks.flatten())
        .filter_map(|task| std::fs::read_link(task.path().join("ns/net")).ok());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}
