//! The machine's CPU cores.

use std::fs::File;
use std::path::Path;

use model::monitor::{Quantity, Subject, SubjectKind};

use super::rows::{Rows, subject};
use super::source::{self, Buffer};
use crate::procfs::{self, CoreTicks};

/// How many cores are read at most.
const MOST_CORES: usize = 1024;

/// `/proc/stat`, kept open.
#[derive(Debug)]
pub(super) struct Machine {
    file: Option<File>,
    tick_ns: u64,
    /// Each core's ticks at the start of the run.
    cores: Vec<(Subject, CoreTicks)>,
    /// The files with each core's frequency; most virtual machines have none.
    frequencies: Vec<(Subject, File)>,
}

/// The folder with the kernel's files about cores.
const CORES: &str = "/sys/devices/system/cpu";
const HZ_PER_KHZ: u64 = 1000;

impl Machine {
    pub(super) fn open() -> Machine {
        Machine {
            file: File::open("/proc/stat").ok(),
            tick_ns: procfs::tick_ns(),
            cores: Vec::new(),
            frequencies: frequencies(Path::new(CORES)),
        }
    }

    pub(super) fn read(&mut self, rows: &mut Rows, buffer: &mut Buffer) {
        for (subject, file) in &self.frequencies {
            if let Some(khz) = source::reread(file, buffer).and_then(procfs::number) {
                rows.push(subject, Quantity::Frequency, khz.saturating_mul(HZ_PER_KHZ));
            }
        }
        let Some(text) = self.file.as_ref().and_then(|file| source::reread(file, buffer)) else { return };
        for (core, now) in procfs::cores(text).take(MOST_CORES) {
            let known = self.cores.iter().position(|(subject, _)| subject.id == core);
            let place = known.unwrap_or_else(|| {
                // A core that was switched on during the run counts from its first reading.
                self.cores.push((subject(None, SubjectKind::Core, &format!("cpu{core}"), core), now));
                self.cores.len() - 1
            });
            let (subject, start) = &self.cores[place];
            for (quantity, now, start) in [
                (Quantity::CpuUser, now.user, start.user),
                (Quantity::CpuSystem, now.system, start.system),
                (Quantity::CpuIrq, now.irq, start.irq),
                (Quantity::CpuSoftirq, now.softirq, start.softirq),
                (Quantity::CpuSteal, now.steal, start.steal),
                (Quantity::CpuIdle, now.idle, start.idle),
                (Quantity::CpuIowait, now.iowait, start.iowait),
            ] {
                rows.push(subject, quantity, now.saturating_sub(start).saturating_mul(self.tick_ns));
            }
        }
    }
}

/// The frequency files of the cores below this folder.
fn frequencies(cores: &Path) -> Vec<(Subject, File)> {
    let of_core = |core: u64| {
        let file = File::open(cores.join(format!("cpu{core}/cpufreq/scaling_cur_freq"))).ok()?;
        Some((subject(None, SubjectKind::Core, &format!("cpu{core}"), core), file))
    };
    (0..MOST_CORES as u64).filter_map(of_core).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_that_say_their_frequency_are_read() {
        let folder = tempfile::tempdir().unwrap();
        for (core, khz) in [(0, "2100000\n"), (3, "800000\n"), (5, "<unknown>\n")] {
            let place = folder.path().join(format!("cpu{core}/cpufreq"));
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("scaling_cur_freq"), khz).unwrap();
        }
        let mut machine = Machine::open();
        machine.file = None;
        machine.frequencies = frequencies(folder.path());
        let (mut rows, mut buffer) = (Rows::new(), Buffer::new());
        machine.read(&mut rows, &mut buffer);
        let read: Vec<(u64, u64)> =
            rows.into_readings().iter().map(|row| (row.subject.id, row.value)).collect();
        assert_eq!(read, [(0, 2_100_000_000), (3, 800_000_000)]);
    }
}
