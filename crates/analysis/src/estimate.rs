//! Estimates over runs: mean, median, interquartile range, quantiles and shares with 95 % intervals.
//!
//! The run is the unit of replication: requests within a run share its conditions and are not independent
//! (Georges, Buytaert and Eeckhout, *Statistically rigorous Java performance evaluation*, OOPSLA 2007,
//! section 3.3; Kalibera and Jones, *Rigorous benchmarking in reasonable time*, ISMM 2013, section 6). The
//! point is therefore that of all values together (percentiles are never averaged), and the interval follows
//! from the differences between runs:
//!
//! | statistic | interval | source |
//! |---|---|---|
//! | quantile, such as the median | inverted test of the share of values up to x, with runs as clusters; with one value per run: order statistics | `clusters` |
//! | the same, fewer than 10 runs | the union with Student's t on the logarithms of the runs' own quantiles | Georges 2007, section 3.2 |
//! | interquartile range, fewer than 20 runs | Student's t on the logarithm, with the jackknife error over runs | Shao and Tu, *The Jackknife and Bootstrap*, 1995, section 2.3 |
//! | interquartile range, 20 runs and more | seeded bootstrap of whole runs | Field and Welsh, *Bootstrapping clustered data*, 2007; widened for few runs by Hesterberg 2015, section 5.3 |
//! | mean, rate | Student's t on the runs' means | Georges 2007, section 3.2 |
//! | share, such as availability | Clopper and Pearson with the effective number of requests | `clusters` |
//!
//! Few runs show neither their skew nor a second mode. These intervals (not those of comparisons) therefore
//! have a higher confidence, 1 − 0.05 (1 − 4/n): 98.75 % for up to 5 runs, 97 % for 10, 95.7 % for 30. The
//! interquartile range has a quarter of this error. This has no theoretical basis: simulation requires it for
//! times that are skewed or have several modes or heavy tails (`ground_truth`). Intervals of medians and
//! shares then cover at least 93 %. Those of means, far quantiles and ranges cover less if they depend on a
//! few runs. Intervals are widened to contain the point. Equal values have an interval without width.

use model::number;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::clusters::{self, Ranked, RunShare};
use crate::distribution::Distribution;
use crate::statistics::{self, CONFIDENCE};
use crate::summary::Estimate;

/// From this number of runs, the bootstrap over runs has its nominal coverage.
pub const MANY_RUNS: usize = 20;
/// Below this number of runs, the interval of a quantile includes Student's t on logarithms.
const FEW_RUNS: usize = 10;
/// Bootstrap replicates: enough for the ends of a 95 % interval (Davison and Hinkley 1997, section 5.2.2).
const REPLICATES: usize = 1000;
/// Distinct values in the bootstrap: at most a thousandth of all values lies between two of them.
const REPLICATE_VALUES: usize = 1024;
/// A run has its own quantile if this many of its values lie beyond it.
const VALUES_BEYOND: f64 = 2.0;

/// A statistic of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The quantile (definition 7 of Hyndman and Fan 1996).
    Quantile(f64),
    /// The distance between the quartiles.
    Iqr,
}

impl From<model::Statistic> for Statistic {
    fn from(named: model::Statistic) -> Statistic {
        match named {
            model::Statistic::Mean => Statistic::Mean,
            model::Statistic::Iqr => Statistic::Iqr,
            quantile => Statistic::Quantile(quantile.tail_quantile().unwrap_or(0.5)),
        }
    }
}

impl Statistic {
    /// The median.
    pub const MEDIAN: Statistic = Statistic::Quantile(0.5);

    /// The statistic of a distribution; `None` without values.
    pub fn of(self, distribution: &Distribution) -> Option<f64> {
        match self {
            Statistic::Mean => distribution.mean(),
            Statistic::Quantile(q) => distribution.quantile(q),
            Statistic::Iqr => Some(distribution.quantile(0.75)? - distribution.quantile(0.25)?),
        }
    }
}

/// How the runs of an estimate were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// The seed of the bootstrap.
    pub seed: u64,
    /// Whether runs were added until an interval was narrow enough.
    pub is_until_precise: bool,
}

