//! Jitter: the difference between a packet's delay and the mean.

use model::network::{self, Distribution, Order};
use model::number::float;
use statrs::function::erf::{erfc, erfc_inv};

use crate::stream::{Impairment, Seeds, Stream};
use crate::wave::Wave;

/// Pareto's shape, as in netem's table.
const SHAPE: f64 = 3.0;
/// The distribution is cut at this quantile, because its tail is unbounded.
const CUT: f64 = 0.9999;

/// The jitter of one direction.
#[derive(Debug)]
pub(crate) struct Jitter {
    stream: Stream,
    seeds: Seeds,
    form: Option<Form>,
}

#[derive(Debug)]
struct Form {
    spread_ns: f64,
    distribution: Distribution,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// A function of time.
    Wave(Wave),
    /// A random number for each packet, correlated with the previous one.
    Packets { correlation: f64, last: f64 },
}

impl Jitter {
    pub(crate) fn new(jitter: Option<network::Jitter>, seeds: Seeds) -> Self {
        let mut new = Jitter { stream: seeds.stream(Impairment::Jitter), seeds, form: None };
        new.change(jitter);
        new
    }

    pub(crate) fn change(&mut self, jitter: Option<network::Jitter>) {
        self.form = jitter.map(|jitter| Form {
            spread_ns: float(jitter.spread_ns),
            distribution: jitter.distribution,
            source: match jitter.order {
                Order::Kept { correlation_ns } => {
                    Source::Wave(Wave::new(self.seeds.stream(Impairment::Jitter), correlation_ns))
                }
                Order::Free { correlation } => Source::Packets { correlation, last: self.stream.normal(0) },
            },
        });
    }

    /// The standard normal number of the packet with this number; 0 where jitter is a function of time.
    pub(crate) fn draw(&mut self, number: u64) -> f64 {
        let Some(Form { source: Source::Packets { correlation, last }, .. }) = &mut self.form else {
            return 0.0;
        };
        let fresh = self.stream.normal(number);
        // An autoregressive process of order 1 whose values are all standard normal.
        *last = *correlation * *last + (1.0 - *correlation * *correlation).sqrt() * fresh;
        *last
    }

    /// The jitter of a packet that starts its delay now; `drawn` is its number from [`Jitter::draw`].
    pub(crate) fn offset_ns(&mut self, now_ns: u64, drawn: f64) -> f64 {
        let Some(form) = &mut self.form else { return 0.0 };
        let normal = match &mut form.source {
            Source::Wave(wave) => wave.at(now_ns),
            Source::Packets { .. } => drawn,
        };
        form.spread_ns * value(form.distribution, normal)
    }
}

/// The quantile of the jitter's distribution at a share above 0 and below 1, in units of the spread.
pub fn jitter_quantile(distribution: Distribution, share: f64) -> f64 {
    value(distribution, -std::f64::consts::SQRT_2 * erfc_inv(2.0 * share))
}

/// Maps a standard normal number to the distribution with mean 0, in units of the spread.
fn value(distribution: Distribution, normal: f64) -> f64 {
    match distribution {
        Distribution::Normal => normal,
        Distribution::Uniform => 1.0 - erfc(normal / std::f64::consts::SQRT_2),
        Distribution::Pareto => {
            let above = 1.0 - CUT * 0.5 * erfc(-normal / std::f64::consts::SQRT_2);
            (above.powf(-1.0 / SHAPE) - PARETO_MEAN) / PARETO_DEVIATION
        }
    }
}

