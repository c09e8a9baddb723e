//! Intervals of shares and quantiles over runs.
//!
//! The requests of one run share its conditions, so the precision of a share depends on how much the runs
//! agree, not on the number of requests. In terms of survey sampling, a run is a *cluster*:
//!
//! - the variance of a share p = Σxᵣ/Σmᵣ over runs r is n/(n − 1) Σ(xᵣ − p mᵣ)² / (Σmᵣ)² (linearised ratio;
//!   Cochran, *Sampling Techniques*, 1977, section 6.3);
//! - the *effective* number of requests is p(1 − p)/variance, at most the number of requests, times (t(all −
//!   1)/t(n − 1))² because the variance is estimated from few runs;
//! - with it, the interval is Clopper and Pearson's (1934), as in Korn and Graubard, *Confidence intervals
//!   for proportions with small expected number of positive counts estimated from survey data* (Survey
//!   Methodology 24, 1998). If all runs agree exactly, for example because nothing failed, the variance is 0,
//!   and all requests count, times the same factor.
//!
//! The interval of a quantile q is the set of values x for which q lies in the interval of the share of
//! requests at or below x: Woodruff (*Confidence intervals for medians and other position measures*, JASA 47,
//! 1952) for clusters, with the inverted test of Francisco and Fuller (*Quantile estimation with a complex
//! survey design*, Annals of Statistics 19, 1991). It assumes no distribution. With one value per run it is
//! the interval between order statistics (Conover, *Practical Nonparametric Statistics*, section 3.2).

use model::number;
use statrs::distribution::{Beta, ContinuousCDF};

use crate::distribution::Distribution;
use crate::statistics;

/// The numerator and the denominator of a share in one run.
pub(crate) type RunShare = (u64, u64);

/// A share over runs, as a share of the effective number of requests.
#[derive(Clone, Copy, Debug)]
struct Share {
    hits: f64,
    /// The number of independent requests with the same precision.
    effective: f64,
}

impl Share {
    /// `None` for fewer than two runs, or without requests.
    fn over(runs: impl Iterator<Item = RunShare> + Clone, confidence: f64) -> Option<Share> {
        let (mut all, mut hits, mut count) = (0, 0, 0_usize);
        for (run_hits, run_all) in runs.clone() {
            (hits, all, count) = (hits + run_hits, all + run_all, count + 1);
        }
        if count < 2 || all < 2 {
            return None;
        }
        let (n, total) = (number::count(count), number::float(all));
        let share = number::float(hits) / total;
        let squares: f64 =
            runs.map(|(hits, all)| (number::float(hits) - share * number::float(all)).powi(2)).sum();
        let variance = n / (n - 1.0) * squares / (total * total);
        let independent = share * (1.0 - share);
        let effective = if variance > 0.0 { (independent / variance).min(total) } else { total };
        let t = |freedom: u64| {
            let freedom = usize::try_from(freedom).unwrap_or(usize::MAX);
            statistics::student_quantile(freedom, 0.5 + confidence / 2.0)
        };
        let few = if all == count as u64 { 1.0 } else { (t(all - 1) / t(count as u64 - 1)).powi(2) };
        let effective = effective * few;
        Some(Share { hits: share * effective, effective })
    }

    /// Whether `q` lies in Clopper and Pearson's interval.
    fn may_be(&self, q: f64, confidence: f64) -> bool {
        let (tail, misses) = ((1.0 - confidence) / 2.0, self.effective - self.hits);
        let is_not_below = self.hits <= 0.0 || beta(self.hits, misses + 1.0, |beta| beta.cdf(q)) >= tail;
        let is_not_above = misses <= 0.0 || beta(self.hits + 1.0, misses, |beta| beta.cdf(q)) <= 1.0 - tail;
        is_not_below && is_not_above
    }

    fn interval(&self, confidence: f64) -> (f64, f64) {
        let (tail, misses) = ((1.0 - confidence) / 2.0, self.effective - self.hits);
        let low =
            if self.hits <= 0.0 { 0.0 } else { beta(self.hits, misses + 1.0, |beta| beta.inverse_cdf(tail)) };
        let high = if misses <= 0.0 {
            1.0
        } else {
            beta(self.hits + 1.0, misses, |beta| beta.inverse_cdf(1.0 - tail))
        };
        (low, high)
    }
}

fn beta(a: f64, b: f64, of: impl Fn(&Beta) -> f64) -> f64 {
    Beta::new(a, b).map_or(f64::NAN, |distribution| of(&distribution))
}

/// The interval of a share over runs; `None` for fewer than two.
pub(crate) fn share_interval(runs: &[RunShare], confidence: f64) -> Option<(f64, f64)> {
    Some(Share::over(runs.iter().copied(), confidence)?.interval(confidence))
}

/// The values of several runs, ranked within each and over all.
pub(crate) struct Ranked {
    runs: Vec<RankedRun>,
    /// Distinct values over all runs, in ascending order.
    values: Vec<f64>,
}

