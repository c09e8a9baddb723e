//! Kills by the kernel's out-of-memory killer, which a server's log cannot contain.

use std::fs;

/// How many processes the out-of-memory killer had killed at some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutOfMemory {
    kills: Option<u64>,
}

impl OutOfMemory {
    /// The current count.
    pub(crate) fn now() -> Self {
        OutOfMemory { kills: fs::read_to_string("/proc/vmstat").ok().and_then(|text| kills_in(&text)) }
    }

    /// A text where the count has risen since; otherwise empty.
    pub(crate) fn since(self) -> String {
        describe(self.kills, OutOfMemory::now().kills)
    }
}

/// The machine's counter `oom_kill` (proc_vmstat(5)), which includes kills in memory cgroups.
fn kills_in(vmstat: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

fn describe(before: Option<u64>, after: Option<u64>) -> String {
    match (before, after) {
        (Some(before), Some(after)) if after > before => {
            ", and the kernel killed a process because memory ran out; see dmesg".to_owned()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_count_that_rose_is_told() {
        assert_eq!(kills_in("pgfault 1\noom_kill 7\nfoo 2\n"), Some(7));
        assert_eq!(kills_in("oom_killer 7\n"), None);
        assert!(describe(Some(7), Some(8)).contains("memory ran out"));
        for (before, after) in [(Some(7), Some(7)), (None, Some(1)), (Some(1), None)] {
            assert_eq!(describe(before, after), "");
        }
    }
}
