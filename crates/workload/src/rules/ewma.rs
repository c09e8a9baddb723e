//! Exponentially weighted moving averages by half-life, as dash.js and hls.js use them.

/// An average in which a value loses half of its weight after values of the weight `half_life`. It begins at
/// 0, which [`Ewma::value`] compensates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ewma {
    half_life: f64,
    average: f64,
    weight: f64,
}

impl Ewma {
    pub(super) const fn new(half_life: f64) -> Ewma {
        Ewma { half_life, average: 0.0, weight: 0.0 }
    }

    /// Adds a value with its weight, in the unit of the half-life.
    pub(super) fn add(&mut self, value: f64, weight: f64) {
        let kept = 0.5_f64.powf(weight / self.half_life);
        self.average = (1.0 - kept) * value + kept * self.average;
        self.weight += weight;
    }

    /// The sum of all weights.
    pub(super) const fn weight(&self) -> f64 {
        self.weight
    }

    /// The average; `None` without values.
    pub(super) fn value(&self) -> Option<f64> {
        let share = 1.0 - 0.5_f64.powf(self.weight / self.half_life);
        (self.weight > 0.0 && share > 0.0).then(|| self.average / share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_loses_half_its_weight_after_a_half_life() {
        let mut average = Ewma::new(3.0);
        assert_eq!(average.value(), None);
        average.add(10.0, 1.0);
        assert!((average.value().unwrap() - 10.0).abs() < 1e-9, "nothing else is known");
        let mut average = Ewma::new(3.0);
        // Two values of one half-life each: 1/4 of the first, 1/2 of the second, of 3/4 in all.
        average.add(6.0, 3.0);
        average.add(12.0, 3.0);
        assert!((average.value().unwrap() - (6.0 / 4.0 + 12.0 / 2.0) / 0.75).abs() < 1e-9);
        assert_eq!(average.weight(), 6.0);
    }
}