impl Sampling {
    /// The confidence with which intervals over this number of runs cover 95 %.
    fn confidence(self, runs: usize) -> f64 {
        let few = CONFIDENCE + (1.0 - CONFIDENCE) * (4.0 / number::count(runs.max(1))).min(0.75);
        let widening = statistics::widening(runs, self.is_until_precise);
        let t = statistics::student_quantile(runs.saturating_sub(1).max(1), 0.5 + CONFIDENCE / 2.0);
        few.max(1.0 - 2.0 * statistics::student_tail(runs.saturating_sub(1).max(1), t * widening))
    }
}

/// Several statistics of a metric from its distributions in each run, with 95 % intervals over runs. Empty if
/// no run has a value.
pub fn estimates(runs: &[&Distribution], statistics: &[Statistic], sampling: Sampling) -> Vec<Estimate> {
    let runs: Vec<&Distribution> = runs.iter().copied().filter(|run| !run.is_empty()).collect();
    let pooled = Distribution::merged(runs.iter().copied());
    let values = OverRuns { ranked: Ranked::of(&runs), runs, sampling };
    let estimate = |statistic: &Statistic| {
        let value = statistic.of(&pooled)?;
        Some(with_interval(value, values.interval(*statistic)))
    };
    statistics.iter().filter_map(estimate).collect()
}

/// A share over runs; `None` if its denominator is 0.
pub fn share(runs: &[RunShare], sampling: Sampling) -> Option<Estimate> {
    let (hits, all) = runs.iter().fold((0, 0), |sum, run| (sum.0 + run.0, sum.1 + run.1));
    let runs: Vec<RunShare> = runs.iter().copied().filter(|run| run.1 > 0).collect();
    let interval = clusters::share_interval(&runs, sampling.confidence(runs.len()));
    (all > 0).then(|| with_interval(number::float(hits) / number::float(all), interval))
}

/// An estimate whose interval contains its point.
pub(crate) fn with_interval(value: f64, interval: Option<(f64, f64)>) -> Estimate {
    let finite = interval.filter(|(low, high)| low.is_finite() && high.is_finite());
    Estimate {
        value,
        low: finite.map(|(low, _)| low.min(value)),
        high: finite.map(|(_, high)| high.max(value)),
    }
}

/// The values of a metric in runs that have any.
struct OverRuns<'a> {
    ranked: Ranked,
    runs: Vec<&'a Distribution>,
    sampling: Sampling,
}

