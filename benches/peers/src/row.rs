//! From pairs to rows: medians of pairwise ratios with their intervals, and whether they meet the targets.

use analysis::Distribution;
use analysis::statistics::{CONFIDENCE, order_interval};
use serde::Serialize;

use crate::machine::Disturbance;
use crate::measure::{Cost, Pair};
use crate::works::{Goal, Work};

/// A median with its interval from order statistics, which is absent where there are fewer than 6 values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Median {
    pub(crate) median: f64,
    /// Both ends of the 95 % interval.
    pub(crate) interval: Option<(f64, f64)>,
}

/// Whether a value meets its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// The whole interval is on the good side.
    Met,
    /// The median is on the good side, but the interval crosses the target.
    MetWithCaveat,
    /// The median is on the bad side, but the interval crosses the target.
    MissedWithCaveat,
    /// The whole interval is on the bad side.
    Missed,
}

/// A target and its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Target {
    pub(crate) target: f64,
    pub(crate) verdict: Verdict,
}

/// One work against one peer.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) work: &'static str,
    pub(crate) server: &'static str,
    pub(crate) peer: &'static str,
    /// Whether ours ran with `--coalesce`.
    pub(crate) coalesce: bool,
    pub(crate) connections: u32,
    pub(crate) streams: u32,
    pub(crate) body_bytes: u32,
    pub(crate) pairs: usize,
    /// Our CPU per request over the peer's.
    pub(crate) cpu_ratio: Median,
    /// Our requests/s over the peer's.
    pub(crate) throughput_ratio: Median,
    pub(crate) ours: Cost,
    pub(crate) peers: Cost,
    /// For the CPU ratio; with `--coalesce`, which is for throughput, there is none.
    pub(crate) cpu_target: Option<Target>,
    /// For the requests/s ratio, with `--coalesce` only.
    pub(crate) throughput_target: Option<Target>,
    /// For our user-space CPU per request, microseconds.
    pub(crate) user_us_target: Option<Target>,
    /// Whether no other peer needed less CPU for this work: targets are against the best peer.
    pub(crate) best_peer: bool,
    /// CPUs that other processes took, median over all runs.
    pub(crate) others_cpus: f64,
    /// CPUs that other machines on the host took, median over all runs.
    pub(crate) stolen_cpus: f64,
    /// Share of runs that were disturbed by more than the harmless limit.
    pub(crate) disturbed_share: f64,
    /// Every pairwise CPU ratio, in the order of measuring.
    pub(crate) cpu_ratios: Vec<f64>,
}

impl Row {
    /// The row of a work's pairs; absent where there are none.
    pub(crate) fn of(work: &Work, peer: &'static str, pairs: &[Pair]) -> Option<Row> {
        let over_pairs = |part: fn(&Pair) -> f64| pairs.iter().map(part).collect::<Vec<f64>>();
        let cpu_ratios = over_pairs(|pair| pair.ours.cost.total_us / pair.peer.cost.total_us);
        let cpu_ratio = Median::of(&cpu_ratios)?;
        let throughput_ratio = Median::of(&over_pairs(|pair| {
            pair.ours.cost.requests_per_second / pair.peer.cost.requests_per_second
        }))?;
        let user = Median::of(&over_pairs(|pair| pair.ours.cost.user_us))?;
        let runs = || pairs.iter().flat_map(|pair| [pair.ours.disturbance, pair.peer.disturbance]);
        let disturbed = runs().filter(Disturbance::is_much).count();
        let at_most = |value: &Median, target| Target { target, verdict: value.at_most(target) };
        let (cpu_target, user_us_target, throughput_target) = match work.goal {
            Goal::Cpu { ratio, user_us } => {
                (Some(at_most(&cpu_ratio, ratio)), user_us.map(|target| at_most(&user, target)), None)
            }
            Goal::Throughput { ratio: target } => {
                (None, None, Some(Target { target, verdict: throughput_ratio.at_least(target) }))
            }
        };
        Some(Row {
            work: work.name,
            server: work.server.name(),
            peer,
            coalesce: work.coalesces(),
            connections: work.connections,
            streams: work.streams,
            body_bytes: work.body_bytes,
            pairs: pairs.len(),
            cpu_ratio,
            throughput_ratio,
            ours: Cost::medians(pairs.iter().map(|pair| pair.ours.cost))?,
            peers: Cost::medians(pairs.iter().map(|pair| pair.peer.cost))?,
            cpu_target,
            throughput_target,
            user_us_target,
            best_peer: false,
            others_cpus: median(runs().map(|run| run.others))?,
            stolen_cpus: median(runs().map(|run| run.stolen))?,
            disturbed_share: disturbed as f64 / (2 * pairs.len()) as f64,
            cpu_ratios,
        })
    }
}

