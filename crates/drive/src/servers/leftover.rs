//! Processes that a server or a browser left behind when it ended.
//!
//! In a lab they end with their node's PID namespace. On this machine's network only this code ends them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long killed processes may take to end.
const KILL_LIMIT: Duration = Duration::from_secs(2);
const KILL_POLL: Duration = Duration::from_millis(5);

/// The programs of a process group: a server's or a browser's, with its shell or loader.
pub(crate) fn programs_of_group(leader: u32) -> BTreeSet<PathBuf> {
    members(leader).filter_map(|(_, program)| program).collect()
}

/// Kills the remaining processes of a group whose leader has ended, and waits for their end.
///
/// The programs are compared because the group's number may be reused once the group is empty.
pub(crate) fn kill_group(leader: u32, programs: &BTreeSet<PathBuf>) {
    kill_all(|| {
        let of_group = members(leader);
        let same = of_group.filter(|(_, program)| program.as_ref().is_some_and(|p| programs.contains(p)));
        same.map(|(pid, _)| pid).collect()
    });
}

/// Kills the remaining processes whose standard error is a log, and waits for their end: those that began a
/// session of their own, such as a browser's crash handlers, are in no group of the browser, but inherit its
/// log.
pub(crate) fn kill_writers(log: &Path) {
    // Without a log nothing was started, and a device such as /dev/null is the log of many programs.
    let Some(log) = log.canonicalize().ok().filter(|log| log.is_file()) else { return };
    kill_all(|| {
        let writes = |process: &Path| fs::read_link(process.join("fd/2")).is_ok_and(|file| file == log);
        let writers = processes().filter(|(_, process)| writes(process));
        writers.map(|(pid, _)| pid).filter(|pid| *pid != rustix::process::getpid()).collect()
    });
}

/// Kills processes until there are none: a killed process exists a little longer, and one of them may have
/// started another.
fn kill_all(left: impl Fn() -> Vec<Pid>) {
    let until = Instant::now() + KILL_LIMIT;
    loop {
        let left = left();
        for pid in &left {
            // It may have ended meanwhile.
            let _ = kill_process(*pid, Signal::KILL);
        }
        if left.is_empty() || Instant::now() >= until {
            return;
        }
        std::thread::sleep(KILL_POLL);
    }
}

/// The processes of a group, each with its program.
fn members(leader: u32) -> impl Iterator<Item = (Pid, Option<PathBuf>)> {
    processes().filter_map(move |(pid, process)| {
        let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
        (group_of(&stat) == Some(leader)).then(|| (pid, fs::read_link(process.join("exe")).ok()))
    })
}

/// The processes of this machine, each with its folder in `/proc`.
fn processes() -> impl Iterator<Item = (Pid, PathBuf)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
        Some((pid, entry.path()))
    })
}

/// Field 5 of `/proc/PID/stat`; the name, in parentheses, may hold spaces (proc_pid_stat(5)).
fn group_of(stat: &str) -> Option<u32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_in_a_session_of_its_own_is_found_by_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let stderr = fs::File::create(&log).unwrap();
        let mut child =
            std::process::Command::new("setsid").args(["sleep", "30"]).stderr(stderr).spawn().unwrap();
        // It leads its group once its session has begun.
        let stat = format!("/proc/{}/stat", child.id());
        while group_of(&fs::read_to_string(&stat).unwrap()) != Some(child.id()) {
            std::thread::sleep(KILL_POLL);
        }
        kill_writers(&log);
        assert!(!child.wait().unwrap().success(), "it was killed");
    }

    #[test]
    fn the_group_is_read_behind_any_name() {
        assert_eq!(group_of("12 (a b) c) S 1 34 34 0 -1"), Some(34));
        assert_eq!(group_of("12 (x"), None);
    }
}
