//! Estimates over runs: median, interquartile range and quantiles with 95 % intervals.
//!
//! The run is the unit of replication: requests within a run share its conditions and are not independent
//! (Georges, Buytaert and Eeckhout, *Statistically rigorous Java performance evaluation*, OOPSLA 2007, section 3.3;
//! Kalibera and Jones, *Rigorous benchmarking in reasonable time*, ISMM 2013, section 6). So the point is that of
//! all values together (percentiles are never averaged) and the interval comes from how runs differ:
//!
//! | runs | one value per run | many values per run |
//! |---|---|---|
//! | fewer than 2 | none | none |
//! | fewer than 20 | median: Student's t on the logarithms; others: between order statistics, where there are enough | Student's t on the logarithms of the runs' own figures, where each run has enough values for one |
//! | 20 and more | between order statistics; IQR: bootstrap | bootstrap over runs |
//!
//! Times are skewed to the right and close to normal on the log scale, where Student's t covers what it promises at
//! 5 runs and the percentile bootstrap does not. Where a value is 0 the logarithm is left out. The bootstrap draws
//! whole runs with all their values (the cluster bootstrap of Field and Welsh 2007, which keeps the correlation
//! within runs) and takes percentiles widened for few runs (Hesterberg 2015, section 5.3). Intervals are widened to
//! hold the point. Values that are all alike give an interval without width.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::distribution::Distribution;
use crate::number;
use crate::statistics::{self, CONFIDENCE};
use crate::summary::Estimate;

/// From so many runs on, intervals need no assumption on the shape of the distribution.
pub const MANY_RUNS: usize = 20;
/// Bootstrap replicates: enough for the ends of a 95 % interval (Davison and Hinkley 1997, section 5.2.2).
const REPLICATES: usize = 1000;
/// A run has a quantile of its own where so many of its values lie beyond it.
const VALUES_BEYOND: f64 = 2.0;

/// A figure of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// The quantile (definition 7 of Hyndman and Fan 1996).
    Quantile(f64),
    /// The distance between the quartiles.
    Iqr,
}

impl Figure {
    /// The median.
    pub const MEDIAN: Figure = Figure::Quantile(0.5);

    /// The figure of a distribution; `None` where it has no value.
    pub fn of(self, distribution: &Distribution) -> Option<f64> {
        match self {
            Figure::Quantile(q) => distribution.quantile(q),
            Figure::Iqr => Some(distribution.quantile(0.75)? - distribution.quantile(0.25)?),
        }
    }

    /// The quantiles that it is made of; a replicate's figure is the last less the first, or the only one.
    fn quantiles(self) -> Vec<f64> {
        match self {
            Figure::Quantile(q) => vec![q],
            Figure::Iqr => vec![0.25, 0.75],
        }
    }

    /// How far from the nearer end of the distribution it looks, as a share.
    fn tail(self) -> f64 {
        match self {
            Figure::Quantile(q) => q.min(1.0 - q),
            Figure::Iqr => 0.25,
        }
    }

    fn has_enough(self, runs: &[&Distribution]) -> bool {
        let least = runs.iter().map(|run| run.count()).min().unwrap_or(0);
        self == Figure::MEDIAN || number::float(least) * self.tail() >= VALUES_BEYOND
    }
}

/// Several figures of a metric from its distributions in each run, with 95 % intervals over runs.
///
/// Empty where no run has a value. `seed` drives the bootstrap alone.
pub fn estimates(runs: &[&Distribution], figures: &[Figure], seed: u64) -> Vec<Estimate> {
    let runs: Vec<&Distribution> = runs.iter().copied().filter(|run| !run.is_empty()).collect();
    let mut pooled = Distribution::default();
    runs.iter().for_each(|run| pooled.merge(run));
    let single = runs.iter().all(|run| run.count() == 1);
    let needs_bootstrap = |figure: &Figure| runs.len() >= MANY_RUNS && (!single || *figure == Figure::Iqr);
    let replicates = match figures.iter().any(needs_bootstrap) {
        true => Replicates::draw(&runs, figures, seed),
        false => Replicates::default(),
    };
    let estimate = |figure: &Figure| {
        let value = figure.of(&pooled)?;
        let interval = if runs.len() < 2 {
            None
        } else if needs_bootstrap(figure) {
            replicates.interval(*figure, runs.len())
        } else {
            plain_interval(&runs, &pooled, *figure, single)
        };
        Some(with_interval(value, interval))
    };
    figures.iter().filter_map(estimate).collect()
}

