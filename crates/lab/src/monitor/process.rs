//! One process and its threads.

use std::collections::BTreeMap;
use std::fmt::Write;

use model::monitor::{Name, Quantity, Subject, SubjectKind};
use rustix::fs::{AtFlags, CWD, statat};

use super::rows::{Budget, Rows, subject};
use super::source::{self, Buffer};
use crate::process::{Exit, process_clock_ns};
use crate::procfs::{self, Schedule, Stat, Status, tick_ns, user_part_ns};

/// How many threads of one process are read at most.
const MOST_THREADS: usize = 512;
/// The share of a core, in parts per thousand, for counting the descriptors of one process one by one.
const COUNT_PER_MILLE: u32 = 1;
/// How often a name is read: a process has its parent's name between fork and exec, and a server sets its
/// title later.
const NAME_READINGS: u8 = 3;

/// A monitored process.
#[derive(Debug)]
pub(super) struct WatchedProcess {
    pid: i32,
    /// Whether the tool waits for its end.
    pub(super) is_child: bool,
    subject: Subject,
    names_read: u8,
    started_ticks: Option<u64>,
    now: Counts,
    begin: Counts,
    status: Status,
    thread_count: u64,
    open_files: u64,
    count_files: Budget,
    threads: BTreeMap<i32, Thread>,
    /// The counts of ended threads.
    gone: Counts,
    /// Whether it ever had several threads; only then threads have rows.
    has_several: bool,
    path: String,
}

/// The state of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessState {
    Alive,
    /// A zombie.
    Ended,
    Gone,
}

/// Values that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    cpu_user_ns: u64,
    cpu_system_ns: u64,
    waited_ns: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
    major_faults: u64,
}

#[derive(Debug)]
struct Thread {
    subject: Subject,
    names_read: u8,
    schedule: Schedule,
    now: Counts,
    begin: Counts,
    is_there: bool,
}

impl WatchedProcess {
    pub(super) fn new(pid: i32, node: Option<&Name>, is_child: bool) -> WatchedProcess {
        WatchedProcess {
            pid,
            is_child,
            subject: subject(node, SubjectKind::Process, "", u64::from(pid.unsigned_abs())),
            names_read: 0,
            started_ticks: None,
            now: Counts::default(),
            begin: Counts::default(),
            status: Status::default(),
            thread_count: 0,
            open_files: 0,
            count_files: Budget::per_mille(COUNT_PER_MILLE),
            threads: BTreeMap::new(),
            gone: Counts::default(),
            has_several: false,
            path: String::with_capacity(64),
        }
    }

    /// Makes the values relative to the last reading.
    pub(super) fn begin(&mut self) {
        self.begin = self.now;
        self.threads.values_mut().for_each(|thread| thread.begin = thread.now);
    }

    /// Reads it.
    pub(super) fn read(&mut self, now_ns: u64, buffer: &mut Buffer) -> ProcessState {
        let pid = self.pid;
        let Some(stat) =
            read_at(&mut self.path, format_args!("/proc/{pid}/stat"), buffer).and_then(Stat::parse)
        else {
            return ProcessState::Gone;
        };
        if matches!(stat.state, b'Z' | b'X') {
            return ProcessState::Ended;
        }
        if *self.started_ticks.get_or_insert(stat.started_ticks) != stat.started_ticks {
            return ProcessState::Gone;
        }
        self.thread_count = stat.threads;
        self.has_several |= stat.threads > 1;
        self.now.major_faults = stat.major_faults;
        let ticks = (stat.user_ticks, stat.system_ticks);
        let total_ns = process_clock_ns(pid);
        self.now.split_cpu(total_ns, ticks);
        let is_new = self.names_read == 0;
        self.read_name(buffer);
        let has_run = self.read_threads(buffer);
        if (has_run || is_new)
            && let Some(text) = read_at(&mut self.path, format_args!("/proc/{pid}/status"), buffer)
        {
            self.status = Status::parse(text);
        }
        self.read_open_files(now_ns);
        ProcessState::Alive
    }

    /// Adds its rows, and those of its threads where there are several.
    pub(super) fn push(&self, rows: &mut Rows) {
        for (quantity, value) in self.now.since(&self.begin) {
            rows.push(&self.subject, quantity, value);
        }
        for (quantity, value) in [
            (Quantity::MajorFaults, self.now.major_faults.saturating_sub(self.begin.major_faults)),
            (Quantity::Resident, self.status.resident_bytes),
            (Quantity::PeakResident, self.status.peak_resident_bytes),
            (Quantity::Threads, self.thread_count),
            (Quantity::OpenFiles, self.open_files),
        ] {
            rows.push(&self.subject, quantity, value);
        }
        for thread in self.threads.values().filter(|_| self.has_several) {
            for (quantity, value) in thread.now.since(&thread.begin) {
                rows.push(&thread.subject, quantity, value);
            }
        }
    }