/// Marks in every work the peer that no other undercuts: by CPU per request, with coalescing by requests/s.
///
/// Decided by the pairwise ratios and not by the peers' own values, whose runs are minutes apart.
pub(crate) fn mark_best(rows: &mut [Row]) {
    // The better a peer, the larger our CPU over its, and the smaller our requests/s over its.
    let strength = |row: &Row| if row.coalesce { -row.throughput_ratio.median } else { row.cpu_ratio.median };
    let best: Vec<bool> = rows
        .iter()
        .map(|row| {
            rows.iter().filter(|other| other.work == row.work).all(|other| strength(other) <= strength(row))
        })
        .collect();
    for (row, best) in rows.iter_mut().zip(best) {
        row.best_peer = best;
    }
}

impl Median {
    /// The median of at least one value.
    pub(crate) fn of(values: &[f64]) -> Option<Median> {
        let all: Distribution = values.iter().copied().collect();
        let sorted = all.counted();
        let interval = match order_interval(sorted.len(), 0.5, CONFIDENCE) {
            (Some(low), Some(high)) => Some((sorted.get(low)?.0, sorted.get(high)?.0)),
            _ => None,
        };
        Some(Median { median: all.median()?, interval })
    }

    fn at_most(self, target: f64) -> Verdict {
        let (low, high) = self.interval.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        match self.median <= target {
            true if high <= target => Verdict::Met,
            true => Verdict::MetWithCaveat,
            false if low > target => Verdict::Missed,
            false => Verdict::MissedWithCaveat,
        }
    }

    fn at_least(self, target: f64) -> Verdict {
        let turned =
            Median { median: -self.median, interval: self.interval.map(|(low, high)| (-high, -low)) };
        turned.at_most(-target)
    }
}

impl Verdict {
    /// One word for a table; a question mark if the interval crosses the target.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::MetWithCaveat => "met?",
            Verdict::MissedWithCaveat => "missed?",
            Verdict::Missed => "missed",
        }
    }
}

