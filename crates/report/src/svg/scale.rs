//! Maps values to coordinates, and chooses the labels of an axis.

/// Maps a range of values to a range of coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    domain: (f64, f64),
    range: (f64, f64),
    logarithmic: bool,
}

/// The values that an axis labels.
pub(crate) type Ticks = Vec<f64>;

/// With fewer labels an axis cannot be read.
const FEWEST_TICKS: usize = 3;

const NICE_STEPS: [f64; 4] = [1.0, 2.0, 2.5, 5.0];

impl Scale {
    /// Equal differences of values are equal distances.
    pub(crate) fn linear(domain: (f64, f64), range: (f64, f64)) -> Self {
        let domain = if domain.1 > domain.0 { domain } else { (domain.0 - 0.5, domain.0 + 0.5) };
        Scale { domain, range, logarithmic: false }
    }

    /// Equal ratios of values are equal distances. Both ends of the domain are above 0.
    pub(crate) fn logarithmic(domain: (f64, f64), range: (f64, f64)) -> Self {
        let low = domain.0.max(f64::MIN_POSITIVE);
        let domain = if domain.1 > low { (low, domain.1) } else { (low / 2.0, low * 2.0) };
        Scale { domain, range, logarithmic: true }
    }

    /// The coordinate of a value; outside the domain, that of the nearer end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let (low, high) = self.domain;
        let value = value.clamp(low, high);
        let share = if self.logarithmic {
            (value / low).ln() / (high / low).ln()
        } else {
            (value - low) / (high - low)
        };
        self.range.0 + share * (self.range.1 - self.range.0)
    }

    /// The value of a coordinate: the inverse of [`Scale::place`].
    pub(crate) fn value_at(&self, place: f64) -> f64 {
        let (low, high) = self.domain;
        let share = (place - self.range.0) / (self.range.1 - self.range.0);
        if self.logarithmic { low * (high / low).powf(share) } else { low + share * (high - low) }
    }

    /// Whether a value lies inside the domain.
    pub(crate) fn contains(&self, value: f64) -> bool {
        (self.domain.0..=self.domain.1).contains(&value)
    }

    /// Whether a value is a power of ten on a logarithmic scale.
    pub(crate) fn is_decade(&self, value: f64) -> bool {
        self.logarithmic && (value.log10() - value.log10().round()).abs() < 1e-9
    }

    /// The coordinates of both ends.
    pub(crate) fn range(&self) -> (f64, f64) {
        self.range
    }

    /// Round values inside the domain, about `wanted` of them.
    pub(crate) fn ticks(&self, wanted: usize) -> Ticks {
        let (low, high) = self.domain;
        if self.logarithmic && high / low > 2.6 {
            return logarithmic_ticks(low, high, wanted);
        }
        linear_ticks(low, high, wanted)
    }
}

fn linear_ticks(low: f64, high: f64, wanted: usize) -> Ticks {
    let raw = (high - low) / super::count(wanted.max(1));
    let power = 10f64.powf(raw.log10().floor());
    let step = NICE_STEPS.iter().map(|nice| nice * power).find(|step| *step >= raw).unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil();
    (0..50)
        .map(|index| (first + f64::from(index)) * step)
        .take_while(|tick| *tick <= high + step * 1e-9)
        .collect()
}

fn logarithmic_ticks(low: f64, high: f64, wanted: usize) -> Ticks {
    let families: [&[f64]; 4] =
        [&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], &[1.0, 2.0, 3.0, 5.0], &[1.0, 2.0, 5.0], &[1.0]];
    let mut before = Ticks::new();
    for family in families {
        let ticks: Ticks = (-12..=12)
            .flat_map(|power| family.iter().map(move |nice| nice * 10f64.powi(power)))
            .filter(|tick| (low..=high).contains(tick))
            .collect();
        let is_enough = ticks.len() <= wanted;
        // Whole decades may be too few.
        if is_enough && (ticks.len() >= FEWEST_TICKS || ticks.len() >= before.len()) {
            return ticks;
        }
        if is_enough {
            return before;
        }
        before = ticks;
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_ticks() {
        let linear = Scale::linear((0.0, 100.0), (10.0, 110.0));
        assert_eq!(linear.place(50.0), 60.0);
        assert_eq!(linear.place(900.0), 110.0);
        assert_eq!(linear.ticks(4), [0.0, 25.0, 50.0, 75.0, 100.0]);
        let log = Scale::logarithmic((0.1, 10.0), (0.0, 200.0));
        assert!((log.place(1.0) - 100.0).abs() < 1e-9);
        assert!((log.value_at(100.0) - 1.0).abs() < 1e-9 && linear.value_at(60.0) == 50.0);
        assert_eq!(log.ticks(7), [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]);
        let short = Scale::logarithmic((0.4, 30.0), (0.0, 200.0));
        assert_eq!(short.ticks(5), [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(Scale::linear((3.0, 3.0), (0.0, 1.0)).place(3.0), 0.5);
    }
}