    /// Adds its last rows, from its exit.
    pub(super) fn push_end(&self, exit: &Exit, rows: &mut Rows) {
        let begin = |quantity| match quantity {
            Quantity::CpuUser => self.begin.cpu_user_ns,
            Quantity::CpuSystem => self.begin.cpu_system_ns,
            Quantity::VoluntarySwitches => self.begin.voluntary_switches,
            Quantity::InvoluntarySwitches => self.begin.involuntary_switches,
            _ => 0,
        };
        for (quantity, value) in exit_readings(exit) {
            rows.push_end(&self.subject, quantity, value.saturating_sub(begin(quantity)));
        }
    }

    fn read_name(&mut self, buffer: &mut Buffer) {
        if self.names_read >= NAME_READINGS {
            return;
        }
        self.names_read += 1;
        let pid = self.pid;
        let command =
            read_at(&mut self.path, format_args!("/proc/{pid}/cmdline"), buffer).map(<[u8]>::to_vec);
        let thread = read_at(&mut self.path, format_args!("/proc/{pid}/comm"), buffer).unwrap_or_default();
        let name = procfs::process_name(&command.unwrap_or_default(), thread.trim_ascii());
        if *self.subject.name != *name {
            self.subject.name = name.as_str().into();
        }
    }

    /// Reads every thread that has run since the last round; returns whether any has.
    fn read_threads(&mut self, buffer: &mut Buffer) -> bool {
        self.threads.values_mut().for_each(|thread| thread.is_there = false);
        let mut has_run = false;
        if self.has_several {
            for tid in procfs::tids(self.pid).take(MOST_THREADS) {
                has_run |= self.read_thread(tid, buffer);
            }
        } else {
            has_run = self.read_thread(self.pid, buffer);
        }
        let gone = &mut self.gone;
        self.threads.retain(|_, thread| {
            if !thread.is_there {
                gone.add_waits(&thread.now);
            }
            thread.is_there
        });
        let mut sum = *gone;
        self.threads.values().for_each(|thread| sum.add_waits(&thread.now));
        self.now.waited_ns = sum.waited_ns;
        self.now.voluntary_switches = sum.voluntary_switches;
        self.now.involuntary_switches = sum.involuntary_switches;
        has_run
    }

    fn read_thread(&mut self, tid: i32, buffer: &mut Buffer) -> bool {
        let (pid, path) = (self.pid, &mut self.path);
        let text = read_at(path, format_args!("/proc/{pid}/task/{tid}/schedstat"), buffer);
        let Some(schedule) = text.and_then(Schedule::parse) else { return false };
        let node = self.subject.node.as_ref();
        let thread = self.threads.entry(tid).or_insert_with(|| Thread {
            subject: subject(node, SubjectKind::Thread, "", u64::from(tid.unsigned_abs())),
            names_read: 0,
            schedule: Schedule::default(),
            now: Counts::default(),
            begin: Counts::default(),
            is_there: true,
        });
        thread.is_there = true;
        // A kernel that does not count always reports 0; then every thread is read. A thread that was the
        // only one of its process has no name yet.
        let is_known = !self.has_several || thread.names_read > 0;
        if thread.schedule == schedule && schedule.slices > 0 && is_known {
            return false;
        }
        thread.schedule = schedule;
        thread.now.waited_ns = schedule.waited_ns;
        if self.has_several {
            let text = read_at(path, format_args!("/proc/{pid}/task/{tid}/stat"), buffer);
            if let Some(stat) = text.and_then(Stat::parse) {
                let total_ns = Some(schedule.ran_ns).filter(|ran_ns| *ran_ns > 0);
                thread.now.split_cpu(total_ns, (stat.user_ticks, stat.system_ticks));
                if thread.names_read < NAME_READINGS {
                    thread.names_read += 1;
                    thread.subject.name = procfs::printable(stat.name).as_str().into();
                }
            }
        }
        if let Some(text) = read_at(path, format_args!("/proc/{pid}/task/{tid}/status"), buffer) {
            let status = Status::parse(text);
            thread.now.voluntary_switches = status.voluntary_switches;
            thread.now.involuntary_switches = status.involuntary_switches;
        }
        true
    }

    /// Since Linux 6.2 the folder's size is their number. Older kernels require counting them one by one.
    fn read_open_files(&mut self, now_ns: u64) {
        set(&mut self.path, format_args!("/proc/{}/fd", self.pid));
        let path = &self.path;
        let size = statat(CWD, path, AtFlags::empty()).map_or(0, |stat| stat.st_size);
        match u64::try_from(size) {
            Ok(size @ 1..) => self.open_files = size,
            _ => self.count_files.spend(now_ns, false, || {
                self.open_files = std::fs::read_dir(path).map_or(0, |entries| entries.count() as u64);
            }),
        }
    }
}

impl Counts {
    /// Splits CPU time into user and system time in proportion to the ticks. Without an exact total the ticks
    /// are the time. Neither part ever shrinks.
    fn split_cpu(&mut self, total_ns: Option<u64>, (user, system): (u64, u64)) {
        let total_ns = total_ns.unwrap_or_else(|| user.saturating_add(system).saturating_mul(tick_ns()));
        let user_ns = user_part_ns(total_ns, user, system);
        let most_user_ns = total_ns.saturating_sub(self.cpu_system_ns);
        self.cpu_user_ns = user_ns.min(most_user_ns).max(self.cpu_user_ns);
        self.cpu_system_ns = total_ns.saturating_sub(self.cpu_user_ns).max(self.cpu_system_ns);
    }

