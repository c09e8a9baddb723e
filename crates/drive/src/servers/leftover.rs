//! Workers that a server left behind when it died.
//!
//! In a lab they end with their node's PID namespace. On this machine's own network nobody else ends them.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// Kills what is left of a dead server's process group: processes of the same program in the group that it led.
///
/// The program is compared because the group's number may belong to somebody else once the group is empty.
pub(crate) fn kill_group(leader: u32, program: &Path) {
    let Ok(program) = program.canonicalize() else { return };
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let is_same_program = fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program);
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if is_same_program
            && group_of(&stat) == Some(leader)
            && let Some(pid) = Pid::from_raw(pid)
        {
            // It may end at this very moment, which is what is wanted.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
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
