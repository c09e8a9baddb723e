//! The machine's cores.

use std::fs::File;

use model::monitor::{Quantity, Subject, SubjectKind};

use super::parse::{self, CoreTicks};
use super::rows::{Rows, subject};
use super::source::{self, Buffer};
use crate::process;

/// More cores than this are not read one by one.
const MOST_CORES: usize = 1024;

/// `/proc/stat`, kept open.
#[derive(Debug)]
pub(super) struct Machine {
    file: Option<File>,
    tick_ns: u64,
    /// What each core had when the run began.
    cores: Vec<(Subject, CoreTicks)>,
}

impl Machine {
    pub(super) fn open() -> Machine {
        Machine { file: File::open("/proc/stat").ok(), tick_ns: process::tick_ns(), cores: Vec::new() }
    }

    pub(super) fn read(&mut self, rows: &mut Rows, buffer: &mut Buffer) {
        let Some(text) = self.file.as_ref().and_then(|file| source::reread(file, buffer)) else { return };
        for (core, now) in parse::cores(text).take(MOST_CORES) {
            let known = self.cores.iter().position(|(subject, _)| subject.id == core);
            let place = known.unwrap_or_else(|| {
                // One that was switched on during the run counts from its own begin as well.
                self.cores.push((subject(None, SubjectKind::Core, &format!("cpu{core}"), core), now));
                self.cores.len() - 1
            });
            let (subject, begin) = &self.cores[place];
            for (quantity, now, begin) in [
                (Quantity::CpuUser, now.user, begin.user),
                (Quantity::CpuSystem, now.system, begin.system),
                (Quantity::CpuIrq, now.irq, begin.irq),
                (Quantity::CpuSoftirq, now.softirq, begin.softirq),
                (Quantity::CpuSteal, now.steal, begin.steal),
                (Quantity::CpuIdle, now.idle, begin.idle),
                (Quantity::CpuIowait, now.iowait, begin.iowait),
            ] {
                rows.push(subject, quantity, now.saturating_sub(begin).saturating_mul(self.tick_ns));
            }
        }
    }
}