    fn add_waits(&mut self, other: &Counts) {
        self.waited_ns += other.waited_ns;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }

    /// The values that both processes and threads have.
    fn since(&self, begin: &Counts) -> [(Quantity, u64); 5] {
        [
            (Quantity::CpuUser, self.cpu_user_ns.saturating_sub(begin.cpu_user_ns)),
            (Quantity::CpuSystem, self.cpu_system_ns.saturating_sub(begin.cpu_system_ns)),
            (Quantity::Waited, self.waited_ns.saturating_sub(begin.waited_ns)),
            (Quantity::VoluntarySwitches, self.voluntary_switches.saturating_sub(begin.voluntary_switches)),
            (
                Quantity::InvoluntarySwitches,
                self.involuntary_switches.saturating_sub(begin.involuntary_switches),
            ),
        ]
    }
}

/// What wait4(2) reports about a process and the children that it waited for.
pub(super) fn exit_readings(exit: &Exit) -> [(Quantity, u64); 5] {
    [
        (Quantity::CpuUser, exit.cpu_user_ns),
        (Quantity::CpuSystem, exit.cpu_system_ns),
        (Quantity::VoluntarySwitches, exit.voluntary_switches),
        (Quantity::InvoluntarySwitches, exit.involuntary_switches),
        (Quantity::PeakResident, exit.max_resident_bytes),
    ]
}

/// Sets a path without a new allocation.
fn set(path: &mut String, to: std::fmt::Arguments<'_>) {
    path.clear();
    // Writing into a string cannot fail.
    let _ = path.write_fmt(to);
}

fn read_at<'b>(path: &mut String, at: std::fmt::Arguments<'_>, buffer: &'b mut Buffer) -> Option<&'b [u8]> {
    set(path, at);
    source::read(path, buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_divided_as_the_ticks_are_and_never_shrinks() {
        let mut counts = Counts::default();
        counts.split_cpu(Some(8_000_000), (0, 0));
        assert_eq!((counts.cpu_user_ns, counts.cpu_system_ns), (4_000_000, 4_000_000));
        counts.split_cpu(Some(100_000_000), (1, 9));
        assert_eq!((counts.cpu_user_ns, counts.cpu_system_ns), (10_000_000, 90_000_000));
        counts.split_cpu(Some(110_000_000), (9, 1));
        assert_eq!((counts.cpu_user_ns, counts.cpu_system_ns), (20_000_000, 90_000_000));
        counts.split_cpu(Some(110_000_000), (0, 10));
        assert_eq!((counts.cpu_user_ns, counts.cpu_system_ns), (20_000_000, 90_000_000));
        let mut without_clock = Counts::default();
        without_clock.split_cpu(None, (3, 4));
        assert_eq!(without_clock.cpu_user_ns + without_clock.cpu_system_ns, 7 * tick_ns());
    }

    #[test]
    fn this_process_has_the_values_of_its_own_statistics() {
        let (mut rows, mut buffer) = (Rows::new(), Buffer::new());
        let mut process = WatchedProcess::new(std::process::id().cast_signed(), None, false);
        let begun = std::time::Instant::now();
        assert_eq!(process.read(0, &mut buffer), ProcessState::Alive);
        process.begin();
        let before = process_clock_ns(process.pid).unwrap();
        while process_clock_ns(process.pid).unwrap() < before + 20_000_000 {
            assert!(begun.elapsed().as_secs() < 60, "20 ms of CPU time within a minute");
        }
        assert_eq!(process.read(1, &mut buffer), ProcessState::Alive);
        process.push(&mut rows);
        let readings = rows.into_readings();
        let value = |wanted| {
            let own = |r: &&model::Reading| r.quantity == wanted && r.subject.kind == SubjectKind::Process;
            readings.iter().find(own).unwrap().value
        };
        let cpu_ns = value(Quantity::CpuUser) + value(Quantity::CpuSystem);
        assert!(cpu_ns >= 20_000_000, "{cpu_ns}");
        assert!(
            value(Quantity::Resident) > 1 << 20 && value(Quantity::PeakResident) >= value(Quantity::Resident)
        );
        assert!(
            value(Quantity::OpenFiles) >= 3 && value(Quantity::Threads) >= 2,
            "a test has a separate thread"
        );
        assert!(readings.iter().any(|r| r.subject.kind == SubjectKind::Thread && r.value > 0));
        let process = &readings[0].subject;
        assert!(process.name.starts_with("lab-") || process.name.contains("lab"), "{process:?}");
    }

    #[test]
    fn an_ended_process_has_no_readings() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let mut process = WatchedProcess::new(child.id().cast_signed(), None, false);
        // Its end is certain, and no process has waited for it.
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).unwrap();
        assert_eq!(process.read(0, &mut Buffer::new()), ProcessState::Ended);
        child.wait().unwrap();
        assert_eq!(process.read(0, &mut Buffer::new()), ProcessState::Gone);
    }
}