struct RankedRun {
    values: Vec<f64>,
    /// The number of values up to and including the one at the same place.
    at_most: Vec<u64>,
}

impl RankedRun {
    fn of(distribution: &Distribution) -> RankedRun {
        let mut seen = 0;
        let (values, at_most) = distribution
            .counted()
            .into_iter()
            .map(|(value, count)| {
                seen += count;
                (value, seen)
            })
            .unzip();
        RankedRun { values, at_most }
    }

    fn count_at_most(&self, value: f64) -> u64 {
        let place = self.values.partition_point(|own| *own <= value);
        place.checked_sub(1).map_or(0, |place| self.at_most[place])
    }

    fn count(&self) -> u64 {
        self.at_most.last().copied().unwrap_or(0)
    }
}

impl Ranked {
    /// Ranks the values of runs.
    pub(crate) fn of(runs: &[&Distribution]) -> Ranked {
        let runs: Vec<RankedRun> = runs.iter().map(|run| RankedRun::of(run)).collect();
        let mut values: Vec<f64> = runs.iter().flat_map(|run| run.values.iter().copied()).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        Ranked { runs, values }
    }

    /// The number of runs.
    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Smallest and largest value.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        Some((*self.values.first()?, *self.values.last()?))
    }

    /// The interval of a quantile. An end is absent if there are too few runs or values for it.
    pub(crate) fn quantile_interval(&self, q: f64, confidence: f64) -> (Option<f64>, Option<f64>) {
        // The share is constant between two neighbouring values: place `i` represents all x from the i-th
        // value to below the next, and place 0 all x below the first.
        let share_at = |place: usize| {
            let limit = place.checked_sub(1).map(|place| self.values[place]);
            let share = |run: &RankedRun| (limit.map_or(0, |limit| run.count_at_most(limit)), run.count());
            Share::over(self.runs.iter().map(share), confidence)
        };
        let may_be = |place: usize| share_at(place).is_some_and(|share| share.may_be(q, confidence));
        let last = self.values.len();
        // Shares before the place of the quantile itself are too small, and after it too large.
        let middle = partition(0, last + 1, |place| {
            share_at(place).is_some_and(|share| share.hits < q * share.effective)
        });
        let low = partition(0, middle.min(last), |place| !may_be(place));
        let high = partition(middle, last + 1, may_be);
        (
            low.checked_sub(1).map(|place| self.values[place]),
            high.checked_sub(1).and_then(|place| self.values.get(place)).copied(),
        )
    }

    /// The quantile of the runs' values, each run with a weight: the smallest value with enough values at or
    /// below it. It is not interpolated, because draws differ by more than neighbouring values.
    fn quantile_of(&self, q: f64, weight: impl Fn(usize) -> u64) -> Option<f64> {
        let sum = |count: &dyn Fn(&RankedRun) -> u64| -> u64 {
            self.runs.iter().enumerate().map(|(place, run)| weight(place) * count(run)).sum()
        };
        let seen = |place: usize| sum(&|run| run.count_at_most(self.values[place]));
        self.quantile_at(q, sum(&RankedRun::count), seen)
    }

    /// The quantile of `total` values, of which `seen` lie at or below the value at a place.
    fn quantile_at(&self, q: f64, total: u64, seen: impl Fn(usize) -> u64) -> Option<f64> {
        let rank = number::nearest(number::float(total.checked_sub(1)?) * q);
        let place = partition(0, self.values.len(), |place| seen(place) <= rank);
        self.values.get(place).copied()
    }

    /// The quantile of all values except those of one run.
    pub(crate) fn quantile_without(&self, run: usize, q: f64) -> Option<f64> {
        self.quantile_of(q, |other| u64::from(other != run))
    }

    /// The same values, rounded up to at most `most` distinct values that divide them evenly: for statistics
    /// that are computed thousands of times.
    pub(crate) fn thinned(mut self, most: usize) -> Ranked {
        if self.values.len() > most {
            let mut counted: Vec<(f64, u64)> = Vec::new();
            for run in &self.runs {
                let before = std::iter::once(0).chain(run.at_most.iter().copied());
                let counts = run.at_most.iter().zip(before).map(|(seen, before)| seen - before);
                counted.extend(run.values.iter().copied().zip(counts));
            }
            counted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let step = counted.iter().map(|(_, count)| count).sum::<u64>().div_ceil(most as u64).max(1);
            let (mut seen, mut next) = (0, step);
            self.values.clear();
            for (place, (value, count)) in counted.iter().enumerate() {
                seen += count;
                if seen >= next || place + 1 == counted.len() {
                    self.values.push(*value);
                    next = seen + step;
                }
            }
            self.values.dedup();
        }
        for run in &mut self.runs {
            let at_most = self.values.iter().map(|limit| run.count_at_most(*limit)).collect();
            *run = RankedRun { values: self.values.clone(), at_most };
        }
        self
    }

    /// The quantile of runs with the number of times that each was drawn. Only for [`Ranked::thinned`]
    /// values.
    pub(crate) fn drawn_quantile(&self, q: f64, drawn: &[u64]) -> Option<f64> {
        let total: u64 = self.runs.iter().zip(drawn).map(|(run, times)| times * run.count()).sum();
        self.quantile_at(q, total, |place| {
            self.runs.iter().zip(drawn).map(|(run, times)| times * run.at_most[place]).sum()
        })
    }
}

