//! Statistical tests against known distributions, at 99.9 % and with fixed seeds.

/// Kolmogorov's distance times the root of the count lies below this in 99.9 % of samples.
pub(crate) const KS_999: f64 = 1.949;

/// The 99.9 % quantile of chi-square with one, two and three degrees of freedom.
pub(crate) const CHI_SQUARE_999: [f64; 3] = [10.828, 13.816, 16.266];

/// Kolmogorov's distance between values and a distribution, times the root of their count.
pub(crate) fn kolmogorov_smirnov(mut values: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let distance = values.iter().enumerate().fold(0.0_f64, |most, (rank, value)| {
        let expected = distribution(*value);
        most.max((expected - rank as f64 / count).abs()).max(((rank + 1) as f64 / count - expected).abs())
    });
    distance * count.sqrt()
}

pub(crate) fn standard_normal(x: f64) -> f64 {
    0.5 * statrs::function::erf::erfc(-x / std::f64::consts::SQRT_2)
}

/// Pearson's statistic of counts against expected counts.
pub(crate) fn chi_square(counts: &[f64], expected: &[f64]) -> f64 {
    counts.iter().zip(expected).map(|(count, expected)| (count - expected).powi(2) / expected).sum()
}

pub(crate) fn chi_square_uniform(counts: &[u32]) -> f64 {
    let total: u32 = counts.iter().sum();
    let expected = vec![f64::from(total) / counts.len() as f64; counts.len()];
    let counts: Vec<f64> = counts.iter().map(|count| f64::from(*count)).collect();
    chi_square(&counts, &expected)
}