impl OverRuns<'_> {
    fn interval(&self, statistic: Statistic) -> Option<(f64, f64)> {
        if self.runs.len() < 2 {
            return None;
        }
        if let Some((smallest, largest)) = self.ranked.range()
            && smallest == largest
        {
            let constant = if statistic == Statistic::Iqr { 0.0 } else { smallest };
            return Some((constant, constant));
        }
        let confidence = self.sampling.confidence(self.runs.len());
        match statistic {
            Statistic::Mean => Some(not_negative(self.mean().interval(confidence))),
            Statistic::Quantile(q) => self.quantile_interval(q, confidence),
            Statistic::Iqr if self.runs.len() >= MANY_RUNS => {
                self.bootstrapped_iqr(spread_confidence(confidence))
            }
            Statistic::Iqr => self.jackknifed_iqr(spread_confidence(confidence)),
        }
    }

    /// The mean of all values; its error is that of a ratio of two sums over runs (Cochran 1977, section
    /// 6.3).
    fn mean(&self) -> statistics::Mean {
        let sums: Vec<(f64, f64)> = self
            .runs
            .iter()
            .filter_map(|run| Some((run.mean()? * number::float(run.count()), number::float(run.count()))))
            .collect();
        let (sum, count) = sums.iter().fold((0.0, 0.0), |all, run| (all.0 + run.0, all.1 + run.1));
        let (mean, n) = (sum / count, number::count(sums.len()));
        let squares: f64 = sums.iter().map(|(sum, count)| (sum - mean * count).powi(2)).sum();
        let error = (n / (n - 1.0) * squares).sqrt() / count;
        statistics::Mean { mean, error, freedom: n - 1.0 }
    }

    fn quantile_interval(&self, q: f64, confidence: f64) -> Option<(f64, f64)> {
        let is_median = Statistic::Quantile(q) == Statistic::MEDIAN;
        let range = self.ranked.range()?;
        let ranked = match self.ranked.quantile_interval(q, confidence) {
            (Some(low), Some(high)) => Some((low, high)),
            // The median of few runs may lie anywhere in their range, and a far quantile even beyond it.
            (low, high) if is_median => Some((low.unwrap_or(range.0), high.unwrap_or(range.1))),
            _ => None,
        };
        if self.runs.len() >= FEW_RUNS || !self.has_enough(q) {
            return ranked;
        }
        let own: Vec<f64> = self.runs.iter().filter_map(|run| run.quantile(q)).collect();
        let student = student_interval(&own, confidence);
        match (ranked, student) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        }
    }

    /// Whether each run has its own quantile.
    fn has_enough(&self, q: f64) -> bool {
        let least = self.runs.iter().map(|run| run.count()).min().unwrap_or(0);
        Statistic::Quantile(q) == Statistic::MEDIAN || number::float(least) * q.min(1.0 - q) >= VALUES_BEYOND
    }

    fn jackknifed_iqr(&self, confidence: f64) -> Option<(f64, f64)> {
        if !self.has_enough(0.25) {
            return None;
        }
        let without =
            |run| Some(self.ranked.quantile_without(run, 0.75)? - self.ranked.quantile_without(run, 0.25)?);
        let statistics: Vec<f64> = (0..self.ranked.runs()).filter_map(without).collect();
        if statistics.iter().any(|statistic| *statistic <= 0.0) {
            return None;
        }
        let logarithms: Vec<f64> = statistics.iter().map(|statistic| statistic.ln()).collect();
        // Omitting one of n runs moves a statistic by 1/(n − 1) of that run's deviation; n − 1 are the
        // degrees of freedom.
        let apart = statistics::mean(&logarithms)?;
        let mean = apart.widened(apart.freedom);
        Some(mean.exponential_interval(confidence))
    }

    fn bootstrapped_iqr(&self, confidence: f64) -> Option<(f64, f64)> {
        let thinned = Ranked::of(&self.runs).thinned(REPLICATE_VALUES);
        let runs = thinned.runs();
        let mut generator = Pcg64Mcg::seed_from_u64(self.sampling.seed);
        let replicate = |_| {
            let mut drawn = vec![0_u64; runs];
            for _ in 0..runs {
                drawn[generator.random_range(0..runs)] += 1;
            }
            Some(thinned.drawn_quantile(0.75, &drawn)? - thinned.drawn_quantile(0.25, &drawn)?)
        };
        let statistics: Distribution = (0..REPLICATES).filter_map(replicate).collect();
        let n = number::count(runs);
        let t = statistics::student_quantile(runs - 1, 0.5 + confidence / 2.0);
        let tail = statistics::normal_probability(-t * (n / (n - 1.0)).sqrt());
        Some((statistics.quantile(tail)?, statistics.quantile(1.0 - tail)?))
    }
}

/// The confidence for the interquartile range, with a quarter of the error: the range contains the
/// differences between runs, which few runs show badly.
fn spread_confidence(confidence: f64) -> f64 {
    1.0 - (1.0 - confidence) / 4.0
}

/// No metric is negative, so an interval ends at 0.
fn not_negative((low, high): (f64, f64)) -> (f64, f64) {
    (low.max(0.0), high)
}