/// Mean and standard deviation of the Pareto distribution with shape 3 and scale 1, cut at `CUT`: with the
/// largest value m = (1 - CUT)^(-1/3) its moments are E[x^n] = 3 / (3 - n) · (1 - m^(n - 3)) / (1 - m^-3). A
/// test derives them again.
const PARETO_MEAN: f64 = 1.496_918_039_768_929;
const PARETO_DEVIATION: f64 = 0.787_575_279_608_147;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{KS_999, kolmogorov_smirnov, standard_normal};
    use crate::stream::LinkDirection;

    const MS: u64 = 1_000_000;
    const SPREAD_NS: u64 = 5 * MS;
    const ALL: [Distribution; 3] = [Distribution::Normal, Distribution::Uniform, Distribution::Pareto];

    fn jitter(distribution: Distribution, order: Order, seed: u64) -> Jitter {
        Jitter::new(
            Some(network::Jitter { spread_ns: SPREAD_NS, distribution, order }),
            Seeds::run(seed, LinkDirection::Up),
        )
    }

    /// The distribution function, in units of the spread.
    fn distribution_function(distribution: Distribution) -> impl Fn(f64) -> f64 {
        move |ns| {
            let x = ns / SPREAD_NS as f64;
            match distribution {
                Distribution::Normal => standard_normal(x),
                Distribution::Uniform => ((x + 1.0) / 2.0).clamp(0.0, 1.0),
                Distribution::Pareto => (1.0 - (x * PARETO_DEVIATION + PARETO_MEAN).powf(-SHAPE)) / CUT,
            }
        }
    }

    #[test]
    fn paretos_moments_are_right() {
        let largest = (1.0 - CUT).powf(-1.0 / SHAPE);
        let moment =
            |n: f64| SHAPE / (SHAPE - n) * (1.0 - largest.powf(n - SHAPE)) / (1.0 - largest.powf(-SHAPE));
        let deviation = (moment(2.0) - moment(1.0).powi(2)).sqrt();
        assert!((moment(1.0) - PARETO_MEAN).abs() < 1e-9, "{}", moment(1.0));
        assert!((deviation - PARETO_DEVIATION).abs() < 1e-9, "{deviation}");
    }

    #[test]
    fn quantiles_invert_the_distribution_function() {
        for distribution in ALL {
            for share in [1e-5, 0.01, 0.25, 0.5, 0.9, 0.99999] {
                let quantile = jitter_quantile(distribution, share) * SPREAD_NS as f64;
                let found = distribution_function(distribution)(quantile);
                assert!((found - share).abs() < 1e-9, "{distribution:?} at {share}: {found}");
            }
        }
    }

    #[test]
    fn the_wave_passes_kolmogorov_smirnov() {
        let order = Order::Kept { correlation_ns: 100 * MS };
        for (distribution, seed) in ALL.into_iter().zip(1..) {
            let mut jitter = jitter(distribution, order, seed);
            let values = (0..20_000).map(|k| jitter.offset_ns(k * 237 * MS, 0.0)).collect();
            let distance = kolmogorov_smirnov(values, distribution_function(distribution));
            assert!(distance < KS_999, "{distribution:?}, seed {seed}: {distance}");
        }
    }

    #[test]
    fn packets_for_themselves_pass_kolmogorov_smirnov() {
        for (distribution, seed) in ALL.into_iter().zip(4..) {
            let mut jitter = jitter(distribution, Order::Free { correlation: 0.0 }, seed);
            let values = (1..=20_000)
                .map(|number| {
                    let drawn = jitter.draw(number);
                    jitter.offset_ns(0, drawn)
                })
                .collect();
            let distance = kolmogorov_smirnov(values, distribution_function(distribution));
            assert!(distance < KS_999, "{distribution:?}, seed {seed}: {distance}");
        }
    }

    #[test]
    fn correlated_packets_keep_the_distribution() {
        const PACKETS: u64 = 400_000;
        let mut jitter = jitter(Distribution::Normal, Order::Free { correlation: 0.25 }, 7);
        let drawn: Vec<f64> = (1..=PACKETS).map(|number| jitter.draw(number)).collect();
        let correlation = drawn.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>()
            / drawn.iter().map(|x| x * x).sum::<f64>();
        assert!((correlation - 0.25).abs() < 0.006, "{correlation}");
        // Every eighth value is practically independent of the others.
        let values = drawn.into_iter().step_by(8).collect();
        let distance = kolmogorov_smirnov(values, standard_normal);
        assert!(distance < KS_999, "{distance}");
    }

    /// With the smallest correlation that a description allows, no delay falls faster than time passes.
    #[test]
    fn the_wave_keeps_the_order() {
        for (distribution, least, most_share) in [
            (Distribution::Normal, 8, 1e-5),
            (Distribution::Uniform, 8, 1e-7),
            (Distribution::Pareto, 80, 1e-4),
        ] {
            let mut jitter = jitter(distribution, Order::Kept { correlation_ns: least * SPREAD_NS }, 11);
            const STEP_NS: u64 = 10_000;
            const STEPS: u64 = 2_000_000;
            let mut last = f64::MIN;
            let mut falls = 0;
            for step in 0..STEPS {
                let arrival = (step * STEP_NS) as f64 + jitter.offset_ns(step * STEP_NS, 0.0);
                falls += u64::from(arrival < last);
                last = arrival;
            }
            let share = falls as f64 / STEPS as f64;
            assert!(share <= most_share, "{distribution:?}: {share}");
        }
    }

    #[test]
    fn none_is_none() {
        let mut none = Jitter::new(None, Seeds::run(1, LinkDirection::Up));
        let drawn = none.draw(1);
        assert!(drawn == 0.0 && none.offset_ns(5, drawn) == 0.0);
    }
}
