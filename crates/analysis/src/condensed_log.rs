//! Access logs condensed into the distribution of their request times, by class, in memory that does not grow
//! with their length.

use std::collections::BTreeMap;

use model::Histogram;
use model::class::{self, RequestClass};
use model::number::{self, float};

/// Below this time (16.8 s), every microsecond is counted separately.
const EXACT_US: u64 = 1 << 24;
const PAGE_BITS: u32 = 12;
const PAGE: usize = 1 << PAGE_BITS;
const NANOS_PER_US: u64 = 1_000;

/// Counts of times in whole microseconds: exact up to 16.8 s, and to within 0.1 % above. At most 128 MB.
#[derive(Clone, Debug, Default)]
pub struct MicrosecondCounts {
    /// Counts of 4096 neighbouring times each; pages without any are missing.
    pages: BTreeMap<u64, Box<[u64]>>,
    above: Histogram,
    count: u64,
    /// The greatest common divisor of all times, in nanoseconds.
    step_ns: u64,
}

impl MicrosecondCounts {
    /// Counts a time, rounded to a microsecond.
    pub fn add(&mut self, ns: u64) {
        let us = ns.saturating_add(NANOS_PER_US / 2) / NANOS_PER_US;
        self.count += 1;
        self.step_ns = common_divisor(self.step_ns, ns);
        if us >= EXACT_US {
            return self.above.record(us);
        }
        let page = self.pages.entry(us >> PAGE_BITS).or_insert_with(|| vec![0; PAGE].into_boxed_slice());
        if let Some(count) = page.get_mut(usize::try_from(us).unwrap_or(0) % PAGE) {
            *count += 1;
        }
    }

    /// Adds all times of another.
    pub fn merge(&mut self, other: &MicrosecondCounts) {
        for (number, counts) in &other.pages {
            let page = self.pages.entry(*number).or_insert_with(|| vec![0; PAGE].into_boxed_slice());
            page.iter_mut().zip(counts).for_each(|(own, other)| *own += other);
        }
        self.above.merge(&other.above);
        self.count += other.count;
        self.step_ns = common_divisor(self.step_ns, other.step_ns);
    }

    /// How many times were counted.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The step of the times: all are whole multiples of it, in nanoseconds. 0 without times above 0.
    pub const fn step_ns(&self) -> u64 {
        self.step_ns
    }

    /// A quantile in nanoseconds by definition 7 of Hyndman and Fan (1996), as
    /// [`crate::Distribution::quantile`]; `None` without times.
    pub fn quantile_ns(&self, q: f64) -> Option<f64> {
        let position = float(self.count.checked_sub(1)?) * q.clamp(0.0, 1.0);
        let (below, above) = (number::nearest(position.floor()), number::nearest(position.ceil()));
        let (below, above) = (self.at_rank(below)?, self.at_rank(above)?);
        let us = float(below) + (float(above) - float(below)) * position.fract();
        Some(us * float(NANOS_PER_US))
    }

    /// The time of this rank, from 0, in microseconds.
    fn at_rank(&self, rank: u64) -> Option<u64> {
        let mut before = 0;
        for (number, counts) in &self.pages {
            for (place, count) in counts.iter().enumerate() {
                before += count;
                if *count > 0 && before > rank {
                    return Some((number << PAGE_BITS) + place as u64);
                }
            }
        }
        let rest = rank.checked_sub(before)?;
        self.above.quantile(float(rest + 1) / float(self.above.count().max(1)))
    }
}

/// The greatest common divisor; 0 divides nothing.
const fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Which requests of a log are counted how.
#[derive(Clone, Debug, Default)]
pub struct LogClasses {
    /// The classes; the first that matches a path has it.
    pub classes: Vec<RequestClass>,
    /// Patterns of paths that are left out, such as those of manifests.
    pub left_out: Vec<String>,
}

impl LogClasses {
    /// The names of the classes, `other` last; `all` without classes.
    pub fn names(&self) -> Vec<&str> {
        let names = class::names(&self.classes);
        if names.is_empty() { vec!["all"] } else { names }
    }
}

