//! Whether the kernel killed somebody for want of memory: a server's log cannot say so.

use std::fs;

/// How many processes the kernel had killed so at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutOfMemory {
    kills: Option<u64>,
}

impl OutOfMemory {
    /// The count as it is now.
    pub(crate) fn now() -> Self {
        OutOfMemory { kills: fs::read_to_string("/proc/vmstat").ok().and_then(|text| kills_in(&text)) }
    }

    /// What to say where the count has risen since; empty where it has not.
    pub(crate) fn since(self) -> String {
        said(self.kills, OutOfMemory::now().kills)
    }
}

/// The machine's counter `oom_kill` (proc_vmstat(5)), which counts memory groups' kills too.
fn kills_in(vmstat: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

fn said(before: Option<u64>, after: Option<u64>) -> String {
    match (before, after) {
        (Some(before), Some(after)) if after > before => {
            ", and the kernel killed a process for want of memory meanwhile: see dmesg".to_owned()
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
        assert!(said(Some(7), Some(8)).contains("want of memory"));
        for (before, after) in [(Some(7), Some(7)), (None, Some(1)), (Some(1), None)] {
            assert_eq!(said(before, after), "");
        }
    }
}