/// The interval that Student's t gives on the logarithms of positive values, on the values themselves otherwise;
/// `None` for fewer than two values. All metrics are at least 0, so it ends there.
pub fn student_interval(values: &[f64]) -> Option<(f64, f64)> {
    let positive = values.iter().all(|value| *value > 0.0);
    if !positive {
        let mean = statistics::mean(values)?;
        let half = mean.half_width(CONFIDENCE);
        return Some(((mean.mean - half).max(0.0), mean.mean + half));
    }
    let first = *values.first()?;
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mean = statistics::mean(&logarithms)?;
    if mean.error == 0.0 {
        return Some((first, first));
    }
    let half = mean.half_width(CONFIDENCE);
    Some(((mean.mean - half).exp(), (mean.mean + half).exp()))
}

/// An estimate whose interval holds its point.
pub(crate) fn with_interval(value: f64, interval: Option<(f64, f64)>) -> Estimate {
    let finite = interval.filter(|(low, high)| low.is_finite() && high.is_finite());
    Estimate {
        value,
        low: finite.map(|(low, _)| low.min(value)),
        high: finite.map(|(_, high)| high.max(value)),
    }
}

fn plain_interval(
    runs: &[&Distribution],
    pooled: &Distribution,
    figure: Figure,
    single: bool,
) -> Option<(f64, f64)> {
    let many = runs.len() >= MANY_RUNS;
    match figure {
        Figure::Quantile(q) if single && (many || figure != Figure::MEDIAN) => {
            if pooled.quantile(0.0) == pooled.quantile(1.0) {
                let alike = pooled.quantile(q)?;
                return Some((alike, alike));
            }
            let values = pooled.counted();
            match statistics::order_interval(values.len(), q, CONFIDENCE) {
                (Some(low), Some(high)) => Some((values.get(low)?.0, values.get(high)?.0)),
                _ => None,
            }
        }
        Figure::Iqr if single => (pooled.quantile(0.0) == pooled.quantile(1.0)).then_some((0.0, 0.0)),
        _ if figure.has_enough(runs) => {
            let own: Vec<f64> = runs.iter().filter_map(|run| figure.of(run)).collect();
            student_interval(&own)
        }
        _ => None,
    }
}

/// Bootstrap replicates of quantiles, drawn over runs.
#[derive(Default)]
struct Replicates {
    /// Each quantile's replicates, by the bits of the quantile.
    by_quantile: BTreeMap<u64, Vec<f64>>,
}

impl Replicates {
    fn draw(runs: &[&Distribution], figures: &[Figure], seed: u64) -> Replicates {
        let mut entries: Vec<(f64, u64, usize)> = Vec::new();
        for (run, distribution) in runs.iter().enumerate() {
            entries.extend(distribution.counted().into_iter().map(|(value, count)| (value, count, run)));
        }
        entries.sort_by(|a, b| a.0.total_cmp(&b.0));
        let sizes: Vec<u64> = runs.iter().map(|run| run.count()).collect();
        let mut quantiles: Vec<f64> = figures.iter().flat_map(|figure| figure.quantiles()).collect();
        quantiles.sort_by(f64::total_cmp);
        quantiles.dedup();
        let mut by_quantile: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        let mut generator = Pcg64Mcg::seed_from_u64(seed);
        for _ in 0..REPLICATES {
            let mut drawn = vec![0_u64; runs.len()];
            for _ in 0..runs.len() {
                drawn[generator.random_range(0..runs.len())] += 1;
            }
            let total: u64 = drawn.iter().zip(&sizes).map(|(times, size)| times * size).sum();
            for (q, value) in quantiles.iter().zip(walk(&entries, &drawn, total, &quantiles)) {
                by_quantile.entry(q.to_bits()).or_default().push(value);
            }
        }
        Replicates { by_quantile }
    }

    fn interval(&self, figure: Figure, runs: usize) -> Option<(f64, f64)> {
        let parts: Vec<&Vec<f64>> =
            figure.quantiles().iter().filter_map(|q| self.by_quantile.get(&q.to_bits())).collect();
        let (first, last) = (*parts.first()?, *parts.last()?);
        let figures: Distribution = match figure {
            Figure::Quantile(_) => first.iter().copied().collect(),
            Figure::Iqr => last.iter().zip(first).map(|(upper, lower)| upper - lower).collect(),
        };
        let n = number::count(runs);
        let t = statistics::student_quantile(runs - 1, 0.5 + CONFIDENCE / 2.0);
        let tail = statistics::normal_probability(-t * (n / (n - 1.0)).sqrt());
        Some((figures.quantile(tail)?, figures.quantile(1.0 - tail)?))
    }
}

