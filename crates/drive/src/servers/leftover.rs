//! Processes that a server or a browser left behind when it ended.
//!
//! In a lab they end with their node's PID namespace. On this machine's network only this code ends them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long killed processes may take to end.
const KILL_LIMIT: Duration = Duration::from_secs(2);
const KILL_POLL: Duration = Duration::from_millis(5);

/// The programs of a process group: a server's or a browser's, with its shell or loader.
pub(crate) fn programs_of_group(leader: u32) -> BTreeSet<PathBuf> {
    members(leader).filter_map(|(_, program)| program).collect()
}

/// Kills the remaining processes of a group whose leader has ended, and waits for their end: a killed process
/// exists a little longer, and one of them may have started another.
///
/// The programs are compared because the group's number may be reused once the group is empty.
pub(crate) fn kill_group(leader: u32, programs: &BTreeSet<PathBuf>) {
    let until = Instant::now() + KILL_LIMIT;
    loop {
        let mut is_empty = true;
        for (pid, program) in members(leader) {
            if program.is_some_and(|program| programs.contains(&program)) {
                is_empty = false;
                // It may have ended meanwhile.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        if is_empty || Instant::now() >= until {
            return;
        }
        std::thread::sleep(KILL_POLL);
    }
}

/// The processes of a group, each with its program.
fn members(leader: u32) -> impl Iterator<Item = (Pid, Option<PathBuf>)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let pid = entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)?;
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        (group_of(&stat) == Some(leader)).then(|| (pid, fs::read_link(entry.path().join("exe")).ok()))
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
    fn the_group_is_read_behind_any_name() {
        assert_eq!(group_of("12 (a b) c) S 1 34 34 0 -1"), Some(34));
        assert_eq!(group_of("12 (x"), None);
    }
}
