//! Statistics on plain numbers: Student's t, the permutation test, Holm's correction, order statistics.

use model::number;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use statrs::distribution::{Binomial, ChiSquared, ContinuousCDF, DiscreteCDF, Normal, Poisson, StudentsT};

/// The confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;
/// The largest probability of a false *better* or *worse* in a family of comparisons.
pub const SIGNIFICANCE: f64 = 1.0 - CONFIDENCE;
/// Up to this number of pairs, every pattern of signs is tried. With more pairs, [`PERMUTATIONS`] patterns
/// are drawn.
const EXACT_PAIRS: usize = 14;
/// The signs in a random word.
const SIGNS_PER_WORD: usize = 64;
/// The number of drawn patterns if there are too many to try all.
const PERMUTATIONS: u32 = 19_999;

/// A mean and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// Arithmetic mean, or difference of two.
    pub mean: f64,
    /// Standard error of the mean; exactly 0 if all values are equal.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub freedom: f64,
}

/// Mean and standard error of at least two values.
pub fn mean(values: &[f64]) -> Option<Mean> {
    let (first, n) = (*values.first()?, number::count(values.len()));
    if values.len() < 2 {
        return None;
    }
    if values.iter().all(|value| *value == first) {
        return Some(Mean { mean: first, error: 0.0, freedom: n - 1.0 });
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(Mean { mean, error: (squares / (n - 1.0) / n).sqrt(), freedom: n - 1.0 })
}

/// The difference of the means of two independent groups of values, whose variances may differ (Welch, *The
/// generalization of "Student's" problem when several different population variances are involved*, 1947);
/// `None` where one has fewer than two values.
pub fn welch(own: &[f64], other: &[f64]) -> Option<Mean> {
    let (own, other) = (mean(own)?, mean(other)?);
    let (a, b) = (own.error.powi(2), other.error.powi(2));
    let freedom = if a + b > 0.0 {
        (a + b).powi(2) / (a * a / own.freedom + b * b / other.freedom)
    } else {
        own.freedom + other.freedom
    };
    Some(Mean { mean: own.mean - other.mean, error: (a + b).sqrt(), freedom })
}

impl Mean {
    /// Half the width of Student's interval of the given confidence (Gosset 1908; recommended for few runs by
    /// Georges, Buytaert and Eeckhout, OOPSLA 2007, section 3.2).
    pub fn half_width(&self, confidence: f64) -> f64 {
        if self.error == 0.0 { 0.0 } else { self.quantile(0.5 + confidence / 2.0) * self.error }
    }

    /// Student's interval.
    pub fn interval(&self, confidence: f64) -> (f64, f64) {
        let half = self.half_width(confidence);
        (self.mean - half, self.mean + half)
    }

    /// Student's interval of values of whose logarithms this is the mean.
    pub fn exponential_interval(&self, confidence: f64) -> (f64, f64) {
        let (low, high) = self.interval(confidence);
        (low.exp(), high.exp())
    }

    /// The same mean with a larger error.
    #[must_use]
    pub fn widened(self, factor: f64) -> Mean {
        Mean { error: self.error * factor, ..self }
    }

    /// The quantile of Student's t with its degrees of freedom.
    pub fn quantile(&self, probability: f64) -> f64 {
        student(self.freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(probability))
    }

    /// The two-sided p-value of the hypothesis that the true mean is 0.
    pub fn p_value(&self) -> f64 {
        if self.error == 0.0 {
            return if self.mean == 0.0 { 1.0 } else { 0.0 };
        }
        (2.0 * self.tail(self.mean.abs())).min(1.0)
    }

    /// The p-value of the hypothesis that the true mean is farther than `limit` from 0: the larger of two
    /// one-sided ones (Schuirmann, *A comparison of the two one-sided tests procedure and the power approach
    /// for assessing the equivalence of average bioavailability*, 1987).
    pub fn p_within(&self, limit: f64) -> f64 {
        if self.error == 0.0 {
            return if self.mean.abs() < limit { 0.0 } else { 1.0 };
        }
        self.tail(limit - self.mean.abs())
    }

    /// The probability that an estimate lies this far above the truth.
    fn tail(&self, distance: f64) -> f64 {
        student(self.freedom).map_or(1.0, |t| t.sf(distance / self.error))
    }
}

fn student(freedom: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom).ok()
}