/// The quantiles (ascending) of values in ascending order, whose runs were drawn so many times; without
/// interpolation, for the spread of replicates is wider than the gap between neighbours.
fn walk(entries: &[(f64, u64, usize)], drawn: &[u64], total: u64, quantiles: &[f64]) -> Vec<f64> {
    let mut found = Vec::with_capacity(quantiles.len());
    let mut seen = 0;
    for (value, count, run) in entries {
        seen += count * drawn[*run];
        while let Some(q) = quantiles.get(found.len()) {
            if seen <= number::nearest(number::float(total.saturating_sub(1)) * q) {
                break;
            }
            found.push(*value);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_each(values: &[f64]) -> Vec<Distribution> {
        values.iter().map(|value| [*value].into_iter().collect()).collect()
    }

    fn estimate(runs: &[Distribution], figure: Figure) -> Option<Estimate> {
        estimates(&runs.iter().collect::<Vec<_>>(), &[figure], 1).first().copied()
    }

    #[test]
    fn one_run_has_no_interval_and_none_has_no_value() {
        let found = estimate(&one_each(&[5.0]), Figure::MEDIAN).unwrap();
        assert_eq!(found, Estimate { value: 5.0, low: None, high: None });
        assert_eq!(estimate(&[], Figure::MEDIAN), None);
    }

    #[test]
    fn few_runs_use_t_on_logarithms() {
        // R: exp(t.test(log(c(10, 11, 12, 13, 14)))$conf.int) = 10.12021 13.95713 and median 12
        let found = estimate(&one_each(&[12.0, 10.0, 14.0, 11.0, 13.0]), Figure::MEDIAN).unwrap();
        let logarithms = [10.0_f64, 11.0, 12.0, 13.0, 14.0].map(f64::ln);
        let mean = logarithms.iter().sum::<f64>() / 5.0;
        let deviation = (logarithms.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / 4.0).sqrt();
        let half = 2.776_445_105 * deviation / 5.0_f64.sqrt();
        assert_eq!(found.value, 12.0);
        assert!((found.low.unwrap() - (mean - half).exp()).abs() < 1e-6);
        assert!((found.high.unwrap() - (mean + half).exp()).abs() < 1e-6);
    }

    #[test]
    fn constants_have_no_width() {
        for runs in [3, 30] {
            let runs = one_each(&vec![7.0; runs]);
            for (figure, value) in [(Figure::MEDIAN, 7.0), (Figure::Iqr, 0.0), (Figure::Quantile(0.99), 7.0)]
            {
                let expected = Estimate { value, low: Some(value), high: Some(value) };
                assert_eq!(estimate(&runs, figure), Some(expected), "{figure:?}");
            }
        }
    }

    #[test]
    fn far_quantiles_of_few_values_have_no_interval() {
        let runs = one_each(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(estimate(&runs, Figure::Quantile(0.99)).unwrap().high, None);
        assert_eq!(estimate(&runs, Figure::Iqr).unwrap().high, None);
    }

    #[test]
    fn a_zero_leaves_out_the_logarithm() {
        let found = estimate(&one_each(&[0.0, 1.0, 2.0]), Figure::MEDIAN).unwrap();
        assert_eq!((found.value, found.low), (1.0, Some(0.0)));
        assert!((found.high.unwrap() - (1.0 + 4.302_652_73 / 3.0_f64.sqrt())).abs() < 1e-6);
    }

    #[test]
    fn many_runs_use_order_statistics() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        let found = estimate(&one_each(&values), Figure::MEDIAN).unwrap();
        assert_eq!(found, Estimate { value: 10.5, low: Some(6.0), high: Some(15.0) });
    }

    #[test]
    fn the_bootstrap_follows_runs_and_not_requests() {
        // 25 runs, each with 400 values around a level of its own: the interval must be that of 25 levels.
        let run =
            |level: u32| -> Distribution { (0..400).map(|n| f64::from(level * 100 + n % 50)).collect() };
        let runs: Vec<Distribution> = (100..125).map(run).collect();
        let found = estimate(&runs, Figure::MEDIAN).unwrap();
        let width = found.high.unwrap() - found.low.unwrap();
        assert!((600.0..1600.0).contains(&width), "{found:?}");
        assert_eq!(found, estimate(&runs, Figure::MEDIAN).unwrap());
        assert!(estimate(&runs, Figure::Iqr).unwrap().low.unwrap() > 600.0);
    }
}