/// Student's interval on the logarithms of positive values, or on the values themselves if one is not
/// positive; `None` for fewer than two values.
fn student_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    if !values.iter().all(|value| *value > 0.0) {
        return Some(not_negative(statistics::mean(values)?.interval(confidence)));
    }
    let first = *values.first()?;
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mean = statistics::mean(&logarithms)?;
    if mean.error == 0.0 {
        return Some((first, first));
    }
    Some(mean.exponential_interval(confidence))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLING: Sampling = Sampling { seed: 1, is_until_precise: false };

    fn one_each(values: &[f64]) -> Vec<Distribution> {
        values.iter().map(|value| [*value].into_iter().collect()).collect()
    }

    fn estimate(runs: &[Distribution], statistic: Statistic) -> Option<Estimate> {
        estimates(&runs.iter().collect::<Vec<_>>(), &[statistic], SAMPLING).first().copied()
    }

    fn near(found: Option<f64>, expected: f64) {
        let found = found.unwrap();
        assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0), "{found} != {expected}");
    }

    #[test]
    fn one_run_has_no_interval_and_none_has_no_value() {
        let found = estimate(&one_each(&[5.0]), Statistic::MEDIAN).unwrap();
        assert_eq!(found, Estimate { value: 5.0, low: None, high: None });
        assert_eq!(estimate(&[], Statistic::MEDIAN), None);
        assert_eq!(share(&[(1, 2)], SAMPLING), Some(Estimate { value: 0.5, low: None, high: None }));
        assert_eq!(share(&[], SAMPLING), None);
    }

    #[test]
    fn five_runs_use_t_on_logarithms() {
        // SciPy 1.17: m = log([10, 11, 12, 13, 14]); exp(t.interval(0.9875, 4, m.mean(), sem(m)))
        let found = estimate(&one_each(&[12.0, 10.0, 14.0, 11.0, 13.0]), Statistic::MEDIAN).unwrap();
        assert_eq!(found.value, 12.0);
        near(found.low, 9.219_166_71);
        near(found.high, 15.401_621_95);
        // SciPy 1.17: t.interval(0.9875, 4, 12, sem([10, 11, 12, 13, 14]))
        let mean = estimate(&one_each(&[12.0, 10.0, 14.0, 11.0, 13.0]), Statistic::Mean).unwrap();
        assert_eq!(mean.value, 12.0);
        near(mean.low, 8.949_077_449);
        near(mean.high, 15.050_922_551);
    }

    #[test]
    fn stopping_when_precise_widens() {
        let runs = one_each(&[12.0, 10.0, 14.0, 11.0, 13.0, 12.5, 11.5, 12.2, 11.8, 10.9]);
        let runs: Vec<&Distribution> = runs.iter().collect();
        let width = |is_until_precise| {
            let found = estimates(&runs, &[Statistic::Mean], Sampling { seed: 1, is_until_precise })[0];
            found.high.unwrap() - found.low.unwrap()
        };
        // t(0.975, 9) √1.4 against the quantile of 97 %: 2.676_62 / 2.573_80.
        assert!(
            (width(true) / width(false) - 2.676_62 / 2.573_80).abs() < 0.005,
            "{}",
            width(true) / width(false)
        );
    }

    #[test]
    fn constants_have_no_width() {
        for runs in [3, 30] {
            let runs = one_each(&vec![7.0; runs]);
            for (statistic, value) in [
                (Statistic::Mean, 7.0),
                (Statistic::MEDIAN, 7.0),
                (Statistic::Iqr, 0.0),
                (Statistic::Quantile(0.99), 7.0),
            ] {
                let expected = Estimate { value, low: Some(value), high: Some(value) };
                assert_eq!(estimate(&runs, statistic), Some(expected), "{statistic:?}");
            }
        }
    }

    #[test]
    fn far_quantiles_of_few_values_have_no_interval() {
        let runs = one_each(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(estimate(&runs, Statistic::Quantile(0.99)).unwrap().high, None);
        assert_eq!(estimate(&runs, Statistic::Iqr).unwrap().high, None);
    }

    #[test]
    fn a_zero_leaves_out_the_logarithm() {
        let found = estimate(&one_each(&[0.0, 1.0, 2.0]), Statistic::MEDIAN).unwrap();
        assert_eq!((found.value, found.low), (1.0, Some(0.0)));
        // SciPy 1.17: t.ppf(0.99375, 2) / sqrt(3) + 1
        near(found.high, 1.0 + 8.860_200_034_7 / 3.0_f64.sqrt());
    }

    #[test]
    fn many_runs_use_order_statistics() {
        // Of 20 values the 6th and 15th are the ends of an interval of 95.9 % (binomial).
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let found = estimate(&one_each(&values), Statistic::MEDIAN).unwrap();
        assert_eq!(found.value, 10.5);
        assert!(found.low == Some(5.0) || found.low == Some(6.0), "{found:?}");
        assert!(found.high == Some(15.0) || found.high == Some(16.0), "{found:?}");
    }

    /// 25 runs, each with 400 values around a different level.
    fn levels() -> Vec<Distribution> {
        (100..125).map(|level| (0..400).map(|n| f64::from(level * 100 + n % 50)).collect()).collect()
    }

    #[test]
    fn intervals_follow_runs_and_not_requests() {
        // The interval must be that of 25 levels.
        for statistic in [Statistic::MEDIAN, Statistic::Mean, Statistic::Iqr] {
            let found = estimate(&levels(), statistic).unwrap();
            let width = found.high.unwrap() - found.low.unwrap();
            assert!((350.0..1600.0).contains(&width), "{statistic:?}: {found:?}");
            assert_eq!(Some(found), estimate(&levels(), statistic));
        }
    }

    #[test]
    fn a_share_is_known_as_well_as_runs_agree() {
        let constant = share(&[(90, 100); 10], SAMPLING).unwrap();
        let apart = share(&[(100, 100), (80, 100)].repeat(5), SAMPLING).unwrap();
        assert_eq!((constant.value, apart.value), (0.9, 0.9));
        let width = |estimate: &Estimate| estimate.high.unwrap() - estimate.low.unwrap();
        assert!(width(&apart) > 2.0 * width(&constant), "{apart:?} {constant:?}");
        let none = share(&[(100, 100); 10], SAMPLING).unwrap();
        assert_eq!((none.value, none.high), (1.0, Some(1.0)));
        assert!((0.99..1.0).contains(&none.low.unwrap()), "{none:?}");
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        fn runs() -> impl Strategy<Value = Vec<Vec<f64>>> {
            prop::collection::vec(prop::collection::vec(1.0_f64..1e6, 1..40), 2..30)
        }

        fn of(runs: &[Vec<f64>], statistic: Statistic) -> Option<Estimate> {
            let runs: Vec<Distribution> = runs.iter().map(|run| run.iter().copied().collect()).collect();
            estimate(&runs, statistic)
        }

        fn assert_equal(one: Option<Estimate>, other: Option<Estimate>, map: impl Fn(f64) -> f64) {
            let (one, other) = (one.unwrap(), other.unwrap());
            for (one, other) in
                [(Some(one.value), Some(other.value)), (one.low, other.low), (one.high, other.high)]
            {
                assert_eq!(one.is_some(), other.is_some());
                if let (Some(one), Some(other)) = (one, other) {
                    let expected = map(one);
                    assert!(
                        (expected - other).abs() <= 1e-6 * expected.abs().max(1.0),
                        "{expected} != {other}"
                    );
                }
            }
        }

        const STATISTICS: [Statistic; 4] =
            [Statistic::Mean, Statistic::MEDIAN, Statistic::Iqr, Statistic::Quantile(0.9)];

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(48))]
            #[test]
            fn all_statistics_follow_the_scale(runs in runs(), scale in 0.01_f64..100.0) {
                let scaled: Vec<Vec<f64>> =
                    runs.iter().map(|run| run.iter().map(|value| value * scale).collect()).collect();
                for statistic in STATISTICS {
                    assert_equal(of(&runs, statistic), of(&scaled, statistic), |value| value * scale);
                }
            }

            #[test]
            fn the_order_of_runs_and_values_does_not_matter(runs in runs()) {
                let turned: Vec<Vec<f64>> = runs.iter().rev().map(|run| run.iter().rev().copied().collect()).collect();
                // The bootstrap draws runs by their places, so it is left out.
                let statistics = if runs.len() >= MANY_RUNS { &STATISTICS[..2] } else { &STATISTICS[..] };
                for statistic in statistics {
                    assert_equal(of(&runs, *statistic), of(&turned, *statistic), |value| value);
                }
            }

            #[test]
            fn a_mean_and_the_quantiles_of_many_runs_follow_a_shift(
                runs in prop::collection::vec(prop::collection::vec(1.0_f64..1e6, 1..40), 10..20), shift in 0.0_f64..1e5
            ) {
                let shifted: Vec<Vec<f64>> =
                    runs.iter().map(|run| run.iter().map(|value| value + shift).collect()).collect();
                for statistic in [Statistic::MEDIAN, Statistic::Quantile(0.9)] {
                    assert_equal(of(&runs, statistic), of(&shifted, statistic), |value| value + shift);
                }
                let (mean, other) = (of(&runs, Statistic::Mean).unwrap(), of(&shifted, Statistic::Mean).unwrap());
                prop_assert!((mean.value + shift - other.value).abs() < 1e-3);
                prop_assert!((mean.high.unwrap() + shift - other.high.unwrap()).abs() < 1e-3);
            }
        }
    }
}
