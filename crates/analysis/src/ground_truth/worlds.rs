//! Times whose truth is known: skewed, with several modes, with heavy tails, and correlated within a run.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::distribution::Distribution;

/// A world of times, with its name in the tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct World {
    pub(super) name: &'static str,
    /// How requests of one run differ.
    within: Within,
    /// How runs differ.
    between: Between,
    /// Requests of a run.
    pub(super) requests: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Within {
    /// Not at all: one value for each run.
    One,
    /// Log-normal, σ 0.5.
    Skewed,
    /// Two modes, of which the slow one takes twice as long and holds 30 % of the requests.
    Bimodal,
    /// The same, but a share that differs between runs: Beta(3, 7).
    BimodalShare,
    /// Pareto beyond 1, with the index 2.5: it has a mean and a variance, and no third moment.
    Heavy,
}

/// On the logarithm of a run's times.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Between {
    /// Normal, with this σ.
    Normal(f64),
    /// Exponential, with this mean: runs are only ever slowed down.
    Slowed(f64),
    /// Student's t with 3 degrees of freedom, with this scale.
    Heavy(f64),
    /// Two modes 25 % apart, the slow one with 30 % of the runs.
    Bimodal,
}

const fn world(name: &'static str, within: Within, between: Between) -> World {
    let requests = if matches!(within, Within::One) { 1 } else { 60 };
    World { name, within, between, requests }
}

pub(super) const WORLDS: &[World] = &[
    world("loads: skewed", Within::One, Between::Normal(0.5)),
    world("loads: slowed at times", Within::One, Between::Slowed(0.1)),
    world("loads: two modes", Within::One, Between::Bimodal),
    world("loads: heavy tails", Within::One, Between::Heavy(0.1)),
    world("requests: skewed", Within::Skewed, Between::Normal(0.1)),
    world("requests: skewed, runs slowed at times", Within::Skewed, Between::Slowed(0.1)),
    world("requests: two modes", Within::Bimodal, Between::Normal(0.1)),
    world("requests: two modes, shares differ", Within::BimodalShare, Between::Normal(0.1)),
    world("requests: skewed, runs in two modes", Within::Skewed, Between::Bimodal),
    world("requests: heavy tails", Within::Heavy, Between::Normal(0.1)),
    world("requests: heavy tails, runs too", Within::Heavy, Between::Heavy(0.1)),
    world("requests: heavy tails, runs slowed at times", Within::Heavy, Between::Slowed(0.1)),
];

/// Random numbers of one simulated study.
pub(super) struct Dice(Pcg64Mcg);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(Pcg64Mcg::seed_from_u64(seed))
    }

    pub(super) fn uniform(&mut self) -> f64 {
        self.0.random()
    }

    /// A standard normal number (Box and Muller 1958).
    pub(super) fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    pub(super) fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// Student's t with 3 degrees of freedom.
    pub(super) fn heavy(&mut self) -> f64 {
        let squares: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        self.normal() / (squares / 3.0).sqrt()
    }

    /// Beta(3, 7): the third smallest of nine uniform numbers.
    pub(super) fn beta_3_7(&mut self) -> f64 {
        let mut numbers: [f64; 9] = std::array::from_fn(|_| self.uniform());
        numbers.sort_by(f64::total_cmp);
        numbers[2]
    }
}

impl World {
    /// The times of one run.
    pub(super) fn run(&self, dice: &mut Dice, requests: usize) -> Distribution {
        let level = match self.between {
            Between::Normal(sigma) => sigma * dice.normal(),
            Between::Slowed(mean) => mean * dice.exponential(),
            Between::Heavy(scale) => scale * dice.heavy(),
            Between::Bimodal => f64::from(u8::from(dice.uniform() < 0.3)) * 0.25 + 0.03 * dice.normal(),
        };
        let slow_share = if self.within == Within::BimodalShare { dice.beta_3_7() } else { 0.3 };
        let time = |dice: &mut Dice| match self.within {
            Within::One => 1.0,
            Within::Skewed => (0.5 * dice.normal()).exp(),
            Within::Bimodal | Within::BimodalShare => {
                let mode = if dice.uniform() < slow_share { 2.0 } else { 1.0 };
                mode * (0.05 * dice.normal()).exp()
            }
            Within::Heavy => 0.7 + 0.3 * (1.0 - dice.uniform()).powf(-1.0 / 2.5),
        };
        (0..requests).map(|_| level.exp() * time(dice)).collect()
    }

    /// The same world with another number of requests per run.
    pub(super) const fn with_requests(self, requests: usize) -> World {
        World { requests, ..self }
    }

    /// A study of this many runs.
    pub(super) fn study(&self, dice: &mut Dice, runs: usize) -> Vec<Distribution> {
        (0..runs).map(|_| self.run(dice, self.requests)).collect()
    }

    /// The distribution of all times, from 20 000 runs.
    pub(super) fn truth(&self) -> Distribution {
        let mut dice = Dice::new(1);
        let requests = self.requests.min(20);
        // In millionths, so that values with 0.1 % precision are not rounded to whole numbers.
        let runs: Vec<Distribution> = (0..20_000).map(|_| self.run(&mut dice, requests)).collect();
        let values = runs.iter().flat_map(|run| run.counted()).map(|(value, _)| value * 1e6);
        values.collect()
    }

    /// Whether the mean exists: e to the power of Student's t has none.
    pub(super) fn has_mean(&self) -> bool {
        !matches!(self.between, Between::Heavy(_))
    }
}
