//! Delay: the time that a packet takes from the link's exit to the other end.

use model::network::{DelaySteps, Direction};
use model::number::float;

use crate::jitter::Jitter;
use crate::stream::{Impairment, Seeds, Stream};

/// The delay of one direction: mean, steps and jitter.
#[derive(Debug)]
pub(crate) struct Delay {
    mean_ns: u64,
    steps: Option<DelaySteps>,
    step_stream: Stream,
    seeds: Seeds,
    jitter: Jitter,
    has_jitter: bool,
}

impl Delay {
    pub(crate) fn new(direction: &Direction, seeds: Seeds) -> Self {
        Delay {
            mean_ns: direction.delay_ns,
            steps: direction.delay_steps,
            step_stream: seeds.stream(Impairment::DelaySteps),
            seeds,
            jitter: Jitter::new(direction.jitter, seeds),
            has_jitter: direction.jitter.is_some(),
        }
    }

    pub(crate) fn change(&mut self, before: &Direction, direction: &Direction) {
        self.mean_ns = direction.delay_ns;
        self.steps = direction.delay_steps;
        self.has_jitter = direction.jitter.is_some();
        if before.jitter != direction.jitter {
            self.jitter.change(direction.jitter);
        }
    }

    /// The random number of the packet with this number.
    pub(crate) fn draw(&mut self, number: u64) -> f64 {
        self.jitter.draw(number)
    }

    /// The delay of a packet that leaves the link at `now_ns`.
    pub(crate) fn of_packet_ns(&mut self, now_ns: u64, drawn: f64) -> u64 {
        let mean_ns = match self.steps {
            None => self.mean_ns,
            Some(DelaySteps { every_ns, spread_ns }) => {
                let step = now_ns.saturating_add(self.seeds.phase_ns(every_ns)) / every_ns.max(1);
                // Uniform from `mean - spread` to `mean + spread`.
                let width_ns = spread_ns.saturating_mul(2).saturating_add(1);
                (self.mean_ns + self.step_stream.number(step) % width_ns).saturating_sub(spread_ns)
            }
        };
        if !self.has_jitter {
            return mean_ns;
        }
        let delay_ns = float(mean_ns) + self.jitter.offset_ns(now_ns, drawn);
        #[expect(clippy::cast_possible_truncation, reason = "a delay of centuries saturates")]
        #[expect(clippy::cast_sign_loss, reason = "at least 0")]
        let delay_ns = delay_ns.max(0.0) as u64;
        delay_ns
    }
}

/// A lower bound of the delay in this direction.
pub(crate) fn least_ns(direction: &Direction) -> u64 {
    if direction.jitter.is_some() || direction.reorder.is_some() {
        return 0;
    }
    direction.delay_ns.saturating_sub(direction.delay_steps.map_or(0, |steps| steps.spread_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{KS_999, kolmogorov_smirnov};
    use crate::stream::LinkDirection;

    const MS: u64 = 1_000_000;

    #[test]
    fn steps_are_held_and_uniform() {
        let steps = DelaySteps { every_ns: 15_000 * MS, spread_ns: 8 * MS };
        let direction = Direction { delay_ns: 20 * MS, delay_steps: Some(steps), ..Direction::default() };
        let mut delay = Delay::new(&direction, Seeds::run(1, LinkDirection::Up));
        let mut held = Vec::new();
        for second in 0..150_000 {
            let now_ns = delay.of_packet_ns(second * 1000 * MS, 0.0);
            if held.last() != Some(&now_ns) {
                held.push(now_ns);
            }
        }
        assert!((10_000..=10_001).contains(&held.len()), "{} values in 10 000 periods", held.len());
        assert!(held.iter().all(|ns| (12 * MS..=28 * MS).contains(ns)));
        let values = held.into_iter().map(|ns| ns as f64).collect();
        let distance = kolmogorov_smirnov(values, |ns| (ns / MS as f64 - 12.0) / 16.0);
        assert!(distance < KS_999, "{distance}");
        assert_eq!(least_ns(&direction), 12 * MS);
    }
}