/// The first place from `from` for which `is_before` is false, or `end` if there is none. It must be true for
/// all places before that and false for all after.
fn partition(from: usize, end: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (from, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-7, "{found} != {expected}");
    }

    /// Runs of one request each are independent requests.
    fn independent(hits: usize, all: usize) -> (f64, f64) {
        let runs: Vec<RunShare> = (0..all).map(|run| (u64::from(run < hits), 1)).collect();
        let share = Share::over(runs.iter().copied(), 0.95).unwrap();
        // n/(n − 1) of the sample's variance makes n − 1 of n requests; that of the population all of them.
        let all = number::count(all);
        let worth = if share.effective < all - 0.5 { all / (all - 1.0) } else { 1.0 };
        Share { hits: share.hits * worth, effective: share.effective * worth }.interval(0.95)
    }

    #[test]
    fn independent_requests_have_the_interval_of_clopper_and_pearson() {
        // SciPy 1.17: binomtest(k, n).proportion_ci(0.95, method="exact")
        for (hits, all, low, high) in [
            (0, 10, 0.0, 0.308_497_107_8),
            (3, 20, 0.032_070_937_2, 0.378_926_826_5),
            (95, 100, 0.887_165_088_9, 0.983_568_120_8),
            (20, 20, 0.831_566_529_0, 1.0),
        ] {
            let (found_low, found_high) = independent(hits, all);
            near(found_low, low);
            near(found_high, high);
        }
    }

    #[test]
    fn few_runs_are_worth_less_than_their_requests() {
        let share = |runs: &[RunShare]| Share::over(runs.iter().copied(), 0.95).unwrap().effective;
        // SciPy 1.17: (t.ppf(0.975, 799) / t.ppf(0.975, 7))**2 of 800 requests.
        assert!((share(&[(10, 100); 8]) - 800.0 * (1.962_938_5 / 2.364_624_3_f64).powi(2)).abs() < 1e-3);
        // Runs that are all or nothing are one request each.
        let apart = share(&[(100, 100), (0, 100)].repeat(4));
        assert!(apart < 8.0, "{apart}");
    }

    #[test]
    fn one_value_for_each_run_gives_order_statistics() {
        // Ranks of the 95 % interval of the median by the binomial distribution (R: qbinom(0.025, n, 0.5)):
        // none for 5 values, 1 and 6 for 6, 2 and 9 for 10, 6 and 15 for 20. Ours are these, or one farther
        // out.
        let ranks = |count: u32| {
            let runs: Vec<Distribution> =
                (1..=count).map(|n| std::iter::once(f64::from(n)).collect()).collect();
            Ranked::of(&runs.iter().collect::<Vec<_>>()).quantile_interval(0.5, 0.95)
        };
        assert_eq!(ranks(5), (None, None));
        assert_eq!(ranks(10), (Some(2.0), Some(9.0)));
        let (Some(low), Some(high)) = ranks(20) else { panic!() };
        assert!((5.0..=6.0).contains(&low) && (15.0..=16.0).contains(&high), "{low} {high}");
    }

    #[test]
    fn leaving_a_run_out_and_drawing_it_are_quantiles_of_what_is_left() {
        let runs: Vec<Distribution> =
            (0..6).map(|run| (0..100).map(|n| f64::from(n * 7 % 100 + run * 10)).collect()).collect();
        let all: Vec<&Distribution> = runs.iter().collect();
        let without = Ranked::of(&all).quantile_without(2, 0.25).unwrap();
        let others = Distribution::merged(
            all.iter().enumerate().filter(|(run, _)| *run != 2).map(|(_, values)| *values),
        );
        assert!((without - others.quantile(0.25).unwrap()).abs() <= 1.0);
        let drawn = Ranked::of(&all).thinned(1000).drawn_quantile(0.75, &[3, 0, 0, 1, 0, 2]).unwrap();
        let twice = Distribution::merged([0, 0, 0, 3, 5, 5].map(|run: usize| all[run]));
        assert!((drawn - twice.quantile(0.75).unwrap()).abs() <= 1.0);
        let few = Ranked::of(&all).thinned(8).drawn_quantile(0.5, &[1; 6]).unwrap();
        assert!((few - Distribution::merged(all).quantile(0.5).unwrap()).abs() <= 20.0, "{few}");
    }
}