/// The median of one value of each run.
fn median(runs: impl Iterator<Item = f64>) -> Option<f64> {
    runs.collect::<Distribution>().median()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::measure::Reading;
    use crate::works::find;

    pub(crate) fn reading(user_us: u64, system_us: u64, per_second: f64) -> Reading {
        let [user_us, system_us] = [user_us, system_us].map(|us| us as f64);
        let total_us = user_us + system_us;
        let cost = Cost { user_us, system_us, total_us, server_us: 14.0, requests_per_second: per_second };
        Reading { cost, disturbance: Disturbance { others: 0.02, stolen: 0.0 } }
    }

    /// This many pairs in which ours costs 1 + 8 µs and the peer's 2 + 8 µs, a little more in every second
    /// one.
    pub(crate) fn pairs(count: u64) -> Vec<Pair> {
        (0..count)
            .map(|index| Pair { ours: reading(1, 8, 60_000.0), peer: reading(2 + index % 2, 8, 66_000.0) })
            .collect()
    }

    #[test]
    fn a_median_has_an_interval_from_six_values_on() {
        assert_eq!(Median::of(&[]), None);
        assert_eq!(Median::of(&[3.0, 1.0]), Some(Median { median: 2.0, interval: None }));
        assert_eq!(Median::of(&[5.0, 1.0, 4.0, 2.0, 3.0]).and_then(|found| found.interval), None);
        let six = Median::of(&[6.0, 1.0, 5.0, 2.0, 4.0, 3.0]).unwrap();
        assert_eq!(six, Median { median: 3.5, interval: Some((1.0, 6.0)) });
        // Ten values: the second and the ninth (97.9 %).
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(Median::of(&ten).unwrap().interval, Some((2.0, 9.0)));
    }

    #[test]
    fn verdicts_tell_sure_from_caveatful() {
        let value = |median, low, high| Median { median, interval: Some((low, high)) };
        assert_eq!(value(0.8, 0.7, 0.9).at_most(0.9), Verdict::Met);
        assert_eq!(value(0.8, 0.7, 0.9).at_most(0.85), Verdict::MetWithCaveat);
        assert_eq!(value(0.8, 0.7, 0.9).at_most(0.75), Verdict::MissedWithCaveat);
        assert_eq!(value(0.8, 0.7, 0.9).at_most(0.6), Verdict::Missed);
        assert_eq!(value(1.1, 1.0, 1.2).at_least(1.0), Verdict::Met);
        assert_eq!(value(0.9, 0.8, 0.95).at_least(1.0), Verdict::Missed);
        assert_eq!(Median { median: 0.1, interval: None }.at_most(0.9), Verdict::MetWithCaveat);
    }

    #[test]
    fn a_row_holds_ratios_of_pairs_and_medians_of_costs() {
        let work = find("h1-c10").unwrap();
        let row = Row::of(work, "wrk", &pairs(8)).unwrap();
        assert!((row.cpu_ratio.median - f64::midpoint(0.9, 9.0 / 11.0)).abs() < 1e-12);
        assert_eq!(row.cpu_ratio.interval, Some((9.0 / 11.0, 0.9)));
        assert_eq!(row.cpu_target.map(|target| target.verdict), Some(Verdict::Met));
        assert_eq!(row.user_us_target.map(|target| target.verdict), Some(Verdict::Missed));
        assert_eq!((row.ours.user_us, row.ours.system_us, row.ours.total_us), (1.0, 8.0, 9.0));
        assert_eq!((row.peers.user_us, row.peers.server_us), (2.5, 14.0));
        assert_eq!((row.throughput_target, row.disturbed_share), (None, 0.0));
        assert!(Row::of(work, "wrk", &[]).is_none());
    }

    #[test]
    fn coalescing_is_judged_by_requests_per_second() {
        let work = find("h1-coalesce").unwrap();
        let row = Row::of(work, "wrk", &pairs(8)).unwrap();
        assert!(row.coalesce);
        assert_eq!((row.cpu_target, row.user_us_target), (None, None));
        assert_eq!(row.throughput_target.map(|target| target.verdict), Some(Verdict::Missed));
    }

    #[test]
    fn the_best_peer_is_the_one_we_beat_least() {
        let (plain, coalescing) = (find("h1-c10").unwrap(), find("h1-coalesce").unwrap());
        let dear: Vec<Pair> =
            pairs(8).iter().map(|pair| Pair { ours: pair.ours, peer: reading(9, 9, 90_000.0) }).collect();
        let mut rows: Vec<Row> = [
            (plain, "wrk", pairs(8)),
            (plain, "ab", dear.clone()),
            (coalescing, "wrk", pairs(8)),
            (coalescing, "ab", dear),
        ]
        .into_iter()
        .filter_map(|(work, peer, pairs)| Row::of(work, peer, &pairs))
        .collect();
        mark_best(&mut rows);
        assert_eq!(rows.iter().map(|row| row.best_peer).collect::<Vec<_>>(), [true, false, false, true]);
    }
}