/// A condensed log, or several together.
#[derive(Clone, Debug, Default)]
pub struct CondensedLog {
    /// Its lines.
    pub lines: u64,
    /// Lines that could not be read; the first with its number and the reason.
    pub unreadable: u64,
    /// The first of these.
    pub first_fault: Option<String>,
    /// Requests whose paths are left out.
    pub left_out: u64,
    /// The classes, in the order of [`LogClasses::names`].
    pub classes: Vec<ClassTimes>,
    /// The value of the last written digit of the most precise time, in nanoseconds; 0 without requests.
    pub written_ns: u64,
}

/// The requests of a class.
#[derive(Clone, Debug, Default)]
pub struct ClassTimes {
    /// All of them.
    pub requests: u64,
    /// Those whose status is not 200. Their times are not counted.
    pub failed: u64,
    /// The times of the others.
    pub times: MicrosecondCounts,
}

/// A request of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogRow<'a> {
    /// The path with its query; empty if the log has none.
    pub path: &'a str,
    /// The status code; that of a success if the log has none.
    pub status: Option<u16>,
    /// How long it took, in nanoseconds.
    pub request_time_ns: u64,
    /// The value of the last written digit of that time, in nanoseconds.
    pub unit_ns: u64,
}

/// The only status that counts as a success, as in the published studies.
const SUCCESS: u16 = 200;

impl CondensedLog {
    /// A log without lines.
    pub fn new(rules: &LogClasses) -> CondensedLog {
        CondensedLog { classes: vec![ClassTimes::default(); rules.names().len()], ..CondensedLog::default() }
    }

    /// Counts a request.
    pub fn add(&mut self, rules: &LogClasses, row: LogRow<'_>) {
        self.lines += 1;
        self.written_ns = match self.written_ns {
            0 => row.unit_ns,
            known => known.min(row.unit_ns),
        };
        let is_left_out = rules.left_out.iter().any(|pattern| class::matches(pattern, row.path));
        if is_left_out {
            self.left_out += 1;
            return;
        }
        let Some(of_class) = self.classes.get_mut(class::class_of(&rules.classes, row.path)) else { return };
        of_class.requests += 1;
        if row.status.is_none_or(|status| status == SUCCESS) {
            of_class.times.add(row.request_time_ns);
        } else {
            of_class.failed += 1;
        }
    }

    /// Counts a line that could not be read.
    pub fn add_unreadable(&mut self, reason: impl FnOnce() -> String) {
        self.lines += 1;
        self.unreadable += 1;
        let line = self.lines;
        self.first_fault.get_or_insert_with(|| format!("line {line}: {}", reason()));
    }

    /// Adds all requests of another log of the same classes.
    pub fn merge(&mut self, other: &CondensedLog) {
        self.lines += other.lines;
        self.unreadable += other.unreadable;
        self.first_fault = self.first_fault.take().or_else(|| other.first_fault.clone());
        self.left_out += other.left_out;
        self.written_ns = match (self.written_ns, other.written_ns) {
            (0, only) | (only, 0) => only,
            (own, other) => own.min(other),
        };
        for (own, other) in self.classes.iter_mut().zip(&other.classes) {
            own.requests += other.requests;
            own.failed += other.failed;
            own.times.merge(&other.times);
        }
    }

    /// The requests that are not left out.
    pub fn requests(&self) -> u64 {
        self.classes.iter().map(|of_class| of_class.requests).sum()
    }

    /// Of these, those that failed.
    pub fn failed(&self) -> u64 {
        self.classes.iter().map(|of_class| of_class.failed).sum()
    }