/// The slope of the straight line through points (x, y) by least squares, and its standard error; `None` for
/// fewer than three points, or if all x are equal.
pub fn slope(points: &[(f64, f64)]) -> Option<Mean> {
    let n = number::count(points.len());
    if points.len() < 3 {
        return None;
    }
    let (x_mean, y_mean) = (
        points.iter().map(|point| point.0).sum::<f64>() / n,
        points.iter().map(|point| point.1).sum::<f64>() / n,
    );
    let x_squares: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    let products: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    let slope = products / x_squares;
    let squares: f64 = points.iter().map(|(x, y)| (y - y_mean - slope * (x - x_mean)).powi(2)).sum();
    let error = (squares / (n - 2.0) / x_squares).sqrt();
    (x_squares > 0.0).then_some(Mean { mean: slope, error, freedom: n - 2.0 })
}

/// The quantile of Student's t with these degrees of freedom; infinite if there are none.
pub fn student_quantile(freedom: usize, probability: f64) -> f64 {
    student(number::count(freedom)).map_or(f64::INFINITY, |t| t.inverse_cdf(probability))
}

/// The standard normal distribution's cumulative probability.
pub fn normal_probability(z: f64) -> f64 {
    Normal::new(0.0, 1.0).map_or(f64::NAN, |normal| normal.cdf(z))
}

/// The probability above `t` of Student's t with these degrees of freedom.
pub fn student_tail(freedom: usize, t: f64) -> f64 {
    student(number::count(freedom)).map_or(1.0, |distribution| distribution.sf(t))
}

/// The probability that chi-squared with these degrees of freedom is at least `value`.
pub fn chi_squared_tail(freedom: usize, value: f64) -> f64 {
    ChiSquared::new(number::count(freedom)).map_or(1.0, |distribution| distribution.sf(value))
}

/// The probability of `count` or more events if `expected` are expected (Poisson). It is 1 for no events, and
/// 0 for events if none are expected.
pub fn poisson_at_least(count: usize, expected: f64) -> f64 {
    match count {
        0 => 1.0,
        some => Poisson::new(expected).map_or(0.0, |events| events.sf(some as u64 - 1)),
    }
}

/// The factor by which the half-width of an interval over runs grows if runs were added until it was narrow
/// enough; otherwise 1.
///
/// A study that stops when the interval is narrow stops early if the runs happen to agree, so the interval is
/// too narrow: with 5 initial runs it covers 92 % (Anscombe, *Sequential estimation*, 1953; Chow and Robbins,
/// *On the asymptotic theory of fixed-width sequential confidence intervals*, 1965: its coverage is nominal
/// only for very many runs). √(1 + 4/n) corrects this, by simulation (`ground_truth`). Stein's two stages
/// (1945) are exact for normal times, but need up to twice as many runs, and cover less if times have heavy
/// tails, because they rely on the first runs only.
pub fn widening(runs: usize, is_until_precise: bool) -> f64 {
    if is_until_precise { (1.0 + 4.0 / number::count(runs.max(1))).sqrt() } else { 1.0 }
}

/// The ranks (from 0) of the order statistics between which a quantile lies with at least the given
/// confidence, for any distribution (Conover, *Practical Nonparametric Statistics*, section 3.2). A rank is
/// absent if there are too few values.
pub fn order_interval(count: usize, q: f64, confidence: f64) -> (Option<usize>, Option<usize>) {
    let tail = (1.0 - confidence) / 2.0;
    let Ok(below) = Binomial::new(q, count as u64) else { return (None, None) };
    let low = (0..count).take_while(|rank| below.cdf(*rank as u64) <= tail).last();
    let high = (0..count).find(|rank| below.sf(*rank as u64) <= tail);
    (low, high)
}

/// The smallest two-sided p-value that [`sign_flip`] can give for this number of pairs.
pub fn smallest_sign_flip_p(pairs: usize) -> f64 {
    if pairs <= EXACT_PAIRS {
        2.0_f64.powi(1 - i32::try_from(pairs).unwrap_or(i32::MAX))
    } else {
        1.0 / f64::from(PERMUTATIONS + 1)
    }
}

/// The two-sided p-value of paired differences: the share of patterns of signs whose mean is at least as far
/// from 0 (Fisher 1935). Every pattern is tried for up to 14 pairs; beyond, 19 999 are drawn from the seed
/// and the observed one is counted with them (Phipson and Smyth 2010), so that p is never 0.
pub fn sign_flip(differences: &[f64], seed: u64) -> f64 {
    let observed = differences.iter().sum::<f64>().abs();
    let at_least = observed - 1e-12 * differences.iter().map(|d| d.abs()).sum::<f64>();
    let sums = SignedSums::of(differences);
    if differences.len() <= EXACT_PAIRS {
        let patterns = 1_u64 << differences.len();
        let extreme = (0..patterns).filter(|pattern| sums.under(&[*pattern]).abs() >= at_least).count();
        return number::count(extreme) / number::float(patterns);
    }
    let mut generator = Pcg64Mcg::seed_from_u64(seed);
    let mut words = vec![0; differences.len().div_ceil(SIGNS_PER_WORD)];
    let mut extreme = 1.0;
    for _ in 0..PERMUTATIONS {
        words.iter_mut().for_each(|word| *word = generator.random());
        extreme += f64::from(u8::from(sums.under(&words).abs() >= at_least));
    }
    extreme / f64::from(PERMUTATIONS + 1)
}

