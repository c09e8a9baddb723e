//! The machine: which CPUs there are, and what else ran on them (`proc(5)`).

use std::fs;

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity};

/// More of one CPU than this, taken by other processes, is reported.
const MUCH_BY_OTHERS: f64 = 0.10;
/// More of one CPU than this, taken by other machines on the same host, is reported.
const MUCH_STOLEN: f64 = 0.05;

/// CPU time of the whole machine since its start, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Total {
    busy_ns: u64,
    stolen_ns: u64,
}

/// What else ran during a measurement, in CPUs (1 = one CPU all the time).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Disturbance {
    pub(crate) others: f64,
    pub(crate) stolen: f64,
}

impl Disturbance {
    /// Whether it is large enough that the reader must know.
    pub(crate) fn is_much(&self) -> bool {
        self.others > MUCH_BY_OTHERS || self.stolen > MUCH_STOLEN
    }
}

/// The CPUs that this process may use, ascending.
pub(crate) fn cpus() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None).context("cannot ask which CPUs may be used")?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// CPU time of a process so far, of all its threads in user space and kernel; in steps of a tick (mostly 10
/// ms).
pub(crate) fn process_ns(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    parse_process(&text, tick_ns()).with_context(|| format!("{path}: found `{}`", text.trim()))
}

/// The machine's work so far.
pub(crate) fn total() -> Result<Total> {
    let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    parse_total(&text, tick_ns()).context("/proc/stat: found no line `cpu` with 8 numbers")
}

/// What else ran between two readings, apart from the CPU time that is accounted for.
pub(crate) fn disturbance(before: Total, after: Total, known_ns: u64, elapsed_ns: u64) -> Disturbance {
    let elapsed = elapsed_ns.max(1) as f64;
    let busy = after.busy_ns.saturating_sub(before.busy_ns);
    Disturbance {
        others: busy.saturating_sub(known_ns) as f64 / elapsed,
        stolen: after.stolen_ns.saturating_sub(before.stolen_ns) as f64 / elapsed,
    }
}

/// Model of the CPU and release of the kernel, for the record.
pub(crate) fn description() -> (String, String) {
    let cpu = fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(": ")?.1.to_owned())
        })
        .unwrap_or_else(|| "unknown".to_owned());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_else(|_| "unknown".to_owned());
    (cpu, kernel.trim().to_owned())
}

fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// Fields 14 and 15 of `/proc/PID/stat`; the name before them may hold blanks and brackets.
fn parse_process(text: &str, tick_ns: u64) -> Option<u64> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok()?.checked_mul(tick_ns);
    next()?.checked_add(next()?)
}

/// user, nice, system, idle, iowait, irq, softirq, steal.
fn parse_total(text: &str, tick_ns: u64) -> Option<Total> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _waiting, hard, soft, stolen, ..] = fields.as_slice() else {
        return None;
    };
    let ticks = user + nice + system + hard + soft;
    Some(Total { busy_ns: ticks * tick_ns, stolen_ns: stolen * tick_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_an_odd_name_is_read() {
        let text = "4242 (a) b (c) S 1 4242 4242 0 -1 4194560 200 0 0 0 17 23 0 0 20 0 1 0 1000 1 1\n";
        assert_eq!(parse_process(text, 10), Some(170 + 230));
        assert_eq!(parse_process("4242 (cut) S 1 2 3", 10), None);
        assert_eq!(parse_process("", 10), None);
    }

    #[test]
    fn the_machine_is_read() {
        let text = "cpu  100 1 50 9000 7 3 2 11 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(parse_total(text, 10), Some(Total { busy_ns: 1560, stolen_ns: 110 }));
        assert_eq!(parse_total("cpu 1 2 3\n", 10), None);
        assert!(total().is_ok());
        assert!(process_ns(std::process::id()).is_ok());
    }

    #[test]
    fn what_is_accounted_for_is_no_disturbance() {
        let before = Total { busy_ns: 1_000, stolen_ns: 0 };
        let after = Total { busy_ns: 2_900, stolen_ns: 40 };
        let quiet = disturbance(before, after, 1_850, 1_000);
        assert_eq!(quiet, Disturbance { others: 0.05, stolen: 0.04 });
        assert!(!quiet.is_much());
        assert!(disturbance(before, after, 900, 1_000).is_much());
        assert_eq!(disturbance(before, after, 5_000, 1_000).others, 0.0);
    }
}