    /// The precision of the log's times, in nanoseconds: the largest step of which all are multiples, at
    /// least the last digit that is written. `None` with too few times to tell.
    pub fn precision_ns(&self) -> Option<u64> {
        /// Multiples of two steps by chance are then less likely than one in a million.
        const LEAST_TIMES: u64 = 20;
        let times = || self.classes.iter().map(|of_class| &of_class.times);
        let step_ns = times().map(MicrosecondCounts::step_ns).fold(0, common_divisor);
        let count: u64 = times().map(MicrosecondCounts::count).sum();
        (count >= LEAST_TIMES && step_ns > 0).then(|| step_ns.max(self.written_ns))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Distribution;

    fn rules() -> LogClasses {
        let class = |name: &str, path: &str| RequestClass { name: name.into(), paths: vec![path.into()] };
        LogClasses {
            classes: vec![class("audio", "/a/*"), class("video", "/v/*")],
            left_out: vec!["*.mpd".into()],
        }
    }

    fn row(path: &str, status: u16, ns: u64) -> LogRow<'_> {
        LogRow { path, status: Some(status), request_time_ns: ns, unit_ns: 1_000 }
    }

    #[test]
    fn classes_have_their_times_and_failures() {
        let rules = rules();
        let mut log = CondensedLog::new(&rules);
        for (path, status, us) in [
            ("/a/1", 200, 4_900),
            ("/a/2", 200, 5_100),
            ("/a/3", 404, 9),
            ("/v/1", 200, 204_700),
            ("/x.mpd", 200, 1),
            ("/y", 206, 7),
        ] {
            log.add(&rules, row(path, status, us * 1_000));
        }
        log.add_unreadable(|| "nonsense".to_owned());
        assert_eq!((log.lines, log.unreadable, log.left_out, log.requests(), log.failed()), (7, 1, 1, 5, 2));
        assert_eq!(log.first_fault.as_deref(), Some("line 7: nonsense"));
        let medians: Vec<Option<f64>> = log.classes.iter().map(|of| of.times.quantile_ns(0.5)).collect();
        assert_eq!(medians, [Some(5_000_000.0), Some(204_700_000.0), None]);
        assert_eq!(rules.names(), ["audio", "video", "other"]);
        assert_eq!(LogClasses::default().names(), ["all"]);
        assert_eq!(log.precision_ns(), None, "too few times");
    }

    #[test]
    fn coarse_times_are_noticed_whatever_is_written() {
        let rules = LogClasses::default();
        let precision = |step_ns: u64, unit_ns: u64| {
            let mut log = CondensedLog::new(&rules);
            for number in 1..100_u64 {
                let request_time_ns = number * number % 97 * step_ns;
                log.add(&rules, LogRow { path: "/", status: None, request_time_ns, unit_ns });
            }
            log.precision_ns()
        };
        assert_eq!(precision(1_000, 1_000), Some(1_000));
        assert_eq!(precision(1_000_000, 1_000_000), Some(1_000_000));
        assert_eq!(precision(4_000_000, 1_000), Some(4_000_000), "a clock of 250 Hz with six digits");
        assert_eq!(precision(0, 1_000), None, "all are 0");
    }

    #[test]
    fn long_times_are_kept_within_a_thousandth() {
        let mut counts = MicrosecondCounts::default();
        [1_000_000, 20_000_000_000, 100_000_000_000].into_iter().for_each(|ns| counts.add(ns));
        let median = counts.quantile_ns(0.5).unwrap();
        assert!((median / 20e9 - 1.0).abs() < 0.001, "{median}");
        assert!((counts.quantile_ns(1.0).unwrap() / 100e9 - 1.0).abs() < 0.001);
    }

    proptest! {
        #[test]
        fn quantiles_are_exact_and_merge(us in proptest::collection::vec(0u64..20_000, 1..200), cut in 0usize..200, q in 0.0f64..1.0) {
            let exact: Distribution = us.iter().map(|us| float(us * 1_000)).collect();
            let counted = |us: &[u64]| {
                let mut counts = MicrosecondCounts::default();
                us.iter().for_each(|us| counts.add(us * 1_000));
                counts
            };
            let cut = cut.min(us.len());
            let mut merged = counted(&us[..cut]);
            merged.merge(&counted(&us[cut..]));
            let (found, expected) = (merged.quantile_ns(q).unwrap(), exact.quantile(q).unwrap());
            prop_assert!((found - expected).abs() < 1e-3, "{} {}", found, expected);
            prop_assert_eq!(merged.count(), us.len() as u64);
        }
    }
}