/// The sums of eight differences each, under every pattern of their signs.
struct SignedSums {
    eights: Vec<[f64; 256]>,
}

impl SignedSums {
    fn of(differences: &[f64]) -> SignedSums {
        let signed = |part: &[f64], pattern: usize| -> f64 {
            part.iter().enumerate().map(|(place, d)| if pattern >> place & 1 == 1 { -d } else { *d }).sum()
        };
        let eights = differences.chunks(8).map(|part| std::array::from_fn(|pattern| signed(part, pattern)));
        SignedSums { eights: eights.collect() }
    }

    /// The sum of all; each bit of a word is the sign of one pair.
    fn under(&self, words: &[u64]) -> f64 {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        self.eights.iter().zip(bytes).map(|(sums, byte)| sums[usize::from(byte)]).sum()
    }
}

/// Holm's step-down correction (Holm 1979): adjusted p-values, in the order given. Comparing each with 0.05
/// keeps the chance of any false rejection in the family at or below 5 %, whatever the dependence.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (step, place) in order.into_iter().enumerate() {
        largest = largest.max(p_values[place] * number::count(p_values.len() - step)).min(1.0);
        adjusted[place] = largest;
    }
    adjusted
}

/// A p-value for people (APA 7, section 6.36, with two digits): `p = 0.032`, `p = 0.41`, `p < 0.001`,
/// `p > 0.99`.
pub(crate) fn format_p(p: f64) -> String {
    format!("p {}", format_p_value(p, "= "))
}

