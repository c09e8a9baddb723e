//! The bounded rows of the monitor, and the CPU budget of costly sources.

use model::monitor::{Name, Quantity, Reading, Subject, SubjectKind};

use crate::clock::thread_cpu_ns;

/// How many readings a run keeps: about 40 MB.
const MOST_READINGS: usize = 500_000;
/// How many last readings of ended processes a run keeps in addition.
const MOST_ENDS: usize = 100_000;

/// The readings of a run.
///
/// Where there are too many, every second round is dropped and rounds become half as frequent. Counters are
/// relative to the start of the run, so only resolution is lost, and a run of any length keeps between half
/// and all of the limit.
#[derive(Debug)]
pub(super) struct Rows {
    readings: Vec<Reading>,
    /// The last readings of ended processes. Each exists once, so none is dropped with its round.
    ends: Vec<Reading>,
    /// The time of this round.
    at_ns: u64,
}

impl Rows {
    pub(super) fn new() -> Rows {
        Rows { readings: Vec::with_capacity(4096), ends: Vec::new(), at_ns: 0 }
    }

    /// Begins a round.
    pub(super) fn begin_round(&mut self, at_ns: u64) {
        self.at_ns = at_ns;
    }

    /// Adds a reading. A single round stays far below the limit, because every source is limited.
    pub(super) fn push(&mut self, subject: &Subject, quantity: Quantity, value: u64) {
        if self.readings.len() < 2 * MOST_READINGS {
            self.readings.push(Reading { at_ns: self.at_ns, subject: subject.clone(), quantity, value });
        }
    }

    /// Adds a last reading of an ended subject.
    pub(super) fn push_end(&mut self, subject: &Subject, quantity: Quantity, value: u64) {
        if self.ends.len() < MOST_ENDS {
            self.ends.push(Reading { at_ns: self.at_ns, subject: subject.clone(), quantity, value });
        }
    }

    /// Drops every second round, but never the first, where there are too many readings; returns whether it
    /// did.
    pub(super) fn thin_out(&mut self) -> bool {
        if self.readings.len() < MOST_READINGS {
            return false;
        }
        let (mut round_ns, mut is_kept) = (None, false);
        self.readings.retain(|reading| {
            if round_ns.replace(reading.at_ns) != Some(reading.at_ns) {
                is_kept = !is_kept;
            }
            is_kept
        });
        true
    }

    /// All readings in the order of time.
    pub(super) fn into_readings(mut self) -> Vec<Reading> {
        self.readings.append(&mut self.ends);
        self.readings.sort_by_key(|reading| reading.at_ns);
        self.readings
    }
}

/// A subject of a node, or of the machine.
pub(super) fn subject(node: Option<&Name>, kind: SubjectKind, name: &str, id: u64) -> Subject {
    Subject { node: node.cloned(), kind, name: name.into(), id }
}

/// Limits a source whose cost depends on the load to a share of a core: the cost decides when the source is
/// due again.
#[derive(Debug)]
pub(super) struct Budget {
    /// The pause after a reading, as a multiple of its cost.
    pauses: u32,
    next_ns: u64,
}

impl Budget {
    /// A budget of this share of a core, in parts per thousand.
    pub(super) const fn per_mille(share: u32) -> Budget {
        Budget { pauses: 1000 / share, next_ns: 0 }
    }

    /// Does the job where it is due or required.
    pub(super) fn spend(&mut self, now_ns: u64, must: bool, job: impl FnOnce()) {
        if must || now_ns >= self.next_ns {
            let before = thread_cpu_ns();
            job();
            let spent_ns = thread_cpu_ns().saturating_sub(before);
            self.next_ns = now_ns.saturating_add(spent_ns.saturating_mul(u64::from(self.pauses)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_any_length_has_room() {
        let mut rows = Rows::new();
        let core = subject(None, SubjectKind::Core, "cpu0", 0);
        let mut every = 1_u64;
        // A day of ten rounds a second with a thousand readings each would be 864 million.
        for round in 0..864_000 {
            if round % every != 0 {
                continue;
            }
            rows.begin_round(round);
            (0..1000).for_each(|_| rows.push(&core, Quantity::CpuUser, round));
            if round == 1 {
                rows.push_end(&core, Quantity::CpuSystem, 7);
            }
            if rows.thin_out() {
                every *= 2;
            }
        }
        let readings = rows.into_readings();
        assert!(readings.len() > MOST_READINGS / 2 && readings.len() <= MOST_READINGS, "{}", readings.len());
        let rounds: Vec<u64> = readings.iter().step_by(1000).map(|reading| reading.at_ns).collect();
        assert_eq!(rounds[0], 0, "the begin is kept");
        assert!(
            rounds[2..].windows(2).all(|pair| pair[1] - pair[0] == every),
            "evenly, to the end: {rounds:?}"
        );
        assert_eq!(readings.iter().filter(|reading| reading.value == 7 && reading.at_ns == 1).count(), 1);
    }

    #[test]
    fn what_costs_much_pauses_long() {
        let mut budget = Budget::per_mille(2);
        let mut jobs = 0;
        budget.spend(0, false, || {
            jobs += 1;
            // Until the thread has really used a millisecond.
            let began = thread_cpu_ns();
            while thread_cpu_ns() < began + 1_000_000 {}
        });
        budget.spend(499_000_000, false, || jobs += 1);
        assert_eq!(jobs, 1, "a millisecond is two thousandths of half a second");
        budget.spend(499_000_001, true, || jobs += 1);
        assert_eq!(jobs, 2, "at the begin and the end it is done in any case");
    }
}
