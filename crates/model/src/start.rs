//! How the clients of a group begin.

use serde::{Deserialize, Serialize};

use crate::number::{float, nearest};
use crate::shuffle::SplitMix64;
use crate::units::format_ns;

/// How the clients of a group begin, from the beginning of the group on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Start {
    /// All at once.
    #[default]
    Together,
    /// At equal distances: client i of n at i/n of the period.
    Evenly {
        /// The period.
        over_ns: u64,
    },
    /// As a Poisson process that has n arrivals in the period: n independent uniform times, sorted.
    Poisson {
        /// The period.
        over_ns: u64,
    },
    /// At a rate that rises linearly from zero: client i of n at √(i/n) of the period.
    Ramp {
        /// The period.
        over_ns: u64,
    },
}

impl Start {
    /// When each of `of` clients begins, by its number, in nanoseconds since the beginning of the group. The
    /// times never fall; `seed` sets those of a Poisson process.
    pub fn times_ns(self, of: u32, seed: u64) -> Vec<u64> {
        let clients = 0..u64::from(of);
        let all = u64::from(of.max(1));
        match self {
            Start::Together => vec![0; of as usize],
            Start::Evenly { over_ns } => clients.map(|client| part(over_ns, client, all)).collect(),
            Start::Poisson { over_ns } => {
                let mut random = SplitMix64::new(seed);
                let mut times: Vec<u64> = clients.map(|_| random.next_below(over_ns)).collect();
                times.sort_unstable();
                times
            }
            Start::Ramp { over_ns } => {
                let time = |client| nearest(float(over_ns) * (float(client) / float(all)).sqrt());
                clients.map(time).collect()
            }
        }
    }

    /// The period within which all begin, in nanoseconds.
    pub const fn over_ns(self) -> u64 {
        match self {
            Start::Together => 0,
            Start::Evenly { over_ns } | Start::Poisson { over_ns } | Start::Ramp { over_ns } => over_ns,
        }
    }

    /// A description, such as `evenly over 1 s`.
    pub fn describe(self) -> String {
        let how = match self {
            Start::Together => return "together".to_owned(),
            Start::Evenly { .. } => "evenly",
            Start::Poisson { .. } => "as a Poisson process",
            Start::Ramp { .. } => "in a linear ramp",
        };
        format!("{how} over {}", format_ns(self.over_ns()))
    }
}

/// `number` of `all` equal parts of a period.
fn part(over_ns: u64, number: u64, all: u64) -> u64 {
    u64::try_from(u128::from(over_ns) * u128::from(number) / u128::from(all)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn clients_begin_at_equal_distances() {
        assert_eq!(Start::Together.times_ns(3, 7), [0, 0, 0]);
        assert_eq!(Start::Evenly { over_ns: S }.times_ns(4, 7), [0, S / 4, S / 2, S / 4 * 3]);
        assert_eq!(Start::Evenly { over_ns: 10 }.times_ns(3, 7), [0, 3, 6]);
        assert_eq!(Start::Evenly { over_ns: u64::MAX }.times_ns(2, 7), [0, u64::MAX / 2]);
        for start in [Start::Together, Start::Evenly { over_ns: S }, Start::Poisson { over_ns: 0 }] {
            assert_eq!((start.times_ns(0, 7), start.times_ns(1, 7)), (vec![], vec![0]), "{start:?}");
        }
    }

    #[test]
    fn a_ramp_has_a_quarter_of_its_clients_in_the_first_half() {
        let times = Start::Ramp { over_ns: S }.times_ns(400, 7);
        assert_eq!((times[0], times[100], times[225]), (0, S / 2, S / 4 * 3));
        assert!(times.is_sorted() && times[399] < S);
    }

    #[test]
    fn a_poisson_process_is_uniform_with_exponential_gaps() {
        let seed = 5;
        let times = Start::Poisson { over_ns: S }.times_ns(100_000, seed);
        assert!(times.is_sorted() && times[99_999] < S);
        for tenth in 1..10 {
            let before = times.partition_point(|time| *time < S / 10 * tenth);
            // The standard deviation of a binomial count is at most 158.
            let expected = 10_000 * usize::try_from(tenth).unwrap();
            assert!(before.abs_diff(expected) < 800, "seed {seed}: {before} before tenth {tenth}");
        }
        // A share of 1/e of all gaps is longer than their mean; its standard error is 0.0015.
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let long = gaps.iter().filter(|gap| **gap > 10_000).count() as f64 / gaps.len() as f64;
        assert!((long - (-1.0_f64).exp()).abs() < 0.008, "seed {seed}: {long}");
    }

    #[test]
    fn only_the_seed_sets_a_poisson_process() {
        let times = |seed| Start::Poisson { over_ns: S }.times_ns(50, seed);
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
    }

    #[test]
    fn starts_are_described() {
        assert_eq!(Start::Together.describe(), "together");
        assert_eq!(Start::Evenly { over_ns: S }.describe(), "evenly over 1 s");
        assert_eq!(Start::Poisson { over_ns: 2 * S }.describe(), "as a Poisson process over 2 s");
        assert_eq!(Start::Ramp { over_ns: S / 2 }.describe(), "in a linear ramp over 500 ms");
    }
}