/// The same without the letter: `0.032`, `< 0.001`. `equals` comes before a value that is not beyond a limit.
pub(crate) fn format_p_value(p: f64, equals: &str) -> String {
    match p {
        p if p < 0.001 => "< 0.001".to_owned(),
        p if p < 0.00995 => format!("{equals}{p:.4}"),
        p if p < 0.0995 => format!("{equals}{p:.3}"),
        p if p <= 0.99 => format!("{equals}{p:.2}"),
        p if p.is_nan() => format!("{equals}{p}"),
        _ => "> 0.99".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found} != {expected}");
    }

    #[test]
    fn quantiles_and_tails_are_the_published_ones() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2.
        for (freedom, expected) in [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (29, 2.045)] {
            near(student_quantile(freedom, 0.975), expected, 5e-4);
        }
        // The same, section 1.3.6.7.4: the upper 5 % points of chi-squared.
        for (freedom, value) in [(1, 3.841), (4, 9.488), (9, 16.919), (29, 42.557)] {
            near(chi_squared_tail(freedom, value), 0.05, 5e-5);
        }
        // 1 - e^-1 (1 + 1 + 1/2), and 1 - e^-2.
        near(poisson_at_least(3, 1.0), 0.080_301, 1e-6);
        near(poisson_at_least(1, 2.0), 0.864_665, 1e-6);
        assert_eq!((poisson_at_least(0, 0.0), poisson_at_least(2, 0.0)), (1.0, 0.0));
        near(student_quantile(4, 0.8), 0.941, 5e-4);
        near(normal_probability(1.959_964), 0.975, 1e-6);
    }

    #[test]
    fn the_t_test_is_that_of_gosset() {
        // Student's sleep data (R: t.test(extra ~ group, paired = TRUE): t = -4.0621, p = 0.002833).
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
        let mean = mean(&differences).unwrap();
        near(mean.mean / mean.error, -4.0621, 5e-5);
        near(mean.p_value(), 0.002_833, 5e-7);
        near(mean.mean - mean.half_width(0.95), -2.459_885_8, 1e-6);
        near(mean.mean + mean.half_width(0.95), -0.700_114_2, 1e-6);
        // One difference is 0 and the other nine have one sign: 2 of 2^9 patterns.
        near(sign_flip(&differences, 1), 4.0 / 1024.0, 1e-12);
    }

    #[test]
    fn equivalence_is_two_one_sided_tests() {
        // SciPy 1.17, of the same differences: max(ttest_1samp(d, -3, alternative="greater").pvalue,
        // ttest_1samp(d, 3, alternative="less").pvalue)
        let differences = [-1.2, -2.4, -1.3, -1.3, 0.0, -1.0, -1.8, -0.8, -4.6, -1.4];
        near(mean(&differences).unwrap().p_within(3.0), 0.002_655_570, 1e-8);
        near(mean(&differences).unwrap().p_within(2.5), 0.021_116_860, 1e-8);
        let exact = Mean { mean: 0.5, error: 0.0, freedom: 3.0 };
        assert_eq!((exact.p_within(1.0), exact.p_within(0.5)), (0.0, 1.0));
    }

    #[test]
    fn groups_with_different_variances_are_compared_by_welch() {
        // SciPy 1.17: r = ttest_ind(a, b, equal_var=False): r.pvalue, r.df, r.confidence_interval(0.95)
        let a = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
        let b = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.1, 24.4];
        let found = welch(&a, &b).unwrap();
        near(found.p_value(), 0.007_892_609, 1e-8);
        near(found.freedom, 27.766_759_17, 1e-6);
        near(found.mean - found.half_width(0.95), -4.815_409_87, 1e-6);
        near(found.mean + found.half_width(0.95), -0.797_923_46, 1e-6);
        assert_eq!(welch(&[1.0], &b), None);
        assert_eq!(welch(&[2.0, 2.0], &[1.0, 1.0]).map(|mean| (mean.mean, mean.error)), Some((1.0, 0.0)));
    }

    #[test]
    fn a_trend_is_that_of_least_squares() {
        // SciPy 1.17: linregress(range(8), log([10, 10.2, 10.1, 10.4, 10.6, 10.5, 10.9, 11.0]))
        let values = [10.0_f64, 10.2, 10.1, 10.4, 10.6, 10.5, 10.9, 11.0].map(f64::ln);
        let points: Vec<(f64, f64)> = (0..8).map(f64::from).zip(values).collect();
        let found = slope(&points).unwrap();
        near(found.mean, 0.013_507_313, 1e-9);
        near(found.error, 0.001_637_082, 1e-9);
        near(found.p_value(), 0.000_171_363, 1e-9);
        assert_eq!(slope(&points[..2]), None);
        assert_eq!(slope(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }

    #[test]
    fn permutations_of_signs_are_those_of_scipy() {
        // Hollander and Wolfe's depression scores (the data of R's ?wilcox.test), before less after. SciPy
        // 1.17: permutation_test((d,), mean, permutation_type="samples", n_resamples=inf)
        let differences = [0.952, -0.147, 1.022, 0.43, 0.62, 0.59, 0.49, -0.08, 0.01];
        near(sign_flip(&differences, 1), 0.027_343_75, 1e-12);
    }

    #[test]
    fn constants_have_no_error() {
        let mean = mean(&[0.1, 0.1, 0.1]).unwrap();
        assert_eq!((mean.error, mean.half_width(0.95), mean.p_value()), (0.0, 0.0, 0.0));
        assert_eq!(super::mean(&[0.0, 0.0]).unwrap().p_value(), 1.0);
        assert_eq!(super::mean(&[1.0]), None);
    }

    #[test]
    fn five_pairs_cannot_go_below_a_sixteenth() {
        near(sign_flip(&[1.0, 2.0, 3.0, 4.0, 5.0], 1), 0.0625, 1e-12);
        near(smallest_sign_flip_p(5), 0.0625, 1e-12);
    }

    #[test]
    fn drawn_patterns_agree_with_the_t_test() {
        let differences: Vec<f64> = (0..20).map(|n| f64::from(n * n % 41) / 13.0 - 0.9).collect();
        let t = mean(&differences).unwrap().p_value();
        near(sign_flip(&differences, 7), t, 0.01);
    }

    #[test]
    fn holm_is_that_of_r() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            near(*found, expected, 1e-12);
        }
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn order_intervals_are_the_published_ones() {
        // Ranks from 1 of the 95 % interval of the median: none for 5, 1 and 6 for 6, 2 and 9 for 10, 6 and
        // 15 for 20.
        assert_eq!(order_interval(5, 0.5, 0.95), (None, None));
        assert_eq!(order_interval(6, 0.5, 0.95), (Some(0), Some(5)));
        assert_eq!(order_interval(10, 0.5, 0.95), (Some(1), Some(8)));
        assert_eq!(order_interval(20, 0.5, 0.95), (Some(5), Some(14)));
    }

    #[test]
    fn probabilities_have_two_digits_and_no_row_of_zeros() {
        let words = [1.79e-6, 0.001, 0.001_23, 0.009_96, 0.0321, 0.0996, 0.412, 0.99, 1.0].map(format_p);
        let expected =
            ["< 0.001", "= 0.0010", "= 0.0012", "= 0.010", "= 0.032", "= 0.10", "= 0.41", "= 0.99", "> 0.99"];
        assert_eq!(words, expected.map(|number| format!("p {number}")));
        assert_eq!([1e-9, 0.2].map(|p| format_p_value(p, "")), ["< 0.001", "0.20"]);
    }
}
